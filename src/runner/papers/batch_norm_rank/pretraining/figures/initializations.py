"""Draw networks by their initialization: figure 6 and `rank-pretraining`."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.learning import chance_level
from runner.papers.batch_norm_rank.looks import look
from runner.papers.batch_norm_rank.names import MEASURES
from runner.papers.batch_norm_rank.pretraining.figures.parts import (
    by_epoch,
    lines_by_epoch,
    middle,
)
from runner.papers.batch_norm_rank.pretraining.tables import (
    VARIANT,
    before_training,
    deepest,
    last_epochs,
)
from runner.results.curves import with_heights
from runner.results.drawing import Drawing, Finding
from runner.results.looks import DOTTED, GREY, PALE, PLAIN, QUIET, Look, Name
from runner.results.rows import Tables, nonempty, spread
from runner.results.style import SMALL, level, name_ends, panel, sheet, ticks

NEAR_CHANCE, AT_CHANCE = 0.02, "plain = chance"
"""Largest distance from chance level at which an accuracy counts as chance, and its label."""


def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 6: training accuracy (a) and mean r (b) of the deepest networks, by epoch.

    Lines are medians, bands the range over replicates. Returns the picture and the drawn numbers,
    with a row for each network and epoch.
    """
    drawn = deepest(by_epoch(tables))
    picture, ((left, right),) = sheet(gap=1.55, right=1.15)
    left.set_ylim(0, 1.03)
    level(left, chance_level(tables))
    top = max(2.0, 1.2 * np.nanmax([drawn["mean_rank_bound_high"].max(), 0]))
    right.set(yscale="log", ylim=(0.9, top))
    ticks(right.yaxis, [2**power for power in range(10) if 2**power <= top])
    for axes, letter, column in ((left, "a", "train_accuracy"), (right, "b", "mean_rank_bound")):
        ends = lines_by_epoch(axes, drawn, column)
        if axes is left:
            at_chance = {name for y, name, _ in ends if abs(y - chance_level(tables)) < NEAR_CHANCE}
            alone = "plain" in at_chance
            ends = [
                (y, AT_CHANCE if (name == "plain" and alone) else name, of) for y, name, of in ends
            ]
            if not alone:
                level(left, chance_level(tables), "chance", above=False)
            ends = with_heights(ends)
        name_ends(axes, ends)
        title = MEASURES[column] if axes is left else "lower bound r, mean over layers"
        panel(axes, letter, title, "epoch")
    return picture, drawn


def say_more(tables: Tables, more: str) -> str:
    """Return the headline of figure 6: median accuracies with and without pre-training.

    Pre-training has 75 steps on each layer.
    The accuracies are measured at the last epoch. more: end of the headline, a value of MORE.
    Raises NoRows if a network was not run.
    """
    ends = last_epochs(tables)
    most, plain = (middle(ends, name, "train_accuracy") for name in ("M = 75", "vanilla"))
    return (
        f"Pre-training makes {ends['depth'].max()} plain layers trainable: accuracy {most:.2f}"
        f" with 75 pre-training steps per layer, {plain:.2f} without{more}"
    )


MORE = {
    "holds": "",
    "undecided": "",
    "fails": "; but more is not always faster",
}
"""End of the headline, by the verdict of the claim that more pre-training gives faster learning."""


def by_network(tables: Tables) -> pd.DataFrame:
    """Return a row for each network: rank and r before training, and results of the last epoch.

    The columns are `rank`, `rank_bound`, `train_accuracy`, `train_loss`, `learning_rate`, and the
    columns that identify a network. Networks that only choose learning rates are excluded. Diverged
    networks have the accuracy of chance level.
    """
    keys = ["protocol", *VARIANT, "replicate"]
    start = before_training(tables).set_index(keys)[["rank", "rank_bound"]]
    end = last_epochs(tables).set_index(keys)[["train_accuracy", "train_loss", "learning_rate"]]
    learned = end["train_accuracy"].mask(end["train_loss"] == np.inf, chance_level(tables))
    return end.assign(train_accuracy=learned).join(start).reset_index()


RANDOM = Look(GREY, "o", hollow=True)

NAMES_OF = {
    "vanilla": Name("plain", look("vanilla")),
    "batch_norm": Name("batch norm", look("batch_norm")),
    "batch_norm_asymmetric": Name("batch norm, asymmetric", look("batch_norm_asymmetric")),
    "pretrained": Name("pre-trained", look("pretrained", 75)),
    "scale_matched": Name("random weights", replace(RANDOM, marker="D")),
    "he": Name("random weights", replace(RANDOM, marker="s")),
    "unit_scale": Name("random weights", replace(RANDOM, marker="v")),
    "orthogonalised": Name("orthogonalized", RANDOM),
    "orthogonalised_half": Name("orthogonalized", replace(RANDOM, marker="p")),
}
"""Names and looks of initializations, by method. Methods of one name share a row."""

GROUPS = {True: "r of about 1", False: "larger r"}
"""Headings of the two groups of rows, by whether r is near one before training."""


def draw_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the last training accuracy, with a row for each kind of initialization.

    The upper rows have r near one before training, the lower rows a larger r. A large mark is the
    median of an initialization and dots are networks. The columns at the right have the medians of
    the accuracy, of r and of the rank before training. Returns the picture, and a table with median
    and range of each initialization. Raises NoRows without networks.
    """
    rows, keys = nonempty(by_network(tables), "networks"), ["protocol", *VARIANT]
    columns = ["train_accuracy", "rank_bound", "rank"]
    medians = rows.groupby(keys)[columns].median()
    methods = medians.index.get_level_values("method")
    names = [NAMES_OF[method].drawn for method in methods]
    medians = medians.assign(near=medians["rank_bound"] < NEAR_ONE, name=names)
    groups = [group for _, group in medians.groupby(["near", "name"])]
    groups.sort(key=lambda group: (not group["near"].iloc[0], group["train_accuracy"].median()))
    heights = np.arange(len(groups)) + [GAP * (not group["near"].iloc[0]) for group in groups]
    picture, ((axes,),) = sheet(1, 1, height=2.1 + 0.29 * len(groups), left=2.1, right=3.3)
    axes.set(xlim=(0, 1.03), ylim=(max(heights) + 0.8, min(heights) - 1.2), yticks=[])
    axes.axvline(chance_level(tables), color=GREY, linestyle=DOTTED, linewidth=1.2, zorder=1)
    beside: dict = {"transform": axes.get_yaxis_transform(), "size": SMALL}
    headed: set[bool] = set()
    for group, y in zip(groups, heights, strict=True):
        near, name = (group[column].iloc[0] for column in ("near", "name"))
        axes.axhline(y, color=PALE, linewidth=0.6, zorder=0)
        for kind, (accuracy, *_) in zip(group.index, group[columns].to_numpy(), strict=True):
            drawn_as = NAMES_OF[kind[1]].look or RANDOM
            each = rows.set_index(keys).loc[[kind], "train_accuracy"]
            drawn_as.each(axes, each, [y] * len(each))
            drawn_as.line(axes, [accuracy], [y], linestyle="", markersize=8)
        drawn_as.name(axes, -0.02, y, name, ha="right", **beside)
        for at, column, shown in zip(AT, columns, (".2f", ".3g", "g"), strict=True):
            ends = dict.fromkeys(f"{group[column].agg(end):{shown}}" for end in ("min", "max"))
            drawn_as.name(axes, at, y, " to ".join(ends), ha="right", **beside)
        if near not in headed:
            PLAIN.name(axes, 0.5, y - 0.75, GROUPS[bool(near)], ha="center", **beside)
        headed.add(near)
    top: dict = {"transform": axes.transAxes, "size": SMALL, "va": "bottom"}
    for at, text in zip(AT, ("accuracy", "r", "rank"), strict=True):
        PLAIN.name(axes, at, 1.02, text, ha="right", **top)
    PLAIN.name(axes, AT[-1], 1.09, "before training", ha="right", **top)
    QUIET.name(axes, chance_level(tables) + 0.012, max(heights) + 0.4, "chance", ha="left")
    panel(axes, "", "initializations", "training accuracy in the last epoch")
    return picture, spread(rows, keys, ["rank", *columns[:2], "train_loss"])


AT = (1.36, 1.72, 2.04)
"""Places of the columns of numbers, as fractions of the axes."""

GAP = 1.0
"""Height of the gap between rows with r near one and the others, in rows."""

NEAR_ONE = 1.1
"""Largest median r before training that the headline calls "about 1"."""


def say_spread(tables: Tables) -> str:
    """Return the headline: the lowest and highest accuracy of initializations with r near one.

    Accuracies are medians at the last epoch. Raises NoRows without such an initialization.
    """
    medians = by_network(tables).groupby(["protocol", *VARIANT])[["rank_bound", "train_accuracy"]]
    near = medians.median().query("rank_bound < @NEAR_ONE")["train_accuracy"]
    near = nonempty(near, "initializations with r near one")
    words = "Networks with r of about 1 reach training accuracies from"
    return f"{words} {near.min():.2f} to {near.max():.2f}"


PROTOCOLS = {"authors": "authors' code", "text": "Section 4", "ours": "rotations"}
"""The kinds of pre-training in captions, by protocol."""


def caption_of_initializations(tables: Tables) -> str:
    """Return the caption of `rank-pretraining`: rows, columns, marks, learning rates."""
    rates = by_network(tables).groupby(["protocol", "method"])["learning_rate"].median()
    usual = rates.mode().iloc[0]
    named = {usual: ""} | dict.fromkeys(rates, "")
    for (protocol, method), rate in rates[rates != usual].items():
        link = " and " if named[rate] else " for "
        named[rate] += f"{link}{NAMES_OF[method].drawn} ({PROTOCOLS[protocol]})"
    words = "; ".join(f"{rate:g}{networks}" for rate, networks in named.items())
    return (
        "Each row is a kind of initialization, with a mark at the median training accuracy of each"
        " of its initializations; dots are networks. The columns have medians, for r and the rank"
        " those of the last hidden layer before training; r is a lower bound of the rank. Networks"
        " are pre-trained by 5 or 75 steps as in the authors' code, as Section 4 describes, or by"
        " rotations. Random weights have the size of pre-trained ones in each layer (◇), size 1"
        " (▽), or are He's (□). The orthogonalized weights divide by the singular values of their"
        " inputs (○) or by their roots (pentagon). Networks that diverged are at chance level and"
        f" count as the slowest. Learning rate: {words}."
    )


FIGURES = [
    Drawing(
        "rank-fig6",
        draw_rank_and_accuracy,
        whose="following the authors' code",
        unread=("pretraining",),
        findings=[
            Finding(
                partial(say_more, more=more),
                holds=["few-steps-raise-rank"],
                when={"more-is-better": verdict},
            )
            for verdict, more in MORE.items()
        ],
        marks="lines: medians, bands: range",
        caption="(a) shows the training accuracy and (b) the mean r by epoch. The mean r is the"
        " harmonic mean, over seven layers, of a lower bound r of the rank: of activations with"
        " batch norm, else of pre-activations. Networks with batch norm use tanh, and weights of"
        " their own, as in the authors' code. Lines are medians, bands the range. Names give the"
        " pre-training steps on each layer; networks with 75 steps take 5 more steps first.",
        shows={"method": ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"]},
    ),
    Drawing(
        "rank-pretraining",
        draw_pretraining,
        whose="ours, following the authors' code",
        unread=("pretraining",),
        findings=[
            Finding(say_spread, when={"r-and-speed": verdict})
            for verdict in ("holds", "fails", "undecided")
        ],
        marks="large marks: medians, dots: networks",
        caption=caption_of_initializations,
        shows={"method": [*NAMES_OF]},
    ),
]
