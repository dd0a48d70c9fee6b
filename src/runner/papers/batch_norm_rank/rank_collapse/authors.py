"""Figures 1 and 2 as the authors' code computes them, where it differs from the paper's text.

The code is github.com/jonaskohler/Batchnorm_prevents_rank_collpase. `layers_of_figure_2` follows
`code_fig_2.ipynb`. The rest of this module follows `code_fig_1.py`:

- Pixels are in [0, 1]. Minibatches are drawn with replacement.
- Networks without batch norm have torch's layers. SGD has the learning rate 0.01 for all depths.
- Networks with batch norm have layers without biases. Before the ReLU, the mean over the minibatch
  is subtracted from each unit. The result is divided by the unbiased standard deviation. There are
  no trained scales or shifts and no epsilon. Adam has a learning rate for each range of depths.
- Accuracy is measured on 1000 training images, drawn with replacement, with the statistics of these
  images.
- The rank is that of the last hidden layer on the first minibatch.

Replicates are trained together. Hidden layers are `H_l (R, d, N)` with R replicates, d units, and N
samples as columns.
"""

from collections.abc import Iterator
from math import sqrt

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.core.studies import Context
from runner.data.datasets import Dataset, Images
from runner.networks.activations import activation_of
from runner.networks.initialization import draw
from runner.networks.mlp import MLP, Mode
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.training.accuracies import accuracy
from runner.training.backpropagation import gradients, is_written_out_for
from runner.training.classification import Scores, loss_and_hits
from runner.training.images import EpochTrainer
from runner.training.optimizers import SGD, Adam

RATE_OF_SGD = 0.01
RATES_OF_ADAM = {1: 0.01, 9: 0.05, 23: 0.005, 31: 0.0005}
"""Learning rate of Adam by the smallest number of hidden layers for which it is used.

The argument of the authors' script is the number of hidden layers minus one.
"""

SCORED = 1000
"""Number of images on which an accuracy is measured."""


class Networks(MLP):
    """One network per replicate, all with batch norm or all without.

    Each of the R networks has L hidden layers of d units. parameters: the weights `W1 (R, d,
    features)` to `W{L+1} (R, classes, d)`; without batch norm also the biases `b1` to `b{L+1}`.
    """

    def __init__(self, config: RankCollapse, normalization: str, data: Dataset) -> None:
        """Initialize as torch does. A replicate's draws are equal with and without batch norm."""
        sizes = [data.train.flat().shape[1], *[config.width] * config.depth, data.classes]
        streams = [config.stream(r, "initialisation") for r in range(config.replicates)]
        weights, biases = draw("pytorch", sizes, streams)
        super().__init__(weights, biases, "relu", normalization)
        if self.centred:
            self.parameters = {f"W{layer}": W for layer, W in enumerate(weights, start=1)}
            self.running = {}

    def as_mlp(self, batch_size: int) -> MLP:
        """Return an MLP that shares these parameters and computes the same outputs on minibatches.

        With batch norm, its scales make the standard deviations of minibatches of `batch_size`
        images unbiased.
        """
        weights = [self.parameters[f"W{layer}"] for layer in range(1, self.depth + 2)]
        zeros = [W.new_zeros(W.shape[:2]) for W in weights]
        biases = [self.parameters.get(f"b{n}", zero) for n, zero in enumerate(zeros, start=1)]
        same = MLP(weights, biases, "relu", self.normalization)
        same.parameters |= self.parameters
        for layer in range(1, self.depth + 1) if self.centred else ():
            same.parameters[f"scale{layer}"].fill_(sqrt(1 - 1 / batch_size))
        return same

    def layer(
        self, layer: int, H: Float[Tensor, "R _ N"], mode: Mode = "probe"
    ) -> Float[Tensor, "R d N"]:
        """Return the hidden representations of a layer.

        H: representations one layer below, the N samples as columns. Batch norm uses the statistics
        of these N samples in every mode.
        """
        Z = self._affine(layer, H)
        if self.centred:
            Z = (Z - Z.mean(dim=-1, keepdim=True)) / Z.std(dim=-1, keepdim=True)
        return torch.relu(Z)

    def _affine(self, layer: int, H: Float[Tensor, "R _ N"]) -> Float[Tensor, "R _ N"]:
        Z, b = self.parameters[f"W{layer}"] @ H, self.parameters.get(f"b{layer}")
        return Z if b is None else Z + b[..., None]


class Trainer(EpochTrainer[Scores]):
    """Trainer of the networks of one normalization, as in the authors' code for figure 1.

    A trainer can continue from a checkpoint.
    """

    def __init__(
        self, normalization: str, data: Dataset, config: RankCollapse, context: Context
    ) -> None:
        """Initialize the networks; move them and the data to the device of the context."""
        data = data.to(context.device)
        super().__init__(data, config.batch_size, config.streams().generator, config.replicates)
        self.networks = Networks(config, normalization, data).to(self.device)
        if self.networks.centred:
            since = max(depth for depth in RATES_OF_ADAM if depth <= config.depth)
            self.optimizer, self.rate = Adam(self.networks.parameters), RATES_OF_ADAM[since]
        else:
            self.optimizer, self.rate = SGD(self.networks.parameters), RATE_OF_SGD
        self.rates = torch.full(
            (config.replicates,), self.rate, dtype=torch.float32, device=self.device
        )
        self.written_out = self.networks.as_mlp(config.batch_size)
        self.losses = torch.zeros(config.replicates, device=self.device, dtype=torch.float64)

    def order(self) -> Int[Tensor, "R n"]:
        """Return the images of all minibatches of this epoch, drawn with replacement.

        The result has a row for each of the R replicates, with the numbers of images in the
        training data.
        """
        return self._drawn(f"minibatches of epoch {self.epoch}", self.steps * self.batch_size)

    def first_minibatch(self) -> Float[Tensor, "R B features"]:
        """Return the first minibatch of each replicate, on whose images ranks are measured."""
        chosen = self._drawn("minibatches of epoch 1", self.batch_size)
        return self.data.train.flat()[chosen].float()

    def train_on(self, chosen: Int[Tensor, "R B"]) -> Float[Tensor, " R"]:
        """Train all networks for one step; return the loss of each network before the step.

        chosen: for each replicate the numbers of the B images of its minibatch.
        """
        parameters = self.networks.parameters
        images, labels = self.data.train.flat()[chosen].float(), self.data.train.labels[chosen]
        if is_written_out_for(self.written_out):
            logits, gradients_of_weights = gradients(self.written_out, images, labels, epsilon=0.0)
            losses, _ = loss_and_hits(logits, labels)
        else:
            leaves = [tensor.requires_grad_() for tensor in parameters.values()]
            losses, _ = loss_and_hits(self.networks.logits(images), labels)
            gradients_of_weights = dict(
                zip(parameters, torch.autograd.grad(losses.sum(), leaves), strict=True)
            )
        with torch.no_grad():
            self.optimizer.step(
                {name: gradients_of_weights[name] for name in parameters}, self.rates
            )
        self.losses += losses.detach()
        return losses.detach()

    def end_epoch(self) -> Scores:
        """Return the epoch's mean loss, and the accuracy on separately drawn training images."""
        loss = (self.losses / self.steps).cpu()
        self.losses.zero_()
        return Scores(loss, accuracy(self.score(self.data.train, "training")[1], loss))

    @torch.no_grad()
    def score(self, images: Images, which: str) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
        """Return each network's loss and accuracy on 1000 of the images, drawn with replacement.

        Batch norm uses the statistics of these 1000 images. which: "training" or "test", part of
        the name of the random stream.
        """
        chosen = self._drawn(f"{which} images scored in epoch {self.epoch}", SCORED, len(images))
        x, labels = images.flat()[chosen].float(), images.labels[chosen]
        losses, hits = loss_and_hits(self.networks.logits(x), labels)
        losses = losses.double().cpu()
        return losses, accuracy(hits.double().cpu() / SCORED, losses)

    def _drawn(self, purpose: str, count: int, total: int | None = None) -> Int[Tensor, "R count"]:
        streams = (self.stream(replicate, purpose) for replicate in range(self.replicates))
        n = total or len(self.data.train)
        drawn = torch.stack([torch.randint(n, (count,), generator=stream) for stream in streams])
        return drawn.to(self.device)

    def _own(self) -> dict[str, Tensor]:
        return self.networks.parameters | self.optimizer.state | {"losses": self.losses}


def layers_of_figure_2(
    x: Float[Tensor, "R d N"], activation: str, streams: list[torch.Generator]
) -> Iterator[dict[str, Float[Tensor, "R d N"]]]:
    """Yield for each layer the matrices whose rank figure 2 shows, by normalization.

    The iterator does not end. The weights W are uniform with variance one, and equal with and
    without batch norm. There are as many samples as units (N = d).

    - `none`, without batch norm: H becomes `W sigma(H)`, divided by its Frobenius norm. The rank is
      measured before the activation sigma.
    - `batch`, with batch norm: H becomes `sigma(BN(W H))`, with mean subtraction. The rank is
      measured after the activation.

    x: inputs, samples as columns. activation: the name of sigma. streams: one random stream for
    each of the R networks.
    """
    sigma, H, plain = activation_of(activation).function, x, x
    W = torch.empty(len(x), *[x.shape[1]] * 2, dtype=x.dtype)
    while True:
        for matrix, stream in zip(W, streams, strict=True):
            matrix.uniform_(-sqrt(3), sqrt(3), generator=stream)
        weights = W.to(x.device)
        plain = weights @ sigma(plain.clone())
        plain = plain / torch.linalg.matrix_norm(plain, keepdim=True)
        Z = weights @ H
        Z = Z - Z.mean(-1, keepdim=True)
        H = sigma(Z / Z.square().mean(-1, keepdim=True).sqrt())
        yield {"none": plain, "batch": H}
