"""Online training of paper A's stacks: every batch is fresh, and all that learn one replicate see
the same batches."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import ceil
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.errors import lookup
from runner.core.studies import Context, Row
from runner.data.gaussian import GaussianStream
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.stacks import ReluSum, Stack
from runner.training.optimizers import OPTIMIZERS, Optimizer
from runner.training.schedules import cosine_decay

FINAL_FRACTION = 0.01
"""The exponential schedule ends at this fraction of the rate."""
BATCHES_AT_ONCE = 16
"""Batches drawn at a time."""
CHUNK = 512
"""Samples of each replicate evaluated at a time: small enough for the cache, large for the matrix
product."""
CURVE_POINTS = 12
CURVE_SAMPLES = 8192
LAST_BATCHES = 100
"""The train error is the mean over the last so many batches, of a quarter of them at most."""


@dataclass(frozen=True)
class Curves(Row):
    """One row per trained method, replicate and evaluation during training."""

    keys: ClassVar[tuple[str, ...]] = ("method", "replicate", "step")

    method: str
    replicate: int
    step: int
    samples: int
    test_mse: float  # on the first 8192 test samples


@dataclass
class Errors:
    """Error measures of one method, one number per replicate, in float64."""

    squares: Float[Tensor, " R"]
    largest: Float[Tensor, " R"]
    samples: int = 0

    @property
    def mse(self) -> Float[Tensor, " R"]:
        """Mean squared error."""
        return self.squares / self.samples

    def add(self, error: Float[Tensor, "R N"]) -> None:
        """Count the errors of N more samples."""
        self.squares = self.squares + error.square().sum(-1)
        self.largest = torch.maximum(self.largest, error.abs().amax(-1))
        self.samples += error.shape[-1]


def measure_errors(
    target: ReluSum,
    networks: dict[str, Stack],
    inputs: GaussianStream,
    samples: int,
    tick: Callable[[int], None] = lambda samples: None,
) -> tuple[dict[str, Errors], Float[Tensor, " R"]]:
    """Errors of each network on the next `samples` inputs, and the variance of the target there.

    Every network computes in its own dtype; labels are computed in the target's. `tick` is told of
    samples that are done.
    """
    zero = torch.zeros(len(inputs.generators), device=inputs.device, dtype=torch.float64)
    errors = {method: Errors(zero, zero) for method in networks}
    labels_seen = Errors(zero, zero)
    label_sum = zero
    for start in range(0, samples, CHUNK):
        x = inputs.draw(min(CHUNK, samples - start))
        labels = target.predict(x.to(target.parameters["W"].dtype)).double()
        labels_seen.add(labels)
        label_sum = label_sum + labels.sum(-1)
        for method, stack in networks.items():
            dtype = next(iter(stack.parameters.values())).dtype
            errors[method].add(stack.predict(x.to(dtype)).double() - labels)
        tick(x.shape[1])
    variance = labels_seen.mse - (label_sum / samples).square()
    return errors, variance


SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda step, steps: 1.0,
    "cosine": cosine_decay,
    "exponential": lambda step, steps: FINAL_FRACTION ** (step / steps),
}
"""By name, the fraction of the learning rate at a step, counted from 0, of so many."""


def decay(schedule: str, step: int, steps: int) -> float:
    """The fraction of the learning rate at a step. Raises InputError for an unknown schedule."""
    return lookup("schedule", schedule, SCHEDULES)(step, steps)


@dataclass(frozen=True)
class Plan:
    """How a network is trained."""

    optimizer: str
    schedule: str
    rate: float  # before the schedule


class Learner:
    """A stack in training on one device, each network as its plan says.

    plans: one a network; steps: until the schedules end.
    """

    def __init__(self, stack: Stack, plans: Sequence[Plan], steps: int) -> None:
        self.stack, self.plans, self.steps = stack, plans, steps
        trained = {name: stack.parameters[name] for name in stack.trained}
        self.optimizers: list[tuple[slice, Optimizer]] = []
        for name, group in groupby(range(len(plans)), lambda network: plans[network].optimizer):
            networks = list(group)
            part = slice(networks[0], networks[-1] + 1)
            parameters = {key: value[part] for key, value in trained.items()}
            self.optimizers.append((part, lookup("optimizer", name, OPTIMIZERS)(parameters)))
        last = min(LAST_BATCHES, ceil(steps / 4))
        device = next(iter(trained.values())).device
        self.losses = torch.zeros(last, len(plans), device=device)

    def step(self, number: int, x: Float[Tensor, "R B d"], labels: Float[Tensor, "R B"]) -> None:
        """One step on one batch of each network; number: of the step, from 0."""
        losses, gradients = self.stack.gradients(x, labels)
        self.losses[number % len(self.losses)] = losses
        factors = {s: decay(s, number, self.steps) for s in {p.schedule for p in self.plans}}
        rates = [plan.rate * factors[plan.schedule] for plan in self.plans]
        rates = torch.tensor(rates, dtype=losses.dtype, device=losses.device)
        for part, optimizer in self.optimizers:
            optimizer.step({name: g[part] for name, g in gradients.items()}, rates[part])

    def last_mse(self) -> Float[Tensor, " R"]:
        """Mean loss over the last batches, each measured before its step."""
        return self.losses.double().mean(0)

    def state(self) -> dict[str, Tensor]:
        """What training changes, for a checkpoint."""
        state = {"losses": self.losses}
        state |= {f"parameters.{name}": value for name, value in self.stack.parameters.items()}
        for number, (_, optimizer) in enumerate(self.optimizers):
            state |= {f"optimizer.{number}.{name}": v for name, v in optimizer.state.items()}
        return state


class OnlineTrainer:
    """Trains learners side by side, network i of each on the data of `replicates[i]`.

    W: of the target of each network (R, d, d); kept: what else a checkpoint holds.
    """

    def __init__(
        self,
        config: BnOnly,
        context: Context,
        W: Float[Tensor, "R d d"],
        replicates: Sequence[int],
        learners: dict[str, Learner],
        kept: dict[str, Tensor],
    ) -> None:
        self.config, self.context, self.device = config, context, context.device
        self.replicates, self.learners, self.kept = replicates, learners, kept
        self.target = ReluSum(W.float().to(self.device))
        self.inputs = self.stream("train")
        self.step = 0

    def run(self, what: str, points: int = CURVE_POINTS) -> Iterator[Curves]:
        """All steps; yields curves of so many points. what: is shown beside the progress."""
        total = max((learner.steps for learner in self.learners.values()), default=0)
        with self.context.progress(total, what, self.step) as bar:
            while self.step < total:
                batches = min(BATCHES_AT_ONCE, total - self.step)
                yield from self._train_on_next(batches, points)
                losses = {f"{m} loss": x.losses.mean() for m, x in self.learners.items()}
                bar.update(batches, **losses)
                self.context.checkpoint(self._state)

    def stream(self, purpose: str) -> GaussianStream:
        """Inputs of every network, from the first on."""
        c = self.config
        return GaussianStream(c.seed, self.replicates, purpose, c.target_width, self.device)

    def _train_on_next(self, batches: int, points: int) -> Iterator[Curves]:
        B = self.config.batch_size
        x = self.inputs.draw(batches * B)
        labels = self.target.predict(x)
        for start in range(0, batches * B, B):
            chosen = slice(start, start + B)
            for method, learner in self.learners.items():
                if self.step < learner.steps:
                    learner.step(self.step, x[:, chosen], labels[:, chosen])
                    if points and not (self.step + 1) % max(1, learner.steps // points):
                        yield from self._curve(method, learner)
            self.step += 1

    def _curve(self, method: str, learner: Learner) -> Iterator[Curves]:
        samples, step = min(CURVE_SAMPLES, self.config.test_samples), self.step + 1
        networks = {method: learner.stack}
        errors, _ = measure_errors(self.target, networks, self.stream("test"), samples)
        for replicate, mse in enumerate(errors[method].mse.tolist()):
            yield Curves(method, replicate, step, step * self.config.batch_size, mse)

    def _state(self) -> dict[str, Tensor]:
        state = self.kept | {"step": torch.tensor(self.step)}
        state |= {f"inputs.{key}": value for key, value in self.inputs.state().items()}
        for method, learner in self.learners.items():
            state |= {f"{method}.{name}": value for name, value in learner.state().items()}
        return state

    def restore(self, state: dict[str, Tensor] | None) -> None:
        """Go on from a checkpoint, where there is one."""
        if state is None:
            return
        self.step = int(state["step"])
        prefix = "inputs."
        inputs = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        self.inputs.restore(inputs)
        for method, learner in self.learners.items():
            for name, value in learner.state().items():
                value.copy_(state[f"{method}.{name}"])


def step_bytes(config: BnOnly, networks: int) -> int:
    """Bytes of the batches that are drawn at a time, with labels and what a step makes of them."""
    batches = min(BATCHES_AT_ONCE, ceil(config.train_samples / config.batch_size))
    return 4 * networks * config.batch_size * config.target_width * (2 * batches + 5)
