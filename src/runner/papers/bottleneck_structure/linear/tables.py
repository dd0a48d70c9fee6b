"""Summaries of the table of study `linear`, for its drawings and claims."""

import pandas as pd

REMAINDERS = ("after_rank", "after_first", "after_second")
"""What is left of ||theta||^2 after L k, after 2 log |A|_+ too, after the term in 1/L too."""


def with_remainders(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with what each order of the expansion leaves of ||theta||^2, and its
    `excess`: how far it is from R(A; L), relative to that or, where A is nearly zero, to one.
    """
    after_rank = metrics["parameter_norm"] - metrics["depth"] * metrics["rank"]
    after_first = after_rank - metrics["first_correction"]
    after_second = after_first - metrics["second_correction"] / metrics["depth"]
    return metrics.assign(
        after_rank=after_rank.abs(),
        after_first=after_first.abs(),
        after_second=after_second.abs(),
        excess=(metrics["parameter_norm"] - metrics["representation_cost"]).abs()
        / metrics["representation_cost"].clip(lower=1),
    )


def of_one_rank(metrics: pd.DataFrame, depths: int) -> pd.DataFrame:
    """Of each replicate the networks of one rank, that which most of its depths have, the larger of
    two; zero networks apart. Replicates that have no rank at so many depths are left out.

    The expansion is one of a matrix in the depth: its terms jump where the rank falls.
    """
    alive = metrics[metrics["rank"] > 0]
    size = alive.groupby(["replicate", "rank"])["depth"].transform("size")
    found = alive.assign(size=size).sort_values(["size", "rank"])
    most = found.groupby("replicate").tail(1)[["replicate", "rank", "size"]]
    return alive.merge(most[most["size"] >= depths].drop(columns="size"))
