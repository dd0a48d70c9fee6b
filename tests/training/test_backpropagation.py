"""The gradient that is written out, against automatic differentiation."""

from math import inf

import pytest
import torch

from runner.core.errors import InputError
from runner.core.streams import generators
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.training import backpropagation
from runner.training.classification import descend, loss_and_hits, sgd_step

RATES = torch.tensor([0.1, 0.5, 1.0], dtype=torch.float64)


def stack(activation="relu", normalization="none") -> MLP:
    weights = draw("pytorch", [20, 16, 16, 16, 10], generators(0, 3, "initialisation"), dtype)
    return MLP(*weights, activation, normalization)


dtype = torch.float64


def minibatch(step: int):
    stream = torch.Generator().manual_seed(step)
    x = torch.randn(3, 32, 20, dtype=dtype, generator=stream)
    return x, torch.randint(10, (3, 32), generator=stream)


def by_differentiation(network: MLP, x, labels, rates) -> torch.Tensor:
    parameters = [tensor.requires_grad_() for tensor in network.parameters.values()]
    logits = network.logits(x)
    sgd_step(loss_and_hits(logits, labels)[0], parameters, rates)
    return logits.detach()


@pytest.mark.parametrize("normalization", ["none", "batch", "batch_no_mean"])
@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_steps_are_those_of_automatic_differentiation(activation, normalization):
    ours = stack(activation, normalization)
    theirs = ours.map(torch.clone)
    for step in range(5):
        logits = backpropagation.step(ours, *minibatch(step), RATES)
        torch.testing.assert_close(logits, by_differentiation(theirs, *minibatch(step), RATES))
    start = stack(activation, normalization).state()
    for name, tensor in theirs.state().items():
        torch.testing.assert_close(ours.state()[name], tensor.detach(), rtol=1e-12, atol=1e-13)
        assert not torch.equal(ours.state()[name], start[name]), name


@pytest.mark.parametrize("normalization", ["none", "batch", "batch_no_mean"])
def test_a_network_that_diverges_changes_no_other(normalization):
    together, alone = stack(normalization=normalization), stack(normalization=normalization)
    rates = RATES * torch.tensor([1, inf, 1])
    for step in range(20):
        backpropagation.step(together, *minibatch(step), rates)
        backpropagation.step(alone, *minibatch(step), RATES)
    assert not together.parameters["W4"][1].isfinite().all()
    for name, tensor in alone.state().items():
        assert torch.equal(together.state()[name][[0, 2]], tensor[[0, 2]])


def test_nan_in_an_input_reaches_the_loss_and_the_weights():
    """As with automatic differentiation: a ReLU lets nan pass."""
    network = stack()
    x, labels = minibatch(0)
    x[0, 0] = float("nan")
    logits = backpropagation.step(network, x, labels, RATES)
    assert logits[0].isnan().any() and network.parameters["W2"][0].isnan().any()
    assert logits[1:].isfinite().all()


def test_skip_connections_are_left_to_automatic_differentiation():
    weights = draw("pytorch", [16, 16, 10], generators(0, 1, "initialisation"))
    assert backpropagation.is_written_out_for(MLP(*weights))
    assert not backpropagation.is_written_out_for(MLP(*weights, skip=0.5))


def test_an_activation_that_the_kernels_do_not_know_is_not_taken_for_another():
    """It is left to automatic differentiation, which follows the forward pass."""
    network, (x, labels) = stack("tanh"), minibatch(0)
    p = network.parameters
    H = x.mT
    for layer in range(1, 4):
        H = torch.tanh(p[f"W{layer}"] @ H + p[f"b{layer}"][..., None])
    torch.testing.assert_close(network.logits(x), p["W4"] @ H + p["b4"][..., None])
    with pytest.raises(InputError, match="activation=tanh has no compiled gradient"):
        backpropagation.step(network.map(torch.clone), x, labels, RATES)
    ours, theirs = network.map(torch.clone), network.map(torch.clone)
    descend(ours, x, labels, RATES)
    by_differentiation(theirs, x, labels, RATES)
    for name, tensor in theirs.state().items():
        assert torch.equal(ours.state()[name], tensor)
