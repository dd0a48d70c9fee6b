"""The lowest loss of each depth: what the statements of paper D are about.

Adam ends some percent above the minimum of `C(f) + lambda ||theta||^2`. Here a network is taken
further, in float64: neurons that the ridge has killed are removed, the others balanced, and all
weights brought down by L-BFGS. A minimum of one depth starts its neighbours, too: two layers become
one, or a layer is put in that projects on the directions which its input has. So every depth is
reached from above and from below, and the lowest loss is kept.

A projection put in costs about lambda k, k its rank: `F(L + 1) <= F(L) + lambda k` for minima F(L).
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf, isnan

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from runner.networks.spectra import svdvals
from runner.papers.bottleneck_structure.networks import Network
from runner.papers.bottleneck_structure.spectra import gap_rank

DEAD = 1e-6
"""Norm of what enters a neuron times that of what leaves it, below which it is removed."""

CORRECTIONS, ITERATIONS, ROUNDS = 30, 200, 2
"""Of L-BFGS: pairs it remembers, iterations of a round, rounds with pruning between them."""

DECREASE = 1e-10
"""Decrease of the loss in an iteration, below which a round ends; the zero network's loss is 1. Not
by the gradient: it stays near 1e-3 where a ReLU has its kink at a sample."""

SAMPLES_AT_ONCE = 500
"""Of an evaluation, which holds their activations in all layers."""

SETTLED = 1e-3
"""Relative decrease of the lowest loss of a depth, from which on its neighbours are tried again."""

SWEEPS = 6
"""Down and up through the depths, at most."""

BALANCING = 100
"""Sweeps over the layers; each halves about what is left of the imbalance."""


@dataclass(frozen=True)
class Problem:
    """What is minimised: `C(f) + lambda ||theta||^2` on samples in float64."""

    x: Float[Tensor, "d_in N"]
    y: Float[Tensor, "d_out N"]
    ridge: float  # lambda

    def loss(self, network: Network) -> float:
        """`C(f) + lambda ||theta||^2`."""
        outputs = network.activations(self.x.mT)[-1].mT
        cost = (outputs - self.y).square().sum(0).mean()
        return float(cost + self.ridge * network.parameter_norm())


def pruned(network: Network) -> Network:
    """Without the neurons through which nothing passes; every layer keeps one."""
    weights, biases = [W.clone() for W in network.weights], [b.clone() for b in network.biases]
    for i in range(network.depth - 1):
        entering = (weights[i].square().sum(1) + biases[i].square()).sqrt()
        through = entering * weights[i + 1].norm(dim=0)
        kept = through > DEAD
        if not kept.any():
            kept[through.argmax()] = True
        weights[i], biases[i] = weights[i][kept], biases[i][kept]
        weights[i + 1] = weights[i + 1][:, kept]
    return Network(weights, biases)


def balanced(network: Network, sweeps: int = BALANCING) -> Network:
    """The same function, with `||W_{l,i.}||^2 + b_{l,i}^2 = ||W_{l+1,.i}||^2` for every neuron.

    Of all ways to scale a neuron that has the smallest `||theta||^2`.
    """
    weights, biases = [W.clone() for W in network.weights], [b.clone() for b in network.biases]
    for _ in range(sweeps):
        for i in range(network.depth - 1):
            entering = weights[i].square().sum(1) + biases[i].square()
            leaving = weights[i + 1].square().sum(0)
            factor = (leaving / entering).nan_to_num(1.0, 1.0, 1.0) ** 0.25
            factor = torch.where(factor > 0, factor, 1.0)
            weights[i] *= factor[:, None]
            biases[i] *= factor
            weights[i + 1] /= factor
    return Network(weights, biases)


def polished(
    network: Network, problem: Problem, iterations: int | None = None, rounds: int = ROUNDS
) -> Network:
    """Where L-BFGS gets to from here, pruned and balanced before and after.

    iterations: of each round, at most; None: ITERATIONS.
    """
    for _ in range(rounds):
        network = _descended(balanced(pruned(network)), problem, iterations or ITERATIONS)
    return balanced(pruned(network))


def _descended(network: Network, problem: Problem, iterations: int) -> Network:
    shapes = [tuple(W.shape) for W in network.weights]
    x, y = (np.ascontiguousarray(tensor.numpy()) for tensor in (problem.x, problem.y))
    start = np.concatenate([t.numpy().ravel() for t in (*network.weights, *network.biases)])
    found = minimize(
        lambda theta: _loss_and_gradient(theta, shapes, x, y, problem.ridge),
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxcor": CORRECTIONS, "maxiter": iterations, "ftol": DECREASE, "gtol": 0.0},
    )
    weights, biases = _views(found.x, shapes)
    return Network(*([torch.from_numpy(t.copy()) for t in parts] for parts in (weights, biases)))


def _views(theta: np.ndarray, shapes: list[tuple[int, int]]) -> tuple[list, list]:
    """W_1 .. W_L and b_1 .. b_L as views of one vector."""
    sizes = [m * n for m, n in shapes] + [m for m, _ in shapes]
    parts = np.split(theta, np.cumsum(sizes)[:-1])
    weights = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=False)]
    return weights, parts[len(shapes) :]


def _loss_and_gradient(
    theta: np.ndarray, shapes: list[tuple[int, int]], x: np.ndarray, y: np.ndarray, ridge: float
) -> tuple[float, np.ndarray]:
    """`C(f) + lambda ||theta||^2` and its gradient, block after block of the samples."""
    weights, biases = _views(theta, shapes)
    N = x.shape[1]
    loss, gradient = ridge * float(theta @ theta), 2 * ridge * theta
    gradients, bias_gradients = _views(gradient, shapes)
    for start in range(0, N, SAMPLES_AT_ONCE):
        block = slice(start, start + SAMPLES_AT_ONCE)
        hidden = [x[:, block]]
        for W, b in zip(weights[:-1], biases[:-1], strict=True):
            Z = W @ hidden[-1]
            Z += b[:, None]
            hidden.append(np.maximum(Z, 0.0, out=Z))
        D = weights[-1] @ hidden[-1]
        D += biases[-1][:, None]
        D -= y[:, block]
        loss += float(np.vdot(D, D)) / N
        D *= 2 / N
        for i in reversed(range(len(weights))):
            gradients[i] += D @ hidden[i].T
            bias_gradients[i] += D.sum(axis=1)
            if i:
                D = weights[i].T @ D
                D *= hidden[i] > 0
    return loss, gradient


def shortened(network: Network, problem: Problem) -> Network:
    """One layer less: of all neighbours those two merged, `W_{l+1} W_l`, that cost the least."""

    def merged(i: int) -> Network:
        W, b = network.weights, network.biases
        weights = [*W[:i], W[i + 1] @ W[i], *W[i + 2 :]]
        return Network(weights, [*b[:i], W[i + 1] @ b[i] + b[i + 1], *b[i + 2 :]])

    return min((merged(i) for i in range(network.depth - 1)), key=problem.loss)


def lengthened(network: Network, problem: Problem) -> Network:
    """One layer more, where it costs the least: the projection of a representation on its k
    leading directions, with or without its mean; k is the rank of the middle layer."""
    k = max(1, gap_rank(svdvals(network.weights[network.depth // 2 - 1])))
    hidden = network.activations(problem.x.mT)[1:-1]

    def projected(i: int, centred: bool) -> Network:
        H = hidden[i]
        mean = H.mean(0) if centred else H.new_zeros(H.shape[1])
        _, _, right = torch.linalg.svd(H - mean, full_matrices=False)
        P = right[:k].mT @ right[:k]
        weights = [*network.weights[: i + 1], P, *network.weights[i + 1 :]]
        biases = [*network.biases[: i + 1], mean - P @ mean, *network.biases[i + 1 :]]
        return Network(weights, biases)

    places = [(i, centred) for i in range(len(hidden)) for centred in (False, True)]
    return min((projected(*place) for place in places), key=problem.loss)


def minima(
    starts: dict[int, Network],
    depths: Collection[int],
    problem: Problem,
    tick: Callable[[Network, float], None] = lambda network, loss: None,
) -> dict[int, Network]:
    """The best network of each depth: from its start, and down and up from its neighbours' best.

    starts: by depth, of some of the depths; a depth is left out that none reaches. All are polished
    further, and the sweeps down and up repeated, until nothing falls by more than SETTLED, SWEEPS
    times at most. `tick` is given every network that is polished, with its loss.
    """
    depths = sorted(depths)
    best: dict[int, Network] = {}
    lowest: dict[int, float] = {}
    fresh: set[tuple[int, int]] = set()  # ways to a neighbour not gone since here fell

    def offer(network: Network) -> None:
        L = network.depth
        network = polished(network, problem)
        loss = problem.loss(network)
        tick(network, loss)
        before = lowest.get(L, inf)
        if L not in best or loss < before:
            best[L] = network
            lowest[L] = inf if isnan(loss) else loss
        if loss < (1 - SETTLED) * before:
            fresh.update((L, there) for there in depths)

    for L in sorted(starts):
        if isnan(problem.loss(starts[L])):  # diverged: nothing to descend from
            best[L], lowest[L] = starts[L], inf
            tick(starts[L], inf)
        else:
            offer(starts[L])
    for _ in range(SWEEPS):
        further = [(L, L) for L in depths]
        down, up = ([*zip(way, way[1:], strict=False)] for way in (depths[::-1], depths))
        for here, there in further + down + up:
            if (here, there) in fresh:
                fresh.remove((here, there))
                network, change = best[here], shortened if there < here else lengthened
                for _ in range(abs(there - here)):
                    network = change(network, problem)
                offer(network)
    return dict(sorted(best.items()))
