"""VGG-19 (Simonyan and Zisserman 2015, configuration E) for images of 32x32 pixels.

The network has its usual form for CIFAR-10: sixteen convolutions as in the paper, with batch
normalization after each of them. One linear layer replaces the paper's three, since the last
feature map is a single pixel.
"""

from jaxtyping import Float
from torch import Tensor, nn

from runner.networks.convolutional import ConvolutionalClassifier, normalization, scaled

STAGES = ((64, 64), (128, 128), (256,) * 4, (512,) * 4, (512,) * 4)
"""The channels of the convolutions in each stage, which ends with 2x2 max pooling."""


class VGG19(ConvolutionalClassifier):
    """VGG-19: sixteen 3x3 convolutions with normalization and ReLU, and a linear classifier.

    in_channels: channels of the images. norm: `none`, `batch` or `batch_no_mean`. multiplier: a
    factor of the number of channels of every layer. Max pooling does not change feature maps of a
    single pixel.
    """

    def __init__(
        self, in_channels: int, classes: int, norm: str = "batch", multiplier: float = 1.0
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        n_in = in_channels
        for stage in STAGES:
            for channels in stage:
                n_out = scaled(channels, multiplier)
                layers.append(nn.Conv2d(n_in, n_out, kernel_size=3, padding=1))
                layers += [normalization(norm, n_out), nn.ReLU(inplace=True)]
                n_in = n_out
            layers.append(nn.MaxPool2d(2, ceil_mode=True))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Linear(n_in, classes)

    def hidden(self, x: Float[Tensor, "N channels height width"]) -> Float[Tensor, "N d"]:
        """Return the output of the last stage, averaged over its pixels.

        Images of at most 32x32 pixels give a single pixel.
        """
        return self.features(x).mean(dim=(2, 3))
