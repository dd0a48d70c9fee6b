"""The pre-training of paper B (Section 4, Appendix G): raising r before any label is seen.

`r(H) = Tr(M)^2 / ||M||_F^2`, `M = H H^T / N` (Eq. 4). The authors' code descends on a power of it:
`r^{-1/2}` of the last hidden layer over all layers (figure 4), and `1 / r` of the pre-activations
`Z_l` over the weights of layers 1..l, for some layers in turn (figure 6). The text raises r(H_l) in
each layer; r ignores scale, so that its gradient is orthogonal to the parameters of the layer and
such steps also make them longer. Ours turn them instead.

All is written for stacks: `X (R, features, N)`, samples as columns, each network its own.
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
"""A step, in place: parameters of a layer (W, b), and the gradient of r by them."""


def pre_activation(network: MLP, layer: int, H: Float[Tensor, "R _ N"]) -> Float[Tensor, "R d N"]:
    """Return `Z_l = W_l H_{l-1} + b_l`."""
    W, b = (network.parameters[f"{name}{layer}"] for name in ("W", "b"))
    return torch.baddbmm(b[..., None], W, H)


def r_and_gradient(
    H: Float[Tensor, "R d N"],
) -> tuple[Float[Tensor, " R"], Float[Tensor, "R d N"]]:
    """Return r and `dr / dH = (4 T / (N F^2)) (H - (T / F^2) M H)`; `T = Tr M`, `F = ||M||_F`."""
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
    """Take one step of gradient descent on `r^power` over layers 1..layer, in place.

    activated: r of `H_layer`, over weights and biases; else of `Z_layer`, over weights alone.
    Raises InputError for a network whose gradient is not written out here.
    """
    derivative = _derivative(network)
    hidden = [X]
    for each in range(1, layer):
        hidden.append(network.layer(each, hidden[-1]))
    top = pre_activation(network, layer, hidden[-1])
    top = network.sigma.function(top) if activated else top
    r, D = r_and_gradient(top)
    D *= (-step * power * r.pow(power - 1))[:, None, None]
    D = D.mul_(derivative(top)) if activated else D
    for each in range(layer, 0, -1):
        W, H = network.parameters[f"W{each}"], hidden.pop()
        below = torch.bmm(W.mT, D).mul_(derivative(H)) if each > 1 else D
        W.baddbmm_(D, H.mT)
        if activated:
            network.parameters[f"b{each}"] += D.sum(-1)
        D = below


def _derivative(network: MLP) -> Callable[[Tensor], Tensor]:
    """Return the derivative of the activation, from its value.

    Raises InputError for an activation without one, a skip connection or a normalization.
    """
    derivative = network.sigma.derivative
    if derivative is None:
        raise InputError(f"activation={network.activation}: its gradient of r is not written out")
    if network.centred is not None or not isinf(network.skip):
        raise InputError("the gradient of r is written out without normalization or skip alone")
    return derivative


def swept_layers(depth: int) -> list[int]:
    """Return the layers that the code of figure 6 raises: 5, 9, .., 29 of 30; of less than 5 the
    last."""
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
    """Take `steps` (T) steps on `r(H_l(X_k))`, k = 1..M, for one layer after the other, in place.

    Yields each layer that is done. With `unit_scale` it is then scaled so that its minibatches have
    root mean square one. Raises InputError as `descend` does.
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
    """Take a step of plain ascent: `theta <- theta + step * gradient`, in place."""
    for tensor, g in zip(theta, gradient, strict=True):
        tensor.add_(g, alpha=step)


def turn(theta: Sequence[Tensor], gradient: Sequence[Tensor], angle: float) -> None:
    """Rotate towards the gradient g: `theta <- cos(eta) theta + sin(eta) ||theta|| g / ||g||`.

    In place. It keeps the length of what is orthogonal to g. What has no gradient stays.
    """
    length, slope = _norm(theta), _norm(gradient)
    eta, moves = torch.tensor([angle]), slope > 0
    towards = torch.where(moves, eta.sin().to(slope) * length / slope, 0.0)
    stays = torch.where(moves, eta.cos().to(slope), 1.0)
    for tensor, g in zip(theta, gradient, strict=True):
        g = g.nan_to_num(0.0, 0.0, 0.0)
        tensor.mul_(along(stays, tensor)).addcmul_(g, along(towards, tensor))


def _norm(tensors: Sequence[Tensor]) -> Float[Tensor, " R"]:
    """Return the norm of all numbers of each network; nan and inf count as 0."""
    finite = (tensor.nan_to_num(0.0, 0.0, 0.0) for tensor in tensors)
    return sum(t.square().sum(dim=tuple(range(1, t.ndim))) for t in finite).sqrt()


def along(values: Float[Tensor, " R"], like: Float[Tensor, "R *axes"]) -> Tensor:
    """Return values for each network in the shape of a stack of tensors."""
    return values.view(-1, *[1] * (like.ndim - 1))
