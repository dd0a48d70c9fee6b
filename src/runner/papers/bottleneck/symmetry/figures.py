"""Drawing of paper D's figure 2: the symmetry that a trained network has learned."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck.looks import rank_look
from runner.papers.bottleneck.symmetry.config import DISTANCE_LAYER, PCA_LAYER, PIXEL
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import NoRows, select
from runner.results.style_before import BLACK, DOTTED, VERMILION, ordered, points, sparse, subplots

STAGES = {"trained": "trained", "untrained": "at initialisation"}
ARROWS = 20
"""Paths drawn in panel (b)."""
RANK = 2
"""Of the task: as many singular values are drawn in colour."""


def _spectra(axes: Axes, spectrum: pd.DataFrame) -> None:
    table = spectrum.pivot(index="layer", columns="index", values="singular_value")
    for index in table.columns:
        large = index <= RANK
        color, width = (rank_look(RANK).color, 1.4) if large else (BLACK, 0.5)
        line = {"color": color, "linewidth": points(width), "alpha": 1 if large else 0.4}
        axes.plot(table.index, table[index], **line)
    axes.set(xlabel=r"layer $\ell$", ylabel=r"singular values of $W_\ell$", ylim=(0, None))


def _embedding(axes: Axes, embedding: pd.DataFrame) -> None:
    small = {"s": points(1.7) ** 2, "cmap": "viridis"}
    dots = axes.scatter(embedding["pc1"], embedding["pc2"], c=embedding["orthogonal"], **small)
    for _, path in embedding[embedding["path"] < ARROWS].groupby("path"):
        axes.plot(path["pc1"], path["pc2"], color=VERMILION, linewidth=points(0.9))
        end = {"marker": "s", "color": VERMILION, "markersize": points(3)}
        end |= {"markeredgecolor": BLACK, "markeredgewidth": points(0.4)}
        axes.plot(path["pc1"].iloc[-1], path["pc2"].iloc[-1], **end)
    axes.set(xlabel="first principal component", ylabel="second principal component")
    axes.figure.colorbar(dots, ax=axes, label=r"$\|(I - w w^T) v\|^2$")


def _distances(axes: Axes, distance: pd.DataFrame) -> None:
    table = distance.pivot(index="second", columns="first", values="distance")
    side = table.columns.to_numpy()
    extent = (side[0], side[-1], side[0], side[-1])
    image = axes.imshow(table, origin="lower", extent=extent, cmap="magma")
    edge = {"mec": BLACK, "mew": points(0.8)}
    axes.plot(*PIXEL, "s", color="white", ms=points(5), **edge)
    axes.grid(False)
    axes.set(xlabel=r"first direction orthogonal to $w$", ylabel="second orthogonal direction")
    label = rf"$\|\alpha_{DISTANCE_LAYER}(x_0) - \alpha_{DISTANCE_LAYER}(x)\|$"
    axes.figure.colorbar(image, ax=axes, label=label)


def _first(table: pd.DataFrame, stage: str) -> pd.DataFrame:
    """The rows of one stage of the first replicate."""
    return select(table, stage=stage, replicate=0)


def _at(metrics: pd.DataFrame, stage: str, layer: int) -> pd.Series:
    """What was measured of the first replicate at a layer, or at the last."""
    return select(_first(metrics, stage), layer=min(layer, int(metrics["layer"].max()))).iloc[0]


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
        "The first replicate, trained (above) and at initialisation (below). (a) Singular values of"
        " every layer, the first two thick. (b) The first two principal components of a layer:"
        " every dot is a state v, the lighter the longer its part that is orthogonal to the axis w;"
        " lines are paths of gradient descent, squares their ends. (c) Distance of the"
        " representations of a plane orthogonal to w from that of one point (white square)."
        " Coefficients of determination of the two coordinates of the task, read off (b) by nearest"
        f" neighbours: {'; '.join(found)}. Data: simulated gradient descent."
    )


@figure("bottleneck-fig2", caption=say_symmetry)
def draw_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2 of paper D, of the first replicate, for the trained and the untrained network."""
    size = (11.5, 6.4)
    picture, axes = subplots(len(STAGES), 3, size=size, width_ratios=[1, 1.25, 1.1])
    picture.get_layout_engine().set(wspace=0.06)  # for the labels of the colour bars
    for row, (stage, name) in zip(axes, STAGES.items(), strict=True):
        row[0].set_title(f"(a) {name}: spectra")
        with or_empty(row[0]):
            _spectra(row[0], _first(tables["spectrum"], stage))
        with or_empty(row[1]):
            _embedding(row[1], _first(tables["embedding"], stage))
            row[1].set_title(rf"(b) PCA of $\alpha_{PCA_LAYER}(X)$")
        with or_empty(row[2]):
            _distances(row[2], _first(tables["distance"], stage))
            row[2].set_title(rf"(c) distances in $\alpha_{DISTANCE_LAYER}$")
    return picture, tables["metrics"]


@overview
def overview_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: what two coordinates of each layer know, before and after training."""
    metrics = tables["metrics"]
    columns = ["knn_r2_axis", "knn_r2_orthogonal", "step_r2", "orbit_ratio", "plane_ratio"]
    picture, axes = subplots(size=(7.5, 3.6))
    for stage, dashes in (("trained", "-"), ("untrained", DOTTED)):
        mean = metrics[metrics["stage"] == stage].groupby("layer")[columns].mean()
        for place, (column, look) in enumerate(ordered(columns).items()):
            marks = {"linestyle": dashes, "markevery": sparse(len(mean), place)}
            axes.plot(mean.index, mean[column], label=f"{column}, {stage}", **look.both | marks)
    axes.set(xlabel="layer", ylim=(-0.05, 1.05))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    layers = metrics.query("layer == @PCA_LAYER or layer == @DISTANCE_LAYER")
    kept = ["s1", "s2", "s3", "rank_gap", *columns]
    return picture, layers.groupby(["stage", "layer"])[kept].mean().reset_index()
