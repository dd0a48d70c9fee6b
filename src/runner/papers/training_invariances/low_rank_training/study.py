"""Study `low_rank_training`: paper C's low rank in ordinary training.

Networks that end in three linear layers (the tail) learn images. All gains, learning rates, weight
decays and replicates are trained together. They are measured at epoch 0, and at epochs that double
up to the last one. `training.csv` has losses and accuracies. `layers.csv` has the singular values
of each layer of the tail: the k largest, and the sum of the squares of all others, the remainder.
The loss changes the k largest. The invariants keep the remainder near its initial value.
`spectrum.csv` has the largest singular values after training.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from math import nan
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from runner.core.studies import Context, Measured, network_name
from runner.data.batches import epoch_order
from runner.networks import own_calls
from runner.networks.precision import torch_dtype
from runner.networks.spectra import svd
from runner.papers.training_invariances import theory
from runner.papers.training_invariances.low_rank_training import networks
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.papers.training_invariances.low_rank_training.networks import Parameters, outputs, tail
from runner.papers.training_invariances.low_rank_training.problem import Problem, draw_problem
from runner.papers.training_invariances.low_rank_training.rows import (
    AT,
    LayerEpoch,
    NetworkEpoch,
    SingularValue,
)
from runner.papers.training_invariances.low_rank_training.training import (
    Decayed,
    hits,
    image_losses,
    losses_and_gradients,
    sharpness,
)
from runner.training.accuracies import accuracy
from runner.training.optimizers import MOMENTUM

DIVERGED = 2.0
"""Factor on the initial loss above which a network counts as diverged.

Networks that are not finite have diverged, too. A diverged network may recover, with other
invariants, or with all units inactive.
"""

SHOWN = 20
"""Largest number of singular values of each layer in `spectrum.csv`."""

OF_OPTIMIZER = "optimizer/"
"""The prefix of the names of the optimizer's tensors in a checkpoint."""

EVALUATED_AT_ONCE = 512
"""Number of test images in one pass."""


class Member(NamedTuple):
    """Parameters in which the networks of a run differ from each other."""

    replicate: int
    gain: float
    learning_rate: float
    weight_decay: float


def run(
    config: LowRankTraining, context: Context
) -> Iterator[NetworkEpoch | LayerEpoch | SingularValue | Measured]:
    """Train all networks, and measure them at epoch 0 and at epochs that double up to the last one.

    Yields the rows of all tables, and rows of the user's function `measure`.
    """
    dtype = torch_dtype(config.dtype)
    problem = draw_problem(config, context.load_data).to(context.device, dtype)
    start = starting_stack(config, tuple(problem.x.shape[2:]))
    parameters = {name: W.to(context.device, dtype) for name, W in start.items()}
    measure = Measure(config, problem, parameters)
    columns = [torch.tensor(column, dtype=dtype) for column in zip(*members(config), strict=True)]
    _, _, rates, decays = (column.to(context.device) for column in columns)
    optimizer = Decayed(config.optimizer, parameters, rates, decays)
    kept = {**parameters, "diverged": measure.diverged}

    def state(epoch: int) -> dict[str, Tensor]:
        """Return by name the tensors from which an interrupted training continues."""
        own = {OF_OPTIMIZER + name: tensor for name, tensor in optimizer.own.stored().items()}
        return kept | own | {"epoch": torch.tensor(epoch)}

    first = 0
    if (restored := context.restored) is not None:
        first = int(restored["epoch"]) + 1
        for name, tensor in kept.items():
            tensor.copy_(restored[name])
        own = [name for name in restored if name.startswith(OF_OPTIMIZER)]
        optimizer.own.restore({name.removeprefix(OF_OPTIMIZER): restored[name] for name in own})
    own_calls.at(config.replicates, first)
    steps = config.minibatches
    with context.progress(config.epochs * steps, "training", done=max(first - 1, 0) * steps) as bar:
        for epoch in range(first, config.epochs + 1):
            for x, y in minibatches(config, problem, epoch) if epoch else ():
                losses, gradients = losses_and_gradients(parameters, x, y, config.loss_function)
                measure.watch(losses)
                optimizer.step(gradients)
                bar.update(loss=losses)
            if epoch in records(config):
                yield from measure.rows(parameters, epoch)
                yield from hand_over(config, context, problem, parameters, epoch)
            context.checkpoint(partial(state, epoch))
            own_calls.at(config.replicates, epoch + 1)


def members(config: LowRankTraining) -> list[Member]:
    """Return replicate, gain, learning rate and weight decay of each network, in their order."""
    varied = config.gains, config.learning_rates, config.weight_decays
    return [Member(*values) for values in product(range(config.replicates), *varied)]


def hand_over(
    config: LowRankTraining, context: Context, problem: Problem, parameters: Parameters, epoch: int
) -> Iterator[Measured]:
    """Yield the numbers that the user's function `measure` returns for each network at an epoch.

    The function gets the images x of a network, its weights, and the inputs H of its linear layers.
    """

    def traced(s: int, x: Tensor) -> dict[str, Tensor]:
        alone = {name: W[s] for name, W in parameters.items()}
        front = [W[None] for W in alone.values()][: -networks.TAIL]
        return {"x": x, **alone, "H": networks.features(front, x[None])[0].mT}

    for s, member in enumerate(members(config)):
        varied = member._asdict()
        replicate = varied.pop("replicate")
        name = network_name(config.optimizer, width=config.width, **varied)
        now = partial(traced, s, problem.x[replicate])
        yield from context.hand_over(name, replicate, epoch, now)


def records(config: LowRankTraining) -> list[int]:
    """Return the epochs that are measured: 0, and the last epoch divided by 1, 2, 4, 8, ...

    If two learning rates have the ratio 2, their networks are therefore measured at equal times T.
    """
    epochs = [config.epochs]
    while epochs[0] > 1:
        epochs.insert(0, epochs[0] // 2)
    return [0, *epochs]


def starting_stack(config: LowRankTraining, image: tuple[int, ...]) -> Parameters:
    """Return the initial weights of all networks by layer, in float64 on the CPU.

    Networks of a replicate have the same random numbers, multiplied by their gain. image: channels,
    height and width of the inputs.
    """
    last = 1 if config.classes == 2 else config.classes
    layers = networks.shapes(config.architecture, config.width, config.channels, image, last)
    drawn = [
        networks.draw(layers, config.stream(r, "initialisation")) for r in range(config.replicates)
    ]
    return {
        f"W{number + 1}": torch.stack([gain * drawn[r][number] for r, gain, *_ in members(config)])
        for number in range(len(layers))
    }


def minibatches(
    config: LowRankTraining, problem: Problem, epoch: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the images and labels of each step of an epoch.

    The order of the images differs between replicates. With one minibatch, a step has all images.
    """
    if config.minibatches == 1:
        yield problem.x, problem.y
        return
    order = epoch_order(config.streams().generator, config.replicates, config.samples, epoch)
    replicate = torch.arange(config.replicates)[:, None]
    for chosen in order.tensor_split(config.minibatches, dim=1):
        yield problem.x[replicate, chosen], problem.y[replicate, chosen]


class Measure:
    """A measurement of all networks: their initial invariants and bounds, and which diverged.

    start: initial weights.
    """

    def __init__(self, config: LowRankTraining, problem: Problem, start: Parameters) -> None:
        self.config, self.problem, self.members = config, problem, members(config)
        self.kept = 1 if config.classes == 2 else config.classes - 1  # k
        self.invariants = invariants(tail(start))
        last = theory.last_remainder_bound(tail(start)[-1].double())
        self.bounds = theory.remainder_bounds(self.invariants, last, self.kept)
        self.start_loss, _ = self._loss_and_accuracy(start)
        self.diverged: Bool[Tensor, " S"] = torch.zeros_like(self.start_loss, dtype=torch.bool)

    def watch(self, losses: Float[Tensor, " S"]) -> None:
        """Mark the networks whose loss is not finite, or above DIVERGED times its initial value.

        losses: the current loss of each network.
        """
        self.diverged |= ~(losses <= DIVERGED * self.start_loss)

    def rows(
        self, parameters: Parameters, epoch: int
    ) -> Iterator[NetworkEpoch | LayerEpoch | SingularValue]:
        """Yield the rows of all tables after an epoch, for all networks.

        parameters: the weights after the epoch. The table `spectrum` has rows only after the last
        epoch.
        """
        loss, accuracy = self._loss_and_accuracy(parameters)
        self.watch(loss)
        x, y, columns = self.problem.x, self.problem.y, self._columns(epoch)
        scores = {
            "loss": loss,
            "accuracy": accuracy,
            "test_accuracy": self._test_accuracy(parameters),
            "sharpness": sharpness(parameters, x, y, self.config.loss_function),
        }
        for network, measured in zip(columns, _by_network(scores), strict=True):
            yield NetworkEpoch(**network, **measured)
        first = len(parameters) - networks.TAIL + 1
        decomposed = [svd(W.double()) for W in tail(parameters)]
        now = invariants(tail(parameters))
        exponents = [-2 * record["weight_decay"] * record["time"] for record in columns]
        fallen = torch.tensor(exponents, dtype=torch.float64, device=loss.device).exp()
        for number in range(networks.TAIL):
            of_layer = self._of_layer(decomposed, now, number, fallen)
            for network, measured in zip(columns, _by_network(of_layer), strict=True):
                yield LayerEpoch(**network, layer=first + number, **measured)
        if epoch < self.config.epochs:
            return
        for layer, (_, s, _) in enumerate(decomposed, start=first):
            for network, values in zip(columns, s[:, :SHOWN].tolist(), strict=True):
                for index, value in enumerate(values, start=1):
                    yield SingularValue(**network, layer=layer, index=index, singular_value=value)

    def _of_layer(
        self, decomposed: list, now: list[Tensor], number: int, fallen: Float[Tensor, " S"]
    ) -> dict[str, Float[Tensor, " S"]]:
        """Return the measured columns of the table `layers` for one layer.

        decomposed: singular value decompositions of all layers. now: their current invariants.
        number: the layer's index. fallen: exp(-2 lambda T) of each network.
        """
        u, s, _ = decomposed[number]
        squares = s.square()
        frobenius, rem = squares.sum(-1), squares[:, self.kept :].sum(-1)
        lower, upper = (fallen * bound for bound in self.bounds[number])
        aligned = drift = initial = torch.full_like(rem, nan)  # of the last layer
        if number < len(now):
            v, D = decomposed[number + 1][2], self.invariants[number]
            aligned = (u[..., :, 0] * v[..., 0, :]).sum(-1).abs()
            drift = (now[number] - fallen[:, None, None] * D).flatten(1).norm(dim=1)
            initial = D.flatten(1).norm(dim=1)
        return {
            "frobenius": frobenius,
            "ratio": 1 - rem / frobenius,
            "top": squares[:, 0],
            "remainder": rem,
            "lower": lower,
            "upper": upper,
            "alignment": aligned,
            "drift": drift,
            "initial_invariant": initial,
        }

    def _columns(self, epoch: int) -> list[dict]:
        """Return the columns of the class `Network` at an epoch, for each network."""
        shared = {name: getattr(self.config, name) for name in AT if hasattr(self.config, name)}
        pace = 1 - MOMENTUM if self.config.optimizer == "momentum" else 1.0
        steps = epoch * self.config.minibatches / pace
        records = []
        for member, diverged in zip(self.members, self.diverged.tolist(), strict=True):
            now = {"epoch": epoch, "time": steps * member.learning_rate, "diverged": diverged}
            records.append(shared | member._asdict() | now)
        return records

    @torch.no_grad()
    def _loss_and_accuracy(self, parameters: Parameters) -> tuple[Tensor, Tensor]:
        """Return the mean loss and accuracy of each network on all training images, in float64."""
        f = outputs(parameters, self.problem.x)
        losses = image_losses(f, self.problem.y, self.config.loss_function).double().mean(-1)
        return losses, accuracy(hits(f, self.problem.y).double().mean(-1), losses)

    @torch.no_grad()
    def _test_accuracy(self, parameters: Parameters) -> Float[Tensor, " S"]:
        """Return the fraction of correct answers on the test images, for each network."""
        right, R = torch.zeros_like(self.start_loss), len(self.problem.x)
        broken = torch.zeros_like(self.diverged)
        tests = self.problem.test_x, self.problem.test_y
        for parts in zip(*(tensor.split(EVALUATED_AT_ONCE) for tensor in tests), strict=True):
            x, y = (part.expand(R, *part.shape) for part in parts)
            f = outputs(parameters, x)
            right += hits(f, y).sum(-1)
            broken |= f.flatten(1).isnan().any(-1)
        return right.where(~broken, nan) / len(tests[0])


def _by_network(columns: dict[str, Float[Tensor, " S"]]) -> list[dict[str, float]]:
    """Return the numbers of each network, by column."""
    lists = [column.tolist() for column in columns.values()]
    return [dict(zip(columns, numbers, strict=True)) for numbers in zip(*lists, strict=True)]


def invariants(weights: list[Float[Tensor, "S _ _"]]) -> list[Float[Tensor, "S _ _"]]:
    """Return the matrices D_l = W_{l+1}^T W_{l+1} - W_l W_l^T of adjacent layers, in float64.

    weights: the weights of consecutive linear layers. There is a matrix for each layer except the
    last.
    """
    exact = [W.double() for W in weights]
    return [theory.matrix_invariant(U, V) for U, V in zip(exact[:-1], exact[1:], strict=True)]
