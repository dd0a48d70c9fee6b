"""Training on images: epochs of shuffled minibatches.

- `EpochTrainer` loops over the training images in minibatches, for any kind of network. After it
  continues from a checkpoint, all results have the same bytes;
- `ConvolutionalTrainer` trains one convolutional network by SGD;
- `train_in_turn` trains all networks of a study one after the other, since each needs the whole
  machine. It begins with the networks that select learning rates, and writes checkpoints.

`training.classification` trains many small networks together.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.core.errors import InputError
from runner.core.progress import Progress
from runner.core.streams import Stream
from runner.core.studies import Context
from runner.data.batches import epoch_order
from runner.data.datasets import Dataset
from runner.networks import own_calls
from runner.networks.convolutional import ConvolutionalClassifier
from runner.training.accuracies import accuracy
from runner.training.cuda_graph import Captured
from runner.training.rate_choice import NO_CHOICE, Choice, choose, score, selection_range

EVALUATED_AT_ONCE = 512
"""The number of test images in one pass."""

Scores = TypeVar("Scores")


class EpochTrainer(ABC, Generic[Scores]):
    """Base class of trainers that loop over the training images in minibatches.

    A trainer can continue from a state. Each replicate sees the images in a different random order.
    Images at the end of the order that do not fill a minibatch are skipped in this epoch.
    Minibatches and sums stay on the device. The host therefore waits for the device only once per
    epoch.
    """

    def __init__(self, data: Dataset, batch_size: int, stream: Stream, replicates: int) -> None:
        """Prepare the training, which begins at epoch 1.

        stream: a function of a replicate and a purpose that returns a random generator. replicates:
        how many replicates have an order of the images. Raises InputError if the training images do
        not fill a minibatch.
        """
        if batch_size > len(data.train):
            raise InputError(f"batch_size={batch_size}: {data.name} has {len(data.train)} images")
        self.data, self.batch_size = data, batch_size
        self.stream, self.replicates = stream, replicates
        self.device = data.train.labels.device
        self.steps = len(data.train) // batch_size
        self.epoch, self.step = 1, 0  # step: number of finished minibatches of this epoch

    @property
    def done(self) -> int:
        """Return the number of finished minibatches, over all epochs."""
        return (self.epoch - 1) * self.steps + self.step

    def order(self) -> Int[Tensor, "*replicates n"]:
        """Return the order of the n training images in the present epoch, for each replicate."""
        n = len(self.data.train)
        return epoch_order(self.stream, self.replicates, n, self.epoch).to(self.device)

    def until(
        self, epochs: int, after_step: Callable[[Tensor], None]
    ) -> Iterator[tuple[int, Scores]]:
        """Train until the end of epoch `epochs`; yield the number and the scores of each epoch.

        Training begins at epoch 1, or at the restored state. after_step: a function that is called
        with the losses of each minibatch, a tensor on the device.
        """
        step = Captured(self.train_on)
        own_calls.at(self.replicates, self.done)
        while self.epoch <= epochs:
            order, B = self.order(), self.batch_size
            while self.step < self.steps:
                losses = step(order[..., self.step * B : (self.step + 1) * B])
                self.step += 1
                after_step(losses)
                own_calls.at(self.replicates, self.done)
            yield self.epoch, self.end_epoch()
            self.epoch, self.step = self.epoch + 1, 0

    def checkpointed(
        self, epochs: int, context: Context, bar: Progress, more: Mapping[str, Tensor] = {}
    ) -> Iterator[tuple[int, Scores]]:
        """Train until epoch `epochs` with checkpoints; yield the number and scores of each epoch.

        bar: a progress bar, which is updated at each step. more: tensors that a checkpoint stores
        in addition to the trainer's state.
        """

        def after_step(losses: Tensor) -> None:
            """Update the progress bar, and write a checkpoint if it is due."""
            bar.update(1, loss=losses)
            context.checkpoint(lambda: {**self.state(), **more})

        return self.until(epochs, after_step)

    @abstractmethod
    def train_on(self, chosen: Int[Tensor, "*replicates B"]) -> Tensor:
        """Take one step on a minibatch; return the losses before the step.

        chosen: the indices of the B training images in the minibatch, for each replicate.
        """

    @abstractmethod
    def end_epoch(self) -> Scores:
        """Return the scores of the finished epoch, and begin new sums."""

    @abstractmethod
    def _own(self) -> dict[str, Tensor]:
        """Return all tensors that training changes, by name."""

    def state(self) -> dict[str, Tensor]:
        """Return all tensors that are needed to continue, by name, without copying them."""
        tensors = {name: tensor.detach() for name, tensor in self._own().items()}
        return {"epoch": torch.tensor(self.epoch), "step": torch.tensor(self.step)} | tensors

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a result of the method `state`."""
        self.epoch, self.step = int(state["epoch"]), int(state["step"])
        for name, tensor in self._own().items():
            tensor.detach().copy_(state[name])


def on_device(data: Dataset, device: torch.device) -> Dataset:
    """Return a copy of the dataset on a device, with the memory layout "channels last".

    Convolutions are faster with this layout.
    """
    layout = torch.channels_last
    return data.to(device).map(lambda pixels: pixels.contiguous(memory_format=layout))


class ConvolutionalTrainer(EpochTrainer[dict[str, float]]):
    """Trainer of one convolutional network by SGD, on the device of the dataset.

    replicate: the index of the network's replicate, which determines the order of the images.
    """

    def __init__(
        self,
        network: ConvolutionalClassifier,
        data: Dataset,
        rate: float,
        batch_size: int,
        stream: Stream,
        replicate: int,
    ) -> None:
        """Prepare the training as `EpochTrainer` does. rate: the learning rate of SGD."""
        super().__init__(data, batch_size, stream, replicate + 1)
        self.network, self.rate = network, rate
        self.optimizer = torch.optim.SGD(network.parameters(), lr=rate, fused=True)
        self.sums = torch.zeros(2, dtype=torch.float64, device=self.device)

    def order(self) -> Int[Tensor, " n"]:
        """Return the order of the n training images in the present epoch, for this replicate."""
        return super().order()[-1]

    def train_on(self, chosen: Int[Tensor, " B"]) -> Float[Tensor, ""]:
        """Take one step on a minibatch; return the mean loss before the step.

        chosen: the indices of the B training images in the minibatch.
        """
        self.network.set_mode("train")
        labels = self.data.train.labels[chosen]
        logits = self.network(self.data.train.pixels[chosen])
        loss = functional.cross_entropy(logits, labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        hits = (logits.detach().argmax(1) == labels).sum()
        self.sums += torch.stack([loss.detach().double(), hits.double()])
        return loss.detach()

    def end_epoch(self) -> dict[str, float]:
        """Return loss and accuracy on training and test images, by the columns of `training.csv`.

        Each training image is measured before the step on its minibatch, test images at the end of
        the epoch.
        """
        loss, hits = self.sums / self.steps
        self.sums.zero_()
        names = ("train_loss", "train_accuracy", "test_loss", "test_accuracy")
        right = accuracy(hits / self.batch_size, loss)
        values = torch.stack([loss, right, *self._evaluate()])
        return dict(zip(names, values.tolist(), strict=True))

    @torch.no_grad()
    def _evaluate(self) -> Float[Tensor, "2"]:
        """Return mean loss and accuracy on the test images, with running statistics."""
        self.network.set_mode("evaluate")
        images = self.data.test
        sums = torch.zeros_like(self.sums)
        for start in range(0, len(images), EVALUATED_AT_ONCE):
            part = slice(start, start + EVALUATED_AT_ONCE)
            labels, logits = images.labels[part], self.network(images.pixels[part])
            loss = functional.cross_entropy(logits, labels, reduction="sum")
            sums += torch.stack([loss.double(), (logits.argmax(1) == labels).sum().double()])
        loss, right = sums / len(images)
        return torch.stack([loss, accuracy(right, loss)])

    def _own(self) -> dict[str, Tensor]:
        return self.network.state_dict(prefix="network/") | {"sums": self.sums}


@runtime_checkable
class Config(Protocol):
    """The parameters that a study needs for `train_in_turn`."""

    epochs: int
    batch_size: int
    learning_rates: list[float]
    replicates: int
    selection_replicates: int


class Task(NamedTuple):
    """A network that will be trained.

    - rate: the learning rate; None: the best rate in the trials of the method `rate_of`.
    - rate_of: another method, whose best rate is used; empty: the task's own method.
    - epochs: the number of epochs; None: the study's number.
    """

    method: str
    replicate: int
    rate: float | None = None
    rate_of: str = ""
    epochs: int | None = None


def selection_of(config: Config) -> range:
    """Return the indices of the replicates with which a study chooses its learning rates."""
    return selection_range(config.replicates, config.selection_replicates)


def trials(config: Config, methods: Iterable[str], epochs: int | None = None) -> list[Task]:
    """Return the tasks that choose learning rates: each method at each rate and replicate.

    The list is empty if the study has only one learning rate. epochs: the number of epochs of each
    task; None: the study's number.
    """
    rates = config.learning_rates if len(config.learning_rates) > 1 else []
    grid = product(methods, rates, selection_of(config))
    return [Task(method, replicate, rate, epochs=epochs) for method, rate, replicate in grid]


def train_in_turn(
    config: Config,
    context: Context,
    tasks: Sequence[Task],
    start: Callable[[Task, float], ConvolutionalTrainer],
    images: int,
) -> Iterator[tuple[Task, ConvolutionalTrainer, dict[str, Any]]]:
    """Train one network after the other; yield task, trainer and a dictionary for each epoch.

    The dictionary has the columns of a row: replicate, learning_rate, epoch and the scores.
    Networks that do not choose learning rates are also yielded before their training, as epoch 0
    without scores. Their rows have the column `selected_on`, see `rate_choice.Choice`. After a
    checkpoint, earlier epochs are not yielded again.

    - tasks: the networks; trials come before the tasks that use their learning rates;
    - start: a function of a task and a learning rate that returns the task's trainer;
    - images: the number of training images, with which the remaining time is estimated.
    """
    rates, selection = config.learning_rates, selection_of(config)
    epochs = [task.epochs or config.epochs for task in tasks]
    steps = images // config.batch_size
    scores = torch.zeros(len(tasks), dtype=torch.float64)  # sums over epochs, by network
    first, restored = 0, context.restored
    if restored is not None:
        first = int(restored["task"])
        scores.copy_(restored["scores"])

    def chosen(method: str) -> Choice:
        """Return a method's learning rate, by the scores of its trials."""
        tried = [t.method == method and t.replicate in selection for t in tasks]
        return choose(rates, scores[tried].view(len(rates), -1), selection)

    with context.progress(steps * sum(epochs), "training", steps * sum(epochs[:first])) as bar:
        for index, task in enumerate(tasks[first:], start=first):
            bar.what = "choosing learning rates" if task.replicate in selection else "training"
            given = Choice(task.rate, NO_CHOICE) if task.rate else None
            choice = given or chosen(task.rate_of or task.method)
            trainer = start(task, choice.rate)
            columns: dict[str, Any] = {
                "replicate": task.replicate,
                "learning_rate": trainer.rate,
                "epoch": 0,
            }
            if task.replicate not in selection:
                columns["selected_on"] = choice.selected_on
            if restored is not None and index == first:
                trainer.restore(restored)
                bar.update(trainer.done)
            elif task.replicate not in selection:
                yield task, trainer, columns
            more = {"task": torch.tensor(index), "scores": scores}
            for epoch, measured in trainer.checkpointed(epochs[index], context, bar, more):
                values = [measured["train_accuracy"], measured["train_loss"]]
                scores[index] += score(*torch.tensor(values, dtype=torch.float64))
                yield task, trainer, columns | {"epoch": epoch} | measured
