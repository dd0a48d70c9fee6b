"""Quantities of paper C's claims about training, in every network of a replicate.

A conserved quantity is constant along gradient flow. Gradient descent moves it only because steps
are finite, so its change, the drift, is proportional to the learning rate. Other quantities move by
the same amount at every learning rate.

The convergence order is the slope of log drift against log learning rate. It is extrapolated to
learning rate zero, where it is at least 1 for a conserved quantity and 0 for others. The error of
the order is the distance of this extrapolation.

D = V^T V - U U^T of neurons has their weights as rows of U (incoming) and columns of V (outgoing).
W is the weight matrix of a layer, ‖W‖ its Frobenius norm and ‖W‖₂ its largest singular value.

The argument `where` is a condition on the columns of the table `metrics`, as for `DataFrame.query`.
Examples are `pair == 'layer'` and `linear and promised`: the neurons are linear, and by the paper
the quantity is constant. A function raises NoRows if no row meets its conditions.
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
    """Return the convergence order of each quantity of each replicate, with a further column."""
    names = rows.drop_duplicates(SERIES)[[*SERIES, column]]
    orders_of_neurons = nonempty(orders(rows), NEURONS).rename(columns={"order": "value"})
    return orders_of_neurons.merge(names, on=SERIES)


@quantity(
    "convergence order p plus its error (largest drift ∝ (learning rate)ᵖ as the learning rate goes"
    " to zero)",
    each=("graph",),
    unit="exponent",
    numbers="estimates",
    needs={"learning_rate": 3},
)
def order(tables: Tables, where: str) -> pd.DataFrame:
    """Return the convergence order of the drift of each quantity in each replicate.

    A row is a quantity of a replicate. The order, extrapolated to learning rate zero, is in
    `value`: at least 1 if gradient flow conserves the quantity, 0 if not. `error` is the distance
    of the extrapolation, `graph` the kind of network. An order of inf means that the drift is zero.

    where: a condition on the columns of the table `metrics`, as "pair == 'layer'". Raises NoRows if
    no quantity was measured at three learning rates, or if training diverged.
    """
    return _orders(_drifts(tables, where), "graph")


@quantity(
    "convergence order p plus its error (largest drift of D ∝ (learning rate)ᵖ as the learning rate"
    " goes to zero), for linear neurons, or ReLU neurons that are active for every example,",
    each=("item",),
    unit="exponent",
    numbers="estimates",
    needs={"learning_rate": 3},
)
def order_of_items(tables: Tables) -> pd.DataFrame:
    """Return the convergence order of the drift of D, for the seven items of Theorem 1.

    A row is a quantity of a replicate, with the number of the theorem's item in `item`. The order,
    extrapolated to learning rate zero, is in `value`: at least 1 if gradient flow conserves D.
    `error` is the distance of the extrapolation. Only linear neurons, and ReLU neurons that are
    active for every example, count. Raises NoRows if no quantity was measured at three learning
    rates, or if training diverged.
    """
    where = "(pair == 'full' and linear or pair == 'active' and not linear)"
    return _orders(_drifts(tables, f"item > 0 and {where}"), "item")


@quantity(
    "median convergence order p (largest drift ∝ (learning rate)ᵖ as the learning rate goes to"
    " zero)",
    unit="exponent",
    needs={"learning_rate": 3},
)
def typical_order(tables: Tables, where: str) -> pd.Series:
    """Return the median convergence order of the drift over all quantities of a replicate.

    The result is indexed by replicate. The orders are extrapolated to learning rate zero: 0 means
    that gradient flow moves the quantity. where: a condition on the columns of the table `metrics`.
    Raises NoRows if no quantity was measured at three learning rates, or if training diverged.
    """
    neuron_orders = _orders(_drifts(tables, where), "graph")
    return neuron_orders.groupby("replicate")["value"].median()


@quantity(
    "the largest drift of D, extrapolated to learning rate zero, is {} the error of this"
    " extrapolation",
    each=("data", "architecture", "layer"),
    unit="ratio",
    needs={"learning_rate": 3},
)
def limit_over_error(tables: Tables, where: str) -> pd.DataFrame:
    """Return the drift at learning rate zero, divided by the error of the extrapolation to zero.

    The drift is extrapolated from the two smallest learning rates, and the error is the distance of
    the extrapolation. A row is a quantity of a replicate in one layer, with this ratio in `value`.
    A ratio above 1 means that gradient flow moves the quantity. `moved` is the extrapolated drift
    divided by the initial size.

    where: a condition on the columns of the table `metrics`. Raises NoRows if no quantity meets the
    condition, or if training diverged.
    """
    finest = _drifts(tables, where).sort_values("learning_rate").groupby(SERIES)
    rows, second = (finest.nth(i).set_index(SERIES) for i in (0, 1))
    rate = rows["learning_rate"] / (second["learning_rate"] - rows["learning_rate"])
    shift = rate * (second["drift"] - rows["drift"])
    limit = rows["drift"] - shift
    rows = rows.assign(value=limit / shift.abs(), moved=limit / rows["initial"])
    return nonempty(rows.dropna(subset="value"), NEURONS).reset_index()


@quantity(
    "largest difference between the outputs of the network and of the tree network, divided by the"
    " network's output, before and after training,"
)
def distance_of_tree(tables: Tables) -> pd.DataFrame:
    """Return the relative distance of a network's output f from the tree network μ of Lemma 1.

    A row is a network before or after training. `value` is the largest |f(x) − μ(ρ(x))| divided by
    the largest |f(x)|, over two examples x. ρ(x) are the products of input and weights along all
    paths of the network. Raises NoRows if an output is not finite.
    """
    rows = finite(tables["decomposition"], "error", "output")
    return rows.assign(value=rows["error"] / rows["output"])


def _last_dense(tables: Tables) -> pd.DataFrame:
    """Return the fully connected layers of Theorem 2 in the runs with the longest training.

    The output layer is excluded.
    """
    rows = tail(tables)
    rows = rows[rows.groupby("run")["time"].transform("max") == rows["time"].max()]
    return nonempty(rows.query("layer < depth and bound == 1 and kind == 'dense'"), LAYERS)


@quantity(
    "L p, where L is the number of layers and p the exponent of the fit ‖W‖ ∝ (log t)ᵖ (W: any"
    " layer, t: time), in the second half of the longest training, in networks without skip"
    " connections,",
    unit="ratio",
    needs={"time": 5},
)
def exponent_in_log_time(tables: Tables) -> pd.DataFrame:
    """Return how the norm of each layer grows with the logarithm of time: L times the exponent.

    The exponent p in ‖W‖ ∝ (log t)ᵖ is fitted in the second half of training. A row is a layer of a
    network with L layers, and `value` is p L. It is 1 if ‖W‖ grows like (log t)^(1/L), as Corollary
    1 states. `exponent` is p. Only the runs with the longest training count, without residual
    blocks, and only times with log t above 1. Raises NoRows if there are no such layers.
    """
    rows = every_layer(tables)
    skips = rows["kind"].str.startswith("residual").groupby(rows["run"]).transform("any")
    rows = late(longest(rows[~skips]))
    depth = nonempty(rows, LAYERS).groupby("run")["depth"].first()
    # power() gives the exponent of log t in the squared norm.
    exponents = (0.5 / power(rows, "log_flow_time")).rename("exponent").reset_index()
    return exponents.assign(value=exponents["exponent"] * exponents["run"].map(depth))


@quantity(
    "exponent p of the fit {rest} ∝ (‖W‖²)ᵖ (W: the last fully connected layers), in the second"
    " half of the longest training,",
    unit="exponent",
    needs={"time": 5},
)
def exponent_in_norm(tables: Tables, rest: str) -> pd.Series:
    """Return the exponent p of a quantity in ‖W‖², for the last fully connected layers W.

    The exponent is the slope of log `rest` against log ‖W‖² in the second half of training. The
    result is indexed by run, layer, replicate and `separates`: whether the risk falls below loss(0)
    / n. Only the runs with the longest training count. The output layer is excluded.

    rest: a formula in the columns of the table `lowrank`, as "1 - operator_ratio". Raises NoRows if
    there are no such layers.
    """
    rows = _last_dense(tables)
    rows = rows[rows["time"] >= 0.5 * rows.groupby("run")["time"].transform("max")]
    return power(rows.assign(rest=rows.eval(rest)).dropna(subset="rest"), "rest")


@quantity(
    "‖W‖₂² / ‖W‖² after training minus its bound in Eq. (14), in layers W where this bound is"
    " above the trivial one (1 / number of singular values) and above the ratio before training,",
    unit="difference",
)
def limit_above(tables: Tables) -> pd.DataFrame:
    """Return ‖W‖₂² / ‖W‖² after training minus the lower bound of Eq. (14), for each layer W.

    A row is a layer of a network, with the difference in `value`. The bound is 1 / (8ᴺ M), the
    column `bound`. Only layers count for which the bound is above the trivial bound, 1 / (number of
    singular values), and above the ratio before training. Raises NoRows if there are no such
    layers.
    """
    rows = finite(nonempty(ends(telling(tables)), LAYERS), "operator_ratio")
    return rows.assign(value=rows["operator_ratio"] - rows["bound"])


@quantity(
    "‖W‖₂² / ‖W‖² minus its bound in Eq. (13), at all times at which this bound is above the"
    " trivial one (1 / number of singular values),",
    unit="difference",
)
def ratio_above(tables: Tables) -> pd.DataFrame:
    """Return ‖W‖₂² / ‖W‖² minus the lower bound of Eq. (13), for each layer W and measured time.

    A row is a layer of a network at one time, with the difference in `value`. Only times count at
    which the bound is above the trivial bound, 1 / (number of singular values). The output layer is
    excluded. Raises NoRows if there are no such times.
    """
    rows = tail(tables).query("layer < depth and finite_bound > trivial_bound")
    rows = finite(nonempty(rows, LAYERS), "operator_ratio")
    return rows.assign(value=rows["operator_ratio"] - rows["finite_bound"])
