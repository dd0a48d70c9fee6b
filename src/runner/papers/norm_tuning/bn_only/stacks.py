"""Stacks of R small networks of paper A: what they compute, and gradients by what is trained.

The leading axis R counts replicates: weights are (R, out, in), inputs (R, N, d), outputs (R, N).
Every loss is the mean squared error over the batch. The tensors of a stack share dtype and device.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional
from torch.ops import aten

from runner.papers.norm_tuning.bn_only import kernels

BETA2_START = 0.1
"""Start of the last shift: with few non-zero weights the learner can otherwise start dead."""


class Stack(ABC):
    """What the study asks of a stack."""

    parameters: dict[str, Tensor]
    """The tensors that training changes, and running statistics, by name, with leading axis R."""
    trained: ClassVar[tuple[str, ...]]
    """The names of those that gradients change."""

    @abstractmethod
    def to(self, device: torch.device) -> "Stack":
        """The same stack on another device."""

    @abstractmethod
    def units(self, x: Float[Tensor, "R N d"]) -> Float[Tensor, "R N d"]:
        """The last hidden units; the output is their sum."""

    def predict(self, x: Float[Tensor, "R N d"]) -> Float[Tensor, "R N"]:
        """The outputs."""
        return self.units(x).sum(-1)

    def dead(self, x: Float[Tensor, "R N d"]) -> Float[Tensor, " R"]:
        """The share of the last hidden units that are zero on all N inputs: nothing trains them.

        nan where a unit has diverged.
        """
        highest = torch.stack([self.units(part).amax(1) for part in x.split(512, dim=1)]).amax(0)
        dead = 1 - (highest > 0).double().mean(-1)
        return dead.where(~highest.isnan().any(-1), torch.nan)

    @abstractmethod
    def gradients(
        self, x: Float[Tensor, "R N d"], labels: Float[Tensor, "R N"]
    ) -> tuple[Float[Tensor, " R"], dict[str, Tensor]]:
        """The loss of each replicate on one batch, and its gradient by each trained tensor."""


class ReluSum(Stack):
    """`g(x) = sum_i relu(W x)_i`: the target network of Appendix E, and the dense student.

    `W` (R, d, d).
    """

    trained = ("W",)

    def __init__(self, W: Float[Tensor, "R d d"]) -> None:
        self.parameters = {"W": W}

    def to(self, device: torch.device) -> "Stack":
        """The same stack on another device."""
        return type(self)(self.parameters["W"].to(device))

    def units(self, x: Float[Tensor, "R N d"]) -> Float[Tensor, "R N d"]:
        """relu(W x)."""
        return torch.bmm(x, self.parameters["W"].mT).relu_()

    def gradients(
        self, x: Float[Tensor, "R N d"], labels: Float[Tensor, "R N"]
    ) -> tuple[Float[Tensor, " R"], dict[str, Tensor]]:
        """The loss and its gradient by W."""
        active = self.units(x)
        residual = active.sum(-1) - labels
        scaled = (residual * (2 / x.shape[1])).unsqueeze(-1)
        gradient = torch.bmm((active.sign_() * scaled).mT, x)
        return residual.square().mean(-1), {"W": gradient}


class NormTuned(Stack):
    """`f(x) = sum_i relu(gamma2 (W2 relu(gamma1 (W1 x) + beta1)) + beta2)_i` with frozen W1, W2.

    Batch normalization with its mean and variance held fixed (Proposition 1). `W1` (R, m, d), `W2`
    (R, d, m), gamma1 and beta1 (R, m), gamma2 and beta2 (R, d); only the last four are trained.
    """

    trained = ("gamma1", "beta1", "gamma2", "beta2")

    def __init__(
        self,
        W1: Float[Tensor, "R m d"],
        W2: Float[Tensor, "R d m"],
        parameters: dict[str, Tensor] | None = None,
    ) -> None:
        self.W1, self.W2 = W1, W2
        self._buffers = W1.new_empty(3, 0)
        R, m, d = W1.shape
        self.parameters = parameters or {
            "gamma1": W1.new_ones(R, m),
            "beta1": W1.new_zeros(R, m),
            "gamma2": W1.new_ones(R, d),
            "beta2": W1.new_full((R, d), BETA2_START),
        }

    def to(self, device: torch.device) -> "Stack":
        """The same stack on another device."""
        parameters = {name: value.to(device) for name, value in self.parameters.items()}
        return type(self)(self.W1.to(device), self.W2.to(device), parameters)

    def units(self, x: Float[Tensor, "R N d"]) -> Float[Tensor, "R N d"]:
        """The last hidden units of f."""
        p = self.parameters
        hidden = torch.baddbmm(p["beta1"][:, None], x, (p["gamma1"][..., None] * self.W1).mT)
        hidden = torch.bmm(hidden.relu_(), self.W2.mT)
        return torch.addcmul(p["beta2"][:, None], hidden, p["gamma2"][:, None]).relu_()

    def gradients(
        self, x: Float[Tensor, "R N d"], labels: Float[Tensor, "R N"]
    ) -> tuple[Float[Tensor, " R"], dict[str, Tensor]]:
        """The loss and its gradient by scales and shifts, written out.

        The backward pass computes only what reaches gamma and beta: 6 m d FLOP a sample together
        with the forward pass. The three large tensors are kept from step to step, since giving
        their memory back and asking for it anew costs more than the arithmetic.
        """
        p = self.parameters
        shape = (3, *x.shape[:2], self.W1.shape[1])
        if self._buffers.shape != shape:
            self._buffers = self.W1.new_empty(shape)
        h1, active, delta1 = self._buffers
        torch.bmm(x, self.W1.mT, out=h1)
        if x.device.type == "cpu":
            return self._gradients_in_passes(h1, active, delta1, labels)
        torch.addcmul(p["beta1"][:, None], h1, p["gamma1"][:, None], out=active).relu_()
        h2 = torch.bmm(self.W2, active.mT)  # (R, d, N): the faster layout of this product
        output = torch.addcmul(p["beta2"][..., None], h2, p["gamma2"][..., None]).relu_()
        residual = output.sum(1) - labels

        scaled = (residual * (2 / x.shape[1])).unsqueeze(1)
        delta2 = output.sign_().mul_(scaled)  # dL / d(last pre-activation)
        torch.bmm((delta2 * p["gamma2"][..., None]).mT, self.W2, out=delta1)
        aten.threshold_backward.grad_input(delta1, active, 0, grad_input=delta1)
        return residual.square().mean(-1), {
            "gamma2": (delta2 * h2).sum(-1),
            "beta2": delta2.sum(-1),
            "beta1": delta1.sum(1),
            "gamma1": delta1.mul_(h1).sum(1),
        }

    def _gradients_in_passes(
        self, h1: Tensor, active: Tensor, delta1: Tensor, labels: Tensor
    ) -> tuple[Float[Tensor, " R"], dict[str, Tensor]]:
        """The same on the CPU, one compiled pass between two products."""
        p = {name: self.parameters[name].numpy() for name in self.trained}
        found = {name: torch.empty_like(self.parameters[name]) for name in self.trained}
        g = {name: tensor.numpy() for name, tensor in found.items()}
        losses = h1.new_empty(len(h1))
        kernels.activate(h1.numpy(), p["gamma1"], p["beta1"], active.numpy())
        h2 = torch.bmm(self.W2, active.mT)
        kernels.backward_second(
            h2.numpy(),
            labels.contiguous().numpy(),
            p["gamma2"],
            p["beta2"],
            g["gamma2"],
            g["beta2"],
            losses.numpy(),
        )
        torch.bmm(h2.mT, self.W2, out=delta1)
        kernels.backward_first(delta1.numpy(), active.numpy(), h1.numpy(), g["gamma1"], g["beta1"])
        return losses, found


class BatchNormTuned(NormTuned):
    """The same network with real batch normalization before each scale and shift.

    Training uses the statistics of the batch, prediction their running averages. The replicates are
    channels of one `batch_norm`; gradients by automatic differentiation.
    """

    def __init__(
        self,
        W1: Float[Tensor, "R m d"],
        W2: Float[Tensor, "R d m"],
        parameters: dict[str, Tensor] | None = None,
    ) -> None:
        super().__init__(W1, W2, parameters)
        if parameters is None:
            for layer, scale in (("1", "gamma1"), ("2", "gamma2")):
                self.parameters[f"mean{layer}"] = torch.zeros_like(self.parameters[scale])
                self.parameters[f"variance{layer}"] = torch.ones_like(self.parameters[scale])

    def _normalize(self, h: Float[Tensor, "R N n"], layer: str, training: bool) -> Tensor:
        R, N, n = h.shape
        p = self.parameters
        names = (f"mean{layer}", f"variance{layer}", f"gamma{layer}", f"beta{layer}")
        channels = h.transpose(0, 1).reshape(N, R * n)
        normalized = functional.batch_norm(
            channels, *(p[name].reshape(-1) for name in names), training=training
        )
        return normalized.reshape(N, R, n).transpose(0, 1)

    def _forward(self, x: Float[Tensor, "R N d"], training: bool) -> Float[Tensor, "R N d"]:
        hidden = self._normalize(torch.bmm(x, self.W1.mT), "1", training).relu()
        return self._normalize(torch.bmm(hidden, self.W2.mT), "2", training).relu()

    @torch.no_grad()
    def units(self, x: Float[Tensor, "R N d"]) -> Float[Tensor, "R N d"]:
        """The last hidden units with the running statistics."""
        return self._forward(x, training=False)

    def gradients(
        self, x: Float[Tensor, "R N d"], labels: Float[Tensor, "R N"]
    ) -> tuple[Float[Tensor, " R"], dict[str, Tensor]]:
        """The loss and its gradient by scales and shifts, with the statistics of the batch."""
        trained = [self.parameters[name].requires_grad_() for name in self.trained]
        losses = (self._forward(x, training=True).sum(-1) - labels).square().mean(-1)
        gradients = torch.autograd.grad(losses.sum(), trained)
        for tensor in trained:
            tensor.requires_grad_(False)
        return losses.detach(), dict(zip(self.trained, gradients, strict=True))
