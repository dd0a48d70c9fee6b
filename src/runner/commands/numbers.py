"""Measured numbers of runs: columns of `runs list`, the order of its runs, the end of one run."""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pandas as pd

from runner.core.catalogue import natural_order
from runner.core.errors import InputError, nearest
from runner.runs.inventory import RunInfo
from runner.runs.query import listing
from runner.runs.run import Run


def numbers(name: str, infos: Sequence[RunInfo], methods: Sequence[str] = ()
            ) -> tuple[dict[str, dict[Path, float]], str]:  # fmt: skip
    """Return a measured number of each complete run, by column and the run's folder, and a note.

    The numbers are medians at the end of the run. If runs have several methods, each method has a
    column, `test_mse (SGD)`. The note says what the medians are over. name: the measurement.
    methods: only numbers of these. Raises InputError if no run has the measurement, or a method.
    """
    from runner.results.sweeps import Sweep  # late: it imports matplotlib

    by_study: dict[str, list[Run]] = {}
    for info in infos:
        if info.status == "complete":
            by_study.setdefault(info.study, []).append(info.run)
    known, values, parts = set[str](), dict[str, dict[Path, float]](), dict[str, None]()
    sweeps = [Sweep(runs) for runs in by_study.values()]
    require_methods(methods, [sweep.only(methods) for sweep in sweeps])
    for sweep in sweeps:
        folder_of = {run.key: run.folder for run in sweep.runs}
        known |= (of_study := sweep.numbers(set())).keys()
        if name in of_study:
            points = sweep.points([name], [], [])
            parts |= dict.fromkeys(filter(None, points["at"].unique()))
            for line, rows in points.groupby("line", sort=False):
                column = f"{name} ({line})" if points["line"].nunique() > 1 else name
                medians = rows.groupby("run")["value"].median()
                of_line = {folder_of[key]: float(value) for key, value in medians.items()}
                values[column] = values.get(column, {}) | of_line
    if known and not values:
        raise InputError(f"no run measures {name}: {nearest(name, known.union(listing(infos)))}")
    return values, ", ".join([f"{name}: median over replicates", *parts])


def require_methods(methods: Sequence[str], known: Sequence[set[str]]) -> None:
    """Raise InputError if there are methods to choose from, but not one of these.

    methods: the names that the user gave. known: the names of each study's methods.
    """
    names = set[str]().union(*known)
    for method in methods:
        if known and method not in names:
            hint = nearest(method, names) if names else "these runs have no methods"
            raise InputError(f"--method {method}: no run has it: {hint}")


def ordered(
    sort: str, infos: Sequence[RunInfo], methods: Sequence[str] = ()
) -> tuple[list[RunInfo], dict[str, dict[Path, float]], str]:
    """Return runs by the values of a column, the column if it is measured, and a note on it.

    Numbers come first, then texts in natural order, then unknown values. sort: a column of the
    list, a parameter or a measurement; of a measurement of several methods, the name of a column:
    `test_mse (SGD)`. With `-` before it, the largest comes first. methods: as in `numbers`. Raises
    InputError if it is unknown which of them is meant.
    """
    name, rows, shown, note = (
        sort.removeprefix("-"),
        listing(infos),
        dict[str, dict[Path, float]](),
        "",
    )
    if name in rows:
        values = dict(zip(rows["folder"].map(Path), rows[name], strict=True))
    else:
        columns, note = numbers(re.sub(r" \(.*\)$", "", name), infos, methods)
        if columns and name not in columns:
            listed = ", ".join(f"--sort '{sort[: -len(name)]}{column}'" for column in columns)
            raise InputError(f"--sort {sort}: runs have several methods, so choose from {listed}")
        values = columns.get(name, {})
        shown = {name: values} if columns else {}
    kinds: list[list[RunInfo]] = [[], [], []]
    for info in infos:
        value = values.get(info.folder)
        kinds[2 if pd.isna(value) else isinstance(value, str)].append(info)
    is_down = name != sort
    kinds[0].sort(key=lambda info: values[info.folder], reverse=is_down)
    kinds[1].sort(key=lambda info: natural_order(values[info.folder]), reverse=is_down)
    return [*chain(*kinds)], shown, note


def last_numbers(run: Run) -> str:
    """Return as text the headline numbers of a complete run: a line for each method, at its end."""
    from runner.results.preview import summary_of  # late: they import matplotlib
    from runner.results.sweeps import Sweep

    return summary_of(run, Sweep([run]).table().drop(columns="run"))
