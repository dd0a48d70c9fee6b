"""Statements of paper A about its figures 4 and 5, and additional statements.

Appendix E of the paper describes results without numbers ("beats", "almost 0", "high"). An error
here is the mean squared error on test samples, divided by the variance of the target g. An error
below 0.01 counts as small, or almost 0.
"""

from runner.papers.norm_tuning.bn_only import quantities as q
from runner.papers.norm_tuning.bn_only import tables as t
from runner.results.claims import Claim, ours

LEFT = "paper A, Appendix E, figure 4 left"
RIGHT = "paper A, Appendix E, figure 4 right"
SMALL = 0.01
SQUARE, SPARSE, SPARSEST = (f"m == d ** 2 and p == {p}" for p in (1, 0.2, 0.05))
FULL_RANK = "numerical_rank == d ** 2"
SCHEDULES = "paper A, Appendix E, training details"
BOTH = (t.TEACHER, t.STUDENT)
UP_TO = "SGD was run at target widths up to 30"
COPY = "the copy is the construction from a dense network that was trained on the target's outputs"

CLAIMS = {
    "fig4": [
        Claim(
            "exact",
            "at width m = d², each constructed network equals its source: the target of width d,"
            " or a dense network trained on the target's outputs",
            "paper A, Theorem 1; Appendix E, figure 4 left",
            [q.error_over_rounding(s, SQUARE).given(FULL_RANK).always("<=", 1) for s in BOTH],
            needs={"target_width": 2},
            note="rounding: the largest mean squared distance from the source is"
            " {source_mse.max:.2g}",
        ),
        Claim(
            "constructions-beat-sgd",
            "at width d², both constructions have a smaller test error than SGD on the"
            " normalization parameters γ and β, for every target width d",
            LEFT,
            q.ratio(t.SGD, BOTH, SQUARE).above(1),
            needs={"target_width": 3},
        ),
        Claim(
            "sgd-wins-narrow",
            "at small widths m ≤ d, SGD on the normalization parameters γ and β has a smaller"
            " test error than both constructions (d: target width)",
            RIGHT,
            q.ratio(BOTH, t.SGD, "m <= d").above(1),
            needs={"width": 3},
        ),
        Claim(
            "sgd-constant-loss",
            "at widths m below d², SGD on γ and β only achieves a constant loss, the same at every"
            " m (d: target width)",
            RIGHT,
            q.narrow_over_wide(t.SGD).within(0.5, 1),
            note="the median error is {narrow.median:.3g} at the smallest width and"
            " {wide.median:.3g} at the largest; the smallest error of a network is {least.min:.3g}",
        ),
        Claim(
            "constructions-win-wide",
            "at widths m just below d², both constructions have a smaller test error than SGD on"
            " the normalization parameters γ and β (d: target width)",
            RIGHT,
            q.ratio_near_square(t.SGD, BOTH).above(1),
        ),
    ],
    "fig4-training": [
        ours(
            "constructions-beat-adam",
            "at width d², the construction and dense networks trained by Adam have a smaller test"
            " error than Adam on γ and β (d: target width)",
            f"supplementary to {LEFT}: SGD may be badly tuned",
            q.ratio(t.ADAM, (t.TEACHER, t.DENSE_ADAM), SQUARE).above(1),
            needs={"target_width": 3},
        ),
    ],
    "fig5": [
        Claim(
            "sparse-small-d",
            "with 20 % nonzero weights at the smallest target width, the construction from the"
            " target has a larger test error than SGD, and the copy of a dense network has a much"
            " larger one than this network",
            "paper A, Appendix E, figure 5a left",
            [
                q.ratio(t.TEACHER, t.SGD, f"{SPARSE} and d == d.min()").above(1),
                q.ratio(t.STUDENT, t.DENSE, f"{SPARSE} and d == d.min()").above(2),
            ],
            needs={"target_width": 3},
            note=COPY,
        ),
        Claim(
            "sparse-large-d",
            "with 20 % nonzero weights, the construction's test error becomes almost 0 as the"
            " target width grows, and the copy of a dense network approaches this network",
            "paper A, Appendix E, figure 5a left",
            [
                q.loss(t.TEACHER, f"{SPARSE} and d == d.max()").below(SMALL),
                q.gap_closed(t.STUDENT, t.DENSE, SPARSE).above(0),
            ],
            note=COPY,
        ),
        Claim(
            "sparsest-no-small-loss",
            "with 5 % nonzero weights, neither SGD on γ and β nor a construction reaches a test"
            " error below 1 % at any target width",
            "paper A, Appendix E, figure 5b left",
            q.loss((t.SGD, *BOTH), SPARSEST).above(SMALL),
            needs={"target_width": 3},
            note=UP_TO,
        ),
        Claim(
            "sgd-beats-sparsest",
            "with 5 % nonzero weights, SGD on γ and β has a smaller test error than both"
            " constructions at every target width",
            "paper A, Appendix E, figure 5b left",
            q.ratio(BOTH, t.SGD, SPARSEST).above(1),
            needs={"target_width": 3},
            note=UP_TO,
        ),
    ],
    "norm-budget": [
        ours(
            "no-budget-is-enough",
            "at width d², from γ = 1 and β = 0, neither more samples nor more epochs bring SGD or"
            " Adam on γ and β to a test error below 1 %",
            f"supplementary to {LEFT}: SGD may be given too few samples",
            [q.loss_by_budget(s).above(SMALL) for s in (t.SGD, t.ADAM)],
            note="only γ and β are trained (d: target width)",
        ),
    ],
    "norm-schedules": [
        Claim(
            "constant-beats-schedules",
            "for SGD on the normalization parameters γ and β, a constant learning rate gives a"
            " smaller test error than a cosine or exponential schedule",
            SCHEDULES,
            [
                q.schedule_ratio(schedule, "constant").given("inside_grid").above(1)
                for schedule in ("cosine", "exponential")
            ],
        ),
        ours(
            "constant-better-at-small-rates",
            "for SGD on γ and β, a cosine schedule gives a larger test error than a constant"
            " learning rate if both begin at 0.14 or less",
            SCHEDULES,
            q.schedule_ratio_at("cosine", "constant", "rate <= 0.14").above(1),
        ),
        ours(
            "cosine-better-at-large-rates",
            "for SGD on γ and β, a cosine schedule gives a smaller test error than a constant"
            " learning rate if both begin at 0.4 or more",
            SCHEDULES,
            q.schedule_ratio_at("cosine", "constant", "rate >= 0.4").below(1),
        ),
        ours(
            "cosine-equals-constant",
            "for SGD on γ and β, a cosine schedule and a constant learning rate, each at its best"
            " rate, give test errors that differ by less than 10 %",
            SCHEDULES,
            q.schedule_ratio("cosine", "constant").given("inside_grid").within(0.1, 1),
        ),
        ours(
            "exponential-worse",
            "for SGD on γ and β, an exponential schedule gives a larger test error than a constant"
            " learning rate, each at its best rate",
            SCHEDULES,
            q.schedule_ratio("exponential", "constant").given("inside_grid").above(1),
        ),
    ],
}
