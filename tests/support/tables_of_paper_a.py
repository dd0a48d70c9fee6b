"""The numbers of the tables of paper A: docs/paper-a.md, norm-finetuning.md, one of results.md.

They are computed from the stored tables. TABLES has a function for each table, by the table's
heading. It returns the numbers of each row, in their order on the page; the first column, which
names the row, has none of them. Errors are in percent of the variance of the target.
"""

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import pandas as pd
from in_memory import kept_tables

from runner.papers.norm_tuning.bn_only.figures import medians
from runner.papers.norm_tuning.bn_only.quantities import schedule_ratio_at
from runner.papers.norm_tuning.bn_only.tables import (
    ADAM,
    DENSE,
    DENSE_ADAM,
    SGD,
    STUDENT,
    TEACHER,
    left,
    right,
    with_series,
)
from runner.papers.norm_tuning.constructions.quantities import SLACK
from runner.papers.norm_tuning.norm_active.config import EXACT
from runner.papers.norm_tuning.norm_active.tables import networks
from runner.papers.norm_tuning.theory import live_units_probability
from runner.results.rows import nonempty

Rows = list[list[float]]

GAMMA, WITH_SHIFTS, BY_SGD = "scales", "scales and shifts", "scales by sgd"
"""Arms of norm-active that train γ: alone, with the last shifts, and by SGD."""


def exact(errors: Iterable[float]) -> list[float]:
    """Return the zeros of the page, for errors that must be those of exact networks."""
    assert max(errors) < EXACT
    return [0.0 for _ in errors]


def metrics(figure: str) -> pd.DataFrame:
    """Return the table `metrics` of a figure of study bn_only, with the column `series`."""
    return with_series(kept_tables(figure, "paper")["metrics"])


def by_width() -> Rows:
    """Errors at d = 25 of the construction, which is exact from d² on, and of SGD."""
    rows = right(metrics("fig4"))
    built, trained = (100 * medians(rows, series, "width") for series in (TEACHER, SGD))
    widths = [25, 100, 300, 500, 600]
    return [
        [*built[widths], *exact(built[[625, 700]] / 100)],
        [*trained[[*widths, 625, 700]]],
    ]


def by_target_width() -> Rows:
    """Errors at m = d² of γ and β, and of the dense network, by SGD and Adam."""
    rows = left(metrics("fig4-training"))
    trained = [[*100 * medians(rows, s)] for s in (SGD, ADAM, DENSE, DENSE_ADAM)]
    return [*trained, exact(medians(rows, TEACHER))]


def arm(name: str, d: int, ratio: int = 1) -> pd.DataFrame:
    """Return the judged networks of norm-active of one arm, target width d and m / d².

    The arm `dense` has no frozen units, and its ratio is 1. Raises NoRows if there are none.
    """
    rows = networks(kept_tables("norm-active", "quick" if d == 5 else "paper"))
    return nonempty(rows.query("arm == @name and d == @d and ratio == @ratio"), name)


def counts(rows: pd.DataFrame) -> list[float]:
    """Return how many networks find their target, and of how many."""
    return [rows["found"].sum(), len(rows)]


def only(values: pd.Series) -> float:
    """Return the only value of a column."""
    (value,) = values.unique()
    return float(value)


def rates(both: Iterable[pd.DataFrame]) -> list[float]:
    """Return the learning rates of the same arm at d = 5 and 10."""
    return [only(rows["learning_rate"]) for rows in both]


def by_initial_shifts() -> Rows:
    """Networks that find the target from active ReLUs and from shifts of 0, at 2 d² units."""
    found = []
    for name in ("from_active", "from_zero at rates of from_active", "from_zero"):
        both = [arm(name, d, ratio=2) for d in (5, 10)]
        on = 100 * both[1]["units_on"].median()
        shifts = only(pd.concat(both)["shift_rate"])
        found.append([*counts(both[0]), *counts(both[1]), on, *rates(both), shifts])
    return found


def against_dense() -> Rows:
    """Networks that find the target: dense ones, and γ with 2 d² and 4 d² units."""
    pairs = ([arm(name, d, ratio) for d in (5, 10)]
             for name, ratio in ((DENSE, 1), (GAMMA, 2), (GAMMA, 4)))  # fmt: skip
    return [[*counts(a), *counts(b), *rates((a, b))] for a, b in pairs]


def by_axes() -> Rows:
    """Networks that find the target at m = d², with a condition number of 1 if it is one."""
    found = []
    for name in ("scales", "rotated_scales", "singular_scales", "rotated_weights", "dense",
                 "scales long", "rotated_scales long"):  # fmt: skip
        both = [arm(name, d) for d in (5, 10)]
        condition = pd.concat(both)["condition_number"]
        one = [1.0] if np.allclose(condition, 1) else []
        found.append([*one, *counts(both[0]), *counts(both[1]), *rates(both)])
    return found


def by_sgd() -> Rows:
    """Networks that find the target by SGD, and median errors, at 2 d² and at d² units."""
    twice, square = ([arm(BY_SGD, d, ratio) for d in (5, 10)] for ratio in (2, 1))
    errors = [[rows["relative_mse"].median() for rows in both] for both in (twice, square)]
    return [
        [*counts(twice[0]), *counts(twice[1]), *rates(twice)],
        [*exact(errors[0]), *rates(twice)],
        [*counts(square[0]), *counts(square[1]), *rates(square)],
        [*(100 * error for error in errors[1]), *rates(square)],
    ]


def by_shift_rate() -> Rows:
    """Networks that find the target at each learning rate of the last shifts."""
    found = []
    for d in (5, 10):
        for fixed, trained, ratio in ((GAMMA, WITH_SHIFTS, 2), (DENSE, "dense and shifts", 1)):
            by = arm(trained, d, ratio).groupby("shift_rate")
            parts = [by.get_group(rate) for rate in (0.02, 0.1, 0.6)]
            found.append(sum((counts(part) for part in [arm(fixed, d, ratio), *parts]), []))
    return found


def solutions() -> Rows:
    """Size, condition number and error in single precision of the construction at d = 25."""
    rows = metrics("norm-budget").query("target_width == 25 and series == @TEACHER")
    by = rows.groupby("width").median(numeric_only=True).loc[[625, 1250]]
    columns = ["largest_scale", "largest_shift", "condition_number", "float32_mse"]
    return [[*by[column]] for column in columns]


def full_rank() -> Rows:
    """Probability that no unit is cut off with 20 % of the weights, and networks of full rank."""
    rows = left(metrics("fig5").query("sparsity == 0.2 and series == @TEACHER"))
    full = (rows["numerical_rank"] == rows["width"]).groupby(rows["target_width"])
    sizes = (30, 40, 45, 50, 60)
    formula = [live_units_probability(d, d, d**2, 0.2) for d in sizes]
    return [formula, [x for d in sizes for x in (full.sum()[d], full.size()[d])]]


def exact_fractions() -> Rows:
    """Fractions of exact networks at 1.5, 2, 2.5 and 3 times (log d)/d, where they were run."""
    rows = kept_tables("constructions-sparse", "paper")["metrics"]
    within = (rows["max_abs_error"] <= rows["rounding"]) & (rows["rounding"] < 1)
    share = within.groupby([rows["target_width"], rows["sparsity"]]).mean()
    multiples = np.array([1.5, 2, 2.5, 3])
    found = []
    for d in (10, 20, 40, 60):
        near = (abs(share[d].index - p) < SLACK for p in multiples * np.log(d) / d)
        found.append([value for chosen in near for value in share[d][chosen]])
    return found


def schedules() -> Rows:
    """Median error with a cosine / with a constant learning rate, by the initial one."""
    ratios = schedule_ratio_at("cosine", "constant", "rate > 0")
    rows = ratios.measure(kept_tables("norm-schedules", "paper"))
    by = rows.groupby(["d", "rate"])["value"].median()
    return [[*by[d]] for d in (10, 15)]


def example() -> Rows:
    """SGD's error / both constructions' at d = 25 and 600 units, on the page of results."""
    rows = metrics("fig4").query("target_width == 25 and width == 600")
    errors = rows.pivot(index="replicate", columns="series", values="relative_mse")
    both = [errors[SGD] / errors[built] for built in (TEACHER, STUDENT)]
    return [[*ratios] for ratios in (*both, np.minimum(*both))]


def finetuned(start: str, *arms: str) -> Rows:
    """Trained parameters, and test accuracies in the last epoch; from random weights with range."""
    stored = kept_tables("norm-finetuning")
    last = stored["training"].query("epoch == epoch.max() and start == @start")
    number = stored["metrics"].query("start == @start").groupby("arm")["trained"].first()
    found = last.groupby("arm")["test_accuracy"].agg(["median", "min", "max"])
    columns = found if start == "random" else found[["median"]]
    return [[number[arm], *columns.loc[arm]] for arm in arms]


def more_width() -> list[float]:
    """Return d, Adam's error at d² and at 10 d² units, and 10."""
    rows = metrics("norm-budget").query("train_samples == 1_000_000 and epochs == 1")
    errors = 100 * medians(rows, ADAM, "width")
    return [10, errors[100], errors[1000], 10]


STATEMENTS: dict[str, Callable[[], list[float]]] = {
    "More width and more depth make networks": more_width,
}
"""Numbers of rows in the table of statements that belong to no verdict, by how a row begins."""

TABLES: dict[str, Callable[[], Rows]] = {
    "d = 25: hidden units m": by_width,
    "target width d (m = d²)": by_target_width,
    "networks that find the target, m = 2 d²": by_initial_shifts,
    "networks that find the target": against_dense,
    "what Adam trains (m = d²)": by_axes,
    "SGD on γ, 20,000 steps": by_sgd,
    "learning rate of the last shifts": by_shift_rate,
    "construction at d = 25": solutions,
    "20\N{NO-BREAK SPACE}% of the weights, d": full_rank,
    "exact networks at fraction": exact_fractions,
    "error with cosine ÷ error with constant, by initial rate": schedules,
}

RESNET: dict[str, Callable[[], Rows]] = {
    "what is trained": partial(
        finetuned, "random", "all", "norm", "last_layer", "random_weights"
    ),
    "what is trained, with the last layer": partial(
        finetuned, "pretrained", "all", "low_rank", "norm", "random_weights", "biases",
        "last_layer",
    ),
}  # fmt: skip
"""The tables on docs/norm-finetuning.md."""
