"""Select and summarize the tables of study `rank_chain`, for its drawings and claims."""

from math import ceil, isinf

import numpy as np
import pandas as pd

from runner.results.claims import Tables
from runner.results.rows import NoRows

BATCHES = 32
"""Batches that an error is estimated from: the chains, cut into pieces where there are fewer."""

MEMORIES = 20
"""Times that a chain must have forgotten its start before its average is judged."""


def gamma(skip: float) -> str:
    """Return `gamma = ...` as a label."""
    return "γ = ∞" if isinf(skip) else f"γ = {skip:g}"


def in_lemma_5(rows: pd.DataFrame) -> pd.Series:
    """Return whether gamma is at or below 1 / (8 d), as Lemma 5 prints it. (Its proof has 1 / (8 B
    d) for weights within [-B, B]: all of it for Rademacher weights, up to 1 / (13.9 d) for uniform
    ones, none for Gaussian ones.)"""
    return rows["skip"] <= 1 / (8 * rows["width"])


def averages(tables: Tables) -> pd.DataFrame:
    """Return the averages over depth, by law, gamma and width."""
    return tables["metrics"].sort_values(["law", "skip", "width"], ignore_index=True)


def norm_bound(rows: pd.DataFrame) -> pd.Series:
    """Lemma 13's upper bound on the mean of ||M||_F^2, row by row; nan where alpha is not below 1,
    and it says nothing."""
    from runner.papers.batch_norm_rank.theory import frobenius_bound  # late: torch

    pairs = zip(rows["width"], rows["regularity"], strict=True)
    bound = [frobenius_bound(d, alpha) if alpha < 1 else np.nan for d, alpha in pairs]
    return pd.Series(bound, rows.index, dtype=float)


def rank_bound(rows: pd.DataFrame, tau: float | pd.Series) -> pd.Series:
    """Theorem 14's lower bound on the mean of rank_tau, row by row; nan where alpha is not below
    1. tau: one, or the column of the rows."""
    return (1 - tau) ** 2 * rows["width"] ** 2 / norm_bound(rows)


def paper_skips(metrics: pd.DataFrame) -> list[float]:
    """Return the gammas of Figures 8 and 9, 1 and 0.1, as far as there are runs; else all there
    are."""
    there = list(metrics["skip"].unique())
    return [skip for skip in (1.0, 0.1) if skip in there] or sorted(there)


def left_over(tables: Tables) -> pd.DataFrame:
    """By width, law, matrix and gamma: what Lemma 7 leaves over.

    `left_over` is the change over gamma^2, less the same at the smallest gamma with the same
    weights, over d^2: what is common to both, delta_F and most of the noise, drops out. Raises
    NoRows for a single gamma.
    """
    keys = ["width", "law", "replicate"]
    rows = tables["expansions"].set_index([*keys, "skip"])["change"].unstack("skip")
    smallest, *others = rows.columns
    if not others:
        raise NoRows("no second gamma")
    left = rows[others].sub(rows[smallest], axis=0).abs()
    left = left.div(left.index.get_level_values("width") ** 2, axis=0)
    return left.stack().rename("left_over").reset_index()


def powers_left_over(tables: Tables) -> pd.Series:
    """By width, law and matrix: the p for which `left_over` grows as gamma^p, less that of the
    smallest gamma, from the second to the third smallest. p: 0.05 to 6. Raises NoRows for fewer
    than three gammas."""
    keys = ["width", "law", "replicate"]
    left = left_over(tables).pivot(index=keys, columns="skip", values="left_over")
    if len(left.columns) < 2:
        raise NoRows("no third gamma")
    least, low, high = sorted(tables["expansions"]["skip"].unique())[:3]
    powers = np.linspace(0.05, 6, 1200)
    growth = np.log((high**powers - least**powers) / (low**powers - least**powers))
    found = np.interp(np.log(left[high] / left[low]), growth, powers)
    return pd.Series(found, left.index)


def remainders(tables: Tables) -> pd.DataFrame:
    """By width, law and gamma: `remainder`, the root mean square of `left_over` over matrices."""
    rows = left_over(tables)
    squares = rows.assign(remainder=rows["left_over"] ** 2).groupby(["width", "law", "skip"])
    return np.sqrt(squares["remainder"].mean()).reset_index()


def crossings(tables: Tables) -> pd.DataFrame:
    """By width and gamma, k* as a real number: `crossing`, where the exponent, between two ranks,
    is zero; no row where it does not cross zero."""
    rows = tables["input_ranks"].sort_values(["skip", "width", "input_rank"])
    after = rows.groupby(["skip", "width"])["exponent"].shift(-1)
    crossing = rows["input_rank"] + rows["exponent"] / (rows["exponent"] - after)
    rows = rows.assign(crossing=crossing)[(rows["exponent"] > 0) & (after <= 0)]
    return rows.groupby(["skip", "width"], as_index=False)["crossing"].first()


def powers_of_two(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the widths 8, 16, ... of figure 3a, so that crowded widths do not weigh
    more."""
    return rows[np.log2(rows["width"]) % 1 == 0]


def pieces(rows: pd.DataFrame) -> pd.Series:
    """Return how many independent batches the error of each average comes from (see
    `batch_means`)."""
    return rows["chains"] * rows["chains"].map(lambda chains: ceil(BATCHES / chains))


def too_short(rows: pd.DataFrame) -> str:
    """Return which of the averages is over batches that are too short to be judged; empty if none
    is.

    A chain forgets its start within about d / 4 layers, which is how its autocorrelation times grow
    without skips, and 1 / (gamma^2 sqrt(d)) with skips (Lemma 7, as for the burn-in).
    """
    memory = rows["width"] / 4 + 1 / (rows["skip"] ** 2 * np.sqrt(rows["width"]))
    layers = rows["layers"] / pieces(rows)
    if not (layers < MEMORIES * memory).any():
        return ""
    worst = (layers / memory).idxmin()
    place = f"d = {rows['width'][worst]}, {gamma(rows['skip'][worst])}"
    needed = f"{MEMORIES * memory[worst]:.0f}"
    return f"averages over {layers[worst]:.0f} layers at a time at {place}: {needed} are needed"


def scaled_products(tables: Tables) -> pd.DataFrame:
    """Return the last layer of each product: `log_ratio` by L, replicate and how gamma goes with L.

    `branch` is c / L, where gamma L is the same at every L, else gamma itself.
    """
    rows = tables["products"]
    last = rows[rows["layer"] == rows["layers"]].rename(columns={"layers": "L"})
    c = (last["skip"] * last["L"]).round(6)
    everywhere = last["L"].nunique()
    scaled = last.groupby(c)["L"].transform("nunique") == everywhere
    names = c.map(lambda value: f"{value:g} / L").where(scaled, last["skip"].map("{:g}".format))
    return last.assign(branch=names)[["branch", "L", "replicate", "log_ratio"]]
