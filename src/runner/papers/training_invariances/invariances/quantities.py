"""Quantities of paper C's claims about training, in every network of a replicate.

Gradient descent moves a quantity that gradient flow conserves only because its steps are finite:
the drift is proportional to the learning rate. A quantity that the flow does not conserve moves by
the same amount at every learning rate. The convergence order is the slope of log drift against log
learning rate. We extrapolate it to learning rate zero, where it is at least 1, or 0. The error of
the order is the distance of this extrapolation.
"""

import numpy as np
import pandas as pd

from runner.papers.training_invariances.invariances.tables import (
    SERIES,
    ends,
    every_layer,
    final,
    late,
    longest,
    orders,
    power,
    tail,
    telling,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import NoRows, finite, nonempty

PRINTED = {
    "pair == 'full' and linear and promised": "the quantity is D of two adjacent linear layers",
    "pair == 'full' and not linear and not promised": "the quantity is D of two adjacent ReLU"
    " layers",
    "pair == 'diagonal' and promised": "the quantity is the difference of the norms of a neuron",
    "pair == 'layer' and promised": "the quantity is the difference of the norms of two layers or"
    " two cuts",
    "(pair in ('active', 'mixed') and not linear or pair == 'full' and linear and item == 0)"
    " and promised": "the quantity is the difference of the inner products of two neurons",
    "separates": "the network classifies every training example correctly",
    "graph": "kind of network",
    "layers": "networks of layers",
    "random_graph": "random graphs",
    "dense_graph": "graphs with DenseNet connections",
    "data": "dataset",
    "item": "item of Theorem 1",
    "1 - operator_ratio": "1 − ‖W‖₂² / ‖W‖²",
    "1 - alignment": "1 − |⟨v, u⟩|",
}
"""Printed names of columns, values, terms and conditions."""

NEURONS = "neurons or layers of this kind at three rates"
LAYERS = "layers of this kind"


def _drifts(tables: Tables, where: str) -> pd.DataFrame:
    """Return the rows after training, with `graph`: the graph's name, or `layers`."""
    rows = final(tables["metrics"])
    graph = rows["architecture"].where(rows["architecture"].str.endswith("graph"), "layers")
    rows = rows.assign(graph=graph).query(where)
    if not np.isfinite(rows["drift"]).all():
        raise NoRows("gradient descent diverged at a learning rate, so it has no convergence order")
    return rows


def _orders(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the order of each series, with the column of its point."""
    names = rows.drop_duplicates(SERIES)[[*SERIES, column]]
    orders_of_neurons = nonempty(orders(rows), NEURONS).rename(columns={"order": "value"})
    return orders_of_neurons.merge(names, on=SERIES)


@quantity(
    "convergence order of the largest drift, extrapolated to learning rate zero, + the error of "
    "this extrapolation",
    each=("graph",),
    unit="exponent",
    numbers="estimates",
    needs={"learning_rate": 3},
)
def order(tables: Tables, where: str) -> pd.DataFrame:
    """TODO"""
    return _orders(_drifts(tables, where), "graph")


@quantity(
    "convergence order of the largest drift of D between linear neurons, or ReLU neurons that are"
    " active for every example, extrapolated to learning rate zero, + the error of this "
    "extrapolation",
    each=("item",),
    unit="exponent",
    numbers="estimates",
    needs={"learning_rate": 3},
)
def order_of_items(tables: Tables) -> pd.DataFrame:
    """TODO"""
    where = "(pair == 'full' and linear or pair == 'active' and not linear)"
    return _orders(_drifts(tables, f"item > 0 and {where}"), "item")


@quantity(
    "median over all quantities of the convergence order of the largest drift, extrapolated to "
    "learning rate zero",
    unit="exponent",
    needs={"learning_rate": 3},
)
def typical_order(tables: Tables, where: str) -> pd.Series:
    """TODO"""
    neuron_orders = _orders(_drifts(tables, where), "graph")
    return neuron_orders.groupby("replicate")["value"].median()


@quantity(
    "largest drift of D extrapolated to learning rate zero / the error of this extrapolation",
    each=("data", "architecture", "layer"),
    unit="ratio",
    needs={"learning_rate": 3},
)
def limit_over_error(tables: Tables, where: str) -> pd.DataFrame:
    """TODO"""
    finest = _drifts(tables, where).sort_values("learning_rate").groupby(SERIES)
    rows, second = (finest.nth(i).set_index(SERIES) for i in (0, 1))
    rate = rows["learning_rate"] / (second["learning_rate"] - rows["learning_rate"])
    shift = rate * (second["drift"] - rows["drift"])
    limit = rows["drift"] - shift
    rows = rows.assign(value=limit / shift.abs(), moved=limit / rows["initial"])
    return nonempty(rows.dropna(subset="value"), NEURONS).reset_index()


@quantity("|f(x) − μ(ρ(x))| / |f(x)|, before and after training")
def distance_of_tree(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = finite(tables["decomposition"], "error", "output")
    return rows.assign(value=rows["error"] / rows["output"])


def _last_dense(tables: Tables) -> pd.DataFrame:
    """Return the fully connected layers of Theorem 2 in the runs with the longest path.

    The output layer is excluded because its bound is one.
    """
    rows = tail(tables)
    rows = rows[rows.groupby("run")["time"].transform("max") == rows["time"].max()]
    return nonempty(rows.query("layer < depth and bound == 1 and kind == 'dense'"), LAYERS)


@quantity(
    "exponent p of ‖W‖ ∝ (log t)ᵖ divided by 1/L, in the second half of the longest paths, in "
    "every layer of networks of L layers without skip connections",
    unit="ratio",
    needs={"time": 5},
)
def exponent_in_log_time(tables: Tables) -> pd.DataFrame:
    """The value is p L: it is 1 if ‖W‖ grows like (log t)^(1/L). Only the runs with the longest path
    of the flow count, and times with log t above 1.
    """
    rows = every_layer(tables)
    skips = rows["kind"].str.startswith("residual").groupby(rows["run"]).transform("any")
    rows = late(longest(rows[~skips]))
    depth = nonempty(rows, LAYERS).groupby("run")["depth"].first()
    # power() gives the exponent of log t in the squared norm.
    exponents = (0.5 / power(rows, "log_flow_time")).rename("exponent").reset_index()
    return exponents.assign(value=exponents["exponent"] * exponents["run"].map(depth))


@quantity(
    "exponent p of {rest} ∝ (‖W‖²)ᵖ, in the second half of the longest paths, in the last fully "
    "connected layers",
    unit="exponent",
    needs={"time": 5},
)
def exponent_in_norm(tables: Tables, rest: str) -> pd.Series:
    """A path is the trajectory of gradient flow. Only the runs with the longest time count, without
    the output layer. rest: an expression in the columns of the table, as "1 - operator_ratio". The
    exponent is the slope of log rest against log ‖W‖².
    """
    rows = _last_dense(tables)
    rows = rows[rows["time"] >= 0.5 * rows.groupby("run")["time"].transform("max")]
    return power(rows.assign(rest=rows.eval(rest)).dropna(subset="rest"), "rest")


@quantity(
    "‖W‖₂² / ‖W‖² − 1 / (8ᴺ M) after training, in layers where 1 / (8ᴺ M) is above the trivial "
    "bound and above the ratio before training",
    unit="difference",
)
def limit_above(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = finite(nonempty(ends(telling(tables)), LAYERS), "operator_ratio")
    return rows.assign(value=rows["operator_ratio"] - rows["bound"])


@quantity(
    "‖W‖₂² / ‖W‖² − the bound of Eq. (13), at every time at which the bound of Eq. (13) is above "
    "the trivial bound",
    unit="difference",
)
def ratio_above(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = tail(tables).query("layer < depth and finite_bound > trivial_bound")
    rows = finite(nonempty(rows, LAYERS), "operator_ratio")
    return rows.assign(value=rows["operator_ratio"] - rows["finite_bound"])
