"""Small classifiers of digits with layers that people use, as pooling and attention."""

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor, nn


class Residual(nn.Module):
    """The residual block that maps x to x + branch(x).

    branch: modules that are applied one after the other.
    """

    def __init__(self, *branch: nn.Module) -> None:
        super().__init__()
        self.branch = nn.Sequential(*branch)

    def forward(self, x: Float[Tensor, "N *axes"]) -> Float[Tensor, "N *axes"]:
        """Return x + branch(x)."""
        return x + self.branch(x)


class Transformer(nn.Module):
    """A classifier with one transformer block, whose tokens are the eight rows of an image.

    The block has layer norm, attention and GELU units. width: dimension of a token. There are two
    heads, or one head if the width is odd.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed = nn.Linear(8, width)
        options = {"activation": "gelu", "batch_first": True, "norm_first": True}
        self.block = nn.TransformerEncoderLayer(width, 2 - width % 2, 2 * width, 0.0, **options)
        self.last = nn.Linear(width, 10)

    def forward(self, x: Float[Tensor, "N 1 8 8"]) -> Float[Tensor, "N 10"]:
        """Return the logits of the ten digits."""
        return self.last(self.block(self.embed(x[:, 0])).mean(1))


def _convolutions(width: int, *middle: nn.Module) -> nn.Sequential:
    """Return a network: a convolution, layers that halve the image, and a linear classifier."""
    first, last = nn.Conv2d(1, width, 3, padding=1), nn.Linear(16 * width, 10)
    return nn.Sequential(first, *middle, nn.Flatten(), last)


def _between(width: int, pooling: nn.Module) -> nn.Sequential:
    """Return a network of two convolutions with pooling between them, and a linear classifier."""
    return _convolutions(width, pooling, nn.Conv2d(width, width, 3, padding=1), nn.ReLU())


def _residual(width: int) -> nn.Sequential:
    """Return a network with a residual block of two convolutions with batch norm."""
    one, two = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
    block = Residual(one, nn.BatchNorm2d(width), nn.ReLU(), two, nn.BatchNorm2d(width))
    return _convolutions(width, nn.MaxPool2d(2), block, nn.ReLU())


def _gated(width: int) -> nn.Sequential:
    """Return a network of gated linear units, value * sigmoid(gate) (Dauphin et al. 2017).

    Value and gate are linear in the image.
    """
    gated = (nn.Linear(64, 2 * width), nn.GLU())
    return nn.Sequential(nn.Flatten(), *gated, nn.Linear(width, 10))


NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "max_pooling": lambda width: _between(width, nn.MaxPool2d(2)),
    "average_pooling": lambda width: _between(width, nn.AvgPool2d(2)),
    "batch_norm": _residual,
    "transformer": Transformer,
    "gated": _gated,
}
"""Functions from the width to a network, by name."""
