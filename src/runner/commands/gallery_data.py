"""What the gallery shows of each figure: one's own results, those of the reference, and all claims.

Own results are what `make <figure>` has left under `<outputs>/figures/`. Links are relative to the
pages in `<outputs>/report/`.
"""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from runner.commands.kept import KeptFigure, read_csv, read_json
from runner.core.catalogue import figure_names, figure_study, headline, natural_order, paper_folder
from runner.core.errors import InputError
from runner.core.papers import Paper, paper_of
from runner.core.progress import Progress
from runner.results.claims import COLUMNS as JUDGED
from runner.results.claims import MOST_LEFT_OUT
from runner.results.figure import FILES
from runner.runs.provenance import code_of

SCALES = ("paper", "medium", "quick", "smoke")
"""From the largest."""

LINKED = ("csv", "claims.csv", "provenance.json", "png", "pdf", "svg")
"""Files of one's own figures that the pages link to."""

COLUMNS = [*JUDGED, "standing"]
"""Of a result's claims; one's own have no standing, and an empty text there."""

OF_A_RESULT = ("scale", "whose", "is_canonical", "is_main")
"""Columns of `claims_of` that say which result a claim is of. The main one speaks for a figure."""

UNREADABLE = (InputError, OSError, ValueError, KeyError, TypeError, AttributeError)
"""What reading damaged files ends in."""


@dataclass(frozen=True, eq=False)
class Result:
    """A figure at one scale, one's own or of the reference."""

    name: str
    scale: str
    whose: str
    """`own` or `reference`."""
    about: Mapping[str, Any]
    """Its provenance."""
    facts: Mapping[str, list[str]]
    """The different commits, machines and versions that computed it."""
    claims: pd.DataFrame
    """A row for each claim, as texts; the column `standing` is empty where it is one's own."""
    files: Mapping[str, str]
    """Links by name."""
    runs: Mapping[str, str]
    """Links by name, empty where a run is not there."""
    picture: Path | None
    """The PNG without its header; None where it cannot be drawn."""
    words: Mapping[str, str]
    """The header of the picture: what it is, and what was found."""
    caption: str
    notes: tuple[str, ...]

    @property
    def is_own(self) -> bool:
        """Return whether it is the user's."""
        return self.whose == "own"

    @property
    def place(self) -> str:
        """Return what its picture is called."""
        return f"{self.name}.{self.scale}.{self.whose}"

    @cached_property
    def rows(self) -> dict[str, dict[str, str]]:
        """Return its claims by name."""
        return {row["claim"]: row for row in self.claims.to_dict("records")}


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
        """Return `Figure 4`, its place in the paper, or `Supplementary to paper A, figure 4`."""
        place = self.headline.partition(": ")[0]
        place = place.removeprefix(f"paper {self.paper.letter}").strip(", ")
        return place[:1].upper() + place[1:] or self.name

    @property
    def what(self) -> str:
        """Return the words after its place: what it shows."""
        return self.headline.partition(": ")[2] or self.headline

    @property
    def first(self) -> Result | None:
        """Return the result that speaks for it, if there is any."""
        return next(iter(self.results), None)

    @property
    def by_scale(self) -> list[Result]:
        """Return the results from the smallest scale, one's own before the reference's."""
        order = SCALES[::-1].index
        return sorted(self.results, key=lambda result: (order(result.scale), not result.is_own))

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        """Return each claim by name, as the first result that has it words it."""
        return {name: row for result in reversed(self.results) for name, row in result.rows.items()}


def claims_of(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return all claims of all results: a row for each, with COLUMNS and OF_A_RESULT."""
    parts = [pd.DataFrame(columns=[*COLUMNS, *OF_A_RESULT])]
    for entry in entries:
        for result in entry.results:
            is_main = entry.is_canonical and result is entry.first
            values = (result.scale, result.whose, entry.is_canonical, is_main)
            about = dict(zip(OF_A_RESULT, values, strict=True))
            parts.append(result.claims.assign(figure=entry.name, **about))
    return pd.concat(parts, ignore_index=True).astype({"is_canonical": bool, "is_main": bool})


def reason(row: Mapping[str, str]) -> str:
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
    names, scales = figure_names(), [scale] if scale else SCALES
    with Progress(len(names), "report", unit="figures") as bar:
        for name in names:
            entries += _entries(outputs, scales, reference, name, draws)
            bar.update(1)
    return sorted(entries, key=_order)


def _order(entry: Entry) -> tuple:
    """Sort by paper, the user's studies last; a paper's figures before supplementary ones."""
    paper = entry.paper
    return not paper.letter, paper, not entry.title.startswith("Figure"), natural_order(entry.name)


def _entries(
    outputs: Path, scales: Iterable[str], reference: Path, name: str, draws: bool
) -> Iterator[Entry]:
    """Yield a figure, and its variants."""
    known = Entry(name, headline("figure", name), paper_of(paper_folder(figure_study(name))))
    own, kept, variants = list[Result](), list[Result](), list[Result]()
    for scale in scales:
        folder, in_reference = outputs / "figures" / scale, reference / scale / name
        if (path := folder / f"{name}.provenance.json").exists():
            own.append(_own(outputs, path, known))
        if (in_reference / "claims.csv").exists():
            kept += _kept(outputs, in_reference, known, draws)
        paths = sorted(folder.glob(f"{name}-{'[0-9a-f]' * 8}.provenance.json"))
        variants += [_own(outputs, path, known) for path in paths]
    results = sorted([*own, *kept], key=lambda result: result.scale == SCALES[-1])
    yield replace(known, results=tuple(results))
    for one in variants:
        yield replace(known, name=one.name, results=(one,), is_canonical=False)


def _own(outputs: Path, provenance: Path, entry: Entry) -> Result:
    """Return what one has made; raises InputError when that is damaged."""
    name, folder = provenance.name.partition(".")[0], provenance.parent
    paths = {end: folder / f"{name}.{end}" for end in (*LINKED, *FILES)}
    try:
        about, facts, claims = _read(provenance, paths["claims.csv"])
        words = _words(paths["header.json"])
        caption, _ = paths["caption.txt"].read_text().strip(), paths["body.png"].read_bytes()
    except UNREADABLE as error:
        raise InputError(f"{folder}: the files of {name} cannot be read ({error!r})") from error
    files = _links(outputs, [paths[end] for end in LINKED])
    place, notes = outputs / "runs" / figure_study(entry.name), filter(None, [about.get("stale")])
    runs = dict.fromkeys(_runs(claims), "") | _links(outputs, map(place.joinpath, _runs(claims)))
    return Result(name, folder.name, "own", about, facts, claims, files, runs, paths["body.png"],
                  words, caption, tuple(notes))  # fmt: skip


def _kept(outputs: Path, folder: Path, entry: Entry, draws: bool) -> Iterator[Result]:
    """Yield what the reference holds of a figure at a scale; nothing, and a line, where it is
    damaged."""
    figure, picture, notes = KeptFigure.of(folder, outputs), None, []
    words = {"what": entry.headline.partition(": ")[0], "finding": entry.what}
    try:
        about, facts, claims = _read(folder / "provenance.json", folder / "claims.csv")
        other = sum(run.get("code") != code_of(figure.study) for run in about["runs"])
        caption = (folder / "caption.txt").read_text().strip()
    except UNREADABLE as error:
        print(f"{folder}: left out, it cannot be read ({error!r})", file=sys.stderr)
        return
    if other:
        count = len(about["runs"])
        notes.append(f"{other} of {count} runs were computed by other code than today's")
    try:
        if draws:
            picture = figure.picture("body.png")
            words = _words(figure.path("header.json"))
    except Exception as error:  # of whatever kind: old tables, and the drawing of today
        what = f"{type(error).__name__}: {error}"
        notes.append(f"the code of today cannot draw these tables ({what})")
    files = _links(outputs, [*sorted(folder.glob("*.csv*")), folder / "provenance.json"])
    runs = dict.fromkeys(_runs(claims), "")
    yield Result(figure.name, figure.scale, "reference", about, facts, claims, files, runs, picture,
                 words, caption, tuple(notes))  # fmt: skip


def _read(
    provenance: Path, claims: Path
) -> tuple[dict[str, Any], dict[str, list[str]], pd.DataFrame]:
    """Return the provenance of a result, the facts of its runs, and its claims.

    Raises one of UNREADABLE when the pages lack something in them that they cannot do without.
    """
    about = read_json(provenance)
    about |= {"seconds": float(about["seconds"]), "command": about["command"]}
    table = read_csv(claims, dtype=str, keep_default_na=False)
    return about, _facts(about["runs"]), table.reindex(columns=COLUMNS, fill_value="")


def _facts(runs: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the different commits, machines and versions of runs."""
    facts: dict[str, set[str]] = {"commits": set(), "machines": set(), "versions": set()}
    for run in runs:
        instructions = "".join(f"{name}, " for name in (run.get("instructions") or {}).values())
        facts["commits"].add(f"{str(run['commit'] or 'no commit')[:10]}{'+' * bool(run['dirty'])}")
        facts["machines"].add(f"{run['device_name']}, {instructions}{run['threads']} threads")
        versions = (run["versions"] or {}).items()
        facts["versions"] |= {f"{name} {version}" for name, version in versions if version}
    return {name: sorted(values) for name, values in facts.items()}


def _words(path: Path) -> dict[str, str]:
    """Return the header of a picture."""
    words = json.loads(path.read_text())
    return {"what": words["what"], "finding": words["finding"]}


def _links(outputs: Path, paths: Iterable[Path]) -> dict[str, str]:
    """Return the links from the pages to the files and folders that are there, by name."""
    pages = outputs / "report"
    return {
        path.name: quote(os.path.relpath(path, pages) + "/" * path.is_dir())
        for path in paths
        if path.exists()
    }


def _runs(claims: pd.DataFrame) -> list[str]:
    """Return the names of the runs that claims are judged on."""
    return list(dict.fromkeys(run for names in claims["runs"] for run in names.split()))
