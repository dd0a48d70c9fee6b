"""The columns of the tables of study `example20`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class ExampleNetwork(Row):
    """One row for each depth and exponent."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("depth", "exponent")

    depth: int = column("L, number of layers")
    exponent: float = column("exponent g of epsilon = L^-g")
    epsilon: float = column("L^-g, the small parameter of Example 20")
    parameter_norm: float = column("squared norm of the parameters, ||theta||^2")
    excess: float = column("||theta||^2 - 3 L, in closed form")
    max_error: float = column("largest |f_theta - f| on the grid")
    middle_lipschitz: float = column("largest ||J alpha_l||_op of a hidden layer")
    lipschitz: float = column("C of Proposition 13: largest over alpha_l and the maps alpha_l -> f")
