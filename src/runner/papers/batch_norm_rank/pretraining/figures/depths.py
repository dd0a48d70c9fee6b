"""Draw figures 4, 11 and 12: pre-trained networks against others, by epoch and depth."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    ENOUGH,
    LONG,
    VARIANT,
    before_training,
    deepest,
    last_epochs,
    lead,
    named,
    of_protocol,
    through_training,
)
from runner.results.curves import End
from runner.results.drawing import Drawing, Finding
from runner.results.looks import PLAIN
from runner.results.rows import Tables
from runner.results.style import SHADE, name_ends, panel, sheet, ticks

EARLY = 0.03
"""Fraction of the training whose curves may leave the panels at the top or the bottom."""


def draw_by_depth(tables: Tables, columns: Sequence[str]) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 4, 11 or 12: medians by epoch, in a row of panels for each measure in `columns`.

    The first row is the highest. The first panel of a row has the deepest networks and their range;
    the small panels have the other depths. The numbers at the lines are medians of the networks: at
    the last epoch and, in the first panel, of the mean over the epochs, which has a mark of its
    own. Returns the picture and the table of `by_epoch`.
    """
    drawn, letters = by_epoch(tables), iter(ascii_lowercase)
    trained, depths = drawn[drawn["epoch"] > 0], sorted(set(drawn["depth"]), reverse=True)
    later = trained[trained["epoch"] > EARLY * trained["epoch"].max()]
    heights = [TALL, *[LOW] * (len(columns) - 1)]
    size = {"height": 1.07 + sum(heights) + BETWEEN * (len(columns) - 1), "between": BETWEEN}
    size |= {"left": 0.65, "right": 0.2, "gap": 0.25}
    ratios = (2.4, *[1.0] * (len(depths) - 1))
    picture, panels = sheet(
        len(columns), len(ratios), **size, ratios=ratios, names={0: 1.65}, heights=heights,
        sharey="row",
    )  # fmt: skip
    for row, column in zip(panels, columns, strict=True):
        place_of = _scale([*row], _in_view(later, column), column)
        for axes, depth in zip(row, depths, strict=True):
            group, is_first = trained[trained["depth"] == depth], axes is row[0]
            title = f"{f'{MEASURES[column]}, ' if is_first else ''}depth {depth}"
            panel(axes, next(letters), title, "epoch" if column == columns[-1] else "")
            ends = lines_by_epoch(axes, group, column, place_of, bands=is_first, wide=True)
            if is_first and column == columns[0]:
                ends = _draw_means(axes, tables, column, place_of) or ends
            if is_first:
                ends = _with_numbers(ends, tables, column, column == columns[0])
                low = (axes.get_ylim()[0], "r: lower bound of\nthe rank", PLAIN)
                name_ends(axes, [*ends, low] if column == columns[0] else ends)
    return picture, drawn


TALL, LOW, BETWEEN = 3.1, 1.5, 1.0
"""Heights of the first row and of the other rows, and room between them, in inches."""


def _in_view(later: pd.DataFrame, column: str) -> pd.Series:
    """Return the values that a row of panels shows: all medians, and the range of the deepest."""
    ranges = deepest(later)[[f"{column}_low", f"{column}_high"]].stack()
    return pd.concat([later[column], ranges[ranges <= MOST]])


def _scale(row: Sequence[Axes], values: pd.Series, column: str) -> Callable:
    """Set the axes of a row of panels for the values; return the function from value to height."""
    if "loss" in column:
        return scale_losses(row, values)
    low, top = values.min(), values.max()
    for axes in row:
        axes.set_ylim(low - 0.05 * (top - low), min(1.0, top) + 0.05 * (top - low) + 1e-3)
    return np.asarray


def _draw_means(axes: Axes, tables: Tables, column: str, place_of: Callable) -> list[End]:
    """Draw the means over the epochs of the deepest networks as strokes, right of the epochs.

    Returns the heights of the strokes with the names and looks of the networks.
    """
    ends: list[End] = []
    rows = deepest(through_training(tables))
    last = rows["epochs"].max()
    axes.axvspan(1.08 * last, 1.28 * last, color=SHADE, linewidth=0, zorder=0)
    axes.set_xlim(0, 1.28 * last)
    for kind, mean in rows.groupby(VARIANT)[column].median().items():
        x, y = [1.11 * last, 1.25 * last], place_of([mean] * 2)
        look(*kind).line(axes, x, y, marker="", linestyle="-", linewidth=2.4)
        ends.append((float(y[-1]), NAMES["method"][kind[0]].drawn, look(*kind)))
    shown = [tick for tick in axes.get_xticks() if tick <= last]
    ticks(axes.xaxis, shown)
    axes.set_xlabel("epoch; grey strip: mean over epochs")
    return [end for end in ends if np.isfinite(end[0])]


def _with_numbers(ends: Sequence[End], tables: Tables, column: str, is_first: bool) -> list[End]:
    """Return the ends of lines, each name with medians over the deepest networks.

    They are the measure at the last epoch and, in the first row, its mean over the epochs, and rank
    and r of the last hidden layer before training. Diverged networks have no numbers.
    """
    start = deepest(before_training(tables)).groupby("method")[["rank", "rank_bound"]].median()
    begins = {
        method: f"from rank {rank:.0f}, r {r:.1f},\n" if is_first else ""
        for method, rank, r in start.itertuples()
    }
    medians = [
        deepest(rows).groupby("method")[column].median()
        for rows in (last_epochs(tables), through_training(tables))
    ]
    numbers = {
        NAMES["method"][method].drawn: f":\n{begins[method]}end {last:.2f}"
        + f", mean {mean:.2f}" * is_first
        for method, last, mean in zip(medians[0].index, *medians, strict=True)
        if np.isfinite([last, mean]).all()
    }
    return [(y, text + numbers.get(text, ""), drawn_as) for y, text, drawn_as in ends]


def caption_by_depth(tables: Tables) -> str:
    """Return the caption of figures 4, 11 and 12: panels, lines, bands, learning rates."""
    return (
        "Each row shows one measure by epoch, with the deepest networks in the first panel. Lines"
        " are medians, the band is the range. The written numbers are medians over the networks:"
        " rank and r of the last hidden layer before training, the measure at the last epoch (end),"
        " and its mean over all epochs, which a stroke marks in (a). The first epochs may be"
        " outside the panels. The figure's tables have the differences between networks of equal"
        " random draws."
        f" Learning rate: {say_rates(tables)}."
    )


def say_unjudged(tables: Tables, column: str) -> str:
    """Return the headline: last values of the deepest networks, if training is too short to judge.

    The values are medians of `column`, with and without pre-training. The headline is empty if
    training has LONG epochs or more, if pre-training has fewer than ENOUGH minibatches, or a median
    is not finite. Raises NoRows if a network was not run.
    """
    rows = last_epochs(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    epochs, what = rows["epoch"].max(), MEASURES[column]
    is_short = rows["pretraining_steps"].max() < ENOUGH
    if epochs >= LONG or is_short or not np.isfinite([ours, plain]).all():
        return ""
    return (
        f"At depth {rows['depth'].max()} pre-trained networks end at {what} {ours:.2f}, plain at"
        f" {plain:.2f}; {epochs} epochs are too few to judge"
    )


def say_helps(tables: Tables, column: str, helps: str, beats: str) -> str:
    """Return the headline: whether pre-training helps plain networks and beats batch norm.

    Its numbers are the medians of `column` at the last epoch and the largest depth, with and
    without pre-training. helps, beats: the parts of the sentence, values of HELPS and BEATS. If
    plain networks, too, end better than batch norm in every replicate, the second part says "both
    end ahead of batch norm".

    The headline is empty if pre-training is shorter than ENOUGH minibatches, or a median is not
    finite. Raises NoRows if a network was not run.
    """
    rows = last_epochs(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    if rows["pretraining_steps"].max() < ENOUGH or not np.isfinite([ours, plain]).all():
        return ""
    if beats == BEATS["holds"] and _ahead_in_all(rows, "vanilla", "batch_norm", column):
        beats = "both end ahead of batch norm"
    depth, what = rows["depth"].max(), MEASURES[column]
    return f"At depth {depth} {helps} ({what} {ours:.2f} against {plain:.2f}); {beats}"


def _ahead_in_all(rows: pd.DataFrame, network: str, than: str, column: str) -> bool:
    """Return whether the deepest networks of one name are better than those of another in every
    replicate.

    rows: one row for each network. network, than: the two names. column: the compared measure.
    """
    of_authors = of_protocol(deepest(rows), "authors")
    values, baseline = (
        named(of_authors, name).set_index("replicate")[column] for name in (network, than)
    )
    return bool((lead(values, baseline, column) > 0).all())


def say_slower(tables: Tables, column: str) -> str:
    """Return the headline that short pre-training slows down deep networks, with two medians.

    The numbers are medians of `column`, averaged over the epochs, with and without pre-training.
    The headline is empty if pre-training has at least ENOUGH minibatches. The headline is also
    empty unless the pre-trained network is worse in every replicate. Raises NoRows if a network was
    not run.
    """
    rows = through_training(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    M = rows["pretraining_steps"].max()
    if M >= ENOUGH or not _ahead_in_all(rows, "vanilla", "pretrained", column):
        return ""
    return (
        f"At depth {rows['depth'].max()} networks pre-trained on {M} minibatches learn more slowly"
        f" than plain ones (mean {MEASURES[column]} {ours:.2f} against {plain:.2f})"
    )


def say_against_batch_norm(tables: Tables, column: str, words: str) -> str:
    """Return the headline: how the deepest pre-trained networks compare with batch norm.

    column: the compared measure, averaged over the epochs. words: the comparison, in which
    `{numbers}` is replaced by both medians. The headline is empty if a median is not finite. Raises
    NoRows if a network was not run.
    """
    rows = through_training(tables)
    ours, other = (middle(rows, name, column) for name in ("pretrained", "batch_norm"))
    if not np.isfinite([ours, other]).all():
        return ""
    numbers = f"{ours:.2f} against {other:.2f}"
    return f"At depth {rows['depth'].max()} pre-trained networks {words.format(numbers=numbers)}"


def say_ends(tables: Tables, column: str) -> str:
    """Return the headline: the last values after short pre-training and without pre-training.

    The values are medians of `column` at the largest depth. The headline is empty if pre-training
    has ENOUGH minibatches or more, or a median is not finite. Raises NoRows if a network was not
    run.
    """
    rows = last_epochs(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    M = rows["pretraining_steps"].max()
    if M >= ENOUGH or not np.isfinite([ours, plain]).all():
        return ""
    return (
        f"Pre-trained on only {M} minibatches, networks of depth {rows['depth'].max()} end at a"
        f" {MEASURES[column]} of {ours:.2f}, plain ones at {plain:.2f}"
    )


BEATS = {
    "holds": "it beats batch norm",
    "fails": "it does not beat batch norm",
    "undecided": "against batch norm it is undecided",
}
"""Second half of the headline, by the verdict of the claim that pre-training beats batch norm."""


HIGHER = "have a higher mean test loss than batch norm ({numbers})"
ONLY_IN_TRAINING = "beat batch norm in mean training accuracy ({numbers}); test loss is undecided"


def by_depth(figure: str, claim: str, first: str, *columns: str, top: str = "") -> Drawing:
    """Return the drawing of figure 4, 11 or 12.

    figure: the figure's name. claim: the claim that pre-trained networks beat plain networks in
    `first`. first, columns: the measures, a row of panels for each. top: the measure of the highest
    row, which is the first one; empty: `first`.
    """
    against = {"faster-than-vanilla": "faster-than-batch-norm"}.get(claim, "better-accuracy")
    findings = [Finding(partial(say_slower, column=first), undecided=[claim])]
    findings += [Finding(partial(say_ends, column=first), undecided=[claim])]
    findings += [Finding(partial(say_unjudged, column=first), undecided=[claim, against])]
    if "test_loss" in columns:
        findings += [
            Finding(
                partial(say_against_batch_norm, column="test_loss", words=HIGHER),
                fails=["better-test-loss"],
            ),
            Finding(
                partial(say_against_batch_norm, column=first, words=ONLY_IN_TRAINING),
                holds=["better-accuracy"],
                undecided=[claim, "better-test-loss"],
            ),
        ]
    for (verdict, helps), (other, beats) in product(HELPS.items(), BEATS.items()):
        says = partial(say_helps, column=first, helps=helps, beats=beats)
        findings.append(Finding(says, when={claim: verdict, against: other}))
    top = top or first
    return Drawing(
        figure,
        partial(draw_by_depth, columns=(top, *[c for c in (first, *columns) if c != top])),
        whose="following the authors' code",
        unread=("pretraining",),
        findings=findings,
        marks="lines: medians, bands: range",
        caption=caption_by_depth,
        shows={"method": ["vanilla", "pretrained", "batch_norm"]},
    )


FIGURES = [
    by_depth(
        "rank-fig12",
        "faster-than-vanilla",
        "train_loss",
        "train_accuracy",
        "test_loss",
        top="test_loss",
    ),  # fmt: skip
    by_depth("rank-fig11", "better-accuracy-than-vanilla", "train_accuracy", "test_loss"),
    by_depth("rank-fig4", "faster-than-vanilla", "train_loss"),
]
