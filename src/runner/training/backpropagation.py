"""One step of SGD, or its gradient, for many networks on the CPU, implemented by hand.

Activations are `H_l (R, d, N)` as in `networks.mlp`. `D_l` is the derivative of the loss by the
pre-activations of layer l. A function in `mlp_passes` does all operations between two matrix
products in one pass. The product that gives a weight's gradient also subtracts it from the weight.
Arrays of the size of an activation or a weight are therefore written only once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.core.errors import InputError
from runner.networks.mlp import MLP
from runner.networks.normalization import EPSILON, MOMENTUM
from runner.training import mlp_passes

RECTIFIED = {0.0: True, 1.0: False}
"""The slopes for negative inputs of the supported activations, and whether each is a ReLU."""


def is_written_out_for(network: MLP) -> bool:
    """Return whether `step` can train this network.

    The network must be on the CPU, with a ReLU or linear activation. It must not have skip
    connections or a normalization of single samples.
    """
    on_cpu = network.parameters["W1"].device.type == "cpu"
    known = isinf(network.skip) and network.of_sample is None
    return on_cpu and known and network.sigma.below in RECTIFIED


@dataclass
class _Hidden:
    """The result of the forward pass for one hidden layer."""

    H: Float[Tensor, "R d N"]
    Z: Float[Tensor, "R d N"] | None = None
    """Normalized pre-activations."""
    factor: Float[Tensor, " R d"] | None = None
    """Factor of the normalization, 1 / standard deviation."""


@torch.no_grad()
def step(
    network: MLP,
    x: Float[Tensor, "R N features"],
    labels: Int[Tensor, "R N"],
    rates: Float[Tensor, " R"],
) -> Float[Tensor, "R classes N"]:
    """Take one step of SGD on the mean cross entropy; return the logits before the step.

    x, labels: a minibatch of N samples for each of R networks. rates: the learning rate of each
    network. Parameters and running statistics change in place. A diverging network does not change
    the others. Raises InputError if the activation is not a ReLU or linear.
    """
    p = network.parameters

    def descend(name: str, D: Tensor, H: Tensor | None = None) -> None:
        if H is None:
            p[name].sub_(D)
        else:
            p[name].baddbmm_(D, H.mT, alpha=-1)

    return _derive(network, x, labels, rates, EPSILON, descend)


@torch.no_grad()
def gradients(
    network: MLP,
    x: Float[Tensor, "R N features"],
    labels: Int[Tensor, "R N"],
    epsilon: float = EPSILON,
) -> tuple[Float[Tensor, "R classes N"], dict[str, Tensor]]:
    """Return the logits, and the gradients of each network's mean cross entropy.

    The gradients are tensors (R, ...) by the parameter's name. epsilon: the constant that batch
    normalization adds to the variance. Running statistics are updated in place. Raises InputError
    if the activation is not a ReLU or linear.
    """
    derivatives: dict[str, Tensor] = {}

    def keep(name: str, D: Tensor, H: Tensor | None = None) -> None:
        derivatives[name] = D if H is None else torch.bmm(D, H.mT)

    return _derive(network, x, labels, x.new_ones(len(network)), epsilon, keep), derivatives


def _derive(
    network: MLP,
    x: Float[Tensor, "R N features"],
    labels: Int[Tensor, "R N"],
    factors: Float[Tensor, " R"],
    epsilon: float,
    use: Callable[..., None],
) -> Float[Tensor, "R classes N"]:
    """Return the logits, and pass all derivatives to `use`, each multiplied by a factor.

    factors: one for each network. `use(name, D)` gets the derivative by a vector. `use(name, D, H)`
    gets the derivative `D H^T` by a matrix, as its two factors.
    """
    p, L = network.parameters, network.depth
    hidden = [_Hidden(x.mT)]
    for layer in range(1, L + 1):
        Z = torch.bmm(p[f"W{layer}"], hidden[-1].H)
        hidden.append(_forward(network, layer, Z, epsilon))
    logits = torch.baddbmm(p[f"b{L + 1}"][..., None], p[f"W{L + 1}"], hidden[-1].H)

    D = functional.softmax(logits, dim=1)
    D.scatter_add_(1, labels[:, None], D.new_full((1, 1, 1), -1).expand(len(D), 1, D.shape[2]))
    D *= (factors / D.shape[2])[:, None, None]  # scales all gradients at once
    use(f"b{L + 1}", D.sum(-1))
    for layer in range(L + 1, 0, -1):
        below = hidden.pop()
        D_below = torch.bmm(p[f"W{layer}"].mT, D) if layer > 1 else None
        use(f"W{layer}", D, below.H)
        if D_below is not None:
            D = D_below
            _backward(network, layer - 1, D, below, use)
    return logits


def _forward(network: MLP, layer: int, Z: Float[Tensor, "R d N"], epsilon: float) -> _Hidden:
    """Return the activations of a layer. Z: the product W H, which may be overwritten."""
    p, rectified = network.parameters, _is_rectified(network)
    if network.centred is None:
        mlp_passes.activate(_rows(Z), _row(p[f"b{layer}"]), rectified)
        return _Hidden(Z)
    bias, scale, shift = p.get(f"b{layer}"), p[f"scale{layer}"], p[f"shift{layer}"]
    bias = torch.zeros_like(scale) if bias is None else bias
    H, centred = torch.empty_like(Z), network.centred
    mean, variance, factor = torch.empty(3, *scale.shape, dtype=Z.dtype)
    mlp_passes.normalize(
        *(_rows(Z), _rows(H)),
        *map(_row, (bias, scale, shift, mean, variance, factor)),
        *(_rows(Z).dtype.type(epsilon), centred, rectified),
    )
    if centred:
        N = Z.shape[2]
        network.running[f"mean{layer}"].lerp_(mean, MOMENTUM)
        variance = variance * (N / max(N - 1, 1))  # unbiased, as torch records it
    network.running[f"variance{layer}"].lerp_(variance, MOMENTUM)
    return _Hidden(H, Z, factor)


def _backward(
    network: MLP, layer: int, D: Float[Tensor, "R d N"], hidden: _Hidden, use: Callable[..., None]
) -> None:
    """Backpropagate through a layer's normalization and activation, in place.

    On entry, `D` is the derivative of the loss by the activations. On return, it is the derivative
    by `W H`. use: a function that is called with the derivatives by biases, scales and shifts.
    """
    p, rectified = network.parameters, _is_rectified(network)
    gradients = torch.empty(3, *D.shape[:2], dtype=D.dtype)
    names = ["b", "scale", "shift"]
    if hidden.Z is None:
        mlp_passes.activate_backward(_rows(D), _rows(hidden.H), _row(gradients[0]), rectified)
        names = ["b"]
    else:
        mlp_passes.normalize_backward(
            *map(_rows, (D, hidden.H, hidden.Z)),
            *map(_row, (p[f"scale{layer}"], hidden.factor, *gradients)),
            *(network.centred, rectified),
        )
    for name, gradient in zip(names, gradients, strict=False):
        if f"{name}{layer}" in p:
            use(f"{name}{layer}", gradient)


def _is_rectified(network: MLP) -> bool:
    """Return whether the activation is a ReLU.

    Raises InputError for an activation that the kernels do not support.
    """
    if network.sigma.below not in RECTIFIED:
        raise InputError(f"activation={network.activation} has no compiled gradient: use autograd")
    return RECTIFIED[network.sigma.below]


def _rows(tensor: Float[Tensor, "R d N"]) -> np.ndarray:
    """Return all features of all networks as rows of one matrix, which shares the memory."""
    return tensor.detach().view(-1, tensor.shape[-1]).numpy()


def _row(tensor: Float[Tensor, "R d"]) -> np.ndarray:
    """Return all features of all networks as one vector, which shares the memory."""
    return tensor.detach().view(-1).numpy()
