"""Inputs: Gaussian streams and image datasets."""

LABELLED = ("digits", "fashion_mnist", "cifar10", "random_pixels")
"""Datasets that a classifier can be trained on."""

DATASETS = (*LABELLED, "gaussian")
"""What `data=` may name; each has a `conf/data/<name>.yaml`."""
