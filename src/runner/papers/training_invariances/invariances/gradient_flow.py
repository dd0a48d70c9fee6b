"""Gradient flow of many networks, in steps of gradient descent or Runge-Kutta, in float64.

    dtheta/dt = - grad R(theta),   R = 1/n sum_i loss(y_i f(x_i))        (Section 2)

In normalized time s the parameters move at unit speed, dtheta/ds = - grad R / |grad R|. The path of
the parameters is the same, and the flow does not slow down as the risk R vanishes. Gradient and
speed are then computed from log R. The reason: R falls below the smallest number of float64 long
before the weights are large.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from runner.core.choices import lookup
from runner.papers.training_invariances import theory
from runner.papers.training_invariances.invariances.graphs import Dag
from runner.papers.training_invariances.invariances.network import Network
from runner.papers.training_invariances.losses import LOG_LOSSES, MARGIN_LOSSES, log_losses


def unit(g: Float[Tensor, "R P"]) -> tuple[Float[Tensor, "R P"], Float[Tensor, "R"]]:
    """Return g / |g| and log |g| for each row g of a matrix, even if squared entries underflow.

    If a row is zero, its first result is zero. A flow with zero gradient therefore does not move.
    """
    tiny = torch.finfo(g.dtype).tiny
    largest = g.abs().amax(-1).clamp(min=tiny)
    scaled = g / largest[:, None]
    norm = scaled.norm(dim=-1).clamp(min=tiny)
    return scaled / norm[:, None], largest.log() + norm.log()


@dataclass(frozen=True)
class Objective:
    """The empirical risk of S networks, each with n separate examples.

    - network: the architecture that all networks share, or their graphs.
    - x, y: inputs, and labels -1 and 1.
    - loss: name of the loss of the margin y f(x), as "logistic".
    """

    network: Network | Dag
    x: Float[Tensor, "S n d"]
    y: Float[Tensor, "S n"]
    loss: str

    def risk(
        self, theta: Float[Tensor, "R P"], log: bool = False
    ) -> tuple[Float[Tensor, "R"], list[Float[Tensor, "R _ _"]]]:
        """Return the risk of each network, or its logarithm, and the preactivations.

        theta: parameters of the first R of the S networks, a row for each. log: whether to return
        the logarithm. The preactivations are a list with a tensor for each layer with nonlinear
        neurons. For graphs, the list has one tensor of all hidden vertices. Raises InputError for
        an unknown loss.
        """
        rows = len(theta)
        scores, preactivations = self.network.forward(theta, self.x[:rows])
        z = self.y[:rows] * scores
        if log and self.loss in LOG_LOSSES:
            return log_losses(z, self.loss).logsumexp(-1) - math.log(z.shape[-1]), preactivations
        risks = lookup("loss", self.loss, MARGIN_LOSSES)(z).mean(-1)
        return risks.log() if log else risks, preactivations

    def gradient(
        self, theta: Float[Tensor, "R P"], log: bool = False
    ) -> tuple[Float[Tensor, "R P"], Float[Tensor, "R"], list[Float[Tensor, "R _ _"]]]:
        """Return the gradient of each network's risk, the risk, and the preactivations.

        theta: parameters of the first R of the S networks, a row for each. log: whether to use the
        logarithm of the risk. The last two results are those of `risk`. Raises InputError for an
        unknown loss.
        """
        theta = theta.detach().requires_grad_()
        risks, preactivations = self.risk(theta, log)
        # The networks are independent, so the gradient of the sum has each network's gradient.
        (gradient,) = torch.autograd.grad(risks.sum(), theta)
        return gradient, risks.detach(), preactivations


INTEGRATORS = {"euler": [], "rk4": [(1 / 2, 2), (1 / 2, 2), (1, 1)]}
"""Later stages of a step, by integrator, as pairs (fraction, weight).

A stage is evaluated after this fraction of the step along the previous stage's velocity. The weight
is that of the stage's velocity in the mean.
"""


@dataclass
class Flow:
    """The gradient flow of S networks at one time, and which neurons have been active so far.

    The networks are sorted by their step length, the smallest first.

    - theta: current parameters, a row for each network.
    - rates: step length of each network.
    - integrator: "euler" (gradient descent) or "rk4" (Runge-Kutta of fourth order).
    - normalized: whether time is normalized, so that the parameters move at unit speed.
    - log_time: logarithm of the elapsed time of the gradient flow; -inf at the start.
    - same: for each nonlinear layer, which pairs of neurons were active for the same examples at
      all steps so far.
    - alive: for each nonlinear layer, which neurons were active for some example at some step.
    - always: for each nonlinear layer, which neurons were active for all examples at all steps.

    Raises ValueError unless the rates ascend.
    """

    objective: Objective
    theta: Float[Tensor, "S P"]
    rates: list[float]
    integrator: str
    normalized: bool
    log_time: Float[Tensor, " S"] = field(init=False)
    same: list[Bool[Tensor, "S _ _"]] = field(init=False)
    alive: list[Bool[Tensor, "S _"]] = field(init=False)
    always: list[Bool[Tensor, "S _"]] = field(init=False)

    def __post_init__(self) -> None:
        if self.rates != sorted(self.rates):
            raise ValueError("rates must ascend")
        self._steps = self.theta.new_tensor(self.rates)[:, None]
        self.log_time = torch.full_like(self.theta[:, 0], -torch.inf)
        with torch.no_grad():
            _, preactivations = self.objective.network.forward(self.theta, self.objective.x)
        self.same = [theory.same_pattern(z) for z in preactivations]
        self.alive = [(z > 0).any(-2) for z in preactivations]
        self.always = [(z > 0).all(-2) for z in preactivations]

    def steps(self, duration: float) -> int:
        """Return how many steps the network with the smallest step length takes in a duration.

        duration: in the time of the flow, or in normalized time.
        """
        return round(duration / self.rates[0])

    def advance(self, duration: float, tick: Callable[[], None] = lambda: None) -> None:
        """Move all networks by a duration, in place.

        duration: in the time of the flow, or in normalized time; a multiple of each step length.
        tick: called after every step of the network with the smallest step length.
        """
        steps = [round(duration / rate) for rate in self.rates]
        for step in range(self.steps(duration)):
            # Networks with larger steps finish earlier, so the first networks are still moving.
            self.step(sum(count > step for count in steps))
            tick()

    def step(self, moving: int) -> None:
        """Take one step with the first `moving` networks, in place; the others stand still.

        Raises InputError for an unknown integrator or loss.
        """
        theta, h = self.theta[:moving], self._steps[:moving]
        velocity, log_speed, preactivations = self._velocity(theta)
        self._watch(preactivations)
        mean, weights = velocity, 1
        for share, weight in lookup("integrator", self.integrator, INTEGRATORS):
            velocity, *_ = self._velocity(theta + share * h * velocity)
            mean, weights = mean + weight * velocity, weights + weight
        theta += h * (mean / weights)
        elapsed = h[:, 0].log() - log_speed  # in time of the flow: dt = ds / speed
        self.log_time[:moving] = torch.logaddexp(self.log_time[:moving], elapsed)

    def _velocity(
        self, theta: Float[Tensor, "R P"]
    ) -> tuple[Float[Tensor, "R P"], Float[Tensor, "R"], list[Float[Tensor, "R _ _"]]]:
        """Return the velocity of the parameters, log(dtau/dt), and the preactivations.

        tau is the time in which steps are counted, normalized or not. The velocity is dtheta/dtau.
        """
        gradient, risk, preactivations = self.objective.gradient(theta, log=self.normalized)
        if not self.normalized:
            return -gradient, torch.zeros_like(risk), preactivations
        direction, log_norm = unit(gradient)
        return -direction, risk + log_norm, preactivations

    def _watch(self, preactivations: list[Float[Tensor, "R _ _"]]) -> None:
        for layer, z in enumerate(preactivations):
            self.same[layer][: len(z)] &= theory.same_pattern(z.detach())
            self.alive[layer][: len(z)] |= (z > 0).any(-2)
            self.always[layer][: len(z)] &= (z > 0).all(-2)

    def state(self) -> dict[str, Tensor]:
        """Return by name the tensors that a checkpoint stores; later steps change them in place."""
        watched = {
            f"{name}/{layer}": tensor
            for name in ("same", "alive", "always")
            for layer, tensor in enumerate(getattr(self, name))
        }
        return {"theta": self.theta, "log_time": self.log_time, **watched}
