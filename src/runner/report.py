"""The report: one self-contained page with every figure, its command, its time, and its claims.

python scripts/report.py [outputs=...] [scale=...]

Reads what `make <figure>` has left under `<outputs>/figures/` and writes
`<outputs>/report/index.html`. A figure that was not made says so and gives its command.
"""

import base64
import json
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd

from runner.configs import figure_names, headline, natural_order
from runner.errors import InputError
from runner.papers import PAPERS, Paper
from runner.report_page import CLOSING, OPENING
from runner.studies import room_of
from runner.sweeps import figure_study
from runner.tables import write_atomically

SCALES = ("paper", "quick", "smoke")
"""In the order in which a figure is shown: the largest that was made."""


@dataclass(frozen=True)
class Entry:
    """One figure of the report; `claims` and `about` are None where it was not made."""

    name: str
    headline: str
    paper: Paper
    scale: str | None
    picture: Path | None
    claims: pd.DataFrame | None
    about: dict[str, Any] | None


def collect(outputs: Path, scale: str | None) -> list[Entry]:
    """All figures with what was made of them, at `scale` or at the largest scale there is."""
    entries = []
    for name in figure_names():
        found = next(
            (
                each
                for each in ([scale] if scale else SCALES)
                if (outputs / "figures" / each / f"{name}.provenance.json").exists()
            ),
            None,
        )
        paper = PAPERS[room_of(figure_study(name))]
        if found is None:
            entries.append(Entry(name, headline("figure", name), paper, None, None, None, None))
            continue
        folder = outputs / "figures" / found
        try:
            claims = pd.read_csv(folder / f"{name}.claims.csv").fillna("")
            about = json.loads((folder / f"{name}.provenance.json").read_text())
            picture = folder / f"{name}.png"
            picture.stat()
        except (OSError, ValueError) as error:
            raise InputError(f"{folder}: the files of {name} cannot be read ({error})") from error
        entries.append(Entry(name, headline("figure", name), paper, found, picture, claims, about))
    return sorted(entries, key=lambda entry: (entry.paper.letter, natural_order(entry.name)))


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _summary_rows(entry: Entry) -> list[str]:
    if entry.claims is None:
        return [
            f'<tr data-paper="{entry.paper.letter}" data-verdict="missing">'
            f'<td><span class="verdict missing">not run</span></td><td>{entry.paper.letter}</td>'
            f'<td><a href="#{entry.name}">{entry.name}</a></td>'
            f"<td>{escape(entry.headline)}</td><td><code>make {entry.name}</code></td></tr>"
        ]
    return [
        f'<tr data-paper="{entry.paper.letter}" data-verdict="{row.verdict}">'
        f'<td><span class="verdict {row.verdict}">{row.verdict}</span></td>'
        f'<td>{entry.paper.letter}</td><td><a href="#{entry.name}">{entry.name}</a></td>'
        f"<td>{escape(row.statement)}</td><td>{escape(str(row.measured))}</td></tr>"
        for row in entry.claims.itertuples()
    ]


def _claim(row: Any) -> str:
    return (
        f'<li data-verdict="{row.verdict}"><span class="verdict {row.verdict}">{row.verdict}</span>'
        f"<p>{escape(row.statement)} <cite>{escape(row.source)}</cite></p>"
        f"<dl><dt>measured</dt><dd>{escape(str(row.measured))}</dd>"
        f"<dt>expected</dt><dd>{escape(str(row.expected))}</dd></dl></li>"
    )


def _article(entry: Entry) -> str:
    verdicts = "missing" if entry.claims is None else " ".join(sorted(set(entry.claims["verdict"])))
    head = (
        f'<article id="{entry.name}" data-paper="{entry.paper.letter}" data-verdict="{verdicts}">'
        f"<h3>{entry.name}</h3><p>{escape(entry.headline)}</p>"
    )
    if entry.claims is None:
        return f"{head}<p>Not run yet. <code>make {entry.name}</code></p></article>"
    image = base64.b64encode(entry.picture.read_bytes()).decode()
    facts = (
        f"<code>{escape(entry.about['command'])}</code> · scale {entry.scale} ·"
        f" {len(entry.about['runs'])} runs, {duration(entry.about['seconds'])} of computing"
    )
    claims = "".join(_claim(row) for row in entry.claims.itertuples())
    return (
        f'{head}<img loading="lazy" alt="{escape(entry.headline)}"'
        f' src="data:image/png;base64,{image}"><p class="facts">{facts}</p>'
        f'<ul class="claims">{claims}</ul></article>'
    )


def _provenance(entries: list[Entry]) -> str:
    """Commits, machines and versions of all runs behind the page."""
    runs = [run for entry in entries if entry.about for run in entry.about["runs"]]
    commits = sorted({f"{(r['commit'] or 'no commit')[:10]}{'+' * bool(r['dirty'])}" for r in runs})
    devices = sorted({f"{r['device_name']}, {r['threads']} threads" for r in runs})
    versions = sorted({f"{k} {v}" for r in runs for k, v in (r["versions"] or {}).items() if v})
    return (
        f"<p>{len(runs)} runs. Commits (a + marks changes that were not committed):"
        f" {', '.join(commits)}. Machines: {escape('; '.join(devices))}."
        f" Versions: {escape(', '.join(versions))}.</p>"
    )


def page(entries: list[Entry]) -> str:
    """The whole page as HTML."""
    claims = pd.concat([e.claims for e in entries if e.claims is not None] or [pd.DataFrame()])
    counts = claims["verdict"].value_counts() if len(claims) else {}
    totals = "".join(
        f'<div class="{verdict}"><b>{counts.get(verdict, 0)}</b> {verdict}</div>'
        for verdict in ("holds", "fails", "undecided")
    )
    made = sum(entry.claims is not None for entry in entries)
    rows = "".join(row for entry in entries for row in _summary_rows(entry))
    sections = []
    for paper in sorted({entry.paper for entry in entries}, key=lambda paper: paper.letter):
        articles = "".join(_article(entry) for entry in entries if entry.paper == paper)
        sections.append(
            f'<section data-paper="{paper.letter}"><h2>{paper.letter}. {escape(paper.title)}'
            f" <small>{paper.venue}</small></h2>{articles}</section>"
        )
    return (
        f'{OPENING}<div class="totals">{totals}<div><b>{made}</b> of {len(entries)} figures</div>'
        '</div><div class="scroll"><table><thead><tr><th>verdict</th><th>paper</th><th>figure</th>'
        f"<th>statement</th><th>measured</th></tr></thead><tbody>{rows}</tbody></table></div>"
        f"{''.join(sections)}<footer><h2>Provenance</h2>{_provenance(entries)}</footer>{CLOSING}"
    )


def main(arguments: list[str]) -> int:
    """Write the report; returns 0, or 2 when the input is wrong."""
    values = dict(text.partition("=")[::2] for text in arguments)
    if unknown := set(values) - {"outputs", "scale"}:
        print(f"error: {', '.join(unknown)}: only outputs=... and scale=...", file=sys.stderr)
        return 2
    outputs = Path(values.get("outputs", "outputs"))
    target = outputs / "report" / "index.html"
    try:
        content = page(collect(outputs, values.get("scale")))
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content.encode())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {target} cannot be written ({error.strerror})", file=sys.stderr)
        return 2
    print(target)
    return 0
