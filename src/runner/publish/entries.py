"""What the report shows of each figure: one's own results, and kept ones where these are missing.

Own results are what `make <figure>` has left under `<outputs>/figures/`, kept ones are those of the
reference. Links are relative to the page, `<outputs>/report/index.html`.
"""

import base64
import json
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from runner.cli.catalogue import figure_names, figure_study, headline, natural_order
from runner.core.errors import InputError
from runner.core.papers import Paper, paper_of
from runner.core.progress import Progress
from runner.core.rooms import room_of
from runner.publish.reference import picture
from runner.runs.code import code_of

SCALES = ("paper", "medium", "quick", "smoke")
"""From the largest."""

Row = Mapping[str, str]
"""A row of a table of claims as it is written there."""

UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading damaged files ends in."""


@dataclass(frozen=True)
class Link:
    """A file or a folder as the page names it."""

    text: str
    href: str = ""
    """Relative to the page; empty where it is not there."""


@dataclass(frozen=True)
class Claim:
    """A claim as it came out: its row, its runs, and the kept row of one's own claim."""

    row: Row
    runs: tuple[Link, ...] = ()
    kept: Row | None = None


@dataclass(frozen=True)
class Result:
    """A figure at one scale, one's own or of the reference."""

    name: str
    scale: str
    is_own: bool
    about: Mapping[str, Any]
    claims: tuple[Claim, ...]
    files: tuple[Link, ...]
    claims_href: str
    """Of the table that `measured` stands in."""
    kept_href: str = ""
    """Of the reference's table, beside one's own."""
    picture: str = ""
    """The PNG in base64; empty where it cannot be drawn."""
    caption: str = ""
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Whose it is, in a word: `own` or `reference`."""
        return "own" if self.is_own else "reference"

    @property
    def place(self) -> str:
        """Where it is on the page."""
        return f"{self.name}.{self.scale}.{self.source}"

    @property
    def commits(self) -> list[str]:
        """The code that computed it."""
        return sorted({facts(run)[0] for run in self.about["runs"]})


@dataclass(frozen=True)
class Entry:
    """One figure of the report, or a variant, with what there is of it.

    results: of each scale one; one's own before the kept ones, the larger scale before the smaller,
    and smoke, which shows nothing but that everything works, after all others.
    """

    name: str
    headline: str
    paper: Paper
    results: tuple[Result, ...] = ()
    is_canonical: bool = True

    @property
    def by_scale(self) -> list[Result]:
        """The results from the smallest scale."""
        return sorted(self.results, key=lambda result: -SCALES.index(result.scale))

    @property
    def claims_by_scale(self) -> list[tuple[str, list[Claim | None]]]:
        """Each statement, and how it came out in each of `by_scale`."""
        columns = [{each.row["claim"]: each for each in one.claims} for one in self.by_scale]
        said = {name: claim.row["statement"] for one in columns for name, claim in one.items()}
        return [(said[name], [one.get(name) for one in columns]) for name in said]


def collect(outputs: Path, scale: str | None, reference: Path) -> list[Entry]:
    """All figures with what there is of them, at `scale` or at all scales.

    The variants of a figure follow it. A picture of the reference is drawn into
    `<outputs>/figures-from-reference/` unless it is there. Raises InputError when files of one's
    own figures are damaged.
    """
    scales = [scale] if scale else SCALES
    entries = []
    names = figure_names()
    with Progress(len(names), "report", unit="figures") as bar:
        for name in names:
            entries += _entries(outputs, scales, reference, name)
            bar.update(1)
    return sorted(entries, key=lambda entry: (entry.paper.letter, natural_order(entry.name)))


def _entries(
    outputs: Path, scales: list[str] | tuple[str, ...], reference: Path, name: str
) -> Iterator[Entry]:
    """A figure, and its variants."""
    known = Entry(name, headline("figure", name), paper_of(room_of(figure_study(name))))
    own, kept, variants = [], [], []
    for scale in scales:
        folder, in_reference = outputs / "figures" / scale, reference / scale / name
        if (folder / f"{name}.provenance.json").exists():
            own.append(_own(outputs, folder, name, name, in_reference))
        elif (in_reference / "claims.csv").exists():
            kept += _kept(outputs, in_reference)
        for path in sorted(folder.glob(f"{name}-{'[0-9a-f]' * 8}.provenance.json")):
            variants.append(_own(outputs, folder, path.name.partition(".")[0], name))
    results = sorted([*own, *kept], key=lambda result: result.scale == SCALES[-1])
    yield replace(known, results=tuple(results))
    for one in variants:
        yield replace(known, name=one.name, results=(one,), is_canonical=False)


def _own(
    outputs: Path, folder: Path, name: str, figure: str, in_reference: Path | None = None
) -> Result:
    """What one has made; raises InputError when that is damaged."""
    try:
        rows = _rows(folder / f"{name}.claims.csv")
        about = json.loads((folder / f"{name}.provenance.json").read_text())
        png = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
        float(about["seconds"]), [facts(run) for run in about["runs"]]  # what the page says
    except UNREADABLE as error:
        raise InputError(f"{folder}: the files of {name} cannot be read ({error!r})") from error
    path = in_reference / "claims.csv" if in_reference else None
    beside = {row["claim"]: row for row in _rows_or_none(path)} if path else {}
    runs = outputs / "runs" / figure_study(figure)

    def claim(row: Row) -> Claim:
        links = [_link(outputs, runs / run) for run in row.get("runs", "").split()]
        return Claim(row, tuple(links), beside.get(row["claim"]))

    ends = ("csv", "claims.csv", "provenance.json", "png", "pdf", "svg")
    return Result(
        name=name,
        scale=folder.name,
        is_own=True,
        about=about,
        claims=tuple(map(claim, rows)),
        files=_links(outputs, [folder / f"{name}.{end}" for end in ends]),
        claims_href=_link(outputs, folder / f"{name}.claims.csv").href,
        kept_href=_link(outputs, path).href if beside else "",
        picture=png,
        caption=_caption(folder / f"{name}.caption.txt"),
        notes=tuple(filter(None, [about.get("stale")])),
    )


def _kept(outputs: Path, folder: Path) -> Iterator[Result]:
    """What the reference holds of a figure at a scale; nothing, and a line, where it is damaged."""
    name = folder.name
    try:
        rows = _rows(folder / "claims.csv")
        about = json.loads((folder / "provenance.json").read_text())
        float(about["seconds"]), [facts(run) for run in about["runs"]]
        stale = _stale(name, about["runs"])
    except UNREADABLE as error:
        print(f"{folder}: left out, it cannot be read ({error!r})", file=sys.stderr)
        return
    png, failed = _picture(folder, outputs / "figures-from-reference")
    tables = [*sorted(folder.glob("*.csv*")), folder / "provenance.json"]
    yield Result(
        name=name,
        scale=folder.parent.name,
        is_own=False,
        about=about,
        claims=tuple(Claim(row, tuple(map(Link, row.get("runs", "").split()))) for row in rows),
        files=_links(outputs, tables),
        claims_href=_link(outputs, folder / "claims.csv").href,
        picture=png,
        caption=_caption(folder / "caption.txt") or _caption(folder / f"{name}.caption.txt"),
        notes=tuple(filter(None, [stale, failed])),
    )


def _picture(folder: Path, figures: Path) -> tuple[str, str]:
    """A picture of the reference in base64; or, where there is none, why."""
    try:
        return base64.b64encode(picture(folder, figures)).decode(), ""
    except Exception as error:  # of whatever kind: old tables, and the drawing of today
        what = f"{type(error).__name__}: {error}"
        return "", f"the code of today cannot draw these tables ({what})"


def _stale(name: str, runs: list[Mapping[str, Any]]) -> str:
    """A note on kept runs of other code; empty where there are none."""
    count = sum(run.get("code") != code_of(figure_study(name)) for run in runs)
    return f"{count} of {len(runs)} runs were computed by other code than today's" if count else ""


def _rows(path: Path) -> list[Row]:
    """The rows of a table of claims; raises KeyError when it has no claims or verdicts."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table[["claim", "statement", "verdict", "measured"]]  # what the page cannot do without
    return table.to_dict("records")


def _rows_or_none(path: Path) -> list[Row]:
    try:
        return _rows(path)
    except UNREADABLE:
        return []


def _caption(path: Path) -> str:
    """What stands below a picture; empty where nothing was written."""
    return path.read_text().strip() if path.exists() else ""


def _link(outputs: Path, path: Path) -> Link:
    """The link from the page; without an address where there is no such file or folder."""
    if not path.exists():
        return Link(path.name)
    relative = os.path.relpath(path, outputs / "report") + "/" * path.is_dir()
    return Link(path.name, quote(relative))


def _links(outputs: Path, paths: list[Path]) -> tuple[Link, ...]:
    return tuple(link for link in (_link(outputs, path) for path in paths) if link.href)


def facts(run: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    """Commit, machine and versions of a run, as the page says them."""
    commit = f"{str(run['commit'] or 'no commit')[:10]}{'+' * bool(run['dirty'])}"
    instructions = [f"{each}, " for each in (run.get("instructions") or {}).values()]
    machine = f"{run['device_name']}, {''.join(instructions)}{run['threads']} threads"
    versions = (run["versions"] or {}).items()
    return commit, machine, [f"{name} {version}" for name, version in versions if version]
