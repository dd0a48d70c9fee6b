"""Algorithm 1 of paper B (Section 4, Appendix G): raising the rank of an untrained network.

The objective is the lower bound `r(H) = Tr(M)^2 / ||M||_F^2` on the rank (Eq. 4). r ignores scale,
so that its gradient is orthogonal to the parameters `theta_l = (W_l, b_l)` of a layer and a plain
ascent can only make them longer. A step here turns them instead, by the angle eta:

    theta_l <- cos(eta) theta_l + sin(eta) ||theta_l|| g / ||g||,  g = d r(H_l) / d theta_l

and a layer that is done is brought to unit scale. From PyTorch's initialisation the gradient of
`r(H_L)` with respect to all weights of a deep network is zero for all purposes, so the ascent goes
layer by layer: layer l raises `r(H_l)` with the layers before it fixed.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import theory

Move = Callable[[Sequence[Tensor], Sequence[Tensor]], None]
"""A step of ascent, in place: parameters of a layer (W, b), and the gradient of r by them."""


@dataclass(frozen=True)
class Minibatches:
    """M minibatches of N images for each of S replicates; `R / S` networks share each."""

    images: Float[Tensor, "n features"]
    indices: Int[Tensor, "S M N"]

    def __len__(self) -> int:
        return self.indices.shape[1]

    def inputs(self, k: int, networks: int) -> Float[Tensor, "R features N"]:
        """Minibatch k for a stack whose networks are those of all replicates, time and again."""
        chosen = self.images[self.indices[:, k]].mT
        return chosen.repeat(networks // len(chosen), 1, 1)


@torch.no_grad()
def raise_layer_wise(
    network: MLP, minibatches: Minibatches, steps: int, move: Move, unit_scale: bool = True
) -> Iterator[tuple[int, Float[Tensor, " R"], Float[Tensor, " R"]]]:
    """`steps` (T) steps on `r(H_l(X_k))` for k = 1..M, for one layer after the other, in place.

    Yields each layer with r before its first step and before its last, each on the minibatch of the
    step. All minibatches go through a layer once it is done, so that the cost is linear in depth;
    with `unit_scale` it is then scaled so that they have root mean square one.
    """
    R, M = len(network), len(minibatches)
    hidden: list[Tensor] = []
    for layer in range(1, network.depth + 1):
        theta = [network.parameters[f"{name}{layer}"] for name in ("W", "b")]
        bounds = []
        for k in range(M):
            X = hidden[k] if hidden else minibatches.inputs(k, R)
            for _ in range(steps):
                H = network.layer(layer, X)
                bound, D = _bound_and_gradient(H)
                move(theta, (torch.bmm(D, X.mT), D.sum(-1)))
                bounds.append(bound)
        if layer == 1:
            hidden = [network.layer(1, minibatches.inputs(k, R)) for k in range(M)]
        else:
            for k in range(M):  # one by one: there is no room for both layers
                hidden[k] = network.layer(layer, hidden[k])
        if unit_scale:
            squares = [H.square().mean(dim=(1, 2)) for H in hidden]
            size = torch.stack(squares).mean(dim=0).sqrt()
            for tensor in [*theta, *hidden]:
                tensor.div_(_each(size, tensor))
        yield layer, bounds[0], bounds[-1]


def raise_end_to_end(
    network: MLP, minibatches: Minibatches, steps: int, move: Move, tick: Callable[[], None]
) -> None:
    """The same on `r(H_L(X_k))` with all hidden layers at once, as Algorithm 1 is printed.

    r of the last layer does depend on the scale of an earlier one, as far as there are biases after
    it: a step then turns the parameters by nearly its angle, and nearly keeps their length.
    `tick` is called after every minibatch.
    """
    p, layers = network.parameters, range(1, network.depth + 1)
    thetas = [(p[f"W{layer}"], p[f"b{layer}"]) for layer in layers]
    for k in range(len(minibatches)):
        for _ in range(steps):
            parameters = [tensor.requires_grad_() for theta in thetas for tensor in theta]
            *_, H = network.hidden(minibatches.inputs(k, len(network)).mT)
            gradients = torch.autograd.grad(theory.rank_bound(H).sum(), parameters)
            with torch.no_grad():
                for theta, *g in zip(thetas, gradients[::2], gradients[1::2], strict=True):
                    move(theta, g)
        tick()
    for tensor in p.values():
        tensor.requires_grad_(False)


def _bound_and_gradient(
    H: Float[Tensor, "R d N"],
) -> tuple[Float[Tensor, " R"], Float[Tensor, "R d N"]]:
    """r (Eq. 4) of `H = relu(Z)`, and its gradient by Z.

    With `T = Tr M` and `F^2 = ||M||_F^2`: `dr/dH = (4 T / (N F^2)) (H - (T / F^2) M H)`.
    """
    M = theory.second_moment(H)
    T, square = theory.trace(M)[:, None, None], M.square().sum((1, 2))[:, None, None]
    D = torch.baddbmm(H, M * (T / square), H, alpha=-1).mul_(4 * T / (square * H.shape[2]))
    return (T.square() / square).flatten(), D.mul_(H > 0)


def turn(angles: Float[Tensor, " R"]) -> Move:
    """Turns the parameters of a layer towards the gradient by these angles, at constant length
    where the gradient is orthogonal to them.

    They stay where there is no gradient.
    """

    def move(theta: Sequence[Tensor], gradient: Sequence[Tensor]) -> None:
        length, slope = _norm(theta), _norm(gradient)
        along = torch.where(slope > 0, torch.sin(angles) * length / slope, 0.0)
        kept = torch.where(slope > 0, torch.cos(angles), 1.0)
        for tensor, g in zip(theta, gradient, strict=True):
            tensor.mul_(_each(kept, tensor)).addcmul_(
                g.nan_to_num(0.0, 0.0, 0.0), _each(along, tensor)
            )

    return move


def climb(rate: float) -> Move:
    """Plain ascent: `theta <- theta + rate * gradient`."""

    def move(theta: Sequence[Tensor], gradient: Sequence[Tensor]) -> None:
        for tensor, g in zip(theta, gradient, strict=True):
            tensor.add_(g, alpha=rate)

    return move


def _norm(tensors: Sequence[Tensor]) -> Float[Tensor, " R"]:
    """Of all numbers of each network; nan and inf count as nothing."""
    return sum(
        t.nan_to_num(0.0, 0.0, 0.0).square().sum(dim=tuple(range(1, t.ndim))) for t in tensors
    ).sqrt()


def _each(values: Float[Tensor, " R"], like: Tensor) -> Tensor:
    """Values for each network in the shape of a stack of tensors."""
    return values.view(-1, *[1] * (like.ndim - 1))
