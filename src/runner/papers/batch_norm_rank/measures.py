"""Measure ranks of hidden representations of many networks at once."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.networks.mlp import MLP

EVERY_LAYER_UP_TO = 64
LAYERS_PER_DOUBLING = 16


@dataclass(frozen=True)
class Ranks:
    """Three ranks of each of R matrices, on the CPU; nan for a matrix that is not finite."""

    matrix_rank: Float[Tensor, " R"]
    """Number of singular values above `d eps` times the largest one, with eps of the dtype
    (footnote 2).
    """
    soft_rank: Float[Tensor, " R"]
    """Soft rank `rank_tau` (Eq. 3) of the matrix H, scaled so that `H H^T / N` has the trace d."""
    rank_bound: Float[Tensor, " R"]
    """Lower bound `r` of the rank (Eq. 4)."""


@torch.no_grad()
@takes_arrays()
def ranks(H: Float[Tensor, "R d N"], tau: float = 0.5) -> Ranks:
    """Return rank, soft rank and lower bound r of each matrix, from the same singular values.

    H: hidden representations of R networks, the d units as rows and the N samples as columns. tau:
    threshold of the soft rank, from 0 to 1.
    """
    d = H.shape[1]
    finite = H.isfinite().all(dim=-1).all(dim=-1)
    sigma = singular_values(H.where(finite[:, None, None], 0.0))
    share = (sigma / sigma[:, :1]).square()  # the largest is 1, so no power overflows
    total = share.sum(-1)
    soft_rank = (share * (d / total)[:, None] >= tau).sum(-1)
    matrix_rank = (sigma > sigma[:, :1] * d * torch.finfo(H.dtype).eps).sum(-1)
    rank_bound = total.square() / share.square().sum(-1)

    def host(values: Tensor) -> Tensor:
        return values.double().where(finite, torch.nan).cpu()

    return Ranks(host(matrix_rank), host(soft_rank), host(rank_bound))


@takes_arrays()
def singular_values(H: Float[Tensor, "R d N"]) -> Float[Tensor, "R k"]:
    """Return the k = min(d, N) singular values of each matrix in descending order, in float64.

    For a float32 matrix they are computed from the eigenvalues of its Gram matrix, which costs less
    than an SVD. The precision suffices: singular values below 1e-7 of the largest are rounding
    errors in float32. In float64 their squares still have correct digits.
    """
    if H.dtype == torch.float64:
        return torch.linalg.svdvals(H)
    G = H.double() if H.shape[1] <= H.shape[2] else H.double().mT
    return torch.linalg.eigvalsh(G @ G.mT).clamp_(min=0).sqrt().flip(-1)


@takes_arrays()
def root_mean_square(H: Float[Tensor, "R d N"]) -> Float[Tensor, " R"]:
    """Return the root mean square of the entries of each matrix, in float64.

    The entries are scaled before they are squared, so that their squares do not overflow.
    """
    largest = H.double().abs().amax(dim=(1, 2)).clamp(min=torch.finfo(torch.float64).tiny)
    power = torch.frexp(largest).mantissa / largest  # a power of two, which rounds nothing
    return (H.double() * power[:, None, None]).square().mean(dim=(1, 2)).sqrt() / power


def measured_layers(depth: int) -> set[int]:
    """Return the layers at which ranks are measured: 0 to 64, then 16 layers for each doubling.

    Layer 0 is the input. The last layer, `depth`, is always included.
    """
    layers = set(range(min(depth, EVERY_LAYER_UP_TO) + 1))
    position = float(EVERY_LAYER_UP_TO)
    while position < depth:
        layers.add(int(position))
        position *= 2 ** (1 / LAYERS_PER_DOUBLING)
    return layers | {depth}


@torch.no_grad()
def ranks_by_layer(
    network: MLP,
    x: Float[Tensor, "R N features"],
    tau: float,
    tick: Callable[[], None] = lambda: None,
) -> Iterator[tuple[int, Mapping[str, Float[Tensor, " R"]]]]:
    """Yield the number l of each measured layer, and measures of its representations H_l by name.

    Layer 0 is the input. The measures are the fields of `Ranks`, and `root_mean_square` of H_l.
    Batch normalization uses the statistics of these N inputs.

    Without biases and normalization, representations grow or shrink geometrically with depth. Each
    layer is then divided by its root mean square before the next layer is computed. This division
    keeps deep products within the range of the dtype and changes no rank. The yielded
    `root_mean_square` is the one without divisions. Representations that are zero remain zero.

    x: inputs of each network, samples as rows. tau: threshold of the soft rank. tick: called after
    every layer, for a progress bar.
    """
    measured, rescale = measured_layers(network.depth), network.homogeneous
    H, scale = x.mT, torch.ones(len(network), dtype=torch.float64, device=x.device)
    for layer in range(network.depth + 1):
        if layer:
            H = network.layer(layer, H, "probe")
        size = root_mean_square(H)
        if layer in measured:
            yield layer, vars(ranks(H, tau)) | {"root_mean_square": (scale * size).cpu()}
        if rescale:
            unit = size.where(size != 0, 1)
            H = H / unit[:, None, None].to(H.dtype)
            scale = scale * unit
        tick()


@torch.no_grad()
def last_hidden(network: MLP, x: Float[Tensor, "R N features"]) -> Float[Tensor, "R d N"]:
    """Return the representations in the last hidden layer, with the N samples as columns.

    Batch normalization uses the statistics of these N inputs. x: inputs of each network, samples as
    rows.
    """
    H = x.mT
    for H in network.hidden(x, "probe"):  # noqa: B007 (only the last one is wanted)
        pass
    return H
