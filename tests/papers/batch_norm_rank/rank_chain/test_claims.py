"""What claims of study `rank_chain` select from the tables, and how they measure it."""

from math import ceil, inf, sqrt

import numpy as np
import pandas as pd
import pytest
from in_memory import judged, verdicts

from runner.papers.batch_norm_rank.rank_chain.batch_means import Plan
from runner.papers.batch_norm_rank.rank_chain.figures.layers import say_expansion
from runner.papers.batch_norm_rank.rank_chain.tables import (
    crossings,
    pieces,
    powers_left_over,
    scaled_products,
)
from runner.results.rows import NoRows


def power_tables(exponent=0.55):
    """Averages that grow as powers of d, from 32 chains, at the gammas of figures 8 and 9."""
    d = pd.Series([8, 16, 32, 64, 11])
    values = d.astype(float) ** exponent
    rows = {"width": d, "soft_rank": values, "rank_bound": values}
    rows |= {"frobenius": d**2 / values, "regularity": 0.85 - 1e-3 * d, "layers": 100_000}
    errors = ("soft_rank_se", "rank_bound_se", "frobenius_se", "regularity_se")
    rows |= {"chains": 32, "tau": 0.5} | dict.fromkeys(errors, 1e-4)
    parts = [pd.DataFrame(rows).assign(skip=g, law="gaussian") for g in (0.1, 1.0, inf)]
    return {"metrics": pd.concat(parts)}


def expansion_tables(power=2.0):
    """Change over gamma^2: delta_F and a remainder as a power of gamma."""
    rows = []
    for width in (8, 16, 32):
        for replicate in range(8):
            for skip in (1e-3, 1e-2, 1e-1):
                change = 2 * width**2 * (0.1 * replicate + 0.05 * skip**power)
                row = {"width": width, "law": "gaussian", "replicate": replicate, "skip": skip}
                row |= {"change": change, "predicted": 2 * width**2 * 0.1 * replicate}
                rows.append(row)
    return {"expansions": pd.DataFrame(rows)}


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
def test_the_power_that_is_left_over_is_that_of_the_remainder(power):
    found = powers_left_over(expansion_tables(power=power))
    assert len(found) == 24 and np.allclose(found, power, atol=0.01)


def test_a_matrix_at_which_two_distributions_are_measured_counts_once():
    rows = expansion_tables()["expansions"]
    both = pd.concat([rows, rows.assign(law="uniform")])
    assert "in all 24 matrices" in say_expansion({"expansions": both})


def test_two_gammas_give_no_power():
    two = expansion_tables()["expansions"].query("skip > 0.001")
    with pytest.raises(NoRows, match="needs three residual weights"):
        powers_left_over({"expansions": two})


def test_the_branch_that_goes_with_the_depth_is_told_from_a_constant_one():
    rows = [
        {"skip": c / L if c else 0.3, "layers": L, "layer": layer, "replicate": replicate}
        | {"log_ratio": -0.1 if layer else 0.0}
        for c in (1, 4, 0)
        for L in (100, 400)
        for layer in (0, L)
        for replicate in range(8)
    ]
    branches = scaled_products({"products": pd.DataFrame(rows)})
    assert set(branches["branch"]) == {"1 / L", "4 / L", "0.3"}
    assert branches.groupby("branch")["L"].unique().map(list).tolist() == [[100, 400]] * 3


def test_a_rank_that_stops_growing_at_the_last_doubling_does_not_grow_as_the_root():
    tables = power_tables(0.8)
    metrics = tables["metrics"]
    last = metrics["width"] == 64
    for column in ("rank_bound", "soft_rank"):
        metrics.loc[last, column] = 1.01 * 32**0.8
    found = judged("rank-fig3a", tables)
    growth = found.loc[["r-growth", "soft-rank-growth"]]
    assert set(growth["verdict"]) == {"fails"}


def test_figures_8_and_9_are_judged_at_their_own_gammas_alone():
    tables = {"metrics": power_tables()["metrics"].query("skip == inf")}
    for name, verdict in verdicts("rank-fig8", tables).items():
        assert verdict == ("holds" if name == "norm-bound" else "undecided")


def test_errors_come_from_as_many_batches_as_the_study_makes():
    for chains in (1, 7, 16, 32, 64):
        plan = Plan.of(layers=4000, chains=chains, stride=2, burn_in=0)
        table = pd.DataFrame({"chains": [chains]})
        assert pieces(table)[0] == plan.batches * chains


def test_k_star_is_where_the_growth_of_one_more_direction_crosses_zero():
    rows = []
    for width in (8, 16, 32, 64):
        star = 1.5 * sqrt(width)
        for k in range(1, ceil(star) + 4):
            row = {"width": width, "skip": inf, "input_rank": k, "chains": 32, "layers": 100_000}
            row |= {"exponent": 0.1 * (star - k), "exponent_se": 1e-3}
            rows.append(row | {"rank_bound": 1.0, "rank_bound_se": 1e-3})
    found = crossings({"input_ranks": pd.DataFrame(rows)})
    np.testing.assert_allclose(found["crossing"], 1.5 * np.sqrt(found["width"]))


def test_each_gamma_is_judged_by_its_own_layers():
    """The shallow networks' matrix converges, and the deep ones' keeps moving, or the reverse."""
    steps = {"converges": lambda layer, last: 1 - 0.9 * layer / last, "moves": lambda layer, _: 1.0}
    for of_shallow, of_deep, expected in (
        ("converges", "converges", "holds"),
        ("moves", "converges", "fails"),
        ("converges", "moves", "fails"),
    ):
        rows = [
            {"width": 16, "skip": skip, "law": "gaussian", "replicate": replicate, "layer": layer}
            | {"log_ratio": -0.01 * layer, "step_length": steps[kind](layer, last)}
            | {"gap": 0.01, "gap_se": 1e-5}
            for skip, last, kind in ((0.5, 600, of_shallow), (0.1, 6000, of_deep))
            for replicate in range(8)
            for layer in range(last // 100, last + 1, last // 100)
        ]
        tables = {"products": pd.DataFrame(rows)}
        assert verdicts("rank-lemma3", tables)["matrix-converges"] == expected


def test_a_rate_is_not_measured_where_networks_are_at_rounding():
    """Networks fall at the predicted rate, some faster than others, until float64 rounds them."""
    generator, last = np.random.default_rng(0), 6000
    rows = []
    for replicate, rate in enumerate(0.01 * (1 + 0.3 * generator.standard_normal(512))):
        for layer in range(100, last + 1, 100):
            row = {"width": 16, "skip": 0.1, "law": "gaussian", "replicate": replicate}
            fallen = {"layer": layer, "log_ratio": max(-36.0, -rate * layer), "step_length": 1.0}
            rows.append(row | fallen | {"gap": 0.01, "gap_se": 1e-5})
    table = judged("rank-lemma3", {"products": pd.DataFrame(rows)}, "rate-is-lyapunov-gap")
    row = table.loc["rate-is-lyapunov-gap"]
    assert row["low"] < 1 < row["high"]
