"""Hold the parameters of the studies that train on images: which images."""

from dataclasses import dataclass

from runner.core.streams import RANDOM_PIXELS
from runner.core.studies import TrainingConfig, parameter


@dataclass(frozen=True)
class OnImages(TrainingConfig):
    """Base of the studies that train on the images of a dataset, which they name in `data`."""

    train_images: int | None = parameter(
        "number of training images, the first of the dataset; null: all", None, minimum=2
    )
    checksums: list[str] | None = parameter(
        "SHA-256 of each file of the dataset, as in conf/data/<data>.yaml", None
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the purposes of the random streams."""
        return (*RANDOM_PIXELS, "probe")
