"""Study `invariances`: paper C's invariants of gradient flow, and the low rank that follows.

A stack of networks, one for every replicate and rate, follows the gradient flow of its risk. From
its trajectory `metrics.csv` says how far each quantity moved that Lemmas 2 to 4 and Theorem 1 speak
of, `lowrank.csv` how the layers' singular values come to look (Theorem 2, Corollary 1), and
`assumptions.csv` whether the paper's assumptions are met. Of networks that are small enough
`decomposition.csv` compares f with its tree network (Lemma 1).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import log, prod
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from runner.core.studies import Context, Row
from runner.papers.training_invariances import theory
from runner.papers.training_invariances.invariances import low_rank as lowrank
from runner.papers.training_invariances.invariances.assumptions import (
    AssumptionCheck,
    assumption_rows,
)
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.decomposition import (
    Decomposition,
    decomposition_rows,
)
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.junctions import Junction, junctions
from runner.papers.training_invariances.invariances.layers import Convolution
from runner.papers.training_invariances.invariances.network import Network
from runner.papers.training_invariances.invariances.trajectory import (
    Trajectory,
    follow,
    network_of,
    rates,
    records,
    start,
)
from runner.papers.training_invariances.losses import MARGIN_LOSSES


@dataclass(frozen=True)
class Drift(Row):
    """One row per replicate, rate, time, place in the network, and part of the invariant there."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = (
        "architecture",
        "replicate",
        "learning_rate",
        "time",
        "layer",
        "place",
        "pair",
    )

    architecture: str
    replicate: int
    learning_rate: float
    time: float  # by the clock: time of the flow, or length of the path if normalized_time
    layer: int  # l: the neurons between layers l and l + 1, or within the block l; from 1
    place: str  # kinds of the two layers, or `within <kind>`; `layer` for the layer-wise invariant
    item: int  # of Theorem 1; 0: it has none for this place
    linear: bool  # whether the neurons are linear
    pair: str  # entries of D: diagonal; active: pairs always on; mixed: other pairs of one pattern;
    # full. layer: Lemma 3
    promised: bool  # whether the paper says that these entries are constant
    entries: int  # how many entries of D these are
    drift: float  # Frobenius norm of their change since the start; layer: the largest so far
    initial: float  # Frobenius norm of these entries at the start


@dataclass(frozen=True)
class LayerSpectrum(Row):
    """One row per replicate, rate, time and layer."""

    table: ClassVar[str] = "lowrank"
    keys: ClassVar[tuple[str, ...]] = (
        "architecture",
        "replicate",
        "learning_rate",
        "time",
        "layer",
    )

    architecture: str
    replicate: int
    learning_rate: float
    time: float  # by the clock
    log_flow_time: float  # natural logarithm of the gradient flow's own time; -inf at the start
    log_loss: float  # natural logarithm of the risk
    loss: float
    separates: bool  # risk below loss(0) / n, so that every example is on its side (Corollary 1)
    layer: int  # from 1
    kind: str
    frobenius: float  # ||W||_F^2 of the layer as its outputs see it (U)
    operator_ratio: float  # ||W||_2^2 / ||W||_F^2
    alignment: float  # |<v_{l+1}, u_l>|; nan for the last layer
    skip_share: float  # ||Z||_F^2 / ||[W2 Z]||_F^2 of a free block; nan elsewhere
    bound: float  # Theorem 2, Eq. (14): 1 / (8^N M); nan where the theorem does not speak
    sharp_bound: float  # the same with 2 for 8
    finite_bound: float  # Eq. (13) with its constant from the start, and 2 for 8, as a ratio


def run(
    config: Invariances, context: Context
) -> Iterator[Drift | LayerSpectrum | AssumptionCheck | Decomposition]:
    """Follow the flow, keeping the parameters at every record, then measure them."""
    network = network_of(config)
    flow = start(config, network, context.device, context.load_data)
    trajectory = follow(config, flow, context)
    total = len(junctions(network)) + config.records + 1
    with context.progress(total, "measuring", unit="invariants and spectra") as bar:
        yield from metrics(config, network, flow, trajectory, bar.update)
        yield from lowrank_rows(config, flow, trajectory, bar.update)
    yield from assumption_rows(config, flow, trajectory)
    yield from decomposition_rows(config, flow, trajectory)


def memory(config: Invariances) -> int:
    """Bytes at the peak: the trajectory, and either a step with its activations or the largest
    invariant at all records.
    """
    network = network_of(config)
    S, n = len(rates(config)), config.samples
    parameters = sum(prod(shape) for layer in network.layers for shape in layer.shapes().values())
    trajectory, step = config.records + 1, {"euler": 6, "rk4": 10}[config.integrator]
    activations, neurons = 0, config.width
    for layer in network.layers:
        activations += 4 * layer.source.features + 4 * layer.target.features
        if isinstance(layer, Convolution):  # the patches
            activations += 4 * layer.target.positions * layer.source.channels * layer.kernel**2
        neurons = max(neurons, layer.target.channels)
    invariant = 4 * (config.records + 1) * neurons**2
    return 8 * S * (trajectory * parameters + max(step * parameters + n * activations, invariant))


def metrics(
    config: Invariances,
    network: Network,
    flow: Flow,
    trajectory: Trajectory,
    tick: Callable[[], None],
) -> Iterator[Drift]:
    """The drift of all invariants at all records; `tick` is called after each junction."""
    for junction in junctions(network):
        D = torch.stack([junction.invariant(network, theta) for theta in trajectory.theta])
        masks = entry_masks(config, flow, junction, D.shape[-1])
        for pair, promised in junction.promises.items():
            yield from drift_rows(config, network, junction, pair, promised, D, masks[pair])
        tick()
    yield from layer_rows(config, network, trajectory)


def entry_masks(
    config: Invariances, flow: Flow, junction: Junction, neurons: int
) -> dict[str, Bool[Tensor, "S c c"]]:
    """Which entries of D belong to `diagonal`, `active`, `mixed` and `full`, for each network.

    `active` are the entries off the diagonal of two neurons that are on for every example, `mixed`
    those of two others with the same activation pattern, at every step and at every rate, so that
    rates are compared on the same entries; without neurons that are never on, whose weights do not
    move.
    """
    count = len(flow.theta)
    full = torch.ones(count, neurons, neurons, dtype=torch.bool, device=flow.theta.device)
    diagonal = torch.eye(neurons, dtype=torch.bool, device=full.device).expand_as(full)
    if junction.pattern is None:
        return {"diagonal": diagonal, "active": ~diagonal, "full": full}

    def at_every_rate(mask: Tensor) -> Tensor:
        copies = len(config.learning_rates)
        common = mask.unflatten(0, (copies, config.replicates)).all(0)
        return common.repeat(copies, *[1] * (mask.ndim - 1))

    alive, always = (
        at_every_rate(watched[junction.pattern]) for watched in (flow.alive, flow.always)
    )
    same = at_every_rate(flow.same[junction.pattern]) & alive[:, :, None] & alive[:, None, :]
    active = always[:, :, None] & always[:, None, :]
    return {
        "diagonal": diagonal,
        "active": active & ~diagonal,
        "mixed": same & ~active & ~diagonal,
        "full": full,
    }


def drift_rows(
    config: Invariances,
    network: Network,
    junction: Junction,
    pair: str,
    promised: bool,
    D: Float[Tensor, "records S c c"],
    mask: Bool[Tensor, "S c c"],
) -> Iterator[Drift]:
    """The drift of one part of one invariant: norms of the masked entries of D(t) - D(0)."""
    drift = ((D - D[0]) * mask).flatten(-2).norm(dim=-1).tolist()
    initial = (D[0] * mask).flatten(-2).norm(dim=-1).tolist()
    entries = mask.flatten(-2).sum(-1).tolist()
    for record, time in records(config):
        for index, rate in enumerate(rates(config)):
            yield Drift(
                architecture=config.architecture,
                replicate=index % config.replicates,
                learning_rate=rate,
                time=time,
                layer=network.number(junction.before),
                place=junction.name,
                item=junction.item,
                linear=junction.linear,
                pair=pair,
                promised=promised,
                entries=entries[index],
                drift=drift[record][index],
                initial=initial[index],
            )


def layer_rows(config: Invariances, network: Network, trajectory: Trajectory) -> Iterator[Drift]:
    """Lemma 3: the change of ||W_l||_F^2 - ||W_L||_F^2 for each layer l before the last.

    The largest change so far, because a single number may pass through zero at a record. A block
    with an identity skip is no layer in the sense of Definition 7: paths go round it.
    """
    norms = torch.stack([lowrank.squared_norms(network, theta) for theta in trajectory.theta])
    difference = norms[..., :-1] - norms[..., -1:]
    drift = (difference - difference[0]).abs().cummax(0).values.tolist()
    initial = difference[0].abs().tolist()
    for number, layer in enumerate(list(network.weighted.values())[:-1]):
        for record, time in records(config):
            for index, rate in enumerate(rates(config)):
                yield Drift(
                    architecture=config.architecture,
                    replicate=index % config.replicates,
                    learning_rate=rate,
                    time=time,
                    layer=number + 1,
                    place=layer.kind,
                    item=0,
                    linear=layer.is_linear,
                    pair="layer",
                    promised=layer.kind != "residual_identity",
                    entries=1,
                    drift=drift[record][index][number],
                    initial=initial[index][number],
                )


def lowrank_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory, tick: Callable[[], None]
) -> Iterator[LayerSpectrum]:
    """The singular values of all layers at all records, with the bounds of Theorem 2.

    `tick` is called after each record.
    """
    network = flow.objective.network
    bounds = lowrank.limit_bounds(network, theory.RESIDUAL_FACTOR)
    sharp_bounds = lowrank.limit_bounds(network, theory.SHARP_RESIDUAL_FACTOR)
    threshold = log(float(MARGIN_LOSSES[config.loss](torch.zeros(1))) / config.samples)
    for record, time in records(config):
        theta = trajectory.theta[record]
        spectrum = lowrank.spectrum(network, theta)
        finite = lowrank.finite_bounds(network, trajectory.theta[0], theta)
        with torch.no_grad():
            log_risk = flow.objective.log_risk(theta)[0].tolist()
        log_time = trajectory.log_time[record].tolist()
        for index, rate in enumerate(rates(config)):
            for number, layer in enumerate(network.weighted.values()):
                yield LayerSpectrum(
                    architecture=config.architecture,
                    replicate=index % config.replicates,
                    learning_rate=rate,
                    time=time,
                    log_flow_time=log_time[index],
                    log_loss=log_risk[index],
                    loss=lowrank.exponential(log_risk[index]),
                    separates=log_risk[index] < threshold,
                    layer=number + 1,
                    kind=layer.kind,
                    frobenius=spectrum.frobenius[number][index],
                    operator_ratio=spectrum.operator_ratio[number][index],
                    alignment=spectrum.alignment[number][index],
                    skip_share=spectrum.skip_share[number][index],
                    bound=bounds[number],
                    sharp_bound=sharp_bounds[number],
                    finite_bound=finite[number][index],
                )
        tick()
