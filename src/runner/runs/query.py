"""Choose runs by study, status and conditions, or one run by its name or hash."""

import math
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import compress
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from runner.core import catalogue
from runner.core.errors import InputError, nearest
from runner.runs.folder_names import UNNAMED, old_of, readable, shown
from runner.runs.inventory import STATUSES, RunInfo, describe, find, short_hash, version_of
from runner.runs.run import Run


def facts(info: RunInfo) -> dict[str, Any]:
    """Return what is known of a run as a dictionary that can be written as JSON.

    Parameters that are infinite or nan become text. The values of `seconds` and `ended` are None if
    they are unknown.
    """
    return {
        "study": info.study,
        "knobs": info.knobs,
        "hash": info.hash8,
        "note": info.note,
        "status": info.status,
        "stale": info.is_stale,
        "seconds": None if math.isnan(info.seconds) else info.seconds,
        "failure": info.failure,
        "ended": info.ended.isoformat(timespec="seconds") if info.ended else None,
        "folder": str(info.folder),
        "before": str(old) if (old := old_of(info.folder)) else None,
        "parameters": {
            key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in info.parameters.items()
        },
    }


def listing(infos: Sequence[RunInfo]) -> pd.DataFrame:
    """Return a table with a row for each run.

    The columns are the keys of `facts`, and the parameters of all runs. A list is written as text,
    as in the names of runs: `5+10`.
    """
    rows = [facts(info) for info in infos]
    for row in rows:
        parameters = row.pop("parameters")
        row |= {key: _cell(value) for key, value in parameters.items() if key not in row}
    return pd.DataFrame(rows)


def _cell(value: Any) -> Any:
    return readable(value) if isinstance(value, list | dict) else value


def chosen(
    infos: Sequence[RunInfo],
    studies: Sequence[str] = (),
    statuses: Sequence[str] = (),
    where: Sequence[str] = (),
    stale: bool = False,
    others: list[str] | None = None,
) -> list[RunInfo]:
    """Return the runs that meet all given conditions.

    - studies, statuses: names, of which a run must have one; empty: any.
    - where: conditions on the columns of `listing`, in the language of `pandas.DataFrame.query`.
    - stale: whether to return only complete runs whose code is not today's.
    - others: a list to which conditions on unknown columns are added. If it is None, such a
      condition raises InputError.

    Raises InputError for an unknown study or status, and for a condition that cannot be evaluated.
    """
    known = {info.study for info in infos} | set(catalogue.studies())
    for option, names, choices in (("study", studies, known), ("status", statuses, STATUSES)):
        for name in names:
            if name not in choices:
                raise InputError(f"--{option} {name} is unknown: {nearest(name, choices)}")
    chosen_infos = [
        info
        for info in infos
        if (not studies or info.study in studies)
        and (not statuses or info.status in statuses)
        and (info.is_stale or not stale)
    ]
    for condition in where:
        try:
            if chosen_infos:  # else there are no columns
                fit = fits(listing(chosen_infos), condition)
                chosen_infos = list(compress(chosen_infos, fit))
        except UnknownColumn:
            if others is None:
                raise
            others.append(condition)
    return chosen_infos


class UnknownColumn(InputError):
    """Error if a condition names a column that the table does not have."""


def fits(rows: pd.DataFrame, condition: str) -> pd.Series:
    """Return for each row whether it meets a condition, in the language of `DataFrame.query`.

    `epoch=10` means `epoch == 10`, `epoch=[10,20]` one of these values, and `epoch=null` that the
    epoch is missing. Raises UnknownColumn if the rows lack a column of the condition, and
    InputError if the text is not a condition. A value may also be a text that looks like a number,
    as the hash 39765891.
    """
    test, names = condition, dict[str, Any]()
    try:
        pair = re.fullmatch(r"\s*(\w+)\s*=\s*([^=].*)", condition)
        if pair and not re.search(r" (and|or) .*[=<>]", pair[2]):
            values = []
            for read in (yaml.safe_load, partial(yaml.load, Loader=yaml.BaseLoader)):  # and texts
                value = read(pair[2])
                values += value if isinstance(value, list) else [value]
            whole = {str(value) for value in values if isinstance(value, int)}
            for text in [text for text in values if isinstance(text, str) and text not in whole]:
                with suppress(ValueError):  # YAML reads 1e5 as a text
                    values.append(float(text))
            test = f"{pair[1]}.isin(@values)"
            test += f" or {pair[1]}.isnull()" if None in values else ""
            names = {"values": values}
        fit = rows.eval(test, engine="python", local_dict=names, global_dict={})
        if not (isinstance(fit, pd.Series) and fit.isin([True, False]).all()):
            raise ValueError("a comparison is needed")
    except pd.errors.UndefinedVariableError as error:
        name = str(error).split("'")[1]
        raise UnknownColumn(
            f"where {condition}: there is no {name}: {nearest(name, rows)}"
        ) from error
    except Exception as error:  # pandas raises errors of many kinds
        what = f"where {condition} is no condition ({' '.join(str(error).split())})"
        raise InputError(f"{what}: write it as 'depth == 32 and seed in [0, 1]'") from error
    return fit


def differing(runs: Sequence[Run]) -> list[str]:
    """Return the names of the parameters that are not equal in all of these runs of one study."""
    names = [name for name in vars(runs[0].config) if name not in UNNAMED]
    return [name for name in names if len(set(values_of(runs, name))) > 1]


def values_of(runs: Sequence[Run], name: str) -> list[str]:
    """Return the value of a parameter in each run, as text.

    If runs have several files of images of one name, the text has four digits of the checksum, too:
    `stripes.npz#1a2b`.
    """
    texts = [shown(getattr(run.config, name)) for run in runs]
    if name == "data":
        files = [text + version_of(run.config) for text, run in zip(texts, runs, strict=True)]
        texts = files if len(set(files)) > len(set(texts)) else texts
    return texts


def conditions_for(runs: Sequence[Run], infos: Iterable[RunInfo]) -> list[str]:
    """Return conditions for `chosen` that only these runs of one study meet, as `init=pytorch`.

    infos: all runs, from which they are to be chosen. If single parameters cannot distinguish the
    runs from the others, the condition lists the hashes of the runs.
    """
    folders, swept, conditions = {run.folder for run in runs}, differing(runs), []
    infos = [info for info in infos if info.study == runs[0].config.study]
    others = [info.config for info in infos if info.folder not in folders and info.config]
    names = [name for name in vars(runs[0].config) if name not in UNNAMED]
    for name in sorted(names, key=lambda name: name not in swept):
        values = [getattr(run.config, name) for run in runs]
        left = [config for config in others if getattr(config, name) in values]
        if len(left) < len(others):
            conditions.append(_equal(name, map(_cell, values)))
            others = left
    found = {info.folder for info in chosen(infos, where=conditions)}
    if others or found != folders & {info.folder for info in infos}:
        return [_equal("hash", (short_hash(run.folder.name) for run in runs))]
    return conditions


def _equal(name: str, values: Iterable[Any]) -> str:
    """Return a condition that a column has one of these values: `init=pytorch`, `depth=[8,16]`."""
    texts = list(dict.fromkeys(map(shown, values)))
    listed = ",".join(texts)
    return f"{name}={listed}" if len(texts) == 1 else f"{name}=[{listed}]"


def named(text: str, outputs: Path) -> RunInfo:
    """Return the one run that a text names.

    text: the run's folder, its name, its hash, or the beginning of its name or hash. outputs: the
    folder of outputs, in which the run is searched. Raises InputError if no run or several runs
    fit.
    """
    if (Path(text) / "config.yaml").exists():
        return describe(Path(text).resolve())
    infos = find(outputs) if outputs.exists() else []
    if not infos:
        raise InputError(f"{text} names no run: there are no runs under {outputs}")

    def names(info: RunInfo) -> tuple[str, ...]:
        return f"{info.study}/{info.folder.name}", info.folder.name, info.hash8

    fits = [info for info in infos if text in names(info)]
    fits = fits or [info for info in infos if any(n.startswith(text) for n in names(info))]
    if len(fits) == 1:
        return fits[0]
    listed = ", ".join(f"{info.study} {info.hash8}" for info in fits[:5])
    if not fits:
        raise InputError(f"{text} names no run under {outputs}: type its folder, name or hash")
    more = ", ..." if len(fits) > 5 else ""
    raise InputError(
        f"{text} names {len(fits)} runs: {listed}{more}. Type more of the name or hash"
    )
