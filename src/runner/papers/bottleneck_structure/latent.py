"""Draw the data of figure 1: a task of known bottleneck rank, from two shallow networks."""

from dataclasses import dataclass
from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

LATENT, D_IN, D_OUT, HIDDEN = 8, 20, 20, 100
"""Dimensions of z, x and y (paper), and number of hidden units of g and h (ours)."""


@dataclass(frozen=True)
class Task:
    """Training samples (x, y) and test samples of the task, in float64, one sample per column."""

    x: Float[Tensor, "d_in N"]
    y: Float[Tensor, "d_out N"]
    x_test: Float[Tensor, "d_in M"]
    y_test: Float[Tensor, "d_out M"]


def draw_task(rank: int, samples: int, test_samples: int, generator: torch.Generator) -> Task:
    """Draw samples of `x = g(z)`, `y = h(z_1 .. z_rank)` with Gaussian z.

    g and h are random shallow networks. The training inputs have E ||x||^2 = d_in. The training
    targets are centered and have E ||y||^2 = 1, so the cost of the zero network is 1. Test samples
    are shifted and scaled by the same numbers.
    """
    g = _shallow_network(LATENT, D_IN, generator)
    h = _shallow_network(rank, D_OUT, generator)
    z = torch.randn(LATENT, samples + test_samples, generator=generator, dtype=torch.float64)
    x, y = g(z), h(z[:rank])
    x = x * sqrt(D_IN / float(x[:, :samples].square().sum(0).mean()))
    y = y - y[:, :samples].mean(1, keepdim=True)
    y = y / y[:, :samples].square().sum(0).mean().sqrt()
    return Task(x[:, :samples], y[:, :samples], x[:, samples:], y[:, samples:])


def _shallow_network(d_in: int, d_out: int, generator: torch.Generator):
    """Return z -> B relu(A z + a); entries of A, a and B are standard Gaussian / sqrt(fan-in)."""

    def draw(rows: int, columns: int, fan_in: int) -> Float[Tensor, "rows columns"]:
        drawn = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
        return drawn / sqrt(fan_in)

    A, a, B = draw(HIDDEN, d_in, d_in), draw(HIDDEN, 1, d_in), draw(d_out, HIDDEN, HIDDEN)
    return lambda z: B @ (A @ z).add_(a).relu_()
