"""Quantities of the claims about gradients and rank of random networks, at initialization.

Arguments that recur:

- tables: the tables of a figure's runs; only `metrics` is used.
- network: a value of NETWORKS in `tables.py`, such as "ReLU, batch norm".
- where: a condition on the width d, the depth L and the batch size N, as for `DataFrame.query`.

Unless a function says otherwise, it returns a row for each width, depth and replicate. A replicate
is an independent repetition.
"""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.rank_gradients.tables import networks
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select


def _rows(tables: Tables, network: str, where: str) -> pd.DataFrame:
    rows = select(networks(tables), network=network)
    return nonempty(rows.query(where), f"networks of {where}")


@quantity(
    "in {network}, the gradient norm of the first hidden layer divided by that of the last is {}"
    " (π / (π − 1))^((L − 1) / 2), its value in infinitely wide networks",
    each=("d",),
    unit="ratio",
    needs={"depth": 3},
)
def factor_over_theory(tables: Tables, network: str, where: str) -> pd.DataFrame:
    """Return the growth of gradients over all layers, divided by its theoretical value.

    The growth is the norm in the first hidden layer / the norm in the last hidden layer. Its
    theoretical value is `theory.RELU_GRADIENT_GROWTH` to the power L - 1. There is a row for each
    width, depth and replicate.

    network: such as "ReLU, batch norm". where: a condition on d, L and N, as for `DataFrame.query`.
    Raises NoRows if no network meets the condition.
    """
    from runner.papers.batch_norm_rank.theory import RELU_GRADIENT_GROWTH  # late import of torch

    rows = _rows(tables, network, where)
    return rows.assign(value=rows["ratio"] / RELU_GRADIENT_GROWTH ** (rows["L"] - 1))


@quantity(
    "in {network}, the {of} of the last hidden layer is {} √d",
    each=("d", "L"),
    unit="ratio",
    needs={"depth": 3},
)
def over_root(tables: Tables, of: str, network: str, where: str = "L > 0") -> pd.DataFrame:
    """Return a rank of the last hidden layer, divided by the root of the width.

    There is a row for each width, depth and replicate. of: "matrix_rank", or "rank_bound" for r.
    network: such as "ReLU, batch norm". where: a condition on d, L and N, as for `DataFrame.query`.
    Raises NoRows if no network meets the condition.
    """
    rows = _rows(tables, network, where)
    return rows.assign(value=rows[of] / np.sqrt(rows["d"]))


@quantity("r of the last hidden layer of {network}", each=("L",), needs={"depth": 3})
def r(tables: Tables, network: str, where: str) -> pd.DataFrame:
    """Return r, the lower bound (4) of the rank, of the last hidden layer.

    There is a row for each width, depth and replicate. network: such as "ReLU, plain". where: a
    condition on d, L and N, as for `DataFrame.query`. Raises NoRows if no network meets the
    condition.
    """
    return _rows(tables, network, where).assign(value=lambda rows: rows["rank_bound"])


@quantity(
    "in {network}, the gradient norm of the first hidden layer is {} that of the last",
    each=("d", "L"),
    unit="ratio",
    needs={"depth": 3},
)
def first_over_last(tables: Tables, network: str, where: str) -> pd.DataFrame:
    """Return the gradient norm of the first hidden layer, divided by the last hidden layer's.

    There is a row for each width, depth and replicate. network: such as "ReLU, plain". where: a
    condition on d, L and N, as for `DataFrame.query`. Raises NoRows if no network meets the
    condition.
    """
    return _rows(tables, network, where).assign(value=lambda rows: rows["ratio"])


@quantity(
    "in {network}, the orthogonality gap at width d is {} that at width d / 2",
    each=("d",),
    unit="ratio",
    needs={"width": 3},
)
def gap_over_half_width(tables: Tables, network: str, where: str) -> pd.Series:
    """Return the orthogonality gap at width d, divided by the gap at width d / 2.

    The gap is measured in the last hidden layer, see `theory.orthogonality_gap`. There is a number
    for each replicate, and for each width d whose half was run, too.

    network: such as "linear, batch norm". where: a condition on d, L and N, as for
    `DataFrame.query`, that leaves one depth. Raises NoRows if no network meets the condition.
    """
    gaps = _rows(tables, network, where).pivot(index="replicate", columns="d", values="gap")
    halves = {d: gaps[d] / gaps[d / 2] for d in gaps if d / 2 in gaps}
    return pd.concat(halves, names=["d"])
