"""Draw the figure of study `vgg_size`, and the preview of one run."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.learning import chance_level, with_divergence
from runner.papers.batch_norm_rank.names import NAMES
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding
from runner.results.looks import DOTTED, INK, Look, Name, name_of
from runner.results.rows import Tables, spread
from runner.results.style import level, name_ends, panel, sheet

QUIET_HE = Look(INK, "", DOTTED, 1.6)
"""Look of He's weights, which lie on plain networks."""


def _size(size: float) -> str:
    """Return a size in words, below 0.001 as a power of ten."""
    if size >= 1e-3:
        return f"size {size:.1g}"
    return f"size 10$^{{{np.log10(size):.0f}}}$".replace("-", "−")


def draw_vgg(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the training accuracy of each initialization by epoch.

    The names have the last accuracy, and rank and size of the last layer before training. Returns
    the picture, and a table with median and range of each initialization and epoch.
    """
    before = tables["before"].groupby("method")[["rank", "rank_bound", "size"]].median()
    drawn = spread(with_divergence(tables["training"]), ["method", "epoch"], ["train_accuracy"])
    last = drawn.sort_values("epoch").groupby("method")["train_accuracy"].last()
    picture, ((axes,),) = sheet(1, 1, right=2.5)

    def named(method: str) -> Name:
        own, name = before.loc[method], name_of(NAMES["method"], method)
        words = f"rank {own['rank']:.0f}, {_size(own['size'])}"
        look = QUIET_HE if method == "he" else name.look
        return Name(f"{name.drawn}: {last[method]:.2f}\n({words})", look)

    ends = curves(
        axes, drawn, "epoch", "train_accuracy", "method", named, replicates="range", marker="",
        first=["vanilla"],
    )  # fmt: skip
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set(ylim=(0, 1.03), xlim=(0, 1.03 * drawn["epoch"].max()))
    level(axes, chance_level(tables), "chance", at=0.4, above=False)
    name_ends(axes, ends)
    panel(axes, "", "training accuracy", "epoch")
    measures = ["rank", "rank_bound", "size", "alignment", "first_gradient", "last_gradient"]
    return picture, drawn.merge(spread(tables["before"], ["method"], measures), on="method")


def say_size(tables: Tables, says: str) -> str:
    """Return the headline with the last median accuracies of two initializations of one rank."""
    rows = with_divergence(tables["training"])
    last = rows[rows["epoch"] == rows["epoch"].max()]
    unit, he = (
        last.loc[last["method"] == method, "train_accuracy"].median()
        for method in ("unit_scale", "he")
    )
    return says.format(unit=f"{unit:.2f}", he=f"{he:.2f}")


SAYS = {
    "holds": "VGG-19 learns without batch norm if layers begin at size 1 (accuracy {unit});"
    " He's weights of equal rank reach {he}",
    "fails": "Layers of size 1 do not make VGG-19 trainable without batch norm (accuracy {unit},"
    " He's weights {he})",
    "undecided": "It is undecided whether layers of size 1 make VGG-19 trainable without batch norm"
    " (accuracy {unit}, He's weights {he})",
}
"""The headline by the verdict of the claim `size-lets-vgg-learn`."""


def caption(tables: Tables) -> str:
    """Return the caption: the initializations, and their learning rates."""
    rates = tables["training"].groupby("method")["learning_rate"].unique()
    names = {m: name_of(NAMES["method"], m).printed.replace("\n", " ") for m in rates.index}
    words = (f"{', '.join(f'{r:g}' for r in of)} ({names[m]})" for m, of in rates.items())
    return (
        "The training accuracy of VGG-19 without batch norm is shown by epoch. Plain networks have"
        " PyTorch's initialization, those called He have He's weights and zero biases. Networks of"
        " unit size have the same weights as He's, but each layer is divided by a number, so that"
        " its root mean square is 1; this does not change rank, r and the directions of the last"
        " layer. Below each name are the last accuracy, and the rank and root mean square (size) of"
        " the last layer before training. Lines are medians, bands the range. Learning"
        f" rates, which another replicate chose: {', '.join(words)}."
    )


overview = draw_vgg

TITLE = "training accuracy of VGG-19 without batch norm"

CAPTION = "Training accuracy by epoch. Lines are medians, bands the range of the replicates."
"""Title and caption of the preview."""

HEADLINE = ["rank", "rank_bound", "size", "train_accuracy"]

FIGURES = [
    Drawing(
        "rank-vgg",
        draw_vgg,
        whose="ours, with the networks of figure 10",
        findings=[
            Finding(partial(say_size, says=says), **{verdict: ["size-lets-vgg-learn"]})
            for verdict, says in SAYS.items()
        ],
        marks="lines: medians, bands: range",
        unread=("selection",),
        caption=caption,
    ),
]
