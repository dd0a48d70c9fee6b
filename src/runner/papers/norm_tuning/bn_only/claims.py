"""What paper A says its figures show, judged over the tables of their runs.

Appendix E states its results in words ("beats", "almost 0", "high"). Methods are compared
replicate by replicate, since all methods of a replicate share the target and the data; a diverged
method has an infinite error. Where the text names a size, the yardstick is another curve of the
same figure; a loss is small, or almost 0, below a hundredth of the variance of g, which is the loss
of a constant.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN
from runner.papers.norm_tuning.bn_only.tables import square_runs, width_runs
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import Evidence, above, below, equivalent, everywhere, less
from runner.results.rows import nonempty, select

EPSILON = np.finfo(np.float64).eps
ROUNDING = "machine epsilon x condition number x input norm"
SMALL = 0.01
"""Of the variance of g."""

SOURCE = "paper A, Appendix E"
BLUE, GREEN, BLACK, ORANGE = "sgd", "teacher_construction", "dense", "student_construction"
BEST, DENSE_BEST, CORRECTED = "best", "dense_best", "corrected_construction"
NAMES = {
    BLUE: "SGD",
    GREEN: "construction",
    BLACK: "dense",
    ORANGE: "student construction",
    BEST: "best",
    DENSE_BEST: "best dense",
    CORRECTED: "corrected construction",
}


def _errors(metrics: pd.DataFrame, method: str, column: str = "test_mse") -> pd.Series:
    """By replicate; infinite where the method diverged."""
    rows = metrics[metrics["method"] == method]
    return rows.set_index("replicate")[column].fillna(np.inf)


def _beats(metrics: pd.DataFrame, x: str, pairs: Sequence[tuple[str, str]]) -> list[Evidence]:
    """Whether, at every value of x, the first method of each pair has the lower error."""
    symbol = {"target_width": "d", "width": "m"}[x]
    return [
        less(
            _errors(group, winner),
            _errors(group, loser),
            point=f"{symbol} = {value}, {NAMES[loser]} / {NAMES[winner]}",
            unit="ratio",
        )
        for value, group in metrics.groupby(x)
        for winner, loser in pairs
    ]


def rounding(metrics: pd.DataFrame) -> pd.Series:
    """What float64 leaves of an exact construction, relative to the standard deviation of g.

    Machine epsilon times the condition number of the system for gamma1, times the input norm
    c = sqrt(d) + 7: the shifts that switch the ReLUs on, and are taken out again, are c times the
    size of what they carry. From 1 on the system is singular to working precision.
    """
    input_norm = np.sqrt(metrics["target_width"]) + SHIFT_MARGIN
    return EPSILON * metrics["condition_number"] * input_norm


def _sparse(tables: Tables, sparsity: float) -> pd.DataFrame:
    """The runs at m = d^2 and this fraction of non-zero weights."""
    metrics = tables["metrics"]
    return square_runs(metrics[metrics["sparsity"] == sparsity])


def _at(metrics: pd.DataFrame, extreme: str) -> pd.DataFrame:
    """The rows of the smallest (`min`) or the largest (`max`) d."""
    return metrics[metrics["target_width"] == metrics["target_width"].agg(extreme)]


@claim(
    figure="fig5",
    name="sparse-exact",
    statement="p = 0.2: where the sparse system has full rank the construction is exact",
    source="paper A, Theorem 3",
    expected=f"relative error below {ROUNDING}, in every network of full rank",
    sparsity=0.2,
)
@claim(
    figure="fig4",
    name="exact",
    statement="at m = d² the construction from the target has zero error, up to rounding",
    source="paper A, Theorem 1; Appendix E, figure 4 left",
    expected=f"relative error below {ROUNDING}, in every network of full rank",
    needs={"target_width": 2},
    sparsity=1.0,
)
def exact(tables: Tables, sparsity: float) -> Found:
    """Green at m = d^2 wherever K has full rank: zero up to rounding, at every d."""
    rows = select(_sparse(tables, sparsity), method=GREEN)
    full_rank = rows[rows["numerical_rank"] == rows["target_width"] ** 2]
    if full_rank.empty:
        widest = rows["target_width"].max()
        return Found([], f"no frozen network up to d = {widest} has full rank")
    error = np.sqrt(full_rank["relative_mse"]) / rounding(full_rank)
    worst = f"MSE at most {full_rank['test_mse'].max():.2g}, {error.max():.2g} of the bound"
    exact = (error <= 1).groupby(full_rank["replicate"]).all()
    return Found([everywhere(exact)], worst)


@claim(
    figure="fig4",
    name="student-equals-dense",
    statement="at m = d² the construction from the dense network equals the dense network",
    source="paper A, Theorem 1; Appendix E, figure 4 left",
    expected=f"difference of the rmse, relative to the std of g, below {ROUNDING}",
    needs={"target_width": 2},
)
def student_meets_dense(tables: Tables) -> Found:
    """Orange equals black at m = d^2: their rmse differ by the error of the construction alone."""
    metrics = square_runs(tables["metrics"])
    metrics = metrics.set_index(["target_width", "replicate"], drop=False)
    orange, black = select(metrics, method=ORANGE), select(metrics, method=BLACK)
    deviation = np.sqrt(black["test_mse"] / black["relative_mse"])
    difference = (np.sqrt(orange["test_mse"]) - np.sqrt(black["test_mse"])).abs()
    part = (difference / (rounding(orange) * deviation))[rounding(orange) < 1].dropna()
    if part.empty:
        return Found([], "every system is singular to working precision")
    worst = f"largest difference {difference[part.index].max():.2g}, {part.max():.2g} of the bound"
    return Found([everywhere((part <= 1).groupby("replicate").all())], worst)


@claim(
    figure="fig4",
    name="constructions-beat-best",
    statement="at m = d² the construction, and a dense network trained as long, beat the best of"
    " SGD, momentum and Adam on scales and shifts, at every d",
    source=f"ours, beside {SOURCE}, figure 4 left: SGD there may be badly tuned",
    expected="best / construction and best / best dense above 1 at every d; optimizer, schedule and"
    " rate of both chosen on other replicates at equal budgets",
    kind="ours",
    needs={"target_width": 3},
    pairs=((GREEN, BEST), (DENSE_BEST, BEST)),
)
@claim(
    figure="fig4",
    name="constructions-beat-sgd",
    statement="both constructions beat SGD on scales and shifts at every d",
    source=f"{SOURCE}, figure 4 left",
    expected="SGD / construction and SGD / student construction above 1 at every d",
    needs={"target_width": 3},
    pairs=((GREEN, BLUE), (ORANGE, BLUE)),
)
def constructions_win(tables: Tables, pairs: tuple[tuple[str, str], ...]) -> Found:
    """Green and orange below blue at every d."""
    return Found(_beats(square_runs(tables["metrics"]), "target_width", pairs))


@claim(
    figure="fig4",
    name="batch-statistics-differ-little",
    statement="SGD with the statistics of each batch ends where SGD on the affine map of"
    " Proposition 1 does",
    source="ours, beside paper A, Proposition 1: the paper trains batch normalization",
    expected="error with batch statistics over that without within a half of 1, at every d",
    kind="ours",
    needs={"target_width": 3},
)
def batch_statistics(tables: Tables) -> Found:
    """Cyan beside blue at m = d^2."""
    points = []
    for d, rows in square_runs(tables["metrics"]).groupby("target_width"):
        ratio = _errors(rows, "batch_norm") / _errors(rows, BLUE)
        points.append(equivalent(ratio - 1, 0.5, point=f"d = {d}", unit="difference"))
    return Found(points)


@claim(
    figure="fig5",
    name="no-dead-start",
    statement="no learner of scales and shifts starts dead, at p = 0.2 and 0.05",
    source="ours: a precondition of the comparison",
    expected="every last hidden unit is on for some test sample before training, in every network",
    kind="ours",
    needs={"target_width": 3},
)
@claim(
    figure="fig4",
    name="no-dead-start",
    statement="no learner of scales and shifts starts dead",
    source="ours: a precondition of the comparison",
    expected="every last hidden unit is on for some test sample before training, in every network",
    kind="ours",
    needs={"target_width": 3},
)
def no_dead_start(tables: Tables) -> Found:
    """All learners with frozen weights, at every d, m and p of the figure."""
    metrics = tables["metrics"]
    rows = metrics[metrics["method"].isin([BLUE, BEST, "batch_norm"])]
    rows = nonempty(rows, "learners of scales and shifts")
    ended = (rows["dead"] > 0).mean()
    words = (
        f"{ended:.0%} of the learners end with a dead unit, {rows['dead'].mean():.1%} of all units"
    )
    return Found([everywhere((rows["dead_at_start"] == 0).groupby(rows["replicate"]).all())], words)


@claim(
    figure="fig4",
    name="sgd-wins-narrow",
    statement="at small m SGD beats both constructions",
    source=f"{SOURCE}, figure 4 right",
    expected="construction / SGD and student construction / SGD above 1 at the smallest m, m <= d",
    needs={"width": 3},
)
def sgd_wins_narrow(tables: Tables) -> Found:
    """Blue below green and orange at m = d or less: the narrowest networks of the figure."""
    metrics = width_runs(tables["metrics"])
    narrow = metrics[metrics["width"] <= metrics["target_width"]]
    if narrow.empty:
        return Found([], "no network of width m <= d")
    return Found(_beats(narrow, "width", [(BLUE, GREEN), (BLUE, ORANGE)]))


@claim(
    figure="fig4",
    name="sgd-constant-loss",
    statement="at widths below d² SGD only achieves a constant loss",
    source=f"{SOURCE}, figure 4 right",
    expected=f"SGD above {SMALL:g} of the variance of g at every m below d²",
    needs={"width": 3},
    method=BLUE,
)
@claim(
    figure="fig4",
    name="best-constant-loss",
    statement="at widths below d² the best of SGD, momentum and Adam only achieves a constant loss",
    source=f"ours, beside {SOURCE}, figure 4 right",
    expected=f"best above {SMALL:g} of the variance of g at every m below d²",
    kind="ours",
    needs={"width": 3},
    method=BEST,
)
def constant_loss(tables: Tables, method: str) -> Found:
    """The loss stays away from zero while the network is too narrow for an exact one."""
    metrics = width_runs(tables["metrics"])
    rows = metrics[(metrics["width"] < metrics["target_width"] ** 2)]
    rows = nonempty(rows[rows["method"] == method], "networks of width m < d²")
    points = [
        above(_errors(group, method, "relative_mse"), SMALL, point=f"m = {m}, of the variance")
        for m, group in rows.groupby("width")
    ]
    sizes = rows.groupby("width")["relative_mse"].median()
    words = f"{sizes.iloc[0]:.2g} of the variance at m = {sizes.index[0]}, {sizes.iloc[-1]:.2g} at"
    return Found(points, f"{words} m = {sizes.index[-1]}")


@claim(
    figure="fig4",
    name="corrected-below-constant",
    statement="with the mean of each unit put right the construction is better than a constant at"
    " every m, and better than as printed at every m below d²",
    source="ours, beside paper A, Lemma 7 for m < d²",
    expected="corrected construction below 1 of the variance, and construction / corrected"
    " construction above 1, at every m below 0.9 d²",
    kind="ours",
    needs={"width": 3},
)
def corrected_helps(tables: Tables) -> Found:
    """Where the printed construction is worse than a constant."""
    metrics = width_runs(tables["metrics"])
    narrow = metrics[metrics["width"] < 0.9 * metrics["target_width"] ** 2]
    narrow = nonempty(narrow, "networks of width m < 0.9 d²")
    points = [
        below(
            _errors(group, CORRECTED, "relative_mse"),
            1.0,
            point=f"m = {m}, {NAMES[CORRECTED]}, of the variance",
        )
        for m, group in narrow.groupby("width")
    ]
    return Found(points + _beats(narrow, "width", ((CORRECTED, GREEN),)))


@claim(
    figure="fig4",
    name="constructions-win-wide",
    statement="as m nears d² both constructions beat SGD",
    source=f"{SOURCE}, figure 4 right",
    expected="the m from which on a construction's error is below SGD's is below d² (from d² on its"
    " exactness implies it)",
    needs={"width": 3},
    rival=BLUE,
)
@claim(
    figure="fig4",
    name="constructions-win-wide-best",
    statement="as m nears d² both constructions beat the best of SGD, momentum and Adam",
    source=f"ours, beside {SOURCE}, figure 4 right",
    expected="the m from which on a construction's error is below the best's is below d²",
    kind="ours",
    needs={"width": 3},
    rival=BEST,
)
def constructions_win_wide(tables: Tables, rival: str) -> Found:
    """Where green and orange cross blue, among the networks of width m < d^2."""
    metrics = width_runs(tables["metrics"])
    narrow = metrics[metrics["width"] < metrics["target_width"] ** 2]
    if narrow["width"].nunique() < 2:
        return Found([], "fewer than two networks of width m < d²")
    points = [
        below(
            crossings(narrow, method, rival),
            1.0,
            point=f"{NAMES[method]}, m / d² where it crosses {NAMES[rival]}",
        )
        for method in (GREEN, ORANGE)
    ]
    return Found(points)


def crossings(metrics: pd.DataFrame, method: str, rival: str) -> pd.Series:
    """For each replicate the m / d^2 from which on a method stays below its rival.

    Interpolated in the logarithm of the ratio of their errors between the measured m; 0 where the
    method is always below, infinite where it is not at the largest m.
    """
    errors, errors_of_rival = (
        select(metrics, method=name).pivot_table("test_mse", index="width", columns="replicate")
        for name in (method, rival)
    )
    with np.errstate(all="ignore"):
        ratios = np.log(errors / errors_of_rival)
    found = {}
    for replicate in ratios:
        ratio = ratios[replicate].dropna()
        over = np.flatnonzero(ratio.to_numpy() >= 0)
        if not len(over):
            found[replicate] = 0.0 if len(ratio) else np.nan
        elif over[-1] + 1 == len(ratio):
            found[replicate] = np.inf
        else:
            pair = ratio.iloc[over[-1] : over[-1] + 2]
            found[replicate] = np.interp(0, -pair.to_numpy(), pair.index.to_numpy(float))
    return pd.Series(found, dtype=float) / metrics["target_width"].iloc[0] ** 2


@claim(
    figure="norm-schedules",
    name="constant-beats-schedules",
    statement="of constant, cosine and exponential rates the constant one performs best for SGD on"
    " scales and shifts",
    source=f"{SOURCE}, training details",
    expected="cosine / constant and exponential / constant above 1 at every d, the rate of each"
    " chosen on other replicates",
    needs={"target_width": 2, "schedule": 3},
)
def constant_is_best(tables: Tables) -> Found:
    """The paper's choice among three schedules."""
    metrics = select(tables["metrics"], method=BEST, optimizer="sgd")
    points = []
    for d, rows in metrics.groupby("target_width"):
        error = {name: _errors(group, BEST) for name, group in rows.groupby("schedule")}
        for name in ("cosine", "exponential"):
            if {name, "constant"} <= set(error):
                point = f"d = {d}, {name} / constant"
                points.append(less(error["constant"], error[name], point=point, unit="ratio"))
    return Found(points, "" if points else "no constant rate beside another schedule")


@claim(
    figure="norm-schedules",
    name="adam-beats-sgd",
    statement="on scales and shifts Adam ends below SGD, each with its best rate, under every"
    " schedule",
    source=f"ours, beside {SOURCE}: the paper trains by SGD",
    expected="SGD / Adam above 1 at every d and schedule",
    kind="ours",
    needs={"target_width": 2, "optimizer": 2},
)
def adam_is_better(tables: Tables) -> Found:
    """Whether SGD is what limits blue."""
    metrics = select(tables["metrics"], method=BEST)
    points = []
    for (d, schedule), rows in metrics.groupby(["target_width", "schedule"]):
        error = {name: _errors(group, BEST) for name, group in rows.groupby("optimizer")}
        if {"sgd", "adam"} <= set(error):
            point = f"d = {d}, {schedule}"
            points.append(less(error["adam"], error["sgd"], point=point, unit="ratio"))
    return Found(points, "" if points else "no SGD beside Adam")


@claim(
    figure="fig5",
    name="sparse-small-d",
    statement="p = 0.2, small d: the construction has a high error,"
    " the student's is far from dense",
    source=f"{SOURCE}, figure 5a left",
    expected="at the smallest d construction / SGD above 1, student construction / dense above 2",
    needs={"target_width": 3},
    sparsity=0.2,
)
def sparse_small(tables: Tables, sparsity: float) -> Found:
    """At the smallest d green is worse than blue, and orange at least twice as bad as black."""
    small = _at(_sparse(tables, sparsity), "min")
    far = less(
        2 * _errors(small, BLACK),
        _errors(small, ORANGE),
        point=f"{NAMES[ORANGE]} / twice {NAMES[BLACK]}",
        unit="ratio",
    )
    size = _errors(small, GREEN, "relative_mse").median()
    words = f"construction {size:.2g} of the variance"
    return Found([*_beats(small, "target_width", [(BLUE, GREEN)]), far], words)


@claim(
    figure="fig5",
    name="sparse-large-d",
    statement=(
        "p = 0.2, as d grows: the construction's error is almost 0, the student's comes closer to"
        " dense"
    ),
    source=f"{SOURCE}, figure 5a left",
    expected=f"at the largest d construction below {SMALL:g} of the variance; student construction"
    " - dense smaller than at the smallest d",
    needs={"target_width": 3},
    sparsity=0.2,
)
def sparse_large(tables: Tables, sparsity: float) -> Found:
    """From the smallest to the largest d orange comes closer to black; green ends near zero."""
    metrics = _sparse(tables, sparsity)
    small, large = _at(metrics, "min"), _at(metrics, "max")

    def gap(rows: pd.DataFrame) -> pd.Series:
        black = _errors(rows, BLACK, "relative_mse")
        return (_errors(rows, ORANGE, "relative_mse") - black).abs()

    d = large["target_width"].max()
    green = _errors(large, GREEN, "relative_mse")
    points = [
        below(green, SMALL, point=f"d = {d}, construction, of the variance"),
        less(gap(large), gap(small), point="|student construction - dense|, smallest to largest d"),
    ]
    words = f"|student construction - dense| {gap(small).median():.2g} of the variance, at d = {d} "
    return Found(points, words + f"{gap(large).median():.2g}")


@claim(
    figure="fig5",
    name="sparsest-no-small-loss",
    statement="p = 0.05: no method on frozen weights reaches a small loss",
    source=f"{SOURCE}, figure 5b left",
    expected=f"every method above {SMALL:g} of the variance at every d",
    needs={"target_width": 3},
    sparsity=0.05,
)
def sparsest_fails(tables: Tables, sparsity: float) -> Found:
    """At the sparsest setting no method on frozen weights comes below a hundredth."""
    points = [
        above(
            _errors(group, method, "relative_mse"),
            SMALL,
            point=f"d = {d}, {NAMES[method]}, of the variance",
        )
        for d, group in _sparse(tables, sparsity).groupby("target_width")
        for method in (BLUE, GREEN, ORANGE)
    ]
    return Found(points)


@claim(
    figure="fig5",
    name="sgd-beats-sparsest",
    statement="p = 0.05: SGD beats both constructions",
    source=f"{SOURCE}, figure 5b left",
    expected="construction / SGD and student construction / SGD above 1 at every d",
    needs={"target_width": 3},
    sparsity=0.05,
)
def sgd_wins_sparsest(tables: Tables, sparsity: float) -> Found:
    """At the sparsest setting blue is below both constructions at every d."""
    pairs = [(BLUE, GREEN), (BLUE, ORANGE)]
    return Found(_beats(_sparse(tables, sparsity), "target_width", pairs))
