"""What claims of paper D exclude, and how they measure it."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from in_memory import kept_tables, verdicts

from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.bottleneck.quantities import _slope_of_counts
from runner.papers.bottleneck_structure.bottleneck.tables import at_ridge, fits
from runner.papers.bottleneck_structure.symmetry.quantities import gained
from runner.papers.bottleneck_structure.theorem_claims import THEOREMS


def test_slopes_of_counts_are_rounded_once():
    """A slope of a half is not below a half, whatever order its sums are computed in."""
    noise = np.random.default_rng(0)
    for _ in range(200):
        n = int(noise.integers(3, 12))
        x, y = noise.permutation(40)[:n].tolist(), noise.integers(0, 20, n).tolist()
        over, under = (
            sum(n * a * b for a, b in zip(x, other, strict=True)) - sum(x) * sum(other)
            for other in (y, x)
        )
        assert _slope_of_counts(pd.Series(x), pd.Series(y)) == float(Fraction(over, under))


@pytest.fixture
def minima() -> pd.DataFrame:
    """Metrics of one replicate, whose norm is affine in the depth: 3 L + 6, then 2 L + 8."""
    depths = np.arange(8, 23, 2)
    rank = np.where(depths < 14, 3, 2)
    norm = rank * depths + 12.0 - 2 * rank
    columns = {"depth": depths, "rank": rank, "parameter_norm": norm, "spread": 0.001}
    columns |= {"recipe": "minimum", "run": "run", "replicate": 0, "ridge": 1e-3}
    columns |= {"loss": 0.01, "train_cost": 0.005}
    return pd.DataFrame(columns)


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (0.8, "fails")])
def test_the_slope_of_the_norm_is_the_rank(factor, verdict):
    """Eight tasks of rank 3, then 2; a further layer adds `factor` times the rank to the norm."""
    depths = np.arange(6, 26, 2)
    rank = np.where(depths < 16, 3, 2)
    rows = {"depth": depths, "rank": rank, "parameter_norm": factor * rank * depths + 12}
    columns = {"recipe": "plain", "ridge": 1e-3, "train_cost": 0.005}
    tasks = [pd.DataFrame(rows).assign(replicate=task, **columns) for task in range(8)]
    found = verdicts("bottleneck-recipes", {"metrics": pd.concat(tasks, ignore_index=True)})
    assert found["slope-is-rank-trained"] == verdict


@pytest.mark.parametrize(("recipe", "end"), [("plain", "trained"), ("annealed", "annealed")])
@pytest.mark.parametrize(
    ("power", "ranks", "verdict"), [(1, (3, 2), "holds"), (4, (2, 3), "fails")]
)
def test_networks_as_trained_fall_in_rank_along_lines(recipe, end, power, ranks, verdict):
    """Eight tasks: the norm is like a power of the depth, the rank changes at depth 16."""
    depths = np.arange(6, 26, 2)
    rows = {"depth": depths, "rank": np.where(depths < 16, *ranks), "parameter_norm": depths**power}
    columns = {"recipe": recipe, "ridge": 1e-3, "train_cost": 0.005}
    tasks = [pd.DataFrame(rows).assign(replicate=task, **columns) for task in range(8)]
    found = verdicts("bottleneck-recipes", {"metrics": pd.concat(tasks, ignore_index=True)})
    assert found[f"affine-norm-{end}"] == found[f"rank-falls-{end}"] == verdict


@pytest.mark.parametrize(("known", "verdict"), [(0.4, "holds"), (0.99, "fails")])
def test_a_symmetry_is_spurious_where_the_statistics_are_not_known(known, verdict):
    """known: R² of the statistics after training; it is 0.5 before training."""
    tables = kept_tables("bottleneck-symmetry")
    trained = tables["metrics"]["stage"] == "trained"
    for column in ("knn_r2_axis", "knn_r2_orthogonal"):
        tables["metrics"][column] = np.where(trained, known, 0.5)
    assert verdicts("bottleneck-symmetry", tables)["spurious-symmetry"] == verdict


def test_paths_that_cross_are_counted_in_the_note():
    """In the true statistics themselves as many pairs cross after training as in the task."""
    tables = kept_tables("bottleneck-fig2")
    tables["embedding"] = paths = tables["embedding"].query("path < 14").copy()
    trained = paths["stage"] == "trained"
    paths.loc[trained, "pc1"] = paths.loc[trained, "axis"]
    paths.loc[trained, "pc2"] = paths.loc[trained, "orthogonal"]
    measured = gained("step_r2", 6, "annealed").measure(tables)
    assert (measured["trained"] == measured["task"]).all()
    assert (measured["untrained"] > measured["task"]).any()
    assert set(measured["pairs"]) == {14 * 13 / 2}


@pytest.mark.parametrize(("unfit", "verdict"), [(1, "holds"), (2, "undecided")])
def test_networks_that_have_not_learned_decide_nothing_beyond_a_fifth(unfit, verdict):
    tables = kept_tables("bottleneck-fig2")
    trained = tables["networks"].query("stage == 'trained' and recipe == 'annealed'").index
    tables["networks"].loc[trained[:unfit], "test_cost"] = 1.0
    name = "true-rank-annealed"
    assert verdicts("bottleneck-fig2", tables, name) == {name: verdict}
    tables = kept_tables("bottleneck-fig1")
    metrics = tables["metrics"]
    deepest = metrics.query("recipe == 'minimum' and depth == depth.max()").index
    metrics.loc[deepest[:unfit], "train_cost"] = 0.2
    assert verdicts("bottleneck-fig1", tables, "slope-is-rank") == {"slope-is-rank": verdict}


def test_unbalanced_networks_decide_nothing_where_the_proof_assumes_balance():
    tables = kept_tables("bottleneck-fig1")
    tables["theorems"] = tables["theorems"].assign(imbalance=0.01, violations=1)
    names = [theorem.name for theorem in THEOREMS]
    found = verdicts("bottleneck-fig1", tables, *names)
    assert found["theorem-7"] == found["corollary-8"] == "undecided"
    assert found["theorem-3"] == "fails" and set(found) == set(names)


def test_along_the_kept_minima_a_layer_costs_at_most_lambda_k():
    """`F(L') <= F(L) + lambda k (L' - L)` from each depth to the next, rank changes included."""
    metrics = kept_tables("bottleneck-fig1")["metrics"]
    minima = metrics[metrics["recipe"] == "minimum"].sort_values(["replicate", "depth"])
    steps = minima.groupby("replicate")[["depth", "loss"]].diff()
    k = minima.groupby("replicate")["rank"].shift()
    bound = Bottleneck().ridge * k * steps["depth"]
    assert steps["loss"].notna().sum() == 8 * (minima["depth"].nunique() - 1)
    assert (steps["loss"] <= bound)[steps["loss"].notna()].all()


def test_a_range_is_a_run_of_neighbouring_depths(minima):
    assert list(fits(minima, depths=3)["slope"].round(6)) == [3, 2]
    minima.loc[minima["depth"] == 10, "rank"] = 2
    found = fits(minima, depths=3)
    assert list(found["rank"]) == [2] and list(found["depths"]) == [5]


def test_the_error_of_a_slope_is_that_of_the_depths_it_is_fitted_to(minima):
    certain = fits(minima, 3)
    uncertain = fits(minima.assign(spread=minima["spread"].mask(minima["depth"] < 14, 0.5)), 3)
    pd.testing.assert_frame_equal(uncertain.iloc[1:], certain.iloc[1:])
    assert uncertain["slope_error"].iloc[0] > 100 * certain["slope_error"].iloc[0]


def test_networks_as_trained_decide_nothing_where_ranges_are_too_short():
    """Ranges of two depths give no slope: above a fifth of the replicates nothing is decided."""
    tables = kept_tables("bottleneck-recipes", "paper")
    metrics = tables["metrics"]
    depths = sorted(metrics["depth"].unique())
    tables["metrics"] = metrics[(metrics["recipe"] != "plain") | metrics["depth"].isin(depths[::3])]
    found = verdicts("bottleneck-recipes", tables)
    assert found["affine-norm-trained"] == found["slope-is-rank-trained"] == "undecided"


def test_plain_training_of_the_reference_has_the_slopes_that_the_page_prints():
    metrics = kept_tables("bottleneck-recipes", "paper")["metrics"]
    found = fits(at_ridge(metrics).query("recipe == 'plain'")).sort_values("replicate")
    distance = ((found["slope"] / found["rank"] - 1).abs().round(2)).tolist()
    assert sorted(distance)[-3:] == [0.04, 0.05, 0.07]
    assert found["r2"].min() == pytest.approx(0.991, abs=1e-3)
