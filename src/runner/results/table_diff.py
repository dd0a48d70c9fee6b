"""Compare two tables of the same runs, and tell chance from difference.

`runs diff`, `compare` and `reference` use this module. Rows are matched by their keys. The rows of
one point (one width, one method) are its replicates. Only the reference's replicates give the
tolerance. The other table's replicates would excuse damage in this table.

| compared | differs by more than chance if |
| --- | --- |
| rows | one table lacks a row, or has it twice |
| median of a point | it moved by more than the standard deviation of the replicates, and by more \
than CHANCE standard errors |
| one replicate | it is FAR standard deviations away from the median |
| point with one row | as a median; the column `<name>_se` is its standard error. An estimate \
without this column may be off by 100 % |
| standard error | as a median; its relative error is ERROR_OF_ERROR |
| all numbers of a column, or of one value of a key | all are multiplied by the same factor |
| column of rounding errors, all up to TINY | their median size changed by more than the factor \
SIZE |
| texts, truth values, nan and inf | more rows differ than in two independent draws from the \
reference, by CHANCE standard errors |

The standard deviation of a point is at least the usual standard deviation in its column. Relative
differences up to DRIFT and absolute differences up to ROUNDING are always chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from runner.core.studies import Row

CHANCE = 5.0
"""How many standard errors chance explains. With a smaller bound, some of thousands of numbers
would differ by chance."""

DRIFT = 1e-3
"""The relative difference between machines in a number without spread: many steps amplify the
rounding."""

ROUNDING = 1e-9
"""Largest difference by rounding, relative to the larger of the number and one.

Inputs, weights and losses are of order one. Numbers that should be zero, for example the error of
an exact construction (1e-13), differ between processors.
"""

FAR = 100.0
"""How many standard deviations from the median a single replicate must be to count as damaged."""

ERROR_OF_ERROR = 1 / 8
"""Relative standard error of a standard error that comes from 32 batches."""

LEAST_FACTOR, SAME_FACTOR, FEWEST = 1e-2, 0.05, 6
"""At least FEWEST different numbers have one factor if it differs from one by LEAST_FACTOR, and the
numbers' own factors differ from each other by SAME_FACTOR of this difference."""

TINY = ROUNDING / LEAST_FACTOR
"""Numbers that rounding may change by a factor are at most so large."""

SIZE = 30.0
"""By which factor the median size of rounding errors may differ between processors.

With other instructions of one processor, the medians of two columns differed by up to 6 %, and
single numbers by factors up to 80. Squares of errors differ more.
"""

COLUMNS = ("column", "equal", "rounding", "differ", "largest", "at", "beyond", "deviation", "where")
ROWS = "(rows)"
"""The name of the line about the rows, in the result of `compare`."""

ORDER, SIDE = "order of rows", "side"


@dataclass(frozen=True)
class Difference:
    """Our value and theirs in each row, their distance, and the distance that chance explains.

    Series over the rows. of_point: the values are medians of a point, not numbers of a row.
    """

    ours: pd.Series
    theirs: pd.Series
    distance: pd.Series
    tolerance: pd.Series
    of_point: bool = False

    @property
    def share(self) -> pd.Series:
        """Return the distance as a fraction of the tolerance; 0 where nothing can be compared."""
        with np.errstate(all="ignore"):
            return (self.distance / self.tolerance).fillna(0.0)


def compare(new: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row] | None) -> pd.DataFrame:
    """Compare two tables of the same runs; return a frame with a line for each compared column.

    The first line, ROWS, is about rows that only one table has, or has twice. Then there is a line
    for each column that both tables have, except keys.

    - new, kept: tables A and B; B is the reference;
    - row_class: the class of the rows in both tables; None if it no longer exists.

    A point is the set of rows that differ only in the replicate. The columns of a line are:

    - `equal`, `rounding`, `differ`: how many rows agree, differ by rounding, or differ more;
    - `largest`: the largest difference relative to the larger number, inf for texts;
    - `at`: the row with this difference;
    - `beyond`: how many points differ by more than chance;
    - `deviation`: the largest difference as a fraction of the tolerance;
    - `where`: the point with this difference, if it is more than chance.
    """
    keys = ["run", *(row_class.keys if row_class else ())]
    keys = [key for key in keys if key in new and key in kept]
    values = {key: (new[key].unique(), kept[key].unique()) for key in keys}
    # A key with another single value in each table would match no rows.
    apart = [key for key, (a, b) in values.items() if len(a) == len(b) == 1 and a[0] != b[0]]
    keys = [key for key in keys if key not in apart]
    sides = [table.drop(columns=apart) for table in (new, kept)]
    for table in sides:
        table[ORDER] = table.groupby(keys, dropna=False).cumcount() if keys else table.index
    suffixes = (" A", " B")
    rows = sides[0].merge(sides[1], "outer", [*keys, ORDER], suffixes=suffixes, indicator=SIDE)
    lines = [_compare_rows(rows, keys, row_class)]
    rows = rows[rows[SIDE] == "both"]
    names = [name for name in kept if name in new and name not in [*keys, *apart]]
    lines += [_compare_column(name, rows, keys, names) for name in names]
    return pd.DataFrame(lines, columns=list(COLUMNS))


def _compare_column(name: str, rows: pd.DataFrame, keys: list[str], names: list[str]
                    ) -> tuple[Any, ...]:  # fmt: skip
    """Return the line about a column.

    rows: the rows that both tables have, with the columns `<name> A` and `<name> B`. names: all
    columns that are compared.
    """
    a, b = rows[f"{name} A"], rows[f"{name} B"]
    point_keys = [key for key in keys if key != "replicate"]
    points = rows.groupby(point_keys, dropna=False).ngroup() if point_keys else rows[ORDER] * 0
    differences = [_compare_values(a, b, points)]
    if _is_number(a) and _is_number(b):
        error = ERROR_OF_ERROR * b if name.endswith("_se") else rows.get(f"{name}_se B")
        has_errors = any(other.endswith("_se") for other in names)
        is_estimate = "replicate" in keys or (has_errors and error is None)
        differences += _compare_numbers(a, b, points, error, is_estimate)
    shares = pd.concat([difference.share for difference in differences], axis=1)
    share = shares.max(axis=1)
    distance = pd.Series(distances(a.to_numpy(), b.to_numpy()), rows.index)
    at = where = ""
    if (distance > ROUNDING).any():
        row = distance.idxmax()
        at = f"{_row_name(rows.loc[row], keys)}: {_pair(a[row], b[row])}"
    if (share > 1).any():
        row = share.idxmax()
        worst = differences[shares.loc[row].argmax()]
        point = _row_name(rows.loc[row], point_keys if worst.of_point else keys)
        where = f"{point}: {_pair(worst.ours[row], worst.theirs[row])}"
    if at and _is_number(a) and _is_number(b):
        for factor, text in (_one_factor(a, b, rows[keys]), _other_size(a, b)):
            share, where = np.maximum(share, factor), where or text
    return _line(name, distance, share, points, at, where)


def _line(column: str, distance: pd.Series, share: pd.Series, points: pd.Series, *texts: str
          ) -> tuple[Any, ...]:  # fmt: skip
    """Return the line about a column, in the order of COLUMNS.

    distance: the relative difference of each row. share: the difference as a fraction of the
    tolerance. points: the point of each row. texts: the entries `at` and `where`.
    """
    equal, rounding = (distance == 0).sum(), (distance <= ROUNDING).sum()
    counts = (equal, rounding - equal, len(distance) - rounding)
    largest, deviation = (side.max() if len(side) else 0.0 for side in (distance, share))
    beyond = points[share > 1].nunique()
    return column, *map(int, counts), largest, texts[0], beyond, deviation, texts[1]


def _compare_rows(rows: pd.DataFrame, keys: list[str], row_class: type[Row] | None
                  ) -> tuple[Any, ...]:  # fmt: skip
    """Return the line about the rows: rows that one table lacks, or has twice.

    If rows need not be in every replicate, chance explains the absence of single rows, but not of
    replicates.
    """
    alone = beyond = rows[SIDE] != "both"
    text = ""
    if row_class and not row_class.in_every_replicate and "replicate" in keys:
        in_a, in_b = (
            {*rows.loc[rows[SIDE] != other, "replicate"]} for other in ("right_only", "left_only")
        )
        beyond = alone & (rows["replicate"].isin(in_a ^ in_b) | (rows[ORDER] > 0))
    if alone.any():
        first = rows[beyond if beyond.any() else alone].iloc[0]
        again = "again, " if first[ORDER] and keys else ""
        counts = rows[SIDE].value_counts()
        text = f"{counts['left_only']} only in A, {counts['right_only']} only in B"
        text += f": {again}{_row_name(first, keys)}"
    distance, share = (mask.map({True: np.inf, False: 0.0}) for mask in (alone, beyond))
    return _line(ROWS, distance, share, rows.index.to_series(), text, text)


def _compare_numbers(a: pd.Series, b: pd.Series, points: pd.Series, error: pd.Series | None,
                     is_estimate: bool) -> tuple[Difference, Difference]:  # fmt: skip
    """Compare the medians of each point, and the number of each row with the reference's median.

    A point that has other finite rows than in the reference gets nan; `_compare_values` judges it.
    """
    same = (np.isfinite(a) == np.isfinite(b)).groupby(points).transform("all")
    a, b = (side.where(np.isfinite(side) & same) for side in (a, b))
    median_a, median = (side.groupby(points).transform("median") for side in (a, b))
    count, deviation = (b.groupby(points).transform(measure) for measure in ("count", "std"))
    size = median.abs()
    repeated = size.where(deviation.notna())
    usual = float(is_estimate)
    if repeated.any():  # a far replicate affects only its own point
        usual = np.minimum(deviation, FAR * repeated).sum() / max(repeated.sum(), ROUNDING)
    deviation = np.maximum(deviation.fillna(0.0), usual * size)
    error = deviation if error is None else np.maximum(deviation, error.fillna(0.0))
    parts = [CHANCE * np.sqrt(2 / count) * error, deviation, DRIFT * size]
    tolerance = pd.concat(parts, axis=1).max(axis=1).clip(lower=ROUNDING)
    whole = float(b.dtype.kind in "iu")
    far = np.maximum(tolerance, FAR * deviation).clip(lower=whole)
    return (
        Difference(median_a, median, (median_a - median).abs(), tolerance, of_point=True),
        Difference(a, median, (a - median).abs(), far),
    )


def _one_factor(a: pd.Series, b: pd.Series, keys: pd.DataFrame) -> tuple[pd.Series, str]:
    """Return a `share` above one for numbers that are multiplied by one factor, and where they are.

    The numbers are those of a whole column, or of one value of a key, for example of a replicate.
    Numbers that rounding may change by a factor are not looked at.
    """
    share, text = pd.Series(0.0, b.index), ""
    is_large = np.isfinite(a) & np.isfinite(b) & (b.abs() > TINY)
    a, b = a[is_large], b[is_large]
    ratio, everything = a / b, pd.Series("all rows", b.index)
    for name, key in [("", everything), *keys.loc[is_large].items()]:
        by = ratio.groupby(key, dropna=False)
        factor = by.transform("median")
        apart = (by.transform("max") - by.transform("min")) / (factor - 1).abs()
        counts = b.groupby(key, dropna=False).transform("nunique")
        is_one = (apart <= SAME_FACTOR) & (counts >= FEWEST)
        found = ((factor - 1).abs() / LEAST_FACTOR).where(is_one, 0.0)
        if not text and (found > 1).any():
            first = found.idxmax()
            text = f"{f'{name}={key[first]}' if name else key[first]}: times {factor[first]:.6g}"
        share.loc[found.index] = np.maximum(share[found.index], found)
    return share, text


def is_rounding(column: pd.Series) -> bool:
    """Return whether a column has rounding errors alone: numbers of at most TINY, not all zero."""
    if column.dtype.kind != "f":
        return False
    size = column[np.isfinite(column)].abs()
    return bool((size > 0).any() and size.max() <= TINY)


def _other_size(a: pd.Series, b: pd.Series) -> tuple[pd.Series, str]:
    """Return a `share` above one for rounding errors of another size, and by which factor.

    Zeros do not count, since a processor may round to an exact result.
    """
    share, text = pd.Series(0.0, b.index), ""
    counted = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    if is_rounding(b) and counted.sum() >= FEWEST:
        factor = a[counted].abs().median() / b[counted].abs().median()
        share[counted] = abs(np.log(factor)) / np.log(SIZE)
        text = f"all rows: {factor:.2g} times the size" if (share > 1).any() else ""
    return share, text


def _compare_values(a: pd.Series, b: pd.Series, points: pd.Series) -> Difference:
    """Compare texts, truth values, nan and inf: how many rows differ, and how many may by chance.

    Chance is a second independent draw from the reference's rows of the same point. Numbers differ
    here only if one of them is not finite.
    """
    kinds = [a, b]
    if _is_number(a) and _is_number(b):
        kinds = [side.where(~np.isfinite(side), 0.0) for side in kinds]
    new, kept = np.split(pd.factorize(pd.concat(kinds))[0], 2)  # nan is -1 on either side
    codes = pd.Series(kept, b.index)
    alike = codes.groupby([points, codes]).transform("size")
    count = codes.groupby(points).transform("size")
    expected = ((count - alike) / (count - 1).clip(lower=1)).sum()
    differ = new != kept
    return Difference(
        a,
        b,
        distance=pd.Series(np.where(differ, differ.sum(), 0.0), b.index),
        tolerance=pd.Series(expected + CHANCE * np.sqrt(expected), b.index),
    )


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "iuf"


def _row_name(row: pd.Series, keys: Sequence[str]) -> str:
    """Return the keys of a row, with their values."""
    return ", ".join(f"{key}={row[key]}" for key in keys or [ORDER])


def _pair(a: Any, b: Any) -> str:
    """Return two different values, with enough digits to show the difference."""
    short = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in (a, b)]
    return " and ".join(short if short[0] != short[1] else map(str, (a, b)))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the difference of each pair of values, relative to the larger number.

    a, b: arrays (n,). Different texts have the difference inf, and so have nan and a number. Two
    nans are equal, and so are two infinities of the same sign.
    """
    same = (a == b) | (pd.isna(a) & pd.isna(b))
    if not all(np.issubdtype(side.dtype, np.number) for side in (a, b)):
        return np.where(same, 0.0, np.inf)
    a, b = a.astype(float), b.astype(float)
    with np.errstate(all="ignore"):
        relative = np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))
    return np.where(same, 0.0, np.where(np.isnan(relative), np.inf, relative))


def alike(compared: pd.DataFrame) -> str:
    """Return in words how similar the numbers of several tables are to the reference.

    compared: lines of `compare`, with the additional column `table`.
    """
    if not compared["equal"].any():
        return "nothing to compare"
    if not compared["differ"].any():
        return f"equal{' up to rounding' if compared['rounding'].any() else ''} to the reference"
    worst = compared.loc[compared["deviation"].astype(float).idxmax()]
    column = f"{worst['table']}.{worst['column']}"
    most = f"most: {worst['deviation']:.2g} of what chance explains, in {column}"
    if beyond := (compared["beyond"] > 0).sum():
        return f"{beyond} columns differ by more than chance ({most})"
    return f"as the reference, up to chance ({most})"


def fault(table: pd.DataFrame, row_class: type[Row]) -> str | None:
    """Return what is wrong with the rows of a table of several runs; None if nothing is.

    row_class: the class of the rows. Two rows must not have the same keys. Each point of a run must
    have all replicates, as many as the parameter `replicates` says.
    """
    keys = ["run", *row_class.keys]
    twice = table[table.duplicated(keys)]
    if len(twice):
        return f"{len(twice)} rows twice: {_row_name(twice.iloc[0], keys)}"
    if "replicate" not in keys or not row_class.in_every_replicate:
        return None
    if "judged" in table:  # other replicates only choose learning rates
        table = table[table["judged"]]
    for run, rows in table.groupby("run"):
        replicates = set(rows["replicate"])
        first, count = min(replicates), len(replicates)
        # Replicates that choose learning rates have the numbers after the judged replicates.
        if "replicates" in rows and first == 0:
            count = int(rows["replicates"].iloc[0])
        points = rows.groupby([key for key in keys if key != "replicate"], dropna=False)
        if replicates != set(range(first, first + count)) or points.size().min() < count:
            return f"replicates are missing, or too many: {run}"
    return None
