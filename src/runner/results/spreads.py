"""Medians with the range of the replicates: what is drawn for them on a logarithmic scale."""

from collections.abc import Sequence

import pandas as pd


def spread(rows: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return one row per combination of `keys`, with three columns for each of `columns`.

    The median over the replicates, and their smallest and largest as `<column>_low` and
    `<column>_high`. A nan counts for none of them.
    """
    grouped = rows.groupby(keys, sort=False, dropna=False)[list(columns)]
    parts = {"": grouped.median(), "_low": grouped.min(), "_high": grouped.max()}
    ends = [column + end for column in columns for end in parts]
    joined = pd.concat([part.add_suffix(end) for end, part in parts.items()], axis=1)
    return joined[ends].reset_index()
