"""Compare a user's results with the reference: where they differ by more than chance."""

import argparse
from pathlib import Path
from textwrap import fill

import pandas as pd

from runner.cli.orders import paper_figure
from runner.core.catalogue import figure_names, rows_of
from runner.core.errors import InputError
from runner.core.folders import require_readable
from runner.core.studies import column_types
from runner.publish.kept_figure import KeptFigure
from runner.publish.reference import REFERENCE, canonical_figure
from runner.results.comparison import COLUMNS, alike
from runner.results.comparison import compare as compare_tables
from runner.runs.provenance import INSTALLED
from runner.runs.run import stale_note

SHOWN = ["table", "column", "beyond", "deviation", "where"]


MOST_NAMED = 3
"""Of the columns of a table that one side does not keep."""


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Return where a user's runs of a figure differ from the reference; None without either.

    A line as of `results.comparison.compare` for each table and column that differs by more than
    chance, of the runs that both sides have; one of the table `runs` for each run that one of them
    lacks, and of the table `claims` for each claim whose verdict differs. `attrs["alike"]` says how
    alike the numbers are where none differs, `attrs["notes"]` names runs of other code and what is
    not compared. Raises InputError when the overrides make another figure than the canonical one.
    """
    figure = canonical_figure(name, typed)
    kept_figure = KeptFigure.of(reference / figure.scale / name)
    if not kept_figure.folder.exists() or not all(run.is_complete() for run in figure.runs):
        return None
    own, kept = figure.tables(), kept_figure.tables()
    runs = [{run for table in side.values() for run in table["run"]} for side in (own, kept)]
    notes, parts = [stale_note(figure.runs)], [pd.DataFrame(columns=["table", *COLUMNS])]
    for table, row_class in rows_of(figure.study).items():
        sides = [side[table] for side in (own, kept) if table in side]
        columns = list(column_types(row_class))
        absent = [each for each in columns if 0 < sum(each in side for side in sides) < 2]
        if absent:
            listed = ", ".join(f"{table}.{column}" for column in absent[:MOST_NAMED])
            more = len(absent) - MOST_NAMED
            listed += f" and {more} columns more" if more > 0 else ""
            notes.append(f"on one side alone, and not compared: {listed}")
        if len(sides) == 2 and not {*row_class.keys} & {*absent}:
            measured = ["run", *(each for each in columns if each not in absent)]
            a, b = (side.loc[side["run"].isin(runs[0] & runs[1]), measured] for side in sides)
            parts.append(compare_tables(a, b, row_class).assign(table=table))
        elif len(sides) == 1:
            notes.append(f"on one side alone, and not compared: {table}")
    compared = pd.concat(parts, ignore_index=True)
    verdicts = figure.judge(own).merge(kept_figure.claims(), on="claim", suffixes=("", " kept"))
    others = [
        {"table": "runs", "where": f"{run}: {'made' if run in runs[0] else 'kept'} alone"}
        for run in sorted(runs[0] ^ runs[1])
    ] + [
        {"table": "claims", "column": row["claim"], "where": f"{row['verdict']} and {was}"}
        for (_, row), was in zip(verdicts.iterrows(), verdicts["verdict kept"], strict=True)
        if row["verdict"] != was
    ]
    beyond = compared[compared["beyond"].astype(int) > 0]
    found = pd.concat([pd.DataFrame(others, columns=beyond.columns), beyond], ignore_index=True)
    found.attrs = {"notes": [*filter(None, notes)], "alike": alike(compared)}
    return found


def _counted(found: pd.DataFrame) -> str:
    """Say how much differs, in words."""
    runs, verdicts = ((found["table"] == table).sum() for table in ("runs", "claims"))
    parts = {
        "runs on one side alone": runs,
        "columns differ by more than chance": len(found) - runs - verdicts,
        "verdicts differ": verdicts,
    }
    return ", ".join(f"{count} {what}" for what, count in parts.items() if count)


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
