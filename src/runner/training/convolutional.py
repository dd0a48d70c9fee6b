"""Training one convolutional network: plain SGD on images that live on the device.

Minibatches are drawn on the device and sums are kept there: the host waits for it once an epoch.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.core.errors import InputError
from runner.data.batches import epoch_order
from runner.data.datasets import Dataset
from runner.networks.convolutional import ConvolutionalClassifier
from runner.training.out_of_memory import fitting_batch_size, is_out_of_memory, release

EVALUATED_AT_ONCE = 512
"""Test images in one pass."""


def on_device(data: Dataset, device: torch.device) -> Dataset:
    """The dataset on the device with the channels of a pixel side by side, as convolutions like
    it."""
    layout = torch.channels_last
    moved = data.to(device)
    train, test = (
        replace(images, pixels=images.pixels.contiguous(memory_format=layout))
        for images in (moved.train, moved.test)
    )
    return replace(moved, train=train, test=test)


class Trainer:
    """Trains a network on a dataset of the same device, epoch by epoch; goes on from a state.

    Samples that fill no minibatch are left out of an epoch, other ones each time. The order of the
    samples is that of the replicate. Raises InputError when an epoch has no full minibatch.
    """

    def __init__(
        self,
        network: ConvolutionalClassifier,
        data: Dataset,
        rate: float,
        batch_size: int,
        seed: int,
        replicate: int,
    ) -> None:
        if batch_size > len(data.train):
            raise InputError(f"batch_size={batch_size}: {data.name} has {len(data.train)} images")
        self.network, self.data = network, data
        self.batch_size, self.seed, self.replicate = batch_size, seed, replicate
        self.device = data.train.labels.device
        self.optimizer = torch.optim.SGD(network.parameters(), lr=rate, fused=True)
        self.steps = len(data.train) // batch_size
        self.epoch, self.step = 1, 0  # step: minibatches of this epoch that are done
        self.sums = torch.zeros(2, dtype=torch.float64, device=self.device)

    @property
    def done(self) -> int:
        """Minibatches done in all."""
        return (self.epoch - 1) * self.steps + self.step

    def run(
        self, epochs: int, after_step: Callable[[Tensor], None]
    ) -> Iterator[tuple[int, dict[str, float]]]:
        """Number and scores of each epoch from 1 on, or from where the state was taken.

        after_step: is given the loss of each minibatch, a tensor on the device.
        """
        while self.epoch <= epochs:
            order = self._order()
            while self.step < self.steps:
                chosen = order[self.step * self.batch_size : (self.step + 1) * self.batch_size]
                loss = self.train_on(chosen)
                self.step += 1
                after_step(loss)
            yield self.epoch, self._scores()
            self.epoch, self.step = self.epoch + 1, 0
            self.sums.zero_()

    def _order(self) -> Int[Tensor, " n"]:
        replicates, n = self.replicate + 1, len(self.data.train)
        return epoch_order(self.seed, replicates, n, self.epoch, self.device)[-1]

    def train_on(self, chosen: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """One step on these samples; the loss before it.

        Raises InputError, with the batch size that would fit, when the memory does not suffice.
        """
        try:
            loss, hits = self._gradients(chosen)
            self.optimizer.step()
            self.sums += torch.stack([loss.double(), hits.double()])
            return loss
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        # Only here, behind the handler, is what the error held on to free.
        raise InputError(self._too_large())

    def _gradients(self, chosen: Int[Tensor, " B"]) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Loss and correct predictions; the gradients are with the parameters."""
        self.network.set_mode("train")
        labels = self.data.train.labels[chosen]
        logits = self.network(self.data.train.pixels[chosen])
        loss = functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        return loss.detach(), (logits.detach().argmax(1) == labels).sum()

    def _too_large(self) -> str:
        self.optimizer.zero_grad()
        everything = torch.arange(len(self.data.train), device=self.device)
        fits = fitting_batch_size(lambda size: self._gradients(everything[:size]), self.batch_size)
        self.optimizer.zero_grad()
        release()
        advice = "a smaller multiplier" if fits is None else f"batch_size={fits}"
        verb = "might" if fits is None else "does"
        return (
            f"batch_size={self.batch_size} does not fit into the memory of {self.device};"
            f" {advice} {verb}."
        )

    def _scores(self) -> dict[str, float]:
        """The scores of the epoch that has just ended; the one place where the host waits."""
        loss, hits = self.sums / self.steps
        names = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
        values = torch.stack([loss, hits / self.batch_size, *self._evaluate()])
        return dict(zip(names, values.tolist(), strict=True))

    @torch.no_grad()
    def _evaluate(self) -> Float[Tensor, "2"]:
        """Mean loss and accuracy on the test images, with running statistics."""
        self.network.set_mode("evaluate")
        images = self.data.test
        sums = torch.zeros_like(self.sums)
        for start in range(0, len(images), EVALUATED_AT_ONCE):
            part = slice(start, start + EVALUATED_AT_ONCE)
            labels = images.labels[part]
            logits = self.network(images.pixels[part])
            loss = functional.cross_entropy(logits, labels, reduction="sum")
            sums += torch.stack([loss.double(), (logits.argmax(1) == labels).sum().double()])
        return sums / len(images)

    def state(self) -> dict[str, Tensor]:
        """All that is needed to go on."""
        counters = {"epoch": torch.tensor(self.epoch), "step": torch.tensor(self.step)}
        network = {f"network/{name}": t for name, t in self.network.state_dict().items()}
        return {**counters, "sums": self.sums, **network}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        self.epoch, self.step = int(state["epoch"]), int(state["step"])
        self.sums.copy_(state["sums"])
        own = {name: state[f"network/{name}"] for name in self.network.state_dict()}
        self.network.load_state_dict(own)
