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
from runner.results.style import (
    GREY,
    QUIET,
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
    "rank_bound": "r, last hidden layer",
    "mean_rank_bound": "r, harmonic mean over layers",
}

PAPERS = {"method": ["vanilla", "pretrained", "batch_norm"]}
"""The networks of figures 4, 11 and 12."""

LOST = 2.5
"""A training loss above a guess, ln 10, that a panel still shows."""


def curves(tables: Tables) -> pd.DataFrame:
    """Median and range of every measure by depth, network and epoch; of losses that are not finite
    the median counts, and the range does not."""
    rows = at_chosen_rates(tables)
    keys = ["protocol", "depth", *VARIANT, "learning_rate", "epoch"]
    found = spread(rows, keys, list(COLUMNS))
    finite = spread(rows.replace(np.inf, np.nan), keys, list(COLUMNS))
    ends = [name for name in found if name.endswith(("_low", "_high"))]
    return found.assign(**{name: finite[name] for name in ends})


NAMES = {
    "vanilla": "vanilla",
    "pretrained": "pre-trained",
    "batch_norm": "batch norm",
    "batch_norm_asymmetric": "asymmetric\nbatch norm",
}
"""Of the lines of the paper's figures."""


def _lines(
    axes: Axes, drawn: pd.DataFrame, column: str, top: float = np.inf, lost: float = np.nan
) -> list:
    """A line and a band for each network. Gives back where they end: height, name, look.

    top: the end of the scale; lost: the height of what is not finite.
    """
    ends = []
    several = drawn.loc[drawn["method"] == "pretrained", "pretraining_steps"].nunique() > 1
    order = {"batch_norm": 2, "batch_norm_asymmetric": 1, "vanilla": 0}
    groups = drawn.groupby(VARIANT, sort=False)
    for (method, steps), rows in sorted(groups, key=lambda of: order.get(of[0][0], 3)):
        rows, drawn_as = rows.sort_values("epoch"), look(method, steps)
        shown = rows[np.isfinite(rows[f"{column}_high"])]
        ends_of = (shown[f"{column}{end}"].clip(upper=top) for end in ("_low", "_high"))
        drawn_as.band(axes, shown["epoch"], *ends_of)
        inside = rows[column].where(rows[column] <= top)
        heights = inside.where(np.isfinite(rows[column]), lost).to_numpy()
        drawn_as.line(axes, rows["epoch"], heights, marker="")
        text = f"M = {steps}" if several and steps else NAMES.get(method, method)
        ends.append((float(heights[-1]), text, drawn_as))
    return ends


def _epochs(axes: Axes, last: int) -> None:
    axes.set_xlim(0, max(1, last))
    ticks(axes.xaxis, [0, last // 2, last] if last >= 4 else range(last + 1))


def draw_by_depth(tables: Tables, columns: tuple[str, ...]) -> tuple[Figure, pd.DataFrame]:
    """Figures 4, 11 and 12: a column of panels for each depth, a row for each measure."""
    drawn = curves(tables)
    depths = sorted(set(drawn["depth"]))
    size = {"height": 1.35 + 2.85 * len(columns), "left": 0.95, "right": 1.2, "sharey": "row"}
    picture, rows = sheet(len(columns), len(depths), **size)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    for row, column in zip(rows, columns, strict=True):
        for axes, depth in zip(row, depths, strict=True):
            of_depth = drawn[(drawn["depth"] == depth) & (drawn["epoch"] > 0)]
            top, lost = np.inf, np.nan
            if "loss" in column:
                top = LOST if column == "train_loss" else _top(drawn, column)
                axes.set_ylim(0, top)
                if not np.isfinite(drawn.loc[drawn["epoch"] > 0, column]).all():
                    word = "diverged" if axes is row[0] else ""
                    lost = float(rail(axes, top, 0, word, log=False)([np.nan])[0])
            else:
                axes.set_ylim(0, 1.03)
                ticks(axes.yaxis, [0, 0.25, 0.5, 0.75, 1])
            _epochs(axes, int(drawn["epoch"].max()))
            ends = _lines(axes, of_depth, column, top, lost)
            if axes is row[-1]:
                name_ends(axes, ends)
            panel(axes, next(letters), f"depth {depth}", "epoch")
        row[0].set_ylabel(COLUMNS[column])
    return picture, drawn


def _top(drawn: pd.DataFrame, column: str) -> float:
    """The end of the scale of a test loss: at most twice a guess."""
    shown = drawn.loc[(drawn["epoch"] > 0) & np.isfinite(drawn[column]), column]
    guess = np.log(CLASSES)
    return float(np.ceil(np.clip(shown.max() if len(shown) else guess, guess, 2 * guess)))


def rates(tables: Tables) -> str:
    """The rate of each network, where several were tried."""
    if tables["training"].groupby(["run", *VARIANT])["learning_rate"].nunique().max() < 2:
        return ""
    rows = at_chosen_rates(tables).drop_duplicates(["depth", *VARIANT])
    words = []
    for method, of in rows.groupby("method", sort=False):
        each = of.sort_values("depth")
        several = each["learning_rate"].nunique() > 1
        chosen = [
            f"{row.learning_rate:g}" + f" at depth {row.depth}" * several
            for row in each.itertuples()
        ]
        words.append(f"{NAMES.get(method, method)} {', '.join(dict.fromkeys(chosen))}")
    return (
        " Of the rates of the authors' scripts each network has that with the lowest training loss"
        f" in the last epoch, on other replicates ({'; '.join(words)})."
    )


def say_by_depth(tables: Tables) -> str:
    """Panels, lines and bands of figures 4, 11 and 12."""
    return (
        "A column for each depth, by epoch of training. Lines are medians over the replicates,"
        " bands their range; larger losses are cut off, and networks that diverge lie on the rail."
        + rates(tables)
    )


def middle(rows: pd.DataFrame, network: str, column: str) -> float:
    """The median of a column over the deepest networks of a name, by the authors' protocol."""
    return float(named(of_protocol(deepest(rows), "authors"), network)[column].median())


def say_loss(tables: Tables, column: str = "train_loss") -> str:
    """Where the deepest networks end."""
    rows = last_epochs(tables)
    depth = int(deepest(rows)["depth"].iloc[0])
    ours, norm, plain = (
        middle(rows, name, column) for name in ("pretrained", "batch_norm", "vanilla")
    )
    if not np.isfinite([ours, norm, plain]).all():
        return ""
    return (
        f"At depth {depth} pre-trained networks end at a {COLUMNS[column]} of {ours:.2f}, batch"
        f" norm at {norm:.2f}, vanilla networks at {plain:.2f}"
    )


def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 6: accuracy and r through training."""
    drawn = deepest(curves(tables))
    picture, ((left, right),) = sheet(gap=1.55, right=1.15)
    left.set_ylim(0, 1.03)
    ticks(left.yaxis, [0, 0.25, 0.5, 0.75, 1])
    level(left, 1 / CLASSES)
    top = max(2.0, 1.2 * np.nanmax([drawn["mean_rank_bound_high"].max(), 0]))
    right.set(yscale="log", ylim=(0.9, top))
    ticks(right.yaxis, [2**power for power in range(10) if 2**power <= top])
    for axes, column in ((left, "train_accuracy"), (right, "mean_rank_bound")):
        _epochs(axes, int(drawn["epoch"].max()))
        name_ends(axes, _lines(axes, drawn, column))
    panel(left, "a", COLUMNS["train_accuracy"], "epoch")
    panel(right, "b", COLUMNS["mean_rank_bound"], "epoch")
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
    """The judged networks, with r before and what they learn in the last epoch."""
    keys = ["protocol", *VARIANT, "replicate"]
    start = before_training(tables).set_index(keys)[["rank_bound"]]
    end = last_epochs(tables).set_index(keys)[["train_accuracy", "train_loss", "learning_rate"]]
    return end.join(start).reset_index()


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
    """A line for each way to start: r before training, and what is learned."""
    rows = nonempty(ordered(tables), "networks")
    variants = [
        (protocol, *variant)
        for protocol, method in ROWS
        for variant in sorted(
            rows[(rows["protocol"] == protocol) & (rows["method"] == method)][VARIANT]
            .drop_duplicates()
            .itertuples(index=False, name=None)
        )
    ]
    nonempty(pd.Series(variants, dtype=object), "networks")
    picture, ((left, right),) = sheet(
        height=0.95 + 0.31 * len(variants), left=2.35, gap=0.35, right=0.35, sharey=True
    )
    top = max(4.0, 1.4 * np.nanmax([rows["rank_bound"].max(), 1]))
    left.set(xscale="log", xlim=(0.85, top), ylim=(len(variants) - 0.4, -0.6))
    right.set_xlim(0, 1.03)
    ticks(left.xaxis, [2**power for power in range(10) if 2**power <= top])
    ticks(right.xaxis, [0, 0.25, 0.5, 0.75, 1])
    names = []
    for y, (protocol, method, steps) in enumerate(variants):
        of = rows[(rows["protocol"] == protocol) & (rows[VARIANT] == [method, steps]).all(axis=1)]
        drawn_as = look(method, steps)
        for axes, column in ((left, "rank_bound"), (right, "train_accuracy")):
            axes.axhline(y, color=GREY, linewidth=0.4, zorder=0)
            drawn_as.each(axes, of[column], np.full(len(of), y))
            drawn_as.line(axes, [of[column].median()], [y], linestyle="", markersize=8)
        names.append((ROWS[protocol, method].format(M=steps), drawn_as))
    ticks(left.yaxis, range(len(variants)), [text for text, _ in names])
    for label, (_, drawn_as) in zip(left.get_yticklabels(), names, strict=True):
        label.set_color(drawn_as.ink)
    for axes in (left, right):
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
    right.axvline(1 / CLASSES, color=GREY, linestyle=QUIET.dashes, linewidth=QUIET.width, zorder=1)
    panel(left, "a", "r before training", "last hidden layer")
    panel(right, "b", "training accuracy", "in the last epoch")
    numbers = spread(rows, ["protocol", *VARIANT], ["rank_bound", "train_accuracy", "train_loss"])
    return picture, numbers


def say_scale(tables: Tables, adds: str) -> str:
    """Whether rank adds anything to the scale of pre-training, and what another scale does."""
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


SCALE = "rank-beyond-scale"
ADDS, NOTHING, OPEN = "rank helps", "rank adds nothing", "it is open whether rank helps"


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: figure 6, and how every network starts and ends."""
    picture, _ = draw_rank_and_accuracy(tables)
    rows = ordered(tables)
    shown = rows.groupby([*VARIANT, "learning_rate"], sort=False).median(numeric_only=True)
    return picture, shown.drop(columns="replicate").reset_index()


HEADLINE = ["rank_bound", "train_accuracy", "test_accuracy"]

WHOSE = "the authors' protocol"


def whatever(claim: str, says: Callable[[Tables], str]) -> list[Finding]:
    """A sentence of numbers, which stands however the claim on them comes out."""
    return [Finding(says, **{verdict: [claim]}) for verdict in ("holds", "fails", "undecided")]


FIGURES = [
    Drawing(
        "rank-fig12",
        partial(draw_by_depth, columns=("train_loss", "train_accuracy", "test_loss")),
        whose=WHOSE,
        findings=whatever("faster-than-batch-norm", say_loss),
        caption=say_by_depth,
        shows=PAPERS,
    ),
    Drawing(
        "rank-fig11",
        partial(draw_by_depth, columns=("train_accuracy", "test_loss")),
        whose=WHOSE,
        findings=whatever("better-accuracy", partial(say_loss, column="train_accuracy")),
        caption=say_by_depth,
        shows=PAPERS,
    ),
    Drawing(
        "rank-fig4",
        partial(draw_by_depth, columns=("train_loss",)),
        whose=WHOSE,
        findings=whatever("faster-than-batch-norm", say_loss),
        caption=say_by_depth,
        shows=PAPERS,
    ),
    Drawing(
        "rank-fig6",
        draw_rank_and_accuracy,
        whose=WHOSE,
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
        whose="ours, beside the authors' protocol",
        findings=[
            Finding(partial(say_scale, adds=ADDS), holds=[SCALE]),
            Finding(partial(say_scale, adds=NOTHING), fails=[SCALE]),
            Finding(partial(say_scale, adds=OPEN), undecided=[SCALE]),
        ],
        caption="A line for each way to start. (a) r of the last hidden layer before training and"
        " (b) training accuracy in the last epoch; dots are replicates, markers their medians."
        " Hollow: untouched weights and other starts without an ascent on r. Scale alone: each"
        " layer has the root mean square that it has in the pre-trained network. Dotted: a guess.",
        shows={"method": [method for _, method in ROWS]},
    ),
]
