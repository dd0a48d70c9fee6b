"""The tables of several runs as one table, also as means over replicates, and in LaTeX."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from runner.core.catalogue import rows_of
from runner.core.errors import InputError, nearest
from runner.core.studies import column_types
from runner.runs.folder_names import shown
from runner.runs.inventory import short_hash
from runner.runs.query import differing
from runner.runs.run import OF_IMAGES, Run, load

MOST_DECIMALS = 12
"""How many decimals a mean has in LaTeX at most. A smaller deviation is rounding."""

MOST_COLUMNS = 12
"""How many columns of a LaTeX table fit a page."""


PARTS = ("mean", "std", "n", "median", "low", "high", "diverged")
"""The endings of the columns that `means` has for each measurement."""


def joined(runs: Sequence[Run], table: str | None = None) -> tuple[str, pd.DataFrame]:
    """Return the name and the rows of one table, joined over complete runs of one study.

    table: the name; None: `metrics`, or the first table if there is no `metrics`. Parameters of the
    runs are columns. A parameter that is a list, or null in a run, becomes text. Raises InputError
    if no run has the table.
    """
    tables = load(runs)
    name = table or ("metrics" if "metrics" in tables else next(iter(tables)))
    if name not in tables:
        raise InputError(f"no run has a table {name}: {nearest(name, tables)}")
    rows, row_class = tables[name], rows_of(runs[0].config.study).get(name)
    measured = column_types(row_class) if row_class else {}
    for key in vars(runs[0].config):
        values = {run.key: getattr(run.config, key) for run in runs}
        if key not in measured and any(isinstance(v, list | dict | None) for v in values.values()):
            rows[key] = rows["run"].map(_texts(values))
    return name, rows


def _texts(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a parameter as texts, by the run's name."""
    return {run: shown(value) for run, value in values.items()}


def with_empty_cells(rows: pd.DataFrame, table: str, runs: Sequence[Run]) -> pd.DataFrame:
    """Return the rows with empty cells where nothing was measured.

    A NaN that was measured stays. A run has not measured the columns that its table lacks. In a
    column whose default is NaN, every NaN means that nothing was measured. table: the table's name.
    runs: the runs behind the rows.
    """
    row_class = rows_of(runs[0].config.study).get(table)
    columns = {run.key: run.result["tables"].get(table, {}).get("columns", {}) for run in runs}
    for name in column_types(row_class) if row_class else ():
        default = getattr(row_class, name, None)
        is_optional = isinstance(default, float) and math.isnan(default)
        lacking = [run for run in columns if name not in columns[run]]
        is_empty = rows[name].isna() & (is_optional | rows["run"].isin(lacking))
        if is_empty.any():
            rows = rows.assign(**{name: rows[name].astype(object).mask(is_empty, "")})
    return rows


def filled(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with empty texts where a value is absent, whatever the column's type."""
    absent = [name for name in rows if rows[name].isna().any()]
    return rows.assign(
        **{name: rows[name].astype(object).mask(rows[name].isna(), "") for name in absent}
    )


def only(rows: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return only these columns, in this order; all if there are none.

    Raises InputError for an unknown column.
    """
    for name in columns:
        if name not in rows:
            raise InputError(f"no column {name}: {nearest(name, rows)}")
    return rows[[*dict.fromkeys(columns)]] if columns else rows


def fitting(rows: pd.DataFrame, run: Run, columns: Sequence[str]) -> tuple[pd.DataFrame, list[str]]:
    """Return rows for a table that fits a page, with notes on the columns that were left out.

    Columns that are equal in all rows are left out, unless the user has named the columns. run: any
    of the runs; only the names of its parameters are used. columns: the names that the user gave.
    Raises InputError if more columns remain than a page holds; means may have more.
    """
    if columns:
        return rows, []
    has_means, parameters = "run" not in rows, vars(run.config)
    rows = rows.drop(columns="run", errors="ignore")
    equal = {name: rows[name].iloc[0] for name in rows if rows[name].nunique(dropna=False) < 2}
    if len(rows) == 1:
        equal = {name: value for name, value in equal.items() if name in parameters}
    rows = rows.drop(columns=[*equal])
    if rows.shape[1] > MOST_COLUMNS and not has_means:
        few = ",".join(list(rows)[:3])
        raise InputError(
            f"{rows.shape[1]} columns are too many for a page: name some, --columns {few},"
            f" or average replicates, --mean\ncolumns: {', '.join(rows)}"
        )
    told = [f"{name} = {value}" for name, value in equal.items() if name not in parameters]
    return rows, [f"equal in all rows: {', '.join(told)}"] if told else []


def means_of(found: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Return means of only these measurements, in this order; of all if there are none.

    found: the result of `means`. Columns that tell the rows apart stay; those that are not named
    come first. Raises InputError for an unknown measurement.
    """
    of = _measured(found)
    known, names = {*of.values()} | ({*found} - {*of}), [of.get(name, name) for name in found]
    for name in columns:
        if name not in known:
            raise InputError(f"no measured or varied column {name}: {nearest(name, known)}")
    order = {name: place for place, name in enumerate(columns)}
    pairs = sorted(zip(names, found, strict=True), key=lambda pair: order.get(pair[0], -1))
    return found[[c for name, c in pairs if not columns or name in order or c not in of]]


def _measured(found: pd.DataFrame) -> dict[str, str]:
    """Return the measurement of each column `<measurement>_<part>` in a result of `means`."""
    stems = [column.removesuffix("_std") for column in found]
    names = [name for name in stems if {f"{name}_mean", f"{name}_std"} <= {*found}]
    parts = {f"{name}_{part}": name for name in names for part in PARTS}
    return {column: name for column, name in parts.items() if column in found}


def means(rows: pd.DataFrame, runs: Sequence[Run], table: str) -> pd.DataFrame:
    """Return the mean of each measurement over replicates and seeds.

    The result has a row for each combination of the other keys and parameters that vary, and the
    number of replicates `n`; replicates with equal numbers count once, see `without_copies`. A
    measurement `x` has the columns `x_mean`, `x_std` (nan for one value) and `x_n`, the number of
    its finite values. If some values are not finite, the column `x_diverged` lists their
    replicates. With enough replicates for an interval there are also `x_median`, `x_low` and
    `x_high`, the confidence limits of the median, for which a value that is not finite is beyond
    either limit. Rows with too few replicates have nan for the limits.

    A parameter that differs between runs replaces a measured column of the same name, for example
    the learning rate. A key may be the outcome of a replicate, such as a learning rate that was
    chosen for this replicate. It is then averaged like a measurement. rows: the result of `joined`.
    table: the table's name.
    """
    from runner.results.evidence import median_limits, replicates_needed  # late: imports scipy
    from runner.results.rows import copies, without_copies

    row_class = rows_of(runs[0].config.study).get(table)
    row_keys, columns = (row_class.keys, column_types(row_class)) if row_class else ((), {})
    empty = with_empty_cells(rows, table, runs).eq("")
    replaced = [name for name in differing(runs) if name in columns and name not in row_keys]
    for name in replaced:
        values = {run.key: getattr(run.config, name) for run in runs}
        rows = rows.assign(**{name: rows["run"].map(_texts(values))})
    configurations = {run.key: _without_seed(run) for run in runs}
    rows = rows.assign(configuration=rows["run"].map(configurations))
    own = [key for key in row_keys if _is_outcome(rows, key, [*row_keys])]
    others = {*vars(runs[0].config), *OF_IMAGES}
    keys = {*row_keys, *replaced, *others} - ({*columns} - {*row_keys, *replaced})
    keys -= {*own}
    numbers = [name for name in rows.select_dtypes("number") if name not in keys]
    varied = [name for name in rows if name in keys and rows[name].nunique(dropna=False) > 1]
    by = [name for name in varied if name not in ("seed", "replicate")]
    rows = without_copies(rows, copies(rows, numbers), [*by, "configuration"])
    empty = empty.loc[rows.index]
    finite = rows[numbers].where(np.isfinite(rows[numbers]))
    names = rows["run"].map(short_hash) if len(runs) > 1 else pd.Series("", rows.index)
    if "replicate" in rows:
        names = (rows["replicate"].astype(str) + " of " + names).str.removesuffix(" of ")
    groups = [rows[name] for name in [*by, "configuration"]]
    of_group = finite.groupby(groups, sort=False, dropna=False)
    parts = {"mean": of_group.mean(), "std": of_group.std(), "n": of_group.count()}
    found = pd.DataFrame({"n": of_group.size()})
    for name in numbers:
        found = found.assign(**{f"{name}_{part}": parts[part][name] for part in parts})
        if found["n"].max() >= replicates_needed():
            there = finite.loc[~empty[name], name]
            limits = there.groupby([g[there.index] for g in groups], dropna=False).agg(
                lambda values: (
                    median_limits(values.to_numpy(float))
                    if len(values) >= replicates_needed()
                    else (math.nan, math.nan)
                )
            )
            found[f"{name}_median"] = of_group[name].median()
            for i, part in enumerate(("low", "high")):
                found[f"{name}_{part}"] = limits.str[i].reindex(found.index)
        diverged = names[finite[name].isna() & ~empty[name]]
        if len(diverged):
            lost = diverged.groupby([group[diverged.index] for group in groups], dropna=False)
            found[f"{name}_diverged"] = lost.agg(", ".join).reindex(found.index, fill_value="")
    return found.reset_index().drop(columns="configuration")


def _without_seed(run: Run) -> str:
    """Return the parameters of a run as text, without its seed."""
    return json.dumps({**run.config.identity(), "seed": None}, sort_keys=True)


def _is_outcome(rows: pd.DataFrame, key: str, keys: Sequence[str]) -> bool:
    """Return whether a key has one value in each replicate that differs between replicates."""
    others = [name for name in keys if name not in (key, "replicate")]
    if key == "replicate" or "replicate" not in keys:
        return False
    counts = [
        rows.groupby(by, dropna=False)[key].nunique(dropna=False).max()
        for by in (["run", "replicate", *others], ["configuration", *others])
    ]
    return bool(counts[0] == 1 < counts[1])


def means_in_tex(found: pd.DataFrame, run: Run, columns: Sequence[str] = ()) -> str:
    """Return means as a LaTeX table, with `$mean \\pm standard deviation$` in each cell.

    found: the result of `means_of`. run, columns: as in `fitting`. If some values are not finite,
    the cell says how many are, and comments at the top name the replicates that diverged.
    """
    of, cells, notes = _measured(found), dict[str, Any](), list[str]()
    for name in dict.fromkeys(of.get(column, column) for column in found if column != "n"):
        if name not in of.values():
            cells[name] = found[name]
            continue
        diverged = found.get(f"{name}_diverged", pd.Series("", found.index))
        parts = [found[f"{name}_{part}"] for part in ("mean", "std", "n")]
        numbers = zip(*parts, found["n"], diverged, strict=True)
        cells[name] = [_cell_in_tex(*cell) for cell in numbers]
        if any(diverged):
            lost = "; ".join(dict.fromkeys(filter(None, diverged)))
            notes.append(f"{name}: diverged and left out: replicate {lost}")
    table, equal = fitting(pd.DataFrame(cells), run, columns)
    return latex(table.assign(n=found["n"]), [*notes, *equal])


def _cell_in_tex(mean: float, deviation: float, n: int, total: int, diverged: str) -> str:
    """Return a mean with its deviation, and with its number of values if some are absent."""
    if not n:
        return "diverged" if diverged else "--"
    return mean_in_tex(mean, deviation) + (f" ({n} of {total})" if n < total else "")


def latex(rows: pd.DataFrame, notes: Sequence[str] = ()) -> str:
    """Return rows as a LaTeX table (booktabs). Formulas between dollar signs are not changed.

    notes: comments above the table. Raises InputError if pandas refuses the installed jinja2.
    """
    try:
        style = rows.style
    except (ImportError, AttributeError) as error:  # pandas asks for a newer jinja2, or for one
        hint = "pip install --upgrade jinja2, or take --csv"
        raise InputError(f"no LaTeX table: {error}: {hint}") from error
    styled = style.format(number_in_tex, escape="latex-math").hide(axis="index")
    tabular = styled.format_index(escape="latex", axis="columns").to_latex(hrules=True)
    return "".join(f"% {line}\n" for line in ("\\usepackage{booktabs}", *notes)) + tabular


def mean_in_tex(mean: float, deviation: float) -> str:
    """Return a mean with as many digits as its standard deviation justifies: `$13.6 \\pm 0.2$`.

    The deviation has one digit, or two if the first is 1. Without a deviation (nan), or with the
    deviation 0 or one below rounding, the mean has four digits, and a whole number all. Large and
    small numbers have a power of ten: `$(4.4 \\pm 0.3) \\times 10^{-16}$`.
    """
    if math.isnan(deviation):
        return str(number_in_tex(float(mean)))
    largest = max(abs(mean), deviation)
    power = math.floor(math.log10(largest)) if largest else 0
    power = 0 if -4 < power < 5 else power
    mean, deviation = mean / 10.0**power, deviation / 10.0**power
    digits = f"{deviation:.1e}".partition("e")
    decimals = (digits[0][0] == "1") - int(digits[2])
    if not deviation or decimals > MOST_DECIMALS:
        pair = f"{mean:.{max(4, len(f'{abs(mean):.0f}'))}g} \\pm 0"
    else:
        pair = f"{mean:.{max(decimals, 0)}f} \\pm {deviation:.{max(decimals, 0)}f}"
    return f"$({pair}) \\times 10^{{{power}}}$" if power else f"${pair}$"


def number_in_tex(value: Any, digits: int = 4) -> Any:
    """Return a float in LaTeX: `1.234`, `$1.2 \\times 10^{-16}$`, `$\\infty$` or `nan`.

    digits: how many significant digits. A text that is a number in scientific notation is
    converted, too. Any other value is returned unchanged.
    """
    if isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?e[+-]\d+", value):
        value = float(value)  # a parameter with several values is text
    if not isinstance(value, float):
        return value
    if math.isinf(value):
        return "$\\infty$" if value > 0 else "$-\\infty$"
    number, _, exponent = f"{value:.{digits}g}".partition("e")
    return f"${number} \\times 10^{{{int(exponent)}}}$" if exponent else number
