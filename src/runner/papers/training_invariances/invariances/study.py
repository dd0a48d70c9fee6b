"""Study `invariances`: what gradient flow conserves (paper C), and the resulting low rank.

Many networks, one for every replicate and learning rate, follow the gradient flow of their risk.
Their trajectories give these tables:

- `metrics.csv`: the drift of each quantity of Lemmas 2 to 4 and Theorem 1.
- `lowrank.csv`: the singular values of the layers (Theorem 2, Corollary 1).
- `assumptions.csv`: whether the paper's assumptions hold.
- `decomposition.csv`: comparison of small networks f with their tree network (Lemma 1).

These networks have an axis for replicates and learning rates, cuts of random graphs, paths and
Runge-Kutta steps. `modules.find_invariants` has none of these, but takes any `torch.nn.Module`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import log
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from runner.core.studies import Context, Measured, network_name
from runner.papers.training_invariances.invariances import low_rank as lowrank
from runner.papers.training_invariances.invariances.assumptions import (
    AssumptionCheck,
    assumption_rows,
)
from runner.papers.training_invariances.invariances.config import Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow
from runner.papers.training_invariances.invariances.graphs import Dag, cut
from runner.papers.training_invariances.invariances.junctions import junctions
from runner.papers.training_invariances.invariances.layers import LINEAR
from runner.papers.training_invariances.invariances.paths import Decomposition, decomposition_rows
from runner.papers.training_invariances.invariances.rows import Drift, LayerSpectrum
from runner.papers.training_invariances.invariances.trajectory import (
    Trajectory,
    follow,
    network_of,
    networks,
    records,
    start,
)
from runner.papers.training_invariances.losses import MARGIN_LOSSES


def run(
    config: Invariances, context: Context
) -> Iterator[Drift | LayerSpectrum | AssumptionCheck | Decomposition | Measured]:
    """Follow the gradient flow of all networks, then measure their parameters at all records.

    A record is a time at which parameters are stored. Yields the rows of all tables, and rows of
    the user's function `measure`.
    """
    network = network_of(config, context.device)
    flow = start(config, network, context.device, context.load_data)
    trajectory = follow(config, flow, context)
    if isinstance(network, Dag):
        yield from graph_metrics(config, flow, trajectory)
    else:
        total = len(junctions(network)) + config.records + 1
        with context.progress(total, "measuring", unit="invariants and spectra") as bar:
            yield from metrics(config, flow, trajectory, bar.update)
            yield from lowrank_rows(config, flow, trajectory, bar.update)
        yield from assumption_rows(config, flow, trajectory)
    yield from decomposition_rows(config, flow, trajectory)
    for record, time in records(config):
        for index, at in enumerate(networks(config, time)):
            rate = {"learning_rate": at.learning_rate}
            name = network_name(config.architecture, width=config.width, **rate)
            now = partial(traced, flow, trajectory.theta[record], index)
            yield from context.hand_over(name, at.replicate, time, now)


def traced(flow: Flow, theta: Float[Tensor, "S P"], index: int) -> dict[str, Tensor]:
    """Return by name the tensors of one network, for a user's measurement.

    They are the weights, the examples x, and the preactivations Z1, Z2, ..., one for each nonlinear
    layer. A graph has the adjacency matrix A, and Z1 of all hidden vertices. theta: parameters of
    all networks. index: number of the network.
    """
    network, x = flow.objective.network, flow.objective.x
    outputs = {f"Z{n}": z[index] for n, z in enumerate(network.forward(theta, x)[1], start=1)}
    if isinstance(network, Dag):
        return {"x": x[index], "A": network.adjacency(theta)[index], **outputs}
    layers = enumerate(network.unpack(theta[index]), start=1)
    weights = {f"layer{n}.{name}": W for n, tensors in layers for name, W in tensors.items()}
    return {"x": x[index], **weights, **outputs}


class Part(NamedTuple):
    """Columns of the table `metrics` that identify a set of entries of an invariant D."""

    layer: int
    place: str
    item: int
    linear: bool
    pair: str
    promised: bool


def metrics(
    config: Invariances, flow: Flow, trajectory: Trajectory, tick: Callable[[], None]
) -> Iterator[Drift]:
    """Yield the rows of the table `metrics` for layered networks.

    They are the drifts of all invariants at all records, the times at which parameters are stored.
    tick: called after each place in the network.
    """
    network = flow.objective.network
    for junction in junctions(network):
        D = torch.stack([junction.invariant(network, theta) for theta in trajectory.theta])
        junction_columns = (junction.before + 1, junction.name, junction.item, junction.linear)
        masks = entry_masks(config, flow, junction.pattern, D.shape[-1])
        for pair, promised in junction.promises.items():
            yield from entry_rows(config, Part(*junction_columns, pair, promised), D, masks[pair])
        tick()
    norms = torch.stack([lowrank.squared_norms(network, theta) for theta in trajectory.theta])
    for index, layer in enumerate(network.layers[:-1]):
        # A block with an identity skip is not a layer (Definition 7): paths bypass it.
        promised = layer.kind != "residual_identity"
        part = Part(index + 1, layer.kind, 0, layer.is_linear, "layer", promised)
        yield from norm_rows(config, part, norms[..., index] - norms[..., -1])


def graph_metrics(config: Invariances, flow: Flow, trajectory: Trajectory) -> Iterator[Drift]:
    """Yield the rows of the table `metrics` for graphs: of hidden vertices and of cuts.

    There are two controls, which gradient flow changes: the diagonal of D at vertices with a frozen
    weight, and each cut without its largest weight.
    """
    network = flow.objective.network
    D = torch.stack([network.invariant(theta) for theta in trajectory.theta])
    masks = entry_masks(config, flow, 0, D.shape[-1])
    diagonal = masks["diagonal"]
    linear, free = network.slopes[:, network.inputs : -1] == LINEAR, network.free()
    together = network.neighbours() & free[:, :, None] & free[:, None, :]
    for kind, units in ((True, linear), (False, ~linear)):
        columns, both = (0, f"{'' if kind else 'non'}linear units", 0, kind), units[:, :, None]
        diagonal_entries = diagonal & both & free[:, :, None]
        yield from entry_rows(config, Part(*columns, "diagonal", True), D, diagonal_entries)
        yield from entry_rows(config, Part(*columns, "full", kind), D, together & both)
        for pair in () if kind else ("active", "mixed"):
            pairs = together & ~diagonal & both & masks[pair]
            yield from entry_rows(config, Part(*columns, pair, True), D, pairs)
    beside = Part(0, "beside frozen", 0, False, "diagonal", False)
    yield from entry_rows(config, beside, D, diagonal & ~free[:, :, None])
    start = max(1, (len(network.sizes) - 2) // 4)  # weights before it are frozen
    squares = [network.adjacency(theta).square() for theta in trajectory.theta]
    whole, less = [], []
    for first in network.cuts[start:]:
        edges = torch.stack([cut(square, first).flatten(1) for square in squares])
        largest = edges[0].argmax(-1).expand(len(edges), -1)[..., None]
        whole.append(edges.sum(-1))
        less.append(whole[-1] - edges.gather(-1, largest)[..., 0])
    for index in range(len(whole) - 1):
        columns = (start + index, "cut", 0, False)
        yield from norm_rows(config, Part(*columns, "layer", True), whole[index] - whole[-1])
        yield from norm_rows(config, Part(*columns, "less an edge", False), less[index] - whole[-1])


def entry_masks(
    config: Invariances, flow: Flow, pattern: int | None, neurons: int
) -> dict[str, Bool[Tensor, "S c c"]]:
    """Return masks of four sets of entries of the matrix D, for each network.

    D = V^T V - U U^T has a row and a column for each of c neurons. The masks are:

    - `diagonal`: the entries on the diagonal.
    - `active`: entries of two neurons that are active for every example.
    - `mixed`: entries of other pairs that are active for the same examples, at every step and
      learning rate. Thus all learning rates are compared on the same entries. Neurons that are
      never active are excluded, since their weights do not move.
    - `full`: all entries.

    `active` and `mixed` have only entries off the diagonal. If the neurons are linear, `active` has
    all of these, and there is no `mixed`.

    pattern: index of the neurons' layer among the nonlinear layers; None if the neurons are linear.
    neurons: c.
    """
    count = len(flow.theta)
    full = torch.ones(count, neurons, neurons, dtype=torch.bool, device=flow.theta.device)
    diagonal = torch.eye(neurons, dtype=torch.bool, device=full.device).expand_as(full)
    if pattern is None:
        return {"diagonal": diagonal, "active": ~diagonal, "full": full}

    def at_every_rate(mask: Tensor) -> Tensor:
        """Return, for each copy of a network, whether the mask is set at every learning rate."""
        copies = len(config.learning_rates)
        common = mask.unflatten(0, (copies, config.replicates)).all(0)
        return common.repeat(copies, *[1] * (mask.ndim - 1))

    alive, always = (at_every_rate(watched[pattern]) for watched in (flow.alive, flow.always))
    same = at_every_rate(flow.same[pattern]) & alive[:, :, None] & alive[:, None, :]
    active = always[:, :, None] & always[:, None, :]
    return {
        "diagonal": diagonal,
        "active": active & ~diagonal,
        "mixed": same & ~active & ~diagonal,
        "full": full,
    }


def entry_rows(
    config: Invariances, part: Part, D: Float[Tensor, "records S c c"], mask: Bool[Tensor, "S c c"]
) -> Iterator[Drift]:
    """Yield the rows of the table `metrics` for some entries of one matrix D.

    The drift is the norm of these entries of D(t) - D(0). part: columns that identify the entries.
    D: the matrix at every record, for the S networks. mask: the entries.
    """
    drift = ((D - D[0]) * mask).flatten(-2).norm(dim=-1)
    initial = (D[0] * mask).flatten(-2).norm(dim=-1)
    yield from drift_rows(config, part, mask.flatten(-2).sum(-1), drift, initial)


def norm_rows(
    config: Invariances, part: Part, norms: Float[Tensor, "records S"]
) -> Iterator[Drift]:
    """Yield the rows of the table `metrics` for a difference of squared norms (Lemma 3).

    The difference is ||W_l||_F^2 - ||W_L||_F^2. The drift is the largest change so far, because a
    single number may pass through zero at a record. part: columns that identify the difference.
    norms: the difference at every record, for the S networks.
    """
    drift = (norms - norms[0]).abs().cummax(0).values
    one = torch.ones_like(norms[0], dtype=torch.long)
    yield from drift_rows(config, part, one, drift, norms[0].abs())


def drift_rows(
    config: Invariances,
    part: Part,
    entries: Int[Tensor, " S"],
    drift: Float[Tensor, "records S"],
    initial: Float[Tensor, " S"],
) -> Iterator[Drift]:
    """Yield the rows of the table `metrics` for one quantity, for all networks and records.

    - part: columns that identify the quantity.
    - entries: the quantity's number of entries, for the S networks.
    - drift: its change since the start, at every record.
    - initial: its size at the start.
    """
    count, start = entries.tolist(), initial.tolist()
    for (_, time), now in zip(records(config), drift.tolist(), strict=True):
        for at, *numbers in zip(networks(config, time), count, now, start, strict=True):
            yield Drift(*vars(at).values(), *part, *numbers)


def lowrank_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory, tick: Callable[[], None]
) -> Iterator[LayerSpectrum]:
    """Yield the rows of the table `lowrank`: singular values of all layers, with their bounds.

    The bounds are those of Theorem 2. There are rows for all records, the times at which parameters
    are stored. tick: called after each record.
    """
    network, first = flow.objective.network, trajectory.theta[0]
    limits, trivial = lowrank.limit_bounds(network), lowrank.trivial_bounds(network, first)
    threshold = log(float(MARGIN_LOSSES[config.loss](torch.zeros(1))) / config.samples)
    for record, time in records(config):
        theta = trajectory.theta[record]
        measured = lowrank.spectrum(network, theta)
        measured["finite_bound"] = lowrank.finite_bounds(network, first, theta)
        with torch.no_grad():
            log_risk = flow.objective.risk(theta, log=True)[0].tolist()
        log_time = trajectory.log_time[record].tolist()
        for index, at in enumerate(networks(config, time)):
            for number, layer in enumerate(network.layers):
                yield LayerSpectrum(
                    **vars(at),
                    log_flow_time=log_time[index],
                    log_loss=log_risk[index],
                    loss=lowrank.exponential(log_risk[index]),
                    separates=log_risk[index] < threshold,
                    layer=number + 1,
                    kind=layer.kind,
                    bound=limits[number],
                    trivial_bound=trivial[number],
                    **{name: values[number][index] for name, values in measured.items()},
                )
        tick()
