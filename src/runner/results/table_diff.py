"""Compare two tables of the same runs, and tell chance from difference.

`runs diff`, `compare` and `reference` use this module. Rows are matched by their keys. The rows of
one point (one width, one method) are its replicates. The reference's replicates give the tolerance,
never those of the other table, which would excuse its own damage:

| compared | differs by more than chance if |
| --- | --- |
| rows | one table lacks a row, or has it twice |
| median of a point | it moved by more than the standard deviation of the replicates, and by more \
than CHANCE standard errors |
| one replicate | it lies FAR standard deviations from the median |
| point with one row | as a median; the column `<name>_se` is its standard error. An estimate \
without this column may be off by 100 % |
| standard error | as a median; ERROR_OF_ERROR is its own relative error |
| texts, truth values, nan and inf | more rows disagree than in two independent draws from the \
reference, by CHANCE standard errors |

The standard deviation of a point is at least the usual one of its column. Relative differences of
DRIFT and absolute ones of ROUNDING are always chance.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from runner.core.studies import Row

CHANCE = 5.0
"""Standard errors that are chance: thousands of numbers are compared, and a smaller bound would
name some of them."""

DRIFT = 1e-3
"""Relative difference that other hardware may make in a number without a spread of its own: many
steps amplify the rounding of one."""

ROUNDING = 1e-9
"""Difference that is rounding and no more, relative to a number or, where that is smaller, to one:
inputs, weights and losses are of order one, and what ought to be zero beside them (the error of an
exact construction, 1e-13) is another number on every processor."""

FAR = 100.0
"""Standard deviations at which a single replicate is damaged rather than unlucky."""

ERROR_OF_ERROR = 1 / 8
"""Relative standard error of a standard error that comes from 32 batches."""

COLUMNS = ("column", "equal", "rounding", "differ", "largest", "at", "beyond", "deviation", "where")
ROWS = "(rows)"
"""The line of a comparison that is about the rows themselves."""

ORDER, SIDE = "order of rows", "side"


def compare(own: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row] | None) -> pd.DataFrame:
    """Compare two tables; return a line for the rows (ROWS), then one for each common column.

    own, kept: A and B, of which B is the reference. row_class: of both tables; None if it is gone.
    `equal`, `rounding` and `differ` count rows, `largest` is the largest difference relative to the
    larger number (inf for no numbers), `at` names its row. `beyond` counts the points that differ
    by more than chance, `deviation` is the largest difference as a fraction of the tolerance,
    `where` names its point.
    """
    keys = ["run", *(row_class.keys if row_class else ())]
    keys = [key for key in keys if key in own and key in kept]
    values = {key: (own[key].unique(), kept[key].unique()) for key in keys}
    # A key with another single value in each table would match no rows.
    apart = [key for key, (a, b) in values.items() if len(a) == len(b) == 1 and a[0] != b[0]]
    keys = [key for key in keys if key not in apart]
    sides = [table.drop(columns=apart) for table in (own, kept)]
    for table in sides:
        table[ORDER] = table.groupby(keys, dropna=False).cumcount() if keys else table.index
    suffixes = (" A", " B")
    rows = sides[0].merge(sides[1], "outer", [*keys, ORDER], suffixes=suffixes, indicator=SIDE)
    lines = [_compare_rows(rows, keys, row_class)]
    rows = rows[rows[SIDE] == "both"]
    point_keys = [key for key in keys if key != "replicate"]
    points = rows.groupby(point_keys, dropna=False).ngroup() if point_keys else rows[ORDER] * 0
    names = [name for name in kept if name in own and name not in [*keys, *apart]]
    has_errors = any(name.endswith("_se") for name in names)
    for name in names:
        a, b = rows[f"{name} A"], rows[f"{name} B"]
        judged = _compare_values(a, b, points)
        if _is_number(a) and _is_number(b):
            error = ERROR_OF_ERROR * b if name.endswith("_se") else rows.get(f"{name}_se B")
            is_estimate = "replicate" in keys or (has_errors and error is None)
            numbers = _compare_numbers(a, b, points, error, is_estimate)
            judged = judged.where(judged["share"] > 0, numbers)
        share = judged["share"].fillna(0.0)
        distance = pd.Series(distances(a.to_numpy(), b.to_numpy()), rows.index)
        at = where = ""
        if (distance > ROUNDING).any():
            worst = distance.idxmax()
            at = f"{_place(rows.loc[worst], keys)}: {_pair(a[worst], b[worst])}"
        if (share > 1).any():
            worst, row = share.idxmax(), judged.loc[share.idxmax()]
            place = _place(rows.loc[worst], keys if row["single"] else point_keys)
            where = f"{place}: {_pair(row['own'], row['kept'])}"
        lines.append(_line(name, distance, share, points, at, where))
    return pd.DataFrame(lines, columns=list(COLUMNS))


def _line(
    column: str, distance: pd.Series, share: pd.Series, points: pd.Series, at: str, where: str
) -> dict[str, Any]:
    """Return the line of a column.

    distance: relative difference of each row; share: its difference as a fraction of the tolerance.
    """
    return {
        "column": column,
        "equal": int((distance == 0).sum()),
        "rounding": int(((distance > 0) & (distance <= ROUNDING)).sum()),
        "differ": int((distance > ROUNDING).sum()),
        "largest": distance.max() if len(distance) else 0.0,
        "at": at,
        "beyond": int(points[share > 1].nunique()),
        "deviation": share.max() if len(share) else 0.0,
        "where": where,
    }


def _compare_rows(
    rows: pd.DataFrame, keys: list[str], row_class: type[Row] | None
) -> dict[str, Any]:
    """Return the line about the rows: which of them one table lacks, or has twice.

    Some rows are not in every replicate: then only replicates that one table lacks, and rows that
    it has twice, are more than chance.
    """
    alone = rows[SIDE] != "both"
    beyond, text = alone, ""
    if row_class and not row_class.in_every_replicate and "replicate" in keys:
        replicates = [set(rows.loc[rows[SIDE] != only, "replicate"])
                      for only in ("left_only", "right_only")]  # fmt: skip
        lost = rows["replicate"].isin(replicates[0] ^ replicates[1])
        beyond = alone & (lost | (rows[ORDER] > 0))
    if alone.any():
        first = rows[beyond if beyond.any() else alone].iloc[0]
        again = "again, " if first[ORDER] and keys else ""
        counts = rows[SIDE].value_counts()
        text = f"{counts['left_only']} only in A, {counts['right_only']} only in B"
        text += f": {again}{_place(first, keys)}"
    distance, share = (mask.map({True: np.inf, False: 0.0}) for mask in (alone, beyond))
    return _line(ROWS, distance, share, rows.index.to_series(), text, text)


def _compare_numbers(
    a: pd.Series, b: pd.Series, points: pd.Series, error: pd.Series | None, is_estimate: bool
) -> pd.DataFrame:
    """Return for each row the numbers that differ most, and their difference as a `share` of the
    tolerance: medians of its point or, if `single`, the row's own number.

    Points at which other rows are finite than in the reference are left to `_compare_values`.
    """
    same = (np.isfinite(a) == np.isfinite(b)).groupby(points).transform("all")
    a, b = (side.where(np.isfinite(side) & same) for side in (a, b))
    median_a, median = (side.groupby(points).transform("median") for side in (a, b))
    count, deviation = (b.groupby(points).transform(measure) for measure in ("count", "std"))
    size = median.abs()
    repeated = size.where(deviation.notna())
    usual = float(is_estimate)
    if repeated.any():  # one far replicate excuses its own point alone
        usual = np.minimum(deviation, FAR * repeated).sum() / max(repeated.sum(), ROUNDING)
    deviation = np.maximum(deviation.fillna(0.0), usual * size)
    error = deviation if error is None else np.maximum(deviation, error.fillna(0.0))
    parts = [CHANCE * np.sqrt(2 / count) * error, deviation, DRIFT * size]
    tolerance = pd.concat(parts, axis=1).max(axis=1).clip(lower=ROUNDING)
    whole = float(b.dtype.kind in "iu")
    moved = (median_a - median).abs() / tolerance
    single = (a - median).abs() / np.maximum(tolerance, FAR * deviation).clip(lower=whole)
    own = a.where(single > moved, median_a)
    share = np.maximum(moved, single)
    return pd.DataFrame({"own": own, "kept": median, "share": share, "single": single > moved})


def _compare_values(a: pd.Series, b: pd.Series, points: pd.Series) -> pd.DataFrame:
    """Return both values of each row and, if they disagree, how many rows do as a `share` of the
    number by chance.

    Compared are truth values and texts; of numbers, whether they are finite. The number by chance
    is that of two independent draws from the reference (b), each from the rows of its point.
    """
    kinds = [a, b]
    if _is_number(a) and _is_number(b):
        kinds = [side.where(~np.isfinite(side), 0.0) for side in kinds]
    own, kept = np.split(pd.factorize(pd.concat(kinds))[0], 2)  # nan is -1 on either side
    codes = pd.Series(kept, b.index)
    alike = codes.groupby([points, codes]).transform("size")
    count = codes.groupby(points).transform("size")
    expected = ((count - alike) / (count - 1).clip(lower=1)).sum()
    with np.errstate(all="ignore"):
        share = (own != kept).sum() / (expected + CHANCE * np.sqrt(expected))
    share = np.where(own != kept, share, 0.0)
    return pd.DataFrame({"own": a, "kept": b, "share": share, "single": True})


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "iuf"


def _place(row: pd.Series, keys: Sequence[str]) -> str:
    return ", ".join(f"{key}={row[key]}" for key in keys or [ORDER])


def _pair(a: Any, b: Any) -> str:
    """Return two values that differ, to as many digits as show it."""
    short = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in (a, b)]
    return " and ".join(short if short[0] != short[1] else map(str, (a, b)))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return of each pair the difference relative to the larger; inf for what is no number.

    Two nans are equal, and so are two infinities of one sign.
    """
    same = (a == b) | (pd.isna(a) & pd.isna(b))
    if not all(np.issubdtype(side.dtype, np.number) for side in (a, b)):
        return np.where(same, 0.0, np.inf)
    a, b = a.astype(float), b.astype(float)
    with np.errstate(all="ignore"):
        relative = np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))
    return np.where(same, 0.0, np.where(np.isnan(relative), np.inf, relative))


def alike(compared: pd.DataFrame) -> str:
    """Say how alike the numbers of several tables are.

    compared: lines of `compare`, with the tables in the column `table`.
    """
    if not compared["equal"].any():
        return "nothing to compare"
    if not compared["differ"].any():
        return f"equal{' up to rounding' * bool(compared['rounding'].any())} to the reference"
    worst = compared.loc[compared["deviation"].astype(float).idxmax()]
    place = f"{worst['table']}.{worst['column']}"
    most = f"most: {worst['deviation']:.2g} of what chance explains, in {place}"
    if beyond := (compared["beyond"] > 0).sum():
        return f"{beyond} columns differ by more than chance ({most})"
    return f"as the reference, up to chance ({most})"


def fault(table: pd.DataFrame, row_class: type[Row]) -> str | None:
    """Return what is wrong with the rows of a table of several runs; None when nothing is.

    Wrong are two rows of the same keys, a point without all replicates of its run, and fewer or
    more of them than its parameter `replicates` says.
    """
    keys = ["run", *row_class.keys]
    twice = table[table.duplicated(keys)]
    if len(twice):
        return f"{len(twice)} rows twice: {_place(twice.iloc[0], keys)}"
    if "replicate" not in keys or not row_class.in_every_replicate:
        return None
    if "judged" in table:  # beside those that choices are made on
        table = table[table["judged"]]
    for run, rows in table.groupby("run"):
        replicates = set(rows["replicate"])
        first, count = min(replicates), len(replicates)
        # Replicates that rates are chosen on are counted after those that are judged.
        if "replicates" in rows and first == 0:
            count = int(rows["replicates"].iloc[0])
        points = rows.groupby([key for key in keys if key != "replicate"], dropna=False)
        if replicates != set(range(first, first + count)) or points.size().min() < count:
            return f"replicates are missing, or too many: {run}"
    return None
