"""What paper B says of depth, rank and training (Figures 1 and 2), judged over `rank_collapse`."""

from math import sqrt

import pandas as pd

from runner.papers.rank_collapse.depth.tables import rank_of_last_layer, trained
from runner.papers.rank_collapse.learning import DEEP, LITTLE, learned_share
from runner.results.claims import (
    Judgement,
    Tables,
    all_of,
    claim,
    decide,
    trimmed,
    undecided,
)

FIGURE_1 = "paper B, Section 1.1, figure 1"
FIGURE_2 = "paper B, Section 1.1, figure 2"


@claim(
    figure="rank-fig1",
    name="vanilla-rank-collapses",
    statement="the rank of vanilla networks collapses with depth",
    source=f"{FIGURE_1} left",
)
def collapses(tables: Tables) -> Judgement:
    """Figure 1 left: the rank of vanilla networks of more than ten layers is one."""
    rows = rank_of_last_layer(tables["metrics"]).query("normalization == 'none'")
    expected = f"rank 1 in every network of more than {DEEP} layers"
    deep = rows[rows["depth"] > DEEP]
    if deep.empty:
        return undecided(f"no network of more than {DEEP} layers", expected)
    by_depth = rows.groupby("depth")["matrix_rank"].mean().sort_index()
    measured = "rank " + ", ".join(f"{rank:.3g} at {L}" for L, rank in by_depth.items())
    return decide(bool((deep["matrix_rank"] == 1).all()), measured, expected)


def keeps_rank(rows: pd.DataFrame) -> Judgement:
    """The rank of every normalized network is above sqrt(d)."""
    lowest = rows.loc[rows["matrix_rank"].idxmin()]
    root = sqrt(lowest["width"])
    measured = f"lowest rank {lowest['matrix_rank']:.3g}, at layer {lowest['layer']}"
    expected = f"above sqrt(d) = {root:.3g} at every depth, in every network"
    return decide(bool((rows["matrix_rank"] > root).all()), measured, expected)


@claim(
    figure="rank-fig1",
    name="batch-norm-keeps-rank",
    statement="networks with batch norm keep a high rank at every depth",
    source=f"{FIGURE_1} left",
)
def batch_norm_keeps_rank(tables: Tables) -> Judgement:
    """Figure 1 left, the networks with batch normalization."""
    return keeps_rank(rank_of_last_layer(tables["metrics"]).query("normalization == 'batch'"))


def _accuracy(tables: Tables, normalization: str) -> pd.DataFrame:
    rows = trained(tables["training"])
    rows = rows[rows["normalization"] == normalization]
    return rows.pivot(index="replicate", columns="depth", values="train_accuracy")


@claim(
    figure="rank-fig1",
    name="vanilla-cannot-learn",
    statement="vanilla networks of more than ten layers are essentially unable to learn",
    source=f"{FIGURE_1} right",
)
def vanilla_cannot_learn(tables: Tables) -> Judgement:
    """Figure 1 right: beyond ten layers vanilla networks stay at the accuracy of a guess."""
    accuracy = _accuracy(tables, "none")
    expected = f"learned share below {LITTLE:g} in all trimmed replicates beyond {DEEP} layers"
    deep = accuracy[[depth for depth in accuracy if depth > DEEP]]
    if deep.empty:
        return undecided(f"no network of more than {DEEP} layers", expected)
    shares = [trimmed(learned_share(deep[depth])).max() for depth in deep]
    means = ", ".join(f"{accuracy[depth].mean():.3g} at {depth}" for depth in accuracy)
    return decide(bool(max(shares) < LITTLE), f"accuracy {means}", expected)


@claim(
    figure="rank-fig1",
    name="batch-norm-loses-little",
    statement="the accuracy of networks with batch norm drops only mildly with depth",
    source=f"{FIGURE_1} right",
)
def batch_norm_loses_little(tables: Tables) -> Judgement:
    """Figure 1 right: what batch norm loses from the shallowest to the deepest network."""
    lost = {}
    for normalization in ("batch", "none"):
        accuracy = _accuracy(tables, normalization)
        lost[normalization] = accuracy[min(accuracy)] - accuracy[max(accuracy)]
        deepest = max(accuracy)
    expected = "less than a tenth of what vanilla networks lose, in all trimmed replicates"
    if deepest <= DEEP:
        return undecided(f"no network of more than {DEEP} layers", expected)
    measured = (
        f"accuracy lost by depth {deepest}: batch norm {lost['batch'].mean():.3g},"
        f" vanilla {lost['none'].mean():.3g}"
    )
    share = trimmed(lost["batch"] / lost["none"])
    return decide(bool((share < 0.1).all()), measured, expected)


def _layers(tables: Tables, activation: str) -> pd.DataFrame:
    metrics = tables["metrics"]
    return metrics[(metrics["activation"] == activation) & (metrics["layer"] > 0)]


def falls_to_one(tables: Tables, activation: str) -> Judgement:
    """Figure 2: without normalization every network reaches rank one at some layer.

    Behind it rounding adds, now and then, a second singular value just above the threshold; the
    largest rank there is part of what is measured.
    """
    rows = _layers(tables, activation).query("normalization == 'none'")
    expected = "rank 1 at some layer, in every network of either dtype"
    texts, verdicts = [], []
    for dtype, of_dtype in rows.groupby("dtype"):
        first = of_dtype[of_dtype["matrix_rank"] == 1].groupby("replicate")["layer"].min()
        if len(first) == of_dtype["replicate"].nunique():
            behind = of_dtype[of_dtype["layer"] >= of_dtype["replicate"].map(first)]
            most = behind["matrix_rank"].max()
            texts.append(f"{dtype}: at layer {first.min()} to {first.max()}, then at most {most:g}")
            verdicts.append("holds")
            continue
        by_layer = of_dtype.groupby("layer")["matrix_rank"].mean()
        texts.append(f"{dtype}: {by_layer.iloc[-1]:.3g} at layer {by_layer.index[-1]}")
        halfway = by_layer[by_layer.index <= by_layer.index[-1] / 2].iloc[-1]
        verdicts.append("undecided" if by_layer.iloc[-1] < halfway else "fails")
    return Judgement(all_of(verdicts), "; ".join(texts), expected)


def ends_at_one(tables: Tables, activation: str) -> Judgement:
    """Figure 2, strictly: the rank of every vanilla network is one at the last layer."""
    rows = _layers(tables, activation).query("normalization == 'none'")
    last = rows[rows["layer"] == rows.groupby("dtype")["layer"].transform("max")]
    one = last["matrix_rank"] == 1
    measured = (
        f"{one.sum()} of {len(one)} networks, the others at most {last['matrix_rank'].max():g}"
    )
    return decide(bool(one.all()), measured, "rank 1 at the last layer, in every network")


def normalized_layers_keep_rank(tables: Tables, activation: str) -> Judgement:
    """Figure 2: with batch norm, centred or not, the rank stays above sqrt(d) at every layer."""
    return keeps_rank(_layers(tables, activation).query("normalization != 'none'"))


for _activation, _name in (("linear", "linear"), ("relu", "ReLU")):
    claim(
        figure="rank-fig2",
        name=f"{_activation}-vanilla-rank-one",
        statement=f"the rank of vanilla {_name} networks falls to one with depth",
        source=FIGURE_2,
        activation=_activation,
    )(falls_to_one)
    claim(
        figure="rank-fig2",
        name=f"{_activation}-vanilla-ends-at-one",
        statement=f"the rank of vanilla {_name} networks is one at the largest depth",
        source=FIGURE_2,
        activation=_activation,
    )(ends_at_one)
    claim(
        figure="rank-fig2",
        name=f"{_activation}-batch-norm-above-root",
        statement=f"batch norm keeps the rank of {_name} networks above sqrt(d)",
        source=FIGURE_2,
        activation=_activation,
    )(normalized_layers_keep_rank)
