"""Parameters that all studies of fully connected networks on images share."""

from dataclasses import dataclass

from runner.core.choices import OPTIMIZERS, Datasets
from runner.core.streams import orders
from runner.core.studies import LARGEST_STEP, MOST, parameter
from runner.data import DATASETS
from runner.papers.batch_norm_rank.images_config import OnImages


@dataclass(frozen=True)
class TrainedMLPs(OnImages):
    """Base class of the parameters of studies that train fully connected networks on images."""

    depth: int = parameter("L, the number of hidden layers", 32, minimum=1, maximum=MOST)
    width: int = parameter("d, the number of units of each hidden layer", 64, minimum=1)
    data: str = parameter(
        "dataset, your own images (data=stripes.npz), or gaussian inputs",
        "digits",
        choices=Datasets(DATASETS),
    )
    samples: int = parameter("N, the number of inputs on which ranks are measured", 512, minimum=2)
    epochs: int = parameter("passes over the training images", 75, minimum=1)
    optimizer: str = parameter("optimizer of the training", "sgd", choices=OPTIMIZERS)
    learning_rates: list[float] = parameter(
        "learning rates to try; each network is judged at the one at which it learns fastest",
        [0.01, 0.03, 0.1, 0.3],
        above=0,
        maximum=LARGEST_STEP,
    )
    selection_replicates: int = parameter(
        "replicates on which learning rates and steps are chosen; no result uses them",
        2,
        minimum=1,
        maximum=MOST,
    )
    batch_size: int = parameter("number of images of one SGD step", 128, minimum=2)
    replicates: int = parameter("independent repetitions", 5, minimum=1, maximum=MOST)
    tau: float = parameter("threshold of the soft rank (0 to 1)", 0.5, minimum=0, maximum=1)

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, such as "initialisation"."""
        return (*super().purposes(), "initialisation", *orders(self.epochs))
