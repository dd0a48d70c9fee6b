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

    One row per range: recipe, replicate, rank, depths, first, last, slope, intercept, r2.
    """
    rows = []
    for _, group in with_ranges(metrics).groupby("range"):
        if len(group) < ENOUGH:
            continue
        L, norm = group["depth"].to_numpy(float), group["parameter_norm"].to_numpy()
        slope, intercept = np.polyfit(L, norm, 1)
        residual = norm - slope * L - intercept
        r2 = 1 - (residual**2).sum() / ((norm - norm.mean()) ** 2).sum()
        key = group[["recipe", "replicate", "rank"]].iloc[0]
        rows.append((*key, len(L), int(L.min()), int(L.max()), slope, intercept, r2))
    columns = ["recipe", "replicate", "rank", "depths", "first", "last"]
    return pd.DataFrame(rows, columns=[*columns, "slope", "intercept", "r2"])


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
