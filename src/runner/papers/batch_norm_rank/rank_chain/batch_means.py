"""Averages over depth (paper B, Eq. 49) with standard errors that allow for correlated layers."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, frexp, fsum, inf, isfinite, ldexp, nan, sqrt
from statistics import fmean

import torch
from jaxtyping import Float
from torch import Tensor

from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.rank_chain.engines import Chain

log = logging.getLogger("runner")

OBSERVABLES = ("soft_rank", "rank_bound", "frobenius", "diagonal", "cubic")
"""Names of the observables `rank_tau`, `r`, `||M||_F^2`, `Tr(diag(M^2)^2)` and `Tr(M^3)`, in this
order.
"""


LARGE = 1e100
"""Largest number whose square, and sums of such squares, do not overflow."""


def observe(G: Float[Tensor, "chains d K"], tau: float) -> Float[Tensor, "chains 5"]:
    """Return the five OBSERVABLES of each chain, in their order.

    G: the states `H / sqrt(N)`, with rows of unit norm. tau: threshold of the soft rank. All
    numbers are computed from the small matrix `S = G^T G (K, K)`. S has the non-zero eigenvalues of
    `M = G G^T`. The diagonal of M^2 is `(M^2)_ii = g_i^T S g_i` for row `g_i` of G.
    """
    S = G.mT @ G
    frobenius = S.square().sum(dim=(-2, -1))
    values = [
        theory.count_above(S, tau),
        G.shape[-2] ** 2 / frobenius,
        frobenius,
        ((G @ S) * G).sum(dim=-1).square().sum(dim=-1),
        ((S @ S) * S).sum(dim=(-2, -1)),
    ]
    return torch.stack(values, dim=-1)


@dataclass(frozen=True)
class Plan:
    """Number of layers of a network, and which layers are measured.

    - burn_in: layers before the first measurement.
    - stride: layers from one measurement to the next.
    - batches, count: the measurements of a network are divided into `batches` batches of `count`.
    """

    burn_in: int
    stride: int
    batches: int
    count: int

    @classmethod
    def of(cls, layers: int, chains: int, stride: int, burn_in: int) -> "Plan":
        """Return a plan whose averages cover at least `layers` layers of each of `chains` networks.

        With 32 networks or more, a batch is a whole network. With fewer networks each one is
        divided into several batches. stride, burn_in: the attributes of the plan.
        """
        measurements = ceil(layers / stride)
        batches = min(ceil(32 / chains), measurements)
        return cls(burn_in, stride, batches, ceil(measurements / batches))

    @property
    def layers(self) -> int:
        """Return the number of layers of one network over which the average is taken."""
        return self.stride * self.batches * self.count


def sample(
    chain: Chain, plan: Plan, tau: float, tick: Callable[[int], None] = lambda strides: None
) -> Float[Tensor, "2 batches 5"]:
    """Run networks by the plan; return batch means of each observable and of its square.

    The axes of the result are: mean or mean square; batches of all networks; OBSERVABLES. chain:
    the networks. tau: threshold of the soft rank. tick: called with 1 after every stride, for a
    progress bar.
    """
    for _ in range(ceil(plan.burn_in / plan.stride)):
        chain.advance(plan.stride)
        tick(1)
    shape = (2, plan.batches, len(chain.state), len(OBSERVABLES))
    sums = chain.state.new_zeros(shape, dtype=torch.float64)
    for batch in range(plan.batches):
        for _ in range(plan.count):
            chain.advance(plan.stride)
            values = observe(chain.state, tau)
            sums[0, batch] += values
            sums[1, batch] += values.square()
            tick(1)
    return sums.flatten(1, 2) / plan.count


def tell_nan(values: Float[Tensor, "chains *rest"], point: str) -> None:
    """Log how many networks ended in nan, if any did.

    values: the last numbers of each network. point: the width and gamma in words.
    """
    ended = int(values.isnan().view(len(values), -1).any(dim=1).sum())
    if ended:
        log.info("%s: %d of %d networks ended in nan", point, ended, len(values))


@dataclass(frozen=True)
class BatchMeans:
    """Means of the observables over batches of consecutive measurements.

    The spread of the batch means gives the standard error of the mean over all batches. This holds
    for any correlation within a batch, if a batch is much longer than the autocorrelation time.

    moments: the result of `sample`, mean and mean square of each observable in each batch. count:
    number of measurements in a batch.
    """

    moments: Float[Tensor, "2 batches 5"]
    count: int

    def _means(self, name: str) -> list[float]:
        return self.moments[0, :, OBSERVABLES.index(name)].tolist()

    def mean(self, name: str) -> tuple[float, float]:
        """Return the mean of an observable and its standard error (nan with a single batch).

        name: one of OBSERVABLES.
        """
        return mean_and_error(self._means(name))

    def deviation(self, name: str) -> float:
        """Return the standard deviation of an observable over the measurements.

        name: one of OBSERVABLES.
        """
        square = _mean(self.moments[1, :, OBSERVABLES.index(name)].tolist())
        mean = _mean(self._means(name))
        return sqrt(max(square - _square(mean), 0.0))  # a nan as first argument remains nan

    def ratio(self, numerator: str, denominator: str) -> tuple[float, float]:
        """Return the ratio of the means of two observables and its standard error (delta method).

        numerator, denominator: names in OBSERVABLES. Both results are nan if the mean of the
        denominator is zero.
        """
        a, b = self._means(numerator), self._means(denominator)
        below = _mean(b)
        if below == 0:
            return nan, nan
        ratio = _mean(a) / below
        _, error = mean_and_error([(x - ratio * y) / below for x, y in zip(a, b, strict=True)])
        return ratio, error

    def autocorrelation(self, name: str) -> float:
        """Return the integrated autocorrelation time `1 + 2 sum_t rho_t` of an observable.

        The unit is one measurement. rho_t is the correlation of two measurements at distance t. The
        mean of `n` correlated measurements has the variance of `n` / time independent ones. The
        time is nan with a single batch, or if the observable is constant. name: one of OBSERVABLES.
        """
        means, single = self._means(name), self.deviation(name) ** 2
        if len(means) < 2 or single <= 0:
            return nan
        return self.count * _variance(means) / single


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean of independent values and its standard error (nan for one value).

    The sums are rounded only once, so the results are equal on all machines.
    """
    scaled, power = _of_order_one(values)
    error = sqrt(_variance(scaled) / len(values)) if len(values) > 1 else nan
    return _mean(values), _times(error, power)


def _mean(values: Sequence[float]) -> float:
    """Return the mean of values, rounded only once."""
    if not all(map(isfinite, values)):
        return sum(values) / len(values)
    scaled, power = _of_order_one(values)
    return _times(fmean(scaled), power)


def _variance(values: Sequence[float]) -> float:
    mean = _mean(values)
    squares = [_square(value - mean) for value in values]
    if not all(map(isfinite, squares)):
        return sum(squares)
    return fsum(squares) / (len(values) - 1)


def _of_order_one(values: Sequence[float]) -> tuple[list[float], int]:
    """Return values divided by a power of two, and the exponent that reverses the division.

    The exponent is 0, and the values do not change, unless their squares leave the range of a
    float.
    """
    largest = max((abs(value) for value in values if isfinite(value)), default=1.0)
    if largest == 0 or 1 / LARGE < largest < LARGE:
        return list(values), 0
    power = frexp(largest)[1]
    return [ldexp(value, -power) for value in values], power


def _square(value: float) -> float:
    """Return the square, inf beyond the range of a float."""
    return value**2 if abs(value) < LARGE else value * value


def _times(value: float, power: int) -> float:
    """Return `value * 2^power`, inf beyond the range of a float."""
    try:
        return ldexp(value, power)
    except OverflowError:
        return inf if value > 0 else -inf
