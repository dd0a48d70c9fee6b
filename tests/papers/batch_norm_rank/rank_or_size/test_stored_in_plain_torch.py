"""Two initializations of the stored figure rank-or-size again, with plain torch and own draws."""

import pytest
import torch
from in_memory import kept_tables
from sklearn.datasets import load_digits
from torch.nn import functional

from runner.papers.batch_norm_rank.rank_or_size.tables import networks


def accuracy_in_plain_torch(unit, rate, seed, depth=30, width=64, epochs=12, batch=32):
    """Return the training accuracy in the last epoch of a deep ReLU network with Glorot weights.

    unit: whether biases are zero and every layer is rescaled to root mean square 1, instead of
    PyTorch's biases and no rescaling.
    """
    torch.manual_seed(seed)
    images, labels = load_digits(return_X_y=True)
    mixed = torch.randperm(len(labels))[: 48 * batch]
    x, y = torch.tensor(images, dtype=torch.float32)[mixed] / 16, torch.tensor(labels)[mixed]
    layers = [torch.nn.Linear(64 if not i else width, width) for i in range(depth)]
    layers.append(torch.nn.Linear(width, 10))
    with torch.no_grad():
        H = x[:512]
        for layer in layers:
            torch.nn.init.xavier_normal_(layer.weight)
            if unit:
                layer.bias.zero_()
                if layer is not layers[-1]:
                    layer.weight /= layer(H).relu().square().mean().sqrt()
            H = layer(H).relu()
    parameters = [tensor for layer in layers for tensor in layer.parameters()]
    for _ in range(epochs):
        hits = 0
        for chosen in torch.randperm(len(y)).split(batch):
            H = x[chosen]
            for layer in layers[:-1]:
                H = layer(H).relu()
            logits = layers[-1](H)
            hits += int((logits.argmax(1) == y[chosen]).sum())
            gradients = torch.autograd.grad(functional.cross_entropy(logits, y[chosen]), parameters)
            with torch.no_grad():
                for tensor, gradient in zip(parameters, gradients, strict=True):
                    tensor -= rate * gradient
    return hits / len(y)


@pytest.mark.long
@pytest.mark.parametrize(("family", "unit"), [("signed", True), ("default_biases", False)])
def test_the_stored_accuracies_are_those_of_plain_torch(family, unit):
    """The median of five networks lies in the range of the stored eight."""
    stored = networks(kept_tables("rank-or-size")).query("family == @family")
    (rate,) = set(stored["learning_rate"])
    own = sorted(accuracy_in_plain_torch(unit, rate, seed) for seed in range(5))
    low, high = stored["train_accuracy"].min(), stored["train_accuracy"].max()
    assert low - 0.02 < own[2] < high + 0.02, own
    assert (own[2] > 0.4) == unit
