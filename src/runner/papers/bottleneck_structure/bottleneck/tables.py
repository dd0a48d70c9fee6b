"""Select ranges of depth over which networks have equal rank (paper D, section 3.1).

The rank is defined as in the caption of figure 1: the number of singular values of W_{L/2} above
0.1. Before training has converged, this number includes values that still fall to zero.
"""

import numpy as np
import pandas as pd

from runner.papers.bottleneck_structure.fits import FITTED

ENOUGH = 3
"""Smallest number of depths for a line."""
SHALLOWER = 14
"""Depth up to which R1 + R2 / L is fitted; it then predicts the norms of deeper networks."""
SHALLOWEST = 6
"""Smallest depth that counts: best solutions of depth 3 to 5 have no bottleneck."""
RANK = 2
"""Rank k* of the task of figure 1."""
ZERO = 0.01
"""Bound on ‖θ‖² below which a network counts as zero."""
STRICT = 0.02
"""A stricter threshold of the training error than FITTED, for comparison.

At a minimum, `mean <y - f, f> = lambda ||theta||^2 / L` (without biases), as rescaling the
parameters shows. This is about lambda k, the scale of the error that weight decay causes on data
without noise. STRICT is ten times as large, with lambda = 0.001 and the rank k = 2 of the task.
"""


def at_ridge(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks with the smallest weight decay of the best solutions.

    Without best solutions, return the networks with the smallest weight decay of all.
    """
    lowest = metrics[metrics["recipe"] == "minimum"]
    ridge = (lowest if len(lowest) else metrics)["ridge"].min()
    return metrics[metrics["ridge"] == ridge]


def deep(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks from depth SHALLOWEST on, or all networks if none is so deep."""
    from_shallowest = metrics[metrics["depth"] >= SHALLOWEST]
    return from_shallowest if len(from_shallowest) else metrics


def fitted(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks that fit their data (training error below 0.1)."""
    return metrics[metrics["train_cost"] < FITTED]


def with_ranges(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the networks that fit, with a column `range`, the number of their range.

    A range is a sequence of neighboring depths of equal rank, in one recipe and replicate.
    """
    networks = fitted(metrics).sort_values(["recipe", "replicate", "depth"])
    key = networks[["recipe", "replicate", "rank"]]
    changed = (key != key.shift()).any(axis=1)
    return networks.assign(range=changed.cumsum())


def successive_slopes(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return the slope of loss / lambda in L between neighboring depths of a range.

    There is a row for each pair of depths, with the columns replicate, rank, range, last (the
    larger depth) and slope.
    """
    networks = with_ranges(metrics)
    steps = networks.groupby("range")[["depth", "loss"]].diff()
    slope = steps["loss"] / steps["depth"] / networks["ridge"]
    rows = networks[["replicate", "rank", "range"]].assign(last=networks["depth"], slope=slope)
    return rows[steps["depth"].notna()]


def fits(metrics: pd.DataFrame, depths: int = ENOUGH) -> pd.DataFrame:
    """Return fits to `||theta||^2`, a row for each range of at least `depths` depths.

    A range is a sequence of neighboring depths of equal rank k. depths: three or more. The columns
    are:

    - replicate, rank, and depths, the number of depths;
    - slope: the slope of the fitted line in L;
    - slope_error: the change of the slope if each norm moves by the difference of the best two
      losses;
    - off: the largest distance from the line, relative to the range of the norm;
    - r2: R^2 of the line.
    """
    rows = []
    for _, group in with_ranges(metrics).groupby("range"):
        if len(group) < depths:
            continue
        L, norm = group["depth"].to_numpy(float), group["parameter_norm"].to_numpy()
        replicate, rank = group[["replicate", "rank"]].iloc[0]
        line = np.polyfit(L, norm, 1)
        rest = norm - np.polyval(line, L)
        off, r2 = np.abs(rest).max() / np.ptp(norm), 1 - rest.var() / norm.var()
        doubt = group.reindex(columns=["loss", "ridge", "spread"]).eval("loss / ridge * spread")
        error = np.abs(np.linalg.pinv(np.vander(L, 2))[0]) @ doubt.fillna(doubt.max())
        rows.append((replicate, rank, len(L), line[0], error, off, r2))
    names = "replicate rank depths slope slope_error off r2"
    return pd.DataFrame(rows, columns=names.split())


def expansion(networks: pd.DataFrame) -> tuple[float, float]:
    """Return R1 and R2 of the expansion `||theta||^2 = k L + R1 + R2 / L`, fitted to networks.

    networks: best solutions of one task and equal rank k, at two or more depths.
    """
    L = networks["depth"].to_numpy(float)
    excess = (networks["parameter_norm"] - networks["rank"] * networks["depth"]).to_numpy()
    R1, R2 = np.linalg.lstsq(np.stack([np.ones_like(L), 1 / L], 1), excess)[0]
    return float(R1), float(R2)


def bottleneck_lengths(metrics: pd.DataFrame, spectrum: pd.DataFrame) -> pd.DataFrame:
    """Return the networks that fit, with the number of layers outside the bottleneck.

    The number is in the column `outside`; the column `range` is added, too, see `with_ranges`. A
    layer is inside if it has as many singular values above 0.5 as the middle layer W_{L/2}. The
    value 0.5 is half-way between the values 0 and 1 of the theory. metrics, spectrum: the tables
    `metrics` and `spectrum`.
    """
    key = ["recipe", "replicate", "depth"]
    large = spectrum.assign(large=spectrum["singular_value"] > 0.5)
    counts = large.groupby([*key, "layer"])["large"].sum().reset_index("layer")
    middle = counts.query("layer == depth // 2")["large"].reindex(counts.index)
    outside = (counts["large"] != middle).groupby(level=key).sum().rename("outside")
    return with_ranges(metrics).join(outside, on=key)
