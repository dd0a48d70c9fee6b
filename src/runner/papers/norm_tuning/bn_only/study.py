"""Study `bn_only`: paper A, Appendix E, figures 4 and 5.

A target g(x) = sum relu(W* x) with W* (d, d) is learned or rebuilt by the paper's four methods:

- `sgd` (blue): SGD on the scales and shifts of f, a frozen random network of hidden width m;
- `teacher_construction` (green): the scales and shifts of f set by Theorem 1 from W*;
- `dense` (black): SGD on a randomly initialised network of the target's shape;
- `student_construction` (orange): the construction of Theorem 1 from what `dense` has learned;

and by four of ours. Three show how much of the difference is the training: `batch_norm`, blue with
the statistics of each batch; `best` and `dense_best`, blue and black with the optimizer, schedule
and rate that were best on replicates of their own (`selection.csv`, module `tuning`), at equal
budgets. One mends green where m < d^2: `corrected_construction`, with the right mean of each unit.

Inputs are standard Gaussian and always fresh: no training sample is seen twice. The weights are
drawn as W* ~ N(0, 1/d), W1 ~ N(0, 1/d), W2 ~ N(0, 2/m), the last two over sqrt(p) when sparse.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import nan
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context, Row
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.online import (
    CHUNK,
    CURVE_SAMPLES,
    LAST_BATCHES,
    Curves,
    Learner,
    OnlineTrainer,
    measure_errors,
    step_bytes,
)
from runner.papers.norm_tuning.bn_only.problem import (
    Problem,
    construct,
    constructed_stack,
    corrected,
    draw_problem,
    starting_stack,
)
from runner.papers.norm_tuning.bn_only.stacks import ReluSum, Stack
from runner.papers.norm_tuning.bn_only.tuning import (
    Rounds,
    Selection,
    selection_bytes,
    steps_of,
    trained_methods,
)
from runner.papers.norm_tuning.solvers import system_bytes
from runner.papers.norm_tuning.theory import NormParameters, rank_is_likely_lower

COMPILER = 64 * 2**20
"""Bytes of the library that compiles the loops of a step."""

UNTRAINED = {
    "optimizer": "none",
    "schedule": "none",
    "learning_rate": nan,
    "samples": 0,
    "selected_on": "none",
    "dead_at_start": nan,
    "dead": nan,
}
"""Columns of what is constructed."""

UNSOLVED = {"condition_number": nan, "numerical_rank": nan}
"""Columns of what is trained."""


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
    train_mse: float  # of what is trained on its last batches, before each step; else on the first
    max_abs_error: float  # largest |f(x) - g(x)| over the test samples
    relative_mse: float  # test_mse over the variance of g: 1 is a constant predictor
    condition_number: float  # of the Khatri-Rao matrix; nan for the trained methods
    numerical_rank: float  # of the Khatri-Rao matrix; nan for the trained methods
    optimizer: str  # this and all that follow: of what is trained
    schedule: str
    learning_rate: float
    samples: int  # seen in training
    selected_on: str  # the replicates that plan was chosen on
    dead_at_start: float  # share of the last hidden units that are zero on the test samples
    dead: float  # likewise in the end


def run(config: BnOnly, context: Context) -> Iterator[Metrics | Curves | Selection]:
    """Train what is trained, construct what is constructed, and measure all of it."""
    rounds = Rounds(config, context)
    yield from rounds.run()
    problem = draw_problem(config, range(config.replicates))
    learners = {
        method: Learner(
            starting_stack(problem, method, context.device),
            [rounds.plan(method)] * config.replicates,
            steps_of(config, method),
        )
        for method in trained_methods(config)
    }
    trainer = OnlineTrainer(
        config, context, problem.target, range(config.replicates), learners, rounds.finished
    )
    seen = trainer.stream("test").draw(min(CURVE_SAMPLES, config.test_samples))
    dead_at_start = {method: learner.stack.dead(seen) for method, learner in learners.items()}
    trainer.restore(rounds.unfinished)
    yield from trainer.run(f"d={config.target_width} m={config.m}")

    networks = {method: learner.stack for method, learner in learners.items()}
    dead = {method: stack.dead(seen) for method, stack in networks.items()}
    sources = {"teacher_construction": problem.target}
    if "dense" in networks:
        learned = networks["dense"].parameters["W"].double()
        networks["dense"] = ReluSum(learned)  # measured in float64, as what is built from it
        sources["student_construction"] = learned.cpu()
    systems = constructed(config, context, problem, sources)
    if "corrected_construction" in config.methods:
        found = systems.get("teacher_construction") or construct(problem, problem.target)
        systems["corrected_construction"] = corrected(problem, problem.target, found)
    for method, found in systems.items():
        networks[method] = constructed_stack(problem, found, context.device)

    wanted = {method: networks[method] for method in config.methods}
    for method, replicate, errors in measured(config, context, problem, wanted, trainer):
        if method in systems:
            scales = systems[method][replicate].scales
            how = UNTRAINED | {
                "condition_number": scales.condition_number,
                "numerical_rank": float(scales.numerical_rank),
            }
        else:
            plan = rounds.plan(method)
            how = UNSOLVED | {
                "train_mse": float(learners[method].last_mse()[replicate]),
                "optimizer": plan.optimizer,
                "schedule": plan.schedule,
                "learning_rate": plan.rate,
                "samples": learners[method].steps * config.batch_size,
                "selected_on": rounds.selected_on(method),
                "dead_at_start": float(dead_at_start[method][replicate]),
                "dead": float(dead[method][replicate]),
            }
        yield Metrics(
            method=method,
            target_width=config.target_width,
            width=config.m,
            sparsity=config.sparsity,
            replicate=replicate,
            **errors | how,
        )


def memory(config: BnOnly) -> int:
    """Bytes at the peak: the frozen weights, and one after the other their drawing, a step of a
    round of selection, training steps, the linear system of one replicate, and an evaluation with
    the weights scaled by gamma1.
    """
    R, d, m, B = config.replicates, config.target_width, config.m, config.batch_size
    frozen = 8 * 2 * R * m * d
    drawing = 8 * m * d * (R + 3)  # W2 replicate by replicate beside the stack of all
    trained = trained_methods(config)
    affine = [method for method in trained if method in ("sgd", "best")]
    learner = len(affine) * (frozen // 2 + 4 * R * B * m * 3)  # float32; kept from step to step
    step = step_bytes(config, R)
    if "batch_norm" in trained:
        learner += frozen // 2
        step += 4 * R * B * m * 4
    itemsize, system = 4, 0
    if any(method.endswith("construction") for method in config.methods):
        singular = rank_is_likely_lower(d, d, m, config.sparsity)
        itemsize, system = 8, system_bytes(d, d, m, singular)
    chunk = min(CHUNK, config.test_samples)
    evaluation = itemsize * R * chunk * 4 * d
    if not set(config.methods) <= {"dense", "dense_best"}:
        evaluation += itemsize * R * m * (d + 2 * chunk)
    judging = COMPILER + frozen + max(drawing, learner + max(step, system, evaluation))
    return max(judging, selection_bytes(config))


def constructed(
    config: BnOnly,
    context: Context,
    problem: Problem,
    sources: dict[str, Float[Tensor, "R d d"]],
) -> dict[str, list[NormParameters]]:
    """What Theorem 1 sets for each wanted method, replicate by replicate."""
    systems = {}
    for method, W in sources.items():
        if method in config.methods:
            with context.progress(config.replicates, method, unit="systems") as bar:
                systems[method] = construct(problem, W, bar.update)
    return systems


def measured(
    config: BnOnly,
    context: Context,
    problem: Problem,
    networks: dict[str, Stack],
    trainer: OnlineTrainer,
) -> Iterator[tuple[str, int, dict[str, float]]]:
    """Method, replicate and error columns of all networks, on the same test samples.

    The train error of a construction is that on as many training samples as a learner's.
    """
    target = ReluSum(problem.target.to(context.device))
    constructions = {name: s for name, s in networks.items() if name.endswith("construction")}
    of_training = LAST_BATCHES * config.batch_size
    total = config.test_samples + of_training
    with context.progress(total, "measuring", unit="samples") as bar:
        test, train = trainer.stream("test"), trainer.stream("train")
        errors, variance = measure_errors(target, networks, test, config.test_samples, bar.update)
        seen, _ = measure_errors(target, constructions, train, of_training, bar.update)
    for method, found in errors.items():
        for replicate in range(config.replicates):
            columns = {
                "test_mse": float(found.mse[replicate]),
                "max_abs_error": float(found.largest[replicate]),
                "relative_mse": float((found.mse / variance)[replicate]),
            }
            if method in seen:
                columns["train_mse"] = float(seen[method].mse[replicate])
            yield method, replicate, columns
