"""Parameters of study `example20`, in the paper's notation."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import MOST, StudyConfig, parameter


@dataclass(frozen=True)
class Example20(StudyConfig):
    """Parameters of study `example20`, Example 20 of paper D.

    In this example the representations diverge with depth while the norm converges.
    """

    study: ClassVar[str] = "example20"
    named: ClassVar[tuple[str, ...]] = ("depths",)
    random: ClassVar[bool] = False

    seed: int = parameter("changes nothing: the study has no randomness", 0, minimum=0)
    depths: list[int] = parameter(
        "L: list of even depths", [8, 32, 128, 512, 2048, 8192], minimum=4, maximum=MOST
    )
    exponents: list[float] = parameter(
        "list of gamma in epsilon = L^-gamma (the example assumes 1/2 < gamma < 1)",
        [0.6, 0.7, 0.8, 0.9],
        above=0,
    )
    grid: int = parameter(
        "number of grid points on each axis of [0, 1]^3; there the network is compared with f",
        6,
        minimum=2,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if odd := [L for L in self.depths if L % 2]:
            raise InputError(f"depths={self.depths}: Example 20 is for even L, {odd[0]} is odd")
