"""Select the rows of a claim or of a panel, and report absent rows.

Changed parameters or diverged runs may leave a claim or a panel without rows. The functions here
then raise `NoRows`. The claim is undecided or the panel stays empty, and a text names the absent
rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from runner.results.labels import names_of

Tables = Mapping[str, pd.DataFrame]
"""The tables of a figure's runs by name, for example `tables["metrics"]`."""

SEEDS = "seeds"
"""The column with the seeds that a row unites, joined by `+`."""

Rows = TypeVar("Rows", pd.DataFrame, pd.Series)


class NoRows(Exception):
    """Error if rows of a claim or of a panel are absent. The message names the rows."""


class Present(dict[str, pd.DataFrame]):
    """A dictionary of the tables that have rows. Asking for another table raises NoRows."""

    def __init__(self, tables: Mapping[str, pd.DataFrame]) -> None:
        super().__init__({name: rows for name, rows in tables.items() if len(rows)})

    def __missing__(self, name: str) -> pd.DataFrame:
        raise NoRows(f"table {name} has no rows")


def nonempty(rows: Rows, what: str) -> Rows:
    """Return the rows unchanged. If there are none, raise NoRows with the message "no `what`"."""
    if rows.empty:
        raise NoRows(f"no {what}")
    return rows


def select(rows: pd.DataFrame, **values: Any) -> pd.DataFrame:
    """Return the rows in which each named column has the given value.

    Raises NoRows if there are none.
    """
    for column, value in values.items():
        rows = rows[rows[column] == value]
    wanted = ", ".join(f"{column}={value}" for column, value in values.items())
    return nonempty(rows, f"rows: {wanted}")


def finite(rows: Rows, *columns: Any) -> Rows:
    """Return the rows unchanged if all numbers in the columns are finite.

    rows: a table, or a series, which needs no columns. Raises NoRows if a number is nan or
    infinite.
    """
    numbers = rows.to_frame() if isinstance(rows, pd.Series) else rows[list(columns)]
    for column, values in numbers.items():
        if bad := (~np.isfinite(values.astype(float))).sum():
            raise NoRows(f"{column} is not finite in {bad} of {len(rows)} rows")
    return rows


def last_epoch(training: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last epoch, the largest in the column `epoch`."""
    return training[training["epoch"] == training["epoch"].max()]


def spread(rows: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return median, smallest and largest value of some columns, in groups of rows.

    The result has a row for each combination of values of `keys`, and three columns for each of
    `columns`: `<column>` is the median, `<column>_low` the smallest and `<column>_high` the largest
    value. All three ignore nan.
    """
    grouped = rows.groupby(keys, sort=False, dropna=False)[list(columns)]
    parts = {"": grouped.median(), "_low": grouped.min(), "_high": grouped.max()}
    ends = [column + end for column in columns for end in parts]
    joined = pd.concat([part.add_suffix(end) for end, part in parts.items()], axis=1)
    return joined[ends].reset_index()


def times(rows: pd.DataFrame) -> pd.Series | int:
    """Return for each row how many seeds it unites."""
    return rows[SEEDS].str.count(r"\+") + 1 if SEEDS in rows else 1


def copies(rows: pd.DataFrame, measured: Sequence[str]) -> pd.Series:
    """Return for each row whether it equals an earlier row in all but the replicate.

    Such replicates share what was measured, for example the rank of the inputs. Equal whole numbers
    are no copies, since they may be equal by chance. measured: the columns with measurements.
    """
    is_fraction = (rows[list(measured)] % 1 > 0).any(axis=1)
    return rows.duplicated([name for name in rows if name != "replicate"]) & is_fraction


def without_copies(rows: pd.DataFrame, copy: pd.Series, at: Sequence[str]) -> pd.DataFrame:
    """Return the rows with one replicate of each run at the points where all replicates are copies.

    All other points keep all their rows, since a median needs them. rows: with a column `run`.
    copy: the result of `copies`. at: the columns that tell points apart.
    """
    if "replicate" not in rows:
        return rows
    groups = [rows[name] for name in [*at, "run"]]
    is_copy = copy.groupby([*groups, rows["replicate"]], dropna=False).transform("all")
    different = rows["replicate"].where(~is_copy).groupby(groups, dropna=False).transform("nunique")
    most = different.groupby([rows[name] for name in at], dropna=False).transform("max")
    return rows[~is_copy | (most > 1)]


def with_names(table: pd.DataFrame, study: str) -> pd.DataFrame:
    """Return a table in which printed names replace the names of the study's columns and values."""
    names = names_of(study)
    rows = table.copy()
    for column in table.select_dtypes(exclude=["number", "bool"]):
        values = table[column]
        rows[column] = [names.value(column, v) if isinstance(v, str) else v for v in values]
    return rows.rename(columns=names.column)
