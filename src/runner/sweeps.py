"""Which runs a sweep consists of.

A sweep is a union of grids; a grid is a product of choices. `conf/figure/<figure>.yaml` lists the
grids of a figure for each scale; a sweep typed by hand (`-m depth=1,2,4`) is a single grid. What is
typed wins over what a figure's grid says.
"""

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType
from omegaconf import DictConfig, OmegaConf

from runner.configs import CONF, explain, is_hydras, read, register
from runner.errors import InputError
from runner.studies import StudyConfig


def expand(grids: Iterable[Mapping[str, Any]], typed: list[str]) -> list[list[str]]:
    """The override lists of all jobs of a union of grids, in order, without repetitions.

    grids: for each grid, key -> a list of choices or one value. typed: overrides of the command
    line; they may hold choices of their own (`depth=1,2`).
    """
    parser = OverridesParser.create()
    typed_keys = {override.key_or_group for override in parser.parse_overrides(typed)}
    jobs: list[list[str]] = []
    for grid in grids:
        lines = [f"{key}={_choices(value)}" for key, value in grid.items() if key not in typed_keys]
        for batch in BasicSweeper.split_arguments(parser.parse_overrides([*lines, *typed]), None):
            jobs += [list(job) for job in batch if list(job) not in jobs]
    return jobs


def _choices(value: Any) -> str:
    values = value if isinstance(value, list) else [value]
    return ",".join("null" if each is None else str(each) for each in values)


def grids_at(grids: DictConfig | None, scale: str) -> list[dict[str, Any]]:
    """The grids of a figure at this scale; one empty grid where there is no figure.

    Raises InputError when the figure has none for this scale.
    """
    if grids is None:
        return [{}]
    if scale not in grids:
        raise InputError(f"scale={scale}: this figure is drawn at {', '.join(grids)} only")
    return OmegaConf.to_container(grids[scale], resolve=True)


def figure_study(figure: str) -> str:
    """The study whose runs a figure draws: that which its configuration chooses."""
    content = yaml.safe_load((CONF / "figure" / f"{figure}.yaml").read_text())
    choices = {key: value for line in content["defaults"] for key, value in line.items()}
    return choices["override /study"]


def figure_runs(figure: str, typed: list[str]) -> tuple[str, str, list[StudyConfig]]:
    """The scale, the outputs folder and the configurations of all runs of a figure.

    typed: further overrides (`scale=smoke`, `replicates=3`). Raises InputError when they do not
    compose.
    """
    register()
    overrides = [f"figure={figure}", *(text for text in typed if not text.startswith("figure="))]
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return _figure_runs(overrides)
    except Exception as error:
        if not is_hydras(error):
            raise
        raise InputError(explain(error)) from error


def _figure_runs(overrides: list[str]) -> tuple[str, str, list[StudyConfig]]:
    whole = compose("config", overrides, return_hydra_config=True)
    jobs = expand(grids_at(whole.hydra.sweeper.grids, whole.scale), overrides)
    bases: dict[tuple[str, ...], DictConfig] = {}
    found = [read(_compose_job(job, bases))[1] for job in jobs]
    return whole.scale, whole.outputs, unique(found)


def _compose_job(job: list[str], bases: dict[tuple[str, ...], DictConfig]) -> DictConfig:
    """What `compose("config", job)` gives, sooner: jobs that choose the same files share a base.

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


def unique(found: Iterable[StudyConfig]) -> list[StudyConfig]:
    """The configurations in order, each identity once: grids of a union may overlap."""
    identities: list[tuple[str, dict[str, Any]]] = []
    kept: list[StudyConfig] = []
    for config in found:
        identity = (config.study, config.identity())
        if identity not in identities:
            identities.append(identity)
            kept.append(config)
    return kept
