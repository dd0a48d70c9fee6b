"""Draw figures 5, 7, 10 and 13 of study `breaking_bn`, and the preview of one run."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.breaking_bn.tables import MEASURES as BEFORE
from runner.papers.batch_norm_rank.breaking_bn.tables import chosen_rates, paths
from runner.papers.batch_norm_rank.learning import END_OF_GRID, LITTLE, chance_level
from runner.papers.batch_norm_rank.looks import METHODS, named
from runner.papers.batch_norm_rank.names import MEASURES, NAMES
from runner.results.curves import End, curves, with_heights
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.evidence import ERROR
from runner.results.labels import names_in
from runner.results.looks import name_of
from runner.results.rows import Tables, last_epoch, nonempty, select, spread
from runner.results.style import PLAIN, QUIET, key, level, name_ends, panel, sheet, ticks

COLUMNS = ["train_accuracy", "test_accuracy", "rank", "rank_bound", "gradient_alignment"]

OF_LAST = {"rank": "rank, last hidden layer", "rank_bound": "r, lower bound of the rank"}
"""Panel titles for measures whose short name is not enough."""

CENTRED = ["batch_norm", "batch_norm_no_mean", "batch_norm_asymmetric"]
"""The methods in figures 5, 7 and 13."""

NEAR_CHANCE = 1.5
"""Accuracies below this multiple of chance level count as near it."""

NAMED = partial(name_of, NAMES["method"])

SAME = 0.02
"""Lines whose ends differ by at most this alignment have one name."""


def by_epoch(tables: Tables) -> pd.DataFrame:
    """Return median and range of every measure in COLUMNS, a row for each method and epoch.

    All numbers of a method are from its chosen learning rate. The column `end_of_grid` is
    `smallest` or `largest` if this learning rate is an end of its grid, otherwise empty. Both are
    missing for a method of which several seeds chose different learning rates.
    """
    curves = spread(paths(tables), ["method", "epoch", "steps"], COLUMNS)
    rates = chosen_rates(tables).drop_duplicates("method", keep=False)
    curves = curves.merge(rates, how="left")
    curves.insert(1, "learning_rate", curves.pop("learning_rate"))
    return curves


def _lines(
    axes: Axes,
    letter: str,
    drawn: pd.DataFrame,
    column: str,
    chance: float,
    x: str = "epoch",
    text: str = "chance",
) -> list[End]:
    """Draw median and range of each method; return the ends of the lines.

    x: the column on the x-axis, `epoch` or `steps`. chance: the accuracy at chance level, drawn as
    a line with the label `text`.
    """
    ends = curves(axes, drawn.dropna(subset=column), x, column, "method", NAMED,
                  replicates="range", first=METHODS, marker="")  # fmt: skip
    highest = drawn[f"{column}_high"]
    top = np.nanmax([highest[np.isfinite(highest)].max(), chance])
    top = max(top, 1.0) if "accuracy" in column else top
    axes.set(xlim=(0, 1.03 * max(1, drawn[x].max())), ylim=(0, 1.05 * top))
    axes.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    axes.xaxis.set_major_formatter("{x:,g}")
    if column == "rank" and np.log2(top) % 1 == 0:
        ticks(axes.yaxis, np.linspace(0, top, 5))
    if column == "train_accuracy":
        level(axes, chance, text, above=False)
    title = OF_LAST.get(column, MEASURES[column])
    panel(axes, letter, title, "epoch" if x == "epoch" else "iteration")
    return ends[::-1]  # from below, if lines end together


def draw(
    tables: Tables, columns: tuple[str, ...], x: str = "epoch", methods: list[str] = CENTRED
) -> tuple[Figure, pd.DataFrame]:
    """Draw a panel for each measure and in it a line for each method; return picture and numbers.

    Lines are medians, bands the range over replicates. columns: the measures on the y-axes, at most
    four. x: the column on the x-axis, `epoch` or `steps`. methods: the drawn methods. The returned
    table is the result of `by_epoch`, with all methods. Raises NoRows if none of the drawn methods
    was run.
    """
    drawn = by_epoch(tables)
    shown = nonempty(drawn[drawn["method"].isin(methods)], "curve of the figure")
    rows = -(-len(columns) // 2)
    picture, panels = sheet(rows, 2, height=4.4 * rows, gap=1.6, right=1.2)
    for axes, letter, column in zip(panels.flat, "abcd", columns, strict=False):
        ends = _lines(axes, letter, shown, column, chance_level(tables), x)
        name_ends(axes, with_heights(ends) if "accuracy" in column else ends)
    return picture, drawn


def draw_centring(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 7 with `draw`: accuracy and r by iteration, with and without mean subtraction.

    If accuracies differ, but the networks are too few to refute equality, a note says why.
    """
    picture, drawn = draw(tables, ("train_accuracy", "rank_bound"), x="steps")
    ends = last_epoch(tables["training"]).groupby("method")["train_accuracy"].median()
    n = tables["training"]["replicate"].nunique()
    if 2 * 0.5**n > ERROR and np.ptp(ends.reindex(CENTRED[:2])) > LITTLE:
        words = f"not decided: for {n} networks\nchance alone gives one sign\nwith probability"
        QUIET.note(picture.axes[0], 0.2, 0.28, f"{words}\n1/{2 ** (n - 1)} > {ERROR:g}")
    return picture, drawn


def draw_vanishing(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 10 in three panels with the epoch on the x-axis; return picture and numbers.

    The panels show the training accuracy on a logarithmic axis, the accuracy of plain networks near
    chance level, and the alignment of gradients. The returned table is the result of `by_epoch`.
    """
    drawn, training, chance = by_epoch(tables), tables["training"], chance_level(tables)
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.75, right=1.15, sharex=True)
    _lines(left, "a", drawn, "train_accuracy", chance, text="")
    if "vanilla_100x" in set(drawn["method"]):
        key(left, {"plain, 100 ×\nlearning rate": METHODS["vanilla_100x"]}, loc=(0.02, 0.34))
    without = drawn[drawn["method"] != "batch_norm"]["train_accuracy_high"]
    if without.max() < NEAR_CHANCE * chance:
        QUIET.note(left, 0.04, 0.08, "without batch norm\nall are at chance")
    left.set(yscale="log", ylim=(0.05, 1.05))
    norm = drawn[drawn["method"] == "batch_norm"].dropna(subset="train_accuracy")
    if len(norm):
        at, x, y = 0.7 * norm["epoch"].max(), norm["epoch"], norm["train_accuracy"]
        name = NAMES["method"]["batch_norm"].drawn
        METHODS["batch_norm"].name_at(left, x, y.to_numpy(), name, at, (0, -25))
    ticks(left.yaxis, [0.1, 0.2, 0.5, 1])
    with or_empty(middle):
        names = {}
        for method, text, wide in (
            ("vanilla", "images", {"marker": "", "linewidth": 4.4}),
            ("vanilla_random_pixels", "random pixels", {}),
        ):
            look = METHODS[method]
            for _, rows in select(training, method=method).groupby("replicate"):
                look.line(middle, rows["epoch"], rows["train_accuracy"], **wide)
            names[text] = replace(look, marker="", width=wide.get("linewidth", look.width))
        key(middle, names, title="a line: a network on", loc="upper left")
        low, high = middle.get_ylim()
        middle.set_ylim(top=high + 0.4 * (high - low))
        middle.yaxis.get_major_locator().set_params(nbins=5)
        middle.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    panel(middle, "b", "plain, enlarged", "epoch")
    name_ends(right, _together(_lines(right, "c", drawn, "gradient_alignment", chance)))
    return picture, drawn


def _together(ends: list[End]) -> list[End]:
    """Return the ends of the lines, with one name for all plain networks.

    The names stay as they are if the lines of plain networks end at different heights.
    """
    plain = [end for end in ends if end[1].startswith(NAMES["method"]["vanilla"].drawn)]
    heights = [height for height, _, _ in plain]
    if len(plain) < 2 or np.ptp(heights) > SAME:
        return ends
    words = f"all plain\nnetworks: {np.mean(heights):.1f}"
    return [(heights[0], words, PLAIN), *(end for end in ends if end not in plain)]


def with_rates(panels: str, tables: Tables) -> str:
    """Return a caption: sentences about panels and lines, and each method's learning rate.

    A learning rate at an end of its grid is marked. panels: sentences about the panels and lines.
    """
    rates = [
        f"{named(method)} {rate:g}{END_OF_GRID[end]}"
        for method, rate, end in chosen_rates(tables).itertuples(index=False, name=None)
    ]
    return f"{panels} Learning rates: {'; '.join(rates)}."


def _network(tables: Tables) -> str:
    name = tables["training"]["architecture"].iloc[0]
    return names_in(__name__).value("architecture", name)


def _end(tables: Tables, method: str, column: str = "train_accuracy") -> float:
    """Return the median of a column over a method's replicates at the last epoch.

    Raises NoRows if the method was not run.
    """
    return select(by_epoch(tables), method=method)[column].iloc[-1]


def say_broken(tables: Tables) -> str:
    """Return the headline of figures 5 and 13: an asymmetric initialization breaks batch norm.

    Its numbers are the median training accuracies at the last epoch, from the asymmetric and from
    the usual initialization. Raises NoRows if a method was not run.
    """
    broken, usual = _end(tables, "batch_norm_asymmetric"), _end(tables, "batch_norm")
    return (
        f"An asymmetric initialization breaks batch norm: {_network(tables)} stays near chance"
        f" level (training accuracy {broken:.2f} instead of {usual:.2f})"
    )


def say_centring(tables: Tables, verdict: str) -> str:
    """Return the headline of figure 7: the accuracy without mean subtraction in batch norm.

    Its numbers are median training accuracies at the last epoch. verdict: the verdict of claim
    `centring-redundant`, "holds" or "undecided". Raises NoRows if a method was not run.
    """
    without, norm = _end(tables, "batch_norm_no_mean"), _end(tables, "batch_norm")
    if verdict == "holds":
        return f"Without mean subtraction, batch norm learns equally well (accuracy {without:.2f})"
    n = tables["training"]["replicate"].nunique()
    then = "whether that is equality is undecided"
    if 2 * 0.5**n > ERROR:  # both sides are tested: no numbers could refute it
        then = f"{n} networks are too few to refute equality"
    return (
        f"{_network(tables)} ends at accuracy {without:.2f} without mean subtraction, {norm:.2f}"
        f" with it; {then}"
    )


def say_parallel(tables: Tables) -> str:
    """Return the headline of figure 10: plain networks do not learn, and gradients are parallel."""
    return (
        f"From PyTorch's initialization {_network(tables)} does not learn without batch norm, and"
        " the gradients of all images are parallel"
    )


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: training accuracy, rank, r and gradient alignment by epoch.

    Returns the picture and a table with a row for each method. The table has medians over
    replicates before training (columns `_before`) and at the last epoch.
    """
    columns = ("train_accuracy", "rank", "rank_bound", "gradient_alignment")
    picture, drawn = draw(tables, columns, methods=list(METHODS))
    before = drawn.loc[drawn["epoch"] == 0, ["method", *BEFORE]]
    shown = ["method", "train_loss", "train_accuracy", "test_accuracy", *BEFORE]
    after = last_epoch(tables["training"])[shown].groupby("method", sort=False).median()
    return picture, before.merge(after.reset_index(), on="method", suffixes=("_before", ""))


TITLE = "accuracy, rank and gradients by epoch"

CAPTION = (
    "Panels show the training accuracy, the rank of the last hidden layer, its lower bound r, and"
    " the alignment of different images' gradients. Lines are medians, bands the range of the"
    " replicates."
)
"""Title and caption of the preview."""

HEADLINE = ["training.rank", "training.rank_bound", "training.gradient_alignment", "test_accuracy"]

FIGURE_5 = Drawing(
    "rank-fig5",
    partial(draw, columns=("train_accuracy", "rank")),
    whose="as in the paper",
    findings=[
        Finding(say_broken, holds=["asymmetric-start-lowers-rank", "asymmetric-start-cannot-fit"])
    ],
    marks="lines: medians, bands: range",
    caption=partial(
        with_rates,
        "(a) shows the training accuracy and (b) the rank of the last hidden layer, by epoch. Lines"
        " are medians, bands the range.",
    ),
    shows={"method": CENTRED},
)

FIGURES = [
    replace(FIGURE_5, figure="rank-fig13"),
    Drawing(
        "rank-fig7",
        draw_centring,
        whose="as in the paper",
        findings=[
            Finding(partial(say_centring, verdict=verdict), when={"centring-redundant": verdict})
            for verdict in ("holds", "undecided")
        ],
        marks="lines: medians, bands: range",
        caption=partial(
            with_rates,
            "(a) shows the training accuracy and (b) r, the lower bound of the rank of the last"
            " hidden layer, by iteration of SGD. Lines are medians, bands the range.",
        ),
        shows={"method": ["batch_norm", "batch_norm_no_mean"]},
    ),
    FIGURE_5,
    Drawing(
        "rank-fig10",
        draw_vanishing,
        whose="as in the paper",
        findings=[
            Finding(
                say_parallel,
                holds=["gradients-align", "vanilla-untrainable"],
            )
        ],
        marks="a, c: medians and range",
        caption=partial(
            with_rates,
            "(a) shows the training accuracy, (b) that of each plain network, and (c) the alignment"
            " of different images' gradients, their mean absolute cosine. In (a, c), lines are"
            " medians and bands the range.",
        ),
        shows={"method": ["batch_norm", "vanilla", "vanilla_100x", "vanilla_random_pixels"]},
    ),
]
