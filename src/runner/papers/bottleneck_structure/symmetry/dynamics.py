"""The dynamics of section 5: gradient descent on C(v) = ||v v^T - (w w^T + E)||_F^2."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

ORTHOGONAL_NORM = 1.5
"""Upper end of the initial ||(I - w w^T) v||, which is uniform on [0, 1.5] (our choice).

The initial w.v is uniform on [-1, 1]. For Gaussian points in high dimension w.v is almost 0.
"""


@dataclass(frozen=True)
class Dynamics:
    """Gradient descent on v with a fixed unit vector w and a small symmetric noise matrix E.

    The cost is C(v) = ||v v^T - (w w^T + E)||_F^2.
    """

    w: Float[Tensor, " d"]
    E: Float[Tensor, "d d"]
    step_size: float

    @classmethod
    def drawn(
        cls, d: int, noise: float, step_size: float, generator: torch.Generator
    ) -> "Dynamics":
        """Return dynamics with random w and symmetric Gaussian E of norm `||E||_op = noise`.

        They are in float64. d: dimension of v.
        """
        w = torch.randn(d, generator=generator, dtype=torch.float64)
        E = torch.randn(d, d, generator=generator, dtype=torch.float64)
        E = E + E.mT
        return cls(w / w.norm(), E * (noise / torch.linalg.matrix_norm(E, 2)), step_size)

    @property
    def target(self) -> Float[Tensor, "d d"]:
        """Return the matrix `w w^T + E`, which v v^T approximates."""
        return torch.outer(self.w, self.w) + self.E

    def cost(self, v: Float[Tensor, "N d"]) -> Float[Tensor, " N"]:
        """Return the cost C(v) = ||v v^T - (w w^T + E)||_F^2 of each of N points v."""
        A = self.target
        square = v.square().sum(1)
        return square.square() - 2 * ((v @ A) * v).sum(1) + A.square().sum()

    def step(self, v: Float[Tensor, "N d"]) -> Float[Tensor, "N d"]:
        """Return v after one step of gradient descent.

        The gradient is `4 (||v||^2 v - (w w^T + E) v)`.
        """
        gradient = 4 * (v.square().sum(1, keepdim=True) * v - v @ self.target)
        return v - self.step_size * gradient

    def path(self, v: Float[Tensor, "N d"], steps: int) -> Float[Tensor, "times N d"]:
        """Return v(0), ..., v(steps) of gradient descent from each point v(0) = v."""
        points = [v]
        for _ in range(steps):
            points.append(self.step(points[-1]))
        return torch.stack(points)

    def costs(self, v: Float[Tensor, "N d"], steps: int) -> Float[Tensor, "N steps"]:
        """Return `C(v(1)), ..., C(v(steps))` of gradient descent from v(0) = v.

        The network learns to predict these numbers.
        """
        return torch.stack([self.cost(later) for later in self.path(v, steps)[1:]], dim=1)

    def statistics(self, v: Float[Tensor, "... d"]) -> Float[Tensor, "... 2"]:
        """Return the two summary statistics `u(v) = ((w.v)^2, ||(I - w w^T) v||^2)`."""
        along = (v @ self.w).square()
        return torch.stack([along, v.square().sum(-1) - along], dim=-1)

    def starts(self, count: int, generator: torch.Generator) -> Float[Tensor, "count d"]:
        """Return random initial points v(0).

        w.v is uniform on [-1, 1], and ||(I - w w^T) v|| is uniform on [0, ORTHOGONAL_NORM].
        """
        along = 2 * torch.rand(count, 1, generator=generator, dtype=self.w.dtype) - 1
        away = ORTHOGONAL_NORM * torch.rand(count, 1, generator=generator, dtype=self.w.dtype)
        return along * self.w + away * self.directions(count, generator)

    def directions(self, count: int, generator: torch.Generator) -> Float[Tensor, "count d"]:
        """Return random unit vectors orthogonal to w."""
        drawn = torch.randn(count, len(self.w), generator=generator, dtype=self.w.dtype)
        drawn = drawn - torch.outer(drawn @ self.w, self.w)
        return drawn / drawn.norm(dim=1, keepdim=True)
