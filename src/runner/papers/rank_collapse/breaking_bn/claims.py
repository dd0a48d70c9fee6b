"""What paper B says of convolutional networks (Figures 5, 7, 10, 13), judged over `breaking_bn`.

Methods are compared replicate by replicate: they share initialisation and order of the data. Where
several rates were run, each method speaks at the one it learns fastest with.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from runner.papers.rank_collapse.breaking_bn.tables import LABELS, before, last, of
from runner.papers.rank_collapse.learning import LITTLE, learned_share
from runner.results.claims import (
    Judgement,
    Tables,
    Verdict,
    all_of,
    claim,
    compare,
    decide,
    trimmed,
    undecided,
)

FIGURE_7 = "paper B, Appendix C, figure 7"
FIGURE_10 = "paper B, Appendix H, figure 10"

PERFECT = 0.99
"""An alignment above this is read as `perfectly aligned`: one, to two digits."""


def _means(values: dict[str, pd.Series]) -> str:
    return ", ".join(f"{LABELS[name]} {each.mean():.3g}" for name, each in values.items())


@claim(
    figure="rank-fig5",
    name="asymmetric-start-lowers-rank",
    statement="an asymmetric start breaks the rank that batch norm keeps in VGG-19",
    source="paper B, Section 4, figure 5",
)
@claim(
    figure="rank-fig13",
    name="asymmetric-start-lowers-rank",
    statement="an asymmetric start breaks the rank that batch norm keeps in ResNet-50",
    source="paper B, Section 4, figure 13",
)
def lowers_rank(tables: Tables) -> Judgement:
    """The asymmetric start has the lower rank before training."""
    rank = {name: before(tables, name, "rank") for name in ("batch_norm", "batch_norm_asymmetric")}
    verdict = compare(rank["batch_norm_asymmetric"], rank["batch_norm"])
    expected = "a lower rank from the asymmetric start, in all trimmed replicates"
    return Judgement(verdict, f"rank before training: {_means(rank)}", expected)


@claim(
    figure="rank-fig5",
    name="rank-stays-lower",
    statement="the order of the initial ranks is kept through training",
    source="paper B, Section 4, figure 5",
)
@claim(
    figure="rank-fig13",
    name="rank-stays-lower",
    statement="the order of the initial ranks is kept through training",
    source="paper B, Section 4, figure 13",
)
def rank_stays_lower(tables: Tables) -> Judgement:
    """The order of the initial ranks is kept in every epoch."""
    rank = [of(tables, name, "rank") for name in ("batch_norm_asymmetric", "batch_norm")]
    pairs = zip(rank[0].iterrows(), rank[1].iterrows(), strict=True)
    verdicts = [compare(lower, higher) for (_, lower), (_, higher) in pairs]
    lowest, highest = rank[1].mean(axis=1).min(), rank[0].mean(axis=1).max()
    measured = (
        f"mean rank through training: batch norm {lowest:.3g} or more,"
        f" asymmetric start {highest:.3g} or less"
    )
    expected = "a lower rank from the asymmetric start at every epoch, in all trimmed replicates"
    return Judgement(all_of(verdicts), measured, expected)


@claim(
    figure="rank-fig5",
    name="asymmetric-start-slows-learning",
    statement="from an asymmetric start VGG-19 with batch norm learns more slowly",
    source="paper B, Section 4, figure 5",
)
@claim(
    figure="rank-fig13",
    name="asymmetric-start-slows-learning",
    statement="from an asymmetric start ResNet-50 with batch norm learns more slowly",
    source="paper B, Section 4, figure 13",
)
def slows_learning(tables: Tables) -> Judgement:
    """The asymmetric start has the lower accuracy in every epoch."""
    methods = ("batch_norm", "batch_norm_asymmetric")
    paths_of = [of(tables, name, "train_accuracy").drop(index=0) for name in methods]
    accuracy = {name: last(tables, name, "train_accuracy") for name in methods}
    epochs = zip(*(path.iterrows() for path in reversed(paths_of)), strict=True)
    verdicts = [compare(lower, higher) for (_, lower), (_, higher) in epochs]
    expected = (
        "a lower accuracy from the asymmetric start at every epoch, in all trimmed replicates"
    )
    return Judgement(all_of(verdicts), f"accuracy at the end: {_means(accuracy)}", expected)


@claim(
    figure="rank-fig5",
    name="asymmetric-start-cannot-fit",
    statement="from an asymmetric start VGG-19 with batch norm is unable to fit the images",
    source="paper B, Section 4, figure 5",
)
@claim(
    figure="rank-fig13",
    name="asymmetric-start-cannot-fit",
    statement="from an asymmetric start ResNet-50 with batch norm is unable to fit the images",
    source="paper B, Section 4, figure 13",
)
def cannot_fit(tables: Tables) -> Judgement:
    """From the standard start the network fits the images, from the asymmetric one it does not."""
    names = ("batch_norm", "batch_norm_asymmetric")
    accuracy = {name: last(tables, name, "train_accuracy") for name in names}
    share = {name: trimmed(learned_share(each)) for name, each in accuracy.items()}
    expected = (
        "learned share: nearer to a perfect fit than to a guess from the standard start, nearer to"
        " a guess from the asymmetric one, in all trimmed replicates"
    )
    if not (share["batch_norm"] > 0.5).all():
        measured = f"batch norm has not learned yet: accuracy {_means(accuracy)}"
        return undecided(measured, expected)
    holds = bool((share["batch_norm_asymmetric"] < 0.5).all())
    return decide(holds, f"accuracy at the end: {_means(accuracy)}", expected)


def _gap_without_centring(
    tables: Tables, of_path: Callable[[pd.DataFrame], pd.Series], when: str
) -> Judgement:
    """Whether a number of the accuracy's path differs little between batch norm and its half."""
    names = ("batch_norm", "batch_norm_no_mean")
    accuracy = {name: of_path(of(tables, name, "train_accuracy")) for name in names}
    with_mean, without = (learned_share(each) for each in accuracy.values())
    gaps = (with_mean - without).abs()
    measured = (
        f"accuracy {when}: {_means(accuracy)}; learned shares differ by {gaps.median():.2g}"
        f" (median), {gaps.max():.2g} (most)"
    )
    expected = f"learned shares {when} differ by less than {LITTLE:g} in all trimmed replicates"
    return decide(bool((trimmed(gaps) < LITTLE).all()), measured, expected)


@claim(
    figure="rank-fig5",
    name="centring-redundant",
    statement="batch norm works as well without subtracting the mean",
    source="paper B, Appendix C, figure 5",
)
@claim(
    figure="rank-fig13",
    name="centring-redundant",
    statement="batch norm works as well without subtracting the mean",
    source="paper B, Appendix C, figure 13",
)
@claim(
    figure="rank-fig7",
    name="centring-redundant",
    statement="batch norm ends at the same accuracy without subtracting the mean",
    source=FIGURE_7,
)
def centring_is_redundant(tables: Tables) -> Judgement:
    """Without centring the network ends at the accuracy of batch norm."""
    return _gap_without_centring(tables, lambda path: path.iloc[-1], "at the end")


@claim(
    figure="rank-fig7",
    name="centring-changes-no-path",
    statement="batch norm learns as fast without subtracting the mean",
    source=FIGURE_7,
)
def centring_changes_no_path(tables: Tables) -> Judgement:
    """Without centring the accuracy takes the path of batch norm: the same mean over all epochs."""
    judgement = _gap_without_centring(tables, pd.DataFrame.mean, "in the mean of all epochs")
    r = {name: before(tables, name, "rank_bound") for name in ("batch_norm", "batch_norm_no_mean")}
    return replace(judgement, measured=f"{judgement.measured}; r before training: {_means(r)}")


@claim(
    figure="rank-fig7",
    name="centring-redundant-at-every-rate",
    statement="control: so it does at every rate, not at the fastest alone",
    source="ours, beside paper B, figure 7",
)
def centring_is_redundant_at_every_rate(tables: Tables) -> Judgement:
    """The comparison at the end of training, with one rate for both, at each rate that was run."""
    training = tables["training"]
    verdicts, texts = [], []
    for rate, at_rate in training.groupby("learning_rate"):
        judgement = centring_is_redundant({**tables, "training": at_rate})
        verdicts.append(judgement.verdict)
        texts.append(f"rate {rate:g}: {judgement.measured.split(': ')[1].split(';')[0]}")
    return Judgement(all_of(verdicts), "; ".join(texts), judgement.expected)


@claim(
    figure="rank-fig10",
    name="gradients-align",
    statement="without batch norm the gradients of all samples are perfectly aligned",
    source=f"{FIGURE_10} right, Proposition 19",
)
def gradients_align(tables: Tables) -> Judgement:
    """Without batch norm the per-sample gradients are collinear before and through training."""
    aligned = of(tables, "vanilla", "gradient_alignment")
    least = trimmed(aligned.min(skipna=False))
    measured = f"least alignment of an epoch, mean over replicates: {aligned.min().mean():.4g}"
    expected = f"above {PERFECT:g} at every epoch, in all trimmed replicates"
    return decide(bool((least > PERFECT).all()), measured, expected)


@claim(
    figure="rank-fig10",
    name="batch-norm-spreads-gradients",
    statement="with batch norm the gradients are less aligned before training",
    source=f"{FIGURE_10} right",
)
def batch_norm_spreads_gradients(tables: Tables) -> Judgement:
    """With batch norm the gradients point in more directions than without, before training."""
    names = ("batch_norm", "vanilla")
    aligned = {name: before(tables, name, "gradient_alignment") for name in names}
    return Judgement(
        compare(aligned["batch_norm"], aligned["vanilla"]),
        f"alignment before training: {_means(aligned)}",
        "a lower alignment with batch norm, in all trimmed replicates",
    )


@claim(
    figure="rank-fig10",
    name="larger-rate-does-not-help",
    statement="nor at 100 times the learning rate",
    source=FIGURE_10,
    method="vanilla_100x",
)
@claim(
    figure="rank-fig10",
    name="vanilla-untrainable",
    statement="VGG-19 without batch norm cannot be trained",
    source=FIGURE_10,
    method="vanilla",
)
def cannot_train(tables: Tables, method: str) -> Judgement:
    """The method stays at the accuracy of a guess while batch norm learns."""
    accuracy = {name: last(tables, name, "train_accuracy") for name in ("batch_norm", method)}
    share = trimmed(learned_share(of(tables, method, "train_accuracy").max()))
    diverged = int(last(tables, method, "train_loss").isna().sum())
    measured = f"accuracy at the end: {_means(accuracy)}"
    measured += f"; {diverged} of {len(accuracy[method])} diverged" if diverged else ""
    expected = f"learned share below {LITTLE:g} at every epoch, in all trimmed replicates"
    learns = trimmed(learned_share(accuracy["batch_norm"])).min() > LITTLE
    if not learns:
        return undecided(f"batch norm has not learned yet: {measured}", expected)
    return decide(bool((share < LITTLE).all()), measured, expected)


def _distance(one: pd.Series, other: pd.Series) -> float:
    """Mean distance over epochs of two paths of log accuracy; accuracy zero counts as 1e-4."""
    logs = [np.log(path.dropna().clip(lower=1e-4)) for path in (one, other)]
    return float((logs[0] - logs[1]).abs().mean())


@claim(
    figure="rank-fig10",
    name="same-path-on-random-pixels",
    statement="on images of random pixels it takes almost the same path as on data",
    source=f"{FIGURE_10} left",
)
def same_path_on_random_pixels(tables: Tables) -> Judgement:
    """Log accuracies on data and on noise are as near to each other as two replicates are."""
    data, noise = (
        of(tables, name, "train_accuracy") for name in ("vanilla", "vanilla_random_pixels")
    )
    expected = "no more than the mean distance of two replicates, in all trimmed replicates"
    if data.shape[1] < 2:
        return undecided("one replicate alone", expected)
    apart = np.array([_distance(data[r], noise[r]) for r in data])
    typical = np.mean([_distance(data[a], data[b]) for a, b in combinations(data, 2)])
    losses = [of(tables, name, "train_loss") for name in ("vanilla", "vanilla_random_pixels")]
    measured = (
        f"mean distance of log accuracies: data and noise {apart.mean():.3g},"
        f" two replicates {typical:.3g}; losses differ by {_apart(*losses):.2g} at most"
    )
    return decide(bool((trimmed(apart) <= typical).all()), measured, expected)


def _apart(one: pd.DataFrame, other: pd.DataFrame) -> float:
    return float((one - other).abs().max().max())


@claim(
    figure="rank-fig13",
    name="r-tells-who-learns",
    statement="control: vanilla networks, which do not learn, have a low r whatever their rank",
    source="ours, beside paper B, figure 13",
)
def r_tells_who_learns(tables: Tables) -> Judgement:
    """Vanilla against batch norm: r, as accuracy, is lower; what the matrix rank says beside it."""
    names = ("vanilla", "batch_norm")
    start = {m: [before(tables, name, m) for name in names] for m in ("rank", "rank_bound")}
    accuracy = [last(tables, name, "train_accuracy") for name in names]
    verdicts: list[Verdict] = [compare(*start["rank_bound"]), compare(*accuracy)]
    values = (start["rank_bound"], start["rank"], accuracy)
    r, rank, end = (f"{low.mean():.3g} against {high.mean():.3g}" for low, high in values)
    measured = f"vanilla against batch norm: r {r}, matrix rank {rank}, accuracy at the end {end}"
    expected = "lower r before training and lower accuracy, in all trimmed replicates"
    return Judgement(all_of(verdicts), measured, expected)
