"""The table of activations, against torch; and what the names of parameters stand for."""

from math import sqrt

import pytest
import torch
from torch import nn

from runner.core import choices
from runner.core.errors import InputError
from runner.core.streams import generators
from runner.networks.activations import ACTIVATIONS, activation_of
from runner.networks.initialization import INITIALIZATIONS, draw
from runner.networks.mlp import MLP
from runner.networks.modules import mlp
from runner.networks.normalization import NORMALIZATIONS
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.training.classification import descend
from runner.training.optimizers import OPTIMIZERS
from runner.training.schedules import SCHEDULES

TORCHS = {
    "relu": nn.ReLU(),
    "linear": nn.Identity(),
    "tanh": nn.Tanh(),
    "leaky_relu": nn.LeakyReLU(),
    "gelu": nn.GELU(),
}


def swish(Z):
    return Z * torch.sigmoid(Z)


OWN = f"{__name__}:swish"


def test_every_name_has_its_line_in_a_table_and_no_other_has():
    tables = (ACTIVATIONS, NORMALIZATIONS, INITIALIZATIONS, OPTIMIZERS, SCHEDULES)
    assert [tuple(table) for table in tables] == [
        choices.ACTIVATIONS,
        choices.NORMALIZATIONS,
        choices.INITIALIZATIONS,
        choices.OPTIMIZERS,
        choices.SCHEDULES,
    ]


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_values_derivative_slope_and_gain_are_those_of_torch(name):
    z = torch.linspace(-3, 3, 60, dtype=torch.float64, requires_grad=True)
    expected = TORCHS[name](z)
    (slope,) = torch.autograd.grad(expected.sum(), z)
    sigma = activation_of(name)
    assert torch.equal(sigma.function(z.detach().clone()), expected)
    own = z.detach().clone().requires_grad_()
    (found,) = torch.autograd.grad(sigma.function(own * 1).sum(), own)
    torch.testing.assert_close(found, slope)
    if sigma.derivative is not None:
        torch.testing.assert_close(sigma.derivative(expected.detach()).to(slope), slope)
    if sigma.below is not None:
        torch.testing.assert_close(sigma.function(-z.detach().abs()), sigma.below * -z.abs())
    sample = torch.randn(10**6, generator=torch.Generator().manual_seed(0))
    assert TORCHS[name](sample).square().mean().rsqrt().item() == pytest.approx(sigma.gain, 0.01)


def test_known_gains():
    assert ACTIVATIONS["relu"].gain == pytest.approx(sqrt(2)) and ACTIVATIONS["linear"].below == 1
    assert ACTIVATIONS["linear"].gain == pytest.approx(1)


@pytest.mark.parametrize("name", [*ACTIVATIONS, OWN])
@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_step_is_that_of_torchs_gradient(name, normalization):
    """Written out or not, on a stack; the modules are trained by autograd, in float64."""
    weights, biases = draw("pytorch", [6, 5, 5, 4], generators(0, 2, "start"), torch.float64)
    stack = MLP(weights, biases, name, normalization)
    x, labels = torch.randn(2, 9, 6).double(), torch.randint(4, (2, 9))
    alone = [mlp(stack.traced(r, x[r]), name, normalization).train() for r in range(2)]
    rates = torch.tensor([0.1, 0.3], dtype=torch.float64)
    losses, _ = descend(stack, x, labels, rates)
    for r, network in enumerate(alone):
        loss = nn.functional.cross_entropy(network(x[r]), labels[r])
        assert loss.item() == pytest.approx(losses[r].item())
        loss.backward()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter -= rates[r] * parameter.grad
        after = mlp({n: t.detach() for n, t in stack.traced(r, x[r]).items()}, name, normalization)
        for own, theirs in zip(after.parameters(), network.parameters(), strict=True):
            torch.testing.assert_close(own, theirs)


def test_skip_connections_are_in_the_module_too():
    stack = MLP(*draw("he", [5, 5, 5, 3], generators(0, 1, "start")), "tanh", "batch", skip=0.5)
    x = torch.randn(8, 5)
    found = mlp(stack.traced(0, x), "tanh", "batch", skip=0.5)(x)
    torch.testing.assert_close(found, stack.logits(x[None], "evaluate")[0].mT)


def test_gain_keeps_the_variance_of_preactivations_from_layer_to_layer():
    (W, _), _ = draw("gain", [400, 400, 3], generators(0, 1, "start"))
    z = torch.randn(1, 400, 2000)
    for name in ("tanh", "gelu", OWN):
        sigma = activation_of(name)
        after = sigma.gain * W @ sigma.function(z.clone())
        assert after.square().mean().item() == pytest.approx(1, abs=0.05), name


def test_an_unknown_name_is_an_error_everywhere():
    with pytest.raises(InputError, match="activation=reul is unknown: did you mean 'relu'"):
        MLP(*draw("he", [2, 2, 2], generators(0, 1, "start")), "reul")
    with pytest.raises(InputError, match="activation=reul is unknown"):
        RankCollapse(activation="reul")
    with pytest.raises(InputError, match="has no function wish: did you mean 'swish'"):
        activation_of(f"{__name__}:wish")
    with pytest.raises(InputError, match="nowhere_at_all cannot be imported"):
        activation_of("nowhere_at_all:f")
