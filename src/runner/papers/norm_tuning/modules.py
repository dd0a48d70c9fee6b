"""Paper A's constructions as `torch.nn` modules: what its scales and shifts do in real layers.

Proposition 1 calls a normalization layer an affine map. That is what `BatchNorm1d` is in evaluation
mode, where mean and variance are constants. In training mode they are the batch's, and in
`LayerNorm` the sample's own.
"""

from typing import Literal

from jaxtyping import Float
from torch import Tensor, nn

from runner.papers.norm_tuning.network import Network


def as_modules(
    layer: Literal["batch_norm", "layer_norm"], network: Network, x: Float[Tensor, "N k"]
) -> nn.Sequential:
    """A normalization layer after each frozen matrix, for `scale (W h) + shift` in a network
    without skips; in evaluation mode and the precision of its weights.

    By Proposition 1 the weights and biases make up for mean and deviation. `BatchNorm1d` has those
    of `x` as running statistics, which do not move, and equals the formula. `LayerNorm` gets the
    means of its samples' over `x`, as if they were constants, and does not: its first layer maps x
    and c x to the same for every c > 0, whatever its scales and shifts are.
    """
    normalization = {"batch_norm": _batch_norm, "layer_norm": _layer_norm}[layer]
    modules: list[nn.Module] = []
    hidden = x
    for each in network.layers:
        z = hidden @ each.weight.mT
        modules += [frozen_linear(each.weight), normalization(each.scale, each.shift, z)]
        modules += [nn.ReLU()] if each.relu else []
        hidden = each(hidden, x)
    return nn.Sequential(*modules).eval()


def frozen_linear(W: Float[Tensor, "n_out n_in"]) -> nn.Linear:
    """`x -> W x` without a bias; not trained."""
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
