"""From the YAML files and the command line to a checked study configuration.

The only modules that know Hydra are this one, `sweeps.py`, `__main__.py` and the sweeper plugin.
"""

import dataclasses
import re
import traceback
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf

from runner.errors import InputError, nearest
from runner.settings import Settings
from runner.studies import StudyConfig, configs, default_of

CONF = Path(__file__).resolve().parents[2] / "conf"


def natural_order(name: str) -> list[tuple[str, int]]:
    """Sorts fig2 before fig11: numbers within a name count as numbers."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(number or 0)) for text, number in parts]


def figure_names() -> list[str]:
    """All figures that exist, by name."""
    return sorted((path.stem for path in (CONF / "figure").glob("*.yaml")), key=natural_order)


def headline(group: str, name: str) -> str:
    """What an option of a group is: the first comment of its YAML file that is no directive."""
    for line in (CONF / group / f"{name}.yaml").read_text().splitlines():
        if line.startswith("# ") and not line.startswith("# @package"):
            return line[2:]
    return ""


def register() -> None:
    """Give Hydra the types of every study's keys, as the group `schema` of `conf/study/*.yaml`."""
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
            raise InputError(_explain_key(str(key), config_class.__name__))

    def pick(dataclass: type) -> Any:
        names = [item.name for item in dataclasses.fields(dataclass)]
        masked = OmegaConf.masked_copy(composed, names)
        return dataclass(**OmegaConf.to_container(masked, resolve=True, throw_on_missing=True))

    return pick(Settings), pick(config_class)


def is_hydras(error: Exception) -> bool:
    """Whether the error was raised inside Hydra or OmegaConf: the configuration is wrong then."""
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    return any(f"/{package}/" in innermost for package in ("hydra", "omegaconf", "antlr4"))


def explain(error: Exception) -> str:
    """What is wrong, in one or two lines, for an error of Hydra or OmegaConf."""
    causes = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    text = "\n".join(str(cause) for cause in causes)
    if option := re.search(r"(?:Could not find|Could not load) '([\w/.-]+)/([^/']+)'", text):
        return _explain_option(option[1], option[2].removesuffix(".yaml"), text)
    if ambiguous := re.search(r"Ambiguous value for argument '(.*)'", text):
        return f"{ambiguous[1]}: add -m to sweep over several values, or write key=[value,value]"
    if key := re.search(r"Key '([^']+)' (?:is )?not in '(\w+)'", text):
        return _explain_key(key[1], key[2])
    where = re.search(r"full_key: (\S+)", text)
    if where and (value := re.search(r"(Value '.*|.*could not be converted.*)", str(causes[-1]))):
        return f"{where[1]}: {value[1]}"
    lines = [line.strip() for line in str(causes[-1]).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__


def _explain_option(group: str, name: str, text: str) -> str:
    """No such file in a config group; Hydra's text ends with the options that there are."""
    listing = text.partition("Available options in ")[2].partition("Config search path")[0]
    options = [line.strip() for line in listing.splitlines()[1:] if line.strip()]
    label = "scale" if group.startswith("size/") else group
    return f"{label}={name} is not known: {nearest(name, options)}"


def _explain_key(key: str, class_name: str) -> str:
    """No such key: the nearest of the study's own, else of another study, else all of its own."""
    settings = {item.name for item in dataclasses.fields(Settings)}
    own: set[str] = set()
    others: dict[str, str] = {}
    for study, config_class in configs().items():
        names = {item.name for item in dataclasses.fields(config_class)}
        if config_class.__name__ == class_name:
            own = names
        else:
            others |= dict.fromkeys(names, study)
    hint = nearest(key, own | settings)
    if not hint.startswith("did") and nearest(key, others).startswith("did"):
        close = nearest(key, others).split("'")[1]
        hint = f"did you mean {close!r} of study={others[close]}?"
    return f"{key} is not a key: {hint}"
