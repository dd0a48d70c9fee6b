"""The picture of a sweep: numbers of its runs against the parameters that were swept.

    plot = chosen(runs)                       # what is drawn: the study's headline numbers
    plot = chosen(runs, "depth", ["matrix_rank"], "normalization")
    plot.points                               # a row for each dot
    draw(plot)                                # the picture

The parameter with the most values is the axis, the next the colour, the next has small panels.
Seeds beside other parameters are replicates. The `figures.py` of a study names its headline numbers
as `objective=` does, by column, or by table and column where several tables have it:

    HEADLINE = ["matrix_rank", "training.test_accuracy"]

Without, they are the first numbers of the first table.
"""

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from runner.core.catalogue import part_of, rows_of
from runner.core.errors import InputError, nearest
from runner.core.studies import Row
from runner.results import captions, style
from runner.results.figures import save
from runner.results.findings import DOT
from runner.results.paper_figures import folder_words
from runner.results.style import DASHED, DOTTED, Look, Picture
from runner.runs.files import write_atomically
from runner.runs.run import Run, joined, readable
from runner.runs.selection import differing, typed

MOST_NUMBERS = MOST_PANELS = 4
"""Of a picture that chooses its numbers itself; of the values that have a panel each."""

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY,
          style.INK, style.OLIVE)  # fmt: skip
MARKERS, DASHES = "osD^vPXh", ("-", DASHED, DOTTED, (0, (6, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class Plot:
    """What a picture shows: x, color and panel are columns of `points`; color may be `line`, the
    method of a row, and panel absent. inside: x is followed within each run, as its layers are.
    """

    runs: Sequence[Run]
    x: str
    color: str
    panel: str | None
    points: pd.DataFrame
    """A row for each dot: what it belongs to, `line`, `run`, `number` and its `value`."""
    lines: str
    """What tells the lines of one colour apart: the columns of `line`."""
    inside: bool
    notes: Sequence[str]
    """What is shown of what a run follows, and what is missing."""

    @property
    def headline(self) -> str:
        """What is drawn, in a line."""
        return f"{_and(map(_label, self.points['number'].unique()))} against {_label(self.x)}"

    @property
    def caption(self) -> str:
        """What a paper would print below."""
        marks = "Lines are medians of the replicates, bands their range, one of each run."
        if not self.inside:
            marks = "Dots are single replicates, lines their medians."
        roles = [f"{role}: {_label(name)}" for role, name in (("Colour", self.color),
                 ("Panels", self.panel)) if name and name != "line"]  # fmt: skip
        said = ". ".join(
            [marks.rstrip("."), *roles, *(note[:1].upper() + note[1:] for note in self.notes)]
        )
        study = self.runs[0].config.study
        return captions.caption(f"{study}: {self.headline}", said, study, self.about)

    @property
    def about(self) -> dict[str, pd.DataFrame]:
        """Return the parameters of the runs as a table, as far as they are one value."""
        runs = [vars(run.config).items() for run in self.runs if run.is_complete()]
        rows = [{k: v for k, v in each if isinstance(v, int | float | str)} for each in runs]
        return {"runs": pd.DataFrame(rows)}


def chosen(
    runs: Iterable[Run], x: str | None = None, y: Sequence[str] = (), color: str | None = None
) -> Plot:
    """Choose what is drawn of runs of one study, those that are not complete being counted.

    x, color: a parameter, or a column that says what was measured (a layer, a method); y: columns
    of numbers. What is not given is chosen. Raises InputError where a name does not exist, no
    number varies, no run is complete, or more parameters differ than a picture has room for.
    """
    runs = list({run.folder: run for run in runs}.values())
    complete = [run for run in runs if run.is_complete()]
    studies = sorted({run.config.study for run in runs})
    if len(studies) > 1:
        raise InputError(f"runs of {len(studies)} studies: choose one, {' or '.join(studies)}")
    if not complete:
        raise InputError("none of the runs is complete: only complete runs have numbers")
    study = studies[0]
    classes = {name: each for name, each in rows_of(study).items()
               if any(name in run.result["tables"] for run in complete)}  # fmt: skip
    numbers = _numbers(classes)
    for name in y:
        if name not in numbers:
            raise InputError(f"{study} has no number {name}: {nearest(name, numbers)}")
    asked = list(y) or _headline(study, numbers)
    tables = dict.fromkeys(numbers[name][0] for name in asked)
    keys = {key for table in tables for key in classes[table].keys} - {"replicate"}
    parameters = [item.name for item in fields(runs[0].config)]
    for name in filter(None, (x, color)):
        if name not in (known := {*parameters, *keys}):
            raise InputError(f"{study} has no parameter {name}: {nearest(name, known)}")
    x, color, panel = _roles(runs, x, color, keys)
    rows = {table: _last(joined(complete, table), classes[table], runs, (x, color, panel))
            for table in tables}  # fmt: skip
    parts, absent = [], []
    for name in asked:
        table, column = numbers[name]
        points, without = _points(rows[table].rows, name, column, (x, color, panel))
        if without:
            absent.append(f"{_label(name)} of {_and(without)}")
        if len(points) and (y or points["value"].nunique(dropna=False) > 1):
            parts.append(points)
    if not parts:
        raise InputError(f"no number of {study} varies with {x}: {', '.join(asked)}")
    points = pd.concat(parts, ignore_index=True)
    kinds = ", ".join(dict.fromkeys(kind for table in rows.values() for kind in table.kinds))
    notes = list(dict.fromkeys(text for table in rows.values() if (text := table.shown)))
    notes += [f"not a number, and not drawn: {'; '.join(absent)}"] if absent else []
    if diverged := (~np.isfinite(points["value"])).sum():
        notes.append(f"{diverged} of {len(points)} numbers diverged")
    if missing := len(runs) - len(complete):
        notes.insert(0, f"{missing} of {len(runs)} runs missing")
    if (several := points["line"].nunique()) > len(COLORS):
        notes.append(f"{several} lines, one for each {kinds.replace(', ', ' and ')}")
    inside = any(_is_followed(table.rows, x, ["run"]) for table in rows.values())
    return Plot(runs, x, color or "line", panel, points, kinds, inside, notes)


def _numbers(classes: dict[str, type[Row]]) -> dict[str, tuple[str, str]]:
    """Return table and column of each number: of a name without its table, that of `metrics`, else
    of the last table that has it, which follows those that choose."""
    found: dict[str, tuple[str, str]] = {}
    for table, row_class in classes.items():
        for item in fields(row_class):
            if item.type in (int, float) and item.name not in row_class.keys:
                found[f"{table}.{item.name}"] = table, item.name
                if found.get(item.name, ("",))[0] != "metrics":
                    found[item.name] = table, item.name
    return found


def _headline(study: str, numbers: dict[str, tuple[str, str]]) -> list[str]:
    named = getattr(part_of(study, "figures"), "HEADLINE", None)
    if named is None:
        first = next(iter(numbers.values()), ("",))[0]
        named = [name for name, (table, _) in numbers.items() if table == first and "." not in name]
    return [name for name in named if name in numbers][:MOST_NUMBERS]


def _roles(
    runs: Sequence[Run], x: str | None, color: str | None, keys: set[str]
) -> tuple[str, str | None, str | None]:
    """Return which column is x, which the colour, which has panels; a role may be absent but x."""
    swept = differing(runs)
    swept = [name for name in swept if name != "seed"] or swept
    values = {name: _values(runs, name) for name in swept if name not in (x, color)}
    order = sorted(values, key=lambda n: (not _is_number(values[n]), -len(set(values[n]))))
    if x is None and not order:
        inside = f"--x {' or '.join(sorted(keys))} is within them" if keys else "one is needed"
        raise InputError(f"the runs differ in no parameter: {inside}")
    x = x or order.pop(0)
    color = color or (order.pop(0) if order else None)
    panel = order.pop(0) if order else None
    too_many = panel and len(set(values[panel])) > MOST_PANELS
    if order or too_many:
        name = order[-1] if order else panel
        where = f"{name}={typed(getattr(runs[0].config, name))}"
        part = command(runs[0], "plot", "--study", runs[0].config.study, "--where", where)
        what = ", ".join(swept) if order else f"{panel}, which has {len(set(values[panel]))} values"
        raise InputError(f"too much for one: the runs differ in {what}; a part is\n  {part}")
    return x, color, panel


def _values(runs: Iterable[Run], name: str) -> list[Any]:
    """Return a parameter of each run: numbers where all are, also lists of one, else texts."""
    texts = [readable(getattr(run.config, name)) for run in runs]
    numbers = pd.to_numeric(pd.Series(texts), errors="coerce")
    return list(numbers) if np.isfinite(numbers).all() else texts


def _is_number(values: Iterable[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(pd.Series(list(values)).infer_objects())


class Ends(NamedTuple):
    """Rows where the runs end, the columns that tell their methods apart, and what is shown."""

    rows: pd.DataFrame
    kinds: list[str]
    shown: str


def _last(
    rows: pd.DataFrame, row_class: type[Row], runs: Sequence[Run], roles: Sequence[str | None]
) -> Ends:
    """Return rows with all roles and `line`, of what else a run follows the last."""
    keys = [key for key in row_class.keys if key not in (*roles, "replicate")]
    for role in filter(None, roles):
        if role not in row_class.keys:
            if not hasattr(runs[0].config, role):
                raise InputError(f"table {row_class.table} has no {role}: it is of another table")
            values = dict(zip((run.folder.name for run in runs), _values(runs, role), strict=True))
            rows = rows.assign(**{role: rows["run"].map(values)})
    followed = [key for key in keys if _is_number(rows[key])]
    kinds = [key for key in keys if key not in followed and rows[key].nunique() > 1]
    ended = [key for key in followed if _is_followed(rows, key, ["run", *kinds])]
    rows, shown = last(rows, ["run", *kinds], followed), []
    for key in ended:
        ends = rows[key].dropna().unique()
        shown += [f"{_label(key)} {ends[0]:g}" if len(ends) == 1 else f"the last {_label(key)}"]
    lines = rows[kinds].astype(str).agg(", ".join, axis=1) if kinds else ""
    return Ends(rows.assign(line=lines), kinds, f"at {_and(shown)}" if shown else "")


def _is_followed(rows: pd.DataFrame, key: str, by: Sequence[str]) -> bool:
    return _is_number(rows[key]) and bool((rows.groupby(list(by))[key].nunique() > 1).any())


def last(rows: pd.DataFrame, by: Sequence[str], followed: Iterable[str]) -> pd.DataFrame:
    """Return the rows at the end of all that is followed, for each of the groups of `by`."""
    for name in followed:
        groups = rows.groupby(list(by), dropna=False)[name] if by else None
        ends = rows[name].max() if groups is None else groups.transform("max")
        rows = rows[(rows[name] == ends) | rows[name].isna()]
    return rows


def _points(
    rows: pd.DataFrame, number: str, column: str, roles: Sequence[str | None]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the rows of a number, and the methods that have none: all of theirs are nan."""
    kept = [*dict.fromkeys(filter(None, (*roles, "line", "run"))), *({"replicate"} & set(rows))]
    points = rows[kept].assign(number=number, value=rows[column].astype(float))
    named = [key for key in ("line", *roles) if key and not _is_number(points[key])]
    has = points.groupby(named)["value"].transform("count") > 0
    left = points.loc[~has, named].drop_duplicates().astype(str)
    without = [_label(" ".join(filter(None, each))) for each in left.to_numpy()]
    return points[has & points[roles[0]].notna()], without


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _label(name: Any) -> str:
    """Return a column, a method or a value as a reader writes it."""
    if not isinstance(name, str):
        return f"{name:g}" if _is_number([name]) else str(name)
    return name.rpartition(".")[2].replace("_", " ")


def _and(texts: Iterable[str]) -> str:
    *first, end = texts
    return f"{', '.join(first)} and {end}" if first else end


def command(run: Run, *words: str) -> str:
    """Return the command `runner runs ...` for the folder that a run is in."""
    outputs = run.folder.parent.parent.parent
    elsewhere = [] if str(outputs) == "outputs" else [f"outputs={outputs}"]
    before = ["python", "-m", "runner", *folder_words(run.config.study), "runs"]
    return shlex.join([*before, *words, *elsewhere])


def draw(plot: Plot) -> Picture:
    """Return the picture, its header above it; to be drawn and saved in a style of `style`."""
    points = plot.points
    numbers = list(points["number"].unique())
    values = _ordered(points[plot.panel]) if plot.panel else [None]
    cells = [(number, value) for number in numbers for value in values]
    columns = len(values) if plot.panel else min(2, len(cells))
    rows = -(-len(cells) // columns)
    keys = _keys(plot)
    spare = len(cells) < rows * columns
    wide = 0.25 if spare or not keys else 0.75 + 0.1 * max(map(len, [*keys, _title(plot) or ""]))
    picture, axes = style.sheet(rows, columns, height=1.15 + 2.1 * rows + 1.05 * (rows - 1),
                                right=wide, gap=0.35 if plot.panel else 0.85,
                                sharey="row" if plot.panel else False)  # fmt: skip
    for i, (number, value) in enumerate(cells):
        shown = points[points["number"] == number]
        title = _label(number)
        if plot.panel:
            title = f"{_label(plot.panel)} {_label(value)}"
            axes.flat[i].set_ylabel(_label(number) if i % columns == 0 else "")
        _draw_panel(plot, axes.flat[i], shown, value)
        style.panel(axes.flat[i], "abcdefghijklmnop"[i], title, _label(plot.x))
    if spare:
        axes[-1, -1].set_axis_off()
    if keys:
        axes[-spare, -1].legend(
            keys.values(), keys, loc="upper left", bbox_to_anchor=(0 if spare else 1, 1.03),
            title=_title(plot), alignment="left", borderaxespad=0 if spare else 1,
            handlelength=2.2,
        )  # fmt: skip
    study, data = plot.runs[0].config.study, captions.dataset_in(plot.about)
    below = DOT.join([_count(plot.points["run"].nunique(), "run"), *plot.notes])
    headline = plot.headline[:1].upper() + plot.headline[1:]
    picture.add_header(DOT.join(filter(None, (study, data))), headline, [(below, style.GREY)])
    style.settle(picture)
    return picture


def _ordered(column: pd.Series) -> list[Any]:
    values = column.dropna().unique()
    return sorted(values) if _is_number(values) else list(values)


def _looks(plot: Plot) -> dict[tuple[Any, str], Look]:
    """Return how each colour and method looks: hue and marker say the colour, dashes the method."""
    hues, lines = _ordered(plot.points[plot.color]), list(plot.points["line"].unique())
    colors = dict(zip(hues, COLORS * len(hues), strict=False))
    if plot.color != "line" and _is_number(hues):
        colors = style.shades(hues, style.SKY, style.BLUE, style.NAVY)
    looks, crowded = {}, len(lines) > len(COLORS)
    if crowded and plot.color == "line":
        colors = dict.fromkeys(hues, style.BLUE)
    for i, hue in enumerate(hues):
        for j, line in enumerate(lines):
            if plot.color == "line" and line != hue:
                continue
            dashes = "-" if crowded else DASHES[(j if len(lines) > 1 else i) % len(DASHES)]
            looks[hue, line] = Look(colors[hue], MARKERS[i % len(MARKERS)], dashes, 1.8)
    return looks


def _is_double(plot: Plot) -> bool:
    """Return whether colour and form say different things."""
    return plot.color != "line" and 1 < plot.points["line"].nunique() <= len(COLORS)


def _title(plot: Plot) -> str | None:
    """Return what stands above the legend; nothing where it has colours and methods."""
    return None if _is_double(plot) else _label(plot.lines if plot.color == "line" else plot.color)


def _keys(plot: Plot) -> dict[str, Line2D]:
    """Return what the legend says: the colours, then the methods, where there are several."""
    hues, double = _ordered(plot.points[plot.color]), _is_double(plot)
    if plot.color == "line" and len(hues) > len(COLORS):
        return {}
    before = f"{_label(plot.color)} " if double and _is_number(hues) else ""
    colors, methods = {}, {}
    for (hue, line), look in _looks(plot).items():
        form = {"marker": "" if plot.inside else look.marker, "ms": 5, "lw": 1.8}
        dashes = "-" if double else look.dashes
        colors[before + _label(hue)] = Line2D([], [], color=look.color, ls=dashes, **form)
        methods[_label(line)] = Line2D([], [], color=style.GREY, ls=look.dashes, lw=1.8)
    found = colors | (methods if double else {})
    return found if len(found) > 1 else {}


def _draw_panel(plot: Plot, axes: Axes, points: pd.DataFrame, value: Any) -> None:
    """Draw the points of a number that have a value of the panels' parameter."""
    finite = points["value"][np.isfinite(points["value"])]
    is_number, kind = _is_number(points[plot.x]), _scale(finite)
    places = dict(zip(_ordered(points[plot.x]), range(len(points)), strict=False))
    place = np.asarray
    if len(finite) and len(finite) < len(points):
        low, high = finite.min(), finite.max()
        away = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
        far = low / (high / low) ** 0.05 if kind == "log" else low - away
        place = style.rail(axes, high if high > low else high + away, far, "diverged",
                           log=kind == "log")  # fmt: skip
    elif kind == "symlog":
        axes.set_yscale("symlog", linthresh=finite[finite > 0].min())
        axes.set_ylim(0, None)
    else:
        axes.set_yscale(kind)
    if is_number:
        x_scale = _scale(pd.Series([*places]), spaced=True)
        axes.set_xscale(x_scale if x_scale == "log" else "linear")
        if len(places) <= 8:
            style.ticks(axes.xaxis, places)
    else:
        style.ticks(axes.xaxis, places.values(), list(map(_label, places)))
        axes.set_xlim(-0.5, len(places) - 0.5)
    axes.yaxis.get_offset_text().set_horizontalalignment("right")
    here = points if value is None else points[points[plot.panel] == value]
    looks = _looks(plot)
    present = list(dict.fromkeys(zip(here[plot.color], here["line"], strict=True)))
    for j, each in enumerate(present):
        look, (hue, line) = looks[each], each
        own = here[(here[plot.color] == hue) & (here["line"] == line)]
        if plot.inside:
            for _, curve in own.groupby("run", sort=False):
                _draw_curve(look, axes, plot.x, curve, place)
            continue
        shift = 0.0 if is_number else (j - (len(present) - 1) / 2) * min(0.14, 0.7 / len(present))
        x = own[plot.x] if is_number else own[plot.x].map(places) + shift
        medians = own["value"].fillna(np.inf).groupby(x).median()
        if len(own) > len(medians):
            look.each(axes, x, place(own["value"]))
        dash = {} if is_number else {"linestyle": "", "marker": "_", "markeredgecolor": look.color,
                                     "markersize": 11, "markeredgewidth": 2.4}  # fmt: skip
        look.line(axes, medians.index, place(medians.replace(np.inf, np.nan)),
                  **{"markersize": 5} | dash)  # fmt: skip


def _draw_curve(look: Look, axes: Axes, x: str, rows: pd.DataFrame, place: Any) -> None:
    groups = rows["value"].fillna(np.inf).groupby(rows[x])
    few = {"marker": look.marker, "markersize": 4} if len(groups) <= 12 else {"marker": ""}
    if (groups.count() > 1).any():
        look.band(axes, groups.min().index, place(groups.min()), place(groups.max()))
    look.line(axes, groups.median().index, place(groups.median()), **few)


def _scale(values: pd.Series, spaced: bool = False) -> str:
    """Return the scale for values: logarithmic where they span two decades, from zero on symlog.

    spaced: also where their logarithms are the more evenly spaced, as those of 2, 4, 8, 16.
    """
    positive = values[values > 0]
    if not len(positive) or (values < 0).any():
        return "linear"
    gaps = [np.diff(np.sort(each)) for each in (np.log(positive), positive)]
    even = [each.max() / max(each.min(), 1e-300) for each in gaps] if len(positive) > 2 else [1, 1]
    if positive.max() / positive.min() < 100 and not (spaced and even[0] < 0.99 * even[1]):
        return "linear"
    return "log" if len(positive) == len(values) else "symlog"


def write(plot: Plot, outputs: Path, out: Path | None = None) -> Path:
    """Write the picture; return its path.

    out: its file; without one it goes, with the numbers drawn and a caption, into a place below
    `outputs` that is the same for the same runs. Raises InputError when it cannot be written.
    """
    names = sorted(run.folder.name for run in plot.runs)
    swept = "-".join(filter(None, (plot.x, plot.color, plot.panel))).removesuffix("-line")
    digest = hashlib.sha256("\n".join(names).encode()).hexdigest()[:8]
    path = out or outputs / "sweeps" / f"{plot.runs[0].config.study}-{swept}-{digest}.png"
    base = path.with_suffix("")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with style.drawn_in("screen"):
            save(draw(plot), base, [path.suffix[1:]] if out else ["png", "pdf"])
        about = {".csv": plot.points.to_csv(index=False), ".caption.txt": plot.caption}
        for end, text in ({} if out else about).items():
            write_atomically(base.with_name(f"{base.name}{end}"), text.encode())
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from error
    return path
