"""Measure how well the methods of figures 4 and 5 of paper A imitate their target.

All methods of a replicate have the same target network, frozen weights and samples. A test error is
the mean squared error on test samples, divided by the variance of the target g. Predicting the mean
of g has the error 1. A network that diverged has an infinite error.

Arguments that recur:

- series: the name of a method together with how it is trained, as in the column `series` of
  `tables.with_series`: "sgd", "adam", "teacher construction", "student construction", "dense".
- where: a condition on the columns d (width of the target), m (width of the frozen network) and p
  (fraction of nonzero weights), as for `DataFrame.query`.

A row of a result is one network, if the function states nothing else. Its columns d, m, p and
replicate identify it, and `value` is the number. A function raises NoRows if no network meets its
conditions.
"""

from itertools import product

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.bn_only.config import SHIFT_MARGIN
from runner.papers.norm_tuning.bn_only.tables import (
    at_best_rates,
    by_budget,
    with_series,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

SYMBOLS = {"target_width": "d", "width": "m", "sparsity": "p"}


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


@quantity("the test error of {top} is {} that of {bottom}", each=("d", "m"), unit="ratio")
def ratio(tables: Tables, top: Series, bottom: Series, where: str) -> pd.DataFrame:
    """Return the ratio of the test errors of two methods, for each network that both have.

    The columns of a row are d, m, p, replicate, and `value`, the ratio. top, bottom: the name of a
    method, as "sgd", or several names. With several names there are rows for each pair of a top and
    a bottom method. where: a condition on the columns d, m and p, as for `DataFrame.query`. Raises
    NoRows if no network meets the condition.
    """
    return _ratios(tables, top, bottom, where)


@quantity(
    "at the largest width m below d², the test error of {top} is {} that of {bottom}",
    each=("d", "m"),
    unit="ratio",
    needs={"width": 3},
)
def ratio_near_square(tables: Tables, top: Series, bottom: Series) -> pd.DataFrame:
    """Return the ratio of two methods' test errors at the largest width m below d², for each d.

    A row has the ratio of one replicate in `value`. top, bottom: the name of a method, as "sgd", or
    several names; then there are rows for each pair. Raises NoRows if no network is narrower than
    d².
    """
    rows = _ratios(tables, top, bottom, "m < d ** 2")
    return rows[rows["m"] == rows.groupby("d")["m"].transform("max")]


@quantity("test error of {series}", each=("d", "m"))
def loss(tables: Tables, series: Series, where: str) -> pd.DataFrame:
    """Return the test error of each network of a method.

    A row has the columns d, m, p and replicate, and the error in `value`; inf means that training
    diverged. series: the name of a method, as "sgd", or several names. where: a condition on the
    columns d, m and p, as for `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    losses = [_loss(tables, where, name) for name in np.atleast_1d(series)]
    return pd.concat(losses).rename("value").reset_index()


@quantity(
    "the test error of {series} at the smallest width is {} that at the largest width below d²",
    each=("d",),
    unit="ratio",
    needs={"width": 3},
)
def narrow_over_wide(tables: Tables, series: str) -> pd.DataFrame:
    """Return the test error at the smallest width m divided by the error at the largest m below d².

    There is a row for each target width d and replicate, with the ratio in `value`. The columns
    `narrow` and `wide` have both errors, and `least` the smallest error at any m below d². series:
    the name of a method, as "sgd". Raises NoRows if no d has several widths below d².
    """
    errors = _loss(tables, "m < d ** 2", series).rename("error").reset_index().sort_values("m")
    ends = errors.groupby(["d", "replicate"])["error"].agg(["first", "last", "min", "size"])
    ends = nonempty(ends[ends["size"] > 1], "several widths m below d²")
    ends = ends.rename(columns={"first": "narrow", "last": "wide", "min": "least"})
    return ends.assign(value=ends["narrow"] / ends["wide"]).reset_index()


@quantity(
    "fall of |test error of {one} − test error of {other}| from the smallest to the largest target"
    " width d",
    unit="difference",
    needs={"target_width": 3},
)
def gap_closed(tables: Tables, one: str, other: str, where: str) -> pd.Series:
    """Return by how much the test errors of two methods approach each other as d grows.

    A row is a replicate. Its value is the absolute difference of the errors at the smallest target
    width d, minus the one at the largest d. A positive value means that the methods differ less at
    the largest d. one, other: names of methods, as "dense". where: a condition on the columns d, m
    and p, as for `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    gap = (_loss(tables, where, one) - _loss(tables, where, other)).abs()
    d = gap.index.get_level_values("d")
    ends = (gap[d == end].droplevel(["d", "m", "p"]) for end in (d.min(), d.max()))
    smallest, largest = pd.Series.align(*ends, join="inner")  # the replicates that both have
    return smallest - largest


@quantity(
    "relative error of {construction}, divided by an estimate of its rounding error (machine"
    " epsilon × condition number × input norm),"
)
def error_over_rounding(tables: Tables, construction: str, where: str) -> pd.DataFrame:
    """Return the error of a constructed network divided by an estimate of its rounding error.

    A row is a network, and `value` is the ratio. The error is the root mean square distance of the
    network from its source, in standard deviations of the target g. The source is the network whose
    function the construction copies. The estimate is machine epsilon × condition number × (sqrt(d)
    + 7). The last factor is the assumed largest norm of an input. The shifts of Lemma 7 are this
    many times larger than the signal, and the last layer subtracts them.

    construction: "teacher construction" or "student construction". where: a condition on the
    columns of the table `metrics`, with d, m and p. Raises NoRows if no network meets the
    condition.
    """
    rows = _rows(tables, where, construction)
    variance = rows["test_mse"] / rows["relative_mse"]
    input_norm = np.sqrt(rows["d"]) + SHIFT_MARGIN
    rounding = np.finfo(np.float64).eps * rows["condition_number"] * input_norm
    return rows.assign(value=np.sqrt(rows["source_mse"] / variance) / rounding)


@quantity(
    "with each schedule at its best learning rate, the test error of {top} schedules is {}"
    " that of {bottom} ones",
    each=("d",),
    unit="ratio",
    needs={"target_width": 2, "schedule": 3},
)
def schedule_ratio(tables: Tables, top: str, bottom: str) -> pd.DataFrame:
    """Return the ratio of the test errors of two schedules, each at its best learning rate.

    There is a row for each target width d and replicate, with the ratio in `value`. The column
    `inside_grid` is false if one of the best rates is the smallest or largest one that was tried.
    All other replicates choose the best rates of a replicate. top, bottom: schedules, as
    `constant`, `cosine` or `exponential`. Raises NoRows if only one replicate was run.
    """
    rows = at_best_rates(tables["metrics"]).rename(columns=SYMBOLS)
    rows = rows.set_index(["schedule", "d", "replicate"])
    errors, inside = rows["relative_mse"].fillna(np.inf), rows["inside_grid"]
    both = {"value": errors[top] / errors[bottom], "inside_grid": inside[top] & inside[bottom]}
    return pd.DataFrame(both).reset_index()


@quantity(
    "at the same initial learning rate, the test error of {top} schedules is {} that of"
    " {bottom} ones",
    each=("d", "rate"),
    unit="ratio",
    needs={"target_width": 2, "schedule": 2},
)
def schedule_ratio_at(tables: Tables, top: str, bottom: str, where: str) -> pd.DataFrame:
    """Return the ratio of the test errors of two schedules that begin at the same learning rate.

    There is a row for each target width d, initial learning rate `rate` and replicate, with the
    ratio in `value`. top, bottom: schedules, as `constant`, `cosine` or `exponential`. where: a
    condition on columns such as d and `rate`, as for `DataFrame.query`. Raises NoRows if no network
    meets the condition.
    """
    rows = tables["metrics"].rename(columns=SYMBOLS | {"learning_rate": "rate"})
    rows["rate"] = rows["rate"].round(9)  # a bound in `where` belongs to the grid of rates
    rows = nonempty(rows.query(where), f"networks of {where}")
    errors = rows.set_index(["schedule", "d", "rate", "replicate"])["relative_mse"].fillna(np.inf)
    return (errors[top] / errors[bottom]).rename("value").reset_index()


@quantity(
    "test error of {series} at width d²",
    each=("samples", "epochs"),
    needs={"train_samples": 2, "epochs": 2},
)
def loss_by_budget(tables: Tables, series: str) -> pd.DataFrame:
    """Return the test errors of a method at m = d², for each training effort.

    A row is a network, with the error in `value`. The columns `samples` (samples seen in training,
    over all epochs) and `epochs` make the point. series: the name of a method, as "sgd". Raises
    NoRows if the method was not trained at m = d².
    """
    rows = select(with_series(by_budget(tables["metrics"])), series=series)
    return rows.assign(value=rows["relative_mse"].fillna(np.inf))
