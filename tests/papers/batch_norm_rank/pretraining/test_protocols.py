"""The protocols of study `pretraining`, against small cases written out with torch alone."""

import dataclasses
from functools import cache, partial
from math import cos, sin, sqrt

import pytest
import torch
from bench.growth import lent
from in_memory import rows_of, tables_of
from torch import nn

from runner.core.streams import generators
from runner.networks import modules
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank.ascent import (
    climb,
    descend,
    raise_layer_wise,
    swept_layers,
    turn,
)
from runner.papers.batch_norm_rank.pretraining import study
from runner.papers.batch_norm_rank.pretraining.config import METHODS, Pretraining
from runner.papers.batch_norm_rank.starts import (
    TanhBatchNorm,
    draw_glorot,
    draw_positive,
    orthogonalise,
    scale_layers,
    sizes,
)

TINY = {"depth": 6, "width": 12, "samples": 40, "epochs": 1, "replicates": 2, "batch_size": 128}


def fresh(depth=6, width=16, replicates=2) -> MLP:
    sizes = [10, *[width] * depth, 3]
    return MLP(*draw("pytorch", sizes, generators(0, replicates, "w"), torch.float64))


def inputs(M=1, N=32, start=0) -> list[torch.Tensor]:
    """Minibatches of two replicates, samples as columns."""
    stream = torch.Generator().manual_seed(1 + start)
    return [torch.randn(2, 10, N, generator=stream, dtype=torch.float64) for _ in range(M)]


def r_of(H: torch.Tensor) -> torch.Tensor:
    """Tr(M)^2 / ||M||_F^2 of one representation, samples as rows, as the authors' code has it."""
    M = H.T @ H / len(H)
    return torch.trace(M) ** 2 / torch.trace(M @ M)


def layers_of(network: MLP, r: int) -> list[nn.Linear]:
    """The linear layers of one network, with gradients."""
    made = []
    for layer in range(1, network.depth + 2):
        W, b = (network.parameters[f"{name}{layer}"][r] for name in ("W", "b"))
        linear = nn.Linear(*W.mT.shape, dtype=W.dtype)
        linear.load_state_dict({"weight": W, "bias": b})
        made.append(linear)
    return made


def task_of(config: Pretraining) -> study.Task:
    context = lent(torch.device("cpu"))
    config = config.settled()
    return study.Task(config, study.images_of(config, context), range(2), context)


def test_a_step_of_figure_4_is_one_of_sgd_on_the_norm_over_the_trace():
    network, (X,) = fresh(), inputs()
    plain = [layers_of(network, r) for r in range(2)]
    for layers, x in zip(plain, X.mT, strict=True):
        for linear in layers[:-1]:
            x = torch.relu(linear(x))
        M = x @ x.T
        loss = torch.norm(M) / torch.trace(M)
        loss.backward()
    descend(network, X, 6, -0.5, 0.3, activated=True)
    for r, layers in enumerate(plain):
        for layer, linear in enumerate(layers[:-1], start=1):
            for name, tensor in (("W", linear.weight), ("b", linear.bias)):
                wanted = tensor.detach() - 0.3 * tensor.grad
                torch.testing.assert_close(network.parameters[f"{name}{layer}"][r], wanted)
        torch.testing.assert_close(network.parameters["W7"][r], layers[-1].weight.detach())


def test_a_step_of_figure_6_is_one_on_the_pre_activations_over_the_weights_up_to_the_layer():
    network, (X,) = fresh(), inputs()
    plain = [layers_of(network, r) for r in range(2)]
    for layers, x in zip(plain, X.mT, strict=True):
        for linear in layers[:4]:
            x = torch.relu(linear(x))
        (1 / r_of(layers[4](x))).backward()
    descend(network, X, 5, -1.0, 0.1, activated=False)
    for r, layers in enumerate(plain):
        for layer, linear in enumerate(layers, start=1):
            moved = 0.1 * linear.weight.grad if layer <= 5 else 0.0
            wanted = linear.weight.detach() - moved
            torch.testing.assert_close(network.parameters[f"W{layer}"][r], wanted)
            torch.testing.assert_close(network.parameters[f"b{layer}"][r], linear.bias.detach())


def test_the_sweep_of_figure_6_ends_at_layer_29_of_30():
    """Layers 4, 8, .., 28, counted from 0; of a shallow network the last."""
    assert swept_layers(30) == [5, 9, 13, 17, 21, 25, 29]
    assert swept_layers(3) == [3]


def test_a_longer_pre_training_of_figure_6_goes_on_from_the_shorter():
    task = task_of(Pretraining(**TINY, pretraining_steps=[2, 3]))
    both = study.pretrained(task, 0.1, [2, 3])
    network = study.initialised(task, "pretrained")
    (X,) = task.minibatches(1, "pretraining")
    for M in (2, 3):
        for _ in range(M):
            descend(network, X, 5, -1.0, 0.1, activated=False)
        torch.testing.assert_close(both[M].parameters, network.parameters)


def test_minibatches_of_figure_4_go_through_one_order_from_its_second_on():
    task = task_of(Pretraining(**TINY, script="fig4", pretraining_batch_size=500))
    each = [task.passing(M) for M in (1, 2, 3, 4)]  # 1536 images: three minibatches
    assert torch.equal(each[0], each[2]) and torch.equal(each[1], each[3])
    seen = {tuple(x.tolist()) for X in each[:2] for x in X[0].mT}
    assert len(seen) > 990, "two minibatches share no images, but some digits are equal"
    assert each[0].max() == 255


def test_the_settings_are_those_of_the_scripts():
    fig4, fig6 = (Pretraining(script=name).settled() for name in ("fig4", "fig6"))
    assert (fig4.batch_size, fig4.epochs, fig4.pretraining_batch_size) == (64, 100, 64)
    assert (fig4.pretraining_steps, fig4.gradient_steps, fig4.steps) == ([1000], 40, [0.001])
    assert fig4.learning_rates == [0.01, 0.001] and 0.0001 in fig4.batch_norm_rates
    assert (fig6.depth, fig6.batch_size, fig6.epochs, fig6.steps) == (30, 32, 15, [0.1])
    assert fig6.pretraining_steps == [5, 75] and fig6.rates_of("batch_norm") == [0.01]
    assert Pretraining(script="fig4", epochs=3).settled().epochs == 3, "what is typed wins"


def test_weights_of_the_authors_have_the_variance_of_glorot_and_biases_are_torchs():
    task = task_of(Pretraining(**TINY | {"width": 200, "depth": 2}))
    network = study.initialised(task, "vanilla")
    assert network.parameters["W2"].var() == pytest.approx(2 / 400, rel=0.02)
    assert network.parameters["W1"].var() == pytest.approx(2 / 264, rel=0.03)
    assert network.parameters["b2"].abs().max() <= 1 / sqrt(200)
    assert network.parameters["b2"].var() == pytest.approx(1 / 600, rel=0.2)


def torch_twin(network: TanhBatchNorm, r: int) -> nn.ModuleList:
    """The authors' network of figure 6 in torch, in training mode: linear, then norms."""
    width, features = network.parameters["W1"].shape[1:]
    linears = [nn.Linear(features, width)]
    linears += [nn.Linear(width, width) for _ in range(network.depth - 1)] + [nn.Linear(width, 3)]
    norms = [nn.BatchNorm1d(width, momentum=0.0) for _ in range(network.depth - 1)]
    p = network.parameters
    for layer, linear in enumerate(linears, start=1):
        linear.weight.data = p[f"W{layer}"][r].clone()
        if f"b{layer}" in p:  # the others are subtracted with the mean
            linear.bias.data = p[f"b{layer}"][r].clone()
    for layer, norm in enumerate(norms, start=2):
        norm.weight.data = p[f"scale{layer}"][r].clone()
        norm.bias.data = p[f"shift{layer}"][r].clone()
    return nn.ModuleList([*linears, *norms])


@pytest.mark.parametrize("positive", [False, True])
def test_batch_norm_of_figure_6_and_its_rank_are_those_of_the_authors_code(positive):
    weights, biases = draw("pytorch", [10, *[16] * 7, 3], generators(0, 2, "w"))
    network = TanhBatchNorm(weights, biases)
    if positive:
        draw_positive(network, 0.1, generators(0, 2, "positive"))
        assert all(t.min() >= 0 and t.max() <= 0.1 for t in network.parameters.values())
        assert network.parameters["scale3"].std() > 0
    X = inputs()[0].float()
    for r in range(2):
        twin, x = torch_twin(network, r), X[r].mT
        linears, norms = twin[: network.depth + 1], twin[network.depth + 1 :]
        x = torch.tanh(linears[0](x))
        inverses = []
        for index, (linear, norm) in enumerate(zip(linears[1:-1], norms, strict=True)):
            x = torch.tanh(norm(linear(x)))
            if index in (1, 5):  # of the layers 1, 5, 10, .. those that there are
                inverses.append(1 / r_of(x))
        logits = network.logits(X.mT, "probe")[r].mT
        torch.testing.assert_close(logits, linears[-1](x), rtol=1e-4, atol=1e-5)
        wanted = 1 / torch.stack(inverses).mean()
        assert float(study.mean_rank_bound(network, X)[r]) == pytest.approx(wanted.item(), rel=1e-3)
        tensors = {name: t[r] for name, t in network.state().items()}
        module = modules.mlp(tensors, "tanh", "batch").train()
        torch.testing.assert_close(module(X[r].mT).mT, network.logits(X.mT, "probe")[r])


def test_the_rank_of_plain_networks_is_that_of_pre_activations():
    network, (X,) = fresh(depth=7), inputs()
    for r in range(2):
        x, inverses = X[r].mT, []
        for index, linear in enumerate(layers_of(network, r)[:-1]):
            if index in (1, 5, 6):  # 6: the last hidden layer
                inverses.append(1 / r_of(linear(x)))
            x = torch.relu(linear(x))
        wanted = 1 / torch.stack(inverses).mean()
        assert float(study.mean_rank_bound(network, X)[r]) == pytest.approx(float(wanted.detach()))


def test_scaled_layers_have_the_sizes_of_another_network_and_keep_their_directions():
    network, other, (X,) = fresh(), fresh(), inputs()
    draw_glorot(other, generators(5, 2, "glorot"))
    before = network.map(torch.clone)
    scale_layers(network, X, list(sizes(other, X)))
    for mine, wanted in zip(sizes(network, X), sizes(other, X), strict=True):
        torch.testing.assert_close(mine, wanted)
    for layer in range(1, 7):
        W, old = (n.parameters[f"W{layer}"].flatten(1) for n in (network, before))
        assert torch.cosine_similarity(W, old).min() > 1 - 1e-9


def test_a_layer_that_is_off_keeps_its_weights():
    network, (X,) = fresh(depth=2), inputs()
    network.parameters["W1"][1], network.parameters["b1"][1] = 0.0, -1.0
    W2 = network.parameters["W2"][1].clone()
    network.parameters["b2"][1] = -1.0
    scale_layers(network, X, [torch.ones(2, dtype=torch.float64)] * 2)
    assert torch.equal(network.parameters["W2"][1], W2)
    assert network.parameters["W1"].isfinite().all()


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_orthogonalised_weights_are_a_slice_of_the_singular_vectors(power):
    network, (X,) = fresh(depth=3), inputs(N=48)
    orthogonalise(network, X, power)
    H = network.layer(1, X)[0].mT  # samples as rows, as in the published code
    U, S, Vt = torch.linalg.svd(H, full_matrices=False)
    live = 1e-12 * S[0] < S
    W = U[:16][:, live] @ torch.diag(S[live] ** -power) @ Vt[live]
    W = W / torch.norm(H @ W.T)
    torch.testing.assert_close(network.parameters["W2"][0], W)
    assert not any(network.parameters[f"b{layer}"].any() for layer in range(1, 5))


def test_layer_wise_ascent_raises_r_of_every_layer_and_of_unseen_inputs():
    network, (unseen,) = fresh(), inputs(start=9)

    def bounds():
        return [r_of(H[0].mT) for H in network.hidden(unseen.mT)]

    before = bounds()
    done = list(
        raise_layer_wise(network, inputs(M=8), 3, partial(turn, angle=0.1), unit_scale=True)
    )
    assert done == list(range(1, 7))
    assert all(after > start for start, after in zip(before, bounds(), strict=True))
    each = [[*network.hidden(X.mT)] for X in inputs(M=8)]
    for of_layer in zip(*each, strict=True):
        squares = torch.stack([H.square().mean((1, 2)) for H in of_layer]).mean(0)
        torch.testing.assert_close(squares, torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("move", ["climb", "turn"])
def test_a_step_goes_along_the_gradient_of_r_or_turns_towards_it(move):
    network, batches = fresh(depth=1), inputs()
    (linear, _) = layers_of(network, 0)
    r_of(torch.relu(linear(batches[0][0].mT))).backward()
    old, g = (
        torch.cat([getattr(t, "grad" if graded else "data").flatten() for t in linear.parameters()])
        for graded in (False, True)
    )
    step = partial(climb, step=0.05) if move == "climb" else partial(turn, angle=0.3)
    list(raise_layer_wise(network, batches, 1, step, unit_scale=False))
    new = torch.cat([network.parameters[name][0].flatten() for name in ("W1", "b1")])
    turned = cos(0.3) * old + sin(0.3) * old.norm() * g / g.norm()
    torch.testing.assert_close(new, old + 0.05 * g if move == "climb" else turned)


def test_a_layer_without_a_gradient_stays_as_it_is():
    network = fresh(depth=2)
    network.parameters["W1"].zero_()
    network.parameters["b1"].fill_(-1)  # every ReLU of layer 1 is off
    before = network.parameters["W1"].clone(), network.parameters["b1"].clone()
    list(raise_layer_wise(network, inputs(), 1, partial(turn, angle=0.1), unit_scale=False))
    assert torch.equal(network.parameters["W1"], before[0])
    assert torch.equal(network.parameters["b1"], before[1])


@cache
def every_method():
    config = Pretraining(**TINY, methods=list(METHODS), pretraining_steps=[2, 4],
                         learning_rates=[0.01, 0.1], selection_replicates=1)  # fmt: skip
    return config, tables_of(config)


def test_every_network_is_trained_at_every_rate_and_measured_before():
    config, found = every_method()
    training, before = found["training"], found["pretraining"]
    assert len(training) == ((len(METHODS) + 1 - 2) * 2 + 2) * 3 * 2
    assert set(training["epoch"]) == {0, 1} and set(before["replicate"]) == {0, 1}
    assert training.groupby("judged")["replicate"].unique().map(set).to_dict() == {
        True: {0, 1}, False: {2},
    }  # fmt: skip
    assert set(before.query("method == 'batch_norm'")["layer"]) == set(range(8)), "one more layer"
    assert set(before.query("method == 'pretrained'")["pretraining_steps"]) == {2, 4}
    assert set(before.query("method == 'scale_matched'")["pretraining_steps"]) == {4}
    assert (before["step"] == before["pretraining_steps"].gt(0) * 0.1).all()


def test_controls_have_the_scale_that_they_say():
    _, found = every_method()
    last = found["pretraining"].query("layer == 6").set_index(["method", "pretraining_steps"])
    size = last["root_mean_square"].groupby(level=[0, 1]).mean()
    assert size["scale_matched", 4] == pytest.approx(size["pretrained", 4], rel=0.2)
    assert size["unit_scale", 0] == pytest.approx(1, abs=0.4)
    bound = last["rank_bound"].groupby(level=[0, 1]).mean()
    assert bound["orthogonalised", 0] > bound["vanilla", 0]


def test_one_step_is_chosen_for_all_lengths_by_r_on_the_selection_replicates():
    config = Pretraining(
        **TINY,
        protocol="text",
        methods=["pretrained"],
        pretraining_steps=[2, 5],
        steps=[1e-4, 0.1],
        learning_rates=[0.1],
        selection_replicates=2,
    )
    before = tables_of(config)["pretraining"]
    tried = before[~before["judged"]]
    assert set(tried["replicate"]) == {2, 3} and set(tried["pretraining_steps"]) == {5}
    assert set(tried["layer"]) == {6} and set(tried["step"]) == {1e-4, 0.1}
    best = tried.groupby("step")["rank_bound"].min().idxmax()
    assert set(before[before["judged"]]["step"]) == {best}
    assert set(before[before["judged"]]["pretraining_steps"]) == {2, 5}


def test_a_run_goes_on_without_pre_training_again(monkeypatch):
    config = dataclasses.replace(every_method()[0], methods=["pretrained"], batch_size=512)
    states: list[dict] = []

    def keep(make_state):
        states.append({name: tensor.clone() for name, tensor in make_state().items()})

    whole = rows_of(config, "training", checkpoint=keep)
    monkeypatch.setattr(study, "pretrained", None)
    again = rows_of(config, "training", restored=states[1])
    assert again == [row for row in whole if row.epoch == 1]
