"""Study `low_rank_training`: its networks, its training, and its rows."""

from dataclasses import replace
from math import log

import numpy as np
import pytest
import torch
from bench.growth import embedded
from in_memory import rows_of, tables_of
from torch import nn

from runner.core.errors import InputError
from runner.papers.training_invariances.low_rank_training import networks, study
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.papers.training_invariances.low_rank_training.problem import INPUT_NORM, draw_problem
from runner.papers.training_invariances.low_rank_training.training import (
    Decayed,
    hits,
    image_losses,
    losses_and_gradients,
    sharpness,
)

TINY = {"width": 6, "channels": 2, "samples": 12, "epochs": 4, "replicates": 2, "gains": [0.5, 1.0]}
TEN = {"classes": 10, "loss_function": "cross_entropy"}


def tiny(**changes):
    return LowRankTraining(**{**TINY, **changes})


def started(config):
    problem = draw_problem(config, embedded).to(torch.device("cpu"), torch.float64)
    return study.starting_stack(config, tuple(problem.x.shape[2:])), problem


def module(parameters, S):
    """Network S of a stack as torch's own layers."""
    weights = [W[S] for W in parameters.values()]
    layers: list[nn.Module] = []
    for number, W in enumerate(weights):
        if W.ndim == 4:
            stride = networks.STRIDES[number]
            layer = nn.Conv2d(W.shape[1], len(W), 3, stride, 1, bias=False, dtype=torch.float64)
        else:
            layer = nn.Linear(W.shape[1], len(W), bias=False, dtype=torch.float64)
            if number == 0 or weights[number - 1].ndim == 4:
                layers.append(nn.Flatten())
        layer.weight.data.copy_(W)
        layers.append(layer)
        if number < len(weights) - networks.TAIL:
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def loss_of(f, y, loss_function):
    if loss_function == "cross_entropy":
        return nn.functional.cross_entropy(f, y)
    z = y * f[:, 0]
    each = {"logistic": nn.functional.softplus(-z), "exponential": torch.exp(-z)}
    return each.get(loss_function, (1 - z) ** 2 / 2).mean()


@pytest.mark.parametrize("architecture", ["mlp", "conv"])
@pytest.mark.parametrize(
    "how", [{}, {"loss_function": "exponential"}, {"loss_function": "squared"}, TEN]
)
def test_networks_losses_and_gradients_are_torch_s(architecture, how):
    config = tiny(architecture=architecture, **how)
    parameters, problem = started(config)
    _, found = losses_and_gradients(parameters, problem.x, problem.y, config.loss_function)
    f = networks.outputs(parameters, problem.x)
    losses = image_losses(f, problem.y, config.loss_function)
    for S, (replicate, *_) in enumerate(study.members(config)):
        net, y = module(parameters, S), problem.y[replicate]
        out = net(problem.x[replicate])
        torch.testing.assert_close(f[S], out.mT)
        loss = loss_of(out, y, config.loss_function)
        torch.testing.assert_close(losses[S].mean(), loss)
        classes = out.argmax(1) if config.classes > 2 else out[:, 0].sign()
        assert torch.equal(hits(f, problem.y)[S], classes == y)
        loss.backward()
        for ours, theirs in zip(found.values(), net.parameters(), strict=True):
            torch.testing.assert_close(ours[S], theirs.grad)


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("sgd", torch.optim.SGD),
        ("momentum", lambda *a, **k: torch.optim.SGD(*a, momentum=0.9, **k)),
        ("adam", torch.optim.Adam),
        ("adamw", torch.optim.AdamW),
    ],
)
def test_decay_is_that_of_torch_s_optimizers(name, theirs):
    config = tiny(weight_decays=[0.0, 0.1], learning_rates=[0.02, 0.05])
    parameters, problem = started(config)
    columns = list(zip(*study.members(config), strict=True))
    rates, decays = (torch.tensor(column, dtype=torch.float64) for column in columns[2:])
    nets = [module(parameters, S) for S in range(len(rates))]
    ours = Decayed(name, parameters, rates, decays)
    for _ in range(5):
        ours.step(losses_and_gradients(parameters, problem.x, problem.y, "logistic")[1])
    for S, (replicate, _, rate, decay) in enumerate(study.members(config)):
        net = nets[S]
        optimizer = theirs(net.parameters(), lr=rate, weight_decay=decay)
        for _ in range(5):
            optimizer.zero_grad()
            loss_of(net(problem.x[replicate]), problem.y[replicate], "logistic").backward()
            optimizer.step()
        for W, parameter in zip(parameters.values(), net.parameters(), strict=True):
            torch.testing.assert_close(W[S], parameter.detach())


def test_sharpness_is_the_largest_eigenvalue_of_the_hessian():
    config = tiny(width=3, replicates=2)
    parameters, problem = started(config)
    parameters = {name: W[:, :, :5] if name == "W1" else W for name, W in parameters.items()}
    x = problem.x.flatten(2)[..., :5].reshape(2, 12, 1, 1, 5)
    found = sharpness(parameters, x, problem.y, "logistic")
    sizes = [W[0].numel() for W in parameters.values()]
    for S, (replicate, *_) in enumerate(study.members(config)):

        def loss(theta, S=S, replicate=replicate):
            parts = theta.split(sizes)
            named = {
                n: p.view(1, *W.shape[1:])
                for (n, W), p in zip(parameters.items(), parts, strict=True)
            }
            f = networks.outputs(named, x[replicate : replicate + 1])
            return image_losses(f, problem.y[replicate : replicate + 1], "logistic").mean()

        theta = torch.cat([W[S].flatten() for W in parameters.values()])
        hessian = torch.autograd.functional.hessian(loss, theta)
        assert float(found[S]) == pytest.approx(float(torch.linalg.eigvalsh(hessian)[-1]), rel=0.02)


def test_images_are_of_the_first_classes_and_of_the_stated_norm():
    for classes in (2, 4):
        how = {} if classes == 2 else {"classes": 4, "loss_function": "cross_entropy"}
        problem = draw_problem(tiny(samples=60, **how), embedded)
        norms = problem.x.square().flatten(2).sum(-1).mean(-1).sqrt()
        torch.testing.assert_close(norms, torch.full_like(norms, INPUT_NORM))
        expected = [-1, 1] if classes == 2 else list(range(4))
        assert problem.y.unique().tolist() == problem.test_y.unique().tolist() == expected
        assert not torch.equal(problem.y[0], problem.y[1])
        more = draw_problem(tiny(samples=60, replicates=3, **how), embedded)
        assert torch.equal(more.x[:2], problem.x)


def test_networks_of_a_replicate_start_with_the_same_draws_by_gain():
    config = tiny(learning_rates=[0.1, 0.05])
    start = study.starting_stack(config, (1, 8, 8))
    for W in start.values():
        torch.testing.assert_close(2 * W[0], W[2])
        assert torch.equal(W[0], W[1]) and not torch.equal(W[0], W[4])


def test_rows_of_a_run():
    found = tables_of(tiny(weight_decays=[0.0, 0.01], optimizer="momentum"))
    training, layers, spectrum = found["training"], found["layers"], found["spectrum"]
    assert set(training["epoch"]) == {0, 1, 2, 4} and set(layers["layer"]) == {3, 4, 5}
    assert len(training) == 4 * 8 and len(layers) == 3 * len(training)
    assert training.query("epoch == 4")["time"].to_numpy() == pytest.approx(4 * 0.05 / 0.1)
    ratio = (1 - layers["remainder"] / layers["frobenius"]).to_numpy()
    assert layers["ratio"].to_numpy() == pytest.approx(ratio)
    assert (layers["remainder"] >= layers["lower"] - 1e-6).all()
    assert (layers["remainder"] <= layers["upper"] + 1e-6).all()
    assert (layers["drift"].isna() == (layers["layer"] == 5)).all()
    start = layers.query("epoch == 0 and layer < 5")
    assert (start["drift"] == 0).all() and (start["initial_invariant"] > 0).all()
    assert set(spectrum["epoch"]) == {4} and len(spectrum) == 8 * (6 + 6 + 1)


def test_epochs_that_are_measured_double():
    assert study.records(tiny(epochs=1)) == [0, 1]
    assert study.records(tiny(epochs=410)) == [0, 1, 3, 6, 12, 25, 51, 102, 205, 410]


def test_a_network_alone_gives_the_numbers_of_the_stack():
    """Equality up to the rounding of batched products."""
    config = tiny(learning_rates=[0.1, 0.05], minibatches=3, dtype="float64", **TEN)
    alone = tables_of(replace(config, replicates=1, gains=[1.0], learning_rates=[0.05]))["layers"]
    keys = ["replicate", "gain", "learning_rate", "epoch", "layer"]
    both = alone.merge(tables_of(config)["layers"], on=keys)
    assert len(both) == len(alone)
    for column, rtol in (("frobenius", 1e-12), ("remainder", 1e-9)):
        np.testing.assert_allclose(both[f"{column}_x"], both[f"{column}_y"], rtol, 1e-12)


def test_black_images_stay_black_and_teach_nothing():
    def black(*asked):
        return embedded(*asked).map(torch.zeros_like)

    assert not draw_problem(tiny(), black).x.any()
    for row in rows_of(tiny(), "training", dataset=black):
        assert row.loss == pytest.approx(log(2)) and row.accuracy == 0 and not row.diverged


def test_divergence_is_marked_and_stays():
    config = tiny(gains=[0.5, 20.0], learning_rates=[5.0], loss_function="squared", epochs=8)
    last = tables_of(config)["layers"].groupby(["gain", "epoch"])["diverged"].last()
    assert last[20.0, 8] and last[20.0, 1] and not last[0.5, 0]


def test_more_images_than_there_are():
    with pytest.raises(InputError, match="samples=2000: digits has .* of the first 2 classes"):
        draw_problem(tiny(samples=2000), embedded)
