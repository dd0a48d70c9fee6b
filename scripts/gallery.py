"""Write the results into the documents: every figure with its command, time and claims.

    python scripts/gallery.py

Draws the figures of the reference into `docs/figures/`, at scale quick and at the largest stored
scale, with a page of captions. Writes the tables of figures, of claims that do not hold, and of
benchmarks between the marks in README.md and docs/*.md. None of these is typed by hand.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any

import functions
import overview
import pandas as pd
import seeds
import statements
from bench.timing import machine_name
from markdown_table import table
from PIL import Image

from runner.commands.gallery_data import Entry, claims_of, collect, reason
from runner.commands.kept import KeptFigure, read_csv, read_json
from runner.commands.report import NBSP, VERDICTS, PaperResults, by_paper, capital, duration, pages
from runner.commands.report import papers as about_papers
from runner.core.catalogue import SCALES as ALL_SCALES
from runner.core.catalogue import figure_names, figure_study, judges, paper_folder, title_of
from runner.core.errors import InputError
from runner.core.papers import paper_of
from runner.core.papers import papers as all_papers
from runner.results.claims import distinct
from runner.results.evidence import ERROR
from runner.results.style import as_bytes
from runner.results.verdicts import STANDINGS
from runner.runs.provenance import REFERENCE, REPOSITORY

SCALE = "quick"
SCALES = tuple(filter(judges, ALL_SCALES))
"""The scales at which the reference may have results."""
README = REPOSITORY / "README.md"
RESULTS = REPOSITORY / "docs" / "results.md"
NOTES = REPOSITORY / "docs" / "notes-on-the-papers.md"
PERFORMANCE = REPOSITORY / "docs" / "performance.md"
INDEX = REPOSITORY / "docs" / "gallery.md"
PICTURES = REPOSITORY / "docs" / "figures"
SPEED = {
    "study": "study",
    "work": "work",
    "baseline": "ordinary program, s",
    "ours": "ours, s",
    "speedup": "speedup",
    "share_of_floor": "limit / ours",
    "dtype": "precision of the limit",
    "machine": "machine: GFLOP/s in float32 / float64",
}
GROWTH = {
    "study": "study",
    "size": "size",
    "first": "from",
    "last": "to",
    "seconds": "time, s",
    "seconds_exponent": "exponent of time",
    "mebibytes": "memory, MiB",
    "memory_exponent": "exponent of memory",
}
"""Headings of the tables of benchmarks, by column."""

WORK_AT_PAPER = {
    ("rank-fig5", "rank-fig7", "rank-fig10"): 5 * 75 / 20 * 4**2 * 11 / 8,
    ("rank-fig13",): 5 * 75 / 10 * 8**2 * 11 / 8,
}
"""Work at scale `paper` divided by work at `medium`, for figures without results at `paper`.

Figures that share runs are in one entry. The work grows with images, with epochs, and with the
square of the channels. It also grows with the number of networks: 11 instead of 8 if a learning
rate is chosen on two replicates instead of one.
"""

HOURS_AT_PAPER = {
    ("norm-finetuning",): 43_000.0,
    ("bottleneck-annealing",): 0.7,
    ("bottleneck-ranks",): 0.7,
    ("bottleneck-rates",): 5.0,
    ("rank-vgg",): 5.0,
}
"""Estimated hours on one core, for figures without similar results: steps times seconds per
step."""

KINDS = {"paper": "", "ours": "*additional*", "illustration": "*loose bounds*"}
"""The kinds of claims, with the label of those that are not the paper's."""


def drawn(reference: Path) -> list[tuple[str, str]]:
    """Return pairs of a figure and a scale to be drawn: quick, then the largest stored scale."""
    pairs = []
    for name in figure_names():
        kept = [scale for scale in SCALES if (reference / scale / name).exists()]
        pairs += [(name, scale) for scale in kept if scale in (SCALE, kept[-1])]
    return pairs


def file_of(name: str, scale: str) -> str:
    """Return the file name of a figure's picture at a scale."""
    return f"{name}.png" if scale == SCALE else f"{name}-{scale}.png"


def command_of(name: str, scale: str) -> str:
    """Return the command that makes a figure at a scale."""
    return f"make {name}" if scale == SCALE else f"make {name} SCALE={scale}"


def draw_pictures(reference: Path, folder: Path) -> None:
    """Write a PNG for each figure and scale, small enough for a README.

    Pictures of scales that are not drawn are deleted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    pairs = drawn(reference)
    for name, scale in product(figure_names(), SCALES):
        path = folder / file_of(name, scale)
        if (name, scale) in pairs:
            write_picture(path, KeptFigure.of(reference / scale / name).png())
        else:
            path.unlink(missing_ok=True)


def write_picture(path: Path, png: bytes) -> None:
    """Write a PNG file with 256 colors, a third of the bytes, unless it has these pixels already.

    The colors are the most frequent ones; the eye sees no difference. png: a PNG's content.
    """
    picture = Image.open(BytesIO(png)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    pixels = picture.convert("RGB").tobytes()
    if path.exists() and Image.open(path).convert("RGB").tobytes() == pixels:
        return
    picture.save(path, optimize=True)


def caption_of(reference: Path, name: str, scale: str) -> str:
    """Return the caption of a figure as paragraphs of Markdown, from its stored tables."""
    text = KeptFigure.of(reference / scale / name).caption()
    texts = (" ".join(text.split()) for text in text.split("\n\n"))
    return "\n\n".join(re.sub(r"([*_|<])", r"\\\1", text) for text in texts)


def captioned(reference: Path) -> str:
    """Return a Markdown page of all pictures, each with its command and its caption."""
    parts = [
        "# The figures",
        "`make gallery` draws these pictures, at scale `quick` unless the command says otherwise.",
    ]
    for name, scale in drawn(reference):
        parts += [f"## `{command_of(name, scale)}`", f"![{name}]({file_of(name, scale)})"]
        parts += [caption_of(reference, name, scale)]
    return "\n\n".join(parts) + "\n"


def index(reference: Path) -> str:
    """Return the gallery's index as a Markdown page: each figure at its largest stored scale."""
    largest = dict(drawn(reference))  # the last scale of each figure
    pictures = {
        name: (f"figures/{file_of(name, scale)}", command_of(name, scale), scale)
        for name, scale in largest.items()
    }
    texts = {name: finding(reference / scale / name) for name, scale in largest.items()}
    made = pages(entries_of(reference), pictures=pictures, found=texts)
    return made.get_template("index.md.jinja").render()


def finding(folder: Path) -> str:
    """Return the finding in the header of a figure's picture.

    folder: the figure's folder in the reference.
    """
    return KeptFigure.of(folder).header().finding.replace(" %", f"{NBSP}%")


def results_of(reference: Path) -> list[PaperResults]:
    """Return the results of each paper in the reference, without the user's."""
    entries = entries_of(reference)
    return list(by_paper(entries, claims_of(entries)))


def entries_of(reference: Path) -> list[Entry]:
    """Return the figures with their results in the reference, without the user's."""
    return collect(PICTURES, None, reference, draws=False)  # a folder without results of a user


def totals(reference: Path) -> str:
    """Return a sentence about how many statements of the papers hold, fail and are undecided."""
    counts = sum((result.counts["paper"] for result in results_of(reference)), Counter())
    holds, fails, undecided = (counts[verdict] for verdict in VERDICTS)
    return (
        f"Of {counts.total()} statements {holds} hold, {fails} fail, and {undecided} are undecided."
    )


def findings(reference: Path) -> str:
    """Return a Markdown table of the papers.

    For each paper it has the claims in words, the findings, and the verdicts on the paper's
    statements.
    """
    heads = ["", "paper", "what it claims", "what we found", *VERDICTS]
    rows = []
    for result in results_of(reference):
        letter = result.paper.letter
        title = f"[{result.paper.title}](https://arxiv.org/abs/{result.paper.arxiv})"
        numbers = [str(result.counts["paper"][verdict]) for verdict in VERDICTS]
        page = f"**[{letter}](docs/paper-{letter.lower()}.md)**"
        rows.append([page, title, about_papers()[letter]["claims"], result.found, *numbers])
    return table(heads, rows, right=3)


def figures(reference: Path) -> str:
    """Return a Markdown table of all figures: question, and verdicts with links to pictures."""
    pictures, rows = drawn(reference), []
    for name in sorted(figure_names(), key=letter_of):
        what = title_of("figure", name).partition(": ")[2]
        cells = [letter_of(name), code(name), what[:1].upper() + what[1:]]
        for scale in SCALES:
            counts = counted(reference / scale, [name])
            link = f"[{counts}](figures/{file_of(name, scale)})"
            cells.append(link if (name, scale) in pictures else counts)
        rows.append(cells)
    return table(["paper", "figure", "question", *map(code, SCALES)], rows)


def letter_of(name: str) -> str:
    """Return the letter of a figure's paper."""
    return paper_of(paper_folder(figure_study(name))).letter


def code(text: str) -> str:
    """Return a text as code in Markdown."""
    return f"`{text}`"


def times(reference: Path) -> str:
    """Return a Markdown table of the computing time of every figure at every scale."""
    rows = [
        [code(name), *(time_of(reference / scale / name) for scale in SCALES)]
        for name in figure_names()
    ]
    return table(["figure", *map(code, SCALES)], rows, right=len(SCALES))


def time_of(folder: Path) -> str:
    """Return the computing time of a stored figure, with the GPU's name; empty without a result.

    folder: the figure's folder in the reference.
    """
    if not folder.exists():
        return ""
    runs = read_json(folder / "provenance.json")["runs"]
    gpus = [run["device_name"] for run in runs if run.get("device", "cpu") != "cpu"]
    on = " on " if len(gpus) == len(runs) else ", partly on "
    return on.join([duration(seconds_of(folder)).replace(" ", NBSP), *sorted({*gpus})])


def seconds_of(folder: Path) -> float:
    """Return the computing time of a stored figure in seconds.

    folder: the figure's folder in the reference. The time is processor time. If a run used a GPU,
    or if no processor time is stored, it is wall-clock time.
    """
    about = read_json(folder / "provenance.json")
    times = [run.get("cpu_seconds") for run in about["runs"]]
    on_cpu = all(run.get("device", "cpu") == "cpu" for run in about["runs"])
    return sum(times) if on_cpu and all(times) else about["seconds"]


BINS = {
    "up to 30 seconds": 30,
    "30 seconds to 1 minute": 60,
    "1 to 2 minutes": 120,
    "2 to 5 minutes": 300,
    "5 to 15 minutes": 900,
    "15 minutes to 1 hour": 3600,
    "1 to 6 hours": 6 * 3600,
    "above 6 hours": float("inf"),
}
"""Upper ends of ranges of computing times in seconds, by name."""


def distribution(reference: Path) -> str:
    """Return a Markdown table: how many figures need how long, for each scale, with bars."""
    heads, columns = ["time on one core"], []
    for scale in kept_scales(reference):
        seconds = [seconds_of(path.parent) for path in reference.glob(f"{scale}/*/claims.csv")]
        heads.append(f"{code(scale)} ({len(seconds)}{' figures' * (not columns)})")
        columns.append(pd.cut(seconds, [0, *BINS.values()], labels=list(BINS)).value_counts())
    counts = pd.concat(columns, axis=1, keys=heads[1:])
    counts = counts[counts.sum(axis=1) > 0]
    rows = [
        [name, *(f"{'▇' * number} {number}" if number else "" for number in row)]
        for name, row in zip(counts.index, counts.to_numpy().tolist(), strict=True)
    ]
    return table(heads, rows)


def kept_scales(reference: Path) -> list[str]:
    """Return the scales that have stored results."""
    return [scale for scale in SCALES if any((reference / scale).glob("*/claims.csv"))]


def not_computed(reference: Path) -> str:
    """Return a Markdown table of the figures without results at scale `paper`.

    It has their commands, and the estimated hours.
    """
    rows = []
    for names in (*HOURS_AT_PAPER, *WORK_AT_PAPER):
        missing = [name for name in names if not (reference / "paper" / name).exists()]
        if missing:
            work = WORK_AT_PAPER.get(names, 0) * hours(reference / "medium", names)
            commands = ", ".join(code(command_of(name, "paper")) for name in missing)
            rows.append([commands, two_digits(HOURS_AT_PAPER.get(names, work))])
    return table(["commands", "hours of one core, estimated"], rows, right=1)


def exploratory(reference: Path) -> str:
    """Return a Markdown table of the stored figures with exploratory verdicts above scale `quick`.

    It has the command of each figure, the number of these verdicts, and the computing time.
    """
    rows = []
    for scale, name in ((scale, name) for scale in SCALES[1:] for name in figure_names()):
        folder = reference / scale / name
        if folder.exists():
            standing = pd.read_csv(folder / "claims.csv")["standing"]
            if number := int((standing == "exploratory").sum()):
                of = f"{number} of {len(standing)}"
                rows.append([code(command_of(name, scale)), of, time_of(folder)])
    return table(["command", "exploratory verdicts", "computing time"], rows, right=2)


def hours(folder: Path, names: Iterable[str]) -> float:
    """Return the processor hours of the stored runs behind some figures. Shared runs count once.

    folder: the scale's folder in the reference. names: the figures.
    """
    runs = {}
    for name in names:
        if (path := folder / name / "provenance.json").exists():
            runs |= {run["run"]: run["cpu_seconds"] for run in read_json(path)["runs"]}
    return sum(runs.values()) / 3600


def two_digits(value: float) -> str:
    """Return a number rounded to two digits, with commas between thousands."""
    return f"{float(f'{value:.2g}'):,.6g}"


def papers(reference: Path) -> str:
    """Return a Markdown table of the papers: figures, and verdicts at each scale."""
    rows = []
    for folder, paper in all_papers().items():
        names = [name for name in figure_names() if paper_folder(figure_study(name)) == folder]
        cells = [counted(reference / scale, names) for scale in SCALES]
        title = f"[{paper.title}](https://arxiv.org/abs/{paper.arxiv}) ({paper.venue})"
        rows.append([paper.letter, title, str(len(names)), *cells])
    return table(["", "paper", "figures", *map(code, SCALES)], rows)


def claims_at(folder: Path, names: Iterable[str]) -> pd.DataFrame:
    """Return the claims about some figures at a scale, without repetitions.

    A statement that is repeated about the same numbers is a repetition. folder: the scale's folder
    in the reference. names: the figures.
    """
    paths = [path for name in names if (path := folder / name / "claims.csv").exists()]
    texts = {"measured": str, "note": str}
    read = [read_csv(path, keep_default_na=False, dtype=texts) for path in paths]
    named = [rows.assign(figure=path.parent.name) for rows, path in zip(read, paths, strict=True)]
    return distinct(pd.concat(named)) if named else pd.DataFrame(columns=["kind", "verdict"])


def counted(folder: Path, names: Iterable[str]) -> str:
    """Return the number of claims with each verdict, as signs: the paper's claims, then others.

    folder: the scale's folder in the reference. names: the figures.
    """
    claims = claims_at(folder, names)
    parts = []
    for kind, word in KINDS.items():
        counts = Counter(claims.loc[claims["kind"] == kind, "verdict"])
        signs = [f"{sign}{NBSP}{counts[v]}" for v, sign in VERDICTS.items() if counts[v]]
        parts += [" ".join(filter(None, [word, *signs]))] * bool(signs)
    return " · ".join(parts)


def summary(reference: Path) -> str:
    """Return a Markdown table of the verdicts at each scale.

    A statement that is repeated about the same numbers counts once. The last column says how many
    of the papers' statements would hold by chance.
    """
    rows = []
    for scale in kept_scales(reference):
        claims = claims_at(reference / scale, figure_names())
        counts = Counter(zip(claims["kind"], claims["verdict"], strict=True))
        standings = Counter(claims["standing"])
        numbers = [*(counts[pair] for pair in product(KINDS, VERDICTS))]
        numbers += [standings[word] for word in STANDINGS]
        count = (claims["kind"] == "paper").sum()
        rows.append([code(scale), *map(str, numbers), f"{ERROR * count:.0f} of {count}"])
    kinds = ["paper's own", *(word.strip("*") for word in KINDS.values() if word)]
    heads = [f"{kind}: holds" if v == "holds" else v for kind, v in product(kinds, VERDICTS)]
    heads = ["scale", *heads, *STANDINGS, "by chance"]
    note = (
        "The last column assumes that none of the papers' own statements is true. Then at most this"
        f" many of them would hold on average ({100 * ERROR:g} %)."
    )
    return f"{table(heads, rows, right=len(heads) - 1)}\n\n{note}"


def by_claim(reference: Path, verdict: str) -> Iterator[tuple[list[str], pd.DataFrame]]:
    """Yield each claim that has this verdict at some scale: a label, and its rows at all scales.

    The label has paper, statement and figure. The largest scale is the last row. Claims are in the
    order of the papers.
    """
    scales = kept_scales(reference)
    claims = pd.concat(claims_at(reference / s, figure_names()).assign(scale=s) for s in scales)
    for name in sorted(figure_names(), key=letter_of):
        judged = claims[claims["figure"] == name]
        for _, rows in judged.groupby("claim", sort=False):
            if (rows["verdict"] == verdict).any():
                last = rows.iloc[-1]
                paper = KINDS[last["kind"]] or letter_of(name)
                yield [paper, f"{capital(last['statement']).rstrip('.')}.", code(name)], rows


def fails(reference: Path) -> str:
    """Return a Markdown table of the claims that fail at some scale, a row for each.

    The number is from the largest scale at which the claim fails.
    """
    lines = []
    for (paper, statement, figure), rows in by_claim(reference, "fails"):
        failing = rows[rows["verdict"] == "fails"]
        scales = rows.groupby("verdict")["scale"].agg(lambda group: ", ".join(map(code, group)))
        others = [f"{v} at {scales[v]}" for v in VERDICTS if v in scales.drop("fails")]
        where = "; ".join([scales["fails"], *others])
        lines.append([paper, statement, where, said(failing.iloc[-1]), figure])
    return table(["paper", "statement", "where it fails", "what we measured", "figure"], lines)


def undecided(reference: Path) -> str:
    """Return a Markdown table of the claims that are undecided at some scale, a row per number."""
    lines = []
    for about, rows in by_claim(reference, "undecided"):
        open_rows = rows[rows["verdict"] == "undecided"]
        for _, same in open_rows.groupby(["measured", "note"], sort=False):
            row, (paper, statement, figure) = same.iloc[-1], about
            why = reason({column: str(value) for column, value in row.items()})
            cells = (said(row), why) if why else (row["measured"] or "–", row["note"])
            scales = ", ".join(map(code, same["scale"]))
            lines.append([paper, statement, scales, *cells, figure])
            about = ["", "", ""]
    heads = ["paper", "statement", "scale", "what we measured", "why it is undecided", "figure"]
    return table(heads, lines)


def said(row: Any) -> str:
    """Return the measured value of a claim, with its note."""
    return "; ".join(filter(None, (row.measured, row.note)))


def measured(reference: Path, which: str, columns: dict[str, str]) -> str:
    """Return a Markdown table of the stored benchmarks.

    which: empty for speeds, or `-growth`. columns: the heading of each column.
    """
    folder = reference / "bench"
    names = sorted(path.name.removesuffix(".provenance.json") for path in folder.glob("*.json"))
    tables = []
    for name in names:
        if (path := folder / f"{name}{which}.csv").exists():
            about = read_json(folder / f"{name}.provenance.json")
            tables.append(read_csv(path).assign(machine=machine_name(about)))
    rows = pd.concat(tables)
    if rows["machine"].nunique() == 1:  # the page names it
        columns = {column: head for column, head in columns.items() if column != "machine"}
    cells = [
        [value if isinstance(value, str) else short(value) for value in row]
        for row in rows[list(columns)].itertuples(index=False)
    ]
    return table(list(columns.values()), cells)


def short(value: float) -> str:
    """Return a number with two digits, or in full if it is whole; an empty string for nan."""
    if pd.isna(value):
        return ""
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def write_between(path: Path, what: str, content: str) -> None:
    """Replace the text between the marks of `what`. Raises InputError if the marks are missing."""
    begin, end = f"<!-- {what}: begin -->", f"<!-- {what}: end -->"
    text = path.read_text()
    if begin not in text or end not in text:
        raise InputError(f"{path} has no marks {begin} and {end}")
    head, _, rest = text.partition(begin)
    path.write_text(f"{head}{begin}\n{content}\n{end}{rest.partition(end)[2]}")


def main() -> int:
    """Draw the pictures and write the tables; return 0.

    Returns 2 if a document has no marks, or a file of the reference is damaged.
    """
    try:
        for path in REFERENCE.glob("*/*/provenance.json"):
            read_json(path)  # fails if the file is damaged, before a document is written
        draw_pictures(REFERENCE, PICTURES)
        (PICTURES / "README.md").write_text(captioned(REFERENCE))
        INDEX.write_text(index(REFERENCE))
        statements.PAGE.write_text(statements.page(REFERENCE, totals(REFERENCE)))
        write_picture(PICTURES / "overview.png", overview.drawn(REFERENCE))
        column = KeptFigure.of(REFERENCE / SCALE / "fig4").draw(style="paper", size="column")
        write_picture(PICTURES / "column.png", as_bytes(column, dpi=200))
        write_between(README, "counts", totals(REFERENCE))
        write_between(README, "findings", findings(REFERENCE))
        write_between(RESULTS, "figures", figures(REFERENCE))
        write_between(RESULTS, "papers", papers(REFERENCE))
        write_between(RESULTS, "verdicts", summary(REFERENCE))
        write_between(RESULTS, "not computed", not_computed(REFERENCE))
        write_between(RESULTS, "exploratory", exploratory(REFERENCE))
        write_between(RESULTS, "seeds", seeds.changes(REFERENCE))
        write_between(RESULTS, "times", times(REFERENCE))
        write_between(NOTES, "fails", fails(REFERENCE))
        write_between(NOTES, "undecided", undecided(REFERENCE))
        write_between(PERFORMANCE, "times", distribution(REFERENCE))
        write_between(PERFORMANCE, "speed", measured(REFERENCE, "", SPEED))
        write_between(PERFORMANCE, "growth", measured(REFERENCE, "-growth", GROWTH))
        for page in functions.PAGES:
            for name, listed in functions.lists(page).items():
                write_between(page, name, listed)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
