"""Quantities of the claims about figure 2: numbers about the network of each replicate.

Each function returns a row for each trained network, that is, for each noise ‖E‖, weight decay λ
and replicate. The column `test_cost` is the test error of the trained network.

Arguments that recur:

- tables: the tables of a figure's runs, such as `metrics`, the measures of each layer.
- recipe: "constant" (weight decay λ throughout) or "annealed" (annealed training).
- layer: the number of a layer; the last layer if the network has fewer layers.
- column: a column of the table.
- where: a condition on E (the norm ‖E‖), λ and other columns, as for `DataFrame.query`.
"""

import pandas as pd

from runner.papers.bottleneck_structure.symmetry.tables import (
    crossing,
    middle_layers,
    paths,
)
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

RUN = ["E", "λ", "replicate"]
"""Columns that identify a network of one recipe: ‖E‖ and λ of its run, and its replicate."""


def _read(tables: Tables, table: str, recipe: str, where: str = "") -> pd.DataFrame:
    """Return the rows of a recipe that meet a condition, with the columns `E` and `λ`.

    Raises NoRows if there are none.
    """
    rows = select(tables[table], recipe=recipe)
    rows = rows.rename(columns={"noise": "E", "ridge": "λ"})
    return nonempty(rows.query(where), f"networks where {where}") if where else rows


def _networks(tables: Tables, recipe: str) -> pd.DataFrame:
    return select(_read(tables, "networks", recipe), stage="trained").set_index(RUN)


@quantity("{column} of {recipe}")
def rank(tables: Tables, column: str, recipe: str, where: str = "") -> pd.DataFrame:
    """Return a rank of the trained networks, a row for each network.

    column: "jacobian_rank" or "bottleneck_rank", a column of the table `networks`. recipe:
    "constant" or "annealed". where: a condition on E, λ and other columns, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    rows = select(_read(tables, "networks", recipe, where), stage="trained")
    return rows.assign(value=rows[column])


@quantity(
    "number of singular values before the largest gap (median over the middle half of the layers)"
    " in {recipe}"
)
def rank_by_gap(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return the index after which the gap between singular values is largest.

    There is a row for each network. The value is the median over the middle half of the layers. The
    column `right` is the fraction of these layers with the index 2. The column `third` is the
    fraction of these layers whose third singular value is above 0.1. recipe: "constant" or
    "annealed". Raises NoRows if the recipe was not run.
    """
    rows = middle_layers(select(_read(tables, "metrics", recipe), stage="trained"))
    rows = rows.assign(right=rows["rank_gap"] == 2, third=rows["s3"] > 0.1)
    by = rows.groupby(RUN).agg(
        value=("rank_gap", "median"), right=("right", "mean"), third=("third", "mean")
    )
    return by.join(_networks(tables, recipe)["test_cost"]).reset_index()


def _stages(tables: Tables, layer: int, column: str, recipe: str, where: str = "") -> pd.DataFrame:
    """Return a column of a layer after training (`trained`) and before training (`untrained`).

    There is a row for each network. layer: the last layer is used if the network has fewer layers.
    """
    rows = _read(tables, "metrics", recipe, where)
    rows = select(rows, layer=min(layer, int(rows["layer"].max())))
    stages = rows.pivot(index=RUN, columns="stage", values=column)
    return stages.join(_networks(tables, recipe)[["test_cost", "rank"]]).reset_index()


@quantity(
    "unexplained variance of {column} after training, divided by that before, if two principal"
    " components of layer {layer} of {recipe} predict it,"
)
def left_unexplained(
    tables: Tables, column: str, layer: int, recipe: str, where: str = ""
) -> pd.DataFrame:
    """Return the unexplained variance 1 − R² after training, divided by 1 − R² before training.

    R² tells how well a summary statistic of the task is predicted from two principal components of
    a layer. There is a row for each network. column: "knn_r2_axis" or "knn_r2_orthogonal", one for
    each statistic. recipe: "constant" or "annealed". where: a condition on E and λ, as for
    `DataFrame.query`. Raises NoRows if no network meets the condition.
    """
    rows = _stages(tables, layer, column, recipe, where)
    return rows.assign(value=(1 - rows["trained"]) / (1 - rows["untrained"]))


@quantity(
    "in layer {layer} of {recipe}, the mean distance within {column} is {} that between them",
    unit="ratio",
)
def within_over_between(tables: Tables, column: str, layer: int, recipe: str) -> pd.DataFrame:
    """Return the mean distance within an orbit divided by the mean distance between orbits.

    An orbit is a set of points that differ by a rotation around w. Distances are measured in the
    activations of a layer, after training; the column `before` has the ratio before training. There
    is a row for each network. column: "orbit_ratio" (random orbits) or "plane_ratio" (circles in a
    plane). recipe: "constant" or "annealed". Raises NoRows if the recipe was not run.
    """
    rows = _stages(tables, layer, column, recipe)
    return rows.assign(value=rows["trained"], before=rows["untrained"])


@quantity(
    "{column} of a path, predicted from two principal components of layer {layer} of {recipe},"
    " after training minus that before,",
    unit="difference",
)
def gained(tables: Tables, column: str, layer: int, recipe: str) -> pd.DataFrame:
    """Return how much training raises an R², a row for each network.

    The value is R² after training minus R² before training. The columns `trained`, `untrained` and
    `task` count pairs of paths that cross: in the two networks, and in the true statistics. The
    column `pairs` is the number of all pairs.

    column: such as "step_r2", the R² of the next step of a path. recipe: "constant" or "annealed".
    Raises NoRows if the recipe was not run.
    """
    rows = _stages(tables, layer, column, recipe)
    rows = rows.assign(value=rows["trained"] - rows["untrained"])
    return rows.merge(_crossings(tables, recipe), on=RUN, suffixes=("_r2", ""))


def _crossings(tables: Tables, recipe: str) -> pd.DataFrame:
    """Return for each network the number of pairs of paths that cross.

    The columns are `trained`, `untrained`, `task` (in the true statistics) and `pairs` (the number
    of all pairs).
    """
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
