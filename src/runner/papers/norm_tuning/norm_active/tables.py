"""Name and count the networks of study `norm_active`, for its figure and claims."""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.norm_active.config import EXACT, WITH_HIDDEN
from runner.results.rows import Tables, nonempty

LONG = 20_000
"""Number of training steps from which on a training is called long."""


def networks(tables: Tables) -> pd.DataFrame:
    """Return the judged networks, with the width d, m / d^2, and whether the target was found.

    The column `arm` also names what differs between runs: the optimizer, a long training, trained
    last shifts, and the arm whose learning rates were taken.
    """
    rows = tables["networks"]
    rows = nonempty(rows[rows["judged"]], "judged networks")
    arm, hidden = rows["arm"], rows["arm"].isin(WITH_HIDDEN)
    adam, long = rows["optimizer"] == "adam", rows["steps"] >= LONG
    for suffix, applies in (
        (" by " + rows["optimizer"], ~adam),
        (" long", adam & long),
        (" and shifts", ~hidden & (rows["shift_rate"] > 0)),
        (" at rates of " + rows["chosen_by"].astype(str), rows["chosen_by"] != rows["arm"]),
    ):
        arm = arm + np.where(applies, suffix, "")
    return rows.assign(
        arm=arm,
        d=rows["target_width"],
        m=rows["width"],
        ratio=rows["width"] // rows["target_width"] ** 2,
        found=rows["relative_mse"] < EXACT,
    )
