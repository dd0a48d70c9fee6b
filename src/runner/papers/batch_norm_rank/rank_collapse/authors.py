"""Figure 1 as the authors' code computes it, where that differs from what the text says of it.

`code_fig_1.py` of github.com/jonaskohler/Batchnorm_prevents_rank_collpase:

- pixels in [0, 1]; minibatches drawn with replacement;
- without batch norm: torch's layers, SGD at the rate 0.01 whatever the depth;
- with batch norm: layers without biases; each unit less its mean over the minibatch, over its
  unbiased standard deviation, before the ReLU; nothing is learned of it, and no epsilon; Adam, at a
  rate for each range of depths;
- accuracy: on 1000 training images, drawn with replacement, by the statistics of these;
- rank: of the last hidden layer on the first minibatch.

What is trained is a stack of replicates, `H_l (R, d, N)` with samples as columns.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.core.streams import generator
from runner.core.studies import Context
from runner.data.datasets import Dataset, Images
from runner.networks.initialization import draw
from runner.papers.batch_norm_rank.measures import Ranks, ranks, root_mean_square
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.training.classification import Scores, loss_and_hits
from runner.training.images import EpochTrainer
from runner.training.optimizers import SGD, Adam, Optimizer

RATE_OF_SGD = 0.01
RATES_OF_ADAM = {1: 0.01, 9: 0.05, 23: 0.005, 31: 0.0005}
"""From so many hidden layers on; the argument of their script is one less."""

SCORED = 1000
"""Images that an accuracy is measured on."""


@dataclass
class Networks:
    """One network per replicate, all with batch norm or all without.

    parameters: `W1 (R, d, features)` to `W{L+1} (R, classes, d)`; without batch norm the biases
    `b1` to `b{L+1}`, too.
    """

    parameters: dict[str, Float[Tensor, "R *axes"]]
    depth: int
    normalized: bool

    @classmethod
    def start(
        cls, config: RankCollapse, normalization: str, features: int, classes: int
    ) -> "Networks":
        """As torch starts them; those of one replicate from the same draws with and without."""
        sizes = [features, *[config.width] * config.depth, classes]
        streams = [generator(config.seed, r, "initialisation") for r in range(config.replicates)]
        weights, biases = draw("pytorch", sizes, streams)
        normalized = normalization == "batch"
        parameters = {f"W{layer}": W for layer, W in enumerate(weights, start=1)}
        if not normalized:
            parameters |= {f"b{layer}": b for layer, b in enumerate(biases, start=1)}
        return cls(parameters, config.depth, normalized)

    def optimizer(self) -> tuple[Optimizer, float]:
        """What trains them, and at which rate."""
        if not self.normalized:
            return SGD(self.parameters), RATE_OF_SGD
        last = max(first for first in RATES_OF_ADAM if first <= self.depth)
        return Adam(self.parameters), RATES_OF_ADAM[last]

    def hidden(self, x: Float[Tensor, "R N features"]) -> Iterator[Float[Tensor, "R _ N"]]:
        """`H_0`, the input, to `H_L`, by the statistics of these N."""
        H = x.mT
        yield H
        for layer in range(1, self.depth + 1):
            Z = self._affine(layer, H)
            if self.normalized:
                Z = (Z - Z.mean(dim=-1, keepdim=True)) / Z.std(dim=-1, keepdim=True)
            H = torch.relu(Z)
            yield H

    def last_hidden(self, x: Float[Tensor, "R N features"]) -> Float[Tensor, "R d N"]:
        """`H_L`, by the statistics of these N."""
        *_, H = self.hidden(x)
        return H

    @torch.no_grad()
    def ranks_by_layer(
        self, x: Float[Tensor, "R N features"], tau: float
    ) -> Iterator[tuple[int, Ranks, Float[Tensor, " R"]]]:
        """Layer, ranks and root mean square of `H_0`, the input, to `H_L`."""
        for layer, H in enumerate(self.hidden(x)):
            yield layer, ranks(H, tau), root_mean_square(H).cpu()

    def logits(self, x: Float[Tensor, "R N features"]) -> Float[Tensor, "R classes N"]:
        """The outputs of the classifier."""
        return self._affine(self.depth + 1, self.last_hidden(x))

    def _affine(self, layer: int, H: Float[Tensor, "R _ N"]) -> Float[Tensor, "R _ N"]:
        Z, b = self.parameters[f"W{layer}"] @ H, self.parameters.get(f"b{layer}")
        return Z if b is None else Z + b[..., None]


class Trainer(EpochTrainer[Scores]):
    """Trains the networks of one normalization; goes on from a state."""

    def __init__(
        self, networks: Networks, data: Dataset, config: RankCollapse, context: Context
    ) -> None:
        """Networks and data are moved to the device of the context."""
        device = context.device
        super().__init__(data.to(device), config.batch_size, config.seed, config.replicates)
        tensors = {name: W.to(device) for name, W in networks.parameters.items()}
        self.networks = replace(networks, parameters=tensors)
        self.optimizer, self.rate = self.networks.optimizer()
        self.rates = torch.full((config.replicates,), self.rate, device=device)
        self.losses = torch.zeros(config.replicates, device=device, dtype=torch.float64)

    def order(self) -> Int[Tensor, "R n"]:
        """The images of all minibatches of this epoch, drawn with replacement."""
        return self._drawn(f"minibatches of epoch {self.epoch}", self.steps * self.batch_size)

    def first_minibatch(self) -> Float[Tensor, "R B features"]:
        """What ranks are measured on: the first images that each replicate is trained on."""
        chosen = self._drawn("minibatches of epoch 1", self.batch_size)
        return self.data.train.flat()[chosen].float()

    def train_on(self, chosen: Int[Tensor, "R B"]) -> Float[Tensor, " R"]:
        """One step; the losses before it."""
        parameters = self.networks.parameters
        images, labels = self.data.train.flat()[chosen].float(), self.data.train.labels[chosen]
        leaves = [tensor.requires_grad_() for tensor in parameters.values()]
        losses = functional.cross_entropy(
            self.networks.logits(images), labels, reduction="none"
        ).mean(dim=-1)
        gradients = torch.autograd.grad(losses.sum(), leaves)
        with torch.no_grad():
            self.optimizer.step(dict(zip(parameters, gradients, strict=True)), self.rates)
        self.losses += losses.detach()
        return losses.detach()

    def end_epoch(self) -> Scores:
        """Mean loss of the minibatches; accuracy on images of their own."""
        loss = (self.losses / self.steps).cpu()
        self.losses.zero_()
        return Scores(loss, self.score(self.data.train, "training")[1])

    @torch.no_grad()
    def score(self, images: Images, which: str) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
        """Loss and accuracy on 1000 images, drawn with replacement, by their own statistics."""
        chosen = self._drawn(f"{which} images scored in epoch {self.epoch}", SCORED, len(images))
        x, labels = images.flat()[chosen].float(), images.labels[chosen]
        losses, hits = loss_and_hits(self.networks.logits(x), labels)
        return losses.double().cpu(), hits.double().cpu() / SCORED

    def _drawn(self, purpose: str, count: int, of: int | None = None) -> Int[Tensor, "R count"]:
        streams = [generator(self.seed, r, purpose) for r in range(self.replicates)]
        n = of or len(self.data.train)
        drawn = torch.stack([torch.randint(n, (count,), generator=each) for each in streams])
        return drawn.to(self.device)

    def state(self) -> dict[str, Tensor]:
        """What training goes on from."""
        return self.position() | {name: tensor.detach() for name, tensor in self._own().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Go on from a state."""
        self.go_to(state)
        for name, tensor in self._own().items():
            tensor.detach().copy_(state[name])

    def _own(self) -> dict[str, Tensor]:
        return self.networks.parameters | self.optimizer.state | {"losses": self.losses}
