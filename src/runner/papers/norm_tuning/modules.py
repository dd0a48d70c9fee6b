"""The constructions of paper A as `torch.nn` modules: their γ and β in real normalization layers.

In Proposition 1 a normalization layer is an affine map. `BatchNorm1d` is one in evaluation mode,
where mean and variance are constants. In training mode they are statistics of the batch; in
`LayerNorm` and `RMSNorm` they are statistics of each sample.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.errors import lookup
from runner.papers.norm_tuning.network import Network


class RMSNorm(nn.RMSNorm):
    """RMSNorm with a shift beta, and the epsilon of the other layers."""

    def __init__(self, features: int, dtype: torch.dtype) -> None:
        super().__init__(features, eps=1e-5, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(features, dtype=dtype))

    def forward(self, z: Float[Tensor, "N n"]) -> Float[Tensor, "N n"]:
        """Return each sample over the root of its mean square, times gamma, plus beta."""
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

    The weights and biases of a module contain mean and standard deviation (Proposition 1). Those of
    `BatchNorm1d` are constant running statistics of `x`, so that it equals the formula. `LayerNorm`
    and `RMSNorm` get the averages over `x`, and do not equal it. Without biases their first layer
    maps x and c x to one output for every c > 0, at all gamma and beta.
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
    """Return the layer `x -> W x`, or `W x + b`; it is not trained."""
    layer = nn.Linear(*W.mT.shape, bias=b is not None, dtype=W.dtype)
    layer.load_state_dict({"weight": W} if b is None else {"weight": W, "bias": b})
    return layer.requires_grad_(False)


def _normalization(
    layer: str, gamma: Float[Tensor, " n"], beta: Float[Tensor, " n"], z: Float[Tensor, "N n"]
) -> nn.BatchNorm1d | nn.LayerNorm | RMSNorm:
    """Return a layer that maps z to `gamma z + beta` if its mean and standard deviation are those
    of z."""
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
