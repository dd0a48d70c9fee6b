"""Drawings of study `pretraining`: figures 4, 6, 11 and 12, what rank adds to scale, and the quick
look at one run."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.batch_norm_rank.looks import look
from runner.papers.batch_norm_rank.pretraining.tables import (
    VARIANT,
    at_chosen_rates,
    before_training,
    deepest,
    last_epochs,
    named,
    of_protocol,
)
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import nonempty
from runner.results.spreads import spread
from runner.results.style import GREY, Look, guide, level, name_ends, panel, rail, sheet, ticks

COLUMNS = {
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "rank_bound": "r, last hidden layer",
    "mean_rank_bound": "r, harmonic mean over layers",
}

NAMES = {
    "vanilla": "vanilla",
    "pretrained": "pre-trained",
    "batch_norm": "batch norm",
    "batch_norm_asymmetric": "asymmetric\nbatch norm",
}
"""Of the lines of the paper's figures."""

LOST = 2.5
"""A loss above a guess, ln 10, that a panel shows; up to twice that where training ends there."""


def curves(tables: Tables) -> pd.DataFrame:
    """Median and range of every measure by depth, network and epoch; of losses that are not finite
    the median counts, and the range does not."""
    rows = at_chosen_rates(tables)
    keys = ["protocol", "depth", *VARIANT, "learning_rate", "epoch"]
    found = spread(rows, keys, list(COLUMNS))
    finite = spread(rows.replace(np.inf, np.nan), keys, list(COLUMNS))
    return found.assign(**finite.filter(regex="_(low|high)$"))


def _lines(
    axes: Axes, drawn: pd.DataFrame, column: str, top: float = np.inf, lost: float = np.nan
) -> list[tuple[float, str, Look]]:
    """Draw a line and a band for each network; return where they end: height, name, look.

    top: the end of the scale; lost: the height of what is not finite.
    """
    ends, several = [], len(set(drawn["pretraining_steps"]) - {0}) > 1
    for (method, steps), rows in drawn.sort_values("epoch").groupby(VARIANT):
        drawn_as, values = look(method, steps), rows[column]
        band = rows[[f"{column}_low", f"{column}_high"]].clip(upper=top)
        drawn_as.band(axes, rows["epoch"], *band.to_numpy().T)
        heights = values.where(values <= top).where(np.isfinite(values), lost)
        drawn_as.line(axes, rows["epoch"], heights, marker="")
        text = f"M = {steps}" if several and steps else NAMES.get(method, method)
        ends.append((heights.iloc[-1], text, drawn_as))
    axes.set_xlim(0, max(1, drawn["epoch"].max()))
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    return ends


def draw_by_depth(tables: Tables, columns: tuple[str, ...]) -> tuple[Figure, pd.DataFrame]:
    """Figures 4, 11 and 12: a column of panels for each depth, a row for each measure."""
    drawn = curves(tables)
    trained, last = drawn[drawn["epoch"] > 0], drawn[drawn["epoch"] == drawn["epoch"].max()]
    depths = sorted(set(drawn["depth"]))
    size = {"height": 1.35 + 2.85 * len(columns), "left": 0.95, "right": 1.2, "sharey": "row"}
    picture, rows = sheet(len(columns), len(depths), **size)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for row, column in zip(rows, columns, strict=True):
        largest = last[column].replace(np.inf, np.nan).max()
        top = max(LOST, min(2 * LOST, largest)) if "loss" in column else 1.03
        row[0].set(ylim=(0, top), ylabel=COLUMNS[column])
        for axes, depth in zip(row, depths, strict=True):
            lost = np.nan
            if not np.isfinite(trained[column]).all():
                place = rail(axes, top, 0, "diverged" * (axes is row[0]), log=False)
                lost = float(place(np.nan))
            ends = _lines(axes, trained[trained["depth"] == depth], column, top, lost)
            panel(axes, next(letters), f"depth {depth}", "epoch")
        name_ends(row[-1], ends)
    return picture, drawn


def say_by_depth(tables: Tables) -> str:
    """Panels, lines and bands of figures 4, 11 and 12, and the rates, where several were tried."""
    marks = (
        "A column for each depth, by epoch of training. Lines are medians over the replicates,"
        " bands their range; larger losses are cut off, and those of networks that diverge lie on"
        " the rail."
    )
    if tables["training"].groupby(["run", *VARIANT])["learning_rate"].nunique().max() < 2:
        return marks
    rows, words = at_chosen_rates(tables).drop_duplicates(["depth", *VARIANT]), []
    for method, of in rows.sort_values("depth", kind="stable").groupby("method", sort=False):
        rates = of["learning_rate"].map("{:g}".format)
        if rates.nunique() > 1:
            rates += " at depth " + of["depth"].astype(str)
        words.append(f"{NAMES.get(method, method)} {', '.join(rates.unique())}")
    return (
        f"{marks} Of the rates of the authors' scripts each network has that with the lowest"
        f" training loss in the last epoch, on other replicates ({'; '.join(words)})."
    )


def middle(rows: pd.DataFrame, network: str, column: str) -> float:
    """Return the median of a column over the deepest networks of a name, by the authors'
    protocol."""
    return float(named(of_protocol(deepest(rows), "authors"), network)[column].median())


def say_end(tables: Tables, column: str) -> str:
    """Where the deepest networks end."""
    rows = last_epochs(tables)
    ours, norm, plain = (
        middle(rows, name, column) for name in ("pretrained", "batch_norm", "vanilla")
    )
    if not np.isfinite([ours, norm, plain]).all():
        return ""
    return (
        f"At depth {rows['depth'].max()} pre-trained networks end at a {COLUMNS[column]} of"
        f" {ours:.2f}, batch norm at {norm:.2f}, vanilla networks at {plain:.2f}"
    )


def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 6: accuracy and r through training."""
    drawn = deepest(curves(tables))
    picture, ((left, right),) = sheet(gap=1.55, right=1.15)
    left.set_ylim(0, 1.03)
    level(left, 1 / CLASSES)
    top = max(2.0, 1.2 * np.nanmax([drawn["mean_rank_bound_high"].max(), 0]))
    right.set(yscale="log", ylim=(0.9, top))
    ticks(right.yaxis, [2**power for power in range(10) if 2**power <= top])
    for axes, letter, column in ((left, "a", "train_accuracy"), (right, "b", "mean_rank_bound")):
        name_ends(axes, _lines(axes, drawn, column))
        panel(axes, letter, COLUMNS[column], "epoch")
    return picture, drawn


def say_more(tables: Tables) -> str:
    """Who learns, and from which r."""
    rows, start = last_epochs(tables), before_training(tables)
    most, plain = (middle(rows, name, "train_accuracy") for name in ("M = 75", "vanilla"))
    r, before = (middle(start, name, "mean_rank_bound") for name in ("M = 75", "vanilla"))
    return (
        f"Networks pre-trained with M = 75 reach a training accuracy of {most:.2f} from"
        f" r = {r:.1f}, vanilla ones {plain:.2f} from r = {before:.1f}"
    )


def ordered(tables: Tables) -> pd.DataFrame:
    """Return the judged networks, with r before and what they learn in the last epoch; one that has
    diverged is at a guess."""
    keys = ["protocol", *VARIANT, "replicate"]
    start = before_training(tables).set_index(keys)[["rank_bound"]]
    end = last_epochs(tables).set_index(keys)[["train_accuracy", "train_loss", "learning_rate"]]
    guess = end["train_accuracy"].mask(end["train_loss"] == np.inf, 1 / CLASSES)
    return end.assign(train_accuracy=guess).join(start).reset_index()


ROWS = {
    ("authors", "vanilla"): "vanilla",
    ("authors", "pretrained"): "pre-trained, M = {M}",
    ("authors", "scale_matched"): "scale of M = {M} alone",
    ("text", "pretrained"): "by the text, M = {M}",
    ("text", "scale_matched"): "its scale alone",
    ("ours", "pretrained"): "in turns, M = {M}",
    ("authors", "unit_scale"): "unit scale",
    ("authors", "he"): "He",
    ("authors", "orthogonalised_half"): "orthogonalised, p = 1/2",
    ("authors", "orthogonalised"): "orthogonalised, p = 1",
    ("authors", "batch_norm_asymmetric"): "batch norm, asymmetric",
    ("authors", "batch_norm"): "batch norm",
}
"""Of the figure of controls, from the top: protocol, method, and what stands at the left."""


def draw_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw a line for each way to start: r before training, and what is learned."""
    rows, keys = ordered(tables), ["protocol", *VARIANT]
    starts = {key: of for way in ROWS for key, of in rows.groupby(keys) if key[:2] == way}
    nonempty(pd.Series(list(starts), dtype=object), "networks")
    picture, ((left, right),) = sheet(
        height=0.95 + 0.31 * len(starts), left=2.35, gap=0.35, right=0.35, sharey=True
    )
    top = max(4.0, 1.4 * np.nanmax([rows["rank_bound"].max(), 1]))
    left.set(xscale="log", xlim=(0.85, top), ylim=(len(starts) - 0.4, -0.6))
    right.set_xlim(0, 1.03)
    ticks(left.xaxis, [2**power for power in range(10) if 2**power <= top])
    names = [ROWS[protocol, method].format(M=steps) for protocol, method, steps in starts]
    ticks(left.yaxis, range(len(starts)), names)
    for y, ((_, method, steps), of) in enumerate(starts.items()):
        drawn_as = look(method, steps)
        left.get_yticklabels()[y].set_color(drawn_as.ink)
        for axes, column in ((left, "rank_bound"), (right, "train_accuracy")):
            drawn_as.each(axes, of[column], np.full(len(of), y))
            drawn_as.line(axes, [of[column].median()], [y], linestyle="", markersize=8)
    for axes in (left, right):
        axes.grid(axis="y", color=GREY, linewidth=0.4)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    guide(right, [1 / CLASSES] * 2, [-0.6, len(starts)])
    panel(left, "a", "r before training", "last hidden layer")
    panel(right, "b", "training accuracy", "in the last epoch")
    return picture, spread(rows, keys, ["rank_bound", "train_accuracy", "train_loss"])


def say_scale(tables: Tables, adds: str) -> str:
    """Say whether rank adds anything to the scale of pre-training, and what another scale
    does."""
    names, start, end = ("M = 75", "scale_matched"), before_training(tables), last_epochs(tables)
    (r, same), (most, less) = (
        [middle(rows, name, column) for name in names]
        for rows, column in ((start, "rank_bound"), (end, "train_accuracy"))
    )
    unit = middle(start, "unit_scale", "rank_bound"), middle(end, "unit_scale", "train_accuracy")
    return (
        f"At the scale of pre-training {adds} (r = {r:.1f}: {most:.2f}, r = {same:.1f}:"
        f" {less:.2f}); untouched networks at unit scale, r = {unit[0]:.1f}, reach {unit[1]:.2f}"
    )


ADDS = {
    "holds": "rank helps",
    "fails": "rank adds nothing",
    "undecided": "it is open whether rank helps",
}
"""By the verdict of the claim that it does."""


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Preview of one run: figure 6, and how every network starts and ends."""
    picture, _ = draw_rank_and_accuracy(tables)
    rows = ordered(tables)
    shown = rows.groupby([*VARIANT, "learning_rate"], sort=False).median(numeric_only=True)
    return picture, shown.drop(columns="replicate").reset_index()


HEADLINE = ["rank_bound", "train_accuracy", "test_accuracy"]


def whatever(claim: str, says: Callable[[Tables], str]) -> list[Finding]:
    """Return a sentence of numbers, which stands however the claim on them comes out."""
    return [Finding(says, **{verdict: [claim]}) for verdict in ("holds", "fails", "undecided")]


def by_depth(figure: str, claim: str, *columns: str) -> Drawing:
    """Figure 4, 11 or 12; claim: the one on its first column."""
    return Drawing(
        figure,
        partial(draw_by_depth, columns=columns),
        whose="the authors' protocol",
        unread=("pretraining",),
        findings=whatever(claim, partial(say_end, column=columns[0])),
        caption=say_by_depth,
        shows={"method": ["vanilla", "pretrained", "batch_norm"]},
    )


FIGURES = [
    by_depth("rank-fig12", "faster-than-batch-norm", "train_loss", "train_accuracy", "test_loss"),
    by_depth("rank-fig11", "better-accuracy", "train_accuracy", "test_loss"),
    by_depth("rank-fig4", "faster-than-batch-norm", "train_loss"),
    Drawing(
        "rank-fig6",
        draw_rank_and_accuracy,
        whose="the authors' protocol",
        unread=("pretraining",),
        findings=whatever("more-is-better", say_more),
        caption="(a) Training accuracy and (b) r, the lower bound of the rank, by epoch; 0: before"
        " training. As in the authors' code r is 1 over the mean of 1 / r over seven layers, on the"
        " last minibatch. Lines are medians over the replicates, bands their range. M: steps of"
        " pre-training on each layer, those of M = 75 after those of M = 5.",
        shows={"method": ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"]},
    ),
    Drawing(
        "rank-pretraining",
        draw_pretraining,
        whose="ours, next to the authors' protocol",
        unread=("pretraining",),
        findings=[
            Finding(partial(say_scale, adds=adds), **{verdict: ["rank-beyond-scale"]})
            for verdict, adds in ADDS.items()
        ],
        caption="A line for each way to start. (a) r of the last hidden layer before training and"
        " (b) training accuracy in the last epoch; dots are replicates, markers their medians."
        " Hollow: untouched weights and other starts without an ascent on r. Scale alone: each"
        " layer has the root mean square that it has in the pre-trained network. Dotted: a guess,"
        " which is also what a network counts as that has diverged.",
        shows={"method": [method for _, method in ROWS]},
    ),
]
