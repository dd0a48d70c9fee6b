"""The constructed networks of paper A as `torch.nn` modules with real normalization layers.

Proposition 1 of the paper treats a normalization layer as an affine map. `BatchNorm1d` is affine in
evaluation mode, where mean and variance are constants. In training mode `BatchNorm1d` computes both
from the batch. `LayerNorm` and `RMSNorm` compute their statistics from each sample.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from runner.core.choices import lookup
from runner.papers.norm_tuning.network import Network


class RMSNorm(nn.RMSNorm):
    """The RMSNorm layer of torch, with an additional shift beta and epsilon 1e-5.

    Epsilon is the same as in torch's BatchNorm and LayerNorm. features: number of features of a
    sample. dtype: precision of the parameters.
    """

    def __init__(self, features: int, dtype: torch.dtype) -> None:
        super().__init__(features, eps=1e-5, dtype=dtype)
        self.bias = nn.Parameter(torch.zeros(features, dtype=dtype))

    def forward(self, z: Float[Tensor, "N n"]) -> Float[Tensor, "N n"]:
        """Return `gamma z / (root mean square of z) + beta` for each sample z, a row."""
        return super().forward(z) + self.bias


def as_modules(
    layer: str,
    network: Network,
    x: Float[Tensor, "N k"],
    biases: Sequence[Float[Tensor, " _"]] | None = None,
) -> nn.Sequential:
    """Return a network as torch modules, with a normalization layer after each frozen matrix W.

    - layer: kind of the normalization layers: `batch_norm`, `layer_norm` or `rms_norm`.
    - network: a network without skip connections. Its layers compute `scale (W h) + shift`.
    - x: inputs from which means and standard deviations are computed.
    - biases: a frozen vector b for each matrix, as in Eq. (3) of paper A. Then `W h + b` is
      normalized, and the shifts of the normalization layers compensate b.

    The weights and biases of the normalization layers compensate mean and standard deviation
    (Proposition 1). In `BatchNorm1d` both are constants, the statistics of `x`, so the modules
    compute the same function as the network. In `LayerNorm` and `RMSNorm` both are averages over
    `x`, so the function differs. Without biases the first of these layers has the same output for x
    and c x, for every c > 0.

    The module is in evaluation mode and has the precision of the weights. Raises InputError for
    another kind of layer.
    """
    modules: list[nn.Module] = []
    hidden = x
    for frozen, b in zip(network.layers, biases or [None] * len(network.layers), strict=True):
        z, shift = hidden @ frozen.weight.mT, frozen.shift
        if b is not None:
            z, shift = z + b, shift - frozen.scale * b
        modules += [frozen_linear(frozen.weight, b), _normalization(layer, frozen.scale, shift, z)]
        modules += [nn.ReLU()] if frozen.relu else []
        hidden = frozen(hidden, x)
    return nn.Sequential(*modules).eval()


def frozen_linear(
    W: Float[Tensor, "n_out n_in"], b: Float[Tensor, " n_out"] | None = None
) -> nn.Linear:
    """Return a linear layer `x -> W x + b` whose weights are not trained.

    b: the bias; if it is None, the layer has no bias.
    """
    layer = nn.Linear(*W.mT.shape, bias=b is not None, dtype=W.dtype)
    layer.load_state_dict({"weight": W} if b is None else {"weight": W, "bias": b})
    return layer.requires_grad_(False)


def _normalization(
    layer: str, gamma: Float[Tensor, " n"], beta: Float[Tensor, " n"], z: Float[Tensor, "N n"]
) -> nn.BatchNorm1d | nn.LayerNorm | RMSNorm:
    """Return a normalization layer that replaces the affine map `gamma z + beta`.

    The equation is exact for BatchNorm with the statistics of z, and approximate for other layers.
    layer: `batch_norm`, `layer_norm` or `rms_norm`. z: inputs of the layer.
    """
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
