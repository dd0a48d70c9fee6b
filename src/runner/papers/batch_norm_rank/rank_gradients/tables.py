"""Select the networks of study `rank_gradients`, for its figure and claims."""

import pandas as pd

from runner.results.rows import Tables, select

NETWORKS = {
    "ReLU, batch norm": {"activation": "relu", "normalization": "batch", "init": "gain"},
    "ReLU, plain": {"activation": "relu", "normalization": "none", "init": "gain"},
    "linear, batch norm": {"activation": "linear", "normalization": "batch", "init": "gain"},
    "linear, batch norm, orthogonal weights": {
        "activation": "linear",
        "normalization": "batch",
        "init": "orthogonal",
    },
}
"""Columns of the networks by printed name; weights are Gaussian unless the name says otherwise."""


def rows_of(tables: Tables, network: str) -> pd.DataFrame:
    """Return the rows of a network of NETWORKS with the symbols d, L and N of the paper.

    `ratio` is the gradient norm of the first hidden layer / of the last, `gap` the orthogonality
    gap of the last hidden layer.
    """
    from runner.papers.batch_norm_rank.theory import orthogonality_gap  # late import of torch

    rows = select(tables["metrics"], **NETWORKS[network])
    pairs = zip(rows["rank_bound"], rows["samples"], strict=True)
    return rows.assign(
        ratio=rows["first_gradient"] / rows["last_gradient"],
        gap=[orthogonality_gap(r, samples) for r, samples in pairs],
    ).rename(columns={"width": "d", "depth": "L", "samples": "N"})
