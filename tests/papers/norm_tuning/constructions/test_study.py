"""The solvers and the study `constructions`."""

import math

import pytest
import torch
from in_memory import kept_tables, rows_of, verdicts

from runner.papers.norm_tuning import solvers
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.norm_tuning.network import agreement
from runner.papers.norm_tuning.solvers import solve_scales
from runner.papers.norm_tuning.theorem_1 import khatri_rao


def normal(*shape, seed=0):
    stream = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=stream, dtype=torch.float64)


def problem(d, k, m):
    return normal(m, k), normal(d, m, seed=1), normal(d, k, seed=2)


def rows(**parameters):
    return rows_of(Constructions(**parameters))


@pytest.mark.parametrize(
    "d, k, m, solver",
    [
        (1, 1, 1, "lu"),
        (2, 1, 2, "lu"),
        (6, 8, 48, "lu"),
        (6, 8, 40, "least_squares"),
        (6, 8, 60, "least_squares"),
        (1, 2, 4, "lsmr"),
        (6, 8, 96, "lsmr"),
        (6, 8, 200, "lsmr"),
    ],
)
def test_each_solver_finds_the_minimum_norm_solution_and_the_condition_number(d, k, m, solver):
    W1, W2, target = problem(d, k, m)
    scales = solve_scales(W1, W2, target)
    K = khatri_rao(W2, W1)
    singular_values = torch.linalg.svdvals(K)
    assert scales.solver == solver
    assert scales.shape == tuple(K.shape)
    assert scales.numerical_rank == min(d * k, m)
    assert scales.condition_number == pytest.approx(
        float(singular_values[0] / singular_values[-1]), rel=1e-5
    )
    expected = torch.linalg.pinv(K) @ target.reshape(-1)
    torch.testing.assert_close(scales.gamma, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("m", [36, 72])
def test_a_rank_deficient_system_falls_back_to_least_squares(m):
    """Hidden units that see one input only: K has rank d, however many they are."""
    W1, W2, target = problem(6, 6, m)
    W1[:, 1:] = 0
    scales = solve_scales(W1, W2, target)
    assert scales.solver == "least_squares"
    assert scales.numerical_rank == 6
    assert not scales.solvable
    torch.testing.assert_close(
        (W2 * scales.gamma) @ W1, torch.eye(6, dtype=torch.float64)[:1] * target
    )


def test_a_nearly_singular_square_system_is_not_called_solvable():
    W1, W2, target = problem(4, 4, 16)
    W1[1], W2[:, 1] = W1[0], W2[:, 0] * (1 + 1e-16)
    scales = solve_scales(W1, W2, target)
    assert scales.numerical_rank == 15


def test_refinement_leaves_a_backward_error_of_one_rounding():
    """LU alone leaves ten to twenty at this size."""
    W1, W2, target = problem(30, 30, 900)
    gamma = solve_scales(W1, W2, target).gamma
    residual = (W2 * gamma) @ W1 - target
    scale = (W2 * gamma).abs() @ W1.abs() + target.abs()
    assert float((residual.abs() / scale).max()) < 3 * solvers.EPSILON


def test_lanczos_starts_again_with_the_same_vectors_every_time():
    """SciPy draws them anew unless it is told from what: here it starts again."""
    weights = problem(15, 15, 450)
    assert len({solve_scales(*weights).condition_number for _ in range(3)}) == 1


def test_lsmr_never_forms_the_matrix(monkeypatch):
    def refuse(*matrices):
        raise AssertionError("the Khatri-Rao matrix was formed")

    monkeypatch.setattr(solvers, "khatri_rao", refuse)
    W1, W2, target = problem(10, 10, 200)
    torch.testing.assert_close((W2 * solve_scales(W1, W2, target).gamma) @ W1, target)


@pytest.mark.parametrize(
    "parameters",
    [
        {"theorem": "wide", "depth": 2, "target_width": 6},
        {"theorem": "wide", "width": 80, "target_width": 6},
        {"theorem": "low_rank", "rank": 3, "target_width": 8},
        {"theorem": "deep", "block": 3, "target_width": 7, "depth": 2},
        {"theorem": "deep", "block": 1, "target_width": 6, "dtype": "mpmath", "precision": 60},
        {"theorem": "sparse", "sparsity": 0.8, "target_width": 12},
    ],
)
def test_each_theorem_is_exact(parameters):
    found = rows(replicates=2, points=40, **parameters)
    assert [row.replicate for row in found] == [0, 1]
    for row in found:
        assert row.theorem == parameters["theorem"]
        assert row.full_rank and row.numerical_rank == row.structural_rank == row.equations
        assert row.max_abs_error < 1e-8
        assert row.agreement == 1


@pytest.mark.parametrize("theorem", ["wide", "low_rank", "deep"])
def test_frozen_weights_of_every_law_reach_the_target(theorem):
    options = {"theorem": theorem, "target_width": 6, "block": 3, "points": 20, "replicates": 3}
    found = [rows(distribution=law, **options) for law in ("normal", "uniform", "torch_default")]
    assert len({each[0].condition_number for each in found}) == 3
    for row in sum(found, []):
        assert row.full_rank and row.max_abs_error <= row.rounding < 1e-3


def test_one_unit_less_has_one_rank_less():
    options = {"theorem": "sparse", "target_width": 5, "width": 24, "points": 5, "replicates": 20}
    assert not any(row.full_rank for row in rows(**options))


def test_one_system_without_full_rank_refutes_full_rank():
    tables = kept_tables("constructions")
    wide = tables["metrics"].query("theorem == 'wide'").index
    tables["metrics"].loc[wide[-1], "full_rank"] = False
    assert verdicts("constructions", tables)["wide-full-rank"] == "fails"


@pytest.mark.parametrize("theorem", ["wide", "deep"])
def test_a_digit_classifier_inside_a_random_network_predicts_the_same_on_all_images(theorem):
    block = {"block": 8} if theorem == "deep" else {}
    (row,) = rows(target="digits", theorem=theorem, target_width=8, depth=2, replicates=1, **block)
    assert row.agreement == 1 and row.max_abs_error < 1e-8 and row.target_accuracy > 0.9


def test_rows_do_not_depend_on_the_number_of_threads():
    parameters = {"target": "digits", "target_width": 6, "depth": 2, "replicates": 1}
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            found += rows(**parameters)
            assert torch.get_num_threads() == number
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1]


def test_outputs_that_are_not_finite_agree_with_nothing():
    expected = torch.tensor([[2.0, 1.0], [0.0, 1.0]], dtype=torch.float64)
    found = expected.flip(0)
    assert (agreement(expected, expected), agreement(found, expected)) == (1, 0)
    found[0, 0] = math.nan
    assert math.isnan(agreement(found, expected))
