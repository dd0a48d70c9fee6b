"""Measure very deep linear networks: averages over depth with errors, and single networks.

The errors come from independent networks, or from long batches of one network. Networks that are
too short to forget their inputs are not judged. d is the width. γ is the weight of the residual
branch (∞: no skip connection).
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

PRINTED = {
    "law": "distribution of the weights",
    "index": "i",
    "range": "range of d",
    "soft rank": "the soft rank",
    "rademacher": "Rademacher",
    "asymmetric": "only positive",
    "law == 'gaussian'": "the weights are Gaussian",
}
"""Printed names of columns, distributions and conditions."""

LAYERS = {"layer": 50}
"""Smallest number of layers for a rate by depth."""

ROUNDING = -30.0
"""Smallest log(σ₂ / σ₁) in the fit of a line; float64 rounds to about -36."""

EXACT = 1e-9
"""Rounding of a mean r: networks of rank one differ by less."""


def _averages(tables: Tables, where: str = "") -> pd.DataFrame:
    return _long_enough(averages(tables), where)


def _long_enough(rows: pd.DataFrame, where: str = "") -> pd.DataFrame:
    """Return the rows of a condition with `n` for their errors.

    Raises NoRows if a network is too short.
    """
    rows = rows.assign(d=rows["width"], γ=rows["skip"])
    rows = nonempty(rows.query(where), f"averages of {where}") if where else rows
    if words := too_short(rows):
        raise NoRows(words)
    return rows.assign(n=pieces(rows))


def _over(rows: pd.DataFrame, column: str, bound: pd.Series) -> pd.DataFrame:
    """Return an average / its bound in α, which is proportional to √(1 − α).

    The errors of average and bound are added because they are not independent.
    """
    relative = rows[f"{column}_se"] / rows[column]
    relative += rows["regularity_se"] / (2 * (1 - rows["regularity"]))
    ratio = rows[column] / bound
    return rows.assign(value=ratio, error=ratio * relative)


@quantity(
    "(mean of r) / √((1 − α) d)",
    each=("law", "γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3},
)
def r_over_bound(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = _averages(tables)
    return _over(rows, "rank_bound", rank_bound(rows, 0.0))


@quantity(
    "(mean of the soft rank) / its bound in α",
    each=("law", "γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3},
)
def soft_rank_over_bound(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = _averages(tables)
    return _over(rows, "soft_rank", rank_bound(rows, rows["tau"]))


@quantity(
    "(mean of the soft rank at τ) / its bound in α and τ, {law} weights",
    each=("tau", "γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3, "tau": 3},
)
def soft_rank_over_bound_at(tables: Tables, law: str) -> pd.DataFrame:
    """TODO"""
    rows = _averages(tables, f"law == '{law}'")
    return _over(rows, "soft_rank", rank_bound(rows, rows["tau"]))


@quantity("mean of r, {law} weights", each=("γ", "d"), numbers="estimates", needs={"width": 3})
def mean_r(tables: Tables, law: str) -> pd.DataFrame:
    """TODO"""
    rows = _averages(tables, f"law == '{law}'")
    error = rows["rank_bound_se"].clip(lower=EXACT)
    return rows.assign(value=rows["rank_bound"], error=error)


@quantity("σ₂ / σ₁ after L layers without normalization, at γ = {γ}", each=("L",))
def ratio_behind(tables: Tables, γ: str, where: str = "L > 0") -> pd.DataFrame:
    """TODO"""
    rows = select(scaled_products(tables), branch=γ).query(where)
    return rows.assign(value=np.exp(rows["log_ratio"]))


@quantity(
    "(mean of ‖M‖²) / (d^1.5 / √(1 − α))",
    each=("γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 3},
)
def norm_over_bound(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = _averages(tables)
    return _over(rows, "frobenius", norm_bound(rows))


@quantity(
    "exponent p of (mean of {of}) ∝ d^p, over all d and over the last doubling",
    each=("γ", "range"),
    unit="exponent",
    numbers="estimates",
    needs={"width": 3},
)
def exponent(tables: Tables, of: str, where: str = "") -> pd.DataFrame:
    """TODO"""
    exponents = []
    for γ, rows in powers_of_two(_averages(tables, where)).groupby("γ"):
        if len(rows) >= 3:
            for name, part in (("all d", rows), ("the last doubling", rows.iloc[-2:])):
                value, error = _exponent(part, COLUMNS[of])
                n = int(part["n"].min())
                exponents.append({"γ": γ, "range": name, "value": value, "error": error, "n": n})
    return nonempty(pd.DataFrame(exponents), "three powers of two among the widths")


def _exponent(rows: pd.DataFrame, column: str) -> tuple[float, float]:
    """Return the exponent and its error, which is nan if an average has no error."""
    relative = (rows[f"{column}_se"] / rows[column]).to_numpy()
    if not (relative > 0).all():
        return np.nan, np.nan
    x, y = np.log(rows["d"].to_numpy()), np.log(rows[column].to_numpy())
    return slope_of_estimates(x, y, relative)


@quantity("α", each=("γ", "d"), numbers="estimates", needs={"width": 3, "skip": 2})
def alpha(tables: Tables, where: str) -> pd.DataFrame:
    """TODO"""
    rows = _averages(tables, where)
    return rows.assign(value=rows["regularity"], error=rows["regularity_se"])


@quantity(
    "α at width d − α at width d / 2",
    each=("γ", "d"),
    unit="difference",
    numbers="estimates",
    needs={"width": 3, "skip": 2},
)
def change_of_alpha(tables: Tables, where: str) -> pd.DataFrame:
    """TODO"""
    rows = powers_of_two(_averages(tables, where))
    by = rows.groupby("γ")
    error = np.hypot(rows["regularity_se"], by["regularity_se"].shift())
    rows = rows.assign(value=by["regularity"].diff(), error=error, n=by["n"].transform("min"))
    return rows.dropna(subset="value")


@quantity(
    "i-th singular value at layer {layer} / i-th singular value at layer 0",
    each=("index", "γ"),
    unit="ratio",
)
def stretch(tables: Tables, where: str, layer: int) -> pd.Series:
    """TODO"""
    rows = tables["spectrum"].rename(columns=SYMBOLS).query(where)
    keys = ["index", "γ", "replicate"]
    later, start = (select(rows, layer=at).set_index(keys) for at in (layer, 0))
    return later["singular_value"] / start["singular_value"]


def _falls(tables: Tables) -> Iterator[pd.DataFrame]:
    """Yield the rate at which log(σ₂ / σ₁) falls per layer, for each distribution and γ.

    Each row is a network. `first` and `second` are the rates in the halves of the layers before
    rounding. `rate` excludes the first quarter, in which the network forgets its inputs.
    """
    for (law, γ), rows in tables["products"].groupby(["law", "skip"]):
        mean = rows.groupby("layer")["log_ratio"].mean()
        usable = nonempty(mean[mean > ROUNDING], "layer before rounding").index
        at = rows.pivot(index="replicate", columns="layer", values="log_ratio")
        start, quarter, half, end = (usable[(len(usable) - 1) * k // 4] for k in (0, 1, 2, 4))
        parts = {"rate": (quarter, end), "first": (start, half), "second": (half, end)}
        falls = {name: (at[a] - at[b]) / (b - a) for name, (a, b) in parts.items()}
        about = {"law": law, "γ": γ, "gap": rows["gap"].iloc[0], "gap_se": rows["gap_se"].iloc[0]}
        yield pd.DataFrame(falls).assign(**about).reset_index()


@quantity("fall of log(σ₂ / σ₁) per layer", each=("law", "γ"), unit="slope", needs=LAYERS)
def fall_a_layer(tables: Tables) -> pd.DataFrame:
    """TODO"""
    return pd.concat(_falls(tables)).rename(columns={"rate": "value"})


@quantity(
    "fall of log(σ₂ / σ₁) per layer in the {one} half of the layers − half the fall in the {other}",
    each=("law", "γ"),
    unit="difference",
    needs=LAYERS,
)
def fall_beyond_half(tables: Tables, one: str, other: str) -> pd.DataFrame:
    """If the ratio fell with the square root or the logarithm of the depth, the second half would fall
    less.
    """
    return pd.concat(_falls(tables)).assign(value=lambda rows: rows[one] - rows[other] / 2)


@quantity(
    "fall of log(σ₂ / σ₁) per layer / gap of the two largest Lyapunov exponents, {law} weights",
    each=("γ",),
    unit="ratio",
    numbers="estimates",
    needs=LAYERS,
)
def fall_over_gap(tables: Tables, law: str) -> pd.DataFrame:
    """TODO"""
    ratios = []
    for rows in _falls({"products": select(tables["products"], law=law)}):
        gap, error = rows["gap"].iloc[0], rows["gap_se"].iloc[0]
        ratio = rows["rate"].mean() / gap
        noise = np.hypot(rows["rate"].sem() / gap, ratio * error / gap)
        ratios.append({"γ": rows["γ"].iloc[0], "value": ratio, "error": noise, "n": len(rows)})
    return pd.DataFrame(ratios)


@quantity(
    "mean step of the normalized matrix, last / first tenth of the layers, {law} weights",
    each=("γ",),
    unit="ratio",
    needs=LAYERS,
)
def step_late_over_early(tables: Tables, law: str) -> pd.Series:
    """TODO"""
    rows = select(tables["products"], law=law).rename(columns=SYMBOLS)
    tenth = rows["layer"].max() / 10
    early, late = rows[rows["layer"] <= tenth], rows[rows["layer"] > 9 * tenth]
    steps = [part.groupby(["γ", "replicate"])["step_length"].mean() for part in (late, early)]
    return steps[0] / steps[1]


@quantity(
    "(change of ‖M‖² / γ² − δ_F(M)) / (2 d²) at the smallest γ",
    each=("d", "law"),
    unit="difference",
    needs={"width": 3},
)
def beyond_expansion(tables: Tables) -> pd.DataFrame:
    """TODO"""
    rows = tables["expansions"].rename(columns=SYMBOLS).query("γ == γ.min()")
    return rows.assign(value=(rows["change"] - rows["predicted"]) / (2 * rows["d"] ** 2))


@quantity(
    "exponent p of (remainder / γ²) ∝ γ^p, between the three smallest γ",
    each=("d", "law"),
    unit="exponent",
    needs={"width": 3, "skip": 3},
)
def exponent_of_remainder(tables: Tables) -> pd.Series:
    """TODO"""
    return powers_left_over(tables).rename_axis(["d", "law", "replicate"])


@quantity(
    "mean of r from inputs of lower rank / mean of r from inputs of full rank",
    each=("γ", "d"),
    unit="ratio",
    numbers="estimates",
    needs={"width": 2},
)
def r_over_full(tables: Tables) -> pd.DataFrame:
    """The lower rank is the smallest one that is at least the mean of r from inputs of full rank."""
    rows = _long_enough(tables["input_ranks"]).sort_values(["γ", "d", "input_rank"])
    by = rows.groupby(["γ", "d"])
    full, full_se = (by[name].transform("last") for name in ("rank_bound", "rank_bound_se"))
    ratio = rows["rank_bound"] / full
    error = np.hypot(rows["rank_bound_se"], ratio * full_se) / full
    least = rows["input_rank"] == np.ceil(full)
    least &= rows["input_rank"] < by["input_rank"].transform("max")
    return rows.assign(value=ratio, error=error)[least]
