"""Selections and summaries of the table of study `constructions`, for its drawings and claims."""

import numpy as np
import pandas as pd

from runner.results.rows import select


def random_targets(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows of random targets, in all arithmetics. Raises NoRows without one."""
    return select(metrics, target="random")


def full_rank_by_sparsity(metrics: pd.DataFrame) -> pd.DataFrame:
    """For each d and p: the fraction of draws of full rank, its error, and the share predicted.

    `standard_error` is that of a binomial fraction, by Agresti and Coull (finite at 0 and 1);
    `live_units` is the probability that no hidden unit is cut off.
    """
    from runner.papers.norm_tuning.theory import live_units_probability  # late: torch

    rows = random_targets(metrics).query("theorem == 'sparse' and depth == 1")
    rows = rows[rows["width"] == rows["target_width"] ** 2]
    keys = ["target_width", "sparsity"]
    drawn = rows.groupby(keys)["full_rank"].agg(["mean", "sum", "size"]).reset_index()
    drawn.columns = [*keys, "fraction", "count", "replicates"]
    adjusted = (drawn["count"] + 2) / (drawn["replicates"] + 4)
    drawn["standard_error"] = np.sqrt(adjusted * (1 - adjusted) / (drawn["replicates"] + 4))
    drawn["live_units"] = [
        live_units_probability(int(d), int(d), int(d) ** 2, p)
        for d, p in zip(drawn["target_width"], drawn["sparsity"], strict=True)
    ]
    return drawn
