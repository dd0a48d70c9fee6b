"""What is measured of the trained network of figure 2 and, for comparison, the untrained one.

With `test_cost`, that of the trained network.
"""

import pandas as pd

from runner.papers.bottleneck_structure.symmetry.tables import crossing, middle_layers, paths
from runner.results.quantities import Tables, quantity
from runner.results.rows import NoRows, select


def _networks(tables: Tables) -> pd.DataFrame:
    return select(tables["networks"], stage="trained").set_index("replicate")


@quantity()
def rank(tables: Tables, column: str) -> pd.DataFrame:
    """k, the {column}"""
    rows = _networks(tables).reset_index()
    if column not in rows:
        raise NoRows(f"no column {column}: tables of an earlier version")
    return rows.assign(value=rows[column])


@quantity()
def rank_by_gap(tables: Tables) -> pd.DataFrame:
    """k by the largest gap of the spectrum of each layer of the middle half"""
    rows = middle_layers(select(tables["metrics"], stage="trained"))
    rows = rows.join(_networks(tables)["test_cost"], on="replicate")
    return rows.assign(
        value=rows["rank_gap"], right=rows["rank_gap"] == 2, gap=rows["s2"] / rows["s3"]
    )


def _stages(tables: Tables, layer: int, column: str) -> pd.DataFrame:
    """A column of a layer, trained and untrained; of the last where there are not so many."""
    rows = select(tables["metrics"], layer=min(layer, int(tables["metrics"]["layer"].max())))
    found = rows.pivot(index="replicate", columns="stage", values=column)
    return found.join(_networks(tables)["test_cost"]).reset_index()


@quantity()
def left_unexplained(tables: Tables, column: str, layer: int) -> pd.DataFrame:
    """1 − {column} of two coordinates of layer {layer}, trained / untrained"""
    rows = _stages(tables, layer, column)
    return rows.assign(value=(1 - rows["trained"]) / (1 - rows["untrained"]))


@quantity(unit="ratio")
def within_over_between(tables: Tables, column: str, layer: int) -> pd.DataFrame:
    """{column} of layer {layer}: mean distance within an orbit over between orbits"""
    rows = _stages(tables, layer, column)
    return rows.assign(value=rows["trained"], before=rows["untrained"])


@quantity(unit="difference")
def gained(tables: Tables, column: str, layer: int) -> pd.DataFrame:
    """{column} of two coordinates of layer {layer}, trained − untrained"""
    rows = _stages(tables, layer, column)
    return rows.assign(value=rows["trained"] - rows["untrained"])


def _crossings(tables: Tables) -> pd.DataFrame:
    """Pairs of paths that cross: trained, untrained, and by the true statistics (`task`)."""
    rows = []
    for replicate, own in tables["embedding"].groupby("replicate"):
        stages = {stage: select(own, stage=stage) for stage in ("trained", "untrained")}
        true = paths(stages["trained"], ("axis", "orthogonal"))
        count = {stage: crossing(paths(each)) for stage, each in stages.items()}
        pairs = len(true) * (len(true) - 1) / 2
        rows.append({"replicate": replicate, **count, "task": crossing(true), "pairs": pairs})
    return pd.DataFrame(rows).join(_networks(tables)["test_cost"], on="replicate")


@quantity(unit="ratio")
def crossing_pairs(tables: Tables) -> pd.DataFrame:
    """pairs of paths that cross, trained / untrained"""
    rows = _crossings(tables)
    return rows.assign(value=rows["trained"] / rows["untrained"])


@quantity(unit="difference")
def crossing_beyond_task(tables: Tables) -> pd.DataFrame:
    """share of the pairs of paths that cross, trained − by the true statistics"""
    rows = _crossings(tables)
    return rows.assign(value=(rows["trained"] - rows["task"]) / rows["pairs"])
