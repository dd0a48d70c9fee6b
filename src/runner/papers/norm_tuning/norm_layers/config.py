"""Parameters of study `norm_layers`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import MOST, StudyConfig, parameter

LAYERS = ("batch_norm", "layer_norm", "rms_norm")


@dataclass(frozen=True)
class NormLayers(StudyConfig):
    """Parameters of constructed networks (paper A, Theorem 1) with real normalization layers."""

    study: ClassVar[str] = "norm_layers"
    named: ClassVar[tuple[str, ...]] = ("target_width",)

    target_width: int = parameter(
        "d: width and input dimension of the target (1 or more)", 10, minimum=1
    )
    layers: list[str] = parameter(
        "kinds of normalization layers to compare", ["batch_norm", "layer_norm"], choices=LAYERS
    )
    biases: bool = parameter("whether the frozen layers have random biases b, as in Eq. (3)", False)
    batch_sizes: list[int] = parameter(
        "B: list of batch sizes at which BatchNorm is measured in training mode",
        [16, 64, 256, 1024, 4096],
        minimum=2,
    )
    samples: int = parameter(
        "number of inputs that give the running statistics, and of further inputs on which the"
        " networks are compared",
        16384,
        minimum=2,
    )
    fit_steps: int = parameter(
        "number of steps of L-BFGS that fit γ and β in LayerNorm and RMSNorm (0: no fit)",
        0,
        minimum=0,
    )
    fit_samples: int = parameter(
        "largest number of inputs on which γ and β are fitted", 4096, minimum=2
    )
    replicates: int = parameter(
        "number of independent repetitions (target and weights)",
        10,
        minimum=1,
        maximum=MOST,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers == ["batch_norm"]:
            self.refuse(["fit_steps", "fit_samples"], "layers=[batch_norm]")
        if (largest := max(self.batch_sizes)) > self.samples:
            raise InputError(f"batch_sizes: {largest} is above samples={self.samples}")

    def purposes(self) -> tuple[str, ...]:
        """Return the names of the run's random streams, one for each kind of random numbers."""
        return ("target", "frozen weights", "running statistics", "inputs", "biases")
