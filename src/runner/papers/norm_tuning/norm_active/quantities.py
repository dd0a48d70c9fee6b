"""Count networks of study `norm_active` that find their target.

A network finds its target if its error on new samples is below a millionth of the target's
variance. Networks have the learning rates that other networks chose. d is the width of the target,
m the number of hidden units of the frozen network. A function raises NoRows if no network meets its
conditions.
"""

from math import sqrt

import pandas as pd

from runner.papers.norm_tuning.norm_active.tables import networks
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select


def _rows(tables: Tables, arm: str, where: str) -> pd.DataFrame:
    return select(nonempty(networks(tables).query(where), f"networks of {where}"), arm=arm)


@quantity(
    "fraction of the networks that reach the target by {arm}",
    each=("d",),
    numbers="counts",
    of="networks",
)
def found(tables: Tables, arm: str, where: str) -> pd.DataFrame:
    """Return how many networks of an arm find their target, for each target width d.

    A row has this number in `count`, and the number of networks in `n`. arm: as in the column `arm`
    of `tables.networks`. where: a condition on d and m, as for `DataFrame.query`.
    """
    by_d = _rows(tables, arm, where).groupby("d")["found"]
    return by_d.agg(count="sum", n="size").reset_index()


@quantity(
    "fraction of the networks of all target widths d that reach the target by {top} minus the"
    " fraction by {bottom}",
    numbers="estimates",
    unit="difference",
    of="networks",
)
def found_minus(tables: Tables, top: str, bottom: str, where: str) -> pd.DataFrame:
    """Return how much larger a fraction of networks finds its target by one arm than by another.

    The row has the mean difference of pairs of networks with the same target in `value`, its
    standard error in `error`, and the number of pairs in `n`. top, bottom: as in the column `arm`
    of `tables.networks`. where: a condition on d and m of the first arm, as for `DataFrame.query`.
    """
    pairs = [
        rows.set_index(["d", "replicate"])["found"].astype(float)
        for rows in (_rows(tables, top, where), _rows(tables, bottom, "d > 0"))
    ]
    difference = (pairs[0] - pairs[1]).dropna()
    error = difference.std() / sqrt(len(difference))
    return pd.DataFrame([{"value": difference.mean(), "error": error, "n": len(difference)}])
