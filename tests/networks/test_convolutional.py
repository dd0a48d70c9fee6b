"""VGG-19 and ResNet-50: sizes, parameter counts, initialisation and the modes of batch norm."""

import pytest
import torch
from torch import nn

from runner.core.errors import InputError
from runner.networks.convolutional import BatchNorm, initialize, normalization, scaled
from runner.networks.resnet import Basic, ResNet50, ResNetForCifar
from runner.networks.vgg import VGG19

NETWORKS = [VGG19, ResNet50]
SMALL = 1 / 32


def stream(seed=0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(architecture, norm="batch", init="pytorch"):
    network = architecture(3, 10, norm, SMALL)
    initialize(network, init, stream())
    return network


def weights(network) -> list[tuple[torch.Tensor, int]]:
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    return [(m.weight.detach(), m.weight[0].numel()) for m in layers]


@pytest.mark.parametrize(
    ("architecture", "parameters", "layers"),
    [(VGG19, 20_040_522, 17), (ResNet50, 25_557_032 - (49 - 9) * 3 * 64 - (2049 * 990), 54)],
)
def test_a_network_has_as_many_parameters_as_published(architecture, parameters, layers):
    """VGG-19 as the common implementations for CIFAR-10 report it; ResNet-50 as for 1000 classes,
    but for its first kernel, 3 x 3, and its classifier.
    """
    network = architecture(3, 10)
    assert sum(p.numel() for p in network.parameters()) == parameters
    assert len(weights(network)) == layers
    quarter = architecture(3, 10, multiplier=0.25)
    assert 4 * quarter.classifier.in_features == network.classifier.in_features
    assert scaled(64, 1e-3) == 1


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("norm", ["none", "batch", "batch_no_mean"])
@pytest.mark.parametrize("size", [8, 32])
def test_images_of_any_of_these_sizes_become_logits(architecture, norm, size):
    network = small(architecture, norm)
    x = torch.randn(4, 3, size, size, generator=stream(1))
    H = network.hidden(x)
    assert H.shape == (4, network.classifier.in_features)
    assert network(x).shape == (4, 10)
    assert (H >= 0).all()  # behind a ReLU


@pytest.mark.parametrize("architecture", NETWORKS)
def test_asymmetric_weights_are_positive_with_the_variance_of_pytorchs(architecture):
    """Every weight on [0, 2/sqrt(fan-in)], against [-1/sqrt(fan-in), 1/sqrt(fan-in)]."""
    pairs = zip(
        weights(small(architecture)), weights(small(architecture, init="asymmetric")), strict=True
    )
    for (symmetric, n_in), (asymmetric, _) in pairs:
        bound = n_in**-0.5
        assert symmetric.abs().max() <= bound and symmetric.min() < 0
        assert asymmetric.min() >= 0 and asymmetric.max() <= 2 * bound
        if symmetric.numel() > 1000:
            both = torch.stack([symmetric.flatten(), asymmetric.flatten()]).var(dim=1)
            torch.testing.assert_close(both, torch.full((2,), bound**2 / 3), rtol=0.12, atol=0)


@pytest.mark.parametrize("architecture", NETWORKS)
def test_weights_of_one_stream_are_the_same_however_normalized(architecture):
    kinds = [weights(small(architecture, norm)) for norm in ("none", "batch", "batch_no_mean")]
    for first, second, third in zip(*kinds, strict=True):
        assert first[0].equal(second[0]) and first[0].equal(third[0])


def test_batch_norm_is_torchs_in_training_and_in_evaluation():
    x = 3 * torch.randn(8, 5, 4, 4, generator=stream()) + 1
    ours, torchs = BatchNorm(5, centred=True), nn.BatchNorm2d(5)
    torch.testing.assert_close(ours(x), torchs(x))
    torch.testing.assert_close(ours.mean, torchs.running_mean)
    torch.testing.assert_close(ours.variance, torchs.running_var)
    ours.mode = "evaluate"
    torch.testing.assert_close(ours(x), torchs.eval()(x))


@pytest.mark.parametrize("centred", [True, False])
def test_a_probe_normalizes_by_the_batch_and_remembers_nothing(centred):
    x = 3 * torch.randn(8, 5, 4, 4, generator=stream()) + 1
    module = BatchNorm(5, centred)
    module.mode = "probe"
    y = module(x)
    torch.testing.assert_close(y.square().mean((0, 2, 3)), torch.ones(5), rtol=1e-4, atol=0)
    assert (y.mean((0, 2, 3)).abs().max() < 1e-5) == centred
    assert all(buffer.equal(torch.full((5,), buffer[0])) for buffer in module.buffers())


def test_the_mode_reaches_every_normalization_of_a_network():
    network = small(ResNet50)
    network.set_mode("evaluate")
    norms = [m for m in network.modules() if isinstance(m, BatchNorm)]
    assert len(norms) == 1 + 3 * 16 + 4 and {m.mode for m in norms} == {"evaluate"}


@pytest.mark.parametrize("call", [
    lambda: normalization("layr", 4),
    lambda: initialize(nn.Linear(2, 2), "pytoch", stream()),
])  # fmt: skip
def test_unknown_names_are_refused(call):
    with pytest.raises(InputError, match="is unknown"):
        call()


@pytest.mark.parametrize(("blocks", "parameters"), [(3, 269_722), (9, 853_018)])
def test_the_resnet_for_cifar_has_the_size_that_is_known_of_it(blocks, parameters):
    """0.27 million at 20 layers and 0.85 at 56 (He et al. 2016, Table 6), in the common count."""
    network = ResNetForCifar(3, 10, blocks)
    assert sum(p.numel() for p in network.parameters()) == parameters
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 6 * blocks + 2
    assert network.hidden(torch.zeros(2, 3, 32, 32)).shape == (2, 64)
    assert network.features[:-1](torch.zeros(2, 3, 32, 32)).shape == (2, 64, 8, 8)


def test_where_shapes_differ_the_shortcut_takes_every_second_pixel_and_zeros():
    block = Basic(2, 4, 2, "batch")
    for parameter in block.residual.parameters():
        nn.init.zeros_(parameter)
    x = torch.arange(32.0).view(1, 2, 4, 4)
    expected = torch.zeros(1, 4, 2, 2)
    expected[:, :2] = x[:, :, ::2, ::2]
    assert torch.equal(block(x), expected)
