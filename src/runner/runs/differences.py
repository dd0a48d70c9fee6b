"""Two runs side by side: where their parameters, their code and their numbers differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from runner.core.catalogue import rows_of
from runner.runs.run import Run

ROUNDING = 1e-9
"""Relative difference of two numbers that is no difference: the order of a sum makes as much."""


@dataclass(frozen=True)
class TableDifference:
    """One table of two runs, its rows matched by what was measured.

    keys: the columns by which the rows are matched. matched, only_a, only_b: numbers of rows.
    columns: a row for each column of measurements: how many numbers are `equal`, equal but for
    `rounding`, or `differ`; the `largest` relative difference, inf where only one is a number or
    they are no numbers, and `at` which row, with both values.
    """

    table: str
    keys: tuple[str, ...]
    matched: int
    only_a: int
    only_b: int
    columns: pd.DataFrame

    @property
    def is_none(self) -> bool:
        """Whether all rows are there twice, and none differ."""
        return not (self.only_a or self.only_b or self.columns["differ"].any())


COLUMNS = ("column", "equal", "rounding", "differ", "largest", "at")


def parameters(a: Run, b: Run) -> dict[str, tuple[Any, Any]]:
    """The parameters in which two runs differ, with the value of each; None where one has none."""
    ours, theirs = ({"study": run.config.study, **vars(run.config)} for run in (a, b))
    names = dict.fromkeys([*ours, *theirs])
    values = {name: (ours.get(name), theirs.get(name)) for name in names}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def origins(a: Run, b: Run) -> dict[str, tuple[Any, Any]]:
    """In what two runs came about otherwise: code, commit, data, device, versions and others."""
    ours, theirs = _origin(a.provenance()), _origin(b.provenance())
    names = dict.fromkeys([*ours, *theirs])
    values = {name: (ours.get(name), theirs.get(name)) for name in names}
    return {name: pair for name, pair in values.items() if pair[0] != pair[1]}


def _origin(about: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: about.get(name) for name in ("code", "device_name", "threads")}
    commit = about.get("commit")
    kept["commit"] = commit and f"{str(commit)[:8]}{'+' if about.get('dirty') else ''}"
    for group in ("data", "versions"):
        if isinstance(about.get(group), dict):
            kept |= about[group]
    if isinstance(instructions := about.get("instructions"), dict):
        kept |= {f"instructions of {name}": value for name, value in instructions.items()}
    return kept


def numbers(a: Run, b: Run) -> list[TableDifference]:
    """Where the tables of two complete runs of one study differ; a table of one alone has no rows
    in the other.

    Raises InputError when a table is damaged.
    """
    ours, theirs = a.tables(), b.tables()
    row_classes = rows_of(a.config.study)
    found = []
    for name in dict.fromkeys([*ours, *theirs]):
        rows = [tables.get(name, pd.DataFrame()) for tables in (ours, theirs)]
        keys = row_classes[name].keys if name in row_classes else ()
        both = [key for key in keys if key in rows[0] and key in rows[1]]
        apart = [key for key in both if _tells_apart(rows[0][key], rows[1][key])]
        matching = [key for key in both if key not in apart]
        found.append(compare(name, *(each.drop(columns=apart) for each in rows), matching))
    return found


def _tells_apart(a: pd.Series, b: pd.Series) -> bool:
    """Whether a key says only which of the two runs a row is of: no row would find its like."""
    return a.nunique() == b.nunique() == 1 and bool(a.iloc[0] != b.iloc[0])


def compare(name: str, a: pd.DataFrame, b: pd.DataFrame, keys: list[str]) -> TableDifference:
    """Two tables, row by row. Rows are matched by the keys, those of equal keys by their order."""
    place = "order of rows"
    sides = [
        each.assign(**{place: each.groupby(keys, dropna=False).cumcount() if keys else each.index})
        for each in (a, b)
    ]
    both = sides[0].merge(
        sides[1], on=[*keys, place], how="outer", suffixes=(" a", " b"), indicator="side"
    )
    matched = both[both["side"] == "both"]
    if not keys or matched[place].any():
        keys = [*keys, place]
    values = [column for column in a if column in b and column not in keys]
    columns = pd.DataFrame(
        [_column(matched, column, keys) for column in values], columns=list(COLUMNS)
    )
    counts = both["side"].value_counts()
    return TableDifference(
        name, tuple(keys), len(matched), counts["left_only"], counts["right_only"], columns
    )


def _column(matched: pd.DataFrame, column: str, keys: list[str]) -> dict[str, Any]:
    """How the numbers of one column differ: one row of TableDifference.columns."""
    a, b = (matched[f"{column} {side}"].to_numpy() for side in "ab")
    distance = distances(a, b)
    differ = distance > ROUNDING
    found = {
        "column": column,
        "equal": int((distance == 0).sum()),
        "rounding": int(((distance > 0) & ~differ).sum()),
        "differ": int(differ.sum()),
        "largest": float(distance.max(initial=0.0)),
        "at": "",
    }
    if differ.any():
        worst = int(distance.argmax())
        row = matched.iloc[worst]
        where = ", ".join(f"{key}={row[key]}" for key in keys)
        found["at"] = f"{where}: {_both(a[worst], b[worst])}"
    return found


def _both(a: Any, b: Any) -> str:
    """Two values that differ, to as many digits as show it."""
    short = [f"{each:.6g}" if isinstance(each, np.floating) else str(each) for each in (a, b)]
    return " and ".join(short if short[0] != short[1] else map(str, (a, b)))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of each pair the difference relative to the larger of the two; inf for what is no number.

    Two nans are equal, and so are two infinities of one sign.
    """
    if not all(np.issubdtype(each.dtype, np.number) for each in (a, b)):
        return np.where(_same(a, b), 0.0, np.inf)
    a, b = a.astype(float), b.astype(float)
    with np.errstate(all="ignore"):
        relative = np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))
    relative[np.isnan(relative)] = np.inf
    return np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, relative)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a == b) | (pd.isna(a) & pd.isna(b))
