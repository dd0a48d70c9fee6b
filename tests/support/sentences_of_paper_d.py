"""The numbers of sentences on docs/paper-d.md, computed from the stored tables.

SENTENCES has a function for each part of a sentence, in which # stands for a number. It returns
these numbers in their order.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from in_memory import judged, kept_tables
from tables_of_paper_d import TRAINED, ends, from_random_weights, growth_of_best, networks

from runner.papers.bottleneck_structure.bottleneck import quantities, tables
from runner.papers.bottleneck_structure.fits import FITTED
from runner.papers.bottleneck_structure.stability import quantities as stability
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import middle_layers
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


def farthest_predictions() -> list[float]:
    """Width 50: in percent, by how much the two largest falls are above their prediction."""
    tables_at_50 = kept_tables("bottleneck-fig1")
    excess = 100 * (quantities.shortfall_over_predicted().measure(tables_at_50)["value"] - 1)
    assert (
        judged("bottleneck-fig1", tables_at_50, "first-correction")["verdict"].item() == "undecided"
    )
    return [*tables_at_50["metrics"]["width"].unique(), *excess.sort_values().iloc[-2:]]


def annealed_of_rank_1() -> list[float]:
    """Depth and rank of annealed networks below the rank of the task, and their errors."""
    rows = select(tables.at_ridge(networks()["metrics"]), recipe="annealed")
    low = rows[rows["rank"] < tables.RANK]
    (depth,) = {*low["depth"]}
    return [depth, 1, *low["test_cost"].sort_values()]


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

    The largest one at equal rank; number, smallest and largest of the others.
    """
    rows = best()
    before = rows.groupby("replicate")["rank"].shift()
    part = (100 * rows["moved"] / rows["test_cost"])[before.notna()]
    equal = (rows["rank"] == before)[before.notna()]
    return [part[equal].max(), (~equal).sum(), *ends(part[~equal], 1)]


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


def at_larger_rates() -> list[float]:
    """Two learning rates, and learning rate × curvature there where networks fit."""
    product = stability.rate_times_curvature("figure-1", "c > 0.1")
    rows = product.measure(kept_tables("bottleneck-rates"))
    return [*sorted({*rows["c"]}), *ends(rows.loc[rows["fits"], "value"], 2)]


def growth_of_errors() -> list[float]:
    """At c = 0.1: training error after gradient descent / before, by depth, in the median."""
    rows = select(kept_tables("bottleneck-rates")["metrics"], task="figure-1")
    by = rows.pivot(index=["depth", "replicate"], columns="rate", values="train_cost")
    return ends((by[0.1] / by[0.0]).groupby("depth").median())


def from_both_sides() -> list[float]:
    """Networks from random weights: all, and those that begin below and above the edge."""
    product = stability.rate_times_curvature("scratch", "c == 0.2")
    rows = product.measure(kept_tables("bottleneck-rates"))
    return [rows["fits"].sum(), (rows["before"] < 2).sum(), (rows["before"] > 2).sum()]


def kernel_from_random_weights() -> list[float]:
    """Largest / smallest Tr Θ / L before training, in hundreds, and the exponent of Tr Θ in L."""
    before = from_random_weights()[-1]
    power = judged("bottleneck-rates", kept_tables("bottleneck-rates"), "kernel-from-scratch")
    return [10 * round(max(before) / min(before) / 10), power["estimate"].iloc[0]]


def power_of_example_20() -> list[float]:
    """Local exponents of the trace of Example 20's networks, between successive depths."""
    rows = select(kept_tables("bottleneck-rates")["metrics"], task="example-20", rate=0.0)
    trace = np.log(rows.groupby("depth")["ntk_trace"].median())
    return [*(np.diff(trace) / np.diff(np.log(trace.index)))]


def losses_at_large_gain() -> list[float]:
    """With λ throughout and gain 1.2: loss above that of annealed training, in percent."""
    rows = select(kept_tables("bottleneck-annealing")["metrics"], gain=1.2)
    by = rows.pivot(index=["depth", "replicate"], columns="recipe", values="loss")
    above = 100 * (by["constant"] / by["annealed"] - 1).groupby("depth").median()
    return [above.iloc[0], above.index.min(), above.iloc[-1], above.index.max()]


def of_rank_2_at_large_gain() -> list[float]:
    """Networks with λ throughout, and how many annealed ones of how many have rank 2."""
    rows = select(kept_tables("bottleneck-annealing")["metrics"], gain=1.2)
    constant, annealed = (select(rows, recipe=name) for name in ("constant", "annealed"))
    assert not (constant["rank"] == 2).any()
    return [len(constant), (annealed["rank"] == 2).sum(), len(annealed)]


def without_decay() -> list[float]:
    """Measures of symmetry without weight decay, some with those of networks with it."""
    stored = kept_tables("bottleneck-symmetry")
    of = {ridge: {name: select(stored[name], stage="trained", noise=0.04, ridge=ridge)
                  for name in ("metrics", "networks")}
          for ridge in (0.0, 0.0002)}  # fmt: skip

    def at(ridge: float, layer: int, column: str) -> float:
        return select(of[ridge]["metrics"], layer=layer)[column].median()

    explained = ("knn_r2_axis", "knn_r2_orthogonal")
    return [
        of[0.0]["networks"]["jacobian_rank"].median(),
        *(at(ridge, PCA_LAYER, column) for ridge in of for column in explained),
        middle_layers(of[0.0]["metrics"])["rank"].median(),
        *(at(ridge, DISTANCE_LAYER, "orbit_ratio") for ridge in of),
        at(0.0, PCA_LAYER, "orbit_ratio"),
    ]


def with_more_noise() -> list[float]:
    """Distance within / between orbits with the usual noise and with ten times the noise."""
    rows = select(kept_tables("bottleneck-symmetry", "paper")["metrics"], stage="trained")
    early = select(rows, layer=DISTANCE_LAYER, ridge=0.0002)
    return [select(early, noise=noise)["orbit_ratio"].median() for noise in (0.04, 0.4)]


def norms_of_two_ranks() -> list[float]:
    """At twelve points: norm of fits of rank 1 / that of rank 2; how many fits have rank 1."""
    rows = kept_tables("bottleneck-ranks")["metrics"].query("samples == 12 and error < 0.1")
    by = rows.groupby("rank")["parameter_norm"].agg(["median", "size"])
    return [by.loc[1, "median"] / by.loc[2, "median"], by.loc[1, "size"]]


def ranks_of_linear_networks() -> list[float]:
    """Deep linear networks of a rank below 4, of all of depth 48 and 64."""
    rows = kept_tables("bottleneck-linear", "paper")["metrics"].query("depth in (48, 64)")
    return [(rows["rank"] < 4).sum(), len(rows)]


SENTENCES: dict[str, Callable[[], list[float]]] = {
    "No best solution has a rank below 2 (# of #)": below_rank,
    "On new points their error is # to #, while the # other fits have errors below #":
        ordinary_fits,
    "Between depths # and # a layer adds # to # (fitted line), and between the last two depths #"
    " to #": between_depths,
    "which gives R₂ between # and #": second_terms,
    "(At width #, ‖θ‖² falls behind by # and # % more than predicted in two tasks":
        farthest_predictions,
    "two of depth # have rank # (errors on new points # and #": annealed_of_rank_1,
    "In the # tasks whose rank is 3 at depths 6 and 8, the slope there is only # to #": of_rank_3,
    "Between depths # and #, its losses rise by # λ for each layer": from_separate_starts,
    "but # % in the first layer": in_the_first_layer,
    "is at most # % of their test error. For the # pairs of different rank it is # to # %": moved,
    "the trace grows like L^# over": growth_of_best,
    "while Tr Θ at depth # is # L": of_kernel,
    "differ in their loss by at most # %": two_best,
    "where the best solutions have rank 2, # of # annealed networks have rank 3":
        lambda: of_rank_3_after("(10, 12)"),
    "At depths 14, 18 and 26, # of #": lambda: of_rank_3_after("(14, 18, 26)"),
    "the loss with λ throughout is # % higher than after annealed training at depth # and # %"
    " higher at depth #": losses_at_large_gain,
    "None of the # networks with λ throughout has rank 2, but # of # annealed networks do":
        of_rank_2_at_large_gain,
    "At c = # and #, the networks that still fit end at # to #": at_larger_rates,
    "even there the training error grows #- to #-fold": growth_of_errors,
    "fits the task in all # networks within 4,000 steps. All of them end at the edge of stability,"
    " although # begin below it and # above it": from_both_sides,
    "values that differ by a factor of #. The trace grows a little faster than L, like L^#.":
        kernel_from_random_weights,
    "its local power rises from # to #": power_of_example_20,
    "It fits the data, too, and its Jacobian also has rank #. Layer 6 explains # and # of the two"
    " statistics (# and # with weight decay). But the middle layers keep rank #, and in layer 2"
    " orbits do not collapse: distances within orbits are # times those between orbits, and only #"
    " times with weight decay. In deeper layers they collapse without it, too (# in layer 6)":
        without_decay,
    "the distance within / between orbits rises from # to #": with_more_noise,
    "those of rank 1 need about # times as much (# networks that fit)": norms_of_two_ranks,
    "but # of # networks of depth 48 and 64 have a lower rank": ranks_of_linear_networks,
}  # fmt: skip
