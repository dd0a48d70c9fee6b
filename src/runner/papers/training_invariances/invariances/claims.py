"""What paper C states about training, judged over the tables of study `invariances`.

The statements are theorems on every network. In each replicate, in all its networks together,
either every one satisfies the statement or there is a counterexample.

A quantity that gradient flow conserves drifts under gradient descent by its discretisation alone,
in proportion to the rate; one that it does not conserve moves by the same amount however small the
rate. The order of convergence, the slope of log drift against log rate, is extrapolated to rate
zero, where it is at least 1, or 0; what it misses this by there is the error of extrapolation.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from runner.papers.training_invariances.convergence import ORDER_ERROR
from runner.papers.training_invariances.invariances.items import ITEMS
from runner.papers.training_invariances.invariances.tables import (
    LIMIT,
    SERIES,
    Choice,
    ends,
    final,
    item,
    limits,
    orders,
    part,
    power,
    separating,
    stable,
    tail,
    unlearned,
)
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import above, below, equivalent, everywhere
from runner.results.rows import finite, nonempty

RATES: Mapping[str, Any] = {"learning_rate": 3}
"""What an order of convergence needs."""

ROUNDING = 1e-9
"""Of sums over paths, relative to the output."""

DECISIVE = 0.01
"""Farther than this from rank one a limit is below it."""

MARGIN = 0.01
"""Of an exponent that a conservation law makes exact: what the rest of the flow may add to it."""


def converges(tables: Tables, choice: Choice, order: int, integrator: str = "euler") -> Found:
    """Whether the drift of all chosen series goes with this power of the rate."""
    rows = final(tables["metrics"], integrator)
    rows = rows[choice(rows)]
    if not np.isfinite(rows["drift"]).all():
        return Found([], "gradient descent diverged at some rate")
    measured = orders(rows)
    if measured.empty:
        return Found([], "no such neurons in these runs")
    values = measured["order"]
    places = measured[SERIES[:-1]].drop_duplicates().shape[0]
    words = (
        f"order {values.mean():.3f} ({values.min():.3f} to {values.max():.3f}) in"
        f" {len(values)} series at {places} places"
    )
    if empty := rows[rows["entries"] == 0][SERIES].drop_duplicates().shape[0]:
        words += f", {empty} series have no such neurons"
    found = values > order - ORDER_ERROR if order else values < ORDER_ERROR
    return Found([everywhere(found.groupby(measured["replicate"]).all())], words)


def _order(order: int) -> str:
    bound = f"above {order - ORDER_ERROR:g}" if order else f"below {ORDER_ERROR:g}"
    return f"order of the drift, extrapolated to rate zero, {bound} in every series"


def linear_layers(tables: Tables) -> Found:
    """Order one for all entries of D."""
    return converges(tables, part("full", linear=True), order=1)


def moves_in_the_limit(tables: Tables, choice: Choice) -> Found:
    """Whether the drift, extrapolated to rate zero, is beyond the error of that extrapolation."""
    rows = final(tables["metrics"])
    found = []
    for name, series in rows[choice(rows)].groupby(SERIES):
        finest = series.sort_values("learning_rate")[["learning_rate", "drift", "initial"]].head(2)
        if len(finest) == 2:
            (h, d, size), (H, D, _) = finest.to_numpy()
            error = abs(h * (D - d) / (H - h))
            names = dict(zip(SERIES, name, strict=True))
            limit = d - h * (D - d) / (H - h)
            found.append({**names, "limit": limit / size, "ratio": limit / error})
    if not found:
        return Found([], "no such neurons in these runs")
    limits = pd.DataFrame(found)
    words = (
        f"the flow moves D by {limits['limit'].min():.2g} to {limits['limit'].max():.2g} of its"
        " initial norm"
    )
    points = [
        above(group["ratio"], 1.0, unit="ratio", point=f"{data}, {architecture}, layer {layer}")
        for (_, data, architecture, layer, *_), group in limits.groupby(SERIES[:-1])
    ]
    return Found(points, words)


def is_a_tree(tables: Tables) -> Found:
    """Equality up to rounding, in every network whose paths can be listed."""
    rows = finite(tables["decomposition"], "error", "output")
    end = rows[rows["time"] == rows.groupby("run")["time"].transform("max")]
    frozen = (end["frozen_error"] / end["output"]).median()
    words = (
        f"{rows['paths'].min()} to {rows['paths'].max()} paths, farthest apart by"
        f" {(rows['error'] / rows['output']).max():.1g}; by {frozen:.2g} at the end with the signs"
        " of the start"
    )
    equal = rows["error"] <= ROUNDING * rows["output"]
    return Found([everywhere(equal.groupby(rows["replicate"]).all())], words)


def beside_identity_skip(tables: Tables) -> Found:
    """Order zero for the diagonal."""
    return converges(tables, unlearned("identity", "diagonal"), order=0)


def beside_diagonal_skip(tables: Tables) -> Found:
    """Order one for the diagonal, zero for all of D."""
    diagonal = converges(tables, unlearned("diagonal", "diagonal"), order=1)
    full = converges(tables, unlearned("diagonal", "full"), order=0)
    words = f"diagonal: {diagonal.words}; full: {full.words}"
    both = [*diagonal.points, *full.points] if diagonal.points and full.points else []
    return Found(both, words)


def drift_is_the_integrators(tables: Tables) -> Found:
    """Order four with Runge-Kutta steps."""
    return converges(tables, part("full", linear=True), order=4, integrator="rk4")


def weights_diverge(tables: Tables) -> Found:
    """From half-time to the end all norms grow and the loss falls, where the data are separated."""
    everything = tail(tables)
    rows = separating(everything)
    count, total = (len(each.groupby(["run", "replicate"])) for each in (rows, everything))
    if not count:
        return Found([], "no replicate separates its examples")
    index = ["run", "layer", "replicate"]
    half, end = (ends(rows, share).set_index(index) for share in (0.5, 1))
    half, end = nonempty(half, "record before half-time").align(end, join="inner", axis=0)
    growth = end["frobenius"] / half["frobenius"]
    words = (
        f"{count} of {total} get below{_assumption(tables)}; squared norms grow {growth.min():.2g}"
        f" to {growth.max():.2g} times from half-time; log loss at the end"
        f" {end['log_loss'].max():.2g} or less"
    )
    diverges = (growth > 1) & (end["log_loss"] < half["log_loss"])
    return Found([everywhere(diverges.groupby("replicate").all())], words)


def _assumption(tables: Tables) -> str:
    """In how many networks Assumption 1, which Theorem 2 and Corollary 1 rest on, is met."""
    if "assumptions" not in tables:
        return ""
    met = stable(tables)
    return f"; signs are stable from half-time on in {met.sum()} of {len(met)}"


def _last_dense(tables: Tables) -> pd.DataFrame:
    """The second half of the last fully connected layers, but for the output: a single row."""
    rows = separating(tail(tables))
    rows = rows[(rows["bound"] == 1) & (rows["kind"] == "dense") & (rows["layer"] < rows["depth"])]
    return rows[rows["time"] >= 0.5 * rows.groupby("run")["time"].transform("max")]


def tends_to_rank_one(tables: Tables) -> Found:
    """The exponent of 1 - ||W||_2^2 / ||W||_F^2 in ||W||_F^2: in each replicate the farthest."""
    rows = _last_dense(tables)
    if rows.empty:
        return Found([], "no such layers in these runs")
    exponents = power(rows.assign(rest=1 - rows["operator_ratio"]), "rest")
    farthest = (exponents + 1).groupby("replicate").agg(lambda each: each.loc[each.abs().idxmax()])
    last = ends(rows)
    rest, time = 1 - last["operator_ratio"], last["log_flow_time"] / np.log(10)
    words = (
        f"1 - ratio {rest.min():.2g} to {rest.max():.2g} at the end, where log10 t is"
        f" {time.min():.2g} to {time.max():.2g}{_assumption(tables)}; exponent + 1"
    )
    return Found([equivalent(farthest, MARGIN)], words)


def rest_stays(tables: Tables) -> Found:
    """The remainder at the end over that at the start: in each replicate the smallest."""
    rows = separating(tail(tables))
    rows = rows[(rows["bound"] == 1) & (rows["kind"] == "dense") & (rows["layer"] < rows["depth"])]
    rows = rows.assign(rest=rows["frobenius"] * (1 - rows["operator_ratio"]))
    start, end = (each.set_index(LIMIT)["rest"] for each in (rows[rows["time"] == 0], ends(rows)))
    ratio = nonempty(end / start, "such layers in these runs")
    words = (
        f"{start.median():.3g} at the start, {end.median():.3g} at the end; the ratio is"
        f" {ratio.min():.3g} to {ratio.max():.3g}"
    )
    return Found([above(ratio.groupby("replicate").min(), 1.0, unit="ratio")], words)


def stays_in_its_orthant(tables: Tables) -> Found:
    """What Assumption 1 says of the limit, looked for on a path of finite length: that it is not
    there yet refutes nothing."""
    met = stable(tables)
    separates = separating(tail(tables))[["run", "replicate"]].drop_duplicates()
    chosen = met[met.index.isin(pd.MultiIndex.from_frame(separates))]
    chosen = nonempty(chosen, "replicate separates its examples")
    rows = tables["assumptions"]
    last = rows[rows["time"] == rows.groupby("run")["time"].transform("max")]
    words = (
        f"{chosen.sum()} of {len(chosen)}; at the end neighbouring records are"
        f" {last['turned'].median():.2g} apart (radians, median) and {last['off'].median():.2g} of"
        " the nonlinear neurons are off"
    )
    return Found([everywhere(chosen.groupby("replicate").all())], words)


def aligns(tables: Tables) -> Found:
    """The exponent of 1 - alignment in ||W||_F^2: in each replicate the slowest layer's."""
    rows = _last_dense(tables)
    rows = rows[rows["alignment"].notna()]
    if rows.empty:
        return Found([], "no such layers in these runs")
    slowest = power(rows.assign(rest=1 - rows["alignment"]), "rest").groupby("replicate").max()
    rest = 1 - ends(rows)["alignment"]
    words = f"1 - alignment {rest.min():.2g} to {rest.max():.2g} at the end{_assumption(tables)}"
    return Found([below(slowest, -1.0, unit="exponent")], words)


def stays_above(tables: Tables, bound: str, at_end: bool) -> Found:
    """Whether the ratio is at least the bound, in every replicate and covered layer.

    Without the output, whose single row has rank one.
    """
    rows = ends(separating(tail(tables))) if at_end else tail(tables)
    rows = rows[rows["layer"] < rows["depth"]]
    if at_end:  # in the limit; a bound of one is the claim about the last fully connected layers
        rows = rows[rows["bound"] < 1]
    if rows.empty:
        return Found([], "no such layers in these runs")
    margin = finite(rows, "operator_ratio", bound)["operator_ratio"] - rows[bound]
    worst = rows.loc[margin.idxmin()]
    words = (
        f"smallest ratio {rows['operator_ratio'].min():.3f}; nearest to its bound"
        f" {worst['operator_ratio']:.3f} against {worst[bound]:.3f}"
        f" ({worst['architecture']}, layer {worst['layer']})"
    )
    return Found([everywhere((margin >= -ROUNDING).groupby(rows["replicate"]).all())], words)


def limit_of_the_ratio(tables: Tables, layers: str, reduced: bool) -> Found:
    """The limits of the ratio in all layers of a kind: in each replicate each layer's."""
    rows = separating(tail(tables))
    rows = nonempty(rows[rows["kind"] == layers], "such layers in these runs")
    found = finite(limits(rows), "limit")
    skips = ends(rows)["skip_share"]
    words = f"limits {found['limit'].min():.3f} to {found['limit'].max():.4f}"
    if skips.notna().any():
        words += f"; Z has {skips.min():.2g} to {skips.max():.2g} of the squared norm"
    judge = below if reduced else above
    points = [
        judge(each["limit"], 1 - DECISIVE, point=f"{data}, {architecture}, layer {layer}")
        for (_, data, architecture, layer, _), each in found.groupby(LIMIT[:-1])
    ]
    return Found(points, words)


def _drift(name: str, statement: str, source: str, choice: Choice, order: int) -> Claim:
    """Return the claim that the drift of the chosen series goes with this power of the rate."""
    judge = partial(converges, choice=choice, order=order)
    return Claim(name, statement, source, judge, _order(order), needs=RATES)


LAWS = [
    _drift(
        "vertex-wise",
        "squared norms of a neuron's incoming and outgoing weights keep their difference",
        "paper C, Lemma 2, Eq. (4)",
        part("diagonal", linear=False),
        order=1,
    ),
    _drift(
        "edge-wise",
        "so do the inner products of two ReLU neurons that are on for every example",
        "paper C, Lemma 2, Eq. (5)",
        part("active", linear=False),
        order=1,
    ),
    _drift(
        "edge-wise-mixed",
        "and of two that are on for the same examples and off for the others",
        "paper C, Lemma 2, Eq. (5)",
        part("mixed", linear=False),
        order=1,
    ),
    _drift(
        "layer-wise",
        "squared Frobenius norms of any two layers keep their difference",
        "paper C, Lemma 3",
        part("layer"),
        order=1,
    ),
    _drift(
        "relu-not-invariant",
        "the full matrix D of ReLU layers is not invariant: it drifts however small the rate",
        "paper C, Lemma 4",
        part("full", linear=False, promised=False),
        order=0,
    ),
]
"""The lemmas that figures 1 and 2 both show."""

CLAIMS = {
    "invariances-fig1": [
        *LAWS,
        Claim(
            "linear-layers",
            "the full matrix D of linear layers is invariant",
            "paper C, Theorem 1, item 1",
            linear_layers,
            _order(1),
            needs=RATES,
        ),
        Claim(
            "relu-limit",
            "gradient flow itself, at rate zero, changes D of ReLU layers",
            "paper C, Lemma 4",
            partial(moves_in_the_limit, choice=part("full", linear=False, promised=False)),
            "drift extrapolated to rate zero above the error of that extrapolation, at each place",
            needs=RATES,
        ),
        Claim(
            "decomposition",
            "a network is a tree network of signs applied to the products of weights along paths",
            "paper C, Lemma 1",
            is_a_tree,
            f"|f(x) - mu(rho(x))| at most {ROUNDING:g} of |f(x)| at the start and the end",
        ),
    ],
    "invariances-fig2": [
        *(
            _drift(
                f"item-{each.number}",
                f"D is invariant: {each.where}",
                f"paper C, Theorem 1, item {each.number}",
                item(each.number),
                order=1,
            )
            for each in ITEMS
        ),
        *LAWS,
        Claim(
            "identity-skip",
            "beside an identity skip, which is not learned, not even the diagonal is invariant",
            "paper C, Section 4.2 (the restriction of Lemma 2)",
            beside_identity_skip,
            _order(0),
            needs=RATES,
        ),
        Claim(
            "diagonal-skip",
            "beside a diagonal skip the diagonal is invariant and the full matrix is not",
            "paper C, Lemma 2 and Section 4.2",
            beside_diagonal_skip,
            f"diagonal: {_order(1)}; full: below {ORDER_ERROR:g}",
            needs=RATES,
        ),
        Claim(
            "integrator",
            "the drift is the integrator's: Runge-Kutta steps of fourth order leave h^4",
            "classical fourth-order Runge-Kutta on a smooth flow (linear network)",
            drift_is_the_integrators,
            _order(4),
            kind="ours",
            needs=RATES,
        ),
    ],
    "invariances-fig3": [
        Claim(
            "weights-diverge",
            "on separable data the norms of all layers diverge as the loss vanishes",
            "paper C, Corollary 1",
            weights_diverge,
            "from half-time on every norm grows and the loss falls, in every network that gets"
            " below loss(0) / n",
        ),
        Claim(
            "rank-one",
            "the last fully connected layers tend to rank one as their norms diverge: 1 -"
            " ||W||_2^2 / ||W||_F^2 falls as 1 / ||W||_F^2, since ||W||_F^2 - ||W||_2^2 stays",
            "paper C, Theorem 2, Eq. (15); Corollary 1",
            tends_to_rank_one,
            f"exponent of 1 - ratio in ||W||_F^2, from half-time on, within {MARGIN:g} of -1",
            needs={"time": 5},
        ),
        Claim(
            "rest-stays",
            "low rank is relative: the other singular values do not shrink",
            "paper C, Appendix E: their sum is bounded, that of all diverges",
            rest_stays,
            "||W||_F^2 - ||W||_2^2 at the end at least that at the start, in the last fully"
            " connected layers",
            kind="ours",
        ),
        Claim(
            "stable-signs",
            "as far as we follow the path, no weight changes its sign from half-time on",
            "ours, beside paper C, Assumption 1, which speaks of the limit",
            stays_in_its_orthant,
            "no change of sign from half-time on, in every network that separates its examples",
            kind="ours",
        ),
        Claim(
            "alignment",
            "adjacent singular vectors of the last fully connected layers align",
            "paper C, Theorem 2, Eq. (15); Corollary 1",
            aligns,
            "1 - |<v, u>| falls at least as 1 / ||W||_F^2 from half-time on: exponent below -1",
            needs={"time": 5},
        ),
        Claim(
            "reduced-alignment",
            "residual and convolutional layers stay above 1 / (8^N M)",
            "paper C, Theorem 2, Eq. (14)",
            partial(stays_above, bound="bound", at_end=True),
            "operator ratio at least the bound, at the end, in every network",
        ),
        Claim(
            "sharper",
            "they stay above 1 / (2^N M) as well, which the proof allows",
            "Lemma 11 of paper C with Weyl's inequality used once",
            partial(stays_above, bound="sharp_bound", at_end=True),
            "operator ratio at least the bound, at the end, in every network",
            kind="ours",
        ),
        Claim(
            "finite-time",
            "at every time the ratio is above Eq. (13), its constant computed from the start",
            "paper C, Theorem 2, Eq. (13)",
            partial(stays_above, bound="finite_bound", at_end=False),
            "operator ratio at least the bound, at every time, in every network",
        ),
        Claim(
            "blocks-align",
            "free residual blocks tend to rank one, well above the bound's 1 / 8^N",
            "Theorem 2, Eq. (14) of paper C is a bound from below",
            partial(limit_of_the_ratio, layers="residual_free", reduced=False),
            f"limit of the ratio, extrapolated in 1 / ||W||_F^2, above 1 - {DECISIVE:g} in every"
            " linear free block",
            kind="ours",
        ),
        Claim(
            "convolutions-reduced",
            "for convolutions alignment is indeed reduced: they do not tend to rank one",
            "paper C, after Corollary 1: a quantification of reduced alignment",
            partial(limit_of_the_ratio, layers="conv", reduced=True),
            f"limit of the ratio, extrapolated in 1 / ||W||_F^2, below 1 - {DECISIVE:g} in every"
            " linear convolution",
            kind="ours",
        ),
    ],
}
"""By figure, in the order in which they are told."""
