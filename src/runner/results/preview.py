"""The preview of one run: a picture of its tables and a printed summary."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import partial
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as MplFigure
from matplotlib.ticker import AutoLocator

from runner.core.catalogue import config_of, part_of, rows_of, title_of
from runner.core.studies import column_types
from runner.results.captions import caption, dataset_in, repeated
from runner.results.drawing import DOT, Draw, draw, upper
from runner.results.finishing import settle
from runner.results.formats import drawn_in
from runner.results.labels import names_of
from runner.results.rows import Tables, with_names
from runner.results.style import (
    PALETTE,
    Look,
    Picture,
    as_bytes,
    name_ends,
    panel,
    sheet,
)
from runner.runs.run import Run, load

MOST_ROWS = 40
"""The largest number of rows of a printed summary."""


def overview_of(study: str, tables: Tables) -> Draw:
    """Return the function that draws the preview of a study's run with these tables.

    It is the function `overview` in the study's `figures.py`. There, `overview` may also be a
    function for each table that a run can have. If there is none, it is `against_keys`.
    """
    drawing = getattr(part_of(study, "figures"), "overview", partial(against_keys, study))
    if isinstance(drawing, Mapping):
        return next(draw for table, draw in drawing.items() if table in tables)
    return drawing


def preview(run: Run) -> tuple[bytes, pd.DataFrame]:
    """Return the preview of a complete run: the content of a PNG file, and a summary as a table.

    A summary of more than MOST_ROWS rows is reduced to 20 to 40 evenly spaced rows. Raises
    InputError if the run is missing or damaged.
    """
    study, tables = run.config.study, load([run])
    # Numpy and matplotlib warn of the zeros, nan and inf of a diverged run.
    with drawn_in("screen"), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        picture, summary = draw(overview_of(study, tables), tables)
        summary = summary.drop(columns=_repeated_in(summary, study))
        summary = summary.iloc[:: max(1, len(summary) // 20) if len(summary) > MOST_ROWS else 1]
        settle(picture)
        whole_ticks(picture)
        if isinstance(picture, Picture):
            source = _titles(study)[0]
            drawn = statistic(tables, summary)
            above = DOT.join(filter(None, (source or study, dataset_in(tables), drawn)))
            picture.add_header(upper(above), title(run))
        return as_bytes(picture), summary


def _titles(study: str) -> tuple[str, str]:
    """Return where a study is from, and what it shows: "paper B, figure 1", "ranks by depth"."""
    source, _, what = title_of("study", study).replace("`", "").rpartition(": ")
    return source, getattr(part_of(study, "figures"), "TITLE", what)


def title(run: Run) -> str:
    """Return the title of a run's preview: "Rank by layer and training: depth 32, digits".

    It names the main parameters, the width and the data of the run, and what is on the x-axis.
    """
    study, values = run.config.study, vars(run.config)
    facts = []
    for name in dict.fromkeys([*run.config.named, *USUAL]):
        if (value := values.get(name)) is not None:
            listed = value if isinstance(value, list) else [value]
            printed = [names_of(study).value(name, one) for one in listed]
            text = ", ".join(printed) if len(listed) < 4 else f"{printed[0]} to {printed[-1]}"
            speaks = name in ("data", "architecture") or printed != [*map(str, listed)]
            is_alone = isinstance(listed[0], str) and speaks
            facts.append(text if is_alone else f"{name.replace('_', ' ')} {text}")
    return upper(": ".join(filter(None, (_titles(study)[1], ", ".join(facts)))))


USUAL = ("width", "data")
"""Parameters that the title of a preview names in addition to the main ones."""


def described(run: Run) -> str:
    """Return the caption of a run's preview.

    It is in the study's `figures.py`: CAPTION, or the caption of the figure that the preview draws.
    """
    study, tables = run.config.study, load([run])
    words = getattr(part_of(study, "figures"), "CAPTION", "")
    for drawing in getattr(part_of(study, "figures"), "FIGURES", []):
        if not words and drawing.draw == overview_of(study, tables):
            words = drawing.caption
    return caption(title(run), words, study, tables)


def whole_ticks(picture: MplFigure) -> None:
    """Put the ticks of a linear x-axis at whole numbers if all points are at whole numbers.

    These are axes with layers, epochs or depths. Ticks that were set by hand stay.
    """
    for axes in picture.axes:
        points = [
            np.asarray(line.get_xdata(orig=False), float)
            for line in axes.lines
            if all(line.get_transform().contains_branch_seperately(axes.transData))
        ]
        x = np.concatenate([np.array([]), *points])
        locator = axes.xaxis.get_major_locator()
        if isinstance(locator, AutoLocator) and x.size and (x[np.isfinite(x)] % 1 == 0).all():
            locator.set_params(integer=True)


def _repeated_in(summary: pd.DataFrame, study: str) -> list[str]:
    """Return the columns of a summary that say nothing new: the run and its parameters.

    A parameter stays if it varies, or if the study measures a number of the same name.
    """
    measured = {name for row_class in rows_of(study).values() for name in column_types(row_class)}
    names = {"run", *(item.name for item in fields(config_of(study)))} - measured
    return [name for name in summary if name in names and summary[name].nunique() <= 1]


def statistic(tables: Tables, summary: pd.DataFrame) -> str:
    """Return which statistic a preview shows: "median of 3 replicates".

    It is the mean if the summary has standard errors. The text is only "3 replicates" if the
    summary names its statistics, or has a row for each replicate. It is empty for a single network.
    """
    replicates, named = repeated(tables), {"replicate", "statistic"} & set(summary)
    word = "mean" if any(name.endswith("_se") for name in summary) else "median"
    return " of ".join(filter(None, (word if replicates and not named else "", replicates)))


def printed(table: pd.DataFrame, study: str) -> str:
    """Return a table as text, with the printed names of the study's columns and values."""
    rows = with_names(table, study)
    return rows.to_string(index=False, na_rep="", float_format="{:.4g}".format)


def summary_of(run: Run, summary: pd.DataFrame) -> str:
    """Return the printed summary of a run, and which statistic it has.

    summary: the table that `preview` returns. Its smallest and largest values are not printed.
    """
    drawn = statistic(load([run]), summary)
    ends = [f"{column}{end}" for column in summary for end in ("_low", "_high")]
    shown = summary.drop(columns=ends, errors="ignore")
    return "\n".join([printed(shown, run.config.study), *filter(None, [drawn]), *_numberless(run)])


def _numberless(run: Run) -> Iterator[str]:
    """Yield a line about each method that ends some tables, at the last layer or step, with NaN."""
    found: dict[str, list[str]] = {}
    for table, rows in load([run]).items():
        row_class = rows_of(run.config.study)[table]
        kinds, keys = column_types(row_class), row_class.keys
        numbers = [name for name in kinds if kinds[name] is float and name not in keys]
        methods = [key for key in keys if kinds[key] not in (int, float)]
        if not numbers or not methods:
            continue
        for step in [key for key in keys if key not in (*methods, "replicate")]:
            rows = rows[rows[step] == rows.groupby(methods)[step].transform("max")]
        is_finite = np.isfinite(rows[numbers]).any(axis=1)
        some = is_finite.groupby([rows[key] for key in methods]).any()
        for method in some.index[~some]:
            name = method if isinstance(method, str) else ", ".join(map(str, method))
            found.setdefault(name, []).append(table)
    for name, tables in found.items():
        yield f"{name}: all numbers in {', '.join(tables)} are NaN or infinite at the end"


MOST_SERIES = 6
"""The largest number of values of a key that have colors in `against_keys`."""


def against_keys(study: str, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
    """Draw the numbers in a run's first table against a key; return the picture and a summary.

    A key is a column that identifies rows, such as the layer. The key with the most values is on
    the x-axis, and a second key has colors.
    """
    name, rows = next(iter(tables.items()))
    names, keys = names_of(study), rows_of(study)[name].keys
    counts = rows[[key for key in keys if key != "replicate"] or [*keys]].nunique()
    x = counts.idxmax()
    series = [key for key in counts.index if key != x and 1 < counts[key] <= MOST_SERIES]
    groups = [("", rows)] if not series else list(rows.groupby(series[-1], sort=False))
    parameters = [item.name for item in fields(config_of(study))]
    numbers = rows.select_dtypes("number").drop(columns=[*keys, *parameters], errors="ignore")
    cols = min(3, max(1, len(numbers.columns)))
    height = max(1, -(-len(numbers.columns) // cols))
    picture, grid = sheet(height, cols, height=2.7 * height, gap=0.7, right=1.5 if series else 0.15)
    for axes in grid.flat[len(numbers.columns) :]:
        axes.remove()
    for letter, axes, column in zip(ascii_lowercase, grid.flat, numbers, strict=False):
        panel(axes, letter, names.column(column), names.column(x))
        values = numbers[column][np.isfinite(numbers[column])]
        if len(values) and values.min() > 0 and values.max() > 100 * values.min():
            axes.set_yscale("log")
        ends = []
        for (value, group), color in zip(groups, PALETTE, strict=False):
            axes.plot(group[x], group[column], ".", color=color, ms=7)
            last = group.loc[group[column].notna()].sort_values(x)[column].iloc[-1:]
            text = names.value(series[-1], value) if series else ""
            ends += [(end, text, Look(color)) for end in last if series]
        if axes in grid[:, -1]:
            name_ends(axes, ends)
    return picture, numbers.describe().rename_axis("statistic").reset_index()
