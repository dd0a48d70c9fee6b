"""The columns of the tables of study `norm_layers`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class LayerAccuracy(Row):
    """A row of the table `metrics.csv`: the errors of one network with one kind of layer.

    The kind of layer, its mode, the batch size and the replicate identify the network.
    """

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("target_width", "layer", "mode", "batch_size", "replicate")

    target_width: int = column("d, width of the target")
    layer: str = column('batch_norm, layer_norm, rms_norm; each also "with biases"')
    mode: str = column(
        "evaluation, training; fitted: gamma and beta by L-BFGS, not by the construction"
    )
    batch_size: int = column("batch size of training mode; 0 in other modes")
    replicate: int
    relative_mse: float = column("mean squared error / variance of g; 1: predicting the mean")
    max_abs_error: float = column("largest |f(x) - g(x)|")
    condition_number: float = column("condition number of the Khatri-Rao matrix")
    input_norm: float = column("largest norm of an input; the ReLUs are active up to this norm")
    lower_bound: float = column("lower bound of relative_mse for any gamma and beta; 0 if unknown")


@dataclass(frozen=True)
class NormReadout(Row):
    """A row of the table `norms.csv`: how much one layer's output shows of the input's norm ||x||.

    There is a row for each fitted kind of layer and replicate.
    """

    table: ClassVar[str] = "norms"
    keys: ClassVar[tuple[str, ...]] = ("target_width", "layer", "replicate")

    target_width: int = column("d, width of the target")
    layer: str
    replicate: int
    explained: float = column("fraction of the variance of ||x|| that is linear in the first layer")
