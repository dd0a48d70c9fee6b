"""Drawings of study `norm_finetuning`."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.norm_tuning.looks import METHODS
from runner.papers.norm_tuning.norm_finetuning.tables import ARMS, ends
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import select
from runner.results.style import GREY, OLIVE, PURPLE, SKY, Look, name_ends, panel, sheet, ticks

LOOKS = {
    "last_layer": Look(GREY, "v"),
    "random_weights": Look(SKY, "D", hollow=True),
    "norm": METHODS["sgd"],
    "biases": Look(PURPLE, "s", hollow=True),
    "low_rank": Look(OLIVE, "P", hollow=True),
    "all": METHODS["dense"],
}
"""Blue is what trains scales and shifts, black a network of which everything is trained."""

STARTS = {"random": "random start", "pretrained": "pre-trained on other classes"}
"""What stands above the panel of a start."""


def say_norm(tables: Tables) -> str:
    """Where training scales and shifts ends, beside as many random weights, in the largest."""
    rows = ends(tables)
    rows = rows[rows["L"] == rows["L"].max()]
    rows = rows[rows["d"] == rows["d"].max()]
    right = 100 * rows.groupby("arm")["right"].median()
    trained = select(rows, arm="norm")["trained"].iloc[0]
    return (
        f"In a random ResNet of {rows['L'].iloc[0]} layers its {trained:,} scales and shifts alone"
        f" learn {right['norm']:.0f} % of the test images, as many random weights"
        f" {right['random_weights']:.0f} %, everything {right['all']:.0f} %"
    )


def draw(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Test accuracy at the end: left from random frozen weights, right from pre-trained ones."""
    sizes = len(tables["training"][["blocks", "width"]].drop_duplicates())
    left, gap = (0.75, 2.9) if sizes > 1 else (1.75, 1.95)  # names at a panel's right, or its left
    picture, panels = sheet(left=left, gap=gap, right=0.2)
    drawn = [pd.DataFrame(columns=["start", "L", "d", "arm", "trained", "right"])]
    for axes, letter, (start, title) in zip(panels.flat, "ab", STARTS.items(), strict=True):
        panel(axes, letter, title)
        with or_empty(axes):
            rows = ends(tables, start)
            is_one = len(rows[["L", "d"]].drop_duplicates()) == 1
            (_by_arm if is_one else _by_network)(axes, rows)
            drawn.append(rows)
    groups = pd.concat(drawn).groupby(["start", "L", "d", "arm", "trained"], sort=False)
    return picture, groups["right"].agg(["median", "min", "max"]).reset_index()


def _by_arm(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw a row for each arm: replicates as dots, their median, and the numbers it trains."""
    arms = [arm for arm in ARMS if arm in set(rows["arm"])]
    labels = []
    for y, arm in enumerate(arms):
        own, look = rows[rows["arm"] == arm], LOOKS[arm]
        shift = np.linspace(-0.12, 0.12, len(own))
        look.line(axes, own["right"], y + shift, linestyle="", markersize=6)
        axes.plot([own["right"].median()] * 2, [y - 0.26, y + 0.26], color=look.ink, linewidth=2)
        labels.append(f"{ARMS[arm]}\n{own['trained'].iloc[0]:,.0f}")
    ticks(axes.yaxis, range(len(arms)), labels)
    axes.set(xlim=(0, 1.02), ylim=(-0.5, len(arms) - 0.5))
    axes.set_xlabel("test accuracy at the end")


def _by_network(axes: Axes, rows: pd.DataFrame) -> None:
    """Draw a line for each arm over the widths, at one depth after the other."""
    networks = sorted(set(zip(rows["L"], rows["d"], strict=True)))
    places = [networks.index(each) for each in zip(rows["L"], rows["d"], strict=True)]
    named: list[tuple[float, str, Look]] = []
    for arm, own in rows.assign(place=places).groupby("arm"):
        look = LOOKS[arm]
        look.each(axes, own["place"], own["right"])
        for _, alike in own.groupby("L"):
            middle = alike.groupby("place")["right"].median()
            look.line(axes, middle.index, middle)
        named.append((middle.iloc[-1], ARMS[arm], look))
    ticks(axes.xaxis, range(len(networks)), [f"{L}\n{d}" for L, d in networks])
    axes.set(xlim=(-0.2, len(networks) - 0.8), ylim=(0, min(1, 1.1 * rows["right"].max())))
    axes.set_xlabel("layers, channels of the first stage", labelpad=1)
    name_ends(axes, named)


overview = draw

HEADLINE = ["test_accuracy", "train_accuracy"]

FIGURES = [
    Drawing(
        "norm-finetuning",
        draw,
        whose="ours",
        findings=[Finding(say_norm, holds=["norm-beats-random-weights"])],
        caption="What a ResNet learns of which only a part is trained, by plain SGD at the fastest"
        " rate of a grid, chosen for each part on a separate replicate. Dots are replicates,"
        " strokes and lines medians; a number below a name counts what is trained. (a) The"
        " other weights are random. (b) They are trained on the lower half of the classes; the"
        " upper half is learned, with a new last layer that every arm trains. BitFit trains"
        " the shifts, LoRA a product of rank one at the centre of each kernel.",
        shows={"arm": list(ARMS)},
    ),
]
