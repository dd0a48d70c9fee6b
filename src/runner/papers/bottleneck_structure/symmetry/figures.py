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
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import select
from runner.results.style import (
    GREEN,
    INK,
    PLAIN,
    QUIET,
    SMALL,
    VERMILION,
    Look,
    canvas,
    panel,
    ticks,
)

RANK = 2
"""Of the task: as many singular values are drawn as lines."""
LEVELS = np.linspace(0, 1, 15)
ORBIT = Look(VERMILION)


def _paths(axes: Axes, embedding: pd.DataFrame, room: float, thick: float = 1.1) -> tuple[int, int]:
    """Every path of gradient descent, the lighter the nearer the axis; its start is a dot.

    room: free above and below, as a share. Gives back how many pairs cross, and how many there are.
    """
    xy = paths(embedding)
    pieces = np.stack([xy[:, :-1], xy[:, 1:]], 2).reshape(-1, 2, 2)
    value = paths(embedding, ("axis", "axis"))[:, 1:, 0].ravel()
    shades = {"array": value, "cmap": "viridis", "linewidths": thick, "clim": (0, 1.12)}
    axes.add_collection(LineCollection(list(pieces), **shades))
    axes.plot(*xy[:, 0].T, ".", color=INK, ms=2.6 * thick)
    axes.set_ymargin(room)
    axes.autoscale_view()
    axes.set_aspect("equal", adjustable="datalim")
    axes.set(xticks=[], yticks=[])
    return crossing(xy), len(xy) * (len(xy) - 1) // 2


def _rings(axes: Axes, distance: pd.DataFrame, size: float = 6.0) -> None:
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
    """What was measured of the trained networks at a layer, or at the last."""
    rows = select(tables["metrics"], stage="trained")
    return select(rows, layer=min(layer, int(rows["layer"].max())))


def say_orbits(tables: Tables) -> str:
    """How near the points of one orbit are in the layer whose rings are drawn."""
    ratio = _trained_at(tables, DISTANCE_LAYER)["plane_ratio"].mean()
    return (
        "The network learns the task's symmetry: points of one orbit come together, to"
        f" {ratio:.3f} of the distance between orbits"
    )


def say_rank(tables: Tables) -> str:
    """The ranks, and how near orbits are where that is not near enough to be called collapsed."""
    ratio = _trained_at(tables, DISTANCE_LAYER)["orbit_ratio"].mean()
    return (
        f"The network finds the task's {RANK} dimensions; points of one orbit come nearer, to"
        f" {ratio:.3f} of the distance between orbits"
    )


def draw_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2 of paper D, of the first replicate, for the trained and the untrained network."""
    picture = canvas(4.6)
    shape = {"width_ratios": [1, 1.2, 0.95], "height_ratios": [1, 0.36]}
    (a, b, c), small = picture.subplots(2, 3, **shape)

    def first(table: str, stage: str) -> pd.DataFrame:
        return select(tables[table], stage=stage, replicate=0)

    for axes in (a, b, c):
        axes.set_title(" ")
    with or_empty(a):
        spectrum = first("spectrum", "trained")
        draw_spectra(a, spectrum, RANK)
        last = int(spectrum["layer"].max())
        top = np.nanmax([spectrum.loc[spectrum["index"] <= RANK, "singular_value"].max(), 0.5])
        a.set_ylim(0, 1.16 * top)
        ticks(a.xaxis, [1, last])
        network = first("networks", "trained").iloc[0]
        if network["test_cost"] < FITTED and network["rank_gap"] == RANK:
            rank_look(RANK).name(a, 0.5 * last, 0.97 * 1.16 * top, "two near 1", weight="bold")
            count = int(tables["spectrum"]["width"].iloc[0]) - RANK
            QUIET.name(a, 0.45 * last, 0.07 * top, f"{count} others ≈ 0", size=SMALL)
    with or_empty(b):
        crossing, pairs = _paths(b, first("embedding", "trained"), room=0.16)
        place = {"transform": b.transAxes, "ha": "right", "size": SMALL}
        PLAIN.name(b, 0.99, 0.95, f"{crossing} of {pairs:,} pairs of paths cross", **place)
        Look(GREEN).name(b, 0.97, 0.08, "$(w\\cdot v)^2\\to 1$", **place)
    with or_empty(c):
        _rings(c, first("distance", "trained"))
        ORBIT.name(c, 0, 0, "orbit\nof $x_0$", linespacing=1.1)
    seen = ["", "", ""]
    with or_empty(small[0]):
        spectrum = first("spectrum", "untrained")
        draw_spectra(small[0], spectrum, RANK, thick=1.4)
        ticks(small[0].xaxis, [1, int(spectrum["layer"].max())])
        small[0].set_xlabel(r"layer $\ell$")
        seen[0] = ": none stands out"
    with or_empty(small[1]):
        crossing, _ = _paths(small[1], first("embedding", "untrained"), 0.1, thick=0.6)
        seen[1] = f": {crossing} pairs cross"
    with or_empty(small[2]):
        _rings(small[2], first("distance", "untrained"), size=3)
        seen[2] = ": no ring"
    for axes, text in zip(small, seen, strict=True):
        axes.set_title(" ", size=SMALL, pad=3)
        place = {"transform": axes.transAxes, "ha": "left", "va": "bottom", "size": SMALL}
        QUIET.name(axes, 0, 1.04, f"before training{text}", **place)
    panel(a, "a", "singular values")
    panel(b, "b", f"layer {PCA_LAYER}: two components")
    panel(c, "c", f"layer {DISTANCE_LAYER}: distance to $x_0$")
    return picture, tables["metrics"]


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the three panels, and of every network its ranks, and what it costs on
    fresh starts: nothing is said of one that does not fit, which is not trained long enough."""
    picture, _ = draw_symmetry(tables)
    networks = tables["networks"]
    columns = ["stage", "replicate", "test_cost", "jacobian_rank", "bottleneck_rank"]
    return picture, networks[columns].assign(learned=networks["test_cost"] < FITTED)


HEADLINE = ["knn_r2_axis", "knn_r2_orthogonal", "step_r2", "orbit_ratio"]

FIGURES = [
    Drawing(
        "bottleneck-fig2",
        draw_symmetry,
        whose="as in the paper",
        findings=[
            Finding(say_orbits, holds=["orbits-collapse"]),
            Finding(say_rank, holds=["two-outliers", "true-rank"]),
        ],
        caption="A network that predicts the losses of gradient descent on a task with a rotation"
        " symmetry about an axis w; the first replicate, trained (large) and before training"
        " (small). (a) Singular values of every layer; the grey band is all from the third down."
        f" (b) The first two principal components of layer {PCA_LAYER}: every line is the path of"
        " one run of gradient descent, a dot its start; it gets lighter as the state v nears the"
        f" axis. (c) Distance in layer {DISTANCE_LAYER} between the point x0 (white square) and a"
        " plane orthogonal to w, light where large, with lines of equal distance; dashed: the true"
        " orbit of x0. Data: simulated gradient descent.",
    ),
]
