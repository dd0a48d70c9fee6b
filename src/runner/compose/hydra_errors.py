"""Checks of arguments and YAML files before Hydra composes them, and short texts for its errors."""

import os
import re
import traceback
from collections.abc import Iterable
from dataclasses import fields
from itertools import pairwise
from math import isnan, nan
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep
from hydra.errors import HydraException

from runner.core.arguments import PICTURE
from runner.core.catalogue import (
    SCALES,
    configs,
    figure_names,
    figure_study,
    own_conf_folders,
    studies,
)
from runner.core.catalogue import options as conf_files
from runner.core.errors import InputError, nearest
from runner.core.settings import Settings
from runner.core.shell import command

MOST_RUNS = 10_000
"""Largest number of runs of one command. All are composed before the first is computed."""

GROUPS = ("study", "scale", "size", "data", "figure", "experiment")
"""The keys that choose YAML files: `config.yaml` lists them."""

READERS = ("hydra", "omegaconf", "antlr4", "yaml")
"""The packages that read a configuration."""


NOT_DECIMAL = re.compile(
    r"\s*(?P<key>\w+): *(?P<number>0[0-7]+|0x[0-9a-fA-F]+|0b[01]+|[1-9]\d*(:[0-5]?\d)+) *(#.*)?"
)
"""Pattern of a line with an integer that is not decimal: YAML reads 010 as 8, and 1:30 as 90."""


def check_words(words: Iterable[str], parser: OverridesParser) -> None:
    """Raise InputError for an argument that cannot be parsed, or that removes a key (`~key`).

    words: the arguments. parser: Hydra's parser of overrides.
    """
    for word, after in pairwise([*words, ""]):
        key, equals, value = word.partition("=")
        if word.startswith("~") and not word.startswith("~hydra"):
            name = key.lstrip("~")
            raise InputError(
                f"{word}: a key cannot be removed; leave {name} out, and it has its default"
            )
        try:
            parser.parse_override(word)
        except (HydraException, ValueError, RecursionError) as error:
            if value.endswith(",") and after and "=" not in after:
                raise InputError(
                    f"{word} {after}: no blank behind a comma: {word}{after}"
                ) from error
            raise InputError(f"{word} cannot be read: {_hint(key, equals, value)}") from error


def check_once(words: Iterable[str]) -> None:
    """Raise InputError if two arguments give a key different values. Hydra would take the last."""
    given: dict[str, str] = {}
    for key, _, value in (word.partition("=") for word in words):
        if given.setdefault(key, value) != value:
            raise InputError(f"{key} is given twice: {given[key]} and {value}")


def _hint(key: str, equals: str, value: str) -> str:
    """Return what to type instead of an argument that cannot be parsed."""
    if not equals:
        name = re.match(r"\w+", key)
        return f"key=value is needed, as in {name[0] if name else 'seed'}=1"
    if element := re.fullmatch(r"(\w+)\[.*\]", key):
        return f"a list is given whole, as in {element[1]}=[{value}]"
    if value.rstrip().endswith(","):
        return f"a value is missing behind the comma, as in {key}={value.rstrip().rstrip(',')}"
    if value.endswith("()"):
        return f"its brackets hold no values, as in {key}=1,2"
    for left, right in ("[]", "{}", "()"):
        if value.count(left) != value.count(right):
            missing = right if value.count(left) > value.count(right) else left
            return f"a bracket {missing} is missing"
    kinds = [item.type for keys in _classes() for item in fields(keys) if item.name == key]
    if kinds and not any("str" in str(kind) for kind in kinds):
        kind = kinds[0].__name__ if isinstance(kinds[0], type) else kinds[0]
        if example := EXAMPLES.get(str(kind).removesuffix(" | None")):
            return f"{key} is {kind}, as in {key}={example}"
    quoted = "'" + value.strip("'\"") + "'"
    return f'a text with signs needs quotes, as in "{key}={quoted}"'


def several_values(parsed: Iterable[Override]) -> str:
    """Return what to type for the several values of a key, of which a sweep would be made.

    parsed: the overrides of the command.
    """
    swept = next((override for override in parsed if override.is_sweep_override()), None)
    key, _, value = (swept.input_line or "" if swept else "").partition("=")
    return _several(key, value)


def _several(key: str, value: str) -> str:
    """Return what to type for several values of a key. Only a list may have them in one run."""
    types = [str(item.type) for keys in _classes() for item in fields(keys) if item.name == key]
    is_list = any(type_.startswith("list") for type_ in types)
    return f"add -m, or write {key}=[{value}] for one run" if is_list else "add -m"


GRIDS = "a figure has a list of grids for each scale, grids: {smoke: [{depth: [8, 16]}]}"
"""How the grids of a figure are written."""

EXAMPLES = {
    "int": "1", "float": "0.1", "bool": "true", "list[int]": "[8,16]", "list[float]": "[0.1,1]",
    "dict[str, Any]": "{key: value}",
}  # fmt: skip
"""A value of each type that is no text, as it is typed."""


def _classes() -> list[type]:
    """Return the class of the settings, and of the parameters of each study."""
    return [Settings, *configs().values()]


def check_choices(parsed: Iterable[Override]) -> None:
    """Raise InputError for a number, a truth value or null where a name of a file is needed."""
    names = {"study": studies(), "scale": SCALES, "figure": figure_names()}
    for override in parsed:
        key, value = override.key_or_group, override.value()
        is_absent = value is None and key in ("study", "scale")
        if key in GROUPS and (is_absent or isinstance(value, bool | int | float)):
            typed = str(override.input_line).partition("=")[2]
            hint = f": {nearest(typed, names[key])}" if key in names else ": a name is needed"
            raise InputError(f"{key}={typed} is unknown{hint}")


def check_brackets(parsed: Iterable[Override], config: type) -> None:
    """Raise InputError for a parameter with several values, `8,16`, that needs lists.

    config: the class of the study's parameters.
    """
    types = {item.name: str(item.type) for item in fields(config)}
    for override in parsed:
        key, swept = override.key_or_group, override.value()
        values = getattr(swept, "list", []) if override.is_sweep_override() else []
        if types.get(key, "").startswith("list") and any(
            isinstance(value, bool | int | float) for value in values
        ):
            typed = str(override.input_line).partition("=")[2]
            lists = ",".join(f"[{part}]" for part in typed.split(","))
            raise InputError(
                f"{key}={typed}: a list needs brackets: {key}=[{typed}], or -m {key}={lists} for"
                " a run of each"
            )


def check_pictures(words: Iterable[str]) -> None:
    """Raise InputError for an argument of `runner show`, which changes a picture and no run."""
    given = dict(word.partition("=")[::2] for word in words)
    if not (asked := given.keys() & PICTURE.keys()):
        return  # the classes of all studies are imported for such an argument only
    known = {item.name for keys in _classes() for item in fields(keys)}
    presets = {key for key in asked if key in GROUPS and "/" in given[key]}  # size=bn_only/quick
    for key in asked - known - presets:
        figure = given.get("figure", "fig4")
        shown = command("show", figure, f"{key}={given[key]}")
        call = f'().savefig("{given[key]}")' if key == "out" else f"({key}=...)"
        raise InputError(
            f"{key} changes a picture, not a run. A figure of the reference: {shown}. Yours, in"
            f' Python: runner.figure("{figure}", ...).draw{call}'
        )


def check_flag(word: str) -> None:
    """Raise InputError for an argument `--key` if `key` is a parameter or a setting."""
    key, equals, value = word.lstrip("-").partition("=")
    name = key.replace("-", "_")
    known = {item.name for keys in _classes() for item in fields(keys)}
    if word.startswith("--") and name in known:
        raise InputError(f"{word}: keys have no dashes: {name}={value if equals else '...'}")


def check_figure(words: Iterable[str]) -> None:
    """Raise InputError if the arguments name a figure, and a study that it does not draw."""
    chosen = dict(word.partition("=")[::2] for word in words)
    figure, study = chosen.get("figure"), chosen.get("study")
    if figure in figure_names() and study in studies() and figure_study(figure) != study:
        right = figure_study(figure)
        raise InputError(f"figure={figure} is of study {right}: leave study={study} out")


def check_number(parsed: Iterable[Override]) -> None:
    """Raise InputError if a sweep has more than MOST_RUNS runs.

    The runs are counted without being listed. parsed: the overrides of the sweep. Also raises
    InputError for a range without numbers or step.
    """
    number = 1.0
    for override in parsed:
        number *= _count(override) if override.is_sweep_override() else 1
        if number > MOST_RUNS:
            line = override.input_line
            raise InputError(f"{line}: {number:,.0f} runs; one command has at most {MOST_RUNS:,}")


def _count(override: Override) -> float:
    """Return the number of values of a sweep over one key."""
    swept = override.value()
    if not isinstance(swept, RangeSweep):
        return len(getattr(swept, "list", [None]))
    start, stop, step = (float(limit or 0) for limit in (swept.start, swept.stop, swept.step))
    number = (stop - start) / step if step else nan
    if isnan(number):
        raise InputError(
            f"{override.input_line}: a range needs two numbers and a step that is not 0,"
            " as in range(0,1,0.5)"
        )
    return max(0, number)


def check_list(key: str, value: Any, type_: Any) -> None:
    """Raise InputError if a key needs a list, but its value is not a list or has lists in it.

    type_: the type of the key's field. If it allows None, the value may be null.
    """
    is_reference = isinstance(value, str) and "${" in value
    if not str(type_).startswith("list") or is_reference:
        return
    if isinstance(value, list):
        if inner := next((item for item in value if isinstance(item, list | dict)), None):
            raise InputError(
                f"{key} holds a list in a list: write {key}=[{','.join(map(str, inner))}]"
            )
    elif value is not None or "None" not in str(type_):
        shown = "..." if isinstance(value, dict) or value is None else value
        raise InputError(f"{key} must be a list: {key}=[{shown}]")


def check_files(words: Iterable[str]) -> None:
    """Raise InputError if an argument chooses a user's YAML file that Hydra would misread.

    Hydra misreads a file that is not in UTF-8, has text before `# @package`, or has an integer that
    is not decimal (010, 0x1f, 1:30). In a file of the group `experiment`, Hydra ignores a line that
    chooses another file, such as `scale: smoke`, unless it is in the list `defaults`.
    """
    for word in words:
        group, _, names = word.lstrip("+").partition("=")
        for name in names.split(",") if group in GROUPS else ():
            for path in [folder / group / f"{name}.yaml" for folder in own_conf_folders()]:
                if os.path.isfile(path):  # pathlib raises an error for a long name
                    _check_file(path, group)


def _check_file(path: Path, group: str) -> None:
    try:
        text = path.read_text("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: not in UTF-8: save the file in UTF-8") from error
    if text.startswith("\ufeff"):
        raise InputError(f"{path} begins with a byte order mark: save it in UTF-8 without one")
    before, header, _ = text.partition("# @package")
    if header and before.strip():
        raise InputError(f"{path}: the line {header} ... must be the first line")
    for count, row in enumerate(text.splitlines(), 1):
        if not_decimal := NOT_DECIMAL.fullmatch(row):
            key, written = not_decimal["key"], not_decimal["number"]
            value = yaml.safe_load(written)
            raise InputError(
                f"{path}, line {count}: {key}: {written} is {value} in YAML: write {value}"
            )
    chosen = re.search(rf"(?m)^(?!data:.*[.](npz|csv)\b)({'|'.join(GROUPS)}):.*", text)
    if group == "experiment" and chosen:
        raise InputError(
            f"{path}: {chosen[0]} has no effect: write `- override /{chosen[0]}` under defaults"
        )


def is_hydras(error: Exception) -> bool:
    """Return whether an error comes from Hydra or OmegaConf, which means a wrong configuration."""
    if type(error).__module__.partition(".")[0] in READERS:
        return True
    if isinstance(error, OSError):  # a closed pipe, a folder where a file should be
        return False
    *_, (innermost, _) = traceback.walk_tb(error.__traceback__)
    return innermost.f_globals.get("__name__", "").partition(".")[0] in READERS


def explain(error: Exception) -> str:
    """Return a message of one or two lines that replaces an error of Hydra or OmegaConf."""
    causes: list[BaseException] = [error]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    cause = causes[-1]
    if isinstance(cause, yaml.MarkedYAMLError) and cause.problem_mark:
        return f"{cause.problem_mark.name}, line {cause.problem_mark.line + 1}: {cause.problem}"
    text = "\n".join(map(str, causes))
    if option := re.search(r"(?:Could not find|Could not load) '([\w/.-]+)/([^/']*)'", text):
        return _explain_option(option[1], option[2].removesuffix(".yaml"), text)
    if ambiguous := re.search(r"Ambiguous value for argument '(.*)'", text):
        key, _, value = ambiguous[1].partition("=")
        return f"{ambiguous[1]}: several values are a sweep: {_several(key, value)}"
    if key := re.search(r"Key '([^']+)' (?:is )?not in '(\w+)'", text):
        file = re.search(r"In '(size/\w+|[\w/-]+)[^']*': ", text)
        return (f"conf/{file[1]}.yaml: " if file else "") + explain_key(key[1], key[2])
    if "Cannot merge DictConfig with ListConfig" in text:  # the text names no key
        file = re.search(r"In '([\w/.-]+)'", text)
        return f"{file[1]}.yaml: {GRIDS}" if file else f"{GRIDS}; source is a mapping"
    where = re.search(r"full_key: (\S+)", text)
    if failed := re.search(r"(\w+) raised while resolving interpolation: (.*)", text):
        start = f"{where[1]}: " if where else ""
        return f"{start}its ${{...}} cannot be resolved ({failed[1]}: {failed[2]})"
    if where and "is not a ListConfig" in text:
        return f"{where[1]} must be a list: {where[1]}=[...]"
    if where and (listed := re.search(r"Value '\[(.*)\]' of type 'list' could not", str(cause))):
        several = f"{where[1]}={listed[1].replace(', ', ',')}"
        return f"{where[1]} takes one value: -m {several} makes a run of each"
    if where and (value := re.search(r"(Value '.*|.*could not be converted.*)", str(cause))):
        return f"{where[1]}: {value[1]}"
    if where and "is not Optional" in text:
        return f"{where[1]}=null: a value is needed"
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__


def _explain_option(group: str, name: str, text: str) -> str:
    """Return the message for a missing file.

    text: Hydra's message, which ends with a list of the existing files.
    """
    listing = text.partition("Available options in ")[2].partition("Config search path")[0]
    options = [line.strip() for line in listing.splitlines()[1:] if line.strip()]
    if group == "schema":
        return f"conf/study/{name}.yaml has no study: no folder {name} with a config.py"
    if group == "study" and name in studies():
        return f"study={name} has no conf/study/{name}.yaml"
    if group.startswith("size/") and name in SCALES:
        if group.removeprefix("size/") not in conf_files("size"):
            return f"conf/{group}.yaml is missing: it sets the parameters at each scale"
        return f"conf/{group}.yaml has no scale {name}"
    if f"{group}={name}" == "hydra/launcher=joblib":
        return "hydra/launcher=joblib needs pip install 'theory-runner[scale-out]'"
    if group.startswith("data/"):  # a path, as in data=images/stripes
        group, name = "data", f"{group.removeprefix('data/')}/{name}"
    if group == "data" and os.path.isdir(name):
        hint = "write its images into an npz file (docs/running.md has the lines)"
        return f"data={name} is a folder: {hint}"
    label = "scale" if group.startswith("size/") else group
    options = options or [*{"study": studies(), "figure": figure_names()}.get(group, ())]
    more = ", or your own images, as stripes.npz" if group == "data" else ""
    return f"{label}={name} is unknown: {nearest(name, options)}{more}"


def explain_key(key: str, class_name: str) -> str:
    """Return the message for an unknown key. It names the most similar key of any study.

    key: the unknown key. class_name: the name of the chosen study's parameter class.
    """
    keys = {study: {item.name for item in fields(config)} for study, config in configs().items()}
    chosen = next((name for name in keys if configs()[name].__name__ == class_name), "")
    parameters = keys.pop(chosen, set())
    if key == "checksums" and "data" in parameters:  # conf/data/<data>.yaml has given it
        choices = configs()[chosen].__dataclass_fields__["data"].metadata["choices"]
        return f"study={chosen} reads no files: data={' or data='.join(choices)}"
    for name in (f"{key}s", key.removesuffix("s")):  # a list for a value, or a value for a list
        if name in parameters:
            item = configs()[chosen].__dataclass_fields__[name]
            form = f"{name}=[...]" if str(item.type).startswith("list") else f"{name}=..."
            return f"{chosen} has no parameter {key}: did you mean {form}?"
    hint = nearest(key, parameters | {item.name for item in fields(Settings)})
    others = {name: study for study, names in keys.items() for name in names}
    if chosen and key in others:
        have = ", ".join(study for study, names in keys.items() if key in names)
        return f"{chosen} has no parameter {key}. Studies with {key}: {have}"
    if hint.startswith("did"):
        return f"{key} is not a key: {hint}"
    if (close := nearest(key, others)).startswith("did"):
        name = close.split("'")[1]
        return f"{key} is not a key: did you mean {name!r} of study={others[name]}?"
    if chosen:
        everything = f"All of them: {command(f'study={chosen}', '--help', 'all')}"
        return f"{chosen} has no parameter {key}, and none with a similar name. {everything}"
    return f"{key} is not a key: {hint}"
