"""Study `pretraining`: our protocol beside paper B, Section 4, Appendix G, figures 4, 6, 11, 12.

ReLU networks of one shape are compared side by side, each at the fastest rate of a grid, which is
chosen on replicates of their own (`selection.csv`). They start

- `vanilla`: with PyTorch's initialisation; `he`: with that of He et al.;
- `pretrained`: as vanilla, after Algorithm 1 has raised the rank of one layer after the other on M
  minibatches, in steps of one angle each; `pretrained_end_to_end`: on all layers at once, as the
  algorithm is printed, but from unit scale, since from PyTorch's initialisation nothing moves;
- `unit_scale`: as vanilla, with every layer scaled to unit root mean square, and no more. It is
  the control: pre-trained networks have that scale, too, and r, which ignores it, is what differs;
- `orthogonal`: a start at the same scale that has a low r;
- `whitened`: a start of ours with a high r. The published orthogonalisation (Daneshmand, Joudaki,
  Bach 2021) uses a slice of the data's singular vectors where this has a random orthogonal matrix,
  and is another method: nothing is concluded from it;
- `batch_norm`, `batch_norm_asymmetric`: with batch normalization, from PyTorch's initialisation and
  from positive weights of the same variance.

`plain_ascent` is measured and not trained: it shows what Algorithm 1 does to the scale of the
weights where its steps may make them longer.

No angle is chosen by what is learned: all are shown, and the one that raises r most, on the
replicates that rates are chosen on too (`angles.csv`), speaks for its M.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.errors import lookup
from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.data.datasets import Dataset
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.images import image_count
from runner.papers.batch_norm_rank.measures import last_hidden, ranks, ranks_by_layer
from runner.papers.batch_norm_rank.mlp_training import (
    features_of,
    load_images,
    measurement_bytes,
    parameter_bytes,
    probe_images,
    stages,
    starting_stack,
    training_bytes,
)
from runner.papers.batch_norm_rank.pretraining.config import Pretraining as Config
from runner.papers.batch_norm_rank.pretraining.rank_ascent import (
    Minibatches,
    climb,
    raise_end_to_end,
    raise_layer_wise,
    turn,
)
from runner.papers.batch_norm_rank.pretraining.starts import to_unit_scale, whiten
from runner.training.selection import selection_range


@dataclass(frozen=True)
class Start:
    """How a method's networks start, and whether they are trained; scaled: to unit scale."""

    normalization: str = "none"
    init: str = "pytorch"
    scaled: bool = False
    whitened: bool = False
    trained: bool = True


STARTS = {
    "vanilla": Start(),
    "he": Start(init="he"),
    "unit_scale": Start(scaled=True),
    "pretrained": Start(),
    "pretrained_end_to_end": Start(),
    "plain_ascent": Start(trained=False),
    "orthogonal": Start(init="orthogonal", scaled=True),
    "whitened": Start(whitened=True),
    "batch_norm": Start("batch"),
    "batch_norm_asymmetric": Start("batch", init="asymmetric"),
}
"""By method."""


@dataclass(frozen=True)
class Variant:
    """One kind of starting network: what the rows of all tables say of it."""

    method: str
    pretraining_steps: int = 0  # M; 0: none
    angle: float = 0.0  # eta; 0: none

    @property
    def start(self) -> Start:
        """How its networks start. Raises InputError for an unknown method."""
        return lookup("methods", self.method, STARTS)

    def __str__(self) -> str:
        return f"{self.method}/{self.pretraining_steps}/{self.angle:g}"


@dataclass(frozen=True)
class TriedAngle(Row):
    """One row per method, M, angle and selection replicate: what an angle is chosen by."""

    table: ClassVar[str] = "angles"
    keys: ClassVar[tuple[str, ...]] = ("method", "pretraining_steps", "angle", "replicate")

    method: str  # pretrained or pretrained_end_to_end
    pretraining_steps: int  # M
    angle: float  # eta, radians
    replicate: int
    rank_bound: float  # r of the last hidden layer, before training
    chosen: bool  # whether this angle raises r most, in the mean of these replicates


@dataclass(frozen=True)
class LayerAscent(Row):
    """One row per M, angle, replicate and layer: the layer-wise ascent."""

    table: ClassVar[str] = "pretraining"
    keys: ClassVar[tuple[str, ...]] = ("pretraining_steps", "angle", "replicate", "layer")

    pretraining_steps: int  # M
    angle: float  # eta, radians
    replicate: int
    layer: int
    rank_bound_before: float  # r(H_layer) before the first step, on its minibatch
    rank_bound: float  # before the last step, on its minibatch


@dataclass(frozen=True)
class LayerRank(Row):
    """One row per variant, replicate and layer, before training."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = (
        "method",
        "pretraining_steps",
        "angle",
        "replicate",
        "layer",
    )

    method: str
    pretraining_steps: int
    angle: float
    replicate: int
    layer: int  # 0: the input
    matrix_rank: float  # singular values above sigma_max d eps; nan if not finite
    soft_rank: float  # rank_tau of the representation scaled to Tr M = d
    rank_bound: float  # r(H), Eq. (4)
    root_mean_square: float  # of the entries of H


@dataclass(frozen=True)
class TrialEpoch(Row):
    """One row per variant, rate, selection replicate and epoch: what a rate is chosen by."""

    table: ClassVar[str] = "selection"
    keys: ClassVar[tuple[str, ...]] = (
        "method",
        "pretraining_steps",
        "angle",
        "replicate",
        "learning_rate",
        "epoch",
    )

    method: str
    pretraining_steps: int
    angle: float
    replicate: int
    learning_rate: float
    epoch: int
    train_loss: float  # nats; mean over the epoch's minibatches, each before its step
    train_accuracy: float  # likewise


@dataclass(frozen=True)
class TrainedEpoch(TrialEpoch):
    """One row per variant, replicate and epoch, at the rate chosen for the variant."""

    table: ClassVar[str] = "training"

    test_loss: float  # at the end of the epoch, with running statistics
    test_accuracy: float
    rank: float  # of the last hidden layer on `samples` training images; nan if diverged
    rank_bound: float
    selected_on: str  # the replicates that the rate was chosen on


def run(
    config: Config, context: Context
) -> Iterator[TriedAngle | LayerAscent | LayerRank | TrialEpoch]:
    """Choose the angles, pre-train what is to be pre-trained, measure the ranks, train everything.

    First the selection replicates, without a word on their ranks, then those that are judged.
    """
    data = load_images(config, context)
    x = probe_images(config, data).to(context.device)
    # When a run goes on, its rows on the angles are kept already, and are needed all the same.
    angles = choose_angles(config, data, x, context)
    if context.restored is None:
        yield from angles
    raising = {
        Variant(row.method, row.pretraining_steps, row.angle) for row in angles if row.chosen
    }
    variants = {str(variant): variant for variant in variants_of(config, raising)}
    for stage in stages(config, variants, context):
        S = stage.replicates
        networks = {name: untrained(config, each, data, S) for name, each in variants.items()}
        if stage.begins:
            rows = prepare(config, variants, networks, data, S, context)
            yield from (row for row in rows if stage.judged)
        if stage.begins and stage.judged:
            of_variants = {variants[name]: network for name, network in networks.items()}
            of_variants |= plain_ascents(config, data, S, context)
            yield from ranks_before(config, of_variants, x, context)
            del of_variants
        row = TrainedEpoch if stage.judged else TrialEpoch
        for name, columns in stage.train(networks, data):
            yield row(**vars(variants[name]), **columns)


def memory(config: Config) -> int:
    """Bytes at the peak: training, or before it an ascent at all its angles, or the whitening, or
    the ranks of all starting networks from the inputs on.
    """
    S = max(config.replicates, config.selection_replicates)
    d, features, L = config.width, features_of(config), config.depth
    N, M, A, E = (
        config.pretraining_batch_size,
        max(config.pretraining_steps),
        len(config.angles),
        len(config.end_to_end_angles),
    )
    variants = variants_of(config)
    training = training_bytes(config, [variant.start.normalization for variant in variants])
    ascents = {  # stacks, and numbers of a network: of a layer on all minibatches, or all on one
        "pretrained": (A, M * N * d),
        "pretrained_end_to_end": (E, 2 * L * N * d),
        "plain_ascent": (1, M * N * d),
    }
    of_methods = [ascents[method] for method in config.methods if method in ascents]
    ascent = max(
        (
            2 * parameter_bytes(config, S * stacks, 4)
            + 4 * S * stacks * (numbers + 3 * N * max(features, d))
            for stacks, numbers in of_methods
        ),
        default=0,
    )
    raised = len(config.pretraining_steps) * A * ("pretrained" in config.methods)
    raised += E * ("pretrained_end_to_end" in config.methods)
    starting = parameter_bytes(config, S * (raised + 2 * len(variants)), 4)
    whitening = 8 * S * config.samples * (features + 3 * max(d, features))
    measuring = measurement_bytes(config, S, 4, max(d, features))
    whitens = "whitened" in config.methods
    images = 4 * image_count(config) * features
    return max(training, images + starting + max(ascent, whitening * whitens, measuring))


def variants_of(config: Config, raising: set[Variant] | None = None) -> list[Variant]:
    """What is trained, in the order of the methods.

    raising: of a method and M that with the angle which raises r most; no other is trained unless
    all are. None: the first angle stands for it.
    """
    raised = {
        "pretrained": (config.pretraining_steps, config.angles),
        "pretrained_end_to_end": ([max(config.pretraining_steps)], config.end_to_end_angles),
    }
    variants = []
    for method in config.methods:
        if method in raised:
            budgets, angles = raised[method]
            every = [Variant(method, M, angle) for M in budgets for angle in angles]
            best = every[:: len(angles)] if raising is None else [v for v in every if v in raising]
            variants += every if config.all_angles else best
        elif Variant(method).start.trained:
            variants.append(Variant(method))
    return variants


def untrained(config: Config, variant: Variant, data: Dataset, replicates: range) -> MLP:
    """The stack that a variant starts from: one network per replicate, the same draws for all."""
    return starting_stack(
        config,
        data.train.flat().shape[1],
        data.classes,
        variant.start.normalization,
        replicates,
        init=variant.start.init,
    )


def choose_angles(
    config: Config, data: Dataset, x: Float[Tensor, "N features"], context: Context
) -> list[TriedAngle]:
    """r at every angle on the selection replicates, and which one of a method and M raises it most.

    One that leads to numbers that are not finite is never chosen.
    """
    selection = selection_range(config.replicates, config.selection_replicates)
    raised, _ = raise_ranks(config, data, selection, context)
    bounds = {}
    for variant, network in raised.items():
        H = last_hidden(network, x.expand(len(selection), -1, -1))
        bounds[variant] = ranks(H, config.tau).rank_bound
    mean = {variant: float(bound.mean().nan_to_num(0.0)) for variant, bound in bounds.items()}
    best: dict[tuple[str, int], Variant] = {}
    for each in mean:
        kind = (each.method, each.pretraining_steps)
        best[kind] = max(best.get(kind, each), each, key=mean.__getitem__)
    return [
        TriedAngle(**vars(variant), replicate=replicate, rank_bound=value, chosen=chosen)
        for variant, bound in bounds.items()
        for chosen in [variant in best.values()]
        for replicate, value in zip(selection, bound.tolist(), strict=True)
    ]


def raise_ranks(
    config: Config, data: Dataset, replicates: range, context: Context
) -> tuple[dict[Variant, MLP], list[LayerAscent]]:
    """Algorithm 1, as the methods ask for it: the stack of each M and angle, and what was raised
    layer by layer.
    """
    raised: dict[Variant, MLP] = {}
    rows: list[LayerAscent] = []
    L, T, device = config.depth, config.gradient_steps, context.device
    start = untrained(config, Variant("vanilla"), data, replicates).to(device)

    def minibatches(M: int) -> Minibatches:
        return draw_minibatches(config, M, data, "pretraining", replicates, context)

    def stack(start: MLP, angles: list[float]) -> tuple[MLP, Float[Tensor, " R"]]:
        """The networks of all replicates for one angle after the other."""
        networks = torch.arange(len(start), device=device).repeat(len(angles))
        of_networks = torch.tensor(angles, device=device).repeat_interleave(len(start))
        return start.select(networks), of_networks

    def keep(network: MLP, method: str, M: int, angles: list[float]) -> None:
        parts = torch.arange(len(network), device=device).split(len(replicates))
        for angle, part in zip(angles, parts, strict=True):
            raised[Variant(method, M, angle)] = network.select(part)

    if "pretrained" in config.methods:
        budgets = sorted(config.pretraining_steps)
        with context.progress(L * len(budgets), "pre-training", unit="layers") as bar:
            for M in budgets:
                network, angles = stack(start, config.angles)
                for layer, *bounds in raise_layer_wise(network, minibatches(M), T, turn(angles)):
                    bar.update(1, r=bounds[1].max())
                    values = zip(*(bound.tolist() for bound in bounds), strict=True)
                    places = product(config.angles, replicates)
                    for (angle, replicate), of_network in zip(places, values, strict=True):
                        rows.append(LayerAscent(M, angle, replicate, layer, *of_network))
                keep(network, "pretrained", M, config.angles)
    if "pretrained_end_to_end" in config.methods:
        M = max(config.pretraining_steps)
        with context.progress(M, "pre-training") as bar:
            unit_scale(config, start, data, replicates, context)
            network, angles = stack(start, config.end_to_end_angles)
            raise_end_to_end(network, minibatches(M), T, turn(angles), bar.update)
            unit_scale(config, network, data, replicates, context)
            keep(network, "pretrained_end_to_end", M, config.end_to_end_angles)
    return raised, rows


def prepare(
    config: Config,
    variants: dict[str, Variant],
    networks: dict[str, MLP],
    data: Dataset,
    replicates: range,
    context: Context,
) -> Iterator[LayerAscent]:
    """Pre-train, scale and whiten, in the dictionary, the networks that ask for it."""
    raised, rows = raise_ranks(config, data, replicates, context)
    yield from rows
    for name, variant in variants.items():
        network = networks[name] = raised.get(variant, networks[name].to(context.device))
        if variant.start.scaled:
            unit_scale(config, network, data, replicates, context)
        if variant.start.whitened:
            drawn = draw_minibatches(
                config, 1, data, "whitening", replicates, context, size=config.samples
            )
            streams = [generator(config.seed, replicate, "whitening") for replicate in replicates]
            whiten(network, drawn.inputs(0, len(network)).mT, streams)


def unit_scale(
    config: Config, network: MLP, data: Dataset, replicates: range, context: Context
) -> None:
    """`to_unit_scale` on a minibatch of each replicate's own."""
    drawn = draw_minibatches(config, 1, data, "rescaling", replicates, context)
    to_unit_scale(network, drawn.inputs(0, len(network)).mT)


def plain_ascents(
    config: Config, data: Dataset, replicates: range, context: Context
) -> dict[Variant, MLP]:
    """For every M the networks after a plain ascent, whose scale nothing holds."""
    found: dict[Variant, MLP] = {}
    if "plain_ascent" not in config.methods:
        return found
    for M in config.pretraining_steps:
        variant = Variant("plain_ascent", M)
        network = untrained(config, variant, data, replicates).to(context.device)
        minibatches = draw_minibatches(config, M, data, "pretraining", replicates, context)
        step = climb(config.plain_rate)
        for _ in raise_layer_wise(
            network, minibatches, config.gradient_steps, step, unit_scale=False
        ):
            pass
        found[variant] = network
    return found


def draw_minibatches(
    config: Config,
    M: int,
    data: Dataset,
    purpose: str,
    replicates: range,
    context: Context,
    size: int | None = None,
) -> Minibatches:
    """M minibatches of training images for each replicate, of N or `size` images each."""
    images = data.train.flat()
    shape = (M, size or config.pretraining_batch_size)
    streams = [generator(config.seed, replicate, purpose) for replicate in replicates]
    indices = [torch.randint(len(images), shape, generator=stream) for stream in streams]
    return Minibatches(images.to(context.device), torch.stack(indices).to(context.device))


def ranks_before(
    config: Config, networks: dict[Variant, MLP], x: Float[Tensor, "N features"], context: Context
) -> Iterator[LayerRank]:
    """The ranks of all starting networks, layer by layer."""
    total = len(networks) * (config.depth + 1)
    with context.progress(total, "measuring", unit="layers") as bar:
        for variant, network in networks.items():
            yield from metrics(config, variant, network.to(context.device), x, bar.update)


def metrics(
    config: Config,
    variant: Variant,
    network: MLP,
    x: Float[Tensor, "N features"],
    tick: Callable[[], None],
) -> Iterator[LayerRank]:
    """Ranks by layer of the networks of one variant; `tick` is called after every layer."""
    inputs = x.expand(len(network), -1, -1)
    for layer, measured, size in ranks_by_layer(network, inputs, config.tau, tick):
        for replicate in range(len(network)):
            yield LayerRank(
                **vars(variant),
                replicate=replicate,
                layer=layer,
                matrix_rank=float(measured.matrix_rank[replicate]),
                soft_rank=float(measured.soft_rank[replicate]),
                rank_bound=float(measured.rank_bound[replicate]),
                root_mean_square=float(size[replicate]),
            )
