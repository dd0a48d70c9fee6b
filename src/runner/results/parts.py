"""Select a part of a figure's tables: some series, or the rows that meet a condition."""

import re
from collections.abc import Collection, Container, Mapping, Sequence
from types import MappingProxyType

import pandas as pd

from runner.core.errors import InputError, nearest
from runner.results.rows import SEEDS, Tables
from runner.runs.query import UnknownColumn, fits


def of_series(
    tables: Tables,
    names: Sequence[str],
    shows: Mapping[str, Container[str]] = MappingProxyType({}),
    keys: Collection[str] = (),
) -> dict[str, pd.DataFrame]:
    """Return the tables with only the rows of some series, such as methods.

    names: the series; one text column of a table must have all these values. shows: the values that
    are drawn, by column. These columns are preferred if several fit, and name series in every table
    that has them. Of other columns, tables without any of these values are not changed. keys: the
    columns of numbers that tell rows apart. Raises InputError if no column has all names.
    """
    values: dict[str, set[str]] = {}
    for rows in tables.values():
        for column in {*rows.select_dtypes(exclude=["number", "bool"])} - {"run", SEEDS}:
            values.setdefault(column, set()).update(rows[column].dropna().astype(str))
    for column in shows.keys() & values.keys():
        values[column] = {name for name in values[column] if name in shows[column]}
    columns = [column for column in values if values[column].issuperset(names)]
    if not columns:
        known = set().union(*(values.get(column, ()) for column in shows or values))
        if not known or all(map(_is_number, names)):
            raise InputError(_by_numbers(tables, names, keys))
        absent = next((name for name in names if name not in known), names[0])
        together = "" if absent not in known else f", in one column with {', '.join(names)}"
        raise InputError(
            f"series={absent} is no series of this figure{together}: {nearest(absent, known)}"
        )
    column = min(columns, key=lambda column: (column not in shows, column))
    return {
        name: rows[rows[column].isin(names)]
        if column in rows and (column in shows or rows[column].isin(names).any())
        else rows
        for name, rows in tables.items()
    }


def _is_number(name: str) -> bool:
    """Return whether the name of a series is a number."""
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", name, re.I) is not None


def _by_numbers(tables: Tables, names: Sequence[str], keys: Collection[str]) -> str:
    """Return a message that rows are chosen by columns of numbers; the arguments are of_series's.

    If a column has all these numbers, the message names it.
    """
    columns: dict[str, set[float]] = {}
    for rows in tables.values():
        for column in {*rows.select_dtypes("number")} & {*keys}:
            columns.setdefault(column, set()).update(rows[column].dropna())
    several = sorted(column for column in columns if len(columns[column]) > 1)
    several.sort(key="replicate".__eq__)  # a replicate is seldom meant
    numbers = {float(name) for name in names if _is_number(name)}
    fitting = [c for c in several if len(numbers) == len(names) and numbers <= columns[c]]
    text = f"series={','.join(names)} is no series of this figure"
    if fitting:
        return f"{text}: type where='{fitting[0]}=[{','.join(names)}]'"
    return f"{text}: choose rows by where='COLUMN=[1,2]', with a column of {', '.join(several)}"


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
