"""From the YAML files and the command line to checked settings and parameters."""

import copy
import dataclasses
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf, open_dict

from runner.cli.catalogue import CONF, SCALES, headline, is_group, sizes
from runner.cli.explaining import explain, explain_key, is_hydras
from runner.cli.grids import expand, grids_at
from runner.cli.settings import CommandSettings
from runner.core.errors import InputError
from runner.core.rooms import configs
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, default_of
from runner.results.variants import Variant, variant_name
from runner.runs.run import Run

OF_THE_COMMAND = {item.name for item in dataclasses.fields(CommandSettings)} - {
    "study",
    "source",
    "data_folder",
}
"""Keys that make no figure another: the overrides of a variant go without them."""


def register() -> None:
    """Store what `conf/config.yaml` names and no file of its own holds: scales, schemas, sizes."""
    store = partial(ConfigStore.instance().store, package="_global_")
    for scale in SCALES:
        store(group="scale", name=scale, node={"scale": scale})
    for study, config_class in configs().items():
        store(group="schema", name=study, node=_schema(study, config_class))
        for scale, values in sizes(study).items():
            store(group=f"size/{study}", name=scale, node=values)


@cache
def _schema(study: str, config_class: type[StudyConfig]) -> type:
    """A mutable dataclass of a figure's grids, the settings and the study's parameters."""
    members: list[tuple[str, Any, Any]] = [("grids", Any, None)]
    for item in (*dataclasses.fields(CommandSettings), *dataclasses.fields(config_class)):
        value = study if item.name == "study" else default_of(item)
        members.append((item.name, item.type, _field(value)))
    return dataclasses.make_dataclass(config_class.__name__, members)


def _field(value: Any) -> Any:
    if isinstance(value, list | dict):
        return dataclasses.field(default_factory=value.copy)
    return dataclasses.field(default=value)


def read(composed: DictConfig) -> tuple[CommandSettings, StudyConfig]:
    """The settings and the study's parameters out of a composed configuration.

    Raises InputError when a value is outside its range.
    """
    config_class = configs()[composed.study]
    known = {item.name for item in dataclasses.fields(_schema(composed.study, config_class))}
    for key in set(composed) - known:
        if key != "hydra":
            raise InputError(explain_key(str(key), config_class.__name__))

    def pick(dataclass: type) -> Any:
        names = [item.name for item in dataclasses.fields(dataclass)]
        masked = OmegaConf.masked_copy(composed, names)
        return dataclass(**OmegaConf.to_container(masked, resolve=True, throw_on_missing=True))

    return pick(CommandSettings), pick(config_class)


def require_own_folders(hydra: DictConfig) -> None:
    """Raise InputError where Hydra is told to make folders of its own for runs."""
    if not hydra.run.dir == hydra.sweep.dir == hydra.sweep.subdir == "." or hydra.job.chdir:
        raise InputError(
            "hydra.run.dir, hydra.sweep.dir and hydra.job.chdir have no use here: each run has its"
            " own folder under outputs/runs; outputs=FOLDER moves them all"
        )


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a sweep, composed and checked."""

    values: dict[str, Any]
    """All keys but BESIDE."""
    settings: CommandSettings
    config: StudyConfig

    @classmethod
    def of(cls, composed: DictConfig) -> "Job":
        """Read a composed configuration; raises InputError when a value is outside its range."""
        settings, config = read(composed)
        values = OmegaConf.to_container(composed, resolve=True)
        return cls(
            {key: value for key, value in values.items() if key not in BESIDE},
            settings,
            config,
        )

    @cached_property
    def run(self) -> Run:
        """The run that the job is."""
        return Run(self.config, self.settings.folder())


BESIDE = ("hydra", "grids")
"""Keys of a composition that are not of a job: Hydra's own, and the grids of its figure."""

Bases = dict[tuple[str, ...], DictConfig]
"""Compositions by those of their overrides that are no plain values."""


def compose_jobs(jobs: Iterable[list[str]], bases: Bases | None = None) -> list[Job]:
    """Compose and check the jobs of a sweep, given by their overrides; Hydra is initialised.

    Jobs that choose the same files share the composition of these. Of jobs that are the same run
    the first is kept: the grids of a union may overlap. bases: what has been composed before.
    """
    bases = bases or {}
    identities: list[tuple[str, dict[str, Any]]] = []
    kept: list[Job] = []
    for overrides in jobs:
        job = Job.of(_composed(overrides, bases))
        identity = (job.config.study, job.config.identity())
        if identity not in identities:
            identities.append(identity)
            kept.append(job)
    return kept


def _composed(job: list[str], bases: Bases) -> DictConfig:
    """What `compose("config", job)` gives, sooner. bases: added to."""
    files, plain = _split(job)
    if files not in bases:
        bases[files] = _of_one_job(compose("config", list(files)))
    config = copy.deepcopy(bases[files])
    for override in plain:
        OmegaConf.update(config, override.key_or_group, override.value())
    return config


def _split(overrides: list[str]) -> tuple[tuple[str, ...], list[Override]]:
    """The overrides that choose files or are Hydra's own, and those that are plain values."""
    parsed = OverridesParser.create().parse_overrides(overrides)
    plain = [
        override
        for override in parsed
        if override.type == OverrideType.CHANGE
        and not override.is_hydra_override()
        and not is_group(override.key_or_group)
        and override.key_or_group.partition(".")[0] not in BESIDE
    ]
    return tuple(each.input_line for each in parsed if each not in plain), plain


@dataclasses.dataclass(frozen=True)
class FigureSweep:
    """A figure, composed and checked: what is drawn, and the jobs that compute its runs."""

    variant: Variant
    jobs: list[Job]
    whole: DictConfig
    """The composition before the jobs differ, with Hydra's own keys: what launchers ask for."""


def compose_figure(figure: str, typed: list[str]) -> FigureSweep:
    """The sweep of a figure. Raises InputError when the overrides do not compose.

    typed: further overrides (`scale=smoke`, `replicates=3`).
    """
    with _initialized():
        whole, jobs = _figure_jobs(figure, typed)
        return FigureSweep(variant_of(figure, jobs, typed), jobs, whole)


def compose_study(study: str, typed: list[str]) -> tuple[DictConfig, list[Job]]:
    """The composition of a sweep of a study, with Hydra's own keys, and its jobs.

    typed: overrides, which may hold choices (`depth=8,16`). Raises InputError when they do not
    compose.
    """
    with _initialized():
        overrides = [f"study={study}", *typed]
        parsed = OverridesParser.create().parse_overrides(overrides)
        if "figure" in (each.key_or_group for each in parsed):
            raise InputError("runner.figure makes figures")
        single = [each.input_line for each in parsed if not each.is_sweep_override()]
        whole = compose("config", single, return_hydra_config=True)
        return whole, compose_jobs(expand([{}], overrides))


def figure_variant(figure: str, typed: list[str]) -> Variant:
    """The figure that these overrides make. Raises InputError when they do not compose."""
    return compose_figure(figure, typed).variant


def figure_runs(figure: str, typed: list[str]) -> tuple[Settings, list[StudyConfig]]:
    """The settings and the configurations of all runs of a figure.

    Raises InputError when the overrides do not compose.
    """
    jobs = compose_figure(figure, typed).jobs
    return jobs[0].settings, [job.config for job in jobs]


def variant_of(figure: str, jobs: list[Job], typed: list[str]) -> Variant:
    """The figure that the jobs of its sweep make; Hydra is initialised.

    The canonical one draws its runs in their canonical order, however they were typed.
    """
    settings = jobs[0].settings
    runs = {job.run.folder.name: job.run for job in jobs}
    overrides = tuple(filter(_is_of_figure, typed))
    name = figure
    if overrides:
        _, plain = _figure_jobs(figure, [f"scale={settings.scale}"])
        canonical = [job.run.folder.name for job in plain]
        if set(runs) == set(canonical):
            overrides, runs = (), {each: runs[each] for each in canonical}
        else:
            name = variant_name(figure, runs)
    kept = tuple(runs.values())
    return Variant(
        figure,
        settings.scale,
        name,
        overrides,
        kept,
        settings.folder(),
        headline("figure", figure),
        settings.style,
    )


def _figure_jobs(figure: str, typed: list[str]) -> tuple[DictConfig, list[Job]]:
    """The composition of a figure's sweep, and its jobs; Hydra is initialised."""
    overrides = [f"figure={figure}", *(text for text in typed if not text.startswith("figure="))]
    parsed = OverridesParser.create().parse_overrides(overrides)
    single = [each.input_line for each in parsed if not each.is_sweep_override()]
    whole = compose("config", single, return_hydra_config=True)
    grids = grids_at(whole.grids, whole.scale)
    return whole, compose_jobs(expand(grids, overrides), {_split(single)[0]: _of_one_job(whole)})


def _of_one_job(composed: DictConfig) -> DictConfig:
    """A composition without what is Hydra's, and without the grids, which take long to copy."""
    bare = copy.copy(composed)  # masked_copy would lose the types
    with open_dict(bare):
        for key in BESIDE:
            bare.pop(key, None)
    return bare


def _is_of_figure(override: str) -> bool:
    """Whether an override can make a figure another: how its runs are launched cannot."""
    key = override.partition("=")[0].lstrip("+~")
    if re.match("hydra[./]", key):
        return key.startswith("hydra.sweeper.")
    return key.partition(".")[0] not in OF_THE_COMMAND


@contextmanager
def _initialized() -> Iterator[None]:
    """Hydra, for composing outside its own command; its errors come as InputError."""
    register()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            yield
    except Exception as error:
        if not is_hydras(error):
            raise
        raise InputError(explain(error)) from error
