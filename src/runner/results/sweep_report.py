"""The report at the end of a sweep, or of many figures."""

from collections.abc import Sequence

import pandas as pd

from runner.core.errors import InputError
from runner.core.shell import command
from runner.results.figure import Figure
from runner.results.preview import printed
from runner.results.sweep_plot import write
from runner.results.sweeps import Sweep
from runner.runs.inventory import find, short_hash
from runner.runs.query import conditions_for
from runner.runs.run import Run

MOST_LINES = 20
"""Most lines of a table."""


def summary(drawn: Sequence[Figure]) -> str:
    """Return a table of figures as text, with totals.

    For each figure it has the number of runs, their seconds, and the number of claims with each
    verdict, then the typed parameters in which the figures differ. The paths of the pictures
    follow, or of many pictures the folder.
    """
    verdicts, lines = ["holds", "fails", "undecided"], []
    shared = set.intersection(*(set(figure.overrides) for figure in drawn)) if drawn else set()
    for figure in drawn:
        counts = pd.read_csv(figure.path("claims.csv"))["verdict"].value_counts()
        seconds = sum(run.provenance().get("seconds", 0) for run in figure.runs)
        line = [figure.name, len(figure.runs), round(seconds)]
        own = " ".join(word for word in figure.overrides if word not in shared)
        lines.append([*line, *(counts.get(verdict, 0) for verdict in verdicts), own])
    table = pd.DataFrame(lines, columns=["figure", "runs", "seconds", *verdicts, "with"])
    table = table if any(table["with"]) else table.drop(columns="with")
    totals = ", ".join(f"{table[verdict].sum()} {verdict}" for verdict in verdicts)
    paths = [figure.path("png") for figure in drawn]
    if len(paths) > MOST_LINES:
        paths = sorted({path.parent for path in paths})
    listed = "\n".join(map(str, paths))
    return f"{table.to_string(index=False)}\n{listed}\nclaims: {totals}; {len(drawn)} figures"


def ending(runs: Sequence[Run]) -> str:
    """Draw the picture of each study in a sweep; return the report at the end of the sweep.

    For each study with complete runs, the report has a table of the runs and their folder. Commands
    for the next steps and the path of the picture follow.
    """
    studies = sorted({run.config.study for run in runs if run.is_complete()})
    return "\n\n".join(_report([r for r in runs if r.config.study == study]) for study in studies)


def _report(runs: list[Run]) -> str:
    sweep = Sweep(runs)
    several = sweep.values("seed").nunique() if "seed" in sweep.swept else 0
    complete, study, folder = sweep.complete, sweep.study, sweep.complete[0].folder.parent
    table, outputs = sweep.table(over_seeds=several > 1), folder.parent.parent
    left = len(table) - MOST_LINES
    lines = [printed(table.head(MOST_LINES), study)]
    if left > 0:
        lines.append(f"... and {left} more line{'s' if left > 1 else ''}")
    repeated = "" if sweep.repeated.startswith("1 ") else sweep.repeated
    if several > 1:
        of = f" of medians of {repeated}" if repeated else ""
        lines.append(f"median and range over {several} seeds{of}")
    elif repeated:
        lines.append(f"median of {repeated}")
    number = f"{len(complete)} of {len(runs)}" if len(complete) < len(runs) else f"{len(runs)}"
    shared = [word for word in runs[0].typed if all(word in run.typed for run in runs)]
    what = " ".join([study, *shared])
    lines += ["", f"{number} run{'s' if len(runs) > 1 else ''} of {what}: {folder}"]
    where = conditions_for(runs, find(outputs, study))
    chosen = ["--study", study, *(word for each in where for word in ("--where", each))]
    try:
        picture, is_drawn = str(write(sweep.choose(), outputs)), True
    except (InputError, OSError) as error:
        place = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else error
        picture, is_drawn = f"no picture: {place}", False
    commands = [["list", *chosen], *([["plot", *chosen]] if is_drawn else [])]
    inside, step = sweep.inside() if several > 1 else ("", "")
    mean = ["--table", inside, "--mean"] if inside else []
    commands += [["plot", *chosen, "--x", step]] if step and is_drawn else []
    commands += [["export", *chosen, *mean, "--csv", f"{study}.csv"]]
    if len(complete) > 1:
        commands += [["diff", *(short_hash(complete[i].folder.name) for i in (0, -1))]]
    lines += [f"  {command('runs', *words, outputs=outputs)}" for words in commands]
    return "\n".join([*lines, picture])
