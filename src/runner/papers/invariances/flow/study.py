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

from runner.core.progress import WhenShown
from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.papers.invariances import theory
from runner.papers.invariances.flow import low_rank as lowrank
from runner.papers.invariances.flow.config import Invariances
from runner.papers.invariances.flow.gradient_flow import Flow, Objective, losses
from runner.papers.invariances.flow.junctions import Junction, junctions
from runner.papers.invariances.flow.layers import Convolution
from runner.papers.invariances.flow.network import Network, build
from runner.papers.invariances.flow.paths import graph, path_products, tree
from runner.papers.invariances.flow.problem import SIDE, LoadData, draw_examples

MOST_WEIGHTS, MOST_PATHS = 300, 3000
"""Of networks whose paths are listed for Lemma 1."""

LISTED = 2
"""Examples that f and its tree network are compared on."""


@dataclass(frozen=True)
class Metrics(Row):
    """One row per replicate, rate, time, place in the network, and part of the invariant there."""

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
class Lowrank(Row):
    """One row per replicate, rate, time and layer."""

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


@dataclass(frozen=True)
class Assumptions(Row):
    """One row per replicate, rate and time."""

    keys: ClassVar[tuple[str, ...]] = ("architecture", "replicate", "learning_rate", "time")

    architecture: str
    replicate: int
    learning_rate: float
    time: float  # by the clock
    sign_changes: float  # share of weights with another sign than at the record before
    turned: float  # angle between the weights here and at the record before, in radians
    smallest: float  # least |weight| over their root mean square: no zero in the direction
    off: float  # share of nonlinear neurons that no example switches on


@dataclass(frozen=True)
class Decomposition(Row):
    """One row per replicate at the smallest rate, at the start and at the end."""

    keys: ClassVar[tuple[str, ...]] = ("architecture", "replicate", "learning_rate", "time")

    architecture: str
    replicate: int
    learning_rate: float
    time: float  # by the clock
    paths: int  # from the inputs to the output
    output: float  # largest |f(x)| over some examples
    error: float  # largest |f(x) - mu(rho(x))| there, mu the tree network of Lemma 1
    frozen_error: float  # the same with the signs of the start in mu


def run(
    config: Invariances, context: Context
) -> Iterator[Metrics | Lowrank | Assumptions | Decomposition]:
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


def network_of(config: Invariances) -> Network:
    """The network that the configuration describes."""
    return build(
        config.architecture,
        config.depth,
        config.width,
        config.channels,
        SIDE,
        config.negative_slope,
        config.biases,
    )


def memory(config: Invariances) -> int:
    """Bytes at the peak: the trajectory, and either a step with its activations or the largest
    invariant at all records.
    """
    network = network_of(config)
    S, n = len(rates(config)), config.samples
    parameters = sum(prod(shape) for layer in network.layers for shape in layer.shapes().values())
    trajectory, step = config.records + 1, 10 if config.integrator == "rk4" else 6
    activations, neurons = 0, config.width
    for layer in network.layers:
        activations += 4 * layer.source.features + 4 * layer.target.features
        if isinstance(layer, Convolution):  # the patches
            activations += 4 * layer.target.positions * layer.source.channels * layer.kernel**2
        neurons = max(neurons, layer.target.channels)
    invariant = 4 * (config.records + 1) * neurons**2
    return 8 * S * (trajectory * parameters + max(step * parameters + n * activations, invariant))


@dataclass
class Trajectory:
    """What is kept of the way: the parameters and the flow's own log time at each record."""

    theta: Float[Tensor, "records S P"]
    log_time: Float[Tensor, "records S"]


def rates(config: Invariances) -> list[float]:
    """The rate of each network in the stack: ascending, all replicates of a rate together."""
    return [rate for rate in sorted(config.learning_rates) for _ in range(config.replicates)]


def start(config: Invariances, network: Network, device: torch.device, load_data: LoadData) -> Flow:
    """The stack at time zero: the networks of one replicate share examples and initialisation."""
    copies = len(config.learning_rates)
    x, y = (
        tensor.repeat(copies, *[1] * (tensor.ndim - 1))
        for tensor in draw_examples(config, load_data)
    )
    drawn = [
        network.draw(
            config.gain,
            config.active,
            config.twins,
            generator(config.seed, replicate, "initialisation"),
        )
        for replicate in range(config.replicates)
    ]
    theta = torch.stack(drawn).repeat(copies, 1)
    return Flow(
        Objective(network, x.to(device), y.to(device), config.loss),
        theta.to(device),
        rates(config),
        config.integrator,
        config.normalized_time,
    )


def follow(config: Invariances, flow: Flow, context: Context) -> Trajectory:
    """Integrate to the end; goes on from the checkpoint where there is one."""
    theta = flow.theta.new_empty(config.records + 1, *flow.theta.shape)
    log_time = flow.log_time.new_empty(config.records + 1, len(flow.log_time))
    kept = {"trajectory": theta, "log_times": log_time}
    done = 0
    if context.restored is None:
        theta[0], log_time[0] = flow.theta, flow.log_time
    else:
        state = dict(context.restored)
        done = int(state.pop("done"))
        for name, tensor in kept.items():
            tensor.copy_(state.pop(name))
        flow.restore(state)
    duration = config.time / config.records
    steps = flow.steps(duration)
    log_loss = WhenShown(lambda: flow.objective.log_risk(flow.theta)[0].mean())
    with context.progress(config.records * steps, "flow", done=done * steps) as bar:
        for record in range(done + 1, config.records + 1):
            flow.advance(duration, lambda: bar.update(log_loss=log_loss))
            theta[record], log_time[record] = flow.theta, flow.log_time
            position = torch.tensor(record)
            context.checkpoint(lambda at=position: {**flow.state(), **kept, "done": at})
    return Trajectory(theta, log_time)


def metrics(
    config: Invariances,
    network: Network,
    flow: Flow,
    trajectory: Trajectory,
    tick: Callable[[], None],
) -> Iterator[Metrics]:
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
) -> Iterator[Metrics]:
    """The drift of one part of one invariant: norms of the masked entries of D(t) - D(0)."""
    drift = ((D - D[0]) * mask).flatten(-2).norm(dim=-1).tolist()
    initial = (D[0] * mask).flatten(-2).norm(dim=-1).tolist()
    entries = mask.flatten(-2).sum(-1).tolist()
    for record, time in records(config):
        for index, rate in enumerate(rates(config)):
            yield Metrics(
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


def layer_rows(config: Invariances, network: Network, trajectory: Trajectory) -> Iterator[Metrics]:
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
                yield Metrics(
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


def records(config: Invariances) -> Iterator[tuple[int, float]]:
    """The number and the time of each record."""
    for record in range(config.records + 1):
        yield record, config.time * record / config.records


def lowrank_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory, tick: Callable[[], None]
) -> Iterator[Lowrank]:
    """The singular values of all layers at all records, with the bounds of Theorem 2.

    `tick` is called after each record.
    """
    network = flow.objective.network
    bounds = lowrank.limit_bounds(network, theory.RESIDUAL_FACTOR)
    sharp_bounds = lowrank.limit_bounds(network, theory.SHARP_RESIDUAL_FACTOR)
    threshold = log(float(losses(torch.zeros(1), config.loss)) / config.samples)
    for record, time in records(config):
        theta = trajectory.theta[record]
        spectrum = lowrank.spectrum(network, theta)
        finite = lowrank.finite_bounds(network, trajectory.theta[0], theta)
        with torch.no_grad():
            log_risk = flow.objective.log_risk(theta)[0].tolist()
        log_time = trajectory.log_time[record].tolist()
        for index, rate in enumerate(rates(config)):
            for number, layer in enumerate(network.weighted.values()):
                yield Lowrank(
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


def assumption_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[Assumptions]:
    """Assumptions 1 and 2 between one record and the next, and the neurons that are off."""
    before = trajectory.theta[0]
    for record, time in records(config):
        theta = trajectory.theta[record]
        changes = (theta.sign() != before.sign()).double().mean(-1)
        one, other = (v / v.norm(dim=-1, keepdim=True) for v in (theta, before))
        turned = 2 * torch.asin(((one - other).norm(dim=-1) / 2).clamp(max=1))
        smallest = theta.abs().amin(-1) / theta.square().mean(-1).sqrt()
        with torch.no_grad():
            _, preactivations = flow.objective.network.forward(theta, flow.objective.x)
        off = torch.cat([(z <= 0).all(-2) for z in preactivations], -1) if preactivations else None
        share = torch.zeros_like(smallest) if off is None else off.double().mean(-1)
        columns = zip(*(c.tolist() for c in (changes, turned, smallest, share)), strict=True)
        for index, (rate, numbers) in enumerate(zip(rates(config), columns, strict=True)):
            replicate = index % config.replicates
            yield Assumptions(config.architecture, replicate, rate, time, *numbers)
        before = theta


def decomposition_rows(
    config: Invariances, flow: Flow, trajectory: Trajectory
) -> Iterator[Decomposition]:
    """Lemma 1 at the start and at the end, where the paths can be listed."""
    network = flow.objective.network
    if trajectory.theta.shape[-1] > MOST_WEIGHTS:
        return
    for replicate in range(config.replicates):
        first = None
        for record, time in ((0, 0.0), (config.records, config.time)):
            theta = trajectory.theta[record, replicate : replicate + 1].cpu()
            weights = [{k: w[0] for k, w in each.items()} for each in network.unpack(theta)]
            unrolled = graph(network, weights)
            first = first or unrolled
            count = unrolled.count()
            if count > MOST_PATHS:
                return
            x = flow.objective.x[replicate, :LISTED].cpu()
            outputs = network.forward(theta, x[None])[0][0]
            products = [path_products(unrolled, example) for example in x]
            now, frozen = (
                torch.stack([tree(each, rho) for rho in products]) for each in (unrolled, first)
            )
            yield Decomposition(
                architecture=config.architecture,
                replicate=replicate,
                learning_rate=min(config.learning_rates),
                time=time,
                paths=count,
                output=float(outputs.abs().max()),
                error=float((outputs - now).abs().max()),
                frozen_error=float((outputs - frozen).abs().max()),
            )
