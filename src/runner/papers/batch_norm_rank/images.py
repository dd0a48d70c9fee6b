"""Load the images for training networks of paper B, and the images for measuring ranks."""

from functools import partial

import torch

from runner.core.errors import InputError
from runner.core.streams import SUBSET
from runner.core.studies import Context
from runner.data.datasets import Dataset, Images
from runner.papers.batch_norm_rank.images_config import OnImages


def training_images(config: OnImages, context: Context) -> Dataset:
    """Return the study's dataset, reduced to `train_images` training images.

    Raises InputError if the dataset is unavailable or has fewer images.
    """
    data = context.load_data(config.data, config.seed, config.checksums)
    return data.reduced(config.train_images, partial(config.stream, 0, SUBSET))


def probed(config: OnImages, data: Dataset) -> Images:
    """Return the `samples` training images on which all networks are measured, chosen at random.

    Raises InputError if there are fewer than `samples` training images.
    """
    images = len(data.train)
    if config.samples > images:
        raise InputError(f"samples={config.samples}: {config.data} has {images} training images")
    order = torch.randperm(images, generator=config.stream(0, "probe"))
    chosen = order[: config.samples].to(data.train.labels.device)
    return Images(data.train.pixels[chosen], data.train.labels[chosen])
