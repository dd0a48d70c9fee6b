"""Quantities of claims about low rank in ordinary training.

The remainder of a layer is the sum of all squared singular values except the k largest. k is 1 for
two classes, and K − 1 for K > 2 classes (paper C's Corollary 1). Only the linear layers at the end
of a network are measured. The argument `methods` has names of optimizers, values of the column
`method`: "gradient descent", "SGD", "momentum", "Adam" and "AdamW".
"""

import numpy as np
import pandas as pd

from runner.papers.training_invariances.low_rank_training.tables import by_decay, marked
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity(
    "with the optimizers {methods}, the distance at all times from the sum of the squared singular"
    " values without the leading ones to the range between its bounds, divided by this sum,"
)
def outside(tables: Tables, methods: tuple[str, ...]) -> pd.DataFrame:
    """Return how far the remainder of each layer is outside its bounds, divided by the remainder.

    The remainder is the sum of the squared singular values except the k largest. k is 1 for two
    classes, and K − 1 for K classes. The bounds are known at initialization. A row is a linear
    layer of one network at one measured epoch. `value` is negative if the remainder is between the
    bounds. The column `diverged` marks networks whose training diverged.

    methods: names of optimizers, as "SGD". Raises NoRows if no network was trained by them.
    """
    rows = marked(tables).query("method in @methods")
    rows = nonempty(rows, f"rows of {' or '.join(methods)}")
    excess = np.maximum(rows["remainder"] - rows["upper"], rows["lower"] - rows["remainder"])
    return rows.assign(value=excess / rows["remainder"].where(rows["remainder"] != 0, 1))


@quantity(
    "with the optimizers {methods}, the relative difference after training between the sum of the"
    " squared singular values without the leading ones and exp(−2λT) times this sum in training"
    " without weight decay, divided by {margin} (two classes) or {of_many} (more classes),",
    needs={"weight_decay": 2},
)
def off_the_law(
    tables: Tables, methods: tuple[str, ...], margin: float, of_many: float
) -> pd.DataFrame:
    """Return how far the effect of weight decay on the remainder differs from exp(−2λT).

    The remainder of a layer is the sum of the squared singular values except the k largest. k is 1
    for two classes, and K − 1 for K classes. A row is an inner linear layer at the end of a run
    with weight decay λ and training time T. The column `left` is the remainder divided by the
    prediction: exp(−2λT) times the remainder of the same replicate without decay. `value` is |left
    − 1| divided by a margin. The column `diverged` marks rows in which training diverged, with or
    without decay.

    - methods: names of optimizers, as "SGD".
    - margin, of_many: the margins for two classes, and for more classes.

    Raises NoRows if there are no runs both with and without weight decay.
    """
    rows = by_decay(marked(tables)).query("method in @methods")
    rows = nonempty(rows, f"rows of {' or '.join(methods)} with weight decay")
    left = rows["decayed"] * np.exp(rows["exponent"])
    margins = np.where(rows["classes"] == 2, margin, of_many)
    return rows.assign(left=left, value=(left - 1).abs() / margins)
