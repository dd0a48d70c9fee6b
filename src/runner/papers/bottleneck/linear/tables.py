"""Summaries of the table of study `linear`, for its drawings and claims."""

import pandas as pd

REMAINDERS = ("after_rank", "after_first", "after_second")
"""What is left of ||theta||^2 after L k, after 2 log |A|_+ too, after the term in 1/L too."""


def with_remainders(metrics: pd.DataFrame) -> pd.DataFrame:
    """The rows with what each order of the expansion leaves of ||theta||^2, and the relative excess
    of ||theta||^2 over R(A; L).
    """
    after_rank = metrics["parameter_norm"] - metrics["depth"] * metrics["rank"]
    after_first = after_rank - metrics["first_correction"]
    after_second = after_first - metrics["second_correction"] / metrics["depth"]
    return metrics.assign(
        after_rank=after_rank.abs(),
        after_first=after_first.abs(),
        after_second=after_second.abs(),
        excess=(metrics["parameter_norm"] / metrics["representation_cost"] - 1).abs(),
    )
