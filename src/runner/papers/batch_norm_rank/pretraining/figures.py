"""Draw the figures of study `pretraining`: 4, 6, 11 and 12, whether the rank helps at equal size of
the weights, and the preview of one run."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.batch_norm_rank.looks import CONTROLS, METHODS, look
from runner.papers.batch_norm_rank.looks import named as name_of
from runner.papers.batch_norm_rank.names import MEASURES, NAMES
from runner.papers.batch_norm_rank.pretraining.tables import (
    VARIANT,
    against_pretraining,
    at_chosen_rates,
    before_training,
    deepest,
    last_epochs,
    named,
    of_protocol,
)
from runner.results.captions import DATASETS
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import nonempty
from runner.results.spreads import spread
from runner.results.style import (
    GREY,
    PALE,
    QUIET,
    SMALL,
    Look,
    level,
    name_ends,
    panel,
    rail,
    sheet,
    ticks,
)

COLUMNS = ["train_loss", "train_accuracy", "test_loss", "rank_bound", "mean_rank_bound"]

MOST = 25.0
"""The largest loss that a panel shows: ten times the loss at chance level."""


def curves(tables: Tables) -> pd.DataFrame:
    """Return median and range of every measure by depth, network and epoch; a loss that is not
    finite counts in the median and not in the range."""
    rows = at_chosen_rates(tables)
    keys = ["protocol", "depth", *VARIANT, "learning_rate", "epoch"]
    found = spread(rows, keys, COLUMNS)
    finite = spread(rows.replace(np.inf, np.nan), keys, COLUMNS)
    return found.assign(**finite.filter(regex="_(low|high)$"))


def advantages(tables: Tables, columns: Sequence[str]) -> pd.DataFrame:
    """Return the advantage of the pre-trained networks over each other network, by depth and epoch:
    median and range over the replicates, positive if the pre-trained network is better."""
    rows, keys = at_chosen_rates(tables).replace(np.inf, np.nan), ["depth", "epoch", "replicate"]
    ours = nonempty(rows[rows["method"] == "pretrained"], "pre-trained networks")
    pairs = rows[rows["method"] != "pretrained"].merge(ours, on=keys, suffixes=("", " ours"))
    for column in columns:
        lead = pairs[f"{column} ours"] - pairs[column]
        pairs[column] = -lead if "loss" in column else lead
    return spread(pairs[pairs["epoch"] > 0], ["depth", *VARIANT, "epoch"], columns)


WIDE = {"linewidth": 5.0, "markersize": 12, "zorder": 1.9}
"""Looks of a line that lies under others."""


def _lines(
    axes: Axes, drawn: pd.DataFrame, column: str, place: Callable = np.asarray, bands: bool = True
) -> list[tuple[float, str, Look]]:
    """Draw a line and a band for each network; return where they end: height, name, look.

    place: returns the heights of values. Without bands the line of plain networks is wide and lies
    under the others.
    """
    ends, several = [], len(set(drawn["pretraining_steps"]) - {0}) > 1
    for (method, steps), rows in drawn.sort_values("epoch").groupby(VARIANT):
        drawn_as, heights = look(method, steps), place(rows[column])
        if bands:
            drawn_as.band(axes, rows["epoch"], rows[f"{column}_low"], rows[f"{column}_high"])
        under = WIDE if method == "vanilla" and not bands else {}
        drawn_as.line(axes, rows["epoch"], heights, marker="", **under)
        text = f"pre-trained,\n{steps} steps" if several and steps else NAMES.get(method, method)
        ends.append((heights[-1], text, drawn_as))
    axes.set_xlim(0, 1.03 * max(1, drawn["epoch"].max()))
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    return ends


def draw_by_depth(
    tables: Tables, first: str, columns: Sequence[str]
) -> tuple[Figure, pd.DataFrame]:
    """Draw figures 4, 11 and 12: a column for each depth; networks, then differences."""
    drawn, letters = curves(tables), iter(ascii_lowercase)
    trained, depths = drawn[drawn["epoch"] > 0], sorted(set(drawn["depth"]))
    size = {"height": 3.6 + 2.5 * len(columns), "left": 1.2, "right": 1.3, "between": 0.75}
    picture, rows = sheet(1 + len(columns), len(depths), sharey="row", **size)
    for number, column in enumerate((first, *columns)):
        rows[number, 0].set_ylabel("advantage of pre-training:\n" * (number > 0) + MEASURES[column])
        for axes, depth in zip(rows[number], depths, strict=True):
            panel(axes, next(letters), f"depth {depth}", "epoch" * (number == len(columns)))
    place = _scale(rows[0], trained[first])
    for axes, depth in zip(rows[0], depths, strict=True):
        ends = _lines(axes, trained[trained["depth"] == depth], first, place, bands=False)
    name_ends(rows[0][-1], ends)
    for row, column in zip(rows[1:], columns, strict=True):
        with or_empty(row[0]):
            ahead = advantages(tables, columns)
            late = ahead[ahead["epoch"] > 0.2 * ahead["epoch"].max()]
            most = 1.5 * np.nanmax([late[column].abs().max(), 0.01])
            for axes, depth in zip(row, depths, strict=True):
                level(axes, 0)
                ends = _lines(axes, ahead[ahead["depth"] == depth], column)
            row[0].set_ylim(-most, most)
            QUIET.note(row[0], 0.05, 0.98, "above 0: better\nif pre-trained", va="top")
            name_ends(row[-1], [(y, f"over\n{text}", drawn_as) for y, text, drawn_as in ends])
    return picture, drawn


def _scale(row: np.ndarray, values: pd.Series) -> Callable:
    """Give the axes of a row their scale, logarithmic for losses, with a rail where some diverged;
    return what places values."""
    if "loss" not in str(values.name):
        row[0].set_ylim(0, 1.03)
        return np.asarray
    shown, place = values[values <= MOST], np.asarray
    low, top = (0.8 * shown.min(), 1.15 * shown.max()) if len(shown) else (0.1, MOST)
    row[0].set(yscale="log", ylim=(low, top))
    for axes in row if len(shown) < len(values) else ():
        place = rail(axes, top, low, "diverged" * (axes is row[0]))
    marks = [digit * 10.0**power for power in range(-4, 2) for digit in (1, 2, 5)]
    ticks(row[0].yaxis, [mark for mark in marks if low < mark < top])
    return place


def say_by_depth(tables: Tables) -> str:
    """Say what panels, lines and bands of figures 4, 11 and 12 are, and the learning rates."""
    return (
        "A column for each depth. Top: each kind of network by epoch. Below: advantage of the"
        " pre-trained network over each of the two others by epoch, pair by pair; above 0 it is"
        " better. Lines are medians, bands the range, which may leave a panel. Learning rates:"
        f" {_rates(tables)}."
    )


def _rates(tables: Tables) -> str:
    """Return the commonest learning rate, and the others with their networks."""
    rows = at_chosen_rates(tables).drop_duplicates(["depth", *VARIANT])
    usual, *others = rows["learning_rate"].value_counts().index
    words = [f"{usual:g}"]
    for rate in others:
        of = rows[rows["learning_rate"] == rate].sort_values("depth").groupby("depth")["method"]
        each = [f"{' and '.join(map(name_of, methods))} at depth {d}" for d, methods in of]
        words.append(f"{rate:g} for {', '.join(each)}")
    return "; ".join(words)


def middle(rows: pd.DataFrame, network: str, column: str) -> float:
    """Return the median of a column over the deepest networks of a name, by the authors'
    protocol."""
    return float(named(of_protocol(deepest(rows), "authors"), network)[column].median())


ENOUGH = 1000
"""Minibatches of the authors' pre-training. After fewer minibatches no winner is named."""


def say_helps(tables: Tables, column: str, helps: str, beats: str) -> str:
    """Say whether pre-training helps plain networks, and whether it beats batch norm."""
    rows = last_epochs(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    if rows["pretraining_steps"].max() < ENOUGH or not np.isfinite([ours, plain]).all():
        return ""
    depth, what = rows["depth"].max(), "loss" if "loss" in column else "accuracy"
    return f"At depth {depth} {helps} ({what} {ours:.2f} against {plain:.2f}); {beats}"


def say_ends(tables: Tables, column: str) -> str:
    """Say what networks reach after a shorter pre-training than the authors', and without it."""
    rows = last_epochs(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    M = rows["pretraining_steps"].max()
    if M >= ENOUGH or not np.isfinite([ours, plain]).all():
        return ""
    return (
        f"Pre-trained on only {M} minibatches, networks of depth {rows['depth'].max()} end at a"
        f" {MEASURES[column]} of {ours:.2f}, plain ones at {plain:.2f}"
    )


HELPS = {
    "holds": "pre-training helps plain networks",
    "fails": "pre-training does not help plain networks",
    "undecided": "it is undecided whether pre-training helps plain networks",
}
"""First half of the headline, by the verdict of the claim that pre-training helps."""

BEATS = {
    "holds": "pre-training beats batch norm",
    "fails": "pre-training does not beat batch norm",
    "undecided": "whether pre-training beats batch norm is undecided",
}
"""Second half of the headline, by the verdict of the claim that pre-training beats batch norm."""


def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 6: accuracy and mean r by epoch."""
    drawn = deepest(curves(tables))
    picture, ((left, right),) = sheet(gap=1.55, right=1.15)
    left.set_ylim(0, 1.03)
    level(left, 1 / CLASSES, "chance", above=False)
    top = max(2.0, 1.2 * np.nanmax([drawn["mean_rank_bound_high"].max(), 0]))
    right.set(yscale="log", ylim=(0.9, top))
    ticks(right.yaxis, [2**power for power in range(10) if 2**power <= top])
    for axes, letter, column in ((left, "a", "train_accuracy"), (right, "b", "mean_rank_bound")):
        name_ends(axes, _lines(axes, drawn, column))
        panel(axes, letter, MEASURES[column], "epoch")
    return picture, drawn


def say_more(tables: Tables, more: str) -> str:
    """Say what the longest and no pre-training reach, and whether more is always better."""
    ends = last_epochs(tables)
    most, plain = (middle(ends, name, "train_accuracy") for name in ("M = 75", "vanilla"))
    return (
        f"Pre-training makes {ends['depth'].max()} plain layers trainable: accuracy {most:.2f}"
        f" after 75 steps, {plain:.2f} without{more}"
    )


MORE = {
    "holds": "",
    "undecided": "; whether more is always faster is undecided",
    "fails": "; but more is not always faster",
}
"""By the verdict of the claim that more pre-training gives faster learning."""


def ordered(tables: Tables) -> pd.DataFrame:
    """Return the judged networks, with r before training and the accuracy of the last epoch. A
    diverged network has the accuracy of chance level."""
    keys = ["protocol", *VARIANT, "replicate"]
    start = before_training(tables).set_index(keys)[["rank_bound"]]
    end = last_epochs(tables).set_index(keys)[["train_accuracy", "train_loss", "learning_rate"]]
    learned = end["train_accuracy"].mask(end["train_loss"] == np.inf, 1 / CLASSES)
    return end.assign(train_accuracy=learned).join(start).reset_index()


STARTS = {
    ("authors", "batch_norm"): ("batch norm", ""),
    ("authors", "batch_norm_asymmetric"): ("batch norm, asymmetric", ""),
    ("authors", "vanilla"): ("plain", ""),
    ("authors", "pretrained"): ("pre-trained, {M} steps", ""),
    ("text", "pretrained"): ("pre-trained as in the text", "X"),
    ("ours", "pretrained"): ("pre-trained by rotations", "P"),
    ("authors", "scale_matched"): ("random, size of {M} steps", ""),
    ("text", "scale_matched"): ("random, size as in the text", "X"),
    ("authors", "unit_scale"): ("random, unit size", ""),
    ("authors", "he"): ("random, He", ""),
    ("authors", "orthogonalised_half"): ("orthogonalized, p = 1/2", ""),
    ("authors", "orthogonalised"): ("orthogonalized, p = 1", ""),
}
"""Names in the figure of controls, by protocol and method, and a marker if another protocol has
the same look."""

NEAR = 0.15
"""Range of accuracies in the second panel, below the best one."""


def draw_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the training accuracy against r before training, a marker for each initialization."""
    rows, keys = ordered(tables), ["protocol", *VARIANT]
    found = {key: of for way in STARTS for key, of in rows.groupby(keys) if key[:2] == way}
    nonempty(pd.Series(list(found), dtype=object), "networks")
    picture, panels = sheet(1, 2, height=4.7, gap=0.65, right=2.75)
    top = max(4.0, 1.4 * np.nanmax([rows["rank_bound"].max(), 1]))
    best = rows["train_accuracy"].max()
    for axes, letter, title, heights in (
        (panels[0, 0], "a", "training accuracy, last epoch", (0, 1.03)),
        (panels[0, 1], "b", "best networks, enlarged", (best - NEAR, best + 0.1 * NEAR)),
    ):
        for (protocol, method, steps), of in found.items():
            name, marker = STARTS[protocol, method]
            drawn_as = replace(look(method, steps), **{"marker": marker} if marker else {})
            drawn_as.each(axes, of["rank_bound"], of["train_accuracy"])
            middle_of = [[of[column].median()] for column in ("rank_bound", "train_accuracy")]
            options = {"linestyle": "", "markersize": 8, "label": name.format(M=steps)}
            drawn_as.line(axes, *middle_of, **options)
        level(axes, 1 / CLASSES, "chance", at=0.6)
        axes.set(xscale="log", xlim=(0.85, top), ylim=heights)
        ticks(axes.xaxis, [4**power for power in range(5) if 4**power <= top])
        panel(axes, letter, title, "r before training")
    key = panels[0, 1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5), handletextpad=0.2)
    for text, (_, method, steps) in zip(key.get_texts(), found, strict=True):
        text.set(color=look(method, steps).ink, fontsize=SMALL)
    return picture, spread(rows, keys, ["rank_bound", "train_accuracy", "train_loss"])


def say_scale(tables: Tables, verdict: str) -> str:
    """Say whether the rank helps networks whose weights have equal size."""
    ends = last_epochs(tables)
    ours, same = (f"{middle(ends, n, 'train_accuracy'):.2f}" for n in ("M = 75", "scale_matched"))
    if verdict == "holds":
        return f"A higher rank helps at equal size of the weights (accuracy {ours} against {same})"
    if ours == same:
        return f"Pre-trained and random weights of the same size reach the same accuracy ({ours})"
    return (
        f"No gain from rank is found at equal size of the weights (accuracy {ours} against {same})"
    )


AGAINST = ("batch_norm", "vanilla", "scale_matched")
"""Networks with which pre-training is compared, from left to right at each depth."""

RATIOS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 5, 10, 20)


def draw_against(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the loss of other networks / the loss of pre-trained networks, against depth."""
    rows = against_pretraining(tables)
    shown = rows["ratio"][rows["ratio"] <= MOST]
    low, top = (shown.min(), shown.max()) if len(shown) else (1, 1)
    picture, (row,) = sheet(1, rows["data"].nunique(), left=1.05, right=1.85, sharey=True)
    place = _scale(row, rows["ratio"].rename("ratio of losses"))
    ticks(row[0].yaxis, [each for each in RATIOS if 0.8 * low < each < 1.15 * top])
    row[0].set_ylabel("training loss / loss if pre-trained")
    for axes, letter, (data, of) in zip(row, ascii_lowercase, rows.groupby("data"), strict=False):
        depths = sorted(set(of["depth"]))
        level(axes, 1)
        for number, method in enumerate(AGAINST):
            drawn_as, its = look(method), of[of["method"] == method]
            x = its["depth"].map(depths.index) + 0.24 * (number - 1)
            middles = its.assign(x=x).groupby("x")["ratio"].median()
            heights = place(middles)
            drawn_as.line(
                axes, middles.index, heights, linestyle="", markersize=9, label=NAMES[method]
            )
            drawn_as.each(axes, x + 0.09, place(its["ratio"]), alpha=0.8)
        for edge in range(1, len(depths)):
            axes.axvline(edge - 0.5, color=PALE, linewidth=0.8, zorder=0)
        axes.set_xlim(-0.5, len(depths) - 0.5)
        ticks(axes.xaxis, range(len(depths)), [str(depth) for depth in depths])
        panel(axes, letter, DATASETS[data], "depth")
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


def caption_against(tables: Tables) -> str:
    """Return the caption: marks, and the learning rates on each dataset."""
    rates = [
        f"Learning rates on {DATASETS[data]}: {_rates({'training': of})}."
        for data, of in tables["training"].groupby("data")
    ]
    return (
        "Training loss of three kinds of networks, divided by the loss of the pre-trained network"
        " with the same draws, against depth. Losses are means over all epochs. Markers are"
        " medians, dots single networks. Random weights of the same size: plain networks, each"
        " layer scaled to the root"
        " mean square of the pre-trained layer. " + " ".join(rates)
    )


def say_against(tables: Tables, helps: str, beats: str) -> str:
    """Say whether deep pre-trained networks beat plain ones, and random ones of their size."""
    rows = tables["training"]
    every = " on every dataset" * (rows["data"].nunique() > 1)
    return f"At depth {rows['depth'].max()} {helps}{every}; {beats.format(every=every)}"


AT_EQUAL_SIZE = {
    "holds": "pre-trained weights beat random weights of the same size{every}",
    "fails": "pre-trained weights do not beat random weights of the same size{every}",
    "undecided": "whether pre-trained weights beat random weights of the same size is undecided",
}
"""Second half of the headline, by the verdict at equal size of the weights."""


def against_findings() -> Iterator[Finding]:
    """Yield a sentence for each pair of verdicts: against plain networks, and at equal size."""
    for (plain, helps), (equal, beats) in product(HELPS.items(), AT_EQUAL_SIZE.items()):
        needs: dict[str, list[str]] = {plain: ["helps-against-nothing"]}
        needs[equal] = [*needs.get(equal, []), "helps-beyond-scale"]
        yield Finding(partial(say_against, helps=helps, beats=beats), **needs)


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: figure 6; return the first and last numbers of each network."""
    picture, _ = draw_rank_and_accuracy(tables)
    rows = ordered(tables)
    shown = rows.groupby([*VARIANT, "learning_rate"], sort=False).median(numeric_only=True)
    return picture, shown.drop(columns="replicate").reset_index()


LOOKS = METHODS | CONTROLS
"""Looks in the picture of a sweep."""

HEADLINE = ["rank_bound", "train_accuracy", "test_accuracy"]


def by_depth(figure: str, claim: str, first: str, *columns: str) -> Drawing:
    """Return the drawing of figure 4, 11 or 12.

    claim: states that pre-trained networks beat plain networks in the first column. first: the
    column of which the networks are drawn. columns: the columns of which differences are drawn.
    """
    against = {"faster-than-vanilla": "faster-than-batch-norm"}.get(claim, "better-accuracy")
    findings = [Finding(partial(say_ends, column=first), undecided=[claim])]
    for (verdict, helps), (other, beats) in product(HELPS.items(), BEATS.items()):
        says, needs = partial(say_helps, column=first, helps=helps, beats=beats), {verdict: [claim]}
        needs[other] = [*needs.get(other, []), against]
        findings.append(Finding(says, **needs))
    return Drawing(
        figure,
        partial(draw_by_depth, first=first, columns=columns),
        whose="following the authors' code",
        unread=("pretraining",),
        findings=findings,
        caption=say_by_depth,
        shows={"method": ["vanilla", "pretrained", "batch_norm"]},
    )


FIGURES = [
    by_depth("rank-fig12", "faster-than-vanilla", "train_loss", "train_accuracy", "test_loss"),
    by_depth("rank-fig11", "better-accuracy-than-vanilla", *["train_accuracy"] * 2, "test_loss"),
    by_depth("rank-fig4", "faster-than-vanilla", *["train_loss"] * 2),
    Drawing(
        "rank-fig6",
        draw_rank_and_accuracy,
        whose="following the authors' code",
        unread=("pretraining",),
        findings=[
            Finding(
                partial(say_more, more=more),
                **{"holds": ["few-steps-raise-rank"]}
                | {verdict: ["more-is-better", *["few-steps-raise-rank"] * (verdict == "holds")]},
            )
            for verdict, more in MORE.items()
        ],
        caption="(a) Training accuracy and (b) mean r (harmonic mean of the rank's lower bound"
        " over seven layers), by epoch. Lines are medians, bands the range. Steps: of"
        " pre-training on each layer; the 75 steps come after the 5 steps.",
        shows={"method": ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"]},
    ),
    Drawing(
        "rank-pretraining",
        draw_pretraining,
        whose="ours, following the authors' code",
        unread=("pretraining",),
        findings=[
            Finding(partial(say_scale, verdict=verdict), **{verdict: ["rank-beyond-scale"]})
            for verdict in ("holds", "fails", "undecided")
        ],
        caption="Training accuracy in the last epoch against r of the last hidden layer before"
        " training, (a) of all networks, (b) of the best networks. Markers are medians, dots single"
        " networks; hollow: not pre-trained. Size: each layer has the root mean square of the"
        " pre-trained layer. Networks that diverge count at chance level.",
        shows={"method": [method for _, method in STARTS]},
    ),
    Drawing(
        "rank-scale",
        draw_against,
        whose="ours, following the authors' code",
        unread=("pretraining",),
        findings=[*against_findings()],
        caption=caption_against,
        shows={"method": ["pretrained", *AGAINST]},
    ),
]
