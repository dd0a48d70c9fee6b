"""Quantities of the claims about figure 1: numbers about the networks of each task.

A replicate is one task, with separate data and initial weights. Its networks have many depths L;
depths below 6 are ignored. A range is a sequence of neighboring depths whose networks fit the data
and have equal rank k.

Arguments that recur:

- tables: the tables of a figure's runs; `metrics` has the networks.
- recipe: "minimum" (the best solution found at each depth), "plain" (ordinary training) or
  "annealed" (annealed training). Functions without this argument are about best solutions.

Columns that recur: `fit` says whether the best solutions of a replicate at all depths fit the data.
`doubt` is the largest `spread` of the best two losses of a depth. `depths` is the number of depths
of a range. Replicates without a range have the value nan.
"""

import numpy as np
import pandas as pd

from runner.papers.bottleneck_structure.bottleneck import tables as t
from runner.results.evidence import slopes
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

DEPTHS = {"depth": t.ENOUGH}


def _networks(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return the networks of a recipe from depth SHALLOWEST on, or all if none is so deep."""
    return t.deep(select(t.at_ridge(tables["metrics"]), recipe=recipe))


def _minima(tables: Tables) -> pd.DataFrame:
    """Return the best solution of each depth and replicate."""
    return _networks(tables, "minimum")


def _of_fitting(tables: Tables, table: str, recipe: str = "minimum") -> pd.DataFrame:
    """Return the rows of a table for the networks of a recipe that fit, with their rank."""
    key = ["recipe", "replicate", "depth"]
    fitting = nonempty(t.fitted(_networks(tables, recipe)), "network that fits")
    return tables[table].merge(fitting[[*key, "rank"]], on=key)


def _with_fit(tables: Tables, measured: pd.DataFrame | pd.Series, what: str) -> pd.DataFrame:
    """Return measured values with the columns `fit` and `doubt`; replicates without a value are
    nan.

    measured: a frame, or values by replicate. what: the measured thing in words, for NoRows, which
    is raised if no value was measured.
    """
    values = measured.rename("value").reset_index() if isinstance(measured, pd.Series) else measured
    by = _minima(tables).assign(fit=lambda rows: rows["train_cost"] < t.FITTED).groupby("replicate")
    quality = by.agg(fit=("fit", "all"), doubt=("spread", "max"))
    return nonempty(values, what).merge(quality, on="replicate", how="right")


@quantity(
    "slope of the squared parameter norm in the depth, divided by the rank and moved by its error"
    " away from 1, over three or more depths of equal rank,",
    unit="ratio",
    needs=DEPTHS,
)
def slope_over_rank(tables: Tables) -> pd.DataFrame:
    """Return the slope of ‖θ‖² against the depth L divided by the rank, with its error.

    The value is (slope ± error) / rank, with the sign that moves it away from 1. There is a row for
    each range of three or more depths of equal rank. The slope is the slope of a fitted line. The
    error is the change of the slope if each ‖θ‖² moves by a possible error. This possible error is
    the difference of the best two losses of a depth, divided by λ.

    Raises NoRows if there is no such range, or no depth has a second loss.
    """
    metrics = _minima(tables)
    fits = t.fits(metrics)
    nonempty(fits["slope_error"].dropna(), "second minimum of a depth, which gives the error")
    far = np.where(fits["slope"] < fits["rank"], -1, 1) * fits["slope_error"]
    fits["value"] = (fits["slope"] + far) / fits["rank"]
    own = fits["replicate"].map(_slope_of_starts(metrics))
    fits["own"] = own.mask(fits["replicate"].duplicated())  # one number for each replicate
    return _with_fit(tables, fits, f"rank that holds over {t.ENOUGH} depths")


def _slope_of_starts(metrics: pd.DataFrame) -> pd.Series:
    """Return the slope of loss / λ in L between the two deepest depths with initializations.

    There is one number for each replicate. Only solutions found from these initializations are
    used.
    """
    deepest = metrics.dropna(subset="best_start").sort_values("depth").groupby("replicate").tail(2)
    steps = deepest.groupby("replicate")[["depth", "best_start"]].diff()
    slope = steps["best_start"] / steps["depth"] / deepest["ridge"]
    return slope.groupby(deepest["replicate"]).last()


def _longest_range(tables: Tables) -> pd.DataFrame:
    """Return each replicate's best solutions in its longest range of equal rank.

    The deeper one of two equally long ranges is used. Raises NoRows without a range.
    """
    ranges = t.with_ranges(_minima(tables))
    size = ranges.groupby(["replicate", "range"])["depth"].transform("size")
    longest = ranges[size == size.groupby(ranges["replicate"]).transform("max")]
    deepest = longest["range"] == longest.groupby("replicate")["range"].transform("max")
    return nonempty(longest[deepest], "range")


@quantity(
    "fall of ‖θ‖² − k L from depth 14 on (θ: parameters, k: rank, L: depth), divided by its"
    " prediction from the depths up to 14, in the longest range of depths of equal rank,",
    unit="ratio",
    needs={"depth": 2 * t.ENOUGH},
)
def shortfall_over_predicted(tables: Tables) -> pd.DataFrame:
    """Return how far the slope of ‖θ‖² is below the rank, divided by the expansion's prediction.

    There is a number for each replicate, over its longest range of depths of equal rank k. R₁ and
    R₂ are fitted over the depths up to 14, of which there must be three. From there to the largest
    depth, ‖θ‖² − k L should fall by R₂ (1/14 − 1/L). The value is nan for a replicate without such
    depths. Raises NoRows without a range.
    """
    values = {}
    for replicate, networks in _longest_range(tables).sort_values("depth").groupby("replicate"):
        fitted = networks[networks["depth"] <= t.SHALLOWER]
        if len(fitted) < t.ENOUGH or len(networks) == len(fitted):
            continue
        R1, R2 = t.expansion(fitted)
        ends = pd.concat([fitted.tail(1), networks.tail(1)])
        falls = -(ends["parameter_norm"] - ends["rank"] * ends["depth"]).diff().iloc[-1]
        predicted = -(R2 / ends["depth"]).diff().iloc[-1]
        values[replicate] = {"value": falls / predicted, "R1": R1, "R2": R2}
    rows = pd.DataFrame.from_dict(values, "index").rename_axis("replicate").reset_index()
    return _with_fit(tables, rows, "range with three depths up to 14 and a larger one")


@quantity(
    "exponent p of the fit Lᵖ to the largest distance from 1 of the k largest singular values of"
    " the middle layer (k: rank, L: depth), over the longest range of depths of equal rank,",
    unit="exponent",
    needs=DEPTHS,
)
def decay_of_distance(tables: Tables) -> pd.DataFrame:
    """Return the exponent p with which singular values approach 1 like Lᵖ, for each replicate.

    L is the depth. The distance from 1 is the largest |sᵢ − 1| with i ≤ k in the middle layer,
    where k is the rank. The exponent is fitted over the longest range of depths of equal rank.
    Raises NoRows without a range.
    """
    key = ["replicate", "depth"]
    longest = _longest_range(tables)[[*key, "rank"]]
    rows = select(tables["spectrum"], recipe="minimum").merge(longest, on=key)
    rows = rows.query("layer == depth // 2 and index <= rank")
    distances = rows.assign(distance=(rows["singular_value"] - 1).abs())
    worst = distances.groupby(key)["distance"].max().reset_index()
    return _with_fit(tables, slopes(worst, "depth", "distance", log=True), "range")


def _longest(tables: Tables) -> pd.DataFrame:
    """Return first slope, last slope and rank of each replicate's longest range of equal rank.

    The column `same` says whether the deepest network's Jacobian, and its layer of smallest rank,
    have this rank, too.
    """
    longest = _longest_range(tables).sort_values("depth")
    by = t.successive_slopes(longest).groupby("replicate")
    deepest = longest.groupby("replicate").tail(1).set_index("replicate")
    same = deepest.eval("jacobian_rank == rank and bottleneck_rank == rank").rename("same")
    rows = by["slope"].agg(["size", "first", "last"]).join(by["rank"].first()).join(same)
    return _with_fit(tables, rows.query("size >= 2").reset_index(), f"range of {t.ENOUGH} depths")


@quantity(
    "distance from the rank to the slope of loss / λ between the last two depths, in the longest"
    " range of depths of equal rank (λ: weight decay),",
    needs=DEPTHS,
)
def distance_to_rank(tables: Tables) -> pd.DataFrame:
    """Return for each replicate how far the slope of loss / λ against the depth is from the rank.

    The depths are the replicate's longest sequence of three or more depths whose best solutions
    have equal rank. The column `first` has the slope between the two smallest of these depths,
    `last` between the two largest. `value` is |last − rank|, and nan for a replicate without such a
    sequence. Raises NoRows if no replicate has one.
    """
    return _longest(tables).assign(value=lambda rows: (rows["rank"] - rows["last"]).abs())


@quantity(
    "slope of loss / λ between the last two depths minus that between the first two, in the"
    " longest range of depths of equal rank (λ: weight decay),",
    unit="difference",
    needs=DEPTHS,
)
def rise_of_slope(tables: Tables) -> pd.DataFrame:
    """Return by how much the slope of loss / λ in the depth rises, for each replicate.

    The value is the slope between the last two depths minus the slope between the first two depths.
    The depths are the longest range of three or more depths of equal rank. Raises NoRows without
    such a range.
    """
    rows = _longest(tables).drop(columns="same")  # the note counts each task once
    return rows.assign(value=rows["last"] - rows["first"])


@quantity(
    "Spearman's correlation of depth and rank over the {recipe} that fit (0 if all ranks are"
    " equal)",
    needs=DEPTHS,
)
def correlation_with_depth(tables: Tables, recipe: str) -> pd.Series:
    """Return Spearman's correlation of depth and rank over the networks that fit.

    There is a number for each replicate, which is 0 if all ranks are equal. recipe: such as
    "minimum". Raises NoRows if no network fits.
    """
    rows = nonempty(t.fitted(_networks(tables, recipe)), "network that fits")
    by = rows.groupby("replicate")[["depth", "rank"]]
    return by.apply(lambda group: group.corr(method="spearman").iloc[0, 1]).fillna(0)


@quantity("a training error below 0.1 together with a rank below {k}, in {recipe} (1: yes, 0: no),")
def fits_below(tables: Tables, k: int, recipe: str) -> pd.DataFrame:
    """Return whether each network fits its data with a rank below k, a row for each network.

    The column `fits` says whether the training error is below 0.1. The columns `strict` and
    `strict_below` say the same as `fits` and the value, for a training error below 0.02. recipe:
    such as "plain". Raises NoRows if the recipe was not run.
    """
    rows = select(t.at_ridge(tables["metrics"]), recipe=recipe)
    low, fits = rows["rank"] < k, rows["train_cost"] < t.FITTED
    strict = rows["train_cost"] < t.STRICT
    return rows.assign(fits=fits, value=fits & low, strict=strict, strict_below=strict & low)


@quantity(
    "fraction of the singular values in the middle half of the layers of {recipe} that differ from"
    " {near} by less than 0.5"
)
def share_of_values(tables: Tables, near: float, where: str, recipe: str) -> pd.Series:
    """Return the fraction of singular values that differ from `near` by less than 0.5.

    There is a number for each replicate. All weight matrices W_l with L/4 <= l <= 3L/4 are used, of
    the networks that fit their data. where: a condition on the index i of a singular value and the
    network's rank k, such as `i <= k`, as for `DataFrame.query`. recipe: such as "minimum". Raises
    NoRows if no network fits, or no such singular value was measured.
    """
    rows = _of_fitting(tables, "spectrum", recipe).rename(columns={"index": "i", "rank": "k"})
    rows = rows.query(f"depth / 4 <= layer <= depth * 3 / 4 and {where}")
    rows = nonempty(rows, "layer in the middle half")
    return ((rows["singular_value"] - near).abs() < 0.5).groupby(rows["replicate"]).mean()


@quantity(
    "rise of the number of layers outside the bottleneck for each further layer of {recipe}, over"
    " a range of depths of equal rank,",
    unit="slope",
    needs=DEPTHS,
)
def layers_outside(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return how many layers outside the bottleneck a further layer adds.

    There is a row for each range of three or more depths of equal rank. The value is the slope in
    the depth of the number of layers outside. A layer is outside if the middle layer has a
    different number of singular values above 0.5. recipe: such as "minimum". Raises NoRows if there
    is no such range.
    """
    metrics = _networks(tables, recipe)
    lengths = t.bottleneck_lengths(metrics, select(tables["spectrum"], recipe=recipe))
    ranges = lengths.groupby(["replicate", "range"]).filter(lambda rows: len(rows) >= t.ENOUGH)
    by = nonempty(ranges, f"rank that holds over {t.ENOUGH} depths").groupby(["replicate", "range"])
    growth = by.apply(lambda rows: _slope_of_counts(rows["depth"], rows["outside"]))
    return _of_all(metrics, growth.rename("value").reset_index().assign(depths=t.ENOUGH))


def _slope_of_counts(x: pd.Series, y: pd.Series) -> float:
    """Return the slope of whole numbers y in x. Rounding does not move it across a bound."""
    n, sums = len(x), x.sum() * y.sum()
    return float((n * (x * y).sum() - sums) / (n * (x**2).sum() - x.sum() ** 2))


@quantity(
    "‖σ(a) − a‖² / ‖a‖² of the pre-activations a of the best solutions (σ: ReLU), averaged over the"
    " middle half of the layers, at depths from 12 on,"
)
def share_of_negative(tables: Tables) -> pd.DataFrame:
    """Return ‖σ(a) − a‖² / ‖a‖² of the pre-activations a, averaged, for each replicate.

    The value is 0 where the ReLU σ changes nothing. The mean is over the middle half of the layers,
    of best solutions that fit, at depths from 12 on. The column `first` has the mean in the first
    layer. Raises NoRows if there is no such network.
    """
    rows = _of_fitting(tables, "representation")
    rows = nonempty(rows[rows["depth"] >= 2 * t.SHALLOWEST], "network of depth 12 or more")
    rows = rows.assign(value=rows["negative"]).query("layer < depth")
    inside = rows["layer"].between(rows["depth"] / 4, rows["depth"] * 3 / 4)
    ends = rows[rows["layer"] == 1].groupby("replicate")["negative"].mean().rename("first")
    return rows[inside].groupby("replicate")["value"].mean().reset_index().join(ends, "replicate")


@quantity(
    "the mean of ‖f(x) − g(x)‖² is {} the test error of f, for best solutions f and g of"
    " successive depths of equal rank",
    unit="ratio",
    needs=DEPTHS,
)
def moved_over_error(tables: Tables) -> pd.DataFrame:
    """Return how much the best solution's function changes between two neighboring depths.

    There is a row for each pair of depths of equal rank. The value is the mean ‖f(x) − g(x)‖² on
    test inputs, divided by the test error of f. f is the deeper network, g the other one. Raises
    NoRows if there is no pair.
    """
    rows = t.with_ranges(_minima(tables))
    rows = nonempty(rows[rows["range"] == rows["range"].shift()], "pair of depths of equal rank")
    return rows.assign(value=rows["moved"] / rows["test_cost"])


@quantity(
    "in the deeper half of the depths, singular value k + 1 of the middle layer's pre-activations"
    " (k: rank) is {} the smaller one of its values in the first and in the last layer",
    unit="ratio",
    needs=DEPTHS,
)
def middle_over_ends(tables: Tables) -> pd.DataFrame:
    """Return singular value k + 1 of Wₗ αₗ₋₁(X) in the middle layer, relative to the end layers.

    k is the rank of the network. The middle value is divided by the smaller one of the values in
    the first and the last layer. There is a row for each replicate and depth, in the deeper half of
    the depths. The columns `first`, `middle` and `last` have the three values. The column `power`
    has the exponent of Tr Θ in L over the replicate's longest range of depths of equal rank, since
    the corollary assumes a kernel of order L. Raises NoRows if no network fits.
    """
    rows = _of_fitting(tables, "representation")
    depths = np.sort(rows["depth"].unique())
    rows = rows[rows["depth"] >= depths[len(depths) // 2]]
    layers = {"first": 1, "middle": rows["depth"] // 2, "last": rows["depth"]}
    key = ["replicate", "depth"]
    tails = {name: rows[rows["layer"] == at].set_index(key)["tail"] for name, at in layers.items()}
    tails = pd.DataFrame(tails).reset_index()
    tails["value"] = tails["middle"] / tails[["first", "last"]].min(axis=1)
    power = slopes(_longest_range(tables), "depth", "ntk_trace", log=True).rename("power")
    tails = tails.join(power, on="replicate")
    return _with_fit(tables, tails, "layer in the middle")


def _of_all(metrics: pd.DataFrame, ranges: pd.DataFrame) -> pd.DataFrame:
    """Return the ranges, with a row of nan for each replicate without a range."""
    return metrics[["replicate"]].drop_duplicates().merge(ranges, how="left")


def _lines(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return a row of fitted numbers for each range, and a row of nan for replicates without a
    range.
    """
    metrics = _networks(tables, recipe)
    return _of_all(metrics, t.fits(metrics))


@quantity(
    "slope of the squared parameter norm of {recipe} in the depth, divided by the rank, over a"
    " range of depths of equal rank,",
    unit="ratio",
    needs=DEPTHS,
)
def trained_slope_over_rank(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return the slope of ‖θ‖² against the depth, divided by the rank.

    There is a row for each range of three or more depths of equal rank. recipe: "plain" or
    "annealed". Raises NoRows if the recipe was not run.
    """
    return _lines(tables, recipe).assign(value=lambda rows: rows["slope"] / rows["rank"])


@quantity(
    "largest distance of the squared parameter norm of {recipe} from a straight line in the depth,"
    " divided by the largest difference of these norms, over a range of depths of equal rank,",
    needs=DEPTHS,
)
def off_the_line(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return how far ‖θ‖² is from a straight line in the depth.

    There is a row for each range of three or more depths of equal rank. The value is the largest
    distance, divided by the range of ‖θ‖². recipe: "minimum", "plain" or "annealed". Raises NoRows
    if the recipe was not run.
    """
    return _lines(tables, recipe).assign(value=lambda rows: rows["off"])


@quantity("squared parameter norm of {recipe}", each=("L",), needs=DEPTHS)
def norm(tables: Tables, recipe: str, where: str) -> pd.DataFrame:
    """Return the squared parameter norm ‖θ‖² of the networks, a row for each depth and replicate.

    recipe: such as "plain". where: a condition on the depth L, as for `DataFrame.query`. Raises
    NoRows if no network meets the condition.
    """
    rows = select(t.at_ridge(tables["metrics"]), recipe=recipe).rename(columns={"depth": "L"})
    return rows.query(where).assign(value=lambda rows: rows["parameter_norm"])


@quantity(
    "training error after ordinary training with weight decay λ, at the depth at which several λ"
    " were run,",
    needs={"ridge": 2},
)
def cost_by_ridge(tables: Tables, where: str) -> pd.DataFrame:
    """Return the training error after ordinary training, for each weight decay λ and replicate.

    Only depths at which several λ were run are used. where: a condition on λ, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    rows = select(tables["metrics"], recipe="plain").rename(columns={"ridge": "λ"})
    several = rows.groupby("depth")["λ"].transform("nunique") > 1
    return rows[several].query(where).assign(value=lambda rows: rows["train_cost"])
