"""Exact rates of the quantities in `tables.SHOWN`, and how their drift depends on the step size."""

import pandas as pd

from runner.papers.training_invariances.practical_layers.tables import orders, shown
from runner.results.quantities import Tables, quantity

PRINTED = {
    "not control": "gradient flow conserves the quantity",
    "control": "the quantity is a control",
    "method != 'Adam'": "the optimizer is not Adam",
    "method == 'Adam'": "the optimizer is Adam",
    "network != 'batch_norm'": "the network has no batch norm",
}
"""Printed names of conditions."""


@quantity(
    "rate of change under gradient flow / largest rate that the sizes of weights and gradients allow"
)
def exact_rate(tables: Tables, where: str) -> pd.DataFrame:
    """Return one row per network, replicate, learning rate and quantity D of the figure. `value` is
    the rate at which gradient flow changes D, relative to the largest possible rate: it is zero up
    to rounding if D is conserved. where: `control` for the quantities that gradient flow does
    change, `not control` for the others. Raises NoRows if no quantity of the figure was measured.
    """
    return shown(tables).query(where).rename(columns={"rate": "value"})


@quantity(
    "convergence order: exponent of the drift in the learning rate",
    each=("method",),
    unit="exponent",
    needs={"learning_rate": 3},
)
def order(tables: Tables, where: str) -> pd.DataFrame:
    """TODO"""
    return orders(tables).query(where)
