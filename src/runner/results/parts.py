"""Select a part of a figure's tables: some series, or the rows that meet a condition."""

from collections.abc import Sequence

import pandas as pd

from runner.core.errors import InputError, nearest
from runner.results.rows import Tables
from runner.runs.query import UnknownColumn, fits


def of_series(
    tables: Tables, names: Sequence[str], first: Sequence[str] = ()
) -> dict[str, pd.DataFrame]:
    """Return the tables with only the rows of some series, such as methods.

    names: the series; one text column of a table must have all these values. first: columns that
    are preferred if several fit. Tables without any of these values are not changed. Raises
    InputError if no column has all names.
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
    """Return the tables with only the rows that meet a condition.

    Tables without the condition's columns are not changed. Raises InputError if no table has the
    columns, no row meets the condition, or the text is not a condition.
    """
    fit, unknown = dict(tables), dict[str, UnknownColumn]()
    for name, rows in tables.items():
        try:
            fit[name] = rows[fits(rows, condition)]
        except UnknownColumn as error:
            unknown[name] = error
    if len(unknown) == len(tables):
        raise next(iter(unknown.values()))
    if not any(len(fit[name]) for name in tables.keys() - {*unknown}):
        raise InputError(f"where {condition}: no row meets this condition")
    return fit
