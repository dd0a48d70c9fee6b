"""The preview of one run: a picture and a summary of its tables, and how they are printed."""

import warnings
from contextlib import suppress
from dataclasses import fields
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as MplFigure

from runner.core.catalogue import config_of, headline, part_of, rows_of
from runner.results.captions import dataset_in, repeated
from runner.results.drawing import DOT, Draw, draw, upper
from runner.results.labels import names_of
from runner.results.rows import Tables
from runner.results.style import BLUE, GREY, Picture, as_bytes, drawn_in, settle, sheet
from runner.runs.files import write_atomically
from runner.runs.run import Run, load


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
        return as_bytes(picture), summary


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


def against_keys(study: str, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
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
