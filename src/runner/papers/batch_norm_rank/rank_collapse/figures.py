"""Draw figures 1 and 2 of study `rank_collapse`, and the preview of one run."""

from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.core import choices
from runner.papers.batch_norm_rank.learning import DEEP, chance_level
from runner.papers.batch_norm_rank.looks import NORMALIZATIONS, look_of, normalization
from runner.papers.batch_norm_rank.names import NAMES
from runner.papers.batch_norm_rank.rank_collapse.config import AUTHORS_RATES
from runner.papers.batch_norm_rank.rank_collapse.tables import rank_of_last_layer, untrained
from runner.results.curves import (
    End,
    Panel,
    curves,
    diverged_apart,
    draw_panels,
    with_heights,
)
from runner.results.drawing import Drawing, Finding
from runner.results.labels import names_in
from runner.results.looks import Name, name_of, own_look
from runner.results.rows import Tables, last_epoch, nonempty, select, spread
from runner.results.style import (
    DASHED,
    INK,
    QUIET,
    SHADE,
    Look,
    key,
    level,
    name_ends,
    panel,
    sheet,
    ticks,
)

KINDS = NAMES["normalization"]
"""Names of the normalizations; a user's own one has none."""

MARKED = (1, 2, 4, 8, 16, 32, 3, 5, 9, 17, 33)
"""Depths with a tick on the x-axis; other depths are too near to these."""


def by_depth(tables: Tables) -> pd.DataFrame:
    """Return mean ranks before training, mean results after training, and the learning rate.

    There is one row for each depth and normalization. Means are over replicates.
    """
    keys = ["depth", "normalization"]
    rank = rank_of_last_layer(tables["metrics"]).groupby(keys)[["matrix_rank", "rank_bound"]]
    ends = last_epoch(tables["training"]).groupby([*keys, "learning_rate"], sort=False)
    columns = ["train_accuracy", "test_accuracy", "train_loss"]
    return ends[columns].mean().reset_index().merge(rank.mean(), on=keys)


def say_rates(tables: Tables) -> str:
    """Return the caption of figure 1: panels, marks and learning rates."""
    of_authors = (tables["training"]["selected_on"] == AUTHORS_RATES).any()
    used = tables["training"].get("optimizer", pd.Series("sgd")).unique()
    words = ", ".join(names_in(__name__).value("optimizer", name) for name in used)
    how = "SGD; Adam with batch norm" if of_authors else words
    if "selection" in tables:
        offered = tables["selection"]["learning_rate"]
        how += f", chosen from {offered.min():g} to {offered.max():g}"
    chosen = [
        f"{name_of(KINDS, normalization).drawn} {_by_stretch(rows)}"
        for normalization, rows in by_depth(tables).groupby("normalization", sort=False)
    ]
    measured = last_epoch(tables["training"])["train_accuracy"]
    lost = " Networks that diverged are drawn at the top (NaN)." if measured.isna().any() else ""
    return (
        "(a) shows the rank of the last hidden layer before training, (b) its lower bound r and"
        " (c) the training accuracy, by depth. Lines are means, dots networks. Depths"
        f" above {DEEP} are shaded.{lost} Learning rates ({how}): {'; '.join(chosen)}."
    )


def _by_stretch(rows: pd.DataFrame) -> str:
    """Return the learning rates by depth in words, or their range if there are more than three
    changes.
    """
    words, before = [], 0.0
    for depth, rate in rows[["depth", "learning_rate"]].sort_values("depth").to_numpy():
        if rate != before:
            words.append(f"{rate:g}" + (f" from depth {depth:.0f}" if words else ""))
        before = rate
    rates = rows["learning_rate"]
    return ", ".join(words) if len(words) < 4 else f"{rates.min():g} to {rates.max():g}"


def say_collapse(tables: Tables) -> str:
    """Return the headline of figure 1: the mean rank of the deepest networks without batch norm.

    Raises NoRows if no network without batch norm has more than ten layers.
    """
    plain = select(by_depth(tables), normalization="none").sort_values("depth")
    rank = nonempty(plain[plain["depth"] > DEEP], "deep networks")["matrix_rank"].iloc[-1]
    return (
        f"Without batch norm, PyTorch's initialization falls to rank {rank:.0f} with depth,"
        f" and beyond {DEEP} layers networks do not learn"
    )


def _by_depth(axes: Axes, rows: pd.DataFrame, column: str, reference: float, text: str,
              statistic: str = "mean", above: bool = True, top: float = 0
              ) -> list[End]:  # fmt: skip
    """Draw every replicate as a dot and a statistic as a line, by depth; shade depths above ten.

    reference, text: height and label of a horizontal line. above: whether the label is above it.
    top: the highest tick. Diverged networks are drawn above it.
    """
    height = diverged_apart(axes, [*rows[column], reference, top])
    ends = curves(axes, rows, "depth", column, "normalization", normalization,
                  statistic=statistic, replicates="dots", height=height)  # fmt: skip
    depths = sorted(rows["depth"].unique())
    level(axes, reference, text, above=above)
    last = 1.12 * depths[-1]
    axes.set(xscale="log", xlim=(0.9 * depths[0], last), ylim=(-0.025 * axes.get_ylim()[1], None))
    axes.axvspan(min(DEEP, last), last, color=SHADE, linewidth=0, zorder=0)
    ticks(axes.xaxis, [depth for depth in depths if depth in MARKED] or depths)
    return ends


def draw_by_depth(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 1, three panels by depth, with a line for each normalization.

    Before training: the rank of the last hidden layer, and its lower bound r. After training: the
    training accuracy. Lines are means over replicates, dots are single networks. Returns the
    picture and the table of `by_depth`.
    """
    start, ends = rank_of_last_layer(tables["metrics"]), last_epoch(tables["training"])
    width, epochs = start["width"].iloc[0], ends["epoch"].max()
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.6, right=1.05)
    _by_depth(left, start, "matrix_rank", width**0.5, f"√d (d = {width})", top=width)
    _by_depth(middle, start, "rank_bound", 1, "smallest r: 1", above=False)
    name_ends(right, _by_depth(right, ends, "train_accuracy", chance_level(tables), "chance"))
    ticks(left.yaxis, [1, width / 4, width / 2, 3 * width / 4, width])
    if start["depth"].max() > DEEP:
        QUIET.note(left, 0.835, 0.5, f"deeper\nthan {DEEP}", ha="center")
    panel(left, "a", "rank before training", "depth L")
    panel(middle, "b", "its lower bound r", "depth L")
    panel(right, "c", f"training accuracy, epoch {epochs}", "depth L")
    return picture, by_depth(tables)


def caption_layers(tables: Tables) -> str:
    """Return the caption of figure 2, about the normalizations and precisions that are drawn."""
    metrics = tables["metrics"]
    kinds, both = {*metrics["normalization"]}, {*STROKES} == {*metrics["dtype"]}
    batch = {("batch",): "with", ("none",): "without"}.get((*kinds,), "with and without (plain)")
    lines = ": thick ones in single, dashed ones in double precision" if both else ""
    single = " in single precision" if both else ""
    bands = f" Bands are the range{single}." if "float32" in {*metrics["dtype"]} else ""
    return (
        f"(a) shows the rank by layer of linear networks before training, {batch} batch norm. (b)"
        f" shows ReLU networks. Lines are medians{lines}.{bands}"
    )


def say_layers(tables: Tables) -> str:
    """Return the headline of figure 2: the rank of the last layer stays high only with batch norm.

    Its numbers are the depth and the largest last rank without batch norm. Raises NoRows without
    plain networks.
    """
    last = rank_of_last_layer(tables["metrics"])
    plain = select(last, normalization="none")["matrix_rank"].max()
    lost = "1" if plain < 2 else f"1 or {plain:.0f}"
    return (
        f"With batch norm the rank stays above √d for {last['depth'].min():,} layers; without it,"
        f" the rank falls to {lost}"
    )


def draw_by_layer(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 2: the rank by layer before training, one panel for each activation.

    Lines are medians, bold in single precision, thin and dashed in double precision. Returns the
    picture, and a table with median and range for each activation, precision, normalization and
    layer.
    """
    picture, (panels,) = sheet(1, 2, sharey=True, gap=1.2, right=1.1)
    layers = tables["metrics"].groupby("dtype")["layer"].max()
    texts = {"float32": "single precision", "float64": "double precision"}
    strokes = {
        f"{texts[kind]},\n{layers[kind]:,} layers": Look(
            INK, "", stroke.get("linestyle", "-"), stroke["linewidth"]
        )
        for kind, stroke in STROKES.items()
        if kind in layers
    }
    key(panels[1], strokes, loc="lower left")
    for axes, letter, name in zip(panels, "ab", ("linear", "ReLU"), strict=True):
        ends, root = _by_layer(axes, tables["metrics"], name.lower(), "matrix_rank", "range")
        level(axes, *root, above=False)
        name_ends(axes, ends)
        panel(axes, letter, f"rank, {name} networks", "layer")
    return picture, _of_layers(tables["metrics"])


def _of_layers(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return median and range of the ranks by activation, precision, normalization and layer."""
    keys = ["activation", "dtype", "normalization", "layer"]
    return spread(metrics[metrics["layer"] > 0], keys, ["matrix_rank", "rank_bound"])


STROKES = {"float32": {"linewidth": 3.2}, "float64": {"linewidth": 1.3, "linestyle": DASHED}}
"""Options of lines by precision."""


def _by_layer(axes: Axes, metrics: pd.DataFrame, activation: str, column: str, replicates=""
              ) -> tuple[list[End], tuple[float, str]]:  # fmt: skip
    """Draw medians of a rank by layer; return the ends of the lines, and height and name of √d.

    replicates: how the replicates in single precision are drawn, as in `curves`.
    """
    width, last = metrics["width"].iloc[0], max(10, metrics["layer"].max())
    axes.set(xscale="log", yscale="log", xlim=(1, last), ylim=(0.85, 1.2 * width))
    rows, ends = metrics[(metrics["layer"] > 0) & (metrics["activation"] == activation)], {}
    for precision, stroke in STROKES.items():
        shown = replicates if precision == "float32" else ""
        drawn = curves(axes, rows[rows["dtype"] == precision], "layer", column, "normalization",
                       normalization, replicates=shown, marker="", **stroke)  # fmt: skip
        ends |= {name: (height, name, look) for height, name, look in drawn}
    ticks(axes.xaxis, [depth for depth in (1, 10, 100, 1000, 10000) if depth <= last])
    ticks(axes.yaxis, [2**power for power in range(16) if 2**power <= width])
    return [*ends.values()], (width**0.5, f"√d (d = {width})")


KEY = ("batch", "batch_no_mean", "layer", "rms", "none")
"""Normalizations in the order of the key, which the user's own follow."""


RMS = replace(look_of("rms"), marker="", dashes="-", width=7)
"""A wide line of RMS norm, on which the line of layer norm lies."""


def _rms(normalization: str) -> Name:
    return Name(KINDS[normalization].drawn, RMS)


HE = replace(look_of("none"), hollow=True)
"""The mark of plain networks with He's weights, the control of those with PyTorch's."""


def _he(init: str) -> Name:
    return Name("plain,\nHe's weights", HE)


def draw_norms(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw r by layer of untrained networks, and the accuracy by depth, for all normalizations.

    Returns the picture, and a table with median and range of the ranks for each activation,
    precision, normalization and layer.
    """
    metrics = untrained(tables["metrics"])
    picture, ((left, middle, right),) = sheet(1, 3, gap=0.6, right=1.2)
    is_rms, shown = metrics["normalization"] == "rms", metrics["layer"] > 0
    for axes, letter, name in zip((left, middle), "ab", ("linear", "ReLU"), strict=True):
        of_rms = metrics[is_rms & shown & (metrics["activation"] == name.lower())]
        curves(axes, of_rms, "layer", "rank_bound", "normalization", _rms, marker="", zorder=1.5)
        _, root = _by_layer(axes, metrics[~is_rms], name.lower(), "rank_bound")
        level(axes, *root, at=0.3)
        panel(axes, letter, f"r, {name} networks", "layer")
    if "batch_no_mean" in set(metrics["normalization"]):
        NORMALIZATIONS["batch_no_mean"].note(middle, 0.46, 0.19, "without mean\nsubtraction")
    kinds = [*metrics["normalization"].unique()]
    known = [kind for kind in dict.fromkeys([*KEY, *kinds]) if kind in kinds]
    looks = {normalization(kind).drawn: replace(look_of(kind), marker="") for kind in known}
    looks |= {name: RMS for name in looks if name == KINDS["rms"].drawn}
    key(left, looks, loc="upper right", bbox_to_anchor=(1.08, 1.03))
    ends, chance = last_epoch(tables["training"]), chance_level(tables)
    ends = ends.assign(init=ends.get("init", "pytorch"))  # no column if all runs are alike
    control, ends = ends[ends["init"] == "he"], ends[ends["init"] != "he"]
    is_rms = ends["normalization"] == "rms"
    below = curves(
        right, ends[is_rms], "depth", "train_accuracy", "normalization", _rms, replicates="dots",
        zorder=1.5, marker="",
    )  # fmt: skip
    others = _by_depth(right, ends[~is_rms], "train_accuracy", chance, "chance", "median")
    named = curves(right, control, "depth", "train_accuracy", "init", _he, replicates="dots")
    name_ends(right, [*others, *below, *named])
    shown = ends[(ends["normalization"] == "layer") & (ends["depth"] == 16)]["train_accuracy"]
    if len(shown):
        away: dict = {"textcoords": "offset points", "xytext": (0, -14)}
        look_of("layer").name(right, 16, shown.median(), f"{shown.median():.2f}", **away)
    if ends["depth"].max() > DEEP:
        QUIET.note(right, 0.44, 0.44, f"deeper\nthan {DEEP}", ha="center")
    panel(right, "c", f"training accuracy, epoch {ends['epoch'].max()}", "depth L")
    return picture, _of_layers(metrics)


RATED = {"training", "selection"}
"""Tables with the learning rates of networks."""


def caption_norms(tables: Tables) -> str:
    """Return the caption of `draw_norms`: its panels and the learning rates that were tried."""
    start, end = untrained(tables["metrics"]), tables["training"]
    widths, sizes = (" and ".join(map(str, sorted({*rows["width"]}))) for rows in (start, end))
    inputs, data = (
        ", ".join(names_in(__name__).value("data", name) for name in rows["data"].unique())
        for rows in (start, end)
    )
    columns = [tables[name]["learning_rate"] for name in {*tables} & RATED]
    tried = sorted(pd.concat(columns).dropna().unique())
    rates = ", ".join(f"{rate:g}" for rate in tried)
    return (
        "(a, b) show r, a lower bound of the rank, by layer before training"
        f" ({inputs} inputs, width {widths}). (c) shows the training accuracy of ReLU networks"
        f" ({data}, width {sizes}). Normalization precedes the activation. In (c) plain networks"
        " have PyTorch's weights, or He's (hollow), which keep the size of the signal."
        f" Learning rates: best of {rates}."
    )


def say_norms(tables: Tables) -> str:
    """Return the headline: the median accuracy of networks of 16 layers with layer norm.

    Raises NoRows if there are none.
    """
    accuracy = select(last_epoch(tables["training"]), normalization="layer", depth=16)[
        "train_accuracy"
    ]
    return (
        "With layer or RMS norm r falls to 1, but networks learn: at depth 16 layer norm reaches"
        f" accuracy {accuracy.median():.2f}"
    )


RANGE = {"replicates": "range", "marker": "", "sort": False}
RANK = Panel("rank before training", "metrics", "layer", "matrix_rank", RANGE)
BOUND = Panel("r", "metrics", "layer", "rank_bound", RANGE)
ACCURACY = Panel("training accuracy", "training", "epoch", "train_accuracy", RANGE)


def initialization(init: str) -> Name:
    """Return the printed name and the look of an initialization, for `curves`."""
    name = name_of(NAMES["init"], init)
    text = "positive\nweights\n(asymmetric)" if init == "asymmetric" else name.drawn
    return Name(text, name.look or own_look("init", init))


def draw_starts(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the rank by layer before training, and the accuracy by epoch, for two initializations.

    Lines are medians, bands the range. Returns the picture, and a table with median and range of
    the accuracy for each initialization and epoch.
    """
    room = {"gap": 0.7, "right": 1.2}
    picture, ((left, _), (right, ends)) = draw_panels(
        tables, [RANK, ACCURACY], "init", initialization, **room
    )
    width = tables["metrics"]["width"].iloc[0]
    ticks(left.yaxis, [1, width / 4, width / 2, 3 * width / 4, width])
    level(right, chance_level(tables), "chance", at=0.6, above=False)
    name_ends(right, with_heights(ends))
    return picture, spread(tables["training"], ["init", "epoch"], ["train_accuracy"])


def say_starts(tables: Tables) -> str:
    """Return the headline: median last ranks and median accuracies of two initializations."""
    rank = rank_of_last_layer(tables["metrics"]).groupby("init")["matrix_rank"].median()
    ends = last_epoch(tables["training"]).groupby("init")["train_accuracy"].median()
    return (
        f"With batch norm, positive weights lower the rank from {rank['pytorch']:.0f} to"
        f" {rank['asymmetric']:.0f}, and the training accuracy from {ends['pytorch']:.2f} to"
        f" {ends['asymmetric']:.2f}"
    )


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: rank and r by layer before training, accuracy by epoch.

    The returned table has a row for each normalization, with medians over replicates: ranks of the
    last layer before training, and results of the last epoch.
    """
    shown = [RANK, BOUND, ACCURACY] if "training" in tables else [RANK, BOUND]
    room = {"height": 3.2, "gap": 0.7, "right": 1.15}
    picture, drawn = draw_panels(tables, shown, "normalization", normalization, **room)
    name_ends(*drawn[-1])
    ranks = ["matrix_rank", "soft_rank", "rank_bound"]
    last = rank_of_last_layer(tables["metrics"])
    summary = last.groupby("normalization", sort=False)[ranks].median()
    if "training" in tables:
        columns = ["learning_rate", "train_loss", "train_accuracy", "test_accuracy"]
        ends = last_epoch(tables["training"]).groupby("normalization")
        summary = summary.join(ends[columns].median())
    return picture, summary.reset_index()


TITLE = "rank by layer and training"

CAPTION = (
    "Panels show the rank of each hidden layer before training, its lower bound r, and the training"
    " accuracy by epoch. Lines are medians, bands the range of the replicates."
)
"""Title and caption of the preview."""

HEADLINE = ["matrix_rank", "soft_rank", "rank_bound", "test_accuracy"]

FIGURES = [
    Drawing(
        "rank-fig1",
        draw_by_depth,
        whose="as in the paper, with r",
        findings=[
            Finding(
                say_collapse,
                holds=[
                    "vanilla-rank-collapses",
                    "batch-norm-keeps-rank",
                    "vanilla-cannot-learn",
                    "batch-norm-loses-little",
                ],
            )
        ],
        marks="lines: means, dots: networks",
        caption=say_rates,
        shows={"normalization": choices.NORMALIZATIONS.only("none", "batch")},
    ),
    Drawing(
        "rank-fig2",
        draw_by_layer,
        whose="as in the paper",
        findings=[
            Finding(
                say_layers,
                holds=[
                    "linear-vanilla-rank-one",
                    "relu-vanilla-rank-one",
                    "linear-batch-norm-above-root",
                    "relu-batch-norm-above-root",
                ],
            )
        ],
        marks="lines: medians, bands: range",
        caption=caption_layers,
        shows={"normalization": choices.NORMALIZATIONS.only("none", "batch")},
    ),
    Drawing(
        "rank-starts",
        draw_starts,
        whose="as the paper describes",
        findings=[
            Finding(
                say_starts,
                holds=["asymmetric-start-lowers-rank", "asymmetric-start-slows-learning"],
            )
        ],
        marks="lines: medians, bands: range",
        caption="(a) shows the rank by layer before training, (b) the training accuracy by epoch of"
        " ReLU networks with batch norm. Weights and biases are uniform on [−1/√d, 1/√d], or on"
        " [0, 2/√d] (asymmetric; d: inputs of the layer). Each uses the best of five learning"
        " rates. Lines are medians, bands the range.",
    ),
    Drawing(
        "rank-norms",
        draw_norms,
        whose="our experiment",
        findings=[Finding(say_norms, holds=["only-batch-norm-keeps-rank", "learns-from-rank-one"])],
        marks="lines: medians, dots: networks, r: lower bound of the rank",
        caption=caption_norms,
    ),
]
