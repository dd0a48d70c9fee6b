"""From arguments to checked jobs: Hydra composes the files of `conf/`, dataclasses check values.

A job has its arguments, because Hydra's launchers need them. It also has the parameters and
settings that were read from the composed configuration. The process that computes the run receives
these values.
"""

import copy
import json
import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, fields, make_dataclass
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, OverrideType, RangeSweep
from omegaconf import DictConfig, OmegaConf, open_dict

from runner.compose.hydra_errors import (
    GROUPS,
    check_list,
    check_number,
    explain,
    explain_key,
    is_hydras,
)
from runner.core import input_files
from runner.core.catalogue import (
    CONF,
    SCALES,
    config_of,
    figure_names,
    figure_study,
    own_conf_folders,
    sizes,
    studies,
)
from runner.core.choices import names_images
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, default_of
from runner.core.user_functions import function_at, place_of
from runner.runs.jobs import Job

PATHS = {"outputs", "data_folder"}
"""Settings that are paths. Hydra needs quotes around most paths."""

DIGITS = 12
"""Significant digits of the values in a range: 0.1 + 0.2 becomes 0.3."""

HYDRA = threading.RLock()
"""A lock for Hydra, which has one global state in the process."""


@contextmanager
def hydras_errors_explained() -> Iterator[None]:
    """Turn errors that Hydra raises within the block into an InputError of one or two lines."""
    try:
        yield
    except Exception as error:
        if not is_hydras(error):
            raise
        raise InputError(explain(error)) from error


@contextmanager
def hydra_ready(words: Iterable[str] = ()) -> Iterator[None]:
    """Set up Hydra for composing configurations within the block.

    Hydra then has the files in `conf/`, and the parameters and sizes of the studies. At the end its
    earlier state is restored. Only one thread at a time can be in the block. words: the arguments
    that will be composed, as in `register`. Raises InputError instead of Hydra's errors.
    """
    with HYDRA, hydras_errors_explained():
        hydra, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
        store = ConfigStore.instance()
        nodes = store.repo
        GlobalHydra.instance().clear()
        # Hydra copies all nodes whenever it composes, so those of other studies are left out.
        store.repo = {group: nodes[group] for group in nodes.keys() - {"schema", "size"}}
        try:
            register(words)
            with initialize_config_dir(str(CONF), version_base="1.3"):
                # The time of the command does not separate the folders of a sweep's runs.
                OmegaConf.register_new_resolver("now", datetime.now().strftime, replace=True)
                yield
        finally:
            GlobalHydra.instance().hydra = hydra
            HydraConfig.instance().cfg = config
            store.repo = nodes


def register(words: Iterable[str] = ()) -> None:
    """Give Hydra the parameters, scales and sizes of studies, which are not in files that it reads.

    words: the command's arguments. If they name one study or figure, only its study is registered,
    so that other studies need not be imported.
    """
    store = ConfigStore.instance().store
    for scale in SCALES:
        store(group="scale", name=scale, node={"scale": scale}, package="_global_")
    for study in _named(words):
        store(group="schema", name=study, node=_schema(study), package="_global_")
        for scale, values in sizes(study).items():
            store(group=f"size/{study}", name=scale, node=values, package="_global_")


def _named(words: Iterable[str]) -> list[str]:
    """Return the studies that the arguments may need: all studies unless one is named."""
    keys = dict(word.partition("=")[::2] for word in words)
    if "experiment" not in keys:
        if keys.get("study") in studies():
            return [keys["study"]]
        if "study" not in keys and keys.get("figure") in figure_names():
            return [figure_study(keys["figure"])]
    return list(studies())


def as_whole_numbers(words: Iterable[str]) -> list[str]:
    """Return the arguments with integers in full: `steps=1000` instead of `steps=1e3`.

    Only parameters that are integers are changed, since Hydra does not accept 1e3 for an integer.
    """
    words = list(words)
    classes: list[type] = [Settings, *map(config_of, _named(words))]
    integers = {
        item.name for keys in classes for item in fields(keys) if item.type in (int, int | None)
    }
    pairs = [re.fullmatch(r"(\w+)=([-+]?[0-9.]+[eE][-+]?[0-9]+)", word) for word in words]
    return [
        f"{pair[1]}={_whole(float(pair[2]))}" if pair and pair[1] in integers else word
        for word, pair in zip(words, pairs, strict=True)
    ]


def _schema(study: str) -> type:
    """Return a mutable dataclass of the settings, the study's parameters and a figure's grids."""
    parameters = config_of(study)
    members: list[tuple[str, Any, Any]] = [("grids", Any, None)]
    for item in (*fields(Settings), *fields(parameters)):
        value: Any = study if item.name == "study" else default_of(item)
        is_plain = not isinstance(value, list | dict)
        default = {"default": value} if is_plain else {"default_factory": value.copy}
        members.append((item.name, item.type, field(**default)))
    return make_dataclass(parameters.__name__, members)


def search_path() -> list[str]:
    """Return an argument that makes Hydra search the YAML files of the user's packages.

    The list is empty if the user has no packages.
    """
    folders = ",".join(json.dumps(f"file://{folder}") for folder in own_conf_folders())
    return [f"hydra.searchpath=[{folders}]"] if folders else []


def read(composed: DictConfig) -> tuple[StudyConfig, Settings]:
    """Return the parameters and the settings in a configuration.

    composed: the result of `bare`. Raises InputError if a key is unknown, a value is outside its
    range, or a user's function cannot be imported.
    """
    parameters = config_of(composed.study)
    items = [*fields(parameters), *fields(Settings)]
    for key in set(composed) - {item.name for item in items}:
        raise InputError(explain_key(str(key), parameters.__name__))
    values: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    values |= input_files.resolved(parameters, values)
    for item in items:  # Hydra resolves ${...} without a check
        check_list(item.name, values[item.name], item.type)
    if not isinstance(values["source"], dict):
        raise InputError("source must be a mapping: source.key=value, see conf/data/")
    config = parameters(**{item.name: values[item.name] for item in fields(parameters)})
    for function in config.own_functions():
        function_at(function)  # raises an error before anything is computed
    return config, Settings(**{item.name: values[item.name] for item in fields(Settings)})


def bare(composed: DictConfig) -> DictConfig:
    """Return a copy of a configuration that has only parameters and settings, with their types.

    The keys `grids` and `hydra` are removed.
    """
    copied = copy.copy(composed)
    with open_dict(copied):
        for key in ("grids", "hydra"):
            copied.pop(key, None)
    return copied


class Composer:
    """Makes jobs from arguments `key=value`, which Hydra calls overrides.

    Hydra needs 0.1 s to compose a configuration. Jobs whose arguments choose the same YAML files
    therefore share one, in which only values are replaced.
    """

    def __init__(self) -> None:
        # The loader knows what study=glob(rank*) means.
        self.parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        self.composed: dict[tuple[str, ...], DictConfig] = {}
        self.parsed: dict[str, Override] = {}
        self.bare: dict[tuple[str, ...], DictConfig] = {}  # a copy takes 2 ms, so one is shared

    def parse(self, lines: list[str]) -> list[Override]:
        """Return Hydra's overrides for command-line arguments such as `width=64`, in their order.

        lines: the arguments. The result for each argument is stored, and used again for other jobs.
        """
        for line in lines:
            if line not in self.parsed:
                (self.parsed[line],) = self.parser.parse_overrides([line])
        return [self.parsed[line] for line in lines]

    def compose(self, overrides: Iterable[Override]) -> DictConfig:
        """Return Hydra's configuration for the overrides that choose YAML files.

        Overrides that give values to parameters are ignored.
        """
        key = files_of(overrides)
        if key not in self.composed:
            composed = compose("config", [*search_path(), *key], return_hydra_config=True)
            self.composed[key] = composed
        return self.composed[key]

    def job(self, overrides: list[str]) -> Job:
        """Return the job for these arguments: the same job as by composing them with Hydra.

        overrides: the arguments `key=value` of one job. Raises InputError as `read` does.
        """
        parsed = self.parse(overrides)
        files = files_of(parsed)
        if files not in self.bare:
            self.bare[files] = bare(self.compose(parsed))
        composed = copy.deepcopy(self.bare[files])
        lines, keys = [], [override.key_or_group for override in parsed]
        for override in parsed:
            line = str(override.input_line)
            if is_value(override):
                value = _value(override, composed.study)
                OmegaConf.update(composed, override.key_or_group, value)
                if repr(value) != repr(override.value()):  # the launcher composes the line again
                    (line,) = overrides_of({override.key_or_group: value})
            is_file = override.key_or_group == "data" and is_value(override)  # no option of Hydra
            if is_file and "checksums" in keys:
                raise InputError(f"{line}: a file of your own needs no checksums")
            if not override.is_hydra_override() and not is_file:  # the launcher adds these
                lines.append(line)
        return Job(*read(composed), tuple(lines))

    def common(self, words: list[str]) -> DictConfig:
        """Return the configuration that all jobs of a command share.

        words: the arguments. Arguments with several values (`key=1,2`) are ignored.
        """
        parsed = self.parser.parse_overrides(words)
        return self.compose(item for item in parsed if not item.is_sweep_override())

    def points(self, grids: Iterable[Mapping[str, str]], typed: list[str]) -> list[list[str]]:
        """Return the arguments of each job in several grids, in order and without repetitions.

        grids: each maps keys to their values, as a user types them (`1,2`). A grid has a job for
        each combination of values. typed: the user's arguments, which replace values of the grids.
        Raises InputError if there are no jobs, or too many.
        """
        keys = {override.key_or_group for override in self.parser.parse_overrides(typed)}
        points: dict[tuple[str, ...], None] = {}
        for grid in grids:
            lines = [f"{key}={values}" for key, values in grid.items() if key not in keys]
            parsed = self.parse([*lines, *typed])
            check_number(parsed)
            points |= dict.fromkeys(product(*map(_texts, parsed)))
        if not points:
            raise InputError(f"no values are given, so there are no runs: {' '.join(typed)}")
        return list(map(list, points))


def files_of(overrides: Iterable[Override]) -> tuple[str, ...]:
    """Return the arguments that choose YAML files, in the user's words."""
    return tuple(str(item.input_line) for item in overrides if not is_value(item))


def is_own_images(key: str, value: Any) -> bool:
    """Return whether `key=value` names a user's file of images, for which there is no YAML file."""
    return key == "data" and names_images(value)


def is_value(override: Override) -> bool:
    """Return whether an argument gives a value to a key. Otherwise it chooses a YAML file."""
    if is_own_images(override.key_or_group, override.value()):
        return override.package is None
    return (
        override.type == OverrideType.CHANGE
        and override.package is None
        and not override.is_hydra_override()
        and override.key_or_group.partition(".")[0] not in (*GROUPS, "grids")
    )


def _value(override: Override, study: str) -> Any:
    """Return the value of an override. 1e3 becomes an integer if the key needs an integer."""
    items = {item.name: item for keys in (Settings, config_of(study)) for item in fields(keys)}
    value, item = override.value(), items.get(override.key_or_group)
    if item is None:
        return value
    check_list(item.name, value, item.type)
    return _whole(value) if re.search(r"\bint\b", str(item.type)) else value


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_whole, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _texts(override: Override) -> list[str]:
    """Return an override for each value of one override with several values."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [str(override.input_line)]
    if not override.is_discrete_sweep():
        raise InputError(
            f"{override.input_line}: this sweep needs a list of values, for example {key}=1,2,3"
        )
    texts = list(override.sweep_string_iterator())
    swept = override.value()
    if isinstance(swept, RangeSweep) and not all(text.lstrip("-").isdigit() for text in texts):
        texts = [f"{float(text):.{DIGITS}g}" for text in texts]
        texts = [text for text in texts if float(text) != swept.stop]
    return [f"{key}={text}" for text in texts]


def with_quoted_paths(words: Iterable[str]) -> list[str]:
    """Return arguments in which values that are paths are put into quotes.

    A value that has quotes already, or is empty or null, is not changed.
    """
    quoted = []
    for word in words:
        key, equals, value = word.partition("=")
        is_ready = re.fullmatch(r"""null|'.*'|".*"|\s*""", value, re.DOTALL)
        is_path = key in PATHS or is_own_images(key, value) and os.path.isfile(value)
        quoted.append(f"{key}={_quoted(value)}" if is_path and not is_ready else word)
    return quoted


def overrides_of(keys: Mapping[str, Any], choices: bool = False) -> list[str]:
    """Return an argument `key=value` for each key, as a user would type it.

    keys: values by key. choices: whether a list means several runs, one for each element. Raises
    InputError for a value that cannot be typed.
    """
    text = choices_of if choices else _text
    return [f"{key}={text(value)}" for key, value in keys.items()]


def choices_of(value: Any) -> str:
    """Return values as a user types them in a sweep: `1,2`.

    value: a list, tuple, range or array, or a single value. Raises InputError for an empty list,
    and for a value that cannot be typed.
    """
    value = value.tolist() if hasattr(value, "tolist") else value  # from numpy or torch
    values = value if isinstance(value, list | tuple | range) else [value]
    if not values:
        raise InputError("an empty list of values gives no runs: give at least one value")
    return ",".join(map(_text, values))


def _text(value: Any) -> str:
    """Return a Python value as a user types it. Raises InputError for an object without a text."""
    value = value.tolist() if hasattr(value, "tolist") else value  # from numpy or torch
    if value is None:
        return "null"
    if isinstance(value, int | float):
        return str(value).lower()
    if isinstance(value, str | Path):
        # A value without quotes may choose a file.
        is_plain = re.fullmatch(r"[A-Za-z_][\w./-]*", str(value))
        if is_plain and str(value).lower() not in ("null", "true", "false", "nan", "inf"):
            return str(value)
        return _quoted(re.sub(r"(\\*)\$\{", r"\1\1\\${", str(value)))
    if isinstance(value, list | tuple | range):
        return f"[{','.join(map(_text, value))}]"
    if callable(value):
        return _quoted(place_of(value))
    raise InputError(
        f"{value!r} cannot be the value of a parameter: it is a {type(value).__name__}"
    )


def _quoted(value: str) -> str:
    """Return a text in Hydra's quotes, in which a backslash is special only before a quote."""
    return "'" + re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + m[2].replace("'", "\\'"), value) + "'"
