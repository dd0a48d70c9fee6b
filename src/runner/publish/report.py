"""The report: one self-contained page with every figure, its command, its time, and its claims.

Reads what `make <figure>` has left under `<outputs>/figures/` and writes
`<outputs>/report/index.html`. A figure that was not made says so and gives its command.
"""

import argparse
import base64
import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader

from runner.cli.catalogue import figure_names, figure_study, headline, natural_order
from runner.core.arguments import key_values
from runner.core.errors import InputError
from runner.core.papers import Paper, paper_of
from runner.core.studies import room_of
from runner.runs.tables import write_atomically

SCALES = ("paper", "quick", "smoke")
"""In the order in which a figure is shown: the largest that was made."""


@dataclass(frozen=True)
class Entry:
    """One figure of the report; `scale` is None where it was not made."""

    name: str
    headline: str
    paper: Paper
    scale: str | None = None
    picture: str = ""
    """The PNG in base64."""
    claims: list[dict[str, str]] = field(default_factory=list)
    about: dict[str, Any] = field(default_factory=dict)

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

    Raises InputError when files of a figure are damaged.
    """
    entries = [_entry(outputs / "figures", name, scale) for name in figure_names()]
    return sorted(entries, key=lambda entry: (entry.paper.letter, natural_order(entry.name)))


def _entry(figures: Path, name: str, scale: str | None) -> Entry:
    known = Entry(name, headline("figure", name), paper_of(room_of(figure_study(name))))
    scales = [scale] if scale else SCALES
    made = (each for each in scales if (figures / each / f"{name}.provenance.json").exists())
    found = next(made, None)
    if found is None:
        return known
    folder = figures / found
    try:
        claims = pd.read_csv(folder / f"{name}.claims.csv", dtype=str, keep_default_na=False)
        about = json.loads((folder / f"{name}.provenance.json").read_text())
        picture = base64.b64encode((folder / f"{name}.png").read_bytes()).decode()
    except (OSError, ValueError) as error:
        raise InputError(f"{folder}: the files of {name} cannot be read ({error})") from error
    rows = claims.to_dict("records")
    return Entry(name, known.headline, known.paper, found, picture, rows, about)


def duration(seconds: float) -> str:
    """A time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def page(entries: list[Entry]) -> str:
    """The whole page as HTML; every text is escaped."""
    environment = Environment(loader=PackageLoader("runner.publish", "."), autoescape=True)
    environment.filters["duration"] = duration
    runs = [run for entry in entries for run in entry.about.get("runs", [])]
    return environment.get_template("report.html.jinja").render(
        entries=entries,
        letters=sorted({entry.paper.letter for entry in entries}),
        counts=Counter(claim["verdict"] for entry in entries for claim in entry.claims),
        runs=runs,
        commits=sorted({_commit(run) for run in runs}),
        machines=sorted({f"{run['device_name']}, {run['threads']} threads" for run in runs}),
        versions=sorted(
            {f"{name} {v}" for run in runs for name, v in (run["versions"] or {}).items() if v}
        ),
    )


def _commit(run: dict[str, Any]) -> str:
    return f"{(run['commit'] or 'no commit')[:10]}{'+' * bool(run['dirty'])}"


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
    outputs = Path(values.get("outputs", "outputs")).expanduser()
    target = outputs / "report" / "index.html"
    content = page(collect(outputs, values.get("scale")))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, content.encode())
    except OSError as error:
        raise InputError(f"{target} cannot be written ({error.strerror})") from error
    print(target)
    return 0
