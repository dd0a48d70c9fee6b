"""Study `pretraining`: raising r before training, compared with batch norm.

It is the protocol of paper B, Section 4, figures 4, 6, 11 and 12.

ReLU networks of one shape start from the same random draws. Pre-training raises r, the lower bound
(4) of the rank of a hidden representation, on M minibatches without labels. SGD then trains the
network. The study compares this network with the plain network (`vanilla`, M = 0) and with batch
norm. Networks with batch norm start from the usual and from an asymmetric initialization. The
protocols are:

- `authors`, figure 4 (`script=fig4`): pixels 0 to 255, Glorot normal weights; descent on r^{-1/2}
  of the last hidden layer, over all layers.
- `authors`, figure 6 (`script=fig6`): pixels 0 to 1; descent on 1/r of the pre-activations of
  layers 5, 9, ..., one after the other; batch norm before tanh.
- `text`: ascent on r(H_l) in each layer, from torch's initialization.
- `ours`: as `text`, with rotations by a fixed angle, at unit scale.

Controls are further methods. `scale_matched` has random weights. Each layer is scaled to the root
mean square of the pre-trained network's layer. The other controls are `unit_scale`, `he`, and the
published orthogonalization with the power 1 and 1/2 of the singular values.

Every network is trained at every learning rate of its grid. `tables.py` chooses one learning rate
on the selection replicates, which are not judged. The step size of pre-training is chosen on the
same replicates by r, before any training.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from math import inf, isnan
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.choices import lookup
from runner.core.errors import InputError
from runner.core.studies import Context, Measured, network_name
from runner.data.datasets import Dataset, Images
from runner.networks import modules
from runner.networks.mlp import MLP, Mode
from runner.papers.batch_norm_rank import ascent, starts
from runner.papers.batch_norm_rank.images import probed, training_images
from runner.papers.batch_norm_rank.measures import ranks_by_layer
from runner.papers.batch_norm_rank.mlp_training import by_network, group, last_ranks, starting_stack
from runner.papers.batch_norm_rank.pretraining.config import METHODS
from runner.papers.batch_norm_rank.pretraining.config import Pretraining as Config
from runner.papers.batch_norm_rank.pretraining.rows import LayerRank, TrainedEpoch
from runner.training.accuracies import accuracy
from runner.training.classification import Scores, StackTrainer, loss_and_hits
from runner.training.cuda_graph import Captured

CPU = torch.device("cpu")

LARGEST_WEIGHT = 0.1
"""Largest weight of the authors' asymmetric initialization: parameters are uniform on [0, 0.1]."""


class Variant(NamedTuple):
    """A method and M, the length of its pre-training (0: none)."""

    method: str
    steps: int = 0

    def __str__(self) -> str:
        return f"{self.method}/{self.steps}" if self.steps else self.method


class Task(NamedTuple):
    """Parameters, images and replicates of a run.

    The first replicates give the results. The others only choose learning rates and step sizes.
    """

    config: Config
    data: Dataset
    replicates: range
    context: Context

    def streams(self, purpose: str) -> list[torch.Generator]:
        """Return one random stream per replicate.

        purpose: the name of the streams, such as "pretraining".
        """
        return [self.config.stream(replicate, purpose) for replicate in self.replicates]

    def minibatches(
        self, M: int, purpose: str, size: int | None = None
    ) -> list[Float[Tensor, "R features N"]]:
        """Return M minibatches of training images, drawn with replacement for each replicate.

        The R replicates have separate draws. purpose: the name of the random streams. size: number
        N of images in a minibatch, by default `pretraining_batch_size`.
        """
        images, shape = self.data.train.flat(), (M, size or self.config.pretraining_batch_size)
        streams = self.streams(purpose)
        chosen = torch.stack([torch.randint(len(images), shape, generator=s) for s in streams])
        return [images[of_batch].mT for of_batch in chosen.to(images.device).unbind(1)]

    def passing(self, M: int) -> Float[Tensor, "R features N"]:
        """Return minibatch number M = 1, 2, ... of pre-training in the authors' code for figure 4.

        The authors' code shuffles the images once, drops the first minibatch, and repeats all
        others. Each of the R replicates has a separate order.
        """
        images, N = self.data.train.flat(), self.config.pretraining_batch_size
        streams = self.streams("passing")
        order = torch.stack([torch.randperm(len(images), generator=s) for s in streams])
        full = len(images) // N
        position = 1 + (M - 1) % (full - 1) if full > 1 else 0
        return images[order[:, position * N : (position + 1) * N].to(images.device)].mT


def run(config: Config, context: Context) -> Iterator[LayerRank | TrainedEpoch | Measured]:
    """Pre-train networks, measure their ranks and train them; yield the rows of the tables.

    The step size of pre-training is chosen first, on replicates that give no result. A run that
    continues from a checkpoint continues its training. Raises InputError for an unknown protocol,
    script or method, or unavailable images.
    """
    config = config.settled()
    data = images_of(config, context).to(context.device)
    R, S = config.replicates, config.selection_replicates if config.chooses else 0
    task = Task(config, data, range(R + S), context)
    if context.restored is None:
        step = yield from choose_step(task._replace(replicates=range(R, R + S)))
        networks = starting_networks(task, step)
        for variant, network in networks.items():
            reported = network.select(torch.arange(R))
            yield from ranks_before(task, variant, step if variant.steps else 0.0, reported)
    else:  # restored networks are pre-trained
        networks = untouched(task)
    yield from train(task, networks)


def torch_module(config: Config, network: str, tensors: dict[str, Tensor]) -> nn.Module:
    """Return a stored network as a torch module.

    network: the network's name in `weights.safetensors`, which begins with its method. tensors: its
    stored tensors by name.
    """
    normalized = network.startswith("batch_norm")
    activation = "tanh" if normalized and config.way == "fig6" else "relu"
    return modules.mlp(tensors, activation, "batch" if normalized else "none")


def images_of(config: Config, context: Context) -> Dataset:
    """Return the dataset with the protocol's pixels: 0 to 255, 0 to 1, or standardized.

    Raises InputError for an unknown protocol or script, if the images are unavailable, or if they
    have pixels above 1, which cannot be multiplied to 0 to 255.
    """
    if not lookup("protocol", config.protocol, {"authors": True, "text": False, "ours": False}):
        return training_images(config, context).standardized()
    largest = lookup("script", config.script, {"fig4": 255.0, "fig6": 1.0})
    data = training_images(config, context)
    highest = max(float(part.pixels.max()) for part in (data.train, data.test))
    if largest > 1 and highest > 1:
        raise InputError(
            f"data={config.data} has pixels up to {highest:.3g}: protocol=authors multiplies pixels"
            f" by {largest:.0f}, so save them from 0 to 1, or as whole numbers from 0 to 255"
        )
    return data.map(lambda pixels: largest * pixels)


def untouched(task: Task) -> dict[Variant, MLP]:
    """Return all compared networks at initialization, without pre-training, by variant.

    The variants are in the order of the parameter `methods`. Raises InputError for an unknown
    method.
    """
    budgets = task.config.pretraining_steps
    lengths = dict.fromkeys(METHODS, [0])
    lengths |= {"pretrained": budgets, "scale_matched": [max(budgets)]}
    return {
        Variant(method, M): initialised(task, method)
        for method in task.config.methods
        for M in lookup("methods", method, lengths)
    }


def initialised(task: Task, method: str) -> MLP:
    """Return a method's initialized networks, one per replicate, without pre-training."""
    config, data, ours = task.config, task.data, task.config.protocol != "authors"
    normalized, asymmetric = method.startswith("batch_norm"), method.endswith("asymmetric")
    has_tanh = normalized and config.way == "fig6"
    if has_tanh:  # one more hidden layer
        config = replace(config, depth=config.depth + 1)
    features, replicates = data.train.flat().shape[1], task.replicates
    normalization = "batch" if normalized and not has_tanh else "none"
    init = "he" if method == "he" else "asymmetric" if asymmetric and ours else "pytorch"
    network = starting_stack(config, features, data.classes, normalization, replicates, init=init)
    network = network.to(task.context.device)
    if ours or method == "he" or method.startswith("orthogonalised"):
        return network
    if has_tanh:
        layers, p = range(1, network.depth + 2), network.parameters
        network = starts.TanhBatchNorm(*([p[f"{name}{i}"] for i in layers] for name in "Wb"))
    else:
        starts.draw_glorot(network, task.streams("glorot"))
    if asymmetric:
        starts.draw_positive(network, LARGEST_WEIGHT, task.streams("positive"))
    return network


def choose_step(task: Task) -> Iterator[LayerRank]:
    """Yield the rows of every step size of pre-training that is tried, at the largest M.

    The return value of the generator is the step size that raises r most. If the grid has one step
    size, this one is returned without rows. The return value is 0 if no method uses pre-training.

    task: a task with the replicates that choose the step size.
    """
    config, steps, rows = task.config, task.config.steps, []
    if not {"pretrained", "scale_matched"} & set(config.methods):
        return 0.0
    if len(steps) == 1:
        return steps[0]
    M = max(config.pretraining_steps)
    for step in steps:
        network = pretrained(task, step, [M])[M]
        layers = ranks_before(task, Variant("pretrained", M), step, network)
        last = [row for row in layers if row.layer == config.depth]
        yield from last
        rows += last
    return raising_most(rows)


def raising_most(rows: list[LayerRank]) -> float:
    """Return the step size of pre-training whose smallest r over the replicates is largest.

    rows: the last hidden layers before training, of the replicates that choose the step size. A
    step size with an r of nan is chosen only if all step sizes have one.
    """
    worst: dict[float, float] = {}
    for row in rows:
        r = -inf if isnan(row.rank_bound) else row.rank_bound
        worst[row.step] = min(r, worst.get(row.step, inf))
    return max(worst, key=worst.__getitem__)


def starting_networks(task: Task, step: float) -> dict[Variant, MLP]:
    """Return all networks before training by SGD, by variant; pre-trained and scaled where needed.

    step: step size of pre-training.
    """
    networks = untouched(task)
    budgets = sorted({variant.steps for variant in networks} - {0})
    raised = pretrained(task, step, budgets) if budgets else {}
    (X,) = task.minibatches(1, "scaling")
    for (method, M), network in networks.items():
        if method == "pretrained":
            networks[Variant(method, M)] = raised[M]
        elif method == "scale_matched":
            starts.scale_layers(network, X, list(starts.sizes(raised[M], X)))
        elif method == "unit_scale":
            starts.scale_layers(network, X, [X.new_ones(len(network))] * network.depth)
        elif method.startswith("orthogonalised"):
            (images,) = task.minibatches(1, "orthogonalising", 3 * task.config.width)
            starts.orthogonalise(network, images, 0.5 if method.endswith("half") else 1.0)
    return networks


def pretrained(task: Task, step: float, budgets: list[int]) -> dict[int, MLP]:
    """Return the networks that are pre-trained with the protocol's procedure, by the length M.

    step: step size of pre-training. budgets: all lengths M.
    """
    ways = {"fig4": end_to_end, "fig6": by_sweeps, "text": by_layers, "ours": by_layers}
    return ways[task.config.way](task, initialised(task, "pretrained"), step, budgets)


def end_to_end(task: Task, network: MLP, step: float, budgets: list[int]) -> dict[int, MLP]:
    """Pre-train as in code_fig_4_pre_training.py; return the networks by M.

    M is the number of minibatches. Each minibatch has `gradient_steps` steps of descent on r^{-1/2}
    of the last hidden layer. network: initialized networks, which are changed in place. step: step
    size. budgets: all M.
    """
    pretrained = {}
    of_last = {"layer": network.depth, "power": -0.5, "step": step, "activated": True}
    descend = Captured(partial(ascent.descend, network, **of_last))
    with task.context.progress(max(budgets), "pre-training", unit="minibatches") as bar:
        for M in range(1, max(budgets) + 1):
            X = task.passing(M)
            for _ in range(task.config.gradient_steps):
                descend(X)
            if M in budgets:
                pretrained[M] = network.map(torch.clone)
            bar.update(1)
    return pretrained


def by_sweeps(task: Task, network: MLP, step: float, budgets: list[int]) -> dict[int, MLP]:
    """Pre-train as in code_fig_6.ipynb; return the networks by M.

    M is the number of steps on each layer. The layers l = 5, 9, ... take `M * gradient_steps` steps
    each, one layer after the other. A step descends on 1 / r of the pre-activations Z_l, always on
    the same minibatch. A larger M continues from the network of the next smaller M.

    network: initialized networks, which are changed in place. step: step size. budgets: ignored;
    all M are taken from the parameter `pretraining_steps`.
    """
    pretrained, layers = {}, ascent.swept_layers(network.depth)
    (X,) = task.minibatches(1, "pretraining")
    all_budgets = sorted(task.config.pretraining_steps)
    with task.context.progress(sum(all_budgets) * len(layers), "pre-training", unit="steps") as bar:
        for M in all_budgets:
            for layer in layers:
                for _ in range(M * task.config.gradient_steps):
                    ascent.descend(network, X, layer, -1.0, step, activated=False)
                bar.update(M)
            pretrained[M] = network.map(torch.clone)
    return pretrained


def by_layers(task: Task, start: MLP, step: float, budgets: list[int]) -> dict[int, MLP]:
    """Pre-train as the paper describes; return the networks by M, the number of minibatches.

    Layers are pre-trained one after the other. Each minibatch has `gradient_steps` steps of ascent
    on r of the layer's outputs. start: initialized networks, which do not change. step: step size;
    with protocol `ours` an angle in radians. budgets: all M.
    """
    pretrained, ours, T = {}, task.config.protocol == "ours", task.config.gradient_steps
    move = partial(ascent.turn, angle=step) if ours else partial(ascent.climb, step=step)
    with task.context.progress(start.depth * len(budgets), "pre-training", unit="layers") as bar:
        for M in budgets:
            network = pretrained[M] = start.map(torch.clone)
            drawn = task.minibatches(M, "pretraining")
            for _ in ascent.raise_layer_wise(network, drawn, T, move, unit_scale=ours):
                bar.update(1)
    return pretrained


def ranks_before(task: Task, variant: Variant, step: float, network: MLP) -> Iterator[LayerRank]:
    """Yield the ranks by layer before training, a row for each layer and replicate.

    variant, step: the method, length M and step size of pre-training for the rows. network: one
    network per replicate of the task.
    """
    config, context = task.config, task.context
    inputs = probed(config, task.data).flat().expand(len(network), -1, -1)
    with context.progress(network.depth + 1, "measuring", unit="layers") as bar:
        for layer, columns in ranks_by_layer(network, inputs, config.tau, bar.update):
            for replicate, ranks in zip(task.replicates, by_network(columns), strict=False):
                judged = replicate < config.replicates
                yield LayerRank(*variant, step, replicate, judged, layer, **ranks)


def train(task: Task, networks: dict[Variant, MLP]) -> Iterator[TrainedEpoch | Measured]:
    """Train all networks together, each at every learning rate of its grid; yield a row per epoch.

    networks: the networks before training by SGD, one per replicate in each stack. The rows of the
    user's function `measure`, if there is one, are yielded, too.
    """
    config, data, context = task.config, task.data, task.context
    groups = {
        str(variant): group(network.to(CPU), config.rates_of(variant.method), task.replicates)
        for variant, network in networks.items()
    }
    stream, optimizer = config.streams().generator, config.optimizer
    trainer = StackTrainer(
        groups, data, config.batch_size, config.epochs, stream, context, optimizer
    )
    if context.restored is None:
        images = probed(config, data)
        for variant in networks:
            network = trainer.groups[str(variant)].network
            scores = Scores(*scored(network, images, "probe", torch.float32))
            yield from epoch_rows(task, trainer, variant, 0, scores)
    for epoch, scores_by_network in trainer.run():
        for variant in networks:
            yield from epoch_rows(task, trainer, variant, epoch, scores_by_network[str(variant)])


@torch.no_grad()
def scored(
    network: MLP, images: Images, mode: Mode, dtype: torch.dtype
) -> tuple[Float[Tensor, " R"], Float[Tensor, " R"]]:
    """Return mean loss and accuracy of each of R networks on all images at once.

    mode: with "probe", batch normalization uses the statistics of these images. dtype:
    floating-point type of the loss.
    """
    R = len(network)
    logits = network.logits(images.flat().expand(R, -1, -1), mode).to(dtype)
    losses, hits = loss_and_hits(logits, images.labels.expand(R, -1))
    return losses, accuracy(hits / len(images), losses)


def epoch_rows(
    task: Task, trainer: StackTrainer, variant: Variant, epoch: int, scores: Scores
) -> Iterator[TrainedEpoch | Measured]:
    """Yield the rows of a group of networks at the end of an epoch.

    The group has a network for each learning rate and replicate. variant: method and length of
    pre-training of the group. scores: training losses and accuracies of the epoch.
    """
    config, group, data = task.config, trainer.groups[str(variant)], trainer.data
    network, probe = group.network, probed(config, data).flat()
    mode: Mode = "probe" if config.protocol == "authors" else "evaluate"
    test_loss, test_accuracy = scored(network, data.test, mode, torch.float64)
    last = trainer.order()[:, (trainer.steps - 1) * trainer.batch_size :][:, : trainer.batch_size]
    minibatches = data.train.flat()[last[group.replicates]].mT
    columns = vars(scores) | last_ranks(network, probe)
    columns |= {"test_loss": test_loss, "test_accuracy": test_accuracy}
    columns |= {"mean_rank_bound": mean_rank_bound(network, minibatches)}
    members = product(config.rates_of(variant.method), task.replicates)
    for r, ((rate, replicate), row) in enumerate(zip(members, by_network(columns), strict=True)):
        judged = replicate < config.replicates
        yield TrainedEpoch(*variant, replicate, judged, rate, epoch, **row)
        if judged:
            name = network_name(str(variant), width=config.width, learning_rate=f"{rate:g}")
            traced = partial(network.traced, r, probe)
            yield from task.context.hand_over(name, replicate, epoch, traced)


MEASURED = (1, 5, 10, 15, 20, 25, 29)
"""Layers over which figure 6 averages r, counted from 0 as in the authors' code."""


@torch.no_grad()
def mean_rank_bound(network: MLP, X: Float[Tensor, "R features N"]) -> Float[Tensor, " R"]:
    """Return the mean r of figure 6 for each network: 1 / (mean of 1 / r over some layers).

    The layers are 1, 5, 10, ..., 25, 29, counted from 0, and the last hidden layer. Layers beyond
    the last hidden layer are left out. r is computed from the pre-activations, with batch norm from
    the layer's outputs. X: inputs, the N samples as columns.
    """
    first = 1 + isinstance(network, starts.TanhBatchNorm)
    last = network.depth - first
    layers = [layer for layer in MEASURED if layer < last] + [last]
    H, inverses = X, []
    for layer in range(1, network.depth + 1):
        below, H = H, network.layer(layer, H, "probe")
        if layer - first in layers:
            Z = ascent.pre_activation(network, layer, below) if network.centred is None else H
            inverses.append(1 / ascent.r_and_gradient(Z)[0].double())
    return (1 / torch.stack(inverses).mean(0)).cpu()
