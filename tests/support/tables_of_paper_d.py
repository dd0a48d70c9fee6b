"""The numbers of the tables on docs/paper-d.md, computed from the stored tables.

TABLES has a function for each table, by the table's heading. It returns the numbers of each row, in
their order on the page; the first column, which names the row, has none of them.
"""

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np
import pandas as pd
from in_memory import judged, kept_tables

from runner.papers.bottleneck_structure.bottleneck import quantities as figure_1
from runner.papers.bottleneck_structure.bottleneck import tables
from runner.papers.bottleneck_structure.bottleneck.figures import losses_above
from runner.papers.bottleneck_structure.fits import FITTED
from runner.papers.bottleneck_structure.rank_one.tables import counted
from runner.papers.bottleneck_structure.stability import quantities as stability
from runner.papers.bottleneck_structure.stability.figures import FEWEST
from runner.papers.bottleneck_structure.symmetry import quantities as symmetry
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER
from runner.papers.bottleneck_structure.symmetry.tables import middle_layers
from runner.results.rows import select

Rows = list[list[float]]

TRAINED = ("annealed", "plain")
"""The training procedures, in the page's order."""


def ends(values: Iterable[float], digits: int = 0) -> list[float]:
    """Return smallest and largest value, or one number if they are printed alike.

    digits: the number of printed decimals.
    """
    rounded = np.round([*values], digits)
    return [rounded.min()] if np.ptp(rounded) == 0 else [rounded.min(), rounded.max()]


def spread(values: Iterable[float]) -> list[float]:
    """Return median, smallest and largest value."""
    return [float(f(np.asarray([*values], float))) for f in (np.median, np.min, np.max)]


def networks(strict: bool = False) -> dict[str, pd.DataFrame]:
    """Return the tables of figure 1's networks, with several λ where they were run.

    strict: whether networks with a training error of 0.02 or more get the error 1, so that they do
    not fit.
    """
    stored = kept_tables("bottleneck-recipes", "paper")
    cost = stored["metrics"]["train_cost"]
    threshold = tables.STRICT if strict else np.inf
    return stored | {
        "metrics": stored["metrics"].assign(train_cost=cost.where(cost < threshold, 1))
    }


SHOWN_DEPTHS = [6, 8, 10, 12, 14, 18, 26]


def near_one(recipe: str = "minimum", fit: float = tables.FITTED) -> pd.Series:
    """Return by depth the fraction of the leading singular values near one.

    recipe: the kind of networks. fit: the training error below which a network counts.
    """
    stored = kept_tables("bottleneck-fig1", "paper")
    key = ["depth", "replicate"]
    networks = select(tables.at_ridge(stored["metrics"]), recipe=recipe)
    fitting = networks[networks["train_cost"] < fit][[*key, "rank"]]
    rows = select(stored["spectrum"], recipe=recipe).merge(fitting, on=key)
    rows = rows.query("depth / 4 <= layer <= depth * 3 / 4 and index <= rank")
    return ((rows["singular_value"] - 1).abs() < 0.5).groupby(rows["depth"]).mean()


def answers() -> Rows:
    """Rank of deep solutions, depth of values near one, largest loss of annealed training."""
    best = select(networks()["metrics"], recipe="minimum").query("depth == depth.max()")
    near = near_one()
    from_here_on = near[::-1].cummin()[::-1]  # the smallest fraction at this or a larger depth
    first = from_here_on.index[from_here_on > 0.995].min()
    numbers = {1: [best["rank"].median()], 2: [first], 3: [max(losses()[0])]}
    return [numbers.get(row, []) for row in range(11)]


def ranks() -> Rows:
    """Smallest and largest rank of the tasks, at the depths that the page shows."""
    rows = tables.at_ridge(networks()["metrics"])
    by = {key: ends(part) for key, part in rows.groupby(["recipe", "depth"])["rank"]}
    return [
        [x for depth in SHOWN_DEPTHS for x in by[recipe, depth]] for recipe in ("minimum", *TRAINED)
    ]


def thresholds() -> Rows:
    """Ordinary training by two thresholds: fits, tasks whose rank falls, fits below the rank.

    The last row counts the tasks that the smallest weight decay fits where several were run.
    """
    found: Rows = [[], [], [], []]
    for strict in (False, True):
        stored = networks(strict)
        fits = figure_1.fits_below(tables.RANK, "plain").measure(stored)
        falls = figure_1.correlation_with_depth("plain").measure(stored)["value"] < 0
        small = figure_1.cost_by_ridge("λ == λ.min()").measure(stored)["value"] < tables.FITTED
        below, count = fits["value"].sum(), fits["fits"].sum()
        (rank,) = fits.loc[fits["value"], "rank"].unique() if below else (count,)
        values = [count], [falls.sum(), len(falls)], [below, rank], [small.sum(), len(small)]
        found = [[*row, *new] for row, new in zip(found, values, strict=True)]
    return found


def norms() -> Rows:
    """Estimates of the claims about the norm that a layer adds, with their intervals."""
    best = ("slope-is-rank", "slope-tends-to-rank", "first-correction", "only-the-middle-grows")
    trained = ("slope-is-rank-trained", "slope-is-rank-annealed")
    rows = pd.concat([
        judged("bottleneck-fig1", kept_tables("bottleneck-fig1", "paper"), *best),
        judged("bottleneck-recipes", networks(), *trained),
    ])  # fmt: skip
    order = [*best[:3], *trained, best[3]]
    return rows.loc[order, ["estimate", "low", "high"]].to_numpy().tolist()


def singular_values() -> Rows:
    """The fraction near one by depth: best solutions, annealed and ordinary training."""
    kinds = near_one(), near_one("annealed"), near_one("plain", tables.STRICT)
    return [kind.reindex(SHOWN_DEPTHS).dropna().tolist() for kind in kinds]


def losses() -> Rows:
    """Medians of the loss above the best loss in percent, where most networks are not zero."""
    rows = losses_above(networks()["metrics"])
    by = rows.groupby(["recipe", "depth"])[["above", "parameter_norm"]].median()
    alive = by.loc[by["parameter_norm"] > tables.ZERO, "above"]
    return [alive[recipe].reindex(SHOWN_DEPTHS).dropna().tolist() for recipe in TRAINED]


def annealing() -> Rows:
    """Return counts and medians of the deepest networks of figure bottleneck-annealing."""
    metrics = kept_tables("bottleneck-annealing")["metrics"]
    deep = select(metrics, depth=26)
    arms = [
        select(deep, recipe=recipe, gain=gain)
        for recipe in ("constant", "annealed")
        for gain in (1.0, 1.2)
    ]
    return [
        [(arm["parameter_norm"] < tables.ZERO).sum() for arm in arms],
        *([(arm["train_cost"] < bound).sum() for arm in arms] for bound in (FITTED, tables.STRICT)),
        *([arm[column].median() for arm in arms] for column in ("test_cost", "rank")),
    ]


def edge() -> Rows:
    """Learning rate × curvature at c = 0.1: before, after, and with weights alone."""
    product = stability.rate_times_curvature("figure-1", "c == 0.1")
    rows = product.measure(kept_tables("bottleneck-rates"))
    rows["weights"] = rows["c"] / rows["L"] * rows["curvature_of_weights"]
    return rows.groupby("L")[["before", "value", "weights"]].median().T.to_numpy().tolist()


def falls() -> Rows:
    """Medians of Tr Θ after / before in percent where FEWEST networks fit, and how many fit."""
    ratio = stability.after_over_before("ntk_trace", "figure-1", "c > 0")
    rows = ratio.measure(kept_tables("bottleneck-rates"))
    count = rows.groupby(["L", "c"])["fits"].sum()
    medians = 100 * rows[rows["fits"]].groupby(["L", "c"])["value"].median()
    shown = medians[count >= FEWEST]
    return [*([*part] for _, part in shown.groupby("L")), [*count.swaplevel().sort_index()]]


def from_random_weights() -> Rows:
    """Error, learning rate × curvature and Tr Θ / L after descent, and Tr Θ / L before it."""
    rows = select(kept_tables("bottleneck-rates")["metrics"], task="scratch")
    product = rows["rate"] * rows["curvature"] / rows["depth"]
    rows = rows.assign(kernel=rows["ntk_trace"] / rows["depth"], product=product)
    medians = rows.groupby(["rate", "depth"])[["train_cost", "product", "kernel"]].median()
    after, before = medians.loc[0.2], medians.loc[0.0]
    return [*after.T.to_numpy().tolist(), [*before["kernel"]]]


def growth() -> Rows:
    """The exponent of Tr Θ between two depths of the best solutions, with its range."""
    best = select(networks()["metrics"], recipe="minimum")
    trace = np.log(best.pivot(index="replicate", columns="depth", values="ntk_trace"))
    pairs = ((10, 14), (14, 20), (20, 30))
    local = [(trace[deep] - trace[first]) / np.log(deep / first) for first, deep in pairs]
    return [[x for values in local for x in spread(values)]]


def _symmetry(stored: dict[str, pd.DataFrame], stage: str) -> dict[str, pd.Series]:
    """Return measures of the networks at a stage: of the network, its middle, and two layers."""
    rows = select(stored["metrics"], stage=stage)
    late, early = (select(rows, layer=layer) for layer in (PCA_LAYER, DISTANCE_LAYER))
    found = select(stored["networks"], stage=stage)
    return {
        "rank": found["jacobian_rank"],
        "third": 100 * (middle_layers(rows)["s3"] > 0.1),
        "axis": late["knn_r2_axis"],
        "orthogonal": late["knn_r2_orthogonal"],
        "orbits": early["orbit_ratio"],
        "error": found["test_cost"],
    }


@lru_cache
def by_paths() -> dict[str, pd.Series]:
    """Return medians of the claim about paths in layer 6, by training procedure."""
    stored = kept_tables("bottleneck-fig2", "paper")
    recipes = ("constant", "annealed")
    rows = {recipe: symmetry.gained("step_r2", PCA_LAYER, recipe) for recipe in recipes}
    return {name: of.measure(stored).median(numeric_only=True) for name, of in rows.items()}


def learned_symmetry() -> Rows:
    """Measures with constant weight decay, after annealed training, and before training."""
    stored = kept_tables("bottleneck-fig2", "paper")
    of = {recipe: {name: select(stored[name], recipe=recipe) for name in ("metrics", "networks")}
          for recipe in ("constant", "annealed")}  # fmt: skip
    columns = [_symmetry(part, "trained") for part in of.values()]
    columns.append(_symmetry(of["constant"], "untrained"))
    paths = by_paths()
    step = [*(of["trained_r2"] for of in paths.values()), paths["constant"]["untrained_r2"]]
    crossing = [*(of["trained"] for of in paths.values()), paths["constant"]["untrained"]]

    def ranges(name: str, digits: int) -> list[float]:
        return [x for column in columns for x in ends(column[name], digits)]

    third = [column["third"].mean() for column in columns]
    statistics = ranges("axis", 3), ranges("orthogonal", 3)
    return [ranges("rank", 0), third, *statistics, step, ranges("orbits", 3), crossing]


def lower_rank() -> Rows:
    """Medians with small and large weight decay, and before training."""
    stored = kept_tables("bottleneck-symmetry", "paper")
    of = [{name: select(stored[name], noise=0.04, ridge=ridge) for name in ("metrics", "networks")}
          for ridge in (0.0002, 0.01)]  # fmt: skip
    columns = [_symmetry(part, "trained") for part in of] + [_symmetry(of[0], "untrained")]
    names = ("rank", "axis", "orthogonal", "orbits", "error")
    return [[column[name].median() for column in columns] for name in names]


def rare() -> Rows:
    """The number of initializations that fit, by the number of points."""
    return [[*counted(kept_tables("bottleneck-theorems", "paper")["metrics"])["fit"]]]


def explicit() -> Rows:
    """‖θ‖² − 3 L and the hidden layers' Lipschitz constant, at γ = 0.8 and three depths."""
    rows = select(kept_tables("bottleneck-example20", "paper")["metrics"], exponent=0.8)
    at = rows.set_index("depth").loc[[12, 192, 49152]]
    return [[*at["excess"]], [*at["middle_lipschitz"]]]


def growth_of_best() -> list[float]:
    """The median exponent of Tr Θ in L over the longest range of equal rank."""
    note = figure_1.middle_over_ends().measure(kept_tables("bottleneck-fig1", "paper"))
    return [note["power"].median()]


def nearly_balanced() -> list[float]:
    """Theorem 7 for trained networks: points, networks and their largest imbalance."""
    rows = select(kept_tables("bottleneck-fig1", "paper")["theorems"], theorem="theorem-7")
    rows = rows[rows["recipe"] != "minimum"]
    assert not rows["violations"].any()
    return [rows["points"].sum(), len(rows), rows["imbalance"].max()]


def crossing_paths() -> list[float]:
    """Pairs of paths: all, those that cross after two trainings and before, and in the task."""
    constant, annealed = by_paths().values()
    pairs = constant["pairs"], constant["trained"], annealed["trained"], constant["untrained"]
    return [*pairs, 8, constant["task"]]


STATEMENTS: dict[str, Callable[[], list[float]]] = {
    "Every network whose function is not zero": growth_of_best,
    "Theorem 7 needs only approximate balancedness": nearly_balanced,
    "In two components of layer 6, paths": crossing_paths,
}
"""Numbers of rows in the table of statements that belong to no verdict, by how a row begins."""

TABLES: dict[str, Callable[[], Rows]] = {
    "question": answers,
    "ranks of 8 tasks": ranks,
    "after ordinary training": thresholds,
    "quantity (in parentheses: where the statement puts it)": norms,
    "fraction near 1": singular_values,
    "loss above the best solution found": losses,
    "networks of depth 26 (8 tasks)": annealing,
    "c = 0.1: rate × largest curvature (edge: 2; medians of 8 tasks)": edge,
    "Tr Θ after / before gradient descent (medians of the networks that fit, of 8)": falls,
    "from random weights, c = 0.2 (medians of 8 tasks)": from_random_weights,
    "best solutions, 8 tasks": growth,
    "range of 8 networks": learned_symmetry,
    "annealed training (medians of 8 networks)": lower_rank,
    "points N": rare,
    "explicit networks, γ = 0.8": explicit,
}
