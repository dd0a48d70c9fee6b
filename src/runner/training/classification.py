"""Train many classifiers together: the same minibatches, cross entropy, SGD or another optimizer.

All groups of networks see a replicate's data in the same order. Images, orders and sums stay on the
device. The host waits for the device once per epoch.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.core.progress import Stage
from runner.core.streams import Stream
from runner.core.studies import Context
from runner.data.datasets import Dataset, Images
from runner.networks.mlp import MLP
from runner.training import backpropagation
from runner.training.accuracies import accuracy
from runner.training.images import EVALUATED_AT_ONCE, EpochTrainer
from runner.training.optimizers import Optimizer, optimizer_of


@dataclass
class Group:
    """R networks that are trained together.

    rates: the learning rate of each network.
    """

    network: MLP
    rates: Float[Tensor, " R"]
    replicates: Int[Tensor, " R"]
    """The index of each network's replicate, from 0. Networks with the same index see the data in
    the same order."""

    def to(self, device: torch.device) -> "Group":
        """Return a copy on a device. The learning rates get the dtype of the networks."""
        rates = self.rates.to(device, self.network.parameters["W1"].dtype)
        return Group(self.network.to(device), rates, self.replicates.to(device))


@dataclass(frozen=True)
class Scores:
    """Training loss and accuracy of R networks, averaged over the minibatches of an epoch.

    Each minibatch is measured before the step on it. Networks that have diverged have the accuracy
    nan.
    """

    train_loss: Float[Tensor, " R"]
    train_accuracy: Float[Tensor, " R"]


def loss_and_hits(
    logits: Float[Tensor, "R classes N"], labels: Int[Tensor, "R N"]
) -> tuple[Float[Tensor, " R"], Int[Tensor, " R"]]:
    """Return each network's mean cross entropy in nats, and its number of correct predictions."""
    losses = functional.cross_entropy(logits, labels, reduction="none")
    return losses.mean(-1), (logits.argmax(1) == labels).sum(-1)


def sgd_step(
    losses: Float[Tensor, " R"], parameters: Iterable[Tensor], rates: Float[Tensor, " R"]
) -> None:
    """Take one step of gradient descent on the losses of R networks, in place.

    Network r changes by `theta_r -= rates_r * d losses_r / d theta_r`. A diverging network does not
    change the others. For ascent, negate the losses.

    losses: computed from `parameters`. parameters: tensors (R, ...) that require gradients. The
    losses are multiplied by the rates before they are differentiated. Scaling the gradients
    therefore costs nothing.
    """
    parameters = list(parameters)
    gradients = torch.autograd.grad(losses @ rates, parameters)
    with torch.no_grad():
        torch._foreach_sub_(parameters, gradients)


def descend(
    network: MLP,
    x: Float[Tensor, "R N features"],
    labels: Int[Tensor, "R N"],
    rates: Float[Tensor, " R"],
    optimizer: Optimizer | None = None,
) -> tuple[Float[Tensor, " R"], Int[Tensor, " R"]]:
    """Take one step on the cross entropy in place; return the result of `loss_and_hits` before it.

    x, labels: a minibatch for each network. rates: the learning rate of each network. optimizer: an
    optimizer of the network's parameters; None: SGD. Automatic differentiation is used only with an
    optimizer, or if `backpropagation.step` cannot train the network.
    """
    if optimizer is None and backpropagation.is_written_out_for(network):
        return loss_and_hits(backpropagation.step(network, x, labels, rates), labels)
    parameters = [tensor.requires_grad_() for tensor in network.parameters.values()]
    losses, hits = loss_and_hits(network.logits(x), labels)
    if optimizer is None:
        sgd_step(losses, parameters, rates)
    else:
        gradients = torch.autograd.grad(losses.sum(), parameters)
        with torch.no_grad():
            optimizer.step(dict(zip(network.parameters, gradients, strict=True)), rates)
    return losses.detach(), hits


class StackTrainer(EpochTrainer[dict[str, Scores]]):
    """Trainer of several groups of networks on one dataset.

    If `context` has a checkpoint, the trainer continues from it.

    - groups: the groups by name;
    - stream: a function of a replicate and a purpose that returns a random generator;
    - optimizer: the optimizer's name.

    Raises InputError for an unknown optimizer.
    """

    def __init__(
        self,
        groups: dict[str, Group],
        data: Dataset,
        batch_size: int,
        epochs: int,
        stream: Stream,
        context: Context,
        optimizer: str = "sgd",
    ) -> None:
        """Prepare the training; copy groups and data to the device of the context."""
        replicates = 1 + max(int(group.replicates.max()) for group in groups.values())
        super().__init__(data.to(context.device), batch_size, stream, replicates)
        self.groups = {name: group.to(self.device) for name, group in groups.items()}
        self.epochs, self.context = epochs, context
        self.optimizers: dict[str, Optimizer] = {}
        if optimizer != "sgd":
            self.optimizers = {
                n: optimizer_of(optimizer, g.network.parameters) for n, g in self.groups.items()
            }
        self.sums = {
            name: torch.zeros(2, len(group.network), dtype=torch.float64, device=self.device)
            for name, group in self.groups.items()
        }
        if context.restored is not None:
            self.restore(context.restored)

    def run(self, stage: Stage = "training") -> Iterator[tuple[int, dict[str, Scores]]]:
        """Train all groups; after every epoch, yield its number and the scores of each group.

        Epochs are counted from 1. After a resume, the first epoch is the one that the checkpoint
        has not finished. stage: the text of the progress bar.
        """
        with self.context.progress(self.epochs * self.steps, stage, self.done) as bar:
            yield from self.checkpointed(self.epochs, self.context, bar)

    def train_on(self, chosen: Int[Tensor, "S B"]) -> Float[Tensor, " R"]:
        """Take one step for every group; return the losses of all networks before the step.

        chosen: for each of S replicates, the indices of the B training images in its minibatch.
        """
        images, parts = self.data.train, []
        for name, group in self.groups.items():
            indices = chosen[group.replicates]
            x, labels = images.flat()[indices].to(group.rates.dtype), images.labels[indices]
            optimizer = self.optimizers.get(name)
            losses, hits = descend(group.network, x, labels, group.rates, optimizer)
            self.sums[name] += torch.stack([losses.double(), hits.double()])
            parts.append(losses)
        return torch.cat(parts)

    def end_epoch(self) -> dict[str, Scores]:
        """Return the scores of each group in the finished epoch, and begin new sums."""
        scores = {}
        for name in self.groups:
            loss, hits = (self.sums[name] / self.steps).cpu()
            scores[name] = Scores(loss, accuracy(hits / self.batch_size, loss))
            self.sums[name].zero_()
        return scores

    def _own(self) -> dict[str, Tensor]:
        return {
            f"{name}/{key}": tensor
            for name, group in self.groups.items()
            for key, tensor in (group.network.state() | {"sums": self.sums[name]}).items()
        } | {
            f"{name}/optimizer/{key}": tensor
            for name, optimizer in self.optimizers.items()
            for key, tensor in optimizer.stored().items()
        }

    def restore(self, state: Mapping[str, Tensor]) -> None:
        """Continue from a result of the method `state`."""
        for name, optimizer in self.optimizers.items():
            first = f"{name}/optimizer/"
            own = {key: tensor for key, tensor in state.items() if key.startswith(first)}
            optimizer.restore({key.removeprefix(first): own[key] for key in own})
        super().restore(state)


@torch.no_grad()
def evaluate(network: MLP, images: Images) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """Return the mean loss and the accuracy of each network on all images.

    Both are tensors on the CPU in float64, nan for networks that have diverged. Batch normalization
    uses its running statistics.
    """
    R, dtype = len(network), network.parameters["W1"].dtype
    inputs, device = images.flat(), images.labels.device
    sums = torch.zeros(2, R, dtype=torch.float64, device=device)
    for start in range(0, len(images), EVALUATED_AT_ONCE):
        chosen = slice(start, start + EVALUATED_AT_ONCE)
        x, labels = inputs[chosen].to(dtype), images.labels[chosen]
        logits = network.logits(x.expand(R, -1, -1), "evaluate")
        losses, hits = loss_and_hits(logits, labels.expand(R, -1))
        sums += torch.stack([losses.double() * len(x), hits.double()])
    loss, right = (sums / len(images)).cpu()
    return loss, accuracy(right, loss)
