"""The columns of the table `theorems.csv`, which studies of paper D share."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class TheoremCheck(Row):
    """One row for each network and theorem: at how many points lower <= upper fails.

    The columns `lower` and `upper` have the sides at the tightest point, where upper - lower is
    smallest.
    """

    table: ClassVar[str] = "theorems"
    keys: ClassVar[tuple[str, ...]] = ("depth", "replicate", "theorem")
    in_every_replicate: ClassVar[bool] = False

    depth: int
    replicate: int
    rank: int = column("k = Rank J f(x) of the selected points (linear networks: of A)")
    imbalance: float = column("relative imbalance of the network; the proof of Theorem 7 assumes 0")
    theorem: str = column("statement of the paper that is checked")
    points: int = column(
        "number of inputs x (corollary-8: of layers, proposition-9-segment: of segments)"
    )
    violations: int = column("number of points with lower > upper, or with nan")
    lower: float = column("left side at the point with the smallest upper - lower")
    upper: float = column("right side at the same point")
    tightness: float = column("median of lower / upper")
