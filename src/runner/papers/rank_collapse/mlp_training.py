"""What the trained studies of paper B share: inputs, starting networks, and rows of training."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.errors import InputError
from runner.core.streams import generator
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
from runner.training.selection import Choice, choose, score, selection_range


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
    replicates: range,
    *,
    init: str = "pytorch",
    activation: str = "relu",
    skip: float = inf,
    dtype: torch.dtype = torch.float32,
) -> MLP:
    """One network per replicate; those of one replicate start with the same draws, however
    normalized."""
    sizes = [features, *[config.width] * config.depth, classes]
    streams = [generator(config.seed, replicate, "initialisation") for replicate in replicates]
    weights, biases = draw(init, sizes, streams, dtype)
    return MLP(weights, biases, activation, normalization, skip)


def features_of(config: TrainedMLPs) -> int:
    """Numbers of one input."""
    return config.width if config.data == "gaussian" else prod(SHAPES[config.data][1:])


def parameter_bytes(config: TrainedMLPs, networks: int, itemsize: int) -> int:
    """Bytes of the weights of so many networks, and of five vectors in each layer."""
    d, L = config.width, config.depth
    return networks * itemsize * (features_of(config) * d + (L - 1) * d**2 + (L + 1) * 5 * d)


def measurement_bytes(config: TrainedMLPs, networks: int, itemsize: int, features: int) -> int:
    """Bytes at the peak of measuring the ranks of one layer with so many features.

    The representations of float32, beside the layer's before, are also there in float64, and
    squared; those of float64 in copies for the SVD.
    """
    N, k = config.samples, min(config.samples, features)
    if itemsize == 8:
        return networks * 8 * 4 * N * features
    return networks * (N * features * (2 * 4 + 8 + 8) + 8 * 2 * k**2)


def training_bytes(config: TrainedMLPs, groups: dict[str, int], itemsize: int = 4) -> int:
    """Bytes at the peak of training stacks of networks on images.

    groups: for each normalization how many networks train with it. Every group's parameters stay,
    as they started and in training; gradients, and the activations of a step or of an evaluation,
    are those of one group at a time, beside what the allocator keeps of a measurement.
    """
    L, d, features, B = config.depth, config.width, features_of(config), config.batch_size
    count, most = image_count(config), max(groups.values())
    images = 4 * count * features
    # As read, and standardised in two steps; bytes and float32 of all, before the first are taken.
    reading = max(3 * images, (1 + 4) * SHAPES[config.data][0] * features)
    networks = 3 * parameter_bytes(config, sum(groups.values()), itemsize)
    gradients = parameter_bytes(config, most, itemsize)
    tensors = {name: 1 if name == "none" else 2 for name in groups}  # for each layer
    activations = max(
        R * itemsize * B * (L * d * tensors[name] + 3 * d + features) for name, R in groups.items()
    )
    at_once = min(EVALUATED_AT_ONCE, count // 6)  # at most every sixth image is for tests
    evaluation = most * itemsize * at_once * 3 * d
    measurement = measurement_bytes(config, most, itemsize, d)
    working = max(gradients + activations, evaluation) + measurement
    return max(reading, images + networks + working)


def networks_at_once(config: TrainedMLPs) -> int:
    """How many networks of one variant train side by side, at most."""
    rates = len(config.learning_rates)
    return max(config.replicates, config.selection_replicates * rates if rates > 1 else 0)


@dataclass(frozen=True)
class Point:
    """What network r of a group is: the index of its variant, its rate and its replicate."""

    variant: int
    learning_rate: float
    replicate: int


def points(rates: list[list[float]], replicates: range) -> list[Point]:
    """All combinations, in the order of a group's networks. rates: of each variant."""
    return [
        Point(variant, rate, replicate)
        for variant, of_variant in enumerate(rates)
        for rate in of_variant
        for replicate in replicates
    ]


def group(network: MLP, rates: list[list[float]], replicates: range) -> tuple[Group, list[Point]]:
    """Each network at each rate of its variant.

    network: variant after variant, one network per replicate each.
    """
    members = points(rates, replicates)
    chosen: Int[Tensor, " R"] = torch.tensor(
        [p.variant * len(replicates) + replicates.index(p.replicate) for p in members]
    )
    of_networks = torch.tensor([point.learning_rate for point in members])
    indices = torch.tensor([point.replicate for point in members])
    return Group(network.select(chosen), of_networks, indices), members


JUDGED, SCORES = "stage/judged", "stage/scores/"
"""Names of what a checkpoint holds beside the state of the trainer."""


@dataclass
class Stage:
    """One training of all networks side by side: that which rates are chosen on, or the judged."""

    config: TrainedMLPs
    context: Context
    replicates: range
    scores: dict[str, Float[Tensor, "_ rates S"]]
    """By group, what rates are chosen by, of each variant: filled while they are being chosen."""
    choices: dict[str, list[Choice]] | None = None
    """By group, that of each variant; None while they are being made."""

    @property
    def judged(self) -> bool:
        """Whether these are the replicates that are judged."""
        return self.choices is not None

    @property
    def begins(self) -> bool:
        """Whether the networks have not been trained yet: nothing is restored."""
        return self.context.restored is None

    def train(
        self, networks: dict[str, MLP], data: Dataset
    ) -> Iterator[tuple[str, int, dict[str, Any]]]:
        """Group, index of the variant, and columns of the table, for each network and epoch.

        networks: by group, as `group` takes them.
        """
        config, replicates = self.config, self.replicates
        grouped = {n: group(each, self._rates(n), replicates) for n, each in networks.items()}
        trainer = StackTrainer(
            {name: each for name, (each, _) in grouped.items()},
            data,
            config.batch_size,
            config.epochs,
            config.seed,
            replace(self.context, checkpoint=self._checkpoint),
        )
        probe = probe_images(config, data).to(self.context.device)
        for epoch, scores in trainer.run():
            for name, (_, members) in grouped.items():
                network = trainer.groups[name].network
                dtype = network.parameters["W1"].dtype
                with torch.no_grad():
                    H = last_hidden(network, probe.to(dtype).expand(len(network), -1, -1))
                measured = ranks(H, config.tau)
                if not self.judged:
                    of_epoch = score(scores[name].train_accuracy, scores[name].train_loss)
                    self.scores[name] += of_epoch.reshape(self.scores[name].shape)
                columns = vars(scores[name]) | {
                    "rank": measured.matrix_rank,
                    "rank_bound": measured.rank_bound,
                }
                values = {column: tensor.tolist() for column, tensor in columns.items()}
                for r, point in enumerate(members):
                    place = {"epoch": epoch, **self._place(name, point)}
                    yield name, point.variant, place | {c: v[r] for c, v in values.items()}

    def _rates(self, name: str) -> list[list[float]]:
        """The rates at which each variant of a group is trained."""
        if self.choices is None:
            return [self.config.learning_rates] * len(self.scores[name])
        return [[choice.rate] for choice in self.choices[name]]

    def _place(self, name: str, point: Point) -> dict[str, Any]:
        """The columns that say which network it is and, where it is judged, why at this rate."""
        place = {"replicate": point.replicate, "learning_rate": point.learning_rate}
        if self.choices is None:
            return place
        return place | {"selected_on": self.choices[name][point.variant].selected_on}

    def _checkpoint(self, make_state: Callable[[], dict[str, Tensor]]) -> None:
        """The state of the trainer, and what the choice is or will be made by."""
        own = {f"{SCORES}{name}": scores for name, scores in self.scores.items()}
        own[JUDGED] = torch.tensor(self.judged)
        self.context.checkpoint(lambda: make_state() | own)


def stages(config: TrainedMLPs, variants: dict[str, int], context: Context) -> Iterator[Stage]:
    """The training that rates are chosen on, where there are several, and the judged one.

    Each is to be trained before the next is taken; the first is that which a checkpoint was made
    in. variants: how many each group has.
    """
    grid, restored = config.learning_rates, context.restored
    selection = selection_range(config.replicates, config.selection_replicates)
    scores = {
        name: torch.zeros(count, len(grid), len(selection), dtype=torch.float64)
        for name, count in variants.items()
    }
    for name, each in scores.items():
        if restored is not None:
            each.copy_(restored[f"{SCORES}{name}"])
    judged = restored is not None and bool(restored[JUDGED])
    if len(grid) > 1 and not judged:
        yield Stage(config, context, selection, scores)
        context = replace(context, restored=None)
    choices = {n: [choose(grid, of, selection) for of in each] for n, each in scores.items()}
    yield Stage(config, context, range(config.replicates), scores, choices)
