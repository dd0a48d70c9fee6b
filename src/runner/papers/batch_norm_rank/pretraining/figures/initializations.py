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
from runner.results.looks import GREY, Look, Name
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

KINDS = {
    "batch_norm": Name("batch norm", look("batch_norm")),
    "vanilla": Name("plain", look("vanilla")),
    "pretrained": Name("pre-trained", look("pretrained", 75)),
    "scale_matched": Name("random, size of pre-trained", replace(RANDOM, marker="D")),
    "he": Name("random, He or unit size", replace(RANDOM, marker="s")),
    "orthogonalised": Name("orthogonalized", replace(RANDOM, marker="o")),
}
"""Names and looks of kinds of initializations, by a method of the kind, in the order of the key."""

KIND_OF = {
    "batch_norm_asymmetric": "batch_norm",
    "unit_scale": "he",
    "orthogonalised_half": "orthogonalised",
}
"""The method in KINDS that has the name of another method."""


def draw_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the last training accuracy against r before training.

    Each initialization has a large mark, and its networks have dots. Lines join pre-trained and
    random networks of equal size. Returns the picture, and a table with median and range of each
    initialization. Raises NoRows without networks.
    """
    rows, keys = by_network(tables), ["protocol", *VARIANT]
    groups: dict[Kind, pd.DataFrame] = dict(iter(rows.groupby(keys)))
    nonempty(pd.Series(list(groups), dtype=object), "networks")
    picture, ((axes,),) = sheet(1, 1, height=4.4, right=2.75)
    columns = ["rank_bound", "train_accuracy"]
    middles = {key: group[columns].median() for key, group in groups.items()}
    for kind, name in KINDS.items():
        of_kind = [key for key in groups if KIND_OF.get(key[1], key[1]) == kind]
        drawn_as = name.look or look(kind)
        for number, key in enumerate(of_kind):
            drawn_as.each(axes, *(groups[key][column] for column in columns))
            label = name.drawn if not number else "_"
            at = [[middles[key][column]] for column in columns]
            drawn_as.line(axes, *at, linestyle="", markersize=8, label=label)
    for pair in _twins([*groups]):
        x, y = ([middles[key][column] for key in pair] for column in columns)
        axes.plot(x, y, color=look("pretrained", 75).color, linewidth=1.2, zorder=3)
    level(axes, chance_level(tables), "chance", at=0.6)
    top = max(4.0, 1.4 * np.nanmax([rows["rank_bound"].max(), 1]))
    axes.set(xscale="log", xlim=(0.8, top), ylim=(0, 1.03))
    ticks(axes.xaxis, [2**power for power in range(9) if 2**power <= top])
    near = pd.DataFrame(middles).T.query("rank_bound < @NEAR_ONE")["train_accuracy"]
    for up, key in ((13, near.idxmax()), (-14, near.idxmin())) if len(near) else ():
        x, y = middles[key]
        spot: dict = {"textcoords": "offset points", "xytext": (0, up)}
        (KINDS[KIND_OF.get(key[1], key[1])].look or RANDOM).name(axes, x, y, f"{y:.2f}", **spot)
    panel(axes, "", "training accuracy", "r before training, lower bound of the last layer's rank")
    names = {name.drawn: name for name in KINDS.values()}
    drawn = axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    for text in drawn.get_texts():
        text.set(color=(names[text.get_text()].look or RANDOM).ink, fontsize=SMALL)
    return picture, spread(rows, keys, ["rank", *columns, "train_loss"])


Kind = tuple[str, str, int]
"""A kind of network: protocol, method, number of pre-training steps."""


def _twins(kinds: list[Kind]) -> list[tuple[Kind, Kind]]:
    """Return pairs of kinds: pre-trained networks, random networks with weights of equal norm."""
    pairs = []
    for random in kinds:
        same = [kind for kind in kinds if kind[:2] == (random[0], "pretrained")]
        if random[1] == "scale_matched" and same:
            pairs.append((max(same, key=lambda kind: kind[2]), random))
    return pairs


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
        " harmonic mean, over seven layers, of a lower bound r of the rank. Lines are"
        " medians, bands the range. Steps are pre-training steps on each layer; networks"
        " with 75 steps take 5 more steps first.",
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
        caption="The final training accuracy is shown against r before training, the lower bound of"
        " the last hidden layer's rank. The rank itself is in the figure's table. A large mark is"
        " the median of an initialization, dots are networks; hollow: random or orthogonalized"
        " weights. Batch norm: from usual and asymmetric weights. Pre-trained: 5 and 75 steps as in"
        " the authors' code, as Section 4 describes, and by rotations. Lines join pre-trained and"
        " random networks of equal size in each layer. Diverged networks have chance level.",
        shows={"method": [*KINDS, *KIND_OF]},
    ),
]
