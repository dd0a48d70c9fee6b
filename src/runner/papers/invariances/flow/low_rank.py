"""Theorem 2 on a stack of networks: singular values of the layers, and what bounds them."""

from dataclasses import dataclass
from math import exp, inf, nan

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.invariances import theory
from runner.papers.invariances.flow.junctions import junctions, linear_tail
from runner.papers.invariances.flow.network import Network


@dataclass(frozen=True)
class Spectrum:
    """Lists over layers of lists over networks: ||U||_F^2, ||U||_2^2 / ||U||_F^2, alignment with
    the next layer (of all layers but the last)."""

    frobenius: list[list[float]]
    operator_ratio: list[list[float]]
    alignment: list[list[float]]


def squared_norms(network: Network, theta: Float[Tensor, "S P"]) -> Float[Tensor, "S L"]:
    """||W_l||_F^2 of each layer, a residual block counted as [W2 Z] (Definition 8)."""
    weights = network.unpack(theta)
    layers = zip(network.layers, weights, strict=True)
    return torch.stack([theory.squared_norm(b.incoming(w)) for b, w in layers], dim=-1)


def spectrum(network: Network, theta: Float[Tensor, "S P"]) -> Spectrum:
    """The largest singular value of each layer against its norm, and adjacent singular vectors."""
    weights = network.unpack(theta)
    U = [layer.incoming(w) for layer, w in zip(network.layers, weights, strict=True)]
    V = [layer.outgoing(w) for layer, w in zip(network.layers, weights, strict=True)]
    frobenius = [theory.squared_norm(u) for u in U]
    ratio = [theory.squared_operator_norm(u) / f for u, f in zip(U, frobenius, strict=True)]
    aligned = [theory.alignment(u, v) for u, v in zip(U[:-1], V[1:], strict=True)]
    return Spectrum(*([each.tolist() for each in part] for part in (frobenius, ratio, aligned)))


def limit_bounds(network: Network, residual: int) -> list[float]:
    """Eq. (14) for each layer; nan for the layers before the linear tail.

    residual: the factor of a ResNetFree block.
    """
    start = linear_tail(network)
    factors = [layer.factor(residual) for layer in network.layers[start:]]
    return [nan] * start + theory.low_rank_bound(factors)


def finite_bounds(
    network: Network, first: Float[Tensor, "S P"], now: Float[Tensor, "S P"]
) -> list[list[float]]:
    """Eq. (13) as the least ||W_l||_2^2 / ||W_l||_F^2 now, its constant taken from `first`.

    One list over networks for each layer; nan for the layers before the linear tail.
    """
    start = linear_tail(network)
    tail = network.layers[start:]
    places = [junction for junction in junctions(network) if junction.before >= start]
    between = [j.invariant(network, first) for j in places if j.before != j.behind]
    within = {j.before: j.invariant(network, first) for j in places if j.before == j.behind}
    factors = [layer.factor(theory.SHARP_RESIDUAL_FACTOR) for layer in tail]
    norms = squared_norms(network, now)
    zero = torch.zeros_like(norms[:, 0])
    offsets = [
        theory.residual_offset(within[start + index]) if start + index in within else zero
        for index in range(len(tail))
    ]
    least = theory.finite_time_bound(norms[:, -1], between, factors, offsets)
    ratios = [
        (bound / norms[:, start + index]).clamp(min=0).tolist() for index, bound in enumerate(least)
    ]
    return [[nan] * len(norms)] * start + ratios


def exponential(value: float) -> float:
    """exp(value); inf where that is too large for a float."""
    try:
        return exp(value)
    except OverflowError:
        return inf
