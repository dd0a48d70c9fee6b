"""The preview of one run: a picture of its tables and a printed summary."""

import warnings
from contextlib import suppress
from dataclasses import fields
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure as MplFigure

from runner.core.catalogue import config_of, headline, part_of, rows_of
from runner.core.studies import column_types
from runner.results.captions import dataset_in, repeated
from runner.results.drawing import DOT, Draw, draw, upper
from runner.results.labels import names_of
from runner.results.rows import Tables
from runner.results.style import BLUE, GREY, Picture, as_bytes, drawn_in, settle, sheet
from runner.runs.files import write_atomically
from runner.runs.run import Run, load


def overview_of(study: str) -> Draw:
    """Return the function that draws the preview of a study's run.

    It is the function `overview` in the study's `figures.py`. If there is none, it is
    `against_keys`.
    """
    return getattr(part_of(study, "figures"), "overview", partial(against_keys, study))


def preview(run: Run) -> tuple[bytes, pd.DataFrame]:
    """Return the preview of a complete run: the content of a PNG file, and a summary as a table.

    Raises InputError if the run is missing or damaged.
    """
    study, tables = run.config.study, load([run])
    # Numpy and matplotlib warn of the zeros, nan and inf of a diverged run.
    with drawn_in("screen"), np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        picture, summary = draw(overview_of(study), tables)
        summary = summary.drop(columns=_repeated_in(summary, study))
        settle(picture)
        if isinstance(picture, Picture):
            source, _, what = headline("study", study).replace("`", "").rpartition(": ")
            above = DOT.join(filter(None, (source or study, dataset_in(tables))))
            drawn = statistic(study, tables, summary)
            picture.add_header(upper(above), upper(what), [(drawn, GREY)])
        return as_bytes(picture), summary


def _repeated_in(summary: pd.DataFrame, study: str) -> list[str]:
    """Return the columns of a summary that say nothing new: the run and its parameters.

    A parameter stays if it varies, or if the study measures a number of the same name.
    """
    measured = {name for row_class in rows_of(study).values() for name in column_types(row_class)}
    names = {"run", *(item.name for item in fields(config_of(study)))} - measured
    return [name for name in summary if name in names and summary[name].nunique() <= 1]


def statistic(study: str, tables: Tables, summary: pd.DataFrame) -> str:
    """Return which statistic a study's preview shows: "median of 3 replicates".

    The study's `figures.py` can name another statistic in STATISTIC. The text is only "3
    replicates" if the summary names its statistics, or has a row for each replicate. It is empty
    for a single network.
    """
    replicates, named = repeated(tables), {"replicate", "statistic"} & set(summary)
    usual = "median" if replicates and not named else ""
    word = getattr(part_of(study, "figures"), "STATISTIC", usual)
    return " of ".join(filter(None, (word, replicates)))


def printed(table: pd.DataFrame, study: str) -> str:
    """Return a table as text, with the printed names of the study's columns and values."""
    rows = with_names(table, study)
    return rows.to_string(index=False, na_rep="", float_format="{:.4g}".format)


def with_names(table: pd.DataFrame, study: str) -> pd.DataFrame:
    """Return a table in which printed names replace the names of the study's columns and values."""
    names = names_of(study)
    rows = table.map(lambda value: names.value(value) if isinstance(value, str) else value)
    return rows.rename(columns=names.column)


def report(run: Run) -> str:
    """Draw the preview of a complete run as `overview.png` in its folder; return a report as text.

    The report has the summary and the paths of the run's files. If the folder cannot be written,
    there is no picture. Raises InputError if the run is missing or damaged.
    """
    png, summary = preview(run)
    with suppress(OSError):  # a complete run on a disk that is read only
        write_atomically(run.folder / "overview.png", png)
    study = run.config.study
    drawn = statistic(study, load([run]), summary)
    lines = [printed(summary, study), *filter(None, [drawn]), ""]
    lines += [str(run), f"{run.folder}: overview.png, config.yaml, run.log, provenance.json"]
    lines += [f"  {name}.csv  {table['rows']} rows" for name, table in run.result["tables"].items()]
    return "\n".join(lines)


def against_keys(study: str, tables: Tables) -> tuple[MplFigure, pd.DataFrame]:
    """Draw the numbers in a run's first table against a key; return the picture and a summary.

    A key is a column that identifies rows, such as the layer. The key with the most values is used.
    """
    name, rows = next(iter(tables.items()))
    keys = rows_of(study)[name].keys
    varied = [key for key in keys if key != "replicate" and rows[key].nunique() > 1] or [*keys]
    x = rows[varied].nunique().idxmax()
    parameters = [item.name for item in fields(config_of(study))]
    numbers = rows.select_dtypes("number").drop(columns=[*keys, *parameters], errors="ignore")
    height = max(1, -(-len(numbers.columns) // 3))
    picture, panels = sheet(height, 3, height=2.4 * height, gap=0.6)
    for panel in panels.flat[len(numbers.columns) :]:
        panel.remove()
    for panel, (column, values) in zip(panels.flat, numbers.items(), strict=False):
        panel.plot(rows[x], values, ".", color=BLUE)
        panel.set(xlabel=x, title=column)
    return picture, numbers.describe().rename_axis("statistic").reset_index()
