"""Name the networks of study `rank_gradients`, for its figure and claims."""

import pandas as pd

from runner.results.labels import names_in
from runner.results.rows import Tables

NETWORKS = {
    ("relu", "batch", "gain"): "ReLU, batch norm",
    ("relu", "none", "gain"): "ReLU, plain",
    ("linear", "batch", "gain"): "linear, batch norm",
    ("linear", "batch", "orthogonal"): "linear, batch norm, orthogonal weights",
}
"""Names of networks by activation, normalization and initialization. No claim uses other networks.
"""


def network_name(activation: str, normalization: str, init: str) -> str:
    """Return the name of a network in the figure, such as "ReLU, batch norm"."""
    if name := NETWORKS.get((activation, normalization, init)):
        return name
    words = [
        names_in(__name__).value("activation", activation),
        names_in(__name__).value("normalization", normalization),
    ]
    return ", ".join(words if init == "gain" else [*words, f"{init} weights"])


def networks(tables: Tables) -> pd.DataFrame:
    """Return the rows of all networks, with added columns and the paper's symbols.

    The symbols are the width `d`, the depth `L` and the number `N` of samples. The column `network`
    has the network's name. The column `ratio` is the gradient norm of the first hidden layer,
    divided by the gradient norm of the last one. The column `gap` is the orthogonality gap of the
    last hidden layer.
    """
    from runner.papers.batch_norm_rank.theory import orthogonality_gap  # late import of torch

    rows = tables["metrics"]
    kinds = zip(rows["activation"], rows["normalization"], rows["init"], strict=True)
    gaps = map(orthogonality_gap, rows["rank_bound"], rows["samples"])
    ratio = rows["first_gradient"] / rows["last_gradient"]
    names = [network_name(*kind) for kind in kinds]
    rows = rows.assign(network=names, gap=[*gaps], ratio=ratio)
    return rows.rename(columns={"width": "d", "depth": "L", "samples": "N"})
