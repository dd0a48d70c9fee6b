"""Measure a digit classifier and its copies with frozen random weights.

A copy has gamma and beta from the construction of Theorem 1 of paper A, or trained on the labels.
The table `metrics` has a row for each method: "target" (the classifier), "construction", "usual"
(gamma and beta trained from 1 and 0) and "active" (trained with active hidden ReLUs). d is the
number of hidden units of the classifier. A row of a result is one replicate.
"""

import pandas as pd

from runner.results.quantities import Tables, quantity
from runner.results.rows import select


def _of(tables: Tables, method: str) -> pd.DataFrame:
    rows = tables["metrics"].rename(columns={"target_width": "d"})
    return select(rows, method=method).set_index(["d", "replicate"])


@quantity(
    "fraction of test images for which classifier and construction predict the same class",
    each=("d",),
)
def agreement(tables: Tables) -> pd.Series:
    """Return the fraction of test images for which a classifier and its copy predict one class.

    A row is a replicate, with the column d, the number of hidden units of the classifier. The copy
    is a frozen random network that Theorem 1 constructs. `value` is the fraction; nan means that a
    logit is not finite. Raises NoRows if there is no copy.
    """
    return _of(tables, "construction")["agreement"].rename("value").reset_index()


@quantity("training loss of {top} / training loss of {bottom}", each=("d",), unit="ratio")
def loss_ratio(tables: Tables, top: str, bottom: str) -> pd.DataFrame:
    """Return the ratio of the training losses of two networks of the same replicate.

    A row is a replicate, with the column d, the number of hidden units of the classifier. `value`
    is the ratio of the two cross-entropies. top, bottom: a value of the column `method`: "target",
    "construction", "usual" or "active". Raises NoRows if a method was not run.
    """
    losses = [_of(tables, method)["train_loss"] for method in (top, bottom)]
    return (losses[0] / losses[1]).rename("value").reset_index()
