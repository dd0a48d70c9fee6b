"""The program as a library, for scripts and notebooks.

The package has its functions: `import runner; runner.run("rank_collapse", depth=32)`. Parameters
and settings are keywords with the names of the command line. Wrong keywords raise InputError,
failed runs RunFailed. Runs are stored in `<outputs>/runs`. A complete run is not computed again. A
bar shows the progress of a run on a terminal or in a notebook. Nothing is printed, and the backend
of matplotlib does not change.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import matplotlib.figure
import pandas as pd

from runner.commands.kept import KeptFigure
from runner.compose.composing import hydra_ready, overrides_of
from runner.compose.launching import launch
from runner.compose.orders import Order, compose_order, paper_figure
from runner.core import catalogue
from runner.core.errors import InputError, RunFailed
from runner.results import figure as results
from runner.results import sweep_plot
from runner.results.style import drawn_in
from runner.runs import run as stored
from runner.runs.provenance import REFERENCE
from runner.runs.run import Run

__all__ = ["Figure", "add_studies", "figure", "load", "plot", "run", "sweep", "tables"]


def add_studies(folder: str | Path) -> None:
    """Make the studies in a folder known, as `--config-dir <folder>` does.

    Raises InputError when there is no such folder, or its name is another module's.
    """
    catalogue.add_studies(folder)


def run(study: str, **keys: Any) -> Run:
    """Compute a study at one configuration, or find it complete; return the run.

    keys: its parameters (`depth=32`), and settings (`scale="smoke"`, `outputs="elsewhere"`,
    `device="cpu"`, `force=True`); `runner study=<name> --help` lists them. The tables are
    `run.tables()`, data frames by name; `run.folder` is where they are kept.

    Raises InputError when a key or a value is wrong, RunFailed when the study raises.
    """
    _require_one(study, keys)
    return _computed([f"study={study}", *overrides_of(keys)]).jobs[0].run


def _require_one(study: str, keys: Mapping[str, Any]) -> None:
    """Raise InputError where a list is given for a parameter that is none, or a figure is meant."""
    if "figure" in keys:
        raise InputError("runner.figure makes figures")
    known = {item.name: item for item in fields(catalogue.config_of(study))}
    for name, value in keys.items():
        several = isinstance(value, list | tuple | range)
        if several and name in known and "list" not in str(known[name].type):
            raise InputError(
                f"{name} is one value in a run; a list is a sweep:"
                f' runner.sweep("{study}", {name}={list(value)})'
            )


def sweep(study: str, n_jobs: int = 1, **keys: Any) -> list[Run]:
    """Compute a study at all combinations of the values that are given in lists; return the runs.

    keys: as of `run`, where a list is a choice of values: `depth=[8, 16]`. Of a parameter that is a
    list itself, a list of lists. n_jobs: runs computed side by side, in separate processes.

    Raises InputError before anything is computed, RunFailed at the end when runs failed.
    """
    if "figure" in keys:
        raise InputError("runner.figure makes figures")
    words = [f"study={study}", *overrides_of(keys, choices=True), *_launcher(n_jobs)]
    return [job.run for job in _computed(words, multirun=True).jobs]


def load(folder: str | Path) -> Run:
    """Return the run that is kept in a folder, `<outputs>/runs/<study>/<name>`.

    Raises InputError when there is none, or its study or version no longer exists.
    """
    folder = Path(folder).resolve()
    kept = Run(stored.read_config(folder), folder.parent.parent.parent)
    if kept.folder != folder:
        raise InputError(f"{folder}: config.yaml describes the run {kept.folder.name}")
    return kept


def tables(runs: Run | Iterable[Run]) -> dict[str, pd.DataFrame]:
    """Return the tables of complete runs by name, with the runs' parameters, joined.

    Raises InputError when a run is missing or damaged.
    """
    return stored.load([runs] if isinstance(runs, Run) else runs)


def plot(
    runs: Run | Iterable[Run],
    x: str | None = None,
    y: str | Iterable[str] = (),
    color: str | None = None,
) -> matplotlib.figure.Figure:
    """Draw a picture of numbers of runs of one study against a parameter.

    x, color: a parameter, or a column that a table follows (`"layer"`, `"method"`); y: a column of
    numbers, or several; `"training.rank"` where two tables have it. What is not given is chosen as
    at the end of a sweep. Runs that are not complete are counted below the header.

    Raises InputError when a name does not exist, no run is complete, or the runs differ in more
    parameters than a picture has room for.
    """
    runs, y = [runs] if isinstance(runs, Run) else runs, [y] if isinstance(y, str) else list(y)
    with drawn_in("screen"):
        return sweep_plot.draw(sweep_plot.Sweep(runs).choose(x, y, color))


def figure(name: str, **keys: Any) -> "Figure":
    """Return a figure of a paper: its runs, its drawing and its claims. Computes nothing.

    keys: settings (`scale="smoke"`), and parameters that are other than the figure's own.

    Raises InputError when there is no such figure, or a key or a value is wrong.
    """
    words = overrides_of(keys)
    made = paper_figure(name, words)
    known = {item.name: getattr(made, item.name) for item in fields(made)}
    return Figure(**known, words=(f"figure={name}", *words))


@dataclass(frozen=True, repr=False)
class Figure(results.Figure):
    """A figure at a scale, which can be computed, or shown from the reference."""

    words: tuple[str, ...] = ()
    """The words of the command that makes it."""

    def _repr_png_(self) -> bytes | None:
        """Return what a notebook shows: the picture of its runs if they are complete, else that of
        the reference, which its header says; None where that has none."""
        if all(run.is_complete() for run in self.runs):
            return self.png()
        if self.is_canonical and self._kept.folder.exists():
            return self._kept.png("from the reference")
        return None

    def compute(self, n_jobs: int = 1) -> dict[str, pd.DataFrame]:
        """Compute the runs that are not complete; return the tables of all.

        n_jobs: as of `runner.sweep`. Raises RunFailed at the end when runs failed.
        """
        _computed([*self.words, *_launcher(n_jobs)])
        return self.tables()

    def reference(self) -> dict[str, pd.DataFrame]:
        """Return the tables kept with the program; a wheel has those that pictures at `quick` need,
        in six digits. Raises InputError where there are none."""
        if not self._kept.folder.is_dir():
            raise InputError(f"{self.figure}: nothing is kept of it at scale={self.scale}")
        return self._kept.tables()

    @property
    def _kept(self) -> KeptFigure:
        """Return the same figure as the reference has it."""
        return KeptFigure.of(REFERENCE / self.scale / self.figure)


def _computed(words: list[str], multirun: bool = False) -> Order:
    """Compose and launch; return the order. Raises RunFailed when runs failed."""
    with hydra_ready(words):
        order = compose_order(words, multirun)
        failures = launch(order)
    if failures:
        raise RunFailed("\n".join(failures))
    return order


def _launcher(n_jobs: int) -> list[str]:
    """Return the overrides for runs side by side."""
    if n_jobs == 1:
        return []
    return ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={n_jobs}"]
