"""The numbers of the tables on docs/paper-c.md, computed from the stored tables.

TABLES has a function for each table, by the table's heading. It returns the numbers of each row, in
their order on the page; the first column, which names the row, has none of them.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd
from in_memory import kept_tables

from runner.papers.training_invariances.invariances import figures, tables
from runner.papers.training_invariances.low_rank_training import tables as training
from runner.papers.training_invariances.orders import MOST_CHANGING, local_orders
from runner.papers.training_invariances.practical_layers.tables import orders, shown

Rows = list[list[float]]

GAUSSIAN = ["linear", "relu_then_linear", "conv", "residual_free"]
"""The networks of the table of what grows, in the page's order."""


def spread(values: Iterable[float]) -> list[float]:
    """Return median, smallest and largest value."""
    return [float(f(np.asarray([*values], float))) for f in (np.median, np.min, np.max)]


def conserved() -> Rows:
    """Drift / initial size at depth 6: medians at two learning rates, the largest at one."""
    rows = tables.final(kept_tables("conserved", "paper")["metrics"]).query("depth == 6")
    rows = rows.assign(moved=rows["drift"] / rows["initial"])
    found = []
    for where in figures.SHOWN.values():
        by = rows.query(where).groupby("learning_rate")["moved"]
        found.append([by.median()[0.005], by.median()[0.00125], by.max()[0.00125]])
    return found


def first_order() -> Rows:
    """Mean, smallest and largest order of the claims' quantities, and of D of ReLU layers."""
    rows = tables.final(kept_tables("first-order", "paper")["metrics"])
    fitted = tables.orders(rows).merge(rows.drop_duplicates(tables.SERIES), on=tables.SERIES)
    full = "(pair == 'full' and linear or pair == 'active' and not linear)"
    pairs = (
        "(pair in ('active', 'mixed') and not linear or pair == 'full' and linear and item == 0)"
    )
    kinds = (
        f"item > 0 and {full}",
        "pair == 'diagonal' and promised",
        f"{pairs} and promised",
        "pair == 'layer' and promised",
        "pair == 'full' and not linear and not promised",
    )
    parts = [fitted.query(where, engine="python")["order"] for where in kinds]
    return [[part.mean(), part.min(), part.max(), len(part)] for part in parts]


def practice() -> Rows:
    """Orders of the practical layers under SGD, SGD with weight decay, and momentum."""
    rows = orders(kept_tables("invariants-in-practice", "paper"))
    rows = rows[rows["asymptotic"]]
    methods = [rows[rows["method"] == m] for m in ("SGD", "SGD, weight decay", "momentum")]
    kept = [of[~of["control"]] for of in methods]
    medians = [of.groupby("label")["value"].median() for of in kept]
    controls = [of.loc[of["control"], "value"] for of in methods]
    ranges = (medians, [of["value"] for of in kept], controls)
    return [[end for part in parts for end in (part.min(), part.max())] for parts in ranges]


ADAM = (
    "average pooling: all of D",
    "max pooling: diagonal of D",
    "before batch norm: ‖w‖²",
    "batch norm: γ, β, next layer",
    "residual stream",
    "layer norm: γ, β, next layer",
    "attention: queries, keys",
    "attention: values, output",
    "gated unit: value",
)


def adam() -> Rows:
    """Adam's local orders between neighboring learning rates, and what remains of the drift.

    An order at the three smallest learning rates that is not asymptotic is not printed.
    """
    rows = shown(kept_tables("invariants-in-practice", "paper")).query("method == 'Adam'")
    rows = rows.assign(moved=rows["drift"] / rows["initial"])
    key = ["label", "quantity", "replicate"]
    rates = sorted(rows["learning_rate"].unique())
    found = []
    for label in ADAM:
        of_label = rows[rows["label"] == label]
        drift = of_label.pivot(index=key, columns="learning_rate", values="drift")
        local = np.log(drift).diff(axis=1) / np.diff(np.log([rates[0] / 2, *rates]))
        line = [local[rate].median() for rate in (0.004, 0.001, 0.00025)]
        limit = local_orders(of_label, key)
        if (~limit["asymptotic"]).mean() <= MOST_CHANGING:
            line += spread(limit.loc[limit["asymptotic"], "fine"])
        smallest = of_label[of_label["learning_rate"] == rates[0]]["moved"]
        found.append([*line, 100 * smallest.median()])
    return found


def _last_dense() -> pd.DataFrame:
    return figures.last_dense(kept_tables("what-grows", "paper")).query("data == 'gaussian'")


def what_grows() -> Rows:
    """‖W‖², ratio and remainder of the last inner layer, before and after training."""
    rows = _last_dense()
    begin, end = (rows[rows["time"] == rows["time"].agg(f)] for f in ("min", "max"))
    columns = ["frobenius", "operator_ratio", "remainder"]
    medians = [part.groupby("architecture")[columns].median() for part in (begin, end)]
    return [[part.loc[a, c] for c in columns for part in medians] for a in GAUSSIAN]


def exponents() -> Rows:
    """Exponents of log t in ‖W‖ and ‖W‖₂, and 1/L."""
    stored = kept_tables("what-grows", "paper")
    balanced = stored["lowrank"]
    balanced = balanced[balanced["balanced"].astype(bool)].assign(balanced=False)
    also = figures.last_dense(stored | {"lowrank": balanced}).query("data == 'gaussian'")
    found = []
    for rows in (
        [_last_dense().query("architecture == @a") for a in GAUSSIAN[:1]]
        + [also]
        + [_last_dense().query("architecture == @a") for a in GAUSSIAN[1:]]
    ):
        late = tables.late(rows)
        norms = [0.5 / tables.power(late.assign(frobenius=late[c]), "log_flow_time")
                 for c in ("frobenius", "top")]  # fmt: skip
        found.append([*(norm.median() for norm in norms), 1 / rows["longest"].iloc[0]])
    return found


def bounds() -> Rows:
    """Bound of Eq. (14), ratio before training, and the range of the ratio after it."""
    end = tables.ends(tables.telling(kept_tables("what-grows", "paper")))
    end = end.query("data == 'gaussian'")
    places = [
        "kind == 'residual_free' and width == 32",
        "kind == 'residual_free' and width == 64",
        "kind == 'residual_free' and width == 208 and layer == 4",
        "kind == 'residual_free' and width == 208 and layer == 3",
        "kind == 'conv' and channels == 16",
        "kind == 'conv' and channels == 64 and layer == 3",
        "kind == 'conv' and channels == 64 and layer == 2",
        "kind == 'conv' and channels == 96",
    ]
    parts = [end.query(place) for place in places]
    return [
        [p["bound"].median(), p["start"].median(), *spread(p["operator_ratio"])[1:]] for p in parts
    ]


def _plain(where: str) -> pd.DataFrame:
    """Last inner layers of runs without weight decay in float32; diverged networks are left out."""
    rows = training.marked(kept_tables("low-rank-training", "paper"))
    rows = training.last(training.inner(rows[~rows["diverged"]]))
    rows = rows.query("dtype == 'float32' and weight_decay == 0 and method == 'gradient descent'")
    return rows.query(f"architecture == 'mlp' and width == 64 and {where}")


def by_gain() -> Rows:
    """The ratio before training, and after training at each gain."""
    found = []
    for where in (
        "data == 'digits' and classes == 2 and loss_function == 'logistic'",
        "data == 'fashion_mnist' and classes == 2 and loss_function == 'logistic'",
        "data == 'digits' and classes == 2 and loss_function == 'squared'",
        "data == 'digits' and classes == 10",
    ):
        rows = _plain(where)
        after = training.ends(rows).groupby("gain")["ratio"].median()
        found.append([rows.loc[rows["epoch"] == 0, "ratio"].median(), *after])
    return found


def alexnet() -> Rows:
    """The ratio of fully connected layers, untrained and trained; the bound is 1."""
    found = []
    layers = kept_tables("what-others-saw", "medium")["layers"]
    for layer in (1, 2, 3):
        rows = layers[layers["layer"] == layer]
        before, after = (rows.loc[rows["trained"] == t, "ratio"] for t in (False, True))
        found.append([before.median(), *spread(after), 1])
    rows = training.marked(kept_tables("low-rank-training", "paper"))
    rows = rows.query("architecture == 'conv' and data == 'fashion_mnist' and gain == 1")
    rows = rows[~rows["diverged"]]
    for layer in sorted(rows["layer"].unique())[:2]:
        of_layer = rows[rows["layer"] == layer]
        before = of_layer.loc[of_layer["epoch"] == 0, "ratio"]
        found.append([before.median(), *spread(training.ends(of_layer)["ratio"]), 1])
    return found


def effective_ranks() -> Rows:
    """The effective rank of the last hidden layer by depth, with its range."""
    rows = kept_tables("what-others-saw", "medium")["features"]
    by = rows.groupby(["trained", "depth"])["effective_rank"]
    values = {key: spread(part) for key, part in by}
    return [[x for d in (2, 4, 8, 16) for x in values[trained, d]] for trained in (False, True)]


def by_rate(stored: dict) -> pd.DataFrame:
    """The last inner layers in float64, at the latest time measured at every learning rate."""
    rows = training.last_inner(stored).query("dtype == 'float64' and epoch > 0")
    seen = rows.groupby(["method", "time"])["learning_rate"].transform("nunique")
    rows = rows[seen == rows.groupby("method")["learning_rate"].transform("nunique")]
    return rows[rows["time"] == rows.groupby("method")["time"].transform("max")]


def changes_of_d() -> Rows:
    """Change of D / its initial size, at the smallest and the largest learning rate."""
    rows = by_rate(kept_tables("beyond-gradient-flow", "paper"))
    rows = rows.assign(moved=rows["drift"] / rows["initial_invariant"])
    by = rows.groupby(["method", "learning_rate"])["moved"].median()
    return [[*by[m].iloc[[0, -1]]] for m in ("gradient descent", "momentum", "Adam")]


def decay() -> Rows:
    """Remainder / prediction at the smallest and the largest weight decay; Adam's is on the page
    as a bound, which `below` checks."""
    rows = training.last(training.by_decay(training.steady(
        kept_tables("beyond-gradient-flow", "paper"))))  # fmt: skip
    rows = rows[rows["classes"] == 2]
    by = rows.assign(left=rows["decayed"] * np.exp(rows["exponent"]))
    left = by.groupby(["method", "weight_decay"])["left"].median()
    ends = [left[m].iloc[[0, -1]] for m in ("SGD", "momentum", "AdamW")]
    adam = by[by["method"] == "Adam"].groupby("weight_decay")["left"].max()
    assert adam.iloc[0] < 1e-9 and adam.iloc[-1] < 1e-6
    found = [[x for rate, value in part.items() for x in (value, rate)] for part in ends]
    return [*found, [1e-9, 0.001, 1e-6, 0.01]]


def adjacent() -> list[float]:
    """How far the largest squared singular values of adjacent layers differ at any time, in how
    many networks, and to what they grow. The layers are fully connected, behind any ReLU layer."""
    rows = tables.longest(tables.every_layer(kept_tables("what-grows", "paper")))
    relu = "architecture == 'relu_then_linear' and layer > 2"
    rows = rows.query(f"kind == 'dense' and (architecture == 'linear' or {relu})")
    rows = rows.assign(top=rows["operator_ratio"] * rows["frobenius"])
    network = ["run", "replicate"]
    top = rows.pivot(index=[*network, "time"], columns="layer", values="top")
    differences = [part.dropna(axis=1).diff(axis=1).abs().max().max() for _, part in
                   top.groupby("run")]  # fmt: skip
    end = rows.loc[rows["time"] == rows["time"].max(), "top"]
    return [max(differences), rows.groupby(network).ngroups, end.median()]


STATEMENTS: dict[str, Callable[[], list[float]]] = {
    "The singular values of adjacent layers keep a bounded difference": adjacent,
}
"""Numbers of rows in the table of statements that belong to no verdict, by how a row begins."""

TABLES: dict[str, Callable[[], Rows]] = {
    "drift divided by initial size, depth 6": conserved,
    "quantity": first_order,
    "convergence order of the drift": practice,
    "Adam: convergence order of the drift": adam,
    "last inner layer, Gaussian data": what_grows,
    "exponent of log t, Gaussian data": exponents,
    "layer, Gaussian data": bounds,
    "ratio of the last inner layer": by_gain,
    "fully connected layers behind convolutions": alexnet,
    "effective rank of the last hidden layer, CIFAR-10": effective_ranks,
    "change of D, divided by its initial size": changes_of_d,
    "remainder, divided by exp(−2λT) times the remainder at λ = 0": decay,
}
