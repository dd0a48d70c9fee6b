"""Study `rank_or_size`: which property of the last hidden layer lets a deep plain network learn?

The protocol is the one of paper B's figure 6: ReLU networks of 30 layers, Glorot normal weights,
pixels from 0 to 1, SGD without momentum. Figure 6 cannot separate the rank from other properties.
From PyTorch's initialization the biases are larger than the signal after 30 layers, so that all
images end at nearly the same vector. Here all biases begin at zero. The network is then
homogeneous: rescaling a layer changes the size of the activations, and neither their rank nor their
directions. One property is changed at a time. There are these families of initializations.

The rank and the directions, at size 1 (every layer has root mean square 1):

- `signed`: Glorot weights in every layer.
- `product`: the last hidden layer has the weights A B, where A has k columns and B has k rows. All
  entries are uniform on [0, 1], so that the activations have rank k.
- `copied`: the layer below the last one has k different units, copied. The last hidden layer has
  positive weights. This gives rank k by another construction.
- `flipped`: the absolute values of Glorot weights in the last hidden layer, with a fraction of the
  signs flipped. The rank stays high. The directions in which images differ grow in number.

The size, at one rank and with one set of directions:

- `sized`: every layer has the root mean square s.
- `unscaled`: Glorot weights as they are; the size falls from layer to layer. `even`: every layer
  has the size of the last layer of `unscaled`.
- `sized_layer_rates`, `unscaled_layer_rates`: the same networks. Each layer has a learning rate
  with which it changes relative to its size as at size 1 (`layer_rates`).

Networks of the paper, for comparison: `default_biases`, PyTorch's biases; `default_biases_unit`,
the same functions at size 1; `pixels_255`, default biases and pixels from 0 to 255; `batch_norm`;
`pretrained`, as in the authors' code for figure 6; `pretrained_small`, pre-trained weights
rescaled to the sizes of `default_biases`; and `size_of_pretrained`, the random weights and biases
of `default_biases`, rescaled to the sizes of `pretrained`.

Every network is trained at every learning rate of its grid. `tables.py` chooses the learning rate
on replicates that are not judged.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.studies import Context, Measured, network_name
from runner.data.datasets import Dataset
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import ascent, starts
from runner.papers.batch_norm_rank.images import probed, training_images
from runner.papers.batch_norm_rank.measures import last_hidden, ranks, root_mean_square
from runner.papers.batch_norm_rank.mlp_training import by_network, group, starting_stack
from runner.papers.batch_norm_rank.rank_or_size.config import RankOrSize as Config
from runner.papers.batch_norm_rank.rank_or_size.rows import BeforeTraining, TrainedEpoch
from runner.training.classification import Scores, StackTrainer
from runner.training.optimizers import Optimizer, Stacks

CPU = torch.device("cpu")

Factors = Mapping[str, Float[Tensor, " R"]]
"""Factors of the learning rate of each tensor of R networks, by the tensor's name."""


class Arm(NamedTuple):
    """A family of initializations, and its rank, fraction or size (0: the family has only one)."""

    family: str
    level: float = 0.0

    def __str__(self) -> str:
        return f"{self.family}/{self.level:g}" if self.level else self.family


class Start(NamedTuple):
    """Networks before training, one per replicate, and the factors of their learning rates."""

    network: MLP
    factors: Factors | None = None


@dataclass(frozen=True)
class Task:
    """Parameters, images and replicates of a run. The last replicates choose learning rates."""

    config: Config
    data: Dataset
    context: Context

    @cached_property
    def replicates(self) -> range:
        """Return all replicates; the selection replicates only if there are rates to choose."""
        config = self.config
        chooses = len(config.learning_rates) > 1
        return range(config.replicates + config.selection_replicates * chooses)

    @cached_property
    def X(self) -> Float[Tensor, "R features N"]:
        """Return the images on which networks are measured and rescaled, samples as columns."""
        images = probed(self.config, self.data).flat()
        return images.expand(len(self.replicates), -1, -1).mT

    def streams(self, purpose: str) -> list[torch.Generator]:
        """Return one random stream per replicate. purpose: its name, such as "product"."""
        return [self.config.stream(replicate, purpose) for replicate in self.replicates]

    def glorot(self, normalization: str = "none") -> MLP:
        """Return networks with Glorot normal weights and PyTorch's biases."""
        features, classes = self.X.shape[1], self.data.classes
        network = starting_stack(self.config, features, classes, normalization, self.replicates)
        starts.draw_glorot(network, self.streams("glorot"))
        return network.to(self.context.device)

    def unbiased(self) -> MLP:
        """Return networks with the same Glorot normal weights, and zero biases."""
        network = self.glorot()
        for layer in range(1, network.depth + 2):
            network.parameters[f"b{layer}"].zero_()
        return network

    @cached_property
    def pretrained(self) -> MLP:
        """Return networks that are pre-trained as in code_fig_6.ipynb.

        The layers 5, 9, ... take steps of descent on 1 / r of their pre-activations, one layer
        after the other, on one minibatch.
        """
        config, images, network = self.config, self.data.train.flat(), self.glorot()
        streams = self.streams("pretraining")
        drawn = [torch.randint(len(images), (config.batch_size,), generator=s) for s in streams]
        X, layers = (
            images[torch.stack(drawn).to(images.device)].mT,
            ascent.swept_layers(config.depth),
        )
        steps = config.pretraining_steps
        with self.context.progress(steps * len(layers), "pre-training", unit="steps") as bar:
            for layer in layers:
                for _ in range(steps):
                    ascent.descend(
                        network, X, layer, -1.0, config.pretraining_step, activated=False
                    )
                    bar.update(1)
        return network

    def drawn(self, purpose: str, *shape: int) -> Float[Tensor, "R *shape"]:
        """Return for each replicate a tensor of a shape with uniform numbers in [0, 1]."""
        streams = self.streams(purpose)
        drawn = [torch.rand(shape, generator=s, dtype=torch.float64) for s in streams]
        return torch.stack(drawn).to(self.context.device)


def run(config: Config, context: Context) -> Iterator[BeforeTraining | TrainedEpoch | Measured]:
    """Initialize, measure and train all networks; yield the rows of the tables.

    A run that continues from a checkpoint continues its training. Raises InputError for an unknown
    family or unavailable images.
    """
    task = Task(config, training_images(config, context).to(context.device), context)
    arms = [Arm(family, level) for family in config.families for level in config.levels(family)]
    networks = {arm: started(task, arm) for arm in arms}
    if context.restored is None:
        for arm, start in networks.items():
            yield from before_training(task, arm, start.network)
    yield from train(task, networks)


def started(task: Task, arm: Arm) -> Start:
    """Return the networks of an arm before training. Raises InputError for an unknown family."""
    return lookup("families", arm.family, BUILT)(task, arm.level)


def at_size(task: Task, network: MLP, size: float | Float[Tensor, " R"] = 1.0) -> MLP:
    """Rescale every hidden layer in place, so that its root mean square is `size`; return it."""
    sizes = task.X.new_ones(len(network)) * size
    starts.scale_layers(network, task.X, [sizes] * network.depth)
    return network


def of_product(task: Task, k: float) -> Start:
    """Return networks at size 1 whose last hidden layer has the positive weights A B of rank k."""
    network, d = task.unbiased(), task.config.width
    A, B = task.drawn("product", 2, d, int(k)).unbind(1)
    network.parameters[f"W{network.depth}"].copy_(A @ B.mT)
    return Start(at_size(task, network))


def of_copies(task: Task, k: float) -> Start:
    """Return networks at size 1 with k different units, copied, below positive weights.

    The k units are those with the largest mean activation.
    """
    network, d = task.unbiased(), task.config.width
    *_, below, _ = network.hidden(task.X.mT)
    chosen = below.mean(-1).argsort(dim=1, descending=True)[:, torch.arange(d) % int(k)]
    W = network.parameters[f"W{network.depth - 1}"]
    W.copy_(W.gather(1, chosen[..., None].expand_as(W)))
    network.parameters[f"W{network.depth}"].copy_(task.drawn("copied", d, d))
    return Start(at_size(task, network))


def of_flips(task: Task, fraction: float) -> Start:
    """Return networks at size 1 with positive last weights, of which a fraction is negated."""
    network, d = task.unbiased(), task.config.width
    W = network.parameters[f"W{network.depth}"]
    W.copy_(torch.where(task.drawn("flipped", d, d) < fraction, -W.abs(), W.abs()))
    return Start(at_size(task, network))


def with_layer_rates(task: Task, network: MLP) -> Start:
    """Return networks with the factors of `layer_rates`."""
    return Start(network, layer_rates(network, task.X))


def layer_rates(network: MLP, X: Float[Tensor, "R features N"]) -> Factors:
    """Return factors of the learning rates with which each layer moves as far as at size 1.

    X: inputs, samples as columns. Let s_l be the size of layer l, with s_0 = 1, and s the size of
    the last hidden layer. In a homogeneous network the weights are `W_l = c_l U_l` and the biases
    `b_l = s_l u_l`, where U and u are those of the network at size 1, and `c_l = s_l / s_{l-1}`.
    The logits are s times as large. The gradient by W_l is therefore s / c_l times the gradient by
    U_l, apart from the derivative of the loss by the logits. With the factor c_l^2 / s, W_l / c_l
    moves as U_l does. For b_l the factor is s_l^2 / s.
    """
    sizes = [X.new_ones(len(network)), *starts.sizes(network, X)]
    sizes.append(sizes[-1])  # the logits
    s, factors = sizes[-1], {}
    for layer in range(1, network.depth + 2):
        c = sizes[layer] / sizes[layer - 1]
        factors |= {f"W{layer}": c**2 / s, f"b{layer}": sizes[layer] ** 2 / s}
    return factors


def even(task: Task) -> MLP:
    """Return networks in which every layer has the size of the last unscaled layer."""
    network = task.unbiased()
    *_, last = starts.sizes(network, task.X)
    return at_size(task, network, last)


def same_functions(task: Task, network: MLP) -> MLP:
    """Rescale weights and biases in place to size 1, keeping all activations' directions.

    `starts.scale_layers` would change the ratio of signal and biases.
    """
    below = task.X.new_ones(len(network))
    for layer, size in enumerate([*starts.sizes(network, task.X)], start=1):
        W, b = (network.parameters[f"{name}{layer}"] for name in ("W", "b"))
        W *= (below / size)[:, None, None]
        b /= size[:, None]
        below = size
    return network


def with_larger_pixels(task: Task, factor: float = 255.0) -> Start:
    """Return networks as if all pixels were multiplied by a factor.

    The factor multiplies W_1 instead. A step on W_1 is then larger by the square of the factor.
    """
    network = task.glorot()
    network.parameters["W1"] *= factor
    one = task.X.new_ones(len(network))
    factors = dict.fromkeys(network.parameters, one) | {"W1": factor**2 * one}
    return Start(network, factors)


def at_sizes_of(task: Task, network: MLP, other: MLP) -> Start:
    """Rescale every hidden layer in place to the size of another network's layer; return it."""
    starts.scale_layers(network, task.X, [*starts.sizes(other, task.X)])
    return Start(network)


BUILT: dict[str, Callable[[Task, float], Start]] = {
    "signed": lambda task, _: Start(at_size(task, task.unbiased())),
    "product": of_product,
    "copied": of_copies,
    "flipped": of_flips,
    "sized": lambda task, size: Start(at_size(task, task.unbiased(), size)),
    "sized_layer_rates": lambda task, size: with_layer_rates(
        task, at_size(task, task.unbiased(), size)
    ),
    "even": lambda task, _: Start(even(task)),
    "unscaled": lambda task, _: Start(task.unbiased()),
    "unscaled_layer_rates": lambda task, _: with_layer_rates(task, task.unbiased()),
    "default_biases": lambda task, _: Start(task.glorot()),
    "default_biases_unit": lambda task, _: Start(same_functions(task, task.glorot())),
    "pixels_255": lambda task, _: with_larger_pixels(task),
    "batch_norm": lambda task, _: Start(task.glorot("batch")),
    "pretrained": lambda task, _: Start(task.pretrained.map(torch.clone)),
    "pretrained_small": lambda task, _: at_sizes_of(
        task, task.pretrained.map(torch.clone), task.glorot()
    ),
    "size_of_pretrained": lambda task, _: at_sizes_of(task, task.glorot(), task.pretrained),
}
"""Functions from a task and a level to networks before training, by family."""


def before_training(task: Task, arm: Arm, network: MLP) -> Iterator[BeforeTraining]:
    """Yield what the last hidden layer is before training, a row for each replicate.

    The rank is measured in the precision of the training. Deviations are measured in double
    precision, because they may be smaller than the rounding errors of the activations.
    """
    H = last_hidden(network, task.X.mT)
    exact = last_hidden(network.map(torch.Tensor.double), task.X.mT.double())
    deviations = exact - exact.mean(-1, keepdim=True)
    measured, of_deviations = ranks(H, task.config.tau), ranks(deviations)
    size = root_mean_square(exact)
    columns = {
        "rank": measured.matrix_rank,
        "soft_rank": measured.soft_rank,
        "rank_bound": measured.rank_bound,
        "deviations_bound": of_deviations.rank_bound,
        "size": size,
        "spread": root_mean_square(deviations) / size,
    }
    for replicate, row in zip(task.replicates, by_network(columns), strict=True):
        yield BeforeTraining(*arm, replicate, replicate < task.config.replicates, **row)


class LayerRates(Optimizer):
    """Gradient descent in which each tensor's learning rate has a factor for each network."""

    def __init__(self, parameters: Stacks, factors: Factors) -> None:
        super().__init__(parameters)
        self.factors = factors

    def step(self, gradients: Stacks, rates: Float[Tensor, " R"]) -> None:
        """Take one step of gradient descent in place. rates: R learning rates without factors."""
        for name, gradient in gradients.items():
            step = self._along(rates * self.factors[name], gradient)
            self.parameters[name].sub_(step * gradient)


def train(task: Task, networks: Mapping[Arm, Start]) -> Iterator[TrainedEpoch | Measured]:
    """Train all networks together, each at every learning rate; yield a row per epoch.

    The rows of the user's function `measure`, if there is one, are yielded, too.
    """
    config, context, rates = task.config, task.context, task.config.learning_rates
    groups = {
        str(arm): group(start.network.to(CPU), rates, task.replicates)
        for arm, start in networks.items()
    }
    trainer = StackTrainer(
        groups,
        task.data,
        config.batch_size,
        config.epochs,
        config.streams().generator,
        context,
        config.optimizer,
    )
    for arm, start in networks.items():
        if start.factors is not None:
            stack = trainer.groups[str(arm)]
            factors = {n: f.to(stack.rates).repeat(len(rates)) for n, f in start.factors.items()}
            trainer.optimizers[str(arm)] = LayerRates(stack.network.parameters, factors)
    for epoch, scores in trainer.run():
        for arm in networks:
            yield from epoch_rows(task, trainer, arm, epoch, scores[str(arm)])


def epoch_rows(
    task: Task, trainer: StackTrainer, arm: Arm, epoch: int, scores: Scores
) -> Iterator[TrainedEpoch | Measured]:
    """Yield the rows of an arm at the end of an epoch, for each learning rate and replicate."""
    config, network = task.config, trainer.groups[str(arm)].network
    members = product(config.learning_rates, task.replicates)
    images = task.X[0].mT
    for r, ((rate, replicate), row) in enumerate(
        zip(members, by_network(vars(scores)), strict=True)
    ):
        judged = replicate < config.replicates
        yield TrainedEpoch(*arm, replicate, judged, rate, epoch, **row)
        if judged:
            name = network_name(str(arm), width=config.width, learning_rate=f"{rate:g}")
            traced = partial(network.traced, r, images)
            yield from task.context.hand_over(name, replicate, epoch, traced)
