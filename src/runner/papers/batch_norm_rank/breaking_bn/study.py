"""Study `breaking_bn`: paper B, Section 4 and Appendices C, H and I, figures 5, 7, 10 and 13.

A convolutional network learns images in several ways:

- `batch_norm`: with batch normalization, from PyTorch's initialisation;
- `batch_norm_asymmetric`: the same from positive weights of the same variance;
- `batch_norm_no_mean`: with division by the root mean square alone;
- `vanilla`: without normalization; `vanilla_100x`: at 100 times the learning rate;
  `vanilla_random_pixels`: on images of uniform random pixels, with the labels of the data.

Each method is trained at the fastest rate of a grid, chosen on replicates of their own
(`selection.csv`); `vanilla_random_pixels` takes that of `vanilla`, `vanilla_100x` 100 times it.
Networks of one replicate start from the same draws and see the data in the same order, whatever the
method. They are trained one after the other: each one fills the machine.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from runner.core.errors import lookup
from runner.core.streams import generator
from runner.core.studies import Context, Measured, Row, network_name
from runner.data.datasets import Dataset, Images
from runner.networks.convolutional import ConvolutionalClassifier, initialize
from runner.networks.resnet import ResNet50
from runner.networks.vgg import VGG19
from runner.papers.batch_norm_rank.breaking_bn.alignment import gradient_alignment
from runner.papers.batch_norm_rank.breaking_bn.config import BreakingBN as Config
from runner.papers.batch_norm_rank.images import probed, training_images
from runner.papers.batch_norm_rank.measures import ranks
from runner.training.convolutional import ConvolutionalTrainer, on_device
from runner.training.selection import choose, score, selection_range

ARCHITECTURES = {"vgg19": VGG19, "resnet50": ResNet50}


@dataclass(frozen=True)
class Method:
    """One way to learn: the network, its start, its rate, and its images.

    rate_of: the method whose rate it takes, `faster` times; empty: a rate of its own.
    """

    normalization: str
    init: str = "pytorch"
    faster: float = 1.0
    random_pixels: bool = False
    rate_of: str = ""


METHODS = {
    "batch_norm": Method("batch"),
    "batch_norm_asymmetric": Method("batch", init="asymmetric"),
    "batch_norm_no_mean": Method("batch_no_mean"),
    "vanilla": Method("none"),
    "vanilla_100x": Method("none", faster=100.0, rate_of="vanilla"),
    "vanilla_random_pixels": Method("none", random_pixels=True, rate_of="vanilla"),
}


@dataclass(frozen=True)
class UntrainedNetwork(Row):
    """One row per method and replicate: the last hidden layer before training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("method", "replicate")

    method: str
    replicate: int
    parameters: int  # weights, biases, scales and shifts of the network
    matrix_rank: float  # singular values above sigma_max d eps; nan if not finite
    soft_rank: float  # rank_tau of the representation scaled to Tr M = d
    rank_bound: float  # r(H), Eq. (4); nan if H is zero or not finite
    gradient_alignment: float  # mean |cosine| of per-sample gradients of the last layer


@dataclass(frozen=True)
class TrialEpoch(Row):
    """One row per method, rate, selection replicate and epoch: what a rate is chosen by.

    Nan where a network has diverged.
    """

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = ("method", "replicate", "learning_rate", "epoch")

    method: str
    replicate: int
    learning_rate: float
    epoch: int
    steps: int  # of SGD so far
    train_loss: float  # nats; mean over the epoch's minibatches, each before its step
    train_accuracy: float  # share of images that get their class; mean over minibatches likewise
    test_loss: float  # at the end of the epoch, with running statistics
    test_accuracy: float  # share of the test images that get their class, likewise
    rank: float  # of the last hidden layer on `samples` training images, as in UntrainedNetwork
    rank_bound: float  # r(H), Eq. (4), of the same representation
    gradient_alignment: float  # mean |cosine| of per-sample gradients of the last layer


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row per method, replicate and epoch, at the rate chosen for the method."""

    table: ClassVar[str] = "training"

    selected_on: str  # the replicates that the rate was chosen on


class Task(NamedTuple):
    """One network to train. candidate: the index of the rate that is tried; None: it is judged."""

    method: str
    replicate: int
    candidate: int | None = None


def tasks(config: Config) -> list[Task]:
    """All networks in turn: every rate where there are several, then what is judged."""
    rates = range(len(config.learning_rates))
    selection = selection_range(config.replicates, config.selection_replicates)
    trials = [Task(name, r, k) for name in with_own_rate(config) for k in rates for r in selection]
    judged = [Task(name, r) for name in config.methods for r in range(config.replicates)]
    return (trials if len(rates) > 1 else []) + judged


def rate_source(name: str) -> str:
    """The method whose rate a method takes. Raises InputError for an unknown one."""
    return lookup("methods", name, METHODS).rate_of or name


def with_own_rate(config: Config) -> list[str]:
    """The methods that rates are chosen for."""
    return list(dict.fromkeys(rate_source(name) for name in config.methods))


def run(config: Config, context: Context) -> Iterator[UntrainedNetwork | TrialEpoch | Measured]:
    """Train each network in turn, and measure those that are judged before training, too."""
    networks, sources = tasks(config), with_own_rate(config)
    selection = selection_range(config.replicates, config.selection_replicates)
    pixels = sorted({METHODS[task.method].random_pixels for task in networks})
    data = {random: images(config, context, random) for random in pixels}
    restored = context.restored
    first = 0 if restored is None else int(restored["network"])
    # What rates are chosen by: the scores of each selection replicate, over epochs.
    shape = (len(sources), len(config.learning_rates), len(selection))
    sums = torch.zeros(shape, dtype=torch.float64)
    if restored is not None:
        sums.copy_(restored["selection"])
    size = {"architecture": config.architecture, "multiplier": config.multiplier}
    steps = len(data[pixels[0]].train) // config.batch_size * config.epochs
    with context.progress(len(networks) * steps, "training", first * steps) as bar:
        for index, (name, replicate, tried) in enumerate(networks[first:], start=first):
            bar.what = "training" if tried is None else "choosing rates"
            method, of_method = METHODS[name], sums[sources.index(rate_source(name))]
            choice = choose(config.learning_rates, of_method, selection)
            rate = choice.rate if tried is None else config.learning_rates[tried]
            rate *= method.faster
            trainer = start(config, name, data[method.random_pixels], replicate, rate)
            place = network_name(name, **size), replicate
            now = partial(traced, config, trainer)
            if restored is not None and index == first:
                trainer.restore(restored)
                bar.update(trainer.done)
            elif tried is None:
                parameters = sum(p.numel() for p in trainer.network.parameters())
                yield UntrainedNetwork(name, replicate, parameters, **measure(config, trainer))
                yield from context.hand_over(*place, 0, now)

            def after_step(
                loss: Tensor, index: int = index, trainer: ConvolutionalTrainer = trainer
            ) -> None:
                bar.update(1, loss=loss)
                own = {"network": torch.tensor(index), "selection": sums}
                context.checkpoint(lambda: own | trainer.state())

            for epoch, scores in trainer.until(config.epochs, after_step):
                measured = measure(config, trainer)
                row = TrialEpoch(
                    name, replicate, rate, epoch, trainer.done, **scores,
                    rank=measured["matrix_rank"], rank_bound=measured["rank_bound"],
                    gradient_alignment=measured["gradient_alignment"],
                )  # fmt: skip
                if tried is None:
                    yield TrainedEpoch(**vars(row), selected_on=choice.selected_on)
                    yield from context.hand_over(*place, epoch, now)
                else:
                    of_method[tried, selection.index(replicate)] += score(
                        torch.tensor(row.train_accuracy, dtype=torch.float64),
                        torch.tensor(row.train_loss),
                    )
                    yield row


def images(config: Config, context: Context, random_pixels: bool) -> Dataset:
    """The study's images on the device, each channel with mean zero and variance one.

    Raises InputError when they cannot be had, or when there are fewer than `samples`.
    """
    data = training_images(config, context)
    probed(config, data)  # refused now, not when they are measured
    if config.image_size is not None:
        data = data.resized(config.image_size)
    if random_pixels:
        data = data.with_random_pixels(generator(config.seed, 0, "random pixels"))
    return on_device(data.standardized(), context.device)


def new_network(config: Config, name: str, channels: int, classes: int) -> ConvolutionalClassifier:
    """A network of one method for images with these channels."""
    architecture = lookup("architecture", config.architecture, ARCHITECTURES)
    return architecture(channels, classes, METHODS[name].normalization, config.multiplier)


def torch_module(config: Config, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """A kept network as a module."""
    first = next(W for W in tensors.values() if W.ndim == 4)
    classes = len(tensors["classifier.weight"])
    module = new_network(config, network.partition("/")[0], first.shape[1], classes)
    module.load_state_dict(tensors)
    return module.eval()


def traced(config: Config, trainer: ConvolutionalTrainer) -> dict[str, Tensor]:
    """The tensors of a network, the images x, and H, what its last hidden layer makes of them."""
    images = probed(config, trainer.data)
    H, _ = last_layer(trainer.network, images)
    return {"x": images.pixels, **trainer.network.state_dict(), "H": H}


def start(
    config: Config, name: str, data: Dataset, replicate: int, rate: float
) -> ConvolutionalTrainer:
    """A network of one method and replicate before training, and what trains it."""
    network = new_network(config, name, data.train.pixels.shape[1], data.classes)
    stream = generator(config.seed, replicate, "initialisation")
    initialize(network, METHODS[name].init, stream)
    network = network.to(data.train.labels.device, memory_format=torch.channels_last)
    return ConvolutionalTrainer(network, data, rate, config.batch_size, config.seed, replicate)


@torch.no_grad()
def last_layer(
    network: ConvolutionalClassifier, on: Images
) -> tuple[Float[Tensor, "N d"], Float[Tensor, "N classes"]]:
    """Last hidden representations and the errors `softmax - one-hot` of the logits, by sample.

    Batch normalization uses the statistics of these samples.
    """
    network.set_mode("probe")
    H = network.hidden(on.pixels)
    logits = network.classifier(H)
    labels: Int[Tensor, "N classes"] = functional.one_hot(on.labels, logits.shape[1])
    return H, logits.softmax(1) - labels


def measure(config: Config, trainer: ConvolutionalTrainer) -> dict[str, float]:
    """The measures of the last hidden layer, by the name of their column in UntrainedNetwork."""
    H, errors = last_layer(trainer.network, probed(config, trainer.data))
    measured = ranks(H.mT[None], config.tau)
    values = {name: float(value[0]) for name, value in vars(measured).items()}
    return values | {"gradient_alignment": float(gradient_alignment(H, errors))}
