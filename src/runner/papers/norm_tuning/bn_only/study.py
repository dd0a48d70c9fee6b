"""Study `bn_only`: the experiment of paper A, Appendix E (figures 4 and 5).

A random target g(x) = sum relu(W* x), W* (d, d), is learned or rebuilt by f, the network of
Theorem 1, whose random weights W1 (m, d) and W2 (d, m) are frozen:

- `sgd` (blue): SGD trains the scales and shifts of f, the parameters of its BatchNorm layers;
- `teacher_construction` (green): Theorem 1 sets them, from W*;
- `dense` (black): SGD trains a random network of the target's shape;
- `student_construction` (orange): Theorem 1 sets them, from what `dense` has learned;
- `corrected_construction` (ours): green, with the mean of each unit put right where m < d^2.

Inputs are standard Gaussian, and none is seen twice: the loss before a step is an error on new
samples. All methods of a replicate share the target, the frozen weights and the samples.

The paper gives no learning rate. Here it is half of where SGD becomes unstable, which is 2 over the
curvature of the loss along the last shifts, measured on the first batch of each network.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import ceil, nan, sqrt
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.errors import lookup
from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.data.gaussian import GaussianStream
from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN, BnOnly
from runner.papers.norm_tuning.bn_only.networks import (
    Batch,
    Dense,
    FrozenWithNorm,
    Norm,
    Solved,
    construct,
    curvature,
    f,
    g,
    with_right_means,
)
from runner.training.optimizers import OPTIMIZERS, Optimizer
from runner.training.schedules import cosine_decay

CURVE_POINTS = 12
"""Of a training, at the ends of parts of equal length."""

CHUNK = 128
"""Samples of each replicate that are measured at a time: few enough for the cache."""

FINAL_FRACTION = 0.01
"""The exponential schedule ends at this fraction of the rate."""

TRAINED = {
    "sgd": ["sgd"],
    "teacher_construction": [],
    "dense": ["dense"],
    "student_construction": ["dense"],
    "corrected_construction": [],
}
"""What has to be trained for each method."""

Key = tuple[str, int]
"""A method and the width m of its network; of `dense` d."""

Networks = dict[Key, Norm | Tensor]
"""What was found, in float64: scales and shifts, of `dense` the weights W."""


@dataclass(frozen=True)
class Approximation(Row):
    """One row per method, width and replicate: the errors on the test samples, in float64."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("method", "target_width", "width", "sparsity", "replicate")

    method: str
    target_width: int  # d
    width: int  # m
    sparsity: float  # p
    replicate: int
    test_mse: float
    relative_mse: float  # test_mse over the variance of g: 1 is a constant predictor
    max_abs_error: float  # largest |f(x) - g(x)| over the test samples
    condition_number: float = nan  # of the Khatri-Rao matrix, for constructions
    numerical_rank: float = nan  # likewise
    source_mse: float = nan  # of constructions: their distance from what they are built from
    train_mse: float = nan  # at the end of the curve; this and the rest for what is trained
    learning_rate: float = nan
    optimizer: str = "none"
    schedule: str = "none"
    statistics: str = "none"


@dataclass(frozen=True)
class CurvePoint(Row):
    """One row per trained network, replicate and point of its curve."""

    table: ClassVar[str] = "curves"
    keys: ClassVar[tuple[str, ...]] = ("method", "width", "replicate", "samples")

    method: str
    width: int  # m; of `dense` d
    replicate: int
    samples: int  # seen so far
    mse: float  # mean since the last point, on samples that are new at each step


class Problem(NamedTuple):
    """The weights of all replicates, in float64 on the CPU."""

    target: Float[Tensor, "R d d"]
    student: Float[Tensor, "R d d"]  # where `dense` starts
    W1: Float[Tensor, "R m d"]  # of the widest f: a narrower one has its first units
    W2: dict[int, Float[Tensor, "R d m"]]  # by m


@dataclass
class Learner:
    """A network of every replicate in training."""

    network: Dense | FrozenWithNorm
    optimizer: Optimizer
    rates: Float[Tensor, " R"]  # before the schedule
    mse: Float[Tensor, " R"]  # mean loss since the last point of the curve

    def state(self) -> dict[str, Tensor]:
        """All that training changes, each in place."""
        own = {"rates": self.rates, "mse": self.mse}
        own |= {f"optimizer.{name}": each for name, each in self.optimizer.state.items()}
        return self.network.parameters | self.network.running | own


def run(config: BnOnly, context: Context) -> Iterator[CurvePoint | Approximation]:
    """Train what is trained, set what is set, and measure all of it on new samples."""
    problem = draw_problem(config)
    learners = start(config, context, problem)
    yield from train(config, context, problem, learners)

    networks: Networks = {key: learner.network.found() for key, learner in learners.items()}
    systems = {}
    for m in config.m:
        learned = networks.get(("dense", config.target_width))
        built, systems[m] = constructed(config, problem, m, learned)
        networks |= {(method, m): norm for method, norm in built.items()}
    errors = measure(config, context, problem, networks)
    yield from metrics(config, learners, systems, errors)


def memory(config: BnOnly) -> int:
    """Bytes at the peak: the frozen weights, and the largest of their drawing, the linear systems
    of the widest f, and a step of training with, since freed memory is kept, a chunk of measuring.
    """
    R, d, N, m = config.replicates, config.target_width, config.batch_size, max(config.m)
    widths = sum(config.m)
    frozen = 8 * R * d * (m + widths)
    drawing = 8 * R * d * 2 * m
    training = 4 * R * (d * m + m * N + 8 * d * N)
    if "sgd" in config.methods:
        training += 4 * R * (d * widths + 3 * m * N)
    system = 0
    if any(method.endswith("construction") for method in config.methods):
        system = 8 * R * d**2 * m * 2
    hidden = m if config.methods == ["dense"] else 2 * m
    measuring = 8 * R * min(CHUNK, config.test_samples) * (hidden + 4 * d)
    return frozen + max(drawing, system, training + measuring)


def draw_problem(config: BnOnly) -> Problem:
    """W* ~ N(0, 1/d), W1 ~ N(0, 1/d), W2 ~ N(0, 2/m), the last two over sqrt(p) when sparse.

    Each matrix of a replicate comes from a stream of its own.
    """
    d, widest, p = config.target_width, max(config.m), config.sparsity

    def draw(purpose: str, rows: int, columns: int, p: float = 1.0) -> Tensor:
        drawn = []
        for replicate in range(config.replicates):
            stream = generator(config.seed, replicate, purpose)
            matrix = torch.randn(rows, columns, generator=stream, dtype=torch.float64)
            if p < 1:
                matrix *= torch.rand(rows, columns, generator=stream, dtype=torch.float64) < p
            drawn.append(matrix / sqrt(p))
        return torch.stack(drawn)

    W2 = draw("W2", d, widest, p)
    return Problem(
        target=draw("target", d, d) / sqrt(d),
        student=draw("student", d, d) / sqrt(d),
        W1=draw("W1", widest, d, p) / sqrt(d),
        W2={m: W2[..., :m] * sqrt(2 / m) for m in config.m},
    )


def start(config: BnOnly, context: Context, problem: Problem) -> dict[Key, Learner]:
    """What is to be trained, in float32, at its initialisation."""
    networks: dict[Key, Dense | FrozenWithNorm] = {}
    trained = {name for method in config.methods for name in lookup("methods", method, TRAINED)}
    if "dense" in trained:
        networks["dense", config.target_width] = Dense(problem.student.float().to(context.device))
    batch_statistics = lookup("statistics", config.statistics, {"batch": True, "fixed": False})
    for m in config.m if "sgd" in trained else ():
        W2 = problem.W2[m].float().to(context.device)
        networks["sgd", m] = FrozenWithNorm(W2, batch_statistics)
    learners = {}
    for key, network in networks.items():
        zeros = torch.zeros(config.replicates, dtype=torch.float64, device=context.device)
        optimizer = lookup("optimizer", config.optimizer, OPTIMIZERS)(network.parameters)
        learners[key] = Learner(network, optimizer, rates=zeros, mse=zeros.clone())
    return learners


def train(
    config: BnOnly, context: Context, problem: Problem, learners: dict[Key, Learner]
) -> Iterator[CurvePoint]:
    """Train all learners on the same batches, and follow the loss of each before each step."""
    part = ceil(config.train_samples / config.batch_size / CURVE_POINTS) if learners else 0
    steps = CURVE_POINTS * part
    target, W1 = (each.float().to(context.device) for each in (problem.target, problem.W1))
    inputs = stream(config, context, "train")
    first = restore(context, learners, inputs)
    with context.progress(steps, "training", first) as bar:
        for step in range(first, steps):
            x = inputs.draw(config.batch_size).mT
            batch = Batch(x, g(x, target), W1)
            fraction = decay(config.schedule, step, steps)
            for learner in learners.values():
                loss, gradients, on = learner.network.step(batch)
                if step == 0:  # half of 2 over the curvature
                    learner.rates[:] = config.learning_rate or 1 / curvature(on)
                if step % part == 0:
                    learner.mse.zero_()
                learner.mse.add_(loss, alpha=1 / part)
                learner.optimizer.step(gradients, learner.rates * fraction)
            bar.update(1)
            if (step + 1) % part == 0:
                yield from curves(learners, (step + 1) * config.batch_size)
                context.checkpoint(partial(state, learners, inputs, step + 1))


def curves(learners: dict[Key, Learner], samples: int) -> Iterator[CurvePoint]:
    """A point of every curve, after so many samples."""
    for (method, m), learner in learners.items():
        for replicate, mse in enumerate(learner.mse.tolist()):
            yield CurvePoint(method, m, replicate, samples, mse)


def state(learners: dict[Key, Learner], inputs: GaussianStream, step: int) -> dict[str, Tensor]:
    """What an interrupted training goes on from."""
    kept = {"step": torch.tensor(step)}
    kept |= {f"inputs.{name}": each for name, each in inputs.state().items()}
    for (method, m), learner in learners.items():
        kept |= {f"{method}.{m}.{name}": each for name, each in learner.state().items()}
    return kept


def restore(context: Context, learners: dict[Key, Learner], inputs: GaussianStream) -> int:
    """Put everything where `state` was taken; returns the steps that are done, 0 at the start."""
    kept = context.restored
    if kept is None:
        return 0
    inputs.restore({name: kept[f"inputs.{name}"] for name in inputs.state()})
    for (method, m), learner in learners.items():
        for name, each in learner.state().items():
            each.copy_(kept[f"{method}.{m}.{name}"])
    return int(kept["step"])


def stream(config: BnOnly, context: Context, purpose: str) -> GaussianStream:
    """The inputs of all replicates, from the first on."""
    width = config.target_width
    return GaussianStream(config.seed, config.replicates, purpose, width, context.device)


def decay(schedule: str, step: int, steps: int) -> float:
    """The fraction of the learning rate at a step, counted from 0."""
    cosine, exponential = cosine_decay(step, steps), FINAL_FRACTION ** (step / steps)
    known = {"constant": 1.0, "cosine": cosine, "exponential": exponential}
    return lookup("schedule", schedule, known)


def constructed(
    config: BnOnly, problem: Problem, m: int, learned: Tensor | None
) -> tuple[dict[str, Norm], Solved | None]:
    """What Theorem 1 sets for the methods that are wanted, and its linear system.

    learned: the weights of `dense` (R, d, d).
    """
    sources = {"teacher_construction": problem.target, "corrected_construction": problem.target}
    if learned is not None:
        sources["student_construction"] = learned.cpu()
    sources = {method: W for method, W in sources.items() if method in config.methods}
    if not sources:
        return {}, None
    frozen = problem.W1[:, :m], problem.W2[m]
    solved = construct(*frozen, [*sources.values()], sqrt(config.target_width) + SHIFT_MARGIN)
    built = dict(zip(sources, solved.norms, strict=True))
    if corrected := built.get("corrected_construction"):
        built["corrected_construction"] = with_right_means(corrected, *frozen, problem.target)
    return built, solved


class Errors(NamedTuple):
    """Of one network over the test samples."""

    mse: Float[Tensor, " R"]
    relative: Float[Tensor, " R"]  # over the variance of g
    largest: Float[Tensor, " R"]
    from_source: Float[Tensor, " R"]  # mean squared distance from what it is built from


def measure(
    config: BnOnly, context: Context, problem: Problem, networks: Networks
) -> dict[Key, Errors]:
    """Measure all networks on the same samples, which were not trained on, in float64."""
    d, samples, device = config.target_width, config.test_samples, context.device
    inputs = stream(config, context, "test")
    target, W1 = problem.target.to(device), problem.W1.to(device)
    W2 = {m: each.to(device) for m, each in problem.W2.items()}
    networks = {key: found.to(device) for key, found in networks.items()}
    zeros = torch.zeros(2, config.replicates, dtype=torch.float64, device=device)
    labels, largest = zeros.clone(), dict.fromkeys(networks, zeros[0])
    squares = {key: zeros.clone() for key in networks}
    with context.progress(samples, "measuring", unit="samples") as bar:
        for begin in range(0, samples, CHUNK):
            x = inputs.draw(min(CHUNK, samples - begin)).double().mT
            y, h1 = g(x, target), W1 @ x
            labels += torch.stack([y.sum(-1), y.square().sum(-1)])
            learned = g(x, networks["dense", d]) if ("dense", d) in networks else y
            for (method, m), found in networks.items():
                output = learned if method == "dense" else f(h1[:, :m], W2[m], found)
                source = learned if method == "student_construction" else y
                both = torch.stack([output - y, output - source])
                squares[method, m] += both.square().sum(-1)
                largest[method, m] = largest[method, m].maximum(both[0].abs().amax(-1))
            bar.update(x.shape[-1])
    mean, mean_square = labels / samples
    variance = mean_square - mean.square()
    measured = {}
    for key in networks:
        mse, from_source = squares[key] / samples
        errors = (mse, mse / variance, largest[key], from_source)
        measured[key] = Errors(*(each.cpu() for each in errors))
    return measured


def metrics(
    config: BnOnly,
    learners: dict[Key, Learner],
    systems: dict[int, Solved | None],
    errors: dict[Key, Errors],
) -> Iterator[Approximation]:
    """The rows of all methods, widths and replicates; `dense` has one at every width."""
    d = config.target_width
    trained = {name: getattr(config, name) for name in ("optimizer", "schedule", "statistics")}
    for m, method in product(config.m, config.methods):
        key = (method, d if method == "dense" else m)
        found = torch.stack(errors[key], -1).tolist()
        for replicate, (mse, relative, largest, from_source) in enumerate(found):
            if key in learners:
                learner = learners[key]
                how = trained | {
                    "train_mse": learner.mse[replicate].item(),
                    "learning_rate": learner.rates[replicate].item(),
                }
            else:
                how = {
                    "condition_number": systems[m].condition_number[replicate].item(),
                    "numerical_rank": float(systems[m].rank[replicate]),
                    "source_mse": from_source,
                }
            yield Approximation(
                method, d, m, config.sparsity, replicate, mse, relative, largest, **how
            )
