"""The picture of a sweep: numbers of its runs against the parameters that were swept.

    plot = chosen(runs)                       # what is drawn: the study's headline numbers
    plot = chosen(runs, "depth", ["matrix_rank"], "normalization")
    plot.points                               # a row for each dot
    draw(plot)                                # the picture

The parameter with the most values is the axis, the next the colour, the next has small panels.
Seeds beside other parameters are replicates. The `figures.py` of a study names its headline numbers
as `objective=` does, by column, or by table and column where several tables have it:

    HEADLINE = ["matrix_rank", "training.test_accuracy"]

Without, or where none of them is by what is asked for, the first numbers are drawn.
"""

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

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
from runner.runs.files import write_atomically
from runner.runs.run import Run, joined, readable
from runner.runs.selection import differing, typed

MOST_NUMBERS = MOST_PANELS = 4
"""Of a picture that chooses its numbers itself; of the values that have a panel each."""

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY,
          style.INK, style.OLIVE)  # fmt: skip
MARKERS, DASHES = "osD^vPXh", ("-", style.DASHED, style.DOTTED, (0, (6, 1.5, 1, 1.5)))

LONG = 32
"""So many letters below two panels side by side run into each other."""


@dataclass(frozen=True)
class Plot:
    """What a picture shows. x, color and panel are columns of `points`: color is `line`, the method
    of a row, where no parameter has it, and panel may be absent.
    """

    runs: Sequence[Run]
    x: str
    color: str
    panel: str | None
    points: pd.DataFrame
    """A row for each dot: what it belongs to, `line`, `run`, `number` and its `value`."""
    lines: str
    """The columns that tell methods apart; empty where they are one, or too many for a legend."""
    notes: Sequence[str]
    """What is missing, and what is shown of what a run follows."""

    @property
    def is_inside(self) -> bool:
        """Whether x is followed within each run, as its layers are."""
        return _is_followed(self.points, self.x, ["run"])

    @property
    def headline(self) -> str:
        """What is drawn, in a line."""
        return f"{_and(map(_label, self.points['number'].unique()))} against {_label(self.x)}"

    @property
    def parameters(self) -> dict[str, pd.DataFrame]:
        """A table with those of the runs that are one value."""
        complete = [vars(run.config).items() for run in self.runs if run.is_complete()]
        rows = [{k: v for k, v in each if isinstance(v, int | float | str)} for each in complete]
        return {"runs": pd.DataFrame(rows)}

    @property
    def caption(self) -> str:
        """What a paper would print below."""
        marks = "bands the range of replicates" if self.is_inside else "dots single replicates"
        roles = {"colour": self.lines if self.color == "line" else self.color, "panels": self.panel}
        said = [f"{role}: {_label(name)}" for role, name in roles.items() if name]
        study = self.runs[0].config.study
        words = "; ".join([f"Lines are medians, {marks}", *said, *self.notes])
        return captions.caption(f"{self.headline} ({study})", words, study, self.parameters)


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
    if not complete:
        raise InputError("none of the runs is complete: only complete runs have numbers")
    study, *others = sorted({run.config.study for run in runs})
    if others:
        raise InputError(f"runs of {len(others) + 1} studies: choose one, --study {study}")
    numbers = _numbers(study, complete)
    keys = {key for row_class, _ in numbers.values() for key in row_class.keys} - {"replicate"}
    parameters, wanted = vars(runs[0].config), [each for each in (x, color) if each]
    _require(wanted, {*parameters, *keys}, f"parameter of {study}")
    _require(y, numbers, f"number of {study}")
    fit = [n for n in numbers if {*wanted} <= {*parameters, *numbers[n][0].keys}]
    _require(y, fit, f"number by {' and '.join(wanted)}")
    named = getattr(part_of(study, "figures"), "HEADLINE", [])
    alone = [name for name in fit if "." in name]
    asked = list(y) or ([name for name in named if name in fit] or alone)[:MOST_NUMBERS]
    x, color, panel = roles = _roles(runs, x, color, keys)
    tables = {table: joined(complete, table) for table in {numbers[n][0].table for n in asked}}
    parts, lines, notes = [], {}, {}
    for name in asked:
        row_class, column = numbers[name]
        points, kinds, said = _points(tables[row_class.table], row_class, column, runs, roles)
        if len(points) and (y or points["value"].nunique(dropna=False) > 1):
            parts.append(points.assign(number=name))
            lines |= dict.fromkeys(kinds)
            notes |= dict.fromkeys(said)
    if not parts:
        raise InputError(f"no number of {study} varies with {x}: {', '.join(asked)}")
    points = pd.concat(parts, ignore_index=True)
    if diverged := (~np.isfinite(points["value"])).sum():
        notes[f"{diverged} of {len(points)} numbers diverged"] = None
    if points["line"].nunique() > len(COLORS):  # too many for a legend
        notes[f"a line for each {' and '.join(lines)}"] = None
        lines = {}
    missing = len(runs) - len(complete)
    notes = [f"{missing} of {len(runs)} runs missing"] * (missing > 0) + list(notes)
    return Plot(runs, x, color or "line", panel, points, ", ".join(lines), notes)


def _require(names: Iterable[str], known: Iterable[str], what: str) -> None:
    for name in names:
        if name not in known:
            raise InputError(f"{name} is no {what}: {nearest(name, known)}")


def _numbers(study: str, runs: Sequence[Run]) -> dict[str, tuple[type[Row], str]]:
    """Return row class and column of each number: of a name without its table, that of `metrics`,
    else of the last table that has it, which follows those that choose."""
    found: dict[str, tuple[type[Row], str]] = {}
    present = {table for run in runs for table in run.result["tables"]}
    for table, row_class in rows_of(study).items():
        for item in fields(row_class) if table in present else ():
            if item.type in (int, float) and item.name not in row_class.keys:
                found[f"{table}.{item.name}"] = row_class, item.name
                if item.name not in found or found[item.name][0].table != "metrics":
                    found[item.name] = row_class, item.name
    return found


def _roles(
    runs: Sequence[Run], x: str | None, color: str | None, keys: set[str]
) -> tuple[str, str | None, str | None]:
    """Return what is x, what the colour and what has panels, the last two None where nothing is."""
    swept = differing(runs)
    swept = [name for name in swept if name != "seed"] or swept
    values = {name: _values(runs, name) for name in swept if name not in (x, color)}
    order = sorted(values, key=lambda n: (not _is_number(values[n]), -len(set(values[n]))))
    if not (x or order):
        raise InputError(f"the runs differ in no parameter; within them: --x {' or '.join(keys)}")
    x = x or order.pop(0)
    color = color or (order.pop(0) if order else None)
    if order and (order[1:] or len(set(values[order[0]])) > MOST_PANELS):
        where = f"{order[-1]}={typed(getattr(runs[0].config, order[-1]))}"
        part = command(runs[0], "plot", "--study", runs[0].config.study, "--where", where)
        raise InputError(f"too much for one: the runs differ in {_and(swept)}; a part is\n  {part}")
    return x, color, order[0] if order else None


def _values(runs: Iterable[Run], name: str) -> list[Any]:
    """Return a parameter of each run: numbers where all are, also lists of one, else texts."""
    texts = [readable(getattr(run.config, name)) for run in runs]
    numbers = pd.to_numeric(pd.Series(texts), errors="coerce")
    return list(numbers) if np.isfinite(numbers).all() else texts


def _points(
    rows: pd.DataFrame, row_class: type[Row], column: str, runs: Sequence[Run],
    roles: Sequence[str | None],
) -> tuple[pd.DataFrame, list[str], list[str]]:  # fmt: skip
    """Return the rows of a number, of what else a run follows the last, what tells their methods
    apart, and what is to be said."""
    given = [role for role in roles if role]
    for role in set(given) - set(row_class.keys):
        values = dict(zip((run.folder.name for run in runs), _values(runs, role), strict=True))
        rows = rows.assign(**{role: rows["run"].map(values)})
    keys = [key for key in row_class.keys if key not in (*roles, "replicate")]
    followed = [key for key in keys if _is_number(rows[key])]
    kinds = [key for key in keys if key not in followed and rows[key].nunique() > 1]
    ended = [key for key in followed if _is_followed(rows, key, ["run", *kinds])]
    rows = last(rows, ["run", *kinds], followed)
    ends = {key: rows[key].dropna().unique() for key in ended}
    said = [f"{_label(key)} {end[0]:g}" if len(end) == 1 else f"the last {_label(key)}"
            for key, end in ends.items()]  # fmt: skip
    notes = [f"at {_and(said)}"] if said else []
    lines = [", ".join(map(str, each)) for each in rows[kinds].to_numpy()]
    rows = rows.assign(line=lines, study="")
    named = ["study", *kinds, *(role for role in given if not _is_number(rows[role]))]
    has = rows.groupby(named)[column].transform("count") > 0
    absent = rows.loc[~has, named[1:]].drop_duplicates().to_numpy()
    if without := [_label(" ".join(map(str, each))) for each in absent]:
        notes += [f"not a number: {_label(column)} of {_and(without)}"]
    kept = [*dict.fromkeys([*given, "line", "run"]), *({"replicate"} & set(rows))]
    return rows.loc[has, kept].assign(value=rows[column].astype(float)), kinds, notes


def last(rows: pd.DataFrame, by: Sequence[str], followed: Iterable[str]) -> pd.DataFrame:
    """Return the rows at the end of all that is followed, for each of the groups of `by`."""
    for name in followed:
        ends = (
            rows.groupby(list(by), dropna=False)[name].transform("max") if by else rows[name].max()
        )
        rows = rows[(rows[name] == ends) | rows[name].isna()]
    return rows


def _is_followed(rows: pd.DataFrame, key: str, by: Sequence[str]) -> bool:
    return _is_number(rows[key]) and bool((rows.groupby(list(by))[key].nunique() > 1).any())


def _is_number(values: Iterable[Any]) -> bool:
    return pd.api.types.is_numeric_dtype(pd.Series(list(values)).infer_objects())


def _ordered(column: pd.Series) -> list[Any]:
    return sorted(column.unique()) if _is_number(column) else list(column.unique())


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


def draw(plot: Plot) -> style.Picture:
    """Return the picture, its header above it; to be drawn and saved in a style of `style`."""
    points, looks = plot.points, _looks(plot)
    values = _ordered(points[plot.panel]) if plot.panel else [None]
    cells = [(number, value) for number in points["number"].unique() for value in values]
    names = [] if _is_number(points[plot.x]) else list(map(_label, points[plot.x].unique()))
    columns = len(values) if plot.panel else min(len(cells), 2 - (len("  ".join(names)) > LONG))
    rows, keys = -(-len(cells) // columns), _keys(plot, looks)
    spare, title = len(cells) < rows * columns, ", ".join(filter(None, (plot.color, plot.lines)))
    title = _label(title.removeprefix("line, "))
    wide = 0.75 + 0.1 * max(map(len, [*keys, title])) if keys and not spare else 0.25
    picture, axes = style.sheet(
        rows, columns, height=1.15 + 2.1 * rows + 1.05 * (rows - 1), right=wide,
        gap=0.35 if plot.panel else 0.85, sharey="row" if plot.panel else False,
    )  # fmt: skip
    for i, (number, value) in enumerate(cells):
        of_number = points[points["number"] == number]
        shown = of_number if value is None else of_number[of_number[plot.panel] == value]
        _draw_panel(plot, axes.flat[i], of_number, shown, looks)
        above = f"{_label(number)}, " if i % columns == 0 else ""
        above = f"{above}{_label(plot.panel)} {_label(value)}" if plot.panel else _label(number)
        style.panel(axes.flat[i], "abcdefghijklmnop"[i], above, _label(plot.x))
    if spare:
        axes[-1, -1].set_axis_off()
    if keys:
        place = {"bbox_to_anchor": (not spare, 1.03), "borderaxespad": 1 - spare}
        axes[-spare, -1].legend(keys.values(), keys, loc="upper left", title=title,
                                alignment="left", handlelength=2.2, **place)  # fmt: skip
    number, data = points["run"].nunique(), captions.dataset_in(plot.parameters)
    below = DOT.join([f"{number} run{'s' * (number > 1)}", *plot.notes])
    what = DOT.join(filter(None, (plot.runs[0].config.study, data)))
    headline = plot.headline[:1].upper() + plot.headline[1:]
    picture.add_header(what, headline, [(below, style.GREY)])
    style.settle(picture)
    return picture


def _looks(plot: Plot) -> dict[tuple[Any, str], style.Look]:
    """Return how each colour and method looks: hue and marker say the colour, dashes the method."""
    hues, lines = _ordered(plot.points[plot.color]), list(plot.points["line"].unique())
    colors = dict(zip(hues, COLORS * len(hues), strict=False))
    if plot.color != "line" and _is_number(hues):
        colors = style.shades(hues, style.SKY, style.BLUE, style.NAVY)
    looks = {}
    for i, hue in enumerate(hues):
        for j, line in enumerate([hue] if plot.color == "line" else lines):
            dashes = DASHES[(j if plot.lines and plot.color != "line" else i) % len(DASHES)]
            looks[hue, line] = style.Look(colors[hue], MARKERS[i % len(MARKERS)], dashes, 1.8)
    return looks


def _keys(plot: Plot, looks: dict[tuple[Any, str], style.Look]) -> dict[str, Line2D]:
    """Return what the legend says: the colours, then the methods; nothing where one is all."""
    colors, methods = {}, {}
    double = plot.color != "line" and plot.lines
    for (hue, line), look in looks.items():
        dashes, marker = "-" if double else look.dashes, "" if plot.is_inside else look.marker
        colors[_label(hue)] = Line2D([], [], color=look.color, ls=dashes, marker=marker, ms=5)
        methods[_label(line)] = Line2D([], [], color=style.GREY, ls=look.dashes)
    found = colors | (methods if double else {})
    return found if len(found) > 1 and (plot.lines or plot.color != "line") else {}


def _draw_panel(plot: Plot, axes: Axes, of_number: pd.DataFrame, shown: pd.DataFrame,
                looks: dict[tuple[Any, str], style.Look]) -> None:  # fmt: skip
    """Draw those points of a number that are shown, on axes for all of them."""
    places = dict(zip(_ordered(of_number[plot.x]), range(len(of_number)), strict=False))
    marks: dict[str, Any] = {"marker": ""} if plot.is_inside else {"markersize": 5}
    is_number = _is_number(places)
    if is_number:
        axes.set_xscale("log" if _scale(pd.Series([*places]), spaced=True) == "log" else "linear")
    else:
        axes.set_xlim(-0.5, len(places) - 0.5)
        marks = {"linestyle": "", "marker": "_", "markersize": 11, "markeredgewidth": 2.4}
    if len(places) <= 8 or not is_number:
        texts = None if is_number else [_label(each).replace(" ", "\n") for each in places]
        style.ticks(axes.xaxis, places if is_number else places.values(), texts)
    place, groups = (
        _y_axis(axes, of_number["value"]),
        shown.groupby([plot.color, "line"], sort=False),
    )
    for i, (key, own) in enumerate(groups):
        aside = (i - (len(groups) - 1) / 2) * min(0.14, 0.7 / len(groups))
        for _, part in own.groupby("run", sort=False) if plot.is_inside else [("", own)]:
            x = part[plot.x] if is_number else part[plot.x].map(places) + aside
            by_x = part["value"].fillna(np.inf).groupby(x)
            if plot.is_inside:
                looks[key].band(axes, by_x.min().index, place(by_x.min()), place(by_x.max()))
            elif len(part) > len(by_x):
                looks[key].each(axes, x, place(part["value"]))
            edge = {} if is_number else {"markeredgecolor": looks[key].color}
            looks[key].line(axes, by_x.median().index, place(by_x.median()), **marks | edge)


def _y_axis(axes: Axes, values: pd.Series) -> Any:
    """Give the axis its scale, and a rail where values have diverged; return what places values."""
    finite = values[np.isfinite(values)]
    kind, low, high = _scale(finite), finite.min(), finite.max()
    axes.yaxis.get_offset_text().set_horizontalalignment("right")
    if 0 < len(finite) < len(values):
        away = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
        far = low / (high / low) ** 0.05 if kind == "log" else low - away
        top = high if high > low else high + away
        return style.rail(axes, top, far, "diverged", log=kind == "log")
    axes.set_yscale(kind, **{"linthresh": finite[finite > 0].min()} if kind == "symlog" else {})
    return np.asarray


def _scale(values: pd.Series, spaced: bool = False) -> str:
    """Return the scale for values: logarithmic where they span two decades, from zero on symlog.

    spaced: also where their logarithms are the more evenly spaced, as those of 2, 4, 8, 16.
    """
    positive = np.sort(values[values > 0])
    if not len(positive) or (values < 0).any():
        return "linear"
    gaps = [np.diff(each) for each in (np.log(positive), positive)]
    is_even = (
        spaced
        and len(positive) > 2
        and np.ptp(gaps[0] / gaps[0].max()) < np.ptp(gaps[1] / gaps[1].max())
    )
    if positive[-1] < 100 * positive[0] and not is_even:
        return "linear"
    return "log" if len(positive) == len(values) else "symlog"


def write(plot: Plot, outputs: Path, out: Path | None = None) -> Path:
    """Write the picture; return its path.

    out: its file; without one it goes, with the numbers drawn and a caption, into a place below
    `outputs` that is the same for the same runs. Raises InputError when it cannot be written.
    """
    names = [plot.runs[0].config.study, plot.x, plot.color, plot.panel or "line"]
    runs = "\n".join(sorted(run.folder.name for run in plot.runs))
    names = [name for name in names if name != "line"]
    name = "-".join([*names, hashlib.sha256(runs.encode()).hexdigest()[:8]])
    base = out.with_suffix("") if out else outputs / "sweeps" / name
    ends = [out.suffix[1:]] if out else ["png", "pdf"]
    about = {".csv": plot.points.to_csv(index=False), ".caption.txt": plot.caption}
    try:
        base.parent.mkdir(parents=True, exist_ok=True)
        with style.drawn_in("screen"):
            save(draw(plot), base, ends)
        for end, text in ({} if out else about).items():
            write_atomically(base.with_name(f"{base.name}{end}"), text.encode())
    except OSError as error:
        raise InputError(f"{base.parent} cannot be written ({error.strerror})") from error
    return base.with_name(f"{base.name}.{ends[0]}")
