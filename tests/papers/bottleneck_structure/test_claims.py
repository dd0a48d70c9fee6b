"""What claims of paper D exclude, and how they measure it."""

import numpy as np
import pandas as pd
import pytest

from runner.commands.kept import read_tables
from runner.core.catalogue import figure_study
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.bottleneck.tables import (
    at_ridge,
    bottleneck_lengths,
    fits,
    lines,
)
from runner.papers.bottleneck_structure.theorem_claims import THEOREMS
from runner.results.claims import claims_of, judge
from runner.runs.provenance import REFERENCE

REPLICATES = 7
RANKS = {
    "plain": {4: 3, 6: 3, 8: 3, 10: 2, 12: 2, 14: 2, 16: 0, 18: 0},
    "minimum": {8: 3, 10: 3, 12: 3, 14: 2, 16: 2, 18: 2, 20: 2, 22: 2},
}


def verdicts(figure: str, tables: dict[str, pd.DataFrame]) -> pd.Series:
    return judge(figure, claims_of(figure, figure_study(figure)), tables).set_index("claim")[
        "verdict"
    ]


def theorems() -> pd.DataFrame:
    rows = [
        {
            "theorem": each.name,
            "recipe": "minimum",
            "points": 10,
            "violations": 0,
            "tightness": 0.5,
        }
        | {"replicate": replicate, "imbalance": 0.0, "lower": 1.0, "upper": 2.0}
        for each in THEOREMS
        for replicate in range(REPLICATES)
    ]
    return pd.DataFrame(rows)


def networks() -> list[tuple[str, int, int, int]]:
    return [
        (recipe, L, replicate, rank)
        for recipe, ranks in RANKS.items()
        for L, rank in ranks.items()
        for replicate in range(REPLICATES)
    ]


def figure1() -> dict[str, pd.DataFrame]:
    """As the paper says: affine norms, rank falling with depth, zero networks at the end."""
    metrics, spectrum, representation = [], [], []
    for recipe, L, replicate, rank in networks():
        key = {"recipe": recipe, "depth": L, "replicate": replicate}
        cost = 0.004 if rank else 1.0
        correction = (20 if recipe == "minimum" else 2) / L
        norm = rank * L + 12.0 - 2 * rank + 0.1 * replicate + correction if rank else 0.0
        metrics.append(
            {**key, "parameter_norm": norm, "train_cost": cost, "test_cost": 2 * cost}
            | {
                "ridge": 1e-3,
                "loss": cost + 1e-3 * norm,
                "rank": rank,
                "spread": 0.001,
                "best_start": (cost + 1e-3 * norm) * 1.02,
                "ntk_trace": 30.0 * L,
            }
        )
        for layer in range(1, L + 1):
            inside = 1 < layer < L
            for index in range(1, 7):
                end = 0.6 if rank else 0.0
                value = (1 + 1 / L if index <= rank else 0.01) if inside else end
                spectrum.append({**key, "layer": layer, "index": index, "singular_value": value})
            tail = 1e-3 if inside else 0.5
            representation.append({**key, "rank": rank, "layer": layer, "tail": tail})
    small = [row | {"ridge": 1e-5, "train_cost": 0.01} for row in metrics if row["depth"] == 18]
    metrics += [row for row in small if row["recipe"] == "plain"]
    return {
        "metrics": pd.DataFrame(metrics),
        "spectrum": pd.DataFrame(spectrum),
        "representation": pd.DataFrame(representation).query("rank > 0"),
        "theorems": theorems(),
    }


def figure2() -> dict[str, pd.DataFrame]:
    rows, summary, embedding = [], [], []
    for stage in ("trained", "untrained"):
        good = stage == "trained"
        for replicate in range(REPLICATES):
            spread = 0.001 * replicate
            summary.append(
                {"stage": stage, "replicate": replicate}
                | {"test_cost": 0.01 if good else 1.0, "rank_gap": 2 if good else 20}
                | dict.fromkeys(["jacobian_rank", "bottleneck_rank"], 2 if good else 20)
                | {"rank": 2 if good else 20, "rank_share": 1.0}
            )
            for path, time in np.ndindex(8, 2):
                # side by side by the statistics, and trained; untrained every path crosses all
                end = path if good else 7 - path
                embedding.append(
                    {"stage": stage, "replicate": replicate, "path": path, "time": time}
                    | {"axis": path, "orthogonal": time, "pc1": end if time else path, "pc2": time}
                )
            for layer in range(1, 13):
                rows.append(
                    {"stage": stage, "replicate": replicate, "layer": layer, "s1": 1.1, "s2": 1.0}
                    | {"s3": 0.1 if good else 0.9, "rank_gap": 2 if good else 20}
                    | {"knn_r2_axis": (0.99 if good else 0.4) + spread}
                    | {"knn_r2_orthogonal": (0.98 if good else 0.5) - spread}
                    | {"step_r2": (0.95 if good else 0.5) + spread}
                    | {"orbit_ratio": (0.06 if good else 0.8) + spread}
                    | {"plane_ratio": (0.08 if good else 0.8) - spread}
                )
    tables = {"metrics": rows, "networks": summary, "embedding": embedding}
    return {name: pd.DataFrame(t).assign(noise=0.04, ridge=2e-4) for name, t in tables.items()}


@pytest.mark.parametrize(("factor", "verdict"), [(1.0, "holds"), (0.88, "fails")])
def test_the_slope_of_the_norm_is_the_rank(factor, verdict):
    tables = figure1()
    rows = tables["metrics"]
    rows["parameter_norm"] *= np.where(rows["rank"] == 3, factor, 1.0)
    found = verdicts("bottleneck-recipes", tables)
    assert found["slope-is-rank-trained"] == verdict


@pytest.mark.parametrize(("known", "verdict"), [(0.6, "holds"), (0.99, "fails")])
def test_a_symmetry_is_spurious_where_the_statistics_are_not_known(known, verdict):
    """At a ridge at which the rank is too low; known: R² of the statistics, at most."""
    tables = {name: table.assign(ridge=0.01) for name, table in figure2().items()}
    tables["networks"]["rank"] = 1
    statistics = ["knn_r2_axis", "knn_r2_orthogonal"]
    tables["metrics"][statistics] = tables["metrics"][statistics].clip(upper=known)
    assert verdicts("bottleneck-symmetry", tables)["spurious-symmetry"] == verdict


def test_paths_that_cross_more_than_the_statistics_do_fail():
    tables = figure2()
    paths = tables["embedding"]
    two = (paths["stage"] == "trained") & (paths["time"] == 1) & (paths["path"] < 2)
    paths.loc[two, "pc1"] = 1 - paths.loc[two, "path"]  # one pair of 28 crosses
    assert verdicts("bottleneck-fig2", tables)["paths-do-not-cross"] == "fails"
    paths.loc[two, "axis"] = paths.loc[two, "pc1"]  # so it does by the statistics
    assert verdicts("bottleneck-fig2", tables)["paths-do-not-cross"] == "holds"


@pytest.mark.parametrize(("unfit", "verdict"), [(1, "holds"), (2, "undecided")])
def test_networks_that_have_not_learned_decide_nothing_beyond_a_fifth(unfit, verdict):
    tables = figure2()
    tables["networks"].loc[: unfit - 1, "test_cost"] = 1.0
    assert set(verdicts("bottleneck-fig2", tables)) == {verdict}
    tables = figure1()
    rows = tables["metrics"].eval("recipe == 'minimum' and depth == 22 and replicate < @unfit")
    tables["metrics"].loc[rows, "train_cost"] = 0.2
    found = verdicts("bottleneck-fig1", tables).drop([each.name for each in THEOREMS])
    assert set(found) == {verdict}


def test_unbalanced_networks_decide_nothing_where_the_proof_assumes_balance():
    tables = figure1()
    tables["theorems"] = tables["theorems"].assign(imbalance=0.01, violations=1)
    found = verdicts("bottleneck-fig1", tables)
    assert (found[["theorem-7", "corollary-8"]] == "undecided").all()
    assert found["theorem-3"] == "fails"


def test_along_the_kept_minima_a_layer_costs_at_most_lambda_k():
    """`F(L') <= F(L) + lambda k (L' - L)` from each depth to the next, rank changes included."""
    metrics = read_tables(REFERENCE / "quick" / "bottleneck-fig1")["metrics"]
    minima = metrics[metrics["recipe"] == "minimum"].sort_values(["replicate", "depth"])
    steps = minima.groupby("replicate")[["depth", "loss"]].diff()
    k = minima.groupby("replicate")["rank"].shift()
    bound = Bottleneck().ridge * k * steps["depth"]
    assert steps["loss"].notna().sum() == 8 * 13
    assert (steps["loss"] <= bound)[steps["loss"].notna()].all()


def test_empty_theorem_tables_decide_nothing():
    tables = figure1()
    del tables["theorems"]
    found = verdicts("bottleneck-fig1", tables)
    assert (found[[each.name for each in THEOREMS]] == "undecided").all()


def test_a_range_is_a_run_of_neighbouring_depths():
    metrics = (
        figure1()["metrics"].query("recipe == 'plain' and replicate == 0 and ridge == 1e-3").copy()
    )
    metrics.loc[metrics["depth"] == 6, "rank"] = 2
    found = fits(metrics, depths=3)
    assert list(found["rank"]) == [2] and found["first"].iloc[0] == 10
    assert found["slope"].iloc[0] == pytest.approx(2, abs=0.2)
    lengths = bottleneck_lengths(metrics, figure1()["spectrum"])
    assert set(lengths["outside"]) == {2}


def test_the_error_of_a_slope_is_that_of_the_depths_it_is_fitted_to():
    tables = {"metrics": figure1()["metrics"].query("recipe == 'minimum'")}
    found = fits(tables["metrics"], 3).query("replicate == 0")
    first = found["first"].max()
    spread = np.where(tables["metrics"]["depth"] < first, 0.5, 0.001)
    uncertain = fits(tables["metrics"].assign(spread=spread), 3).query("replicate == 0")
    last = uncertain["first"] == first
    pd.testing.assert_frame_equal(uncertain[last], found[found["first"] == first])
    assert (uncertain.loc[~last, "off"] > 100 * found.loc[~last, "off"]).all() and (~last).any()


def test_networks_as_trained_decide_nothing_where_ranges_are_too_short():
    """Ranges of two depths give no slope: above a fifth of the replicates nothing is decided."""
    tables = figure1()
    rows = tables["metrics"]
    tables["metrics"] = rows[(rows["recipe"] != "plain") | rows["depth"].isin([4, 6, 10, 18])]
    found = verdicts("bottleneck-recipes", tables)
    assert (found[["affine-norm-trained", "slope-is-rank-trained"]] == "undecided").all()
    assert found["rank-falls-trained"] == "holds"


def test_plain_training_of_the_reference_has_the_slopes_that_the_page_prints():
    metrics = read_tables(REFERENCE / "paper" / "bottleneck-recipes")["metrics"]
    found = lines(at_ridge(metrics).query("recipe == 'plain'")).sort_values("replicate")
    assert (found["slope"] / found["rank"]).round(2).tolist() == [0.93, 1.01, 1.00, 0.82, 0.97]
    assert found["r2"].min() == pytest.approx(0.990, abs=1e-3)
