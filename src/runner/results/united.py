"""Unite runs of a figure that differ only in their seed: a seed and a replicate are one network.

The replicates of later seeds are numbered on, so that what counts replicates counts all networks.
Rows of averages over all networks of a run become one row. A figure without two such runs keeps its
tables as they are. The column `seeds` of united tables has the seeds of a row's network: `1+2`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import pandas as pd

from runner.core.catalogue import rows_of
from runner.core.studies import Row, column_types
from runner.results.rows import SEEDS, Tables
from runner.runs.run import Run


def groups_of(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """Return the runs in groups that differ only in the seed, each sorted by seed."""
    groups: dict[str, list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.config.seed):
        alike = {**run.config.identity(), "seed": None}
        groups.setdefault(json.dumps(alike, sort_keys=True), []).append(run)
    return groups


def united_seeds(runs: Iterable[Run]) -> list[int]:
    """Return the sorted seeds of runs that differ only in the seed; empty without two such runs."""
    several = [group for group in groups_of(runs).values() if len(group) > 1]
    return sorted({run.config.seed for group in several for run in group})


def can_unite(row_class: type[Row]) -> bool:
    """Return whether the rows of runs with several seeds can be united."""
    return "replicate" in row_class.keys or row_class.averages


def unite(tables: Mapping[str, pd.DataFrame], runs: Sequence[Run]) -> dict[str, pd.DataFrame]:
    """Return the tables of a figure's runs, in which a seed and a replicate are one network.

    tables: the result of `runs.run.load` for these runs.
    """
    seeds = united_seeds(runs)
    if not seeds:
        return dict(tables)
    seed_of = {run.key: run.config.seed for run in runs}
    counts = [_replicates(tables, [run for run in seed_of if seed_of[run] == s]) for s in seeds]
    first = dict(zip(seeds, accumulate(counts, initial=0), strict=False))
    names = {
        run.key: [member.key for member in group]
        for group in groups_of(runs).values()
        for run in group
    }
    text = {run: "+".join(str(seed_of[name]) for name in names[run]) for run in names}
    united = {}
    for name, rows in tables.items():
        rows = rows.assign(**{SEEDS: rows["run"].map(text)})
        if "replicate" in rows:
            shift = rows["run"].map(lambda run: first.get(seed_of[run], 0))
            united[name] = rows.assign(replicate=rows["replicate"] + shift)
        else:
            together = rows["run"].map({run: " ".join(names[run]) for run in names})
            row_class = rows_of(runs[0].config.study)[name]
            united[name] = _averaged(rows.assign(run=together), row_class)
    return united


def _replicates(tables: Tables, runs: list[str]) -> int:
    """Return one more than the largest replicate of some runs; 0 if no table has replicates."""
    columns = [
        rows.loc[rows["run"].isin(runs), "replicate"]
        for rows in tables.values()
        if "replicate" in rows
    ]
    return max((int(column.max()) + 1 for column in columns if len(column)), default=0)


def _averaged(rows: pd.DataFrame, row_class: type[Row]) -> pd.DataFrame:
    """Return one row for each group of rows with the same run and keys: their joint average.

    The runs of a group have equally many networks and layers, and are independent. Whole numbers
    are added. `x_se` and `x_sd` are the standard error and the deviation of the joint average of x.
    All other columns are averaged, also ratios of averages.
    """
    measured = {
        name: kind for name, kind in column_types(row_class).items() if name not in row_class.keys
    }
    by = rows.groupby(["run", *row_class.keys], sort=False, dropna=False)
    joint = [
        group.iloc[0].to_dict() | {name: _joint(group, name, measured[name]) for name in measured}
        for _, group in by
    ]
    return pd.DataFrame(joint, columns=rows.columns)


def _joint(group: pd.DataFrame, name: str, kind: type) -> float:
    """Return a column of the joint average of some rows. kind: the type of the column."""
    values = group[name].to_numpy()
    if kind is int:
        return int(values.sum())
    if name.endswith("_se"):
        return float(np.sqrt(np.sum(values**2)) / len(values))
    if name.endswith("_sd"):
        averages = group[name.removesuffix("_sd")].to_numpy()
        return float(np.sqrt(np.mean(values**2) + np.var(averages)))
    return float(values.mean())
