"""Which runs a sweep consists of.

A sweep is a union of grids; a grid is a product of choices. `conf/figure/<figure>.yaml` lists the
grids of a figure for each scale; a sweep typed by hand (`-m depth=1,2,4`) is a single grid. What is
typed wins over what a figure's grid says.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from runner.core.errors import InputError


def expand(
    grids: Iterable[Mapping[str, Any]], typed: list[str], loader: ConfigLoader | None = None
) -> list[list[str]]:
    """The override lists of all jobs of a union of grids, in order, without repetitions.

    grids: for each grid, key -> a list of choices or one value. typed: overrides of the command
    line; they may hold choices of their own (`depth=1,2`). loader: knows the options that
    `study=glob(rank*)` means.
    """
    parser = OverridesParser.create(loader)
    typed_keys = {override.key_or_group for override in parser.parse_overrides(typed)}
    jobs: list[list[str]] = []
    for grid in grids:
        lines = [f"{key}={_choices(value)}" for key, value in grid.items() if key not in typed_keys]
        choices = {o.get_key_element(): _texts(o) for o in parser.parse_overrides([*lines, *typed])}
        jobs += [list(job) for job in product(*choices.values()) if list(job) not in jobs]
    return jobs


def without_keys(overrides: list[str], typed: list[str]) -> list[str]:
    """The overrides of keys that are not typed."""
    parser = OverridesParser.create()
    keys = {override.key_or_group for override in parser.parse_overrides(typed)}
    parsed = parser.parse_overrides(overrides)
    return [override.input_line for override in parsed if override.key_or_group not in keys]


def _texts(override: Override) -> list[str]:
    """The overrides of single jobs that one override of a sweep stands for.

    Raises InputError for a continuous range, of which there is no list.
    """
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [f"{key}={override.get_value_element_as_str()}"]
    if not override.is_discrete_sweep():
        raise InputError(f"{override.input_line}: list the values, {key}=1,2,3")
    return [f"{key}={text}" for text in override.sweep_string_iterator()]


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
