"""The columns of the tables of study `norm_classifier`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class Copy(Row):
    """A row of the table `metrics.csv`: the loss and the accuracies of one classifier.

    The classifier is the target or one of its copies, in one replicate.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("method", "target_width", "replicate")

    method: str = column("target, construction, usual, active")
    target_width: int = column("d, number of hidden units of the target")
    replicate: int
    train_loss: float = column("cross-entropy of the training images, in nats")
    train_accuracy: float = column("fraction of training images with the right class")
    test_accuracy: float = column("fraction of test images with the right class")
    agreement: float = column(
        "fraction of test images for which target and copy predict the same class"
    )
