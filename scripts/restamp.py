"""Mark stored runs as computed by today's code if it computes the same bytes as the old code.

    runner figures scale=smoke outputs=BEFORE     (with the old code)
    runner figures scale=smoke outputs=AFTER      (with the new code)
    python scripts/restamp.py BEFORE AFTER [PATTERN]

Moved or renamed code has another fingerprint, so every stored run of it would be stale. The runs at
scale `smoke`, computed by both codes, show that nothing else has changed. The new code may change
some runs of a study. PATTERN is then a regular expression that is found in the names of these runs
only, such as `rank_chain (?!.*measure).*law=`. These runs remain stale.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

from runner.commands.kept import read_json
from runner.runs.files import write_atomically
from runner.runs.inventory import find
from runner.runs.provenance import REFERENCE, code_of
from runner.runs.run import Run


def complete_runs(outputs: Path, changed: re.Pattern | None = None) -> dict[str, dict[str, Run]]:
    """Return the complete runs in a folder of outputs, by study and by the run's name.

    changed: pattern of the names of runs that are skipped.
    """
    runs: dict[str, dict[str, Run]] = defaultdict(dict)
    for entry in find(outputs):
        if entry.status == "complete" and not (changed and changed.search(str(entry.run))):
            runs[entry.study][entry.run.key] = entry.run
    return runs


def difference(before: Mapping[str, Run], after: Mapping[str, Run], today: str) -> str:
    """Return why the runs of a study prove nothing, or differ; empty if all bytes are the same.

    before, after: the runs of the old and of the new code, by name. today: the new fingerprint.
    """
    if single := before.keys() ^ after.keys():
        return f"only one code has computed {min(single)}"
    if {run.provenance()["code"] for run in after.values()} != {today}:
        return "not all runs after are of today's code"
    if len({run.provenance()["code"] for run in before.values()}) > 1:
        return "the runs before are of several codes"
    other = [name for name in before if checksums(before[name]) != checksums(after[name])]
    return f"other bytes in {min(other)}" if other else ""


def checksums(run: Run) -> dict[str, str]:
    """Return the checksums of a run's tables, by table."""
    return {name: table["sha256"] for name, table in run.result["tables"].items()}


def restamp(reference: Path, before: Path, after: Path, pattern: str | None = None) -> list[str]:
    """Give runs of the reference today's fingerprint; return a line about each study.

    before, after: folders of outputs. pattern: found in the names of runs that the new code
    changes. The first fingerprint of a run is stored as `code_then`.
    """
    changed = re.compile(pattern) if pattern else None
    old, new = complete_runs(before, changed), complete_runs(after, changed)
    reasons = {name: difference(old[name], new[name], code_of(name)) for name in {*old, *new}}
    codes = {
        name: next(iter(old[name].values())).provenance()["code"]
        for name, reason in reasons.items()
        if not reason
    }
    counts = dict.fromkeys(reasons, 0)
    for path in sorted(reference.glob("*/*/provenance.json")):
        about = read_json(path)
        studies = [run["run"].partition(" ")[0] for run in about["runs"]]
        for study, run in zip(studies, about["runs"], strict=True):
            today = code_of(study)
            if changed and changed.search(run["run"]):
                continue
            if run["code"] == codes.get(study) != today:
                run |= {"code_then": run.get("code_then", run["code"])}
                run |= {"code": today, "stale": False}
                counts[study] += 1
        if all(run["code"] == code_of(s) for s, run in zip(studies, about["runs"], strict=True)):
            about["stale"] = None
        content = json.dumps(about, indent=2).encode()
        if content != path.read_bytes():
            write_atomically(path, content)
    return [
        f"{study}: {reasons[study] or 'the same bytes'}; {counts[study]} stored runs restamped"
        for study in sorted(reasons)
    ]


def main(arguments: list[str]) -> int:
    """Mark runs of the reference and print what was done; return 0, or 2 without two folders."""
    if len(arguments) not in (2, 3):
        print("error: name two folders of outputs: before and after", file=sys.stderr)
        return 2
    before, after, *pattern = arguments
    print("\n".join(restamp(REFERENCE, Path(before), Path(after), *pattern)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
