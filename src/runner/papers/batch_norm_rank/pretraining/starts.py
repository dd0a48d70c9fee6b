"""Networks to start from that no law of independent weights gives."""

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.networks.initialization import orthogonal
from runner.networks.mlp import MLP

NEGLIGIBLE = 1e-3
"""Of the largest singular value: what is below is no direction of the data."""


@torch.no_grad()
def to_unit_scale(network: MLP, x: Float[Tensor, "R N features"]) -> None:
    """Scale weights and biases of each hidden layer so that `H_l` has root mean square one on x.

    One layer after the other, in place; a ReLU layer only changes the scale of its output by that.
    A layer that is off on all of x stays as it is.
    """
    H = x.mT
    for layer in range(1, network.depth + 1):
        H = network.layer(layer, H)
        size = H.square().mean(dim=(1, 2)).sqrt()
        size = size.where(size != 0, 1)
        for name in (f"W{layer}", f"b{layer}"):
            tensor = network.parameters[name]
            tensor /= size.view(-1, *[1] * (tensor.ndim - 1))
        H = H / size[:, None, None]


@torch.no_grad()
def whiten(network: MLP, x: Float[Tensor, "R N features"], streams: list[Generator]) -> None:
    """Let each hidden layer invert the spectrum of its input on x, and bring it to unit scale.

    `W_l = Q Sigma^+ U^T` with `H_{l-1} = U Sigma V^T` and a random Q with orthonormal rows or
    columns; no biases. It is the layer-wise orthogonalisation that two of paper B's authors took
    the idea to later (Daneshmand, Joudaki and Bach 2021), with the whole spectrum inverted. In
    place; streams: of Q, one for each network.
    """
    H = x.mT.double()
    for layer in range(1, network.depth + 1):
        U, sigma, _ = torch.linalg.svd(H, full_matrices=False)
        inverse = torch.where(sigma > NEGLIGIBLE * sigma[:, :1], 1 / sigma, 0.0)
        weights, biases = (network.parameters[f"{name}{layer}"] for name in ("W", "b"))
        d, k = weights.shape[1], sigma.shape[1]
        Q = torch.stack([orthogonal(d, k, stream)[0] for stream in streams]).to(H.device)
        W = (Q * inverse[:, None]) @ U.mT
        H = torch.relu(W @ H)
        size = H.square().mean(dim=(1, 2), keepdim=True).sqrt()
        size = size.where(size != 0, 1)
        H = H / size
        weights.copy_(W / size)
        biases.zero_()
