"""What the gallery shows of each figure: one's own results, and the reference's.

Own results are what `make <figure>` has left under `<outputs>/figures/`. Links are relative to the
pages in `<outputs>/report/`.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runner.core.catalogue import figure_names, figure_study, headline, natural_order, paper_folder
from runner.core.errors import InputError
from runner.core.papers import Paper, paper_of
from runner.core.progress import Progress
from runner.publish.kept import read_csv, read_json
from runner.publish.kept_figure import KeptFigure
from runner.results.claims import MOST_LEFT_OUT
from runner.runs.provenance import code_of

SCALES = ("paper", "medium", "quick", "smoke")
"""From the largest."""

Row = Mapping[str, str]
"""A row of a table of claims as it is written there."""

LATER = dict.fromkeys(
    ("kind", "source", "rule", "note", "p_value", "left_out", "data", "runs", "standing"), ""
)
"""Columns that tables of older code may lack."""

UNREADABLE = (InputError, OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading damaged files ends in."""


@dataclass(frozen=True)
class Link:
    """A file or a folder as the pages name it."""

    text: str
    href: str = ""
    """Relative to the pages; empty where it is not there."""


@dataclass(frozen=True)
class Result:
    """A figure at one scale, one's own or of the reference."""

    name: str
    scale: str
    is_own: bool
    about: Mapping[str, Any]
    claims: Mapping[str, Row]
    """By name."""
    files: tuple[Link, ...]
    runs: tuple[Link, ...]
    picture: Path | None
    """The PNG without its header; None where it cannot be drawn."""
    words: Mapping[str, str]
    """The header of the picture: what it is, and what was found."""
    caption: str = ""
    notes: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """Whose it is, in a word: `own` or `reference`."""
        return "own" if self.is_own else "reference"

    @property
    def place(self) -> str:
        """What it is called on its page, and its picture."""
        return f"{self.name}.{self.scale}.{self.source}"

    @property
    def facts(self) -> dict[str, list[str]]:
        """The different commits, machines and versions that computed it."""
        found = [_facts(run) for run in self.about["runs"]]
        return {
            "commits": sorted({commit for commit, _, _ in found}),
            "machines": sorted({machine for _, machine, _ in found}),
            "versions": sorted({package for _, _, versions in found for package in versions}),
        }


@dataclass(frozen=True)
class Entry:
    """One figure of the gallery, or a variant, with what there is of it.

    results: of each scale and source one; one's own before the reference's, the larger scale
    before the smaller, and smoke, which shows nothing but that everything works, after all others.
    """

    name: str
    headline: str
    paper: Paper
    results: tuple[Result, ...] = ()
    is_canonical: bool = True

    @property
    def title(self) -> str:
        """`Figure 4`, its place in the paper, or `Supplementary to paper A, figure 4`."""
        place = self.headline.partition(": ")[0]
        place = place.removeprefix(f"paper {self.paper.letter}").strip(", ")
        return place[:1].upper() + place[1:] or self.name

    @property
    def what(self) -> str:
        """The words after its place: what it shows."""
        return self.headline.partition(": ")[2] or self.headline

    @property
    def first(self) -> Result | None:
        """The result that speaks for it, if there is any."""
        return next(iter(self.results), None)

    @property
    def by_scale(self) -> list[Result]:
        """The results from the smallest scale, one's own before the reference's."""
        return sorted(self.results, key=lambda each: (-SCALES.index(each.scale), not each.is_own))

    @property
    def claims(self) -> dict[str, Row]:
        """Each statement as the first result that has it words it, by name."""
        return {name: row for each in reversed(self.results) for name, row in each.claims.items()}


def reason(row: Row) -> str:
    """Return why a claim is undecided where its note does not say it; else nothing.

    The note does where nothing was judged, and where more was left out than a verdict allows.
    """
    judged = bool(row["measured"]) and float(row["left_out"] or 0) <= MOST_LEFT_OUT
    is_open = row["verdict"] == "undecided" and judged
    return "The numbers exclude neither the statement nor its opposite." * is_open


def collect(outputs: Path, scale: str | None, reference: Path, draws: bool = True) -> list[Entry]:
    """Return all figures with what there is of them, at `scale` or at all scales.

    The variants of a figure follow it. A picture of the reference is drawn into
    `<outputs>/figures-from-reference/` unless it is there, or none is wanted. Raises InputError
    when files of the user's figures are damaged.
    """
    entries: list[Entry] = []
    names = figure_names()
    drawings = outputs if draws else None
    with Progress(len(names), "report", unit="figures") as bar:
        for name in names:
            entries += _entries(outputs, [scale] if scale else SCALES, reference, name, drawings)
            bar.update(1)
    return sorted(entries, key=_order)


def _order(entry: Entry) -> tuple:
    """Sort by paper, the user's studies last; a paper's figures before supplementary ones."""
    paper = entry.paper
    return not paper.letter, paper, not entry.title.startswith("Figure"), natural_order(entry.name)


def _entries(
    outputs: Path,
    scales: Iterable[str],
    reference: Path,
    name: str,
    drawings: Path | None,
) -> Iterator[Entry]:
    """Yield a figure, and its variants."""
    known = Entry(name, headline("figure", name), paper_of(paper_folder(figure_study(name))))
    own, kept, variants = list[Result](), list[Result](), list[Result]()
    for scale in scales:
        folder, in_reference = outputs / "figures" / scale, reference / scale / name
        if (folder / f"{name}.provenance.json").exists():
            own.append(_own(outputs, folder, known, name))
        if (in_reference / "claims.csv").exists():
            kept += _kept(outputs, in_reference, known, drawings)
        for path in sorted(folder.glob(f"{name}-{'[0-9a-f]' * 8}.provenance.json")):
            variants.append(_own(outputs, folder, known, path.name.partition(".")[0]))
    results = sorted([*own, *kept], key=lambda result: result.scale == SCALES[-1])
    yield replace(known, results=tuple(results))
    for one in variants:
        yield replace(known, name=one.name, results=(one,), is_canonical=False)


def _own(outputs: Path, folder: Path, entry: Entry, name: str) -> Result:
    """Return what one has made; raises InputError when that is damaged."""
    body, png = folder / f"{name}.body.png", folder / f"{name}.png"
    try:
        claims, about = _read(folder / f"{name}.claims.csv", folder / f"{name}.provenance.json")
        words = _words(folder / f"{name}.header.json", entry)
        png.read_bytes()
    except UNREADABLE as error:
        raise InputError(f"{folder}: the files of {name} cannot be read ({error!r})") from error
    ends = ("csv", "claims.csv", "provenance.json", "png", "pdf", "svg")
    return Result(
        name=name,
        scale=folder.name,
        is_own=True,
        about=about,
        claims=claims,
        files=_links(outputs, [folder / f"{name}.{end}" for end in ends]),
        runs=_runs(claims, outputs, outputs / "runs" / figure_study(entry.name)),
        picture=body if body.exists() else png,
        words=words,
        caption=_caption(folder / f"{name}.caption.txt"),
        notes=tuple(filter(None, [about.get("stale")])),
    )


def _kept(outputs: Path, folder: Path, entry: Entry, drawings: Path | None) -> Iterator[Result]:
    """Yield what the reference holds of a figure at a scale; nothing, and a line, where it is
    damaged."""
    name = folder.name
    try:
        claims, about = _read(folder / "claims.csv", folder / "provenance.json")
        other = sum(run.get("code") != code_of(figure_study(name)) for run in about["runs"])
    except UNREADABLE as error:
        print(f"{folder}: left out, it cannot be read ({error!r})", file=sys.stderr)
        return
    count = len(about["runs"])
    stale = f"{other} of {count} runs were computed by other code than today's" if other else ""
    body, failed = _body(folder, drawings) if drawings else (None, "")
    yield Result(
        name=name,
        scale=folder.parent.name,
        is_own=False,
        about=about,
        claims=claims,
        files=_links(outputs, [*sorted(folder.glob("*.csv*")), folder / "provenance.json"]),
        runs=_runs(claims),
        picture=body,
        words=_words(body and body.with_name(f"{name}.header.json"), entry),
        caption=_caption(folder / "caption.txt"),
        notes=tuple(filter(None, [stale, failed])),
    )


def _body(folder: Path, drawings: Path) -> tuple[Path | None, str]:
    """Return the picture of a figure of the reference without its header; or why there is none."""
    try:
        return KeptFigure.of(folder, drawings).picture("body.png"), ""
    except Exception as error:  # of whatever kind: old tables, and the drawing of today
        what = f"{type(error).__name__}: {error}"
        return None, f"the code of today cannot draw these tables ({what})"


def _read(claims: Path, provenance: Path) -> tuple[dict[str, Row], dict[str, Any]]:
    """Rows by claim, and the provenance.

    Raises one of UNREADABLE when the pages lack something in them that they cannot do without.
    """
    about = read_json(provenance)
    float(about["seconds"]), about["command"], [_facts(run) for run in about["runs"]]
    table = read_csv(claims, dtype=str, keep_default_na=False)
    table[["statement", "verdict", "measured"]]
    rows = [LATER | row for row in table.to_dict("records")]
    return {row["claim"]: row | {"kind": row["kind"] or "paper"} for row in rows}, about


def _words(path: Path | None, entry: Entry) -> dict[str, str]:
    """Return the header of a picture; the headline where nothing was written."""
    if path and path.exists():
        words = json.loads(path.read_text())
        return {"what": words["what"], "finding": words["finding"]}
    return {"what": entry.headline.partition(": ")[0], "finding": entry.what}


def _caption(path: Path) -> str:
    """Return the caption of a picture; empty where nothing was written."""
    return path.read_text().strip() if path.exists() else ""


def _link(outputs: Path, path: Path) -> Link:
    """Return the link from the pages; without an address where there is no such file or folder."""
    if not path.exists():
        return Link(path.name)
    return Link(path.name, quote(os.path.relpath(path, outputs / "report") + "/" * path.is_dir()))


def _links(outputs: Path, paths: list[Path]) -> tuple[Link, ...]:
    return tuple(link for link in (_link(outputs, path) for path in paths) if link.href)


def _runs(claims: Mapping[str, Row], outputs: Path = Path(), folder: Path | None = None) -> tuple:
    """Return the runs that claims are judged on, with links where their folder is given."""
    names = dict.fromkeys(run for row in claims.values() for run in row["runs"].split())
    return tuple(_link(outputs, folder / name) if folder else Link(name) for name in names)


def _facts(run: Mapping[str, Any]) -> tuple[str, str, list[str]]:
    """Commit, machine and versions of a run, as the pages say them."""
    commit = f"{str(run['commit'] or 'no commit')[:10]}{'+' * bool(run['dirty'])}"
    instructions = [f"{each}, " for each in (run.get("instructions") or {}).values()]
    machine = f"{run['device_name']}, {''.join(instructions)}{run['threads']} threads"
    versions = (run["versions"] or {}).items()
    return commit, machine, [f"{name} {version}" for name, version in versions if version]
