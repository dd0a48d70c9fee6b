"""Drawings of study `norm_finetuning`."""

from functools import partial
from string import ascii_lowercase

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.norm_tuning.looks import METHODS
from runner.papers.norm_tuning.norm_finetuning.tables import ARMS, ends
from runner.results.claims import Tables
from runner.results.figures import Drawing
from runner.results.findings import Finding
from runner.results.rows import NoRows, nonempty, select
from runner.results.style import (
    GREY,
    OLIVE,
    PALE,
    PLAIN,
    PURPLE,
    SKY,
    SMALL,
    Look,
    panel,
    sheet,
    ticks,
)

LOOKS = {
    "last_layer": Look(GREY, "v"),
    "random_weights": Look(SKY, "D", hollow=True),
    "norm": METHODS["sgd"],
    "biases": Look(PURPLE, "s", hollow=True),
    "low_rank": Look(OLIVE, "P", hollow=True),
    "all": METHODS["dense"],
}
"""Blue where γ and β are trained, black where everything is; also in the picture of a sweep."""

STARTS = {"random": "random", "pretrained": "pre-trained"}
"""What the other weights are, in the panels of a start."""

ACROSS = 3
"""Panels in a row."""

MORE = {
    "holds": "In a random ResNet {trained:,} trained γ and β reach a test accuracy of {norm:.2f},"
    " and as many other weights {random_weights:.2f}",
    "undecided": "It is undecided whether {trained:,} γ and β of a random ResNet learn more than as"
    " many of its weights (test accuracy {norm:.2f} and {random_weights:.2f})",
}
"""By the verdict of the claim that they do."""


def say_norm(tables: Tables, words: str) -> str:
    """Say where training γ and β ends, and where as many random weights, in the largest."""
    rows = ends(tables)
    rows = rows[rows["L"] == rows["L"].max()]
    rows = rows[rows["d"] == rows["d"].max()]
    trained = int(select(rows, arm="norm")["trained"].iloc[0])
    return words.format(trained=trained, **rows.groupby("arm")["right"].median())


def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the test accuracy at the end, a panel for each start and network, a row for each arm."""
    shown = pd.concat([_ends(tables, start) for start in STARTS])
    by_start = nonempty(shown, "rows: networks").groupby("start", sort=False)
    networks = [each for _, of in by_start for each in of.groupby(["start", "L", "d"])]
    arms = [arm for arm in ARMS if arm in set(shown["arm"])]
    cols = min(ACROSS, len(networks))
    rows, options = -(-len(networks) // cols), {"sharex": True, "sharey": True}
    picture, panels = sheet(rows, cols, height=4.3 * rows, left=1.6, right=0.2, gap=0.3, **options)
    for axes in panels.flat[len(networks) :]:
        axes.remove()
    low, high = np.floor(10 * shown["right"].min()) / 10, np.ceil(10 * shown["right"].max()) / 10
    panels[0, 0].set(xlim=(low - 0.02, high + 0.02), ylim=(-0.6, len(arms)))
    for axes, letter, ((start, L, d), of) in zip(
        panels.flat, ascii_lowercase, networks, strict=False
    ):
        for y, arm in enumerate(arms):
            own, look = of[of["arm"] == arm], LOOKS[arm]
            look.each(axes, own["right"], y + np.linspace(-0.1, 0.1, len(own)), alpha=0.8)
            look.line(axes, [own["right"].median()] * bool(len(own)), [y][: len(own)])
            trained = f"{own['trained'].iloc[0]:,.0f} trained" if len(own) else "not run"
            spot = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": SMALL}
            axes.text(0.03, y - 0.35 * bool(len(own)), trained, color=GREY, **spot)
        PLAIN.note(axes, 0.03, 0.96, f"from {STARTS[start]} weights")
        panel(axes, letter, f"{L} layers × {d} channels", "test accuracy")
        axes.tick_params(labelbottom=True)
        axes.grid(axis="x", color=PALE, linewidth=0.6)
        axes.set_axisbelow(True)
    ticks(panels[0, 0].yaxis, range(len(arms)), [ARMS[arm] for arm in arms])
    groups = shown.groupby(["start", "L", "d", "arm", "trained"], sort=False)
    return picture, groups["right"].agg(["median", "min", "max"]).reset_index()


def _ends(tables: Tables, start: str) -> pd.DataFrame:
    """Return the last epochs of the networks of a start; no rows if no network has it."""
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
        whose="ours",
        findings=[
            Finding(partial(say_norm, words=words), **{verdict: ["norm-beats-random-weights"]})
            for verdict, words in MORE.items()
        ],
        marks="dots: replicates",
        caption="Test accuracy if only one part of a ResNet is trained, by SGD at the best learning"
        " rate of a grid (chosen on a separate replicate). Pre-trained networks know half of the"
        " classes, learn the others, and all train a new last layer. Dots are replicates, large"
        " markers medians; grey: how many numbers are trained.",
        shows={"arm": list(ARMS)},
    ),
]
