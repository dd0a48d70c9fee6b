"""Select and summarize the table of study `constructions`, for its figures and claims."""

import pandas as pd

from runner.results.rows import select


def random_targets(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the table `metrics` whose target is a random network.

    Raises NoRows if there are none.
    """
    return select(metrics, target="random")


def full_rank_by_sparsity(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the fraction of sparse networks whose linear system has full rank.

    There is a row for each target width d (`target_width`) and fraction p of nonzero weights
    (`sparsity`), with the fraction in the column `fraction`. Only networks of width m = d^2 with
    targets of one layer count. metrics: the table `metrics`. Raises NoRows if no target is random.
    """
    rows = random_targets(metrics).query("theorem == 'sparse' and depth == 1")
    rows = rows[rows["width"] == rows["target_width"] ** 2]
    share = rows.groupby(["target_width", "sparsity"])["full_rank"].mean()
    return share.rename("fraction").reset_index()
