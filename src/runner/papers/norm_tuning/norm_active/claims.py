"""Additional claims about training with active hidden ReLUs, at target widths up to 10.

All bounds were fixed on seed 900. Every fraction is of networks that did not choose learning rates.
"""

from runner.papers.norm_tuning.norm_active.quantities import found, found_minus
from runner.results.claims import ours

QUESTION = "supplementary to paper A, Section 5: whether SGD can find the solution"
SQUARE, TWICE = (f"d <= 10 and m == {factor}d ** 2" for factor in ("", "2 * "))
MARGIN = 0.15
"""Difference of fractions up to which one way to train counts as no worse than another."""

CLAIMS = {
    "norm-active": [
        ours(
            "found-at-twice",
            "if all hidden ReLUs are active and only γ is trained, Adam finds the exact solution at"
            " width 2 d² in more than half of the networks (d: target width), and SGD with ten"
            " times the steps finds it in more than a quarter",
            QUESTION,
            [found("scales", TWICE).above(0.5), found("scales by sgd", TWICE).above(0.25)],
        ),
        ours(
            "not-found-at-square",
            "if all hidden ReLUs are active and only γ is trained, neither Adam nor SGD with ten"
            " times the steps finds the exact solution at width d² in a quarter of the networks (d:"
            " target width)",
            QUESTION,
            [found(arm, SQUARE).below(0.25) for arm in ("scales", "scales by sgd")],
        ),
        ours(
            "active-decides",
            "if γ and all shifts of 2 d² units are trained (d: target width), Adam finds the exact"
            " solution in more than a quarter of the networks if all hidden ReLUs are initially"
            " active, but in less than a tenth if the shifts begin at 0, with the same learning"
            " rates or with their own best ones",
            QUESTION,
            [
                found("from_active", TWICE).above(0.25),
                found("from_zero", TWICE).below(0.1),
                found("from_zero at rates of from_active", TWICE).below(0.1),
            ],
        ),
        ours(
            "as-good-as-dense",
            "if all hidden ReLUs of 2 d² units are active (d: target width), the fraction of"
            " networks in which Adam on γ finds the target is at most 15 percentage points below"
            " the fraction in which Adam on a dense network does",
            QUESTION,
            found_minus("scales", "dense", TWICE).above(-MARGIN),
        ),
        ours(
            "axes-decide",
            "at width d² (d: target width), Adam in random coordinates finds the exact solution in"
            " more than half of the networks if the linear system has condition number 1, but in"
            " fewer than a quarter if it has the condition number of its matrix K; in coordinates"
            " along K's singular vectors, Adam does so in more than a quarter",
            QUESTION,
            [
                found("rotated_weights", SQUARE).above(0.5),
                found("rotated_scales", SQUARE).below(0.25),
                found("singular_scales", SQUARE).above(0.25),
            ],
        ),
    ],
}
