"""Pre-training of paper B (Section 4, Appendix G): raising r without labels, before training.

r is the lower bound of the rank: `r(H) = Tr(M)^2 / ||M||_F^2` with `M = H H^T / N` (Eq. 4). There
are three procedures:

- The authors' code for figure 4 takes descent steps on `r^{-1/2}` of the last hidden layer, over
  the weights of all layers.
- The authors' code for figure 6 takes some layers l one after the other. It takes descent steps on
  `1 / r` of the pre-activations `Z_l`, over the weights of layers 1..l.
- The paper's text raises r(H_l) in each layer l.

The value of r does not depend on the scale of the weights. Hence its gradient is orthogonal to the
parameters of the layer, and gradient steps increase the norm of the parameters. Our variant `turn`
rotates the parameters, which keeps their norm.

All functions work on R networks at once. Inputs `X (R, features, N)` have samples as columns, with
separate inputs for each network.
"""

from collections.abc import Callable, Iterator, Sequence
from math import isinf

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.errors import InputError
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import theory

Move = Callable[[Sequence[Tensor], Sequence[Tensor]], None]
"""Function that takes one step of pre-training in place.

Its arguments are the parameters (W, b) of a layer, and the gradient of r by each of them.
"""


def pre_activation(network: MLP, layer: int, H: Float[Tensor, "R _ N"]) -> Float[Tensor, "R d N"]:
    """Return the pre-activations `Z_l = W_l H_{l-1} + b_l` of a layer l.

    layer: l, from 1. H: representations `H_{l-1}` one layer below, the N samples as columns.
    """
    W, b = (network.parameters[f"{name}{layer}"] for name in ("W", "b"))
    return torch.baddbmm(b[..., None], W, H)


def r_and_gradient(
    H: Float[Tensor, "R d N"],
) -> tuple[Float[Tensor, " R"], Float[Tensor, "R d N"]]:
    """Return r of each matrix H, and the gradient of r by H.

    r is the lower bound of the rank of H (Eq. 4). Let `M = H H^T / N`, `T = Tr M` and `F =
    ||M||_F`. Then r is `T^2 / F^2`, and its gradient is `(4 T / (N F^2)) (H - (T / F^2) M H)`.
    """
    M = theory.second_moment(H)
    T, square = theory.trace(M)[:, None, None], M.square().sum((1, 2))[:, None, None]
    D = torch.baddbmm(H, M * (T / square), H, alpha=-1).mul_(4 * T / (square * H.shape[2]))
    return (T.square() / square).flatten(), D


@torch.no_grad()
def descend(
    network: MLP,
    X: Float[Tensor, "R features N"],
    layer: int,
    power: float,
    step: float,
    *,
    activated: bool,
) -> None:
    """Take one step of gradient descent on `r^power`, in place, in layers 1 to `layer`.

    r is the lower bound (4) of the rank of `layer`. activated: if true, r is computed from the
    layer's outputs, and weights and biases are trained. If false, r is computed from the
    pre-activations, and only weights are trained. X: inputs, the N samples as columns. step: step
    size.

    Raises InputError for skip connections, normalization, and activations without a written-out
    derivative.
    """
    derivative = _derivative(network)
    hidden = [X]
    for index in range(1, layer):
        hidden.append(network.layer(index, hidden[-1]))
    top = pre_activation(network, layer, hidden[-1])
    top = network.sigma.function(top) if activated else top
    r, D = r_and_gradient(top)
    D *= (-step * power * r.pow(power - 1))[:, None, None]
    D = D.mul_(derivative(top)) if activated else D
    for index in range(layer, 0, -1):
        W, H = network.parameters[f"W{index}"], hidden.pop()
        below = torch.bmm(W.mT, D).mul_(derivative(H)) if index > 1 else D
        W.baddbmm_(D, H.mT)
        if activated:
            network.parameters[f"b{index}"] += D.sum(-1)
        D = below


def _derivative(network: MLP) -> Callable[[Tensor], Tensor]:
    """Return a function that computes the activation's derivative from the activation's value.

    Raises InputError for other activations, skip connections and normalization.
    """
    derivative = network.sigma.derivative
    if derivative is None:
        raise InputError(
            f"the gradient of r is not implemented for activation={network.activation}"
        )
    if network.centred is not None or not isinf(network.skip):
        raise InputError(
            "the gradient of r is implemented only without normalization and skip connections"
        )
    return derivative


def swept_layers(depth: int) -> list[int]:
    """Return the layers that the authors' code of figure 6 pre-trains: 5, 9, .., 29 of 30 layers.

    A network with fewer than 5 layers has its last layer pre-trained.
    """
    return list(range(5, depth + 1, 4)) or [depth]


@torch.no_grad()
def raise_layer_wise(
    network: MLP,
    minibatches: Sequence[Float[Tensor, "R features N"]],
    steps: int,
    move: Move,
    *,
    unit_scale: bool,
) -> Iterator[int]:
    """Raise r of each hidden layer in place, one layer after the other; yield each finished layer.

    Each layer takes `steps` steps on each minibatch, with the gradient of r of its outputs H_l.
    minibatches: inputs, the N samples as columns. move: takes one step, such as `climb`.
    unit_scale: whether each finished layer is scaled so that its outputs have root mean square one
    on the minibatches.

    Raises InputError for skip connections, normalization, and activations without a written-out
    derivative.
    """
    derivative, hidden = _derivative(network), list(minibatches)
    for layer in range(1, network.depth + 1):
        theta = [network.parameters[f"{name}{layer}"] for name in ("W", "b")]
        for X in hidden:
            for _ in range(steps):
                H = network.layer(layer, X)
                _, D = r_and_gradient(H)
                D *= derivative(H)
                move(theta, (torch.bmm(D, X.mT), D.sum(-1)))
        hidden = [network.layer(layer, X) for X in hidden]
        if unit_scale:
            size = torch.stack([H.square().mean(dim=(1, 2)) for H in hidden]).mean(dim=0).sqrt()
            for tensor in [*theta, *hidden]:
                tensor.div_(along(size, tensor))
        yield layer


def climb(theta: Sequence[Tensor], gradient: Sequence[Tensor], step: float) -> None:
    """Take a step of gradient ascent in place: `theta <- theta + step * gradient`.

    theta: the parameters of a layer. gradient: the gradient of r by each of them.
    """
    for tensor, g in zip(theta, gradient, strict=True):
        tensor.add_(g, alpha=step)


def turn(theta: Sequence[Tensor], gradient: Sequence[Tensor], angle: float) -> None:
    """Rotate a layer's parameters in place by an angle towards the gradient g of r.

    The formula is `theta <- cos(angle) theta + sin(angle) ||theta|| g / ||g||`. The norm of theta
    does not change if g is orthogonal to theta. Networks whose gradient is zero do not change.
    Entries of g that are nan or infinite count as zero. angle: in radians.
    """
    length, slope = _norm(theta), _norm(gradient)
    eta, moves = torch.tensor([angle]), slope > 0
    towards = torch.where(moves, eta.sin().to(slope) * length / slope, 0.0)
    stays = torch.where(moves, eta.cos().to(slope), 1.0)
    for tensor, g in zip(theta, gradient, strict=True):
        g = g.nan_to_num(0.0, 0.0, 0.0)
        tensor.mul_(along(stays, tensor)).addcmul_(g, along(towards, tensor))


def _norm(tensors: Sequence[Tensor]) -> Float[Tensor, " R"]:
    """Return for each network the norm of all its numbers; nan and inf count as 0."""
    finite = (tensor.nan_to_num(0.0, 0.0, 0.0) for tensor in tensors)
    return sum(t.square().sum(dim=tuple(range(1, t.ndim))) for t in finite).sqrt()


def along(values: Float[Tensor, " R"], like: Float[Tensor, "R *axes"]) -> Tensor:
    """Return one value per network, shaped so that it broadcasts over the tensor `like`.

    values: a value for each of the R networks.
    """
    return values.view(-1, *[1] * (like.ndim - 1))
