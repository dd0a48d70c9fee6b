"""Initialize networks as the authors do, and initialize control networks."""

from collections.abc import Iterator
from math import sqrt

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.networks.mlp import MLP, Mode
from runner.papers.batch_norm_rank.ascent import along


class TanhBatchNorm(MLP):
    """The network with batch norm in the authors' figure 6: tanh, no norm in the first layer."""

    def __init__(self, weights: list[Tensor], biases: list[Tensor]) -> None:
        super().__init__(weights, biases, "tanh", "batch")
        for name in ("scale1", "shift1"):
            del self.parameters[name]
        self.running = {n: t for n, t in self.running.items() if n not in ("mean1", "variance1")}
        self.parameters["b1"] = biases[0].detach().clone()

    def layer(
        self, layer: int, H: Float[Tensor, "R _ N"], mode: Mode = "train"
    ) -> Float[Tensor, "R d N"]:
        """Return the hidden representations of a layer.

        H: representations one layer below, the N samples as columns. The first layer is not
        normalized. mode: which statistics batch norm uses, as in `MLP.layer`.
        """
        if layer > 1:
            return super().layer(layer, H, mode)
        return self.sigma.function(self._affine(1, H))


def draw_glorot(network: MLP, streams: list[Generator]) -> None:
    """Draw Glorot normal weights `N(0, 2 / (in + out))` in place; biases do not change.

    in and out are the numbers of inputs and outputs of a layer. streams: one random stream for each
    network.
    """
    for layer in range(1, network.depth + 2):
        W = network.parameters[f"W{layer}"]
        for r, stream in enumerate(streams):
            drawn = torch.randn(W.shape[1:], generator=stream, dtype=torch.float64)
            W[r] = drawn * sqrt(2 / sum(W.shape[1:]))


def draw_positive(network: MLP, largest: float, streams: list[Generator]) -> None:
    """Draw all parameters, also of normalization layers, uniform on [0, largest] in place.

    streams: one random stream for each network.
    """
    for tensor in network.parameters.values():
        for r, stream in enumerate(streams):
            drawn = torch.rand(tensor.shape[1:], generator=stream, dtype=torch.float64)
            tensor[r] = drawn * largest


@torch.no_grad()
def sizes(network: MLP, X: Float[Tensor, "R features N"]) -> Iterator[Float[Tensor, " R"]]:
    """Yield for each hidden layer the root mean square of its outputs on the inputs X, by network.

    X: inputs, the N samples as columns.
    """
    for H in network.hidden(X.mT):
        yield H.square().mean(dim=(1, 2)).sqrt()


@torch.no_grad()
def scale_layers(
    network: MLP, X: Float[Tensor, "R features N"], wanted: list[Float[Tensor, " R"]]
) -> None:
    """Scale weights and biases in place so that each layer's outputs have a given root mean square.

    X: inputs, the N samples as columns. wanted: for each layer, the root mean square on X for each
    of the R networks. Layers are scaled one after the other. The activation must be homogeneous
    like ReLU, so that a factor on a layer multiplies its output. Layers whose output on X is zero
    do not change.
    """
    H = X
    for layer, size in enumerate(wanted, start=1):
        now = network.layer(layer, H).square().mean(dim=(1, 2)).sqrt()
        factor = torch.where(now != 0, size / now, 1.0)
        for name in (f"W{layer}", f"b{layer}"):
            tensor = network.parameters[name]
            tensor *= along(factor, tensor)
        H = network.layer(layer, H)


@torch.no_grad()
def orthogonalise(network: MLP, X: Float[Tensor, "R features N"], power: float) -> None:
    """Orthogonalize the weights in place, as in the code of Daneshmand, Joudaki and Bach (2021).

    For each hidden layer l > 1, let `U S V^T` be the singular value decomposition of `H_{l-1}^T`.
    H_{l-1} are the representations of the layer below on the inputs X. Then `W_l = U[:d] S^{-power}
    V^T`, scaled so that `W_l H_{l-1}` has Frobenius norm one. Biases become zero. The first layer
    is Glorot uniform times sqrt 2, as in the published code. Singular values that are zero up to
    rounding are excluded; the published code divides by them.

    X: inputs, the N samples as columns. power: 1 in the published code of MLPs, 1/2 in the
    published code of convolutional networks.
    """
    p = network.parameters
    for layer in range(1, network.depth + 2):
        p[f"b{layer}"].zero_()
    d, features = p["W1"].shape[1:]
    p["W1"] *= sqrt(12 * features / (d + features))  # weights were uniform on 1 / sqrt(features)
    H = network.layer(1, X)
    for layer in range(2, network.depth + 1):
        U, S, Vt = torch.linalg.svd(H.mT.double(), full_matrices=False)
        live = torch.finfo(H.dtype).eps * H.shape[2] * S[:, :1] < S
        inverse = torch.where(live, S, 1.0).pow(-power).where(live, 0.0)
        W = (U[:, :d] * inverse[:, None]) @ Vt
        size = (W @ H.double()).square().sum(dim=(1, 2)).sqrt()[:, None, None]
        p[f"W{layer}"].copy_(W / size.where(size > 0, 1.0))
        H = network.layer(layer, H)
