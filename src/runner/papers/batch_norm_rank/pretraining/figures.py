"""Draw the figures of study `pretraining` and the preview of one run.

The figures are 4, 6, 11 and 12 of paper B, and a comparison at equal norm of the weights.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, MaxNLocator

from runner.papers.batch_norm_rank.learning import chance_level
from runner.papers.batch_norm_rank.looks import CONTROLS, METHODS, look
from runner.papers.batch_norm_rank.looks import named as name_of
from runner.papers.batch_norm_rank.names import MEASURES, NAMES
from runner.papers.batch_norm_rank.pretraining.tables import (
    ENOUGH,
    LONG,
    VARIANT,
    against_pretraining,
    at_chosen_rates,
    before_training,
    deepest,
    last_epochs,
    named,
    of_protocol,
    through_training,
)
from runner.results.captions import DATASETS
from runner.results.drawing import DOT, Drawing, Finding, or_empty
from runner.results.rows import Tables, nonempty, spread
from runner.results.style import (
    GREY,
    PALE,
    QUIET,
    SHADE,
    SMALL,
    Look,
    frame,
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
    """Return median and range of every measure in COLUMNS, a row for each network, depth and epoch.

    Losses that are not finite count in the median and not in the range.
    """
    rows = at_chosen_rates(tables)
    keys = ["protocol", "depth", *VARIANT, "learning_rate", "epoch"]
    medians = spread(rows, keys, COLUMNS)
    finite = spread(rows.replace(np.inf, np.nan), keys, COLUMNS)
    return medians.assign(**finite.filter(regex="_(low|high)$"))


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
        lead = pairs[f"{column} ours"] - pairs[column]
        pairs[column] = -lead if "loss" in column else lead
    return pairs


WIDE = {"linewidth": 5.0, "markersize": 12, "zorder": 1.9}
"""Line style for lines that lie under other lines."""


def _lines(
    axes: Axes, drawn: pd.DataFrame, column: str, height: Callable = np.asarray, bands: bool = True
) -> list[tuple[float, str, Look]]:
    """Draw a line for each network by epoch; return height, name and look at each line's end.

    height: function from values to heights. bands: whether to draw ranges as bands. Without bands
    the line of plain networks is wide and lies under all other lines.
    """
    ends, several = [], len(set(drawn["pretraining_steps"]) - {0}) > 1
    for (method, steps), rows in drawn.sort_values("epoch").groupby(VARIANT):
        drawn_as, heights = look(method, steps), height(rows[column])
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
    """Draw figure 4, 11 or 12: measures by epoch, in a column of panels for each depth.

    The top row shows the medians of the measure `first`. Each lower row shows the difference to
    pre-trained networks in one measure of `columns`, positive if pre-training is better. Returns
    the picture and the table of `curves`.
    """
    drawn, letters = curves(tables), iter(ascii_lowercase)
    trained, depths = drawn[drawn["epoch"] > 0], sorted(set(drawn["depth"]))
    size = {"height": 3.4 + 2.55 * len(columns), "left": 1.25, "right": 1.3, "between": 1.0}
    picture, rows = sheet(1 + len(columns), len(depths), gap=0.85, beside=True, **size)
    for number, column in enumerate((first, *columns)):
        words = "advantage of pre-training:\n{}\n(in pairs; above 0: better)" if number else "{}"
        rows[number, 0].set_ylabel(words.format(MEASURES[column]))
        for axes, depth in zip(rows[number], depths, strict=True):
            panel(axes, next(letters), f"depth {depth}", "epoch" * (number == len(columns)))
    for axes, depth in zip(rows[0], depths, strict=True):
        group = trained[trained["depth"] == depth]
        place_of = _scale([axes], group[first])
        ends = _lines(axes, group, first, place_of, bands=False)
    converged = set(group[first])
    ends = [(y, text + f":\nend {y:.2f}" * (y in converged), rows) for y, text, rows in ends]
    name_ends(rows[0][-1], ends)
    cut, has_arrows = [], False
    for number, (row, column) in enumerate(zip(rows[1:], columns, strict=True), 1):
        with or_empty(row[0]):
            ahead = advantages(tables, columns)
            of_row = ascii_lowercase[number * len(depths) :]
            for axes, depth, letter in zip(row, depths, of_row, strict=False):
                level(axes, 0)
                group = ahead[ahead["depth"] == depth]
                ends = _lines(axes, group, column)
                is_cut, arrows = _widen(axes, group, column)
                cut += [letter] * is_cut
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
        words += f"{DOT}↑ ↓: median of epoch {trained['epoch'].min():.0f}" * has_arrows
        QUIET.note(rows[-1, 0], 0.012, 0.08 * inch, words, transform=picture.transFigure)
    return picture, drawn


def _means(tables: Tables, column: str) -> dict[str, str]:
    """Return in words the advantage of the deepest pre-trained networks, by the other's name.

    The advantage is measured as in the claims: in the mean over the epochs, then the median over
    pairs of networks.
    """
    pairs = _in_pairs(deepest(through_training(tables)), ["depth", "replicate"], [column])
    means = pairs.groupby("method")[column].median().rename(NAMES)
    return {name: f"mean {_signed(mean)}" for name, mean in means.items()}


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


def _scale(row: Sequence[Axes], values: pd.Series) -> Callable:
    """Scale the axes of a row of panels; return the function from values to heights.

    Losses have a logarithmic axis. Diverged networks are drawn on a separate line at its upper end.
    """
    if "loss" not in str(values.name):
        row[0].set_ylim(0, 1.03)
        return np.asarray
    shown, position = values[values <= MOST], np.asarray
    low, top = (0.8 * shown.min(), 1.15 * shown.max()) if len(shown) else (0.1, MOST)
    row[0].set(yscale="log", ylim=(low, top))
    for axes in row if len(shown) < len(values) else ():
        position = rail(axes, top, low, "diverged" * (axes is row[0]))
    for digits in ((1, 2, 5), (1, 1.5, 2, 2.5, 3, 4, 5, 7)):
        marks = [digit * 10.0**power for power in range(-4, 2) for digit in digits]
        marks = [mark for mark in marks if low < mark < top]
        if len(marks) > 2:
            break
    ticks(row[0].yaxis, marks)
    return position


def say_by_depth(tables: Tables, first: str) -> str:
    """Return the caption of figures 4, 11 and 12: panels, lines, bands, learning rates.

    first: the measure in the top row.
    """
    return (
        f"The top row shows the {MEASURES[first]} by epoch. Rows below show differences to the"
        " pre-trained network with equal random draws; above 0 pre-training is better. Lines are"
        " medians, bands the range; numbers: median over pairs of epoch means. Learning rate:"
        f" {_rates(tables)}."
    )


def _rates(tables: Tables) -> str:
    """Return in words the most frequent learning rate, and the other rates with their networks."""
    rows = at_chosen_rates(tables).drop_duplicates(["depth", *VARIANT])
    usual, *other_rates = rows["learning_rate"].value_counts().index
    words = [f"{usual:g}"]
    for rate in other_rates:
        methods_by_depth = (
            rows[rows["learning_rate"] == rate].sort_values("depth").groupby("depth")["method"]
        )
        networks = [
            f"{' and '.join(map(name_of, methods))} at depth {d}" for d, methods in methods_by_depth
        ]
        words.append(f"{rate:g} for {', '.join(networks)}")
    return "; ".join(words)


def middle(rows: pd.DataFrame, network: str, column: str) -> float:
    """Return the median of a column over the deepest networks of protocol `authors`.

    network: a network's name or method, such as "M = 75" or "vanilla". Raises NoRows if the network
    was not run.
    """
    return float(named(of_protocol(deepest(rows), "authors"), network)[column].median())


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
    lead = values - baseline
    return bool(((-lead if "loss" in column else lead) > 0).all())


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


HIGHER = "have a higher test loss than batch norm ({numbers})"
ONLY_IN_TRAINING = (
    "beat batch norm in training accuracy ({numbers}); a lower test loss is undecided"
)


NEAR_CHANCE, AT_CHANCE = 0.02, "plain = chance"
"""Largest distance from chance level at which an accuracy counts as chance, and its label."""


def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 6: training accuracy (a) and mean r (b) of the deepest networks, by epoch.

    Lines are medians, bands the range over replicates. Returns the picture and the drawn numbers,
    with a row for each network and epoch.
    """
    drawn = deepest(curves(tables))
    picture, ((left, right),) = sheet(gap=1.55, right=1.15)
    left.set_ylim(0, 1.03)
    level(left, chance_level(tables))
    top = max(2.0, 1.2 * np.nanmax([drawn["mean_rank_bound_high"].max(), 0]))
    right.set(yscale="log", ylim=(0.9, top))
    ticks(right.yaxis, [2**power for power in range(10) if 2**power <= top])
    for axes, letter, column in ((left, "a", "train_accuracy"), (right, "b", "mean_rank_bound")):
        ends = _lines(axes, drawn, column)
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


def ordered(tables: Tables) -> pd.DataFrame:
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
    ("text", "pretrained"): ("pre-trained, Algorithm 1", "X"),
    ("text", "scale_matched"): ("random, size of Algorithm 1", "X"),
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
    rows, keys = ordered(tables), ["protocol", *VARIANT]
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
    position = _scale([*row], rows["ratio"].rename("ratio of losses"))
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
            drawn_as.line(
                axes, middles.index, heights, linestyle="", markersize=9, label=NAMES[method]
            )
            drawn_as.each(axes, x + 0.09, position(its["ratio"]), alpha=0.8)
        for edge in range(1, len(depths)):
            axes.axvline(edge - 0.5, color=PALE, linewidth=0.8, zorder=0)
        axes.set_xlim(-0.5, len(depths) - 0.5)
        frame(axes, len(depths) - 1.47, len(depths) - 0.51, 0.01, 0.99, axes.get_xaxis_transform())
        ticks(axes.xaxis, range(len(depths)), [str(depth) for depth in depths])
        panel(axes, letter if len(row) > 1 else "", DATASETS.get(data, data), "depth")
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
    """Return the caption of `draw_against`: its marks, and the learning rates on each dataset."""
    rates = [
        f"Learning rate on {DATASETS.get(data, data)}: {_rates({'training': group})}."
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
    everywhere = " on every dataset" * (rows["data"].nunique() > 1)
    return f"At depth {rows['depth'].max()} {helps}{everywhere}; {beats.format(every=everywhere)}"


AT_EQUAL_SIZE = {
    "holds": "pre-trained weights beat random weights of the same size{every}",
    "fails": "pre-trained weights do not beat random weights of the same size{every}",
    "undecided": "whether pre-trained weights beat random weights of the same size is undecided",
}
"""Second half of the headline, by the verdict of the comparison at equal norm of the weights."""


def against_findings() -> Iterator[Finding]:
    """Yield a headline for each pair of verdicts on pre-training.

    The first verdict compares pre-trained with plain networks. The second verdict compares them
    with random weights of equal norm.
    """
    for (plain, helps), (equal, beats) in product(HELPS.items(), AT_EQUAL_SIZE.items()):
        needs: dict[str, list[str]] = {plain: ["helps-against-nothing"]}
        needs[equal] = [*needs.get(equal, []), "helps-beyond-scale"]
        yield Finding(partial(say_against, helps=helps, beats=beats), **needs)


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 6 of one run as its preview; return the picture and a table.

    The table has a row for each network, with medians over replicates: r before training, and
    results of the last epoch.
    """
    picture, _ = draw_rank_and_accuracy(tables)
    rows = ordered(tables)
    shown = rows.groupby([*VARIANT, "learning_rate"], sort=False).median(numeric_only=True)
    return picture, shown.drop(columns="replicate").reset_index()


LOOKS = METHODS | CONTROLS
"""Line styles in the picture of a sweep, by method."""

HEADLINE = ["rank_bound", "train_accuracy", "test_accuracy"]


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
        says, needs = partial(say_helps, column=first, helps=helps, beats=beats), {verdict: [claim]}
        needs[other] = [*needs.get(other, []), against]
        findings.append(Finding(says, **needs))
    return Drawing(
        figure,
        partial(draw_by_depth, first=first, columns=columns),
        whose="following the authors' code",
        unread=("pretraining",),
        findings=findings,
        marks="lines: medians, bands: range, frame: the headline",
        caption=partial(say_by_depth, first=first),
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
            Finding(partial(say_scale, verdict=verdict), **{verdict: ["rank-beyond-scale"]})
            for verdict in ("holds", "fails", "undecided")
        ],
        marks="large marks: medians, dots: networks",
        caption="(a) shows the final training accuracy against r before training, the lower"
        " bound of the last hidden layer's rank. (b) enlarges the best networks. Large marks are"
        " medians, dots networks; hollow: random or orthogonalized weights. Lines join"
        " pre-trained and random networks of equal root mean square in each layer. Diverged"
        " networks have chance level.",
        shows={"method": [method for _, method in STARTS]},
    ),
    Drawing(
        "rank-scale",
        draw_against,
        whose="ours, following the authors' code",
        unread=("pretraining",),
        findings=[*against_findings()],
        marks="large marks: medians, dots: networks, frame: the headline",
        caption=caption_against,
        shows={"method": ["pretrained", *AGAINST]},
    ),
]
