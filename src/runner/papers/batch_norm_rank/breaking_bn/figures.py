"""Drawings of study `breaking_bn`: Figures 5, 7, 10 and 13, and the quick look at one run."""

from collections.abc import Collection
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.batch_norm_rank.breaking_bn.tables import LABELS, MEASURES, chosen_rates, paths
from runner.papers.batch_norm_rank.learning import END_OF_GRID
from runner.papers.batch_norm_rank.looks import METHODS
from runner.results.captions import Said
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import NoRows, nonempty, select
from runner.results.spreads import spread
from runner.results.statistics import last_epoch
from runner.results.style import SMALL, Look, level, name_ends, panel, sheet, ticks

COLUMNS = {
    "train_accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
    "rank": "rank, last hidden layer",
    "rank_bound": "r, last hidden layer",
    "gradient_alignment": "alignment of gradients",
}

NAMES = {  # from below, where lines end together
    "batch_norm_asymmetric": "asymmetric\nstart",
    "vanilla_random_pixels": "random\npixels",
    "vanilla_100x": "100 × the rate",
    "vanilla": "vanilla",
    "batch_norm_no_mean": "without\nthe mean",
    "batch_norm": "batch norm",
}

CENTRED = ("batch_norm", "batch_norm_no_mean", "batch_norm_asymmetric")
"""The curves of Figures 5, 7 and 13."""

ARCHITECTURES = {"vgg19": "VGG-19", "resnet50": "ResNet-50"}


def curves(tables: Tables) -> pd.DataFrame:
    """Median and range of every measure by method, rate and epoch; `end_of_grid`: of a rate that
    was chosen at an end of those offered."""
    keys = ["method", "learning_rate", "fastest", "epoch", "steps"]
    found = spread(paths(tables), keys, list(COLUMNS))
    return found.merge(chosen_rates(tables), how="left").fillna({"end_of_grid": ""})


def _network(tables: Tables) -> str:
    return ARCHITECTURES[tables["training"]["architecture"].iloc[0]]


def _ends(tables: Tables) -> pd.DataFrame:
    """The medians after the last epoch by method."""
    last = curves(tables).query("fastest")
    return last[last["epoch"] == last["epoch"].max()].set_index("method")


def _of(ends: pd.DataFrame, method: str, column: str) -> float:
    """One of them. Raises NoRows where the method was not run."""
    if method not in ends.index:
        raise NoRows(f"no rows: {method}")
    return float(ends.loc[method, column])


def _lines(axes: Axes, drawn: pd.DataFrame, column: str, x: str) -> None:
    """Median and range of each method, with its name at the end."""
    ends: list[tuple[float, str, Look]] = []
    for method, text in NAMES.items():
        look, rows = METHODS[method], drawn[drawn["method"] == method].dropna(subset=column)
        if rows.empty:
            continue
        above = 3 if method == "batch_norm_no_mean" else 2
        look.band(axes, rows[x], rows[f"{column}_low"], rows[f"{column}_high"])
        look.line(axes, rows[x], rows[column], marker="", zorder=above)
        ends.append((rows[column].iloc[-1], text, look))
    last, top = max(1, drawn[x].max()), drawn[f"{column}_high"].max()
    if "accuracy" in column or column == "gradient_alignment":
        top = 1.03 if not top <= 0.7 else 0.7
    axes.set(xlim=(0, last), ylim=(0, 1.05 * top if top > 1.03 else top))
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    if column == "rank" and np.log2(max(1, top)) % 1 == 0:
        ticks(axes.yaxis, [share * top / 4 for share in range(5)])
    if "accuracy" in column:
        level(axes, 1 / CLASSES, "a guess", above=False)
    name_ends(axes, ends)


def with_rates(panels: str, marks: str = "") -> Said:
    """A caption: panels, what the marks are, and the rates, with those at an end of their grid."""
    marks = marks or (
        "Lines are medians over the replicates at the rate chosen for each method on separate"
        " replicates, bands their whole range; dotted: the accuracy of a guess. Ranks are measured"
        " on N samples."
    )

    def say(tables: Tables) -> str:
        rates = [
            f"{LABELS[method]} {rate:g}{END_OF_GRID[end]}"
            for method, rate, end in chosen_rates(tables).itertuples(index=False, name=None)
        ]
        return f"{panels} {marks} Rates: {', '.join(rates)}."

    return say


def say_broken(tables: Tables) -> str:
    """What an asymmetric start does to rank and accuracy."""
    ends = _ends(tables)
    broken, whole = (
        [_of(ends, method, column) for column in ("rank", "train_accuracy")]
        for method in ("batch_norm_asymmetric", "batch_norm")
    )
    return (
        f"From an asymmetric start the rank is {broken[0]:.0f} in place of {whole[0]:.0f}, and"
        f" {_network(tables)} with batch norm stays near a guess ({broken[1]:.2f} in place of"
        f" {whole[1]:.2f})"
    )


def say_centring(tables: Tables) -> str:
    """How much more slowly a network without centring learns."""
    ends = _ends(tables)
    without, norm = (
        _of(ends, method, "train_accuracy") for method in ("batch_norm_no_mean", "batch_norm")
    )
    return (
        f"Without the mean {_network(tables)} with batch norm ends at an accuracy of {without:.2f}"
        f" in place of {norm:.2f} here: too near to decide whether the mean is redundant"
    )


def say_centring_redundant(tables: Tables) -> str:
    """That a network without centring ends where it does with it."""
    ends = _ends(tables)
    without, norm = (
        _of(ends, method, "train_accuracy") for method in ("batch_norm_no_mean", "batch_norm")
    )
    return (
        f"Batch norm without its mean ends where batch norm does: {_network(tables)} reaches an"
        f" accuracy of {without:.2f} (with the mean: {norm:.2f})"
    )


BROKEN = Finding(say_broken, holds=["asymmetric-start-lowers-rank", "asymmetric-start-cannot-fit"])


def draw(
    tables: Tables, columns: tuple[str, ...], x: str = "epoch", methods: Collection[str] = CENTRED
) -> tuple[Figure, pd.DataFrame]:
    """One panel for each measure, one line for each method; x: `epoch` or `steps`."""
    drawn = curves(tables)
    shown = drawn[drawn["fastest"] & drawn["method"].isin(methods)]
    shown = nonempty(shown, "method at the rate chosen for it")
    rows = -(-len(columns) // 2)
    picture, panels = sheet(rows, 2, height=4.4 * rows, gap=1.6, right=1.15)
    for axes, letter, column in zip(panels.flat, "abcd", columns, strict=False):
        _lines(axes, shown, column, x)
        panel(axes, letter, COLUMNS[column], "epoch" if x == "epoch" else "iteration")
    return picture, drawn


def say_parallel(tables: Tables) -> str:
    """How alike training on images and on random pixels is without batch norm."""
    every = (
        select(tables["training"], method="vanilla"),
        select(tables["training"], method="vanilla_random_pixels"),
    )
    one, other = (rows.set_index(["replicate", "epoch"])["train_accuracy"] for rows in every)
    equal = one.eq(other.reindex(one.index))
    return (
        f"Without batch norm all gradients are parallel; {_network(tables)} cannot tell images from"
        f" random pixels: {equal.sum()} of {len(equal)} accuracies are equal to the last digit"
    )


def draw_vanishing(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 10: accuracy as printed, the same around a guess, and alignment of the gradients."""
    drawn = curves(tables)
    shown = nonempty(drawn[drawn["fastest"]], "method at the rate chosen for it")
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.75, ratios=[1, 1.15, 1])
    norm, vanilla = METHODS["batch_norm"], Look(METHODS["vanilla"].color, "", width=4.4)
    pixels = METHODS["vanilla_random_pixels"]
    looks = METHODS | {"vanilla": vanilla, "batch_norm": norm}
    left.set_yscale("log" if (shown["train_accuracy"] > 0).any() else "linear")
    for axes, column in ((left, "train_accuracy"), (right, "gradient_alignment")):
        for method in reversed(NAMES):
            rows = shown[shown["method"] == method].dropna(subset=column)
            if rows.empty:  # all of them diverged
                continue
            looks[method].band(axes, rows["epoch"], rows[f"{column}_low"], rows[f"{column}_high"])
            looks[method].line(axes, rows["epoch"], rows[column], marker="")
    training = tables["training"]
    with or_empty(middle):
        same = training[training["method"].isin(["vanilla", "vanilla_random_pixels"])]
        for (method, _), rows in nonempty(same, "networks without batch norm").groupby(
            ["method", "replicate"]
        ):
            looks[method].line(middle, rows["epoch"], rows["train_accuracy"])
    last = max(2, training["epoch"].max())
    left.set(ylim=(0.08, 1.05), xlim=(1, last))
    middle.set(xlim=(1, last))
    right.set(xlim=(0, last), ylim=(0, 1.05))
    ticks(left.yaxis, [0.1, 0.2, 0.5, 1])
    ticks(right.yaxis, [0, 0.25, 0.5, 0.75, 1])
    for axes, first in ((left, 1), (middle, 1), (right, 0)):
        step = max(1, last // 4)
        ticks(axes.xaxis, [first, *range(step, last + 1, step)] if step > 1 else range(last + 1))
    panel(left, "a", "training accuracy", "epoch")
    panel(middle, "b", "the same, vanilla alone", "epoch")
    panel(right, "c", "alignment of gradients", "epoch")
    for axes, column in ((left, "train_accuracy"), (right, "gradient_alignment")):
        rows = shown[shown["method"] == "batch_norm"].dropna(subset=column)
        if len(rows):
            norm.name_at(axes, rows["epoch"], rows[column], "batch norm", 0.62 * last, (0, -16))
    text = "vanilla; at 100 × the rate;\non random pixels"
    vanilla.name(left, 0.52 * last, 0.15, text, linespacing=1.1, size=SMALL)
    vanilla.name(right, 0.52 * last, 0.94, "vanilla, all three")
    place = {"transform": middle.transAxes, "ha": "right", "size": SMALL}
    vanilla.name(middle, 0.98, 0.26, "wide: images", **place)
    pixels.name(middle, 0.98, 0.2, "dotted: random pixels", **place)
    return picture, drawn


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: accuracy, rank, r and alignment through training."""
    columns = ("train_accuracy", "rank", "rank_bound", "gradient_alignment")
    picture, drawn = draw(tables, columns, methods=NAMES)
    before = drawn.loc[drawn["epoch"] == 0, ["method", *MEASURES]]
    shown = ["method", "train_loss", "train_accuracy", "test_accuracy", *MEASURES]
    after = last_epoch(tables["training"])[shown].groupby("method", sort=False).mean()
    return picture, before.merge(after.reset_index(), on="method", suffixes=("_before", ""))


HEADLINE = ["training.rank", "training.rank_bound", "training.gradient_alignment", "test_accuracy"]

FIGURES = [
    Drawing(
        "rank-fig13",
        partial(draw, columns=("train_accuracy", "rank")),
        whose="as in the paper",
        findings=[BROKEN],
        caption=with_rates(
            "(a) Training accuracy and (b) rank of the last hidden layer through training."
        ),
        shows={"method": ["batch_norm", "batch_norm_no_mean", "batch_norm_asymmetric", "vanilla"]},
    ),
    Drawing(
        "rank-fig7",
        partial(draw, columns=("train_accuracy", "rank_bound"), x="steps"),
        whose="as in the paper",
        findings=[
            Finding(say_centring_redundant, holds=["centring-redundant"]),
            Finding(say_centring, undecided=["centring-redundant"]),
        ],
        caption=with_rates(
            "(a) Training accuracy and (b) r, the lower bound of the rank of the last hidden layer,"
            " by iterations of SGD."
        ),
        shows={"method": ["batch_norm", "batch_norm_no_mean"]},
    ),
    Drawing(
        "rank-fig5",
        partial(draw, columns=("train_accuracy", "rank")),
        whose="as in the paper",
        findings=[BROKEN],
        caption=with_rates(
            "(a) Training accuracy and (b) rank of the last hidden layer through training."
        ),
        shows={"method": ["batch_norm", "batch_norm_no_mean", "batch_norm_asymmetric"]},
    ),
    Drawing(
        "rank-fig10",
        draw_vanishing,
        whose="as in the paper",
        findings=[
            Finding(
                say_parallel,
                holds=["gradients-align", "vanilla-untrainable", "same-path-on-random-pixels"],
            )
        ],
        caption=with_rates(
            "(a) Training accuracy of VGG-19; (b) that of the networks without batch norm, every"
            " replicate, on images (wide lines) and on random pixels (dotted); (c) alignment of the"
            " gradients of different examples.",
            "Lines in a and c are medians over the replicates, bands their whole range. Where the"
            " last hidden layer is zero there is no alignment to draw.",
        ),
        shows={"method": ["batch_norm", "vanilla", "vanilla_100x", "vanilla_random_pixels"]},
    ),
]
