"""Study `symmetry`: paper D, section 5 and figure 2.

A network of depth L sees v(0) and predicts C(v(1)), ..., C(v(T)) along gradient descent, a task of
bottleneck rank 2: up to the noise E it depends on two summary statistics of v(0) alone. Inputs are
scaled as x = sqrt(d) v, targets centred and scaled to E ||y||^2 = 1. All measures are taken of the
trained and of the untrained network, since their difference is the claim.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from runner.bottleneck import theory
from runner.bottleneck.config import Symmetry
from runner.bottleneck.dynamics import ORTHOGONAL_NORM, Dynamics, draw_dynamics
from runner.bottleneck.measures import Theorems, theorem_rows
from runner.bottleneck.networks import Network, differentiate
from runner.bottleneck.recipes import RECIPES
from runner.bottleneck.spectra import gap_rank, middle_rank, spectra, threshold_rank
from runner.bottleneck.stack import DepthStack
from runner.bottleneck.summaries import collapse_ratio, neighbour_r2, principal_components
from runner.bottleneck.training import BLOCK, Batch, Training, start
from runner.streams import generator
from runner.studies import Context, Row

ORBITS, MEMBERS = 50, 20
"""Orbits of the rotation around w, and points on each."""
PATHS = 60
"""Gradient-descent paths of panel (b)."""
PCA_LAYER, DISTANCE_LAYER = 6, 2
"""Paper D, figure 2: panels (b) and (c)."""
PIXEL = (0.75, 0.0)
"""The fixed point x_0 of panel (c), in the plane's coordinates (ours)."""


@dataclass(frozen=True)
class Metrics(Row):
    """One row per network (trained, untrained), replicate and layer 1 .. L.

    Representations are alpha_l(X), for l = L the output.
    """

    network: str
    replicate: int
    layer: int
    s1: float  # the four largest singular values of W_l
    s2: float
    s3: float
    s4: float
    rank: int  # singular values of W_l above 0.1
    rank_gap: int  # the k with the largest s_k / s_{k+1}
    knn_r2_axis: float  # (w.v)^2 predicted from two principal components of layer l
    knn_r2_orthogonal: float  # the same for ||(I - w w^T) v||^2
    step_r2: float  # the next step along a path predicted from the other paths nearby
    orbit_ratio: float  # mean distance within an orbit over between orbits
    plane_ratio: float  # the same for rings of a plane orthogonal to w


@dataclass(frozen=True)
class Training_(Row):
    """One row per network and replicate."""

    network: str
    replicate: int
    parameter_norm: float  # ||theta||^2
    test_cost: float  # C on fresh starts; the zero network costs 1
    rank: int  # singular values of W_{L/2} above 0.1
    rank_gap: int
    imbalance: float
    ntk_trace: float  # mean Tr Theta(x, x) over fresh starts

    @classmethod
    def table(cls) -> str:
        """The table `training.csv`."""
        return "training"


@dataclass(frozen=True)
class Spectrum(Row):
    """Panel (a): one row per singular value of every W_l."""

    network: str
    replicate: int
    layer: int
    index: int
    singular_value: float


@dataclass(frozen=True)
class Embedding(Row):
    """Panel (b): gradient-descent paths on the first two principal components of alpha_6(X)."""

    network: str
    replicate: int
    path: int
    time: int
    pc1: float
    pc2: float
    axis: float  # (w.v)^2
    orthogonal: float  # ||(I - w w^T) v||^2


@dataclass(frozen=True)
class Distance(Row):
    """Panel (c): ||alpha_2(x_0) - alpha_2(x)|| over a plane orthogonal to w through the origin."""

    network: str
    replicate: int
    first: float  # coordinates of v in the plane
    second: float
    distance: float


@dataclass(frozen=True)
class Task:
    """The dynamics of one replicate with its training set; inputs (N, d), targets (N, T)."""

    dynamics: Dynamics
    x: Float[Tensor, "N d"]
    y: Float[Tensor, "N T"]
    mean: Float[Tensor, " T"]
    scale: Float[Tensor, ""]

    def inputs(self, v: Float[Tensor, "... d"]) -> Float[Tensor, "... d"]:
        """`x = sqrt(d) v`."""
        return sqrt(len(self.dynamics.w)) * v

    def targets(self, v: Float[Tensor, "N d"]) -> Float[Tensor, "N T"]:
        """The costs to predict, centred and scaled as the training set."""
        return (self.dynamics.costs(v, len(self.mean)) - self.mean) / self.scale


def draw_task(config: Symmetry, replicate: int) -> Task:
    """The task of one replicate, from its stream `data`."""
    stream = generator(config.seed, replicate, "data")
    dynamics = draw_dynamics(config.dimension, config.noise, config.step_size, stream)
    v = dynamics.starts(config.starts, stream)
    costs = dynamics.costs(v, config.horizon)
    mean = costs.mean(0)
    scale = (costs - mean).square().sum(1).mean().sqrt()
    return Task(dynamics, sqrt(config.dimension) * v, (costs - mean) / scale, mean, scale)


def run(
    config: Symmetry, context: Context
) -> Iterator[Metrics | Training_ | Spectrum | Embedding | Distance | Theorems]:
    """Train all replicates in one stack, then measure each before and after training."""
    tasks = [draw_task(config, replicate) for replicate in range(config.replicates)]
    stack = new_stack(config, context.device)
    untrained = [stack.network(r) for r in range(config.replicates)]
    train(config, context, stack, tasks)
    for replicate, task in enumerate(tasks):
        stages = {"trained": stack.network(replicate), "untrained": untrained[replicate]}
        for stage, network in stages.items():
            # Small products: the CPU is faster, and its numbers are the same on every machine.
            network = Network([W.cpu() for W in network.weights], [b.cpu() for b in network.biases])
            yield from measure(config, stage, network, task, replicate)


def new_stack(config: Symmetry, device: torch.device) -> DepthStack:
    """The networks of all replicates at their start."""
    R = config.replicates
    stack = DepthStack(
        [config.depth] * R, config.width, config.dimension, config.horizon, device
    )
    return start(stack, list(range(R)), RECIPES["annealed"], config.seed)


def train(config: Symmetry, context: Context, stack: DepthStack, tasks: list[Task]) -> None:
    """Minibatch Adam with the `annealed` recipe."""
    recipe = RECIPES["annealed"]
    training = Training(stack, recipe, config.ridge, config.learning_rate, config.steps)
    x = torch.stack([task.x for task in tasks]).float().to(context.device)
    y = torch.stack([task.y for task in tasks]).float().to(context.device)
    B = min(config.batch_size, config.starts)

    def batches(block: int) -> list[Batch]:
        """The minibatches of one block of steps; a block's draw depends on its index alone."""
        chosen = []
        for replicate in range(config.replicates):
            stream = generator(config.seed, replicate, f"order/{block}")
            chosen.append(torch.randint(config.starts, (BLOCK * B,), generator=stream))
        index = torch.stack(chosen).to(context.device)[..., None]
        pools = (x.gather(1, index.expand(-1, -1, x.shape[2])), y.gather(1, index.expand_as_last(y)))
        return pools

    training.run(batches, context, f"symmetry L={config.depth}")
