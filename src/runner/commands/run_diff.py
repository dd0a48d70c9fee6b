"""The action `runner runs diff`: how two runs differ."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.catalogue import rows_of
from runner.core.errors import InputError
from runner.results import table_diff
from runner.runs.query import named


def diff(options: argparse.Namespace, outputs: Path) -> int:
    """Print how two runs differ: in parameters, code, machine and numbers; return the exit status.

    The status is 1 if numbers differ by more than rounding, or cannot be compared. Otherwise it is
    0. options: `options.words` names the two runs. Raises InputError if it does not.
    """
    if len(options.words) != 2:
        words = " ".join(options.words)
        raise InputError(f"runs diff needs two runs, not {len(options.words)}: {words}")
    infos = {letter: named(word, outputs) for letter, word in zip("AB", options.words, strict=True)}
    print("\n".join(f"{letter}  {info.folder}" for letter, info in infos.items()))
    runs = [info.run for info in infos.values()]
    studies = [run.config.study for run in runs]
    _print_pairs("parameters", *({"study": run.config.study, **vars(run.config)} for run in runs))
    _print_pairs("code, machine, versions", *(_origin(run.provenance()) for run in runs))
    why = [f"{name} is {info.status}" for name, info in infos.items() if info.status != "complete"]
    if why or studies[0] != studies[1]:
        print(f"\nnumbers: nothing to compare: {', '.join(why) or 'of two studies'}")
        return 1
    tables, differ = [run.tables() for run in runs], 0
    for name in dict.fromkeys([*tables[0], *tables[1]]):
        a, b = (side.get(name, pd.DataFrame()) for side in tables)
        compared = table_diff.compare(a, b, rows_of(studies[0]).get(name))
        differ += compared["differ"].sum()
        print(f"\n{name}: {_difference(compared)}")
    return int(differ > 0)


def _print_pairs(title: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    """Print the entries that differ, with both values."""
    names = [name for name in dict.fromkeys([*a, *b]) if a.get(name) != b.get(name)]
    pairs = [[str(side.get(name))[:60] for side in (a, b)] for name in names]
    table = pd.DataFrame(pairs, names, ["A", "B"])
    print(f"\n{title}:\n{_indented(table.to_string())}" if names else f"\n{title}: the same")


def _origin(provenance: Mapping[str, Any]) -> dict[str, Any]:
    """Return with what a run was computed: code, commit, machine, data, versions, instructions."""
    origin = {name: provenance.get(name) for name in ("code", "device_name", "threads")}
    dirty = "+" if provenance.get("dirty") else ""
    origin["commit"] = f"{str(provenance.get('commit'))[:8]}{dirty}"
    for group in ("data", "versions", "instructions"):
        if isinstance(values := provenance.get(group), dict):
            origin |= {f"{group}: {name}": value for name, value in values.items()}
    return origin


def _difference(compared: pd.DataFrame) -> str:
    """Return as text how two tables differ: in their rows, and in which columns."""
    rows, columns = compared.iloc[0], compared.iloc[1:]
    differ = columns["differ"] > 0
    lines = [f"{rows['equal']} rows matched{'; ' if rows['at'] else ''}{rows['at']}"]
    if differ.any():
        shown = columns[differ].sort_values("largest", ascending=False, kind="stable")
        shown = shown[["column", "equal", "rounding", "differ", "largest", "at"]]
        lines += [_indented(shown.to_string(index=False, float_format="{:.2g}".format))]
    if not differ.all():
        rounded = " (except for rounding)" if columns.loc[~differ, "rounding"].any() else ""
        lines += [f"  the same{rounded}: {', '.join(columns.loc[~differ, 'column'])}"]
    return "\n".join(lines)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
