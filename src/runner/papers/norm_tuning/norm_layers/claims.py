"""What paper A's Proposition 1 says of real normalization layers, and where it ends."""

import numpy as np
import pandas as pd

from runner.papers.norm_tuning.norm_layers.tables import training_mode
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import above, below, everywhere, slopes
from runner.results.rows import select

SMALL = 0.01
"""Of the variance of g."""

EPSILON = np.finfo(np.float64).eps


def exact(tables: Tables) -> Found:
    """The shifts that switch the ReLUs on, and are taken out again, are as large as the input norm
    times what they carry: so rounding is as in figure 4."""
    rows = select(tables["metrics"], layer="batch_norm", mode="evaluation")
    bound = EPSILON * rows["condition_number"] * rows["input_norm"]
    error = np.sqrt(rows["relative_mse"]) / bound
    words = f"relative error at most {np.sqrt(rows['relative_mse'].max()):.2g}"
    words += f", {error.max():.2g} of the bound"
    return Found([everywhere((error <= 1).groupby(rows["replicate"]).all())], words)


def batches(tables: Tables) -> Found:
    """In training mode mean and variance depend on the batch."""
    rows = select(training_mode(tables), batch_size=64)
    return Found(_at_each_width(rows, "relative_mse"))


def falls(tables: Tables) -> Found:
    """As 1/B where it is small against the variance of g; before that it is no sum of small
    errors, and falls as it likes."""
    rows = training_mode(tables)
    found = {
        d: slopes(group, "batch_size", "relative_mse", log=True)
        for d, group in rows.groupby("target_width")
    }
    medians = ", ".join(f"{exponents.median():.2f} at d = {d}" for d, exponents in found.items())
    points = [below(each, point=f"d = {d}", unit="exponent") for d, each in found.items()]
    return Found(points, f"exponents {medians}")


def layer_norm(tables: Tables) -> Found:
    """The bound is of every function with f(c x) = f(x)."""
    rows = select(tables["metrics"], layer="layer_norm")
    words = f"the construction: {rows['relative_mse'].median():.2g} of the variance"
    excess = (rows["relative_mse"] - rows["lower_bound"]).groupby(rows["replicate"]).min()
    points = [*_at_each_width(rows, "lower_bound"), above(excess, point="above the bound")]
    return Found(points, words)


def _at_each_width(rows: pd.DataFrame, column: str) -> list:
    """Whether a column is above `SMALL` at every d."""
    return [
        above(group.set_index("replicate")[column], SMALL, point=f"d = {d}, of the variance")
        for d, group in rows.groupby("target_width")
    ]


CLAIMS = {
    "norm-layers": [
        Claim(
            "batch-norm-exact",
            "in BatchNorm layers in evaluation mode the construction equals the target",
            "paper A, Proposition 1 and Theorem 1",
            exact,
            "relative error below machine epsilon x condition number x input norm, at every d",
        ),
        Claim(
            "batch-statistics-matter",
            "control: with the statistics of a batch of 64 the same network is not the target",
            "beside paper A, Proposition 1: mean and variance are constants",
            batches,
            f"relative MSE above {SMALL:g} at B = 64, at every d",
            kind="ours",
        ),
        Claim(
            "batch-error-falls",
            "control: the error of training mode falls with the batch size",
            "beside paper A, Proposition 1: the variance of a batch's mean is one over B",
            falls,
            "exponent of the relative MSE in B below 0, at every d",
            kind="ours",
            needs={"batch_size": 4},
        ),
        Claim(
            "layer-norm-cannot",
            "control: in these networks, which have no biases, no scales and shifts in LayerNorm"
            " layers equal the target, since the first of them maps x and c x to the same",
            "the abstract of paper A names LayerNorm, its Proposition 1 is of BatchNorm",
            layer_norm,
            f"least relative MSE above {SMALL:g} at every d; that of the construction above it",
            kind="ours",
        ),
    ],
}
"""By figure, in the order in which they are told."""
