"""What is to be learned or rebuilt, the frozen weights, and what is built from them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import pi, sqrt

import torch
from jaxtyping import Float
from scipy.optimize import brentq
from scipy.stats import norm
from torch import Tensor

from runner.core.errors import lookup
from runner.core.streams import generator
from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN, BnOnly
from runner.papers.norm_tuning.bn_only.stacks import BatchNormTuned, NormTuned, ReluSum, Stack
from runner.papers.norm_tuning.theory import NormParameters, wide_layer


@dataclass
class Problem:
    """The target and the frozen weights of some replicates, in float64 on the CPU."""

    target: Float[Tensor, "R d d"]
    student: Float[Tensor, "R d d"]  # where `dense` starts
    W1: Float[Tensor, "R m d"]
    W2: Float[Tensor, "R d m"]


def draw_problem(config: BnOnly, replicates: Sequence[int]) -> Problem:
    """Target, student and frozen weights, each replicate and each matrix from its own stream."""
    d, m, p = config.target_width, config.m, config.sparsity

    def draw(purpose: str, rows: int, columns: int, variance: float, sparse: bool) -> Tensor:
        matrices = []
        for replicate in replicates:
            stream = generator(config.seed, replicate, purpose)
            matrix = torch.randn(rows, columns, generator=stream, dtype=torch.float64)
            if sparse:
                kept = torch.rand(rows, columns, generator=stream, dtype=torch.float64) < p
                matrix = matrix * kept / sqrt(p)
            matrices.append(sqrt(variance) * matrix)
        return torch.stack(matrices)

    return Problem(
        target=draw("target", d, d, 1 / d, sparse=False),
        student=draw("student", d, d, 1 / d, sparse=False),
        W1=draw("W1", m, d, 1 / d, sparse=p < 1),
        W2=draw("W2", d, m, 2 / m, sparse=p < 1),
    )


STARTS = {
    "sgd": (NormTuned, "W1", "W2"),
    "best": (NormTuned, "W1", "W2"),
    "batch_norm": (BatchNormTuned, "W1", "W2"),
    "dense": (ReluSum, "student"),
    "dense_best": (ReluSum, "student"),
}
"""Of the trained methods: the stack, and the weights of the problem that it starts from."""


def starting_stack(problem: Problem, method: str, device: torch.device, copies: int = 1) -> Stack:
    """A trained method at initialisation, in float32; every replicate so many times, one by one.

    The copies of a replicate stand apart by the number of replicates. Raises InputError for an
    unknown method.
    """
    kind, *names = lookup("methods", method, STARTS)
    return kind(*(getattr(problem, W).float().repeat(copies, 1, 1) for W in names)).to(device)


def corrected(
    problem: Problem, source: Float[Tensor, "R d d"], systems: list[NormParameters]
) -> list[NormParameters]:
    """The construction with the mean of every last unit put right, beyond the paper.

    Where m < d^2 the rows w of `W2 diag(gamma1) W1` are shorter than the rows w* of the source, in
    the mean, and so f is too small. Each unit gets the shift b with which its mean for x ~ N(0, I)
    is the target's: b Phi(b / |w|) + |w| phi(b / |w|) = |w*| / sqrt(2 pi).
    """
    found = []
    for W1, W2, W, system in zip(problem.W1, problem.W2, source, systems, strict=True):
        reached = (W2 * system.gamma1) @ W1
        shifts = [
            _shift_of_mean(float(w.norm()), float(w_star.norm()) / sqrt(2 * pi))
            for w, w_star in zip(reached, W, strict=True)
        ]
        shift = torch.tensor(shifts, dtype=W.dtype, device=W.device)
        found.append(replace(system, beta2=system.beta2 + shift))
    return found


def _shift_of_mean(deviation: float, mean: float) -> float:
    """The b for which E relu(b + deviation z) = mean, z ~ N(0, 1)."""
    if deviation == 0:
        return mean

    def excess(b: float) -> float:
        return b * norm.cdf(b / deviation) + deviation * norm.pdf(b / deviation) - mean

    span = 40 * deviation + mean
    return float(brentq(excess, -span, span))


def construct(
    problem: Problem, source: Float[Tensor, "R d d"], tick: Callable[[], None] = lambda: None
) -> list[NormParameters]:
    """Theorem 1 for each replicate: scales and shifts with which f equals sum relu(source x).

    `tick` is called after every replicate.
    """
    d = source.shape[-1]
    found = []
    for W1, W2, W in zip(problem.W1, problem.W2, source, strict=True):
        zero, input_norm = torch.zeros(d, dtype=W.dtype), sqrt(d) + SHIFT_MARGIN
        found.append(wide_layer(W1, W2, W, zero, input_norm))
        tick()
    return found


def constructed_stack(
    problem: Problem, systems: list[NormParameters], device: torch.device
) -> NormTuned:
    """The constructed networks of all replicates as one float64 stack."""
    names = ("gamma1", "beta1", "gamma2", "beta2")
    parameters = {
        name: torch.stack([getattr(system, name) for system in systems]).to(device)
        for name in names
    }
    return NormTuned(problem.W1.to(device), problem.W2.to(device), parameters)
