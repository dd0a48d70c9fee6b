"""Select and summarize the table of study `constructions`, for its figures and claims."""

import pandas as pd

from runner.results.rows import select


def random_targets(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose target is a random network, in either arithmetic.

    Raises NoRows if there are none.
    """
    return select(metrics, target="random")


def full_rank_by_sparsity(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the fraction of networks of full rank, for each target width d and sparsity p.

    Only sparse networks of width m = d^2 and depth 1 count. The column is `fraction`. Raises NoRows
    if no target is random.
    """
    rows = random_targets(metrics).query("theorem == 'sparse' and depth == 1")
    rows = rows[rows["width"] == rows["target_width"] ** 2]
    share = rows.groupby(["target_width", "sparsity"])["full_rank"].mean()
    return share.rename("fraction").reset_index()
