"""Many figures in one go: `make figures`.

Each figure is a command `python -m runner figure=...` of its own; what is complete and drawn is
left alone. At the end a summary says what each took and how its claims came out.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runner.cli.catalogue import figure_names
from runner.cli.composing import figure_runs
from runner.core.errors import InputError, nearest
from runner.results.figures import describe, make
from runner.runs.run import Run


def is_current(name: str, scale: str, runs: list[Run], folder: Path) -> bool:
    """Whether the figure in `folder` was drawn from exactly these runs as they are now."""
    files = [folder / f"{name}{end}" for end in (".png", ".pdf", ".csv", ".claims.csv")]
    try:
        about = json.loads((folder / f"{name}.provenance.json").read_text())
        keys = ("run", "tables", "stale")
        drawn = [[run[key] for key in keys] for run in about["runs"]]
        now = [[run[key] for key in keys] for run in map(describe, runs)]
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return False
    return drawn == now and about["scale"] == scale and all(map(Path.exists, files))


def redraw(name: str, typed: list[str]) -> None:
    """Draw a figure again from its complete runs. Raises InputError where one is missing."""
    settings, configs = figure_runs(name, typed)
    make(name, settings.scale, configs, settings.folder())


@dataclass(frozen=True)
class Outcome:
    """One line of the summary; seconds are those of this command."""

    figure: str
    outcome: str
    seconds: float
    holds: int = 0
    fails: int = 0
    undecided: int = 0


def make_figure(name: str, typed: list[str]) -> Outcome:
    """Bring one figure up to date. Raises InputError when the overrides do not compose."""
    start = time.monotonic()
    settings, configs = figure_runs(name, typed)
    folder = settings.folder() / "figures" / settings.scale
    outcome = "unchanged"
    runs = [Run(config, settings.folder()) for config in configs]
    if not is_current(name, settings.scale, runs, folder):
        command = [sys.executable, "-m", "runner", f"figure={name}", *typed]
        code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
        if code == 130:
            raise KeyboardInterrupt
        if code != 0:
            return Outcome(name, f"exit code {code}", time.monotonic() - start)
        outcome = "drawn"
    verdicts = pd.read_csv(folder / f"{name}.claims.csv")["verdict"].value_counts()
    counts = {verdict: int(verdicts.get(verdict, 0)) for verdict in ("holds", "fails", "undecided")}
    return Outcome(name, outcome, time.monotonic() - start, **counts)


def main(arguments: list[str]) -> int:
    """Make the figures that are named, or all; returns 0, or 1 when one of them failed.

    Raises InputError when a name or an override is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner figures",
        description="All figures, or those named; what is complete and drawn is left alone.",
    )
    parser.add_argument("words", nargs="*", metavar="FIGURE | key=value")
    parser.add_argument("--redraw", action="store_true", help="draw again and compute nothing")
    options = parser.parse_intermixed_args(arguments)
    typed = [word for word in options.words if "=" in word]
    names = [word for word in options.words if "=" not in word] or figure_names()
    for name in names:
        if name not in figure_names():
            raise InputError(f"figure {name} is not known: {nearest(name, figure_names())}")
    if options.redraw:
        for name in names:
            redraw(name, typed)
        return 0
    outcomes: list[Outcome] = []
    for index, name in enumerate(names, 1):
        print(f"[{index}/{len(names)}] {name}", file=sys.stderr, flush=True)
        outcomes.append(make_figure(name, typed))
    table = pd.DataFrame(outcomes)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.0f}"))
    totals = ", ".join(f"{table[key].sum()} {key}" for key in ("holds", "fails", "undecided"))
    print(f"{len(names)} figures in {table['seconds'].sum():.0f} s; claims: {totals}")
    return 0 if table["outcome"].isin(["drawn", "unchanged"]).all() else 1
