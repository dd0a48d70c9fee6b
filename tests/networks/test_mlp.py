from math import inf

import pytest
import torch
from torch import nn

from runner.core.errors import InputError
from runner.core.streams import generators
from runner.networks.convolutional import BatchNorm
from runner.networks.initialization import INITIALIZATIONS, draw
from runner.networks.mlp import MLP
from runner.networks.normalization import batch_norm_no_mean
from runner.training.classification import loss_and_hits, sgd_step

SIZES = [6, 5, 5, 5, 3]
NORMALIZATIONS = ["none", "batch", "batch_no_mean", "layer", "rms"]


class RootMeanSquareNorm(nn.Module):
    """Batch normalization without the mean, written as the definition says it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))
        self.register_buffer("square", torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        square = x.pow(2).mean(0) if self.training else self.square
        if self.training:
            self.square = 0.9 * self.square + 0.1 * square.detach()
        return x / (square + 1e-5).sqrt() * self.scale + self.shift


class ShiftedRMSNorm(nn.RMSNorm):
    """RMS norm of torch, with a shift."""

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=1e-5)
        self.shift = nn.Parameter(torch.zeros(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) + self.shift


def stack(normalization="none", replicates=3, dtype=torch.float64) -> MLP:
    weights, biases = draw("pytorch", SIZES, generators(0, replicates, "weights"), dtype)
    return MLP(weights, biases, "relu", normalization)


def module(network: MLP, r: int) -> nn.Sequential:
    """Network r of the stack as a torch module with the same weights."""
    layers = []
    for layer in range(1, network.depth + 2):
        W = network.parameters[f"W{layer}"][r].detach()
        b = network.parameters.get(f"b{layer}")
        linear = nn.Linear(W.shape[1], W.shape[0], bias=b is not None, dtype=W.dtype)
        linear.weight.data.copy_(W)
        if b is not None:
            linear.bias.data.copy_(b[r].detach())
        layers.append(linear)
        if layer <= network.depth:
            norms = {"batch": nn.BatchNorm1d, "batch_no_mean": RootMeanSquareNorm}
            norms |= {"layer": nn.LayerNorm, "rms": ShiftedRMSNorm}
            if network.normalization in norms:
                layers.append(norms[network.normalization](W.shape[0]).to(W.dtype))
            layers.append(nn.ReLU())
    return nn.Sequential(*layers)


def batches(count: int, replicates: int = 3, seed: int = 1):
    stream = torch.Generator().manual_seed(seed)
    for _ in range(count):
        x = torch.randn(replicates, 8, SIZES[0], generator=stream, dtype=torch.float64)
        yield x, torch.randint(SIZES[-1], (replicates, 8), generator=stream)


def train(network: MLP, rates: torch.Tensor, data) -> None:
    parameters = [tensor.requires_grad_() for tensor in network.parameters.values()]
    for x, labels in data:
        losses, _ = loss_and_hits(network.logits(x), labels)
        sgd_step(losses, parameters, rates)


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_stack_trains_as_torch_modules_do_one_by_one(normalization):
    network = stack(normalization)
    modules = [module(network, r) for r in range(3)]
    rates = torch.tensor([0.02, 0.1, 0.5], dtype=torch.float64)
    train(network, rates, batches(4))
    for r, alone in enumerate(modules):
        optimizer = torch.optim.SGD(alone.parameters(), lr=float(rates[r]))
        for x, labels in batches(4):
            optimizer.zero_grad()
            nn.functional.cross_entropy(alone(x[r]), labels[r]).backward()
            optimizer.step()
        alone.eval()
    ((x, _),) = batches(1, seed=2)
    evaluated = network.logits(x, "evaluate")
    for r, alone in enumerate(modules):
        torch.testing.assert_close(evaluated[r].mT, alone(x[r]))


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
def test_a_network_of_a_stack_is_the_network_alone(normalization):
    together = stack(normalization, replicates=3, dtype=torch.float32)
    alone = together.select(torch.tensor([1]))
    data = [(x.float(), labels) for x, labels in batches(6)]
    train(together, torch.tensor([0.3, 0.1, 0.2]), data)
    train(alone, torch.tensor([0.1]), [(x[1:2], labels[1:2]) for x, labels in data])
    for name, tensor in alone.state().items():
        torch.testing.assert_close(together.state()[name][1:2], tensor)


def test_probing_changes_no_running_statistics_and_training_does():
    network = stack("batch")
    before = {name: tensor.clone() for name, tensor in network.running.items()}
    ((x, _),) = batches(1)
    probed = network.logits(x, "probe")
    assert all(torch.equal(before[name], tensor) for name, tensor in network.running.items())
    torch.testing.assert_close(network.logits(x, "train"), probed)
    assert not torch.equal(before["mean1"], network.running["mean1"])


def test_a_skip_connection_adds_the_layer_weighted_by_gamma():
    weights, biases = draw("pytorch", [5, 5, 5, 2], generators(0, 2, "w"), torch.float64)
    network = MLP(weights, biases, "linear", "none", skip=0.25)
    x = torch.randn(2, 4, 5, dtype=torch.float64)
    H = x.mT
    for W, b in zip(weights[:2], biases[:2], strict=True):
        H = H + 0.25 * (W @ H + b[..., None])
    torch.testing.assert_close(list(network.hidden(x))[-1], H)


def test_stacks_are_selected_and_restored_without_sharing():
    network = stack("batch")
    chosen = network.select(torch.tensor([2, 0, 2]))
    assert len(chosen) == 3
    assert torch.equal(chosen.parameters["W2"][2], network.parameters["W2"][2])
    with torch.no_grad():
        chosen.parameters["W2"].zero_()
    assert network.parameters["W2"].any()
    chosen.restore(network.select(torch.tensor([1, 1, 0])).state())
    assert torch.equal(chosen.parameters["W2"][1], network.parameters["W2"][1])


@pytest.mark.parametrize("name", list(INITIALIZATIONS))
def test_initialisations_have_the_moments_they_state(name):
    (W, _), (b, _) = draw(name, [300, 200, 100], generators(0, 2, "w"), torch.float64)
    n_in = 300
    variance = {"pytorch": 1 / (3 * n_in), "asymmetric": 1 / (3 * n_in), "he": 2 / n_in, "unit": 1}
    variance |= {"orthogonal": 2 / n_in, "gain": 1 / n_in}
    mean = n_in**-0.5 if name == "asymmetric" else 0
    error = 5 * (variance[name] / W.numel()) ** 0.5
    assert abs(W.mean() - mean) < error
    assert abs(W.var() / variance[name] - 1) < 5 * (2 / W.numel()) ** 0.5
    assert b.any() == (name in ("pytorch", "asymmetric"))
    if name == "pytorch":  # uniform within torch's bound
        assert 0.999 < W.abs().max() * n_in**0.5 <= 1


def test_draws_of_a_replicate_do_not_depend_on_the_others_or_on_the_dtype():
    three = draw("pytorch", SIZES, generators(0, 3, "w"), torch.float64)[0]
    one = draw("pytorch", SIZES, generators(0, 1, "w"), torch.float32)[0]
    for W, alone in zip(three, one, strict=True):
        assert torch.equal(W[:1].float(), alone)


def test_normalization_without_mean_serves_images_too():
    x = torch.randn(7, 4, 3, 2, dtype=torch.float64)
    scale, shift = torch.rand(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    y = batch_norm_no_mean(x, scale, shift, None, training=True)
    rms = (x.pow(2).mean((0, 2, 3), keepdim=True) + 1e-5).sqrt()
    torch.testing.assert_close(y, x / rms * scale[:, None, None] + shift[:, None, None])


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="did you mean 'pytorch'"):
        draw("pytorhc", SIZES, generators(0, 1, "w"))
    with pytest.raises(InputError, match="did you mean 'layer'"):
        stack("layr")
    norm = BatchNorm(2, centred=True)
    norm.mode = "test"
    with pytest.raises(InputError, match="mode=test is unknown"):
        norm(torch.zeros(2, 2, 1, 1))


@pytest.mark.parametrize("normalization", NORMALIZATIONS[1:])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_huge_gamma_is_no_skip_connection(normalization, dtype):
    """Squares of what goes into the normalization would leave the range of the dtype."""
    weights, biases = draw("pytorch", [5, 5, 5, 2], generators(0, 2, "w"), dtype)
    x = torch.randn(2, 40, 5, dtype=dtype)
    hidden = {
        skip: torch.stack(list(MLP(weights, biases, "linear", normalization, skip).hidden(x)))
        for skip in (1e7, 1e9, 1e19, 1e38, inf)
    }
    for skip in (1e9, 1e19, 1e38):
        torch.testing.assert_close(hidden[skip], hidden[inf], atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(hidden[1e7], hidden[inf], atol=1e-2, rtol=1e-2)  # without epsilon
