"""From overrides to checked jobs: Hydra composes `conf/`, the dataclasses check.

A job is what Hydra takes it for, a list of overrides, of which `config.yaml` and the files that it
names make a configuration; and what has been read out of that: the values themselves go to the
process that computes the run.
"""

import copy
import json
import re
import threading
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
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

from runner.compose.checking import check_list, check_number
from runner.compose.hydra_errors import explain, explain_key, is_hydras
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
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, default_of
from runner.core.user_functions import function_at, place_of
from runner.runs.jobs import Job

GROUPS = {"study", "scale", "size", "data", "figure", "experiment"}
"""The keys that choose files: `config.yaml` lists them."""

PATHS = {"outputs", "data_folder"}
"""Settings that are never several in one command."""

DIGITS = 12
"""Of the values of a range: 0.1 + 0.2 is 0.3."""

HYDRA = threading.RLock()
"""Hydra's state is one for the process."""


@contextmanager
def hydra_ready(words: Iterable[str] = ()) -> Iterator[None]:
    """Let Hydra know `conf/`, and the types and sizes of studies; its errors become InputError.

    words: what will be composed. One thread at a time; Hydra is left as it was found.
    """
    with HYDRA:
        hydra, config = GlobalHydra.instance().hydra, HydraConfig.instance().cfg
        GlobalHydra.instance().clear()
        try:
            register(words)
            with initialize_config_dir(str(CONF), version_base="1.3"):
                # A moment of the command: it gives no two runs of a sweep separate folders.
                OmegaConf.register_new_resolver("now", datetime.now().strftime, replace=True)
                yield
        except Exception as error:
            if not is_hydras(error):
                raise
            raise InputError(explain(error)) from error
        finally:
            GlobalHydra.instance().hydra = hydra
            HydraConfig.instance().cfg = config


def register(words: Iterable[str] = ()) -> None:
    """Store what `config.yaml` names and no file of its own holds: schemas, scales, sizes.

    words: where they name one study, or a figure, only this study is imported.
    """
    store = ConfigStore.instance().store
    for scale in SCALES:
        store(group="scale", name=scale, node={"scale": scale}, package="_global_")
    for study in _named(words):
        store(group="schema", name=study, node=_schema(study), package="_global_")
        for scale, values in sizes(study).items():
            store(group=f"size/{study}", name=scale, node=values, package="_global_")


def _named(words: Iterable[str]) -> list[str]:
    """Return the studies that words may mean: all of them unless one is named."""
    keys = dict(word.partition("=")[::2] for word in words)
    if "experiment" not in keys:
        if keys.get("study") in studies():
            return [keys["study"]]
        if "study" not in keys and keys.get("figure") in figure_names():
            return [figure_study(keys["figure"])]
    return list(studies())


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
    """Return the override that lets Hydra search the YAML files of the user's packages."""
    own = ",".join(json.dumps(f"file://{each}") for each in own_conf_folders())
    return [f"hydra.searchpath=[{own}]"] if own else []


def read(composed: DictConfig) -> tuple[StudyConfig, Settings]:
    """Return the parameters and the settings that a composed configuration holds.

    Raises InputError when a key is unknown or a value is outside its range.
    """
    parameters = config_of(composed.study)
    names = [[item.name for item in fields(each)] for each in (parameters, Settings)]
    for key in set(composed) - {*names[0], *names[1], "grids", "hydra"}:
        raise InputError(explain_key(str(key), parameters.__name__))
    bare = _without(composed, "grids", "hydra")
    values: Any = OmegaConf.to_container(bare, resolve=True, throw_on_missing=True)
    for item in (*fields(parameters), *fields(Settings)):  # what Hydra resolves unchecked
        check_list(item.name, values[item.name], item.type)
    if not isinstance(values["source"], dict):
        raise InputError("source must be a mapping: source.key=value, see conf/data/")
    of_study, of_settings = ({name: values[name] for name in each} for each in names)
    config = parameters(**of_study)
    for place in config.own_functions():  # whether it is there: before anything is computed
        function_at(place)
    return config, Settings(**of_settings)


def _without(composed: DictConfig, *keys: str) -> DictConfig:
    """Return a copy without some keys, with the types that `masked_copy` would lose."""
    bare = copy.copy(composed)
    with open_dict(bare):
        for key in keys:
            bare.pop(key, None)
    return bare


class Composer:
    """Composes jobs; jobs with the same files at once, since a composition takes 0.1 s."""

    def __init__(self) -> None:
        # The loader knows what study=glob(rank*) means.
        self.parser = OverridesParser.create(GlobalHydra.instance().config_loader())
        self.composed: dict[tuple[str, ...], tuple[DictConfig, DictConfig]] = {}

    def compose(self, files: Iterable[str]) -> tuple[DictConfig, DictConfig]:
        """Return what Hydra makes of overrides: what a job needs of it, and all of it."""
        key = tuple(files)
        if key not in self.composed:
            composed = compose("config", [*search_path(), *key], return_hydra_config=True)
            self.composed[key] = _without(composed, "grids", "hydra"), composed
        return self.composed[key]

    def job(self, overrides: list[str]) -> Job:
        """Return the job of these overrides, as Hydra would compose it of all of them at once."""
        parsed = self.parser.parse_overrides(overrides)
        files, _ = self.compose(str(each.input_line) for each in parsed if not self.is_value(each))
        composed, lines = copy.deepcopy(files), []
        for each in parsed:
            line = str(each.input_line)
            if self.is_value(each):
                value = self.value(each, composed.study)
                OmegaConf.update(composed, each.key_or_group, value)
                if repr(value) != repr(each.value()):  # Hydra composes it again where it runs
                    (line,) = overrides_of({each.key_or_group: value})
            if not each.is_hydra_override():  # those reach a job with its launcher's
                lines.append(line)
        return Job(*read(composed), tuple(lines))

    def value(self, override: Override, study: str) -> Any:
        """Return the value that an override gives: 1e3 is a whole number where one is wanted."""
        known = {each.name: each for of in (Settings, config_of(study)) for each in fields(of)}
        item = known.get(override.key_or_group)
        if item is not None:
            check_list(item.name, override.value(), item.type)
        wants_int = item is not None and re.search(r"\bint\b", str(item.type))
        return _whole(override.value()) if wants_int else override.value()

    def is_value(self, override: Override) -> bool:
        """Return whether an override gives a key its value, and neither chooses a file nor more."""
        return (
            override.type == OverrideType.CHANGE
            and override.package is None
            and not override.is_hydra_override()
            and override.key_or_group.partition(".")[0] not in {*GROUPS, "grids"}
        )

    def common(self, words: list[str]) -> DictConfig:
        """Return what the jobs of a command have in common: files that are chosen once."""
        parsed = self.parser.parse_overrides(words)
        once = [each for each in parsed if not each.is_sweep_override()]
        return self.compose(str(each.input_line) for each in once if not self.is_value(each))[1]

    def points(self, grids: Iterable[Mapping[str, str]], typed: list[str]) -> list[list[str]]:
        """Return the overrides of every job of a union of grids, in order, none twice.

        grids: of each, key -> choices as one types them (`1,2`); typed: what was typed, and wins.
        Raises InputError where there is none.
        """
        keys = {each.key_or_group for each in self.parser.parse_overrides(typed)}
        found: dict[tuple[str, ...], None] = {}
        for grid in grids:
            lines = [f"{key}={values}" for key, values in grid.items() if key not in keys]
            parsed = self.parser.parse_overrides([*lines, *typed])
            check_number(parsed)
            found |= dict.fromkeys(product(*map(_texts, parsed)))
        if not found:
            raise InputError(f"no values are given, so there are no runs: {' '.join(typed)}")
        return [list(point) for point in found]


def _whole(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_whole, value))
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _texts(override: Override) -> list[str]:
    """Return the overrides of single jobs that one override of a sweep yields."""
    key = override.get_key_element()
    if not override.is_sweep_override():
        return [str(override.input_line)]
    if not override.is_discrete_sweep():
        raise InputError(
            f"{override.input_line}: this sweep needs a list of values, for example {key}=1,2,3"
        )
    texts = list(override.sweep_string_iterator())
    if isinstance(swept := override.value(), RangeSweep) and not all(map(_is_whole, texts)):
        texts = [f"{float(text):.{DIGITS}g}" for text in texts]
        texts = [text for text in texts if float(text) != swept.stop]
    return [f"{key}={text}" for text in texts]


def _is_whole(text: str) -> bool:
    return text.lstrip("-").isdigit()


def words_as_typed(words: Iterable[str]) -> list[str]:
    """Return words with the values of texts and paths in quotes, where Hydra needs quotes."""
    words = list(words)
    types: dict[str, set[Any]] = defaultdict(set)
    classes: list[type] = [Settings, *map(config_of, _named(words))]
    for class_ in classes:
        for item in fields(class_):
            types[item.name].add(item.type)
    texts = {name for name, of in types.items() if of <= {str, str | None}} - GROUPS - PATHS
    return [_as_typed(word, texts) for word in words]


AS_IT_IS = re.compile(r"""null|'.*'|".*"|\s*""", re.DOTALL)
"""A value that needs no quotes."""

SEPARATOR = re.compile(r""",(?=(?:[^'"]|'[^']*'|"[^"]*")*$)""")
"""A comma outside quotes."""


def _as_typed(word: str, texts: Collection[str]) -> str:
    """Return `key=value` so that Hydra takes its value for the text that it is.

    texts: the keys whose values are texts. A value that has quotes already, or is null, stays
    unchanged; so does a function of Hydra's for a text.
    """
    key, equals, value = word.partition("=")
    if not equals or AS_IT_IS.fullmatch(value):
        return word
    if key in PATHS:
        return f"{key}={_quoted(value)}"
    if key in texts and not re.fullmatch(r"\w+\(.*\)", value):
        parts = SEPARATOR.split(value)
        quoted = (part if AS_IT_IS.fullmatch(part) else _quoted(part) for part in parts)
        return f"{key}={','.join(quoted)}"
    return word


def overrides_of(keys: Mapping[str, Any], choices: bool = False) -> list[str]:
    """Return `key=value` for each key. choices: a list means several runs.

    Raises InputError for a value that cannot be typed.
    """
    return [
        f"{key}={choices_of(value) if choices else _text(value)}" for key, value in keys.items()
    ]


def choices_of(value: Any) -> str:
    """Return values as they are typed in a sweep. Raises InputError as `overrides_of` does."""
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy and torch
    values = value if isinstance(value, list | tuple | range) else [value]
    if not values:
        raise InputError("an empty list of values gives no runs: give at least one value")
    return ",".join(map(_text, values))


def _text(value: Any) -> str:
    """Return a value of Python as one would type it; a text means itself, whatever is in it."""
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy and torch
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, str | Path):
        # A value without quotes may choose a file.
        plain = (
            re.fullmatch(r"[A-Za-z_][\w./-]*", str(value)) and str(value).lower() not in NO_TEXTS
        )
        return str(value) if plain else _quoted(re.sub(r"(\\*)\$\{", r"\1\1\\${", str(value)))
    if isinstance(value, list | tuple | range):
        return f"[{','.join(map(_text, value))}]"
    if callable(value):
        return _quoted(place_of(value))
    raise InputError(f"{value!r} is no value of a parameter: {type(value).__name__}")


NO_TEXTS = {"null", "true", "false", "nan", "inf"}
"""Words that are values of other types if they have no quotes."""


def _quoted(value: str) -> str:
    """Return a text in Hydra's quotes; there a backslash is special only before a quote."""
    return "'" + re.sub(r"(\\*)('|$)", lambda m: m[1] * 2 + m[2].replace("'", "\\'"), value) + "'"
