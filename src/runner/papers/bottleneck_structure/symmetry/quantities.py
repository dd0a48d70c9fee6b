"""Measure the trained network of figure 2 and, for comparison, the network before training.

Each frame has the column `test_cost`, the test error of the trained network.
"""

import pandas as pd

from runner.papers.bottleneck_structure.symmetry.tables import crossing, middle_layers, paths
from runner.results.quantities import Tables, quantity
from runner.results.rows import NoRows, nonempty, select

RUN = ["E", "λ", "replicate"]
"""Columns that name a trained network: ‖E‖ and λ of its run, and its replicate."""


def _read(tables: Tables, table: str, where: str = "") -> pd.DataFrame:
    """Return a table, in the paper's notation."""
    rows = tables[table].rename(columns={"noise": "E", "ridge": "λ"})
    return nonempty(rows.query(where), f"networks where {where}") if where else rows


def _networks(tables: Tables) -> pd.DataFrame:
    return select(_read(tables, "networks"), stage="trained").set_index(RUN)


@quantity()
def rank(tables: Tables, column: str, where: str = "") -> pd.DataFrame:
    """{column} of the trained network"""
    rows = select(_read(tables, "networks", where), stage="trained")
    if column not in rows:
        raise NoRows(f"no column {column}: tables of an earlier version")
    return rows.assign(value=rows[column])


@quantity()
def rank_by_gap(tables: Tables) -> pd.DataFrame:
    """rank by the largest gap between singular values, median over the middle half of the layers"""
    rows = middle_layers(select(_read(tables, "metrics"), stage="trained"))
    rows = rows.assign(right=rows["rank_gap"] == 2, gap=rows["s2"] / rows["s3"])
    by = rows.groupby(RUN).agg(
        value=("rank_gap", "median"), right=("right", "mean"), gap=("gap", "min")
    )
    return by.join(_networks(tables)["test_cost"]).reset_index()


def _stages(tables: Tables, layer: int, column: str, where: str = "") -> pd.DataFrame:
    """Return a column of a layer (the last if there are fewer), after and before training."""
    rows = _read(tables, "metrics", where)
    rows = select(rows, layer=min(layer, int(rows["layer"].max())))
    found = rows.pivot(index=RUN, columns="stage", values=column)
    return found.join(_networks(tables)[["test_cost", "rank"]]).reset_index()


@quantity()
def left_unexplained(tables: Tables, column: str, layer: int, where: str = "") -> pd.DataFrame:
    """1 − {column} of two components of layer {layer}, after training / before"""
    rows = _stages(tables, layer, column, where)
    return rows.assign(value=(1 - rows["trained"]) / (1 - rows["untrained"]))


@quantity(unit="ratio")
def within_over_between(tables: Tables, column: str, layer: int) -> pd.DataFrame:
    """{column} of layer {layer}: mean distance within an orbit / between orbits"""
    rows = _stages(tables, layer, column)
    return rows.assign(value=rows["trained"], before=rows["untrained"])


@quantity(unit="difference")
def gained(tables: Tables, column: str, layer: int) -> pd.DataFrame:
    """{column} of two components of layer {layer}, after training − before"""
    rows = _stages(tables, layer, column)
    return rows.assign(value=rows["trained"] - rows["untrained"])


def _crossings(tables: Tables) -> pd.DataFrame:
    """Count the pairs of paths that cross after training, before it, and in the true statistics
    (`task`)."""
    rows = []
    for key, own in _read(tables, "embedding").groupby(RUN):
        stages = {stage: select(own, stage=stage) for stage in ("trained", "untrained")}
        true = paths(stages["trained"], ("axis", "orthogonal"))
        count = {stage: crossing(paths(each)) for stage, each in stages.items()}
        pairs = len(true) * (len(true) - 1) / 2
        rows.append(
            dict(zip(RUN, key, strict=True)) | count | {"task": crossing(true), "pairs": pairs}
        )
    return pd.DataFrame(rows).join(_networks(tables)["test_cost"], on=RUN)


@quantity(unit="ratio")
def crossing_pairs(tables: Tables) -> pd.DataFrame:
    """pairs of paths that cross, after training / before"""
    rows = _crossings(tables)
    return rows.assign(value=rows["trained"] / rows["untrained"])


@quantity(unit="difference")
def crossing_beyond_task(tables: Tables) -> pd.DataFrame:
    """fraction of the pairs of paths that cross, after training − in the true statistics"""
    rows = _crossings(tables)
    return rows.assign(value=(rows["trained"] - rows["task"]) / rows["pairs"])
