"""Study `pretraining`: paper B, Section 4 and Appendix G, figures 4, 6, 11 and 12.

ReLU networks of one shape are compared side by side, each at the fastest rate of a grid, which is
chosen on replicates of their own (`selection.csv`):

- `vanilla`: PyTorch's initialisation;
- `pretrained`: the same after Algorithm 1 has raised the rank of its layers on M minibatches;
- `batch_norm`, `batch_norm_asymmetric`: with batch normalization, from PyTorch's initialisation and
  from positive weights of the same variance.

Raising the rank also raises the scale of the weights. So the first two may also start `rescaled`,
with every layer brought to unit scale; a vanilla network rescaled alone is the control which tells
what the scale does without the rank.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.data.datasets import Dataset
from runner.networks.mlp import MLP, concatenate
from runner.papers.rank_collapse.measures import ranks_by_layer
from runner.papers.rank_collapse.mlp_training import (
    features_of,
    load_images,
    measurement_bytes,
    networks_at_once,
    parameter_bytes,
    probe_images,
    stages,
    starting_stack,
    training_bytes,
)
from runner.papers.rank_collapse.pretraining.config import Pretraining as Config
from runner.papers.rank_collapse.pretraining.rank_ascent import (
    raise_end_to_end,
    raise_layer_wise,
    to_unit_scale,
)


@dataclass(frozen=True)
class Variant:
    """One kind of starting network: what the rows of all tables say of it."""

    method: str
    pretraining_steps: int = 0  # M; 0: none
    rescaled: bool = False


@dataclass(frozen=True)
class Pretraining(Row):
    """One row per replicate and step of the ascent, before the step."""

    keys: ClassVar[tuple[str, ...]] = ("pretraining_steps", "replicate", "layer", "step")

    pretraining_steps: int  # M
    replicate: int
    layer: int
    step: int  # on this layer, from 1
    rank_bound: float  # r(H_layer) on the minibatch of the step


@dataclass(frozen=True)
class Metrics(Row):
    """One row per variant, replicate and layer, before training."""

    keys: ClassVar[tuple[str, ...]] = (
        "method",
        "pretraining_steps",
        "rescaled",
        "replicate",
        "layer",
    )

    method: str
    pretraining_steps: int
    rescaled: bool
    replicate: int
    layer: int  # 0: the input
    matrix_rank: float  # singular values above sigma_max d eps; nan if not finite
    soft_rank: float  # rank_tau of the representation scaled to Tr M = d
    rank_bound: float  # r(H), Eq. (4)
    root_mean_square: float  # of the entries of H


@dataclass(frozen=True)
class Selection(Row):
    """One row per variant, rate, selection replicate and epoch: what a rate is chosen by."""

    keys: ClassVar[tuple[str, ...]] = (
        "method",
        "pretraining_steps",
        "rescaled",
        "replicate",
        "learning_rate",
        "epoch",
    )

    method: str
    pretraining_steps: int
    rescaled: bool
    replicate: int
    learning_rate: float
    epoch: int
    train_loss: float  # nats; mean over the epoch's minibatches, each before its step
    train_accuracy: float  # likewise
    test_loss: float  # at the end of the epoch, with running statistics
    test_accuracy: float
    rank: float  # of the last hidden layer on `samples` training images; nan if diverged
    rank_bound: float


@dataclass(frozen=True)
class Training(Selection):
    """One row per variant, replicate and epoch, at the rate chosen for the variant."""

    selected_on: str  # the replicates that the rate was chosen on


def run(config: Config, context: Context) -> Iterator[Pretraining | Metrics | Selection]:
    """Pre-train what is to be pre-trained, measure the ranks, train everything.

    First the selection replicates, without a word on their ranks, then those that are judged.
    """
    data = load_images(config, context)
    x = probe_images(config, data).to(context.device)
    variants = variants_of(config)
    counts = {name: len(of_stack) for name, of_stack in variants.items()}
    for stage in stages(config, counts, context):
        networks = starting_networks(config, variants, data, stage.replicates)
        if stage.begins:
            networks = {name: network.to(context.device) for name, network in networks.items()}
            rows = raise_ranks(config, variants, networks, data, stage.replicates, context)
            yield from (row for row in rows if stage.judged)
        if stage.begins and stage.judged:
            total = len(networks) * (config.depth + 1)
            with context.progress(total, "ranks before training", unit="layers") as bar:
                for name, network in networks.items():
                    yield from metrics(config, variants[name], network, x, bar.update)
        row = Training if stage.judged else Selection
        for name, variant, columns in stage.train(networks, data):
            yield row(**vars(variants[name][variant]), **columns)


def memory(config: Config) -> int:
    """Bytes at the peak: training, or before it the ascent with all its minibatches, or the ranks
    of all starting networks from the inputs on.
    """
    R = max(config.replicates, config.selection_replicates)
    d, features, at_once = config.width, features_of(config), networks_at_once(config)
    variants = {name: len(each) for name, each in variants_of(config).items()}
    training = training_bytes(config, {name: n * at_once for name, n in variants.items()})
    starting = parameter_bytes(config, 2 * R * sum(variants.values()), 4)
    pretrained = "pretrained" in config.methods
    numbers = R * max(config.pretraining_steps) * config.pretraining_batch_size * pretrained
    ascent = 4 * numbers * (features + max(features + d, 3 * d))
    most = R * max(variants.values())
    measuring = measurement_bytes(config, most, 4, max(d, features))
    return max(training, starting + max(ascent, measuring))


def variants_of(config: Config) -> dict[str, list[Variant]]:
    """The variants of each stack that the configuration asks for."""
    plain = [Variant("vanilla", 0, rescaled) for rescaled in config.rescale]
    raised = [Variant("pretrained", M, s) for M in config.pretraining_steps for s in config.rescale]
    variants = {
        "none": [variant for variant in plain + raised if variant.method in config.methods],
        "batch": [Variant(method) for method in config.methods if method.startswith("batch_norm")],
    }
    return {name: of_stack for name, of_stack in variants.items() if of_stack}


def starting_networks(
    config: Config, variants: dict[str, list[Variant]], data: Dataset, replicates: range
) -> dict[str, MLP]:
    """The stacks at initialisation: variant after variant, one network per replicate each."""
    features = data.train.flat().shape[1]
    return {
        name: concatenate(
            [
                starting_stack(
                    config,
                    features,
                    data.classes,
                    name,
                    replicates,
                    init="asymmetric" if variant.method == "batch_norm_asymmetric" else "pytorch",
                )
                for variant in of_stack
            ]
        )
        for name, of_stack in variants.items()
    }


def raise_ranks(
    config: Config,
    variants: dict[str, list[Variant]],
    networks: dict[str, MLP],
    data: Dataset,
    replicates: range,
    context: Context,
) -> Iterator[Pretraining]:
    """Pre-train and rescale, in place, the variants that ask for it."""
    if "none" not in variants:
        return
    S, stack = len(replicates), networks["none"]
    total = config.depth if config.layer_wise else 1
    budgets = {v.pretraining_steps for v in variants["none"] if v.pretraining_steps}
    total *= sum(budgets) * config.gradient_steps
    raised = {}
    with context.progress(total, "pre-training") as bar:
        for M in sorted(budgets):
            raised[M] = stack.select(torch.arange(S, device=context.device))
            for row in raise_rank(config, raised[M], M, data, replicates):
                bar.update(1 if row.replicate == replicates.start else 0, r=row.rank_bound)
                yield row
    parts = []
    for index, variant in enumerate(variants["none"]):
        start = stack.select(torch.arange(index * S, (index + 1) * S, device=context.device))
        part = raised.get(variant.pretraining_steps, start).map(lambda tensor: tensor)
        if variant.rescaled:
            drawn = draw_minibatches(config, 1, data, "rescaling", replicates, context.device)
            to_unit_scale(part, drawn[:, 0])
        parts.append(part)
    stack.restore(concatenate(parts).state())


def raise_rank(
    config: Config, network: MLP, M: int, data: Dataset, replicates: range
) -> Iterator[Pretraining]:
    """Algorithm 1 on M minibatches, in place, for one network per replicate."""
    device = network.parameters["W1"].device
    minibatches = draw_minibatches(config, M, data, "pretraining", replicates, device)
    ascent = raise_layer_wise if config.layer_wise else raise_end_to_end
    steps = ascent(network, minibatches, config.gradient_steps, config.pretraining_rate)
    for layer, step, bound in steps:
        for replicate, value in zip(replicates, bound.tolist(), strict=True):
            yield Pretraining(M, replicate, layer, step, value)


def draw_minibatches(
    config: Config, count: int, data: Dataset, purpose: str, replicates: range, device: torch.device
) -> Float[Tensor, "S M N features"]:
    """`count` (M) minibatches of N training images for each replicate."""
    images, N = data.train.flat(), config.pretraining_batch_size
    drawn = [
        torch.randint(len(images), (count, N), generator=stream)
        for stream in (generator(config.seed, replicate, purpose) for replicate in replicates)
    ]
    return images[torch.stack(drawn)].to(device)


def metrics(
    config: Config,
    variants: list[Variant],
    network: MLP,
    x: Float[Tensor, "N features"],
    tick: Callable[[], None],
) -> Iterator[Metrics]:
    """Ranks by layer of the networks of one stack; `tick` is called after every layer."""
    inputs = x.expand(len(network), -1, -1)
    for layer, measured, size in ranks_by_layer(network, inputs, config.tau, tick):
        for r in range(len(network)):
            variant, replicate = divmod(r, config.replicates)
            yield Metrics(
                **vars(variants[variant]),
                replicate=replicate,
                layer=layer,
                matrix_rank=float(measured.matrix_rank[r]),
                soft_rank=float(measured.soft_rank[r]),
                rank_bound=float(measured.rank_bound[r]),
                root_mean_square=float(size[r]),
            )
