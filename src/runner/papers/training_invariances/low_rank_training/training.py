"""Losses of many networks, their gradients and curvature, and optimizers with weight decay.

Labels y (R, n) are -1 and 1 for two classes, and class numbers for more.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from runner.core.choices import lookup
from runner.networks.spectra import eigvalsh
from runner.papers.training_invariances.losses import MARGIN_LOSSES
from runner.papers.training_invariances.low_rank_training.networks import Parameters, outputs
from runner.training.optimizers import OPTIMIZERS, optimizer_of

LANCZOS = 6
"""Steps of the Lanczos iteration."""


def image_losses(
    f: Float[Tensor, "S outputs n"], y: Tensor, loss_function: str
) -> Float[Tensor, "S n"]:
    """Return the loss of each image in each of the S networks.

    f: outputs of the networks. y (R, n): labels of the replicates, each of which has S / R
    networks. loss_function: `cross_entropy`, or a loss of the margin, as `logistic`. Raises
    InputError for an unknown loss.
    """
    y = y.repeat_interleave(len(f) // len(y), dim=0)
    if loss_function == "cross_entropy":
        return cross_entropy(f, y, reduction="none")
    return lookup("loss_function", loss_function, MARGIN_LOSSES)(y * f[:, 0])


def hits(f: Float[Tensor, "S outputs n"], y: Tensor) -> Bool[Tensor, "S n"]:
    """Return whether each of the S networks classifies each image correctly.

    f: outputs of the networks. y (R, n): labels of the replicates, each of which has S / R
    networks.
    """
    y = y.repeat_interleave(len(f) // len(y), dim=0)
    return f.argmax(1) == y if f.shape[1] > 1 else y * f[:, 0] > 0


def losses_and_gradients(
    parameters: Parameters,
    x: Float[Tensor, "R n channels height width"],
    y: Tensor,
    loss_function: str,
) -> tuple[Float[Tensor, " S"], Parameters]:
    """Return each network's mean loss over the images, and its gradient by all weights.

    x: n images for each of the R replicates. y (R, n): their labels. loss_function:
    `cross_entropy`, or a loss of the margin, as `logistic`. Raises InputError for an unknown loss.
    """
    leaves = {name: W.detach().requires_grad_() for name, W in parameters.items()}
    losses = image_losses(outputs(leaves, x), y, loss_function).mean(-1)
    gradients = torch.autograd.grad(losses.sum(), list(leaves.values()))
    return losses.detach(), dict(zip(leaves, gradients, strict=True))


WAYS = OPTIMIZERS | {"adamw": OPTIMIZERS["adam"]}
"""Optimizers before weight decay, by their names in configurations."""


class Decayed:
    """An optimizer of many networks with weight decay.

    - name: `sgd`, `momentum`, `adam` or `adamw`. For `adamw` the decay is applied to the weights
      separately (decoupled: Loshchilov and Hutter, 2019). For all others a multiple of the weights
      is added to the gradient (coupled).
    - parameters: the weights, which `step` changes in place.
    - rates, decays: learning rate and weight decay of each of the S networks.

    Raises InputError for an unknown optimizer.
    """

    def __init__(
        self,
        name: str,
        parameters: Parameters,
        rates: Float[Tensor, " S"],
        decays: Float[Tensor, " S"],
    ) -> None:
        self.decoupled = name == "adamw"
        self.own = optimizer_of(name, parameters, WAYS)
        self.rates, self.decays = rates, decays

    @torch.no_grad()
    def step(self, gradients: Parameters) -> None:
        """Take one step of the optimizer, in place.

        gradients: gradients of the losses, without weight decay, by layer. They may be changed,
        too.
        """
        for name, W in self.own.parameters.items():
            along = self.decays.view(-1, *[1] * (W.ndim - 1))
            if self.decoupled:
                W.mul_(1 - along * self.rates.view_as(along))
            else:
                gradients[name].addcmul_(along, W)
        self.own.step(gradients, self.rates)


def sharpness(
    parameters: Parameters,
    x: Float[Tensor, "R n channels height width"],
    y: Tensor,
    loss_function: str,
) -> Float[Tensor, " S"]:
    """Return the largest eigenvalue of the Hessian of each network's mean loss.

    The Hessian has the derivatives by all weights. `LANCZOS` steps of the Lanczos iteration, from
    the gradient, give a lower bound. It is close if the eigenvalue is isolated. The result is nan
    if the gradient is not finite, and zero if the gradient is zero.

    x: n images for each of the R replicates. y (R, n): their labels. loss_function:
    `cross_entropy`, or a loss of the margin, as `logistic`. Raises InputError for an unknown loss.
    """
    leaves = [W.detach().requires_grad_() for W in parameters.values()]
    named = dict(zip(parameters, leaves, strict=True))
    losses = image_losses(outputs(named, x), y, loss_function)
    slopes = torch.autograd.grad(losses.mean(-1).sum(), leaves, create_graph=True)

    def flat(tensors: list[Tensor] | tuple[Tensor, ...]) -> Float[Tensor, "S P"]:
        return torch.cat([tensor.flatten(1) for tensor in tensors], dim=1)

    def hessian(v: Float[Tensor, "S P"]) -> Float[Tensor, "S P"]:
        along = (flat(slopes) * v).sum()
        return flat(torch.autograd.grad(along, leaves, retain_graph=True))

    g = flat(slopes).detach()
    steps = min(LANCZOS, g.shape[1])
    basis = g.new_zeros(len(g), steps, g.shape[1])
    products = torch.zeros_like(basis)
    v = _unit(g)
    for step in range(steps):
        basis[:, step] = v
        products[:, step] = v = hessian(v)
        V = basis[:, : step + 1]
        for _ in range(2):  # twice because of rounding
            v = v - ((v[:, None] @ V.mT) @ V)[:, 0]
        v = _unit(v)
    projected = (basis @ products.mT).double()
    return eigvalsh((projected + projected.mT) / 2)[..., -1]


def _unit(v: Float[Tensor, "S P"]) -> Float[Tensor, "S P"]:
    """Return v / |v|, or zero if v is zero."""
    norm = v.norm(dim=1, keepdim=True)
    return v / norm.where(norm > 0, 1)
