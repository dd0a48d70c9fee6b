"""Statements of paper D about learning rates, tangent kernels and representations."""

from runner.papers.bottleneck_structure.stability import quantities as q
from runner.results.claims import Claim, ours

RATES = "paper D, abstract and section 4"
FIT = 0.01
"""Training error below which a network still represents Example 20's function; zero costs 0.3."""

EDGE = 0.15
"""Distance from 2 of learning rate × largest curvature that counts as the edge of stability.

In eleven networks of another seed that reached the edge it was at most 0.08.
"""
JUDGED = "c == 0.1 and L < 30"
"""The rate and the depths at which networks trained by Adam begin beyond the edge and then fit.

Smaller rates begin below the edge. At larger rates or depths too many networks do not fit, except
at L = 6 and c = 0.2, where all eight fit and end at 1.97 to 2.04.
"""

BEYOND = "fits and before > 2"
"""Condition: learning rate × curvature is above 2 before gradient descent, and the network fits."""

LARGE = "c == 0.2"
"""A rate at which training from scratch reached the edge on another seed. At c = 0.1 one of two
networks of depth 6 stayed below it."""

CLAIMS = {
    "bottleneck-rates": [
        Claim(
            "rate-bounds-kernel",
            "on figure 1's task, gradient descent with the learning rate c/L (L: depth) moves"
            " networks whose largest curvature is above 2 L/c to the edge of stability, where it is"
            " 2 L/c",
            "paper D, section 4",
            q.rate_times_curvature("figure-1", JUDGED).given(BEYOND).within(EDGE, of=2),
            note="before gradient descent it was {before.min:.2f} to {before.max:.2f}",
        ),
        Claim(
            "large-rate-small-kernel",
            "on figure 1's task, gradient descent with the learning rate 0.1/L (L: depth) leads"
            " from networks trained by Adam to networks with a smaller tangent kernel",
            RATES,
            q.after_over_before("ntk_trace", "figure-1", JUDGED).given("fits").below(1),
        ),
        Claim(
            "edge-from-scratch",
            "on figure 1's task, gradient descent from random weights with the learning rate 0.2/L"
            " (L: depth) ends at the edge of stability, where learning rate × largest curvature is"
            " 2",
            RATES,
            q.rate_times_curvature("scratch", LARGE).given("fits").within(EDGE, of=2),
            note="before training it was {before.min:.2f} to {before.max:.2f}",
        ),
        Claim(
            "kernel-from-scratch",
            "on figure 1's task, gradient descent with the learning rate c/L from random weights"
            " leads to a trace of the tangent kernel that grows at most linearly with the depth L",
            RATES,
            q.growth_from_scratch("ntk_trace").given("fits").below(1),
            note="the paper's order O(L) is about large depths",
        ),
        Claim(
            "representations-converge",
            "on figure 1's task, after gradient descent at learning rates c/L (L: depth), the"
            " middle representation changes less and less from one depth to the next",
            RATES,
            q.growth("distance", "figure-1").below(0),
        ),
        Claim(
            "divergent-networks-are-narrow",
            "the tangent kernel of Example 20's networks grows faster than the depth",
            "paper D, section 4 and Example 20",
            q.growth("ntk_trace", "example-20", "c == 0").above(1),
        ),
        ours(
            "divergent-networks-are-left",
            "gradient descent with learning rates c/L (L: depth) moves away from Example 20's"
            " networks from depth 12 on, although they fit exactly",
            "supplementary to paper D, section 4 and Example 20",
            q.cost_after("example-20", "L >= 12 and c <= 0.2").above(FIT),
        ),
    ]
}
