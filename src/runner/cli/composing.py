"""From the YAML files and the command line to checked settings and parameters."""

import copy
import dataclasses
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from runner.cli.catalogue import CONF, require_conf
from runner.cli.explaining import explain, explain_key, is_hydras
from runner.cli.grids import expand, grids_at
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, configs, default_of
from runner.results.variants import Variant, variant_name
from runner.runs.run import Run

OF_THE_COMMAND = {item.name for item in dataclasses.fields(Settings)} - {
    "study",
    "source",
    "data_folder",
}
"""Keys that make no figure another: the overrides of a variant go without them."""


def register() -> None:
    """Give Hydra the types of every study's keys, as the group `schema` of `conf/study/*.yaml`.

    Raises InputError where there is no `conf/`.
    """
    require_conf()
    for name, config_class in configs().items():
        ConfigStore.instance().store(
            group="schema", name=name, node=_schema(config_class), package="_global_"
        )


def _schema(config_class: type[StudyConfig]) -> type:
    """A mutable dataclass of the settings and the study's parameters, as Hydra merges them."""
    items = (*dataclasses.fields(Settings), *dataclasses.fields(config_class))
    members = [(item.name, item.type, _field(item)) for item in items]
    return dataclasses.make_dataclass(config_class.__name__, members)


def _field(item: dataclasses.Field) -> Any:
    value = default_of(item)
    if isinstance(value, list | dict):
        return dataclasses.field(default_factory=value.copy)
    return dataclasses.field(default=value)


def read(composed: DictConfig) -> tuple[Settings, StudyConfig]:
    """The settings and the study's parameters out of a composed configuration.

    Raises InputError when a value is outside its range.
    """
    config_class = configs()[composed.study]
    for key in set(composed) - {item.name for item in dataclasses.fields(_schema(config_class))}:
        if key != "hydra":
            raise InputError(explain_key(str(key), config_class.__name__))

    def pick(dataclass: type) -> Any:
        names = [item.name for item in dataclasses.fields(dataclass)]
        masked = OmegaConf.masked_copy(composed, names)
        return dataclass(**OmegaConf.to_container(masked, resolve=True, throw_on_missing=True))

    return pick(Settings), pick(config_class)


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a sweep, composed and checked."""

    values: dict[str, Any]
    """All keys but Hydra's own."""
    settings: Settings
    config: StudyConfig

    @classmethod
    def of(cls, composed: DictConfig) -> "Job":
        """Read a composed configuration; raises InputError when a value is outside its range."""
        settings, config = read(composed)
        values = OmegaConf.to_container(composed, resolve=True)
        return cls(
            {key: value for key, value in values.items() if key != "hydra"}, settings, config
        )

    @cached_property
    def run(self) -> Run:
        """The run that the job is."""
        return Run(self.config, self.settings.folder())


def compose_jobs(jobs: Iterable[list[str]]) -> list[Job]:
    """Compose and check the jobs of a sweep, given by their overrides; Hydra is initialised.

    Jobs that choose the same files share the composition of these. Of jobs that are the same run
    the first is kept: the grids of a union may overlap.
    """
    bases: dict[tuple[str, ...], DictConfig] = {}
    identities: list[tuple[str, dict[str, Any]]] = []
    kept: list[Job] = []
    for overrides in jobs:
        job = Job.of(_composed(overrides, bases))
        identity = (job.config.study, job.config.identity())
        if identity not in identities:
            identities.append(identity)
            kept.append(job)
    return kept


def _composed(job: list[str], bases: dict[tuple[str, ...], DictConfig]) -> DictConfig:
    """What `compose("config", job)` gives, sooner.

    bases: the compositions so far by the overrides that are no plain values; added to.
    """
    parsed = OverridesParser.create().parse_overrides(job)
    plain = [
        override.type == OverrideType.CHANGE
        and not override.is_hydra_override()
        and not _is_group(override)
        for override in parsed
    ]
    files = tuple(text for text, is_plain in zip(job, plain, strict=True) if not is_plain)
    if files not in bases:
        bases[files] = compose("config", list(files))
    config = copy.deepcopy(bases[files])
    for override, is_plain in zip(parsed, plain, strict=True):
        if is_plain:
            OmegaConf.update(config, override.key_or_group, override.value())
    return config


def _is_group(override: Override) -> bool:
    return (CONF / override.key_or_group).is_dir()


def figure_runs(figure: str, typed: list[str]) -> tuple[Settings, list[StudyConfig]]:
    """The settings and the configurations of all runs of a figure.

    typed: further overrides (`scale=smoke`, `replicates=3`). Raises InputError when they do not
    compose.
    """
    with _initialized():
        jobs = _figure_jobs(figure, typed)
    return jobs[0].settings, [job.config for job in jobs]


def figure_variant(figure: str, typed: list[str]) -> Variant:
    """The figure that these overrides make. Raises InputError when they do not compose."""
    with _initialized():
        return variant_of(figure, _figure_jobs(figure, typed), typed)


def variant_of(figure: str, jobs: list[Job], typed: list[str]) -> Variant:
    """The figure that the jobs of its sweep make; Hydra is initialised.

    The canonical one draws its runs in their canonical order, however they were typed.
    """
    settings = jobs[0].settings
    runs = {job.run.folder.name: job.run for job in jobs}
    overrides = tuple(filter(_is_of_figure, typed))
    name = figure
    if overrides:
        plain = _figure_jobs(figure, [f"scale={settings.scale}"])
        canonical = [job.run.folder.name for job in plain]
        if set(runs) == set(canonical):
            overrides, runs = (), {each: runs[each] for each in canonical}
        else:
            name = variant_name(figure, runs)
    kept = tuple(runs.values())
    return Variant(figure, settings.scale, name, overrides, kept, settings.folder())


def _figure_jobs(figure: str, typed: list[str]) -> list[Job]:
    """The jobs of a figure's sweep; Hydra is initialised."""
    overrides = [f"figure={figure}", *(text for text in typed if not text.startswith("figure="))]
    parsed = OverridesParser.create().parse_overrides(overrides)
    single = [each.input_line for each in parsed if not each.is_sweep_override()]
    whole = compose("config", single, return_hydra_config=True)
    return compose_jobs(expand(grids_at(whole.hydra.sweeper.grids, whole.scale), overrides))


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
