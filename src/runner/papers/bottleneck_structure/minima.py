"""Search for the best solution of each depth, since the statements of paper D are about minima.

Adam ends some percent above the minimum of `C(f) + lambda ||theta||^2`. The search continues from
the network that Adam has trained. It removes neurons whose weights are zero, merges parallel
neurons, balances all others, and minimizes over all weights by L-BFGS. These steps are repeated
until two restarts in a row gain nothing, first in float32, then in float64.

At some depths several independent initializations are used. A solution of one depth also
initializes its neighbors: two layers become one, or a projection is inserted as a layer. The lowest
loss of a depth is stored. Its distance to the second lowest is its error bar.

An inserted projection of rank k costs about lambda k, so that minima have `F(L + 1) <= F(L) +
lambda k`. The losses from separate initializations do not have this slope by construction.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isnan, nan

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure import descent
from runner.papers.bottleneck_structure.networks import Network
from runner.papers.bottleneck_structure.spectra import gap_rank

DEAD = 1e-6
"""Product of the norms of a neuron's incoming and outgoing weights at which the neuron is
removed.
"""

PARALLEL = 0.999
"""Smallest cosine between the weights, biases included, of two neurons that are merged.

L-BFGS stops early where many nearly equal neurons have their kinks at the samples.
"""

MERGING = 1e-2
"""Relative increase of the loss from which on parallel neurons are not merged.

After such a merge L-BFGS mostly ends at a higher loss.
"""

RESTARTS = 25
"""Largest number of restarts of L-BFGS."""

GAIN = 2e-5
"""Relative decrease of the loss between two checks below which L-BFGS restarts.

The search ends after two restarts in a row with a smaller decrease. The gradient is no criterion:
it stays near 1e-3 where a ReLU has its kink at a sample. With 1e-4 deep networks end 0.1 to 0.2 %
higher.
"""

DIVERGED = 1e6
"""Smallest loss of a diverged network; the zero network has 1."""

SETTLED = 2e-3
"""Smallest relative decrease of a depth's lowest loss after which its neighbors are tried again."""

SWEEPS = 6
"""Largest number of sweeps down and up through the depths."""

BALANCING, CLOSE = 100, 1e-9
"""Largest number of sweeps over the layers, and smallest change at which sweeps end.

Each sweep about halves the remaining imbalance. The sweeps end when no factor differs from 1 by
more than CLOSE.
"""


@dataclass(frozen=True)
class Problem:
    """The loss `C(f) + lambda ||theta||^2` on N samples, in float64."""

    x: Float[Tensor, "d_in N"]
    y: Float[Tensor, "d_out N"]
    ridge: float  # lambda

    def loss(self, network: Network) -> float:
        """Return `C(f) + lambda ||theta||^2` of a network."""
        outputs = network.activations(self.x.mT)[-1].mT
        cost = (outputs - self.y).square().sum(0).mean()
        return float(cost + self.ridge * network.parameter_norm())


def pruned(network: Network) -> Network:
    """Return the network without neurons whose weights are zero up to DEAD.

    Each layer keeps at least one neuron.
    """
    weights, biases = [W.clone() for W in network.weights], [b.clone() for b in network.biases]
    for i in range(network.depth - 1):
        entering = (weights[i].square().sum(1) + biases[i].square()).sqrt()
        through = entering * weights[i + 1].norm(dim=0)
        alive = through > DEAD
        if not alive.any():
            alive[through.argmax()] = True
        weights[i], biases[i] = weights[i][alive], biases[i][alive]
        weights[i + 1] = weights[i + 1][:, alive]
    return Network(weights, biases)


def merged(network: Network) -> Network:
    """Return the network with each group of nearly parallel neurons replaced by one neuron.

    The new neuron has the group's mean direction and its summed output. If the neurons are exactly
    parallel, f does not change. The `||theta||^2` of the balanced network then does not grow:
    `||sum_i a_i|| <= sum_i ||a_i||`, where a_i is the output of neuron i at unit weights.
    """
    weights, biases = [W.clone() for W in network.weights], [b.clone() for b in network.biases]
    for i in range(network.depth - 1):
        entering = torch.cat([weights[i], biases[i][:, None]], 1)
        direction, leaving = normalize(entering), weights[i + 1] * entering.norm(dim=1)
        size = leaving.norm(dim=0)
        parallel = (direction @ direction.mT > PARALLEL).fill_diagonal_(True)
        group = torch.zeros_like(parallel)  # row: the largest neuron of a group; columns: the group
        for neuron in size.argsort(descending=True):
            group[neuron] = parallel[neuron] & ~group.any(0)
        group = group[group.any(1)].to(size.dtype)
        direction = normalize((group * size) @ direction)
        weights[i], biases[i] = direction[:, :-1].clone(), direction[:, -1].clone()
        weights[i + 1] = leaving @ group.mT
    return Network(weights, biases)


def balanced(network: Network, sweeps: int = BALANCING) -> Network:
    """Return the network with every neuron rescaled to equal incoming and outgoing norms.

    In the result, `||W_{l,i.}||^2 + b_{l,i}^2 = ||W_{l+1,.i}||^2` for neuron i of layer l. The
    function f does not change, and `||theta||^2` is the smallest of all rescalings. sweeps: largest
    number of sweeps over the layers.
    """
    theta, sizes = flattened(network)
    descent.balance(theta.numpy(), sizes, sweeps, CLOSE)
    return _network(theta, sizes)


def flattened(network: Network) -> tuple[Float[Tensor, " n"], np.ndarray]:
    """Return one vector with all layers, and the sizes n_0 .. n_L.

    The last column of each layer has its biases.
    """
    layers = zip(network.weights, network.biases, strict=True)
    theta = torch.cat([torch.cat([W, b[:, None]], 1).flatten() for W, b in layers])
    return theta, np.array([network.weights[0].shape[1], *map(len, network.biases)])


def _network(theta: Float[Tensor, " n"], sizes: np.ndarray) -> Network:
    """Return the float64 network of a vector and the sizes that `flattened` returns."""
    shapes = [(int(m), int(n) + 1) for n, m in pairwise(sizes)]
    parts = theta.double().split([m * n for m, n in shapes])
    layers = [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]
    return Network(
        [layer[:, :-1].contiguous() for layer in layers], [layer[:, -1].clone() for layer in layers]
    )


def polished(network: Network, problem: Problem, restarts: int = RESTARTS) -> Network:
    """Return the network after minimization of its loss by L-BFGS.

    The network is pruned, merged and balanced before every restart. L-BFGS begins in float32. It
    continues in float64 after the first restart that gains less than GAIN. The search ends after
    two such restarts in a row, or after `restarts` restarts. A diverged network is returned
    unchanged.
    """
    best, idle, dtype = problem.loss(network), 0, torch.float32
    if not best < DIVERGED:
        return network
    for _ in range(restarts):
        smaller = pruned(network)
        fewer = merged(smaller)
        smaller = fewer if problem.loss(fewer) < (1 + MERGING) * best else smaller
        lower = _descended(balanced(smaller), problem, dtype)
        loss = problem.loss(lower)
        idle = 0 if loss < (1 - GAIN) * best else idle + 1
        if loss < best:
            network, best = lower, loss
        if idle == 2:
            break
        dtype = torch.float64 if idle else dtype
    return balanced(pruned(network))


def _descended(network: Network, problem: Problem, dtype: torch.dtype) -> Network:
    """Return the network after L-BFGS in one precision, which ends when it gains less than GAIN."""
    theta, sizes = flattened(network)
    theta = theta.to(dtype)
    x = torch.cat([problem.x, torch.ones_like(problem.x[:1])]).to(dtype).numpy()
    descent.descend(theta.numpy(), sizes, x, problem.y.to(dtype).numpy(), problem.ridge, GAIN)
    return _network(theta, sizes)


def shortened(network: Network, problem: Problem) -> Network:
    """Return a network with one layer less: two neighboring layers become `W_{l+1} W_l`.

    The replaced pair of neighbors is the one with the smallest resulting loss.
    """

    def merged(i: int) -> Network:
        """Return the network whose layers i and i + 1 are replaced by one layer."""
        W, b = network.weights, network.biases
        weights = [*W[:i], W[i + 1] @ W[i], *W[i + 2 :]]
        return Network(weights, [*b[:i], W[i + 1] @ b[i] + b[i + 1], *b[i + 2 :]])

    return min((merged(i) for i in range(network.depth - 1)), key=problem.loss)


def lengthened(network: Network, problem: Problem) -> Network:
    """Return a network with one layer more, inserted where the resulting loss is smallest.

    The new layer projects the representation of a hidden layer on its k leading directions, around
    zero or around its mean. k is the rank of the middle layer.
    """
    k = max(1, gap_rank(svdvals(network.weights[network.depth // 2 - 1])))
    hidden = network.activations(problem.x.mT)[1:-1]

    def projected(i: int, centred: bool) -> Network:
        """Return the network with the layer inserted after hidden layer i."""
        H = hidden[i]
        mean = H.mean(0) if centred else H.new_zeros(H.shape[1])
        _, _, right = torch.linalg.svd(H - mean, full_matrices=False)
        P = right[:k].mT @ right[:k]
        weights = [*network.weights[: i + 1], P, *network.weights[i + 1 :]]
        biases = [*network.biases[: i + 1], mean - P @ mean, *network.biases[i + 1 :]]
        return Network(weights, biases)

    choices = [(i, centred) for i in range(len(hidden)) for centred in (False, True)]
    return min((projected(*choice) for choice in choices), key=problem.loss)


@dataclass(frozen=True)
class Minimum:
    """The best network found at one depth, its loss, and other losses at this depth."""

    network: Network
    loss: float
    second: float = inf
    """Second lowest loss, from another initialization or from a network of another depth."""
    independent: tuple[float, ...] = ()
    """Losses from the initializations at this depth, in their order."""

    @property
    def spread(self) -> float:
        """Return (second lowest loss - lowest loss) / lowest loss; nan without a second loss."""
        return self.second / self.loss - 1 if self.second < inf else nan

    @property
    def best_start(self) -> float:
        """Return the lowest loss from the initializations at this depth; nan if there are none."""
        return min(self.independent, default=nan)


def minima(
    starts: Mapping[int, Sequence[Network]],
    depths: Collection[int],
    problem: Problem,
    tick: Callable[[Network, float], None] = lambda network, loss: None,
) -> dict[int, Minimum]:
    """Search for the network of lowest loss at each depth; return a `Minimum` for each depth.

    First the loss of all initial networks is minimized by `polished`. Then the best network of each
    depth is shortened or lengthened to the neighboring depths, and minimized again. These sweeps
    down and up are repeated until no loss falls by more than the fraction SETTLED, at most SWEEPS
    times. Depths that no network reaches are absent from the result.

    starts: initial networks of some of the depths, by depth. depths: all depths. tick: called with
    every minimized network and its loss, for a progress bar.
    """
    depths = sorted(depths)
    best: dict[int, Minimum] = {}
    fresh: set[tuple[int, int]] = set()  # steps to try, from depths whose loss fell

    def offer(network: Network, initial: bool) -> None:
        """Polish a network, and store it if it is the best or the second best of its depth.

        initial: whether it comes from an initialization of this depth.
        """
        network = polished(network, problem)
        L, loss = network.depth, problem.loss(network)
        loss = inf if isnan(loss) else loss
        tick(network, loss)
        known_best = best.get(L, Minimum(network, inf))
        ends = known_best.independent + ((loss,) if initial else ())
        if loss < known_best.loss:
            best[L] = Minimum(network, loss, known_best.loss, ends)
        else:
            best[L] = replace(known_best, second=min(known_best.second, loss), independent=ends)
        if loss < (1 - SETTLED) * known_best.loss:
            fresh.update((L, there) for there in depths)

    for L in sorted(starts):
        for network in starts[L]:
            offer(network, initial=True)
    down, up = ([*zip(way, way[1:], strict=False)] for way in (depths[::-1], depths))
    for _ in range(SWEEPS):
        for here, there in down + up:
            if (here, there) in fresh:
                fresh.remove((here, there))
                network, change = best[here].network, shortened if there < here else lengthened
                for _ in range(abs(there - here)):
                    network = change(network, problem)
                offer(network, initial=False)
    return dict(sorted(best.items()))
