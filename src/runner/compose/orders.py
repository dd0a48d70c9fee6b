"""What a command asks for: its jobs, and the figures that are drawn of them.

A plain command is one job; a sweep is a product of choices; a figure is a union of such products,
which its file lists for each scale. What is typed wins over what the file says.
"""

import copy
import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from runner.compose.checking import check_figure, check_files, check_grids, check_words
from runner.compose.composing import Composer, choices_of, hydra_ready, words_as_typed
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.runs.jobs import Job

if TYPE_CHECKING:
    import runner.results.figure  # late: matplotlib takes a while

SETTINGS = {item.name for item in dataclasses.fields(Settings)} - {"source", "data_folder"}
"""Keys that make no figure another."""


@dataclasses.dataclass(frozen=True)
class Order:
    """What a command asks for: the jobs, of which no two are one run, and what is drawn of them."""

    jobs: list[Job]
    figures: list["runner.results.figure.Figure"]
    composed: DictConfig
    """What the jobs have in common, with Hydra's own keys: which launcher, which sweeper."""

    @property
    def searches(self) -> bool:
        """Whether the chosen sweeper decides on later jobs from earlier results."""
        return self.composed.hydra.runtime.choices["hydra/sweeper"] != "basic"

    @property
    def settings(self) -> Settings:
        """The settings of the first job: what concerns the whole command is the same in all."""
        return self.jobs[0].settings


def compose_order(words: list[str], multirun: bool = False) -> Order:
    """Compose what a command asks for: a run, a sweep, or a figure. Hydra is ready.

    Raises InputError when something does not compose, or a value is outside its range.
    """
    if nameless := next((word for word in words if word.startswith("=")), ""):
        raise InputError(f"{nameless}: a key is missing, as in seed{nameless}")
    composer = Composer()
    typed = words_as_typed(words)
    check_words(typed, composer.parser)
    check_figure(words)
    check_files(words)
    composed = composer.common(typed)
    order = Order([], [], composed)
    if order.searches:
        return order
    _require_own_folders(composed)
    preset = OmegaConf.select(composed, "hydra.sweeper.params") or {}
    multirun = multirun or bool(preset) or composed.hydra.mode == RunMode.MULTIRUN
    keys = {word.partition("=")[0] for word in words}
    own = [f"{key}={values}" for key, values in preset.items() if key not in keys]
    words, typed = [*own, *words], [*own, *typed]
    grids = [{}] if composed.figure is None else _grids(composed)
    jobs = _distinct(map(composer.job, composer.points(grids, typed)))
    for _, whole in composer.composed.values():
        if (OmegaConf.select(whole, "hydra.sweeper.params") or {}) != preset:
            raise InputError("only a single experiment may define a sweep: run each alone")
    if any(job.settings.figure != composed.figure for job in jobs):
        raise InputError("one command makes one figure; several at once: runner figures fig4 fig5")
    if composed.figure is None and len(jobs) > 1 and not multirun:
        raise InputError("several values of a key are a sweep: add -m, or write key=[value,value]")
    if composed.figure is not None:
        order.figures.append(_figure(composed.figure, jobs, words, composer))
    common = copy.deepcopy(composed)
    for key in ("outputs", "threads"):  # a launcher's file may name it: ${outputs}/submitit
        common[key] = getattr(jobs[0].settings, key)
    return dataclasses.replace(order, jobs=jobs, composed=common)


def compose_figures(names: list[str], words: list[str]) -> Order:
    """Compose several figures: all their runs, shared runs once. Hydra is ready."""
    _refuse_a_figure(words)
    orders = [compose_order([f"figure={name}", *words]) for name in names]
    jobs = _distinct(job for each in orders for job in each.jobs)
    figures = {figure.name: figure for each in orders for figure in each.figures}
    return Order(jobs, list(figures.values()), orders[0].composed)


def _grids(composed: DictConfig) -> list[dict[str, str]]:
    """Return the grids of a figure at its scale: key -> choices as they are typed."""
    if not isinstance(composed.grids, DictConfig):
        raise InputError(f"grids={composed.grids}: a figure has grids for each scale")
    if composed.scale not in composed.grids:
        scales = ", ".join(composed.grids)
        raise InputError(f"scale={composed.scale}: this figure is drawn at {scales} only")
    grids = composed.grids[composed.scale]
    listed: Any = OmegaConf.to_container(grids, resolve=True) if OmegaConf.is_list(grids) else None
    check_grids(listed)
    return [{key: choices_of(value) for key, value in grid.items()} for grid in listed]


def _distinct(jobs: Iterable[Job]) -> list[Job]:
    """Keep the first of equal runs: the grids of a union may overlap."""
    found: dict[tuple[Path, str], Job] = {}
    for job in jobs:
        found.setdefault((job.settings.folder(), job.run.identity), job)
    return list(found.values())


def _figure(
    name: str, jobs: list[Job], words: list[str], composer: Composer
) -> "runner.results.figure.Figure":
    """Return the figure of these jobs; with other runs than its own, under another name.

    The canonical one draws its runs in their canonical order, however they were typed.
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
        by_name = {run.identity: run for run in runs}
        if set(by_name) == set(canonical):
            changes, runs = (), tuple(by_name[each] for each in canonical)
    return Figure(name, settings.scale, changes, runs, settings.folder(), settings.style)


def _is_parameter(word: str) -> bool:
    key = re.split(r"[=@.]", word.lstrip("+~"))[0]
    return not re.match("hydra(/|$)", key) and key not in SETTINGS


def _require_own_folders(composed: DictConfig) -> None:
    hydra = composed.hydra
    if not hydra.run.dir == hydra.sweep.dir == hydra.sweep.subdir == "." or hydra.job.chdir:
        raise InputError(
            "hydra.run.dir, hydra.sweep.dir and hydra.job.chdir have no use here: each run has its"
            " own folder under outputs/runs; outputs=FOLDER moves them all"
        )


def paper_figure(name: str, words: list[str]) -> "runner.results.figure.Figure":
    """Return the figure that these words make. Raises InputError when they do not compose."""
    _refuse_a_figure(words)
    typed = [f"figure={name}", *words]
    with hydra_ready(typed):
        return compose_order(typed).figures[0]


def _refuse_a_figure(words: list[str]) -> None:
    """Raise InputError for a word that would take the place of a figure that is named."""
    if found := [word for word in words if word.startswith("figure=")]:
        name = found[-1].removeprefix("figure=")
        raise InputError(f"{found[-1]}: figures are named here without a key: {name}")
