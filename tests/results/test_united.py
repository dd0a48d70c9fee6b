"""Runs of several seeds: joint averages have the numbers of all their networks."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from runner.core.studies import Row, column
from runner.results.united import _averaged


@dataclass
class Average(Row):
    """One row for each layer, averaged over networks."""

    table: ClassVar[str] = "averages"
    keys: ClassVar[tuple[str, ...]] = ("layer",)
    averages: ClassVar[bool] = True

    layer: int = column("number of the layer")
    networks: int = column("number of networks")
    rank: float = column("mean rank")
    rank_se: float = column("its standard error")
    rank_sd: float = column("deviation of the networks")


def average(layer: int, values: np.ndarray) -> dict:
    error = values.std() / np.sqrt(len(values))
    row = Average(layer, len(values), values.mean(), error, values.std())
    return {"run": "1 2", **vars(row), "seeds": "1+2"}


def test_a_joint_average_is_the_average_of_all_networks():
    values = np.random.default_rng(0).normal(3.0, 0.5, (2, 2, 7))  # layer, seed, network
    values[1, 1] += 4  # two seeds that differ
    rows = [average(layer, values[layer, seed]) for seed in (0, 1) for layer in (0, 1)]
    joint = _averaged(pd.DataFrame(rows), Average)
    assert [*joint["layer"]] == [0, 1] and [*joint["networks"]] == [14, 14]
    assert [*joint.columns] == [*pd.DataFrame(rows).columns]
    for layer in (0, 1):
        row, all_networks = joint.iloc[layer], values[layer].ravel()
        assert row["rank"] == pytest.approx(all_networks.mean(), rel=1e-12)
        assert row["rank_sd"] == pytest.approx(all_networks.std(), rel=1e-12)
        within = np.sqrt(values[layer].var(axis=1).sum() / 7) / 2
        assert row["rank_se"] == pytest.approx(within, rel=1e-12), "of the mean of two means"


def test_two_equal_seeds_halve_the_variance_of_the_mean():
    values = np.random.default_rng(1).normal(size=100)
    joint = _averaged(pd.DataFrame([average(0, values)] * 2), Average).iloc[0]
    assert joint["networks"] == 200
    assert joint["rank_se"] == pytest.approx(values.std() / np.sqrt(200), rel=1e-12)
