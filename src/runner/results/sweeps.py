"""The end of a sweep: its runs in one short table, where they are, and how to go on from there."""

import shlex
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.rooms import rows_of
from runner.results.figures import summary_of
from runner.results.variants import Variant, room_words
from runner.runs.inventory import find
from runner.runs.run import Run
from runner.runs.selection import differing, words

MOST_LINES = 20
"""Of the table; `runs export` has all runs."""


def ending(runs: Sequence[Run], outputs: Path, variant: Variant | None = None) -> str:
    """What is said of a sweep that has ended: for each study its table, where its runs are, and
    commands that go on from there; nothing where no run is complete.

    variant: the figure that it was for, whose numbers are told by its claims and need no table.
    """
    ordered = sorted(runs, key=lambda run: run.config.study)
    studies = [list(group) for _, group in groupby(ordered, lambda run: run.config.study)]
    texts = [_of_study(group, outputs, variant) for group in studies]
    return "\n\n".join(filter(None, texts))


def _of_study(runs: list[Run], outputs: Path, variant: Variant | None) -> str:
    complete = [run for run in runs if run.is_complete()]
    if not complete:
        return ""
    study = runs[0].config.study
    lines = [] if variant else [_table(complete), ""]
    count = str(len(runs)) if len(complete) == len(runs) else f"{len(complete)} of {len(runs)}"
    lines += [f"{count} run{'s' * (len(runs) > 1)} of {study}: {runs[0].folder.parent}"]
    chosen = words(runs, find(outputs, study))
    commands = [["runs", "list", *chosen]]
    if variant:
        commands += [["figures", variant.name, "--redraw", f"scale={variant.scale}"]]
    else:
        commands += [["runs", "export", *chosen, "--csv", f"{study}.csv"]]
    if len(complete) > 1 and not variant:
        commands += [["runs", "diff", _hash8(complete[0]), _hash8(complete[-1])]]
    elsewhere = [] if outputs == Path("outputs") else [f"outputs={outputs}"]
    typed = [
        shlex.join(["python", "-m", "runner", *room_words(study), *words, *elsewhere])
        for words in commands
    ]
    return "\n".join([*lines, *(f"  {text}" for text in typed)])


def _table(runs: Sequence[Run]) -> str:
    """The last numbers of the runs, or of the first of them where they are many."""
    table, count = last_numbers(runs, MOST_LINES)
    text = table.head(MOST_LINES).to_string(index=False, na_rep="", float_format="{:.4g}".format)
    left = len(runs) - count
    return f"{text}\n... and {left} more run{'s' * (left > 1)}" if left else text


def last_numbers(runs: Sequence[Run], most_lines: int) -> tuple[pd.DataFrame, int]:
    """One table of complete runs of one study, and of how many: those that give so many lines.

    Its columns are the parameters in which the runs differ, what the quick look at a run shows
    where the run ends, and the hash at the end of its name. What a run repeats is averaged; of what
    it follows (layers, epochs, a grid) the last is taken.
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
    return run.folder.name.rpartition("-")[2]


def _cell(value: Any) -> Any:
    return "+".join(map(str, value)) if isinstance(value, list) else value


def _ends(run: Run) -> pd.DataFrame:
    """The summary of a run, a line for each of its kinds (methods, targets, stages)."""
    summary = summary_of(run)
    keys = {key for row_class in rows_of(run.config.study).values() for key in row_class.keys}
    unneeded = {"run", "replicate", *vars(run.config)} - (keys - {"replicate"})
    summary = summary.drop(columns=[name for name in summary if name in unneeded])
    numbers = list(summary.select_dtypes("number"))
    kinds = [name for name in summary if name not in numbers]
    followed = [name for name in numbers if name in keys]
    for name in followed:
        last = summary.groupby(kinds, dropna=False)[name].transform("max") if kinds else None
        ends = summary[name] == (summary[name].max() if last is None else last)
        summary = summary[ends | summary[name].isna()]
    if by := [*kinds, *followed]:
        return summary.groupby(by, sort=False, dropna=False).mean().reset_index()
    return summary.mean().to_frame().T
