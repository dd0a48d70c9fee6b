"""Draw figure 2 of paper D, the symmetry that a trained network has learned, and two variations."""

from functools import partial

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from runner.papers.bottleneck_structure.looks import draw_spectra, name_spectra
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER, PIXEL
from runner.papers.bottleneck_structure.symmetry.tables import (
    FITTED,
    crossing,
    paths,
)
from runner.results import style
from runner.results.curves import curves
from runner.results.drawing import Drawing, Finding, or_empty
from runner.results.looks import Name
from runner.results.rows import NoRows, Present, Tables, select
from runner.results.style import GREEN, INK, QUIET, SMALL, VERMILION, Look

RANK = 2
"""Rank of the task, which is the number of singular values drawn as lines."""
LEVELS = np.linspace(0, 1, 15)
ORBIT = Look(VERMILION)
WITHIN = "within / between"
"""Name of the ratio of distances of figure 2, whose orbits are in the plane of panel (c)."""


def _crossing(embedding: pd.DataFrame) -> str:
    """Return as text how many pairs of paths cross."""
    xy = paths(embedding)
    return f"{crossing(xy)} of {len(xy) * (len(xy) - 1) // 2:,} pairs of paths cross"


def _paths(axes: Axes, embedding: pd.DataFrame, thick: float, aspect: str = "equal") -> None:
    """Draw every path of gradient descent with a dot at its beginning, lighter near the axis.

    thick: width of the lines. aspect: `equal`, or `auto` to fill a panel that is low.
    """
    xy = paths(embedding)
    pieces = np.stack([xy[:, :-1], xy[:, 1:]], 2).reshape(-1, 2, 2)
    value = paths(embedding, ("axis", "axis"))[:, 1:, 0].ravel()
    shades = {"array": value, "cmap": "viridis", "linewidths": thick, "clim": (0, 1.12)}
    axes.add_collection(LineCollection(list(pieces), **shades))
    axes.plot(*xy[:, 0].T, ".", color=INK, ms=2.6 * thick)
    axes.margins(0.17 if aspect == "equal" else 0.05, 0.1)  # large panels have notes
    axes.autoscale_view()
    axes.set_aspect(aspect, adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    axes.set_xlabel("component 1", size=SMALL)
    axes.set_ylabel("component 2", size=SMALL)


def _rings(axes: Axes, distance: pd.DataFrame, size: float) -> None:
    """Draw the distance to the point x_0, a white square; light where large. The orbit is dashed.

    size: size of the square.
    """
    table = distance.pivot(index="second", columns="first", values="distance")
    largest = table.to_numpy().max()
    share = table / (largest if largest > 0 else 1.0)
    if min(share.shape) > 1 and np.isfinite(share.to_numpy()).all():
        axes.contourf(table.columns, table.index, share, levels=LEVELS, cmap="YlGnBu_r")
        white = {"colors": "white", "linewidths": 0.07 * size, "alpha": 0.6}
        axes.contour(table.columns, table.index, share, levels=LEVELS, **white)
    dashed = {"ec": VERMILION, "lw": 0.25 * size, "ls": (0, (4, 2))}
    axes.add_patch(Circle((0, 0), np.hypot(*PIXEL), fill=False, **dashed))
    axes.plot(*PIXEL, "s", color="white", mec=INK, ms=size, mew=0.16 * size)
    axes.set(aspect="equal", anchor="NW", xticks=[], yticks=[])


def _shown(tables: Tables) -> list[tuple[str, str, Tables]]:
    """Return title, stage and tables for each row of panels of figure 2.

    The first row, with large panels, has networks trained with weight decay throughout, if there
    are any.
    """
    known = set(tables["metrics"]["recipe"])
    parts = {
        recipe: Present({name: rows[rows["recipe"] == recipe] for name, rows in tables.items()})
        for recipe in ("constant", "annealed")
        if recipe in known
    }
    first, *others = parts.values()
    rows = [("", "trained", first), ("before training", "untrained", first)]
    return rows + [("annealed training", "trained", other) for other in others]


def _at(tables: Tables, layer: int, stage: str = "trained") -> pd.DataFrame:
    """Return the measures of the networks of a stage at a layer, at most the last layer."""
    rows = select(tables["metrics"], stage=stage)
    return select(rows, layer=min(layer, int(rows["layer"].max())))


def _within(tables: Tables, stage: str = "trained") -> str:
    """Return as text the median of (distance within an orbit) / (distance between orbits), in
    percent.

    The orbits are those in the plane of panel (c).
    """
    ratio = _at(tables, DISTANCE_LAYER, stage)["plane_ratio"].median()
    return f"{100 * ratio:.0f}\u00a0%"


def say_orbits(tables: Tables, collapse: str) -> str:
    """Return the headline of figure 2: the rank, and whether orbits collapse in training.

    Its numbers are the median ratios of the distance within an orbit to the distance between
    orbits. The second one is of annealed training if it was run, and else before training.
    collapse: the words about the collapse, a value of the dictionary COLLAPSE.
    """
    (_, _, trained), (_, _, before), *others = _shown(tables)
    second = f"{_within(before, 'untrained')} before training"
    second = f"annealed: {_within(others[0][2])}" if others else second
    return (
        f"The network finds rank {RANK}, {collapse}: distances within orbits are"
        f" {_within(trained)} of those between ({second})"
    )


COLLAPSE = {"holds": "and orbits collapse", "fails": "but orbits do not collapse"}
"""Words of the headline, by the verdict of the claim that orbits collapse."""


def say_annealed(tables: Tables) -> str:
    """Return the headline of figure 2 if only annealed training was run, with the same two numbers.

    Raises NoRows if networks were trained with weight decay throughout.
    """
    (_, _, trained), (_, _, before) = _shown(tables)[:2]
    if set(trained["metrics"]["recipe"]) != {"annealed"}:
        raise NoRows("annealed training is not in the large panels")
    return (
        f"After annealed training distances within an orbit are {_within(trained)} of the distances"
        f" between orbits ({_within(before, 'untrained')} before training)"
    )


def caption_symmetry(tables: Tables) -> str:
    """Return the caption of figure 2, which says how the networks of the panels were trained."""
    parts = [rows["metrics"]["recipe"].iloc[0] for _, _, rows in _shown(tables)]
    large, others = parts[0], parts[2:]
    annealed = "weight decay 0, then up to 5 λ, then λ"
    training = {
        "constant": "Large panels have weight decay λ in all steps.",
        "annealed": f"Large panels show annealed training ({annealed}).",
    }[large]
    return (
        "Networks predict losses along paths of gradient descent, which a rotation about w does not"
        " change. (a) shows the two largest singular values of each layer as lines and all others"
        f" as a band, (b) the paths in two principal components of layer {PCA_LAYER}, (c) distances"
        f" in layer {DISTANCE_LAYER} to a point of a plane orthogonal to w. The dashed line is the"
        " orbit of this point. Percentages are mean distances within an orbit, divided by those"
        f" between orbits of this plane. {training}"
        + (f" Annealed training has {annealed}." if others else "")
    )


def draw_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 2 of paper D for the first replicate, with a row of panels for each network.

    The panels show singular values by layer (a), paths on two principal components (b), and
    distances to a point (c). The rows are: after training, before training, and after annealed
    training if it is not in the first row. Returns the picture and the table `metrics`.
    """
    shown = _shown(tables)
    picture = style.canvas(3.5 + 1.3 * (len(shown) - 1))
    shape = {"width_ratios": [1, 1.2, 0.95], "height_ratios": [1, *[0.36] * (len(shown) - 1)]}
    grid = picture.subplots(len(shown), 3, **shape)
    for (a, b, c), (title, stage, rows), thick in zip(grid, shown, (2.2, 1.4, 1.4), strict=False):

        def first(table: str, stage: str = stage, rows: Tables = rows) -> pd.DataFrame:
            return select(rows[table], stage=stage, replicate=0)

        for axes in (a, b, c):
            axes.set_title(title or " ", loc="left", size=SMALL, color=QUIET.ink)
        with or_empty(a):
            spectrum = first("spectrum")
            draw_spectra(a, spectrum, RANK, thick)
            style.ticks(a.xaxis, [1, int(spectrum["layer"].max())])
            a.set_xlabel(r"layer $\ell$", size=SMALL)
        with or_empty(b):
            _paths(b, first("embedding"), thick / 2, "auto" if title else "equal")
            if title:
                b.set_xlabel(_crossing(first("embedding")), size=SMALL)
                b.set_ylabel("")
        with or_empty(c):
            _rings(c, first("distance"), size=2.7 * thick)
            c.set_xlabel(f"{WITHIN}: {_within(rows, stage)}", size=SMALL, loc="left")
    a, b, c = grid[0]
    trained = shown[0][2]
    with or_empty(a):
        name_spectra(a, select(trained["spectrum"], stage="trained", replicate=0), RANK)
    with or_empty(b):
        embedding = select(trained["embedding"], stage="trained", replicate=0)
        words = f"{_crossing(embedding)}\nline: gradient descent, dot: start"
        QUIET.note(b, 0.03, 0.98, words, va="top")
    QUIET.note(b, 0.97, 0.05, "lighter: nearer to rotation axis w", ha="right")
    ORBIT.name(c, 0, 0, "orbit\nof $x_0$", linespacing=1.1)
    words = "plane orthogonal to w\ndark: near to $x_0$ (square)"
    words += f"\norbits of this plane,\n{WITHIN}: {_within(trained)}"
    c.set_xlabel(words, size=SMALL, loc="center")
    style.panel(a, "a", "trained: singular values", a.get_xlabel())
    style.panel(b, "b", f"layer {PCA_LAYER}: two components", b.get_xlabel())
    style.panel(c, "c", f"layer {DISTANCE_LAYER}: distance to $x_0$", c.get_xlabel())
    return picture, tables["metrics"]


STATISTICS = {
    "knn_r2_axis": Name("along the axis w:\n(w·v)²", Look(GREEN)),
    "knn_r2_orthogonal": Name("across the axis w:\n‖(I − wwᵀ)v‖²", Look(VERMILION, "s")),
}
"""Columns of the summary statistics, with their names and looks."""


def _trained_by_decay(tables: Tables) -> pd.DataFrame:
    """Return the measures of trained networks at layer PCA_LAYER, whose runs differ in the decay.

    The column `k` has the median rank of the networks.
    """
    rows = _at(tables, PCA_LAYER)
    usual = rows.groupby("noise")["ridge"].nunique().idxmax()
    rank = select(tables["networks"], stage="trained").groupby(["noise", "ridge"])["rank"].median()
    return select(rows, noise=usual).join(rank.rename("k"), on=["noise", "ridge"])


def say_spurious(tables: Tables) -> str:
    """Return the headline: median rank and explained variance at the largest weight decay."""
    rows = _trained_by_decay(tables).groupby(["ridge", "k"])[[*STATISTICS]].median()
    (strong, low), most = rows.index[-1], rows.iloc[-1].max()
    fraction = "less than half" if most < 0.5 else f"at most {100 * most:.0f} %"
    return (
        f"With λ = {strong:g} the rank falls to {low:.0f}, and layer {PCA_LAYER} explains"
        f" {fraction} of each statistic's variance"
    )


def draw_other_tasks(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the unexplained variance of two summary statistics, by weight decay.

    Large marks are medians, dots networks. Returns the picture and the table `metrics`.
    """
    picture, ((axes,),) = style.sheet(1, 1, height=4.0, right=3.3)
    rows = _trained_by_decay(tables)
    ranks, ends = rows.groupby("ridge")["k"].median(), []
    labels = [f"{ridge:g} (rank {rank:g})" for ridge, rank in ranks.items()]
    style.ticks(axes.xaxis, range(len(ranks)), labels)
    axes.set(xlim=(-0.3, len(ranks) - 0.8), ylim=(-0.04, 1.02))
    style.ticks(axes.yaxis, [0, 0.2, 0.4, 0.6, 0.8, 1])
    for aside, column in zip((-0.02, 0.02), STATISTICS, strict=True):
        lost = (1 - rows[column]).clip(lower=0)
        places = rows["ridge"].rank(method="dense") - 1 + aside
        lost = rows.assign(place=places, lost=lost, statistic=column)
        columns = ("place", "lost", "statistic", STATISTICS.__getitem__)
        ends += curves(axes, lost, *columns, replicates="dots", alpha=0.8)
    style.name_ends(axes, ends)
    title = f"fraction of a statistic's variance that layer {PCA_LAYER} does not explain"
    style.panel(axes, "", title, "weight decay λ (rank of the trained network)")
    words = "v: a point that gradient descent visits\nw: axis of the symmetry"
    QUIET.note(axes, 1.03, 0.06, words)
    return picture, tables["metrics"]


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run: the panels of figure 2; return the picture and a table.

    The table has ranks and test error of each network. Its column `learned` says whether the
    network fits.
    """
    picture, _ = draw_symmetry(tables)
    networks = tables["networks"]
    columns = ["stage", "replicate", "test_cost", "jacobian_rank", "bottleneck_rank"]
    return picture, networks[columns].assign(learned=networks["test_cost"] < FITTED)


CAPTION = caption_symmetry
"""Caption of the preview."""

HEADLINE = ["knn_r2_axis", "knn_r2_orthogonal", "step_r2", "orbit_ratio"]

FIGURES = [
    Drawing(
        "bottleneck-fig2",
        draw_symmetry,
        whose="as in the paper",
        findings=[
            Finding(
                partial(say_orbits, collapse=COLLAPSE["fails"]),
                holds=["true-rank"],
                fails=["orbits-collapse"],
            ),
            Finding(
                partial(say_orbits, collapse=COLLAPSE["holds"]),
                holds=["true-rank", "orbits-collapse"],
            ),
            Finding(say_annealed, holds=["orbits-collapse-annealed"]),
        ],
        marks="drawn: first network; percentages: medians",
        caption=caption_symmetry,
    ),
    Drawing(
        "bottleneck-symmetry",
        draw_other_tasks,
        unread=("distance", "embedding", "spectrum", "theorems"),
        findings=[Finding(say_spurious, holds=["spurious-symmetry"])],
        marks="large marks: medians, dots: networks",
        caption="The picture shows how much variance of two summary statistics the first two"
        f" principal components of layer {PCA_LAYER} leave unexplained, against the weight decay λ."
        " The statistics are (w·v)² and ‖(I − wwᵀ)v‖² (v: point of a gradient descent path,"
        " w: symmetry axis). Large marks are medians, dots networks. Networks that learn with noise"
        " in the symmetry are in the figure's table.",
    ),
]
