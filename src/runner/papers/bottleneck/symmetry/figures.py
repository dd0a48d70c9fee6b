"""Drawing of paper D's figure 2: the symmetry that a trained network has learned."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from runner.papers.bottleneck.symmetry.config import DISTANCE_LAYER, PCA_LAYER, PIXEL
from runner.results.claims import Tables
from runner.results.figures import figure, or_empty, overview
from runner.results.rows import select

STAGES = {"trained": "trained", "untrained": "at initialisation"}
ARROWS = 20
"""Paths drawn in panel (b)."""


def _spectra(axes: Axes, spectrum: pd.DataFrame) -> None:
    table = spectrum.pivot(index="layer", columns="index", values="singular_value")
    for index in table.columns:
        color, width = ("tab:blue", 1.4) if index <= 2 else ("black", 0.5)
        alpha = 1 if index <= 2 else 0.4
        axes.plot(table.index, table[index], color=color, lw=width, alpha=alpha)
    axes.set(xlabel=r"layer $\ell$", ylabel=r"singular values of $W_\ell$", ylim=(0, None))


def _embedding(axes: Axes, embedding: pd.DataFrame) -> None:
    points = axes.scatter(
        embedding["pc1"], embedding["pc2"], c=embedding["orthogonal"], s=3, cmap="viridis"
    )
    for _, path in embedding[embedding["path"] < ARROWS].groupby("path"):
        axes.plot(path["pc1"], path["pc2"], color="tab:red", lw=0.9)
        axes.plot(path["pc1"].iloc[-1], path["pc2"].iloc[-1], "o", color="tab:red", ms=2.5)
    axes.set(xlabel="first principal component", ylabel="second principal component")
    axes.figure.colorbar(points, ax=axes, label=r"$\|(I - w w^T) v\|^2$")


def _distances(axes: Axes, distance: pd.DataFrame) -> None:
    table = distance.pivot(index="second", columns="first", values="distance")
    side = table.columns.to_numpy()
    extent = (side[0], side[-1], side[0], side[-1])
    image = axes.imshow(table, origin="lower", extent=extent, cmap="magma")
    axes.plot(*PIXEL, "s", color="white", ms=4, mec="black", mew=0.6)
    axes.grid(False)
    axes.set(xlabel=r"first direction orthogonal to $w$", ylabel="second")
    label = rf"$\|\alpha_{DISTANCE_LAYER}(x_0) - \alpha_{DISTANCE_LAYER}(x)\|$"
    axes.figure.colorbar(image, ax=axes, label=label)


def _first(table: pd.DataFrame, stage: str) -> pd.DataFrame:
    """The rows of one stage of the first replicate."""
    return select(table, stage=stage, replicate=0)


@figure("bottleneck-fig2")
def draw_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Figure 2 of paper D, of the first replicate, for the trained and the untrained network."""
    metrics = tables["metrics"]
    figure, axes = plt.subplots(len(STAGES), 3, figsize=(13.5, 7), width_ratios=[1, 1.25, 1.1])
    depth = int(metrics["layer"].max())
    for row, (stage, name) in zip(axes, STAGES.items(), strict=True):
        row[0].set_title(f"(a) {name}: spectra")
        with or_empty(row[0]):
            _spectra(row[0], _first(tables["spectrum"], stage))
        with or_empty(row[1]):
            _embedding(row[1], _first(tables["embedding"], stage))
            at = select(_first(metrics, stage), layer=min(PCA_LAYER, depth)).iloc[0]
            r2 = f"{at['knn_r2_axis']:.3f}, {at['knn_r2_orthogonal']:.3f}"
            layer = rf"$\alpha_{PCA_LAYER}(X)$"
            row[1].set_title(f"(b) PCA of {layer}, $R^2$ of $u$: {r2}")
        with or_empty(row[2]):
            _distances(row[2], _first(tables["distance"], stage))
            at = select(_first(metrics, stage), layer=min(DISTANCE_LAYER, depth)).iloc[0]
            row[2].set_title(f"(c) distances, within/between rings {at['plane_ratio']:.3f}")
    return figure, metrics


@overview
def overview_symmetry(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Quick look at one run: what two coordinates of each layer know, before and after training."""
    metrics = tables["metrics"]
    columns = ["knn_r2_axis", "knn_r2_orthogonal", "step_r2", "orbit_ratio", "plane_ratio"]
    figure, axes = plt.subplots(figsize=(6, 3.6))
    for stage, style in (("trained", "-"), ("untrained", ":")):
        mean = metrics[metrics["stage"] == stage].groupby("layer")[columns].mean()
        for color, column in zip(plt.cm.tab10.colors, columns, strict=False):
            axes.plot(mean.index, mean[column], style, color=color, label=f"{column}, {stage}")
    axes.set(xlabel="layer", ylim=(-0.05, 1.05))
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    layers = metrics.query("layer == @PCA_LAYER or layer == @DISTANCE_LAYER")
    kept = ["s1", "s2", "s3", "rank_gap", *columns]
    return figure, layers.groupby(["stage", "layer"])[kept].mean().reset_index()
