"""The tables of several runs as one: CSV and Parquet for programs, LaTeX for a paper."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

from runner.core.errors import InputError, nearest
from runner.runs.files import replaced
from runner.runs.run import Run, load
from runner.runs.selection import differing

PREAMBLE = "% \\usepackage{booktabs}\n"


def joined(runs: Sequence[Run], table: str | None = None) -> pd.DataFrame:
    """One table of complete runs of one study, with the run and its parameters in each row.

    table: its name; None for `metrics`, or the first where there is no such. Raises InputError when
    none of the runs has it, or one is damaged.
    """
    tables = load(runs)
    name = table or ("metrics" if "metrics" in tables else next(iter(tables)))
    if name not in tables:
        raise InputError(f"no run has a table {name}: {nearest(name, tables)}")
    rows = tables[name]
    lists = {name: _texts(runs, name) for name in differing(runs) if name not in rows}
    return rows.assign(**{name: rows["run"].map(texts) for name, texts in lists.items()})


def _texts(runs: Sequence[Run], name: str) -> dict[str, str]:
    """A parameter that is a list, as text for a cell, by the names of the runs."""
    return {run.folder.name: "+".join(map(str, getattr(run.config, name) or [])) for run in runs}


def concise(rows: pd.DataFrame, runs: Sequence[Run]) -> pd.DataFrame:
    """A joined table without the name of the run and the parameters that all rows share."""
    names = [name for name in vars(runs[0].config) if name in rows and rows[name].nunique() <= 1]
    return rows.drop(columns=["run", *names])


def as_csv(rows: pd.DataFrame) -> str:
    """The table as CSV."""
    return rows.to_csv(index=False)


def as_latex(rows: pd.DataFrame) -> str:
    """The table as a LaTeX tabular with the rules of booktabs; numbers to four digits."""
    number = "{:.4g}".format
    return PREAMBLE + rows.to_latex(index=False, escape=True, float_format=number, na_rep="")


def write_text(text: str, path: Path) -> None:
    """Write a file in one step. Raises InputError when it cannot be written."""
    _write(path, lambda part: part.write_text(text))


def write_parquet(rows: pd.DataFrame, path: Path) -> None:
    """Write a Parquet file in one step.

    Raises InputError when it cannot be written, or pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise InputError("--parquet needs pyarrow, which is not installed: pip install pyarrow")
    _write(path, lambda part: rows.to_parquet(part, engine="pyarrow", index=False))


def _write(path: Path, write: Callable[[Path], object]) -> None:
    try:
        with replaced(path) as part:
            write(part)
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror})") from error
