"""Quantities of the claims about VGG-19 without batch norm: a number for each replicate.

A replicate is an independent repetition. The learned fraction is 0 at chance level and 1 for a
perfect fit; it is the one of the last epoch. Diverged networks have accuracy zero.
"""

import pandas as pd

from runner.papers.batch_norm_rank.learning import chance_level, learned_share, with_divergence
from runner.results.quantities import Tables, quantity
from runner.results.rows import select


def _learned(tables: Tables) -> pd.Series:
    """Return the learned fraction at the last epoch, by method and replicate."""
    rows = with_divergence(tables["training"])
    last = rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]
    accuracy = last.set_index(["method", "replicate"])["train_accuracy"]
    return learned_share(accuracy, chance_level(tables))


@quantity("learned fraction at the last epoch (0: chance level, 1: all images)", each=("method",))
def learned(tables: Tables) -> pd.DataFrame:
    """Return the learned fraction, a row for each method and replicate.

    The column `alignment` has the alignment of the gradients before training.
    """
    before = tables["before"].set_index(["method", "replicate"])["alignment"]
    return _learned(tables).rename("value").to_frame().join(before).reset_index()


@quantity("learned fraction of {method} at the last epoch (0: chance level, 1: all images)")
def learned_by(tables: Tables, method: str) -> pd.Series:
    """Return the learned fraction of a method. Raises NoRows if it was not run."""
    return select(learned().measure(tables), method=method).set_index("replicate")["value"]


@quantity("learned fraction of {method} at the last epoch minus that of {than}", unit="difference")
def ahead(tables: Tables, method: str, than: str) -> pd.Series:
    """Return the difference of two methods' learned fractions. Raises NoRows if one was not run."""
    rows = learned().measure(tables)
    one, other = (select(rows, method=m).set_index("replicate")["value"] for m in (method, than))
    return one - other


@quantity(
    "in {method} before training, the gradient norm of the first convolution is {} that of"
    " the last",
    unit="ratio",
)
def first_over_last(tables: Tables, method: str) -> pd.Series:
    """Return the gradient norm of the first convolution divided by the one of the last."""
    rows = select(tables["before"], method=method).set_index("replicate")
    return rows["first_gradient"] / rows["last_gradient"]
