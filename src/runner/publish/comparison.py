"""A user's results against the reference: where they differ by more than chance."""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runner.cli.catalogue import figure_names
from runner.cli.composing import figure_variant
from runner.core.folders import require_readable
from runner.core.studies import Row, rows_of
from runner.publish.reference import REFERENCE, canonical_figure, read_tables
from runner.results.claims import claims_of, judge
from runner.runs.run import load, stale_note

LARGEST_DEVIATION = 5.0
"""Standard errors beyond which two means differ; thousands of means are compared, so that a smaller
bound would name differences that are chance."""

ROUNDING = 1e-3
"""Relative difference that other hardware may make in a number that has no spread of its own."""


def compare_tables(own: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row]) -> pd.DataFrame:
    """Where two tables of the same runs differ by more than chance.

    Rows are matched by run and keys; the replicates of a key give mean and standard error, a column
    `<name>_se` gives the error of `<name>`. Returns one row for each key and column whose means
    differ by more than LARGEST_DEVIATION standard errors (and more than ROUNDING): key, column,
    own, reference, deviation in standard errors.
    """
    keys = ["run", *(key for key in row_class.keys if key != "replicate")]
    numbers = [field.name for field in fields(row_class) if field.type in (int, float)]
    values = [name for name in numbers if name not in row_class.keys and not name.endswith("_se")]
    summaries = {"own": _summary(own, keys, values), "kept": _summary(kept, keys, values)}
    both = pd.concat([table.add_suffix(f" {side}") for side, table in summaries.items()], axis=1)
    parts = []
    for name in values:
        deviation = _deviations(*(both[f"{name} {part}"] for part in SUMMARY_PARTS))
        found = both[~(deviation <= LARGEST_DEVIATION)]
        parts.append(
            pd.DataFrame(
                {
                    "key": [", ".join(map(str, _as_tuple(key)[1:])) for key in found.index],
                    "column": name,
                    "own": found[f"{name} mean own"].to_numpy(),
                    "reference": found[f"{name} mean kept"].to_numpy(),
                    "deviation": deviation[found.index].to_numpy(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


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
    own: pd.Series, kept: pd.Series, own_variance: pd.Series, kept_variance: pd.Series
) -> pd.Series:
    """Distances of means in standard errors; inf where only one of them is a number."""
    error = np.sqrt(own_variance.fillna(0) + kept_variance.fillna(0))
    error = np.maximum(error, ROUNDING * kept.abs() / LARGEST_DEVIATION)
    with np.errstate(all="ignore"):
        deviation = (own - kept).abs() / error
    same = (own == kept) | (own.isna() & kept.isna())
    return deviation.mask(same, 0.0).fillna(np.inf)


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Where a user's runs of a figure differ from the reference; None where one of them is missing.

    Returns the rows of `compare_tables` for each table with the column `table`, and a row of the
    table `claims` for each claim whose verdict differs; `attrs["stale"]` is the note on runs of
    other code. Raises InputError when the overrides make another figure than the canonical one.
    """
    variant = canonical_figure(name, typed)
    folder = reference / variant.scale / name
    if not folder.exists() or not all(run.is_complete() for run in variant.runs):
        return None
    own, kept = load(variant.runs), read_tables(folder)
    row_classes = rows_of(variant.study)
    parts = [
        compare_tables(own[table], kept[table], row_classes[table]).assign(table=table)
        for table in kept
    ]
    judged = judge(name, claims_of(name, variant.study), own)
    parts.append(_changed_claims(judged, folder / "claims.csv"))
    found = pd.concat(parts, ignore_index=True)
    found.attrs["stale"] = stale_note(variant.runs)
    return found


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

    Raises InputError when an override is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner compare",
        description="Say where your results differ from the reference by more than chance.",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="scale=..., outputs=...")
    typed = parser.parse_args(arguments).overrides
    require_readable(figure_variant(figure_names()[0], typed).outputs)
    differing = 0
    for name in figure_names():
        found = compare(name, typed, REFERENCE)
        if found is None:
            print(f"{name}: nothing to compare")
            continue
        if found.attrs["stale"]:
            print(f"{name}: note: {found.attrs['stale']}")
        if found.empty:
            print(f"{name}: as the reference")
        else:
            differing += 1
            print(f"{name}: {len(found)} numbers differ")
            print(found.head(10).to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    return 1 if differing else 0
