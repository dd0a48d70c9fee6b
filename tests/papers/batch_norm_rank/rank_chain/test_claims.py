"""The claims of study `rank_chain`: tables that make each hold, fail and stay undecided."""

from math import ceil, inf, nan, sqrt

import numpy as np
import pandas as pd
import pytest

from runner.papers.batch_norm_rank.rank_chain.batch_means import Plan
from runner.papers.batch_norm_rank.rank_chain.tables import (
    crossings,
    pieces,
    powers_left_over,
    scaled_products,
)
from runner.results.claims import claims_of, judgement
from runner.results.rows import NoRows

FIGURES = ("rank-fig3a", "rank-fig3b", "rank-fig8")
FIGURES += ("rank-laws", "rank-wide", "rank-lemma3", "rank-lemma7", "rank-live")


def judged(figure, tables):
    return {each.name: judgement(each, tables) for each in claims_of(figure, "rank_chain")}


def verdicts(figure, tables):
    return {name: judgement.verdict for name, judgement in judged(figure, tables).items()}


def power_tables(exponent=0.55, alpha=0.85, error=1e-4, layers=100_000, fall=1e-3):
    """Averages that grow as powers of d, from 32 chains, at the gammas of figures 8 and 9."""
    d = pd.Series([8, 16, 32, 64, 11])
    values = d.astype(float) ** exponent
    rows = {"width": d, "soft_rank": values, "rank_bound": values}
    rows |= {"frobenius": d**2 / values, "regularity": alpha - fall * d, "layers": layers}
    errors = ("soft_rank_se", "rank_bound_se", "frobenius_se", "regularity_se")
    rows |= {"chains": 32, "tau": 0.5} | dict.fromkeys(errors, error)
    parts = [pd.DataFrame(rows).assign(skip=g, law="gaussian") for g in (0.1, 1.0, inf)]
    return {"metrics": pd.concat(parts)}


def law_tables(small=0.6):
    """The same without skips for three laws, and Gaussian weights at gamma = 1 / (8 d)."""
    metrics = power_tables()["metrics"].query("width != 11")
    without = metrics[metrics["skip"] == inf]
    parts = [metrics[metrics["skip"] == 0.1].assign(skip=lambda rows: 1 / (8 * rows["width"]))]
    parts[0][["soft_rank", "rank_bound"]] *= small / 0.6
    for law, factor in (("gaussian", 1.0), ("uniform", 1.02), ("rademacher", 1.03)):
        part = without.assign(law=law)
        part[["soft_rank", "rank_bound"]] *= factor
        parts.append(part)
    rows = pd.concat(parts)
    forgotten = np.where(rows["skip"] < 1, 60_000 * rows["width"] ** 1.5, 300 * rows["width"])
    return {"metrics": rows.assign(layers=forgotten)}


def spectrum_tables(first=0.6, others=12.0, layers=(0, 5, 10)):
    rows = []
    for skip in (1.0, inf):
        for index in (1, 2, 3):
            for replicate in range(10):
                for layer in layers:
                    factor = (first if index == 1 else others) ** (layer / 10)
                    row = {"skip": skip, "index": index, "replicate": replicate, "layer": layer}
                    value = factor * (1 + 0.01 * replicate)
                    rows.append(row | {"singular_value": value if layer else 1 + 0.01 * replicate})
    return {"spectrum": pd.DataFrame(rows)}


def product_tables(fall=lambda layer: 0.1 * layer, gap=0.1, step=lambda layer: 1 / layer):
    rows = []
    for replicate in range(6):
        for layer in range(1, 101):
            row = {"law": "gaussian", "skip": 0.5, "replicate": replicate, "layer": layer}
            ratio = -fall(layer) * (1 + 0.01 * replicate)
            row |= {"log_ratio": ratio, "step_length": step(layer), "gap": gap, "gap_se": 1e-5}
            rows.append(row)
    return {"products": pd.DataFrame(rows)}


def expansion_tables(offset=0.0, power=2.0):
    """Change over gamma^2: delta_F, an offset (over 2 d^2) and a remainder as a power of gamma."""
    rows = []
    for width in (8, 16, 32):
        for replicate in range(8):
            for skip in (1e-3, 1e-2, 1e-1):
                change = 2 * width**2 * (0.1 * replicate + offset + 0.05 * skip**power)
                row = {"width": width, "law": "gaussian", "replicate": replicate, "skip": skip}
                row |= {"change": change, "predicted": 2 * width**2 * 0.1 * replicate}
                rows.append(row)
    return {"expansions": pd.DataFrame(rows)}


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0, 3.0])
def test_the_power_that_is_left_over_is_that_of_the_remainder(power):
    found = powers_left_over(expansion_tables(power=power))
    assert len(found) == 24 and np.allclose(found, power, atol=0.01)


def test_two_gammas_give_no_power():
    two = expansion_tables()["expansions"].query("skip > 0.001")
    with pytest.raises(NoRows, match="no third gamma"):
        powers_left_over({"expansions": two})


def assumption_tables(soft=1.0, growth=0.55, r_of_one_sign=1.0, scaled=0.9, constant=1e-6):
    """Soft ranks at three thresholds, r of weights of one sign, and products behind L layers."""
    metrics = power_tables(growth)["metrics"].query("skip != 1 and width != 11")
    parts = [metrics.assign(tau=tau) for tau in (0.1, 0.5, 0.9)]
    parts[0] = parts[0].assign(soft_rank=parts[0]["soft_rank"] * soft)
    of_one_sign = {"law": "asymmetric", "tau": 0.5, "rank_bound": r_of_one_sign}
    parts.append(metrics.assign(**of_one_sign))
    rows = [
        {"skip": c / L if c else 0.3, "layers": L, "layer": layer, "replicate": replicate}
        | {"log_ratio": np.log(scaled if c else constant) if layer else 0.0}
        for c in (1, 4, 0)
        for L in (100, 400)
        for layer in (0, L)
        for replicate in range(8)
    ]
    return {"metrics": pd.concat(parts), "products": pd.DataFrame(rows)}


def rank_tables(exponent=0.6, low=0.8, error=1e-3, layers=100_000):
    """k* = 1.5 d^exponent live directions; r of full rank is sqrt(d), of lower ranks less."""
    rows = []
    for width in (8, 16, 32, 64):
        star, full = 1.5 * width**exponent, sqrt(width)
        for k in range(1, ceil(star) + 4):
            r = full if k > star else low * full * k / ceil(full)
            row = {"width": width, "skip": inf, "input_rank": k, "chains": 32, "layers": layers}
            row |= {"exponent": 0.1 * (star - k), "exponent_se": error}
            rows.append(row | {"rank_bound": r, "rank_bound_se": error * r})
    return {"input_ranks": pd.DataFrame(rows)}


GOOD = {
    "rank-fig3a": power_tables,
    "rank-fig3b": spectrum_tables,
    "rank-fig8": power_tables,
    "rank-laws": law_tables,
    "rank-wide": power_tables,
    "rank-lemma3": product_tables,
    "rank-lemma7": expansion_tables,
    "rank-live": rank_tables,
    "rank-assumptions": assumption_tables,
}


@pytest.mark.parametrize("figure", GOOD)
def test_claims_hold_where_the_numbers_are_the_papers(figure):
    found = judged(figure, GOOD[figure]())
    assert {each.verdict for each in found.values()} == {"holds"}
    assert all(each.evidence for each in found.values())


@pytest.mark.parametrize(
    ("figure", "tables", "failing"),
    [
        ("rank-fig3a", power_tables(0.45, alpha=0.95), {"r-growth", "soft-rank-growth"}),
        ("rank-laws", law_tables(small=0.03), {"r-bound", "soft-rank-bound"}),
        ("rank-fig3a", power_tables(0.45), {"r-growth", "soft-rank-growth"}),
        ("rank-fig3a", power_tables(-0.5),
         {"r-growth", "soft-rank-growth", "r-bound", "soft-rank-bound"}),
        ("rank-wide", power_tables(0.45), {"soft-rank-growth"}),
        ("rank-fig3b", spectrum_tables(first=1.2), {"collinear-pulled-apart"}),
        ("rank-fig3b", spectrum_tables(others=0.5), {"collinear-pulled-apart"}),
        ("rank-fig8", power_tables(alpha=0.95), {"regularity-below-0.9"}),
        ("rank-fig8", power_tables(alpha=0.7, fall=-1e-3), {"regularity-falls"}),
        ("rank-fig8", power_tables(0.4), {"norm-growth"}),
        ("rank-fig8", power_tables(-0.5), {"norm-growth", "norm-bound"}),
        ("rank-lemma3", product_tables(gap=0.2), {"rate-is-lyapunov-gap"}),
        ("rank-lemma3", product_tables(step=lambda layer: 1.0), {"matrix-converges"}),
        ("rank-lemma3", product_tables(lambda layer: -0.01 * layer),
         {"ratio-decays", "rate-is-lyapunov-gap"}),
        ("rank-lemma3", product_tables(lambda layer: layer**0.5, gap=0.0667), {"ratio-decays"}),
        ("rank-lemma7", expansion_tables(offset=0.04), {"expansion"}),
        ("rank-lemma7", expansion_tables(power=0.5), {"remainder"}),
        ("rank-live", rank_tables(low=1.1), {"other-laws-below"}),
        ("rank-assumptions", assumption_tables(soft=0.1), {"soft-rank-bound"}),
        ("rank-assumptions", assumption_tables(growth=0.45), {"soft-rank-growth"}),
        ("rank-assumptions", assumption_tables(r_of_one_sign=2.0), {"one-sign-collapses"}),
        ("rank-assumptions", assumption_tables(scaled=0.3), {"scaled-branch-keeps-rank"}),
        ("rank-assumptions", assumption_tables(constant=0.9), {"scaled-branch-keeps-rank"}),
    ],
)  # fmt: skip
def test_claims_fail_where_the_numbers_contradict_them(figure, tables, failing):
    found = verdicts(figure, tables)
    assert {name for name, verdict in found.items() if verdict == "fails"} == failing


@pytest.mark.parametrize(
    ("figure", "tables"),
    [
        ("rank-fig3a", power_tables(error=10.0)),
        ("rank-fig3a", power_tables(error=nan)),
        ("rank-fig8", power_tables(alpha=0.9011, fall=1e-4, error=1e4)),
        ("rank-live", rank_tables(error=5.0)),
    ],
)
def test_numbers_within_their_errors_decide_nothing(figure, tables):
    assert set(verdicts(figure, tables).values()) == {"undecided"}


def cut(tables, **values):
    """The rows with these values of their columns."""
    return {
        name: table.loc[np.logical_and.reduce([table[c] == v for c, v in values.items()])]
        for name, table in tables.items()
    }


def test_matrices_that_disagree_decide_nothing():
    tables = expansion_tables(offset=0.02)
    rows = tables["expansions"]
    rows["change"] += 2 * rows["width"] ** 2 * 0.01 * (-1) ** rows["replicate"]
    assert verdicts("rank-lemma7", tables)["expansion"] == "undecided"
    rows["change"] += 2 * rows["width"] ** 2 * 5 * rows["skip"] * (rows["replicate"] < 4)
    rows["change"] += 2 * rows["width"] ** 2 * 5 * rows["skip"] ** 0.5 * (rows["replicate"] >= 4)
    assert verdicts("rank-lemma7", tables)["remainder"] == "undecided"


@pytest.mark.parametrize("figure", [f for f in FIGURES if f not in ("rank-fig3b", "rank-lemma3")])
def test_one_width_decides_nothing(figure):
    assert set(verdicts(figure, cut(GOOD[figure](), width=16)).values()) == {"undecided"}


@pytest.mark.parametrize("figure", ["rank-fig3b", "rank-lemma3", "rank-lemma7"])
def test_one_chain_decides_nothing(figure):
    assert set(verdicts(figure, cut(GOOD[figure](), replicate=1)).values()) == {"undecided"}


@pytest.mark.parametrize("figure", [f for f in FIGURES if f != "rank-lemma7"])
def test_a_tenth_of_the_layers_decides_nothing(figure):
    tables = GOOD[figure]()
    for name, table in tables.items():
        if "layer" in table:
            tables[name] = table[table["layer"] <= table["layer"].max() / 10]
        else:
            skip = table["skip"] if figure == "rank-laws" else 0.1
            tables[name] = table.assign(layers=table["layers"] // 10, skip=skip)
    assert set(verdicts(figure, tables).values()) == {"undecided"}


def test_the_branch_that_goes_with_the_depth_is_told_from_a_constant_one():
    branches = scaled_products(assumption_tables())
    assert set(branches["branch"]) == {"1 / L", "4 / L", "0.3"}
    assert branches.groupby("branch")["L"].unique().map(list).tolist() == [[100, 400]] * 3


def test_a_rank_that_stops_growing_at_the_last_doubling_does_not_grow_as_the_root():
    tables = power_tables(0.8)
    metrics = tables["metrics"]
    last = metrics["width"] == 64
    for column in ("rank_bound", "soft_rank"):
        metrics.loc[last, column] = 1.01 * 32**0.8
    found = judged("rank-fig3a", tables)
    assert found["r-growth"].verdict == found["soft-rank-growth"].verdict == "fails"
    assert "the last doubling" in found["r-growth"].evidence.point


def test_figures_8_and_9_are_judged_at_their_own_gammas_alone():
    tables = cut(power_tables(), skip=inf)
    for name, found in judged("rank-fig8", tables).items():
        assert found.verdict == ("holds" if name == "norm-bound" else "undecided")


def test_errors_come_from_as_many_batches_as_the_study_makes():
    for chains in (1, 7, 16, 32, 64):
        plan = Plan.of(layers=4000, chains=chains, stride=2, burn_in=0)
        table = pd.DataFrame({"chains": [chains]})
        assert pieces(table)[0] == plan.batches * chains


def test_k_star_is_where_the_growth_of_one_more_direction_crosses_zero():
    found = crossings(rank_tables(0.5))
    np.testing.assert_allclose(found["crossing"], 1.5 * np.sqrt(found["width"]))
