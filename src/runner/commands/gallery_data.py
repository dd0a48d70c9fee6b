"""What the gallery shows of each figure: the user's results, the reference's, and all claims.

The user's results are the files in `<outputs>/figures/`. Links start from the pages in
`<outputs>/report/`.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd

from runner.commands.kept import KeptFigure, damage_named, read_claims, read_json, read_text
from runner.core.catalogue import (
    SCALES,
    figure_names,
    figure_study,
    judges,
    natural_order,
    paper_folder,
    title_of,
)
from runner.core.errors import InputError
from runner.core.papers import Paper, paper_of
from runner.core.progress import Progress
from runner.core.shell import command
from runner.results.claims import COLUMNS as JUDGED
from runner.results.claims import MOST_LEFT_OUT
from runner.results.finishing import found
from runner.runs.provenance import code_of

LINKED = ("csv", "claims.csv", "provenance.json", "png", "pdf", "svg")
"""Files of the user's figures that the pages link to."""

COLUMNS = [*JUDGED, "standing"]
"""The columns of a result's claims. `standing` is empty for the user's results."""

ALL_COLUMNS = [*COLUMNS, "scale", "whose", "is_canonical", "is_main"]
"""The columns of `claims_of`. `whose`, `scale` and `figure` name the result of a claim. `is_main`
marks the claims of the result that is shown first."""


@dataclass
class Result:
    """A figure at one scale, made by the user or stored in the reference."""

    name: str
    scale: str
    whose: str
    """`own` for the user's result, or `reference`."""
    about: Mapping[str, Any]
    """The provenance of the figure."""
    facts: Mapping[str, list[str]]
    """The different commits, machines and versions with which the runs were computed."""
    claims: pd.DataFrame
    """A row for each claim, with the columns COLUMNS, all as text."""
    caption: str
    runs: Mapping[str, str]
    """A link to the folder of each run, by the run's name; an empty text if there is no folder."""
    words: Mapping[str, str]
    """The texts of the picture's header: `what` is shown, and the `finding`."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Links to the result's files, by name."""
    picture: Path | None = None
    """The path of the PNG without the header; None if it cannot be drawn."""
    notes: list[str] = field(default_factory=list)
    again: str = ""
    """What makes a damaged picture again, for a message."""

    @property
    def is_own(self) -> bool:
        """Return whether the result is the user's."""
        return self.whose == "own"

    @property
    def stem(self) -> str:
        """Return the name of the picture's file in the gallery, without the ending."""
        return f"{self.name}.{self.scale}.{self.whose}"

    @cached_property
    def rows(self) -> dict[str, dict[str, str]]:
        """Return each claim's row as a dictionary, by the claim's name."""
        return {row["claim"]: row for row in self.claims.to_dict("records")}


@dataclass(frozen=True)
class Entry:
    """A figure of the gallery with its results, or a variant of a figure.

    A variant was made with other parameters than the paper's figure.

    - name: the figure's name;
    - full_title: such as "paper A, figure 4: ...";
    - results: one for each scale and source. The user's results come first, then the reference's,
      each with larger scales first. Scale `smoke` comes last, since it only shows that everything
      works.
    - is_canonical: false for a variant.
    """

    name: str
    full_title: str
    paper: Paper
    results: tuple[Result, ...] = ()
    is_canonical: bool = True

    @property
    def title(self) -> str:
        """Return the start of the title: `Figure 4`, or `Supplementary to paper A, figure 4`."""
        number = self.full_title.partition(": ")[0]
        number = number.removeprefix(f"paper {self.paper.letter}").strip(", ")
        return number[:1].upper() + number[1:] or self.name

    @property
    def what(self) -> str:
        """Return what the figure shows: the part of the title after the colon."""
        return self.full_title.partition(": ")[2] or self.full_title

    @property
    def first(self) -> Result | None:
        """Return the result that is shown first; None if there are no results."""
        return next(iter(self.results), None)

    @property
    def by_scale(self) -> list[Result]:
        """Return the results, smallest scale first. At equal scale, the user's comes first."""
        order = [*SCALES].index
        return sorted(self.results, key=lambda result: (order(result.scale), not result.is_own))

    @property
    def rows(self) -> dict[str, dict[str, str]]:
        """Return a row for each claim by its name, from the first result that has the claim."""
        return {name: row for result in reversed(self.results) for name, row in result.rows.items()}


def claims_of(entries: Iterable[Entry]) -> pd.DataFrame:
    """Return all claims of all results in a table with the columns ALL_COLUMNS."""
    parts = [
        result.claims.assign(
            figure=entry.name,
            scale=result.scale,
            whose=result.whose,
            is_canonical=entry.is_canonical,
            is_main=entry.is_canonical and result is entry.first,
        )
        for entry in entries
        for result in entry.results
    ]
    claims = pd.concat(parts or [pd.DataFrame(columns=ALL_COLUMNS)], ignore_index=True)
    return claims.astype({"is_canonical": bool, "is_main": bool})


def reason(row: Mapping[str, str]) -> str:
    """Return why a claim is undecided, if its note does not say so; otherwise an empty text.

    row: a row of judged claims. The note has the reason if nothing was judged, or if too many
    measurements were excluded.
    """
    judged = bool(row["measured"]) and float(row["left_out"] or 0) <= MOST_LEFT_OUT
    is_open = row["verdict"] == "undecided" and judged
    if is_open and "needed to decide" in row["note"]:
        return "There are too few numbers to decide."
    return "Neither the statement nor its opposite passes the test." if is_open else ""


def collect(outputs: Path, scale: str | None, reference: Path, draws: bool = True) -> list[Entry]:
    """Return all figures with their results, each followed by its variants.

    - outputs: the folder of the user's results;
    - scale: the only scale at which results are collected; None: all scales;
    - reference: the folder of the reference;
    - draws: whether to draw missing pictures of the reference, into
      `<outputs>/figures-from-reference/`.

    Raises InputError if a file of the user's figures is damaged. A damaged figure of the reference
    is skipped with a message.
    """
    entries: list[Entry] = []
    names, scales = figure_names(), [scale] if scale else [*reversed(SCALES)]
    with Progress(len(names), "report", unit="figures") as bar:
        for name in names:
            entries += _entries(outputs, scales, reference, name, draws)
            bar.update(1)
    return sorted(entries, key=_order)


def _order(entry: Entry) -> tuple:
    """Return a key for `sorted`: papers before the user's studies, supplementary figures last."""
    paper = entry.paper
    return not paper.letter, paper, not entry.title.startswith("Figure"), natural_order(entry.name)


def _entries(
    outputs: Path, scales: Iterable[str], reference: Path, name: str, draws: bool
) -> Iterator[Entry]:
    """Yield a figure, then its variants."""
    entry = Entry(name, title_of("figure", name), paper_of(paper_folder(figure_study(name))))
    computed, kept, variants = list[Result](), list[Result](), list[Result]()
    for scale in scales:
        folder, in_reference = outputs / "figures" / scale, reference / scale / name
        if (folder / f"{name}.provenance.json").exists():
            computed.append(_own_result(outputs, folder, name, figure_study(name)))
        if (in_reference / "claims.csv").exists():
            kept += _kept_result(outputs, in_reference, entry, draws)
        for path in sorted(folder.glob(f"{name}-{'[0-9a-f]' * 8}.provenance.json")):
            variant = path.name.partition(".")[0]
            variants.append(_own_result(outputs, folder, variant, figure_study(name)))
    results = sorted([*computed, *kept], key=lambda result: not judges(result.scale))
    yield replace(entry, results=tuple(results))
    for result in variants:
        yield replace(entry, name=result.name, results=(result,), is_canonical=False)


def _own_result(outputs: Path, folder: Path, name: str, study: str) -> Result:
    """Return a result of the user. Raises InputError if a file is damaged."""
    this = command("figures", name, f"scale={folder.name}", outputs=outputs)
    again = f"{this if name in figure_names() else 'The command of the figure'} makes it again."
    try:
        result = _read("own", name, folder.name, folder, f"{name}.")
        result.words = _words(found(folder / name, "header.json"))
    except InputError as error:
        raise InputError(f"{error}\n{again}") from error
    result.picture, result.again = found(folder / name, "body.png"), again
    runs = [outputs / "runs" / study / run for run in result.runs]
    result.runs = {**result.runs, **_links(outputs, runs)}
    result.files = _links(outputs, [folder / f"{name}.{end}" for end in LINKED])
    result.notes = [result.about["stale"]] if result.about.get("stale") else []
    return result


def _kept_result(outputs: Path, folder: Path, entry: Entry, draws: bool) -> Iterator[Result]:
    """Yield the reference's result of a figure at a scale; print a line if a file is damaged."""
    figure = KeptFigure.of(folder, outputs)
    try:
        result = _read("reference", figure.figure, figure.scale, folder)
    except InputError as error:
        print(f"left out: {error}", file=sys.stderr)
        return
    runs = result.about["runs"]
    other = sum(run.get("code") != code_of(figure.study) for run in runs)
    result.again = "Without it the command draws it again."
    result.words = {"what": entry.full_title.partition(": ")[0], "finding": entry.what}
    result.files = _links(outputs, [*sorted(folder.glob("*.csv*")), folder / "provenance.json"])
    if other:
        result.notes.append(f"{other} of {len(runs)} runs were computed by other code than today's")
    try:
        if draws:
            result.picture = figure.picture("body.png")
            result.words = _words(figure.path("header.json"))
    except Exception as error:  # of any kind: the tables may be too old for the drawing
        what = f"{type(error).__name__}: {error}"
        result.notes.append(f"the code of today cannot draw these tables ({what})")
    yield result


def _read(whose: str, name: str, scale: str, folder: Path, prefix: str = "") -> Result:
    """Return a result with its provenance, claims and caption.

    prefix: the beginning of the files' names. Raises InputError if a file is damaged or lacks
    something that the pages show.
    """
    path = folder / f"{prefix}provenance.json"
    with damage_named(path):
        about = read_json(path)
        about |= {"seconds": float(about["seconds"]), "command": about["command"]}
        facts = _facts(about["runs"])
    needed = ("claim", "statement", "verdict", "runs")
    path = folder / f"{prefix}claims.csv"
    claims = read_claims(path, needed, dtype=str, keep_default_na=False)
    claims = claims.reindex(columns=COLUMNS, fill_value="")
    caption = read_text(folder / f"{prefix}caption.txt").strip()
    runs = dict.fromkeys(" ".join(claims["runs"]).split(), "")
    return Result(name, scale, whose, about, facts, claims, caption, runs, words={})


def _facts(runs: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return the different commits, machines and versions of runs."""
    facts: dict[str, set[str]] = {"commits": set(), "machines": set(), "versions": set()}
    for run in runs:
        instructions = "".join(f"{name}, " for name in (run.get("instructions") or {}).values())
        facts["commits"].add(
            f"{str(run['commit'] or 'no commit')[:10]}{'+' if run['dirty'] else ''}"
        )
        facts["machines"].add(f"{run['device_name']}, {instructions}{run['threads']} threads")
        versions = (run["versions"] or {}).items()
        facts["versions"] |= {f"{name} {version}" for name, version in versions if version}
    return {name: sorted(values) for name, values in facts.items()}


def _words(path: Path) -> dict[str, str]:
    """Return the texts in the header of a picture."""
    with damage_named(path):
        words = read_json(path)
        if not all(isinstance(words[key], str) for key in ("what", "finding")):
            raise ValueError("its texts are no texts")
        return {"what": words["what"], "finding": words["finding"]}


def _links(outputs: Path, paths: Iterable[Path]) -> dict[str, str]:
    """Return the links from the pages to the files and folders that exist, by name."""
    pages = outputs / "report"
    return {
        path.name: quote(os.path.relpath(path, pages) + ("/" if path.is_dir() else ""))
        for path in paths
        if path.exists()
    }
