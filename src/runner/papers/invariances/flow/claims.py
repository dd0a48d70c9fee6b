"""What paper C states about training, judged over the tables of study `invariances`.

A quantity that gradient flow conserves drifts under gradient descent by its discretisation alone,
in proportion to the rate; one that it does not conserve moves by the same amount however small the
rate. The order of convergence, the slope of log drift against log rate, is an integer in the limit,
1 or 0; the verdict is the integer that the measured order of every replicate is nearest to.
"""

import numpy as np

from runner.papers.invariances.flow.tables import (
    ITEMS,
    SERIES,
    Choice,
    ends,
    final,
    item,
    orders,
    part,
    separating,
    tail,
    unlearned,
)
from runner.results.claims import Judgement, Tables, all_of, claim, decide, undecided


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


def claim_laws(figure: str) -> None:
    """The lemmas that figures 1 and 2 both show."""
    claim(
        figure=figure,
        name="vertex-wise",
        statement="squared norms of a neuron's incoming and outgoing weights keep their difference",
        source="paper C, Lemma 2, Eq. (4)",
        choice=part("diagonal", linear=False),
        order=1,
    )(converges)
    claim(
        figure=figure,
        name="edge-wise",
        statement="so do the inner products of two ReLU neurons with the same activation pattern",
        source="paper C, Lemma 2, Eq. (5)",
        choice=part("active", linear=False),
        order=1,
    )(converges)
    claim(
        figure=figure,
        name="layer-wise",
        statement="squared Frobenius norms of any two layers keep their difference",
        source="paper C, Lemma 3",
        choice=part("layer"),
        order=1,
    )(converges)
    claim(
        figure=figure,
        name="relu-not-invariant",
        statement="the full matrix D of ReLU layers is not invariant:"
        " it drifts however small the rate",
        source="paper C, Lemma 4",
        choice=part("full", linear=False, promised=False),
        order=0,
    )(converges)


claim_laws(figure="invariances-fig1")


@claim(
    figure="invariances-fig1",
    name="linear-layers",
    statement="the full matrix D of linear layers is invariant",
    source="paper C, Theorem 1, item 1",
)
def linear_layers(tables: Tables) -> Judgement:
    """Order one for all entries of D."""
    return converges(tables, part("full", linear=True), order=1)


@claim(
    figure="invariances-fig1",
    name="relu-limit",
    statement="gradient flow itself, at rate zero, changes D of ReLU layers",
    source="paper C, Lemma 4",
    choice=part("full", linear=False, promised=False),
)
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


for _number, _where in ITEMS.items():
    claim(
        figure="invariances-fig2",
        name=f"item-{_number}",
        statement=f"D is invariant: {_where}",
        source=f"paper C, Theorem 1, item {_number}",
        choice=item(_number),
        order=1,
    )(converges)

claim_laws(figure="invariances-fig2")


@claim(
    figure="invariances-fig2",
    name="identity-skip",
    statement="beside an identity skip, which is not learned, not even the diagonal is invariant",
    source="paper C, Section 4.2 (the restriction of Lemma 2)",
)
def beside_identity_skip(tables: Tables) -> Judgement:
    """Order zero for the diagonal."""
    return converges(tables, unlearned("identity", "diagonal"), order=0)


@claim(
    figure="invariances-fig2",
    name="diagonal-skip",
    statement="beside a diagonal skip the diagonal is invariant and the full matrix is not",
    source="paper C, Lemma 2 and Section 4.2",
)
def beside_diagonal_skip(tables: Tables) -> Judgement:
    """Order one for the diagonal, zero for all of D."""
    diagonal = converges(tables, unlearned("diagonal", "diagonal"), order=1)
    full = converges(tables, unlearned("diagonal", "full"), order=0)
    return Judgement(
        all_of([diagonal.verdict, full.verdict]),
        f"diagonal: {diagonal.measured}; full: {full.measured}",
        f"diagonal: {diagonal.expected}; full: {full.expected}",
    )


@claim(
    figure="invariances-fig2",
    name="integrator",
    statement="the drift is the integrator's: Runge-Kutta steps of fourth order leave h^4",
    source="classical fourth-order Runge-Kutta on a smooth flow (linear network)",
)
def drift_is_the_integrators(tables: Tables) -> Judgement:
    """Order four with Runge-Kutta steps."""
    return converges(tables, part("full", linear=True), order=4, integrator="rk4")


@claim(
    figure="invariances-fig3",
    name="weights-diverge",
    statement="on separable data the norms of all layers diverge as the loss vanishes",
    source="paper C, Corollary 1",
)
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


@claim(
    figure="invariances-fig3",
    name="alignment",
    statement="adjacent singular vectors of the last fully connected layers align",
    source="paper C, Theorem 2, Eq. (15); Corollary 1",
    column="alignment",
)
@claim(
    figure="invariances-fig3",
    name="rank-one",
    statement="the last fully connected layers tend to rank one: ||W||_2^2 / ||W||_F^2 -> 1",
    source="paper C, Theorem 2, Eq. (15); Corollary 1",
    column="operator_ratio",
)
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


@claim(
    figure="invariances-fig3",
    name="finite-time",
    statement="at every time the ratio is above Eq. (13), its constant computed from the start",
    source="paper C, Theorem 2, Eq. (13)",
    bound="finite_bound",
    at_end=False,
)
@claim(
    figure="invariances-fig3",
    name="sharper",
    statement="they stay above 1 / (2^N M) as well, which the proof allows",
    source="paper C, Lemma 11 with Weyl's inequality used once",
    bound="sharp_bound",
    at_end=True,
)
@claim(
    figure="invariances-fig3",
    name="reduced-alignment",
    statement="residual and convolutional layers stay above 1 / (8^N M)",
    source="paper C, Theorem 2, Eq. (14)",
    bound="bound",
    at_end=True,
)
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
