"""Study `symmetry`: paper D, section 5 and figure 2.

A network of depth L gets v(0) and predicts C(v(1)), ..., C(v(T)) along gradient descent. The task
has bottleneck rank 2: without the noise E it depends only on two summary statistics of v(0). Inputs
are scaled as x = sqrt(d) v. Targets are centered and scaled to E ||y||^2 = 1.

Training has weight decay lambda throughout (recipe `constant`), or is `annealed`: no weight decay
for 200 steps, up to 5 lambda until 60 % of the steps, then lambda. The network is measured before
training (`untrained`) and after training (`trained`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.studies import Context, Row, network_name
from runner.papers.bottleneck_structure import networks, spectra, theory
from runner.papers.bottleneck_structure.networks import Network, differentiate
from runner.papers.bottleneck_structure.purposes import STEPS_AT_ONCE
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.papers.bottleneck_structure.rows import TheoremCheck
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.symmetry import summaries
from runner.papers.bottleneck_structure.symmetry.config import (
    DISTANCE_LAYER,
    PCA_LAYER,
    PIXEL,
    Symmetry,
)
from runner.papers.bottleneck_structure.symmetry.dynamics import ORTHOGONAL_NORM, Dynamics
from runner.papers.bottleneck_structure.symmetry.rows import (
    Distance,
    LayerMeasures,
    NetworkAtStage,
    PathPoint,
    SingularValue,
)
from runner.papers.bottleneck_structure.theorems import theorem_rows
from runner.papers.bottleneck_structure.training import Batch, RidgeTrainer, start

torch_module = networks.torch_module

ORBITS, MEMBERS = 50, 20
"""Number of orbits of the rotation around w, and of points on each orbit."""
PATHS = 60
"""Number of gradient-descent paths of panel (b)."""


@dataclass(frozen=True)
class Task:
    """The dynamics of one replicate, with its training inputs x and targets y, one sample per row.

    mean, scale: the numbers by which targets are centered and scaled.
    """

    dynamics: Dynamics
    x: Float[Tensor, "N d"]
    y: Float[Tensor, "N T"]
    mean: Float[Tensor, " T"]
    scale: Float[Tensor, ""]

    def inputs(self, v: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """Return the network's inputs `x = sqrt(d) v` for points v."""
        return sqrt(len(self.dynamics.w)) * v

    def targets(self, v: Float[Tensor, "N d"]) -> Float[Tensor, "N T"]:
        """Return the costs to predict from points v, centered and scaled as in training."""
        return (self.dynamics.costs(v, len(self.mean)) - self.mean) / self.scale


def draw_task(config: Symmetry, replicate: int) -> Task:
    """Return the task of one replicate, drawn from its random stream `data`."""
    stream = config.stream(replicate, "data")
    dynamics = Dynamics.drawn(config.dimension, config.noise, config.step_size, stream)
    v = dynamics.starts(config.starts, stream)
    costs = dynamics.costs(v, config.horizon)
    mean = costs.mean(0)
    scale = (costs - mean).square().sum(1).mean().sqrt()
    return Task(dynamics, sqrt(config.dimension) * v, (costs - mean) / scale, mean, scale)


def run(config: Symmetry, context: Context) -> Iterator[Row]:
    """Train all replicates together; yield rows of each network before and after training.

    Raises InputError for an unknown recipe.
    """
    R, recipe = config.replicates, lookup("recipe", config.recipe, RECIPES)
    tasks = [draw_task(config, replicate) for replicate in range(R)]
    stack = DepthStack(
        [config.depth] * R, config.width, config.dimension, config.horizon, context.device
    )
    start(stack, list(range(R)), recipe, config.stream)
    untrained = [stack.network(r) for r in range(R)]
    trainer = RidgeTrainer(stack, recipe, config.ridge, config.learning_rate, config.steps)
    trainer.run(minibatches(config, tasks, context.device), context)
    for replicate, task in enumerate(tasks):
        stages = {"trained": stack.network(replicate), "untrained": untrained[replicate]}
        for stage, network in stages.items():
            yield from measure(config, stage, network, task, replicate)
            name, now = network_name(stage, width=config.width), partial(network.traced, task.x)
            yield from context.hand_over(name, replicate, config.steps, now)


def minibatches(
    config: Symmetry, tasks: list[Task], device: torch.device
) -> Callable[[int], list[Batch]]:
    """Return a function from the index of a block of steps to the block's minibatches.

    tasks: the task of each replicate.
    """
    x = torch.stack([task.x for task in tasks]).float().to(device)
    y = torch.stack([task.y for task in tasks]).float().to(device)
    network_index = torch.arange(len(tasks), device=device)[:, None]

    def batches(block: int) -> list[Batch]:
        """Return the minibatches of one block of steps; they depend only on the block's index."""
        streams = [config.stream(r, f"order/{block}") for r in range(len(tasks))]
        size = (STEPS_AT_ONCE, config.batch_size)
        drawn = [torch.randint(config.starts, size, generator=stream) for stream in streams]
        index = torch.stack(drawn, dim=1).to(device)  # (steps, R, batch)
        xs, ys = (pool[network_index, index].mT.contiguous() for pool in (x, y))
        return list(zip(xs, ys, strict=True))

    return batches


def measure(
    config: Symmetry, stage: str, network: Network, task: Task, replicate: int
) -> Iterator[LayerMeasures | NetworkAtStage | SingularValue | PathPoint | Distance | TheoremCheck]:
    """Yield all rows of one network. stage: "trained" or "untrained"."""
    key = {"stage": stage, "replicate": replicate}
    v = task.dynamics.starts(config.probes, config.stream(replicate, "probes"))
    x = task.inputs(v)
    derivatives = differentiate(network, x)
    jacobian_ranks = spectra.jacobian_ranks(derivatives.jacobian)
    yield NetworkAtStage(
        **key,
        **spectra.ranks(network, derivatives),
        parameter_norm=float(network.parameter_norm()),
        train_cost=network.cost(task.x, task.y),
        test_cost=network.cost(x, task.targets(v)),
        rank_share=float((jacobian_ranks == jacobian_ranks.max()).double().mean()),
        imbalance=theory.imbalance(network),
        ntk_trace=float(theory.ntk_trace(network, derivatives, x).mean()),
    )
    yield from _layers(config, key, network, task, v)
    yield from _embedding(config, key, network, task)
    yield from _distances(config, key, network, task)
    k = int(jacobian_ranks.max())
    if stage == "trained" and 0 < k < min(config.width, config.dimension, config.horizon):
        yield from theorem_rows(network, x[: config.points], k, replicate)


def _layers(
    config: Symmetry, key: dict, network: Network, task: Task, v: Float[Tensor, "N d"]
) -> Iterator[LayerMeasures | SingularValue]:
    """Yield for every layer its singular values and the measures of its representation."""
    dynamics, stream = task.dynamics, config.stream(key["replicate"], "orbits")
    statistics = dynamics.statistics(v)
    sample_index = torch.arange(len(v))
    path = _paths(config, task, key["replicate"])
    path_index = torch.arange(PATHS).repeat_interleave(config.horizon)  # of every step
    orbits, rings = _orbits(dynamics, stream), _rings(dynamics, stream)
    sets = [network.activations(task.inputs(points)) for points in (v, path, orbits, rings)]
    for layer, s in enumerate(spectra.spectra(network), start=1):
        features, along_paths, on_orbits, on_rings = (alphas[layer] for alphas in sets)
        mean, directions = summaries.principal_components(features)
        nearest = summaries.neighbours((features - mean) @ directions, sample_index)
        along = ((along_paths - mean) @ directions).view(PATHS, -1, 2)
        now, step = along[:, :-1].flatten(0, 1), along.diff(dim=1).flatten(0, 1)
        largest = torch.cat([s, s.new_zeros(4)])[:4].tolist()
        yield LayerMeasures(
            **key,
            layer=layer,
            **{f"s{index}": value for index, value in enumerate(largest, start=1)},
            rank=spectra.threshold_rank(s),
            rank_gap=spectra.gap_rank(s),
            knn_r2_axis=summaries.neighbour_r2(nearest, statistics[:, :1]),
            knn_r2_orthogonal=summaries.neighbour_r2(nearest, statistics[:, 1:]),
            step_r2=summaries.neighbour_r2(summaries.neighbours(now, path_index), step),
            orbit_ratio=summaries.collapse_ratio(on_orbits.view(ORBITS, MEMBERS, -1)),
            plane_ratio=summaries.collapse_ratio(on_rings.view(ORBITS, MEMBERS, -1)),
        )
        for index, value in enumerate(s.tolist(), start=1):
            yield SingularValue(**key, layer=layer, index=index, singular_value=value)


def _paths(config: Symmetry, task: Task, replicate: int) -> Float[Tensor, "M d"]:
    """Return v(0) .. v(T) of new paths, path by path."""
    stream = config.stream(replicate, "paths")
    path = task.dynamics.path(task.dynamics.starts(PATHS, stream), config.horizon)
    return path.transpose(0, 1).flatten(0, 1)


def _orbits(dynamics: Dynamics, stream: torch.Generator) -> Float[Tensor, "M d"]:
    """Return points of orbits of the rotations around w.

    Points of an orbit share w.v and the norm of the orthogonal part; the direction of this part is
    random.
    """
    u = dynamics.statistics(dynamics.starts(ORBITS, stream)).sqrt()
    away = dynamics.directions(ORBITS * MEMBERS, stream)
    along, norm = (values.repeat_interleave(MEMBERS)[:, None] for values in u.unbind(1))
    return along * dynamics.w + norm * away


def _rings(dynamics: Dynamics, stream: torch.Generator) -> Float[Tensor, "M d"]:
    """Return circles around the origin in a plane orthogonal to w: orbits with w.v = 0."""
    radius = ORTHOGONAL_NORM * torch.arange(1, ORBITS + 1, dtype=torch.float64) / ORBITS
    angle = 2 * torch.pi * torch.arange(MEMBERS, dtype=torch.float64) / MEMBERS
    circle = torch.stack([angle.cos(), angle.sin()], dim=1)
    return (radius[:, None, None] * (circle @ _plane(dynamics, stream).mT)).flatten(0, 1)


def _plane(dynamics: Dynamics, stream: torch.Generator) -> Float[Tensor, "d 2"]:
    """Return an orthonormal basis of a random plane orthogonal to w."""
    return torch.linalg.qr(dynamics.directions(2, stream).mT)[0]


def _embedding(config: Symmetry, key: dict, network: Network, task: Task) -> Iterator[PathPoint]:
    """Yield the rows of panel (b)."""
    path = _paths(config, task, key["replicate"])
    features = network.activations(task.inputs(path))[min(PCA_LAYER, network.depth)]
    mean, directions = summaries.principal_components(features)
    plane = (features - mean) @ directions
    statistics = task.dynamics.statistics(path)
    for n, (point, u) in enumerate(zip(plane.tolist(), statistics.tolist(), strict=True)):
        index, time = divmod(n, config.horizon + 1)
        yield PathPoint(
            **key, path=index, time=time, pc1=point[0], pc2=point[1], axis=u[0], orthogonal=u[1]
        )


def _distances(config: Symmetry, key: dict, network: Network, task: Task) -> Iterator[Distance]:
    """Yield the rows of panel (c)."""
    basis = _plane(task.dynamics, config.stream(key["replicate"], "plane"))
    side = torch.linspace(-ORTHOGONAL_NORM, ORTHOGONAL_NORM, config.resolution, dtype=basis.dtype)
    grid = torch.cartesian_prod(side, side)
    points = torch.cat([grid.new_tensor([PIXEL]), grid]) @ basis.mT
    features = network.activations(task.inputs(points))[min(DISTANCE_LAYER, network.depth)]
    distances = (features[1:] - features[0]).norm(dim=1)
    for (first, second), distance in zip(grid.tolist(), distances.tolist(), strict=True):
        yield Distance(**key, first=first, second=second, distance=distance)
