"""Study `bn_classifier`: a classifier of digits inside a frozen random network.

The target is a ReLU network with one hidden layer, trained on scikit-learn's digits. Theorem 1 puts
two frozen layers for each of its two, of width d_in d_out in the middle. In that frozen network,
with a `torch.nn.BatchNorm1d` after each matrix,

- `construction`: the scales and shifts of Theorem 1; in evaluation mode;
- `bn_only`: the scales and shifts trained by Adam from the usual start, with batch statistics; the
  rate is chosen on separate replicates.

Both set the same parameters, and are measured on the same images. Training is in float32, the
construction in float64.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.streams import generator
from runner.core.studies import Context, Measured, Row, network_name
from runner.data.datasets import Dataset, Images
from runner.papers.norm_tuning import theory
from runner.papers.norm_tuning.bn_classifier.config import BnClassifier
from runner.papers.norm_tuning.classifier import train_classifier
from runner.papers.norm_tuning.modules import as_modules, frozen_linear
from runner.papers.norm_tuning.network import Network, agreement
from runner.training.optimizers import Adam
from runner.training.selection import choose, score, selection_range


@dataclass(frozen=True)
class Classifier(Row):
    """One row per network and replicate."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("network", "replicate")

    network: str  # target, construction, bn_only
    replicate: int
    parameters: int  # that were set or trained
    train_accuracy: float  # share of the training images that get their class
    test_accuracy: float  # share of the test images that get their class
    agreement: float  # share of all images that get the class that the target gives; nan if one is
    max_abs_error: float  # of the logits, from the target's
    learning_rate: float = nan  # of bn_only
    selected_on: str = "none"  # the replicates that the rate was chosen on


@dataclass(frozen=True)
class TrialEpoch(Row):
    """One row per rate, selection replicate and epoch of `bn_only`."""

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = ("learning_rate", "replicate", "epoch")

    learning_rate: float
    replicate: int
    epoch: int
    train_loss: float  # nats; mean over the epoch's minibatches, each before its step
    train_accuracy: float  # share of images that get their class; mean over minibatches likewise


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row per replicate and epoch of `bn_only`, at the rate that was chosen."""

    table: ClassVar[str] = "training"

    test_accuracy: float  # at the end of the epoch, with running statistics


def run(config: BnClassifier, context: Context) -> Iterator[Classifier | TrialEpoch | Measured]:
    """Choose the rate, then build and train in every replicate."""
    data = context.load_data("digits", config.seed)
    selection = selection_range(config.replicates, config.selection_replicates)
    rates = config.learning_rates
    trials = len(rates) * len(selection) if len(rates) > 1 else 0
    scores = torch.zeros(len(rates), len(selection))
    with context.progress(trials * config.epochs, "choosing rates", unit="epochs") as bar:
        for place, replicate in enumerate(selection if trials else ()):
            _, pairs = drawn(config, data, replicate)
            for number, rate in enumerate(rates):
                for row in trained(config, data, normalized(pairs), replicate, rate):
                    bar.update(loss=row.train_loss)
                    right, loss = torch.tensor([row.train_accuracy, row.train_loss])
                    scores[number, place] += score(right, loss)
                    yield row
    choice = choose(rates, scores, selection)

    with context.progress(config.replicates * config.epochs, "training", unit="epochs") as bar:
        for replicate in range(config.replicates):
            target, pairs = drawn(config, data, replicate)
            network = normalized(pairs)
            for row in trained(config, data, network, replicate, choice.rate):
                bar.update(loss=row.train_loss)
                yield TrainedEpoch(**vars(row), test_accuracy=accuracy(network, data.test))
                name = network_name("bn_only", target_width=config.target_width)
                now = partial(traced, network, data)
                yield from context.hand_over(name, replicate, row.epoch, now)
            built = built_network(data, target, pairs)
            yield Classifier("target", replicate, **columns(target, target, data))
            yield Classifier("construction", replicate, **columns(built, target, data))
            how = {"learning_rate": choice.rate, "selected_on": choice.selected_on}
            yield Classifier("bn_only", replicate, **columns(network, target, data), **how)


def traced(network: nn.Sequential, data: Dataset) -> dict[str, Tensor]:
    """The tensors of a network, the training images x, and H1, H2, ... behind its ReLUs."""
    x = data.train.flat().float()
    hidden = {f"H{end // 3}": network[:end](x) for end in range(3, len(network), 3)}
    return {"x": x, **network.state_dict(), **hidden}


def drawn(config: BnClassifier, data: Dataset, replicate: int) -> tuple[Network, list[theory.Pair]]:
    """The target, trained on the training images, and the frozen weights; in float64."""
    stream = generator(config.seed, replicate, "target")
    images, labels = data.train.flat().double(), data.train.labels
    target = train_classifier(config.target_width, 2, stream, images, labels)
    stream = generator(config.seed, replicate, "frozen weights")
    return target, theory.wide_weights(target, None, stream)


def built_network(data: Dataset, target: Network, pairs: list[theory.Pair]) -> nn.Sequential:
    """Theorem 1 in BatchNorm modules, whose running statistics are those of the training images.

    The hidden ReLUs are switched on for every image, also those for tests.
    """
    images = torch.cat([data.train.flat(), data.test.flat()]).double()
    construction = theory.wide(target, pairs, float(images.norm(dim=1).max()))
    return as_modules("batch_norm", construction.network, data.train.flat().double())


def normalized(pairs: list[theory.Pair]) -> nn.Sequential:
    """The frozen network with new BatchNorm modules, in float32: what `bn_only` starts from."""
    modules: list[nn.Module] = []
    for W in (W for pair in pairs for W in pair):
        modules += [frozen_linear(W.float()), nn.BatchNorm1d(len(W)), nn.ReLU()]
    return nn.Sequential(*modules[:-1])


def trained(
    config: BnClassifier, data: Dataset, network: nn.Sequential, replicate: int, rate: float
) -> Iterator[TrialEpoch]:
    """Train by Adam on the cross entropy; a row after every epoch."""
    images, labels = data.train.flat().float(), data.train.labels
    stream = generator(config.seed, replicate, "order")
    parameters = {name: p for name, p in network.named_parameters() if p.requires_grad}
    optimizer = Adam({name: p.data[None] for name, p in parameters.items()})
    rates = torch.tensor([rate])
    for epoch in range(1, config.epochs + 1):
        network.train()
        loss_sum, right = 0.0, 0
        for batch in torch.randperm(len(images), generator=stream).split(config.batch_size):
            if len(batch) < 2:
                continue  # one image has no variance
            logits = network(images[batch])
            loss = nn.functional.cross_entropy(logits, labels[batch])
            gradients = torch.autograd.grad(loss, [*parameters.values()])
            named = zip(parameters, gradients, strict=True)
            optimizer.step({name: gradient[None] for name, gradient in named}, rates)
            loss_sum += loss.item() * len(batch)
            right += int((logits.argmax(1) == labels[batch]).sum())
        network.eval()
        yield TrialEpoch(rate, replicate, epoch, loss_sum / len(images), right / len(images))


def columns(
    network: nn.Sequential | Network, target: Network, data: Dataset
) -> dict[str, float | int]:
    """What is measured of a network in evaluation mode."""
    images = torch.cat([data.train.flat(), data.test.flat()])
    expected, found = target(images.double()), logits_of(network, images)
    return {
        "parameters": size(network),
        "train_accuracy": accuracy(network, data.train),
        "test_accuracy": accuracy(network, data.test),
        "agreement": agreement(found, expected),
        "max_abs_error": float((found - expected).abs().max()),
    }


def size(network: nn.Sequential | Network) -> int:
    """Numbers that are set or trained: scales and shifts, or all weights and biases of a target."""
    if isinstance(network, Network):
        return sum(layer.weight.numel() + layer.shift.numel() for layer in network.layers)
    return sum(p.numel() for p in network[1::3].parameters())


@torch.no_grad()
def logits_of(
    network: nn.Sequential | Network, images: Float[Tensor, "n features"]
) -> Float[Tensor, "n classes"]:
    """Outputs in float64, computed in the network's own precision."""
    is_module = isinstance(network, nn.Module)
    dtype = next(network.parameters()).dtype if is_module else torch.float64
    return network(images.to(dtype)).double()


def accuracy(network: nn.Sequential | Network, images: Images) -> float:
    """Share of the images that get their class."""
    right = logits_of(network, images.flat()).argmax(1) == images.labels
    return float(right.double().mean())
