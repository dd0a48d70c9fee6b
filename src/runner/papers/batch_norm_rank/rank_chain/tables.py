"""Select and summarize the tables of study `rank_chain`, for its figures and claims."""

from math import ceil, isinf

import numpy as np
import pandas as pd

from runner.results.rows import NoRows, Tables, times

BATCHES = 32
"""Smallest number of batches from which an error is estimated.

With fewer chains than this, each chain is divided into batches.
"""

MEMORIES = 20
"""Smallest number of memory times that a batch of a judged average must last.

A memory time is the number of layers in which a chain forgets its state.
"""


def gamma(skip: float) -> str:
    """Return the label `γ = ...` of a residual weight, for example `γ = 0.1` or `γ = ∞`."""
    return "γ = ∞" if isinf(skip) else f"γ = {skip:g}"


def in_lemma_5(rows: pd.DataFrame) -> pd.Series:
    """Return for each row whether gamma is at most 1 / (8 d), the condition of Lemma 5 as printed.

    The lemma's proof has 1 / (8 B d) for weights within [-B, B]. This is 1 / (8 d) for Rademacher
    weights and 1 / (13.9 d) for uniform weights. The proof excludes Gaussian weights.
    """
    return rows["skip"] <= 1 / (8 * rows["width"])


def averages(tables: Tables) -> pd.DataFrame:
    """Return the averages over depth, sorted by distribution, gamma and width."""
    return tables["metrics"].sort_values(["law", "skip", "width"], ignore_index=True)


def norm_bound(rows: pd.DataFrame) -> pd.Series:
    """Return for each row Lemma 13's upper bound on the mean of ||M||_F^2 (Eq. 50).

    The bound uses the row's width and regularity constant alpha. The bound is nan unless alpha is
    below 1.
    """
    from runner.papers.batch_norm_rank.theory import frobenius_bound  # late import of torch

    pairs = zip(rows["width"], rows["regularity"], strict=True)
    bound = [frobenius_bound(d, alpha) if alpha < 1 else np.nan for d, alpha in pairs]
    return pd.Series(bound, rows.index, dtype=float)


def rank_bound(rows: pd.DataFrame, tau: float | pd.Series) -> pd.Series:
    """Return for each row Theorem 14's lower bound on the mean of the soft rank (Eq. 58).

    The bound uses the row's width and regularity constant alpha. The bound is nan unless alpha is
    below 1. tau: threshold of the soft rank, a number or a column of the rows.
    """
    return (1 - tau) ** 2 * rows["width"] ** 2 / norm_bound(rows)


def paper_skips(metrics: pd.DataFrame) -> list[float]:
    """Return the gammas of Figures 8 and 9, 1 and 0.1, that were run; if none, all gammas."""
    there = list(metrics["skip"].unique())
    return [skip for skip in (1.0, 0.1) if skip in there] or sorted(there)


def left_over(tables: Tables) -> pd.DataFrame:
    """Return the remainder of Lemma 7 as the column `left_over`, for each matrix M and gamma.

    `change` is the change of ||M||_F^2 over one layer, divided by gamma^2. Lemma 7 predicts
    delta_F(M) plus a remainder. The remainder is estimated by |`change` - `change` at the smallest
    gamma| / d^2, with the same weights. In this difference delta_F and most of the noise cancel.

    The smallest gamma has no row. The columns `width`, `law` and `replicate` identify the matrix.
    Raises NoRows for a single gamma.
    """
    keys = ["width", "law", "replicate"]
    rows = tables["expansions"].set_index([*keys, "skip"])["change"].unstack("skip")
    smallest, *larger = rows.columns
    if not larger:
        raise NoRows("the remainder needs two residual weights γ")
    left = rows[larger].sub(rows[smallest], axis=0).abs()
    left = left.div(left.index.get_level_values("width") ** 2, axis=0)
    return left.stack().rename("left_over").reset_index()


def powers_left_over(tables: Tables) -> pd.Series:
    """Return for each matrix M the power p with which the remainder of Lemma 7 grows like gamma^p.

    The remainder is `left_over`. It is a difference to the smallest gamma, which the fit of p
    accounts for. p is computed from the three smallest gammas and limited to 0.05 to 6. The index
    has width, distribution and replicate. Raises NoRows for fewer than three gammas.
    """
    keys = ["width", "law", "replicate"]
    left = left_over(tables).pivot(index=keys, columns="skip", values="left_over")
    if len(left.columns) < 2:
        raise NoRows("the power of the remainder needs three residual weights γ")
    least, low, high = sorted(tables["expansions"]["skip"].unique())[:3]
    powers = np.linspace(0.05, 6, 1200)
    growth = np.log((high**powers - least**powers) / (low**powers - least**powers))
    exponents = np.interp(np.log(left[high] / left[low]), growth, powers)
    return pd.Series(exponents, left.index)


def remainders(tables: Tables) -> pd.DataFrame:
    """Return the root mean square of `left_over` over matrices, in the column `remainder`.

    There is a row for each width, distribution and gamma. Raises NoRows for a single gamma.
    """
    rows = left_over(tables)
    squares = rows.assign(remainder=rows["left_over"] ** 2).groupby(["width", "law", "skip"])
    return np.sqrt(squares["remainder"].mean()).reset_index()


def crossings(tables: Tables) -> pd.DataFrame:
    """Return the number k* of surviving directions for each width and gamma.

    k*, in the column `crossing`, is the input rank at which `exponent` is zero, interpolated
    between two ranks. `exponent` is the growth rate of one more direction. A width and gamma
    without a zero has no row.
    """
    rows = tables["input_ranks"].sort_values(["skip", "width", "input_rank"])
    after = rows.groupby(["skip", "width"])["exponent"].shift(-1)
    crossing = rows["input_rank"] + rows["exponent"] / (rows["exponent"] - after)
    rows = rows.assign(crossing=crossing)[(rows["exponent"] > 0) & (after <= 0)]
    return rows.groupby(["skip", "width"], as_index=False)["crossing"].first()


def powers_of_two(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows whose width is a power of two, as in figure 3a.

    All widths then count equally in a fit on logarithmic axes.
    """
    return rows[np.log2(rows["width"]) % 1 == 0]


def pieces(rows: pd.DataFrame) -> pd.Series:
    """Return for each average the number of independent batches from which its error is computed.

    See `batch_means`.
    """
    chains = rows["chains"]
    return chains * chains.map(lambda chains: ceil(BATCHES / chains)) * times(rows)


def too_short(rows: pd.DataFrame) -> str:
    """Return a message on the average with the shortest batches, or an empty text if all suffice.

    A batch suffices if its layers are at least MEMORIES times the memory of the network. Without
    skip connections a network forgets its initial state within about d / 4 layers, like the
    autocorrelation times. Skip connections add 1 / (gamma^2 sqrt(d)) layers (Lemma 7, as for the
    burn-in).
    """
    memory = rows["width"] / 4 + 1 / (rows["skip"] ** 2 * np.sqrt(rows["width"]))
    layers = rows["layers"] / pieces(rows)
    if not (layers < MEMORIES * memory).any():
        return ""
    worst = (layers / memory).idxmin()
    point = f"d = {rows['width'][worst]}, {gamma(rows['skip'][worst])}"
    needed = f"{MEMORIES * memory[worst]:.0f}"
    return f"averages over {layers[worst]:.0f} layers at a time at {point}: {needed} are needed"


def scaled_products(tables: Tables) -> pd.DataFrame:
    """Return log(sigma_2 / sigma_1) at the last layer of each product without normalization.

    The columns are `branch`, `L`, `replicate` and `log_ratio`. `L` is the number of layers.
    `branch` names the weight gamma of the residual branch: "c / L" if gamma L = c was run at every
    L, else the number.
    """
    rows = tables["products"]
    last = rows[rows["layer"] == rows["layers"]].rename(columns={"layers": "L"})
    c = (last["skip"] * last["L"]).round(6)
    everywhere = last["L"].nunique()
    scaled = last.groupby(c)["L"].transform("nunique") == everywhere
    names = c.map(lambda value: f"{value:g} / L").where(scaled, last["skip"].map("{:g}".format))
    return last.assign(branch=names)[["branch", "L", "replicate", "log_ratio"]]
