"""Compare two tables of the same runs: one comparer for `runs diff`, `compare` and `reference`.

Rows are matched by their keys. The yardstick is the spread of the reference's own replicates,
never that of the table that is compared with it, which would excuse its own damage:

- A row that one side lacks, or has twice, is a difference.
- The median of a point's replicates may move by their spread (or that which is typical of the
  column), or by CHANCE standard errors. Where a point has one row, its column `<name>_se` tells the
  error; an estimate without either may be off by itself. What has no spread may DRIFT.
- One replicate may lie FAR spreads from the median, and no farther.
- Truth values, texts, and whether there is a number at all may disagree in as many rows as two
  independent draws from the reference would, up to CHANCE standard errors of that.
- A standard error is a measurement, too: that of 32 batches is known to about an eighth.

Differences of ROUNDING are none.
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
"""Spreads at which a single replicate is damaged rather than unlucky."""

ERROR_OF_ERROR = 1 / 8
"""Relative standard error of a standard error that comes from 32 batches."""

COLUMNS = ("column", "equal", "rounding", "differ", "largest", "at", "beyond", "deviation", "where")
ROWS = "(rows)"
"""The line of a comparison that is about the rows themselves."""

PLACE, SIDE, SIDES = "order of rows", "side", ("left", "right")


def compare(own: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row] | None) -> pd.DataFrame:
    """Compare two tables; return a line for the rows (ROWS), then one for each common column.

    row_class: that of the tables; None where it is gone. `equal`, `rounding` and `differ` count
    rows, `largest` is their largest difference relative to the larger number (inf for no numbers),
    `at` says in which row. `beyond` counts the points that differ by more than chance, `deviation`
    is the largest difference as a share of what chance explains, `where` says at which point.
    """
    keys = [key for key in ("run", *_keys(row_class)) if key in own and key in kept]
    apart = [key for key in keys if _tells_apart(own[key], kept[key])]
    own, kept = (each.drop(columns=apart) for each in (own, kept))
    keys = [key for key in keys if key not in apart]
    points = [key for key in keys if key != "replicate"]
    sides = [
        each.assign(**{PLACE: each.groupby(keys, dropna=False).cumcount() if keys else each.index})
        for each in (own, kept)
    ]
    both = sides[0].merge(
        sides[1], on=[*keys, PLACE], how="outer", suffixes=(" own", " kept"), indicator=SIDE
    )
    lines = [_of_rows(both, keys, row_class)]
    both = both[both[SIDE] == "both"]
    point = both.groupby(points, dropna=False).ngroup() if points else pd.Series(0, both.index)
    names = [name for name in kept if name in own and name not in keys]
    has_errors = any(name.endswith("_se") for name in names)
    for name in names:
        a, b = (both[f"{name} {side}"] for side in ("own", "kept"))
        judged = _disagreement(a, b, point)
        if _is_number(a) and _is_number(b):
            error = ERROR_OF_ERROR * b if name.endswith("_se") else both.get(f"{name}_se kept")
            is_estimate = "replicate" in keys or (has_errors and error is None)
            numbers = _of_numbers(a, b, point, error, is_estimate)
            judged = judged.where(judged["share"] > 0, numbers)
        lines.append(_of_column(name, both, keys, judged, point))
    return pd.DataFrame(lines, columns=list(COLUMNS))


def fault(table: pd.DataFrame, row_class: type[Row]) -> str | None:
    """Return what is wrong with the rows of a table of several runs; None when nothing is.

    Wrong are two rows of the same keys, a point without all replicates of its run, and fewer or
    more of them than its parameter `replicates` says.
    """
    keys = ["run", *row_class.keys]
    twice = table[table.duplicated(keys)]
    if len(twice):
        return f"{len(twice)} rows twice: {_named(twice.iloc[0], keys)}"
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


def _keys(row_class: type[Row] | None) -> tuple[str, ...]:
    return row_class.keys if row_class else ()


def _tells_apart(a: pd.Series, b: pd.Series) -> bool:
    """Return whether a key says only of which table a row is: it would match none with another."""
    return a.nunique() == b.nunique() == 1 and bool(a.iloc[0] != b.iloc[0])


def _is_number(column: pd.Series) -> bool:
    return column.dtype.kind in "iuf"


def _of_rows(both: pd.DataFrame, keys: list[str], row_class: type[Row] | None) -> dict[str, Any]:
    """Return the line about the rows: how many both sides have, and one of them alone or twice."""
    alone = both[both[SIDE] != "both"]
    beyond, at = alone, ""
    if row_class and not row_class.in_every_replicate and "replicate" in keys:
        replicates = [set(both.loc[both[SIDE] != f"{side}_only", "replicate"]) for side in SIDES]
        lost = alone["replicate"].isin(replicates[0] ^ replicates[1])
        beyond = alone[lost | (alone[PLACE] > 0)]
    if len(alone):
        first = (beyond if len(beyond) else alone).iloc[0]
        counts = [
            f"{(alone[SIDE] == f'{side}_only').sum()} only in {letter}"
            for side, letter in zip(SIDES, "AB", strict=True)
        ]
        again = "again, " if first[PLACE] and keys else ""
        at = f"{', '.join(counts)}: {again}{_named(first, keys or [PLACE])}"
    return {
        "column": ROWS,
        "equal": len(both) - len(alone),
        "rounding": 0,
        "differ": len(alone),
        "largest": np.inf if len(alone) else 0.0,
        "at": at,
        "beyond": len(beyond),
        "deviation": np.inf if len(beyond) else 0.0,
        "where": at,
    }


def _of_numbers(
    a: pd.Series, b: pd.Series, point: pd.Series, error: pd.Series | None, is_estimate: bool
) -> pd.DataFrame:
    """Return what is compared in each row, medians or the row itself, and their `share` of chance.

    b: the reference. Its spread at each point is the yardstick, or that which is typical of the
    column where it is larger; an estimate that has neither this nor an error may be off by itself.
    Where other rows have a number than in the reference, `_disagreement` has to judge.
    """
    same = (np.isfinite(a) == np.isfinite(b)).groupby(point).transform("all")
    a, b = (each.where(np.isfinite(each) & same) for each in (a, b))
    own, kept = (each.groupby(point).transform("median") for each in (a, b))
    count, spread = (b.groupby(point).transform(measure) for measure in ("count", "std"))
    size = kept.abs().where(spread.notna())
    usual = np.minimum(spread, FAR * size)  # one far replicate excuses its own point alone
    typical = usual.sum() / max(size.sum(), ROUNDING) if size.any() else float(is_estimate)
    spread = np.maximum(spread.fillna(0.0), typical * kept.abs())
    one = spread if error is None else np.maximum(spread, error.fillna(0.0))
    least = np.maximum(DRIFT * kept.abs(), ROUNDING)
    chance = np.maximum(np.maximum(CHANCE * np.sqrt(2 / count) * one, spread), least)
    moved = (own - kept).abs() / chance
    whole = float(b.dtype.kind in "iu")
    single = (a - kept).abs() / np.maximum(chance, np.maximum(FAR * spread, whole))
    is_row = single > moved
    return pd.DataFrame(
        {
            "own": a.where(is_row, own),
            "kept": kept,
            "share": np.maximum(moved, single),
            "single": is_row,
        }
    )


def _disagreement(a: pd.Series, b: pd.Series, point: pd.Series) -> pd.DataFrame:
    """Return both values, and of rows that disagree, their number as a `share` of that by chance.

    What is compared are truth values and texts; of numbers, which are finite. As many rows may
    disagree as would in independent draws from the reference (b), each from those of its point.
    """
    kinds = [a, b]
    if _is_number(a) and _is_number(b):
        kinds = [each.where(~np.isfinite(each), 0.0) for each in kinds]
    own, kept = np.split(pd.factorize(pd.concat(kinds))[0], 2)  # nan is -1 on either side
    rows = pd.Series(kept, b.index)
    alike = rows.groupby([point, rows]).transform("size")
    count = rows.groupby(point).transform("size")
    expected = ((count - alike) / (count - 1).clip(lower=1)).sum()
    with np.errstate(all="ignore"):
        share = (own != kept).sum() / (expected + CHANCE * np.sqrt(expected))
    share = np.where(own != kept, share, 0.0)
    return pd.DataFrame({"own": a, "kept": b, "share": share, "single": True})


def _of_column(
    name: str, both: pd.DataFrame, keys: list[str], judged: pd.DataFrame, point: pd.Series
) -> dict[str, Any]:
    """Return the line of one column. judged: what is compared in each row, and its share."""
    a, b = (both[f"{name} {side}"] for side in ("own", "kept"))
    distance = distances(a.to_numpy(), b.to_numpy())
    differ = distance > ROUNDING
    share = judged["share"].fillna(0.0)
    line = {
        "column": name,
        "equal": int((distance == 0).sum()),
        "rounding": int(((distance > 0) & ~differ).sum()),
        "differ": int(differ.sum()),
        "largest": float(distance.max(initial=0.0)),
        "at": "",
        "beyond": int(point[share > 1].nunique()),
        "deviation": float(share.max()) if len(share) else 0.0,
        "where": "",
    }
    if differ.any():
        worst = int(distance.argmax())
        where = _named(both.iloc[worst], keys or [PLACE])
        line["at"] = f"{where}: {_both(a.iloc[worst], b.iloc[worst])}"
    if line["beyond"]:
        row = judged.loc[share.idxmax()]
        of = [key for key in keys if row["single"] or key != "replicate"]
        where = _named(both.loc[share.idxmax()], of)
        line["where"] = f"{where}: {_both(row['own'], row['kept'])}"
    return line


def _named(row: pd.Series, keys: Sequence[str]) -> str:
    return ", ".join(f"{key}={row[key]}" for key in keys)


def _both(a: Any, b: Any) -> str:
    """Return two values that differ, to as many digits as show it."""
    short = [
        f"{each:.6g}" if isinstance(each, float | np.floating) else str(each) for each in (a, b)
    ]
    return " and ".join(short if short[0] != short[1] else map(str, (a, b)))


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return of each pair the difference relative to the larger; inf for what is no number.

    Two nans are equal, and so are two infinities of one sign.
    """
    same = (a == b) | (pd.isna(a) & pd.isna(b))
    if not all(np.issubdtype(each.dtype, np.number) for each in (a, b)):
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
