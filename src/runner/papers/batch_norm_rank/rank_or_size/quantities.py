"""Quantities of the claims about rank, directions and size: a number for each replicate.

A replicate is an independent repetition. All networks of a replicate share Glorot weights and data.
Accuracies are training accuracies in the last epoch, at the learning rate that was chosen on other
replicates.
"""

import pandas as pd

from runner.papers.batch_norm_rank.rank_or_size.tables import AT_SIZE_1, networks, of_family
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


def _accuracy(tables: Tables, family: str) -> pd.Series:
    """Return the accuracy of a family with one network, by replicate."""
    return of_family(networks(tables), family).set_index("replicate")["train_accuracy"]


@quantity("training accuracy of {family} minus that of {than}", unit="difference")
def ahead(tables: Tables, family: str, than: str) -> pd.Series:
    """Return the difference of two families' accuracies, for each replicate.

    family, than: names of families that have one network each. Raises NoRows if one was not run.
    """
    return _accuracy(tables, family) - _accuracy(tables, than)


@quantity(
    "training accuracy at full rank minus that at rank {rank}",
    each=("construction",),
    unit="difference",
)
def full_minus(tables: Tables, rank: int) -> pd.DataFrame:
    """Return the accuracy at full rank minus the accuracy at a low rank.

    There is a number for each construction of the rank (the column `construction`) and replicate.
    rank: the low rank. Raises NoRows if one of them was not run.
    """
    rows = networks(tables)
    rows = rows[rows["family"].isin(["product", "copied"])].rename(
        columns={"family": "construction"}
    )
    keys = ["construction", "replicate"]
    highest = rows["level"] == rows.groupby("construction")["level"].transform("max")
    low = nonempty(rows[(rows["level"] == rank) & ~highest], f"networks of rank {rank}")
    full, low = (part.set_index(keys)["train_accuracy"] for part in (rows[highest], low))
    return (full - low).rename("value").reset_index()


@quantity(
    "over networks of size 1 with zero biases, Spearman's correlation of the training accuracy with"
    " r of the deviations from the mean, minus its correlation with the rank,",
    unit="difference",
    needs={"family": 3},
)
def ordered_better(tables: Tables) -> pd.DataFrame:
    """Return by how much r of the deviations orders the accuracies better than the rank does.

    The value is the difference of two Spearman correlations over all networks of size 1 and
    zero biases of a replicate. The columns `of_deviations`, `of_rank` and `of_r` have the
    correlations themselves.
    """
    rows = networks(tables)
    columns = {
        "of_deviations": "deviations_bound",
        "of_rank": "rank",
        "of_r": "rank_bound",
        "of_spread": "spread",
    }
    by = nonempty(rows[rows["family"].isin(AT_SIZE_1)], "networks of size 1").groupby("replicate")

    def correlations(group: pd.DataFrame) -> pd.Series:
        """Return Spearman's correlations of the accuracies of a replicate, by column name."""
        ordered = group[[*columns.values(), "train_accuracy"]].rank().corr()["train_accuracy"]
        return pd.Series({name: ordered[column] for name, column in columns.items()})

    found = by.apply(correlations, include_groups=False).reset_index()
    return found.assign(value=found["of_deviations"] - found["of_rank"])
