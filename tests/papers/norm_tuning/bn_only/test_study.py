"""Study `bn_only`: written-out gradients, Theorem 1, and what a run says."""

import numpy as np
import pandas as pd
import pytest
import torch
from bench.growth import lent
from in_memory import tables_of
from torch import nn

from runner.papers.norm_tuning.bn_only import networks, study, tables
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.bn_only.networks import Batch, Dense, FrozenWithNorm, f, g
from runner.papers.norm_tuning.theorem_1 import pseudo_inverse, set_shifts
from runner.training.schedules import SCHEDULES

CPU = torch.device("cpu")
R, D, M, N = 3, 4, 12, 40
SMALL = {
    "target_width": 4,
    "replicates": 3,
    "train_samples": 400,
    "test_samples": 50,
    "batch_size": 20,
}


def draw(*shape):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float64
    )


def rows(**changes):
    return tables_of(BnOnly(**{**SMALL, **changes}))["metrics"]


class Baseline(nn.Module):
    """f as the paper writes it: frozen layers and torch's own BatchNorm."""

    def __init__(self, W1, W2):
        super().__init__()
        self.W1, self.W2 = W1, W2
        self.first = nn.BatchNorm1d(len(W1), dtype=torch.float64)
        self.second = nn.BatchNorm1d(len(W2), dtype=torch.float64)
        nn.init.constant_(self.second.bias, networks.SHIFT_START)

    def forward(self, x):
        hidden = self.first(x @ self.W1.T).relu()
        return self.second(hidden @ self.W2.T).relu().sum(1)


def test_training_equals_that_of_torchs_batch_norm():
    W1, W2, target, rate = draw(R, M, D), draw(R, D, M), draw(R, D, D), 0.05
    learner = FrozenWithNorm(W2, batch_statistics=True)
    modules = [Baseline(*pair) for pair in zip(W1, W2, strict=True)]
    for step in range(5):
        x = draw(R, D, N + step) + 0.3
        y = g(x, target)
        losses, gradients, _ = learner.step(Batch(x, y, W1))
        for r, module in enumerate(modules):
            loss = (module(x[r].T) - y[r]).square().mean()
            torch.testing.assert_close(losses[r], loss.detach())
            module.zero_grad()
            loss.backward()
            for p in module.parameters():
                p.data -= rate * p.grad
        for name, gradient in gradients.items():
            learner.parameters[name] -= rate * gradient
    for r, module in enumerate(modules):
        torch.testing.assert_close(learner.parameters["gamma1"][r, :, 0], module.first.weight.data)
        torch.testing.assert_close(learner.parameters["beta2"][r, :, 0], module.second.bias.data)


@pytest.mark.parametrize("batch_statistics", [True, False])
def test_gradients_are_those_of_autograd(batch_statistics):
    W1, W2, x, y = draw(R, M, D), draw(R, D, M), draw(R, D, N), draw(R, N)
    learner = FrozenWithNorm(W2, batch_statistics)
    _, found, _ = learner.step(Batch(x, y, W1))
    step = 1e-6
    for name, parameter in learner.parameters.items():
        direction = torch.ones_like(parameter)
        parameter += step * direction
        above, *_ = learner.step(Batch(x, y, W1))
        parameter -= 2 * step * direction
        below, *_ = learner.step(Batch(x, y, W1))
        parameter += step * direction
        slope = (above - below) / (2 * step)
        torch.testing.assert_close(slope, found[name].sum((1, 2)), rtol=1e-5, atol=1e-6)


def test_proposition_1():
    W1, W2, x = draw(R, M, D), draw(R, D, M), draw(R, D, N)
    learner = FrozenWithNorm(W2, batch_statistics=True)
    for _ in range(300):  # the running statistics become those of this batch
        losses, *_ = learner.step(Batch(x, torch.zeros(R, N), W1))
    output = f(W1 @ x, W2, learner.found())
    torch.testing.assert_close(output.square().mean(-1), losses)


def test_dense_gradient():
    W, x, y = draw(R, D, D), draw(R, D, N), draw(R, N)
    expected = W.clone().requires_grad_()
    (g(x, expected) - y).square().mean(-1).sum().backward()
    _, found, _ = Dense(W).step(Batch(x, y, W))
    torch.testing.assert_close(found["W"], expected.grad)


def test_theorem_1_and_what_has_diverged():
    d = 5
    W1, W2, W, x = draw(R, d * d, d), draw(R, d, d * d), draw(R, d, d), draw(R, d, N)
    lost = W.clone()
    lost[1, 0, 0] = torch.inf
    solved, input_norm = pseudo_inverse(W1, W2, [W, lost]), float(x.norm(dim=1).max())
    assert solved.rank.tolist() == [d * d] * R
    norms = [set_shifts(W1, W2, each, input_norm) for each in solved.gamma1.split(1, dim=-1)]
    error = [(f(W1 @ x, W2, norm) - g(x, W)).abs().amax(-1) for norm in norms]
    assert (error[0] < 1e-9).all()
    assert error[1].isnan().tolist() == [False, True, False]


@pytest.mark.parametrize(("d", "m", "p"), [(5, 25, 0.2), (6, 20, 1.0), (4, 40, 0.5)])
def test_the_scales_are_those_of_the_pseudo_inverse(d, m, p):
    """Sparse, too narrow, and wide systems against numpy's."""
    problem = study.draw_problem(BnOnly(target_width=d, widths=[m], sparsity=p, replicates=2))
    solved = pseudo_inverse(problem.W1, problem.W2[m], [problem.target])
    for r in range(2):
        W1, W2, W = (each[r].numpy() for each in (problem.W1, problem.W2[m], problem.target))
        K = np.stack([np.kron(W2[:, j], W1[j]) for j in range(m)], axis=1)
        expected = np.linalg.pinv(K, rcond=max(K.shape) * np.finfo(float).eps) @ W.reshape(-1)
        found = solved.gamma1[r, :, 0].numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)
        assert solved.rank[r] == np.linalg.matrix_rank(K)


def test_the_share_of_weights_is_p_and_their_variance_stays():
    dense = study.draw_problem(BnOnly(target_width=20, replicates=2))
    sparse = study.draw_problem(BnOnly(target_width=20, replicates=2, sparsity=0.2))
    assert torch.equal(dense.target, sparse.target)
    assert 0.19 < (sparse.W1 != 0).double().mean() < 0.21
    for all_of_it, part in ((dense.W1, sparse.W1), (dense.W2[400], sparse.W2[400])):
        assert 0.9 < part.square().mean() / all_of_it.square().mean() < 1.1


def test_schedules_start_at_the_rate_and_end_where_they_should():
    for schedule, end in (("constant", 1.0), ("cosine", 0.0), ("exponential", 0.01)):
        assert SCHEDULES[schedule](0, 50) == 1
        assert SCHEDULES[schedule](50, 50) == pytest.approx(end, abs=1e-12)


def test_the_curvature_is_that_of_the_loss_along_the_last_shifts():
    """By finite differences where no unit changes sides; SGD goes at half of 2 over it."""
    units = draw(R, D, D) @ draw(R, D, N)
    units = units[..., (units > 0).any(1).all(0)]

    def loss(shift):
        return (units + shift).relu().sum(1).square().mean(-1)

    step = 0.5 * units.abs().min()
    second = (loss(step) - 2 * loss(0) + loss(-step)) / step**2 / D  # by a shift of length one
    found = networks.curvature((units > 0).double())
    torch.testing.assert_close(found, second, rtol=1e-3, atol=0)
    assert networks.curvature(torch.zeros(R, D, N)).tolist() == [2 / D] * R


def test_rates_are_measured_for_each_replicate_or_given():
    measured = rows(sparsity=0.3).set_index("method")["learning_rate"]
    assert measured["sgd"].nunique() > 1 and measured["dense"].nunique() > 1
    assert measured["teacher_construction"].isna().all()
    fixed = rows(statistics="fixed").set_index("method")["learning_rate"]
    assert (fixed["sgd"] == 1 / 8).all()
    assert (rows(methods=["sgd"], learning_rate=0.3)["learning_rate"] == 0.3).all()


def test_what_diverges_is_data_and_disturbs_nothing_else():
    found = rows(learning_rate=1e30).set_index("method")
    assert found.loc[["dense", "student_construction"], "test_mse"].isna().all()
    assert (found.loc["teacher_construction", "test_mse"] < 1e-20).all()


def test_constructions_are_measured_against_what_they_are_built_from():
    found = rows(widths=[4, 16], methods=["student_construction", "dense", "sgd"])
    exact = found.query("method == 'student_construction' and width == 16")
    narrow = found.query("method == 'student_construction' and width == 4")
    assert (exact["source_mse"] < 1e-20).all() and (narrow["source_mse"] > 1e-3).all()
    assert (exact["test_mse"] > 1e-6).all()
    assert found.loc[found["method"] != "student_construction", "source_mse"].isna().all()


def test_runs_of_other_kinds_share_what_they_do_not_change():
    paper, ours = rows(), rows(methods=["dense"], statistics="fixed")
    dense = paper[paper["method"] == "dense"]["test_mse"]
    assert dense.tolist() == pytest.approx(ours["test_mse"].tolist())
    both = tables.with_series(pd.concat([paper, rows(optimizer="adam", learning_rate=0.1)]))
    assert {"sgd", "adam", "dense", "dense by adam"} <= set(both["series"])


def test_every_epoch_sees_the_same_samples(monkeypatch):
    seen = []
    real = study.GaussianStream.draw

    def draw(stream, samples):
        seen.append(real(stream, samples))
        return seen[-1]

    monkeypatch.setattr(study.GaussianStream, "draw", draw)
    config = BnOnly(**SMALL | {"methods": ["sgd"], "epochs": 3})
    found = list(study.run(config, lent(CPU)))
    first, second, third = torch.stack(seen[:72]).chunk(3)
    assert torch.equal(first, second) and torch.equal(first, third)
    assert not torch.equal(first[0], first[1]), "an epoch has 24 batches, each its own"
    points = [row.samples for row in found if isinstance(row, study.CurvePoint)]
    assert max(points) == 3 * 24 * 20


def test_size_and_precision_of_what_is_solved():
    found = rows(widths=[16, 64]).set_index(["method", "width"]).sort_index()
    solved = found.loc["teacher_construction"]
    narrow, wide = solved.loc[16], solved.loc[64]
    assert (narrow["largest_scale"].to_numpy() > wide["largest_scale"].to_numpy()).all()
    assert (solved["largest_scale"] >= solved["smallest_scale"]).all()
    assert (solved["smallest_scale"] > 0).all(), "Lemma 8"
    assert (solved["largest_shift"] > solved["largest_scale"]).all(), "c |gamma1| |w|, summed"
    assert (solved["source_mse"] < solved["float32_mse"]).all()
    assert (wide["float32_mse"] < 1e-8).all()
    assert found.loc["sgd", "float32_mse"].isna().all()
    assert found.loc["sgd", "largest_scale"].between(0, 10).all()
    assert found.loc["dense", ["largest_scale", "largest_shift"]].isna().all(axis=None)
