"""The parameters of study `residual_stream`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.errors import InputError
from runner.core.studies import StudyConfig, parameter


@dataclass(frozen=True)
class ResidualStream(StudyConfig):
    """The rank of a transformer's residual stream at initialization, by depth."""

    study: ClassVar[str] = "residual_stream"

    normalizations: list[str] = parameter(
        "where LayerNorm is: nowhere, before each layer, or after each addition",
        ["none", "pre", "post"],
        choices=("none", "pre", "post"),
    )
    depth: int = parameter("L: blocks, each of attention and an MLP", 48, minimum=1, maximum=1000)
    width: int = parameter("d: features of a token", 64, minimum=2)
    heads: int = parameter("of the attention; they divide the width", 4, minimum=1)
    tokens: int = parameter("n: tokens of a sequence", 32, minimum=2)
    replicates: int = parameter("independent networks, each with its own tokens", 10, minimum=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise InputError(f"heads={self.heads} do not divide width={self.width}")
