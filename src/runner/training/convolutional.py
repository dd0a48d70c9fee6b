"""Training one convolutional network: plain SGD on images that live on the device."""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.data.datasets import Dataset
from runner.networks.convolutional import ConvolutionalClassifier
from runner.training.epochs import EVALUATED_AT_ONCE, EpochTrainer


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


class ConvolutionalTrainer(EpochTrainer[dict[str, float]]):
    """Trains one network on a dataset of the same device; goes on from a state.

    The order of the images is that of the replicate.
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
        """As `EpochTrainer`; rate: of SGD."""
        super().__init__(data, batch_size, seed, replicate + 1)
        self.network, self.replicate = network, replicate
        self.optimizer = torch.optim.SGD(network.parameters(), lr=rate, fused=True)
        self.sums = torch.zeros(2, dtype=torch.float64, device=self.device)

    def order(self) -> Int[Tensor, " n"]:
        """The order of the images in this epoch, that of the replicate alone."""
        return super().order()[-1]

    def train_on(self, chosen: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """One step on these samples; the loss before it."""
        loss, hits = self._gradients(chosen)
        self.optimizer.step()
        self.sums += torch.stack([loss.double(), hits.double()])
        return loss

    def _gradients(self, chosen: Int[Tensor, " B"]) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Loss and correct predictions; the gradients are with the parameters."""
        self.network.set_mode("train")
        labels = self.data.train.labels[chosen]
        logits = self.network(self.data.train.pixels[chosen])
        loss = functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        return loss.detach(), (logits.detach().argmax(1) == labels).sum()

    def end_epoch(self) -> dict[str, float]:
        """Loss and accuracy on training and test images, by column of `training.csv`."""
        loss, hits = self.sums / self.steps
        self.sums.zero_()
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
        network = {f"network/{name}": t for name, t in self.network.state_dict().items()}
        return {**self.position(), "sums": self.sums, **network}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on where `state` was taken."""
        self.go_to(state)
        self.sums.copy_(state["sums"])
        own = {name: state[f"network/{name}"] for name in self.network.state_dict()}
        self.network.load_state_dict(own)
