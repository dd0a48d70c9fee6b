"""Select rows from the tables of study `norm_finetuning`, for its figures and claims."""

import numpy as np
import pandas as pd

from runner.results.rows import Tables, last_epoch, select

ARMS = {
    "low_rank": "rank one (LoRA)",
    "biases": "β only (BitFit)",
    "last_layer": "last layer",
    "random_weights": "random weights",
    "norm": "γ and β",
    "all": "everything",
}
"""Names of the arms in pictures, from the lowest row to the highest."""


def ends(tables: Tables, start: str = "random") -> pd.DataFrame:
    """Return the rows of the last epoch of all networks of an initialization, with new columns.

    The columns are the number of layers `L`, the width `d`, the number of trained parameters
    `trained`, and the test accuracy `right`, which is 0 for diverged networks. `inside_grid` states
    whether the learning rate is no end of its grid. start: the initialization. Raises NoRows if no
    network has it.
    """
    keys = ["start", "blocks", "width", "arm"]
    tried = tables.get("selection", tables["training"]).groupby(keys)["learning_rate"]
    rows = last_epoch(select(tables["training"], start=start))
    rows = rows[rows["arm"].isin(list(ARMS))]
    rows = rows.merge(tried.agg(least="min", most="max").reset_index(), "left", on=keys)
    rows = rows.merge(tables["metrics"][[*keys, "replicate", "trained"]], on=[*keys, "replicate"])
    return rows.assign(
        L=6 * rows["blocks"] + 2,
        d=rows["width"],
        right=rows["test_accuracy"].where(np.isfinite(rows["train_loss"]), 0.0),
        inside_grid=rows["learning_rate"].between(rows["least"], rows["most"], inclusive="neither"),
    )


def right_of(tables: Tables, arm: str) -> pd.DataFrame:
    """Return test accuracies of an arm with random frozen weights, by L, d and replicate.

    The columns are `right` and `inside_grid` of `ends`. Raises NoRows if the arm was not run.
    """
    rows = select(ends(tables), arm=arm)
    return rows.set_index(["L", "d", "replicate"])[["right", "inside_grid"]]
