"""Draw networks by their initialization: figure 6, `rank-pretraining`, `rank-scale`."""

from dataclasses import replace
from functools import partial
from itertools import product
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.learning import chance_level
from runner.papers.batch_norm_rank.looks import look
from runner.papers.batch_norm_rank.names import MEASURES, NAMES
from runner.papers.batch_norm_rank.pretraining.figures.parts import (
    HELPS,
    MOST,
    by_epoch,
    lines_by_epoch,
    middle,
    say_rates,
    scale_losses,
)
from runner.papers.batch_norm_rank.pretraining.tables import (
    VARIANT,
    against_pretraining,
    before_training,
    deepest,
    last_epochs,
)
from runner.results.drawing import Drawing, Finding
from runner.results.labels import names_in
from runner.results.rows import Tables, nonempty, spread
from runner.results.style import (
    GREY,
    PALE,
    QUIET,
    SHADE,
    SMALL,
    frame,
    level,
    name_ends,
    panel,
    sheet,
    ticks,
)

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
    """Return a row for each network: r before training, and results of the last epoch.

    The columns are `rank_bound`, `train_accuracy`, `train_loss`, `learning_rate`, and the columns
    that identify a network. Networks that only choose learning rates are excluded. Diverged
    networks have the accuracy of chance level.
    """
    keys = ["protocol", *VARIANT, "replicate"]
    start = before_training(tables).set_index(keys)[["rank_bound"]]
    end = last_epochs(tables).set_index(keys)[["train_accuracy", "train_loss", "learning_rate"]]
    learned = end["train_accuracy"].mask(end["train_loss"] == np.inf, chance_level(tables))
    return end.assign(train_accuracy=learned).join(start).reset_index()


STARTS = {
    ("authors", "batch_norm"): ("batch norm", ""),
    ("authors", "batch_norm_asymmetric"): ("batch norm, asymmetric", ""),
    ("authors", "vanilla"): ("plain", ""),
    ("authors", "pretrained"): ("pre-trained, {M} steps", ""),
    ("authors", "scale_matched"): ("random, size of {M} steps", ""),
    ("text", "pretrained"): ("pre-trained, Section 4", "X"),
    ("text", "scale_matched"): ("random, size of Section 4", "X"),
    ("ours", "pretrained"): ("pre-trained by rotations", "P"),
    ("authors", "unit_scale"): ("random, unit size", ""),
    ("authors", "he"): ("random, He", ""),
    ("authors", "orthogonalised_half"): ("half orthogonalized", ""),
    ("authors", "orthogonalised"): ("orthogonalized", ""),
}
"""Name and marker by protocol and method in the figure of controls.

The marker is empty unless two protocols share a look.
"""

SIZES = {"he": 7, "unit_scale": 10}
"""Sizes by method of markers that would cover one another; all other markers have size 8."""

IN_HEADLINE = "authors"
"""Protocol of the pair of networks that the headline compares."""

NEAR = 0.12
"""Height of the second panel below the best network, in accuracy."""


def draw_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the last training accuracy against r before training, a marker for each initialization.

    The second panel enlarges the best networks. Returns the picture, and a table with median and
    range of each initialization. Raises NoRows without networks.
    """
    rows, keys = by_network(tables), ["protocol", *VARIANT]
    groups = {key: group for way in STARTS for key, group in rows.groupby(keys) if key[:2] == way}
    twins = _twins([*groups])
    most = max((ours[2] for ours, _ in twins if ours[0] == IN_HEADLINE), default=0)
    bold = [key for pair in twins for key in pair if key[0] == IN_HEADLINE]
    nonempty(pd.Series(list(groups), dtype=object), "networks")
    picture, panels = sheet(1, 2, height=4.7, gap=0.65, right=3.05, beside=True)
    top = max(4.0, 1.4 * np.nanmax([rows["rank_bound"].max(), 1]))
    best, middles = rows["train_accuracy"].max(), rows.groupby(keys)["train_accuracy"].median()
    in_pairs = [groups[key]["train_accuracy"] for pair in twins for key in pair]
    shown = pd.concat([middles, *in_pairs])
    least = shown[shown > middles.max() - NEAR].min()
    room = max(0.01, best - least)
    for axes, letter, title, heights in (
        (panels[0, 0], "a", "training accuracy, last epoch", (0, 1.03)),
        (panels[0, 1], "b", "best networks, enlarged", (least - 0.1 * room, best + 0.1 * room)),
    ):
        for (protocol, method, steps), group in groups.items():
            name, marker = STARTS[protocol, method]
            drawn_as = replace(look(method, steps), **{"marker": marker} if marker else {})
            r, accuracy = group["rank_bound"], group["train_accuracy"]
            in_pair = any((protocol, method, steps) in pair for pair in twins)
            # A dot at the lower end of the axis would be cut in half.
            inside = accuracy.where(accuracy > heights[0] + 0.02 * (heights[1] - heights[0]))
            drawn_as.each(axes, r, inside, alpha=0.6 if in_pair else 0.2)
            label = name.format(M=steps or most) + (f": {accuracy.median():.2f}" if in_pair else "")
            options = {"linestyle": "", "markersize": SIZES.get(method, 8), "label": label}
            options |= {"alpha": 1.0, "zorder": 4} if in_pair else {"alpha": 0.6}
            if (protocol, method, steps) in bold:
                options |= {"markersize": 10, "zorder": 5}
            if drawn_as.hollow:
                options["markerfacecolor"] = "none"
            drawn_as.line(axes, [r.median()], [accuracy.median()], **options)
        for ours, random in twins:
            medians = [
                groups[key][["rank_bound", "train_accuracy"]].median() for key in (ours, random)
            ]
            x, y = (
                [median[column] for median in medians]
                for column in ("rank_bound", "train_accuracy")
            )
            width = 3.0 if ours in bold else 1.0
            axes.plot(x, y, color=look(*ours[1:]).color, linewidth=width, zorder=3)
        if letter == "a":
            axes.axhspan(least - 0.1 * room, best + 0.1 * room, color=SHADE, linewidth=0, zorder=0)
        level(axes, chance_level(tables), "chance", at=0.6)
        axes.set(xscale="log", xlim=(0.7, top), ylim=heights)
        ticks(axes.xaxis, [4**power for power in range(5) if 4**power <= top])
        panel(axes, letter, title, " ")
    left, right = (axes.get_position() for axes in panels[0])
    words = "r, lower bound of the rank of the last hidden layer, before training"
    picture.text((left.x0 + right.x1) / 2, 0.22 * left.y0, words, ha="center")
    words = "line: weights\nof equal size\n(bold: the headline)\ngrey: enlarged in b"
    QUIET.note(panels[0, 0], 0.3, 0.4, words)
    key = panels[0, 1].legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handletextpad=0.2)
    for text, kind in zip(key.get_texts(), groups, strict=True):
        text.set(color=look(*kind[1:]).ink, fontsize=SMALL)
        text.set_fontweight("bold" if kind in bold else "normal")
    return picture, spread(rows, keys, ["rank_bound", "train_accuracy", "train_loss"])


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


def say_scale(tables: Tables, verdict: str) -> str:
    """Return the headline: whether pre-trained weights beat random weights of equal norm.

    Its numbers are median training accuracies at the last epoch, after 75 pre-training steps and
    from random weights. verdict: the verdict of claim `rank-beyond-scale`. Raises NoRows if a
    network was not run.
    """
    ends = last_epochs(tables)
    ours, same = (f"{middle(ends, n, 'train_accuracy'):.2f}" for n in ("M = 75", "scale_matched"))
    return f"{AFTER_75[verdict]} (final training accuracy {ours} against {same})"


AFTER_75 = {
    "holds": "After 75 steps of pre-training networks learn faster than from random weights of the"
    " same size",
    "fails": "After 75 steps of pre-training networks do not learn faster than from random weights"
    " of the same size",
    "undecided": "It is undecided whether 75 steps of pre-training beat random weights of the same"
    " size",
}
"""The headline of `say_scale` without its numbers, by verdict."""

AGAINST = ("batch_norm", "vanilla", "scale_matched")
"""Networks to which pre-training is compared, from left to right at each depth."""

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 20)


def draw_against(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the ratio of mean training losses, other networks / pre-trained networks, against depth.

    Each dataset has a panel. Returns the picture, and a table with median and range of the ratio
    for each dataset, depth and method. Raises NoRows without pre-trained networks.
    """
    rows = against_pretraining(tables)
    shown = rows["ratio"][rows["ratio"] <= MOST]
    low, top = (shown.min(), shown.max()) if len(shown) else (1, 1)
    picture, (row,) = sheet(1, rows["data"].nunique(), left=1.05, right=1.85, sharey=True)
    position = scale_losses([*row], rows["ratio"])
    ticks(row[0].yaxis, [ratio for ratio in RATIOS if 0.8 * low < ratio < 1.15 * top])
    row[0].set_ylabel("training loss / loss if pre-trained")
    for axes, letter, (data, group) in zip(
        row, ascii_lowercase, rows.groupby("data"), strict=False
    ):
        depths = sorted(set(group["depth"]))
        level(axes, 1)
        for number, method in enumerate(AGAINST):
            drawn_as, its = look(method), group[group["method"] == method]
            x = its["depth"].map(depths.index) + 0.24 * (number - 1)
            middles = its.assign(x=x).groupby("x")["ratio"].median()
            heights = position(middles)
            label = NAMES["method"][method].drawn
            drawn_as.line(axes, middles.index, heights, linestyle="", markersize=9, label=label)
            drawn_as.each(axes, x + 0.09, position(its["ratio"]), alpha=0.8)
        for edge in range(1, len(depths)):
            axes.axvline(edge - 0.5, color=PALE, linewidth=0.8, zorder=0)
        axes.set_xlim(-0.5, len(depths) - 0.5)
        frame(axes, len(depths) - 1.47, len(depths) - 0.51, 0.01, 0.99, axes.get_xaxis_transform())
        ticks(axes.xaxis, range(len(depths)), [str(depth) for depth in depths])
        panel(axes, letter if len(row) > 1 else "", _dataset(data), "depth")
    beside: dict = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    beside |= {"color": GREY, "size": SMALL, "annotation_clip": False}
    row[-1].annotate("pre-training helps", (1.04, 1), (0, 6), va="bottom", **beside)
    row[-1].annotate("pre-training harms", (1.04, 1), (0, -6), va="top", **beside)
    is_high = row[-1].transData.transform((0, 1))[1] > row[-1].bbox.y0 + row[-1].bbox.height / 2
    corner = "lower left" if is_high else "upper left"
    place_of_key = (1.01, 0 if is_high else 1)
    key = row[-1].legend(loc=corner, bbox_to_anchor=place_of_key, handletextpad=0.2)
    for text, method in zip(key.get_texts(), AGAINST, strict=True):
        text.set(color=look(method).ink, fontsize=SMALL)
    return picture, spread(rows, ["data", "depth", "method"], ["ratio"])


def _dataset(data: str) -> str:
    return names_in(__name__).value("data", data)


def caption_against(tables: Tables) -> str:
    """Return the caption of `draw_against`: its marks, and the learning rates on each dataset."""
    rates = [
        f"Learning rate on {_dataset(data)}: {say_rates({'training': group})}."
        for data, group in tables["training"].groupby("data")
    ]
    return (
        "The mean training loss over the epochs is divided by the loss of the pre-trained network"
        " with the same random draws. Random weights (scale_matched) have the pre-trained root"
        " mean square in each layer. Markers are medians, dots networks. " + " ".join(rates)
    )


def say_against(tables: Tables, helps: str, beats: str) -> str:
    """Return the headline: whether pre-training beats no pre-training and scaled random weights.

    helps, beats: the parts of the sentence, values of HELPS and AT_EQUAL_SIZE. The largest depth is
    the only number.
    """
    rows = tables["training"]
    everywhere = " on every dataset" if rows["data"].nunique() > 1 else ""
    return f"At depth {rows['depth'].max()} {helps}{everywhere}; {beats.format(every=everywhere)}"


AT_EQUAL_SIZE = {
    "holds": "pre-trained weights beat random weights of the same size{every}",
    "fails": "pre-trained weights do not beat random weights of the same size{every}",
    "undecided": "whether pre-trained weights beat random weights of the same size is undecided",
}
"""Second half of the headline, by the verdict of the comparison at equal norm of the weights."""


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
            Finding(partial(say_scale, verdict=verdict), when={"rank-beyond-scale": verdict})
            for verdict in ("holds", "fails", "undecided")
        ],
        marks="large marks: medians, dots: networks",
        caption="(a) shows the final training accuracy against r before training, the lower"
        " bound of the last hidden layer's rank. (b) enlarges the best networks. Large marks are"
        " medians, dots networks; hollow: random or orthogonalized weights. Lines join"
        " pre-trained and random networks of equal layerwise root mean square. Diverged"
        " networks have chance level.",
        shows={"method": [method for _, method in STARTS]},
    ),
    Drawing(
        "rank-scale",
        draw_against,
        whose="ours, following the authors' code",
        unread=("pretraining",),
        findings=[
            Finding(
                partial(say_against, helps=helps, beats=beats),
                when={"helps-against-nothing": plain, "helps-beyond-scale": equal},
            )
            for (plain, helps), (equal, beats) in product(HELPS.items(), AT_EQUAL_SIZE.items())
        ],
        marks="large marks: medians, dots: networks, frame: the headline",
        caption=caption_against,
        shows={"method": ["pretrained", *AGAINST]},
    ),
]
