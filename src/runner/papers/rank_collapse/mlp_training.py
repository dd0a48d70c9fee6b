"""What the trained studies of paper B share: inputs, starting networks, and rows of training."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, prod

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.errors import InputError
from runner.core.streams import generator, generators
from runner.core.studies import Context
from runner.data import SHAPES
from runner.data.datasets import Dataset
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.rank_collapse.images import image_count, training_images
from runner.papers.rank_collapse.measures import last_hidden, ranks
from runner.papers.rank_collapse.mlp_config import TrainedMLPs
from runner.training.classification import Group, StackTrainer
from runner.training.epochs import EVALUATED_AT_ONCE


def load_images(config: TrainedMLPs, context: Context) -> Dataset:
    """The study's images, each channel with mean zero and variance one.

    Raises InputError when they cannot be had.
    """
    return training_images(config, context).standardized()


def probe_images(config: TrainedMLPs, data: Dataset) -> Float[Tensor, "N features"]:
    """The training images that ranks are measured on: the same for all networks, chosen at random.

    Raises InputError when there are fewer than `samples`.
    """
    images = data.train.flat()
    if config.samples > len(images):
        raise InputError(
            f"samples={config.samples}: {config.data} has {len(images)} training images"
        )
    stream = generator(config.seed, 0, "probe")
    return images[torch.randperm(len(images), generator=stream)[: config.samples]]


def starting_stack(
    config: TrainedMLPs,
    features: int,
    classes: int,
    normalization: str,
    *,
    init: str = "pytorch",
    activation: str = "relu",
    skip: float = inf,
    dtype: torch.dtype = torch.float32,
) -> MLP:
    """One network per replicate; those of one replicate start with the same draws, however
    normalized."""
    sizes = [features, *[config.width] * config.depth, classes]
    streams = generators(config.seed, config.replicates, "initialisation")
    weights, biases = draw(init, sizes, streams, dtype)
    return MLP(weights, biases, activation, normalization, skip)


def features_of(config: TrainedMLPs) -> int:
    """Numbers of one input."""
    return config.width if config.data == "gaussian" else prod(SHAPES[config.data][1:])


def parameter_bytes(config: TrainedMLPs, networks: int, itemsize: int) -> int:
    """Bytes of the weights of so many networks, and of five vectors in each layer."""
    d, L = config.width, config.depth
    return networks * itemsize * (features_of(config) * d + (L - 1) * d**2 + (L + 1) * 5 * d)


def measurement_bytes(config: TrainedMLPs, networks: int, itemsize: int) -> int:
    """Bytes at the peak of measuring the ranks of one layer, partly in float64."""
    d = config.width
    return networks * config.samples * (itemsize * (4 * d + features_of(config)) + 8 * 2 * d)


def training_bytes(config: TrainedMLPs, groups: dict[str, int], itemsize: int = 4) -> int:
    """Bytes at the peak of training stacks of networks on images.

    groups: for each normalization how many networks train with it. Every group's parameters stay,
    the activations of a step or a measurement are those of one group at a time.
    """
    d, features, most = config.width, features_of(config), max(groups.values())
    # As read, and standardised in two steps; bytes and float32 of all, before the first are taken.
    images = max(4 * 3 * image_count(config), (1 + 4) * SHAPES[config.data][0]) * features
    # With a copy, gradients, and a checkpoint.
    networks = 4 * parameter_bytes(config, sum(groups.values()), itemsize)
    tensors = {name: 1 if name == "none" else 2 for name in groups}  # for each layer
    activations = max(
        R * itemsize * config.batch_size * (config.depth * d * tensors[name] + features)
        for name, R in groups.items()
    )
    evaluation = most * itemsize * EVALUATED_AT_ONCE * (3 * d + features)
    measurement = measurement_bytes(config, most, itemsize)
    return images + networks + max(activations, evaluation, measurement)


@dataclass(frozen=True)
class Point:
    """What network r of a group is: the index of its variant, its rate and its replicate."""

    variant: int
    learning_rate: float
    replicate: int


def points(variants: int, config: TrainedMLPs) -> list[Point]:
    """All combinations, in the order of a group's networks."""
    return [
        Point(variant, rate, replicate)
        for variant in range(variants)
        for rate in config.learning_rates
        for replicate in range(config.replicates)
    ]


def group(network: MLP, config: TrainedMLPs) -> tuple[Group, list[Point]]:
    """Each network at each rate. network: variant after variant, one network per replicate each."""
    members = points(len(network) // config.replicates, config)
    chosen: Int[Tensor, " R"] = torch.tensor(
        [point.variant * config.replicates + point.replicate for point in members]
    )
    rates = torch.tensor([point.learning_rate for point in members])
    replicates = torch.tensor([point.replicate for point in members])
    return Group(network.select(chosen), rates, replicates), members


def train(
    networks: dict[str, MLP],
    config: TrainedMLPs,
    data: Dataset,
    context: Context,
) -> Iterator[tuple[str, Point, dict[str, float]]]:
    """Group, point and columns of `training.csv`, for each network and epoch.

    networks: by group, as `group` takes them.
    """
    grouped = {name: group(network, config) for name, network in networks.items()}
    trainer = StackTrainer(
        {name: each for name, (each, _) in grouped.items()},
        data,
        config.batch_size,
        config.epochs,
        config.seed,
        context,
    )
    probe = probe_images(config, data).to(context.device)
    for epoch, scores in trainer.run():
        for name, (_, members) in grouped.items():
            network = trainer.groups[name].network
            dtype = network.parameters["W1"].dtype
            with torch.no_grad():
                H = last_hidden(network, probe.to(dtype).expand(len(network), -1, -1))
            measured = ranks(H, config.tau)
            columns = vars(scores[name]) | {
                "rank": measured.matrix_rank,
                "rank_bound": measured.rank_bound,
            }
            values = {column: tensor.tolist() for column, tensor in columns.items()}
            for r, point in enumerate(members):
                yield name, point, {"epoch": epoch} | {c: v[r] for c, v in values.items()}
