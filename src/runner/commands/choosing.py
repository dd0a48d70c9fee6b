"""Which runs the options of `runner runs` choose, and how they are counted and printed."""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from runner.core.catalogue import natural_order
from runner.core.errors import OWN_NAME, InputError
from runner.runs.folder_names import shown
from runner.runs.inventory import RunInfo
from runner.runs.query import chosen, listing
from runner.runs.run import UnknownName, read_config

MOST_VALUES = 12
"""The largest number of values of a parameter that a message lists."""


def chosen_runs(
    options: argparse.Namespace, infos: Sequence[RunInfo], others: list[str] | None = None
) -> list[RunInfo]:
    """Return the runs that the options choose, in the order given.

    If conditions choose, a note says how many runs have names that are unknown here, since their
    parameters are not known.

    options: the parsed arguments of an action. others: a list to which conditions of `--where` on
    columns of tables are added; None: they are refused. Raises InputError if a condition is wrong.
    """
    if options.where and (unknown := [info for info in infos if _has_unknown_name(info)]):
        note = f"names unknown here are in {len(unknown)} of {counted(infos)}: {OWN_NAME}"
        print(note, file=sys.stderr)
    return chosen(infos, options.study, options.status, options.where, options.stale, others)


def _has_unknown_name(info: RunInfo) -> bool:
    """Return whether a run is of a study, or has a method, that only the user's folder knows."""
    try:
        if info.config is None:
            read_config(info.folder)
    except UnknownName:
        return True
    except InputError:  # damaged, or of another version
        pass
    return False


def separated(lists: Sequence[str]) -> list[str]:
    """Return the names in lists that have commas."""
    return [name.strip() for names in lists for name in names.split(",")]


def counted(runs: Sequence[object]) -> str:
    """Return the number of runs in words, such as "3 runs"."""
    return f"{len(runs)} run{'s' if len(runs) != 1 else ''}"


def none_chosen(
    infos: Sequence[RunInfo], outputs: Path, options: argparse.Namespace | None = None
) -> str:
    """Return in words that no run is chosen, or that the folder of outputs has none.

    options: the parsed arguments of an action; the text has the values of parameters that their
    conditions name.
    """
    if not infos:
        return f"no runs under {outputs}"
    studies = options.study if options else ()
    rows = listing([info for info in infos if not studies or info.study in studies])
    names = re.findall(r"\w+", " ".join(options.where if options else ()))
    values = {name: {*map(shown, rows[name].dropna())} for name in names if name in rows}
    known = [
        f"{name} is {', '.join(sorted(some, key=natural_order))}"
        for name, some in values.items()
        if 0 < len(some) <= MOST_VALUES
    ]
    return ": ".join([f"none of {counted(infos)} is chosen", *filter(None, ["; ".join(known)])])


def printable(text: object) -> str:
    """Return a text in one line. Characters that no terminal shows are escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))
