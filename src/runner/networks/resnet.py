"""Residual networks (He et al. 2016) for images of 32x32 pixels.

ResNet-50 (Table 1) has its usual form for CIFAR-10: the first convolution has a 3x3 kernel and
stride one, without max pooling after it. The four stages have 32, 16, 8 and 4 pixels a side.
"""

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from runner.networks.convolutional import ConvolutionalClassifier, normalization, scaled

STEM = 64
STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))
"""For each stage: channels of the 3x3 convolutions, number of blocks, stride of the first block."""
EXPANSION = 4
"""The number of output channels of a block, divided by the channels of its 3x3 convolution."""


def _convolution(n_in: int, n_out: int, kernel: int, stride: int, norm: str) -> nn.Sequential:
    """Return a convolution with its normalization. If there is none, the convolution has a bias."""
    bias = norm == "none"
    layer = nn.Conv2d(n_in, n_out, kernel, stride, padding=kernel // 2, bias=bias)
    return nn.Sequential(layer, normalization(norm, n_out))


class Bottleneck(nn.Module):
    """The block `ReLU(x + F(x))`; F has a 1x1, a 3x3 and a 1x1 convolution.

    n_in, n_out: channels before and after the block. width: channels within F. stride: stride of
    the 3x3 convolution. norm: name of the normalization. If x and F(x) differ in shape, a 1x1
    convolution projects x.
    """

    def __init__(self, n_in: int, width: int, n_out: int, stride: int, norm: str) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            _convolution(n_in, width, 1, 1, norm),
            nn.ReLU(inplace=True),
            _convolution(width, width, 3, stride, norm),
            nn.ReLU(inplace=True),
            _convolution(width, n_out, 1, 1, norm),
        )
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Identity() if same else _convolution(n_in, n_out, 1, stride, norm)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Float[Tensor, "N c h w"]) -> Float[Tensor, "N C H W"]:
        """Return the output of the block."""
        return self.relu(self.residual(x) + self.shortcut(x))


class ResNet50(ConvolutionalClassifier):
    """ResNet-50: a first convolution, sixteen bottleneck blocks and a linear classifier.

    in_channels: channels of the images. norm: `none`, `batch` or `batch_no_mean`. multiplier: a
    factor of the number of channels of every layer.
    """

    def __init__(
        self, in_channels: int, classes: int, norm: str = "batch", multiplier: float = 1.0
    ) -> None:
        super().__init__()
        n_in = scaled(STEM, multiplier)
        layers = [_convolution(in_channels, n_in, 3, 1, norm), nn.ReLU(inplace=True)]
        for channels, blocks, stride in STAGES:
            width = scaled(channels, multiplier)
            for block in range(blocks):
                n_out = EXPANSION * width
                layers.append(Bottleneck(n_in, width, n_out, 1 if block else stride, norm))
                n_in = n_out
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(n_in, classes)

    def hidden(self, x: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N d"]:
        """Return the output of the last block, averaged over its pixels."""
        return self.features(x).mean(dim=(2, 3))


class Basic(nn.Module):
    """The block `ReLU(x + F(x))`; F has two 3x3 convolutions.

    n_in, n_out: channels before and after the block. stride: stride of the first convolution. norm:
    name of the normalization. If x and F(x) differ in shape, x is subsampled and padded with
    channels of zeros (option A of He et al. 2016). The padding has no parameters.
    """

    def __init__(self, n_in: int, n_out: int, stride: int, norm: str) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            _convolution(n_in, n_out, 3, stride, norm),
            nn.ReLU(inplace=True),
            _convolution(n_out, n_out, 3, 1, norm),
        )
        self.stride, self.added = stride, n_out - n_in
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x: Float[Tensor, "N c h w"]) -> Float[Tensor, "N C H W"]:
        """Return the output of the block."""
        shortcut = x[:, :, :: self.stride, :: self.stride]
        return self.relu(self.residual(x) + functional.pad(shortcut, (0, 0, 0, 0, 0, self.added)))


class ResNetForCifar(ConvolutionalClassifier):
    """The ResNet with 6n + 2 layers of He et al. 2016, Section 4.2.

    It has a first convolution, three stages of n basic blocks each, and a linear classifier.

    - in_channels: channels of the images;
    - blocks: n;
    - width: channels of the first stage, 16 in the paper. The second and third stage have two and
      four times as many;
    - norm: `none`, `batch` or `batch_no_mean`.
    """

    def __init__(
        self, in_channels: int, classes: int, blocks: int, width: int = 16, norm: str = "batch"
    ) -> None:
        super().__init__()
        layers = [_convolution(in_channels, width, 3, 1, norm), nn.ReLU(inplace=True)]
        n_in = width
        for stage in range(3):
            for block in range(blocks):
                n_out = width * 2**stage
                layers.append(Basic(n_in, n_out, 2 if stage and not block else 1, norm))
                n_in = n_out
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(n_in, classes)

    def hidden(self, x: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N d"]:
        """Return the output of the last block, averaged over its pixels."""
        return self.features(x).mean(dim=(2, 3))
