"""The program as a library, for scripts and notebooks.

The package `runner` has the functions of this module: `import runner; runner.run("rank_collapse",
depth=32)`. Parameters and settings are keywords with the names of the command line. Wrong keywords
raise InputError, failed runs RunFailed. Runs are stored in `<outputs>/runs`. A complete run is not
computed again. A bar shows the progress of a run on a terminal or in a notebook. Nothing
else is printed, and the backend of matplotlib does not change.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import matplotlib.figure
import pandas as pd

from runner.commands.kept import KeptFigure
from runner.compose.composing import hydra_ready, overrides_of
from runner.compose.launching import launch
from runner.compose.orders import Order, compose_order, paper_figure
from runner.core import catalogue, user_functions
from runner.core.errors import InputError, RunFailed
from runner.core.settings import Settings
from runner.results import figure as results
from runner.results import sweep_plot
from runner.results.formats import drawn_in
from runner.results.sweeps import Sweep
from runner.runs import own_files
from runner.runs import run as stored
from runner.runs.provenance import REFERENCE, code_of
from runner.runs.run import Run

__all__ = [
    "Figure", "add_studies", "figure", "load", "own_file", "plot", "register", "run", "sweep",
    "tables",
]  # fmt: skip

Method = TypeVar("Method", bound=Callable[..., Any])


def add_studies(folder: str | Path) -> None:
    """Add the studies in a folder, as the argument `--config-dir <folder>` does.

    Raises InputError if the folder does not exist. Raises it also for a folder with studies if its
    name is no valid package name, or is the name of another module.
    """
    catalogue.add_studies(folder)


def register(kind: str, name: str) -> Callable[[Method], Method]:
    """Return a decorator that gives your function or class a name, which parameters then accept.

        @runner.register("normalization", "centered")
        def centered(Z): ...

    kind: `normalization`, `optimizer`, `activation`, `init` (weights and biases of a layer), `law`
    (weights of `rank_chain`) or `architecture` (of `breaking_bn`). The page "Your own
    normalization, optimizer or architecture" has the arguments of each kind, and an example of
    these three. The function must be in a file that Python can import, such as `methods.py` in a
    folder of `--config-dir`, which the command imports.

    Raises InputError for another kind, for a name that is taken or is not an identifier, and for a
    function in a script, in a notebook or in another function.
    """

    def decorate(method: Method) -> Method:
        """Register the method under its name; return it."""
        user_functions.register(kind, name, method)
        return method

    return decorate


def own_file(name: str) -> Path:
    """Return the path of a file next to your module; its content then counts as code of the module.

        directions = np.load(runner.own_file("directions.npy"))

    If the file changes, runs with the module's methods become stale. name: the name of the file,
    written out, or its path from the folder of the module.

    Raises InputError if there is no such file, or the name is not written out.
    """
    frame: FrameType | None = sys._getframe()
    while frame and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    path, is_changed = own_files.handed_out(name, frame.f_globals if frame else {})
    if is_changed:
        code_of.cache_clear()
    return path


def run(study: str, **keys: Any) -> Run:
    """Compute one run of a study, or read it if it is complete; return the run.

    keys: parameters (`depth=32`), and settings (`scale="smoke"`, `outputs="elsewhere"`,
    `device="cpu"`, `force=True`). The command `runner study=<name> --help all` lists them. The
    run's method `tables()` returns its tables as data frames by name. Its `folder` has the files.

    Raises InputError if a key or a value is wrong, and RunFailed if the study raises an exception.
    """
    _require_one(study, keys)
    return _computed([f"study={study}", *overrides_of(keys)]).jobs[0].run


def _require_one(study: str, keys: Mapping[str, Any]) -> None:
    """Raise InputError for several values of a parameter that has one, or for the key `figure`."""
    if "figure" in keys:
        raise InputError("runner.figure makes figures")
    known = {item.name for item in fields(catalogue.config_of(study))}
    for name, value in keys.items():
        if name in known and _is_several(study, name, value):
            raise InputError(
                f"{name} has one value in a run; for a list, use a sweep:"
                f' runner.sweep("{study}", {name}={list(value)})'
            )


def _is_several(study: str, name: str, value: Any) -> bool:
    """Return whether a value of a parameter or setting is a list of several values of it."""
    kinds = [catalogue.config_of(study), Settings]
    types = {item.name: str(item.type) for kind in kinds for item in fields(kind)}
    value = value.tolist() if hasattr(value, "tolist") else value  # from numpy or torch
    several = isinstance(value, list | tuple | range)
    if several and "list" in types.get(name, ""):  # then a list of lists is several values
        return len(value) > 0 and all(isinstance(each, list | tuple | range) for each in value)
    return several


def sweep(study: str, n_jobs: int = 1, **keys: Any) -> list[Run]:
    """Compute a study for all combinations of several values of its parameters; return the runs.

    keys: parameters and settings, as in `run`. A list means a run for each element: `depth=[8,
    16]`. A parameter that is a list itself needs a list of lists. n_jobs: how many runs are
    computed side by side, in separate processes.

    Raises InputError before anything is computed if a key or a value is wrong. Raises RunFailed at
    the end if runs failed.
    """
    if "figure" in keys:
        raise InputError("runner.figure makes figures")
    words = [f"study={study}", *overrides_of(keys, choices=True), *_launcher(n_jobs)]
    return [job.run for job in _computed(words, multirun=True).jobs]


def load(folder: str | Path) -> Run:
    """Return the run whose results are in a folder, `<outputs>/runs/<study>/<name>`.

    Raises InputError if the folder has no run, or another name than the run. Raises it also if the
    run's study or version no longer exists.
    """
    folder = Path(folder).resolve()
    kept = Run(stored.read_config(folder), folder.parent.parent.parent)
    if not stored.is_named_for(folder, kept.config):
        raise InputError(f"{folder}: config.yaml describes the run {kept.folder.name}")
    kept.folder = folder  # of two folders with this run, the one that was asked for
    return kept


def tables(runs: Run | Iterable[Run]) -> dict[str, pd.DataFrame]:
    """Return the tables of complete runs by name, each joined over the runs.

    The parameters of the runs are columns. Raises InputError if a run is missing or damaged.
    """
    return stored.load([runs] if isinstance(runs, Run) else runs)


def plot(
    runs: Run | Iterable[Run],
    x: str | None = None,
    y: str | Iterable[str] = (),
    color: str | None = None,
    band: bool = False,
) -> matplotlib.figure.Figure:
    """Draw measured numbers of runs of one study against a parameter; return the picture.

    - x, color: a parameter, or a key of a table (`"layer"`, `"method"`);
    - y: one or several names of measured columns; `"training.rank"` if several tables have the
      column;
    - band: whether medians have a band, their confidence interval.

    What is not given is chosen automatically. Runs that are not complete are not drawn; the header
    says how many there are. Raises InputError if

    - a name does not exist;
    - no run is complete, or the runs are of several studies;
    - the runs differ in more parameters than a picture can show;
    - `band` is true, and there are fewer than five replicates.
    """
    runs, y = [runs] if isinstance(runs, Run) else runs, [y] if isinstance(y, str) else list(y)
    with drawn_in("screen"):
        return sweep_plot.draw(Sweep(runs).choose(x, y, color, band))


def figure(name: str, **keys: Any) -> "Figure":
    """Return a figure of a paper with its runs, drawing and claims, without computing anything.

    name: the figure's name. keys: settings (`scale="smoke"`), and parameters that should differ
    from the paper's figure. A list for a parameter with one value in a run means several runs, as
    in `sweep`: `depth=[8, 16]`. Raises InputError if there is no such figure, or a key or a value
    is wrong.
    """
    study = catalogue.figure_study(name)
    words = [
        word
        for key, value in keys.items()
        for word in overrides_of({key: value}, choices=_is_several(study, key, value))
    ]
    made = paper_figure(name, words)
    known = {item.name: getattr(made, item.name) for item in fields(made)}
    return Figure(**known, words=(f"figure={name}", *words))


@dataclass(frozen=True, repr=False)
class Figure(results.Figure):
    """A figure at one scale, with methods that compute its runs, draw it and judge its claims.

    A notebook shows its picture. If runs are missing, it shows the picture of the reference, if
    there is one.
    """

    words: tuple[str, ...] = ()
    """The arguments of the command that makes the figure."""

    def _repr_png_(self) -> bytes | None:
        """Return the picture that a notebook shows, as PNG.

        The picture is of the figure's runs if they are complete. Otherwise it is the picture of the
        reference, and its header says so. The result is None if the reference does not have the
        figure.
        """
        if all(run.is_complete() for run in self.runs):
            return self.png()
        if self.is_canonical and self._kept.folder.exists():
            return self._kept.png("from the reference")
        return None

    def compute(self, n_jobs: int = 1) -> dict[str, pd.DataFrame]:
        """Compute the runs that are not complete; return the tables of all runs, by name.

        n_jobs: how many runs are computed side by side. Raises InputError if a value is wrong, and
        RunFailed at the end if runs failed.
        """
        _computed([*self.words, *_launcher(n_jobs)])
        return self.tables()

    def reference(self) -> dict[str, pd.DataFrame]:
        """Return the stored tables of this figure in the reference, by name.

        An installed wheel has only the tables that pictures at scale `quick` need, with six digits.
        Raises InputError if the reference does not have the figure at this scale, or if parameters
        of the figure differ from the reference's.
        """
        if not self.is_canonical:
            changed = ", ".join(self.overrides)
            raise InputError(
                f"the reference does not have {self.figure} with {changed}: omit what you changed,"
                " or call compute()"
            )
        if not self._kept.folder.is_dir():
            raise InputError(f"the reference does not have {self.figure} at scale={self.scale}")
        return self._kept.tables()

    @property
    def _kept(self) -> KeptFigure:
        """Return the figure in the reference that has this name and scale."""
        return KeptFigure.of(REFERENCE / self.scale / self.figure)


def _computed(words: list[str], multirun: bool = False) -> Order:
    """Compose the jobs of the arguments and compute them; return the order.

    Raises InputError if an argument is wrong, and RunFailed if a run failed.
    """
    with hydra_ready(words):
        order = compose_order(words, multirun)
        failures = launch(order)
    if failures:
        raise RunFailed("\n".join(failures))
    return order


def _launcher(n_jobs: int) -> list[str]:
    """Return the arguments with which `n_jobs` runs are computed side by side."""
    if n_jobs == 1:
        return []
    return ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={n_jobs}"]
