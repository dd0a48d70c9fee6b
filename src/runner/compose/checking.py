"""Checks of arguments and files whose faults Hydra would not report, made before it composes."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import ceil, isfinite, isnan, prod
from pathlib import Path
from typing import Any

import yaml
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep
from hydra.errors import HydraException

from runner.core.catalogue import (
    configs,
    figure_names,
    figure_study,
    own_conf_folders,
    studies,
)
from runner.core.errors import InputError
from runner.core.settings import Settings

MOST_RUNS = 10_000
"""Largest number of runs of one command. All are composed before the first is computed."""

CHOOSING = ("study", "scale", "data", "figure", "size")
"""Keys that choose files. An experiment overrides them in its list of defaults."""


def check_words(words: Iterable[str], parser: OverridesParser | None = None) -> None:
    """Raise InputError for an argument that cannot be parsed, or removes a key."""
    parser = parser or OverridesParser.create()
    for word in words:
        key, equals, value = word.partition("=")
        if word.startswith("~") and not word.startswith("~hydra"):
            name = key.lstrip("~")
            raise InputError(f"{word}: no key is taken away; without {name}=... it has its default")
        try:
            parser.parse_override(word)
        except (HydraException, ValueError, RecursionError) as error:
            reason = str(error.__cause__ or error).partition("\n")[0]
            why = f" ({reason})" if reason.startswith(("no viable", "mismatched")) else ""
            raise InputError(
                f"{word} cannot be read{why}: {_instead(key, equals, value)}"
            ) from error


def _instead(key: str, equals: str, value: str) -> str:
    """Return a hint: what to type in place of an argument that cannot be parsed."""
    if not equals:
        name = re.match(r"\w+", key)
        return f"key=value is needed, as in {name[0] if name else 'seed'}=1"
    if element := re.fullmatch(r"(\w+)\[.*\]", key):
        return f"a list is given whole, as in {element[1]}=[{value}]"
    if value.rstrip().endswith(","):
        return f"a value is missing behind the comma, as in {key}={value.rstrip().rstrip(',')}"
    if value.endswith("()"):
        return f"its brackets hold no values, as in {key}=1,2"
    for left, right, kind in (("[", "]", "bracket"), ("{", "}", "brace"), ("(", ")", "bracket")):
        if value.count(left) != value.count(right):
            missing = right if value.count(left) > value.count(right) else left
            return f"a {kind} {missing} is missing"
    return f"a text with signs needs quotes, as in \"{key}='a=b'\""


def check_flag(word: str) -> None:
    """Raise InputError for a key with dashes before it."""
    key, equals, value = word.lstrip("-").partition("=")
    name = key.replace("-", "_")
    classes: list[type] = [Settings, *configs().values()]
    known = {item.name for keys in classes for item in fields(keys)}
    if word.startswith("--") and name in known:
        raise InputError(f"{word}: keys have no dashes: {name}={value if equals else '...'}")


def check_figure(words: Iterable[str]) -> None:
    """Raise InputError for a figure together with a study that is not the figure's."""
    chosen = dict(word.partition("=")[::2] for word in words)
    figure, study = chosen.get("figure"), chosen.get("study")
    if figure in figure_names() and study in studies() and figure_study(figure) != study:
        right = figure_study(figure)
        raise InputError(f"figure={figure} is of study {right}: leave study={study} out")


def check_number(parsed: Iterable[Override]) -> None:
    """Raise InputError if a sweep has more than MOST_RUNS runs. Makes no list of them."""
    counts = {word.input_line: _count(word) for word in parsed if word.is_sweep_override()}
    if (number := prod(counts.values())) > MOST_RUNS:
        said = f"{number:,}" if isfinite(number) else "infinitely many"
        line = max(counts, key=counts.__getitem__)
        raise InputError(f"{line}: {said} runs; one command has at most {MOST_RUNS:,}")


def _count(override: Override) -> float:
    swept = override.value()
    if isinstance(swept, RangeSweep):
        start, stop, step = (float(number or 0) for number in (swept.start, swept.stop, swept.step))
        if any(map(isnan, (start, stop, step))):
            raise InputError(f"{override.input_line}: nan is no number, as in range(0,1,0.5)")
        if not step:
            raise InputError(f"{override.input_line}: the step of a range is 0")
        number = (stop - start) / step
        return max(0, ceil(number)) if isfinite(number) else number
    return len(getattr(swept, "list", [None]))


def check_list(key: str, value: Any, type_: Any) -> None:
    """Raise InputError if a key needs a list and the value is none, or holds lists."""
    if not str(type_).startswith("list") or isinstance(value, str) and "${" in value:
        return
    if isinstance(value, list):
        if inner := next((item for item in value if isinstance(item, list | dict)), None):
            text = inner if isinstance(inner, list) else list(inner)
            listed = ",".join(map(str, text))
            raise InputError(f"{key} holds a list in a list: write {key}=[{listed}]")
    elif value is None and "None" not in str(type_) or value is not None:
        shown = "..." if isinstance(value, dict) or value is None else value
        raise InputError(f"{key} must be a list: {key}=[{shown}]")


def check_grids(grids: Any) -> None:
    """Raise InputError if the grids of a figure are not a list of mappings."""
    is_right = isinstance(grids, list) and all(isinstance(grid, Mapping) for grid in grids)
    if not is_right:
        raise InputError("the grids of a figure at a scale are a list, as in [{depth: [8, 16]}]")


def check_files(words: Iterable[str]) -> None:
    """Raise InputError for a user's YAML file that Hydra would misread."""
    for word in words:
        group, _, names = word.lstrip("+").partition("=")
        for name in names.split(",") if re.fullmatch(r"[\w/]+", group) else ():
            for path in [folder / group / f"{name}.yaml" for folder in own_conf_folders()]:
                if os.path.isfile(path):
                    _check_file(path)


class _Loader(yaml.SafeLoader):
    """YAML loader that refuses a repeated key, and integers that are not decimal."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return the mapping. Raises InputError with the line number."""
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if key.value in lines:
                first = lines[key.value]
                raise InputError(f"line {line}: {key.value} is there twice, also in line {first}")
            lines[key.value] = line
            whole = value.tag == "tag:yaml.org,2002:int" and value.style is None
            if whole and not re.fullmatch(r"[-+]?(0|[1-9][0-9_]*)", value.value):
                number = self.construct_object(value)
                raise InputError(
                    f"line {line}: {key.value}: {value.value} is {number} in YAML: write {number}"
                )
        return super().construct_mapping(node, deep)


def _check_file(path: Path) -> None:
    try:
        text = path.read_bytes().decode("utf-8")
        loader = _Loader(text)
        try:
            values = loader.get_single_data()
        finally:
            loader.dispose()
    except InputError as error:
        raise InputError(f"{path}, {error}") from error
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise InputError(f"{path}, line {line}: it is not in UTF-8: save it in UTF-8") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        what = getattr(error, "problem", None) or "it is no YAML"
        raise InputError(f"{path}{where}: {what}") from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    header = [number for number, line in enumerate(lines) if re.match(r"#\s*@package", line)]
    if header and any(not re.match(r"#\s*@", line) for line in lines[: header[0]]):
        raise InputError(f"{path}: {lines[header[0]]} must be its first line")
    if path.parent.name == "experiment" and isinstance(values, dict):
        for key in set(CHOOSING) & set(values):
            raise InputError(
                f"{path}: {key}: {values[key]} chooses no file:"
                f" write `- override /{key}: {values[key]}` under defaults"
            )
