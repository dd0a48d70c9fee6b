"""Parameters that all studies on images share: numbers of images and checksums of the files."""

from dataclasses import dataclass

from runner.core.streams import RANDOM_PIXELS, SUBSET
from runner.core.studies import TrainingConfig, parameter


@dataclass(frozen=True)
class OnImages(TrainingConfig):
    """Base class of the parameters of studies that train on the images of a dataset."""

    train_images: int | None = parameter(
        "number of training images, the first of the dataset; of your own file: drawn in equal"
        " shares by class; null: all",
        None,
        minimum=2,
    )
    checksums: list[str] | None = parameter(
        "SHA-256 of each file of the dataset, as in conf/data/<data>.yaml", None
    )

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "probe"."""
        drawn = (SUBSET,) if self.own_images() else ()
        return (*RANDOM_PIXELS, "probe", *drawn)
