"""VGG-19 and ResNet-50: sizes, parameter counts, initialisation and the modes of batch norm."""

import pytest
import torch
from torch import nn

from runner.core.errors import InputError
from runner.networks.convolutional import BatchNorm, initialize, normalization, scaled
from runner.networks.resnet import ResNet50
from runner.networks.vgg import VGG19

NETWORKS = [VGG19, ResNet50]
SMALL = 1 / 32


def stream(seed=0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(architecture, norm="batch", init="pytorch"):
    network = architecture(3, 10, norm, SMALL)
    initialize(network, init, stream())
    return network


def test_vgg19_has_as_many_parameters_as_its_layers_say():
    """3x3 kernels and biases of sixteen convolutions, two per normalized channel, a classifier."""
    sizes = [3, 64, 64, 128, 128, *[256] * 4, *[512] * 8]
    pairs = list(zip(sizes[:-1], sizes[1:], strict=True))
    expected = sum(9 * a * b + b + 2 * b for a, b in pairs) + 512 * 10 + 10
    assert expected == 20_040_522  # as the common implementations for CIFAR-10 report it
    assert sum(p.numel() for p in VGG19(3, 10).parameters()) == expected
    assert len([m for m in VGG19(3, 10).modules() if isinstance(m, nn.Conv2d)]) + 3 == 19


def test_resnet50_has_as_many_parameters_as_its_layers_say():
    """The published form for 1000 classes has 25 557 032, with a 7x7 kernel and 2048 x 1000."""
    published = 25_557_032
    expected = published - (49 - 9) * 3 * 64 - (2048 * 1000 + 1000) + (2048 * 10 + 10)
    assert expected == 23_520_842  # as the common implementations for CIFAR-10 report it
    assert sum(p.numel() for p in ResNet50(3, 10).parameters()) == expected


@pytest.mark.parametrize("architecture", NETWORKS)
@pytest.mark.parametrize("norm", ["none", "batch", "batch_no_mean"])
@pytest.mark.parametrize("size", [8, 16, 32])
def test_images_of_any_of_these_sizes_become_logits(architecture, norm, size):
    network = small(architecture, norm)
    x = torch.randn(4, 3, size, size, generator=stream(1))
    H = network.hidden(x)
    assert H.shape == (4, network.classifier.in_features)
    assert network(x).shape == (4, 10)
    assert (H >= 0).all()  # behind a ReLU


def test_the_last_feature_map_of_vgg19_is_one_pixel_and_that_of_resnet50_sixteen():
    x = torch.randn(2, 3, 32, 32, generator=stream())
    assert small(VGG19).features(x).shape == (2, 16, 1, 1)
    assert small(ResNet50).features(x).shape == (2, 64, 4, 4)


def test_a_multiplier_scales_the_channels_and_leaves_at_least_one():
    assert [scaled(64, m) for m in (1, 0.125, 1.5, 1e-3)] == [64, 8, 96, 1]
    assert VGG19(3, 10, multiplier=0.25).classifier.in_features == 128
    assert ResNet50(3, 10, multiplier=0.25).classifier.in_features == 512


def weights(network) -> list[tuple[torch.Tensor, int]]:
    layers = [m for m in network.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    return [(m.weight.detach(), m.weight[0].numel()) for m in layers]


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


def test_pytorchs_law_is_the_one_of_torch():
    """Same variance and range as a fresh `torch.nn.Conv2d`."""
    ours, torchs = nn.Conv2d(64, 64, 3), nn.Conv2d(64, 64, 3)
    initialize(ours, "pytorch", stream())
    for name in ("weight", "bias"):
        a, b = getattr(ours, name), getattr(torchs, name)
        torch.testing.assert_close(a.abs().max(), b.abs().max(), rtol=0.1, atol=0)
    torch.testing.assert_close(ours.weight.var(), torchs.weight.var(), rtol=0.05, atol=0)


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
    lambda: normalization("layer", 4),
    lambda: initialize(nn.Linear(2, 2), "pytoch", stream()),
])  # fmt: skip
def test_unknown_names_are_refused(call):
    with pytest.raises(InputError, match="is not known"):
        call()
