"""All figures in one go: `make figures`.

python scripts/figures.py [scale=smoke ...]

Each figure is a command `python -m runner figure=...` of its own; what is complete and drawn is
left alone. At the end a summary says what each took and how its claims came out.
"""

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runner.configs import figure_names
from runner.errors import InputError
from runner.figures import describe
from runner.runs import Run
from runner.sweeps import figure_runs


def is_current(name: str, scale: str, runs: list[Run], folder: Path) -> bool:
    """Whether the figure in `folder` was drawn from exactly these runs as they are now."""
    files = [folder / f"{name}{end}" for end in (".png", ".pdf", ".csv", ".claims.csv")]
    try:
        about = json.loads((folder / f"{name}.provenance.json").read_text())
        drawn = [(run["run"], run["tables"]) for run in about["runs"]]
        now = [(found["run"], found["tables"]) for found in map(describe, runs)]
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return False
    return drawn == now and about["scale"] == scale and all(map(Path.exists, files))


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
    scale, outputs, configs = figure_runs(name, typed)
    folder = Path(outputs) / "figures" / scale
    outcome = "unchanged"
    if not is_current(name, scale, [Run(config, Path(outputs)) for config in configs], folder):
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


def main(typed: list[str]) -> int:
    """Make all figures; returns 0, 1 (a figure failed), 2 (wrong input) or 130 (interrupted)."""
    names = figure_names()
    outcomes: list[Outcome] = []
    try:
        for index, name in enumerate(names, 1):
            print(f"[{index}/{len(names)}] {name}", file=sys.stderr, flush=True)
            outcomes.append(make_figure(name, typed))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on where it stopped", file=sys.stderr)
        return 130
    table = pd.DataFrame(outcomes)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.0f}"))
    totals = ", ".join(f"{table[key].sum()} {key}" for key in ("holds", "fails", "undecided"))
    print(f"{len(names)} figures in {table['seconds'].sum():.0f} s; claims: {totals}")
    return 0 if table["outcome"].isin(["drawn", "unchanged"]).all() else 1
