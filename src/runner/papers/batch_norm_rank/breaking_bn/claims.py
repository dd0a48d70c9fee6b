"""What paper B says of convolutional networks (Figures 5, 7, 10, 13), judged over `breaking_bn`.

Methods are compared replicate by replicate: they share initialisation and order of the data. Where
several rates were run, each method speaks at the one chosen for it. A statement about every epoch
stands on one number for each replicate, that of its worst epoch; a network that has diverged has
the accuracy zero.
"""

from functools import partial

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.breaking_bn.tables import LABELS, at_every_rate, before, of
from runner.papers.batch_norm_rank.learning import LEARNED, LITTLE, learned_share
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import above, below, equivalent, less
from runner.results.statistics import last_epoch

FIGURE_7 = "paper B, Appendix C, figure 7"
FIGURE_10 = "paper B, Appendix H, figure 10"

STANDARD, ASYMMETRIC = "batch_norm", "batch_norm_asymmetric"

BROKEN = 2.0
"""Rank of the standard over that of the asymmetric start: less than half of it is left."""

PERFECT = 0.99
"""An alignment above this is read as `perfectly aligned`: one, to two digits."""

NEARER = 10.0
"""Almost the same path: ten times nearer to each other than two replicates are."""


def _accuracy(tables: Tables, method: str) -> pd.DataFrame:
    """Training accuracy by epoch from 1 on and replicate, zero where a network has diverged."""
    return of(tables, method, "train_accuracy").drop(index=0)


def _last_share(tables: Tables, method: str) -> pd.Series:
    """The learned share at the last epoch, by replicate."""
    return learned_share(_accuracy(tables, method).iloc[-1])


def _missing(tables: Tables, *methods: str) -> str:
    """Which of these methods was not run; empty if all were."""
    run = set(tables["training"]["method"])
    names = [LABELS[method] for method in methods if method not in run]
    return f"not run: {', '.join(names)}" if names else ""


def _not_learned(tables: Tables, *others: str) -> str:
    """Why what batch norm does is nothing to compare with; empty if it learned everywhere."""
    if missing := _missing(tables, STANDARD, *others):
        return missing
    learned = (_last_share(tables, STANDARD) > LEARNED).all()
    return "" if learned else f"batch norm has not learned: {_ends(tables, STANDARD)}"


def _ends(tables: Tables, *methods: str) -> str:
    return _means({method: _accuracy(tables, method).iloc[-1] for method in methods}, "accuracy")


def _means(values: dict[str, pd.Series], what: str) -> str:
    means = ", ".join(f"{LABELS[name]} {each.mean():.3g}" for name, each in values.items())
    return f"mean {what} {means}"


def lowers_rank(tables: Tables) -> Found:
    """The asymmetric start has less than half of the rank before training."""
    if missing := _missing(tables, STANDARD, ASYMMETRIC):
        return Found([], missing)
    rank = {name: before(tables, name, "rank") for name in (STANDARD, ASYMMETRIC)}
    points = [above(rank[STANDARD] / rank[ASYMMETRIC], BROKEN, unit="ratio")]
    return Found(points, _means(rank, "rank"))


def rank_stays_lower(tables: Tables) -> Found:
    """The order of the initial ranks is kept in every epoch."""
    if missing := _missing(tables, STANDARD, ASYMMETRIC):
        return Found([], missing)
    ratio = of(tables, STANDARD, "rank") / of(tables, ASYMMETRIC, "rank")
    return Found([above(ratio.min(skipna=False), 1.0, unit="ratio")])


def slows_learning(tables: Tables) -> Found:
    """The asymmetric start has the lower accuracy in every epoch."""
    if missing := _missing(tables, STANDARD, ASYMMETRIC):
        return Found([], missing)
    ahead = _accuracy(tables, STANDARD) - _accuracy(tables, ASYMMETRIC)
    return Found([above(ahead.min(), unit="difference")], _ends(tables, STANDARD, ASYMMETRIC))


def cannot_fit(tables: Tables) -> Found:
    """From the standard start the network fits the images, from the asymmetric one it does not."""
    if missing := _not_learned(tables, ASYMMETRIC):
        return Found([], missing)
    share = _last_share(tables, ASYMMETRIC)
    return Found([below(share, LEARNED, unit="share")], _ends(tables, STANDARD, ASYMMETRIC))


def _without_centring(tables: Tables) -> pd.DataFrame:
    """Learned share with centring less that without it, by epoch and replicate."""
    centred, plain = (_accuracy(tables, name) for name in (STANDARD, "batch_norm_no_mean"))
    return learned_share(centred) - learned_share(plain)


def centring_is_redundant(tables: Tables) -> Found:
    """Without centring the network ends at the accuracy of batch norm, which has learned."""
    if missing := _not_learned(tables, "batch_norm_no_mean"):
        return Found([], missing)
    points = [equivalent(_without_centring(tables).iloc[-1], LITTLE)]
    return Found(points, _ends(tables, STANDARD, "batch_norm_no_mean"))


def centring_changes_no_path(tables: Tables) -> Found:
    """Without centring the accuracy takes the path of batch norm: the same mean over all epochs."""
    if missing := _not_learned(tables, "batch_norm_no_mean"):
        return Found([], missing)
    r = {name: before(tables, name, "rank_bound") for name in (STANDARD, "batch_norm_no_mean")}
    points = [equivalent(_without_centring(tables).mean(), LITTLE)]
    return Found(points, _means(r, "r before training"))


def centring_is_redundant_at_every_rate(tables: Tables) -> Found:
    """The comparison at the end of training, with one rate for both, at each rate that was tried.

    On the replicates that rates are chosen on, which are trained at all of them.
    """
    if missing := _not_learned(tables, "batch_norm_no_mean"):
        return Found([], missing)
    rows = last_epoch(at_every_rate(tables))
    share = learned_share(
        rows.pivot(index="replicate", columns=["method", "learning_rate"], values="train_accuracy")
    )
    gaps = (share[STANDARD] - share["batch_norm_no_mean"]).abs().dropna(axis=1)
    texts = (f"{gap:.3g} at rate {rate:g}" for rate, gap in gaps.mean().items())
    points = [below(gaps.max(axis=1), LITTLE, unit="difference")]
    return Found(points, f"mean difference {', '.join(texts)}")


def gradients_align(tables: Tables) -> Found:
    """Without batch norm the per-sample gradients are collinear before and through training."""
    if missing := _missing(tables, "vanilla"):
        return Found([], missing)
    aligned = of(tables, "vanilla", "gradient_alignment")
    return Found([above(aligned.min(skipna=False), PERFECT)])


def batch_norm_spreads_gradients(tables: Tables) -> Found:
    """With batch norm the gradients point in more directions than without, before training."""
    if missing := _missing(tables, STANDARD, "vanilla"):
        return Found([], missing)
    aligned = {n: before(tables, n, "gradient_alignment") for n in (STANDARD, "vanilla")}
    points = [less(aligned[STANDARD], aligned["vanilla"])]
    return Found(points, _means(aligned, "alignment"))


def cannot_train(tables: Tables, method: str) -> Found:
    """The method stays at the accuracy of a guess while batch norm learns."""
    if missing := _not_learned(tables, method):
        return Found([], missing)
    share = learned_share(_accuracy(tables, method).max())
    diverged = int(of(tables, method, "train_loss").iloc[-1].isna().sum())
    words = _ends(tables, STANDARD, method) + (f"; {diverged} diverged" if diverged else "")
    return Found([below(share, LITTLE, unit="share")], words)


def same_path_on_random_pixels(tables: Tables) -> Found:
    """Log accuracies on data and on noise are nearer to each other than two replicates are.

    That neither learns makes their accuracies alike, as those of two replicates are alike; the same
    path is more than that. Data and noise of a replicate share start and order, which two
    replicates do not: a network whose output never changes takes the same path, too. The mean
    distances of the replicates have their pairs in common, so that the sign test on them is rough;
    what it compares differs by a factor of a hundred.
    """
    if missing := _missing(tables, "vanilla", "vanilla_random_pixels"):
        return Found([], missing)
    data, noise = (_log_accuracy(tables, name) for name in ("vanilla", "vanilla_random_pixels"))
    apart = (data - noise).abs().mean()
    replicates = pd.Series({r: data.drop(columns=r).sub(data[r], axis=0).abs().mean().mean()
                            for r in data})  # fmt: skip
    words = f"mean distance {apart.mean():.3g}, of two replicates {replicates.mean():.3g}"
    return Found([less(NEARER * apart, replicates)], words)


def _log_accuracy(tables: Tables, method: str) -> pd.DataFrame:
    """By epoch and replicate; accuracy zero counts as 1e-4."""
    return np.log(_accuracy(tables, method).clip(lower=1e-4))


def r_tells_who_learns(tables: Tables) -> Found:
    """Vanilla against batch norm: r is lower and nothing is learned; what the rank says beside."""
    if missing := _not_learned(tables, "vanilla"):
        return Found([], missing)
    names = (STANDARD, "vanilla")
    r, rank = ({n: before(tables, n, m) for n in names} for m in ("rank_bound", "rank"))
    share = _last_share(tables, "vanilla")
    points = [
        less(r["vanilla"], r[STANDARD], point="r", unit="ratio"),
        below(share, LITTLE, point="learned share", unit="share"),
    ]
    return Found(points, f"{_means(r, 'r')}; {_means(rank, 'matrix rank')}")


CLAIMS = {
    "rank-fig13": [
        Claim(
            "asymmetric-start-lowers-rank",
            "an asymmetric start breaks the rank that batch norm keeps in ResNet-50",
            "paper B, Section 4, figure 13",
            lowers_rank,
            f"rank before training, standard over asymmetric start, above {BROKEN:g}",
        ),
        Claim(
            "rank-stays-lower",
            "the order of the initial ranks is kept through training",
            "paper B, Section 4, figure 13",
            rank_stays_lower,
            "rank of the standard start over that of the asymmetric one above 1 at every epoch"
            " (least of all epochs)",
        ),
        Claim(
            "asymmetric-start-slows-learning",
            "from an asymmetric start ResNet-50 with batch norm learns more slowly",
            "paper B, Section 4, figure 13",
            slows_learning,
            "accuracy of the standard start above that of the asymmetric one at every epoch (least"
            " difference of all epochs)",
        ),
        Claim(
            "asymmetric-start-cannot-fit",
            "from an asymmetric start ResNet-50 with batch norm is unable to fit the images",
            "paper B, Section 4, figure 13",
            cannot_fit,
            f"learned share at the end below {LEARNED:g}, where the standard start is above",
        ),
        Claim(
            "centring-redundant",
            "batch norm works as well without subtracting the mean",
            "paper B, Section 2, Appendix C, figure 13",
            centring_is_redundant,
            f"learned shares at the end within {LITTLE:g} of each other",
        ),
        Claim(
            "r-tells-who-learns",
            "control: vanilla networks, which do not learn, have a low r whatever their rank",
            "ours, beside paper B, figure 13",
            r_tells_who_learns,
            f"r before training below batch norm's, learned share at the end below {LITTLE:g},"
            f" where batch norm is above {LEARNED:g}",
            kind="ours",
        ),
    ],
    "rank-fig5": [
        Claim(
            "asymmetric-start-lowers-rank",
            "an asymmetric start breaks the rank that batch norm keeps in VGG-19",
            "paper B, Section 4, figure 5",
            lowers_rank,
            f"rank before training, standard over asymmetric start, above {BROKEN:g}",
        ),
        Claim(
            "rank-stays-lower",
            "the order of the initial ranks is kept through training",
            "paper B, Section 4, figure 5",
            rank_stays_lower,
            "rank of the standard start over that of the asymmetric one above 1 at every epoch"
            " (least of all epochs)",
        ),
        Claim(
            "asymmetric-start-slows-learning",
            "from an asymmetric start VGG-19 with batch norm learns more slowly",
            "paper B, Section 4, figure 5",
            slows_learning,
            "accuracy of the standard start above that of the asymmetric one at every epoch (least"
            " difference of all epochs)",
        ),
        Claim(
            "asymmetric-start-cannot-fit",
            "from an asymmetric start VGG-19 with batch norm is unable to fit the images",
            "paper B, Section 4, figure 5",
            cannot_fit,
            f"learned share at the end below {LEARNED:g}, where the standard start is above",
        ),
        Claim(
            "centring-redundant",
            "batch norm works as well without subtracting the mean",
            "paper B, Section 2, Appendix C, figure 5",
            centring_is_redundant,
            f"learned shares at the end within {LITTLE:g} of each other",
        ),
    ],
    "rank-fig7": [
        Claim(
            "centring-redundant",
            "batch norm ends at the same accuracy without subtracting the mean",
            FIGURE_7,
            centring_is_redundant,
            f"learned shares at the end within {LITTLE:g} of each other",
        ),
        Claim(
            "centring-changes-no-path",
            "batch norm learns as fast without subtracting the mean",
            FIGURE_7,
            centring_changes_no_path,
            f"learned shares in the mean of all epochs within {LITTLE:g} of each other",
        ),
        Claim(
            "centring-redundant-at-every-rate",
            "control: so it does at every rate, not at the fastest alone",
            "ours, beside paper B, figure 7",
            centring_is_redundant_at_every_rate,
            f"learned shares at the end within {LITTLE:g} of each other at every rate (largest"
            " difference of all rates)",
            kind="ours",
            needs={"learning_rate": 3},
        ),
    ],
    "rank-fig10": [
        Claim(
            "gradients-align",
            "without batch norm the gradients of all samples are perfectly aligned",
            f"{FIGURE_10} right, Proposition 19",
            gradients_align,
            f"alignment above {PERFECT:g} at every epoch (least of all epochs)",
        ),
        Claim(
            "batch-norm-spreads-gradients",
            "with batch norm the gradients are less aligned before training",
            f"{FIGURE_10} right",
            batch_norm_spreads_gradients,
            "alignment with batch norm below that without",
        ),
        Claim(
            "vanilla-untrainable",
            "VGG-19 without batch norm cannot be trained",
            FIGURE_10,
            partial(cannot_train, method="vanilla"),
            f"learned share below {LITTLE:g} at every epoch, where batch norm is above {LEARNED:g}"
            " at the end",
        ),
        Claim(
            "larger-rate-does-not-help",
            "nor at 100 times the learning rate",
            FIGURE_10,
            partial(cannot_train, method="vanilla_100x"),
            f"learned share below {LITTLE:g} at every epoch, where batch norm is above {LEARNED:g}"
            " at the end",
        ),
        Claim(
            "same-path-on-random-pixels",
            "on images of random pixels it takes almost the same path as on data",
            f"{FIGURE_10} left",
            same_path_on_random_pixels,
            f"log accuracies on data and on noise {NEARER:g} times nearer to each other than those"
            " of two replicates on data, which do not learn either",
        ),
    ],
}
"""By figure, in the order in which they are told."""
