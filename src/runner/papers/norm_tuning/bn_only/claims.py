"""What paper A says its figures show, judged over the tables of their runs.

Appendix E states its results in words ("beats", "almost 0", "high"). Methods are compared
replicate by replicate, since all methods of a replicate share the target and the data; a diverged
method has an infinite error. Where the text names a size, the yardstick is another curve of the
same figure; a loss is small, or almost 0, below a hundredth of the variance of g, which is the loss
of a constant.
"""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN
from runner.papers.norm_tuning.bn_only.tables import square_runs, width_runs
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import Evidence, above, below, everywhere, less
from runner.results.rows import select

EPSILON = np.finfo(np.float64).eps
ROUNDING = "machine epsilon x condition number x input norm"
SMALL = 0.01
"""Of the variance of g."""

NEAR = 0.95
"""From this share of d^2 on a width is near d^2."""

SOURCE = "paper A, Appendix E"
BLUE, GREEN, BLACK, ORANGE = "sgd", "teacher_construction", "dense", "student_construction"
NAMES = {BLUE: "SGD", GREEN: "construction", BLACK: "dense", ORANGE: "student construction"}


def _errors(metrics: pd.DataFrame, method: str, column: str = "test_mse") -> pd.Series:
    """By replicate; infinite where the method diverged."""
    rows = metrics[metrics["method"] == method]
    return rows.set_index("replicate")[column].fillna(np.inf)


def _beats(metrics: pd.DataFrame, x: str, pairs: list[tuple[str, str]]) -> list[Evidence]:
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
    name="constructions-beat-sgd",
    statement="both constructions beat SGD on scales and shifts at every d",
    source=f"{SOURCE}, figure 4 left",
    expected="SGD / construction and SGD / student construction above 1 at every d",
    needs={"target_width": 3},
)
def constructions_win(tables: Tables) -> Found:
    """Green and orange below blue at every d."""
    pairs = [(GREEN, BLUE), (ORANGE, BLUE)]
    return Found(_beats(square_runs(tables["metrics"]), "target_width", pairs))


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
    name="constructions-win-wide",
    statement="as m nears d² both constructions beat SGD",
    source=f"{SOURCE}, figure 4 right",
    expected=f"SGD / either construction above 1 at every m from {NEAR:g} d² to below d²",
    needs={"width": 3},
)
def constructions_win_wide(tables: Tables) -> Found:
    """Green and orange below blue just below m = d^2 (from d^2 on exactness implies it)."""
    metrics = width_runs(tables["metrics"])
    square = metrics["target_width"] ** 2
    near = metrics[(metrics["width"] >= NEAR * square) & (metrics["width"] < square)]
    if near.empty:
        return Found([], f"no network of width m from {NEAR:g} d² to below d²")
    crossing = above(crossings(metrics, GREEN))
    words = (
        f"the construction's error crosses SGD's at {crossing.estimate:.2f} d²"
        f" ({crossing.low:.2f} to {crossing.high:.2f})"
    )
    return Found(_beats(near, "width", [(GREEN, BLUE), (ORANGE, BLUE)]), words)


def crossings(metrics: pd.DataFrame, method: str) -> pd.Series:
    """For each replicate the m / d^2 from which on a method stays below SGD.

    Interpolated in the logarithm of the ratio of their errors between the measured m; nan where the
    method is never, or always, below.
    """
    errors, errors_of_sgd = (
        select(metrics, method=name).pivot_table("test_mse", index="width", columns="replicate")
        for name in (method, BLUE)
    )
    with np.errstate(all="ignore"):
        ratios = np.log(errors / errors_of_sgd)
    found = {}
    for replicate in ratios:
        ratio = ratios[replicate].dropna()
        over = np.flatnonzero(ratio.to_numpy() >= 0)
        found[replicate] = np.nan
        if len(over) and over[-1] + 1 < len(ratio):
            pair = ratio.iloc[over[-1] : over[-1] + 2]
            found[replicate] = np.interp(0, -pair.to_numpy(), pair.index.to_numpy(float))
    return pd.Series(found, dtype=float) / metrics["target_width"].iloc[0] ** 2


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
