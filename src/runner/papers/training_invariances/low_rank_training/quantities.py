"""What is measured of low rank in training: the remainder, all singular values but the k largest,
squared and summed, in the layers of the linear tail; k as paper C's Corollary 1 has it."""

import numpy as np
import pandas as pd

from runner.papers.training_invariances.low_rank_training.tables import by_decay, marked
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity()
def outside(tables: Tables, methods: tuple[str, ...]) -> pd.DataFrame:
    """how far the remainder is outside its bounds / remainder, at all times ({methods})"""
    rows = marked(tables).query("method in @methods")
    rows = nonempty(rows, f"rows of {' or '.join(methods)}")
    excess = np.maximum(rows["remainder"] - rows["upper"], rows["lower"] - rows["remainder"])
    return rows.assign(value=excess / rows["remainder"].where(rows["remainder"] != 0, 1))


@quantity(needs={"weight_decay": 2})
def off_the_law(
    tables: Tables, methods: tuple[str, ...], margin: float, of_many: float
) -> pd.DataFrame:
    """|remainder / (that without decay × exp(−2λT)) − 1| at the end ({methods}), \
in units of {margin} (two classes) or {of_many} (more)"""
    rows = by_decay(marked(tables)).query("method in @methods")
    rows = nonempty(rows, f"rows of {' or '.join(methods)} with weight decay")
    left = rows["decayed"] * np.exp(rows["exponent"])
    margins = np.where(rows["classes"] == 2, margin, of_many)
    return rows.assign(left=left, value=(left - 1).abs() / margins)
