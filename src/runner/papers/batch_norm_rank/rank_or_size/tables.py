"""Choose learning rates and join the tables of study `rank_or_size`, for its figure and claims."""

import pandas as pd

from runner.papers.batch_norm_rank.learning import end_of_grid, with_divergence
from runner.results.rows import Tables, nonempty, select

ARM = ["family", "level"]
"""Columns that identify an initialization among all runs of a figure."""

AT_SIZE_1 = ("signed", "product", "copied", "flipped")
"""Families with zero biases whose layers have size 1. They differ in rank and directions."""


MARGIN = 0.15
"""Difference of training accuracies up to which two initializations learn equally well.

It is half of what random signs gain over positive weights (0.74 against 0.42), on other seeds.
"""


def networks(tables: Tables) -> pd.DataFrame:
    """Return a row for each judged network: before training, and at the end of the training.

    Each network has its chosen learning rate. This is the one with the lowest training loss in the
    last epoch, a mean over the replicates that choose. With a single learning rate there is no
    choice. Diverged networks have infinite loss and accuracy zero. The added column `end` says
    whether the chosen learning rate is the `smallest` or the `largest` of its grid.
    """
    rows = with_divergence(tables["training"])
    last = rows[rows["epoch"] == rows.groupby("run")["epoch"].transform("max")]
    kind = ["run", *ARM]
    grids = last.groupby(kind)["learning_rate"]
    tried = last[~last["judged"] | (grids.transform("nunique") == 1)]
    means = tried.groupby([*kind, "learning_rate"], as_index=False)["train_loss"].mean()
    means = means.sort_values(["train_loss", "learning_rate"]).drop_duplicates(kind)
    offered = grids.agg(set).rename("offered").reset_index()
    chosen = means.drop(columns="train_loss").merge(offered, on=kind)
    pairs = zip(chosen["learning_rate"], chosen["offered"], strict=True)
    chosen = chosen.assign(end=[end_of_grid(*pair) for pair in pairs]).drop(columns="offered")
    ends = last[last["judged"]].merge(chosen, on=[*kind, "learning_rate"])
    measures = ["rank", "rank_bound", "deviations_bound", "size", "spread"]
    before = tables["before"][[*kind, "replicate", *measures]]
    return nonempty(ends.merge(before, on=[*kind, "replicate"]), "networks")


def of_family(rows: pd.DataFrame, family: str) -> pd.DataFrame:
    """Return the networks of a family. Raises NoRows if there are none."""
    return select(rows, family=family)


def full_rank(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the networks of a family's largest level, which is full rank or the largest size."""
    return rows[rows["level"] == rows["level"].max()]
