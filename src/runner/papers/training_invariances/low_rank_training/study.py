"""Study `low_rank_training`: what of paper C's low rank survives in training as people do it.

Networks with a tail of linear layers learn images, all gains, rates, weight decays and replicates
in one stack. At epochs that double, `training.csv` says how they learn, and `layers.csv` what
becomes of the singular values of each layer of the tail: the k largest, which the loss moves, and
the remainder, which the invariants hold where it started. `spectrum.csv` has the largest at the
end.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import nan
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from runner.core.streams import generator
from runner.core.studies import Context, Measured, Row, network_name
from runner.data.batches import epoch_order
from runner.networks.precision import torch_dtype
from runner.networks.spectra import svd
from runner.papers.training_invariances import theory
from runner.papers.training_invariances.low_rank_training import networks
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.papers.training_invariances.low_rank_training.networks import Parameters, outputs, tail
from runner.papers.training_invariances.low_rank_training.problem import Problem, draw_problem
from runner.papers.training_invariances.low_rank_training.training import (
    WAYS,
    Decayed,
    losses_and_gradients,
    losses_and_hits,
    sharpness,
)

DIVERGED = 2.0
"""A network whose loss was above so many times its start has diverged, as one not finite. It may
come back, with other invariants, or with all units off."""

SHOWN = 20
"""Singular values of each layer in `spectrum.csv`, at most."""

EVALUATED_AT_ONCE = 512
"""Test images in one pass."""

NETWORK = (
    "data",
    "classes",
    "architecture",
    "optimizer",
    "loss_function",
    "gain",
    "width",
    "learning_rate",
    "weight_decay",
    "replicate",
)


@dataclass(frozen=True)
class Network:
    """The columns that name a network, and when it was measured."""

    data: str
    classes: int  # K
    architecture: str
    optimizer: str
    loss_function: str
    gain: float
    width: int  # w
    learning_rate: float
    weight_decay: float  # lambda
    replicate: int
    epoch: int  # from 0
    time: float  # T: sum of the rates, with momentum over 1 - momentum
    diverged: bool  # so far: the loss at some step not finite, or above DIVERGED times its start


@dataclass(frozen=True)
class NetworkEpoch(Network, Row):
    """One row per network and epoch measured."""

    table: ClassVar[str] = "training"
    keys: ClassVar[tuple[str, ...]] = (*NETWORK, "epoch")

    loss: float  # of all training images, without weight decay
    accuracy: float  # on them
    test_accuracy: float  # share of the test images that get their class
    sharpness: float  # largest eigenvalue of the Hessian of the loss, by a Lanczos iteration


@dataclass(frozen=True)
class LayerEpoch(Network, Row):
    """One row per network, epoch measured, and layer of the linear tail."""

    table: ClassVar[str] = "layers"
    keys: ClassVar[tuple[str, ...]] = (*NETWORK, "epoch", "layer")

    layer: int  # l, from 1; the tail is the last three
    frobenius: float  # ||W_l||_F^2
    ratio: float  # share of the k largest singular values in it; k = 1 for K = 2, else K - 1
    top: float  # the largest singular value, squared
    remainder: float  # rem_l: of the singular values beyond k
    lower: float  # least remainder that the invariants admit, times exp(-2 lambda T)
    upper: float  # largest, likewise
    alignment: float  # |<v_{l+1}, u_l>|; nan for the last layer
    drift: float  # ||D_l - exp(-2 lambda T) D_l(0)||_F; nan for the last layer
    initial_invariant: float  # ||D_l(0)||_F; nan for the last layer


@dataclass(frozen=True)
class SingularValue(Network, Row):
    """One row per network, layer of the tail, and singular value, at the end."""

    table: ClassVar[str] = "spectrum"
    keys: ClassVar[tuple[str, ...]] = (*NETWORK, "epoch", "layer", "index")

    layer: int  # of the tail, counted from the input, from 1
    index: int  # from 1, the largest
    singular_value: float  # the index-th largest of W_l


Member = tuple[int, float, float, float]
"""Replicate, gain, rate and weight decay of a network."""


def run(
    config: LowRankTraining, context: Context
) -> Iterator[NetworkEpoch | LayerEpoch | SingularValue | Measured]:
    """Train the stack, measuring it at epochs that double."""
    dtype = torch_dtype(config.dtype)
    problem = draw_problem(config, context.load_data).to(context.device, dtype)
    start = starting_stack(config, tuple(problem.x.shape[2:]))
    parameters = {name: W.to(context.device, dtype) for name, W in start.items()}
    measure = Measure(config, problem, parameters)
    columns = [torch.tensor(each, dtype=dtype) for each in zip(*members(config), strict=True)]
    _, _, rates, decays = (each.to(context.device) for each in columns)
    optimizer = Decayed(config.optimizer, parameters, rates, decays)
    kept = {**parameters, **{f"optimizer/{n}": each for n, each in optimizer.own.state.items()}}
    kept["diverged"] = measure.diverged
    first = 0
    if context.restored is not None:
        first = int(context.restored["epoch"]) + 1
        for name, tensor in kept.items():
            tensor.copy_(context.restored[name])
    steps = config.minibatches
    with context.progress(config.epochs * steps, "training", done=max(first - 1, 0) * steps) as bar:
        for epoch in range(first, config.epochs + 1):
            for chosen in minibatches(config, epoch, context.device) if epoch else ():
                x, y = batch(problem, chosen)
                losses, found = losses_and_gradients(parameters, x, y, config.loss_function)
                measure.watch(losses)
                optimizer.step(found)
                bar.update(loss=losses)
            if epoch in records(config):
                yield from measure.rows(parameters, epoch)
                yield from hand_over(config, context, problem, parameters, epoch)
            position = torch.tensor(epoch)
            context.checkpoint(lambda at=position: {**kept, "epoch": at})


def members(config: LowRankTraining) -> list[Member]:
    """The networks of the stack, in its order."""
    return list(
        product(range(config.replicates), config.gains, config.learning_rates, config.weight_decays)
    )


def hand_over(
    config: LowRankTraining, context: Context, problem: Problem, parameters: Parameters, epoch: int
) -> Iterator[Measured]:
    """Hand over each network, its images x, and H, what its linear tail reads of them."""

    def traced(s: int, x: Tensor) -> dict[str, Tensor]:
        alone = {name: W[s] for name, W in parameters.items()}
        front = [W[None] for W in alone.values()][: -networks.TAIL]
        return {"x": x, **alone, "H": networks.features(front, x[None])[0].mT}

    for s, (replicate, gain, rate, decay) in enumerate(members(config)):
        varied = {"gain": gain, "learning_rate": rate, "weight_decay": decay}
        name = network_name(config.optimizer, width=config.width, **varied)
        now = partial(traced, s, problem.x[replicate])
        yield from context.hand_over(name, replicate, epoch, now)


def records(config: LowRankTraining) -> list[int]:
    """The epochs that are measured: 0, and all of them halved again and again.

    Networks whose rates are in the ratio 2 are so measured at the same time T.
    """
    found = [config.epochs]
    while found[0] > 1:
        found.insert(0, found[0] // 2)
    return [0, *found]


def layer_shapes(config: LowRankTraining, image: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The shapes of the weights of each layer. image: channels, height and width."""
    last = 1 if config.classes == 2 else config.classes
    return networks.shapes(config.architecture, config.width, config.channels, image, last)


def starting_stack(config: LowRankTraining, image: tuple[int, ...]) -> Parameters:
    """In float64 on the CPU; the networks of a replicate start with the same draws, by gain.

    image: channels, height and width of what they read.
    """
    layers = layer_shapes(config, image)
    drawn = [
        networks.draw(layers, generator(config.seed, r, "initialisation"))
        for r in range(config.replicates)
    ]
    return {
        f"W{number + 1}": torch.stack([gain * drawn[r][number] for r, gain, *_ in members(config)])
        for number in range(len(layers))
    }


def minibatches(
    config: LowRankTraining, epoch: int, device: torch.device
) -> Sequence[Int[Tensor, "R B"] | None]:
    """The images of each step of an epoch, other ones in each replicate; None: all of them."""
    if config.minibatches == 1:
        return [None]
    order = epoch_order(config.seed, config.replicates, config.samples, epoch).to(device)
    return order.tensor_split(config.minibatches, dim=1)


def batch(problem: Problem, chosen: Int[Tensor, "R B"] | None) -> tuple[Tensor, Tensor]:
    """These training images and their labels."""
    if chosen is None:
        return problem.x, problem.y
    replicate = torch.arange(len(chosen), device=chosen.device)[:, None]
    return problem.x[replicate, chosen], problem.y[replicate, chosen]


class Measure:
    """Makes rows of a stack; knows where it started."""

    def __init__(self, config: LowRankTraining, problem: Problem, start: Parameters) -> None:
        self.config, self.problem, self.members = config, problem, members(config)
        self.kept = 1 if config.classes == 2 else config.classes - 1  # k
        self.invariants = invariants(tail(start))
        last = theory.last_remainder_bound(tail(start)[-1].double())
        self.bounds = theory.remainder_bounds(self.invariants, last, self.kept)
        self.start_loss, _ = self._loss_and_accuracy(start)
        self.diverged: Bool[Tensor, " S"] = torch.zeros_like(self.start_loss, dtype=torch.bool)

    def watch(self, losses: Float[Tensor, " S"]) -> None:
        """Mark the networks that have diverged by these losses."""
        self.diverged |= ~(losses <= DIVERGED * self.start_loss)

    def rows(
        self, parameters: Parameters, epoch: int
    ) -> Iterator[NetworkEpoch | LayerEpoch | SingularValue]:
        """What there is to say of all networks after an epoch."""
        loss, accuracy = self._loss_and_accuracy(parameters)
        self.watch(loss)
        columns = self._columns(epoch)
        scores = {
            "loss": loss,
            "accuracy": accuracy,
            "test_accuracy": self._test_accuracy(parameters),
            "sharpness": self._sharpness(parameters),
        }
        for of_network, measured in zip(columns, _by_network(scores), strict=True):
            yield NetworkEpoch(**of_network, **measured)
        first = len(parameters) - networks.TAIL + 1
        decomposed = [svd(W.double()) for W in tail(parameters)]
        now = invariants(tail(parameters))
        for number, (_, s, _) in enumerate(decomposed):
            of_layer = self._remainder(s, number, columns)
            if number < len(now):
                of_layer |= self._junction(decomposed, now, number, columns)
            for of_network, measured in zip(columns, _by_network(of_layer), strict=True):
                yield LayerEpoch(**of_network, layer=first + number, **{**_LAST, **measured})
        if epoch == self.config.epochs:
            for number, (_, s, _) in enumerate(decomposed):
                for of_network, values in zip(columns, s[:, :SHOWN].tolist(), strict=True):
                    for index, value in enumerate(values, start=1):
                        place = {**of_network, "layer": first + number, "index": index}
                        yield SingularValue(**place, singular_value=value)

    def _remainder(
        self, s: Float[Tensor, "S r"], number: int, columns: list[dict]
    ) -> dict[str, Float[Tensor, " S"]]:
        """Columns of `LayerEpoch` from the singular values of a layer."""
        squares = s.square()
        frobenius, rem = squares.sum(-1), squares[:, self.kept :].sum(-1)
        lower, upper = (_fallen(columns, s) * bound for bound in self.bounds[number])
        return {
            "frobenius": frobenius,
            "ratio": 1 - rem / frobenius,
            "top": squares[:, 0],
            "remainder": rem,
            "lower": lower,
            "upper": upper,
        }

    def _junction(
        self, decomposed: list, now: list[Tensor], number: int, columns: list[dict]
    ) -> dict[str, Float[Tensor, " S"]]:
        """Columns of `LayerEpoch` from a layer and the next."""
        u, v = decomposed[number][0][..., :, 0], decomposed[number + 1][2][..., 0, :]
        D = self.invariants[number]
        moved = now[number] - _fallen(columns, D)[:, None, None] * D
        return {
            "alignment": (u * v).sum(-1).abs(),
            "drift": moved.flatten(1).norm(dim=1),
            "initial_invariant": D.flatten(1).norm(dim=1),
        }

    def _columns(self, epoch: int) -> list[dict]:
        """The columns of `Network` for each network."""
        shared = {
            name: getattr(self.config, name) for name in NETWORK if hasattr(self.config, name)
        }
        steps = epoch * self.config.minibatches / WAYS[self.config.optimizer].pace
        return [
            {
                **shared,
                "replicate": replicate,
                "gain": gain,
                "learning_rate": rate,
                "weight_decay": decay,
                "epoch": epoch,
                "time": steps * rate,
                "diverged": diverged,
            }
            for (replicate, gain, rate, decay), diverged in zip(
                self.members, self.diverged.tolist(), strict=True
            )
        ]

    @torch.no_grad()
    def _loss_and_accuracy(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        """On all training images, in float64, of each network."""
        f = outputs(parameters, self.problem.x)
        losses, hits = losses_and_hits(f, self.problem.y, self.config.loss_function)
        return losses.double().mean(-1), hits.double().mean(-1)

    @torch.no_grad()
    def _test_accuracy(self, parameters: Parameters) -> Float[Tensor, " S"]:
        images, labels, R = self.problem.test_x, self.problem.test_y, len(self.problem.x)
        right = torch.zeros_like(self.start_loss)
        for start in range(0, len(images), EVALUATED_AT_ONCE):
            chosen = slice(start, start + EVALUATED_AT_ONCE)
            x, y = (part[chosen].expand(R, *part[chosen].shape) for part in (images, labels))
            _, hits = losses_and_hits(outputs(parameters, x), y, self.config.loss_function)
            right += hits.sum(-1)
        return right / len(images)

    def _sharpness(self, parameters: Parameters) -> Float[Tensor, " S"]:
        return sharpness(parameters, self.problem.x, self.problem.y, self.config.loss_function)


_LAST = {"alignment": nan, "drift": nan, "initial_invariant": nan}
"""Of the last layer."""


def _by_network(columns: dict[str, Float[Tensor, " S"]]) -> list[dict[str, float]]:
    """The numbers of each network, by column."""
    lists = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, numbers, strict=True)) for numbers in zip(*lists, strict=True)]


def _fallen(columns: list[dict], like: Tensor) -> Float[Tensor, " S"]:
    """exp(-2 lambda T) of each network."""
    exponents = [-2 * each["weight_decay"] * each["time"] for each in columns]
    return torch.tensor(exponents, dtype=like.dtype, device=like.device).exp()


def invariants(weights: list[Float[Tensor, "S _ _"]]) -> list[Float[Tensor, "S _ _"]]:
    """D_l of the linear layers but the last, in float64."""
    exact = [W.double() for W in weights]
    return [theory.matrix_invariant(U, V) for U, V in zip(exact[:-1], exact[1:], strict=True)]
