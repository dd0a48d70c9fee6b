"""What paper A says its figures 4 and 5 show, and what we add, judged over their tables.

Appendix E states its results in words ("beats", "almost 0", "high"). Methods are compared replicate
by replicate, since all methods of a replicate share target, frozen weights and samples; one that
diverged has an infinite error. Errors are in units of the variance of g, the error of a constant.
"""

from functools import partial

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.bn_only import tables as t
from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import Evidence, above, below, equivalent, everywhere, less
from runner.results.rows import nonempty, select

SMALL = 0.01
"""An error below is small, or almost 0."""
LITTLE = 2.0
"""Errors within this factor of each other are about the same."""
NEAR = 0.999
"""Of d^2: f is too narrow to be exact at widths m up to this share."""

SYMBOLS = {"target_width": "d", "width": "m"}
CONSTRUCTIONS = (t.TEACHER, t.STUDENT)
"""Green and orange."""


def metrics_of(tables: Tables, sparsity: float = 1.0) -> pd.DataFrame:
    """Select the rows at this fraction of non-zero weights, and name their series."""
    metrics = t.with_series(tables["metrics"])
    return nonempty(metrics[metrics["sparsity"] == sparsity], f"runs at p = {sparsity:g}")


def narrow(tables: Tables, share: float) -> pd.DataFrame:
    """Select the rows of the right panel at m up to this share of d^2."""
    metrics = t.right(metrics_of(tables))
    rows = metrics[metrics["width"] <= share * metrics["target_width"] ** 2]
    return nonempty(rows, f"networks of width m up to {share:g} d²")


def errors(metrics: pd.DataFrame, *series: str) -> pd.DataFrame:
    """The errors, a row for each replicate and a column for each series."""
    columns = [select(metrics, series=each).set_index("replicate") for each in series]
    return pd.concat([each["relative_mse"].fillna(np.inf) for each in columns], axis=1)


def best(metrics: pd.DataFrame, *series: str) -> pd.Series:
    """The lowest error among the series, by replicate."""
    return errors(metrics, *series).min(axis=1)


def worst(metrics: pd.DataFrame, *series: str) -> pd.Series:
    """The highest error among the series, by replicate."""
    return errors(metrics, *series).max(axis=1)


def beat(metrics: pd.DataFrame, x: str, winners: tuple, losers: tuple) -> list[Evidence]:
    """Compare, at every value of x, the worst of the winners with the best of the losers."""
    return [
        less(
            worst(rows, *winners),
            best(rows, *losers),
            point=f"{SYMBOLS[x]} = {value}, {' or '.join(losers)} / {' or '.join(winners)}",
            unit="ratio",
        )
        for value, rows in metrics.groupby(x)
    ]


def rounding(metrics: pd.DataFrame) -> pd.Series:
    """What float64 leaves of an exact construction, relative to the standard deviation of g.

    The shifts that switch the ReLUs on, and are taken out again, are c = sqrt(d) + 7 times the size
    of what they carry. From 1 on the system is singular to working precision.
    """
    input_norm = np.sqrt(metrics["target_width"]) + SHIFT_MARGIN
    return np.finfo(np.float64).eps * metrics["condition_number"] * input_norm


# At m = d^2


def exact(tables: Tables, series: str, sparsity: float = 1.0) -> Found:
    """A construction equals its source up to rounding wherever K has full rank, at every d."""
    rows = select(t.left(metrics_of(tables, sparsity)), series=series)
    full = rows[rows["numerical_rank"] == rows["target_width"] ** 2]
    full = nonempty(full, f"frozen network of full rank up to d = {rows['target_width'].max()}")
    variance = full["test_mse"] / full["relative_mse"]
    share = np.sqrt(full["source_mse"] / variance) / rounding(full)
    words = f"mean squared distance at most {full['source_mse'].max():.2g}"
    words += f", {share.max():.2g} of the bound"
    return Found([everywhere((share <= 1).groupby(full["replicate"]).all())], words)


def wins(tables: Tables, winners: tuple, losers: tuple, sparsity: float = 1.0) -> Found:
    """The winners are below the losers at every d."""
    return Found(beat(t.left(metrics_of(tables, sparsity)), "target_width", winners, losers))


def differ_little(tables: Tables) -> Found:
    """SGD on BatchNorm and on the affine map of Proposition 1 end at about the same error."""
    points = []
    for d, rows in t.left(metrics_of(tables)).groupby("target_width"):
        ratio = np.log(best(rows, t.FIXED) / best(rows, t.SGD))
        points.append(equivalent(ratio, np.log(LITTLE), point=f"d = {d}, log of the ratio"))
    return Found(points)


# At one d


def wins_narrow(tables: Tables) -> Found:
    """Blue is below green and orange at every m up to d."""
    d = t.right(metrics_of(tables))["target_width"].iloc[0]
    return Found(beat(narrow(tables, 1 / d), "width", (t.SGD,), CONSTRUCTIONS))


def wins_wide(tables: Tables) -> Found:
    """Green and orange are below blue at the largest m below d^2."""
    metrics = narrow(tables, NEAR)
    rows = metrics[metrics["width"] == metrics["width"].max()]
    return Found(beat(rows, "width", CONSTRUCTIONS, (t.SGD,)))


def constant_loss(tables: Tables, series: str) -> Found:
    """The loss stays away from zero while the network is too narrow to be exact."""
    groups = narrow(tables, NEAR).groupby("width")
    points = [above(best(rows, series), SMALL, point=f"m = {m}") for m, rows in groups]
    words = f"{points[0].estimate:.2g} at the smallest m, {points[-1].estimate:.2g} near d²"
    return Found(points, words)


def corrected_helps(tables: Tables) -> Found:
    """Right means beat a constant, and the construction as printed, where that is not exact."""
    metrics = narrow(tables, 0.9)
    groups = metrics.groupby("width")
    points = [below(best(rows, t.CORRECTED), 1.0, point=f"m = {m}") for m, rows in groups]
    return Found(points + beat(metrics, "width", (t.CORRECTED,), (t.TEACHER,)))


# Sparse


def smallest_and_largest(tables: Tables, sparsity: float) -> list[pd.DataFrame]:
    """The rows at m = d^2 of the smallest and of the largest d."""
    metrics = t.left(metrics_of(tables, sparsity))
    d = metrics["target_width"]
    return [metrics[d == d.min()], metrics[d == d.max()]]


def sparse_small(tables: Tables, sparsity: float) -> Found:
    """At the smallest d green is worse than blue, and orange at least twice as bad as black."""
    small, _ = smallest_and_largest(tables, sparsity)
    far = less(2 * best(small, t.DENSE), best(small, t.STUDENT), point="student / twice dense")
    return Found([*beat(small, "target_width", (t.SGD,), (t.TEACHER,)), far])


def sparse_large(tables: Tables, sparsity: float) -> Found:
    """From the smallest to the largest d orange comes closer to black; green ends near zero."""
    both = smallest_and_largest(tables, sparsity)
    small, large = [(best(rows, t.STUDENT) - best(rows, t.DENSE)).abs() for rows in both]
    green = below(best(both[1], t.TEACHER), SMALL, point="construction at the largest d")
    return Found([green, less(large, small, point="|student - dense|, smallest to largest d")])


def none_small(tables: Tables, sparsity: float) -> Found:
    """At every d all methods on frozen weights stay above a hundredth."""
    groups = t.left(metrics_of(tables, sparsity)).groupby("target_width")
    lowest = {d: best(rows, t.SGD, *CONSTRUCTIONS) for d, rows in groups}
    return Found([above(each, SMALL, point=f"d = {d}") for d, each in lowest.items()])


# Schedules


def best_plans(tables: Tables, pairs: tuple) -> Found:
    """The first plan of each pair is below the second at every d, each at its best rate."""
    metrics = t.at_best_rates(tables["metrics"])
    return Found(
        [
            point
            for first, second in pairs
            for point in beat(metrics, "target_width", (first,), (second,))
        ]
    )


ALL_D, ALL_M = {"target_width": 3}, {"width": 3}
LEFT, RIGHT = "Appendix E, figure 4 left", "Appendix E, figure 4 right"
TRAINING = "paper A, Appendix E, training details"
ROUNDING = "machine epsilon x condition number x input norm, in every network of full rank"
SCHEDULES = ("constant", "cosine", "exponential")

CLAIMS = {
    "fig4": [
        Claim(
            "exact",
            "at m = d² the construction from the target has zero error, up to rounding",
            f"paper A, Theorem 1; {LEFT}",
            partial(exact, series=t.TEACHER),
            f"relative error below {ROUNDING}",
            needs={"target_width": 2},
        ),
        Claim(
            "student-equals-dense",
            "at m = d² the construction from the dense network equals the dense network",
            f"paper A, Theorem 1; {LEFT}",
            partial(exact, series=t.STUDENT),
            f"rms difference of the two, relative to the deviation of g, below {ROUNDING}",
            needs={"target_width": 2},
        ),
        Claim(
            "constructions-beat-sgd",
            "both constructions beat SGD on scales and shifts at every d",
            f"paper A, {LEFT}",
            partial(wins, winners=CONSTRUCTIONS, losers=(t.SGD,)),
            "SGD / the worse construction above 1 at every d",
            needs=ALL_D,
        ),
        Claim(
            "sgd-wins-narrow",
            "at small m SGD beats both constructions",
            f"paper A, {RIGHT}",
            wins_narrow,
            "the better construction / SGD above 1 at every m up to d",
            needs=ALL_M,
        ),
        Claim(
            "sgd-constant-loss",
            "at widths below d² SGD only achieves a constant loss",
            f"paper A, {RIGHT}",
            partial(constant_loss, series=t.SGD),
            f"SGD above {SMALL:g} of the variance of g at every m below d²",
            needs=ALL_M,
        ),
        Claim(
            "constructions-win-wide",
            "as m nears d² both constructions beat SGD",
            f"paper A, {RIGHT}",
            wins_wide,
            "SGD / the worse construction above 1 at the largest m below d²",
            needs=ALL_M,
        ),
    ],
    "fig4-training": [
        Claim(
            "fixed-statistics-differ-little",
            "SGD on the affine map of Proposition 1 ends about where SGD on BatchNorm does",
            "beside paper A, Proposition 1",
            differ_little,
            f"within a factor of {LITTLE:g} at every d, each at half of its limit of stability",
            "ours",
            ALL_D,
        ),
        Claim(
            "constructions-beat-adam",
            "at m = d² the construction, and a dense network trained in the same way, beat Adam on"
            " scales and shifts, at every d",
            f"beside paper A, {LEFT}: SGD may be badly tuned",
            partial(wins, winners=(t.TEACHER, t.DENSE_ADAM), losers=(t.ADAM,)),
            "Adam / the worse of construction and dense by Adam above 1 at every d; schedule and"
            " rate are the best of norm-schedules at another seed",
            "ours",
            ALL_D,
        ),
        Claim(
            "adam-constant-loss",
            "at widths below d² Adam, too, only achieves a constant loss",
            f"beside paper A, {RIGHT}",
            partial(constant_loss, series=t.ADAM),
            f"Adam above {SMALL:g} of the variance of g at every m below d²",
            "ours",
            ALL_M,
        ),
        Claim(
            "corrected-below-constant",
            "with the mean of each unit put right the construction is better than a constant, and"
            " better than as printed, at every m below d²",
            "beside paper A, Lemma 7 for m < d²",
            corrected_helps,
            "below 1 of the variance, and below the construction, at every m up to 0.9 d²",
            "ours",
            ALL_M,
        ),
    ],
    "fig5": [
        Claim(
            "sparse-exact",
            "p = 0.2: where the sparse system has full rank the construction is exact",
            "paper A, Theorem 3",
            partial(exact, series=t.TEACHER, sparsity=0.2),
            f"relative error below {ROUNDING}",
        ),
        Claim(
            "sparse-small-d",
            "p = 0.2, small d: the construction has a high error, the student's is far from dense",
            "paper A, Appendix E, figure 5a left",
            partial(sparse_small, sparsity=0.2),
            "at the smallest d construction / SGD above 1, student construction / dense above 2",
            needs=ALL_D,
        ),
        Claim(
            "sparse-large-d",
            "p = 0.2, as d grows: the construction's error is almost 0, the student's comes closer"
            " to dense",
            "paper A, Appendix E, figure 5a left",
            partial(sparse_large, sparsity=0.2),
            f"at the largest d construction below {SMALL:g} of the variance; |student - dense|"
            " smaller than at the smallest d",
            needs=ALL_D,
        ),
        Claim(
            "sparsest-no-small-loss",
            "p = 0.05: no method on frozen weights reaches a small loss",
            "paper A, Appendix E, figure 5b left",
            partial(none_small, sparsity=0.05),
            f"the best of them above {SMALL:g} of the variance at every d",
            needs=ALL_D,
        ),
        Claim(
            "sgd-beats-sparsest",
            "p = 0.05: SGD beats both constructions",
            "paper A, Appendix E, figure 5b left",
            partial(wins, winners=(t.SGD,), losers=CONSTRUCTIONS, sparsity=0.05),
            "the better construction / SGD above 1 at every d",
            needs=ALL_D,
        ),
    ],
    "norm-schedules": [
        Claim(
            "constant-beats-schedules",
            "of constant, cosine and exponential rates the constant one performs best for SGD on"
            " scales and shifts",
            TRAINING,
            partial(
                best_plans,
                pairs=(("sgd, constant", "sgd, cosine"), ("sgd, constant", "sgd, exponential")),
            ),
            "cosine / constant and exponential / constant above 1 at every d, each at the rate that"
            " is best on other replicates",
            needs={"target_width": 2, "schedule": 3},
        ),
        Claim(
            "adam-beats-sgd",
            "on scales and shifts Adam ends below SGD, under every schedule",
            f"beside {TRAINING}: the paper trains by SGD",
            partial(best_plans, pairs=tuple((f"adam, {s}", f"sgd, {s}") for s in SCHEDULES)),
            "SGD / Adam above 1 at every d and schedule, each at the rate that is best on other"
            " replicates",
            "ours",
            {"target_width": 2, "optimizer": 2},
        ),
    ],
}
"""By figure, in the order in which they are told."""
