"""Measure the methods of figures 4 and 5, in each replicate.

All methods of a replicate share target, frozen weights and samples. A test error is the mean
squared error divided by the variance of the target g, so predicting the mean has the error 1.
Diverged networks have infinite error. The best learning rate of a schedule is chosen on other
networks. Conditions are on d (the width of the target), m (of the frozen network) and p (the
fraction of nonzero weights).
"""

from itertools import product

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN
from runner.papers.norm_tuning.bn_only.tables import (
    ADAM,
    COORDINATES,
    DENSE,
    DENSE_ADAM,
    KEPT_ON,
    SGD,
    SHIFTED,
    STUDENT,
    TEACHER,
    at_best_rates,
    by_budget,
    judged,
    with_series,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

SYMBOLS = {"target_width": "d", "width": "m", "sparsity": "p"}

PRINTED = {
    SGD: "SGD on γ and β",
    ADAM: "Adam on γ and β",
    KEPT_ON.format(ADAM): "Adam with active hidden ReLUs",
    KEPT_ON.format(SGD): "SGD with active hidden ReLUs",
    COORDINATES.format(ADAM): "Adam with active hidden ReLUs in coordinates of K",
    SHIFTED.format(ADAM): "Adam on γ and β from β = 4",
    TEACHER: "the construction from the target",
    STUDENT: "the construction from a dense network",
    DENSE: "a dense network",
    (TEACHER, STUDENT): "either construction",
    (SGD, TEACHER, STUDENT): "SGD on γ and β, or of either construction,",
    (TEACHER, DENSE_ADAM): "the construction, or of a dense network trained by Adam,",
    "samples": "number of samples",
    "epochs": "number of epochs",
}
"""Printed names of methods and columns."""

Series = str | tuple[str, ...]
"""One method, or several methods that must each satisfy a rule."""


def _rows(tables: Tables, where: str, series: str) -> pd.DataFrame:
    rows = with_series(tables["metrics"]).rename(columns=SYMBOLS)
    return select(nonempty(rows.query(where), f"networks of {where}"), series=series)


def _loss(tables: Tables, where: str, series: str) -> pd.Series:
    rows = _rows(tables, where, series).set_index(["d", "m", "p", "replicate"])
    return rows["relative_mse"].fillna(np.inf)


def _ratios(tables: Tables, top: Series, bottom: Series, where: str) -> pd.DataFrame:
    pairs = product(np.atleast_1d(top), np.atleast_1d(bottom))
    losses = ([_loss(tables, where, series) for series in pair] for pair in pairs)
    ratios = [a / b for a, b in (a.align(b, join="inner") for a, b in losses)]
    return pd.concat(ratios).rename("value").reset_index()


@quantity("test error of {top} / test error of {bottom}", each=("d", "m"), unit="ratio")
def ratio(tables: Tables, top: Series, bottom: Series, where: str) -> pd.DataFrame:
    """Return one row per network that both methods have (d, m, p, replicate); `value` is the ratio.
    top, bottom: the name of a method, or several names; then every pair of a top and a bottom gives
    rows, and the rule must hold for each. where: a condition on the columns d, m and p, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    return _ratios(tables, top, bottom, where)


@quantity(
    "test error of {top} / test error of {bottom}, at the largest m below d²",
    each=("d", "m"),
    unit="ratio",
    needs={"width": 3},
)
def ratio_near_square(tables: Tables, top: Series, bottom: Series) -> pd.DataFrame:
    """top, bottom: one method, or several methods that must each satisfy the rule."""
    rows = _ratios(tables, top, bottom, "m < d ** 2")
    return rows[rows["m"] == rows.groupby("d")["m"].transform("max")]


@quantity("test error of {series}", each=("d", "m"))
def loss(tables: Tables, series: Series, where: str) -> pd.DataFrame:
    """series: one method, or several methods that must each satisfy the rule. where: a condition on
    the sizes of the networks.
    """
    losses = [_loss(tables, where, name) for name in np.atleast_1d(series)]
    return pd.concat(losses).rename("value").reset_index()


@quantity(
    "fraction of the networks of all d that {series} brings to an error below {least}",
    numbers="counts",
    needs={"target_width": 2},
    of="networks",
)
def share_of_found(tables: Tables, series: str, where: str, least: float) -> pd.DataFrame:
    """where: a condition on the sizes of the networks."""
    errors = _loss(tables, where, series)
    return pd.DataFrame([{"count": int((errors < least).sum()), "n": len(errors)}])


@quantity(
    "test error of {series} at the smallest m / test error at the largest m below d²",
    each=("d",),
    unit="ratio",
    needs={"width": 3},
)
def narrow_over_wide(tables: Tables, series: str) -> pd.DataFrame:
    """Only widths m below d² count. Raises NoRows if no target width d has several of them."""
    errors = _loss(tables, "m < d ** 2", series).rename("error").reset_index().sort_values("m")
    ends = errors.groupby(["d", "replicate"])["error"].agg(["first", "last", "min", "size"])
    ends = nonempty(ends[ends["size"] > 1], "several widths m below d²")
    ends = ends.rename(columns={"first": "narrow", "last": "wide", "min": "least"})
    return ends.assign(value=ends["narrow"] / ends["wide"]).reset_index()


@quantity(
    "fall of |test error of {one} − test error of {other}| from the smallest to the largest d",
    unit="difference",
    needs={"target_width": 3},
)
def gap_closed(tables: Tables, one: str, other: str, where: str) -> pd.Series:
    """It is positive if the two methods differ less at the largest d. where: a condition on the sizes
    of the networks.
    """
    gap = (_loss(tables, where, one) - _loss(tables, where, other)).abs()
    d = gap.index.get_level_values("d")
    ends = (gap[d == end].droplevel(["d", "m", "p"]) for end in (d.min(), d.max()))
    smallest, largest = pd.Series.align(*ends, join="inner")  # the replicates that both have
    return smallest - largest


@quantity("relative error of {construction} / (machine epsilon × condition number × input norm)")
def error_over_rounding(tables: Tables, construction: str, where: str) -> pd.DataFrame:
    """The shifts that make all ReLUs active are c = sqrt(d) + 7 (the input norm) times larger than the
    signal, and the last layer subtracts them. If machine epsilon × condition number is 1 or more,
    the linear system is singular to working precision. where: a condition on the networks.
    """
    rows = _rows(tables, where, construction)
    variance = rows["test_mse"] / rows["relative_mse"]
    input_norm = np.sqrt(rows["d"]) + SHIFT_MARGIN
    rounding = np.finfo(np.float64).eps * rows["condition_number"] * input_norm
    return rows.assign(value=np.sqrt(rows["source_mse"] / variance) / rounding)


@quantity(
    "test error with {top} / with {bottom} learning rates, each schedule at its best one",
    each=("d",),
    unit="ratio",
    needs={"target_width": 2, "schedule": 3},
)
def schedule_ratio(tables: Tables, top: str, bottom: str) -> pd.DataFrame:
    """top, bottom: names of learning rate schedules. `inside_grid` is false if a best learning rate is
    an end of the grid.
    """
    rows = at_best_rates(tables["metrics"]).rename(columns=SYMBOLS)
    rows = rows.set_index(["schedule", "d", "replicate"])
    errors, inside = rows["relative_mse"].fillna(np.inf), rows["inside_grid"]
    both = {"value": errors[top] / errors[bottom], "inside_grid": inside[top] & inside[bottom]}
    return pd.DataFrame(both).reset_index()


@quantity(
    "test error with {top} / with {bottom} learning rates, at the same initial rate",
    each=("d", "rate"),
    unit="ratio",
    needs={"target_width": 2, "schedule": 2},
)
def schedule_ratio_at(tables: Tables, top: str, bottom: str, where: str) -> pd.DataFrame:
    """top, bottom: names of learning rate schedules. where: a condition on the networks."""
    rows = judged(tables["metrics"]).rename(columns=SYMBOLS | {"learning_rate": "rate"})
    rows = nonempty(rows.query(where), f"networks of {where}")
    errors = rows.set_index(["schedule", "d", "rate", "replicate"])["relative_mse"].fillna(np.inf)
    return (errors[top] / errors[bottom]).rename("value").reset_index()


@quantity(
    "test error of {series} at m = d²",
    each=("samples", "epochs"),
    needs={"train_samples": 2, "epochs": 2},
)
def loss_by_budget(tables: Tables, series: str) -> pd.DataFrame:
    """The points are the numbers of samples seen in training, and of epochs."""
    rows = select(with_series(by_budget(tables["metrics"])), series=series)
    return rows.assign(value=rows["relative_mse"].fillna(np.inf))
