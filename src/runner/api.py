"""The program as a library: what its command does, for scripts and notebooks.

The functions stand in the package itself: `import runner; runner.run("rank_collapse", depth=32)`.
Parameters and settings are keywords, as typed on the command line; wrong ones raise InputError,
runs that fail RunFailed. Runs are kept in `<outputs>/runs` and found again there: what is complete
is not computed again. A bar shows how far a run is, on a terminal or in a notebook; nothing is
printed, and the backend of matplotlib stays as it is.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import matplotlib.figure
import pandas as pd

from runner.cli.catalogue import headline
from runner.cli.composing import FigureSweep, compose_figure, compose_study
from runner.cli.launching import launch
from runner.cli.overrides import as_overrides
from runner.cli.sweeping import launcher_of
from runner.cli.working import carry_out, run_study
from runner.core import rooms
from runner.core.errors import InputError
from runner.core.studies import StudyConfig
from runner.publish import reference
from runner.results import claims, figures
from runner.results.captions import caption
from runner.results.claims import Tables
from runner.results.style import drawn_in
from runner.runs import inventory
from runner.runs import run as stored
from runner.runs.run import Run

__all__ = ["PaperFigure", "add_room", "figure", "load", "run", "sweep", "tables"]


def add_room(folder: str | Path) -> None:
    """Make the studies in a folder known, as `--config-dir <folder>` does: see `core.rooms`.

    Raises InputError when there is no such folder, or its name is another module's.
    """
    rooms.add_room(Path(folder))


def run(study: str, **keys: Any) -> Run:
    """Compute a study at one configuration, or find it complete; returns the run.

    keys: its parameters (`depth=32`), and settings (`scale="smoke"`, `outputs="elsewhere"`,
    `device="cpu"`, `force=True`); `python -m runner study=<name> --help` lists them. The tables are
    `run.tables()`, data frames by name; `run.folder` is where they are kept.

    Raises InputError when a key or a value is wrong, RunFailed when the study raises.
    """
    _require_one(study, keys)
    _, (job, *more) = compose_study(study, as_overrides(keys))
    if more:
        raise InputError("a list of values makes several runs: runner.sweep")
    return run_study(job)


def _require_one(study: str, keys: Mapping[str, Any]) -> None:
    """Raise InputError where a list stands for a parameter that is none."""
    known = {item.name: item for item in fields(rooms.configs().get(study, StudyConfig))}
    for name, value in keys.items():
        several = isinstance(value, list | tuple | range)
        if several and name in known and "list" not in str(known[name].type):
            raise InputError(
                f"{name} is one value in a run; a list is a sweep:"
                f' runner.sweep("{study}", {name}={list(value)})'
            )


def sweep(study: str, n_jobs: int = 1, **keys: Any) -> list[Run]:
    """Compute a study at all combinations of the values that are given in lists; returns the runs.

    keys: as of `run`, where a list is a choice of values: `depth=[8, 16]`. Of a parameter that is a
    list itself, a list of lists. n_jobs: runs computed side by side, in processes of their own.

    Raises InputError before anything is computed, RunFailed at the end when runs failed.
    """
    whole, jobs = compose_study(study, [*as_overrides(keys, choices=True), *_launcher(n_jobs)])
    launch(launcher_of(whole, carry_out), jobs)
    return [job.run for job in jobs]


def load(folder: str | Path) -> Run:
    """The run that is kept in a folder, `<outputs>/runs/<study>/<name>`.

    Raises InputError when there is none, or it is of a study or a version that is no more.
    """
    folder = Path(folder)
    kept = Run(inventory.read_config(folder), folder.parent.parent.parent)
    if kept.folder.name != folder.name:
        raise InputError(f"{folder}: config.yaml describes the run {kept.folder.name}")
    return kept


def tables(runs: Run | Iterable[Run]) -> dict[str, pd.DataFrame]:
    """The tables of complete runs by name, those of one name joined, with the runs' parameters.

    Raises InputError when a run is missing or damaged.
    """
    return stored.load([runs] if isinstance(runs, Run) else runs)


def figure(name: str, **keys: Any) -> "PaperFigure":
    """A figure of a paper: its runs, its drawing and its claims. Computes nothing.

    keys: settings (`scale="smoke"`), and parameters that are other than the figure's own.

    Raises InputError when there is no such figure, or a key or a value is wrong.
    """
    return PaperFigure(compose_figure(name, as_overrides(keys)), tuple(as_overrides(keys)))


@dataclass(frozen=True)
class PaperFigure:
    """A figure at a scale, as `runner.figure` gives it."""

    sweep: FigureSweep
    overrides: tuple[str, ...]

    def __repr__(self) -> str:
        variant = self.sweep.variant
        return f"<figure {variant.name} at scale {variant.scale}: {len(variant.runs)} runs>"

    def _repr_png_(self) -> bytes | None:
        """What a notebook shows: the picture of its runs if they are complete, else that of the
        reference, which its header says; None where that has none."""
        variant = self.sweep.variant
        if all(run.is_complete() for run in variant.runs):
            return self.draw()._repr_png_()
        kept = reference.REFERENCE / variant.scale / variant.figure
        if variant.is_canonical and kept.exists():
            return reference.drawn_png(kept, note="from the reference")
        return None

    @property
    def runs(self) -> tuple[Run, ...]:
        """The runs that it draws, complete or not."""
        return self.sweep.variant.runs

    def compute(self, n_jobs: int = 1) -> dict[str, pd.DataFrame]:
        """Compute those of its runs that are not complete; returns the tables of all.

        n_jobs: as of `runner.sweep`. Raises RunFailed at the end when runs failed.
        """
        whole = self.sweep.whole
        if n_jobs != 1:
            words = [*self.overrides, *_launcher(n_jobs)]
            whole = compose_figure(self.sweep.variant.figure, words).whole
        launch(launcher_of(whole, carry_out), self.sweep.jobs)
        return self.tables()

    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of its runs. Raises InputError when one is missing: `compute()` first."""
        return stored.load(self.runs)

    def reference(self) -> dict[str, pd.DataFrame]:
        """The tables kept with the program's repository; a wheel has those that pictures at `quick`
        need, in six digits. Raises InputError where there are none."""
        variant = self.sweep.variant
        return reference.read_tables(reference.REFERENCE / variant.scale / variant.figure)

    def draw(self, tables: Tables | None = None, style: str = "screen") -> matplotlib.figure.Figure:
        """The picture, of these tables or of its own runs; style: `screen` or `paper`.

        Raises InputError as `tables` does, and when there is no such style.
        """
        return self._drawn(tables, style)[0]

    def numbers(self, tables: Tables | None = None) -> pd.DataFrame:
        """The numbers drawn, as `<figure>.csv` holds them; raises InputError as `tables` does."""
        return self._drawn(tables, "screen")[1]

    def caption(self, tables: Tables | None = None) -> str:
        """What a paper would print below the picture; raises InputError as `tables` does."""
        variant = self.sweep.variant
        said = figures.drawing_of(variant.figure, variant.study).said
        drawn = self.tables() if tables is None else tables
        what, overrides = headline("figure", variant.figure), variant.overrides
        return caption(what, said, variant.study, drawn, variant.scale, overrides)

    def judge(self, tables: Tables | None = None) -> pd.DataFrame:
        """One row per claim: statement, verdict, what was measured and what was expected.

        Of these tables, or of its own runs; raises InputError as `tables` does.
        """
        variant = self.sweep.variant
        made = claims.claims_of(variant.figure, variant.study)
        return claims.judge(variant.name, made, self.tables() if tables is None else tables)

    def _drawn(
        self, tables: Tables | None, style: str
    ) -> tuple[matplotlib.figure.Figure, pd.DataFrame]:
        variant = self.sweep.variant
        tables = self.tables() if tables is None else tables
        about = {"scale": variant.scale, "headline": headline("figure", variant.figure)}
        about["overrides"] = variant.overrides
        above = figures.header_of(variant.figure, variant.study, tables, **about)
        with drawn_in(style):
            return figures.drawn(variant.figure, variant.study, tables, style, above)


def _launcher(n_jobs: int) -> list[str]:
    """The overrides for runs side by side."""
    if n_jobs == 1:
        return []
    return ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={n_jobs}"]
