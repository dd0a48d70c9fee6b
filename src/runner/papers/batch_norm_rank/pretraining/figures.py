"""Drawings of study `pretraining`: Figures 4, 6, 11 and 12, what pre-training adds to the scale of
the weights, and the quick look at one run."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.data import CLASSES
from runner.papers.batch_norm_rank.looks import CONTROLS, METHODS, PRETRAINED, look
from runner.papers.batch_norm_rank.pretraining.tables import (
    BATCH_NORM,
    LABELS,
    ORTHOGONAL,
    VANILLA,
    VARIANT,
    Variant,
    deepest,
    starts,
    through_training,
    variants_in,
)
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import NoRows, Present, nonempty
from runner.results.spreads import spread
from runner.results.statistics import last_epoch, summarize
from runner.results.style import (
    PLAIN,
    SHADE,
    SMALL,
    Look,
    level,
    name_ends,
    panel,
    rail,
    sheet,
    ticks,
)

COLUMNS = {
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "rank_bound": "r, last hidden layer",
}

ENDS = ("_low", "_high")
"""Of the columns that hold a range."""

WHOSE = "our way of pre-training, M steps"

GUESS = float(np.log(CLASSES))
"""The loss of a guess."""


def spoken_for(tables: Tables, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows without those of pre-trained networks whose angle does not raise r most."""
    untouched = rows["angle"] == 0
    if untouched.all():
        return rows
    chosen = tables["angles"].query("chosen")[["depth", *VARIANT]].drop_duplicates()
    return pd.concat([rows[untouched], rows[~untouched].merge(chosen)])


def drawn_curves(tables: Tables) -> pd.DataFrame:
    """Median and range of every measure by depth, variant and epoch.

    In the median the loss of a network that has diverged is the largest; the range is that of the
    others.
    """
    keys = ["depth", *VARIANT, "learning_rate", "epoch"]
    rows = tables["training"]
    losses = rows[["train_loss", "test_loss"]].fillna(np.inf)
    found = spread(rows.assign(**losses), keys, list(COLUMNS))
    going = rows[list(COLUMNS)].where(np.isfinite(rows["train_loss"]))
    ranges = spread(rows.assign(**going), keys, list(COLUMNS))
    return found.assign(**{name: ranges[name] for name in ranges if name.endswith(ENDS)})


def _name(variant: Variant) -> str:
    """What captions call a variant, without its angle."""
    method, steps, _ = variant
    return f"{LABELS[method]}, M = {steps}" if steps else LABELS[method]


def say_angles(tables: Tables) -> str:
    """The angle of a step that speaks for each length of pre-training."""
    if "angles" not in tables:
        return ""
    chosen = tables["angles"].query("chosen")[["depth", *VARIANT]].drop_duplicates()
    if "training" in tables:
        chosen = chosen[chosen["depth"].isin(tables["training"]["depth"])]
    several = chosen["depth"].nunique() > 1
    words = []
    for (name, steps), rows in chosen.groupby(["method", "pretraining_steps"]):
        by_angle = rows.sort_values("depth").groupby("angle", sort=False)["depth"]
        at = [
            f"{angle:g}" + f" at depth {', '.join(map(str, depths))}" * several
            for angle, depths in by_angle
        ]
        words.append(f"{_name((name, steps, 0.0))}: {'; '.join(at)}")
    why = " Pre-trained networks take M steps, here with the angle η that raises r most on"
    return f"{why} separate replicates ({'. '.join(words)})." if words else ""


MARKS = (
    " Lines are medians over the replicates, bands the range of those that do not diverge; each"
    " method has the rate that was chosen for it on separate replicates."
)

OF_THE_PAPER = ("vanilla", "pretrained", "batch_norm")
"""The curves of Figures 4, 11 and 12."""


def _text(variant: Variant, longest: int) -> str:
    """The name at a line."""
    names = {"batch_norm": "batch norm", "batch_norm_asymmetric": "asymmetric\nbatch norm"}
    names |= {"unit_scale": "unit scale", "pretrained_end_to_end": "end to end"}
    method, steps, _ = variant
    if method == "pretrained":
        return f"pre-trained,\nM = {steps}" if steps == longest else f"M = {steps}"
    return names.get(method, LABELS[method])


def _limits(drawn: pd.DataFrame, column: str) -> tuple[float, float]:
    """The end of a loss' scale, before the rail, and its start; of an accuracy without a rail."""
    if column == "train_loss":
        return 2.5, 0.0
    if "loss" in column:
        largest = drawn.loc[np.isfinite(drawn[column]), column].max()
        return float(np.ceil(np.fmin(np.fmax(largest, GUESS), 2 * GUESS))), 0.0
    return 1.03, 0.0


def _through_training(
    axes: Axes, drawn: pd.DataFrame, column: str, limits: tuple[float, float], word: str = ""
) -> list[tuple[float, str, Look]]:
    """A line for each variant; what diverges lies on a rail above the losses.

    Gives back where the lines end.
    """
    top, low = limits
    last, longest = max(2, drawn["epoch"].max()), drawn["pretraining_steps"].max()
    axes.set(xlim=(0, last), ylim=(low, top))
    place = rail(axes, top, low, word, log=False) if "loss" in column else np.asarray
    ends = []
    for variant in variants_in(drawn):
        rows = drawn[(drawn[VARIANT] == list(variant)).all(axis=1)].sort_values("epoch")
        drawn_as, text = look(*variant[:2]), _text(variant, longest)
        lost = ~np.isfinite(rows["train_loss"].astype(float))
        if lost.all() and "loss" in column:
            thin, height = replace(drawn_as, width=1.3, marker=""), float(place([np.nan])[0])
            thin.line(axes, [1, last], [height, height])
            box = {"facecolor": SHADE, "edgecolor": "none", "pad": 1}
            drawn_as.name(axes, last / 2, height, text.split("\n")[-1], size=SMALL, bbox=box)
        if lost.all():
            continue
        shown = rows[lost | (rows[column] <= top)]
        high = shown[f"{column}_high"].clip(upper=top)
        drawn_as.band(axes, shown["epoch"], shown[f"{column}_low"], high)
        drawn_as.line(axes, shown["epoch"], place(shown[column]), marker="")
        if len(shown):
            ends.append((float(place(shown[column])[-1]), text, drawn_as))
    ticks(axes.xaxis, [0, last // 3, 2 * last // 3, last] if last >= 9 else range(last + 1))
    if "accuracy" in column:
        ticks(axes.yaxis, [0, 0.25, 0.5, 0.75, 1])
    return ends


def say_by_depth(tables: Tables) -> str:
    """Panels, lines and bands of figures 4, 11 and 12, and the angles."""
    above = " Networks that diverge lie on the rail above the losses."
    return "A column for each depth, by epoch of training." + MARKS + above + say_angles(tables)


def _ends(tables: Tables) -> tuple[int, pd.Series, pd.Series, pd.Series]:
    """The depth of the deepest networks, and the medians after the last epoch: pre-trained with the
    largest M, with batch norm, and vanilla. Raises NoRows where one is absent."""
    last = last_epoch(deepest(spoken_for(tables, drawn_curves(tables))))
    ours = nonempty(last[last["method"] == "pretrained"], "pre-trained networks")
    ours = ours.sort_values("pretraining_steps").iloc[-1]
    others = (
        nonempty(last[last["method"] == method], f"rows: {method}").iloc[0]
        for method in ("batch_norm", "vanilla")
    )
    return int(ours["depth"]), ours, *others


def say_ahead(tables: Tables) -> str:
    """Where the losses of the deepest networks end."""
    depth, ours, norm, _ = _ends(tables)
    return (
        f"At depth {depth} pre-trained networks (M = {ours['pretraining_steps']}) end at a training"
        f" loss of {ours['train_loss']:.2f}, batch norm at {norm['train_loss']:.2f}; vanilla"
        " networks do not learn"
    )


def say_both(tables: Tables) -> str:
    """That pre-training leads in accuracy and not in test loss, where it does."""
    depth, ours, norm, _ = _ends(tables)
    leads = ours["train_accuracy"] > norm["train_accuracy"]
    if not (leads and ours["test_loss"] > norm["test_loss"]):
        return ""
    return (
        f"At depth {depth} pre-training ends ahead in training accuracy"
        f" ({ours['train_accuracy']:.2f} to {norm['train_accuracy']:.2f}), but its test loss ends"
        f" above batch norm's ({ours['test_loss']:.1f} to {norm['test_loss']:.1f})"
    )


def say_learn(tables: Tables) -> str:
    """That pre-trained networks learn, and vanilla ones do not."""
    depth, ours, norm, vanilla = _ends(tables)
    return (
        f"Vanilla networks of depth {depth} learn when pre-trained (accuracy"
        f" {ours['train_accuracy']:.2f}, without {vanilla['train_accuracy']:.2f}; batch norm"
        f" {norm['train_accuracy']:.2f})"
    )


def say_slowed(tables: Tables) -> str:
    """The same, and that depth slows them down less."""
    return say_learn(tables) + "; depth slows them down less than batch norm"


PAPERS = {"method": ["vanilla", "pretrained", "batch_norm"]}
"""The curves of the paper's figures 4, 11 and 12."""


def draw_by_depth(tables: Tables, columns: tuple[str, ...]) -> tuple[Figure, pd.DataFrame]:
    """Figures 4, 11 and 12: one column of panels for each depth, one row for each measure."""
    drawn = spoken_for(tables, drawn_curves(tables))
    shown = nonempty(drawn[drawn["method"].isin(OF_THE_PAPER)], "method to show")
    depths = sorted(set(shown["depth"]))
    size = {"height": 1.35 + 2.85 * len(columns), "left": 0.95, "right": 1.25, "sharey": "row"}
    picture, rows = sheet(len(columns), len(depths), **size)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for row, column in zip(rows, columns, strict=True):
        limits = _limits(shown, column)
        for axes, depth in zip(row, depths, strict=True):
            word = "diverged" if axes is row[0] else ""
            rows_of_depth = shown[shown["depth"] == depth]
            ends = _through_training(axes, rows_of_depth, column, limits, word)
            if axes is row[0]:
                first = ends
            if axes is row[-1]:
                name_ends(axes, ends)
            panel(axes, next(letters), f"depth {depth}", "epoch")
        named = {text for _, text, _ in ends}
        for height, text, drawn_as in first:
            if text not in named:  # it diverges in the deepest networks
                away = {"xytext": (-4, 15), "textcoords": "offset points", "ha": "right"}
                drawn_as.name(row[0], row[0].get_xlim()[1], height, text, **away)
        row[0].set_ylabel(COLUMNS[column])
    return picture, drawn


SHORT = (25, 75)
"""M of figure 6."""


def one_angle(tables: Tables) -> tuple[float, int]:
    """The angle of a step that figure 6 has for every M: that which raises r most at the largest of
    SHORT, or of all M where there is none of these; and this M. Raises NoRows without any."""
    rows = tables["angles"]
    rows = rows[rows["chosen"] & (rows["method"] == "pretrained")]
    short = rows[rows["pretraining_steps"].isin(SHORT)]
    rows = nonempty(short if len(short) else rows, "rows: pretrained")
    longest = rows.loc[rows["pretraining_steps"].idxmax()]
    return float(longest["angle"]), int(longest["pretraining_steps"])


def of_figure_6(tables: Tables) -> pd.DataFrame:
    """Median and range by epoch, from before training on, of the curves that figure 6 has."""
    drawn = drawn_curves(tables)
    before = spread(starts(tables), ["depth", *VARIANT], ["rank_bound"])
    drawn = pd.concat([before.assign(epoch=0, train_loss=0.0), drawn], ignore_index=True)
    others = drawn["method"].isin(METHODS)
    try:
        angle, longest = one_angle(tables)
    except NoRows:
        return drawn[others]
    pretrained = (drawn["method"] == "pretrained") & (drawn["angle"] == angle)
    return drawn[others | (pretrained & (drawn["pretraining_steps"] <= longest))]


def say_rank_and_accuracy(tables: Tables) -> str:
    """Panels, lines and bands of figure 6, and the angle."""
    try:
        angle, longest = one_angle({name: deepest(table) for name, table in tables.items()})
        words = (
            f" Pre-trained networks take M steps of one angle, {angle:g}, which raises r most at M"
            f" = {longest} on separate replicates."
        )
    except (KeyError, NoRows):
        words = ""
    return (
        "The deepest networks. (a) Training accuracy and (b) r, the lower bound of the rank, of the"
        " last hidden layer, by epoch; markers: before training." + MARKS + words
    )


def say_rank_lost(tables: Tables) -> str:
    """Who learns, and what becomes of r."""
    drawn = of_figure_6(Present({name: deepest(table) for name, table in tables.items()}))
    ours = drawn[(drawn["method"] == "pretrained") & (drawn["pretraining_steps"] == SHORT[-1])]
    ours = nonempty(ours, f"rows: M = {SHORT[-1]}").sort_values("epoch")
    vanilla = nonempty(drawn[drawn["method"] == "vanilla"], "rows: vanilla").sort_values("epoch")
    learned, plain = ours["train_accuracy"].iloc[-1], vanilla["train_accuracy"].iloc[-1]
    r = ours["rank_bound"]
    if not r.iloc[-1] < r.iloc[0]:
        return ""
    return (
        f"Pre-trained for {SHORT[-1]} steps vanilla networks learn ({learned:.2f} in place of"
        f" {plain:.2f}); but SGD does not keep their rank: r falls from {r.iloc[0]:.0f} to"
        f" {r.iloc[-1]:.0f}"
    )


def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 6 for the deepest networks: accuracy and r through training."""
    tables = Present({name: deepest(table) for name, table in tables.items()})
    drawn = nonempty(of_figure_6(tables), "curve of figure 6")
    picture, ((left, right),) = sheet(gap=1.55, right=1.15)
    trained = drawn[drawn["epoch"] > 0]
    name_ends(left, _through_training(left, trained, "train_accuracy", (1.03, 0)))
    level(left, 1 / CLASSES)
    right.set_yscale("log")
    top = max(2.0, 1.2 * np.nanmax([drawn["rank_bound_high"].max(), 0]))
    ends = _through_training(right, drawn, "rank_bound", (top, 0.9))
    for variant in variants_in(drawn):
        rows = drawn[(drawn[VARIANT] == list(variant)).all(axis=1)].sort_values("epoch")
        look(*variant[:2]).line(right, rows["epoch"][:1], rows["rank_bound"][:1], zorder=4)
    right.set_xlim(-0.027 * max(2, drawn["epoch"].max()), None)
    ticks(right.yaxis, [2**power for power in range(10) if 2**power <= top])
    name_ends(right, ends)
    start = drawn.loc[drawn["epoch"] == 0, "rank_bound"].max()
    PLAIN.name(right, 0.05 * drawn["epoch"].max(), start, "before training", ha="left")
    panel(left, "a", "training accuracy", "epoch")
    panel(right, "b", COLUMNS["rank_bound"], "epoch")
    return picture, drawn


SHOWN = ("vanilla", "batch_norm", "batch_norm_asymmetric", "pretrained", *CONTROLS)
"""Of the plane; `whitened` is not the published method."""

SAME_SCALE = ("he", "unit_scale", "orthogonal")
"""Networks of the scale that pre-training gives, without the ascent."""


def rank_and_learning(tables: Tables) -> pd.DataFrame:
    """Of every network: r before training, and the training accuracy in the mean of all epochs; nan
    where it diverged in the first."""
    keys = ["depth", *VARIANT, "replicate"]
    going = tables["training"].groupby(keys)["train_loss"].count() > 0
    learned = through_training(tables).set_index(keys)["train_accuracy"].where(going)
    return starts(tables).set_index(keys)[["rank_bound"]].join(learned, how="inner").reset_index()


def _plane(axes: Axes, rows: pd.DataFrame) -> None:
    """Every network as a dot, the median of each variant as a marker."""
    top = max(4.0, 1.3 * np.nanmax([rows["rank_bound"].max(), 1]))
    axes.set(xscale="log", xlim=(0.9, top))
    place = rail(axes, 0.0, 1.03, "diverged", log=False)
    for variant, of in rows.groupby(VARIANT):
        drawn_as, middle = look(*variant[:2]), of[["rank_bound", "train_accuracy"]].median()
        drawn_as.each(axes, of["rank_bound"], place(of["train_accuracy"]), alpha=0.35)
        x, y = [middle["rank_bound"]], place([middle["train_accuracy"]])
        drawn_as.line(axes, x, y, linestyle="", markersize=8)
    ticks(axes.xaxis, [2**power for power in range(12) if 2**power <= top])
    ticks(axes.yaxis, [0, 0.25, 0.5, 0.75, 1])
    there = [M for M in PRETRAINED if M in set(rows["pretraining_steps"])]
    key = [(PRETRAINED[M], f"pre-trained, M = {M}") for M in there]
    key += [(CONTROLS[name], text) for name, text in KEY.items() if name in set(rows["method"])]
    for number, (drawn_as, text) in enumerate(key):
        place_of = {"transform": axes.transAxes}
        drawn_as.line(axes, [0.09], [0.68 - 0.06 * number], linestyle="", **place_of)
        drawn_as.name(axes, 0.12, 0.68 - 0.06 * number, text, ha="left", size=SMALL, **place_of)


KEY = {
    "pretrained_end_to_end": "end to end",
    "orthogonal": "orthogonal",
    "he": "He",
    "unit_scale": "unit scale",
}


def say_no_ascent(tables: Tables) -> str:
    """What networks of one scale learn, with the ascent on r and without."""
    rows = rank_and_learning(Present({name: deepest(table) for name, table in tables.items()}))
    found = rows.groupby(VARIANT)[["rank_bound", "train_accuracy"]].median().reset_index()
    found = found.dropna().sort_values("train_accuracy")
    control = nonempty(found[found["method"].isin(SAME_SCALE)], "networks of the scale").iloc[-1]
    best = nonempty(found[found["method"] == "pretrained"], "pre-trained networks").iloc[-1]
    return (
        f"At the same scale networks with r ≈ {control['rank_bound']:.0f} learn as well"
        f" ({control['train_accuracy']:.2f}) as the best pre-trained ones with r ="
        f" {best['rank_bound']:.0f} ({best['train_accuracy']:.2f}): the ascent adds nothing here"
    )


def draw_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Who learns from which r, and how controls of the same scale learn."""
    tables = Present({name: deepest(table) for name, table in tables.items()})
    rows = rank_and_learning(tables)
    rows = nonempty(rows[rows["method"].isin(SHOWN)], "method to show")
    picture, ((left, right),) = sheet(left=0.95, gap=0.6, right=1.3, ratios=[1.5, 1])
    _plane(left, rows)
    for variant, text, away in NAMED:
        of = rows[(rows[VARIANT] == list(variant)).all(axis=1)]
        middle = of[["rank_bound", "train_accuracy"]].median()
        if np.isfinite(middle).all():
            place = {"xytext": away, "textcoords": "offset points", "ha": "left"}
            look(*variant[:2]).name(left, *middle, text, **place)
    panel(left, "a", "training accuracy, mean of all epochs", "r before training")
    with or_empty(right):
        drawn = spoken_for(tables, drawn_curves(tables))
        longest = drawn["pretraining_steps"].max()
        curves = drawn[
            drawn["method"].isin(["he", "orthogonal", "batch_norm", "vanilla"])
            | ((drawn["method"] == "pretrained") & (drawn["pretraining_steps"] == longest))
        ]
        curves = nonempty(curves, "curve to show")
        name_ends(right, _through_training(right, curves, "train_accuracy", (1.03, 0)))
    panel(right, "b", "training accuracy", "epoch")
    return picture, spread(rows, ["depth", *VARIANT], ["rank_bound", "train_accuracy"])


NAMED = (
    (ORTHOGONAL, "no ascent", (9, 9)),
    (BATCH_NORM, "batch norm", (8, -9)),
    (VANILLA, "vanilla, asymmetric BN", (9, 0)),
)


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: figure 6, and how every variant starts and ends."""
    picture, _ = draw_rank_and_accuracy(tables)
    at_start = summarize(starts(tables), VARIANT, ["rank_bound", "root_mean_square"])
    ends = last_epoch(drawn_curves(tables))
    columns = [*VARIANT, "learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
    shown = at_start[[*VARIANT, "rank_bound", "root_mean_square"]]
    return picture, shown.merge(ends[columns], on=VARIANT)


HEADLINE = ["rank_bound", "root_mean_square", "train_accuracy", "test_accuracy"]

FIGURES = [
    Drawing(
        "rank-fig12",
        partial(draw_by_depth, columns=("train_loss", "train_accuracy", "test_loss")),
        whose=WHOSE,
        findings=[
            Finding(
                say_slowed, holds=["pretraining-lets-learn-with-more", "slows-down-less-with-more"]
            ),
            Finding(say_learn, holds=["pretraining-lets-learn-with-more"]),
        ],
        caption=say_by_depth,
        shows=PAPERS,
    ),
    Drawing(
        "rank-fig11",
        partial(draw_by_depth, columns=("train_accuracy", "test_loss")),
        whose=WHOSE,
        findings=[Finding(say_both, undecided=["ahead-of-batch-norm-with-more"])],
        caption=say_by_depth,
        shows=PAPERS,
    ),
    Drawing(
        "rank-fig4",
        partial(draw_by_depth, columns=("train_loss",)),
        whose=WHOSE,
        findings=[
            Finding(
                say_ahead,
                holds=["ahead-of-batch-norm-with-more", "pretraining-lets-learn-with-more"],
            )
        ],
        caption=say_by_depth,
        shows=PAPERS,
    ),
    Drawing(
        "rank-fig6",
        draw_rank_and_accuracy,
        whose=WHOSE,
        findings=[Finding(say_rank_lost, holds=["rank-is-raised", "pretraining-lets-learn"])],
        caption=say_rank_and_accuracy,
        shows={"method": ["vanilla", "pretrained", "batch_norm", "batch_norm_asymmetric"]},
    ),
    Drawing(
        "rank-pretraining",
        draw_pretraining,
        whose="ours, with our way of pre-training",
        findings=[
            Finding(
                say_no_ascent, fails=["rank-beyond-scale", "low-rank-does-not", "rank-and-learning"]
            )
        ],
        caption="The deepest networks. (a) Training accuracy, in the mean of all epochs, against r"
        " of the last hidden layer before training. Dots are networks, markers medians over the"
        " replicates, one for each length M and angle of pre-training: none is chosen; grey and"
        " hollow: the same scale without ascent. Networks that diverge in the first epoch lie on"
        " the rail. (b) Training accuracy by epoch, of the pre-trained at the angle that raises r"
        " most; lines are medians, bands the range of the replicates.",
        shows={
            "method": [
                "vanilla",
                "he",
                "unit_scale",
                "pretrained",
                "pretrained_end_to_end",
                "orthogonal",
                "batch_norm",
                "batch_norm_asymmetric",
            ]
        },
    ),
]
