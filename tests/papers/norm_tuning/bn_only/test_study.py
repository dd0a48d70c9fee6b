from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch

from runner.bench.growth import lent
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only import study
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.online import decay
from runner.papers.norm_tuning.bn_only.problem import (
    construct,
    constructed_stack,
    corrected,
    draw_problem,
)
from runner.papers.norm_tuning.bn_only.stacks import ReluSum
from runner.runs.execution import execute
from runner.runs.run import Run

CPU = torch.device("cpu")


def gaussian(R, N, d):
    return torch.randn(R, N, d, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


@pytest.mark.parametrize("d", [1, 2, 7, 25])
def test_the_construction_equals_the_target(d):
    """Theorem 1 at m = d^2: f = g for every input up to the norm the shift was made for."""
    problem = draw_problem(BnOnly(target_width=d), range(2))
    systems = construct(problem, problem.target)
    x = gaussian(2, 500, d)
    expected = ReluSum(problem.target).predict(x)
    predicted = constructed_stack(problem, systems, CPU).predict(x)
    condition = max(system.scales.condition_number for system in systems)
    tolerance = condition * np.finfo(float).eps * (sqrt(d) + 7)
    assert (predicted - expected).abs().max() <= tolerance * expected.max()


@pytest.mark.parametrize(("d", "m", "p"), [(5, 25, 0.2), (6, 20, 1.0), (4, 40, 0.5)])
def test_the_scales_are_the_minimum_norm_least_squares_solution(d, m, p):
    """Sparse, too narrow, and very wide systems against numpy's pseudo-inverse."""
    problem = draw_problem(BnOnly(target_width=d, width=m, sparsity=p), range(1))
    system = construct(problem, problem.target)[0]
    W1, W2, W = (tensor[0].numpy() for tensor in (problem.W1, problem.W2, problem.target))
    K = np.stack([np.kron(W2[:, j], W1[j]) for j in range(m)], axis=1)
    expected = np.linalg.pinv(K, rcond=max(K.shape) * np.finfo(float).eps) @ W.reshape(-1)
    np.testing.assert_allclose(system.gamma1.numpy(), expected, rtol=1e-8, atol=1e-10)
    assert system.scales.numerical_rank == np.linalg.matrix_rank(K)


def test_the_fraction_of_weights_kept_is_p_and_the_variance_stays():
    dense = draw_problem(BnOnly(target_width=20), range(2))
    sparse = draw_problem(BnOnly(target_width=20, sparsity=0.2), range(2))
    assert 0.19 < float((sparse.W1 != 0).double().mean()) < 0.21
    for name in ("W1", "W2"):
        ratio = getattr(sparse, name).square().mean() / getattr(dense, name).square().mean()
        assert 0.9 < ratio < 1.1


def test_the_target_does_not_change_with_the_learner():
    narrow = draw_problem(BnOnly(target_width=5, width=7), range(5))
    sparse = draw_problem(BnOnly(target_width=5, sparsity=0.1), range(2))
    assert torch.equal(narrow.target[:2], sparse.target)


def test_schedules_start_at_the_rate_and_end_where_they_should():
    for schedule, end in (("constant", 0.3), ("cosine", 0.0), ("exponential", 0.003)):
        assert decay(schedule, 0, 50) == 1
        assert 0.3 * decay(schedule, 50, 50) == pytest.approx(end, abs=1e-12)


def run_tables(outputs, **changes):
    values = {"target_width": 3, "train_samples": 12_800, "test_samples": 3000, "replicates": 2}
    run = Run(BnOnly(**{**values, **changes}), outputs)
    execute(run, Settings(outputs=str(outputs), device="cpu"))
    return run.tables()


def test_a_replicate_does_not_depend_on_how_many_there_are(tmp_path):
    few = run_tables(tmp_path)["metrics"].query("replicate == 1")
    many = run_tables(tmp_path, replicates=4)["metrics"].query("replicate == 1")
    trained = ["sgd", "dense"]
    few, many = few.set_index("method"), many.set_index("method")
    np.testing.assert_allclose(
        few.loc[trained, "test_mse"], many.loc[trained, "test_mse"], rtol=1e-4
    )
    condition = few.loc["teacher_construction", "condition_number"]
    assert condition == many.loc["teacher_construction", "condition_number"]


def test_the_rows_say_what_they_measure(tmp_path):
    metrics = run_tables(tmp_path)["metrics"].set_index(["method", "replicate"])
    green = metrics.loc["teacher_construction"]
    assert (green["test_mse"] < 1e-20).all() and (green["numerical_rank"] == 9).all()
    assert green["learning_rate"].isna().all()
    blue = metrics.loc["sgd"]
    assert (blue["learning_rate"] == 1 / 6).all() and blue["condition_number"].isna().all()
    assert (blue["max_abs_error"] ** 2 >= blue["test_mse"]).all()
    orange, black = metrics.loc["student_construction"], metrics.loc["dense"]
    np.testing.assert_allclose(orange["test_mse"], black["test_mse"], rtol=1e-6, atol=1e-20)


def test_a_method_left_out_is_not_measured(tmp_path):
    metrics = run_tables(tmp_path, methods=["student_construction"])["metrics"]
    assert set(metrics["method"]) == {"student_construction"}


@pytest.mark.parametrize(
    "changes", [{"optimizer": "momentum"}, {"schedule": "cosine"}, {"sparsity": 0.05}]
)
def test_variants_learn_something(tmp_path, changes):
    """A learner that trains ends below the constant predictor, in the median."""
    metrics = run_tables(tmp_path, target_width=8, replicates=3, **changes)["metrics"]
    assert metrics.query("method == 'sgd'")["relative_mse"].median() < 1


def test_divergence_is_data(tmp_path):
    metrics = run_tables(tmp_path, learning_rate=1e6)["metrics"].set_index("method")
    assert metrics.loc["sgd", "test_mse"].isna().all()
    assert (metrics.loc["teacher_construction", "test_mse"] < 1e-20).all()


def test_a_run_goes_on_from_every_round_of_selection_to_the_same_rows():
    methods = ["sgd", "best", "dense_best", "student_construction"]
    config = BnOnly(
        target_width=3, methods=methods, train_samples=3200, test_samples=500, batch_size=32
    )
    states = []

    def checkpoint(make_state):
        states.append((len(rows), {name: value.clone() for name, value in make_state().items()}))

    rows = []
    context = replace(lent(CPU), checkpoint=checkpoint)
    for row in study.run(config, context):
        rows.append(row)
    for done, state in states[:: len(states) // 7]:
        rest = list(study.run(config, replace(lent(CPU), restored=state)))
        assert repr(rest) == repr(rows[done:])  # nan is not equal to itself


def test_what_is_best_is_chosen_on_replicates_that_are_not_judged(tmp_path):
    tables = run_tables(tmp_path, methods=["best"], optimizers=["sgd"], schedules=["constant"])
    selection, metrics = tables["selection"], tables["metrics"]
    assert set(selection["replicate"]) == {2, 3} and set(metrics["replicate"]) == {0, 1}
    last = selection[selection["round"] == 3].groupby("learning_rate")["train_mse"].max()
    assert (metrics["learning_rate"] == last.idxmin()).all()
    assert (metrics["selected_on"] == "replicates 2, 3").all()
    assert selection.groupby("round")["learning_rate"].nunique().tolist() == [7, 3, 1]


def test_both_sides_try_the_same_plans_with_the_same_budgets(tmp_path):
    tables = run_tables(tmp_path, methods=["best", "dense_best"])
    rounds = tables["selection"].groupby(["round", "method"])
    budget = rounds.agg({"samples": ["count", "first"]})
    best, dense = (budget.xs(name, level="method") for name in ("best", "dense_best"))
    assert best.equals(dense)
    samples = tables["metrics"].groupby("method")["samples"].first()
    assert samples["best"] == samples["dense_best"]


def test_the_corrected_construction_has_the_mean_of_every_unit():
    """By simulation, where m < d^2 and the printed construction has not."""
    problem = draw_problem(BnOnly(target_width=5, width=12), range(2))
    printed = construct(problem, problem.target)
    x = gaussian(2, 200_000, 5)
    expected = ReluSum(problem.target).units(x).mean(1)
    means = [
        constructed_stack(problem, systems, CPU).units(x).mean(1)
        for systems in (printed, corrected(problem, problem.target, printed))
    ]
    assert (means[1] - expected).abs().max() < 0.01
    assert (means[0] - expected).abs().max() > 0.05
