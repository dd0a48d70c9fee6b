"""Steps that a GPU replays, on a pretended one."""

import pytest
import torch
from pretended_cuda import CUDA, pretended_cuda

from runner.training.cuda_graph import EAGER_STEPS, Captured


def decaying(theta, calls):
    """A step that moves theta towards x; it returns the distance before."""

    def step(x):
        calls.append(x)
        distance = (x - theta).square().sum()
        theta.lerp_(x, 0.25)
        return distance

    return step


def test_replayed_steps_have_the_numbers_of_the_steps_themselves():
    given = torch.arange(24.0).view(8, 3).sin()
    theta, expected = torch.zeros(3), []
    for x in given:
        expected.append(decaying(theta, [])(x).clone())
    with pretended_cuda():
        calls, on_cuda = [], torch.zeros(3, device=CUDA)
        step = Captured(decaying(on_cuda, calls))
        found = [step(x).cpu() for x in given.to(CUDA)]
        assert torch.equal(on_cuda.cpu(), theta)
    assert torch.equal(torch.stack(found), torch.stack(expected))
    assert len(calls) == EAGER_STEPS + 1 < len(given)


def test_on_the_cpu_a_step_is_itself():
    calls, theta = [], torch.zeros(3)
    step = Captured(decaying(theta, calls))
    for x in torch.ones(8, 3):
        step(x)
    assert len(calls) == 8


def test_a_step_that_waits_for_the_device_cannot_be_captured():
    with pretended_cuda():
        step = Captured(lambda x: x * x.sum().item())
        x = torch.ones(3, device=CUDA)
        for _ in range(EAGER_STEPS):
            step(x)
        with pytest.raises(RuntimeError, match="when stream is capturing"):
            step(x)
