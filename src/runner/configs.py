"""From the YAML files and the command line to a checked study configuration.

The only modules that know Hydra are this one, `sweeps.py`, `__main__.py` and the sweeper plugin.
"""

import dataclasses
import re
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.errors import ConfigCompositionException, HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from runner.errors import InputError, nearest
from runner.settings import Settings
from runner.studies import StudyConfig, configs, default_of

CONF = Path(__file__).resolve().parents[2] / "conf"


def register() -> None:
    """Give Hydra the types of every study's keys: group `schema`, which `conf/study/*.yaml` names."""
    if not (CONF / "config.yaml").exists():
        raise InputError(
            f"{CONF} holds no config.yaml.\nThe runner works from a clone of its repository:"
            " install it with `make setup` there."
        )
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
    if isinstance(value, list):
        return dataclasses.field(default_factory=lambda: list(value))
    return dataclasses.field(default=value)


def read(composed: DictConfig) -> tuple[Settings, StudyConfig]:
    """The settings and the study's parameters out of a composed configuration.

    Raises InputError when a value is outside its range.
    """
    config_class = configs()[composed.study]

    def pick(dataclass: type) -> Any:
        names = [item.name for item in dataclasses.fields(dataclass)]
        masked = OmegaConf.masked_copy(composed, names)
        return dataclass(**OmegaConf.to_container(masked, resolve=True, throw_on_missing=True))

    return pick(Settings), pick(config_class)


def explain(error: Exception) -> str:
    """One or two lines for an error of Hydra or OmegaConf: what is wrong and what would be right."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    text = "\n".join(str(cause) for cause in causes)
    key = re.search(r"(?:Key '([^']+)' (?:is )?not in|Could not override '([^']+)')", text)
    known = [item.name for item in dataclasses.fields(Settings)]
    schema = re.search(r"object_type=(\w+)", text)
    for config_class in configs().values():
        if schema is None or config_class.__name__ == schema[1]:
            known += [item.name for item in dataclasses.fields(config_class)]
    option = re.search(r"(?:Could not find|Could not load) '([\w/.-]+)/([^/']+)'", text)
    if option:
        group, name = option[1], option[2].removesuffix(".yaml")
        options = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
        label = "scale" if group.startswith("size/") else group
        return f"{label}={name} is not known: {nearest(name, options)}"
    value = re.search(r"(Value '.*|.*could not be converted.*)", str(causes[-1]))
    where = re.search(r"full_key: (\S+)", text)
    if value and where:
        return f"{where[1]}: {value[1]}"
    if key:
        name = key[1] or key[2]
        return f"{name} is not a key: {nearest(name, known)}"
    lines = [line.strip() for line in str(causes[-1]).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__


HYDRA_ERRORS = (HydraException, ConfigCompositionException, OmegaConfBaseException)
"""What composing a configuration raises when the configuration is wrong."""
