"""The studies `rank_collapse` and `pretraining`: rows, measures, pre-training, resume."""

import dataclasses
from math import sqrt

import pandas as pd
import pytest
import torch

from runner.bench.growth import embedded
from runner.core.errors import InputError
from runner.core.progress import Progress
from runner.core.settings import Settings
from runner.core.streams import generators
from runner.core.studies import Context
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.rank_collapse import theory
from runner.papers.rank_collapse.depth import study as rank_collapse
from runner.papers.rank_collapse.depth.config import RankCollapse
from runner.papers.rank_collapse.measures import last_hidden, measured_layers, ranks
from runner.papers.rank_collapse.pretraining import study as pretraining
from runner.papers.rank_collapse.pretraining.config import Pretraining
from runner.papers.rank_collapse.pretraining.rank_ascent import (
    raise_end_to_end,
    raise_layer_wise,
    to_unit_scale,
)
from runner.papers.rank_collapse.pretraining.tables import VARIANT
from runner.results.statistics import best_rates, half_width
from runner.runs.execution import execute
from runner.runs.run import Run

TINY = {"depth": 3, "width": 12, "samples": 40, "epochs": 2, "replicates": 2}
TINY |= {"learning_rates": [0.1, 0.3], "selection_replicates": 1}
STUDIES = {
    "rank_collapse": RankCollapse(**TINY),
    "pretraining": Pretraining(**TINY, pretraining_steps=[2, 4], pretraining_batch_size=20),
}


def tables(study, config, restored=None, checkpoint=lambda make_state: None):
    context = Context(torch.device("cpu"), restored, Progress, checkpoint, embedded)
    found: dict[str, list] = {}
    for row in study.run(config, context):
        found.setdefault(row.table(), []).append(dataclasses.asdict(row))
    return {name: pd.DataFrame(rows) for name, rows in found.items()}


def gaussian(replicates: int, d: int, N: int, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(replicates, d, N, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ranks_are_those_of_the_theory_and_of_torch(dtype):
    H = gaussian(3, 7, 20, dtype)
    H[1] = H[1, :1] * torch.arange(1, 8)[:, None]
    H[2, 4:] = H[2, :3]
    measured = ranks(H)
    assert measured.matrix_rank.tolist() == [7, 1, 4]
    scaled = H * (7 / theory.trace(theory.second_moment(H))).sqrt()[:, None, None]
    assert measured.soft_rank.tolist() == theory.soft_rank(scaled, 0.5).tolist()
    torch.testing.assert_close(
        measured.rank_bound, theory.rank_bound(H.double()), rtol=1e-4, atol=0
    )


def test_a_matrix_that_is_not_finite_has_no_rank():
    H = gaussian(3, 4, 9)
    H[1, 2, 3] = torch.inf
    measured = ranks(H)
    assert measured.matrix_rank[0] == 4 and measured.rank_bound[1].isnan()
    assert measured.soft_rank.isnan().tolist() == [False, True, False]


def test_every_layer_is_measured_and_deep_ones_geometrically():
    assert measured_layers(5) == set(range(6))
    deep = sorted(measured_layers(3000))
    assert deep[:65] == list(range(65)) and deep[-1] == 3000
    assert max(b / a for a, b in zip(deep[64:], deep[65:], strict=False)) < 1.06


def test_without_normalization_the_rank_of_deep_products_falls_and_with_it_it_stays():
    config = RankCollapse(
        data="gaussian", train=False, init="unit", activation="linear", dtype="float64", depth=400,
        width=8, samples=8, replicates=4, normalizations=["none", "batch_no_mean"],
    )  # fmt: skip
    metrics = tables(rank_collapse, config)["metrics"]
    last = metrics[metrics["layer"] == 400].set_index("normalization")
    assert (last.loc["none", "matrix_rank"] <= 2).all()
    assert (last.loc["none", "rank_bound"] < 1 + 1e-9).all()
    assert (last.loc["batch_no_mean", "matrix_rank"] > sqrt(8)).all()
    torch.testing.assert_close(
        torch.tensor(last.loc["batch_no_mean", "root_mean_square"].to_numpy()),
        torch.ones(4, dtype=torch.float64), rtol=1e-4, atol=0,
    )  # fmt: skip


def test_networks_of_a_replicate_start_alike_however_normalized():
    metrics = tables(rank_collapse, STUDIES["rank_collapse"])["metrics"]
    inputs = metrics[metrics["layer"] == 0].drop(columns=["normalization", "replicate"])
    assert len(inputs.drop_duplicates()) == 1
    assert set(metrics["layer"]) == {0, 1, 2, 3}


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_network_has_a_row_for_every_epoch(name):
    config, module = (
        STUDIES[name],
        {"rank_collapse": rank_collapse, "pretraining": pretraining}[name],
    )
    found = tables(module, config)
    kinds = 2 if name == "rank_collapse" else 8
    for training, replicates in ((found["selection"], {2}), (found["training"], {0, 1})):
        assert len(training) == kinds * 2 * 2 and set(training["replicate"]) == replicates
        assert training["epoch"].tolist() == sorted(training["epoch"])
        assert training["train_accuracy"].between(0, 1).all() and (training["rank"] >= 1).all()
    assert set(found["metrics"]["replicate"]) == {0, 1}


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_rates_are_chosen_on_replicates_of_their_own(name):
    """What is judged is what a run at the chosen rate alone would give, and says what it was
    chosen on."""
    module = {"rank_collapse": rank_collapse, "pretraining": pretraining}[name]
    config = dataclasses.replace(STUDIES[name], learning_rates=[1e-3, 0.3])
    found = tables(module, config)
    training, keys = found["training"], ["normalization"] if name == "rank_collapse" else VARIANT
    assert set(training["selected_on"]) == {"replicates 2"}
    mean = found["selection"].groupby([*keys, "learning_rate"])["train_accuracy"].mean()
    trained = training[[*keys, "learning_rate"]].itertuples(index=False, name=None)
    assert set(trained) == set(mean.groupby(keys).idxmax())
    fixed = dataclasses.replace(config, learning_rates=[0.3])
    alone = tables(module, fixed)
    assert "selection" not in alone and set(alone["training"]["selected_on"]) == {"one rate alone"}
    pd.testing.assert_frame_equal(alone["metrics"], found["metrics"], rtol=1e-4)
    both = training.merge(alone["training"], on=[*keys, "replicate", "learning_rate", "epoch"])
    assert len(both) and (both["train_accuracy_x"] - both["train_accuracy_y"]).abs().max() < 0.02


def test_a_rate_at_which_all_diverge_is_never_chosen_and_the_smallest_is_where_every_one_does():
    """What has diverged still hits the first class, which is no reason to choose it."""
    config = dataclasses.replace(
        STUDIES["rank_collapse"], normalizations=["none"], learning_rates=[1e30, 1e-9]
    )
    training = tables(rank_collapse, config)["training"]
    assert set(training["learning_rate"]) == {1e-9}
    config = dataclasses.replace(config, learning_rates=[1e31, 1e30])
    training = tables(rank_collapse, config)["training"]
    assert set(training["learning_rate"]) == {1e30}
    assert set(training["selected_on"]) == {"replicates 2: all rates diverged"}


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_more_judged_replicates_leave_the_others_as_they_are(name):
    module = {"rank_collapse": rank_collapse, "pretraining": pretraining}[name]
    one = dataclasses.replace(STUDIES[name], learning_rates=[0.3], replicates=1)
    rows = [tables(module, c)["training"] for c in (one, dataclasses.replace(one, replicates=2))]
    first = rows[1][rows[1]["replicate"] == 0].reset_index(drop=True)
    pd.testing.assert_frame_equal(rows[0], first, rtol=1e-3)


@pytest.mark.parametrize(
    ("name", "stop"),
    [("rank_collapse", stop) for stop in (17, 24, 25, 41)]
    + [("pretraining", stop) for stop in (5, 48, 80)],
)
def test_a_run_that_goes_on_in_the_middle_ends_with_the_same_bytes(
    name, stop, tmp_path, monkeypatch
):
    """Stopped in the selection (24 and 48 steps) and in what is judged, within an epoch and at
    its end."""
    from runner.runs import execution

    def bytes_of(run):
        return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}

    def settings(folder):
        return Settings(outputs=str(folder), device="cpu", checkpoint_seconds=0)

    whole, broken = (Run(STUDIES[name], tmp_path / part) for part in ("whole", "broken"))
    execute(whole, settings(tmp_path / "whole"))
    checkpoint, calls = execution._Execution._checkpoint, []

    def interrupting(self, make_state):
        checkpoint(self, make_state)
        calls.append(1)
        if len(calls) == stop:
            raise KeyboardInterrupt

    monkeypatch.setattr(execution._Execution, "_checkpoint", interrupting)
    with pytest.raises(KeyboardInterrupt):
        execute(broken, settings(tmp_path / "broken"))
    monkeypatch.setattr(execution._Execution, "_checkpoint", checkpoint)
    execute(broken, settings(tmp_path / "broken"))
    assert bytes_of(broken) == bytes_of(whole)


def fresh(depth=6, width=16, replicates=2) -> MLP:
    sizes = [10, *[width] * depth, 3]
    return MLP(*draw("pytorch", sizes, generators(0, replicates, "w"), torch.float64))


def inputs(replicates=2, M=8, N=32) -> torch.Tensor:
    stream = torch.Generator().manual_seed(1)
    return torch.randn(replicates, M, N, 10, generator=stream, dtype=torch.float64)


def test_layer_wise_ascent_raises_r_of_every_layer_and_of_unseen_inputs():
    network, unseen = fresh(), inputs(M=9)[:, 8]
    before = ranks(last_hidden(network, unseen)).rank_bound
    steps = list(raise_layer_wise(network, inputs(), steps=2, rate=0.2))
    assert [(layer, step) for layer, step, _ in steps] == [
        (layer, step) for layer in range(1, 7) for step in range(1, 17)
    ]
    for layer in range(6):
        of_layer = torch.stack([bound for _, _, bound in steps[16 * layer : 16 * layer + 16]])
        assert (of_layer[-4:].mean(0) > of_layer[:4].mean(0)).all()
    assert (ranks(last_hidden(network, unseen)).rank_bound > 1.5 * before).all()


def test_a_step_of_ascent_is_along_the_gradient_of_r():
    network, x = fresh(depth=2), inputs(M=1)
    W = network.parameters["W1"].clone().requires_grad_()
    H = torch.relu(W @ x[:, 0].mT + network.parameters["b1"][..., None])
    M = H @ H.mT / H.shape[-1]
    r = M.diagonal(dim1=-2, dim2=-1).sum(-1) ** 2 / M.pow(2).sum((1, 2))
    (gradient,) = torch.autograd.grad(r.sum(), W)
    next(raise_layer_wise(network, x, steps=1, rate=0.05))
    torch.testing.assert_close(network.parameters["W1"].detach(), W.detach() + 0.05 * gradient)


def test_end_to_end_ascent_is_dead_from_torchs_initialisation_in_deep_networks():
    network = fresh(depth=30)
    before = {name: tensor.clone() for name, tensor in network.parameters.items()}
    bounds = [bound for _, _, bound in raise_end_to_end(network, inputs(), steps=1, rate=0.1)]
    assert (torch.stack(bounds) < 1 + 1e-6).all()
    for name, tensor in network.parameters.items():
        assert (tensor - before[name]).abs().max() < 1e-6


def test_unit_scale_keeps_r_of_the_first_layer_and_sets_the_scale_of_all():
    network, x = fresh(), inputs()[:, 0]
    r = ranks(network.layer(1, x.mT)).rank_bound
    to_unit_scale(network, x)
    for H in network.hidden(x):
        torch.testing.assert_close(H.square().mean((1, 2)), torch.ones(2, dtype=torch.float64))
    torch.testing.assert_close(ranks(network.layer(1, x.mT)).rank_bound, r)


def test_pretrained_variants_start_from_the_vanilla_network_of_their_replicate():
    found = tables(pretraining, STUDIES["pretraining"])
    first = found["pretraining"].query("layer == 1 and step == 1")
    assert first.groupby("replicate")["rank_bound"].nunique().tolist() == [1, 1]
    unscaled = found["metrics"].query("layer > 0 and rescaled")
    assert unscaled["root_mean_square"].between(0.7, 1.4).all()


def test_gaussian_inputs_cannot_be_learned():
    with pytest.raises(InputError, match="data=gaussian has no labels to learn: add train=false"):
        RankCollapse(data="gaussian")


def test_more_samples_than_images_are_refused():
    with pytest.raises(InputError, match="samples=2000: digits has 1536 training images"):
        tables(rank_collapse, dataclasses.replace(STUDIES["rank_collapse"], samples=2000))


def test_the_best_rate_learns_fastest_over_all_epochs_and_replicates():
    """Of a the smaller rate ends higher and comes later; one replicate of b diverges at 1.0."""
    accuracies = {
        ("a", 0.1): [(0.2, 1.0), (0.2, 1.0)],
        ("a", 0.3): [(0.9, 0.95), (0.9, 0.95)],
        ("b", 0.3): [(0.5, 0.6), (0.5, 0.6)],
        ("b", 1.0): [(0.8, 0.9), (0.1, 0.1)],
    }
    rows = [
        {
            "kind": kind,
            "learning_rate": rate,
            "replicate": r,
            "epoch": e,
            "train_accuracy": accuracy,
        }
        for (kind, rate), replicates in accuracies.items()
        for r, epochs in enumerate(replicates)
        for e, accuracy in enumerate(epochs, 1)
    ]
    best = best_rates(pd.DataFrame(rows), ["kind"])
    assert set(zip(best["kind"], best["learning_rate"], strict=True)) == {("a", 0.3), ("b", 0.3)}
    assert len(best) == 8


def test_the_confidence_interval_is_students():
    assert half_width(pd.Series([1.0, 2.0, 3.0])) == pytest.approx(4.302653 / sqrt(3), rel=1e-6)
