"""The part of the README that comes from results: every figure with its command, time and claims.

python scripts/gallery.py

Draws the reference at scale quick into `docs/figures/` and writes the table of figures between the
marks in README.md, so that neither is ever typed by hand.
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

from runner.configs import figure_names, headline
from runner.errors import InputError
from runner.figures import STYLE, drawn_figure
from runner.papers import PAPERS
from runner.reference import REFERENCE, read_tables
from runner.report import duration
from runner.studies import room_of
from runner.sweeps import figure_study

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
SCALE = "quick"
DPI = 110


def draw_pictures(reference: Path, folder: Path) -> None:
    """One PNG for each figure of the reference, small enough for a README."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in figure_names():
        if (reference / SCALE / name).exists():
            with plt.rc_context(STYLE):
                figure, _ = drawn_figure(
                    name, figure_study(name), read_tables(reference / SCALE / name)
                )
                figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
                plt.close(figure)


def table(reference: Path) -> str:
    """A Markdown table of all figures: command, study, time, claims; links to the pictures."""
    lines = [
        "| command | paper | what it shows | study | time | holds, fails, undecided |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for name in figure_names():
        study = figure_study(name)
        letter = PAPERS[room_of(study)].letter
        what = headline("figure", name).partition(": ")[2]
        folder = reference / SCALE / name
        time, claims = "", "not kept yet"
        if folder.exists():
            seconds = json.loads((folder / "provenance.json").read_text())["seconds"]
            counts = pd.read_csv(folder / "claims.csv")["verdict"].value_counts()
            time = duration(seconds)
            claims = ", ".join(str(counts.get(v, 0)) for v in ("holds", "fails", "undecided"))
            what = f"[{what}](docs/figures/{name}.png)"
        lines.append(f"| `make {name}` | {letter} | {what} | `{study}` | {time} | {claims} |")
    return "\n".join(lines)


def write_readme(readme: Path, content: str) -> None:
    """Replace what stands between the marks. Raises InputError when the marks are missing."""
    text = readme.read_text()
    if BEGIN not in text or END not in text:
        raise InputError(f"{readme} has no marks {BEGIN} and {END}")
    head, _, rest = text.partition(BEGIN)
    readme.write_text(f"{head}{BEGIN}\n{content}\n{END}{rest.partition(END)[2]}")


def main() -> int:
    """Draw the pictures and write the table; returns 0, or 2 when the README has no marks."""
    try:
        draw_pictures(REFERENCE, Path("docs/figures"))
        write_readme(Path("README.md"), table(REFERENCE))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0
