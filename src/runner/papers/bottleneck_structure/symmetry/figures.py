"""Drawing of paper D's figure 2: the symmetry that a trained network has learned."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from runner.papers.bottleneck_structure.looks import rank_look
from runner.papers.bottleneck_structure.spectra_panel import draw_spectra
from runner.papers.bottleneck_structure.symmetry.config import DISTANCE_LAYER, PCA_LAYER, PIXEL
from runner.papers.bottleneck_structure.symmetry.tables import FITTED, crossing, paths
from runner.results.claims import Tables
from runner.results.figures import Drawing, or_empty
from runner.results.findings import Finding
from runner.results.rows import NoRows, select
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

STAGES = {"trained": "trained", "untrained": "before training"}
RANK = 2
"""Of the task: as many singular values are drawn as lines."""
LEVELS = np.linspace(0, 1, 15)
ORBIT = Look(VERMILION)
TOO_SHORT = "not trained long enough: scale=quick takes 5 minutes"
"""Of a network that does not fit: nothing is said of it."""


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


def _first(table: pd.DataFrame, stage: str) -> pd.DataFrame:
    """The rows of one stage of the first replicate."""
    return select(table, stage=stage, replicate=0)


def _at(metrics: pd.DataFrame, stage: str, layer: int) -> pd.Series:
    """What was measured of the first replicate at a layer, or at the last."""
    return select(_first(metrics, stage), layer=min(layer, int(metrics["layer"].max()))).iloc[0]


def say_orbits(tables: Tables) -> str:
    """How near the points of one orbit are in the layer whose rings are drawn."""
    rows = select(tables["metrics"], layer=min(DISTANCE_LAYER, tables["metrics"]["layer"].max()))
    ratio = rows.groupby("stage")["plane_ratio"].mean()
    if not {"trained", "untrained"} <= set(ratio.index):
        return ""
    return (
        "The network learns the task's symmetry: points of one orbit come together (distance within"
        f" / between {ratio['trained']:.3f}, before training {ratio['untrained']:.2f})"
    )


def say_rank(tables: Tables) -> str:
    """The ranks, and how near orbits are where that is not near enough to be called collapsed."""
    near = select(tables["metrics"], stage="trained")
    near = select(near, layer=min(DISTANCE_LAYER, near["layer"].max()))
    return (
        f"The network finds the task's {RANK} dimensions; points of one orbit come nearer, to"
        f" {near['orbit_ratio'].mean():.3f} of the distance between orbits"
    )


def say_symmetry(tables: Tables) -> str:
    """Panels and marks of figure 2, and what was measured of them."""
    found = []
    for stage, name in STAGES.items():
        try:
            pca = _at(tables["metrics"], stage, PCA_LAYER)
            plane = _at(tables["metrics"], stage, DISTANCE_LAYER)
        except NoRows:
            continue
        found.append(
            f"{name} {pca['knn_r2_axis']:.3f} and {pca['knn_r2_orthogonal']:.3f}, distances within"
            f" over between the rings {plane['plane_ratio']:.3f}"
        )
    return (
        "A network that predicts the losses of gradient descent on a task with a rotation symmetry"
        " about an axis w; the first replicate, trained (large) and before training (small). (a)"
        " Singular values of every layer; the grey band is all from the third down. (b) The first"
        f" two principal components of layer {PCA_LAYER}: every line is the path of one run of"
        " gradient descent, a dot its start; it gets lighter as the state v nears the axis. (c)"
        f" Distance in layer {DISTANCE_LAYER} between the point x0 (white square) and a plane"
        " orthogonal to w, light where large, with lines of equal distance; dashed: the true orbit"
        " of x0. Coefficients of determination of the two coordinates of the task, read off (b) by"
        f" nearest neighbours: {'; '.join(found)}. Data: simulated gradient descent."
    )


def draw_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2 of paper D, of the first replicate, for the trained and the untrained network."""
    picture = canvas(4.6)
    shape = {"width_ratios": [1, 1.2, 0.95], "height_ratios": [1, 0.36]}
    (a, b, c), small = picture.subplots(2, 3, **shape)
    for axes in (a, b, c):
        axes.set_title(" ")
    with or_empty(a):
        spectrum = _first(tables["spectrum"], "trained")
        draw_spectra(a, spectrum, RANK)
        last = int(spectrum["layer"].max())
        top = np.nanmax([spectrum.loc[spectrum["index"] <= RANK, "singular_value"].max(), 0.5])
        a.set_ylim(0, 1.16 * top)
        ticks(a.xaxis, [1, last])
        network = _first(tables["networks"], "trained").iloc[0]
        if network["test_cost"] < FITTED and network["rank_gap"] == RANK:
            rank_look(RANK).name(a, 0.5 * last, 0.97 * 1.16 * top, "two near 1", weight="bold")
            count = int(tables["spectrum"]["width"].iloc[0]) - RANK
            QUIET.name(a, 0.45 * last, 0.07 * top, f"{count} others ≈ 0", size=SMALL)
    with or_empty(b):
        crossing, pairs = _paths(b, _first(tables["embedding"], "trained"), room=0.16)
        place = {"transform": b.transAxes, "ha": "right", "size": SMALL}
        PLAIN.name(b, 0.99, 0.95, f"{crossing} of {pairs:,} pairs of paths cross", **place)
        Look(GREEN).name(b, 0.97, 0.08, "$(w\\cdot v)^2\\to 1$", **place)
    with or_empty(c):
        _rings(c, _first(tables["distance"], "trained"))
        ORBIT.name(c, 0, 0, "orbit\nof $x_0$", linespacing=1.1)
    seen = ["", "", ""]
    with or_empty(small[0]):
        spectrum = _first(tables["spectrum"], "untrained")
        draw_spectra(small[0], spectrum, RANK, thick=1.4)
        ticks(small[0].xaxis, [1, int(spectrum["layer"].max())])
        small[0].set_xlabel(r"layer $\ell$")
        seen[0] = "none stands out"
    with or_empty(small[1]):
        crossing, _ = _paths(small[1], _first(tables["embedding"], "untrained"), 0.1, thick=0.6)
        seen[1] = f"{crossing} pairs cross"
    with or_empty(small[2]):
        _rings(small[2], _first(tables["distance"], "untrained"), size=3)
        seen[2] = "no ring"
    for axes, text in zip(small, seen, strict=True):
        axes.set_title(" ", size=SMALL, pad=3)
        words = f"before training: {text}" if text else "before training"
        place = {"transform": axes.transAxes, "ha": "left", "va": "bottom", "size": SMALL}
        QUIET.name(axes, 0, 1.04, words, **place)
    panel(a, "a", "singular values")
    panel(b, "b", f"layer {PCA_LAYER}: two components")
    panel(c, "c", f"layer {DISTANCE_LAYER}: distance to $x_0$")
    return picture, tables["metrics"]


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: the three panels, and of every network what it costs on fresh starts,
    its ranks, and whether that says something."""
    picture, _ = draw_symmetry(tables)
    networks = tables["networks"]
    columns = ["stage", "replicate", "test_cost", "jacobian_rank", "bottleneck_rank"]
    answers = {True: "learned", False: TOO_SHORT}
    answer = (networks["test_cost"] < FITTED).map(answers)
    answer = answer.where(networks["stage"] != "untrained", "before training")
    return picture, networks[columns].assign(answer=answer)


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
        caption=say_symmetry,
    ),
]
