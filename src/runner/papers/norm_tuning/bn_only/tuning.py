"""How every method is trained, and the choice of it for `best` and `dense_best`.

Optimizer, schedule and rate are chosen by successive halving (Jamieson and Talwalkar, 2016): all
plans train for a short time, the better third for longer, the better third of these for longer
still; the best of the last is taken. Both methods get the same plans, up to the scale of the rates
of SGD, the same budgets, and replicates of their own: what is judged has no part in the choice.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import ceil, nan
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from runner.core.errors import lookup
from runner.core.studies import Context, Row
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.online import Learner, OnlineTrainer, Plan, step_bytes
from runner.papers.norm_tuning.bn_only.problem import draw_problem, starting_stack
from runner.training.optimizers import MOMENTUM
from runner.training.selection import NO_CHOICE, described, ranked, selection_range

ROUNDS = (1 / 32, 1 / 8, 1 / 2)
"""Budgets of the rounds, as shares of the steps of what is judged."""

SELECTED = ("best", "dense_best")
"""The methods whose plan is chosen."""

DENSE_EFFORT = 2
"""`dense` sees so many times `train_samples`."""

ROUND = "selection."
"""What the names of finished rounds begin with in a checkpoint."""

KEPT = 3
"""One of so many plans goes on to the next round."""

MULTIPLES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Of the rate by curvature, for SGD; a tenth of it for momentum, whose steps add up to ten."""

ADAM_RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1)


@dataclass(frozen=True)
class Selection(Row):
    """One row per plan, round and selection replicate."""

    keys: ClassVar[tuple[str, ...]] = (
        "method",
        "round",
        "optimizer",
        "schedule",
        "learning_rate",
        "replicate",
    )

    method: str
    round: int
    optimizer: str
    schedule: str
    learning_rate: float
    replicate: int
    samples: int  # seen in the round
    train_mse: float  # on the last batches of the round, each before its step


def rate_by_curvature(method: str, d: int) -> float:
    """Half of where SGD becomes unstable, 2 over the largest curvature of the mean squared error.

    Along the shifts beta2, with all d units on, the output moves by sqrt(d) times the length of
    the step: the curvature is 2 d. In W, along the same w for all rows, half of the inputs have the
    units on: d.
    """
    return 1 / d if method in ("dense", "dense_best") else 1 / (2 * d)


def candidates(config: BnOnly, method: str) -> list[Plan]:
    """All that are tried for a method."""
    rate = rate_by_curvature(method, config.target_width)
    rates = {
        "sgd": [multiple * rate for multiple in MULTIPLES],
        "momentum": [(1 - MOMENTUM) * multiple * rate for multiple in MULTIPLES],
        "adam": list(ADAM_RATES),
    }
    return [
        Plan(optimizer, schedule, rate)
        for optimizer, schedule in product(config.optimizers, config.schedules)
        for rate in lookup("optimizers", optimizer, rates)
    ]


def steps_of_round(config: BnOnly, number: int) -> int:
    """Steps of every plan in a round, counted from 0."""
    return ceil(ROUNDS[number] * ceil(config.train_samples / config.batch_size))


def trained_methods(config: BnOnly) -> list[str]:
    """The methods that are trained: those compared, and what a construction is built from."""
    needed = ["dense"] if "student_construction" in config.methods else []
    named = [method for method in config.methods if not method.endswith("construction")]
    return list(dict.fromkeys(named + needed))


def steps_of(config: BnOnly, method: str) -> int:
    """Steps of training a method that is judged."""
    steps = ceil(config.train_samples / config.batch_size)
    return DENSE_EFFORT * steps if method == "dense" else steps


class Rounds:
    """The rounds of selection of a run, and the plan of every method.

    finished: mean squared errors of the rounds so far, for checkpoints; unfinished: the state to go
    on from, for the training that it was taken in.
    """

    def __init__(self, config: BnOnly, context: Context) -> None:
        self.config, self.context = config, context
        self.replicates = selection_range(config.replicates, config.selection_replicates)
        self.unfinished = context.restored
        state = context.restored or {}
        self.finished = {name: v for name, v in state.items() if name.startswith(ROUND)}
        self.selected: dict[str, tuple[Plan, str]] = {}

    def run(self) -> Iterator[Selection]:
        """Choose for `best` and `dense_best`, where they are wanted."""
        for method in SELECTED:
            if method in self.config.methods:
                yield from self._choose(method)

    def plan(self, method: str) -> Plan:
        """How a method is trained; after `run`."""
        if method in self.selected:
            return self.selected[method][0]
        c = self.config
        rate = c.dense_learning_rate if method == "dense" else c.learning_rate
        rate = rate or rate_by_curvature(method, c.target_width)
        return Plan(c.optimizer, c.schedule, rate)

    def selected_on(self, method: str) -> str:
        """The replicates that a method's plan was chosen on; after `run`."""
        return self.selected[method][1] if method in self.selected else NO_CHOICE

    def _choose(self, method: str) -> Iterator[Selection]:
        tried = candidates(self.config, method)
        for number in range(len(ROUNDS)):
            name = f"{ROUND}{method}.{number}"
            if name not in self.finished:
                self.finished[name] = self._train(method, number, tried)
                yield from self._rows(method, number, tried, self.finished[name])
            mse = self.finished[name]
            order = ranked(-mse.where(mse.isfinite(), nan))
            best, diverged = tried[order[0]], not mse[order[0]].isfinite().all()
            tried = [tried[index] for index in sorted(order[: ceil(len(order) / KEPT)])]
        self.selected[method] = best, described(self.replicates, diverged)

    def _train(self, method: str, number: int, tried: list[Plan]) -> Float[Tensor, "plans S"]:
        """Where every plan ends on every replicate; one stack of all."""
        problem = draw_problem(self.config, self.replicates)
        stack = starting_stack(problem, method, self.context.device, copies=len(tried))
        plans = [plan for plan in tried for _ in self.replicates]
        learner = Learner(stack, plans, steps_of_round(self.config, number))
        W = problem.target.repeat(len(tried), 1, 1)
        replicates = [*self.replicates] * len(tried)
        trainer = OnlineTrainer(
            self.config, self.context, W, replicates, {method: learner}, self.finished
        )
        trainer.restore(self.unfinished)
        self.unfinished = None
        for _ in trainer.run(f"{len(tried)} ways to train, round {number + 1}", points=0):
            pass
        return learner.last_mse().view(len(tried), -1).cpu()

    def _rows(
        self, method: str, number: int, tried: list[Plan], mse: Float[Tensor, "plans S"]
    ) -> Iterator[Selection]:
        samples = steps_of_round(self.config, number) * self.config.batch_size
        for plan, of_plan in zip(tried, mse.tolist(), strict=True):
            for replicate, value in zip(self.replicates, of_plan, strict=True):
                yield Selection(
                    method=method,
                    round=number + 1,
                    optimizer=plan.optimizer,
                    schedule=plan.schedule,
                    learning_rate=plan.rate,
                    replicate=replicate,
                    samples=samples,
                    train_mse=value,
                )


def selection_bytes(config: BnOnly) -> int:
    """Bytes at the peak of the first round, which has the most networks; 0 without one."""
    if not set(SELECTED) & set(config.methods):
        return 0
    networks = len(candidates(config, "best")) * config.selection_replicates
    d, m = config.target_width, config.m
    learner = 4 * networks * m * (3 * config.batch_size + 2 * d) if "best" in config.methods else 0
    return learner + step_bytes(config, networks)
