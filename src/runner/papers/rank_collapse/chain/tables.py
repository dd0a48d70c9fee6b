"""Selections and summaries of the tables of study `rank_chain`, for its drawings and claims."""

from math import isinf

import numpy as np
import pandas as pd

from runner.results.claims import Tables

TAU = 0.5

RANK_KEYS = ["skip", "width", "input_rank"]


def gamma(skip: float) -> str:
    """`gamma = ...` as a label."""
    return "γ = ∞" if isinf(skip) else f"γ = {skip:g}"


def power_law(width: pd.Series, values: pd.Series) -> tuple[float, float]:
    """Exponent and prefactor of the least-squares line of log `values` on log `width`.

    Over the powers of two only, where there are two of them, so that crowded widths do not weigh
    more.
    """
    powers = np.log2(width) % 1 == 0
    if powers.sum() >= 2:
        width, values = width[powers], values[powers]
    exponent, intercept = np.polyfit(np.log(width), np.log(values), 1)
    return float(exponent), float(np.exp(intercept))


def averages(tables: Tables) -> pd.DataFrame:
    """The averages over depth, by gamma and width."""
    return tables["metrics"].sort_values(["skip", "width"], ignore_index=True)


def paper_skips(metrics: pd.DataFrame) -> list[float]:
    """The gammas of Figures 8 and 9, 1 and 0.1, as far as there are runs; else all there are."""
    there = list(metrics["skip"].unique())
    return [skip for skip in (1.0, 0.1) if skip in there] or sorted(there)


def remainders(tables: Tables) -> pd.DataFrame:
    """By width, law and gamma: root mean square over the matrices of what Lemma 7 leaves over.

    `remainder` is the change over gamma^2, less the same at the smallest gamma with the same
    weights, over d^2: what is common to both, delta_F and most of the noise, drops out.
    """
    keys = ["width", "law", "replicate"]
    rows = tables["expansions"].set_index([*keys, "skip"])["change"].unstack("skip")
    smallest, *others = rows.columns
    squares = rows[others].sub(rows[smallest], axis=0).pow(2).groupby(["width", "law"]).mean()
    left = np.sqrt(squares).div(squares.index.get_level_values("width") ** 2, axis=0)
    return left.stack().rename("remainder").reset_index()


def live_directions(tables: Tables) -> pd.DataFrame:
    """By width and gamma, k*: the first rank of the input beside which no direction grows.

    `k_star` is where the exponent is negative, `k_star_low` and `k_star_high` the first ranks where
    it is below two standard errors and below minus two.
    """
    found = []
    for (skip, width), rows in tables["input_ranks"].groupby(["skip", "width"]):
        rows = rows.sort_values("input_rank")
        bounds = {}
        for name, level in (("k_star_low", 2), ("k_star", 0), ("k_star_high", -2)):
            below = rows[rows["exponent"] < level * rows["exponent_se"]]["input_rank"]
            bounds[name] = float(below.min())
        found.append({"skip": skip, "width": width, **bounds})
    return pd.DataFrame(found)
