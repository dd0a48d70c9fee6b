"""The columns of the tables of study `residual_stream`."""

from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import Row, column


@dataclass(frozen=True)
class BlockRank(Row):
    """One row per normalization, replicate and block."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = ("normalization", "replicate", "block")

    normalization: str = column("where LayerNorm is: none, pre or post")
    replicate: int
    block: int = column("number of the block, from 1; 0: the tokens themselves")
    rank: float = column("r(H), between 1 and min(n, d)")
    excess: float = column("r(H) - 1: the remainder of other directions")
