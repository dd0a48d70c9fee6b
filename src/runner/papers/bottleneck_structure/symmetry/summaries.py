"""Measure whether a representation is a set of summary statistics (paper D, section 5)."""

from math import nan

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import pad

from runner.networks.spectra import svd

NEIGHBOURS = 10

ROUNDING = 16
"""Tolerance for equal features, in machine epsilons of the largest feature."""


def principal_components(
    features: Float[Tensor, "N n"], count: int = 2
) -> tuple[Float[Tensor, " n"], Float[Tensor, "n count"]]:
    """Return the mean of features and their leading principal directions.

    The largest entry of each direction is positive. Directions beyond the rank of the data are
    zero. count: number of directions.
    """
    mean = features.mean(0)
    _, _, right = svd(features - mean)
    directions = right[:count].mT
    largest = directions.gather(0, directions.abs().argmax(0, keepdim=True))
    return mean, pad(directions * largest.sign(), (0, count - directions.shape[1]))


def neighbours(
    points: Float[Tensor, "N p"], groups: Int[Tensor, " N"]
) -> Int[Tensor, "N neighbours"]:
    """Return for each point the indices of the NEIGHBOURS nearest points of other groups.

    groups: the group of each point. Coordinates are not rescaled.
    """
    distances = torch.cdist(points, points)
    distances.masked_fill_(groups[:, None] == groups, torch.inf)
    return distances.topk(NEIGHBOURS, largest=False).indices


def neighbour_r2(nearest: Int[Tensor, "N neighbours"], values: Float[Tensor, "N q"]) -> float:
    """Return R^2 of predicting the values at a point by their mean over the point's neighbors.

    nearest: indices of neighbors, the result of `neighbours`. values: q values for each point.
    Squared errors and variances are summed over the q values.
    """
    residual = values - values[nearest].mean(1)
    variance = (values - values.mean(0)).square().sum()
    return float(1 - residual.square().sum() / variance)


def collapse_ratio(features: Float[Tensor, "orbits members n"]) -> float:
    """Return the mean distance within an orbit divided by the mean distance between orbits.

    The ratio is 0 if each orbit is one point, and nan if all features are equal up to rounding.
    """
    orbits, members, n = features.shape
    spread = (features.amax((0, 1)) - features.amin((0, 1))).max()
    if spread <= ROUNDING * torch.finfo(features.dtype).eps * features.abs().max():
        return nan
    within = torch.cdist(features, features).sum() / (orbits * members * (members - 1))
    flat = features.reshape(-1, n)
    total = torch.cdist(flat, flat).reshape(orbits, members, orbits, members).sum((1, 3))
    between = (total.sum() - total.diagonal().sum()) / (orbits * (orbits - 1) * members**2)
    return float(within / between)
