"""Inputs: Gaussian streams and image datasets."""

LABELLED = ("digits", "fashion_mnist", "cifar10", "random_pixels")
"""Datasets that a classifier can be trained on."""

DATASETS = (*LABELLED, "gaussian")
"""Values of `data=`; each has a file `conf/data/<name>.yaml`."""

SHAPES = {
    "digits": (1797, 1, 8, 8),
    "fashion_mnist": (70_000, 1, 28, 28),
    "cifar10": (60_000, 3, 32, 32),
    "random_pixels": (70_000, 1, 28, 28),
}
"""For each dataset: number of images (training and test together), channels, height and width."""

CLASSES = 10
"""Number of classes of each dataset."""
