"""Summarize the table of study `linear`, for its figure and claims."""

import pandas as pd

REMAINDERS = ("after_rank", "after_first", "after_second")
"""Columns of the residual of ||theta||^2 after subtracting L k, 2 log |A|_+, and the 1/L term."""


def with_remainders(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks with the columns `off_formula` and REMAINDERS.

    `off_formula` is the difference of ||theta||^2 and R(A; L), relative to the larger of R(A; L)
    and one. REMAINDERS are the absolute residuals of ||theta||^2 after each term of its expansion.
    """
    after_rank = metrics["parameter_norm"] - metrics["depth"] * metrics["rank"]
    after_first = after_rank - metrics["first_correction"]
    after_second = after_first - metrics["second_correction"] / metrics["depth"]
    return metrics.assign(
        after_rank=after_rank.abs(),
        after_first=after_first.abs(),
        after_second=after_second.abs(),
        off_formula=(metrics["parameter_norm"] - metrics["representation_cost"]).abs()
        / metrics["representation_cost"].clip(lower=1),
    )


def of_one_rank(metrics: pd.DataFrame, depths: int) -> pd.DataFrame:
    """Return each replicate's networks that have its most frequent rank.

    The larger one of two equally frequent ranks is used. Zero networks are excluded, and so are
    replicates with fewer than `depths` networks of one rank. The expansion is about matrices of one
    rank; its terms jump between depths of different rank.
    """
    alive = metrics[metrics["rank"] > 0]
    size = alive.groupby(["replicate", "rank"])["depth"].transform("size")
    counts = alive.assign(size=size).sort_values(["size", "rank"])
    most = counts.groupby("replicate").tail(1)[["replicate", "rank", "size"]]
    return alive.merge(most[most["size"] >= depths].drop(columns="size"))
