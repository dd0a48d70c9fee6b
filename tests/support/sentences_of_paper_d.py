"""The numbers of sentences about figure 1 on docs/paper-d.md, computed from the stored tables.

SENTENCES has a function for each part of a sentence, in which # stands for a number. It returns
these numbers in their order.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from in_memory import kept_tables
from tables_of_paper_d import TRAINED, ends, growth_of_best, networks

from runner.papers.bottleneck_structure.bottleneck import quantities, tables
from runner.papers.bottleneck_structure.fits import FITTED
from runner.results.rows import select

RIDGE = 1e-3
"""The weight decay λ of figure 1."""


def best() -> pd.DataFrame:
    """The best solutions, by task and depth."""
    metrics = kept_tables("bottleneck-fig1", "paper")["metrics"]
    return select(metrics, recipe="minimum").sort_values(["replicate", "depth"])


def slopes(rows: pd.DataFrame) -> list[float]:
    """Slope of the squared norm in the depth, of each task with two depths or more."""
    return [
        np.polyfit(of_task["depth"], of_task["parameter_norm"], 1)[0]
        for _, of_task in rows.groupby("replicate")
        if len(of_task) > 1
    ]


def below_rank() -> list[float]:
    """How many best solutions have a rank below the task's, and how many there are."""
    return [(best()["rank"] < tables.RANK).sum(), len(best())]


def ordinary_fits() -> list[float]:
    """Ordinary training: error of fits below the rank on new points, number and error of others."""
    fits = select(tables.at_ridge(networks()["metrics"]), recipe="plain")
    fits = fits[fits["train_cost"] < FITTED]
    low = fits["rank"] < tables.RANK
    return [*ends(fits.loc[low, "test_cost"], 2), (~low).sum(), fits.loc[~low, "test_cost"].max()]


def between_depths() -> list[float]:
    """Depths of rank 2, slopes there, and slopes between the two largest depths."""
    rows = best()
    from_here = rows.groupby("depth")["rank"].max()[::-1].cummax()[::-1]
    first = from_here.index[from_here == tables.RANK].min()
    deep = rows[rows["depth"] >= first]
    two = deep[deep["depth"] >= sorted({*deep["depth"]})[-2]]
    return [first, deep["depth"].max(), *ends(slopes(deep), 2), *ends(slopes(two), 2)]


def second_terms() -> list[float]:
    """R₂, fitted to the depths of rank 2 up to 14: smallest and largest."""
    rows = best().query("depth <= 14 and rank == 2")
    parts = [of_task for _, of_task in rows.groupby("replicate")]
    return ends([np.polyfit(1 / p["depth"], p["parameter_norm"] - 2 * p["depth"], 1)[0]
                 for p in parts])  # fmt: skip


def of_rank_3() -> list[float]:
    """Tasks with most depths of rank 3, and the slopes of the squared norm there."""
    rows = best().query("rank == 3")
    number = rows.groupby("replicate")["depth"].transform("size")
    most = slopes(rows[number == number.max()])
    return [len(most), *ends(most, 1)]


def from_separate_starts() -> list[float]:
    """Depths of the searches from separate weights, and the rise of their loss / λ per layer."""
    rows = best().dropna(subset="best_start")
    by = rows.pivot(index="replicate", columns="depth", values="best_start")
    low, high = by.columns.min(), by.columns.max()
    return [low, high, ((by[high] - by[low]) / (high - low) / RIDGE).median()]


def in_the_first_layer() -> list[float]:
    """Percentage of negative pre-activations, by squares, in the first layer."""
    stored = kept_tables("bottleneck-fig1", "paper")
    negative = quantities.share_of_negative().measure(stored)
    return [100 * negative["first"].median()]


def moved() -> list[float]:
    """Change of the function between successive depths, in percent of its error.

    The second largest and the largest one at equal rank; number, smallest and largest at others.
    """
    rows = best()
    before = rows.groupby("replicate")["rank"].shift()
    part = (100 * rows["moved"] / rows["test_cost"])[before.notna()]
    equal = (rows["rank"] == before)[before.notna()]
    *_, second, largest = sorted(part[equal])
    return [second, largest, (~equal).sum(), *ends(part[~equal], 1)]


def of_kernel() -> list[float]:
    """The median of Tr Θ / L at the largest depth, and this depth."""
    deepest = best().query("depth == depth.max()")
    return [deepest["depth"].max(), (deepest["ntk_trace"] / deepest["depth"]).median()]


def two_best() -> list[float]:
    """Largest difference of the losses of the two best solutions, in percent."""
    return [100 * best()["spread"].max()]


def of_rank_3_after(depths: str) -> list[float]:
    """Annealed networks of rank 3 at some depths, and all of them."""
    rows = tables.at_ridge(networks()["metrics"])
    rows = select(rows, recipe=TRAINED[0]).query(f"depth in {depths}")
    return [(rows["rank"] == 3).sum(), len(rows)]


SENTENCES: dict[str, Callable[[], list[float]]] = {
    "No best solution has a rank below 2 (# of #)": below_rank,
    "On new points their error is # to #, while the # other fits have errors below #":
        ordinary_fits,
    "Between depths # and # a layer adds # to # (fitted line), and between the last two depths #"
    " to #": between_depths,
    "which gives R₂ between # and #": second_terms,
    "In the # tasks whose rank is 3 at depths 6 to 8, the slope there is only # to #": of_rank_3,
    "Between depths # and #, its losses rise by # λ for each layer": from_separate_starts,
    "but # % in the first layer": in_the_first_layer,
    "is at most # % of their test error, except for one pair (# %). For the # pairs of different"
    " rank it is # to # %": moved,
    "the trace grows like L^# over": growth_of_best,
    "while Tr Θ at depth # is # L": of_kernel,
    "differ in their loss by at most # %": two_best,
    "where the best solutions have rank 2, # of # annealed networks have rank 3":
        lambda: of_rank_3_after("(10, 12)"),
    "At depths 14, 18 and 26, # of #": lambda: of_rank_3_after("(14, 18, 26)"),
}  # fmt: skip
