"""What paper B says of depth, rank and training (Figures 1 and 2), judged over `rank_collapse`."""

from dataclasses import replace
from functools import partial
from math import sqrt

import pandas as pd

from runner.papers.batch_norm_rank.learning import DEEP, LEARNED, LITTLE, learned_share
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, trained
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import Evidence, above, below, everywhere, less
from runner.results.rows import select

FIGURE_1 = "paper B, Section 1.1, figure 1"
FIGURE_2 = "paper B, Section 1.1, figure 2"

SHALLOW_ALONE = f"no network of more than {DEEP} layers"

STALLED = 0.9
"""A rank that is more than this share of what it was at half the depth has stopped falling."""


def _by_depth(rows: pd.DataFrame, column: str) -> dict[int, pd.Series]:
    """A column by depth, each by replicate."""
    table = rows.pivot(index="depth", columns="replicate", values=column)
    return {int(depth): values for depth, values in table.iterrows()}


def collapses(tables: Tables) -> Found:
    """Figure 1 left: vanilla networks of more than ten layers have rank one, shallow ones more."""
    rows = rank_of_last_layer(tables["metrics"]).query("normalization == 'none'")
    rank = _by_depth(rows, "matrix_rank")
    deep = [depth for depth in rank if depth > DEEP]
    if not deep:
        return Found([], SHALLOW_ALONE)
    points = [above(rank[min(rank)], 2.0, point=f"depth {min(rank)}")]
    points += [below(rank[depth], 2.0, point=f"depth {depth}") for depth in deep]
    means = ", ".join(f"{values.mean():.3g} at {depth}" for depth, values in rank.items())
    return Found(points, f"mean rank {means}")


def batch_norm_keeps_rank(tables: Tables) -> Found:
    """Figure 1 left, the networks with batch normalization; high is above sqrt(d) (figure 2)."""
    rows = rank_of_last_layer(tables["metrics"]).query("normalization == 'batch'")
    rank = _by_depth(rows, "matrix_rank")
    if max(rank, default=0) <= DEEP:
        return Found([], SHALLOW_ALONE)
    root = sqrt(rows["width"].iloc[0])
    return Found([above(each, root, point=f"depth {depth}") for depth, each in rank.items()])


def _accuracy(tables: Tables, normalization: str) -> dict[int, pd.Series]:
    """Training accuracy at the end by depth, each by replicate; a diverged network's is 0."""
    rows = trained(tables)
    return _by_depth(rows[rows["normalization"] == normalization], "train_accuracy")


def vanilla_cannot_learn(tables: Tables) -> Found:
    """Figure 1 right: beyond ten layers vanilla networks stay at a guess, where shallow ones learn.

    A diverged network counts as one that learned nothing.
    """
    accuracy = _accuracy(tables, "none")
    share = {depth: learned_share(each) for depth, each in accuracy.items()}
    deep = [depth for depth in share if depth > DEEP]
    if not deep:
        return Found([], SHALLOW_ALONE)
    points = [above(share[min(share)], LEARNED, point=f"depth {min(share)}", unit="share")]
    points += [below(share[L], LITTLE, point=f"depth {L}", unit="share") for L in deep]
    means = ", ".join(f"{each.mean():.3g} at {depth}" for depth, each in accuracy.items())
    return Found(points, f"mean accuracy {means}")


def batch_norm_loses_little(tables: Tables) -> Found:
    """Figure 1 right: what batch norm loses from the shallowest to the deepest network.

    A diverged network has accuracy 0.
    """
    lost = {}
    for normalization in ("batch", "none"):
        accuracy = _accuracy(tables, normalization)
        deepest = max(accuracy, default=0)
        if deepest <= DEEP:
            return Found([], SHALLOW_ALONE)
        lost[normalization] = accuracy[min(accuracy)] - accuracy[deepest]
    words = f"mean loss {lost['batch'].mean():.3g} with batch norm, {lost['none'].mean():.3g}"
    point = f"a tenth of vanilla's loss less batch norm's, depth {deepest}"
    return Found([less(lost["batch"], lost["none"] / 10, point=point)], f"{words} vanilla")


def _layers(tables: Tables, activation: str) -> pd.DataFrame:
    metrics = tables["metrics"]
    return metrics[(metrics["activation"] == activation) & (metrics["layer"] > 0)]


def _vanilla(tables: Tables, activation: str) -> dict[str, pd.DataFrame]:
    """By dtype the rank of vanilla networks: a row for each layer, a column for each replicate."""
    rows = select(_layers(tables, activation), normalization="none")
    return {
        dtype: each.pivot(index="layer", columns="replicate", values="matrix_rank").sort_index()
        for dtype, each in rows.groupby("dtype")
    }


def _uncollapsed(tables: Tables, activation: str) -> str:
    """Which vanilla networks have not come to rank one yet; empty if all have."""
    for dtype, rank in _vanilla(tables, activation).items():
        lacking = int((rank.min() > 1).sum())
        if lacking:
            return f"{lacking} of {rank.shape[1]} vanilla networks are not at rank one yet, {dtype}"
    return ""


def falls_to_one(tables: Tables, activation: str) -> Found:
    """Figure 2: without normalization every network reaches rank one at some layer.

    Where some have not, the statement is undecided while the rank still falls, and fails where it
    has stopped. Behind rank one rounding adds, now and then, a second singular value just above the
    threshold; the largest rank there is among the words.
    """
    points, texts = [], []
    for dtype, rank in _vanilla(tables, activation).items():
        reached = rank.min() == 1
        if reached.all():
            points.append(everywhere(reached, point=dtype))
            first = (rank == 1).idxmax()
            most = max(rank.loc[first[r] :, r].max() for r in rank)
            texts.append(f"{dtype}: at layer {first.min()} to {first.max()}, then at most {most:g}")
        else:
            points.append(_still_falling(rank, dtype))
            texts.append(f"{dtype}: {rank.iloc[-1].mean():.3g} at layer {rank.index[-1]}")
    return Found(points, "; ".join(texts))


def _still_falling(rank: pd.DataFrame, dtype: str) -> Evidence:
    """Evidence against a fall to one: the last rank is nearly that at half the depth."""
    halfway = rank[rank.index <= rank.index[-1] / 2].iloc[-1]
    point = f"last rank over that at half the depth, {dtype}"
    return replace(below(rank.iloc[-1] / halfway, STALLED, point=point, unit="ratio"), p_holds=1.0)


def ends_at_one(tables: Tables, activation: str) -> Found:
    """Figure 2, strictly: the rank of every vanilla network is one at the last layer."""
    if words := _uncollapsed(tables, activation):
        return Found([], words)
    ends = {dtype: rank.iloc[-1] for dtype, rank in _vanilla(tables, activation).items()}
    points = [everywhere(rank == 1, point=dtype) for dtype, rank in ends.items()]
    most = ", ".join(f"{rank.max():g} in {dtype}" for dtype, rank in ends.items())
    return Found(points, f"largest rank {most}")


def normalized_layers_keep_rank(tables: Tables, activation: str) -> Found:
    """Figure 2: with batch norm, centred or not, the rank stays above sqrt(d) at every layer.

    Judged where vanilla networks of the same depth have collapsed.
    """
    if words := _uncollapsed(tables, activation):
        return Found([], words)
    rows = _layers(tables, activation).query("normalization != 'none'")
    points = []
    for (normalization, dtype), each in rows.groupby(["normalization", "dtype"]):
        lowest = each.groupby("replicate")["matrix_rank"].min()
        name = {"batch": "batch norm", "batch_no_mean": "batch norm without mean"}[normalization]
        points.append(above(lowest, sqrt(each["width"].iloc[0]), point=f"{name}, {dtype}"))
    return Found(points)


def _falling_rank(activation: str, name: str) -> list[Claim]:
    """Return what figure 2 shows of the networks of one activation."""
    return [
        Claim(
            f"{activation}-vanilla-rank-one",
            f"the rank of vanilla {name} networks falls to one with depth",
            FIGURE_2,
            partial(falls_to_one, activation=activation),
            "rank 1 at some layer, in every network of either dtype",
        ),
        Claim(
            f"{activation}-vanilla-ends-at-one",
            f"the rank of vanilla {name} networks is one at the largest depth",
            FIGURE_2,
            partial(ends_at_one, activation=activation),
            "rank 1 at the last layer, in every network of either dtype",
        ),
        Claim(
            f"{activation}-batch-norm-above-root",
            f"batch norm keeps the rank of {name} networks above sqrt(d)",
            FIGURE_2,
            partial(normalized_layers_keep_rank, activation=activation),
            "least rank of all layers above sqrt(d), in either dtype, centred or not",
        ),
    ]


CLAIMS = {
    "rank-fig1": [
        Claim(
            "vanilla-rank-collapses",
            "the rank of vanilla networks collapses with depth",
            f"{FIGURE_1} left",
            collapses,
            f"rank below 2 at every depth of more than {DEEP} layers, above 2 at the least depth",
            needs={"depth": 3},
        ),
        Claim(
            "batch-norm-keeps-rank",
            "networks with batch norm keep a high rank at every depth",
            f"{FIGURE_1} left",
            batch_norm_keeps_rank,
            "rank above sqrt(d) at every depth",
            needs={"depth": 3},
        ),
        Claim(
            "vanilla-cannot-learn",
            "vanilla networks of more than ten layers are essentially unable to learn",
            f"{FIGURE_1} right",
            vanilla_cannot_learn,
            f"learned share below {LITTLE:g} at every depth of more than {DEEP} layers, above"
            f" {LEARNED:g} at the least depth",
            needs={"depth": 3},
        ),
        Claim(
            "batch-norm-loses-little",
            "the accuracy of networks with batch norm drops only mildly with depth",
            f"{FIGURE_1} right",
            batch_norm_loses_little,
            "accuracy lost from the least to the largest depth below a tenth of what vanilla"
            " networks lose",
            needs={"depth": 3},
        ),
    ],
    "rank-fig2": [*_falling_rank("linear", "linear"), *_falling_rank("relu", "ReLU")],
}
"""By figure, in the order in which they are told."""
