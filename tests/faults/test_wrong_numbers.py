"""Numbers that were wrong: where a ratio is 0 / 0, where all x are one, where a size is tiny."""

import numpy as np
import pandas as pd
import pytest

from runner.papers.norm_tuning.norm_layers.config import NormLayers
from runner.papers.norm_tuning.norm_layers.quantities import error_over_rounding
from runner.papers.norm_tuning.norm_layers.study import _measure
from runner.papers.training_invariances.invariances.tables import LAYER, power
from runner.results.claims import Claim, judgement
from runner.results.evidence import Above, Always, Below, Within, slopes, verdict

COMPARISONS = [Above(0), Below(0), Within(1), *(Always(sign, 0) for sign in ("<", "<=", "=", ">"))]


def rows(values, **columns) -> pd.DataFrame:
    """A number for each replicate."""
    values = np.asarray(values, dtype=float)
    return pd.DataFrame({"replicate": range(len(values)), "value": values, **columns})


@pytest.mark.parametrize("comparison", COMPARISONS)
@pytest.mark.parametrize("columns", [{}, {"error": 0.0, "n": 13}])
def test_nan_decides_nothing(comparison, columns):
    many = 1 if "error" in columns and not isinstance(comparison, Always) else 13
    found = comparison.evidence(rows([np.nan] * many, **columns))
    assert found.p_holds == found.p_fails == 1 and np.isnan(found.estimate)


@pytest.mark.parametrize("comparison", COMPARISONS)
def test_nan_beside_numbers_never_moves_a_verdict_to_the_contrary(comparison):
    for value in (-0.5, 0.0, 0.5, 9.0):
        numbers = rows([value] * 8)
        alone = verdict([comparison.evidence(numbers)])[0]
        beside = verdict([comparison.evidence(rows([value] * 8 + [np.nan] * 5))])[0]
        assert beside in (alone, "undecided")


def test_nan_is_no_counterexample_and_hides_none():
    always = Always("<=", 1)
    assert verdict([always.evidence(rows([0, 0, 0, 0, np.nan]))])[0] == "undecided"
    assert verdict([always.evidence(rows([0, 0, 0, 0, np.inf]))])[0] == "fails"
    both = pd.DataFrame({"replicate": [0, 0, 1, 2, 3, 4], "value": [np.nan, 2, 0, 0, 0, 0]})
    assert verdict([always.evidence(both)])[0] == "fails"
    unknown = rows([0.0] * 5, error=[0, 0, 0, 0, np.nan])
    assert verdict([always.evidence(unknown)])[0] == "undecided"


@pytest.mark.parametrize("bound", [-1, 0, 0.5, 1, 2])
@pytest.mark.parametrize("count", [0, 4, 13])
def test_a_share_is_compared_with_any_bound(bound, count):
    numbers = pd.DataFrame({"value": [count / 13], "count": [count], "n": [13]})
    above, below = (each(bound).evidence(numbers) for each in (Above, Below))
    assert 0 <= above.p_holds == below.p_fails <= 1 and above.needed >= 1
    assert above.p_holds > 0.05 or count / 13 > bound
    assert above.p_fails > 0.05 or count / 13 < bound


@pytest.mark.parametrize(("comparison", "needed"), [(Below(0.05), 59), (Above(0.95), 59),
                                                    (Above(0.04), 1), (Below(0.5), 5)])  # fmt: skip
def test_so_many_cases_are_needed_for_a_share(comparison, needed):
    for n in (needed - 1, needed):
        count = n if isinstance(comparison, Above) else 0
        numbers = pd.DataFrame({"value": [0.0], "count": [count], "n": [n]})
        found = comparison.evidence(numbers)
        assert found.needed == needed
        assert (verdict([found])[0] == "holds") == (n == needed)


def test_a_bound_that_is_no_number_decides_nothing():
    numbers = pd.DataFrame({"value": [1.0], "count": [9], "n": [9], "d": [np.nan]})
    found = Above("1 - 1 / d").evidence(numbers)
    assert found.p_holds == found.p_fails == 1


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("biases", [False, True])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_rounding_on_few_inputs_refutes_no_construction(width, biases, seed):
    sizes = {"target_width": width, "samples": 2, "batch_sizes": [2], "replicates": 8}
    config = NormLayers(**sizes, layers=["batch_norm"], biases=biases, seed=seed)
    metrics = pd.DataFrame([vars(row) for r in range(8) for row in _measure(config, r)])
    layer = "batch_norm with biases" if biases else "batch_norm"
    rule = error_over_rounding(layer).always("<=", 1)
    found = judgement(Claim("exact", "it is exact", "nowhere", rule), {"metrics": metrics})
    assert found.verdict != "fails"
    metrics["relative_mse"] = metrics["max_abs_error"] = 1e-10
    if width > 1:
        worse = judgement(Claim("exact", "it is exact", "nowhere", rule), {"metrics": metrics})
        assert worse.verdict == "fails"


@pytest.mark.parametrize("x", [0.1, 1 / 3, 7.0, -0.1, 1e-200, 1e200])
@pytest.mark.parametrize("n", [1, 2, 3, 12])
def test_one_repeated_x_has_no_slope(x, n):
    table = pd.DataFrame({"replicate": 0, "x": [x] * n, "y": np.arange(1.0, n + 1)})
    assert slopes(table, "x", "y").isna().all()
    if x > 0:
        assert slopes(table, "x", "y", log=True).isna().all()


def records(column, **others) -> pd.DataFrame:
    """Records of one layer whose squared norm doubles."""
    frobenius = 2.0 ** np.arange(len(column))
    key = dict(zip(LAYER, ("run", 1, 0, True), strict=True))
    return pd.DataFrame({**key, "frobenius": frobenius, "rest": column, **others})


@pytest.mark.parametrize("last", [-2e-16, 0.0, -1.0])
def test_a_record_without_a_logarithm_counts_for_neither_sum(last):
    rest = 0.3 / 2.0 ** np.arange(9)
    assert power(records(rest), "rest").iloc[0] == pytest.approx(-1)
    rest[-1] = last
    assert power(records(rest), "rest").iloc[0] == pytest.approx(-1)
