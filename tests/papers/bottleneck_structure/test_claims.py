"""Each claim of paper D holds on tables as the paper says and fails on tables that do not."""

import numpy as np
import pandas as pd
import pytest

from runner.core.catalogue import figure_study
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.bottleneck.tables import (
    at_ridge,
    bottleneck_lengths,
    fits,
    lines,
)
from runner.papers.bottleneck_structure.theorem_claims import THEOREMS
from runner.publish.kept_figure import read_tables
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


def theorems(violations: int = 0) -> pd.DataFrame:
    rows = [
        {
            "theorem": each.name,
            "recipe": "minimum",
            "points": 10,
            "violations": violations,
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


def figure2(noise: float = 0.04, ridge: float = 2e-4) -> dict[str, pd.DataFrame]:
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
    return {name: pd.DataFrame(t).assign(noise=noise, ridge=ridge) for name, t in tables.items()}


def symmetries(noisy: int = 2, low: int = 1, known: float = 0.6) -> dict[str, pd.DataFrame]:
    """Without noise, and with a ridge at which the rank is too low.

    noisy, low: the ranks; known: what layer 6 of the latter tells of the statistics, at most.
    """
    usual, strong = figure2(noise=0.0), figure2(ridge=0.01)
    usual["networks"]["bottleneck_rank"], strong["networks"]["rank"] = noisy, low
    statistics = ["knn_r2_axis", "knn_r2_orthogonal"]
    strong["metrics"][statistics] = strong["metrics"][statistics].clip(upper=known)
    return {name: pd.concat([usual[name], strong[name]]) for name in usual}


def rank_one(ntk: float = 2.0, excess: float = 3.0) -> dict[str, pd.DataFrame]:
    rows = []
    for N in (8, 16, 32, 64):
        for replicate in range(REPLICATES):
            c1 = 5 + excess * np.log(N) + 0.1 * replicate
            trace = 12 * np.exp(ntk * np.log(N) - 0.05 * replicate)
            rows.append(
                {"samples": N, "replicate": replicate, "depth": 12, "excess": c1}
                | {"train_cost": 0.5 if N == 64 else 1e-4, "ntk_trace": trace}
            )
    return {"metrics": pd.DataFrame(rows)}


def example20() -> dict[str, pd.DataFrame]:
    rows = []
    for L in (8, 32, 128, 512):
        for g in (0.6, 0.8):
            excess = 12 * L ** (1 - 2 * g)
            rows.append(
                {"depth": L, "exponent": g, "parameter_norm": 3 * L + excess, "excess": excess}
                | {"max_error": 1e-16, "middle_lipschitz": float(np.exp(L ** (1 - g) / 2))}
            )
    return {"metrics": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("figure", "tables"),
    [
        ("bottleneck-fig1", figure1),
        ("bottleneck-recipes", figure1),
        ("bottleneck-fig2", figure2),
        ("bottleneck-symmetry", symmetries),
        ("bottleneck-theorems", rank_one),
        ("bottleneck-example20", example20),
    ],
)
def test_tables_as_the_paper_says_hold(figure, tables):
    assert set(verdicts(figure, tables())) == {"holds"}


def broken_figure1(change: str) -> dict[str, pd.DataFrame]:
    tables = figure1()
    metrics, spectrum = tables["metrics"], tables["spectrum"]
    deep = metrics["depth"] >= 10
    if change == "steep":
        metrics["loss"] += 0.4e-3 * metrics["parameter_norm"]
    elif change == "curved":
        metrics["parameter_norm"] = 12 + metrics["rank"] * metrics["depth"] ** 1.5
    elif change == "gentle":
        metrics["parameter_norm"] *= 1 - 0.12 * (metrics["rank"] == 3)
    elif change == "bent":
        metrics["parameter_norm"] += 0.3 * (-1.0) ** (metrics["depth"] // 2)
    elif change == "far":
        spectrum["singular_value"] += 0.1 * (spectrum["singular_value"] > 1)
    elif change == "narrow":
        metrics["ntk_trace"] = metrics["depth"] ** 2.5
    elif change == "square root":
        metrics["ntk_trace"] = 30 * metrics["depth"] ** 0.55
    elif change == "crooked":
        metrics["parameter_norm"] += 5.0 * metrics["depth"].isin([6, 12])
    elif change == "unfit":
        metrics.loc[metrics["ridge"] == 1e-5, "train_cost"] = 0.2
    elif change == "rising":
        metrics["rank"] = np.where(metrics["depth"] < 12, 2, 3)
        metrics["train_cost"] = 0.01
    elif change == "flat":
        spectrum["singular_value"] = 0.6
    elif change == "ends":
        middle = spectrum["layer"] == spectrum["depth"] // 2
        kept = middle | (spectrum["depth"] < 10)
        spectrum["singular_value"] = spectrum["singular_value"].where(kept, 0.9)
    elif change == "trains":
        metrics["parameter_norm"] = metrics["parameter_norm"].clip(lower=5.0)
    elif change == "underestimates":
        low = deep & (metrics["rank"] == 2)
        metrics.loc[low, "rank"] = 1
    elif change == "tail":
        tables["representation"]["tail"] = 1 - tables["representation"]["tail"]
    elif change == "late":
        metrics["loss"] += 0.5 / metrics["depth"]
    elif change == "violated":
        tables["theorems"] = theorems(violations=1)
    return tables


@pytest.mark.parametrize(
    ("change", "claims"),
    [
        ("steep", ["slope-tends-to-rank"]),
        ("late", ["slope-tends-to-rank"]),
        ("curved", ["affine-norm", "slope-is-rank"]),
        ("gentle", ["slope-is-rank", "slope-is-rank-trained"]),
        ("bent", ["first-correction"]),
        ("far", ["distance-to-one"]),
        ("narrow", ["ntk-of-order-depth"]),
        ("square root", ["ntk-of-order-depth"]),
        ("crooked", ["affine-norm-trained"]),
        ("unfit", ["small-ridge-fits"]),
        ("rising", ["rank-falls", "rank-falls-trained"]),
        ("flat", ["singular-values"]),
        ("ends", ["only-the-middle-grows"]),
        ("trains", ["training-fails-deep"]),
        ("underestimates", ["no-rank-1-fit", "no-rank-1-fit-trained"]),
        ("tail", ["representations-low-rank"]),
        ("violated", [each.name for each in THEOREMS]),
    ],
)
def test_each_claim_of_figure_1_and_of_our_recipes_can_fail(change, claims):
    tables = broken_figure1(change)
    found = pd.concat(
        [verdicts(name, tables) for name in ("bottleneck-fig1", "bottleneck-recipes")]
    )
    assert (found[claims] == "fails").all()


@pytest.mark.parametrize(
    ("column", "value", "claim"),
    [
        ("rank_gap", 3, "two-outliers"),
        ("knn_r2_axis", 0.5, "summary-statistics"),
        ("step_r2", 0.1, "self-consistent"),
        ("orbit_ratio", 0.15, "orbits-collapse"),
    ],
)
def test_each_claim_of_figure_2_can_fail(column, value, claim):
    tables = figure2()
    trained = tables["metrics"]["stage"] == "trained"
    tables["metrics"].loc[trained, column] = value
    assert verdicts("bottleneck-fig2", tables)[claim] == "fails"


def test_a_rank_that_is_not_the_tasks_fails():
    for column in ("jacobian_rank", "bottleneck_rank"):
        tables = figure2()
        tables["networks"][column] = 3
        assert verdicts("bottleneck-fig2", tables)["true-rank"] == "fails"


def test_each_claim_of_other_noise_and_ridge_can_fail():
    assert verdicts("bottleneck-symmetry", symmetries(noisy=3))["rank-without-noise"] == "fails"
    found = verdicts("bottleneck-symmetry", symmetries(known=0.99))
    assert found["spurious-symmetry"] == "fails"
    found = verdicts("bottleneck-symmetry", symmetries(low=2))
    assert found["spurious-symmetry"] == "undecided", "no network underestimates the rank"


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


def test_claims_of_theorem_10_can_fail():
    slow = verdicts("bottleneck-theorems", rank_one(ntk=-1.0, excess=0.5))
    assert slow["ntk-lower-bound"] == slow["norm-lower-bound"] == slow["ntk-blows-up"] == "fails"
    loose = rank_one()
    loose["metrics"]["train_cost"] = np.where(loose["metrics"]["samples"] == 8, 0.5, 1e-4)
    found = verdicts("bottleneck-theorems", loose)
    assert found["interpolants-are-rare"] == "fails"
    loose["metrics"].loc[loose["metrics"]["replicate"] < 2, "train_cost"] = 0.5
    found = verdicts("bottleneck-theorems", loose)
    assert found["ntk-lower-bound"] == "undecided"


@pytest.mark.parametrize(
    ("column", "claim"),
    [
        ("max_error", "represents"),
        ("parameter_norm", "norm-converges"),
        ("middle_lipschitz", "representations-diverge"),
    ],
)
def test_claims_of_example_20_can_fail(column, claim):
    tables = example20()
    tables["metrics"][column] = 100.0
    assert verdicts("bottleneck-example20", tables)[claim] == "fails"


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


def test_one_network_does_not_refute_what_training_ends_in():
    """Six of seven are too few to hold, and one is too few to fail."""
    tables = figure2()
    for table, columns in (
        ("networks", ["jacobian_rank", "bottleneck_rank"]),
        ("metrics", ["rank_gap"]),
    ):
        odd = (tables[table]["replicate"] == 0) & (tables[table]["stage"] == "trained")
        tables[table].loc[odd, columns] = 3
    found = verdicts("bottleneck-fig2", tables)
    assert set(found[["two-outliers", "true-rank"]]) == {"undecided"}


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
