"""Evaluate the theorems of paper D on a trained network: the table `theorems.csv`."""

from collections.abc import Iterator

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.networks import Inputs, Network, differentiate
from runner.papers.bottleneck_structure.rows import TheoremCheck
from runner.papers.bottleneck_structure.spectra import jacobian_ranks

ROUNDING = 1e-9
"""Relative size below which a violation counts as float64 rounding."""
NARROW_POINTS = 5
"""Number of points at which the (d_in d_out)-square matrices of Proposition 9 are computed."""

Sides = tuple[Float[Tensor, " _"], Float[Tensor, " _"]]
"""Smaller and larger side of an inequality, a number for each point."""


def theorem_rows(network: Network, x: Inputs, k: int, replicate: int) -> Iterator[TheoremCheck]:
    """Yield a row for each theorem, measured at the inputs where Rank J f(x) = k >= 1.

    The theorems assume this rank. Inputs where the Jacobian is nan are included and count as
    violations. Without any such input, no row is yielded.

    x: the inputs, one per row. k: the rank. replicate: the network's replicate.
    """
    J = differentiate(network, x).jacobian
    x = x[(jacobian_ranks(J) == k) | J.isnan().any(2).any(1)]
    if len(x):
        for theorem, sides in inequalities(network, x, k).items():
            yield check(network, k, replicate, theorem, sides)


def inequalities(network: Network, x: Inputs, k: int) -> dict[str, Sides]:
    """Return the lower and the upper side of every theorem, at points with Rank J f(x) = k.

    - schatten: `L ||J||_{2/L}^{2/L} <= ||theta||^2` (Appendix A.1);
    - theorem-3: `2 log |J|_+ <= c_1`;
    - theorem-6, theorem-7, corollary-8: see `theory`;
    - proposition-9: with the factor L of its proof;
    - proposition-9-printed: with the factor 2 L of its statement;
    - proposition-9-segment: its second part.
    """
    derivatives, L, norm = differentiate(network, x), network.depth, network.parameter_norm()
    excess = norm - k * L  # c_1
    log_determinant = theory.log_pseudo_determinant(derivatives.jacobian, k)
    trace = theory.ntk_trace(network, derivatives, x)
    distance = theory.bottleneck_distance(network, derivatives, k)
    squares = torch.stack(theory.squared_inputs(network, x)).sum(0)
    tail = theory.representation_tail(network, x, k).sort(descending=True).values
    bound = theory.representation_bound(trace, excess, log_determinant, k, L)
    first = x[:NARROW_POINTS]
    near = differentiate(network, first)
    curvature = theory.ntk_mixed_derivative(near)
    narrow = theory.narrowness_bound(near.jacobian, L)
    # From each point towards the next point, and as far back, until a neuron switches.
    ends = theory.active_segment(network, first, first.roll(-1, dims=0) - first)
    segment = theory.segment_bound(near.jacobian, *ends, L)
    norms = [theory.ntk_norm(network, differentiate(network, end), end) for end in ends]
    return {
        "schatten": (theory.representation_cost(derivatives.jacobian, L), norm.expand(len(x))),
        "theorem-3": (2 * log_determinant, excess.expand(len(x))),
        "theorem-6": (distance, excess - 2 * log_determinant),
        "theorem-7": (squares, theory.activation_bound(trace, excess, log_determinant, k)),
        "corollary-8": (tail, bound * L / torch.arange(1, L + 1).to(x)),
        "proposition-9": (narrow, curvature),
        "proposition-9-printed": (2 * narrow, curvature),
        "proposition-9-segment": (segment, torch.maximum(*norms)),
    }


def check(network: Network, k: int, replicate: int, theorem: str, sides: Sides) -> TheoremCheck:
    """Return a row that compares the two sides of a theorem at all their points.

    k: the rank of the network. theorem: its name in the table. sides: the lower and the upper side.
    """
    lower, upper = sides
    slack = upper - lower
    size = 1 + lower.abs().maximum(upper.abs())
    tightest = slack.argmin()
    summary = float(lower[tightest]), float(upper[tightest]), float((lower / upper).median())
    violations = int((~(slack >= -ROUNDING * size)).sum())  # nan satisfies nothing
    about = network.depth, replicate, k, theory.imbalance(network), theorem
    return TheoremCheck(*about, len(lower), violations, *summary)
