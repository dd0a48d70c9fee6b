"""Online SGD of paper A's stacks: every batch is fresh, all methods see the same batches."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.studies import Context, Row
from runner.data.gaussian import GaussianStream
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.stacks import ReluSum, Stack
from runner.training.schedules import cosine_decay

RATES = {"sgd": 1.0, "dense": 1.5}
"""Learning rate times d, where none is given."""
DENSE_EFFORT = 2
"""`dense` sees so many times `train_samples`."""
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
"""The train error is the mean over the last so many batches."""


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


def scheduled(schedule: str, rate: float, step: int, steps: int) -> float:
    """The learning rate at a step, counted from 0."""
    if schedule == "cosine":
        return rate * cosine_decay(step, steps)
    if schedule == "exponential":
        return rate * FINAL_FRACTION ** (step / steps)
    return rate


class OnlineTrainer:
    """SGD on the given stacks, which it moves to the device; goes on from a checkpoint."""

    def __init__(
        self,
        config: BnOnly,
        target: Float[Tensor, "R d d"],
        stacks: dict[str, Stack],
        context: Context,
    ) -> None:
        self.config, self.context, self.device = config, context, context.device
        self.stacks = {method: stack.to(self.device) for method, stack in stacks.items()}
        self.target = ReluSum(target.float().to(self.device))
        steps = ceil(config.train_samples / config.batch_size)
        self.steps = {m: steps * (DENSE_EFFORT if m == "dense" else 1) for m in stacks}
        self.inputs = self._stream("train")
        self.losses = {
            m: torch.zeros(min(LAST_BATCHES, count), config.replicates, device=self.device)
            for m, count in self.steps.items()
        }
        self.step = 0
        if context.restored is not None:
            self._restore(context.restored)

    def run(self) -> Iterator[Curves]:
        """All steps; yields the curves."""
        total = max(self.steps.values(), default=0)
        what = f"d={self.config.target_width} m={self.config.m}"
        with self.context.progress(total, what, self.step) as bar:
            while self.step < total:
                batches = min(BATCHES_AT_ONCE, total - self.step)
                yield from self._train_on_next(batches)
                bar.update(batches, **{f"{m} loss": v.mean() for m, v in self.losses.items()})
                self.context.checkpoint(self._state)

    def rate(self, method: str) -> float:
        """The learning rate before the schedule."""
        return self.config.learning_rate or RATES[method] / self.config.target_width

    def last_mse(self, method: str) -> Float[Tensor, " R"]:
        """Mean loss over the last batches, each measured before its step."""
        return self.losses[method].double().mean(0)

    @property
    def last_samples(self) -> int:
        """Samples behind the train error of a method."""
        return LAST_BATCHES * self.config.batch_size

    def last_inputs(self) -> GaussianStream:
        """Training inputs for a network that has not been trained."""
        return self._stream("train")

    def _stream(self, purpose: str) -> GaussianStream:
        c = self.config
        return GaussianStream(c.seed, c.replicates, purpose, c.target_width, self.device)

    def _train_on_next(self, batches: int) -> Iterator[Curves]:
        B = self.config.batch_size
        x = self.inputs.draw(batches * B)
        labels = self.target.predict(x)
        for start in range(0, batches * B, B):
            chosen = slice(start, start + B)
            for method in self.stacks:
                if self.step < self.steps[method]:
                    self._train(method, x[:, chosen], labels[:, chosen])
                    yield from self._curve(method)
            self.step += 1

    def _train(self, method: str, x: Float[Tensor, "R B d"], labels: Float[Tensor, "R B"]) -> None:
        rate = scheduled(self.config.schedule, self.rate(method), self.step, self.steps[method])
        losses = self.losses[method]
        losses[self.step % len(losses)] = self.stacks[method].step(x, labels, rate)

    def _curve(self, method: str) -> Iterator[Curves]:
        step = self.step + 1
        if step % max(1, self.steps[method] // CURVE_POINTS):
            return
        samples = min(CURVE_SAMPLES, self.config.test_samples)
        networks = {method: self.stacks[method]}
        errors, _ = measure_errors(self.target, networks, self._stream("test"), samples)
        for replicate, mse in enumerate(errors[method].mse.tolist()):
            yield Curves(method, replicate, step, step * self.config.batch_size, mse)

    def _state(self) -> dict[str, Tensor]:
        state = {"step": torch.tensor(self.step)}
        state |= {f"inputs.{key}": value for key, value in self.inputs.state().items()}
        for method, stack in self.stacks.items():
            state[f"{method}.losses"] = self.losses[method]
            state |= {f"{method}.{name}": value for name, value in stack.parameters.items()}
        return state

    def _restore(self, state: dict[str, Tensor]) -> None:
        self.step = int(state["step"])
        prefix = "inputs."
        inputs = {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}
        self.inputs.restore(inputs)
        for method, stack in self.stacks.items():
            self.losses[method].copy_(state[f"{method}.losses"])
            for name, value in stack.parameters.items():
                value.copy_(state[f"{method}.{name}"])
