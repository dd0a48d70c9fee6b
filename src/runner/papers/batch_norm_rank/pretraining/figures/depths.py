"""Draw figures 4, 11 and 12: pre-trained networks against others, by epoch and depth."""

from collections.abc import Sequence
from functools import partial
from itertools import product
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from runner.papers.batch_norm_rank.looks import look
from runner.papers.batch_norm_rank.names import MEASURES, NAMES
from runner.papers.batch_norm_rank.pretraining.figures.parts import (
    HELPS,
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
    at_chosen_rates,
    deepest,
    last_epochs,
    lead,
    named,
    of_protocol,
    through_training,
)
from runner.results.drawing import DOT, Drawing, Finding, or_empty
from runner.results.rows import Tables, nonempty, spread
from runner.results.style import (
    QUIET,
    SHADE,
    frame,
    level,
    name_ends,
    panel,
    sheet,
)


def advantages(tables: Tables, columns: Sequence[str]) -> pd.DataFrame:
    """Return how much better pre-trained networks are than each other network, by depth and epoch.

    The result has the median and range over replicates of the difference in each of `columns`. A
    difference is positive if the pre-trained network is better. Raises NoRows without pre-trained
    networks.
    """
    rows = at_chosen_rates(tables).replace(np.inf, np.nan)
    pairs = _in_pairs(rows[rows["epoch"] > 0], ["depth", "epoch", "replicate"], columns)
    return spread(pairs, ["depth", *VARIANT, "epoch"], columns)


def _in_pairs(rows: pd.DataFrame, keys: list[str], columns: Sequence[str]) -> pd.DataFrame:
    """Return the other networks, with their distance to the pre-trained network in some columns.

    A distance is positive if the pre-trained network is better. keys: the columns in which two
    networks of a pair agree. columns: the compared measures. Raises NoRows without pre-trained
    networks.
    """
    ours = nonempty(rows[rows["method"] == "pretrained"], "pre-trained networks")
    pairs = rows[rows["method"] != "pretrained"].merge(ours, on=keys, suffixes=("", " ours"))
    for column in columns:
        pairs[column] = lead(pairs[f"{column} ours"], pairs[column], column)
    return pairs


def draw_by_depth(
    tables: Tables, first: str, columns: Sequence[str]
) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 4, 11 or 12: measures by epoch, in a column of panels for each depth.

    The top row shows the medians of the measure `first`. Each lower row shows the difference to
    pre-trained networks in one measure of `columns`, positive if pre-training is better. Returns
    the picture and the table of `by_epoch`.
    """
    drawn, letters = by_epoch(tables), iter(ascii_lowercase)
    trained, depths = drawn[drawn["epoch"] > 0], sorted(set(drawn["depth"]))
    size = {"height": 3.4 + 2.55 * len(columns), "left": 1.25, "right": 1.3, "between": 1.0}
    picture, rows = sheet(1 + len(columns), len(depths), gap=0.85, beside=True, **size)
    for number, column in enumerate((first, *columns)):
        words = "advantage of pre-training:\n{}\n(in pairs; above 0: better)" if number else "{}"
        rows[number, 0].set_ylabel(words.format(MEASURES[column]))
        for axes, depth in zip(rows[number], depths, strict=True):
            panel(axes, next(letters), f"depth {depth}", "epoch" if number == len(columns) else "")
    for axes, depth in zip(rows[0], depths, strict=True):
        group = trained[trained["depth"] == depth]
        axes.set_ylim(0, 1.03)
        place_of = scale_losses([axes], group[first]) if "loss" in first else np.asarray
        ends = lines_by_epoch(axes, group, first, place_of, bands=False)
        _note_ranks(axes, drawn[drawn["depth"] == depth], above="loss" in first)
    converged = set(group[first])
    ends = [
        (y, text + (f":\nend {y:.2f}" if y in converged else ""), rows) for y, text, rows in ends
    ]
    name_ends(rows[0][-1], ends)
    cut, has_arrows = [], False
    for number, (row, column) in enumerate(zip(rows[1:], columns, strict=True), 1):
        with or_empty(row[0]):
            ahead = advantages(tables, columns)
            of_row = ascii_lowercase[number * len(depths) :]
            for axes, depth, letter in zip(row, depths, of_row, strict=False):
                level(axes, 0)
                group = ahead[ahead["depth"] == depth]
                ends = lines_by_epoch(axes, group, column)
                is_cut, arrows = _widen(axes, group, column)
                cut += [letter] if is_cut else []
                has_arrows |= arrows
            means = _means(tables, column)
            name_ends(
                row[-1], [(y, f"over\n{text}:\n{means[text]}", rows) for y, text, rows in ends]
            )
    low, inch = rows[-1, -1].get_position(), 1 / picture.get_figheight()
    ends_at = low.y0 - 0.58 * inch, rows[0, -1].get_position().y1 + 0.4 * inch
    frame(rows[-1, -1], low.x0 - 0.073, 0.995, *ends_at, picture.transFigure)
    if cut:
        words = f"bands are cut at the edge in {', '.join(cut)}"
        words += f"{DOT}↑ ↓: median of epoch {trained['epoch'].min():.0f}" if has_arrows else ""
        QUIET.note(rows[-1, 0], 0.012, 0.08 * inch, words, transform=picture.transFigure)
    return picture, drawn


def _note_ranks(axes: Axes, rows: pd.DataFrame, above: bool) -> None:
    """Write rank and r before training of pre-trained and plain networks into a corner of a panel.

    rows: the networks of one depth. above: whether the corner is the upper one.
    """
    start = rows[(rows["epoch"] == 0) & rows["method"].isin(["pretrained", "vanilla"])]
    for number, (_, row) in enumerate(start.sort_values("method").iterrows()):
        words = f"rank {row['rank']:.0f}, r {row['rank_bound']:.1f}"
        y = (0.98 if above else 0.24) - 0.1 * number
        drawn_as = look(row["method"], row["pretraining_steps"])
        drawn_as.note(axes, 0.98, y, words, ha="right", va="top")


def _means(tables: Tables, column: str) -> dict[str, str]:
    """Return in words the advantage of the deepest pre-trained networks, by the other's name.

    The advantage is measured as in the claims: in the mean over the epochs, then the median over
    pairs of networks.
    """
    pairs = _in_pairs(deepest(through_training(tables)), ["depth", "replicate"], [column])
    means = pairs.groupby("method")[column].median()
    return {NAMES["method"][m].drawn: f"mean {_signed(mean)}" for m, mean in means.items()}


def _signed(number: float) -> str:
    """Return a number with its sign and two decimals; "unknown" for nan, if both diverged."""
    if np.isnan(number):
        return "unknown"
    words = f"{number:+z.2f}".replace("-", "−").replace("inf", "∞")
    return words.replace("+0.00", "0.00")


def _widen(axes: Axes, rows: pd.DataFrame, column: str) -> tuple[bool, bool]:
    """Set limits that include the medians and most of the bands.

    First epochs that would stretch the axis are excluded. A strip at the edge has an arrow with
    their median. Returns whether bands are cut and whether there are arrows.
    """
    epochs = rows["epoch"]
    first = rows[epochs == epochs.min()]
    later = rows[epochs > max(epochs.min(), 0.05 * epochs.max())]
    later = later if len(later) else rows
    low = np.nanmin([later[column].min(), later[f"{column}_low"].quantile(0.2), -0.01])
    top = np.nanmax([later[column].max(), later[f"{column}_high"].quantile(0.8), 0.01])
    edges = [f"{column}_low", f"{column}_high"]
    after = rows.loc[epochs > epochs.min(), column]
    for more, most in ((rows[column], 1.4), (after, 1.4), (later[edges], 1.6)):
        ends = np.nanmin([low, *np.ravel(more.min())]), np.nanmax([top, *np.ravel(more.max())])
        if ends[1] - ends[0] < most * (top - low):
            low, top = ends
    low, top = low - 0.08 * (top - low), top + 0.08 * (top - low)
    below, above = first[first[column] < low], first[first[column] > top]
    _strips(axes, low, top, below, above, column)
    is_cut = (rows[edges[0]] < low).any() or (rows[edges[1]] > top).any()
    return bool(is_cut), len(below) + len(above) > 0


LINE = 0.1
"""Height of a line of text in a strip, as a fraction of the panel."""


def _strips(
    axes: Axes, low: float, top: float, below: pd.DataFrame, above: pd.DataFrame, column: str
) -> None:
    """Set the limits of a panel, with a shaded strip at each edge for values off the scale.

    low, top: the ends of the scale. below, above: rows of networks whose value in `column` is
    written in the lower or upper strip. An edge without such rows has no strip.
    """
    span = (top - low) / (1 - LINE * (len(below) + len(above)))
    foot, roof = low - LINE * len(below) * span, top + LINE * len(above) * span
    axes.set_ylim(foot, roof)
    axes.spines["left"].set_bounds(low, top)
    marks = MaxNLocator(4, steps=[1, 2, 5, 10]).tick_values(low, top)
    axes.yaxis.set_major_locator(FixedLocator([mark for mark in marks if low <= mark <= top]))
    for start, end, rows, arrow in ((foot, low, below, "↓"), (top, roof, above, "↑")):
        axes.axhspan(start, end, color=SHADE, linewidth=0, zorder=2.4)
        for number, (_, row) in enumerate(rows.iterrows()):
            words = f"{arrow} {row[column]:.2g}".replace("-", "−")
            height = LINE * (number + 0.5)
            drawn_as = look(row["method"], row["pretraining_steps"])
            drawn_as.note(axes, 0.03, 1 - height if arrow == "↑" else height, words)


def caption_by_depth(tables: Tables, first: str) -> str:
    """Return the caption of figures 4, 11 and 12: panels, lines, bands, learning rates.

    first: the measure in the top row.
    """
    return (
        f"The top row shows the {MEASURES[first]} by epoch; rank and r are those of the last hidden"
        " layer before training. Rows below show differences to the"
        " pre-trained network with equal random draws; above 0 pre-training is better. Lines are"
        " medians, bands the range; numbers: median over pairs of epoch means. Learning rate:"
        f" {say_rates(tables)}."
    )


def say_unjudged(tables: Tables, column: str) -> str:
    """Return the headline: last values of the deepest networks, if training is too short to judge.

    The values are medians of `column`, with and without pre-training. The headline is empty if
    training has LONG epochs or more, if pre-training has fewer than ENOUGH minibatches, or a median
    is not finite. Raises NoRows if a network was not run.
    """
    rows = last_epochs(tables)
    ours, plain = (middle(rows, name, column) for name in ("pretrained", "vanilla"))
    epochs, what = rows["epoch"].max(), "loss" if "loss" in column else "accuracy"
    is_short = rows["pretraining_steps"].max() < ENOUGH
    if epochs >= LONG or is_short or not np.isfinite([ours, plain]).all():
        return ""
    return (
        f"At depth {rows['depth'].max()} pre-trained networks end at {what} {ours:.2f}, plain ones"
        f" at {plain:.2f}; this is not judged, since training has {epochs} of {LONG} needed epochs"
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
    depth, what = rows["depth"].max(), "loss" if "loss" in column else "accuracy"
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
    numbers = f"{ours:.2f} against {other:.2f} in the mean over the epochs"
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
    "holds": "pre-training beats batch norm",
    "fails": "pre-training does not beat batch norm",
    "undecided": "whether pre-training beats batch norm is undecided",
}
"""Second half of the headline, by the verdict of the claim that pre-training beats batch norm."""


HIGHER = "have a higher test loss than batch norm ({numbers})"
ONLY_IN_TRAINING = (
    "beat batch norm in training accuracy ({numbers}); a lower test loss is undecided"
)


def by_depth(figure: str, claim: str, first: str, *columns: str) -> Drawing:
    """Return the drawing of figure 4, 11 or 12.

    figure: the figure's name. claim: the claim that pre-trained networks beat plain networks in
    `first`. first: the measure in the upper panels. columns: the measures of the lower panels,
    which show differences.
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
    return Drawing(
        figure,
        partial(draw_by_depth, first=first, columns=columns),
        whose="following the authors' code",
        unread=("pretraining",),
        findings=findings,
        marks="lines: medians, bands: range, frame: largest depth",
        caption=partial(caption_by_depth, first=first),
        shows={"method": ["vanilla", "pretrained", "batch_norm"]},
    )


FIGURES = [
    by_depth("rank-fig12", "faster-than-vanilla", "train_loss", "train_accuracy", "test_loss"),
    by_depth("rank-fig11", "better-accuracy-than-vanilla", *["train_accuracy"] * 2, "test_loss"),
    by_depth("rank-fig4", "faster-than-vanilla", *["train_loss"] * 2),
]
