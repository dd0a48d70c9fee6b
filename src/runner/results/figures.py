"""What a figure is: a sweep of runs, a drawing of their tables, and claims over them.

The `figures.py` of a study has a function for each drawing, the list of its figures, and
`overview`, the preview of one run:

    def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]: ...

    FIGURES = [
        Drawing(
            "fig4",
            draw,
            whose="as in the paper",
            findings=[Finding(say_exact, holds=["exact", "constructions-beat-sgd"])],
            caption="Test error of the constructions and of SGD, against the width.",
            marks="lines: medians, dots: replicates",
        ),
    ]

    def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]: ...
"""

import json
import logging
import shlex
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.core.catalogue import config_of, headline, package_of, part_of, rows_of
from runner.core.errors import InputError
from runner.results import claims
from runner.results.captions import Said, caption, dataset_in, repeated
from runner.results.claims import Tables
from runner.results.findings import DOT, Finding, Header, header, upper
from runner.results.labels import names_of
from runner.results.paper_figures import PaperFigure, folder_words
from runner.results.preregistration import registered
from runner.results.rows import NoRows, Present
from runner.results.style import BLUE, GREY, Picture, drawn_in, print_at, settle, sheet
from runner.results.verdicts import lines as verdict_lines
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE
from runner.runs.run import Run, load, stale_note

Draw = Callable[[Tables], tuple[Figure, pd.DataFrame]]
"""From tables to the picture and the table of the numbers drawn in it."""

Shows = Mapping[str, Iterable[str]]
"""Names of methods and the like, by their column."""

FILES = ("png", "pdf", "svg", "body.png", "header.json", "csv", "claims.csv", "caption.txt")
"""What a figure is kept as, beside its provenance. The picture has its header; the body is without
it, for pages that write the words of `header.json` as text."""


@dataclass(frozen=True)
class Drawing:
    """How a figure is drawn, and what is said of it.

    whose: way of doing it: "as in the paper", "ours". findings: of these the header says in bold
    the first that its claims allow. caption: what its panels show, and what its points, lines, bars
    and bands are, or a function that says so from the tables. marks: what lines, dots and bands are
    where nothing in the picture says it: "lines: medians, dots: replicates"; the header's first
    line ends with it. shows: the names that it draws; rows of others are not given to it, and the
    caption names them. unread: tables of its runs that neither it nor its claims read; the
    reference does not keep them.
    """

    figure: str
    draw: Draw
    caption: Said
    whose: str = ""
    findings: Sequence[Finding] = ()
    marks: str = ""
    shows: Shows = field(default_factory=dict)
    unread: Sequence[str] = ()

    def __call__(self, tables: Tables) -> tuple[Figure, pd.DataFrame]:
        """Draw the rows with the names that are shown; return the picture and the numbers."""
        return self.draw(self._shown(tables))

    def said(self, tables: Tables) -> str:
        """Say what the marks are, and which names are not in the picture."""
        said = self.caption
        words = said if isinstance(said, str) else said(self._shown(tables))
        absent = self.left_out({c: _names(c, tables.values()) for c in self.shows})
        return f"{words} Not in the picture: {absent}." if absent else words

    def left_out(self, names: Shows) -> str:
        """Say which of the names are not shown; empty where there are none."""
        others = {
            column: sorted(set(names[column]) - set(known)) for column, known in self.shows.items()
        }
        return "; ".join(f"{column} {', '.join(each)}" for column, each in others.items() if each)

    def _shown(self, tables: Tables) -> Tables:
        """Return the rows with the names that are shown."""
        known = {}
        for table, rows in tables.items():
            for column in set(self.shows) & set(rows):
                rows = rows[rows[column].isin(self.shows[column])]
            known[table] = rows
        return Present(known)


def _names(column: str, tables: Iterable[pd.DataFrame]) -> set[str]:
    return {each for rows in tables if column in rows for each in rows[column].dropna().unique()}


def drawing_of(name: str, study: str) -> Drawing:
    """Return the drawing of a figure. Raises InputError when its study's `figures.py` has none."""
    for each in getattr(part_of(study, "figures"), "FIGURES", []):
        if each.figure == name:
            return each
    place = f"{package_of(study).replace('.', '/')}/figures.py"
    raise InputError(f"figure={name} has no drawing: FIGURES of {place} does not list it")


def judge(figure: PaperFigure, tables: Tables) -> pd.DataFrame:
    """Return one row for each claim of a figure, as `<figure>.claims.csv` has them."""
    made = claims.claims_of(figure.figure, figure.study)
    return claims.judge(figure.name, made, tables)


def header_of(figure: PaperFigure, tables: Tables, judged: pd.DataFrame | None = None) -> Header:
    """Return the header of a figure's picture. Raises InputError where it has no drawing.

    judged: its claims over these tables; judged here where none are given.
    """
    drawing = drawing_of(figure.figure, figure.study)
    judged = judge(figure, tables) if judged is None else judged
    what, changed = figure.headline or figure.name, figure.overrides
    said = (what, drawing.whose, drawing.findings, tables, judged)
    return header(*said, figure.scale, changed, drawing.marks)


def caption_of(figure: PaperFigure, tables: Tables) -> str:
    """Return what a paper would print below a figure. Raises as `header_of`."""
    drawing = drawing_of(figure.figure, figure.study)
    what = figure.headline or figure.name
    read = {name: rows for name, rows in tables.items() if name not in drawing.unread}
    return caption(what, drawing.said, figure.study, read, figure.scale, figure.overrides)


def drawn(
    figure: PaperFigure, tables: Tables, above: Header | None = None
) -> tuple[Figure, pd.DataFrame]:
    """Draw a figure's picture, as it can be saved in its style, and the numbers drawn.

    above: its header; pictures for print have none. Raises as `header_of`.
    """
    picture, numbers = draw(drawing_of(figure.figure, figure.study), tables)
    settle(picture)
    if isinstance(picture, Picture):
        if figure.style == "paper":
            print_at(picture)
        elif above:
            picture.add_header(above.what, above.finding, above.counts)
    return picture, numbers


def draw(drawing: Draw, tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the picture and the numbers drawn; where the rows for all of it are absent, which
    these are.

    A panel alone stays empty where its rows are drawn `with or_empty(axes):`.
    """
    try:
        with np.errstate(all="ignore"):  # a diverged run is data
            return drawing(Present(tables))
    except NoRows as absent:
        picture, ((axes,),) = sheet(1, 1)
        _leave_empty(axes, absent)
        return picture, pd.DataFrame({"absent": [str(absent)]})


@contextmanager
def or_empty(axes: Axes, *others: Axes) -> Iterator[None]:
    """What is drawn within; where the rows for it are absent, the first axes say which."""
    try:
        yield
    except NoRows as absent:
        _leave_empty(axes, absent)
        for other in others:
            other.set_axis_off()


def _leave_empty(axes: Axes, absent: NoRows) -> None:
    middle: Any = {"ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.5, 0.5, str(absent), color="grey", fontsize="small", wrap=True, **middle)


def require_drawn(figure: PaperFigure) -> list[str]:
    """Return what is to be said of runs that a figure does not draw, before they are computed.

    Raises InputError where the figure has no drawing.
    """
    drawing = drawing_of(figure.figure, figure.study)
    found: dict[str, set[str]] = {column: set() for column in drawing.shows}
    for config in (run.config for run in figure.runs):
        for column in found:
            value = getattr(config, column, None) or getattr(config, f"{column}s", None) or []
            found[column] |= {value} if isinstance(value, str) else set(value)
    absent = drawing.left_out(found)
    if not absent or figure.is_canonical:
        return []
    return [f"{figure.figure} does not draw {absent}: only the tables will have it"]


def make(figure: PaperFigure) -> str:
    """Draw a figure of exactly its runs, judge its claims and write both; return what is said.

    Writes what `publish` writes and `<name>.provenance.json` beside it. Raises InputError when a
    run is missing or damaged, or the folder cannot be written.
    """
    try:
        tables = load(figure.runs)
    except InputError as error:
        raise InputError(f"{error}\nThis computes them: {figure.command}") from error
    about = provenance_of(figure)
    verdicts = publish(figure, tables)
    write_atomically(figure.path("provenance.json"), json.dumps(about, indent=2).encode())
    words = (figure.figure, f"scale={figure.scale}", *figure.overrides)
    lines = [f"{', '.join(words)}: {figure.headline}".removesuffix(": ")]
    lines += verdict_lines(verdicts, figure.path("claims.csv"), figure.scale)
    if len(verdicts):
        listing = ["runner", *folder_words(figure.study), "claims", *words]
        lines += [f"rules and sources: {shlex.join(listing)}"]
    lines += [f"compare with the reference: {compare}" for compare in comparing(figure)]
    lines += [f"note: {about['stale']}"] if about["stale"] else []
    return "\n".join([*lines, str(figure.path("png"))])


def provenance_of(figure: PaperFigure) -> dict[str, Any]:
    """Return where a figure comes from: its command, and commit, machine and time of each run.

    Also its seeds, and the digests of the rules that stood before the runs were computed.
    """
    runs = [describe(run) for run in figure.runs]
    seconds = [run["seconds"] for run in runs if isinstance(run["seconds"], int | float)]
    return {
        "figure": figure.figure,
        "scale": figure.scale,
        "command": figure.command,
        "overrides": list(figure.overrides),
        "runs": runs,
        "style": figure.style,
        "stale": stale_note(figure.runs),
        "seconds": round(sum(seconds), 3),
        "seeds": sorted({run.config.seed for run in figure.runs}),
        "rules": registered(figure),
    }


def comparing(figure: PaperFigure) -> list[str]:
    """Return the command that compares a figure with the reference, where that has it."""
    if not (figure.is_canonical and (REFERENCE / figure.scale / figure.figure).is_dir()):
        return []
    scale = [] if figure.scale == "quick" else [f"SCALE={figure.scale}"]
    outputs = [] if figure.outputs == Path("outputs") else [f"OUTPUTS={figure.outputs}"]
    return [shlex.join(["make", "compare", *scale, *outputs])]


def is_current(figure: PaperFigure) -> bool:
    """Return whether the figure was drawn from exactly its runs as they are now, in its style."""
    keys = ("run", "tables", "stale")
    try:
        about = json.loads(figure.path("provenance.json").read_text())
        drawn = [[run[key] for key in keys] for run in about["runs"]]
        same = (about["scale"], about["style"]) == (figure.scale, figure.style)
        now = [[run[key] for key in keys] for run in map(describe, figure.runs)]
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return False
    return drawn == now and same and all(map(Path.exists, map(figure.path, FILES)))


def publish(figure: PaperFigure, tables: Tables) -> pd.DataFrame:
    """Draw a figure from its tables and judge its claims; return the claims.

    Writes all of FILES. Raises InputError when there is no such style, or the folder cannot be
    written.
    """
    verdicts = judge(figure, tables)
    above = header_of(figure, tables, verdicts)
    below = caption_of(figure, tables)
    folder = figure.path("png").parent
    try:
        with drawn_in(figure.style):
            picture, numbers = drawn(figure, tables, above)
            folder.mkdir(parents=True, exist_ok=True)
            save(picture, folder / figure.name)
        write_atomically(figure.path("header.json"), above.as_json())
        write_atomically(figure.path("csv"), numbers.to_csv(index=False).encode())
        write_atomically(figure.path("claims.csv"), verdicts.to_csv(index=False).encode())
        write_atomically(figure.path("caption.txt"), below.encode())
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror})") from error
    return verdicts


OF_A_RUN = (
    "started", "ended", "seconds", "cpu_seconds", "peak_memory_bytes", "commit", "dirty", "code",
    "device", "device_name", "instructions", "threads", "versions",
)  # fmt: skip
"""What a figure's provenance says of each of its runs, out of theirs."""


def describe(run: Run) -> dict[str, Any]:
    """Return what a figure's provenance says of one of its runs: name, seconds, machine, code."""
    about = run.provenance()
    facts = {key: about.get(key) for key in OF_A_RUN} | {"stale": run.is_stale()}
    tables = {name: table["sha256"] for name, table in run.result["tables"].items()}
    return {"run": str(run), **facts, "tables": tables}


def save(
    picture: Figure,
    path: Path,
    ends: Sequence[str] = ("png", "pdf", "svg", "body.png"),
    write: Callable[[Path, bytes], None] = write_atomically,
) -> None:
    """Write `path`.<end> for each of `ends`, without dates: equal tables give equal files."""
    logging.getLogger("fontTools").setLevel(logging.ERROR)  # it doubts the dates of matplotlib's
    left_out = {"pdf": "CreationDate", "svg": "Date"}
    for end in ends:
        bare = {"header": False} if end == "body.png" and isinstance(picture, Picture) else {}
        place = path.with_name(f"{path.name}.{end}")
        write(place, _content(picture, place, left_out.get(end, "Software"), **bare))
        picture.set_layout_engine(None)  # it is laid out; "none" would go through it once more


def _content(picture: Figure, path: Path, left_out: str, **options: Any) -> bytes:
    """Return the picture in the format of the file's name. left_out: of its metadata."""
    content = BytesIO()
    picture.savefig(content, format=path.suffix[1:], metadata={left_out: None}, **options)
    return content.getvalue()


def as_png(
    figure: PaperFigure, tables: Tables, above: Header | None = None, dpi: float | None = None
) -> bytes:
    """Return the picture of a figure alone: what `publish` writes as its PNG.

    above: its header; dpi: dots in an inch; None: as the style says.
    """
    content = BytesIO()
    with drawn_in(figure.style):
        picture, _ = drawn(figure, tables, above)
        options: Any = {"dpi": dpi} if dpi else {}
        picture.savefig(content, format="png", metadata={"Software": None}, **options)
    return content.getvalue()


def overview_of(study: str) -> Draw:
    """Return the `overview` of a study; without one, the numbers against what varies."""
    return getattr(part_of(study, "figures"), "overview", partial(against_keys, study))


def preview(run: Run) -> tuple[bytes, pd.DataFrame]:
    """Return the overview of a complete run: a picture as PNG, and its summary."""
    study, tables = run.config.study, load([run])
    # A diverged run draws zeros, nan and inf, of which numpy and matplotlib warn.
    with drawn_in("screen"), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        picture, summary = draw(overview_of(study), tables)
        settle(picture)
        if isinstance(picture, Picture):
            source, _, what = headline("study", study).replace("`", "").rpartition(": ")
            above = DOT.join(filter(None, (source or study, dataset_in(tables))))
            drawn = statistic(study, tables)
            picture.add_header(upper(above), upper(what), [(drawn, GREY)])
        content = BytesIO()
        picture.savefig(content, format="png", metadata={"Software": None})
    return content.getvalue(), summary


def statistic(study: str, tables: Tables) -> str:
    """Return what the numbers of a preview and of a sweep are: "median of n = 3 replicates".

    STATISTIC of the study's `figures.py` says what they are where they are no medians; an empty one
    that they are of single replicates.
    """
    what = getattr(part_of(study, "figures"), "STATISTIC", "median")
    return " of ".join(filter(None, (what, repeated(tables))))


def printed(table: pd.DataFrame, study: str) -> str:
    """Return a table of a study as it is printed, with its printed names."""
    names = names_of(study)
    texts = {
        column: [names.value(v) if isinstance(v, str) else v for v in table[column]]
        for column in table.select_dtypes(exclude="number")
    }
    rows = table.assign(**texts).rename(columns=names.column)
    return rows.to_string(index=False, na_rep="", float_format="{:.4g}".format)


def report(run: Run) -> str:
    """Write `overview.png` of a complete run; return its summary and where its files are."""
    png, summary = preview(run)
    with suppress(OSError):  # a complete run on a disk that is read only
        write_atomically(run.folder / "overview.png", png)
    study = run.config.study
    lines = [printed(summary, study), *filter(None, [statistic(study, load([run]))]), ""]
    lines += [str(run), f"{run.folder}: overview.png, config.yaml, run.log, provenance.json"]
    lines += [f"  {name}.csv  {table['rows']} rows" for name, table in run.result["tables"].items()]
    return "\n".join(lines)


def summary_of(run: Run) -> pd.DataFrame:
    """Return the summary of a complete run; without an overview of its study's the first table."""
    if not hasattr(part_of(run.config.study, "figures"), "overview"):
        return next(iter(load([run]).values()))
    return preview(run)[1]


def against_keys(study: str, tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the numbers of the first table against the key that varies most; return their
    summary."""
    name, rows = next(iter(tables.items()))
    keys = rows_of(study)[name].keys
    varied = [key for key in keys if key != "replicate" and rows[key].nunique() > 1] or keys
    x = max(varied, key=lambda key: rows[key].nunique())
    given = {*keys, *(item.name for item in fields(config_of(study)))}
    numbers = rows[[column for column in rows.select_dtypes("number") if column not in given]]
    height = max(1, -(-len(numbers.columns) // 3))
    picture, panels = sheet(height, 3, height=2.4 * height, gap=0.6)
    for panel in panels.flat[len(numbers.columns) :]:
        panel.remove()
    for panel, (column, values) in zip(panels.flat, numbers.items(), strict=False):
        panel.plot(rows[x], values, ".", color=BLUE)
        panel.set(xlabel=x, title=column)
    return picture, numbers.describe().rename_axis("statistic").reset_index()
