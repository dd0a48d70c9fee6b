"""Algorithm 1 of paper B (Appendix G): raising the rank of an untrained network by gradient ascent.

The objective is the lower bound `r(H) = Tr(M)^2 / ||M||_F^2` on the rank (Eq. 4). From PyTorch's
initialisation the gradient of `r(H_L)` with respect to all weights of a deep network is zero for
all purposes, so the ascent goes layer by layer: layer l raises `r(H_l)` with the layers before it
fixed.

r ignores scale, so that nothing holds the scale of the weights; `to_unit_scale` takes it out again.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from runner.networks.mlp import MLP
from runner.papers.rank_collapse import theory
from runner.training.sgd import sgd_step

Step = tuple[int, int, Float[Tensor, " R"]]
"""Layer, number of the step on that layer (from 1), and r of its representations before the
step."""


def raise_layer_wise(
    network: MLP, minibatches: Float[Tensor, "R M N features"], steps: int, rate: float
) -> Iterator[Step]:
    """`steps` (T) steps on `r(H_l(X_k))` for k = 1..M, for one layer after the other, in place.

    All minibatches advance together once a layer is done, so that the cost is linear in depth.
    """
    H = minibatches.mT  # (R, M, d, N)
    M, N = H.shape[1], H.shape[3]
    for layer in range(1, network.depth + 1):
        trained = _trained(network, layer)
        for k in range(M):
            for t in range(steps):
                bound = theory.rank_bound(network.layer(layer, H[:, k]))
                _ascend(bound, trained, rate)
                yield layer, k * steps + t + 1, bound.detach()
        with torch.no_grad():
            merged = network.layer(layer, H.transpose(1, 2).flatten(2))
        H = merged.unflatten(2, (M, N)).transpose(1, 2)


def raise_end_to_end(
    network: MLP, minibatches: Float[Tensor, "R M N features"], steps: int, rate: float
) -> Iterator[Step]:
    """The same on `r(H_L(X_k))` with all hidden layers at once, as Algorithm 1 is printed."""
    L = network.depth
    trained = [tensor for layer in range(1, L + 1) for tensor in _trained(network, layer)]
    for k in range(minibatches.shape[1]):
        for t in range(steps):
            *_, H = network.hidden(minibatches[:, k])
            bound = theory.rank_bound(H)
            _ascend(bound, trained, rate)
            yield L, k * steps + t + 1, bound.detach()


def _trained(network: MLP, layer: int) -> list[Tensor]:
    names = (f"W{layer}", f"b{layer}")
    return [network.parameters[name].requires_grad_() for name in names]


def _ascend(bound: Float[Tensor, " R"], trained: list[Tensor], rate: float) -> None:
    sgd_step(-bound, trained, torch.full_like(bound, rate))


@torch.no_grad()
def to_unit_scale(network: MLP, x: Float[Tensor, "R N features"]) -> None:
    """Scale weights and biases of each hidden layer so that `H_l` has root mean square one on x.

    One layer after the other, in place; a ReLU layer only changes the scale of its output by that.
    """
    H = x.mT
    for layer in range(1, network.depth + 1):
        H = network.layer(layer, H)
        size = H.square().mean(dim=(1, 2)).sqrt()
        for name in (f"W{layer}", f"b{layer}"):
            tensor = network.parameters[name]
            tensor /= size.view(-1, *[1] * (tensor.ndim - 1))
        H = H / size[:, None, None]
