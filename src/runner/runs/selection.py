"""Choose runs by study, status and parameters, or one run by how its name or hash begins."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from runner.core.catalogue import configs
from runner.core.errors import InputError, nearest
from runner.runs.inventory import STATUSES, Found, describe, find
from runner.runs.run import UNNAMED, Run, readable


def chosen(
    found: Sequence[Found],
    studies: Iterable[str] = (),
    statuses: Iterable[str] = (),
    where: Iterable[str] = (),
    stale: bool = False,
) -> list[Found]:
    """Return the runs of any of the studies, in any of the statuses; all where none is given.

    where: `key=value` or `key=value,value`, as typed: whose parameter has one of the values.
    stale: complete ones of other code alone. Raises InputError for a study, a status or a
    parameter that does not exist.
    """
    present = {each.study for each in found}
    for name in studies:
        if name not in (known := present | set(configs())):
            raise InputError(f"study={name} is unknown: {nearest(name, known)}")
    for name in statuses:
        if name not in STATUSES:
            raise InputError(f"--status {name} is unknown: {nearest(name, STATUSES)}")
    of = set(studies or present) & set(configs()) or set(configs())
    known = {item.name for study in of for item in fields(configs()[study])}
    values = {}
    for text in where:
        key, _, value = text.partition("=")
        if not (key and value):
            raise InputError(f"--where {text}: key=value is needed, as in depth=32")
        if key not in known:
            whose = f" of {' or '.join(sorted(studies))}" if studies else ""
            raise InputError(f"{key} is not a parameter{whose}: {nearest(key, known)}")
        values[key] = _values(text, value)
    return [
        each
        for each in found
        if (not studies or each.study in studies)
        and (not statuses or each.status in statuses)
        and (each.is_stale or not stale)
        and all(
            hasattr(each.config, key) and is_one_of(getattr(each.config, key), listed)
            for key, listed in values.items()
        )
    ]


def _values(text: str, value: str) -> list:
    """Return the values as they are typed: what each means is known by the parameter's type."""
    try:
        return _texts(yaml.compose(f"[{value}]", yaml.SafeLoader))
    except yaml.YAMLError as error:
        raise InputError(f"--where {text}: the value cannot be read") from error


def _texts(node: yaml.Node) -> Any:
    return list(map(_texts, node.value)) if isinstance(node, yaml.SequenceNode) else node.value


def is_one_of(value: Any, listed: list) -> bool:
    """Return whether a parameter is one of the values that were typed, or the list of them."""
    return any(_is(value, each) for each in listed) or _is(value, listed)


def _is(value: Any, text: Any) -> bool:
    """Return whether what was typed says this value: as a list, a word, or a number."""
    if isinstance(value, list) and isinstance(text, list):
        return len(value) == len(text) and all(map(_is, value, text))
    if isinstance(value, list):  # as names of runs show it
        return text == readable(value)
    if value is None or isinstance(value, bool | str):
        return text == (value if isinstance(value, str) else typed(value))
    try:
        return value == (int(text) if re.fullmatch("-?[0-9]+", text) else float(text))
    except (TypeError, ValueError):
        return False


def differing(runs: Sequence[Run]) -> list[str]:
    """Return the parameters in which runs of one study differ, in the order of the study."""
    names = [item.name for item in fields(runs[0].config) if item.name not in UNNAMED]
    return [name for name in names if len({str(getattr(run.config, name)) for run in runs}) > 1]


def words(runs: Sequence[Run], found: Sequence[Found]) -> list[str]:
    """Return short options that choose these runs of one study out of those that are found.

    They choose others too where no parameter by itself tells them apart.
    """
    study, folders = runs[0].config.study, {run.folder for run in runs}
    others = [each.config for each in found if each.study == study and each.folder not in folders]
    chosen, swept = ["--study", study], differing(runs)
    names = [item.name for item in fields(runs[0].config) if item.name not in UNNAMED]
    for name in sorted(names, key=lambda name: name not in swept):
        values = [getattr(run.config, name) for run in runs]
        left = [config for config in others if config and getattr(config, name) in values]
        if len(left) < len(others):
            chosen += ["--where", f"{name}={','.join(dict.fromkeys(map(typed, values)))}"]
            others[:] = left
    return chosen


def typed(value: Any) -> str:
    """Return a parameter's value as it is typed on the command line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{','.join(map(typed, value))}]"
    plain = not isinstance(value, str) or re.fullmatch(r"[\w.+-]+", value)
    return str(value) if plain else json.dumps(value, ensure_ascii=False)


def named(text: str, outputs: Path) -> Found:
    """Return the one run that a text names: its folder, name or hash, or how these begin.

    Raises InputError where it names none, or several.
    """
    if (Path(text) / "config.yaml").exists():
        return describe(Path(text).resolve())
    found = find(outputs) if outputs.exists() else []
    if not found:
        raise InputError(f"{text} names no run: there are no runs under {outputs}")
    names = [(f"{each.study}/{each.home.name}", each.home.name, each.hash8) for each in found]
    pairs = list(zip(found, names, strict=True))
    whole = [each for each, known in pairs if text in known]
    fits = whole or [each for each, known in pairs if any(n.startswith(text) for n in known)]
    if len(fits) == 1:
        return fits[0]
    listed = ", ".join(f"{each.study} {each.hash8}" for each in fits[:5])
    more = f"{len(fits)} runs: {listed}{', ...' * (len(fits) > 5)}" if fits else "no run"
    raise InputError(f"{text} names {more} under {outputs}: a folder, a name or a hash is needed")
