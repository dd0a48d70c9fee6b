"""Draw the figures of study `norm_finetuning`, and the preview of one run."""

from functools import partial
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.norm_tuning.names import NAMES
from runner.papers.norm_tuning.norm_finetuning.tables import ARMS, ends
from runner.results.drawing import Drawing, Finding
from runner.results.looks import name_of
from runner.results.rows import NoRows, Tables, nonempty, select
from runner.results.style import (
    GREY,
    PALE,
    SMALL,
    panel,
    sheet,
    ticks,
)

STARTS = NAMES["start"]
"""Names of the frozen weights in panels."""

ACROSS = 2
"""Number of panels in a row."""

COMPARED = ("norm", "random_weights")
"""Trained parts that are compared: in the largest random ResNet their medians are written."""

MORE = {
    "holds": "In a random ResNet {trained:,} trained γ and β reach test accuracy {norm:.2f},"
    " equally many other weights {random_weights:.2f}",
    "undecided": "It is undecided whether {trained:,} γ and β of a random ResNet learn more than"
    " equally many weights ({norm:.2f} and {random_weights:.2f})",
}
"""Headlines by the verdict of the claim that γ and β reach a higher accuracy."""


def _largest_random(rows: pd.DataFrame) -> tuple[str, int, int]:
    """Return initialization, number of layers and width of the largest random ResNet.

    The numbers are 0 if no ResNet is random.
    """
    rows = rows[rows["start"] == "random"]
    if rows.empty:
        return "random", 0, 0
    L = rows["L"].max()
    return "random", L, rows.loc[rows["L"] == L, "d"].max()


def say_norm(tables: Tables, words: str) -> str:
    """Return the headline of figure `norm-finetuning`, with two median test accuracies.

    They are reached by training gamma and beta, and by training equally many other weights, in the
    largest random ResNet. words: the text, with fields `{trained}`, `{norm}` and
    `{random_weights}`. Raises NoRows if no random ResNet was trained.
    """
    rows = ends(tables)
    _, L, d = _largest_random(rows)
    rows = rows[(rows["L"] == L) & (rows["d"] == d)]
    trained = int(select(rows, arm="norm")["trained"].iloc[0])
    return words.format(trained=trained, **rows.groupby("arm")["right"].median())


def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure `norm-finetuning`: test accuracies after the last epoch.

    There is a panel for each ResNet and initialization, and a row for each part of the network that
    was trained. Small marks are replicates, large marks medians. Returns the picture, and a table
    with median and range of the accuracies of each row.
    """
    shown = nonempty(pd.concat([_ends(tables, start) for start in STARTS]), "rows: networks")
    by_start = shown.groupby("start", sort=False)
    networks = [network for _, group in by_start for network in group.groupby(["start", "L", "d"])]
    rows = [networks[first : first + ACROSS] for first in range(0, len(networks), ACROSS)]
    arms = [[arm for arm in ARMS if any(arm in set(g["arm"]) for _, g in row)] for row in rows]
    heights = [0.42 * len(names) + 0.3 for names in arms]
    cols, size = min(ACROSS, len(networks)), {"heights": heights, "left": 1.5, "gap": 1.0}
    size |= {"height": sum(heights) + 1.1 * len(rows), "right": 1.05, "between": 1.1}
    picture, panels = sheet(len(rows), cols, sharex=True, sharey="row", **size)
    for axes in panels.flat[len(networks) :]:
        axes.remove()
    low, high = np.floor(10 * shown["right"].min()) / 10, np.ceil(10 * shown["right"].max()) / 10
    panels[0, 0].set_xlim(low - 0.02, high + 0.02)
    largest = _largest_random(shown)
    numbered = zip(panels.flat, ascii_lowercase, networks, strict=False)
    for number, (axes, letter, ((start, L, d), part)) in enumerate(numbered):
        here = arms[number // ACROSS]
        axes.set_ylim(-0.6, len(here))
        beside: dict = {"transform": axes.get_yaxis_transform(), "va": "center", "size": SMALL}
        for y, arm in enumerate(here):
            ends, look = part[part["arm"] == arm], ARMS[arm].look
            look.each(axes, ends["right"], y - np.linspace(0.23, 0.36, len(ends)), alpha=0.8)
            median = ends["right"].median()
            look.line(axes, [median] if len(ends) else [], [y + 0.08][: len(ends)])
            if (start, L, d) == largest and arm in COMPARED and len(ends):
                beside_it: dict = {"textcoords": "offset points", "xytext": (9, 0), "va": "center"}
                look.name(axes, median, y + 0.08, f"{median:.2f}", ha="left", **beside_it)
            trained = f"{ends['trained'].iloc[0]:,.0f}" if len(ends) else "not run"
            axes.text(1.03, y, trained, color=GREY, **beside)
        axes.text(1.03, len(here) - 0.25, "parameters\ntrained", color=GREY, **beside)
        title = f"{L} layers × {d} channels, {name_of(STARTS, start).drawn}"
        panel(axes, letter, title, "test accuracy")
        axes.tick_params(labelbottom=True)
        axes.grid(axis="x", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
        ticks(axes.yaxis, range(len(here)), [ARMS[arm].drawn for arm in here])
    groups = shown.groupby(["start", "L", "d", "arm", "trained"], sort=False)
    return picture, groups["right"].agg(["median", "min", "max"]).reset_index()


def _ends(tables: Tables, start: str) -> pd.DataFrame:
    """Return the rows of `tables.ends` for an initialization; an empty table if there are none."""
    try:
        return ends(tables, start)
    except NoRows:
        return pd.DataFrame(columns=["start", "L", "d", "arm", "trained", "right"])


overview = draw

HEADLINE = ["test_accuracy", "train_accuracy"]

FIGURES = [
    Drawing(
        "norm-finetuning",
        draw,
        whose="our experiment",
        findings=[
            Finding(partial(say_norm, words=words), when={"norm-beats-random-weights": verdict})
            for verdict, words in MORE.items()
        ],
        marks="large marks: medians, dots: replicates",
        caption="The figure shows the test accuracy if SGD trains only one part of a ResNet, at"
        " the best learning rate of a grid (chosen on a separate replicate). Pre-trained"
        " networks know half of the classes; now each learns the other half with a new last"
        " layer. Dots are replicates, large marks medians.",
        shows={"arm": [*ARMS, "pretraining"]},  # pre-training is where the others begin
    ),
]
