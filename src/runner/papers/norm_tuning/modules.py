"""Paper A's constructions as `torch.nn` modules: what its scales and shifts do in real layers.

Proposition 1 calls a normalization layer an affine map. That is what `BatchNorm1d` is in evaluation
mode, where mean and variance are constants. In training mode they are the batch's, and in
`LayerNorm` and `RMSNorm` the sample's own.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.errors import lookup
from runner.papers.norm_tuning.network import Network


class RMSNorm(nn.RMSNorm):
    """With shifts beside its scales, and the epsilon of the other layers."""

    def __init__(self, features: int, dtype: torch.dtype) -> None:
        super().__init__(features, eps=1e-5, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(features, dtype=dtype))

    def forward(self, z: Float[Tensor, "N n"]) -> Float[Tensor, "N n"]:
        """Return each sample over the root of its mean square, scaled and shifted."""
        return super().forward(z) + self.bias


def as_modules(
    layer: str,
    network: Network,
    x: Float[Tensor, "N k"],
    biases: Sequence[Float[Tensor, " _"]] | None = None,
) -> nn.Sequential:
    """Return a normalization layer after each frozen matrix, for `scale (W h) + shift` in a network
    without skips; in evaluation mode and the precision of its weights. With the frozen `biases` b
    of Eq. (3), one for each matrix, what is normalized is `W h + b`, and the shifts take b out.
    Raises InputError for a `layer` other than batch_norm, layer_norm and rms_norm.

    By Proposition 1 the weights and biases make up for mean and deviation. `BatchNorm1d` has those
    of `x` as running statistics, which do not move, and equals the formula. `LayerNorm` gets the
    means of its samples' over `x`, as if they were constants, and does not; nor does `RMSNorm`.
    Without biases their first layer maps x and c x to the same for every c > 0, whatever its scales
    and shifts are.
    """
    modules: list[nn.Module] = []
    hidden = x
    for each, b in zip(network.layers, biases or [None] * len(network.layers), strict=True):
        z, shift = hidden @ each.weight.mT, each.shift
        if b is not None:
            z, shift = z + b, shift - each.scale * b
        modules += [frozen_linear(each.weight, b), _normalization(layer, each.scale, shift, z)]
        modules += [nn.ReLU()] if each.relu else []
        hidden = each(hidden, x)
    return nn.Sequential(*modules).eval()


def frozen_linear(
    W: Float[Tensor, "n_out n_in"], b: Float[Tensor, " n_out"] | None = None
) -> nn.Linear:
    """`x -> W x`, or `W x + b`; not trained."""
    layer = nn.Linear(*W.mT.shape, bias=b is not None, dtype=W.dtype)
    layer.load_state_dict({"weight": W} if b is None else {"weight": W, "bias": b})
    return layer.requires_grad_(False)


def _normalization(
    layer: str, gamma: Float[Tensor, " n"], beta: Float[Tensor, " n"], z: Float[Tensor, "N n"]
) -> nn.BatchNorm1d | nn.LayerNorm | RMSNorm:
    """Return a layer that maps z to `gamma z + beta` as far as its mean and deviation are those
    here."""
    make = {"batch_norm": nn.BatchNorm1d, "layer_norm": nn.LayerNorm, "rms_norm": RMSNorm}
    module = lookup("layers", layer, make)(len(gamma), dtype=gamma.dtype)
    if layer == "batch_norm":
        module.momentum, module.running_mean, module.running_var = 0.0, z.mean(0), z.var(0)
        mean, deviation = module.running_mean, (module.running_var + module.eps).sqrt()
    elif layer == "layer_norm":
        mean, deviation = z.mean(), (z.var(1, correction=0) + module.eps).sqrt().mean()
    else:
        mean, deviation = 0.0, (z.square().mean(1) + module.eps).sqrt().mean()
    module.weight = nn.Parameter(gamma * deviation, requires_grad=False)
    module.bias = nn.Parameter(beta + gamma * mean, requires_grad=False)
    return module
