"""Networks of rank 1 and 2 on the same points."""

from dataclasses import replace

import pandas as pd
import pytest
import torch
from in_memory import context, tables_of

from runner.core.errors import InputError
from runner.papers.bottleneck_structure.fits_by_rank.config import FitsByRank
from runner.papers.bottleneck_structure.fits_by_rank.figures import counted, draw_ranks, say_ranks
from runner.papers.bottleneck_structure.fits_by_rank.study import narrow_network, run
from runner.papers.bottleneck_structure.networks import differentiate
from runner.papers.bottleneck_structure.rank_one.config import RankOne
from runner.papers.bottleneck_structure.rank_one.study import run as run_rank_one
from runner.papers.bottleneck_structure.spectra import jacobian_ranks
from runner.results.rows import NoRows

SMALL = FitsByRank(samples=[4, 8], depth=7, width=12, steps=60, replicates=2)


def stream() -> torch.Generator:
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_narrow_network_has_its_rank_and_otherwise_the_same_weights(rank):
    network, other = (narrow_network(9, 12, k, stream()) for k in (rank, 3))
    x = torch.randn(40, 2, generator=stream(), dtype=torch.float64)
    assert int(jacobian_ranks(differentiate(network, x).jacobian).max()) == rank
    for W, same in zip(network.weights[:3], other.weights[:3], strict=True):
        torch.testing.assert_close(W, same)
    middle = network.activations(x)[4]
    assert (middle[:, rank:] == 0).all() and (middle[:, :rank] > 0).any()


def test_networks_of_rank_1_are_those_of_the_study_of_theorem_10():
    """The same points, initial weights and training, up to the rounding of a larger stack."""
    same = {name: getattr(SMALL, name) for name in ("samples", "depth", "width", "steps")}
    found = pd.DataFrame(run(replace(SMALL, ranks=[1]), context()))
    expected = pd.DataFrame(run_rank_one(RankOne(**same, replicates=2), context()))
    assert found["parameter_norm"].tolist() == pytest.approx(expected["parameter_norm"].tolist())
    cost = expected["train_cost"] * expected["samples"]
    assert found["error"].tolist() == pytest.approx(cost.tolist(), rel=1e-4)


def test_training_leaves_the_rank_and_lowers_the_error():
    metrics = tables_of(replace(SMALL, steps=400))["metrics"]
    assert len(metrics) == 2 * 2 * 2
    assert (metrics["error"] < 0.7 * metrics["samples"]).all()


def test_the_headline_counts_networks_that_fit_and_needs_rank_2_to_fit_more_often():
    index = pd.MultiIndex.from_product([[1, 2], [4, 24], range(5)])
    rows = index.to_frame(index=False, name=["rank", "samples", "replicate"])
    lost = (rows["rank"] == 1) & (rows["samples"] == 24) & (rows["replicate"] > 1)
    tables = {"metrics": rows.assign(error=lost * 1.0, parameter_norm=20.0 + rows["samples"])}
    assert counted(tables["metrics"]).loc[24].to_dict() == {1: 2, 2: 5}
    assert say_ranks(tables) == (
        "Of 5 initializations 5 of rank 1 and 5 of rank 2 fit 4 points; 2 and 5 fit 24"
    )
    assert draw_ranks(tables)[1]["fits"].sum() == 17
    tables["metrics"]["error"] = 1.0
    with pytest.raises(NoRows):
        say_ranks(tables)


def test_a_rank_above_the_width_is_refused():
    with pytest.raises(InputError, match="width 4"):
        FitsByRank(ranks=[5], width=4)
