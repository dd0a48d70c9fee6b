"""Test whether the networks of two seeds of a figure could be from the same distribution.

Two seeds give different networks, so no number is equal. But the replicates of both are draws from
one distribution if program, machine and parameters do the same. The test permutes the replicates of
both sides (`scipy.stats.permutation_test`). All numbers of a replicate stay together, so the test
is exact although the numbers depend on each other. Its statistic is the largest difference of mean
ranks over all measured columns. The difference of a column is a power mean over its points. A point
is a set of rows that differ only in the replicate.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO

import numpy as np
import pandas as pd
from scipy.stats import permutation_test, rankdata

from runner.core.studies import Row, column_types
from runner.results.evidence import ERROR

RESAMPLES = 1999
"""How many permutations are drawn, if there are more."""

POWER = 8
"""The exponent of the power mean over points. The largest difference at a point is full separation
in nearly every permutation of few replicates; the mean misses a change at one point."""

FEWEST = 4
"""The smallest number of replicates on each side. With three, no p-value is below 5 %."""

ROWS_AT_ONCE = 20_000
"""How many rows of ranks are multiplied at once, to save memory."""


@dataclass(frozen=True)
class Comparison:
    """The result of the test.

    - p: the probability of such a difference if both sides are from the same distribution;
    - n: the numbers of replicates on both sides;
    - where: the column and the point with the largest difference.
    """

    p: float
    n: tuple[int, int]
    where: str

    def __str__(self) -> str:
        can = "cannot" if self.differs else "can"
        return (
            f"both seeds {can} be from the same distribution (permutation test of {self.n[0]} and"
            f" {self.n[1]} replicates, {100 * ERROR:g} %: p = {self.p:.2g}; largest difference:"
            f" {self.where})"
        )

    @property
    def differs(self) -> bool:
        """Return whether the difference is larger than chance explains."""
        return self.p <= ERROR


@dataclass(frozen=True)
class Block:
    """The numbers of the same replicates, as ranks with mean 0 and variance 1.

    - n: the numbers of replicates on both sides;
    - ranks: an array (numbers, replicates), those of the first side first;
    - names: the column and the point of each row of `ranks`.
    """

    n: tuple[int, int]
    ranks: np.ndarray
    names: tuple[str, ...]


def compared(
    new: Mapping[str, pd.DataFrame],
    kept: Mapping[str, pd.DataFrame],
    row_classes: Mapping[str, type[Row]],
) -> Comparison | None:
    """Test whether two seeds of a figure could be from the same distribution.

    Runs with different numbers of replicates are tested apart, and the smallest p-value is
    multiplied by the number of tests. new, kept: the tables by name. row_classes: the classes of
    their rows. The result is None if no table has FEWEST replicates on each side.
    """
    blocks = [
        block
        for name, row_class in row_classes.items()
        if name in new and name in kept and row_class.in_every_replicate
        for block in _blocks(name, new[name], kept[name], row_class)
    ]
    sizes = sorted({block.n for block in blocks})
    results = [_tested([block for block in blocks if block.n == n]) for n in sizes]
    if not results:
        return None
    least = min(results, key=lambda result: result.p)
    return Comparison(min(1.0, len(results) * least.p), least.n, least.where)


def _blocks(
    name: str, new: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row]
) -> Iterator[Block]:
    """Yield the ranks of each measured column, for each run, at all points with all replicates."""
    if "replicate" not in row_class.keys:
        return
    new = pd.read_csv(StringIO(new.to_csv(index=False)))  # texts and missing values as stored
    measured = [column for column in column_types(row_class) if column not in row_class.keys]
    keys = [key for key in row_class.keys if key != "replicate"]
    known = {"run", "seed", *measured, *row_class.keys}
    varied = [c for c in kept if c in new and c not in known and kept[c].astype(str).nunique() > 1]
    rows = pd.concat([new.assign(side=0), kept.assign(side=1)], ignore_index=True)
    if "judged" in rows:  # other replicates only choose learning rates
        rows = rows[rows["judged"].astype(bool)]
    rows = rows.astype(dict.fromkeys([*varied, *keys], str))
    runs = rows.groupby(varied, sort=False) if varied else [((), rows)]
    for _, of_run in runs:
        replicates = of_run.groupby(["side", "replicate"]).ngroup()
        first = of_run.loc[of_run["side"] == 0, "replicate"].nunique()
        n = (first, of_run["replicate"][of_run["side"] == 1].nunique())
        points = of_run.groupby(keys, sort=False).ngroup() if keys else replicates * 0
        is_full = points.map(points.value_counts()) == sum(n)
        full = of_run[is_full].assign(point=points, number=replicates)
        full = full.sort_values(["point", "number"])
        if min(n) < FEWEST or full.empty or full.duplicated(["point", "number"]).any():
            continue
        heads = full.drop_duplicates("point")[[*varied, *keys]].to_dict("records")
        for column in (c for c in measured if c in full and full[c].dtype.kind in "iufb"):
            ranks = _ranks(full[column].to_numpy(float).reshape(-1, sum(n)))
            places = (", ".join(f"{key}={value}" for key, value in head.items()) for head in heads)
            yield Block(n, ranks, tuple(f"{name}.{column}, {place}" for place in places))


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of each row of values, with mean 0 and variance 1; equal values give 0.

    values: an array (numbers, replicates). A nan ranks above infinity.
    """
    ranks = rankdata(np.where(np.isnan(values), np.inf, values), axis=1) + np.isnan(values)
    ranks = rankdata(ranks, axis=1)
    ranks -= ranks.mean(1, keepdims=True)
    spread = ranks.std(1, keepdims=True)
    return np.divide(ranks, spread, out=np.zeros_like(ranks), where=spread > 0)


def _tested(blocks: list[Block]) -> Comparison:
    """Test blocks with the same numbers of replicates together."""
    n = blocks[0].n
    parts = [np.array_split(b.ranks, -(-len(b.ranks) // ROWS_AT_ONCE)) for b in blocks]

    def largest(first: np.ndarray, second: np.ndarray, axis: int = -1) -> np.ndarray:
        """Return the largest difference of mean ranks of a column, for each choice of replicates.

        A column's difference is the power mean over its points.
        """
        weights = np.zeros((*first.shape[:-1], sum(n)))
        np.put_along_axis(weights, first.astype(int), 1 / n[0], -1)
        np.put_along_axis(weights, second.astype(int), -1 / n[1], -1)
        means = [
            sum((np.abs(weights @ part.T) ** POWER).sum(-1) for part in of_block) / len(block.ranks)
            for block, of_block in zip(blocks, parts, strict=True)
        ]
        return np.asarray(np.max(means, axis=0) ** (1 / POWER))

    sides = np.split(np.arange(sum(n)), [n[0]])
    result = permutation_test(
        sides,
        largest,
        vectorized=True,
        n_resamples=RESAMPLES,
        batch=100,
        alternative="greater",
        random_state=np.random.default_rng(0),
    )
    apart = [
        np.abs(block.ranks[:, sides[0]].mean(1) - block.ranks[:, sides[1]].mean(1))
        for block in blocks
    ]
    worst = int(np.argmax([np.mean(of_block**POWER) for of_block in apart]))
    return Comparison(float(result.pvalue), n, blocks[worst].names[int(apart[worst].argmax())])
