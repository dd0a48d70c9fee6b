"""The picture of a sweep: numbers of its runs against the parameters that were swept.

    plot = chosen(runs)                       # what is drawn: the study's headline numbers
    plot = chosen(runs, "depth", ["matrix_rank"], "normalization")
    plot.points                               # a row for each dot
    draw(plot)                                # the picture

The parameter with the most values is the axis, the next the color, the next has small panels.
Seeds beside other parameters are replicates. The `figures.py` of a study names its headline numbers
as `objective=` does, by column, or by table and column where several tables have it:

    HEADLINE = ["matrix_rank", "training.test_accuracy"]

Without, or where none of them is by what is asked for, the first numbers are drawn.
"""

import hashlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from runner.core.catalogue import headline as catalogue_headline
from runner.core.catalogue import part_of, rows_of
from runner.core.errors import InputError, nearest
from runner.core.studies import column_types
from runner.results import captions, style
from runner.results.drawing import DOT
from runner.results.labels import Names, names_of
from runner.runs.files import write_atomically, write_named
from runner.runs.run import Run, load, readable
from runner.runs.selection import differing

MOST_NUMBERS, MOST_PANELS, MOST_TICKS = 4, 4, 8
"""Of a picture that chooses its numbers itself; of the values that have a panel each; of those that
are all written below an axis."""

COLORS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.SKY,
          style.INK, style.OLIVE)  # fmt: skip
"""As many methods are told apart."""

MARKERS, DASHES = "osD^vPXh", ("-", style.DASHED, style.DOTTED, (0, (6, 1.5, 1, 1.5)))


@dataclass(frozen=True)
class Plot:
    """What a picture shows. x, color and panel are columns of `points`: color is `line`, the method
    of a row, where no parameter has it, and panel is `number` where each number has one panel.
    """

    study: str
    name: str
    """Of its files: the same for the same runs, whatever has become of them."""
    x: str
    color: str
    panel: str
    points: pd.DataFrame
    """A row for each dot: what it belongs to, `line`, `run`, `number` and its `value`."""
    headline: str
    """What is drawn, in a line."""
    notes: Sequence[str]
    """How many runs, what is missing, what is shown of what a run follows, and of how many."""
    caption: str
    """What a paper would print below."""


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
    if not complete or len(studies) > 1:
        raise InputError(f"not complete runs of one study: {len(complete)} of {', '.join(studies)}")
    (study,), tables, wanted = studies, load(complete), [name for name in (x, color) if name]
    parameters, numbers = list(vars(runs[0].config)), _numbers(study, tables)
    keys = {table: rows_of(study)[table].keys for table in tables}
    fit = [name for name in numbers if {*wanted} <= {*parameters, *keys[numbers[name][0]]}]
    named = [name for name in getattr(part_of(study, "figures"), "HEADLINE", ()) if name in fit]
    asked = y or (named or [name for name in fit if "." in name])[:MOST_NUMBERS]
    known: dict[str, Collection[str]] = dict.fromkeys(wanted, {*parameters}.union(*keys.values()))
    known |= dict.fromkeys(asked or ["number"], fit)
    for name in (name for name in known if name not in known[name]):
        what = " by ".join(dict.fromkeys([name, *wanted]))
        raise InputError(f"{study} has no {what}: {nearest(name, known[name])}")

    swept = [name for name in parameters if name in {*differing(runs), *wanted}]
    knobs = pd.DataFrame({name: _values(runs, name) for name in swept})
    roles, parts = _roles(knobs, x, color), []
    for table, column in map(numbers.__getitem__, asked):
        own = [name for name in swept if name not in keys[table]]
        rows = tables[table].drop(columns=own, errors="ignore").join(knobs[own], on="run")
        parts += [_points(rows.assign(value=tables[table][column] * 1.0), keys[table], roles)]
    points = pd.concat(parts, keys=asked, names=["number"]).reset_index("number")
    different = points.groupby("number")["value"].transform(lambda each: each.nunique(dropna=False))
    points = points[bool(y) | (different > 1)]
    groups = ["number", "line", *(role for role in roles if not _is_number(points[role]))]
    absent = points.groupby(groups)["value"].transform("count") == 0  # no number, not one diverged
    points, without = points[~absent], points.loc[absent, groups].astype(str).to_numpy()
    if points.empty:
        raise InputError(f"no number of {study} varies with {roles[0]}: {', '.join(asked)}")

    points = points.sort_values([role for role in roles if role not in groups], kind="stable")
    names, missing = names_of(study), len(runs) - len(complete)
    differ = _list(map(_label, differing(runs)))
    count = f"{len(runs)} runs" + f" by {differ}" * bool(differ)
    count += f", {missing} missing" * bool(missing)
    absences = (f"no {_list(map(_label, each))}" for each in without)
    repeated = captions.repeated(tables)
    drawn = f"lines: median of {repeated}, dot: one of them" * bool(repeated)
    notes = list(filter(None, dict.fromkeys([count, *points["at"], *absences, drawn])))
    shown = [names.column(number.rpartition(".")[2]) for number in points["number"].unique()]
    headline = f"{_list(shown)} against {names.column(roles[0])}"
    headline = headline[:1].upper() + headline[1:]
    x, color, panel = roles + ["line", "number"][len(roles) - 1 :]
    headline += difference(points, x, color, panel, names)
    said = "; ".join(["Lines are medians, dots single replicates", *notes])
    caption = captions.caption(f"{headline} ({study})", said, study, tables)
    wishes = [wanted, y, sorted(run.folder.name for run in runs)]
    name = f"{study}-{roles[0]}-{hashlib.sha256(repr(wishes).encode()).hexdigest()[:8]}"
    return Plot(study, name, x, color, panel, points, headline, notes, caption)


def difference(points: pd.DataFrame, x: str, color: str, panel: str, names: Names) -> str:
    """Say which of two lines lies above the other at each x of each panel, if one does."""
    methods, places = [*dict.fromkeys([color, "line"])], [*dict.fromkeys(["number", panel, x])]
    wide = points.groupby([*places, *methods])["value"].median().unstack(methods)
    if wide.shape[1] != 2 or not _is_number(points[x]):
        return ""
    parts = (", ".join(map(_label, np.atleast_1d(each))).split(", ") for each in wide.columns)
    first, second = (_list(map(names.value, dict.fromkeys(each))) for each in parts)
    apart = wide.iloc[:, 0] - wide.iloc[:, 1]
    if (apart < 0).all():
        first, second = second, first
    elif not (apart > 0).all():
        return ""
    what = f"{names.column(color)} " * _is_number(points[color])
    return f": {what}{first} lies above {second}"


def _numbers(study: str, tables: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Return table and column of each number of these tables, by `table.column` and by `column`:
    that of `metrics`, else of the last table that has it, which follows those that choose."""
    found: dict[str, tuple[str, str]] = {}
    for table, row_class in sorted(rows_of(study).items(), key=lambda each: each[0] == "metrics"):
        for name, kind in column_types(row_class).items() if table in tables else ():
            if kind in (int, float) and name not in row_class.keys:
                found[f"{table}.{name}"] = found[name] = table, name
    return found


def _values(runs: Iterable[Run], name: str) -> pd.Series:
    """Return a parameter by run: numbers where all are, also lists of one, else texts."""
    texts = pd.Series({run.folder.name: readable(getattr(run.config, name)) for run in runs})
    numbers = pd.to_numeric(texts, errors="coerce")
    return numbers if np.isfinite(numbers).all() else texts


def _roles(knobs: pd.DataFrame, x: str | None, color: str | None) -> list[str]:
    """Return the parameters of the horizontal axis, of the color and of the panels."""
    swept = [name for name in knobs if name != "seed"] or [*knobs]
    free = [name for name in swept if name not in (x, color)]
    free.sort(key=lambda name: (not _is_number(knobs[name]), -knobs[name].nunique()))
    if not (x or free):
        raise InputError(
            "the runs differ in no parameter: choose a column for the horizontal axis, as --x layer"
        )
    roles = [given or free.pop(0) for given in (x, color, None) if given or free]
    if free or (len(roles) > 2 and knobs[roles[2]].nunique() > MOST_PANELS):
        part = f"--where {[*roles, *free][-1]}=..."
        raise InputError(
            f"too many parameters for one picture: the runs differ in {', '.join(swept)};"
            f" choose a part, for example {part}"
        )
    return roles


def _points(rows: pd.DataFrame, keys: Iterable[str], roles: Sequence[str]) -> pd.DataFrame:
    """Return the rows of a number, of what else a run follows the last."""
    keys = [key for key in keys if key not in (*roles, "replicate")]
    kinds = [key for key in keys if not _is_number(rows[key]) and rows[key].nunique() > 1]
    steps = rows.groupby(["run", *kinds])[keys].nunique().max()
    followed = [key for key in keys if steps[key] > 1]
    rows = last(rows, ["run", *kinds], followed)
    at = [f"at the last {_list(map(_label, followed))}"] if followed else []
    while len(kinds) > 1 and len(rows[kinds].drop_duplicates()) > len(COLORS):
        kinds.remove(widest := max(kinds, key=lambda kind: rows[kind].nunique()))
        at += [f"over every {_label(widest)}"]
    lines = [", ".join(map(str, each)) for each in rows[kinds].to_numpy()]
    rows = rows.assign(by=", ".join(kinds), line=lines, at="; ".join(at))
    return rows.filter([*dict.fromkeys([*roles, "by", "line", "at", "run", "replicate", "value"])])


def last(rows: pd.DataFrame, by: Sequence[str], followed: Iterable[str]) -> pd.DataFrame:
    """Return the rows at the end of all that is followed, for each of the groups of `by`."""
    for name in followed:
        groups = rows.groupby([*by] or rows.index * 0, dropna=False)[name]
        rows = rows[(rows[name] == groups.transform("max")) | rows[name].isna()]
    return rows


def _is_number(values: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(values) and values.dtype != bool


def _label(name: Any) -> str:
    """Return a column, a method or a value as a reader writes it."""
    return f"{name:g}" if isinstance(name, float) else str(name).replace("_", " ")


def _list(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))


def _called(plot: Plot, names: Names) -> dict[tuple[Any, str], str]:
    """Return what the legend calls each method of each color."""
    found = {}
    for hue, line in plot.points[[plot.color, "line"]].drop_duplicates().to_numpy():
        parts = dict.fromkeys([hue, *line.split(", ")])
        found[hue, line] = fill(_list(map(names.value, parts)), 24)
    return found


def draw(plot: Plot) -> style.Picture:
    """Return the picture, its header above it; to be drawn and saved in a style of `style`."""
    points, numbers, looks = plot.points, plot.points["number"].unique(), _looks(plot)
    names = names_of(plot.study)
    panels = [] if plot.panel == "number" else list(points[plot.panel].unique())
    cells = [(number, value) for number in numbers for value in panels or [number]]
    cols = len(panels) or (3 if len(cells) == 3 else min(len(cells), 2))
    share = "row" if panels else "none"
    rows, called = -(-len(cells) // cols), _called(plot, names)
    kinds = [plot.color.removeprefix("line"), *", ".join(points["by"].unique()).split(", ")]
    title = fill(_list(map(names.column, kinds)), 24)
    free = len(cells) < rows * cols
    longest = max(map(len, "\n".join([title, *called.values()]).split("\n")))
    wide = 0.75 + 0.1 * longest if title and not free else 0.25
    picture, axes = style.sheet(rows, cols, height=3.2 * rows, right=wide, gap=0.65, sharey=share)
    for i, (number, value) in enumerate(cells):
        of_number = points[points["number"] == number]
        _draw_panel(plot, axes.flat[i], of_number, of_number[of_number[plot.panel] == value], looks)
        above = names.column(number.rpartition(".")[2])
        above += f", {names.column(plot.panel)} {value}" * bool(panels)
        style.panel(axes.flat[i], "abcdefghijklmnop"[i], above, names.column(plot.x))
    place, corner = (axes[-1, -1], (0, 1.03)) if free else (axes[0, -1], (1, 1.03))
    for key, look in looks.items():
        look.line(place, [], [], label=called[key], markersize=5)
    if free:
        place.set_axis_off()
    if title:
        where: Any = {"loc": "upper left", "bbox_to_anchor": corner}
        place.legend(title=title, alignment="left", handlelength=2.2, **where)
    printed = catalogue_headline("study", plot.study).partition(": ")
    source = DOT.join(filter(None, (printed[0] * bool(printed[1]), f"study {plot.study}")))
    source = source[:1].upper() + source[1:]
    picture.add_header(source, plot.headline, [(DOT.join(plot.notes), style.GREY)])
    return picture


def _looks(plot: Plot) -> dict[tuple[Any, str], style.Look]:
    """Return how each method of each color looks: markers and dashes say the method, or the color
    where there is one method. What LOOKS of the study's `figures.py` has looks as it does there."""
    hues, lines = (list(plot.points[column].unique()) for column in (plot.color, "line"))
    known = getattr(part_of(plot.study, "figures"), "LOOKS", {})
    shades = tuple(style.shades(hues, style.SKY, style.BLUE, style.NAVY).values())
    colors, looks = shades if _is_number(plot.points[plot.color]) else COLORS, {}
    for (hue, line), _ in plot.points.groupby([plot.color, "line"], sort=False):
        color = colors[hues.index(hue) % len(colors)]
        i = lines.index(line) if len(lines) > 1 else hues.index(hue)
        own = style.Look(color, MARKERS[i % 8], DASHES[i % 4], 1.8)
        if hue in known:
            is_whole = len(lines) == 1 or hue == line
            own = known[hue] if is_whole else replace(own, color=known[hue].color)
        looks[hue, line] = own
    return looks


def _draw_panel(plot: Plot, axes: Axes, of_number: pd.DataFrame, shown: pd.DataFrame,
                looks: dict[tuple[Any, str], style.Look]) -> None:  # fmt: skip
    """Draw those points of a number that are shown, on axes for all of them."""
    names, is_number = list(of_number[plot.x].unique()), _is_number(of_number[plot.x])
    place, size = _y_axis(axes, of_number["value"]), 5 if len(names) <= MOST_TICKS else 0
    axes.set_xscale(**(_scale(of_number[plot.x]) if is_number else {"value": "linear"}))
    if size or not is_number:
        places = names if is_number else range(len(names))
        called = names_of(plot.study)
        labels = [called.value(each).replace(" ", "\n") for each in names]
        style.ticks(axes.xaxis, places, labels)
    is_inside = of_number.groupby("run")[plot.x].nunique().max() > 1
    for key, part in shown.groupby([plot.color, "line", *["run"] * bool(is_inside)], sort=False):
        aside = ([*looks].index(key[:2]) - (len(looks) - 1) / 2) * min(0.14, 0.7 / len(looks))
        x = part[plot.x] if is_number else part[plot.x].map(names.index) + aside
        look, values = looks[key[:2]], part["value"].where(np.isfinite(part["value"]), np.inf)
        look.each(axes, x, place(values))
        medians, dashes = values.groupby(x).median(), look.dashes if is_number else ""
        look.line(axes, medians.index, place(medians), markersize=size, linestyle=dashes)


def _y_axis(axes: Axes, values: pd.Series) -> Callable[[Any], Any]:
    """Give the axis its scale, and a rail where values have diverged; return what places values."""
    finite = values[np.isfinite(values)]
    scale, low, high = _scale(finite), finite.min(), finite.max()
    if 0 < len(finite) < len(values):
        log = scale["value"] == "log"
        far = low * (low / high) ** 0.05 if log else low - 0.05 * (high - low or abs(high) or 1)
        return style.rail(axes, high, far, "diverged", log=log)
    axes.set_yscale(**scale)
    if scale["value"] == "linear" and 0 <= low < 0.4 * high:
        axes.set_ylim(-0.04 * high, 1.06 * high)
    axes.yaxis.get_offset_text().set_horizontalalignment("right")
    return np.asarray


def _scale(values: pd.Series) -> dict[str, Any]:
    """Return the scale of an axis: logarithmic where the values span two decades, or each is as
    many times the one before, as of 2, 4, 8; with zeros symlog."""
    positive = np.sort(values[values > 0].unique())
    steps = positive[1:] / positive[:-1]
    if (values < 0).any() or steps.prod() < 100 and (len(steps) < 2 or np.ptp(steps) > 1e-9):
        return {"value": "linear"}
    decade = 10.0 ** np.floor(np.log10(positive[0]))
    return {"value": "log"} if (values > 0).all() else {"value": "symlog", "linthresh": decade}


def write(plot: Plot, outputs: Path, out: Path | None = None) -> Path:
    """Write the picture; return its path.

    out: its file; without one it goes, with the numbers drawn and a caption, into a place below
    `outputs` that is the same for the same runs.
    """
    path = out or outputs / "sweeps" / f"{plot.name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    with style.drawn_in("screen"):
        if out:
            style.save(draw(plot), path.with_suffix(""), [path.suffix[1:]], write_named)
        else:
            style.save(draw(plot), path.with_suffix(""), ["png", "pdf"])
    if not out:
        write_atomically(path.with_suffix(".csv"), plot.points.to_csv(index=False).encode())
        write_atomically(path.with_suffix(".caption.txt"), plot.caption.encode())
    return path
