"""Statements of paper D about learning rates, tangent kernels and representations."""

from runner.papers.bottleneck_structure.stability import quantities as q
from runner.results.claims import Claim, ours

RATES = "paper D, abstract and section 4"
FIT = 0.01
"""Training error below which a network still represents Example 20's function; zero costs 0.3."""

CLAIMS = {
    "bottleneck-rates": [
        Claim(
            "rate-bounds-kernel",
            "gradient descent with the learning rate c/L leaves networks at which its largest"
            " curvature 2 ‖Θ(X, X)‖ / N is above 2 L/c (Θ: tangent kernel)",
            "paper D, section 4",
            q.rate_times_curvature("figure-1").below(2),
        ),
        Claim(
            "large-rate-small-kernel",
            "on figure 1's task, gradient descent at the largest of five rates c/L leads to"
            " networks with a smaller tangent kernel",
            RATES,
            q.after_over_before("ntk_trace", "figure-1").below(1),
        ),
        Claim(
            "kernel-of-order-depth",
            "on figure 1's task, after gradient descent at rates c/L, the trace of the tangent"
            " kernel grows at most linearly with the depth L",
            RATES,
            q.growth("ntk_trace", "figure-1").below(1),
        ),
        Claim(
            "representations-converge",
            "on figure 1's task, after gradient descent at rates c/L, the middle representation"
            " changes less and less from depth to depth",
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
            "gradient descent with learning rates c/L leaves Example 20's networks from depth 12"
            " on, although they fit exactly",
            "supplementary to paper D, section 4 and Example 20",
            q.cost_after("example-20", "L >= 12").above(FIT),
        ),
    ]
}
