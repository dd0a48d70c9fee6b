"""Compare a user's results with the reference: where they differ by more than chance."""

import argparse
from pathlib import Path
from textwrap import fill

import pandas as pd

from runner.commands.kept_figure import KeptFigure
from runner.commands.reference import REFERENCE, canonical_figure
from runner.compose.orders import paper_figure
from runner.core.catalogue import figure_names, rows_of
from runner.core.errors import InputError
from runner.core.folders import require_readable
from runner.core.studies import column_types
from runner.results import table_diff
from runner.runs.provenance import INSTALLED
from runner.runs.run import stale_note

SHOWN = ["table", "column", "beyond", "deviation", "where"]


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Return where a user's runs of a figure differ from the reference; None without either.

    A line of `table_diff.compare` for each table and column that differs by more than chance, of
    the runs that both sides have; one of the table `runs` for each run that one side lacks, and of
    the table `claims` for each claim with another verdict. `attrs["alike"]` says how alike the
    numbers are where none differs, `attrs["notes"]` names runs of other code and what is not
    compared. Raises InputError when the overrides make another figure than the canonical one.
    """
    figure = canonical_figure(name, typed)
    kept_figure = KeptFigure.of(reference / figure.scale / name)
    if not kept_figure.folder.exists() or not all(run.is_complete() for run in figure.runs):
        return None
    own, kept = figure.tables(), kept_figure.tables()
    runs = [{run for table in side.values() for run in table["run"]} for side in (own, kept)]
    alone, parts = [], [pd.DataFrame(columns=["table", *table_diff.COLUMNS])]
    for table, row_class in rows_of(figure.study).items():
        if table not in own or table not in kept:
            alone += [table] * (table in own or table in kept)
            continue
        a, b = own[table], kept[table]
        columns = ["run", *column_types(row_class)]
        measured = [column for column in columns if column in a and column in b]
        alone += [f"{table}.{column}" for column in columns if (column in a) != (column in b)]
        if {*row_class.keys} <= {*measured}:
            a, b = (side.loc[side["run"].isin(runs[0] & runs[1]), measured] for side in (a, b))
            parts.append(table_diff.compare(a, b, row_class).assign(table=table))
    compared = pd.concat(parts, ignore_index=True)
    verdicts = figure.judge(own).merge(kept_figure.claims(), on="claim", suffixes=("", "_kept"))
    verdicts = verdicts[verdicts["verdict"] != verdicts["verdict_kept"]]
    others = [
        {"table": "runs", "where": f"{run}: {'made' if run in runs[0] else 'kept'} alone"}
        for run in sorted(runs[0] ^ runs[1])
    ] + [
        {"table": "claims", "column": row.claim, "where": f"{row.verdict} and {row.verdict_kept}"}
        for row in verdicts.itertuples()
    ]
    beyond = compared[compared["beyond"].astype(int) > 0]
    found = pd.concat([pd.DataFrame(others, columns=beyond.columns), beyond], ignore_index=True)
    notes = [stale_note(figure.runs) or ""]
    notes += [f"on one side alone, and not compared: {', '.join(alone)}"] * bool(alone)
    found.attrs = {"notes": [*filter(None, notes)], "alike": table_diff.alike(compared)}
    return found


def _counted(found: pd.DataFrame) -> str:
    """Say how much differs, in words."""
    kinds = {"runs": "runs on one side alone", "claims": "verdicts differ"}
    columns = "columns differ by more than chance"
    counts = found["table"].map(lambda table: kinds.get(table, columns)).value_counts(sort=False)
    return ", ".join(f"{count} {kind}" for kind, count in counts.items())


def main(arguments: list[str]) -> int:
    """Compare all figures with the reference; return 0, or 1 where one of them differs.

    Figures that are not made, or not in the reference, are listed and differ in nothing. Raises
    InputError when an override is wrong, and outside a clone.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner compare",
        description="Say where your results differ from the reference by more than chance. The"
        " yardstick is the spread of the reference's own replicates, and its stated errors.",
    )
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="scale=..., outputs=...")
    typed = parser.parse_args(arguments).overrides
    if INSTALLED:
        raise InputError("the tables to compare with are in the repository: compare in a clone")
    first = paper_figure(figure_names()[0], typed)
    require_readable(first.outputs)
    scale = first.scale
    differing, absent = 0, dict[str, list[str]]()
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
            shown = found[SHOWN].head(10).fillna("")
            print(shown.to_string(index=False, float_format="{:.3g}".format))
    for why, names in absent.items():
        print(fill(f"{why} at scale {scale}: {', '.join(names)}", 100, break_on_hyphens=False))
    return 1 if differing else 0
