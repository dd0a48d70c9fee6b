"""Measure what gradient flow conserves in small networks with layers that people use.

A quantity is a matrix D, a sum of Gram matrices of weights, see `modules.Quantity`. `tables.SHOWN`
lists the quantities of the figure. Controls are quantities that gradient flow changes.

The argument `where` is a condition on the columns `control`, `method` (the printed name of the
optimizer) and `network`, as for `DataFrame.query`. An example is `not control and method !=
'Adam'`. A function raises NoRows if no quantity of the figure was measured.
"""

import pandas as pd

from runner.papers.training_invariances.practical_layers.tables import orders, shown
from runner.results.quantities import Tables, quantity


@quantity(
    "rate at which gradient flow changes the quantity, divided by the largest rate that the sizes"
    " of weights and gradients allow,"
)
def exact_rate(tables: Tables, where: str) -> pd.DataFrame:
    """Return the rate at which gradient flow changes each quantity D, relative to the largest rate.

    The largest rate is the one that the sizes of weights and gradients allow. There is a row for
    each quantity of the figure, network, replicate and learning rate, with the rate in `value`. It
    is zero up to rounding if gradient flow conserves D. where: a condition on the columns, as "not
    control". Raises NoRows if no quantity of the figure was measured.
    """
    return shown(tables).query(where).rename(columns={"rate": "value"})


@quantity(
    "convergence order p (drift ∝ (learning rate)ᵖ at the two smallest learning rates)",
    each=("method",),
    unit="exponent",
    needs={"learning_rate": 3},
)
def order(tables: Tables, where: str) -> pd.DataFrame:
    """Return the convergence order of each quantity: the drift's exponent in the learning rate.

    A row is a quantity of the figure in one network, replicate and optimizer, with the exponent in
    `value`. The exponent is 1 if gradient flow conserves the quantity, and 0 if the flow moves it.
    `asymptotic` is whether the exponent no longer changes. where: a condition on the columns, as
    "control and method != 'Adam'". Raises NoRows if no quantity of the figure was measured at three
    learning rates.
    """
    return orders(tables).query(where)
