"""Ranges of depth in which a sequence of networks keeps its rank (paper D, section 3.1).

The rank is the caption's: how many singular values of W_{L/2} are above 0.1. Where training has not
converged, values on their way to zero count, too; the largest gap in the spectrum (`rank_gap`) then
says less, and stands beside it.
"""

import numpy as np
import pandas as pd

FITTED = 0.1
"""Paper D, figure 1: a train cost below 0.1 is a dot, above it a cross."""
ENOUGH = 3
"""Depths that a line is fitted through."""
DEPTHS_OF_EXPANSION = 5
"""Depths that R1 + R2 / L is fitted through: three more than it has numbers."""
POWERS = np.round(np.arange(0.2, 3.01, 0.02), 2)
"""Of L, among which the norm's is sought."""


def at_ridge(metrics: pd.DataFrame) -> pd.DataFrame:
    """The networks with the ridge of the lowest losses, where others were trained with more."""
    lowest = metrics[metrics["recipe"] == "minimum"]
    ridge = (lowest if len(lowest) else metrics)["ridge"].min()
    return metrics[metrics["ridge"] == ridge]


def fitted(metrics: pd.DataFrame) -> pd.DataFrame:
    """The networks that fit their data: train cost below 0.1."""
    return metrics[metrics["train_cost"] < FITTED]


def with_ranges(metrics: pd.DataFrame) -> pd.DataFrame:
    """The fitting networks with a column `range`: a number for each run of neighbouring depths, of
    one recipe and replicate, that keep their rank."""
    found = fitted(metrics).sort_values(["recipe", "replicate", "depth"])
    key = found[["recipe", "replicate", "rank"]]
    changed = (key != key.shift()).any(axis=1)
    return found.assign(range=changed.cumsum())


def successive_slopes(metrics: pd.DataFrame) -> pd.DataFrame:
    """From one depth to the next in a range: the slope of loss / lambda in L, with its rank.

    One row per pair of neighbouring depths: recipe, replicate, rank, range, first, last, slope.
    """
    found = with_ranges(metrics)
    before = found.groupby("range")[["depth", "loss"]].shift()
    slope = (found["loss"] - before["loss"]) / (found["depth"] - before["depth"]) / found["ridge"]
    columns = found[["recipe", "replicate", "rank", "range"]]
    steps = columns.assign(first=before["depth"], last=found["depth"], slope=slope)
    return steps.dropna(subset="first")


def affine_fits(metrics: pd.DataFrame) -> pd.DataFrame:
    """A line `||theta||^2 = slope L + intercept` through every range of three or more depths.

    One row per range: recipe, replicate, rank, depths, first, last, slope, intercept, and exponent:
    the p of the POWERS for which `a + b L^p` fits best.
    """
    rows = []
    for _, group in with_ranges(metrics).groupby("range"):
        if len(group) < ENOUGH:
            continue
        L, norm = group["depth"].to_numpy(float), group["parameter_norm"].to_numpy()
        slope, intercept = np.polyfit(L, norm, 1)
        exponent = min(POWERS, key=lambda p: _left(np.stack([L**p, np.ones_like(L)], 1), norm))
        key = group[["recipe", "replicate", "rank"]].iloc[0]
        rows.append((*key, len(L), int(L.min()), int(L.max()), slope, intercept, exponent))
    columns = ["recipe", "replicate", "rank", "depths", "first", "last"]
    return pd.DataFrame(rows, columns=[*columns, "slope", "intercept", "exponent"])


def expansions(metrics: pd.DataFrame) -> pd.DataFrame:
    """`||theta||^2 - k L = R1 + R2 / L` fitted over every range of DEPTHS_OF_EXPANSION or more.

    One row per range: recipe, replicate, rank, R1, R2, and left: the largest deviation from the
    fit, relative to how far `||theta||^2 - k L` moves over the range.
    """
    rows = []
    for _, group in with_ranges(metrics).groupby("range"):
        if len(group) < DEPTHS_OF_EXPANSION:
            continue
        L, excess = group["depth"].to_numpy(float), group.eval("parameter_norm - rank * depth")
        columns = np.stack([np.ones_like(L), 1 / L], 1)
        found = np.linalg.lstsq(columns, excess.to_numpy())[0]
        left = np.abs(excess - columns @ found).max() / np.ptp(excess)
        rows.append((*group[["recipe", "replicate", "rank"]].iloc[0], *found, left))
    return pd.DataFrame(rows, columns=["recipe", "replicate", "rank", "R1", "R2", "left"])


def _left(columns: np.ndarray, values: np.ndarray) -> float:
    """Sum of squares that the least-squares combination of some columns leaves."""
    found = np.linalg.lstsq(columns, values)[0]
    return float(np.square(values - columns @ found).sum())


def bottleneck_lengths(metrics: pd.DataFrame, spectrum: pd.DataFrame) -> pd.DataFrame:
    """For every fitting network its range, and its layers inside the bottleneck and outside.

    Inside: the number of singular values of W_l above 0.5, half-way between the theory's 0 and 1,
    is that of W_{L/2}.
    """
    key = ["recipe", "replicate", "depth"]
    counts = (spectrum["singular_value"] > 0.5).groupby(
        [spectrum[name] for name in (*key, "layer")]
    )
    counts = counts.sum().rename("large").reset_index()
    middle = counts[counts["layer"] == counts["depth"] // 2].set_index(key)["large"]
    counts["middle"] = middle.reindex(pd.MultiIndex.from_frame(counts[key])).to_numpy()
    inside = (counts["large"] == counts["middle"]).groupby([counts[name] for name in key]).sum()
    table = with_ranges(metrics).set_index(key)[["rank", "range"]]
    table["inside"] = inside.reindex(table.index)
    table = table.reset_index()
    table["outside"] = table["depth"] - table["inside"]
    return table
