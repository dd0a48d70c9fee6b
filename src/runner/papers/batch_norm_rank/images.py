"""The images that networks of paper B are trained on."""

from runner.core.studies import Context
from runner.data.datasets import Dataset
from runner.papers.batch_norm_rank.images_config import OnImages

TEST_IMAGES = 10_000
"""At most, in each dataset."""


def training_images(config: OnImages, context: Context) -> Dataset:
    """The study's dataset, with the first `train_images` of its training images.

    Raises InputError when it cannot be had or has fewer.
    """
    data = context.load_data(config.data, config.seed, config.checksums)
    return data.first(config.train_images)
