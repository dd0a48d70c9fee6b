"""The end of a sweep, or of many figures: one short table, and how to go on from there."""

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from runner.core.catalogue import folder_words, rows_of
from runner.core.errors import InputError
from runner.results import sweep_pictures
from runner.results.captions import repeated
from runner.results.preview import printed, summary_of
from runner.results.sweep_pictures import last
from runner.runs.inventory import find
from runner.runs.run import NAME, Run, load
from runner.runs.selection import differing, words

if TYPE_CHECKING:
    import runner.results.figure

MOST_LINES = 20
"""Of the table; `runs export` has all runs."""


def summary(figures: Sequence["runner.results.figure.Figure"]) -> str:
    """Return a table of figures, with the seconds of their runs and their verdicts, and totals."""
    verdicts, lines = ["holds", "fails", "undecided"], []
    for figure in figures:
        counts = pd.read_csv(figure.path("claims.csv"))["verdict"].value_counts()
        seconds = sum(run.provenance().get("seconds", 0) for run in figure.runs)
        line = {"figure": figure.name, "runs": len(figure.runs), "seconds": round(seconds)}
        lines.append(line | {verdict: counts.get(verdict, 0) for verdict in verdicts})
    table = pd.DataFrame(lines, columns=["figure", "runs", "seconds", *verdicts])
    totals = ", ".join(f"{table[verdict].sum()} {verdict}" for verdict in verdicts)
    return f"{table.to_string(index=False)}\nclaims: {totals}; {len(figures)} figures"


def ending(runs: Sequence[Run]) -> str:
    """Return what is said of the runs of a sweep: for each study the table of those that are
    complete, where they are, commands that go on from there, and the place of their picture.

    Draws the picture. Nothing is said of a study without complete runs.
    """
    studies = dict.fromkeys(sorted(run.config.study for run in runs if run.is_complete()))
    return "\n\n".join(
        _of_study([run for run in runs if run.config.study == study]) for study in studies
    )


def _of_study(ordered: list[Run]) -> str:
    """Say what the runs of one study came to, and how to go on; draw their picture."""
    runs = [run for run in ordered if run.is_complete()]
    study, folder = runs[0].config.study, runs[0].folder.parent
    table, count = last_numbers(runs, MOST_LINES)
    left = len(runs) - count
    lines = [printed(table.head(MOST_LINES), study)]
    lines += [f"... and {left} more run{'s' * (left > 1)}"] * (left > 0)
    lines += [f"median of {each}" for each in [repeated(load(runs[:1]))] if each]
    number = f"{len(runs)} of {len(ordered)}" if len(runs) < len(ordered) else f"{len(runs)}"
    lines += ["", f"{number} run{'s' * (len(ordered) > 1)} of {study}: {folder}"]
    outputs = folder.parent.parent
    chosen = words(runs, find(outputs, study))
    commands = [["list", *chosen], ["export", *chosen, "--csv", f"{study}.csv"]]
    if len(runs) > 1:
        commands += [["diff", _hash8(runs[0]), _hash8(runs[-1])]]
    elsewhere = [] if str(outputs) == "outputs" else [f"outputs={outputs}"]
    typed = ["python", "-m", "runner", *folder_words(study), "runs"]
    lines += [f"  {shlex.join([*typed, *command, *elsewhere])}" for command in commands]
    try:
        lines += [str(sweep_pictures.write(sweep_pictures.chosen(ordered), outputs))]
    except (InputError, OSError) as error:
        lines += [f"no picture: {error}"]
    return "\n".join(lines)


def last_numbers(runs: Sequence[Run], most_lines: int) -> tuple[pd.DataFrame, int]:
    """Return one table of runs of a study, and of how many: those that give so many lines.

    Its columns are the parameters in which the runs differ, what the preview of a run shows
    where the run ends, and the hash at the end of its name. Of what a run repeats this is the
    median; of what it follows (layers, epochs, a grid) the last.
    """
    swept = differing(runs)
    parts: list[pd.DataFrame] = []
    for run in runs:
        if sum(map(len, parts)) >= most_lines:
            break
        ends = _ends(run).drop(columns=swept, errors="ignore")
        values = {name: _cell(getattr(run.config, name)) for name in swept}
        parts.append(pd.DataFrame(values, index=ends.index).join(ends).assign(run=_hash8(run)))
    return pd.concat(parts, ignore_index=True), len(parts)


def _hash8(run: Run) -> str:
    found = NAME.fullmatch(run.folder.name)
    return f"{found['hash']}{found['number'] or ''}" if found else run.folder.name


def _cell(value: Any) -> Any:
    return "+".join(map(str, value)) if isinstance(value, list) else value


def _ends(run: Run) -> pd.DataFrame:
    """Return the summary of a run, a line for each of its kinds (methods, targets, stages)."""
    summary = summary_of(run)
    keys = {key for row_class in rows_of(run.config.study).values() for key in row_class.keys}
    unneeded = {"run", "replicate", *vars(run.config)} - (keys - {"replicate"})
    summary = summary.drop(columns=[name for name in summary if name in unneeded])
    numbers = list(summary.select_dtypes("number"))
    kinds = [name for name in summary if name not in numbers]
    followed = [name for name in numbers if name in keys]
    summary = last(summary, kinds, followed)
    if by := [*kinds, *followed]:
        return summary.groupby(by, sort=False, dropna=False).median().reset_index()
    return summary.median().to_frame().T
