"""The command `runner compare`: where results differ from the reference by more than chance."""

import argparse
from pathlib import Path
from textwrap import fill

import pandas as pd

from runner.commands.kept import KeptFigure
from runner.compose.orders import paper_figure
from runner.core.catalogue import figure_names, named_figures, rows_of
from runner.core.errors import InputError
from runner.core.folders import require_readable
from runner.core.studies import column_types
from runner.results import same_distribution, table_diff
from runner.results.figure import Figure
from runner.runs.provenance import REFERENCE
from runner.runs.run import stale_note

SHOWN = ["table", "column", "beyond", "deviation", "where"]

KINDS = {"runs": "runs on one side alone", "claims": "verdicts differ"}
"""What is different, by the table of a line. All other lines are columns that differ by more than
chance."""


MOST_NAMED = 3
"""How many columns that only one side has are named in a note."""


def canonical_figure(name: str, typed: list[str]) -> Figure:
    """Return a figure without changed parameters, as the reference has it.

    typed: further arguments, such as `scale=paper`. Raises InputError if they change the figure's
    parameters, or do not fit the figure.
    """
    figure = paper_figure(name, typed)
    if not figure.is_canonical:
        overrides = " ".join(figure.overrides)
        raise InputError(f"the parameters of kept figures cannot be changed: omit {overrides}")
    return figure


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Return how the user's runs of a figure differ from the reference, a line per difference.

    - A column that differs by more than chance has its line of `table_diff.compare`.
    - A run that is only the user's or only the reference's gives a line with the table `runs`.
    - A claim with different verdicts gives a line with the table `claims`.

    Columns are compared over the runs of both. The result has two attributes. `attrs["alike"]` is a
    text about how similar the numbers are. `attrs["notes"]` lists notes about runs of other code,
    about columns that are not compared, and about columns of rounding errors. The result is None if
    the reference lacks the figure or the user lacks a run.

    name: the figure's name. typed: further arguments, such as `scale=paper`. reference: the folder
    of the reference. Raises InputError if the arguments change the figure's parameters.
    """
    figure = canonical_figure(name, typed)
    kept_figure = KeptFigure.of(reference / figure.scale / name)
    if not kept_figure.folder.exists() or not all(run.is_complete() for run in figure.runs):
        return None
    new, kept = figure.tables(), kept_figure.tables(keys=False)
    runs, kept_runs = (
        {run for rows in side.values() for run in rows["run"]} for side in (new, kept)
    )
    alone, tiny, parts = [], list[str](), [pd.DataFrame(columns=["table", *table_diff.COLUMNS])]
    for table, row_class in rows_of(figure.study).items():
        if table not in new or table not in kept:
            alone += [table] if table in new or table in kept else []
            continue
        a, b = (side[table].loc[side[table]["run"].isin(runs & kept_runs)] for side in (new, kept))
        columns = ["run", *column_types(row_class)]
        alone += [f"{table}.{column}" for column in columns if (column in a) != (column in b)]
        measured = [column for column in columns if column in a and column in b]
        if {*row_class.keys} <= {*measured}:
            tiny += [
                f"{table}.{column}" for column in measured if table_diff.is_rounding(b[column])
            ]
            parts.append(
                table_diff.compare(a[measured], b[measured], row_class).assign(table=table)
            )
    compared = pd.concat(parts, ignore_index=True)
    verdicts = figure.judge(new).merge(kept_figure.claims(), on="claim", suffixes=("", "_kept"))
    unequal = [
        {"table": "runs", "where": f"{run}: {'made' if run in runs else 'kept'} alone"}
        for run in sorted(runs ^ kept_runs)
    ] + [
        {"table": "claims", "column": row.claim, "where": f"{row.verdict} and {row.verdict_kept}"}
        for row in verdicts.itertuples()
        if row.verdict != row.verdict_kept
    ]
    beyond = compared[compared["beyond"].astype(int) > 0]
    lines = pd.concat([pd.DataFrame(unequal, columns=beyond.columns), beyond], ignore_index=True)
    listed = ", ".join(alone[:MOST_NAMED])
    listed += f" and {len(alone) - MOST_NAMED} more" if len(alone) > MOST_NAMED else ""
    not_compared = f"on one side alone, and not compared: {listed}" if alone else ""
    errors = f"rounding errors, compared by their size alone: {', '.join(tiny)}" if tiny else ""
    notes = [*filter(None, (stale_note(figure.runs), not_compared, errors))]
    lines.attrs = {"notes": notes, "alike": table_diff.alike(compared)}
    return lines


def compare_seeds(figure: Figure, reference: Path) -> tuple[str, bool] | None:
    """Test a figure of another seed than the reference's; return the result and if they differ.

    The result is a text. None is returned if the reference lacks the figure, or the user a run.
    """
    kept = KeptFigure.of(reference / figure.scale / figure.figure)
    if not kept.folder.exists() or not all(run.is_complete() for run in figure.runs):
        return None
    classes = rows_of(figure.study)
    result = same_distribution.compared(figure.tables(), kept.tables(), classes)
    if result is None:
        return f"needs {same_distribution.FEWEST} replicates for each seed: not compared", False
    return str(result), result.differs


def _has_other_seed(figure: Figure) -> bool:
    """Return whether one other seed is all that was changed in a figure."""
    keys = {override.partition("=")[0] for override in figure.overrides}
    return keys == {"seed"} and len({run.config.seed for run in figure.runs}) == 1


def _show(name: str, lines: pd.DataFrame) -> None:
    """Print the lines of `compare` about a figure."""
    for note in lines.attrs["notes"]:
        print(f"{name}: note: {note}")
    kinds = lines["table"].map(lambda table: KINDS.get(table, "columns differ by more than chance"))
    counts = [f"{count} {kind}" for kind, count in kinds.value_counts(sort=False).items()]
    print(f"{name}: {', '.join(counts) or lines.attrs['alike']}")
    if len(lines):
        shown = lines[SHOWN].head(10).fillna("")
        print(shown.to_string(index=False, float_format="{:.3g}".format))


def main(arguments: list[str]) -> int:
    """Compare the named figures, or all, with the reference and print the differences.

    With another seed, the distributions are compared instead of the numbers. Returns the exit
    status. It is 1 if a figure differs: in a number or a distribution by more than chance, in a
    verdict, or in its runs. Otherwise it is 0. Figures that are not made, or not in the reference,
    are listed, but do not count as different. Raises InputError if an argument is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="runner compare",
        description="Say where your results differ from the reference by more than chance. The"
        " comparison uses the spread of the reference's replicates and its stated errors. With"
        " another seed (seed=1), a permutation test says whether the networks of both seeds could"
        " be from the same distribution.",
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="FIGURE | key=value",
        help="figures (default: all); scale=..., outputs=..., seed=...",
    )
    names, typed = named_figures(parser.parse_args(arguments).words)
    first = paper_figure((names or figure_names())[0], typed)
    require_readable(first.outputs)
    has_seed = any(word.startswith("seed=") for word in typed)
    differs, absent = False, dict[str, list[str]]()
    for name in names or figure_names():
        is_kept = (REFERENCE / first.scale / name).exists()
        lines = seeds = None
        if is_kept and has_seed and _has_other_seed(figure := paper_figure(name, typed)):
            seeds = compare_seeds(figure, REFERENCE)
        elif is_kept:
            lines = compare(name, typed, REFERENCE)
        if seeds is not None:
            print(f"{name} with {figure.overrides[0]}: {seeds[0]}")
            differs = differs or seeds[1]
        elif lines is not None:
            _show(name, lines)
            differs = differs or len(lines) > 0
        else:
            absent.setdefault("not made" if is_kept else "not in the reference", []).append(name)
    for why, names in absent.items():
        text = f"{why} at scale {first.scale}: {', '.join(names)}"
        print(fill(text, 100, break_on_hyphens=False))
    return int(differs)
