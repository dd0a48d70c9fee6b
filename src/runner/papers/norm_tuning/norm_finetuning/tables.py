"""Select rows from the tables of study `norm_finetuning`, for its figures and claims."""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.names import NAMES
from runner.results.rows import Tables, last_epoch, select

ARMS = NAMES["arm"]
"""Names and looks of the trained parts, from the lowest row of a picture to the highest."""


def ends(tables: Tables, start: str = "random") -> pd.DataFrame:
    """Return the rows of the table `training` after the last epoch, with additional columns.

    - `L`: the number of layers. `d`: the number of channels in the first stage.
    - `trained`: the number of trained parameters.
    - `right`: the test accuracy; 0 for networks that diverged.
    - `inside_grid`: whether the learning rate is neither the smallest nor the largest that was
      tried.

    start: the frozen weights, "random" or "pretrained". Raises NoRows if no network has them.
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
    """Return the test accuracies of the random ResNets in which one part was trained.

    The table is indexed by number of layers L, width d and replicate. Its columns are `right`, the
    accuracy after the last epoch, and `inside_grid`, as in `ends`. arm: the trained part, as
    "norm". Raises NoRows if the part was not trained.
    """
    rows = select(ends(tables), arm=arm)
    return rows.set_index(["L", "d", "replicate"])[["right", "inside_grid"]]
