"""What paper C states about training, judged over the tables of study `invariances`.

A quantity that gradient flow conserves drifts under gradient descent by its discretisation alone,
in proportion to the rate; one that it does not conserve moves by the same amount however small the
rate. The order of convergence, the slope of log drift against log rate, is an integer in the limit,
1 or 0; the verdict is the integer that the measured order of every replicate is nearest to.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from runner.claims import Claim, Judgement, Tables, all_of, decide, undecided

SERIES = ["data", "architecture", "layer", "place", "pair", "replicate"]
"""What names one quantity of one replicate."""

Choice = Callable[[pd.DataFrame], pd.Series]
"""Which rows of `metrics` a claim is about."""


def final(metrics: pd.DataFrame, integrator: str = "euler") -> pd.DataFrame:
    """The rows at the end of the runs with this integrator on the flow's own clock."""
    rows = metrics[(metrics["integrator"] == integrator) & ~metrics["normalized_time"].astype(bool)]
    return rows[rows["time"] == rows.groupby(["run"])["time"].transform("max")]


def orders(rows: pd.DataFrame) -> pd.DataFrame:
    """The order of convergence of each series with entries: columns SERIES and `order`."""
    found = []
    for name, series in rows[rows["entries"] > 0].groupby(SERIES):
        if series["learning_rate"].nunique() > 1:
            x, drift = np.log(series["learning_rate"]), series["drift"]
            # No drift at all converges faster than any power.
            order = np.polyfit(x, np.log(drift), 1)[0] if (drift > 0).all() else np.inf
            found.append({**dict(zip(SERIES, name, strict=True)), "order": order})
    return pd.DataFrame(found, columns=[*SERIES, "order"])


def converges(tables: Tables, choice: Choice, order: int, integrator: str = "euler") -> Judgement:
    """Whether the drift of all chosen series goes with this power of the rate."""
    rows = final(tables["metrics"], integrator)
    rows = rows[choice(rows)]
    expected = f"order {order}, to the nearest integer, in every replicate"
    if not np.isfinite(rows["drift"]).all():
        return undecided("gradient descent diverged at some rate", expected)
    measured = orders(rows)
    if measured.empty:
        return undecided("no such neurons in these runs", expected)
    values = measured["order"].to_numpy()
    places = measured[SERIES[:-1]].drop_duplicates().shape[0]
    text = (
        f"order {values.mean():.3f} ({values.min():.3f} to {values.max():.3f}) in"
        f" {len(values)} series at {places} places"
    )
    return decide(bool((np.round(values) == order).all()), text, expected)


def moves_in_the_limit(tables: Tables, choice: Choice) -> Judgement:
    """Whether the drift, extrapolated to rate zero, is beyond the error of that extrapolation."""
    rows = final(tables["metrics"])
    rows = rows[choice(rows)]
    expected = "limit above its error, in every replicate"
    limits, errors = [], []
    for _, series in rows.groupby(SERIES):
        finest = series.sort_values("learning_rate")[["learning_rate", "drift", "initial"]].head(2)
        if len(finest) < 2:
            return undecided("one rate alone", expected)
        (h, d, size), (H, D, _) = finest.to_numpy()
        limits.append((d - h * (D - d) / (H - h)) / size)
        errors.append(abs(h * (D - d) / (H - h)) / size)
    if not limits:
        return undecided("no such neurons in these runs", expected)
    text = (
        f"the flow moves D by {min(limits):.2g} to {max(limits):.2g} of its initial norm,"
        f" error at most {max(errors):.2g}"
    )
    return decide(bool((np.array(limits) > np.array(errors)).all()), text, expected)


def part(pair: str, linear: bool | None = None, promised: bool = True) -> Choice:
    """Rows of one part of the invariants: promised or not, of linear neurons, nonlinear, both."""

    def choose(rows: pd.DataFrame) -> pd.Series:
        chosen = (rows["pair"] == pair) & (rows["promised"] == promised)
        return chosen if linear is None else chosen & (rows["linear"] == linear)

    return choose


def item(number: int) -> Choice:
    """Rows of an item of Theorem 1: all of D, or the pairs of one pattern of nonlinear neurons."""

    def choose(rows: pd.DataFrame) -> pd.Series:
        part = np.where(rows["linear"], "full", "active")
        return (rows["item"] == number) & (rows["pair"] == part)

    return choose


def unlearned(kind: str, pair: str) -> Choice:
    """Rows of neurons beside a skip connection of this kind, between blocks."""

    def choose(rows: pd.DataFrame) -> pd.Series:
        beside = rows["place"].str.contains(f"residual_{kind}") & (rows["item"] == 0)
        return beside & (rows["pair"] == pair)

    return choose


def tail(tables: Tables) -> pd.DataFrame:
    """Layers that Theorem 2 speaks of, at the finest rate of the runs on the normalized clock."""
    rows = tables["lowrank"]
    rows = rows[rows["normalized_time"].astype(bool) & rows["bound"].notna()]
    return rows[rows["learning_rate"] == rows.groupby("run")["learning_rate"].transform("min")]


def separating(rows: pd.DataFrame) -> pd.DataFrame:
    """The replicates whose risk falls below loss(0) / n, so that every example is on its side.

    Corollary 1 asks for it (the assumption of Ji and Telgarsky 2020), and without it the norms need
    not diverge: a ReLU network can end with all units off for a whole class.
    """
    return rows[rows.groupby(["run", "replicate"])["separates"].transform("any")]


def ends(rows: pd.DataFrame, share: float = 1.0) -> pd.DataFrame:
    """The rows at the record nearest below this share of the time."""
    earlier = rows[rows["time"] <= share * rows.groupby("run")["time"].transform("max")]
    return earlier[earlier["time"] == earlier.groupby("run")["time"].transform("max")]


def weights_diverge(tables: Tables) -> Judgement:
    """From half-time to the end all norms grow and the loss falls, where the data are separated."""
    everything = tail(tables)
    rows = separating(everything)
    expected = "norms grow and the loss falls, in every replicate that gets below loss(0) / n"
    count, total = (len(each.groupby(["run", "replicate"])) for each in (rows, everything))
    if not count:
        return undecided("no replicate separates its examples", expected)
    half, end = ends(rows, 0.5), ends(rows)
    index = ["run", "layer", "replicate"]
    growth = end.set_index(index)["frobenius"] / half.set_index(index)["frobenius"]
    falls = (end.set_index(index)["log_loss"] < half.set_index(index)["log_loss"]).all()
    text = (
        f"{count} of {total} get below; squared norms grow {growth.min():.2g} to"
        f" {growth.max():.2g} times from half-time; log loss at the end"
        f" {end['log_loss'].max():.2g} or less"
    )
    return decide(bool((growth > 1).all() and falls), text, expected)


def tends_to_one(tables: Tables, column: str) -> Judgement:
    """Whether 1 - column falls from a quarter of the way to the half to the end, for the last fully
    connected layers."""
    rows = separating(tail(tables))
    rows = rows[(rows["bound"] == 1) & (rows["kind"] == "dense") & rows[column].notna()]
    # The output layer is a single row: its ratio is one by definition.
    rows = rows[rows["layer"] < rows["depth"]]
    expected = f"1 - {column} falls in every replicate that separates its examples"
    if rows.empty:
        return undecided("no such layers in these runs", expected)
    quarter, half, end = (
        1 - ends(rows, share).set_index(["run", "layer", "replicate"])[column]
        for share in (0.25, 0.5, 1)
    )
    falls = (half < quarter) & (end < half)
    text = (
        f"falls in {falls.sum()} of {len(falls)} series; at the end 1 - {column} is"
        f" {end.min():.2g} to {end.max():.2g}, median {end.median():.2g}"
    )
    return decide(bool(falls.all()), text, expected)


def above(tables: Tables, bound: str, at_end: bool) -> Judgement:
    """Whether the ratio is at least the bound, in every replicate and covered layer."""
    rows = ends(separating(tail(tables))) if at_end else tail(tables)
    if at_end:  # in the limit; a bound of one is the claim about the last fully connected layers
        rows = rows[rows["bound"] < 1]
    expected = "operator ratio at least the bound in every replicate"
    if rows.empty:
        return undecided("no such layers in these runs", expected)
    margin = rows["operator_ratio"] - rows[bound]
    worst = rows.loc[margin.idxmin()]
    text = (
        f"smallest ratio {rows['operator_ratio'].min():.3f}; nearest to its bound"
        f" {worst['operator_ratio']:.3f} against {worst[bound]:.3f}"
        f" ({worst['architecture']}, layer {worst['layer']})"
    )
    # Rounding alone: the bound of the output layer is met with equality.
    return decide(bool((margin > -1e-9).all()), text, expected)


ITEMS = {
    1: "consecutive fully connected layers",
    2: "consecutive convolutions",
    3: "within residual blocks (identity, diagonal, free)",
    4: "between free residual blocks",
    5: "a convolution and a fully connected layer",
    6: "a convolution and a free residual block",
    7: "free residual blocks and fully connected layers",
}

LAWS = [
    Claim(
        "vertex-wise",
        "squared norms of a neuron's incoming and outgoing weights keep their difference",
        "paper C, Lemma 2, Eq. (4)",
        partial(converges, choice=part("diagonal", linear=False), order=1),
    ),
    Claim(
        "edge-wise",
        "so do the inner products of two ReLU neurons with the same activation pattern",
        "paper C, Lemma 2, Eq. (5)",
        partial(converges, choice=part("active", linear=False), order=1),
    ),
    Claim(
        "layer-wise",
        "squared Frobenius norms of any two layers keep their difference",
        "paper C, Lemma 3",
        partial(converges, choice=part("layer"), order=1),
    ),
    Claim(
        "relu-not-invariant",
        "the full matrix D of ReLU layers is not invariant: it drifts however small the rate",
        "paper C, Lemma 4",
        partial(converges, choice=part("full", linear=False, promised=False), order=0),
    ),
]

CLAIMS = {
    "invariances-fig1": [
        *LAWS,
        Claim(
            "linear-layers",
            "the full matrix D of linear layers is invariant",
            "paper C, Theorem 1, item 1",
            partial(converges, choice=part("full", linear=True), order=1),
        ),
        Claim(
            "relu-limit",
            "gradient flow itself, at rate zero, changes D of ReLU layers",
            "paper C, Lemma 4",
            partial(moves_in_the_limit, choice=part("full", linear=False, promised=False)),
        ),
    ],
    "invariances-fig2": [
        *(
            Claim(
                f"item-{number}",
                f"D is invariant: {where}",
                f"paper C, Theorem 1, item {number}",
                partial(converges, choice=item(number), order=1),
            )
            for number, where in ITEMS.items()
        ),
        *LAWS,
        Claim(
            "identity-skip",
            "beside an identity skip, which is not learned, not even the diagonal is invariant",
            "paper C, Section 4.2 (the restriction of Lemma 2)",
            partial(converges, choice=unlearned("identity", "diagonal"), order=0),
        ),
        Claim(
            "diagonal-skip",
            "beside a diagonal skip the diagonal is invariant and the full matrix is not",
            "paper C, Lemma 2 and Section 4.2",
            lambda tables: _both(
                converges(tables, unlearned("diagonal", "diagonal"), 1),
                converges(tables, unlearned("diagonal", "full"), 0),
            ),
        ),
        Claim(
            "integrator",
            "the drift is the integrator's: Runge-Kutta steps of fourth order leave h^4",
            "classical fourth-order Runge-Kutta on a smooth flow (linear network)",
            partial(converges, choice=part("full", linear=True), order=4, integrator="rk4"),
        ),
    ],
    "invariances-fig3": [
        Claim(
            "weights-diverge",
            "on separable data the norms of all layers diverge as the loss vanishes",
            "paper C, Corollary 1",
            weights_diverge,
        ),
        Claim(
            "rank-one",
            "the last fully connected layers tend to rank one: ||W||_2^2 / ||W||_F^2 -> 1",
            "paper C, Theorem 2, Eq. (15); Corollary 1",
            partial(tends_to_one, column="operator_ratio"),
        ),
        Claim(
            "alignment",
            "adjacent singular vectors of the last fully connected layers align",
            "paper C, Theorem 2, Eq. (15); Corollary 1",
            partial(tends_to_one, column="alignment"),
        ),
        Claim(
            "reduced-alignment",
            "residual and convolutional layers stay above 1 / (8^N M)",
            "paper C, Theorem 2, Eq. (14)",
            partial(above, bound="bound", at_end=True),
        ),
        Claim(
            "sharper",
            "they stay above 1 / (2^N M) as well, which the proof allows",
            "paper C, Lemma 11 with Weyl's inequality used once",
            partial(above, bound="sharp_bound", at_end=True),
        ),
        Claim(
            "finite-time",
            "at every time the ratio is above Eq. (13), its constant computed from the start",
            "paper C, Theorem 2, Eq. (13)",
            partial(above, bound="finite_bound", at_end=False),
        ),
    ],
}


def _both(first: Judgement, second: Judgement) -> Judgement:
    """Two judgements as one."""
    return Judgement(
        all_of([first.verdict, second.verdict]),
        f"diagonal: {first.measured}; full: {second.measured}",
        f"diagonal: {first.expected}; full: {second.expected}",
    )
