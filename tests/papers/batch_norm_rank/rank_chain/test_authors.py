"""Figures 3a and 3b by the authors' code: a chain of M."""

import torch
from in_memory import rows_of

from runner.papers.batch_norm_rank.rank_chain import authors
from runner.papers.batch_norm_rank.rank_chain.config import RankChain

SMALL = {"protocol": "authors", "widths": [5], "skips": [0.3], "chains": 2}


def test_a_layer_is_batch_normalization_of_what_the_skip_connection_gives():
    H = torch.randn(2, 5, 7, dtype=torch.float64)
    layers = authors.layers(H @ H.mT, 0.3, torch.Generator().manual_seed(3))
    W = torch.randn(2, 5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    after = H + 0.3 * W @ H
    after = after / after.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(next(layers), after @ after.mT)


def test_what_counts_are_singular_values_above_rounding_and_above_a_threshold():
    s = torch.tensor([[2.0, 1.0, 1e-12, 1e-17], [1.0, 1.0, 1.0, 1e-8]], dtype=torch.float64)
    assert authors.counted(torch.diag_embed(s)).tolist() == [[3, 4], [2, 4]]


def test_inputs_are_nearly_constant():
    M = authors.nearly_constant(3, 20, torch.Generator().manual_seed(0))
    s = torch.linalg.svdvals(M)
    assert (s[:, 1] < 1e-9 * s[:, 0]).all() and (s[:, 1] > 0).all()


def test_figure_3a_looks_at_every_ten_thousandth_layer_of_each_chain():
    (row,) = rows_of(RankChain(**SMALL, layers=40_000))
    assert row.layers == 40_000
    assert 1 < row.rank_bound < row.soft_rank <= 5
    assert row.rank_bound_se > 0 and row.frobenius >= 5


def test_figure_3b_starts_at_rank_one():
    found = rows_of(RankChain(**SMALL, measure="spectrum", layers=60))
    assert {row.layer for row in found} == set(range(1, 61)) and len(found) == 60 * 2 * 5
    second = {row.layer: row.singular_value for row in found if row.index == 2}
    assert second[1] < 1e-3 < 0.1 < second[60]
