"""Measure the trained network of figure 2 and, for comparison, the network before training.

Each frame has the column `test_cost`, the test error of the trained network.
"""

import pandas as pd

from runner.papers.bottleneck_structure.symmetry.tables import (
    crossing,
    middle_layers,
    of_recipe,
    paths,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import NoRows, nonempty, select

PRINTED = {
    "bottleneck_rank": "smallest rank of a layer",
    "knn_r2_axis": "(w·v)²",
    "knn_r2_orthogonal": "‖(I − w wᵀ) v‖²",
    "orbit_ratio": "random orbits",
    "plane_ratio": "orbits in the plane of figure 2c",
    "rank < 2": "the network has a rank below 2",
    "λ == λ.max()": "λ is the largest",
    "constant": "networks with weight decay λ throughout",
    "annealed": "networks after annealed training",
}
"""Printed names of columns and conditions."""

RUN = ["E", "λ", "replicate"]
"""Columns that identify a network of one recipe: ‖E‖ and λ of its run, and its replicate."""


def _read(tables: Tables, table: str, recipe: str, where: str = "") -> pd.DataFrame:
    """Return the rows of a recipe, with columns in the paper's notation."""
    rows = select(of_recipe(tables[table]), recipe=recipe)
    rows = rows.rename(columns={"noise": "E", "ridge": "λ"})
    return nonempty(rows.query(where), f"networks where {where}") if where else rows


def _networks(tables: Tables, recipe: str) -> pd.DataFrame:
    return select(_read(tables, "networks", recipe), stage="trained").set_index(RUN)


@quantity("{column} of {recipe}")
def rank(tables: Tables, column: str, recipe: str, where: str = "") -> pd.DataFrame:
    """TODO"""
    rows = select(_read(tables, "networks", recipe, where), stage="trained")
    if column not in rows:
        raise NoRows(f"the tables are from an earlier version and have no column {column}")
    return rows.assign(value=rows[column])


@quantity(
    "index after which the gap between singular values of {recipe} is largest, median over the middle half of the layers"
)
def rank_by_gap(tables: Tables, recipe: str) -> pd.DataFrame:
    """TODO"""
    rows = middle_layers(select(_read(tables, "metrics", recipe), stage="trained"))
    rows = rows.assign(right=rows["rank_gap"] == 2, third=rows["s3"] > 0.1)
    by = rows.groupby(RUN).agg(
        value=("rank_gap", "median"), right=("right", "mean"), third=("third", "mean")
    )
    return by.join(_networks(tables, recipe)["test_cost"]).reset_index()


def _stages(tables: Tables, layer: int, column: str, recipe: str, where: str = "") -> pd.DataFrame:
    """Return a column of a layer after and before training.

    layer: the last one if the network has fewer layers.
    """
    rows = _read(tables, "metrics", recipe, where)
    rows = select(rows, layer=min(layer, int(rows["layer"].max())))
    stages = rows.pivot(index=RUN, columns="stage", values=column)
    return stages.join(_networks(tables, recipe)[["test_cost", "rank"]]).reset_index()


@quantity(
    "variance of {column} that two principal components of layer {layer} of {recipe} do not explain, after training / before training"
)
def left_unexplained(
    tables: Tables, column: str, layer: int, recipe: str, where: str = ""
) -> pd.DataFrame:
    """TODO"""
    rows = _stages(tables, layer, column, recipe, where)
    return rows.assign(value=(1 - rows["trained"]) / (1 - rows["untrained"]))


@quantity(
    "mean distance in layer {layer} of {recipe} within an orbit / between orbits ({column})",
    unit="ratio",
)
def within_over_between(tables: Tables, column: str, layer: int, recipe: str) -> pd.DataFrame:
    """TODO"""
    rows = _stages(tables, layer, column, recipe)
    return rows.assign(value=rows["trained"], before=rows["untrained"])


@quantity(
    "{column} predicted from two principal components of layer {layer} of {recipe}, after "
    "training − before training",
    unit="difference",
)
def gained(tables: Tables, column: str, layer: int, recipe: str) -> pd.DataFrame:
    """TODO"""
    rows = _stages(tables, layer, column, recipe)
    rows = rows.assign(value=rows["trained"] - rows["untrained"])
    return rows.merge(_crossings(tables, recipe), on=RUN, suffixes=("_r2", ""))


def _crossings(tables: Tables, recipe: str) -> pd.DataFrame:
    """Count the pairs of paths that cross, by stage; `task`: in the true statistics."""
    rows = []
    for key, points in _read(tables, "embedding", recipe).groupby(RUN):
        stages = {stage: select(points, stage=stage) for stage in ("trained", "untrained")}
        true = paths(stages["trained"], ("axis", "orthogonal"))
        count = {stage: crossing(paths(stage_points)) for stage, stage_points in stages.items()}
        pairs = len(true) * (len(true) - 1) / 2
        rows.append(
            dict(zip(RUN, key, strict=True)) | count | {"task": crossing(true), "pairs": pairs}
        )
    return pd.DataFrame(rows)
