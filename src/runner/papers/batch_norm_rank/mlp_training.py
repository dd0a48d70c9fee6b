"""What the trained studies of paper B share: inputs, starting networks, and rows of training."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import inf

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.core.studies import Context, Measured, Row, network_name
from runner.data.datasets import Dataset, Images
from runner.networks.activations import activation_of
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.images import training_images
from runner.papers.batch_norm_rank.measures import last_hidden, ranks
from runner.papers.batch_norm_rank.mlp_config import TrainedMLPs
from runner.training.classification import Group, StackTrainer, evaluate
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
    for W in weights if init == "gain" else ():
        W *= activation_of(activation).gain
    return MLP(weights, biases, activation, normalization, skip)


Member = tuple[float, int]
"""Learning rate and replicate of a network of a group."""


def group(network: MLP, rates: list[float], replicates: range) -> tuple[Group, list[Member]]:
    """Each network, one per replicate, at each rate: rate after rate."""
    members = list(product(rates, replicates))
    chosen = torch.arange(len(replicates)).repeat(len(rates))
    of_networks = torch.tensor(rates).repeat_interleave(len(replicates))
    indices = torch.tensor([replicate for _, replicate in members])
    return Group(network.select(chosen), of_networks, indices), members


JUDGED, SCORES = "stage/judged", "stage/scores/"
"""Names of what a checkpoint holds beside the state of the trainer."""


@dataclass
class Stage:
    """One training of all networks side by side: that which rates are chosen on, or the judged."""

    config: TrainedMLPs
    context: Context
    replicates: range
    scores: dict[str, Float[Tensor, "rates S"]]
    """By group, what its rate is chosen by: filled while it is being chosen."""
    choices: dict[str, Choice] | None = None
    """By group; None while they are being made."""

    @property
    def judged(self) -> bool:
        """Whether these are the replicates that are judged."""
        return self.choices is not None

    @property
    def begins(self) -> bool:
        """Whether the networks have not been trained yet: nothing is restored."""
        return self.context.restored is None

    def train(self, networks: dict[str, MLP], data: Dataset, row: Callable) -> Iterator[Row]:
        """The rows of each network and epoch: `row(group, **columns)`.

        networks: by group, one per replicate. What is judged is also tested and measured.
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
        for epoch, scores in trainer.run("training" if self.judged else "choosing rates"):
            for name, (_, members) in grouped.items():
                columns: dict[str, Tensor] = vars(scores[name])
                if self.judged:
                    network, test = trainer.groups[name].network, trainer.data.test
                    columns = columns | self._measured(network, test, probe)
                else:
                    of_epoch = score(scores[name].train_accuracy, scores[name].train_loss)
                    self.scores[name] += of_epoch.reshape(self.scores[name].shape)
                values = {column: tensor.tolist() for column, tensor in columns.items()}
                for r, (rate, replicate) in enumerate(members):
                    place = {"epoch": epoch, "replicate": replicate, "learning_rate": rate}
                    if self.choices is not None:
                        place["selected_on"] = self.choices[name].selected_on
                    yield row(name, **place, **{each: value[r] for each, value in values.items()})
                if self.judged:
                    yield from hand_over(self.context, name, network, probe, epoch)

    def _measured(
        self, network: MLP, test: Images, probe: Float[Tensor, "N features"]
    ) -> dict[str, Float[Tensor, " R"]]:
        """Test scores and ranks of the networks of a group, as columns of the table."""
        dtype = network.parameters["W1"].dtype
        test_loss, test_accuracy = evaluate(network, test)
        H = last_hidden(network, probe.to(dtype).expand(len(network), -1, -1))
        measured = ranks(H, self.config.tau)
        return {
            "test_loss": test_loss,
            "test_accuracy": test_accuracy,
            "rank": measured.matrix_rank,
            "rank_bound": measured.rank_bound,
        }

    def _rates(self, name: str) -> list[float]:
        """The rates at which a group is trained."""
        return self.config.learning_rates if self.choices is None else [self.choices[name].rate]

    def _checkpoint(self, make_state: Callable[[], dict[str, Tensor]]) -> None:
        """The state of the trainer, and what the choice is or will be made by."""
        own = {f"{SCORES}{name}": scores for name, scores in self.scores.items()}
        own[JUDGED] = torch.tensor(self.judged)
        self.context.checkpoint(lambda: make_state() | own)


def hand_over(
    context: Context, name: str, network: MLP, x: Tensor, epoch: int
) -> Iterator[Measured]:
    """Hand over a stack with one network per replicate; x: inputs of all, or of each."""
    d, _ = network.parameters["W1"].shape[1:]
    inputs = x.to(network.parameters["W1"].dtype).expand(len(network), -1, -1)
    for replicate in range(len(network)):
        traced = partial(network.traced, replicate, inputs[replicate])
        yield from context.hand_over(network_name(name, width=d), replicate, epoch, traced)


def stages(config: TrainedMLPs, groups: Iterable[str], context: Context) -> Iterator[Stage]:
    """The training that rates are chosen on, where there are several, and the judged one.

    Each is to be trained before the next is taken; the first is that which a checkpoint was made
    in. groups: their names; each has its own rate.
    """
    grid, restored = config.learning_rates, context.restored
    selection = selection_range(config.replicates, config.selection_replicates)
    scores = {n: torch.zeros(len(grid), len(selection), dtype=torch.float64) for n in groups}
    for name, each in scores.items():
        if restored is not None:
            each.copy_(restored[f"{SCORES}{name}"])
    judged = restored is not None and bool(restored[JUDGED])
    if len(grid) > 1 and not judged:
        yield Stage(config, context, selection, scores)
        context = replace(context, restored=None)
    choices = {name: choose(grid, of_group, selection) for name, of_group in scores.items()}
    yield Stage(config, context, range(config.replicates), scores, choices)
