"""Initial weights and biases of fully connected layers."""

from collections.abc import Callable
from math import sqrt

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.networks.own_calls import method_of

Layer = tuple[Float[Tensor, "out in"], Float[Tensor, " out"]]
"""The weights and biases of one layer in one network."""


def _uniform(low: float, high: float, shape: tuple[int, ...], stream: Generator) -> Tensor:
    return torch.empty(shape, dtype=torch.float64).uniform_(low, high, generator=stream)


def _normal(deviation: float, shape: tuple[int, ...], stream: Generator) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=stream) * deviation


def pytorch(n_out: int, n_in: int, stream: Generator) -> Layer:
    """Draw weights (out, in) and biases (out,) from the distribution of `torch.nn.Linear`.

    The distribution is uniform on `[-1/sqrt(in), 1/sqrt(in)]`.
    """
    bound = 1 / sqrt(n_in)
    return _uniform(-bound, bound, (n_out, n_in), stream), _uniform(-bound, bound, (n_out,), stream)


def asymmetric(n_out: int, n_in: int, stream: Generator) -> Layer:
    """Draw weights (out, in) and biases (out,), uniform on `[0, 2/sqrt(in)]`.

    This is the distribution of paper B, Section 4. It has the same variance as `pytorch`.
    """
    bound = 2 / sqrt(n_in)
    return _uniform(0, bound, (n_out, n_in), stream), _uniform(0, bound, (n_out,), stream)


def he(n_out: int, n_in: int, stream: Generator) -> Layer:
    """Draw weights (out, in) from `N(0, 2/in)`; biases (out,) are zero.

    These weights preserve the norm of activations in ReLU networks (He et al. 2015).
    """
    return _normal(sqrt(2 / n_in), (n_out, n_in), stream), torch.zeros(n_out, dtype=torch.float64)


def unit(n_out: int, n_in: int, stream: Generator) -> Layer:
    """Draw weights (out, in) from `N(0, 1)` (paper B, Definition 1); biases (out,) are zero."""
    return _normal(1.0, (n_out, n_in), stream), torch.zeros(n_out, dtype=torch.float64)


def orthogonal(n_out: int, n_in: int, stream: Generator) -> Layer:
    """Draw weights (out, in), `sqrt(2)` times a random orthogonal matrix; biases are zero.

    If the matrix is not square, its rows or its columns are orthonormal. The factor `sqrt(2)`
    preserves the norm of activations in ReLU networks (Saxe et al. 2014).
    """
    tall = _normal(1.0, (max(n_out, n_in), min(n_out, n_in)), stream)
    Q, R = torch.linalg.qr(tall)
    Q = sqrt(2) * Q * R.diagonal().sign()  # all rotations equally likely, for any signs of LAPACK
    return Q if n_out >= n_in else Q.mT, torch.zeros(n_out, dtype=torch.float64)


def gain(n_out: int, n_in: int, stream: Generator) -> Layer:
    """Draw weights (out, in) from `N(0, 1/in)`; biases (out,) are zero.

    The caller must multiply the weights by the gain of the activation.
    """
    return _normal(sqrt(1 / n_in), (n_out, n_in), stream), torch.zeros(n_out, dtype=torch.float64)


INITIALIZATIONS: dict[str, Callable[[int, int, Generator], Layer]] = {
    "pytorch": pytorch,
    "he": he,
    "unit": unit,
    "asymmetric": asymmetric,
    "orthogonal": orthogonal,
    "gain": gain,
}


def draw(
    name: str, sizes: list[int], streams: list[Generator], dtype: torch.dtype = torch.float32
) -> tuple[list[Tensor], list[Tensor]]:
    """Return initial weights and initial biases of R networks, a tensor for each layer.

    The weights of a layer have the shape (R, out, in), its biases (R, out).

    - name: a name in `INITIALIZATIONS`, or one that the user has registered;
    - sizes: the numbers of inputs, of hidden units in each layer, and of outputs;
    - streams: R random generators, one for each network.

    All numbers are drawn in float64 on the CPU, so they are equal up to rounding for every dtype.
    Raises InputError for an unknown name.
    """
    layer = method_of("init", name, INITIALIZATIONS)
    weights, biases = [], []
    for n_in, n_out in zip(sizes[:-1], sizes[1:], strict=True):
        W = torch.empty(len(streams), n_out, n_in, dtype=dtype)
        b = torch.empty(len(streams), n_out, dtype=dtype)
        for r, stream in enumerate(streams):
            W[r], b[r] = layer(n_out, n_in, stream)
        weights.append(W)
        biases.append(b)
    return weights, biases
