"""Quantities of the claims about very deep linear networks: averages over depth, and single
networks.

Arguments that recur:

- tables: the tables of a figure's runs, such as `metrics`, the averages over depth.
- law: the distribution of the weights: "gaussian", "uniform", "rademacher" or "asymmetric".
- where: a condition on the width `d`, the residual weight `γ` (∞: no skip connection) and other
  columns of the table, as for `DataFrame.query`.

Averages over depth have a standard error and `n`, the number of independent networks, or of long
batches of one network. An average is refused with NoRows if networks are too short to forget their
inputs.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.rank_chain.tables import (
    averages,
    norm_bound,
    pieces,
    powers_left_over,
    powers_of_two,
    rank_bound,
    scaled_products,
    too_short,
)
from runner.results.evidence import slope_of_estimates
from runner.results.quantities import Tables, quantity
from runner.results.rows import NoRows, nonempty, select

SYMBOLS = {"skip": "γ", "width": "d"}
COLUMNS = {"soft rank": "soft_rank", "r": "rank_bound", "‖M‖²": "frobenius"}


LAYERS = {"layer": 50}
"""Smallest number of layers from which a rate per layer is measured."""

ROUNDING = -34.0
"""Smallest log(σ₂ / σ₁) that is no rounding error; float64 rounds to about -36."""

AT_ROUNDING = 0.05
"""Largest fraction of networks below ROUNDING at a layer from which a rate is measured. Where many
networks no longer fall, their mean falls too slowly."""

EXACT = 1e-9
"""Smallest error of a mean r. Means of networks of rank one differ by less, from rounding."""


def _averages(tables: Tables, where: str = "") -> pd.DataFrame:
    return _long_enough(averages(tables), where)


def _long_enough(rows: pd.DataFrame, where: str = "") -> pd.DataFrame:
    """Return the rows that meet a condition, with the columns `d`, `γ`, and `n` for their errors.

    Raises NoRows if no row meets the condition or if a network is too short.
    """
    rows = rows.assign(d=rows["width"], γ=rows["skip"])
    rows = nonempty(rows.query(where), f"averages of {where}") if where else rows
    if words := too_short(rows):
        raise NoRows(words)
    return rows.assign(n=pieces(rows))


def _over(rows: pd.DataFrame, column: str, bound: pd.Series) -> pd.DataFrame:
    """Return an average divided by its bound, which is proportional to √(1 − α) or 1 / √(1 − α).

    The relative errors of average and bound are added because they are not independent.
    """
    relative = rows[f"{column}_se"] / rows[column]
    relative += rows["regularity_se"] / (2 * (1 - rows["regularity"]))
    ratio = rows[column] / bound
    return rows.assign(value=ratio, error=ratio * relative)


@quantity(
    "the mean of r over the layers is {} its lower bound √((1 − α) d) (α: regularity constant)",
    each=("law", "γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3},
)
def r_over_bound(tables: Tables) -> pd.DataFrame:
    """Return the mean of r over depth, divided by its lower bound √((1 − α) d) (Eq. 58).

    The bound is part of Theorem 14. r is the lower bound (4) of the rank, α the measured regularity
    constant. There is a row for each distribution of the weights, γ and width, with `value`,
    `error` and `n`. Raises NoRows if networks have too few layers.
    """
    rows = _averages(tables)
    return _over(rows, "rank_bound", rank_bound(rows, 0.0))


@quantity(
    "the mean soft rank of the layers is {} its lower bound in Theorem 14",
    each=("law", "γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3},
)
def soft_rank_over_bound(tables: Tables) -> pd.DataFrame:
    """Return the mean soft rank over depth, divided by its lower bound (Theorem 14, Eq. 58).

    The bound is (1 − τ)² √((1 − α) d) with the measured regularity constant α. There is a row for
    each distribution of the weights, γ and width, with `value`, `error` and `n`. Raises NoRows if
    networks have too few layers.
    """
    rows = _averages(tables)
    return _over(rows, "soft_rank", rank_bound(rows, rows["tau"]))


@quantity(
    "with {law} weights, the mean soft rank of the layers is {} its lower bound in Theorem 14",
    each=("tau", "γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3, "tau": 3},
)
def soft_rank_over_bound_at(tables: Tables, law: str) -> pd.DataFrame:
    """Return the mean soft rank over depth, divided by its lower bound (Theorem 14, Eq. 58).

    The bound is (1 − τ)² √((1 − α) d) with the measured regularity constant α. There is a row for
    each threshold τ, γ and width, with `value`, `error` and `n`. law: the distribution of the
    weights, such as "gaussian". Raises NoRows if the distribution was not run or networks have too
    few layers.
    """
    rows = _averages(tables, f"law == '{law}'")
    return _over(rows, "soft_rank", rank_bound(rows, rows["tau"]))


@quantity("mean of r with {law} weights", each=("γ", "d"), numbers="estimates", needs={"width": 3})
def mean_r(tables: Tables, law: str) -> pd.DataFrame:
    """Return the mean over depth of r, the lower bound (4) of the rank.

    There is a row for each γ and width, with `value`, `error` and `n`. law: the distribution of the
    weights, such as "asymmetric". Raises NoRows if the distribution was not run or networks have
    too few layers.
    """
    rows = _averages(tables, f"law == '{law}'")
    error = rows["rank_bound_se"].clip(lower=EXACT)
    return rows.assign(value=rows["rank_bound"], error=error)


@quantity(
    "σ₂ / σ₁ of the activations after L layers without normalization (σ₁, σ₂: largest singular"
    " values) at residual weights γ = {γ}",
    each=("L",),
)
def ratio_behind(tables: Tables, γ: str, where: str = "L > 0") -> pd.DataFrame:
    """Return σ₂ / σ₁ after L layers without normalization, a row for each L and replicate.

    σ₁ and σ₂ are the largest two singular values of the activations. γ: the residual weight in
    words, such as "0.3", or "1 / L" if it falls with the depth L. where: a condition on L, as for
    `DataFrame.query`. Raises NoRows if this γ was not run.
    """
    rows = select(scaled_products(tables), branch=γ).query(where)
    return rows.assign(value=np.exp(rows["log_ratio"]))


@quantity(
    "the mean of ‖M‖² is {} its upper bound d^1.5 / √(1 − α) (M: second moments of the"
    " activations, α: regularity constant)",
    each=("γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3},
)
def norm_over_bound(tables: Tables) -> pd.DataFrame:
    """Return the mean of ‖M‖² over depth, divided by its upper bound d^1.5 / √(1 − α) (Eq. 50).

    The bound is Lemma 13. M holds the second moments of the activations, α is the measured
    regularity constant. There is a row for each distribution of the weights, γ and width, with
    `value`, `error` and `n`. Raises NoRows if networks have too few layers.
    """
    rows = _averages(tables)
    return _over(rows, "frobenius", norm_bound(rows))


@quantity(
    "exponent p of the fit dᵖ to the mean of {of} (d: width)",
    each=("γ", "range"),
    unit="exponent",
    numbers="estimates",
    needs={"width": 3},
)
def exponent(tables: Tables, of: str, where: str = "") -> pd.DataFrame:
    """Return the exponent p of a mean over depth that grows like d^p with the width d.

    Each γ has two rows, with `value`, `error` and `n`: the fit to all widths, and the slope between
    the two largest widths. The column `range` is "all d" or "the last doubling". Only widths that
    are powers of two are used. The error is nan if a mean has no error.

    of: "soft rank", "r" or "‖M‖²". where: a condition on d, γ and other columns, as for
    `DataFrame.query`. Raises NoRows unless a γ has three such widths, or if networks have too few
    layers.
    """
    exponents = []
    for γ, rows in powers_of_two(_averages(tables, where)).groupby("γ"):
        if len(rows) >= 3:
            for name, part in (("all d", rows), ("the last doubling", rows.iloc[-2:])):
                value, error = _exponent(part, COLUMNS[of])
                n = int(part["n"].min())
                exponents.append({"γ": γ, "range": name, "value": value, "error": error, "n": n})
    return nonempty(pd.DataFrame(exponents), "three powers of two among the widths")


def _exponent(rows: pd.DataFrame, column: str) -> tuple[float, float]:
    """Return the exponent and its error; both are nan if an average has no error."""
    relative = (rows[f"{column}_se"] / rows[column]).to_numpy()
    if not (relative > 0).all():
        return np.nan, np.nan
    x, y = np.log(rows["d"].to_numpy()), np.log(rows[column].to_numpy())
    return slope_of_estimates(x, y, relative)


@quantity(
    "regularity constant α", each=("γ", "d"), numbers="estimates", needs={"width": 3, "skip": 2}
)
def alpha(tables: Tables, where: str) -> pd.DataFrame:
    """Return the regularity constant α (Definition 3), measured over depth.

    There is a row for each γ and width, with `value`, `error` and `n`. where: a condition on d and
    γ, as for `DataFrame.query`. Raises NoRows if no network meets the condition or networks have
    too few layers.
    """
    rows = _averages(tables, where)
    return rows.assign(value=rows["regularity"], error=rows["regularity_se"])


@quantity(
    "regularity constant α at width d minus that at width d / 2",
    each=("γ", "d"),
    unit="difference",
    numbers="estimates",
    needs={"width": 3, "skip": 2},
)
def change_of_alpha(tables: Tables, where: str) -> pd.DataFrame:
    """Return the regularity constant α at width d, minus α at the preceding width, for each γ.

    Only widths that are powers of two are used. There is a row for each γ and each width but the
    smallest, with `value`, `error` and `n`. where: a condition on d and γ, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition or networks have too few
    layers.
    """
    rows = powers_of_two(_averages(tables, where))
    by = rows.groupby("γ")
    error = np.hypot(rows["regularity_se"], by["regularity_se"].shift())
    rows = rows.assign(value=by["regularity"].diff(), error=error, n=by["n"].transform("min"))
    return rows.dropna(subset="value")


@quantity(
    "the i-th singular value at layer {layer} is {} that at layer 0",
    each=("index", "γ"),
    unit="ratio",
)
def stretch(tables: Tables, where: str, layer: int) -> pd.Series:
    """Return each singular value at one layer, divided by the same singular value at layer 0.

    There is a number for each singular value (`index`, 1: the largest), γ and replicate. where: a
    condition on `index`, γ and d, as for `DataFrame.query`. layer: the number of the layer. Raises
    NoRows if the layer was not measured.
    """
    rows = tables["spectrum"].rename(columns=SYMBOLS).query(where)
    keys = ["index", "γ", "replicate"]
    later, start = (select(rows, layer=at).set_index(keys) for at in (layer, 0))
    return later["singular_value"] / start["singular_value"]


def _falls(tables: Tables) -> Iterator[pd.DataFrame]:
    """Yield for each distribution and γ the fall of log(σ₂ / σ₁) per layer, a row for each network.

    The columns `first` and `second` have the rates in the two halves of the layers before rounding.
    The column `rate` excludes the first quarter, in which the network forgets its inputs. Raises
    NoRows if all layers are below rounding.
    """
    for (law, γ), rows in tables["products"].groupby(["law", "skip"]):
        lowest = rows.groupby("layer")["log_ratio"].quantile(AT_ROUNDING)
        usable = nonempty(lowest[lowest > ROUNDING], "layer before rounding").index
        at = rows.pivot(index="replicate", columns="layer", values="log_ratio")
        start, quarter, half, end = (usable[(len(usable) - 1) * k // 4] for k in (0, 1, 2, 4))
        parts = {"rate": (quarter, end), "first": (start, half), "second": (half, end)}
        falls = {name: (at[a] - at[b]) / (b - a) for name, (a, b) in parts.items()}
        about = {"law": law, "γ": γ, "gap": rows["gap"].iloc[0], "gap_se": rows["gap_se"].iloc[0]}
        yield pd.DataFrame(falls).assign(**about).reset_index()


@quantity(
    "fall of log(σ₂ / σ₁) per layer (σ₁, σ₂: largest singular values)",
    each=("law", "γ"),
    unit="slope",
    needs=LAYERS,
)
def fall_a_layer(tables: Tables) -> pd.DataFrame:
    """Return the fall of log(σ₂ / σ₁) per layer, without normalization.

    σ₁ and σ₂ are the largest two singular values of the activations. There is a row for each
    distribution of the weights, γ and network. The first quarter of the layers and layers below
    rounding are excluded.
    """
    return pd.concat(_falls(tables)).rename(columns={"rate": "value"})


@quantity(
    "fall of log(σ₂ / σ₁) per layer in the {one} half of the layers minus half the fall in"
    " the {other} half",
    each=("law", "γ"),
    unit="difference",
    needs=LAYERS,
)
def fall_beyond_half(tables: Tables, one: str, other: str) -> pd.DataFrame:
    """Return the fall of log(σ₂ / σ₁) per layer in one half of the layers, compared with the other.

    The value is the fall in one half minus half of the fall in the other half. There is a row for
    each distribution of the weights, γ and network. one, other: "first" or "second", a half of the
    layers before rounding. A positive value for the second half excludes a slower law: with the
    square root or the logarithm of the depth, the second half would fall less.
    """
    return pd.concat(_falls(tables)).assign(value=lambda rows: rows[one] - rows[other] / 2)


@quantity(
    "with {law} weights, the fall of log(σ₂ / σ₁) per layer is {} the gap between the two"
    " largest Lyapunov exponents (σ₁, σ₂: largest singular values)",
    each=("γ",),
    unit="ratio",
    numbers="estimates",
    needs=LAYERS,
)
def fall_over_gap(tables: Tables, law: str) -> pd.DataFrame:
    """Return the mean fall of log(σ₂ / σ₁) per layer, divided by the gap of two Lyapunov exponents.

    The gap is the difference of the two largest Lyapunov exponents, for Gaussian weights. There is
    a row for each γ, with `value`, `error` and `n`, the number of networks. law: such as
    "gaussian". Raises NoRows if the distribution was not run.
    """
    ratios = []
    for rows in _falls({"products": select(tables["products"], law=law)}):
        gap, error = rows["gap"].iloc[0], rows["gap_se"].iloc[0]
        ratio = rows["rate"].mean() / gap
        noise = np.hypot(rows["rate"].sem() / gap, ratio * error / gap)
        ratios.append({"γ": rows["γ"].iloc[0], "value": ratio, "error": noise, "n": len(rows)})
    return pd.DataFrame(ratios)


@quantity(
    "with {law} weights, the mean change of the normalized activations per layer in the last tenth"
    " of the layers is {} that in the first tenth",
    each=("γ",),
    unit="ratio",
    needs=LAYERS,
)
def step_late_over_early(tables: Tables, law: str) -> pd.Series:
    """Return the mean step in the last tenth of the layers, divided by the first tenth's.

    A step is the distance that the matrix of activations, scaled to norm one, moves in one layer.
    There is a number for each γ and network, from all layers of this γ. law: the distribution of
    the weights, such as "gaussian". Raises NoRows if the distribution was not run.
    """
    rows = select(tables["products"], law=law).rename(columns=SYMBOLS)
    tenth = rows.groupby("γ")["layer"].transform("max") / 10
    early, late = rows[rows["layer"] <= tenth], rows[rows["layer"] > 9 * tenth]
    steps = [part.groupby(["γ", "replicate"])["step_length"].mean() for part in (late, early)]
    return steps[0] / steps[1]


@quantity(
    "((change of ‖M‖² in a layer) / γ² − prediction δ_F(M)) / (2 d²) (M: second moments of the"
    " activations) at the smallest residual weight γ",
    each=("d", "law"),
    unit="difference",
    needs={"width": 3},
)
def beyond_expansion(tables: Tables) -> pd.DataFrame:
    """Return the error of Lemma 7 at the smallest γ: (change of ‖M‖² / γ² − δ_F(M)) / (2 d²).

    The change over one layer is a mean over random weights, and δ_F(M) its prediction (Eq. 43).
    There is a row for each width, distribution and matrix M.
    """
    rows = tables["expansions"].rename(columns=SYMBOLS).query("γ == γ.min()")
    return rows.assign(value=(rows["change"] - rows["predicted"]) / (2 * rows["d"] ** 2))


@quantity(
    "exponent p of the fit γᵖ to the remainder divided by γ², at the three smallest residual"
    " weights γ (remainder: change of ‖M‖² in a layer minus its prediction),",
    each=("d", "law"),
    unit="exponent",
    needs={"width": 3, "skip": 3},
)
def exponent_of_remainder(tables: Tables) -> pd.Series:
    """Return the power p with which the remainder of Lemma 7, divided by γ², grows with γ.

    The remainder is the change of ‖M‖² over one layer minus its prediction γ² δ_F(M). There is a
    number for each width, distribution of the weights and matrix M, fitted between the three
    smallest γ. See `tables.powers_left_over`. Raises NoRows for fewer than three γ.
    """
    return powers_left_over(tables).rename_axis(["d", "law", "replicate"])


@quantity(
    "the mean of r from inputs of lower rank is {} that from inputs of full rank",
    each=("γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 2},
)
def r_over_full(tables: Tables) -> pd.DataFrame:
    """Return the mean of r from inputs of lower rank, divided by its mean from full rank.

    r is the lower bound (4) of the rank of deep layers. The lower rank of the inputs is the
    smallest integer that is at least the mean of r from full rank. The largest measured rank counts
    as full. There is a row for each γ and width, with `value`, `error` and `n`. Raises NoRows if
    networks have too few layers.
    """
    rows = _long_enough(tables["input_ranks"]).sort_values(["γ", "d", "input_rank"])
    by = rows.groupby(["γ", "d"])
    full, full_se = (by[name].transform("last") for name in ("rank_bound", "rank_bound_se"))
    ratio = rows["rank_bound"] / full
    error = np.hypot(rows["rank_bound_se"], ratio * full_se) / full
    least = rows["input_rank"] == np.ceil(full)
    least &= rows["input_rank"] < by["input_rank"].transform("max")
    return rows.assign(value=ratio, error=error)[least]
