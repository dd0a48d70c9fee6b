"""Study `bn_only`: paper A, Appendix E, figures 4 and 5.

A target g(x) = sum relu(W* x) with W* (d, d) is learned or rebuilt by four methods:

- `sgd` (blue): SGD on the scales and shifts of f, a frozen random network of hidden width m;
- `teacher_construction` (green): the scales and shifts of f set by Theorem 1 from W*;
- `dense` (black): SGD on a randomly initialised network of the target's shape;
- `student_construction` (orange): the construction of Theorem 1 from what `dense` has learned.

Inputs are standard Gaussian and always fresh: no training sample is seen twice. The weights are
drawn as W* ~ N(0, 1/d), W1 ~ N(0, 1/d), W2 ~ N(0, 2/m), the last two over sqrt(p) when sparse.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil, nan, sqrt
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.data.gaussian import GaussianStream
from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN, BnOnly
from runner.papers.norm_tuning.bn_only.online import (
    BATCHES_AT_ONCE,
    CHUNK,
    Curves,
    OnlineTrainer,
    measure_errors,
)
from runner.papers.norm_tuning.bn_only.stacks import BatchNormTuned, NormTuned, ReluSum, Stack
from runner.papers.norm_tuning.solvers import system_bytes
from runner.papers.norm_tuning.theory import (
    NormParameters,
    live_units_probability,
    wide_layer,
)

COMPILER = 64 * 2**20
"""Bytes of the library that compiles the loops of a step."""


@dataclass(frozen=True)
class Metrics(Row):
    """One row per method and replicate: the errors on the test samples."""

    keys: ClassVar[tuple[str, ...]] = ("method", "target_width", "width", "sparsity", "replicate")

    method: str
    target_width: int  # d
    width: int  # m
    sparsity: float  # p
    replicate: int
    test_mse: float
    train_mse: float  # on the last 100 batches of the training stream (online, before each step)
    max_abs_error: float  # largest |f(x) - g(x)| over the test samples
    relative_mse: float  # test_mse over the variance of g: 1 is a constant predictor
    condition_number: float  # of the Khatri-Rao matrix; nan for the trained methods
    numerical_rank: float  # of the Khatri-Rao matrix; nan for the trained methods
    learning_rate: float  # nan for the constructions


@dataclass
class Problem:
    """The target and the frozen weights of all replicates, in float64 on the CPU."""

    target: Float[Tensor, "R d d"]
    student: Float[Tensor, "R d d"]  # where `dense` starts
    W1: Float[Tensor, "R m d"]
    W2: Float[Tensor, "R d m"]


def draw_problem(config: BnOnly) -> Problem:
    """Target, student and frozen weights, each replicate and each matrix from its own stream."""
    d, m, p = config.target_width, config.m, config.sparsity

    def draw(purpose: str, rows: int, columns: int, variance: float, sparse: bool) -> Tensor:
        matrices = []
        for replicate in range(config.replicates):
            stream = generator(config.seed, replicate, purpose)
            matrix = torch.randn(rows, columns, generator=stream, dtype=torch.float64)
            if sparse:
                kept = torch.rand(rows, columns, generator=stream, dtype=torch.float64) < p
                matrix = matrix * kept / sqrt(p)
            matrices.append(sqrt(variance) * matrix)
        return torch.stack(matrices)

    return Problem(
        target=draw("target", d, d, 1 / d, sparse=False),
        student=draw("student", d, d, 1 / d, sparse=False),
        W1=draw("W1", m, d, 1 / d, sparse=p < 1),
        W2=draw("W2", d, m, 2 / m, sparse=p < 1),
    )


def run(config: BnOnly, context: Context) -> Iterator[Metrics | Curves]:
    """Train what is trained, construct what is constructed, and measure all of it."""
    problem = draw_problem(config)
    trainer = OnlineTrainer(config, problem.target, starting_stacks(config, problem), context)
    yield from trainer.run()

    networks: dict[str, Stack] = dict(trainer.stacks)
    sources = {"teacher_construction": problem.target}
    if "dense" in networks:
        learned = networks["dense"].parameters["W"].double()
        networks["dense"] = ReluSum(learned)  # measured in float64, as what is built from it
        sources["student_construction"] = learned.cpu()
    systems: dict[str, list[NormParameters]] = {}
    for method, source in sources.items():
        if method in config.methods:
            with context.progress(config.replicates, method, unit="systems") as bar:
                systems[method] = construct(problem, source, bar.update)
            networks[method] = constructed_stack(problem, systems[method], context.device)
    wanted = {method: networks[method] for method in config.methods}
    yield from measure(config, problem, wanted, systems, trainer, context)


def memory(config: BnOnly) -> int:
    """Bytes at the peak: the frozen weights, and one after the other their drawing, a training
    step, the linear system of one replicate, and an evaluation with the weights scaled by gamma1.
    """
    R, d, m, B = config.replicates, config.target_width, config.m, config.batch_size
    frozen = 8 * 2 * R * m * d
    drawing = 8 * m * d * (R + 3)  # W2 replicate by replicate beside the stack of all
    batches = min(BATCHES_AT_ONCE, ceil(config.train_samples / B))
    step = 4 * R * B * d * (2 * batches + 5)
    learner = 0
    if "sgd" in config.methods:
        learner = frozen // 2  # in float32
        if config.normalization == "affine":
            learner += 4 * R * B * m * 3  # kept from step to step
        else:
            step += 4 * R * B * m * 4
    itemsize, system = 4, 0
    if any(method.endswith("construction") for method in config.methods):
        singular = live_units_probability(d, d, m, config.sparsity) < 0.5
        itemsize, system = 8, system_bytes(d, d, m, singular)
    chunk = min(CHUNK, config.test_samples)
    evaluation = itemsize * R * (m * d + chunk * (2 * m + 4 * d))
    return COMPILER + frozen + max(drawing, learner + max(step, system, evaluation))


def starting_stacks(config: BnOnly, problem: Problem) -> dict[str, Stack]:
    """The stacks of the trained methods at initialisation, in float32 on the CPU."""
    stacks: dict[str, Stack] = {}
    if "sgd" in config.methods:
        learner = NormTuned if config.normalization == "affine" else BatchNormTuned
        stacks["sgd"] = learner(problem.W1.float(), problem.W2.float())
    if {"dense", "student_construction"} & set(config.methods):
        stacks["dense"] = ReluSum(problem.student.float())
    return stacks


def construct(
    problem: Problem, source: Float[Tensor, "R d d"], tick: Callable[[], None] = lambda: None
) -> list[NormParameters]:
    """Theorem 1 for each replicate: scales and shifts with which f equals sum relu(source x).

    `tick` is called after every replicate.
    """
    d = source.shape[-1]
    found = []
    for W1, W2, W in zip(problem.W1, problem.W2, source, strict=True):
        zero, input_norm = torch.zeros(d, dtype=W.dtype), sqrt(d) + SHIFT_MARGIN
        found.append(wide_layer(W1, W2, W, zero, input_norm))
        tick()
    return found


def constructed_stack(
    problem: Problem, systems: list[NormParameters], device: torch.device
) -> NormTuned:
    """The constructed networks of all replicates as one float64 stack."""
    names = ("gamma1", "beta1", "gamma2", "beta2")
    parameters = {
        name: torch.stack([getattr(system, name) for system in systems]).to(device)
        for name in names
    }
    return NormTuned(problem.W1.to(device), problem.W2.to(device), parameters)


def measure(
    config: BnOnly,
    problem: Problem,
    networks: dict[str, Stack],
    systems: dict[str, list[NormParameters]],
    trainer: OnlineTrainer,
    context: Context,
) -> Iterator[Metrics]:
    """The rows of `metrics.csv`: all networks on the same test samples."""
    device = trainer.device
    target = ReluSum(problem.target.to(device))
    width = config.target_width
    test = GaussianStream(config.seed, config.replicates, "test", width, device)
    constructed = {method: networks[method] for method in systems}
    samples = config.test_samples + trainer.last_samples
    with context.progress(samples, "measuring", unit="samples") as bar:
        errors, variance = measure_errors(target, networks, test, config.test_samples, bar.update)
        inputs = trainer.last_inputs()
        train, _ = measure_errors(target, constructed, inputs, trainer.last_samples, bar.update)
    for method in networks:
        trained = method not in systems
        train_mse = trainer.last_mse(method) if trained else train[method].mse
        relative_mse = errors[method].mse / variance
        for replicate in range(config.replicates):
            system = None if trained else systems[method][replicate].scales
            yield Metrics(
                method=method,
                target_width=width,
                width=config.m,
                sparsity=config.sparsity,
                replicate=replicate,
                test_mse=float(errors[method].mse[replicate]),
                train_mse=float(train_mse[replicate]),
                max_abs_error=float(errors[method].largest[replicate]),
                relative_mse=float(relative_mse[replicate]),
                condition_number=nan if trained else system.condition_number,
                numerical_rank=nan if trained else float(system.numerical_rank),
                learning_rate=trainer.rate(method) if trained else nan,
            )
