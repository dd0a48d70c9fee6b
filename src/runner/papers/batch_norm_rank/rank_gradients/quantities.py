"""Measure gradients and rank of random networks: d is the width, L the depth, N the batch size."""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.rank_gradients.tables import networks
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

PRINTED = {"linear, batch norm, orthogonal weights": "linear, batch norm and orthogonal weights"}
"""Printed names of networks."""


def _rows(tables: Tables, network: str, where: str) -> pd.DataFrame:
    rows = select(networks(tables), network=network)
    return nonempty(rows.query(where), f"networks of {where}")


@quantity(
    "log(first / last gradient norm) / (L − 1) / log √(π / (π − 1)), {network}",
    each=("d",),
    unit="ratio",
    needs={"depth": 3},
)
def growth_over_theory(tables: Tables, network: str, where: str) -> pd.DataFrame:
    """TODO"""
    from runner.papers.batch_norm_rank.theory import RELU_GRADIENT_GROWTH  # late import of torch

    rows = _rows(tables, network, where)
    per_layer = np.log(rows["ratio"]) / (rows["L"] - 1)
    return rows.assign(value=per_layer / np.log(RELU_GRADIENT_GROWTH))


@quantity(
    "{of} of the last hidden layer / √d, {network}",
    each=("d", "L"),
    unit="ratio",
    needs={"depth": 3},
)
def over_root(tables: Tables, of: str, network: str, where: str = "L > 0") -> pd.DataFrame:
    """TODO"""
    rows = _rows(tables, network, where)
    return rows.assign(value=rows[of] / np.sqrt(rows["d"]))


@quantity("r of the last hidden layer, {network}", each=("L",), needs={"depth": 3})
def r(tables: Tables, network: str, where: str) -> pd.DataFrame:
    """TODO"""
    return _rows(tables, network, where).assign(value=lambda rows: rows["rank_bound"])


@quantity(
    "gradient norm of the first hidden layer / of the last, {network}",
    each=("d", "L"),
    unit="ratio",
    needs={"depth": 3},
)
def first_over_last(tables: Tables, network: str, where: str) -> pd.DataFrame:
    """TODO"""
    return _rows(tables, network, where).assign(value=lambda rows: rows["ratio"])


@quantity(
    "orthogonality gap at width d / at width d / 2, {network}",
    each=("d",),
    unit="ratio",
    needs={"width": 3},
)
def gap_over_half_width(tables: Tables, network: str, where: str) -> pd.Series:
    """TODO"""
    gaps = _rows(tables, network, where).pivot(index="replicate", columns="d", values="gap")
    halves = {d: gaps[d] / gaps[d / 2] for d in gaps if d / 2 in gaps}
    return pd.concat(halves, names=["d"])
