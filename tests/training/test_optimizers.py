"""The stacked optimizers against torch's own, one network at a time."""

import pytest
import torch

from runner.training.optimizers import MOMENTUM, OPTIMIZERS

TORCHS = {
    "sgd": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate),
    "momentum": lambda parameters, rate: torch.optim.SGD(parameters, lr=rate, momentum=MOMENTUM),
    "adam": lambda parameters, rate: torch.optim.Adam(parameters, lr=rate),
}
RATES = torch.tensor([0.1, 0.02, 0.003], dtype=torch.float64)


def gradient(value):
    """Of sum of theta^4 / 4 + theta."""
    return value**3 + 1


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_each_network_steps_as_with_torchs_optimizer_at_its_own_rate(name):
    assert set(TORCHS) == set(OPTIMIZERS)
    generator = torch.Generator().manual_seed(0)
    shapes = {"a": (3, 4), "b": (3, 2, 5)}
    stack = {
        key: torch.randn(shape, generator=generator, dtype=torch.float64)
        for key, shape in shapes.items()
    }
    alone = [{key: value[r].clone() for key, value in stack.items()} for r in range(3)]
    optimizer = OPTIMIZERS[name](stack)
    theirs = [
        TORCHS[name](list(p.values()), float(rate)) for p, rate in zip(alone, RATES, strict=True)
    ]
    for _ in range(7):
        optimizer.step({key: gradient(value) for key, value in stack.items()}, RATES)
        for parameters, other in zip(alone, theirs, strict=True):
            for value in parameters.values():
                value.grad = gradient(value)
            other.step()
    for key, value in stack.items():
        torch.testing.assert_close(value, torch.stack([p[key] for p in alone]))
