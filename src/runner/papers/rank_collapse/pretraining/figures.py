"""Drawings of study `pretraining`: Figures 4, 6, 11 and 12, and the quick look at one run."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.rank_collapse import looks
from runner.papers.rank_collapse.pretraining.tables import (
    LABELS,
    VARIANT,
    Variant,
    deepest,
    divergences,
    starts,
    through_training,
    variants_in,
)
from runner.results.captions import dataset
from runner.results.claims import Tables
from runner.results.figures import figure, overview
from runner.results.rows import Present, nonempty
from runner.results.spreads import spread
from runner.results.statistics import last_epoch, summarize
from runner.results.style_before import (
    GREY,
    HOLLOW,
    Look,
    band,
    name_hidden,
    points,
    sparse,
    subplots,
)

COLUMNS = {
    "train_loss": "training loss",
    "train_accuracy": "training accuracy",
    "test_loss": "test loss",
    "test_accuracy": "test accuracy",
    "rank_bound": "r of the last hidden layer",
}

ENDS = ("_low", "_high")
"""Of the columns that hold a range."""


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


def drawn_divergences(tables: Tables, drawn: pd.DataFrame) -> pd.DataFrame:
    """Where networks diverge, of the variants that are drawn."""
    shown = drawn[["depth", *VARIANT]].drop_duplicates()
    return divergences(tables).merge(shown)


def _looks(rows: pd.DataFrame) -> dict[tuple[str, int], Look]:
    """The look of each method and length of pre-training there is."""
    there = rows[VARIANT[:2]].drop_duplicates().itertuples(index=False, name=None)
    by_length = looks.lengths(set(rows["pretraining_steps"]) - {0})
    return {each: looks.method(*each, by_length) for each in there}


def _name(variant: Variant) -> str:
    """What the legend calls a variant; the caption says the angles."""
    method, steps, _ = variant
    return f"{LABELS[method]}, M = {steps}" if steps else LABELS[method]


def _short(variant: Variant, look: Look) -> str:
    """What the margin calls it."""
    return look.label or f"M = {variant[1]}"


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
    found = ". ".join(words)
    why = " Pre-trained networks take M steps, here with the angle eta that raises r most"
    return f"{why} ({found})." if words else ""


def _lines(axes: Axes, drawn: pd.DataFrame, column: str, x: str = "epoch") -> dict[str, float]:
    """One curve for each variant, with its band; gives back where the curves end."""
    ends, by_variant = {}, _looks(drawn)
    for place, variant in enumerate(variants_in(drawn)):
        rows = drawn[(drawn[VARIANT] == list(variant)).all(axis=1)]
        look = by_variant[variant[:2]]
        options = {"label": _name(variant), "markevery": sparse(len(rows), place)}
        axes.plot(rows[x], rows[column], linewidth=points(1.3), **look.both | options)
        band(axes, rows[x], rows[f"{column}_low"], rows[f"{column}_high"], look.color)
        ends[_short(variant, look)] = rows[column].iloc[-1]
    axes.set_xlabel(x)
    axes.set_ylabel(COLUMNS[column])
    axes.xaxis.get_major_locator().set_params(integer=True)
    if "accuracy" in column:
        axes.set_ylim(0, 1.03)
    return ends


def _mark_divergences(axes: Axes, lost: pd.DataFrame, column: str) -> None:
    """A cross where a network diverges."""
    by_variant = _looks(lost)
    for variant in variants_in(lost):
        rows = lost[(lost[VARIANT] == list(variant)).all(axis=1)]
        cross = {"marker": "x", "linestyle": "none", "zorder": 3, "markersize": points(7)}
        axes.plot(rows["epoch"], rows[column], color=by_variant[variant[:2]].color, **cross)


def _name_divergent(axes: Axes, lost: pd.DataFrame, height: float) -> None:
    """The names of variants all of which diverge in the first epoch. height: in the axes."""
    never = lost.groupby(VARIANT)["epoch"].apply(lambda epochs: epochs.isna().all())
    if names := [_name(variant) for variant in never.index[never]]:
        text = f"diverge in the first epoch:\n{', '.join(names)}"
        place = {"xycoords": "axes fraction", "ha": "right", "va": "bottom"}
        axes.annotate(text, (0.98, height), color=GREY, fontsize="small", **place)


def _limit_loss(axes: Axes, drawn: pd.DataFrame, column: str) -> None:
    """A logarithmic axis of all medians, up to four times the loss of a guess at most."""
    guess = drawn.loc[drawn["epoch"] == 1, column].median()
    medians = drawn[column][np.isfinite(drawn[column]) & (drawn[column] > 0)]
    axes.set_yscale("log")
    if np.isfinite(guess) and len(medians):
        guess = max(guess, 2.303)
        top = min(max(medians.max(), 1.3 * guess), 4 * guess)
        bottom = max(medians.min(), 1e-4)
        margin = (top / bottom) ** 0.05
        axes.set_ylim(bottom / margin, top * margin)


def _title(rows: pd.DataFrame) -> str:
    """Which data, and how many epochs of training."""
    return f"{dataset(rows)}, width {rows['width'].iloc[0]}, {rows['epoch'].max()} epochs"


MARKS = (
    " Lines are medians over the replicates, bands the whole range of those that have not"
    " diverged, crosses where one does; the learning rate is chosen for each method and depth on"
    " replicates of its own. In the medians the loss of a network that has diverged is infinite,"
    " its accuracy that of a guess. Ranks are measured on N samples."
)


def say_by_depth(tables: Tables) -> str:
    """Panels, lines and bands of figures 4, 11 and 12, and the angles."""
    axis = " The axis of a loss ends at four times that of a guess at the latest."
    return "A column for each depth, by epoch of training." + MARKS + axis + say_angles(tables)


@figure("rank-fig4", caption=say_by_depth, columns=("train_loss",))
@figure("rank-fig11", caption=say_by_depth, columns=("train_accuracy", "test_loss"))
@figure("rank-fig12", caption=say_by_depth, columns=("train_loss", "train_accuracy", "test_loss"))
def draw_by_depth(tables: Tables, columns: tuple[str, ...]) -> tuple[Figure, pd.DataFrame]:
    """Figures 4, 11 and 12: one column of panels for each depth, one row for each measure."""
    drawn = spoken_for(tables, drawn_curves(tables))
    drawn = nonempty(drawn[drawn["method"] != "batch_norm_asymmetric"], "method to show")
    depths = sorted(set(drawn["depth"]))
    lost = drawn_divergences(tables, drawn)
    size = (3.0 * len(depths) + 0.6, 2.5 * len(columns) + 1.2)
    picture, axes = subplots(
        len(columns), len(depths), size=size, sharex=True, sharey="row", squeeze=False
    )
    for row, column in zip(axes, columns, strict=True):
        for panel, depth in zip(row, depths, strict=True):
            _lines(panel, drawn[drawn["depth"] == depth], column)
            _mark_divergences(panel, lost[lost["depth"] == depth], column)
            panel.label_outer()
        if "loss" in column:
            _limit_loss(row[0], drawn, column)
    for panel, depth in zip(axes[0], depths, strict=True):
        panel.set_title(f"depth {depth}")
        height = 0.2 if "accuracy" in columns[0] else 0.03  # above a guess's accuracy
        _name_divergent(panel, lost[lost["depth"] == depth], height)
    labels: dict[str, object] = {}
    for panel in axes[0]:
        labels |= dict(zip(*panel.get_legend_handles_labels()[::-1], strict=True))
    picture.legend(labels.values(), labels.keys(), loc="outside lower center", ncols=3)
    picture.suptitle(f"{_title(tables['training'])}, rate chosen for each", fontsize=9)
    return picture, drawn


def say_rank_and_accuracy(tables: Tables) -> str:
    """Panels, lines, bands and bars of figure 6, and the angles."""
    return (
        "Lower bound r of the rank by layer before training; training accuracy and r of the last"
        " hidden layer through training; and the training accuracy in the mean of all epochs"
        " against r of the last hidden layer before training."
        + MARKS
        + say_angles({name: deepest(table) for name, table in tables.items()})
        + " In the last panel points are medians and bars the range of the replicates, and what has"
        " diverged has an accuracy of zero; networks pre-trained for one M are joined in order of"
        " the angle, filled at the one that the other panels show."
    )


@figure("rank-fig6", caption=say_rank_and_accuracy)
def draw_rank_and_accuracy(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 6 for the deepest networks: r by layer, accuracy and r through training, and what
    every variant learns against the r that it starts with."""
    tables = Present({name: deepest(table) for name, table in tables.items()})
    drawn = spoken_for(tables, drawn_curves(tables))
    picture, axes = subplots(2, 2, size=(8.6, 7.6))
    by_layer = spoken_for(tables, tables["metrics"])
    trained = by_layer[by_layer["method"] != "plain_ascent"]
    by_layer = spread(trained, ["depth", *VARIANT, "layer"], ["rank_bound"])
    ends = [
        _lines(axes[0, 0], by_layer, "rank_bound", x="layer"),
        _lines(axes[0, 1], drawn, "train_accuracy"),
        _lines(axes[1, 0], drawn, "rank_bound"),
    ]
    lost = drawn_divergences(tables, drawn)
    _mark_divergences(axes[0, 1], lost, "train_accuracy")
    _name_divergent(axes[0, 1], lost, height=0.2)
    axes[0, 0].set_title("before training")
    for panel in (axes[0, 0], axes[1, 0]):
        _log_rank(panel)
        panel.set_ylabel("r" if panel is axes[0, 0] else COLUMNS["rank_bound"])
    for panel, of_panel in zip(axes.flat, ends, strict=False):
        name_hidden(panel, of_panel)
    plane = rank_and_learning(tables)
    _draw_plane(axes[1, 1], plane, drawn)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    picture.legend(handles, labels, loc="outside lower center", ncols=3)
    title = f"{_title(tables['training'])}, depth {drawn['depth'].iloc[0]}, rate chosen for each"
    picture.suptitle(title, fontsize=9)
    panels = {"before training": by_layer, "through training": drawn, "rank and learning": plane}
    return picture, pd.concat(panels, names=["panel"]).reset_index(level="panel")


def _log_rank(axes: Axes) -> None:
    """Powers of two on a logarithmic axis."""
    axes.set_yscale("log")
    top = axes.get_ylim()[1]
    ticks = [tick for tick in (1, 2, 4, 8, 16, 32, 64) if tick <= top]
    axes.set_yticks(ticks, [str(tick) for tick in ticks])
    axes.minorticks_off()


def rank_and_learning(tables: Tables) -> pd.DataFrame:
    """By variant and depth: r before training, and the training accuracy in the mean of all
    epochs."""
    learned = through_training(tables)
    keys = ["depth", *VARIANT, "replicate"]
    both = starts(tables)[[*keys, "rank_bound"]].merge(learned, on=keys)
    return spread(both, keys[:-1], ["rank_bound", "train_accuracy"])


def _draw_plane(axes: Axes, plane: pd.DataFrame, shown: pd.DataFrame) -> None:
    """Every variant as a point, those of one length of pre-training joined by angle.

    A variant that the other panels do not show, because its angle is not chosen, is hollow.
    """
    chosen, by_variant = variants_in(shown), _looks(plane)
    for (method, steps), rows in plane.groupby(["method", "pretraining_steps"], sort=False):
        look = by_variant[method, steps]
        if len(rows) > 1:
            path = rows.sort_values("angle")
            thin = {"color": look.color, "linewidth": points(0.7)}
            axes.plot(path["rank_bound"], path["train_accuracy"], **thin)
        for _, row in rows.iterrows():
            is_chosen = tuple(row[VARIANT]) in chosen
            axes.errorbar(
                row["rank_bound"],
                row["train_accuracy"],
                xerr=_reach(row, "rank_bound"),
                yerr=_reach(row, "train_accuracy"),
                elinewidth=points(0.6),
                markersize=points(6),
                **look.dots | ({} if is_chosen else HOLLOW),
            )
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_ylim(-0.02, 1.03)
    axes.set_xlabel("r of the last hidden layer before training")
    axes.set_ylabel("training accuracy, mean of all epochs")


def _reach(row: pd.Series, column: str) -> np.ndarray:
    """How far the range reaches below and above the median of one point."""
    low, high = row[column] - row[f"{column}_low"], row[f"{column}_high"] - row[column]
    return np.nan_to_num(np.array([[low], [high]]))


@overview
def overview_pretraining(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: figure 6, and how every variant starts and ends."""
    picture, _ = draw_rank_and_accuracy(tables)
    at_start = summarize(starts(tables), VARIANT, ["rank_bound", "root_mean_square"])
    ends = last_epoch(drawn_curves(tables))
    columns = [*VARIANT, "learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
    shown = at_start[[*VARIANT, "rank_bound", "root_mean_square"]]
    return picture, shown.merge(ends[columns], on=VARIANT)
