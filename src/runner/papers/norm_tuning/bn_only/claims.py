"""What paper A says its figures 4 and 5 show, and what stands beside it.

Appendix E states its results in words ("beats", "almost 0", "high"). A loss is small, or almost 0,
below a hundredth of the variance of g, which is the loss of a constant.
"""

from runner.papers.norm_tuning.bn_only import quantities as q
from runner.papers.norm_tuning.bn_only import tables as t
from runner.results.claims import Claim, ours

LEFT = "paper A, Appendix E, figure 4 left"
RIGHT = "paper A, Appendix E, figure 4 right"
SMALL = 0.01
SQUARE, SPARSE, SPARSEST = (f"m == d ** 2 and p == {p}" for p in (1, 0.2, 0.05))
FULL_RANK = "numerical_rank == d ** 2"
BOTH = (t.TEACHER, t.STUDENT)

CLAIMS = {
    "fig4": [
        Claim(
            "exact",
            "at m = d² each construction equals its source, the target or a dense network",
            "paper A, Theorem 1; Appendix E, figure 4 left",
            [q.error_over_rounding(each, SQUARE).given(FULL_RANK).always("<=", 1) for each in BOTH],
            needs={"target_width": 2},
            note="mean squared distance at most {source_mse.max:.2g}",
        ),
        Claim(
            "constructions-beat-sgd",
            "at m = d² both constructions beat SGD on scales and shifts, at every d",
            LEFT,
            q.ratio(t.SGD, BOTH, SQUARE).above(1),
            needs={"target_width": 3},
        ),
        Claim(
            "sgd-wins-narrow",
            "at small m SGD on scales and shifts beats both constructions",
            RIGHT,
            q.ratio(BOTH, t.SGD, "m <= d").above(1),
            needs={"width": 3},
        ),
        Claim(
            "sgd-constant-loss",
            "at widths m below d² SGD on scales and shifts only achieves a constant loss",
            RIGHT,
            q.loss(t.SGD, "m < d ** 2").above(SMALL),
            needs={"width": 3},
        ),
        Claim(
            "constructions-win-wide",
            "as m nears d² both constructions beat SGD on scales and shifts",
            RIGHT,
            q.ratio_near_square(t.SGD, BOTH).above(1),
        ),
    ],
    "fig4-training": [
        ours(
            "constructions-beat-adam",
            "at m = d² the construction, and a dense network trained in the same way, beat Adam on"
            " scales and shifts, at every d",
            f"next to {LEFT}: SGD may be badly tuned",
            q.ratio(t.ADAM, (t.TEACHER, t.DENSE_ADAM), SQUARE).above(1),
            needs={"target_width": 3},
        ),
    ],
    "fig5": [
        Claim(
            "sparse-exact",
            "p = 0.2: where the sparse system has full rank the construction is exact",
            "paper A, Theorem 3",
            q.error_over_rounding(t.TEACHER, SPARSE).given(FULL_RANK).always("<=", 1),
            note="mean squared distance at most {source_mse.max:.2g}",
        ),
        Claim(
            "sparse-small-d",
            "p = 0.2, small d: the construction has a high error, the student's is far from dense",
            "paper A, Appendix E, figure 5a left",
            [
                q.ratio(t.TEACHER, t.SGD, f"{SPARSE} and d == d.min()").above(1),
                q.ratio(t.STUDENT, t.DENSE, f"{SPARSE} and d == d.min()").above(2),
            ],
            needs={"target_width": 3},
        ),
        Claim(
            "sparse-large-d",
            "p = 0.2, as d grows: the construction's error is almost 0, the student's comes closer"
            " to dense",
            "paper A, Appendix E, figure 5a left",
            [
                q.loss(t.TEACHER, f"{SPARSE} and d == d.max()").below(SMALL),
                q.gap_closed(t.STUDENT, t.DENSE, SPARSE).above(0),
            ],
        ),
        Claim(
            "sparsest-no-small-loss",
            "p = 0.05: no method on frozen weights reaches a small loss, at any d",
            "paper A, Appendix E, figure 5b left",
            q.loss((t.SGD, *BOTH), SPARSEST).above(SMALL),
            needs={"target_width": 3},
        ),
        Claim(
            "sgd-beats-sparsest",
            "p = 0.05: SGD on scales and shifts beats both constructions, at every d",
            "paper A, Appendix E, figure 5b left",
            q.ratio(BOTH, t.SGD, SPARSEST).above(1),
            needs={"target_width": 3},
        ),
    ],
    "norm-budget": [
        ours(
            "no-budget-is-enough",
            "at m = d² neither more samples nor more epochs bring SGD or Adam on scales and shifts"
            " to a small loss",
            f"next to {LEFT}: SGD may be given too little",
            [q.loss_by_budget(each).above(SMALL) for each in (t.SGD, t.ADAM)],
        ),
    ],
    "norm-schedules": [
        Claim(
            "constant-beats-schedules",
            "of constant, cosine and exponential rates the constant one performs best for SGD on"
            " scales and shifts",
            "paper A, Appendix E, training details",
            [
                q.schedule_ratio(each, "constant").given("inside_grid").above(1)
                for each in ("cosine", "exponential")
            ],
        ),
    ],
}
