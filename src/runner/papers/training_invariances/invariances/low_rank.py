"""Theorem 2 of paper C for many networks: singular values of the layers, and their bounds."""

from math import exp, inf, nan

import torch
from jaxtyping import Float
from torch import Tensor

from runner.networks.spectra import svd
from runner.papers.training_invariances import theory
from runner.papers.training_invariances.invariances.junctions import junctions, linear_tail
from runner.papers.training_invariances.invariances.network import Network


def squared_norms(network: Network, theta: Float[Tensor, "S P"]) -> Float[Tensor, "S L"]:
    """Return the squared Frobenius norm ||W_l||_F^2 of each layer l, for each of S networks.

    For a residual block W_l is [W2 Z] (Definition 8). If layers have biases b, ||b_k||^2 of layer l
    and of all later layers k is added. Edges from constant inputs to these layers cross the cut of
    the network at layer l. The sum then runs over all edges of this cut (Definition 7). theta:
    parameters, a row for each network.
    """
    weights = network.unpack(theta)
    norms = [theory.squared_norm(b.incoming(weights[i])) for i, b in enumerate(network.layers)]
    later = torch.zeros_like(norms[0])
    for index in reversed(range(len(norms))):
        norms[index] = norms[index] + later
        if "b" in weights[index]:
            later = later + weights[index]["b"].square().sum(-1)
    return torch.stack(norms, dim=-1)


def spectrum(network: Network, theta: Float[Tensor, "S P"]) -> dict[str, list[list[float]]]:
    """Return norms and singular values of each layer, as lists over layers of lists over networks.

    U is the matrix of a layer's incoming weights. theta: parameters, a row for each network. The
    keys of the result are:

    - `frobenius`: ||U||_F^2.
    - `operator_ratio`: ||U||_2^2 / ||U||_F^2.
    - `alignment`: |<v, u>| of the leading singular vectors of the layer and the next one; nan for
      the last layer.
    - `skip_share`: ||Z||_F^2 / ||[W2 Z]||_F^2 of a residual block with a trained skip Z; nan for
      all other layers.
    """
    weights = network.unpack(theta)
    U = [layer.incoming(w) for layer, w in zip(network.layers, weights, strict=True)]
    V = [layer.outgoing(w) for layer, w in zip(network.layers, weights, strict=True)]
    frobenius = [theory.squared_norm(u) for u in U]
    ratio = [theory.squared_operator_norm(u) / f for u, f in zip(U, frobenius, strict=True)]
    unknown = torch.full_like(frobenius[0], nan)
    left = [svd(u) for u in U]
    right = [u if torch.equal(*pair) else svd(pair[1]) for *pair, u in zip(U, V, left, strict=True)]
    aligned = [theory.alignment(u, v) for u, v in zip(left[:-1], right[1:], strict=True)]
    skips = [
        theory.squared_norm(w["Z"]) / f if "Z" in w else unknown
        for w, f in zip(weights, frobenius, strict=True)
    ]
    columns = {"frobenius": frobenius, "operator_ratio": ratio}
    columns |= {"alignment": [*aligned, unknown], "skip_share": skips}
    return {name: [values.tolist() for values in layers] for name, layers in columns.items()}


def limit_bounds(network: Network) -> list[float]:
    """Return the lower bound of Eq. (14) on the final ||W||_2^2 / ||W||_F^2 of each layer.

    Theorem 2 applies only to the linear layers at the end of the network. The bound of all earlier
    layers is nan.
    """
    start = linear_tail(network)
    factors = [layer.factor for layer in network.layers[start:]]
    return [nan] * start + (theory.low_rank_bound(factors) if factors else [])


def trivial_bounds(network: Network, theta: Float[Tensor, "S P"]) -> list[float]:
    """Return 1 / (number of singular values) of each layer, a lower bound of ||W||_2^2 / ||W||_F^2.

    The bound holds because the largest squared singular value is at least the mean of all squared
    singular values. theta: parameters, of which only the shape matters.
    """
    layers = zip(network.layers, network.unpack(theta[:1]), strict=True)
    return [1 / min(layer.incoming(w).shape[-2:]) for layer, w in layers]


def finite_bounds(
    network: Network, first: Float[Tensor, "S P"], now: Float[Tensor, "S P"]
) -> list[list[float]]:
    """Return the lower bound of Eq. (13) on the current ||W_l||_2^2 / ||W_l||_F^2 of each layer l.

    The result is a list over layers of lists over networks. Theorem 2 applies only to the linear
    layers at the end of the network, so the bound of all earlier layers is nan. first: initial
    parameters, which determine the constant in Eq. (13). now: current parameters.
    """
    start = linear_tail(network)
    layers = network.layers[start:]
    if not layers:
        return [[nan] * len(now)] * start
    places = [junction for junction in junctions(network) if junction.before >= start]
    between = [j.invariant(network, first) for j in places if j.before != j.behind]
    within = {j.before: j.invariant(network, first) for j in places if j.before == j.behind}
    norms = squared_norms(network, now)
    zero = torch.zeros_like(norms[:, 0])
    offsets = [
        theory.residual_offset(within[index]) if index in within else zero
        for index in range(start, len(network.layers))
    ]
    factors = [layer.factor for layer in layers]
    least = theory.finite_time_bound(norms[:, -1], between, factors, offsets)
    ratios = [
        (bound / norms[:, start + index]).clamp(min=0).tolist() for index, bound in enumerate(least)
    ]
    return [[nan] * len(norms)] * start + ratios


def exponential(value: float) -> float:
    """Return exp(value), or inf if the result is too large for a float."""
    try:
        return exp(value)
    except OverflowError:
        return inf
