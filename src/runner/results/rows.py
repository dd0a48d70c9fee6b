"""Select the rows of a claim or of a panel, and report absent rows.

Overrides and diverged runs may remove the rows of a claim or of a panel. The functions here then
raise `NoRows`: the claim is undecided, the panel stays empty, and both name the absent rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from runner.core.errors import InputError, nearest
from runner.runs.query import UnknownColumn, fits

Tables = Mapping[str, pd.DataFrame]
"""The tables of a figure's runs by name: `tables["metrics"]`."""

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
    """Return the rows unchanged. Raises NoRows with the message "no `what`" if there are none."""
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
    """Return the rows unchanged. Raises NoRows if a number in the columns is nan or infinite.

    rows: a table, or a series, for which no columns are given.
    """
    numbers = rows.to_frame() if isinstance(rows, pd.Series) else rows[list(columns)]
    for column, values in numbers.items():
        if bad := (~np.isfinite(values.astype(float))).sum():
            raise NoRows(f"{column} is not finite in {bad} of {len(rows)} rows")
    return rows


def of_series(
    tables: Tables, names: Sequence[str], first: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return the rows of some series.

    The series are values of one column, which must have all the names. Tables without any of them
    stay whole. names: the values. first: columns that are preferred to others. Raises InputError if
    no column has all the names.
    """
    values: dict[str, set[str]] = {}
    for rows in tables.values():
        for column in rows.select_dtypes(exclude=["number", "bool"]):
            values.setdefault(column, set()).update(rows[column].dropna().astype(str))
    columns = [column for column in values if values[column].issuperset(names)]
    if not columns:
        known = set().union(*(values.get(column, ()) for column in first or values))
        absent = next((name for name in names if name not in known), names[0])
        together = "" if absent not in known else f", in one column with {', '.join(names)}"
        raise InputError(
            f"series={absent} is not in the tables{together}: {nearest(absent, known)}"
        )
    column = min(columns, key=lambda column: column not in first)
    return {
        name: rows[rows[column].isin(names)]
        if column in rows and rows[column].isin(values[column] & {*names}).any()
        else rows
        for name, rows in tables.items()
    }


def meeting(tables: Tables, condition: str) -> dict[str, pd.DataFrame]:
    """Return the rows that meet a condition, from the tables that have its columns.

    Raises InputError if no table has its columns, or it is no condition.
    """
    fit, unknown = dict(tables), []
    for name, rows in tables.items():
        try:
            fit[name] = rows[fits(rows, condition)]
        except UnknownColumn as error:
            unknown.append(error)
    if len(unknown) == len(tables):
        raise unknown[0]
    return fit


def last_epoch(training: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose epoch is the largest in the table."""
    return training[training["epoch"] == training["epoch"].max()]


def spread(rows: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return a row for each combination of `keys`, with three columns for each of `columns`.

    `<column>` has the median of the rows with these keys, `<column>_low` the smallest value, and
    `<column>_high` the largest. All three ignore nan.
    """
    grouped = rows.groupby(keys, sort=False, dropna=False)[list(columns)]
    parts = {"": grouped.median(), "_low": grouped.min(), "_high": grouped.max()}
    ends = [column + end for column in columns for end in parts]
    joined = pd.concat([part.add_suffix(end) for end, part in parts.items()], axis=1)
    return joined[ends].reset_index()
