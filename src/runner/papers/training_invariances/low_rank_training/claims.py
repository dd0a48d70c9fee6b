"""What survives of paper C's low rank in training as people do it: our statements.

The paper speaks of gradient flow and of its limit. What its invariants say of any finite time is
derived in `theory.remainder_bounds`; statements called naive read the limit as what training gives,
or the flow as what any optimizer follows, and are expected to fail. Networks that diverged are left
out and counted.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd

from runner.papers.training_invariances.convergence import ORDER_ERROR, order_at_zero
from runner.papers.training_invariances.low_rank_training.tables import (
    METHODS,
    NETWORK,
    by_decay,
    by_gain,
    by_rate,
    by_width,
    divergences,
    ends,
    inner,
    over_start,
    steady,
    ten_class_spectra,
)
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import (
    above,
    equivalent,
    everywhere,
    slopes,
)
from runner.results.rows import nonempty

ROUNDING = 1e-4
"""Of a remainder after thousands of steps in float32, relative."""
KEPT = 0.9
"""Of its start: a remainder above it has not been trained away."""
LOW_RANK = 0.9
"""A share of the leading singular values above it is a low rank."""
EXPONENTS = {"remainder": (1.0, 0.1), "top": (0.0, 0.05)}
"""In the width: the exponent and its margin."""
CLOSE, CLOSE_OF_MANY = 0.05, 0.25
"""How near to exp(-2 lambda T) the remainder is to fall, relative: two classes, more."""
WEAK = 0.01
"""The largest weight decay of SGD and momentum here, and of usual recipes for them."""
SEEN = 0.3
"""Of the largest singular value: those above it count for the rank."""

GRADIENT_DESCENT, SGD, MOMENTUM, ADAM, ADAMW = METHODS
INVARIANT = "ours, from paper C, Theorem 1, item 1"
NAIVE = "ours: a naive reading of paper C"


def _smallest(rows: pd.DataFrame, column: str) -> pd.Series:
    """Of each replicate, over all layers, classes and datasets."""
    return rows.groupby("replicate")[column].min()


def within_bounds(tables: Tables, methods: Sequence[str]) -> Found:
    """Every row of these methods, in every replicate."""
    rows = steady(tables, "layers")
    rows = nonempty(rows[rows["method"].isin(methods)], f"rows of {' or '.join(methods)}")
    room = ROUNDING * rows["remainder"]
    inside = rows["remainder"] <= rows["upper"] + room
    inside &= rows["remainder"] >= rows["lower"] - room
    words = f"{int(inside.sum())} of {len(rows)} rows within; {divergences(tables)}"
    return Found([everywhere(inside.groupby(rows["replicate"]).all())], words)


def norm_grows(tables: Tables) -> Found:
    """Remainder and squared norm at the end over their start, in every inner layer."""
    rows = by_gain(tables)
    rows = rows.assign(kept=over_start(rows), grown=over_start(rows, "frobenius"))
    rows = ends(rows)
    smallest = rows[rows["gain"] == rows["gain"].min()]
    points = [
        above(_smallest(rows, "kept"), KEPT, unit="ratio", point="remainder"),
        above(_smallest(smallest, "grown"), 1.0, unit="ratio", point="squared norm"),
    ]
    words = (
        f"remainder {rows['kept'].min():.3f} to {rows['kept'].max():.3f} of its start, squared"
        f" norm up to {rows['grown'].max():.2f} times"
    )
    return Found(points, words)


def falls_with_gain(tables: Tables) -> Found:
    """The least step between neighbouring gains, over all inner layers."""
    rows = ends(by_gain(tables))
    steps, words = [], []
    for (data, classes), each in rows.groupby(["data", "classes"]):
        table = each.pivot(index=["replicate", "layer"], columns="gain", values="ratio")
        steps.append((-table.diff(axis=1)).iloc[:, 1:].min(axis=1))
        medians = ", ".join(f"{ratio:.3f}" for ratio in table.median())
        words.append(f"{data}, {classes} classes: {medians}")
    least = pd.concat(steps).groupby(level="replicate").min()
    return Found([above(least, unit="difference")], f"medians by gain, {'; '.join(words)}; step")


def exponent_in_width(tables: Tables, column: str) -> Found:
    """The slope of the logarithms over all widths, in every inner layer."""
    expected, margin = EXPONENTS[column]
    rows = by_width(tables)
    found = pd.concat(
        [
            slopes(each, "width", column, log=True) - expected
            for _, each in rows.groupby(["data", "layer"])
        ]
    )
    farthest = found.groupby(level="replicate").agg(lambda each: each.iloc[each.abs().argmax()])
    widths = sorted(rows["width"].unique())
    words = (
        f"widths {widths[0]} to {widths[-1]}, median exponent {found.median() + expected:.3f};"
        f" farthest of a replicate, less {expected:g}:"
    )
    return Found([equivalent(farthest, margin)], words)


def low_rank_in_practice(tables: Tables) -> Found:
    """The ratio in every inner layer at gain one."""
    rows = ends(by_gain(tables))
    rows = nonempty(rows[rows["gain"] == 1], "rows: gain=1")
    words = f"ratio {rows['ratio'].min():.3f} to {rows['ratio'].max():.3f}"
    return Found([above(_smallest(rows, "ratio"), LOW_RANK, unit="share")], words)


def never_above_start(tables: Tables) -> Found:
    """Gradient descent and SGD, every inner layer at every time."""
    rows = inner(steady(tables, "layers"))
    rows = rows[rows["method"].isin([GRADIENT_DESCENT, SGD])]
    ratio = over_start(rows)  # nan where there is no remainder
    rows, ratio = rows[ratio.notna()], ratio.dropna()
    largest = nonempty(ratio.groupby(rows["classes"]).max(), "remainder to compare")
    words = ", ".join(f"up to {value:.2f} with {K} classes" for K, value in largest.items())
    satisfied = (ratio <= 1 + ROUNDING).groupby(rows["replicate"]).all()
    return Found([everywhere(satisfied)], words)


def follows_decay(tables: Tables, methods: Sequence[str], strong: bool = False) -> Found:
    """The remainder over exp(-2 lambda T) of that without decay, in every inner layer.

    strong: at the decays above `WEAK`, else at the others.
    """
    rows = by_decay(tables)
    rows = rows[rows["method"].isin(methods) & ((rows["weight_decay"] > WEAK) == strong)]
    rows = nonempty(
        rows, f"rows of {' or '.join(methods)} with {'strong' if strong else 'weak'} decay"
    )
    times = rows["decayed"] * np.exp(rows["exponent"])
    words = ", ".join(
        f"{of.min():.4g} to {of.max():.4g} times that at decay {decay:g}, {classes} classes"
        for (classes, decay), of in times.groupby([rows["classes"], rows["weight_decay"]])
    )
    margin = np.where(rows["classes"] == 2, CLOSE, CLOSE_OF_MANY)
    near = (times - 1).abs() <= margin
    return Found([everywhere(near.groupby(rows["replicate"]).all())], words)


def order_of_drift(tables: Tables, methods: Sequence[str], order: int) -> Found:
    """The order of the drift in the rate at one time, in float64."""
    rows = by_rate(tables)
    points, texts = [], []
    for method in methods:
        of_method = nonempty(rows[rows["method"] == method], f"rows of {method} in float64")
        places = of_method.groupby(["data", "classes", "layer", "replicate"])
        found = places[["learning_rate", "drift"]].apply(order_at_zero).dropna()
        nonempty(found, f"three rates of {method} at one time")
        right = found > order - ORDER_ERROR if order else found < ORDER_ERROR
        texts.append(f"{method} {found.min():.3f} to {found.max():.3f}")
        points.append(everywhere(right.groupby(level="replicate").all(), point=method))
    return Found(points, f"order: {', '.join(texts)}")


def rank_below_classes(tables: Tables) -> Found:
    """SGD, the largest decay, on every dataset."""
    rows = ten_class_spectra(tables)
    rows = rows[rows["weight_decay"] == rows["weight_decay"].max()]
    largest = rows.groupby([*NETWORK, "layer"])["singular_value"].transform("max")
    counted = (rows["singular_value"] > SEEN * largest).groupby(
        [rows[column] for column in ("run", "replicate", "layer", "classes")]
    )
    rank = counted.sum().rename("rank").reset_index()
    right = (rank["rank"] == rank["classes"] - 1).groupby(rank["replicate"]).all()
    return Found([everywhere(right)], f"{rank['rank'].min()} to {rank['rank'].max()} values")


CLAIMS = {
    "invariances-fig5": [
        Claim(
            "band-under-decay",
            "with weight decay the same bounds hold times exp(-2 lambda T): SGD and momentum",
            f"{INVARIANT}, with Weyl and Ky Fan",
            partial(within_bounds, methods=(SGD, MOMENTUM)),
            f"lower <= remainder <= upper (rounding: {ROUNDING:g}), in every row",
            kind="ours",
        ),
        Claim(
            "decay",
            "weight decay does what the flow does not: the remainder falls as exp(-2 lambda T)"
            " under SGD and momentum",
            INVARIANT,
            partial(follows_decay, methods=(SGD, MOMENTUM)),
            "remainder over that without decay within 5 % of it with two classes, 25 % with ten,"
            " in every network",
            kind="ours",
            needs={"weight_decay": 2},
        ),
        Claim(
            "decoupled-decay",
            "under AdamW the remainder falls as exp(-2 lambda T) at the decays of SGD, T the sum"
            " of its rates",
            INVARIANT,
            partial(follows_decay, methods=(ADAMW,)),
            "remainder over that without decay within 5 % of it with two classes, 25 % with ten,"
            " in every network",
            kind="ours",
            needs={"weight_decay": 2},
        ),
        Claim(
            "strong-decoupled-decay",
            "under AdamW the remainder falls as exp(-2 lambda T) at decays that take as much away"
            " as those of SGD",
            f"{NAIVE}, Theorem 1 with weight decay",
            partial(follows_decay, methods=(ADAMW,), strong=True),
            "remainder over that without decay within 5 % of it with two classes, 25 % with ten,"
            " in every network",
            kind="ours",
            needs={"weight_decay": 2},
        ),
        Claim(
            "coupled-decay",
            "under Adam with the decay in its gradient the remainder falls as exp(-2 lambda T)",
            f"{NAIVE}, Theorem 1 with weight decay",
            partial(follows_decay, methods=(ADAM,)),
            "remainder over that without decay within 5 % of it with two classes, 25 % with ten,"
            " in every network",
            kind="ours",
            needs={"weight_decay": 2},
        ),
        Claim(
            "order-one",
            "gradient descent and momentum leave the invariants by the step size alone",
            "ours, beside paper C, Theorem 1, item 1",
            partial(order_of_drift, methods=(GRADIENT_DESCENT, MOMENTUM), order=1),
            f"order of the drift, extrapolated to rate zero, above {1 - ORDER_ERROR:g} in every"
            " layer",
            kind="ours",
            needs={"learning_rate": 3},
        ),
        Claim(
            "order-zero",
            "Adam leaves them however small the step",
            "ours, beside paper C, Theorem 1, item 1",
            partial(order_of_drift, methods=(ADAM,), order=0),
            f"order of the drift, extrapolated to rate zero, below {ORDER_ERROR:g} in every layer",
            kind="ours",
            needs={"learning_rate": 3},
        ),
        Claim(
            "rank-of-ten-classes",
            "K classes end at rank K - 1 where weight decay takes the remainder away",
            f"{NAIVE}, Corollary 1 for cross entropy",
            rank_below_classes,
            f"K - 1 singular values above {SEEN:g} of the largest, in every inner layer",
            kind="ours",
            needs={"weight_decay": 2},
        ),
    ],
    "invariances-fig4": [
        Claim(
            "band",
            "the invariants hold the remainder between bounds from initialisation, in every layer"
            " of the linear tail, at all times: gradient descent and SGD",
            f"{INVARIANT}, with Weyl and Ky Fan",
            partial(within_bounds, methods=(GRADIENT_DESCENT, SGD)),
            f"lower <= remainder <= upper (rounding: {ROUNDING:g}), in every row",
            kind="ours",
        ),
        Claim(
            "norm-alone",
            "where the ratio rises it is the norm that grows: the remainder is not trained away",
            INVARIANT,
            norm_grows,
            f"remainder above {KEPT:g} of its start at every gain, norm above its start at the"
            " smallest",
            kind="ours",
            needs={"gain": 2},
        ),
        Claim(
            "order-of-gains",
            "the smaller the initialisation, the lower the rank: the final ratio falls with the"
            " gain",
            INVARIANT,
            falls_with_gain,
            "ratio at each gain above that at the next larger one",
            kind="ours",
            needs={"gain": 3},
        ),
        Claim(
            "width-of-remainder",
            "the remainder grows as the width: wide networks stay far from low rank",
            INVARIANT,
            partial(exponent_in_width, column="remainder"),
            "exponent of the remainder in the width 1 +- 0.1",
            kind="ours",
            needs={"width": 3},
        ),
        Claim(
            "width-of-top",
            "what is learned does not: the largest singular value stays the same",
            INVARIANT,
            partial(exponent_in_width, column="top"),
            "exponent of its square in the width 0 +- 0.05",
            kind="ours",
            needs={"width": 3},
        ),
        Claim(
            "low-rank-at-gain-one",
            "training as usual, from weights of gain one, ends at low rank",
            f"{NAIVE}, Corollary 1",
            low_rank_in_practice,
            f"ratio above {LOW_RANK:g} at gain 1, at the end",
            kind="ours",
            needs={"gain": 2},
        ),
        Claim(
            "remainder-never-grows",
            "the remainder never exceeds its start",
            f"{NAIVE}, Theorem 2",
            never_above_start,
            f"remainder at most its start (rounding: {ROUNDING:g}), in every row",
            kind="ours",
        ),
    ],
}
"""By figure, in the order in which they are told."""
