"""Study `norm_active`: with active hidden ReLUs, γ of a frozen network trains a dense network.

The target is g(x) = sum relu(W* x) of paper A, Appendix E, W* (d, d), and inputs are standard
Gaussian. W1 (m, d) and W2 (d, m) are frozen. If every hidden ReLU is active, and the last shifts
cancel the hidden shifts (Lemma 7), the network of the paper is f(x) = sum relu(W x) with W = W2
diag(gamma) W1. As a vector, W = K gamma with the Khatri-Rao matrix K (Lemma 1). The arms are:

- `dense`: W is trained from random weights with variance 1/d;
- `rotated_weights`: p is trained, W = Q p, with a random rotation Q: condition number 1. It begins
  at W = W2 W1, as gamma = 1 does;
- `scales`: gamma is trained, from 1;
- `rotated_scales`: p is trained, gamma = Q p: the condition number of K, other axes;
- `singular_scales`: p is trained, gamma = V p, with the right singular vectors V of K: the
  condition number of K, and the axes in which K is diagonal;
- `from_active` and `from_zero`: the whole frozen network with hidden ReLUs. gamma and all shifts
  are trained. The hidden shifts begin at `shift`, so that all ReLUs are active, or at 0.

All arms of a replicate share target, frozen weights and samples. First, `selection_replicates`
networks are trained at all learning rates, and choose one: it finds the target in most networks,
and among equals has the smallest median error. Then the judged networks are trained at this rate.
`from_zero` is also trained at the rates of `from_active`.
"""

from collections.abc import Callable, Iterator
from itertools import product
from math import inf, isnan, nan, sqrt
from statistics import median
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.studies import Context
from runner.data.gaussian import GaussianStream
from runner.papers.norm_tuning.norm_active.config import (
    EXACT,
    OF_WEIGHTS,
    WITH_HIDDEN,
    NormActive,
)
from runner.papers.norm_tuning.norm_active.networks import Frozen, Linear, Trained
from runner.papers.norm_tuning.norm_active.rows import Imitation
from runner.papers.norm_tuning.theorem_1 import khatri_rao
from runner.papers.norm_tuning.theory import random_matrix
from runner.training.optimizers import optimizer_of
from runner.training.schedules import SCHEDULES

CHUNK = 1000
"""Number of samples per replicate that are measured at once."""

Rates = tuple[float, float]
"""Learning rates of gamma or the weights, and of the shifts."""


class Problem(NamedTuple):
    """Target and frozen weights of R replicates, in float64, and the indices of the replicates."""

    replicates: range
    target: Float[Tensor, "R d d"]
    dense: Float[Tensor, "R d d"]
    W1: Float[Tensor, "R m d"]
    W2: Float[Tensor, "R d m"]


class Arm(NamedTuple):
    """Networks of an arm, the rates at which each replicate is trained, and who chose them."""

    name: str
    rates: list[Rates]
    chosen_by: list[str]


def run(config: NormActive, context: Context) -> Iterator[Imitation]:
    """Train networks that choose the learning rates, then the judged ones; yield their rows."""
    rates, shifts = config.learning_rates, config.shift_rates
    hidden = config.arms[0] in WITH_HIDDEN
    tried = [*product(rates, shifts if hidden else shifts[:1])]
    chosen = dict.fromkeys(config.arms, tried[0])
    if len(tried) > 1:
        own = range(config.replicates, config.replicates + config.selection_replicates)
        arms = [Arm(name, tried, [""] * len(tried)) for name in config.arms]
        rows = [*trained(config, draw(config, own, context), arms, context)]
        yield from rows
        chosen = {name: best([row for row in rows if row.arm == name]) for name in config.arms}
    judged = []
    for name in config.arms:
        both = name == "from_zero" and "from_active" in config.arms
        by = [name, "from_active"] if both else [name]
        if hidden:
            judged.append(Arm(name, [chosen[other] for other in by], by))
        else:
            judged.append(Arm(name, [(chosen[name][0], b) for b in shifts], by * len(shifts)))
    yield from trained(config, draw(config, range(config.replicates), context), judged, context)


def best(rows: list[Imitation]) -> Rates:
    """Return the rates with most exact networks; among equals those with the least median error."""
    errors: dict[Rates, list[float]] = {}
    for row in rows:
        error = inf if isnan(row.relative_mse) else row.relative_mse
        errors.setdefault((row.learning_rate, row.shift_rate), []).append(error)
    return min(errors, key=lambda rates: (-sum(error < EXACT for error in errors[rates]),
                                          median(errors[rates])))  # fmt: skip


def draw(config: NormActive, replicates: range, context: Context) -> Problem:
    """Draw target and frozen weights of some replicates, as study `bn_only` does.

    Entries of the target, of the dense network's initial weights and of W1 are from N(0, 1/d),
    those of W2 from N(0, 2/m).
    """
    d, m = config.target_width, config.m

    def drawn(purpose: str, rows: int, columns: int, variance: float) -> Tensor:
        streams = (config.stream(replicate, purpose) for replicate in replicates)
        drawn = torch.stack([random_matrix(rows, columns, stream) for stream in streams])
        return (drawn * sqrt(variance)).to(context.device)

    square = (d, d, 1 / d)
    return Problem(
        replicates,
        drawn("target", *square),
        drawn("dense", *square),
        drawn("W1", m, d, 1 / d),
        drawn("W2", d, m, 2 / m),
    )


def rotations(config: NormActive, problem: Problem, n: int) -> Float[Tensor, "R n n"]:
    """Return a random rotation of n dimensions for each replicate."""
    streams = (config.stream(replicate, "rotation") for replicate in problem.replicates)
    Q, R = torch.linalg.qr(torch.stack([random_matrix(n, n, stream) for stream in streams]))
    return (Q * R.diagonal(dim1=1, dim2=2).sign()[:, None]).to(problem.target)


Linearly = tuple[Float[Tensor, "R n"], Float[Tensor, "R n dd"] | None]
"""Initial parameters, and the weights W that belong to each of them; None: they are W."""


def of_scales(config: NormActive, problem: Problem) -> Linearly:
    """Return gamma = 1, and the matrix K, transposed."""
    axes = khatri_rao(problem.W2, problem.W1).mT
    return torch.ones_like(axes[..., 0]), axes


def of_weights(config: NormActive, problem: Problem) -> Linearly:
    """Return the weights W2 W1, which gamma = 1 gives, and the identity."""
    start = (problem.W2 @ problem.W1).flatten(1)
    return start, torch.eye(start.shape[1]).to(start).expand(len(start), -1, -1)


def along(Q: Float[Tensor, "R n n"], of: Linearly) -> Linearly:
    """Return the same for p, where Q p are the given parameters. Q: orthogonal matrices."""
    start, axes = of
    assert axes is not None
    return (start[:, None] @ Q)[:, 0], Q.mT @ axes


def rotated(config: NormActive, problem: Problem, of: Linearly) -> Linearly:
    """Return the same in random axes."""
    return along(rotations(config, problem, of[0].shape[1]), of)


def in_singular_axes(config: NormActive, problem: Problem) -> Linearly:
    """Return the same as `of_scales` in the axes of the right singular vectors of K."""
    start, axes = of_scales(config, problem)
    assert axes is not None
    return along(torch.linalg.svd(axes.mT).Vh.mT, (start, axes))


LINEAR: dict[str, Callable[[NormActive, Problem], Linearly]] = {
    "dense": lambda _, problem: (problem.dense.flatten(1), None),
    "rotated_weights": lambda *of: rotated(*of, of_weights(*of)),
    "scales": of_scales,
    "rotated_scales": lambda *of: rotated(*of, of_scales(*of)),
    "singular_scales": in_singular_axes,
}
"""Functions to initial parameters, by arm."""


def begin(config: NormActive, problem: Problem, arm: str, K: int) -> tuple[Trained, Tensor]:
    """Return the networks of an arm before training, K of each replicate, and condition numbers.

    The condition number is that of the linear map from the trained parameters to the weights W; nan
    if hidden ReLUs are in between. Raises InputError for an unknown arm.
    """
    if arm in WITH_HIDDEN:
        shift = config.shift if arm == "from_active" else 0.0
        return Frozen(problem.W1, problem.W2, shift, K), torch.full((len(problem.W1),), nan)
    start, axes = lookup("arms", arm, LINEAR)(config, problem)
    network = Linear(start, axes, config.target_width, K)
    return network, torch.ones(len(start)) if axes is None else torch.linalg.cond(axes)


def stream(config: NormActive, problem: Problem, purpose: str, context: Context) -> GaussianStream:
    """Return the random inputs of the problem's replicates. purpose: `train` or `test`."""
    first, streams = problem.replicates[0], config.streams()
    return GaussianStream(
        lambda r, purpose: streams.generator(first + r, purpose),
        len(problem.replicates),
        purpose,
        config.target_width,
        context.device,
    )


class Descent:
    """The training of one arm. The shifts have an optimizer and learning rates of their own."""

    def __init__(self, network: Trained, arm: Arm, optimizer: str) -> None:
        self.network = network
        some = next(iter(network.parameters.values()))
        self.parts = []
        for rates, are_shifts in zip(zip(*arm.rates, strict=True), (False, True), strict=True):
            own = {n: p for n, p in network.parameters.items() if n.startswith("b") == are_shifts}
            each = torch.tensor(rates, dtype=torch.float64, device=some.device)
            if each.any():
                each = each.repeat(len(some) // len(each))
                self.parts.append((optimizer_of(optimizer, own), each, [*own]))

    def step(self, x: Tensor, y: Tensor, fraction: float) -> None:
        """Take a step on a batch. fraction: the learning rates are multiplied by it."""
        gradients = self.network.gradients(x, y)
        for optimizer, rates, names in self.parts:
            optimizer.step({name: gradients[name] for name in names}, rates * fraction)


def trained(
    config: NormActive, problem: Problem, arms: list[Arm], context: Context
) -> Iterator[Imitation]:
    """Train all arms on the same samples, each at its rates, and yield the rows."""
    started = {arm.name: begin(config, problem, arm.name, len(arm.rates)) for arm in arms}
    descents = [Descent(started[arm.name][0], arm, config.optimizer) for arm in arms]
    inputs = stream(config, problem, "train", context)
    target, schedule = problem.target.float(), lookup("schedule", config.schedule, SCHEDULES)
    with context.progress(config.steps, "training") as bar:
        for step in range(config.steps):
            x = inputs.draw(config.batch_size).mT
            y = (target @ x).relu_().sum(1)
            for descent in descents:
                descent.step(x, y, schedule(step, config.steps))
            bar.update(1)
    for arm in arms:
        network, numbers = started[arm.name]
        width = config.target_width**2 if arm.name in OF_WEIGHTS else config.m
        errors, on = measure(config, problem, network, context)
        for r, replicate in enumerate(problem.replicates):
            for k, (rates, chosen_by) in enumerate(zip(arm.rates, arm.chosen_by, strict=True)):
                measured = float(errors[r, k]), float(numbers[r]), float(on[r, k])
                key = arm.name, width, replicate, bool(chosen_by)
                yield Imitation(*key, *rates, chosen_by, *measured)


def measure(
    config: NormActive, problem: Problem, network: Trained, context: Context
) -> tuple[Float[Tensor, "R K"], Float[Tensor, "R K"]]:
    """Return errors on new samples in float64, and the fractions of hidden units that are active.

    Errors are divided by the variance of the target. Without hidden units the fraction is nan.
    """
    inputs, labels, squares, on = stream(config, problem, "test", context), [], [], []
    for begin in range(0, config.test_samples, CHUNK):
        x = inputs.draw(min(CHUNK, config.test_samples - begin)).double().mT
        labels.append((problem.target @ x).relu_().sum(1))
        f, _, hidden = network.outputs(x)
        squares.append((f - labels[-1][:, None]).square().sum(-1))
        if begin == 0:
            on = torch.full_like(squares[0], nan) if hidden is None else active(hidden)
    variance = torch.cat(labels, -1).var(-1, correction=0)
    return torch.stack(squares).sum(0) / config.test_samples / variance[:, None], on


def active(hidden: Float[Tensor, "R m K B"]) -> Float[Tensor, "R K"]:
    """Return the fraction of hidden units that are above zero."""
    return (hidden > 0).double().mean((1, 3))
