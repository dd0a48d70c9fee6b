"""The networks of paper A, Appendix E, and two ways to find gamma and beta: formulas and training.

    f(x) = sum_i relu(gamma2 * (W2 relu(gamma1 * (W1 x) + beta1)) + beta2)_i    W1 (m, d), W2 (d, m)
    g(x) = sum_i relu(W x)_i                                                    W (d, d)

W1 and W2 of the network f are random and frozen. The dense network g is the target, or is trained.
The leading axis R counts independent replicates. Samples are columns: inputs are x (R, d, N),
outputs are (R, N). gamma and beta are columns, too.
"""

from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.norm_tuning.theorem_1 import Norm

SHIFT_START = 0.1
"""Initial beta2, without which a last unit with few nonzero weights could be dead."""

MOMENTUM, EPSILON = 0.1, 1e-5
"""Momentum of running statistics, and the number added to a variance, as in torch's BatchNorm."""


def f(h1: Float[Tensor, "R m N"], W2: Float[Tensor, "R d m"], norm: Norm) -> Float[Tensor, "R N"]:
    """Return the outputs of the frozen network f for N samples.

    They are `sum_i relu(gamma2 * (W2 relu(gamma1 * h1 + beta1)) + beta2)_i`.

    - h1: the hidden units W1 x before normalization.
    - W2: frozen weights of the second layer.
    - norm: gamma and beta of both normalization layers, which are affine maps (paper A, Proposition
      1).
    """
    active = (norm.gamma1 * h1).add_(norm.beta1).relu_()
    return (norm.gamma2 * (W2 @ active)).add_(norm.beta2).relu_().sum(1)


def g(x: Float[Tensor, "R d N"], W: Float[Tensor, "R d d"]) -> Float[Tensor, "R N"]:
    """Return the outputs `sum_i relu(W x)_i` of a dense network with weights W, for N inputs x."""
    return (W @ x).relu_().sum(1)


Step = tuple[Float[Tensor, " R"], dict[str, Tensor], Float[Tensor, "R d N"]]
"""Result of one batch by replicate: mean squared error, gradients by parameter, active units.

The last entry is 1 for each last unit that is active or may become active, else 0.
"""


class Batch:
    """A batch of N training samples: inputs x (R, d, N) and labels y (R, N).

    W1 (R, m, d) has the frozen weights of the first layer, for the widest network. A narrower
    network has the first of these units. All networks therefore share the hidden units `h1`, which
    are computed at most once.
    """

    def __init__(self, x: Tensor, y: Tensor, W1: Tensor) -> None:
        self.x, self.y, self.W1 = x, y, W1

    @cached_property
    def h1(self) -> Float[Tensor, "R m N"]:
        """Return the hidden units W1 x before normalization."""
        return self.W1 @ self.x

    @cached_property
    def moments1(self) -> tuple[Float[Tensor, "R m 1"], Float[Tensor, "R m 1"]]:
        """Return the mean and the variance over the batch of each hidden unit W1 x.

        They are computed from the moments of x. This is fast because W1 x is linear in x.
        """
        mean = self.x.mean(-1, keepdim=True)
        centred = self.x - mean
        covariance = centred @ centred.mT / self.x.shape[-1]
        return self.W1 @ mean, ((self.W1 @ covariance) * self.W1).sum(-1, keepdim=True)


class Dense:
    """The dense network g(x) = sum_i relu(W x)_i during training; all weights W are trained.

    W holds the initial weights of R replicates.
    """

    def __init__(self, W: Float[Tensor, "R d d"]) -> None:
        self.parameters, self.running = {"W": W.clone()}, {}

    def found(self) -> Float[Tensor, "R d d"]:
        """Return the trained weights W in float64."""
        return self.parameters["W"].double()

    def step(self, batch: Batch) -> Step:
        """Return the loss on a batch, its gradient by W, and which units are active.

        Nothing is changed. The entries are those of the type `Step`.
        """
        units = (self.parameters["W"] @ batch.x).relu_()
        residual = units.sum(1, keepdim=True) - batch.y.unsqueeze(1)
        on = units.sign_()
        delta = on * (residual * (2 / residual.shape[-1]))
        return residual.square().mean((1, 2)), {"W": delta @ batch.x.mT}, on


class FrozenWithNorm:
    """A two-layer network during training: gamma and beta are trained, all weights are frozen.

    gamma and beta are the scales and shifts of its two BatchNorm layers. The network is f in the
    module's docstring.

    - W2: frozen weights of the second layer. The units of the first layer are the first m units of
      a batch.
    - batch_statistics: whether the BatchNorm layers use mean and variance of the batch (Eq. 3), as
      usual in training. Otherwise they use mean 0 and variance 1, so that they are the affine maps
      of Proposition 1.

    Gradients are written by hand, since autograd takes 1.55 times as long.
    """

    def __init__(self, W2: Float[Tensor, "R d m"], batch_statistics: bool) -> None:
        self.W2, self.batch_statistics = W2, batch_statistics
        self.parameters, self.running = {}, {}
        for layer, units in ((1, W2[:, 0, :, None]), (2, W2[..., :1])):
            ones, zeros = torch.ones_like(units), torch.zeros_like(units)
            self.parameters |= {f"gamma{layer}": ones, f"beta{layer}": zeros}
            self.running |= {f"mean{layer}": zeros.clone(), f"variance{layer}": ones.clone()}
        self.parameters["beta2"] += SHIFT_START

    def found(self) -> Norm:
        """Return the trained gamma and beta as affine maps in float64 (Proposition 1).

        If the layers use statistics of the batch, the affine maps contain the running mean and
        variance.
        """
        gamma1, beta1, gamma2, beta2 = (p.double() for p in self.parameters.values())
        if self.batch_statistics:
            mean1, variance1, mean2, variance2 = (s.double() for s in self.running.values())
            gamma1, gamma2 = gamma1 * inverse_root(variance1), gamma2 * inverse_root(variance2)
            beta1, beta2 = beta1 - gamma1 * mean1, beta2 - gamma2 * mean2
        return Norm(gamma1, beta1, gamma2, beta2)

    def step(self, batch: Batch) -> Step:
        """Return the loss on a batch, its gradients by gamma and beta, and the active last units.

        With statistics of the batch, the running statistics are updated. With fixed statistics
        every last unit counts as active, because the unit may become active later.
        """
        gamma1, beta1, gamma2, beta2 = self.parameters.values()
        m = self.W2.shape[-1]
        h1 = batch.h1[:, :m]
        mean1, inverse1 = self._statistics(1, *(moment[:, :m] for moment in batch.moments1))
        scale = gamma1 * inverse1
        active = (scale * h1).add_(beta1 - scale * mean1).relu_()
        h2 = self.W2 @ active
        mean = h2.mean(-1, keepdim=True)
        mean2, inverse2 = self._statistics(2, mean, (h2 - mean).square().mean(-1, keepdim=True))
        normal2 = (h2 - mean2) * inverse2
        units = (gamma2 * normal2).add_(beta2).relu_()
        residual = units.sum(1, keepdim=True) - batch.y.unsqueeze(1)

        on = units.sign_()
        delta2 = on * (residual * (2 / residual.shape[-1]))
        back = gamma2 * delta2
        if self.batch_statistics:  # h2 changes its mean and variance
            along = (back * normal2).mean(-1, keepdim=True)
            back = inverse2 * (back - back.mean(-1, keepdim=True) - along * normal2)
        delta1 = (self.W2.mT @ back).mul_(active.sign_())
        of_beta1 = delta1.sum(-1, keepdim=True)
        gradients = {
            "gamma1": inverse1 * (delta1.mul_(h1).sum(-1, keepdim=True) - mean1 * of_beta1),
            "beta1": of_beta1,
            "gamma2": (delta2 * normal2).sum(-1, keepdim=True),
            "beta2": delta2.sum(-1, keepdim=True),
        }
        may_be_on = on if self.batch_statistics else torch.ones_like(on)
        return residual.square().mean((1, 2)), gradients, may_be_on

    def _statistics(self, layer: int, mean: Tensor, variance: Tensor) -> tuple[Tensor | float, ...]:
        """Return a layer's mean to subtract and factor, and update the running statistics."""
        if not self.batch_statistics:
            return 0.0, 1.0
        self.running[f"mean{layer}"].lerp_(mean, MOMENTUM)
        self.running[f"variance{layer}"].lerp_(variance, MOMENTUM)
        return mean, inverse_root(variance)


def inverse_root(variance: Tensor) -> Tensor:
    """Return `1 / sqrt(variance + epsilon)`, by which BatchNorm multiplies its centered inputs."""
    return (variance + EPSILON).rsqrt()


def curvature(on: Float[Tensor, "R d N"]) -> Float[Tensor, " R"]:
    """Return the curvature of the mean squared error along beta2, for each replicate.

    beta2 is the shift of the last layer. on: 1 for each last unit that is active at a sample, else
    0. The curvature is `2 E k^2 / d`, where k is the number of active last units of a sample, but
    at least one. A step of length one along (1, ..., 1) in beta2 moves the output by k / sqrt(d).
    For a dense network, the step moves all rows of W along one vector.

    SGD is stable at learning rates below 2 / curvature. At this limit `Dense` diverges in at least
    7 of 8 replicates, for d = 5 to 30. At three quarters of the limit it never does (seed 1).
    """
    return on.sum(1).clamp(min=1).square().mean(-1) * (2 / on.shape[1])
