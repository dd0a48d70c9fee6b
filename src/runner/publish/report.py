"""The report: one page with every figure, its command, its time, and its claims.

Shows what `publish.entries` collects and writes `<outputs>/report/index.html`, which needs nothing
but itself; its links lead to the tables behind the numbers. A figure that is neither made nor kept
gives its command. Variants of a figure, made with overrides, follow it; they count in no total.
"""

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pandas as pd
from jinja2 import Environment, PackageLoader

from runner.cli.working import log_to_terminal
from runner.core.arguments import key_values
from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_writable
from runner.publish.counting import once
from runner.publish.entries import SCALES, Entry, Result, collect, facts
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE

VERDICTS = ("holds", "fails", "undecided")
KINDS = {
    "paper": "the papers' own statements",
    "ours": "ours",
    "illustration": "illustrations by loose bounds",
}
"""What the page calls claims by whose they are: the papers' own come first."""


@dataclass(frozen=True)
class Tally:
    """How many figures there are of one source at one scale, and how their claims came out.

    verdicts: by whose statements they are.
    """

    source: str
    scale: str
    figures: int
    verdicts: dict[str, Counter[str]]


@dataclass(frozen=True)
class Provenance:
    """Where the numbers of one source come from."""

    source: str
    runs: int
    commits: list[str]
    machines: list[str]
    versions: list[str]


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
    canonical = [entry for entry in entries if entry.is_canonical]
    first = [entry.results[0] for entry in canonical if entry.results]
    shown = [result for entry in entries for result in entry.results]
    rows = [claim.row for result in shown for claim in result.claims]
    return environment.get_template("report.html.jinja").render(
        entries=entries,
        letters=sorted({entry.paper.letter for entry in entries}),
        datasets=sorted({word for row in rows for word in row.get("data", "").split()}),
        kinds=sorted({row.get("kind") or "paper" for row in rows}),
        scales=[scale for scale in reversed(SCALES) if scale in {each.scale for each in shown}],
        verdicts=VERDICTS,
        whose_claims=KINDS,
        canonical=canonical,
        first=first,
        counts=_counts(first),
        tallies=list(_tallies([each for entry in canonical for each in entry.results])),
        provenances=list(_provenances(shown)),
    )


def _counts(results: Iterable[Result]) -> dict[str, Counter[str]]:
    """How many claims of each kind came out how, each statement on the same numbers once."""
    rows = [
        {"runs": result.name, "data": "", "kind": "paper", **claim.row}
        for result in results
        for claim in result.claims
    ]
    if not rows:
        return {kind: Counter() for kind in KINDS}
    claims = once(pd.DataFrame(rows))
    return {kind: Counter(claims[claims["kind"] == kind]["verdict"]) for kind in KINDS}


def _tallies(results: list[Result]) -> Iterator[Tally]:
    """A tally for each source and scale that there is."""
    for source in ("own", "reference"):
        for scale in SCALES:
            found = [each for each in results if (each.source, each.scale) == (source, scale)]
            if found:
                yield Tally(source, scale, len(found), _counts(found))


def _provenances(results: list[Result]) -> Iterator[Provenance]:
    """Commits, machines and versions of each source that there is."""
    for source in ("own", "reference"):
        runs = [
            facts(run) for each in results if each.source == source for run in each.about["runs"]
        ]
        if runs:
            commits, machines, versions = zip(*runs, strict=True)
            packages = {package for each in versions for package in each}
            yield Provenance(
                source, len(runs), sorted({*commits}), sorted({*machines}), sorted(packages)
            )


def main(arguments: list[str]) -> int:
    """Put all figures and claims on one page, <outputs>/report/index.html; returns 0.

    Raises InputError when files of a figure are damaged, or the page cannot be written.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner report",
        description="One page with every figure and every claim, yours or else those of the"
        " reference: <outputs>/report/index.html.",
    )
    parser.add_argument("words", nargs="*", metavar="key=value", help="outputs=..., scale=...")
    values = key_values(parser.parse_args(arguments).words, ["outputs", "scale"])
    outputs = outputs_at(values.get("outputs", "outputs"))
    require_writable(outputs, outputs / "report")
    target = outputs / "report" / "index.html"
    log_to_terminal()
    content = page(collect(outputs, values.get("scale"), REFERENCE))
    try:
        write_atomically(target, content.encode())
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror})") from error
    print(target)
    return 0
