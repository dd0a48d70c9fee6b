"""What the documents say of results: every figure with its command, time and claims.

python scripts/gallery.py

Draws the reference into `docs/figures/`, at scale quick and, of the papers' own images, at the
largest scale that is kept, with a page of their captions, and writes the tables of figures, of
claims that do not hold, and of benchmarks between the marks in README.md and docs/*.md, so that
none of it is ever typed by hand.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import overview
import pandas as pd
import seeds
from bench.timing import machine_name

from runner.core.catalogue import figure_names, figure_study, headline, paper_folder
from runner.core.errors import InputError
from runner.core.papers import PAPERS, paper_of
from runner.publish.counting import once
from runner.publish.entries import Entry, collect
from runner.publish.gallery import Pages, duration, shown
from runner.publish.reference import REFERENCE, drawn_png, read_tables
from runner.results.captions import caption
from runner.results.evidence import ERROR
from runner.results.figures import drawing_of
from runner.results.verdicts import STANDINGS
from runner.runs.provenance import REPOSITORY

SCALE = "quick"
SCALES = (SCALE, "medium", "paper")
"""Those whose results are kept, where they are."""
README = REPOSITORY / "README.md"
RESULTS = REPOSITORY / "docs" / "results.md"
NOTES = REPOSITORY / "docs" / "notes-on-the-papers.md"
PERFORMANCE = REPOSITORY / "docs" / "performance.md"
INDEX = REPOSITORY / "docs" / "gallery.md"
PICTURES = REPOSITORY / "docs" / "figures"
SPEED = {
    "study": "study",
    "work": "work",
    "baseline": "baseline, s",
    "ours": "ours, s",
    "speedup": "speedup",
    "share_of_floor": "share of the floor",
    "dtype": "floor in",
    "machine": "machine: GFLOP/s in float32 / float64",
}
GROWTH = {
    "study": "study",
    "size": "size",
    "first": "from",
    "last": "to",
    "seconds": "s",
    "seconds_exponent": "exponent",
    "mebibytes": "MiB",
    "memory_exponent": "exponent",
}
"""Headings of the tables of benchmarks by column."""

WORK_AT_PAPER = {
    ("rank-fig5", "rank-fig7", "rank-fig10"): 5 * 75 / 20 * 4**2 * 11 / 8,
    ("rank-fig13",): 5 * 75 / 10 * 8**2 * 11 / 8,
}
"""The figures that nothing is kept of at scale `paper`, those that share runs together: the work
there over that at `medium`. It grows with images, with epochs, with the square of the channels, and
with the networks trained, 11 in place of 8 where a rate is chosen on two replicates and not one."""

HOURS_AT_PAPER = {
    ("norm-finetuning",): 43_000.0,
    ("bottleneck-symmetry",): 1.9,
}
"""Where nothing like it is kept: steps times the measured seconds of one, on one core."""

NBSP = "\u00a0"
"""A space at which no line is broken."""

VERDICTS = {"holds": "hold", "fails": "fail", "undecided": "are undecided"}
KINDS = ("paper", "ours", "illustration")


def drawn(reference: Path) -> list[tuple[str, str]]:
    """The figures that pictures are made of, each with its scale, the largest last.

    At quick, and where the papers' own images are kept, as at medium, at the largest scale.
    """
    pairs = []
    for name in figure_names():
        kept = [scale for scale in SCALES if (reference / scale / name).exists()]
        largest = kept[-1:] if "medium" in kept else []
        pairs += [(name, scale) for scale in kept if scale == SCALE or scale in largest]
    return pairs


def file_of(name: str, scale: str) -> str:
    """What the picture of a figure at a scale is called."""
    return f"{name}.png" if scale == SCALE else f"{name}-{scale}.png"


def command_of(name: str, scale: str) -> str:
    """What makes a figure at a scale."""
    return f"make {name}" if scale == SCALE else f"make {name} SCALE={scale}"


def draw_pictures(reference: Path, folder: Path) -> None:
    """One PNG for each figure and scale, small enough for a README."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, scale in drawn(reference):
        (folder / file_of(name, scale)).write_bytes(drawn_png(reference / scale / name))


def caption_of(reference: Path, name: str, scale: str) -> str:
    """The caption of a figure as its kept tables give it, as a line of Markdown."""
    study, tables = figure_study(name), read_tables(reference / scale / name)
    text = caption(headline("figure", name), drawing_of(name, study).said, study, tables, scale)
    return re.sub(r"([*_|<])", r"\\\1", " ".join(text.split()))


def captioned(reference: Path) -> str:
    """A Markdown page of all pictures, each with its command and its caption."""
    parts = ["# The figures", "Made by `make gallery`, at scale `quick` where no other is named."]
    for name, scale in drawn(reference):
        parts += [f"## `{command_of(name, scale)}`", f"![{name}]({file_of(name, scale)})"]
        parts += [caption_of(reference, name, scale)]
    return "\n\n".join(parts) + "\n"


def index(reference: Path) -> str:
    """The gallery's index as a Markdown page, with the pictures that are kept beside it."""
    largest = dict(drawn(reference))  # of each figure's scales the last
    pictures = {
        name: (f"figures/{file_of(name, scale)}", command_of(name, scale), scale)
        for name, scale in largest.items()
    }
    return Pages(entries_of(reference), pictures=pictures).page("index.md")


def entries_of(reference: Path) -> list[Entry]:
    """The figures with the results of the reference alone."""
    nothing_of_ones_own = PICTURES
    return collect(nothing_of_ones_own, None, reference, draws=False)


def findings(reference: Path) -> str:
    """A Markdown table of the papers: what was found, and the verdicts on their own statements."""
    lines = [
        "| | paper | what was found | holds | fails | undecided |",
        "| --- | --- | --- | --: | --: | --: |",
    ]
    for each in shown(entries_of(reference)):
        title = f"[{each.paper.title}](https://arxiv.org/abs/{each.paper.arxiv})"
        numbers = " | ".join(str(each.counts["paper"][verdict]) for verdict in VERDICTS)
        lines.append(f"| **{each.paper.letter}** | {title} | {each.found} | {numbers} |")
    return "\n".join(lines)


def result(reference: Path, scale: str, name: str) -> tuple[str, str]:
    """Computing time, with the GPU's name where there was one, and the counts of the verdicts.

    The time is the processor's; that of the clock for a GPU, and where the processor's is not kept.
    """
    folder = reference / scale / name
    if not folder.exists():
        return "", ""
    about = json.loads((folder / "provenance.json").read_text())
    gpus = [run["device_name"] for run in about["runs"] if run.get("device", "cpu") != "cpu"]
    claims = counted(folder.parent, [name])
    known = not gpus and all(run.get("cpu_seconds") for run in about["runs"])
    seconds = sum(run["cpu_seconds"] for run in about["runs"]) if known else about["seconds"]
    on = " on " if len(gpus) == len(about["runs"]) else ", partly on "
    return on.join([duration(seconds).replace(" ", NBSP), *sorted({*gpus})]), claims


def kept_scales(reference: Path) -> list[str]:
    """The scales that results are kept of."""
    return [scale for scale in SCALES if any((reference / scale).glob("*/claims.csv"))]


def table(reference: Path) -> str:
    """A Markdown table of all figures: command, study, time, claims that link to the pictures."""
    lines = [
        "| command | paper | what it shows | study |"
        + "".join(f" `{scale}` | its own · ours |" for scale in SCALES),
        "| --- | --- | --- | --- |" + " --- | --- |" * len(SCALES),
    ]
    pictures = drawn(reference)
    for name in figure_names():
        study = figure_study(name)
        letter = paper_of(paper_folder(study)).letter
        what = headline("figure", name).partition(": ")[2].replace("|", "\\|")
        cells = []
        for scale in SCALES:
            seconds, counts = result(reference, scale, name)
            if (name, scale) in pictures:
                counts = f"[{counts}](figures/{file_of(name, scale)})"
            cells += [seconds, counts]
        cells = [f"`make {name}`", letter, what, f"`{study}`", *cells]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def not_computed(reference: Path) -> str:
    """A Markdown table of what no results are kept of at scale `paper`: commands, hours."""
    lines = ["| commands | hours of one core, estimated |", "| --- | --- |"]
    for names in (*HOURS_AT_PAPER, *WORK_AT_PAPER):
        missing = [name for name in names if not (reference / "paper" / name).exists()]
        if missing:
            work = WORK_AT_PAPER.get(names, 0) * hours(reference / "medium", names)
            commands = ", ".join(f"`{command_of(name, 'paper')}`" for name in missing)
            lines.append(f"| {commands} | {two_digits(HOURS_AT_PAPER.get(names, work))} |")
    return "\n".join(lines)


def hours(folder: Path, names: Iterable[str]) -> float:
    """Processor hours of the kept runs of these figures, a run that they share counted once."""
    runs = {}
    for name in names:
        if (path := folder / name / "provenance.json").exists():
            runs |= {run["run"]: run["cpu_seconds"] for run in json.loads(path.read_text())["runs"]}
    return sum(runs.values()) / 3600


def two_digits(value: float) -> str:
    """A number rounded to two digits, with commas between thousands."""
    return f"{float(f'{value:.2g}'):,.6g}"


def papers(reference: Path) -> str:
    """A Markdown table of the papers: figures, and how the claims came out at each scale."""
    lines = [
        "| | paper | figures |" + "".join(f" `{scale}` |" for scale in SCALES),
        "| --- | --- | --- |" + " --- |" * len(SCALES),
    ]
    for folder, paper in PAPERS.items():
        names = [name for name in figure_names() if paper_folder(figure_study(name)) == folder]
        cells = [counted(reference / scale, names) for scale in SCALES]
        title = f"[{paper.title}](https://arxiv.org/abs/{paper.arxiv}) ({paper.venue})"
        lines.append(f"| {paper.letter} | {title} | {len(names)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def claims_in(paths: Iterable[Path]) -> pd.DataFrame:
    """The claims of these files, each statement on the same numbers once."""
    return once(pd.concat([pd.read_csv(path) for path in paths]))


def counted(folder: Path, names: list[str]) -> str:
    """How the claims of these figures came out; nothing where none are kept.

    Three numbers of the papers' own statements, then of ours, then of illustrations, if any.
    """
    paths = [path for name in names if (path := folder / name / "claims.csv").exists()]
    if not paths:
        return ""
    claims = claims_in(paths)
    own, ours, illustrations = (counts_of(claims[claims["kind"] == kind]) for kind in KINDS)
    more = f" · {illustrations}" if "illustration" in set(claims["kind"]) else ""
    return f"**{own}** · {ours}{more}"


def counts_of(claims: pd.DataFrame) -> str:
    """How many of these claims hold, fail and are undecided: three numbers, on one line."""
    verdicts = claims["verdict"].value_counts()
    return f"{NBSP}/{NBSP}".join(str(verdicts.get(verdict, 0)) for verdict in VERDICTS)


def summary(reference: Path) -> str:
    """How the claims came out at each scale, each statement on the same numbers counted once.

    The papers' own statements first, then those of ours, and what loose bounds illustrate.
    """
    lines = []
    for scale in kept_scales(reference):
        claims = claims_in(sorted((reference / scale).glob("*/claims.csv")))
        said = {kind: sentence_of(claims[claims["kind"] == kind]) for kind in KINDS}
        own = (claims["kind"] == "paper").sum()
        lines.append(
            f"- scale `{scale}`: of the papers' own statements {said['paper']}; of ours"
            f" {said['ours']}; of illustrations by loose bounds {said['illustration']}. If none of"
            f" the papers' own were true, chance alone would let up to {ERROR * own:.0f} hold."
            f" {standing(claims).capitalize()}."
        )
    return "\n".join(lines)


def standing(claims: pd.DataFrame) -> str:
    """How many verdicts are pre-registered, and how many exploratory, in a few words."""
    counts = claims["standing"].value_counts()
    return ", ".join(f"{word}: {counts.get(word, 0)}" for word in STANDINGS)


def sentence_of(claims: pd.DataFrame) -> str:
    """How many of these claims came out how, in words."""
    counts = claims["verdict"].value_counts()
    return ", ".join(f"{counts.get(v, 0)} {word}" for v, word in VERDICTS.items())


def not_holding(reference: Path, verdict: str, scale: str = SCALE) -> str:
    """A Markdown table of the claims with this verdict: command, statement, measured number."""
    lines = ["| command | statement | measured | source |", "| --- | --- | --- | --- |"]
    for name in figure_names():
        path = reference / scale / name / "claims.csv"
        if path.exists():
            kept = pd.read_csv(path, keep_default_na=False)
            for row in kept.query("verdict == @verdict").itertuples():
                found = "; ".join(filter(None, (str(row.measured), row.note)))
                cells = (f"`{command_of(name, scale)}`", row.statement, found, row.source)
                lines.append(
                    "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
                )
    return "\n".join(lines)


def measured(reference: Path, table: str, columns: dict[str, str]) -> str:
    """A Markdown table of the kept benchmarks.

    table: `` or `-growth`; columns: heading by column.
    """
    folder = reference / "bench"
    names = sorted(path.name.removesuffix(".provenance.json") for path in folder.glob("*.json"))
    tables = []
    for name in names:
        if (path := folder / f"{name}{table}.csv").exists():
            about = json.loads((folder / f"{name}.provenance.json").read_text())
            tables.append(pd.read_csv(path).assign(machine=machine_name(about)))
    rows = pd.concat(tables)
    lines = [f"| {' | '.join(columns.values())} |", "| --- " * len(columns) + "|"]
    for row in rows[list(columns)].itertuples(index=False):
        cells = [value if isinstance(value, str) else short(value) for value in row]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def short(value: float) -> str:
    """A number with two digits, whole ones in full, nothing for nan."""
    if pd.isna(value):
        return ""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def write_between(path: Path, what: str, content: str) -> None:
    """Replace what stands between the marks of `what`. Raises InputError when they are missing."""
    begin, end = f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
    text = path.read_text()
    if begin not in text or end not in text:
        raise InputError(f"{path} has no marks {begin} and {end}")
    head, _, rest = text.partition(begin)
    path.write_text(f"{head}{begin}\n{content}\n{end}{rest.partition(end)[2]}")


def main() -> int:
    """Draw the pictures and write the tables; returns 0, or 2 when a document has no marks."""
    try:
        draw_pictures(REFERENCE, PICTURES)
        (PICTURES / "README.md").write_text(captioned(REFERENCE))
        INDEX.write_text(index(REFERENCE))
        (PICTURES / "overview.png").write_bytes(overview.drawn(REFERENCE))
        write_between(README, "findings", findings(REFERENCE))
        write_between(RESULTS, "papers", papers(REFERENCE))
        write_between(RESULTS, "figures", table(REFERENCE))
        write_between(RESULTS, "verdicts", summary(REFERENCE))
        write_between(RESULTS, "seeds", seeds.changes(REFERENCE))
        write_between(RESULTS, "not computed", not_computed(REFERENCE))
        for scale in kept_scales(REFERENCE):
            for verdict in ("fails", "undecided"):
                content = not_holding(REFERENCE, verdict, scale)
                write_between(NOTES, f"{verdict} at {scale}", content)
        write_between(PERFORMANCE, "speed", measured(REFERENCE, "", SPEED))
        write_between(PERFORMANCE, "growth", measured(REFERENCE, "-growth", GROWTH))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
