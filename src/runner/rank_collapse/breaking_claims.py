"""What paper B says of convolutional networks (Figures 5, 7, 10, 13), judged over `breaking_bn`.

Methods are compared replicate by replicate: they share initialisation and order of the data. Where
several rates were run, each method speaks at the one it learns fastest with.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from runner.claims import (
    Claim,
    Judgement,
    Tables,
    Verdict,
    all_of,
    compare,
    decide,
    trimmed,
    undecided,
)
from runner.rank_collapse.breaking_figures import STYLES, paths
from runner.rank_collapse.depth_claims import LITTLE, learned_share

PERFECT = 0.99
"""An alignment above this is read as `perfectly aligned`: one, to two digits."""


def of(tables: Tables, method: str, column: str) -> pd.DataFrame:
    """A column of one method at its fastest rate: a row for each epoch (0: before training), by
    replicate."""
    rows = paths(tables)
    rows = rows[(rows["method"] == method) & rows["fastest"]]
    return rows.pivot(index="epoch", columns="replicate", values=column)


def last(tables: Tables, method: str, column: str) -> pd.Series:
    """A column of one method at the last epoch, by replicate."""
    return of(tables, method, column).iloc[-1]


def before(tables: Tables, method: str, column: str) -> pd.Series:
    """A measure of one method before training, by replicate."""
    return of(tables, method, column).loc[0]


def _means(values: dict[str, pd.Series]) -> str:
    return ", ".join(f"{STYLES[name]['label']} {each.mean():.3g}" for name, each in values.items())


def lowers_rank(tables: Tables) -> Judgement:
    """The asymmetric start has the lower rank before training."""
    rank = {name: before(tables, name, "rank") for name in ("batch_norm", "batch_norm_asymmetric")}
    verdict = compare(rank["batch_norm_asymmetric"], rank["batch_norm"])
    expected = "a lower rank from the asymmetric start, in all trimmed replicates"
    return Judgement(verdict, f"rank before training: {_means(rank)}", expected)


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


def centring_is_redundant(tables: Tables) -> Judgement:
    """Without centring the network ends at the accuracy of batch norm."""
    return _gap_without_centring(tables, lambda path: path.iloc[-1], "at the end")


def centring_changes_no_path(tables: Tables) -> Judgement:
    """Without centring the accuracy takes the path of batch norm: the same mean over all epochs."""
    judgement = _gap_without_centring(tables, pd.DataFrame.mean, "in the mean of all epochs")
    r = {name: before(tables, name, "rank_bound") for name in ("batch_norm", "batch_norm_no_mean")}
    return replace(judgement, measured=f"{judgement.measured}; r before training: {_means(r)}")


def centring_is_redundant_at_every_rate(tables: Tables) -> Judgement:
    """The comparison at the end of training, with one rate for both, at each rate that was run."""
    training = tables["training"]
    verdicts, texts = [], []
    for rate, at_rate in training.groupby("learning_rate"):
        judgement = centring_is_redundant({**tables, "training": at_rate})
        verdicts.append(judgement.verdict)
        texts.append(f"rate {rate:g}: {judgement.measured.split(': ')[1].split(';')[0]}")
    return Judgement(all_of(verdicts), "; ".join(texts), judgement.expected)


def gradients_align(tables: Tables) -> Judgement:
    """Without batch norm the per-sample gradients are collinear before and through training."""
    aligned = of(tables, "vanilla", "gradient_alignment")
    least = trimmed(aligned.min(skipna=False))
    measured = f"least alignment of an epoch, mean over replicates: {aligned.min().mean():.4g}"
    expected = f"above {PERFECT:g} at every epoch, in all trimmed replicates"
    return decide(bool((least > PERFECT).all()), measured, expected)


def batch_norm_spreads_gradients(tables: Tables) -> Judgement:
    """With batch norm the gradients point in more directions than without, before training."""
    names = ("batch_norm", "vanilla")
    aligned = {name: before(tables, name, "gradient_alignment") for name in names}
    return Judgement(
        compare(aligned["batch_norm"], aligned["vanilla"]),
        f"alignment before training: {_means(aligned)}",
        "a lower alignment with batch norm, in all trimmed replicates",
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


def _broken(figure: str, network: str) -> list[Claim]:
    """The claims of Figures 5 and 13."""
    source = f"paper B, Section 4, {figure}"
    return [
        Claim(
            "asymmetric-start-lowers-rank",
            f"an asymmetric start breaks the rank that batch norm keeps in {network}",
            source,
            lowers_rank,
        ),
        Claim(
            "rank-stays-lower",
            "the order of the initial ranks is kept through training",
            source,
            rank_stays_lower,
        ),
        Claim(
            "asymmetric-start-slows-learning",
            f"from an asymmetric start {network} with batch norm learns more slowly",
            source,
            slows_learning,
        ),
        Claim(
            "asymmetric-start-cannot-fit",
            f"from an asymmetric start {network} with batch norm is unable to fit the images",
            source,
            cannot_fit,
        ),
        Claim(
            "centring-redundant",
            "batch norm works as well without subtracting the mean",
            f"paper B, Appendix C, {figure}",
            centring_is_redundant,
        ),
    ]


FIGURE_7 = "paper B, Appendix C, figure 7"
FIGURE_10 = "paper B, Appendix H, figure 10"

CLAIMS = {
    "rank-fig5": _broken("figure 5", "VGG-19"),
    "rank-fig7": [
        Claim(
            "centring-redundant",
            "batch norm ends at the same accuracy without subtracting the mean",
            FIGURE_7,
            centring_is_redundant,
        ),
        Claim(
            "centring-changes-no-path",
            "batch norm learns as fast without subtracting the mean",
            FIGURE_7,
            centring_changes_no_path,
        ),
        Claim(
            "centring-redundant-at-every-rate",
            "control: so it does at every rate, not at the fastest alone",
            "ours, beside paper B, figure 7",
            centring_is_redundant_at_every_rate,
        ),
    ],
    "rank-fig10": [
        Claim(
            "gradients-align",
            "without batch norm the gradients of all samples are perfectly aligned",
            f"{FIGURE_10} right, Proposition 19",
            gradients_align,
        ),
        Claim(
            "batch-norm-spreads-gradients",
            "with batch norm the gradients are less aligned before training",
            f"{FIGURE_10} right",
            batch_norm_spreads_gradients,
        ),
        Claim(
            "vanilla-untrainable",
            "VGG-19 without batch norm cannot be trained",
            FIGURE_10,
            lambda tables: cannot_train(tables, "vanilla"),
        ),
        Claim(
            "larger-rate-does-not-help",
            "nor at 100 times the learning rate",
            FIGURE_10,
            lambda tables: cannot_train(tables, "vanilla_100x"),
        ),
        Claim(
            "same-path-on-random-pixels",
            "on images of random pixels it takes almost the same path as on data",
            f"{FIGURE_10} left",
            same_path_on_random_pixels,
        ),
    ],
    "rank-fig13": [
        *_broken("figure 13", "ResNet-50"),
        Claim(
            "r-tells-who-learns",
            "control: vanilla networks, which do not learn, have a low r whatever their rank",
            "ours, beside paper B, figure 13",
            r_tells_who_learns,
        ),
    ],
}
