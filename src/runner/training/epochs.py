"""Training by epochs: passes over shuffled images in minibatches, whatever is trained."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor

from runner.core.errors import InputError
from runner.data.batches import epoch_order
from runner.data.datasets import Dataset

EVALUATED_AT_ONCE = 512
"""Test images of each network in one pass."""

Scores = TypeVar("Scores")


class EpochTrainer(ABC, Generic[Scores]):
    """Goes through the training images epoch by epoch, on their device; goes on from a state.

    Each replicate sees them in its own order. Images that fill no minibatch are left out of an
    epoch, other ones each time. Minibatches are taken on the device and sums are kept there: the
    host waits for it once an epoch.
    """

    def __init__(self, data: Dataset, batch_size: int, seed: int, replicates: int) -> None:
        """Raises InputError when an epoch has no full minibatch."""
        if batch_size > len(data.train):
            raise InputError(f"batch_size={batch_size}: {data.name} has {len(data.train)} images")
        self.data, self.batch_size = data, batch_size
        self.seed, self.replicates = seed, replicates
        self.device = data.train.labels.device
        self.steps = len(data.train) // batch_size
        self.epoch, self.step = 1, 0  # step: minibatches of this epoch that are done

    @property
    def done(self) -> int:
        """Minibatches done in all."""
        return (self.epoch - 1) * self.steps + self.step

    def order(self) -> Int[Tensor, "*replicates n"]:
        """The order of the images in this epoch."""
        n = len(self.data.train)
        return epoch_order(self.seed, self.replicates, n, self.epoch).to(self.device)

    def until(
        self, epochs: int, after_step: Callable[[Tensor], None]
    ) -> Iterator[tuple[int, Scores]]:
        """Number and scores of each epoch from 1 on, or from where the state was taken.

        after_step: is given the losses of each minibatch, on the device.
        """
        while self.epoch <= epochs:
            order, B = self.order(), self.batch_size
            while self.step < self.steps:
                losses = self.train_on(order[..., self.step * B : (self.step + 1) * B])
                self.step += 1
                after_step(losses)
            yield self.epoch, self.end_epoch()
            self.epoch, self.step = self.epoch + 1, 0

    @abstractmethod
    def train_on(self, chosen: Int[Tensor, "*replicates B"]) -> Tensor:
        """One step on these images; the losses before it."""

    @abstractmethod
    def end_epoch(self) -> Scores:
        """The scores of the epoch that has just ended; the next one begins with empty sums."""

    def position(self) -> dict[str, Tensor]:
        """Epoch and step, for a state."""
        return {"epoch": torch.tensor(self.epoch), "step": torch.tensor(self.step)}

    def go_to(self, state: dict[str, Tensor]) -> None:
        """Go on at the position in a state."""
        self.epoch, self.step = int(state["epoch"]), int(state["step"])
