import pytest
import torch
from torch import nn

from runner.papers.norm_tuning.bn_only.stacks import BETA2_START, BatchNormTuned, NormTuned, ReluSum
from runner.training.optimizers import SGD

R, N, d, m = 3, 40, 4, 9
F32 = torch.float32


@pytest.fixture
def weights():
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    return {"W1": draw(R, m, d), "W2": draw(R, d, m) / m**0.5, "x": draw(R, N, d), "y": draw(R, N)}


def descend(stack, x, labels, rate):
    """One step of SGD; the losses before it."""
    losses, gradients = stack.gradients(x, labels)
    SGD(stack.parameters).step(gradients, torch.full((len(x),), rate, dtype=x.dtype))
    return losses


def formula(W1, W2, x, p):
    """f(x) of paper A, Section 4.1, for one replicate, written as the paper writes it."""
    hidden = torch.relu(torch.diag(p["gamma1"]) @ (W1 @ x.T) + p["beta1"][:, None])
    return torch.relu(torch.diag(p["gamma2"]) @ (W2 @ hidden) + p["beta2"][:, None]).sum(0)


def random_parameters(stack):
    generator = torch.Generator().manual_seed(1)
    for value in stack.parameters.values():
        value.add_(torch.randn(value.shape, generator=generator, dtype=value.dtype))


def test_prediction_is_the_papers_formula(weights):
    stack = NormTuned(weights["W1"], weights["W2"])
    random_parameters(stack)
    predicted = stack.predict(weights["x"])
    for r in range(R):
        p = {name: value[r] for name, value in stack.parameters.items()}
        expected = formula(weights["W1"][r], weights["W2"][r], weights["x"][r], p)
        torch.testing.assert_close(predicted[r], expected)


def test_a_step_follows_the_gradient_of_the_mean_squared_error(weights):
    stack = NormTuned(weights["W1"], weights["W2"])
    random_parameters(stack)
    before = {name: value.clone() for name, value in stack.parameters.items()}
    losses = descend(stack, weights["x"], weights["y"], 0.1)
    for r in range(R):
        p = {name: value[r].clone().requires_grad_() for name, value in before.items()}
        f = formula(weights["W1"][r], weights["W2"][r], weights["x"][r], p)
        loss = ((f - weights["y"][r]) ** 2).mean()
        loss.backward()
        torch.testing.assert_close(losses[r], loss.detach())
        for name, value in p.items():
            expected = before[name][r] - 0.1 * value.grad
            torch.testing.assert_close(stack.parameters[name][r], expected)


def test_a_step_of_the_dense_network_follows_the_gradient(weights):
    W = weights["W1"][:, :d].clone().requires_grad_()
    loss = ((torch.relu(weights["x"] @ W.mT).sum(-1) - weights["y"]) ** 2).mean(-1)
    loss.sum().backward()
    stack = ReluSum(W.detach().clone())
    found = descend(stack, weights["x"], weights["y"], 0.1)
    torch.testing.assert_close(found, loss.detach())
    torch.testing.assert_close(stack.parameters["W"], (W - 0.1 * W.grad).detach())


class Reference(nn.Module):
    """One replicate with torch's own batch normalization."""

    def __init__(self, W1, W2):
        super().__init__()
        self.W1, self.W2 = W1, W2
        self.norm1, self.norm2 = nn.BatchNorm1d(m).double(), nn.BatchNorm1d(d).double()
        nn.init.constant_(self.norm2.bias, BETA2_START)

    def forward(self, x):
        hidden = self.norm1(x @ self.W1.T).relu()
        return self.norm2(hidden @ self.W2.T).relu().sum(-1)


def test_batch_statistics_are_those_of_torchs_own_module(weights):
    stack = BatchNormTuned(weights["W1"], weights["W2"])
    references = [Reference(weights["W1"][r], weights["W2"][r]) for r in range(R)]
    for _ in range(3):
        descend(stack, weights["x"], weights["y"], 0.05)
        for r, reference in enumerate(references):
            optimizer = torch.optim.SGD(reference.parameters(), lr=0.05)
            loss = nn.functional.mse_loss(reference(weights["x"][r]), weights["y"][r])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    for r, reference in enumerate(references):
        expected = reference.eval()(weights["x"][r]).detach()
        torch.testing.assert_close(stack.predict(weights["x"])[r], expected)


@pytest.mark.parametrize("kind", [NormTuned, BatchNormTuned])
def test_a_replicate_in_the_stack_is_the_replicate_alone(weights, kind):
    stack = kind(weights["W1"], weights["W2"])
    alone = kind(weights["W1"][1:2], weights["W2"][1:2])
    for _ in range(5):
        descend(stack, weights["x"], weights["y"], 0.05)
        descend(alone, weights["x"][1:2], weights["y"][1:2], 0.05)
    for name, value in alone.parameters.items():
        torch.testing.assert_close(stack.parameters[name][1:2], value)


def test_a_step_in_float32_loses_no_small_contribution_of_a_sample(weights):
    """Sums over a minibatch are taken before they meet the parameters, which are much larger."""
    frozen = (weights["W1"], weights["W2"])
    exact, single = (NormTuned(*(W.to(dtype) for W in frozen)) for dtype in (torch.float64, F32))
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(R, 4096, d, dtype=torch.float64, generator=generator)
    labels = torch.ones(R, 4096, dtype=torch.float64)
    before = {name: tensor.clone() for name, tensor in exact.parameters.items()}
    for stack, dtype in ((exact, torch.float64), (single, F32)):
        descend(stack, x.to(dtype), labels.to(dtype), 1e-4)
    for name, start in before.items():
        step, found = (s.parameters[name].double() - start for s in (exact, single))
        assert (found - step).norm() < 5e-3 * step.norm(), name


def test_a_unit_is_dead_that_no_input_switches_on(weights):
    stack = NormTuned(weights["W1"], weights["W2"])
    assert (stack.dead(weights["x"]) == 0).all()
    stack.parameters["beta2"][1, :3] = -1e6
    assert stack.dead(weights["x"]).tolist() == [0, 3 / d, 0]
    stack.parameters["beta2"][2, 1] = torch.nan
    assert stack.dead(weights["x"]).isnan().tolist() == [False, False, True]
