"""Drawing of paper D's figure 2: the symmetry that a trained network has learned."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from runner.papers.bottleneck_structure.looks import draw_spectra, rank_look
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER, PIXEL
from runner.papers.bottleneck_structure.symmetry.tables import FITTED, crossing, paths
from runner.results import style
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import select
from runner.results.style import GREEN, INK, PLAIN, QUIET, SMALL, VERMILION, Look

RANK = 2
"""Of the task: as many singular values are drawn as lines."""
LEVELS = np.linspace(0, 1, 15)
ORBIT = Look(VERMILION)


def _paths(axes: Axes, embedding: pd.DataFrame, thick: float) -> None:
    """Every path of gradient descent, the lighter the nearer the axis; its start is a dot.

    Below stands how many pairs of paths cross.
    """
    xy = paths(embedding)
    pieces = np.stack([xy[:, :-1], xy[:, 1:]], 2).reshape(-1, 2, 2)
    value = paths(embedding, ("axis", "axis"))[:, 1:, 0].ravel()
    shades = {"array": value, "cmap": "viridis", "linewidths": thick, "clim": (0, 1.12)}
    axes.add_collection(LineCollection(list(pieces), **shades))
    axes.plot(*xy[:, 0].T, ".", color=INK, ms=2.6 * thick)
    axes.set_ymargin(0.1)
    axes.autoscale_view()
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    pairs = len(xy) * (len(xy) - 1) // 2
    axes.set_xlabel(f"{crossing(xy)} of {pairs:,} pairs of paths cross", size=SMALL)


def _rings(axes: Axes, distance: pd.DataFrame, size: float) -> None:
    """Distance to the white square, light where large; dashed: the orbit of the task."""
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


def _trained_at(tables: Tables, layer: int) -> pd.DataFrame:
    """Return what was measured of the trained networks at a layer, or at the last."""
    rows = select(tables["metrics"], stage="trained")
    return select(rows, layer=min(layer, int(rows["layer"].max())))


def say_orbits(tables: Tables) -> str:
    """Say how near the points of one orbit are in the layer whose rings are drawn."""
    ratio = _trained_at(tables, DISTANCE_LAYER)["plane_ratio"].mean()
    return (
        "The network learns the task's symmetry: points of one orbit come together, to"
        f" {ratio:.3f} of the distance between orbits"
    )


def draw_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2 of paper D, of the first replicate, for the trained and the untrained network."""
    picture = style.canvas(4.8)
    shape = {"width_ratios": [1, 1.2, 0.95], "height_ratios": [1, 0.36]}
    large, small = picture.subplots(2, 3, **shape)

    def first(table: str, stage: str) -> pd.DataFrame:
        return select(tables[table], stage=stage, replicate=0)

    for (a, b, c), stage, thick in ((large, "trained", 2.2), (small, "untrained", 1.4)):
        with or_empty(a):
            spectrum = first("spectrum", stage)
            draw_spectra(a, spectrum, RANK, thick)
            style.ticks(a.xaxis, [1, int(spectrum["layer"].max())])
            a.set_xlabel(r"layer $\ell$", size=SMALL)
        with or_empty(b):
            _paths(b, first("embedding", stage), thick / 2)
        with or_empty(c):
            _rings(c, first("distance", stage), size=2.7 * thick)
    a, b, c = large
    with or_empty(a):
        network = first("networks", "trained").iloc[0]
        if network["test_cost"] < FITTED and network["rank_gap"] == RANK:
            inside = {"transform": a.transAxes}
            rank_look(RANK).name(a, 0.5, 0.97, "two near 1", weight="bold", **inside)
            QUIET.name(
                a, 0.5, 0.07, f"{int(network['width']) - RANK} others ≈ 0", size=SMALL, **inside
            )
    Look(GREEN).name(b, 0.97, 0.08, "$(w\\cdot v)^2\\to 1$", transform=b.transAxes, ha="right")
    ORBIT.name(c, 0, 0, "orbit\nof $x_0$", linespacing=1.1)
    for axes in large:
        axes.set_title(" ")
    for axes in small:
        axes.set_title("before training", loc="left", size=SMALL, color=QUIET.ink)
    style.panel(a, "a", "singular values", a.get_xlabel())
    style.panel(b, "b", f"layer {PCA_LAYER}: two components", b.get_xlabel())
    style.panel(c, "c", f"layer {DISTANCE_LAYER}: distance to $x_0$")
    return picture, tables["metrics"]


STATISTICS = {
    "knn_r2_axis": ("$(w \\cdot v)^2$", Look(GREEN)),
    "knn_r2_orthogonal": ("$\\|(I - w w^T) v\\|^2$", Look(VERMILION, "s")),
}
"""Of panel (b): their columns, names and looks."""


def _trained_by(tables: Tables, layer: int, by: str) -> pd.DataFrame:
    """Return what was measured at a layer of the trained networks that differ in `by` alone."""
    rows, other = _trained_at(tables, layer), {"noise": "ridge", "ridge": "noise"}[by]
    usual = rows.groupby(other)[by].nunique().idxmax()
    rank = select(tables["networks"], stage="trained").groupby(["noise", "ridge"])["rank"].median()
    return select(rows, **{other: usual}).join(rank.rename("k"), on=["noise", "ridge"])


def say_spurious(tables: Tables) -> str:
    """Say what a rank that is too low forgets, next to the right one."""
    rows = _trained_by(tables, PCA_LAYER, "ridge").groupby(["ridge", "k"])[[*STATISTICS]].median()
    (_, usual), (strong, low) = rows.index[0], rows.index[-1]
    return (
        f"At λ = {strong:g} the rank is {low:.0f}, too low for the task:"
        f" {100 * (1 - rows.iloc[-1].max()):.0f} % or more of each statistic is lost; at rank"
        f" {usual:.0f} it is {100 * (1 - rows.iloc[0].min()):.0f} % or less"
    )


def _places(axes: Axes, rows: pd.DataFrame, by: str) -> pd.Series:
    """Return one place along x for each value, below the rank of its networks."""
    ranks = rows.groupby(by)["k"].median()
    style.ticks(axes.xaxis, range(len(ranks)), [f"{value:g}" for value in ranks.index])
    axes.set_xlim(-0.5, len(ranks) - 0.5)
    for place, rank in enumerate(ranks):
        PLAIN.name(axes, place, 0.96, f"rank {rank:.0f}", transform=axes.get_xaxis_transform())
    return rows[by].rank(method="dense") - 1


def draw_other_tasks(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Orbits by noise, and what a rank that is too low tells of the summary statistics."""
    picture, ((left, right),) = style.sheet(gap=0.9, right=1.2)
    rows = _trained_by(tables, DISTANCE_LAYER, "noise")
    place = _places(left, rows, "noise")
    ORBIT.each(left, place, rows["orbit_ratio"], alpha=0.8)
    ORBIT.line(left, sorted(set(place)), rows.groupby("noise")["orbit_ratio"].median())
    left.set_ylim(0, max(0.3, 1.1 * rows["orbit_ratio"].max()))
    rows = _trained_by(tables, PCA_LAYER, "ridge")
    place, ends = _places(right, rows, "ridge"), []
    right.set_ylim(0, 1.1)
    for column, (name, look) in STATISTICS.items():
        lost = (1 - rows[column]).clip(lower=0)
        median = lost.groupby(place).median()
        look.each(right, place, lost, alpha=0.8)
        look.line(right, median.index, median)
        ends.append((median.iloc[-1], name, look))
    style.name_ends(right, ends)
    style.panel(left, "a", f"layer {DISTANCE_LAYER}: within over between orbits", r"noise $\|E\|$")
    style.panel(right, "b", f"layer {PCA_LAYER}: variance not explained", r"ridge $\lambda$")
    return picture, tables["metrics"]


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Preview of one run: the three panels, and of every network its ranks, and what it costs on
    fresh starts: nothing is said of one that does not fit, which is not trained long enough."""
    picture, _ = draw_symmetry(tables)
    networks = tables["networks"]
    columns = ["stage", "replicate", "test_cost", "jacobian_rank", "bottleneck_rank"]
    return picture, networks[columns].assign(learned=networks["test_cost"] < FITTED)


STATISTIC = ""
"""Each replicate is drawn."""

HEADLINE = ["knn_r2_axis", "knn_r2_orthogonal", "step_r2", "orbit_ratio"]

FIGURES = [
    Drawing(
        "bottleneck-fig2",
        draw_symmetry,
        whose="as in the paper",
        findings=[Finding(say_orbits, holds=["orbits-collapse"])],
        caption="A network that predicts the losses of gradient descent on a task with a rotation"
        " symmetry about an axis w; the first replicate, trained (large) and before training"
        " (small). (a) Singular values of every layer; the grey band is all from the third down."
        f" (b) The first two principal components of layer {PCA_LAYER}: every line is the path of"
        " one run of gradient descent, a dot its start; it gets lighter as the state v nears the"
        f" axis. (c) Distance in layer {DISTANCE_LAYER} between the point x0 (white square) and a"
        " plane orthogonal to w, light where large, with lines of equal distance; dashed: the true"
        " orbit of x0. Data: simulated gradient descent.",
    ),
    Drawing(
        "bottleneck-symmetry",
        draw_other_tasks,
        whose="ours: noise and ridge",
        unread=("distance", "embedding", "spectrum", "theorems"),
        findings=[Finding(say_spurious, holds=["spurious-symmetry"])],
        caption="The task of figure 2 with other noise and with a stronger ridge, trained networks."
        f" (a) Mean distance of points in layer {DISTANCE_LAYER} within an orbit of the rotations"
        " around w over that between orbits, by the spectral norm of the noise E that breaks the"
        f" symmetry. (b) What two principal components of layer {PCA_LAYER} do not tell of the two"
        " statistics that the task depends on, by the ridge. Dots are networks, lines medians;"
        " above each value the rank of the middle layer.",
    ),
]
