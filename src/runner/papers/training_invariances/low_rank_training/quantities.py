"""Quantities of low rank in ordinary training.

The remainder is the sum of all squared singular values except the k largest, in the linear layers
at the end; k = 1 for two classes, K − 1 for K classes (paper C's Corollary 1).
"""

import numpy as np
import pandas as pd

from runner.papers.training_invariances.low_rank_training.tables import by_decay, marked
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty

PRINTED = {"not diverged": "training did not diverge"}
"""Printed names of conditions."""


@quantity(
    "how far the remainder is outside its bounds, divided by the remainder, at all times (optimizers: {methods})"
)
def outside(tables: Tables, methods: tuple[str, ...]) -> pd.DataFrame:
    """TODO"""
    rows = marked(tables).query("method in @methods")
    rows = nonempty(rows, f"rows of {' or '.join(methods)}")
    excess = np.maximum(rows["remainder"] - rows["upper"], rows["lower"] - rows["remainder"])
    return rows.assign(value=excess / rows["remainder"].where(rows["remainder"] != 0, 1))


@quantity(
    "|remainder / (remainder without weight decay × exp(−2λT)) − 1| after training, divided by "
    "{margin} (two classes) or {of_many} (more classes) (optimizers: {methods})",
    needs={"weight_decay": 2},
)
def off_the_law(
    tables: Tables, methods: tuple[str, ...], margin: float, of_many: float
) -> pd.DataFrame:
    """Return one row per inner layer at the end of each run with weight decay λ, matched with the same
    replicate without decay; `value` is the printed number. The remainder is the sum of the squared
    singular values except the k largest, k = 1 for two classes and K − 1 for K. methods: names of
    optimizers, as in the column `method`. Raises NoRows if there are no such runs.
    """
    rows = by_decay(marked(tables)).query("method in @methods")
    rows = nonempty(rows, f"rows of {' or '.join(methods)} with weight decay")
    left = rows["decayed"] * np.exp(rows["exponent"])
    margins = np.where(rows["classes"] == 2, margin, of_many)
    return rows.assign(left=left, value=(left - 1).abs() / margins)
