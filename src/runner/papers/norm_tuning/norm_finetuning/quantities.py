"""Measure the training of a part of a ResNet with L layers and d channels in its first stage.

All quantities are differences of test accuracies at the last epoch in each replicate. The other
weights are random and frozen. norm: γ and β are trained. `inside_grid`: neither chosen learning
rate is an end of its grid.
"""

import pandas as pd

from runner.papers.norm_tuning.norm_finetuning.tables import right_of
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

KEYS = ["L", "d", "replicate"]


def _less(one: pd.DataFrame, other: pd.DataFrame, on: list[str]) -> pd.DataFrame:
    """Return the differences of two accuracies, for the networks that have both."""
    pairs = one.reset_index().merge(other.reset_index(), on=on, suffixes=("", "_other"))
    value = nonempty(pairs["right"], "pairs of networks") - pairs["right_other"]
    inside = pairs["inside_grid"] & pairs["inside_grid_other"]
    return pairs.assign(value=value, inside_grid=inside)


@quantity(each=("L", "d"), unit="difference")
def ahead(tables: Tables, one: str, other: str) -> pd.DataFrame:
    """test accuracy of training {one} − test accuracy of training {other}"""
    return _less(right_of(tables, one), right_of(tables, other), KEYS)


@quantity(each=("L", "d"), unit="difference")
def gained_in(tables: Tables, size: str) -> pd.DataFrame:
    """test accuracy of training γ and β − the accuracy at the smallest {size}"""
    rows = right_of(tables, "norm")
    sizes = rows.index.get_level_values(size)
    larger = nonempty(rows[sizes > sizes.min()], f"second {size}")
    return _less(larger, rows[sizes == sizes.min()], [key for key in KEYS if key != size])


@quantity(each=("L", "d"), unit="difference")
def ahead_at_square(tables: Tables) -> pd.DataFrame:
    """test accuracy of training γ and β at width d² − of training all parameters at width d"""
    everything = right_of(tables, "all").reset_index()
    square = everything.assign(root=everything["d"], d=everything["d"] ** 2)
    pairs = _less(right_of(tables, "norm"), square, KEYS)
    return pairs.assign(d=pairs["root"])
