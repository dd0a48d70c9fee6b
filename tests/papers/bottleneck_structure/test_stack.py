"""The stack of depths: every network in it is the network alone."""

from functools import partial

import pytest
import torch
from bench.growth import lent

from runner.core.streams import generator
from runner.papers.bottleneck_structure import stack as stacks
from runner.papers.bottleneck_structure import training
from runner.papers.bottleneck_structure.latent import draw_task
from runner.papers.bottleneck_structure.networks import Network
from runner.papers.bottleneck_structure.recipes import RECIPES, Recipe
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.training import RidgeTrainer, start
from runner.training.schedules import cosine_decay

DEPTHS = [6, 4, 4, 3, 2]
F64, ALONE = torch.float64, lent(torch.device("cpu"))


def randn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=F64)


def batch(count: int, samples: int = 11) -> tuple[torch.Tensor, torch.Tensor]:
    xs = [randn(3, samples, seed=r) for r in range(count)]
    ys = [randn(2, samples, seed=100 + r) for r in range(count)]
    return torch.stack(xs), torch.stack(ys)


def new_stack(depths: list[int], replicates: list[int], dtype=F64) -> DepthStack:
    return start(
        DepthStack(depths, 7, 3, 2, dtype=dtype),
        replicates,
        RECIPES["annealed"],
        partial(generator, 0),
    )


def test_gradients_equal_automatic_differentiation():
    stack, (x, y) = new_stack(DEPTHS, list(range(5))), batch(5)
    cost = stack.descend(x, y)
    for r in range(len(DEPTHS)):
        network = stack.network(r)
        parameters = [p.requires_grad_() for p in (*network.weights, *network.biases)]
        expected = (network.activations(x[r].mT)[-1] - y[r].mT).square().sum(1).mean()
        torch.testing.assert_close(cost[r], expected.detach())
        gradients = torch.autograd.grad(expected, parameters)
        views = _gradient_network(stack, r)
        for found, gradient in zip((*views.weights, *views.biases), gradients, strict=True):
            torch.testing.assert_close(found, gradient)


def _gradient_network(stack: DepthStack, r: int) -> Network:
    """The gradient of network r in the shape of a network."""
    copy = DepthStack(stack.depths, stack.width, stack.d_in, stack.d_out, dtype=F64)
    copy.parameters.copy_(stack.gradient)
    return copy.network(r)


def test_outputs_are_those_of_the_networks():
    stack, (x, _) = new_stack(DEPTHS, list(range(5))), batch(5)
    outputs = stack.predict(x)
    for r in range(5):
        torch.testing.assert_close(outputs[r].mT, stack.network(r).activations(x[r].mT)[-1])


@pytest.mark.parametrize("recipe", RECIPES)
def test_a_network_trained_in_the_stack_equals_the_same_network_alone(recipe):
    (x, y), replicates, steps = batch(5), [0, 1, 0, 2, 1], 60
    stack = new_stack(DEPTHS, replicates)
    RidgeTrainer(stack, RECIPES[recipe], 1e-3, 5e-3, steps).run(
        lambda b: [(x, y)], lent(torch.device("cpu"))
    )
    for r, (L, replicate) in enumerate(zip(DEPTHS, replicates, strict=True)):
        alone = new_stack([L], [replicate])
        data = [(x[r : r + 1], y[r : r + 1])]
        RidgeTrainer(alone, RECIPES[recipe], 1e-3, 5e-3, steps).run(
            lambda b, data=data: data, ALONE
        )
        ours, its = stack.network(r), alone.network(0)
        for a, b in zip((*ours.weights, *ours.biases), (*its.weights, *its.biases), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-7, atol=1e-9)


def test_training_equals_adam_on_the_regularised_loss():
    (x, y), steps, ridge = batch(1), 25, 0.01
    stack = new_stack([4], [0])
    network = stack.network(0)
    parameters = [p.requires_grad_() for p in (*network.weights, *network.biases)]
    trainer = RidgeTrainer(stack, Recipe(1.0, 5e-3), ridge, 5e-3, steps)
    adam = torch.optim.Adam(parameters, lr=5e-3, betas=trainer.adam.defaults["betas"])
    for step in range(steps):
        trainer.advance((x, y))
        adam.param_groups[0]["lr"] = 5e-3 * cosine_decay(step, steps)
        cost = (network.activations(x[0].mT)[-1] - y[0].mT).square().sum(1).mean()
        adam.zero_grad()
        (cost + ridge * network.parameter_norm()).backward()
        adam.step()
    trained = stack.network(0)
    for a, b in zip((*trained.weights, *trained.biases), parameters, strict=True):
        torch.testing.assert_close(a, b.detach(), rtol=1e-6, atol=1e-8)


def test_a_narrower_network_fits_into_the_stack():
    stack = DepthStack([3], 7, 3, 2, dtype=F64)
    small = Network(
        [randn(4, 3, seed=1), randn(4, 4, seed=2), randn(2, 4, seed=3)],
        [randn(4, seed=4), randn(4, seed=5), randn(2, seed=6)],
    )
    stack.load(0, small)
    x = randn(5, 3, seed=7)
    torch.testing.assert_close(stack.predict(x.mT[None])[0].mT, small.activations(x)[-1])


def test_depths_out_of_order_are_refused():
    with pytest.raises(ValueError, match="depths"):
        DepthStack([3, 4], 7, 3, 2)
    with pytest.raises(ValueError, match="depths"):
        DepthStack([3, 1], 7, 3, 2)


def test_the_annealed_ridge_is_off_then_high_then_lambda():
    recipe, steps = RECIPES["annealed"], 6000
    course = [recipe.ridge_factor(step, steps) for step in range(steps)]
    assert course[0] == course[199] == 0
    assert 0 < course[300] < course[800] < 5
    assert course[900] == course[3599] == 5
    assert course[3600] == course[-1] == 1
    assert {RECIPES["plain"].ridge_factor(step, steps) for step in range(steps)} == {1.0}


def weakened(stack: DepthStack) -> DepthStack:
    """The stack with one neuron of each layer cut off from what is before it."""
    for W, b in zip(stack.W[:-1], stack.b, strict=False):
        for r in range(len(W)):
            W[r, r] = 0
            b[r, r] = 0
    return stack


def test_thinning_takes_out_the_dead_neurons_and_changes_no_output():
    stack, (x, y) = weakened(new_stack(DEPTHS, list(range(5)))), batch(5)
    before, networks = stack.predict(x).clone(), [stack.network(r) for r in range(5)]
    stack.thin()
    assert stack.widths == [7, 7, 7, 6, 7]  # seven where it is the first or last of some network
    torch.testing.assert_close(stack.predict(x), before)
    stack.descend(x, y)
    for r, network in enumerate(networks):
        thinned = stack.network(r)
        assert [W.shape for W in thinned.weights] == [W.shape for W in network.weights]
        assert thinned.parameter_norm() <= network.parameter_norm()


def test_a_network_is_thinned_in_the_stack_as_alone(monkeypatch):
    monkeypatch.setattr(training, "THIN_EVERY", 20)
    monkeypatch.setattr(training, "STEPS_AT_ONCE", 20)
    monkeypatch.setattr(stacks, "THIN", 1.0)
    (x, y), steps, recipe = batch(5), 60, RECIPES["plain"]
    stack = new_stack(DEPTHS, list(range(5)))
    RidgeTrainer(stack, recipe, 1e-2, 5e-3, steps).run(lambda b: [(x, y)], ALONE)
    assert min(stack.widths) < 7
    for r, L in enumerate(DEPTHS):
        alone = new_stack([L], [r])
        data = [(x[r : r + 1], y[r : r + 1])]
        RidgeTrainer(alone, recipe, 1e-2, 5e-3, steps).run(lambda b, data=data: data, ALONE)
        for ours, its in zip(stack.network(r).weights, alone.network(0).weights, strict=True):
            a, b = torch.linalg.svdvals(ours), torch.linalg.svdvals(its)  # whatever the order is
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-8)


def test_training_goes_on_from_a_thinned_state(monkeypatch):
    monkeypatch.setattr(training, "THIN_EVERY", 20)
    monkeypatch.setattr(stacks, "THIN", 1.6)
    (x, y), ends = batch(5), []
    for stop in (None, 45):
        stack = new_stack(DEPTHS, list(range(5)))
        trainer = RidgeTrainer(stack, RECIPES["plain"], 1e-2, 5e-3, 60)
        while trainer.step < (stop or 60):
            trainer.thin()
            trainer.advance((x, y))
        if stop:
            state = {name: tensor.clone() for name, tensor in trainer.state().items()}
            stack = new_stack(DEPTHS, list(range(5)))
            trainer = RidgeTrainer(stack, RECIPES["plain"], 1e-2, 5e-3, 60)
            trainer._restore(state)
            while trainer.step < 60:
                trainer.thin()
                trainer.advance((x, y))
        ends.append(stack.parameters.clone())
        assert min(stack.widths) < 7
    assert torch.equal(*ends)


@pytest.mark.long
def test_thinning_with_weight_decay_throughout_ends_at_the_same_loss(monkeypatch):
    """From the first steps on neurons are removed; figure 2 is trained in this way."""
    monkeypatch.setattr(training, "THIN_EVERY", 100)
    task, ridge, steps = draw_task(2, 100, 10, generator(0, 0, "data")), 3e-3, 1000
    data = (task.x[None].float(), task.y[None].float())
    recipe, losses, widths = RECIPES["constant"], [], []
    for thin in (True, False):
        stack = start(DepthStack([8], 16, 20, 20), [0], recipe, partial(generator, 0))
        trainer = RidgeTrainer(stack, recipe, ridge, 3e-3, steps, thin)
        trainer.run(lambda block: [data], ALONE)
        network = stack.network(0)
        cost = network.cost(task.x.mT, task.y.mT)
        losses.append(cost + ridge * float(network.parameter_norm()))
        widths.append(min(stack.widths))
    assert widths[0] < 16 == widths[1]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
