"""Measure a digit classifier (the target) and its copies with frozen weights, in each replicate."""

import pandas as pd

from runner.results.quantities import Tables, quantity
from runner.results.rows import select

PRINTED = {
    "target": "the classifier",
    "usual": "γ and β trained from 1 and 0",
    "active": "γ trained with active hidden ReLUs",
}
"""Printed names of methods."""


def _of(tables: Tables, method: str) -> pd.DataFrame:
    rows = tables["metrics"].rename(columns={"target_width": "d"})
    return select(rows, method=method).set_index(["d", "replicate"])


@quantity(
    "fraction of test images for which classifier and construction predict the same class",
    each=("d",),
)
def agreement(tables: Tables) -> pd.Series:
    """TODO"""
    return _of(tables, "construction")["agreement"].rename("value").reset_index()


@quantity("training loss of {top} / training loss of {bottom}", each=("d",), unit="ratio")
def loss_ratio(tables: Tables, top: str, bottom: str) -> pd.DataFrame:
    """TODO"""
    losses = [_of(tables, method)["train_loss"] for method in (top, bottom)]
    return (losses[0] / losses[1]).rename("value").reset_index()
