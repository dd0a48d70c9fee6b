"""From arguments to an order: the jobs of a command, and the figures of their runs.

A plain command is one job. A sweep has a job for each combination of values. A figure has several
such grids, which its file lists for each scale. Arguments replace values of the file.
"""

import copy
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from runner.compose.composing import Composer, choices_of, hydra_ready, with_quoted_paths
from runner.compose.hydra_errors import (
    GRIDS,
    check_brackets,
    check_choices,
    check_figure,
    check_files,
    check_once,
    check_pictures,
    check_words,
    several_values,
)
from runner.core.catalogue import config_of
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.runs.jobs import Job

if TYPE_CHECKING:
    import runner.results.figure  # late: matplotlib takes a while

SETTINGS = {item.name for item in dataclasses.fields(Settings)} - {"source", "data_folder"}
"""The settings that change no number of a figure."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What a command asks for: its jobs, each run once, and the figures of their runs."""

    jobs: list[Job]
    figures: list["runner.results.figure.Figure"]
    composed: DictConfig
    """Hydra's configuration that all jobs share, with the keys for launcher and sweeper."""

    @property
    def searches(self) -> bool:
        """Return whether the sweeper chooses later jobs by the results of earlier ones."""
        return self.composed.hydra.runtime.choices["hydra/sweeper"] != "basic"

    @property
    def settings(self) -> Settings:
        """Return the settings of the first job.

        Settings that concern the whole command are equal in all jobs.
        """
        return self.jobs[0].settings


def compose_order(words: list[str], multirun: bool = False) -> Order:
    """Return what the arguments ask for: a run, a sweep, or a figure.

    words: the arguments. multirun: whether the flag `-m` was given, which allows a sweep, and makes
    a figure for each combination of several values. The caller must be in a block `with
    hydra_ready()`. Raises InputError if an argument is wrong, or a value is outside its range.
    """
    if nameless := next((word for word in words if word.startswith("=")), ""):
        raise InputError(f"{nameless}: a key is missing, as in seed{nameless}")
    composer = Composer()
    typed = with_quoted_paths(words)
    check_once(words)
    check_pictures(words)
    check_words(typed, composer.parser)
    parsed = composer.parse(typed)
    check_choices(parsed)
    check_figure(words)
    check_files(words)
    composed = composer.common(typed)
    check_brackets(parsed, config_of(composed.study))
    order = Order([], [], composed)
    if order.searches:
        return order
    if multirun and composed.figure is not None:
        points = composer.points([{}], typed)
        if len(points) > 1:
            return _joined(compose_order(point) for point in points)
    hydra, preset = composed.hydra, _preset(composed)
    if not hydra.run.dir == hydra.sweep.dir == hydra.sweep.subdir == "." or hydra.job.chdir:
        raise InputError(
            "hydra.run.dir, hydra.sweep.dir and hydra.job.chdir have no use here: each run has its"
            " own folder under outputs/runs; outputs=FOLDER moves them all"
        )
    keys = {word.partition("=")[0] for word in words}
    words = [*(f"{key}={text}" for key, text in preset.items() if key not in keys), *words]
    grids = _grids(composed)
    if "grids" in keys:
        keys = keys.union(*grids)
    jobs = _distinct(map(composer.job, composer.points(grids, with_quoted_paths(words))))
    alike = set.intersection(*(set(job.overrides) for job in jobs))
    untyped = frozenset(line for line in alike if line.partition("=")[0] not in keys)
    jobs = [dataclasses.replace(job, untyped=untyped) for job in jobs]
    if any(_preset(whole) != preset for whole in composer.composed.values()):
        raise InputError("only a single experiment may define a sweep: run each experiment alone")
    if any(job.settings.figure != composed.figure for job in jobs):
        raise InputError("one command makes one figure; several at once: runner figures fig4 fig5")
    is_sweep = multirun or preset or composed.grids is not None or hydra.mode == RunMode.MULTIRUN
    if composed.figure is None and len(jobs) > 1 and not is_sweep:
        raise InputError(f"several values of a key are a sweep: {several_values(parsed)}")
    if composed.figure is not None:
        order.figures.append(_figure(composed.figure, jobs, words, composer))
    common = copy.deepcopy(composed)
    for key in ("outputs", "threads"):  # a launcher's file may name it: ${outputs}/submitit
        common[key] = getattr(jobs[0].settings, key)
    return dataclasses.replace(order, jobs=jobs, composed=common)


def _preset(composed: DictConfig) -> Mapping[str, str]:
    """Return the sweep that an experiment's file defines: values as a user types them, by key."""
    return OmegaConf.select(composed, "hydra.sweeper.params") or {}


def compose_figures(names: list[str], words: list[str], multirun: bool = False) -> Order:
    """Return an order for several figures with all their runs, each run once.

    names: the figures' names. words: arguments for all figures. multirun: as in `compose_order`.
    The caller must be in a block `with hydra_ready()`. Raises InputError as `compose_order` does,
    and for an argument `figure=...`.
    """
    _refuse_a_figure(words)
    return _joined(compose_order([f"figure={name}", *words], multirun) for name in names)


def _joined(several: Iterable[Order]) -> Order:
    """Return an order with the runs and the figures of several orders, each once."""
    orders = list(several)
    jobs = _distinct(job for order in orders for job in order.jobs)
    figures = {figure.name: figure for order in orders for figure in order.figures}
    return Order(jobs, list(figures.values()), orders[0].composed)


def _grids(composed: DictConfig, scale: str = "") -> list[dict[str, str]]:
    """Return the grids whose jobs are computed: values as a user types them, by key.

    A figure has a list of grids for each scale. A study may have one list: `grids=[{depth: 8}]`.
    scale: for a figure, by default the scale of the configuration.
    """
    given: Any = [{}] if composed.grids is None else composed.grids
    grids: Any = OmegaConf.to_object(given) if OmegaConf.is_config(given) else given
    if isinstance(grids, dict) and composed.figure is not None:
        scale = scale or composed.scale
        if scale not in grids:
            scales = ", ".join(grids)
            raise InputError(f"scale={scale}: this figure is drawn at {scales} only")
        grids = grids[scale]
    elif composed.figure is not None:
        raise InputError(f"figure={composed.figure}: {GRIDS}")
    if not isinstance(grids, list) or not all(isinstance(grid, Mapping) for grid in grids):
        if composed.figure is not None:
            raise InputError(f"figure={composed.figure}, scale={scale}: {GRIDS}")
        raise InputError("grids are a list, as in [{depth: [8, 16]}, {depth: 32, width: 64}]")
    return [{key: choices_of(value) for key, value in grid.items()} for grid in grids]


def _distinct(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs without repetitions of a run. Several grids may contain the same run."""
    jobs_by_run: dict[tuple[Path, str], Job] = {}
    for job in jobs:
        jobs_by_run.setdefault((job.settings.folder(), job.run.identity), job)
    return list(jobs_by_run.values())


def _figure(
    name: str, jobs: list[Job], words: list[str], composer: Composer
) -> "runner.results.figure.Figure":
    """Return the figure of these jobs.

    If its runs are not the runs in its file, it has another name. The canonical figure has its runs
    in the order of the file. Raises InputError if the jobs have several scales, or the style is
    unknown.
    """
    from runner.results.figure import Figure  # late, as above

    settings, runs = jobs[0].settings, tuple(job.run for job in jobs)
    if any(job.settings.scale != settings.scale for job in jobs):
        raise InputError("a figure has one scale: give one value, scale=quick")
    changes = tuple(filter(_is_parameter, words))
    if changes:
        plain = [f"figure={name}", f"scale={settings.scale}"]
        points = composer.points(_grids(composer.common(plain)), plain)
        canonical = [job.run.identity for job in _distinct(map(composer.job, points))]
        by_identity = {run.identity: run for run in runs}
        if set(by_identity) == set(canonical):
            changes, runs = (), tuple(by_identity[identity] for identity in canonical)
    figure = Figure(name, settings.scale, changes, runs, settings.folder(), settings.style)
    figure.require_style()  # before anything is computed
    typed = {re.split(r"[=@.]", word.lstrip("+~"))[0] for word in changes}
    if typed:
        from runner.compose.several import check_several  # late: seldom needed

        check_several(
            figure, typed, lambda several: _presets(composer, name, settings.scale, several)
        )
    return figure


def _presets(
    composer: Composer, name: str, first: str, several: Collection[str]
) -> Iterator[list[StudyConfig]]:
    """Yield the parameters of the runs in a figure's file, for each scale with grids of its own.

    first: the scale that comes first. several: names of parameters. A scale is left out if its
    grids have none of them, since all its runs have one value of each.
    """
    composed = composer.common([f"figure={name}", f"scale={first}"])
    seen: list[list[dict[str, str]]] = []
    for scale in sorted(composed.grids or (), key=lambda scale: scale != first):
        grids = _grids(composed, scale)
        if grids not in seen and any(key in grid for grid in grids for key in several):
            seen.append(grids)
            plain = [f"figure={name}", f"scale={scale}"]
            yield [composer.job(point).config for point in composer.points(grids, plain)]


def _is_parameter(word: str) -> bool:
    """Return whether an argument may change numbers of a figure."""
    key = re.split(r"[=@.]", word.lstrip("+~"))[0]
    return not re.match("hydra(/|$)", key) and key not in SETTINGS


def paper_figure(name: str, words: list[str]) -> "runner.results.figure.Figure":
    """Return a figure, without computing its runs.

    name: the figure's name. words: further arguments, such as `scale=paper`. Raises InputError as
    `compose_figures` does.
    """
    _refuse_a_figure(words)
    typed = [f"figure={name}", *words]
    with hydra_ready(typed):
        return compose_order(typed).figures[0]


def _refuse_a_figure(words: list[str]) -> None:
    """Raise InputError for an argument `figure=...`, if figures are named without this key."""
    for word in words:
        if word.startswith("figure="):
            name = word.removeprefix("figure=")
            raise InputError(f"{word}: write the figure without a key: {name}")
