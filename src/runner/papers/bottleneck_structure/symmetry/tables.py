"""Select rows from the tables of study `symmetry`, for its figures and claims."""

import numpy as np
import pandas as pd

FITTED = 0.1
"""Test error below which a network fits, as in figure 1; the zero network has 1."""


def middle_layers(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the middle half of the layers, from L/4 to 3L/4."""
    L = metrics["layer"].max()
    return metrics[metrics["layer"].between(np.ceil(L / 4), np.floor(3 * L / 4))]


def paths(embedding: pd.DataFrame, columns: tuple[str, str] = ("pc1", "pc2")) -> np.ndarray:
    """Return the gradient-descent paths of one network, an array (paths, times, 2).

    embedding: the rows of the table for this network. columns: the two columns that are the
    coordinates. Paths with fewer times than the longest path are excluded.
    """
    rows = embedding.sort_values(["path", "time"])
    counts = rows.groupby("path").size()
    rows = rows[rows["path"].isin(counts.index[counts == counts.max()])]
    return rows[list(columns)].to_numpy().reshape(rows["path"].nunique(), -1, 2)


def crossing(xy: np.ndarray) -> int:
    """Return the number of pairs of paths that cross in the plane.

    xy: an array (paths, times, 2).
    """
    start, end = xy[:, :-1].reshape(-1, 2), xy[:, 1:].reshape(-1, 2)
    step, pieces = end - start, max(1, xy.shape[1] - 1)

    def side(point: np.ndarray) -> np.ndarray:  # side of each segment on which a point lies
        gap = point - start[:, None]
        return step[:, None, 0] * gap[..., 1] - step[:, None, 1] * gap[..., 0]

    apart = side(start) * side(end) < 0
    i, j = np.divmod(np.argwhere(apart & apart.T), pieces)[0].T if apart.any() else ((), ())
    return len({(x, y) for x, y in zip(i, j, strict=True) if x < y})
