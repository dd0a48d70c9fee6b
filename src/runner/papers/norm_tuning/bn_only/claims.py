"""What paper A says its figures show, judged over the tables of their runs.

Appendix E states its results in words ("beats", "almost 0", "high"). Methods are compared
replicate by replicate, since all methods of a replicate share the target and the data; where the
text names a size, the yardstick is another curve of the same figure, never a number of ours.
"""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN
from runner.papers.norm_tuning.bn_only.tables import square_runs, width_runs
from runner.results.claims import Judgement, Tables, all_of, claim, compare, trimmed, undecided

EPSILON = np.finfo(np.float64).eps
ROUNDING = "machine epsilon x condition number x input norm"
SOURCE = "paper A, Appendix E"
BLUE, GREEN, BLACK, ORANGE = "sgd", "teacher_construction", "dense", "student_construction"
NAMES = {BLUE: "SGD", GREEN: "construction", BLACK: "dense", ORANGE: "student construction"}


def _by_replicate(metrics: pd.DataFrame, method: str, column: str = "test_mse") -> pd.Series:
    return metrics[metrics["method"] == method].set_index("replicate")[column]


def _mean(metrics: pd.DataFrame, method: str, column: str = "relative_mse") -> float:
    """The trimmed mean over replicates."""
    return float(trimmed(_by_replicate(metrics, method, column)).mean())


def _beats(metrics: pd.DataFrame, x: str, pairs: list[tuple[str, str]]) -> Judgement:
    """Whether, at every value of x, the first method of each pair has the lower error."""
    verdicts, ratios = [], []
    for value, group in metrics.groupby(x):
        for winner, loser in pairs:
            verdicts.append(compare(_by_replicate(group, winner), _by_replicate(group, loser)))
            ratios.append((_mean(group, loser) / _mean(group, winner), value, winner, loser))
    ratio, value, winner, loser = min(ratios)
    symbol = {"target_width": "d", "width": "m"}[x]
    measured = f"smallest {NAMES[loser]} / {NAMES[winner]}: {ratio:.3g} at {symbol} = {value}"
    wanted = " and ".join(f"{NAMES[winner]} < {NAMES[loser]}" for winner, loser in pairs)
    return Judgement(all_of(verdicts), measured, f"{wanted} in all trimmed replicates")


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


@claim(
    figure="fig4",
    name="exact",
    statement="at m = d² the construction from the target has zero error, up to rounding",
    source="paper A, Theorem 1; Appendix E, figure 4 left",
    sparsity=1.0,
)
def exact(tables: Tables, sparsity: float) -> Judgement:
    """Green at m = d^2 wherever K has full rank: zero up to rounding."""
    rows = _sparse(tables, sparsity).query("method == @GREEN")
    expected = f"relative error below {ROUNDING}"
    full_rank = rows["numerical_rank"] == rows["target_width"] ** 2
    if not full_rank.any():
        widest = rows["target_width"].max()
        return undecided(f"no frozen network up to d = {widest} has full rank", expected)
    rows = rows[full_rank]
    error = np.sqrt(rows["relative_mse"]) / rounding(rows)
    measured = f"MSE at most {rows['test_mse'].max():.2g}; {error.max():.2g} of the bound"
    return Judgement("holds" if (error <= 1).all() else "fails", measured, expected)


@claim(
    figure="fig4",
    name="student-equals-dense",
    statement="at m = d² the construction from the dense network equals the dense network",
    source="paper A, Theorem 1; Appendix E, figure 4 left",
)
def student_meets_dense(tables: Tables) -> Judgement:
    """Orange equals black at m = d^2: their rmse differ by the error of the construction alone."""
    metrics = square_runs(tables["metrics"])
    metrics = metrics.set_index(["target_width", "replicate"], drop=False)
    orange, black = metrics.query("method == @ORANGE"), metrics.query("method == @BLACK")
    expected = f"difference of the rmse, relative to the std of g, below {ROUNDING}"
    deviation = np.sqrt(black["test_mse"] / black["relative_mse"])
    difference = (np.sqrt(orange["test_mse"]) - np.sqrt(black["test_mse"])).abs()
    bound = rounding(orange) * deviation
    usable = rounding(orange) < 1
    if not usable.any():
        return undecided("every system is singular to working precision", expected)
    share = (difference / bound)[usable].max()
    measured = f"largest difference {difference[usable].max():.2g}; {share:.2g} of the bound"
    return Judgement("holds" if share <= 1 else "fails", measured, expected)


@claim(
    figure="fig4",
    name="constructions-beat-sgd",
    statement="both constructions beat SGD on scales and shifts at every d",
    source=f"{SOURCE}, figure 4 left",
)
def constructions_win(tables: Tables) -> Judgement:
    """Green and orange below blue at every d."""
    pairs = [(GREEN, BLUE), (ORANGE, BLUE)]
    return _beats(square_runs(tables["metrics"]), "target_width", pairs)


@claim(
    figure="fig4",
    name="sgd-wins-narrow",
    statement="at small m SGD beats both constructions",
    source=f"{SOURCE}, figure 4 right",
)
def sgd_wins_narrow(tables: Tables) -> Judgement:
    """Blue below green and orange at the smallest m."""
    metrics = width_runs(tables["metrics"])
    narrow = metrics[metrics["width"] == metrics["width"].min()]
    return _beats(narrow, "width", [(BLUE, GREEN), (BLUE, ORANGE)])


@claim(
    figure="fig4",
    name="constructions-win-wide",
    statement="as m nears d² both constructions beat SGD",
    source=f"{SOURCE}, figure 4 right",
)
def constructions_win_wide(tables: Tables) -> Judgement:
    """Green and orange below blue from m = d^2 on; the measured text names the crossover."""
    metrics = width_runs(tables["metrics"])
    wide = metrics[metrics["width"] >= metrics["target_width"] ** 2]
    judgement = _beats(wide, "width", [(GREEN, BLUE), (ORANGE, BLUE)])
    wins = [m for m, g in metrics.groupby("width") if _mean(g, GREEN) < _mean(g, BLUE)]
    ratio = min(wins) / metrics["target_width"].iloc[0] ** 2 if wins else np.nan
    return Judgement(
        judgement.verdict, f"{judgement.measured}; first win at {ratio:.2g} d²", judgement.expected
    )


@claim(
    figure="fig5",
    name="sparse-small-d",
    statement="p = 0.2, small d: the construction has a high error,"
    " the student's is far from dense",
    source=f"{SOURCE}, figure 5a left",
    sparsity=0.2,
)
def sparse_small(tables: Tables, sparsity: float) -> Judgement:
    """At the smallest d green is worse than blue, and orange is far from black."""
    metrics = _sparse(tables, sparsity)
    small = metrics[metrics["target_width"] == metrics["target_width"].min()]
    judgement = _beats(small, "target_width", [(BLUE, GREEN), (BLACK, ORANGE)])
    measured = f"green {_mean(small, GREEN):.2g} of the variance; {judgement.measured}"
    return Judgement(judgement.verdict, measured, judgement.expected)


@claim(
    figure="fig5",
    name="sparse-large-d",
    statement=(
        "p = 0.2, as d grows: the construction's error is almost zero (below that of the dense"
        " network), the student's comes closer to dense"
    ),
    source=f"{SOURCE}, figure 5a left",
    sparsity=0.2,
)
def sparse_large(tables: Tables, sparsity: float) -> Judgement:
    """From the smallest to the largest d orange comes closer to black; green ends below black."""
    metrics = _sparse(tables, sparsity)
    small, large = (
        metrics[metrics["target_width"] == d]
        for d in (metrics["target_width"].min(), metrics["target_width"].max())
    )

    def gap(rows: pd.DataFrame) -> pd.Series:
        black = _by_replicate(rows, BLACK, "relative_mse")
        return _by_replicate(rows, ORANGE, "relative_mse") - black

    closer = compare(gap(large), gap(small))
    below = compare(_by_replicate(large, GREEN), _by_replicate(large, BLACK))
    measured = (
        f"orange - black {trimmed(gap(small)).mean():.2g} -> {trimmed(gap(large)).mean():.2g} of"
        f" the variance; at d = {large['target_width'].max()} green {_mean(large, GREEN):.2g},"
        f" orange {_mean(large, ORANGE):.2g}, black {_mean(large, BLACK):.2g}"
    )
    expected = "orange - black smaller, and green < black, in all trimmed replicates"
    return Judgement(all_of([closer, below]), measured, expected)


@claim(
    figure="fig5",
    name="sparse-exact",
    statement="p = 0.2: where the sparse system has full rank the construction is exact",
    source="paper A, Theorem 3",
)
def sparse_exact(tables: Tables) -> Judgement:
    """As `exact`, at p = 0.2."""
    return exact(tables, sparsity=0.2)


@claim(
    figure="fig5",
    name="sparsest-no-small-loss",
    statement="p = 0.05: no method on frozen weights reaches a small loss (the dense network's)",
    source=f"{SOURCE}, figure 5b left",
    sparsity=0.05,
)
def sparsest_fails(tables: Tables, sparsity: float) -> Judgement:
    """At the sparsest setting no method on frozen weights reaches the loss of the dense network."""
    metrics = _sparse(tables, sparsity)
    pairs = [(BLACK, BLUE), (BLACK, GREEN), (BLACK, ORANGE)]
    return _beats(metrics, "target_width", pairs)


@claim(
    figure="fig5",
    name="sgd-beats-sparsest",
    statement="p = 0.05: SGD beats both constructions",
    source=f"{SOURCE}, figure 5b left",
    sparsity=0.05,
)
def sgd_wins_sparsest(tables: Tables, sparsity: float) -> Judgement:
    """At the sparsest setting blue is below both constructions at every d."""
    pairs = [(BLUE, GREEN), (BLUE, ORANGE)]
    return _beats(_sparse(tables, sparsity), "target_width", pairs)
