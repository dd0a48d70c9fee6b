"""The studies `rank_collapse` and `pretraining`: rows, measures, pre-training, resume."""

import dataclasses
from functools import cache
from math import cos, inf, sin, sqrt

import pandas as pd
import pytest
import torch
from bench.growth import embedded

from runner.core.errors import InputError
from runner.core.progress import Progress
from runner.core.streams import generators
from runner.core.studies import Context
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.measures import (
    last_hidden,
    ranks,
    ranks_by_layer,
    root_mean_square,
)
from runner.papers.batch_norm_rank.pretraining import study as pretraining
from runner.papers.batch_norm_rank.pretraining.config import Pretraining
from runner.papers.batch_norm_rank.pretraining.rank_ascent import (
    Minibatches,
    climb,
    raise_end_to_end,
    raise_layer_wise,
    turn,
)
from runner.papers.batch_norm_rank.pretraining.starts import to_unit_scale, whiten
from runner.papers.batch_norm_rank.pretraining.tables import VARIANT
from runner.papers.batch_norm_rank.rank_collapse import study as rank_collapse
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.results.statistics import half_width

TINY = {"depth": 3, "width": 12, "samples": 40, "epochs": 2, "replicates": 2, "batch_size": 128}
TINY |= {"learning_rates": [0.1, 0.3], "selection_replicates": 1}
STUDIES = {
    "rank_collapse": RankCollapse(**TINY),
    "pretraining": Pretraining(
        **TINY,
        pretraining_steps=[2, 4],
        pretraining_batch_size=20,
        angles=[0.05, 0.2],
        end_to_end_angles=[0.01],
    ),
}
KINDS = {"rank_collapse": 2, "pretraining": 7 + 2 * 2 + 1}
"""Networks that are trained, of each replicate: normalizations, or variants."""


def tables(study, config, restored=None, checkpoint=lambda make_state: None):
    context = Context(torch.device("cpu"), restored, Progress, checkpoint, embedded)
    found: dict[str, list] = {}
    for row in study.run(config, context):
        found.setdefault(row.table, []).append(dataclasses.asdict(row))
    return {name: pd.DataFrame(rows) for name, rows in found.items()}


@cache
def tables_of(name):
    """Those of a study as above, which several tests read."""
    return tables({"rank_collapse": rank_collapse, "pretraining": pretraining}[name], STUDIES[name])


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


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_root_mean_square_has_no_range(dtype):
    H = gaussian(3, 4, 9, dtype)
    plain = H.double().square().mean(dim=(1, 2)).sqrt()
    for scale in (2.0**-100, 1.0, 2.0**100, *([2.0**-900, 2.0**900] * (dtype == torch.float64))):
        assert torch.equal(root_mean_square(scale * H), scale * plain)
    H[0], H[1, 0, 0] = 0, torch.inf
    sizes = root_mean_square(H)
    assert sizes[0] == 0 and not sizes[1].isfinite()


@pytest.mark.parametrize("dtype, gamma", [("float32", 1e19), ("float64", 1e200)])
def test_a_huge_gamma_has_the_ranks_of_no_skip_connection(dtype, gamma):
    def last(skip):
        config = RankCollapse(
            data="gaussian", train=False, init="unit", activation="linear", dtype=dtype, depth=32,
            width=8, samples=64, replicates=2, normalizations=["none", "batch"], skip=skip,
        )  # fmt: skip
        metrics = tables(rank_collapse, config)["metrics"]
        columns = ["normalization", "matrix_rank", "soft_rank", "rank_bound"]
        return metrics[metrics["layer"] == 32][columns].reset_index(drop=True)

    pd.testing.assert_frame_equal(last(gamma), last(inf), rtol=1e-3)


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


@pytest.mark.parametrize("name", sorted(STUDIES))
def test_every_network_has_a_row_for_every_epoch(name):
    found = tables_of(name)
    kinds = KINDS[name]
    for training, replicates in ((found["selection"], {2}), (found["training"], {0, 1})):
        assert len(training) == kinds * 2 * 2 and set(training["replicate"]) == replicates
        assert training["epoch"].tolist() == sorted(training["epoch"])
        assert training["train_accuracy"].between(0, 1).all()
    assert (found["training"]["rank"] >= 1).all()
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
    # One selection replicate: its mean over epochs is the worst of them.
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


def fresh(depth=6, width=16, replicates=2) -> MLP:
    sizes = [10, *[width] * depth, 3]
    return MLP(*draw("pytorch", sizes, generators(0, replicates, "w"), torch.float64))


def minibatches(replicates=2, M=8, N=32, start=0) -> Minibatches:
    """Gaussian images, each in one minibatch; those from `start` on."""
    stream = torch.Generator().manual_seed(1)
    images = torch.randn(2000, 10, generator=stream, dtype=torch.float64)
    return Minibatches(images, start + torch.arange(replicates * M * N).view(replicates, M, N))


def inputs(replicates=2, N=32) -> torch.Tensor:
    """Images that no other minibatch has."""
    return minibatches(replicates, 1, N, start=1000).inputs(0, replicates).mT


def angles(*values, dtype=torch.float64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def test_layer_wise_ascent_raises_r_of_every_layer_and_of_unseen_inputs_at_unit_scale():
    network, unseen = fresh(), inputs()
    before = ranks(last_hidden(network, unseen)).rank_bound
    layers = list(raise_layer_wise(network, minibatches(), 3, turn(angles(0.1, 0.1))))
    assert [layer for layer, _, _ in layers] == list(range(1, 7))
    assert all((after > start).all() for _, start, after in layers)
    assert (ranks(last_hidden(network, unseen)).rank_bound > 1.5 * before).all()
    each = [[*network.hidden(minibatches().inputs(k, 2).mT)] for k in range(8)]
    for of_layer in zip(*each, strict=True):
        squares = torch.stack([H.square().mean((1, 2)) for H in of_layer]).mean(0)
        torch.testing.assert_close(squares, torch.ones(2, dtype=torch.float64))


def test_a_step_turns_a_layer_towards_the_gradient_of_r_by_its_angle():
    network, batches = fresh(depth=1), minibatches(M=1)
    theta = [network.parameters[name].clone().requires_grad_() for name in ("W1", "b1")]
    H = torch.relu(theta[0] @ batches.inputs(0, 2) + theta[1][..., None])
    M = H @ H.mT / H.shape[-1]
    r = M.diagonal(dim1=-2, dim2=-1).sum(-1) ** 2 / M.pow(2).sum((1, 2))
    gradient = torch.autograd.grad(r.sum(), theta)
    for move, of_step in (
        (climb(0.05), [t + 0.05 * g for t, g in zip(theta, gradient, strict=True)]),
        (turn(angles(0.3, 0.0)), None),
    ):
        moved = network.map(torch.clone)
        ((_, start, _),) = raise_layer_wise(moved, batches, 1, move, unit_scale=False)
        torch.testing.assert_close(start, r.detach())
        now = [moved.parameters[name] for name in ("W1", "b1")]
        if of_step is not None:
            torch.testing.assert_close(now, [t.detach() for t in of_step])
            continue

        def flat(tensors, network):
            return torch.cat([t[network].detach().flatten() for t in tensors])

        old, new, g = (flat(tensors, 0) for tensors in (theta, now, gradient))
        torch.testing.assert_close(new.norm(), old.norm())
        assert torch.cosine_similarity(old, new, dim=0) == pytest.approx(cos(0.3), abs=1e-9)
        in_plane = cos(0.3) * old + sin(0.3) * old.norm() * g / g.norm()
        torch.testing.assert_close(new, in_plane, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(flat(now, 1), flat(theta, 1))  # an angle of zero


def test_a_layer_without_a_gradient_stays_as_it_is():
    network = fresh(depth=2)
    network.parameters["W1"].zero_()
    network.parameters["b1"].fill_(-1)  # every ReLU of layer 1 is off
    before = {name: tensor.clone() for name, tensor in network.parameters.items()}
    list(raise_layer_wise(network, minibatches(), 1, turn(angles(0.1, 0.1)), unit_scale=False))
    for name in ("W1", "b1"):
        assert torch.equal(network.parameters[name], before[name])


def test_end_to_end_ascent_is_dead_from_torchs_initialisation_and_alive_at_unit_scale():
    network, batches = fresh(depth=30), minibatches()
    gone = network.map(torch.clone)
    raise_end_to_end(gone, batches, 1, climb(0.1), lambda: None)
    for name, tensor in network.parameters.items():
        assert (tensor - gone.parameters[name]).abs().max() < 1e-6
    to_unit_scale(network, inputs())
    before = ranks(last_hidden(network, inputs())).rank_bound
    raise_end_to_end(network, minibatches(M=15), 2, turn(angles(0.005, 0.005)), lambda: None)
    assert (ranks(last_hidden(network, inputs())).rank_bound > 1.1 * before).all()


def test_whitening_flattens_the_spectrum_of_every_layer_at_unit_scale():
    network, x = fresh(depth=3), inputs(N=200)
    plain = ranks(last_hidden(network, x)).rank_bound
    whiten(network, x, generators(0, 2, "whitening"))
    H = x.mT
    for layer in (1, 2, 3):
        Z = network.parameters[f"W{layer}"] @ H
        sigma = torch.linalg.svdvals(Z)
        live = sigma[:, : min(H.shape[1], 16)]
        torch.testing.assert_close(live, live[:, :1].expand_as(live), rtol=1e-6, atol=0)
        H = network.layer(layer, H)
        torch.testing.assert_close(H.square().mean((1, 2)), torch.ones(2, dtype=torch.float64))
    assert (ranks(H).rank_bound > 2 * plain).all()


def off() -> MLP:
    """Two networks of which the second is off from its second layer on."""
    network = fresh(depth=3)
    network.parameters["W2"][1], network.parameters["b2"][1] = 0.0, 0.0
    network.parameters["b3"][1] = 0.0
    return network


def test_a_network_that_is_off_has_rank_zero_in_all_later_layers():
    network = off()
    for layer in range(1, 5):
        network.parameters[f"b{layer}"].zero_()
    layers = {layer: (found, size) for layer, found, size in ranks_by_layer(network, inputs(), 0.5)}
    for layer in (2, 3):
        found, size = layers[layer]
        assert found.matrix_rank[1] == found.soft_rank[1] == size[1] == 0
        assert found.rank_bound[0] > 1 and size[0] > 0
    assert layers[1][0].matrix_rank[1] > 1


@pytest.mark.parametrize("start", [to_unit_scale, None])
def test_a_network_that_is_off_stays_so_and_finite_at_unit_scale(start):
    network, x = off(), inputs()
    if start is None:
        x = torch.stack([x[0], torch.zeros_like(x[1])])
        whiten(network, x, generators(0, 2, "whitening"))
    else:
        to_unit_scale(network, x)
    for tensor in network.parameters.values():
        assert tensor.isfinite().all()
    *_, H = network.hidden(x)
    assert H[0].square().mean() == pytest.approx(1) and not H[1].any()


def test_every_variant_of_unit_scale_has_it_and_angles_are_those_that_raise_r_most():
    found = tables_of("pretraining")
    metrics, angles = found["metrics"].query("layer > 0"), found["angles"]
    scaled = ("unit_scale", "pretrained", "pretrained_end_to_end", "orthogonal")
    assert metrics[metrics["method"].isin(scaled)]["root_mean_square"].between(0.6, 1.6).all()
    assert set(angles["replicate"]) == {2}, "chosen on what is not judged"
    for _, rows in angles.groupby(["method", "pretraining_steps"]):
        best = rows.groupby("angle")["rank_bound"].mean().idxmax()
        assert set(rows[rows["chosen"]]["angle"]) == {best}
    first = found["pretraining"].query("layer == 1")
    assert first.groupby("replicate")["rank_bound_before"].nunique().tolist() == [1, 1]
    assert not (found["training"]["method"] == "plain_ascent").any()
    assert set(metrics[metrics["method"] == "plain_ascent"]["pretraining_steps"]) == {2, 4}


def test_the_chosen_angles_alone_are_trained_when_asked_for():
    every = tables_of("pretraining")
    config = dataclasses.replace(STUDIES["pretraining"], all_angles=False)
    found = tables(pretraining, config)
    chosen = found["angles"].query("chosen")
    pd.testing.assert_frame_equal(found["angles"], every["angles"])
    pairs = [set(map(tuple, t[["pretraining_steps", "angle"]].values)) for t in
             (chosen[chosen["method"] == "pretrained"],
              found["training"].query("method == 'pretrained'"))]  # fmt: skip
    assert pairs[0] == pairs[1] and len(pairs[0]) == 2
    both = found["training"].merge(every["training"], on=[*VARIANT, "replicate", "epoch"])
    assert len(both) == len(found["training"])
    assert (both["train_loss_x"] - both["train_loss_y"]).abs().max() < 1e-4


def test_more_samples_than_images_are_refused():
    with pytest.raises(InputError, match="samples=2000: digits has 1536 training images"):
        tables(rank_collapse, dataclasses.replace(STUDIES["rank_collapse"], samples=2000))


def test_the_confidence_interval_is_students():
    assert half_width(pd.Series([1.0, 2.0, 3.0])) == pytest.approx(4.302653 / sqrt(3), rel=1e-6)
