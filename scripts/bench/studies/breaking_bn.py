"""Benchmark: VGG-19 and ResNet-50 on images stored on the device, compared with a DataLoader."""

from collections.abc import Iterator
from copy import deepcopy
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

from bench.growth import Growth
from bench.timing import Comparison, device, matrix_rate, median_seconds
from runner.core.streams import generator
from runner.data.datasets import Dataset, Images, random_pixels
from runner.networks.convolutional import ConvolutionalClassifier
from runner.papers.batch_norm_rank.breaking_bn.config import BreakingBN
from runner.papers.batch_norm_rank.breaking_bn.study import ARCHITECTURES
from runner.training.images import ConvolutionalTrainer, on_device

BATCH = 128
STEPS = {"cuda": 100, "cpu": 4}
"""The number of minibatches in an epoch. On a CPU few are enough, since they exceed its caches."""
MULTIPLIER = {"cuda": 1.0, "cpu": 0.125}
SHAPE = (3, 32, 32)  # shape of CIFAR-10


def usual_loop(network: nn.Module, images: Images, device: torch.device) -> None:
    """Train one epoch as usual in torch, with the images on the host."""
    optimizer = torch.optim.SGD(network.parameters(), lr=0.03)
    pairs = TensorDataset(images.pixels, images.labels)
    total = 0.0
    for pixels, labels in DataLoader(pairs, BATCH, shuffle=True, drop_last=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(pixels.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()


def resident(network: ConvolutionalClassifier, data: Dataset) -> None:
    """Train one epoch as the study does."""
    trainer = ConvolutionalTrainer(
        network, data, rate=0.03, batch_size=BATCH, stream=partial(generator, 0), replicate=0
    )
    for _ in trainer.until(1, lambda loss: None):
        pass


def arithmetic(network: nn.Module, device: torch.device) -> float:
    """Return the FLOP of the convolutions and products of one step, forward and backward."""
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(BATCH, *SHAPE, device=device)).sum().backward()
    return float(counter.get_total_flops())


def require_same_step(network: ConvolutionalClassifier, data: Dataset) -> None:
    """Raise AssertionError unless both programs take the same step from equal weights."""
    ours, plain = deepcopy(network), deepcopy(network)
    first = torch.arange(BATCH, device=data.train.labels.device)
    ConvolutionalTrainer(
        ours, data, rate=0.03, batch_size=BATCH, stream=partial(generator, 0), replicate=0
    ).train_on(first)
    loss = nn.functional.cross_entropy(plain(data.train.pixels[:BATCH]), data.train.labels[:BATCH])
    loss.backward()
    torch.optim.SGD(plain.parameters(), lr=0.03).step()
    for one, other in zip(ours.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)


def compare() -> Iterator[Comparison]:
    """Yield comparisons on one epoch of random pixels, for each network with batch normalization.

    The floor is computed from the speed of a large matrix product.
    """
    where = device()
    steps, multiplier = STEPS[where.type], MULTIPLIER[where.type]
    data = random_pixels(0, train=BATCH * steps, test=BATCH, shape=SHAPE)
    moved = on_device(data, where)
    rate = matrix_rate(torch.float32, where.type, n=4096 if where.type == "cuda" else 1024)
    for name, architecture in ARCHITECTURES.items():
        network = architecture(SHAPE[0], 10, "batch", multiplier).to(where)
        require_same_step(network, moved)
        usual = median_seconds(partial(usual_loop, network, data.train, where), 3)
        flop = steps * arithmetic(network, where)
        network = network.to(memory_format=torch.channels_last)
        ours = median_seconds(partial(resident, network, moved), 3)
        images = BATCH * steps
        yield Comparison(
            study="breaking_bn",
            work=f"{name} x {multiplier:g}: {images / usual:.0f} -> {images / ours:.0f} images/s",
            baseline=usual,
            ours=ours,
            floor=flop / rate,
        )


GROWTH = Growth(
    BreakingBN(methods=["batch_norm"], epochs=1, replicates=1, learning_rates=[0.03]),
    {
        "multiplier": (0.125, 0.5),
        "image_size": (16, 32),
        "batch_size": (128, 512),
        "replicates": (1, 4),
    },
)
