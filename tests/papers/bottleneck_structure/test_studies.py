"""The studies of paper D at toy size: their rows, their determinism, their errors."""

import dataclasses
from math import isnan

import pandas as pd
import pytest
import torch
from bench.growth import embedded

from runner.core.catalogue import module_of
from runner.core.progress import Progress
from runner.core.studies import LARGEST_FACTOR, Context
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.bottleneck_structure.latent import draw_task
from runner.papers.bottleneck_structure.networks import differentiate
from runner.papers.bottleneck_structure.rank_one import study as rank_one
from runner.papers.bottleneck_structure.rank_one.config import RankOne
from runner.papers.bottleneck_structure.spectra import (
    bottleneck_rank,
    gap_rank,
    jacobian_ranks,
    threshold_rank,
)
from runner.papers.bottleneck_structure.symmetry import summaries
from runner.papers.bottleneck_structure.symmetry.config import Symmetry

F64 = torch.float64
TOY = [
    Bottleneck(depths=[5, 3], width=12, samples=40, test_samples=20, steps=30, points=5,
    replicates=2), Symmetry(depth=7, width=12, starts=60, batch_size=20, steps=20, probes=30,
    points=4,
             resolution=5, replicates=2),
    RankOne(samples=[3, 6], depth=6, width=10, steps=20, replicates=2),
    Example20(depths=[4, 8], exponents=[0.7], grid=2),
]  # fmt: skip


def tables(config) -> dict[str, pd.DataFrame]:
    context = Context(torch.device("cpu"), None, Progress, lambda make_state: None, embedded)
    rows: dict[str, list] = {}
    for row in module_of(config.study).run(config, context):
        rows.setdefault(row.table, []).append(vars(row))
    return {name: pd.DataFrame(found) for name, found in rows.items()}


RIDGED = [dataclasses.replace(TOY[0], recipe="plain"), TOY[2]]
"""Ridge from the first step on."""


@pytest.mark.parametrize("config", RIDGED, ids=lambda config: config.study)
def test_the_largest_ridge_takes_part(config):
    """A ridge whose square overflows float32 takes no weight nearer to zero."""
    none, largest = (
        tables(dataclasses.replace(config, ridge=ridge))["metrics"]["parameter_norm"]
        for ridge in (0.0, LARGEST_FACTOR)
    )
    assert (largest < none).all()


def test_bottleneck_rows():
    found = tables(TOY[0])
    metrics = found["metrics"]
    assert list(zip(metrics["depth"], metrics["replicate"], strict=True)) == [
        (3, 0), (3, 1), (5, 0), (5, 1)
    ]  # fmt: skip
    ridge = TOY[0].ridge
    loss = metrics["train_cost"] + ridge * metrics["parameter_norm"]
    pd.testing.assert_series_equal(metrics["loss"], loss, check_names=False)
    layers = found["spectrum"].groupby(["depth", "replicate"])["layer"].max()
    assert list(layers) == [3, 3, 5, 5]
    # sum of squared singular values is the weights' share of the norm
    squares = found["spectrum"]["singular_value"].pow(2).groupby(found["spectrum"]["depth"]).sum()
    assert (squares <= metrics.groupby("depth")["parameter_norm"].sum()).all()


def test_task_is_scaled_and_has_the_latent_rank():
    task = draw_task(2, 300, 50, torch.Generator().manual_seed(0))
    assert float(task.x.square().sum(0).mean()) == pytest.approx(20)
    assert float(task.y.square().sum(0).mean()) == pytest.approx(1)
    assert float(task.y.mean(1).abs().max()) < 1e-12
    assert task.y_test.shape == (20, 50)


def test_summary_measures_on_known_representations():
    generator = torch.Generator().manual_seed(0)
    u = torch.rand(400, 2, generator=generator, dtype=F64)
    own = torch.arange(400)
    assert summaries.neighbour_r2(summaries.neighbours(u, own), u.square()) > 0.98
    noise = torch.rand(400, 1, generator=generator, dtype=F64)
    assert summaries.neighbour_r2(summaries.neighbours(u, own), noise) < 0.2
    # a point's own group is no neighbour: constant groups cannot predict themselves
    labels = own // 20
    nearest = summaries.neighbours(labels[:, None].to(F64), labels)
    assert summaries.neighbour_r2(nearest, noise[labels]) < 0.9
    orbits = torch.rand(5, 1, 3, generator=generator, dtype=F64).expand(5, 6, 3)
    assert summaries.collapse_ratio(orbits.contiguous()) == pytest.approx(0, abs=1e-6)
    scattered = torch.rand(20, 20, 3, generator=generator, dtype=F64)
    assert summaries.collapse_ratio(scattered) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("seed", range(5, 9))
def test_features_that_are_the_same_everywhere_have_no_collapse_ratio(seed):
    """As of a layer that is off: rounding is no distance."""
    stream = torch.Generator().manual_seed(seed)
    same = torch.rand(12, generator=stream, dtype=F64).expand(50, 20, 12).contiguous()
    rounding = torch.randint(-1, 2, same.shape, generator=stream) * torch.finfo(F64).eps
    assert isnan(summaries.collapse_ratio(same))
    assert isnan(summaries.collapse_ratio(same * (1 + rounding)))


def test_principal_components_of_a_plane():
    plane = torch.rand(50, 2, dtype=F64) @ torch.rand(2, 6, dtype=F64) + 3
    mean, directions = summaries.principal_components(plane)
    rebuilt = (plane - mean) @ directions @ directions.mT + mean
    torch.testing.assert_close(rebuilt, plane)


def test_a_rank_one_network_does_not_depend_on_the_other_sizes_of_its_run():
    def norms(samples):
        config = RankOne(samples=samples, depth=6, width=10, steps=30, replicates=2)
        context = Context(torch.device("cpu"), None, Progress, lambda make_state: None, embedded)
        rows = rank_one.run(config, context)
        return [row.parameter_norm for row in rows if getattr(row, "samples", 0) == 4]

    assert norms([4, 6]) == pytest.approx(norms([4]), rel=1e-4)


def test_rank_one_networks_stay_at_rank_one():
    config = RankOne(samples=[4, 6], depth=9, width=10, steps=150, replicates=2)
    context = Context(torch.device("cpu"), None, Progress, lambda make_state: None, embedded)
    networks = []

    def record(config, network, x, N, replicate):
        networks.append((network, x))
        return measure(config, network, x, N, replicate)

    measure, rank_one.measure = rank_one.measure, record
    try:
        rows = list(rank_one.run(config, context))
    finally:
        rank_one.measure = measure
    for (network, x), row in zip(networks, rows, strict=True):
        for layer in rank_one.bottleneck_layers(9):
            assert not network.activations(x)[layer][:, 1:].any()
        s = torch.linalg.svdvals(differentiate(network, x).jacobian)
        assert (s[:, 1] < 1e-12).all()
        assert row.train_cost < 1


def test_the_rank_of_a_jacobian_and_that_of_all_layers():
    s = torch.tensor([[2.0, 1.0, 0.021], [2.0, 0.019, 0.0], [0.0, 0.0, 0.0]], dtype=F64)
    s = torch.cat([s, torch.full((1, 3), torch.nan, dtype=F64)])
    assert jacobian_ranks(torch.diag_embed(s)).tolist() == [3, 1, 0, 0]
    layers = [torch.tensor(each, dtype=F64) for each in ([2, 0.5, 0.2], [1, 0.4, 0.09])]
    assert bottleneck_rank(layers) == 2


def test_ranks_of_a_spectrum():
    s = torch.tensor([1.1, 0.9, 0.2, 0.15, 1e-9, 1e-12], dtype=F64)
    assert threshold_rank(s) == 4
    assert gap_rank(s) == 4  # 0.15 to the floor
    assert gap_rank(torch.tensor([1.1, 0.9, 0.12, 0.11, 0.1], dtype=F64)) == 2
    assert gap_rank(torch.tensor([1e-6, 1e-9], dtype=F64)) == 0
