"""`runner reference restamp`: kept runs are of today's code where that computes the same bytes.

Moved or renamed code has another fingerprint, and every kept run of it would be stale. Small runs
that both codes have computed show that nothing else has changed: those at scale `smoke`.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from runner.core.catalogue import configs
from runner.core.errors import InputError
from runner.runs.files import write_atomically
from runner.runs.inventory import find
from runner.runs.provenance import code_of


class Computed(NamedTuple):
    """The complete runs of a study in a folder of outputs."""

    codes: set[str]
    """Their fingerprints."""
    tables: dict[str, dict[str, str]]
    """The digests of their tables, by name of run and table."""


def computed(outputs: Path) -> dict[str, Computed]:
    """The complete runs below a folder of outputs, by study."""
    found: dict[str, Computed] = defaultdict(lambda: Computed(set(), {}))
    for each in find(outputs):
        if each.status == "complete":
            about = json.loads((each.folder / "provenance.json").read_text())
            result = json.loads((each.folder / "result.json").read_text())
            of_study = found[each.study]
            of_study.codes.add(about["code"])
            digests = {name: table["sha256"] for name, table in result["tables"].items()}
            of_study.tables[each.folder.name] = digests
    return dict(found)


def equal(before: Iterable[Path], after: Path) -> dict[str, str]:
    """The studies of which all runs have the bytes of before, with the fingerprint of before.

    before: folders of outputs, each study in one of them. after: of today's code. Raises
    InputError when a study is in several, or runs of it are of other code than they should be.
    """
    old: dict[str, Computed] = {}
    for folder in before:
        runs = computed(folder)
        if twice := set(old) & set(runs):
            raise InputError(f"{folder}: {min(twice)} is in another folder, too")
        old |= runs
    same = {}
    for study, now in computed(after).items():
        if now.codes != {code_of(study)}:
            raise InputError(f"{after}: not all runs of {study} are of today's code")
        if study in old and len(old[study].codes) != 1:
            raise InputError(f"the runs of {study} before are of several codes")
        if study in old and now.tables.items() <= old[study].tables.items():
            same[study] = next(iter(old[study].codes))
    return same


def restamp(reference: Path, before: Iterable[Path], after: Path) -> Iterator[str]:
    """Give kept runs today's fingerprint where `equal` shows that it computes what theirs did.

    Theirs is kept as `code_then`. Yields a line for each study. Raises InputError as `equal` does.
    """
    same, counts = equal(before, after), dict.fromkeys(configs(), 0)
    for path in sorted(reference.glob("*/*/provenance.json")):
        about = json.loads(path.read_text())
        for run in about["runs"]:
            study = run["run"].partition(" ")[0]
            if study in same and run["code"] == same[study]:
                counts[study] += _stamped(run, code_of(study))
        content = json.dumps(about, indent=2).encode()
        if content != path.read_bytes():
            write_atomically(path, content)
    for study, count in counts.items():
        why = "the same bytes" if study in same else "other bytes, or no runs to compare"
        yield f"{study}: {why}; {count} kept runs restamped"


def _stamped(run: dict[str, Any], code: str) -> bool:
    """Whether a run's provenance had another fingerprint, which it keeps as that of then."""
    if run["code"] == code:
        return False
    run["code_then"] = run.get("code_then", run["code"])
    run["code"], run["stale"] = code, False
    return True
