"""`runner reference restamp`: kept runs are of today's code where that computes the same bytes.

Moved or renamed code has another fingerprint, and every kept run of it would be stale. Small runs
that both codes have computed show that nothing else has changed: those at scale `smoke`.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.catalogue import configs, rows_of
from runner.core.errors import InputError
from runner.publish.kept import read_json
from runner.results.table_diff import alike, compare
from runner.runs.files import write_atomically
from runner.runs.inventory import find
from runner.runs.provenance import code_of
from runner.runs.run import Run

Computed = dict[str, dict[str, Run]]
"""Complete runs by study and name."""


def computed(outputs: Path) -> Computed:
    """Return the complete runs below a folder of outputs."""
    found: Computed = defaultdict(dict)
    for each in find(outputs):
        if each.status == "complete":
            found[each.study][each.folder.name] = each.run
    return found


def difference(before: dict[str, Run], after: dict[str, Run]) -> str | None:
    """Return how runs of a study differ from those before; None where all bytes are the same.

    A run that only one of them has computed proves nothing.
    """
    if missing := set(before) - set(after):
        return f"no run after to compare with {min(missing)}"
    for name, run in after.items():
        if name not in before:
            return f"no run before to compare with {name}"
        if _digests(run) != _digests(before[name]):
            now, then = run.tables(), before[name].tables()
            classes = rows_of(run.config.study)
            parts = [compare(now[t], then[t], classes[t]).assign(table=t) for t in now if t in then]
            return f"other bytes in {name}, {alike(pd.concat(parts))}"
    return None


def _digests(run: Run) -> dict[str, str]:
    return {name: table["sha256"] for name, table in run.result["tables"].items()}


def restamp(reference: Path, before: Iterable[Path], after: Path) -> Iterator[str]:
    """Give kept runs today's fingerprint where that computes the bytes that theirs did.

    before: folders of outputs, each study in one of them. after: of today's code. The fingerprint
    of then is kept as `code_then`. Yields a line for each study. Raises InputError when a study is
    in several folders, or runs of it are of other code than they should be.
    """
    old: Computed = {}
    for folder in before:
        runs = computed(folder)
        if twice := set(old) & set(runs):
            raise InputError(f"{folder}: {min(twice)} is in another folder, too")
        old |= runs
    now, why, same = computed(after), dict.fromkeys(configs(), "no runs to compare"), {}
    for study in set(now) & set(old):
        codes = {run.provenance()["code"] for run in old[study].values()}
        if {run.provenance()["code"] for run in now[study].values()} != {code_of(study)}:
            raise InputError(f"{after}: not all runs of {study} are of today's code")
        if len(codes) != 1:
            raise InputError(f"the runs of {study} before are of several codes")
        if other := difference(old[study], now[study]):
            why[study] = other
        else:
            why[study], same[study] = "the same bytes", codes.pop()
    counts = dict.fromkeys(configs(), 0)
    for path in sorted(reference.glob("*/*/provenance.json")):
        about = read_json(path)
        for run in about["runs"]:
            study = run["run"].partition(" ")[0]
            if study in same and run["code"] == same[study]:
                counts[study] += _stamped(run, code_of(study))
        if all(run["code"] == code_of(run["run"].partition(" ")[0]) for run in about["runs"]):
            about["stale"] = None
        content = json.dumps(about, indent=2).encode()
        if content != path.read_bytes():
            write_atomically(path, content)
    for study, count in counts.items():
        yield f"{study}: {why[study]}; {count} kept runs restamped"


def _stamped(run: dict[str, Any], code: str) -> bool:
    """Return whether a kept run had another fingerprint, which it keeps as its first one."""
    if run["code"] == code:
        return False
    run["code_then"] = run.get("code_then", run["code"])
    run["code"], run["stale"] = code, False
    return True
