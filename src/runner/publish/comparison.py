"""A user's results against the reference: where they differ by more than chance."""

import argparse
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from textwrap import fill
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from runner.cli.orders import paper_figure
from runner.core.catalogue import figure_names, rows_of
from runner.core.errors import InputError
from runner.core.folders import require_readable
from runner.core.studies import Row
from runner.publish.reference import REFERENCE, canonical_figure, read_tables
from runner.results.claims import claims_of, judge
from runner.runs.provenance import INSTALLED
from runner.runs.run import load, stale_note

LARGEST_DEVIATION = 5.0
"""Standard errors beyond which two means differ; thousands of means are compared, so that a smaller
bound would name differences that are chance."""

DRIFT = 1e-3
"""Relative difference that other hardware may make in a number that has no spread of its own: the
rounding of one step, grown over many."""

ROUNDING = 1e-9
"""Difference that is rounding and no more, relative to a number or, where that is smaller, to one:
inputs, weights and losses are of order one, and what ought to be zero beside them (the error of an
exact construction, 1e-13) is another number on every processor."""


def compare_tables(own: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row]) -> pd.DataFrame:
    """Where two tables of the same runs differ by more than chance.

    Rows are matched by run and keys; the replicates of a key give mean and standard error, a column
    `<name>_se` gives the error of `<name>`. An estimate without either, beside others that have
    one, differs by chance in a way that the tables do not tell, and is not judged. Returns one row
    for each key and column whose means differ by more than LARGEST_DEVIATION standard errors (and
    more than DRIFT and ROUNDING): key, column, own, reference, deviation in standard errors,
    relative (the largest difference of two rows, over the number or over one, whichever is larger).
    """
    return _differing(differences(own, kept, row_class))


def differences(own: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row]) -> pd.DataFrame:
    """The columns of `compare_tables` for every key, and every measurement that both tables have.

    Raises KeyError when one of them lacks a key.
    """
    keys = ["run", *(key for key in row_class.keys if key != "replicate")]
    values = [name for name in _measurements(row_class) if name in own and name in kept]
    summaries = {"own": _summary(own, keys, values), "kept": _summary(kept, keys, values)}
    both = pd.concat([table.add_suffix(f" {side}") for side, table in summaries.items()], axis=1)
    relative = _relative(
        *(table.set_index(["run", *row_class.keys])[values] for table in (own, kept))
    )
    relative = relative.groupby(level=keys, dropna=False).max().reindex(both.index)
    unknown = dict.fromkeys(_without_error(row_class), np.inf)
    parts = [_of_column(name, both, relative[name], unknown.get(name, 0.0)) for name in values]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)


COLUMNS = ("key", "column", "own", "reference", "deviation", "relative")


def _measurements(row_class: type[Row]) -> list[str]:
    """The columns that are compared: numbers that are no keys, nor errors of others."""
    numbers = [field.name for field in fields(row_class) if field.type in (int, float)]
    return [name for name in numbers if name not in row_class.keys and not name.endswith("_se")]


def _without_error(row_class: type[Row]) -> list[str]:
    """Estimates of one row each without a standard error, beside others that have theirs."""
    names = {field.name for field in fields(row_class)}
    if "replicate" in row_class.keys or not any(name.endswith("_se") for name in names):
        return []
    return [name for name in _measurements(row_class) if f"{name}_se" not in names]


def _of_column(name: str, both: pd.DataFrame, relative: pd.Series, least: float) -> pd.DataFrame:
    """The differences of one column; both: the summaries side by side; least: of the errors."""
    own, kept, *variances = (both[f"{name} {part}"] for part in SUMMARY_PARTS)
    return pd.DataFrame(
        {
            "key": [", ".join(map(str, _as_tuple(key)[1:])) for key in both.index],
            "column": name,
            "own": own.to_numpy(),
            "reference": kept.to_numpy(),
            "deviation": _deviations(own, kept, *variances, least).to_numpy(),
            "relative": relative.to_numpy(),
        }
    )


def _differing(compared: pd.DataFrame) -> pd.DataFrame:
    return compared[~(compared["deviation"] <= LARGEST_DEVIATION)].reset_index(drop=True)


SUMMARY_PARTS = ("mean own", "mean kept", "variance own", "variance kept")


def _as_tuple(key: Any) -> tuple:
    return key if isinstance(key, tuple) else (key,)


def _summary(table: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    """Mean and squared standard error of each value column; a row for each key."""
    groups = table.groupby(keys, dropna=False)
    columns = {}
    for name in values:
        columns[f"{name} mean"] = groups[name].mean()
        if f"{name}_se" in table:
            columns[f"{name} variance"] = groups[f"{name}_se"].mean() ** 2 / groups.size()
        else:
            columns[f"{name} variance"] = groups[name].var() / groups.size()
    return pd.DataFrame(columns)


def _deviations(
    own: pd.Series,
    kept: pd.Series,
    own_variance: pd.Series,
    kept_variance: pd.Series,
    least: float,
) -> pd.Series:
    """Distances of means in standard errors, or in `least` where that is larger; inf where only one
    of them is a number.
    """
    error = np.sqrt(own_variance.fillna(0) + kept_variance.fillna(0)).clip(lower=least)
    allowed = np.maximum(DRIFT * kept.abs(), ROUNDING)
    return _distances(own, kept, np.maximum(error, allowed / LARGEST_DEVIATION))


def _relative(own: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """Differences of rows of one key, relative to the number or to one."""
    own, kept = own.align(kept)
    return _distances(own, kept, kept.abs().clip(lower=1))


Numbers = TypeVar("Numbers", pd.Series, pd.DataFrame)


def _distances(own: Numbers, kept: Numbers, unit: Numbers) -> Numbers:
    """Distances of numbers in units; inf where only one of them is a number."""
    with np.errstate(all="ignore"):
        distance = (own - kept).abs() / unit
    same = (own == kept) | (own.isna() & kept.isna())
    return distance.mask(same, 0.0).fillna(np.inf)


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Where a user's runs of a figure differ from the reference; None where either is missing.

    Returns the rows of `compare_tables` for each table with the column `table`, of the runs that
    both sides have; a row of the table `runs` for each run that one of them lacks; and a row of the
    table `claims` for each claim whose verdict differs. `attrs["alike"]` says how alike the numbers
    are where none differs, `attrs["notes"]` names runs of other code and what is not compared.
    Raises InputError when the overrides make another figure than the canonical one.
    """
    variant = canonical_figure(name, typed)
    folder = reference / variant.scale / name
    if not folder.exists() or not all(run.is_complete() for run in variant.runs):
        return None
    own, kept = load(variant.runs), read_tables(folder)
    parts, notes = [], [stale_note(variant.runs)]
    for table, row_class in rows_of(variant.study).items():
        sides = [tables[table] for tables in (own, kept) if table in tables]
        absent = [
            column
            for column in (*row_class.keys, *_measurements(row_class))
            if 0 < sum(column in side for side in sides) < 2
        ]
        if absent:
            listed = ", ".join(f"{table}.{column}" for column in absent)
            notes.append(f"on one side alone, and not compared: {listed}")
        if len(sides) == 2 and not {*row_class.keys} & {*absent}:
            common = set.intersection(*(set(side["run"]) for side in sides))
            sides = [side[side["run"].isin(common)] for side in sides]
            part = differences(*sides, row_class).assign(table=table)
            unjudged = part["column"].isin(_without_error(row_class)) & (part["relative"] > 0)
            if unjudged.any():
                listed = ", ".join(f"{table}.{name}" for name in part["column"][unjudged].unique())
                notes.append(f"without an error of their own, and not judged: {listed}")
            parts.append(part)
    compared = pd.concat(parts or [pd.DataFrame(columns=[*COLUMNS, "table"])], ignore_index=True)
    judged = judge(name, claims_of(name, variant.study), own)
    changed = _changed_claims(judged, folder / "claims.csv")
    found = pd.concat(
        [_runs_of_one_side(own, kept), _differing(compared), changed], ignore_index=True
    )
    found.attrs["notes"] = [*filter(None, notes)]
    found.attrs["alike"] = _alike(compared)
    return found


def _runs_of_one_side(*sides: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """A row for each run that only the first or only the second side has: other settings."""
    own, kept = ({run for table in side.values() for run in table["run"]} for side in sides)
    runs = sorted(own ^ kept)
    return pd.DataFrame(
        {
            "table": "runs",
            "key": runs,
            "column": "",
            "own": ["made" if run in own else "absent" for run in runs],
            "reference": ["made" if run in kept else "absent" for run in runs],
        }
    )


def _alike(compared: pd.DataFrame) -> str:
    """How alike numbers are that do not differ by more than chance."""
    if compared.empty:
        return "nothing to compare"
    relative, place = _largest(compared, "relative")
    if relative == 0:
        return "equal to the reference"
    if relative <= ROUNDING:
        return f"equal up to rounding (largest relative difference {relative:.0e} in {place})"
    deviation, place = _largest(compared, "deviation")
    return (
        f"as the reference, up to chance (largest deviation {deviation:.2g} of"
        f" {LARGEST_DEVIATION:.0f} standard errors, in {place})"
    )


def _largest(compared: pd.DataFrame, measure: str) -> tuple[float, str]:
    """The largest value of a column of `differences`, and the column of the tables it is in."""
    row = compared.loc[compared[measure].idxmax()]
    return row[measure], f"{row['table']}.{row['column']}"


def _counted(found: pd.DataFrame) -> str:
    """How much differs, in words."""
    runs, verdicts = ((found["table"] == table).sum() for table in ("runs", "claims"))
    parts = {
        "runs on one side alone": runs,
        "numbers differ": len(found) - runs - verdicts,
        "verdicts differ": verdicts,
    }
    return ", ".join(f"{count} {what}" for what, count in parts.items() if count)


def _changed_claims(own: pd.DataFrame, path: Path) -> pd.DataFrame:
    both = own.merge(pd.read_csv(path), on="claim", suffixes=("", " kept"))
    changed = both[both["verdict"] != both["verdict kept"]]
    return pd.DataFrame(
        {
            "table": "claims",
            "key": changed["claim"],
            "column": "verdict",
            "own": changed["verdict"],
            "reference": changed["verdict kept"],
        }
    )


def main(arguments: list[str]) -> int:
    """Compare all figures with the reference; returns 0, or 1 where one of them differs.

    Figures that are not made, or not in the reference, are listed and differ in nothing. Raises
    InputError when an override is wrong, and outside a clone.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner compare",
        description="Say where your results differ from the reference by more than chance.",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="scale=..., outputs=...")
    typed = parser.parse_args(arguments).overrides
    if INSTALLED:
        raise InputError("the tables to compare with are in the repository: compare in a clone")
    first = paper_figure(figure_names()[0], typed)
    require_readable(first.outputs)
    scale = first.scale
    differing, absent = 0, {}
    for name in figure_names():
        kept = (REFERENCE / scale / name).exists()
        found = compare(name, typed, REFERENCE) if kept else None
        if found is None:
            why = "not made" if kept else "not in the reference"
            absent.setdefault(why, []).append(name)
            continue
        for note in found.attrs["notes"]:
            print(f"{name}: note: {note}")
        if found.empty:
            print(f"{name}: {found.attrs['alike']}")
        else:
            differing += 1
            print(f"{name}: {_counted(found)}")
            print(found.head(10).to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    for why, names in absent.items():
        print(fill(f"{why} at scale {scale}: {', '.join(names)}", 100, break_on_hyphens=False))
    return 1 if differing else 0
