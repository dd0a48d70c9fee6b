"""Paper A's constructions as `torch.nn` modules: what its scales and shifts do in real layers.

Proposition 1 calls a normalization layer an affine map. That is what `BatchNorm1d` is in evaluation
mode, where mean and variance are constants. In training mode they are the batch's, and in
`LayerNorm` the sample's own.
"""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.papers.norm_tuning.theory import NormParameters


def as_modules(
    layer: Literal["batch_norm", "layer_norm"],
    W1: Float[Tensor, "m k"],
    W2: Float[Tensor, "d m"],
    found: NormParameters,
    x: Float[Tensor, "N k"],
) -> nn.Sequential:
    """`relu(norm2(W2 relu(norm1(W1 x))))` for `relu(gamma2 (W2 relu(gamma1 (W1 x) + beta1)) +
    beta2)`, in evaluation mode and the precision of W1.

    By Proposition 1 the weights and biases make up for mean and deviation. `BatchNorm1d` has those
    of `x` as running statistics, which do not move, and equals the formula. `LayerNorm` gets the
    means of its samples' over `x`, as if they were constants, and does not: its first layer maps x
    and c x to the same for every c > 0, whatever its scales and shifts are.
    """
    normalization = {"batch_norm": _batch_norm, "layer_norm": _layer_norm}[layer]
    z = x @ W1.mT
    first = normalization(found.gamma1, found.beta1, z)
    z = torch.relu(found.gamma1 * z + found.beta1) @ W2.mT
    second = normalization(found.gamma2, found.beta2, z)
    return nn.Sequential(_linear(W1), first, nn.ReLU(), _linear(W2), second, nn.ReLU()).eval()


def _linear(W: Float[Tensor, "n_out n_in"]) -> nn.Linear:
    layer = nn.Linear(W.shape[1], W.shape[0], bias=False, dtype=W.dtype)
    layer.weight = nn.Parameter(W, requires_grad=False)
    return layer


def _batch_norm(
    gamma: Float[Tensor, " n"], beta: Float[Tensor, " n"], z: Float[Tensor, "N n"]
) -> nn.BatchNorm1d:
    """`z -> gamma z + beta` in evaluation mode; the running statistics, those of z, do not move."""
    layer = nn.BatchNorm1d(len(gamma), momentum=0.0, dtype=gamma.dtype)
    mean, variance = z.mean(0), z.var(0)
    layer.running_mean, layer.running_var = mean, variance
    scale = gamma * (variance + layer.eps).sqrt()
    layer.weight = nn.Parameter(scale, requires_grad=False)
    layer.bias = nn.Parameter(beta + gamma * mean, requires_grad=False)
    return layer


def _layer_norm(
    gamma: Float[Tensor, " n"], beta: Float[Tensor, " n"], z: Float[Tensor, "N n"]
) -> nn.LayerNorm:
    """`z -> gamma z + beta` where mean and deviation over the features are their means over z."""
    layer = nn.LayerNorm(len(gamma), dtype=gamma.dtype)
    deviation = (z.var(1, correction=0) + layer.eps).sqrt().mean()
    layer.weight = nn.Parameter(gamma * deviation, requires_grad=False)
    layer.bias = nn.Parameter(beta + gamma * z.mean(), requires_grad=False)
    return layer
