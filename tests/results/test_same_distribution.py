"""Two seeds are from one distribution, or the test says in which column they are not."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from in_memory import kept_tables

from runner.core.catalogue import rows_of
from runner.core.studies import Row
from runner.results.same_distribution import compared

FIGURES = {"fig4": "bn_only", "rank-fig3b": "rank_chain", "rank-fig6": "pretraining"}


@dataclass(frozen=True)
class Measured(Row):
    """A row of a table with two columns that depend on each other."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("replicate", "layer")

    replicate: int
    layer: int
    rank: float
    bound: float


def drawn(seed: int, replicates: int = 8, shift: float = 0.0) -> dict[str, pd.DataFrame]:
    """A table of some layers, whose numbers all hang on one random number of the replicate."""
    stream = np.random.default_rng(seed)
    common = stream.normal(size=(replicates, 1)) + 0.1 * stream.normal(size=(replicates, 20))
    replicate, layer = np.indices(common.shape).reshape(2, -1)
    rank = common.ravel() + shift * (layer == 7)
    columns = {"replicate": replicate, "layer": layer, "rank": rank, "bound": -rank}
    return {"metrics": pd.DataFrame({"run": f"run-{seed}", "seed": seed, **columns})}


def test_equal_distributions_differ_in_at_most_five_percent_of_seeds():
    """Though each replicate has forty numbers, which are nearly one number."""
    found = [compared(drawn(s), drawn(s + 1), {"metrics": Measured}) for s in range(0, 200, 2)]
    assert sum(result.differs for result in found) <= 10  # 5 expected, P(> 10) = 1 %
    assert sum(result.p < 0.5 for result in found) > 25, "it is not merely never true"


def test_a_shift_at_one_layer_is_found_and_named():
    result = compared(drawn(0), drawn(1, shift=9.0), {"metrics": Measured})
    assert result.differs and result.n == (8, 8)
    assert result.where in ("metrics.rank, layer=7", "metrics.bound, layer=7")
    assert "cannot be from the same distribution (permutation test of 8 and 8" in str(result)


@pytest.mark.parametrize("replicates", [1, 3])
def test_too_few_replicates_are_not_compared(replicates):
    few = (drawn(seed, replicates) for seed in (0, 1))
    assert compared(*few, {"metrics": Measured}) is None


def test_infinite_and_missing_numbers_are_ranked():
    """All of one side diverge: they are from another distribution; all of both: from one."""
    diverged = drawn(1)
    diverged["metrics"]["rank"] = np.nan
    assert compared(drawn(0), diverged, {"metrics": Measured}).differs
    both = drawn(0)
    both["metrics"] = both["metrics"].assign(rank=np.nan, bound=np.inf)
    other = {"metrics": both["metrics"].assign(run="other", seed=2)}
    assert compared(both, other, {"metrics": Measured}).p == 1


@pytest.mark.parametrize("figure", FIGURES)
def test_halves_of_the_reference_are_from_one_distribution_unless_one_is_changed(figure):
    tables = kept_tables(figure)
    tables = {name: rows for name, rows in tables.items() if "replicate" in rows}
    halves = [
        {name: rows[rows["replicate"] % 2 == half] for name, rows in tables.items()}
        for half in (0, 1)
    ]
    row_classes = rows_of(FIGURES[figure])
    assert not compared(*halves, row_classes).differs
    (name, rows), *_ = halves[0].items()
    column = next(c for c in ("mse", "singular_value", "train_loss") if c in rows)
    halves[0][name] = rows.assign(**{column: 3 * rows[column]})
    changed = compared(*halves, row_classes)
    assert changed.differs and changed.where.startswith(f"{name}.{column}, ")
