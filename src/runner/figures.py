"""What a figure is: a sweep of runs, a drawing of their tables, and claims over them.

`python -m runner.figures fig4 [scale=smoke ...]` draws a figure again without computing anything.

The drawing of a figure is the entry of its name in FIGURES of its room's `figures.py`, its claims
are the entry in CLAIMS of its room's `claims.py`.
"""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from runner import claims
from runner.claims import Tables
from runner.errors import InputError
from runner.runs import Run, load
from runner.studies import StudyConfig, room_of
from runner.tables import write_atomically

Drawing = Callable[[Tables], tuple[Figure, pd.DataFrame]]
"""From tables to the picture and the table of the numbers drawn in it."""

STYLE = {
    "figure.dpi": 110,
    "savefig.dpi": 200,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.labelsize": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "runner",
    "pdf.fonttype": 42,
}
"""The drawing style of all figures."""


def make(name: str, scale: str, configs: list[StudyConfig], outputs: Path) -> pd.DataFrame:
    """Draw the figure of exactly these runs, judge its claims, write both and print the claims.

    Writes what `publish` writes and `<name>.provenance.json` under `<outputs>/figures/<scale>/`;
    returns the claims. Raises InputError when a run is missing or damaged, or the folder cannot be
    written.
    """
    runs = [Run(config, outputs) for config in configs]
    try:
        tables = load(runs)
    except InputError as error:
        raise InputError(f"{error}\nThis computes them: make {name} SCALE={scale}") from error
    folder = outputs / "figures" / scale
    verdicts = publish(name, configs[0].study, tables, folder)
    about = {"figure": name, "scale": scale, "command": f"make {name} SCALE={scale}"}
    about["runs"] = [describe(run) for run in runs]
    about["seconds"] = round(sum(run["seconds"] for run in about["runs"]), 3)
    write_atomically(folder / f"{name}.provenance.json", json.dumps(about, indent=2).encode())
    print(f"{name} at scale {scale}: {folder / name}.png (.pdf, .csv, .claims.csv)")
    print(claims.as_text(verdicts))
    return verdicts


def publish(name: str, study: str, tables: Tables, folder: Path) -> pd.DataFrame:
    """Draw a figure from its tables and judge its claims; returns the claims.

    Writes `<name>.png`, `.pdf`, `.csv` (the numbers drawn) and `.claims.csv` into `folder`. Raises
    InputError when it cannot be written.
    """
    verdicts = judged(name, study, tables)
    with plt.rc_context(STYLE):
        figure, drawn = drawn_figure(name, study, tables)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        save(figure, folder / name)
        write_atomically(folder / f"{name}.csv", drawn.to_csv(index=False).encode())
        write_atomically(folder / f"{name}.claims.csv", verdicts.to_csv(index=False).encode())
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror})") from error
    return verdicts


def drawn_figure(name: str, study: str, tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """The picture of a figure and the numbers drawn in it; the caller sets STYLE and closes it."""
    return _registered(name, study)[0](tables)


def judged(name: str, study: str, tables: Tables) -> pd.DataFrame:
    """The figure's claims over these tables, as `claims.judge` returns them."""
    return claims.judge(name, _registered(name, study)[1], tables)


def describe(run: Run) -> dict[str, Any]:
    """What a figure's provenance says of one of its runs: name, seconds, machine, code."""
    about = json.loads((run.folder / "provenance.json").read_text())
    kept = ("seconds", "commit", "dirty", "device_name", "threads", "versions")
    tables = {name: table["sha256"] for name, table in run.result["tables"].items()}
    return {"run": str(run), **{key: about.get(key) for key in kept}, "tables": tables}


def _registered(name: str, study: str) -> tuple[Drawing, list[claims.Claim]]:
    room = room_of(study)
    drawings = importlib.import_module(f"runner.{room}.figures").FIGURES
    room_claims = importlib.import_module(f"runner.{room}.claims").CLAIMS
    if name not in drawings or name not in room_claims:
        raise InputError(f"figure={name}: runner/{room} has no drawing and claims of that name")
    return drawings[name], room_claims[name]


def save(figure: Figure, path: Path) -> None:
    """Write `path`.png and `path`.pdf without dates, so that equal tables give equal files."""
    figure.savefig(path.with_name(path.name + ".png"), metadata={"Software": None})
    figure.savefig(path.with_name(path.name + ".pdf"), metadata={"CreationDate": None})
    plt.close(figure)


def overview(run: Run) -> str:
    """Draw the quick look `overview.png` of a complete run and return its summary as text.

    The drawing is the entry of the study in OVERVIEWS of its room's `figures.py`.
    """
    overviews = importlib.import_module(f"runner.{room_of(run.config.study)}.figures").OVERVIEWS
    with plt.rc_context(STYLE):
        figure, summary = overviews[run.config.study](load([run]))
        figure.savefig(run.folder / "overview.png", metadata={"Software": None})
        plt.close(figure)
    return summary.to_string(index=False, float_format=lambda value: f"{value:.4g}")


def main() -> int:
    """Draw a figure again: `python -m runner.figures <figure> [overrides]`."""
    from runner.sweeps import figure_runs

    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print("usage: python -m runner.figures <figure> [scale=smoke ...]", file=sys.stderr)
        return 2
    try:
        scale, outputs, configs = figure_runs(sys.argv[1], sys.argv[2:])
        make(sys.argv[1], scale, configs, Path(outputs).expanduser())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
