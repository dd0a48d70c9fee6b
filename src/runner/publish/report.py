"""The report: one self-contained page with every figure, its command, its time, and its claims.

Reads what `make <figure>` has left under `<outputs>/figures/` and writes
`<outputs>/report/index.html`. A figure that was not made says so and gives its command. Variants of
a figure, made with overrides, follow it; they count in no total.
"""

import argparse
import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader

from runner.cli.catalogue import figure_names, figure_study, headline, natural_order
from runner.core.arguments import key_values
from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_writable
from runner.core.papers import Paper, paper_of
from runner.core.studies import room_of
from runner.runs.tables import write_atomically

SCALES = ("paper", "medium", "quick", "smoke")
"""In the order in which a figure is shown: the largest that was made."""


@dataclass(frozen=True)
class Entry:
    """One figure of the report, or a variant; `scale` is None where it was not made."""

    name: str
    headline: str
    paper: Paper
    scale: str | None = None
    picture: str = ""
    """The PNG in base64."""
    claims: list[dict[str, str]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)
    is_canonical: bool = True

    @property
    def made(self) -> bool:
        """Whether there is a figure to show."""
        return self.scale is not None

    @property
    def verdicts(self) -> str:
        """The verdicts of its claims, each once."""
        found = {claim["verdict"] for claim in self.claims} if self.made else {"missing"}
        return " ".join(sorted(found))


def collect(outputs: Path, scale: str | None) -> list[Entry]:
    """All figures with what was made of them, at `scale` or at the largest scale there is.

    The variants of a figure follow it, at `scale` or at all scales. Raises InputError when files of
    a figure are damaged.
    """
    scales = [scale] if scale else SCALES
    folders = [outputs / "figures" / each for each in scales]
    entries = [entry for name in figure_names() for entry in _entries(folders, name)]
    return sorted(entries, key=lambda entry: (entry.paper.letter, natural_order(entry.name)))


def _entries(folders: list[Path], name: str) -> Iterator[Entry]:
    """A figure out of the first folder that has it, and its variants out of all."""
    known = Entry(name, headline("figure", name), paper_of(room_of(figure_study(name))))
    made = [folder for folder in folders if (folder / f"{name}.provenance.json").exists()]
    yield _made(known, made[0]) if made else known
    for folder in folders:
        for path in sorted(folder.glob(f"{name}-{'[0-9a-f]' * 8}.provenance.json")):
            variant = replace(known, name=path.name.partition(".")[0], is_canonical=False)
            yield _made(variant, folder)


def _made(known: Entry, folder: Path) -> Entry:
    """The entry with what there is in the folder; raises InputError when that is damaged."""
    name = known.name
    try:
        claims = pd.read_csv(folder / f"{name}.claims.csv", dtype=str, keep_default_na=False)
        about = json.loads((folder / f"{name}.provenance.json").read_text())
        picture = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
        duration(about["seconds"]), [_facts(run) for run in about["runs"]]  # what the page says
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{folder}: the files of {name} cannot be read ({error!r})") from error
    rows = claims.to_dict("records")
    return replace(known, scale=folder.name, picture=picture, claims=rows, about=about)


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def page(entries: list[Entry]) -> str:
    """The whole page as HTML; every text is escaped."""
    environment = Environment(loader=PackageLoader("runner.publish", "."), autoescape=True)
    environment.filters["duration"] = duration
    environment.filters["p_value"] = lambda text: f"{float(text):.2g}"
    facts = [_facts(run) for entry in entries for run in entry.about.get("runs", [])]
    canonical = [entry for entry in entries if entry.is_canonical]
    return environment.get_template("report.html.jinja").render(
        entries=entries,
        letters=sorted({entry.paper.letter for entry in entries}),
        canonical=canonical,
        counts=_counts(canonical),
        runs=len(facts),
        commits=sorted({commit for commit, _, _ in facts}),
        machines=sorted({machine for _, machine, _ in facts}),
        versions=sorted({version for _, _, versions in facts for version in versions}),
    )


def _counts(entries: list[Entry]) -> Counter[str]:
    """How many claims came out how; one that two figures make of the same runs counts once."""
    once = {
        (claim["statement"], claim.get("runs", entry.name)): claim["verdict"]
        for entry in entries
        for claim in entry.claims
    }
    return Counter(once.values())


def _facts(run: dict[str, Any]) -> tuple[str, str, list[str]]:
    """Commit, machine and versions of a run, as the page says them."""
    commit = f"{str(run['commit'] or 'no commit')[:10]}{'+' * bool(run['dirty'])}"
    machine = f"{run['device_name']}, {run['threads']} threads"
    versions = (run["versions"] or {}).items()
    return commit, machine, [f"{name} {version}" for name, version in versions if version]


def main(arguments: list[str]) -> int:
    """Put all figures and claims on one page, <outputs>/report/index.html; returns 0.

    Raises InputError when files of a figure are damaged, or the page cannot be written.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner report",
        description="One page with every figure and every claim: <outputs>/report/index.html.",
    )
    parser.add_argument("words", nargs="*", metavar="key=value", help="outputs=..., scale=...")
    values = key_values(parser.parse_args(arguments).words, ["outputs", "scale"])
    outputs = outputs_at(values.get("outputs", "outputs"))
    require_writable(outputs, outputs / "report")
    target = outputs / "report" / "index.html"
    content = page(collect(outputs, values.get("scale")))
    try:
        write_atomically(target, content.encode())
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror})") from error
    print(target)
    return 0
