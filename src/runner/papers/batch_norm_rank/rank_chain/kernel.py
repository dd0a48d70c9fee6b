"""The algorithms of `RotatedChain` and `DirectChain`, compiled for the CPU: eight chains together.

A chain is the sequence of hidden layers of one network. Gaussian weights are rotated as in
`RotatedChain`. Weights of all other distributions are drawn and multiplied as in `DirectChain`.

Each value in the code below is a vector of eight numbers (see `lanes`), one of each chain. The
algorithms read as for a single chain and vectorize at every width. LLVM may neither reorder nor
contract operations (no `fastmath`). The logarithm and sines are polynomials of this file, and the
loops do not depend on the vector length of the machine. A seed gives the same bytes on any x86-64.

All compiled functions are in this file because numba's cache watches no other file. Importing the
module compiles nothing.
"""

from collections.abc import Callable
from math import ceil, factorial, log, pi, sqrt
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from runner.core import compiling
from runner.papers.batch_norm_rank.rank_chain.batch_means import OBSERVABLES, Plan
from runner.papers.batch_norm_rank.rank_chain.engines import LANES, RotatedChain
from runner.papers.batch_norm_rank.rank_chain.lanes import (
    bits,
    compiled,
    from_bits,
    inlined,
    is_zero,
    load,
    not_negative,
    root,
    signed,
    splat,
    store,
    widen,
)

OF_LANES = "73374af114a6"
"""First digits of the SHA-256 of `lanes.py`. A change there must void the cache of this file."""

ALIGNMENT = 64
"""Alignment in bytes: a line of the cache, and the longest vector."""

ROWS = 8
"""Rows of G that stay in the nearest cache while they are added to `G^T G`."""

LAWS = ("gaussian", "rademacher", "uniform", "asymmetric")
"""Distributions of the weights; compiled code uses their positions in this list."""

GAUSSIAN, RADEMACHER, UNIFORM, ASYMMETRIC = range(len(LAWS))

MULTIPLICATIONS_OF_A_CALL = 30_000_000
"""Number of multiplications of eight lanes in one compiled call, which takes at most 0.1 s.

A run can be stopped between two calls.
"""


# Normal numbers


LOG_2 = log(2)
SQRT_HALF = 0x3F3504F3  # the bits of sqrt(1/2) in float32
MANTISSA, SIGN = 0x007FFFFF, 0x80000000
ONE = 0x3F800000  # the bits of 1 in float32
LENGTH = 2 * sqrt(3)  # of an interval on which the uniform distribution has unit variance
SINE = tuple((-1) ** n * (2 * pi) ** (2 * n + 1) / factorial(2 * n + 1) for n in range(6))
COSINE = tuple((-1) ** n * (2 * pi) ** (2 * n) / factorial(2 * n) for n in range(7))
"""Taylor coefficients of sin(2 pi x) / x and cos(2 pi x) in x^2.

On |x| <= 1/4 the remainder is below float32's rounding, 6e-8.
"""


@inlined
def natural_log(x):
    """Return float32 `log x` for `0 < x <= 1`.

    x is written as `2^e m` with m near 1. The result is `e log 2` plus the series of `2 artanh((m -
    1) / (m + 1))`.
    """
    moved = bits(x) - SQRT_HALF + (64 << 23)  # x = 2^exponent m with m from sqrt(1/2) to sqrt(2)
    exponent = signed(moved >> 23) - 64.0
    m = from_bits((moved & MANTISSA) + SQRT_HALF)
    z = (m - 1.0) / (m + 1.0)
    z2 = z * z
    series = 1.0 + z2 * (1 / 3 + z2 * (1 / 5 + z2 * (1 / 7 + z2 * (1 / 9))))
    return exponent * LOG_2 + 2.0 * (z * series)


@inlined
def polynomial(coefficients, x):
    """Return `sum_n coefficients[n] x^n`, by Horner's rule."""
    last = len(coefficients) - 1
    value = coefficients[last] * x + coefficients[last - 1]
    for n in range(2, last + 1):
        value = value * x + coefficients[last - n]
    return value


@inlined
def box_muller(a, b):
    """Return two independent standard normal float32 numbers from two words of 32 random bits."""
    uniform = (signed(a >> 1) + 0.5) * 2.0**-31
    radius = root(-2.0 * natural_log(uniform))
    turn = signed(b) * 2.0**-32  # from -1/2 to 1/2
    x = from_bits(bits(turn) & 0x7FFFFFFF) - 0.25  # the angle 2 pi |turn| minus a right angle
    x2 = x * x
    sine = from_bits(bits(polynomial(COSINE, x2)) ^ (bits(turn) & SIGN))
    return radius * (x * polynomial(SINE, x2)), radius * sine


@inlined
def rotate(x, count):
    """Return a word of 32 bits, rotated to the left by `count` bits."""
    return (x << count) | (x >> (32 - count))


@inlined
def random_words(s0, s1, s2, s3):
    """Return a random word of 32 bits and the four words of the next state of xoshiro128++.

    s0 to s3: the current state. Source: Blackman, Vigna 2021.
    """
    word = rotate(s0 + s3, 7) + s0
    t = s1 << 9
    s2 = s2 ^ s0
    s3 = s3 ^ s1
    return word, s0 ^ s3, s1 ^ s2, s2 ^ t, rotate(s3, 11)


@compiled
def draw_normals(stream, Z):
    """Fill `Z` with iid standard normal numbers; `Z` has an even number of columns.

    stream: state of the random numbers, which is advanced.
    """
    s0, s1, s2, s3 = load(stream, 0, 0), load(stream, 1, 0), load(stream, 2, 0), load(stream, 3, 0)
    for i in range(Z.shape[0]):
        for j in range(0, Z.shape[1], 2):
            a, s0, s1, s2, s3 = random_words(s0, s1, s2, s3)
            b, s0, s1, s2, s3 = random_words(s0, s1, s2, s3)
            x, y = box_muller(a, b)
            store(Z, i, j, widen(x))
            store(Z, i, j + 1, widen(y))
    store(stream, 0, 0, s0)
    store(stream, 1, 0, s1)
    store(stream, 2, 0, s2)
    store(stream, 3, 0, s3)


# A layer


class Chains(NamedTuple):
    """Eight independent networks and their work arrays.

    The width d and the number of columns K are padded with zeros to even numbers.
    """

    G: np.ndarray  # (d, K, LANES) the state
    S: np.ndarray  # (K, K, LANES) G^T G
    L: np.ndarray  # (K, K, LANES) a lower triangular matrix, zero above
    Z: np.ndarray  # (2, K, LANES) two rows of normals
    W: np.ndarray  # (2, d, LANES) two rows of weights that are not Gaussian
    product: np.ndarray  # (2, K, LANES) two rows of a product; (d, K, LANES) for such weights
    stream: np.ndarray  # (4, 1, LANES) the state of the random numbers


@compiled
def cholesky(S, floor, columns, L):
    """Compute in place the lower triangular `L` with `L L^T = S + floor I`.

    Only the lower half of S is read. columns: the size of S without padding.
    """
    for j in range(columns):
        pivot = load(S, j, j) + floor
        for k in range(j):
            pivot = pivot - load(L, j, k) * load(L, j, k)
        pivot = root(pivot)
        store(L, j, j, pivot)
        inverse = 1.0 / pivot
        for i in range(j + 1, columns):
            value = load(S, i, j)
            for k in range(j):
                value = value - load(L, i, k) * load(L, j, k)
            store(L, i, j, value * inverse)


@compiled
def times_lower(A, first, L, out):
    """Set the two rows of `out` to rows `first` and `first + 1` of `A`, times `L^T`.

    L is lower triangular. Four sums are computed at once.
    """
    for j in range(0, L.shape[0], 2):
        a = b = c = d = splat(0.0)
        for k in range(j + 2):
            x, y = load(A, first, k), load(A, first + 1, k)
            u, v = load(L, j, k), load(L, j + 1, k)
            a = a + x * u
            b = b + x * v
            c = c + y * u
            d = d + y * v
        store(out, 0, j, a)
        store(out, 0, j + 1, b)
        store(out, 1, j, c)
        store(out, 1, j + 1, d)


@compiled
def add_gram(G, first, last, S):
    """Add `G^T G`, over the rows of G from `first` to `last - 1`, to S in place.

    Only the lower half of S and entries next to its diagonal are computed.
    """
    for j in range(0, S.shape[0], 2):
        for k in range(0, j + 2, 2):
            a, b = load(S, j, k), load(S, j, k + 1)
            c, d = load(S, j + 1, k), load(S, j + 1, k + 1)
            for i in range(first, last):
                x, y = load(G, i, j), load(G, i, j + 1)
                u, v = load(G, i, k), load(G, i, k + 1)
                a = a + x * u
                b = b + x * v
                c = c + y * u
                d = d + y * v
            store(S, j, k, a)
            store(S, j, k + 1, b)
            store(S, j + 1, k, c)
            store(S, j + 1, k + 1, d)


@inlined
def next_row(G, i, product, which, inverse_skip, law):
    """Replace row `i` of G, in place, by row `i` of `G / gamma + W G`, divided by its norm.

    product: an array whose row `which` holds row `i` of `W G`; this row is overwritten.
    inverse_skip: 1 / gamma. law: position of the weights' distribution in LAWS.

    If the new row is exactly zero, it is replaced by a row of norm one. Rows with a single entry
    can be zero by rounding (see `engines.without_zeros`). With Rademacher weights entries can
    cancel exactly; the row then becomes nan.
    """
    square = splat(0.0)
    for k in range(G.shape[1]):
        value = load(product, which, k) + inverse_skip * load(G, i, k)
        store(product, which, k, value)
        square = square + value * value
    if law == RADEMACHER:
        norm = root(square)
        for k in range(G.shape[1]):  # the division leaves signs exact, so that they can cancel
            store(G, i, k, load(product, which, k) / norm)
        return
    zero = is_zero(square)
    store(product, which, 0, load(product, which, 0) + zero)
    inverse = 1.0 / root(square + zero)
    for k in range(G.shape[1]):
        store(G, i, k, load(product, which, k) * inverse)


@inlined
def clear(S):
    """Fill S with zeros."""
    for j in range(S.shape[0]):
        for k in range(S.shape[1]):
            store(S, j, k, splat(0.0))


@compiled
def step(chains, width, columns, inverse_skip, floor):
    """Advance chains with Gaussian weights by one layer: replace G, row by row, and S = G^T G.

    width, columns: d and K without padding. inverse_skip: 1 / gamma. floor: number that is added to
    the eigenvalues of S, as in `RotatedChain`.
    """
    G, S = chains.G, chains.S
    cholesky(S, floor, columns, chains.L)
    clear(S)
    for first in range(0, G.shape[0], ROWS):
        last = min(first + ROWS, G.shape[0])
        for i in range(first, last, 2):
            draw_normals(chains.stream, chains.Z)
            times_lower(chains.Z, 0, chains.L, chains.product)
            next_row(G, i, chains.product, 0, inverse_skip, GAUSSIAN)
            if i + 1 < width:
                next_row(G, i + 1, chains.product, 1, inverse_skip, GAUSSIAN)
        add_gram(G, first, last, S)


# A layer of weights that are not Gaussian


@compiled
def draw_weights(stream, law, width, W):
    """Fill two rows of W with `width` weights of unit variance.

    stream: state of the random numbers, which is advanced. law: position of the distribution in
    LAWS.
    """
    s0, s1, s2, s3 = load(stream, 0, 0), load(stream, 1, 0), load(stream, 2, 0), load(stream, 3, 0)
    middle = 0.5 if law == UNIFORM else 0.0
    for i in range(2):
        word = s0
        for j in range(width):
            if law != RADEMACHER or j % 32 == 0:
                word, s0, s1, s2, s3 = random_words(s0, s1, s2, s3)
            if law == RADEMACHER:  # a bit of the word is the sign
                store(W, i, j, widen(from_bits(((word << (j % 32)) & SIGN) | ONE)))
            else:
                uniform = (signed(word >> 1) + 0.5) * 2.0**-31
                store(W, i, j, (widen(uniform) - middle) * LENGTH)
    store(stream, 0, 0, s0)
    store(stream, 1, 0, s1)
    store(stream, 2, 0, s2)
    store(stream, 3, 0, s3)


@compiled
def times_state(W, G, width, first, out):
    """Set rows `first` and `first + 1` of `out` to the two rows of weights W, times G.

    width: number of rows of G without padding. Four sums are computed at once.
    """
    for k in range(0, G.shape[1], 2):
        a = b = c = d = splat(0.0)
        for j in range(width):
            x, y = load(W, 0, j), load(W, 1, j)
            u, v = load(G, j, k), load(G, j, k + 1)
            a = a + x * u
            b = b + x * v
            c = c + y * u
            d = d + y * v
        store(out, first, k, a)
        store(out, first, k + 1, b)
        store(out, first + 1, k, c)
        store(out, first + 1, k + 1, d)


@compiled
def direct_step(chains, width, inverse_skip, law):
    """Advance chains by one layer with weights that are not Gaussian: replace G.

    width: d without padding. inverse_skip: 1 / gamma. law: position of the distribution in LAWS.
    """
    G = chains.G
    for i in range(0, width, 2):
        draw_weights(chains.stream, law, width, chains.W)
        times_state(chains.W, G, width, i, chains.product)
    for i in range(width):
        next_row(G, i, chains.product, i, inverse_skip, law)


# Observables


@compiled
def count_above(S, tau, columns, A):
    """Return the number of eigenvalues of S that are at least tau, for each chain.

    The number equals the number of nonnegative pivots in `S - tau I = L D L^T`. Only the lower half
    of S is read. columns: the size of S without padding. A: scratch space, which is overwritten.
    """
    for j in range(columns):
        for k in range(j + 1):
            store(A, j, k, load(S, j, k))
    count = splat(0.0)
    for j in range(columns):
        pivot = load(A, j, j) - tau
        count = count + not_negative(pivot)
        inverse = 1.0 / pivot
        for i in range(j + 1, columns):
            factor = load(A, i, j) * inverse
            for k in range(j + 1, i + 1):
                store(A, i, k, load(A, i, k) - factor * load(A, k, j))
    return count


@compiled
def spectral_moments(S):
    """Return `||S||_F^2` and `Tr S^3` of the symmetric matrix S; both halves of S are read."""
    square = cube = splat(0.0)
    for j in range(S.shape[0]):
        for k in range(j + 1):
            twice = 1.0 if k == j else 2.0
            inner = splat(0.0)
            for i in range(S.shape[0]):
                inner = inner + load(S, j, i) * load(S, k, i)
            cube = cube + twice * (inner * load(S, j, k))
            if k == j:
                square = square + inner
    return square, cube


@compiled
def squared_diagonal(G, S, A, product):
    """Return `Tr(diag(M^2)^2)`, the sum of `(g^T S g)^2` over the rows `g` of G.

    Only the lower half of S is read. A, product: scratch space, which is overwritten.
    """
    for j in range(S.shape[0]):
        for k in range(j):
            store(A, j, k, 2.0 * load(S, j, k))
        store(A, j, j, load(S, j, j))
    total = splat(0.0)
    for first in range(0, G.shape[0], 2):
        times_lower(G, first, A, product)
        for which in range(2):
            value = splat(0.0)
            for k in range(G.shape[1]):
                value = value + load(product, which, k) * load(G, first + which, k)
            total = total + value * value
    return total


@compiled
def observables(chains, width, columns, tau):
    """Return the `OBSERVABLES` of the chains, in their order.

    All observables of a chain are nan if its state is nan. width, columns: d and K without padding.
    tau: threshold of the soft rank.
    """
    S = chains.S
    for j in range(S.shape[0]):
        for k in range(j):
            store(S, k, j, load(S, j, k))
    frobenius, cubic = spectral_moments(S)
    diagonal = squared_diagonal(chains.G, S, chains.L, chains.product)
    soft_rank = count_above(S, tau, columns, chains.L) + (frobenius - frobenius)  # nan remains nan
    return soft_rank, float(width * width) / frobenius, frobenius, diagonal, cubic


@compiling.compiled
def advance(chains, law, width, columns, inverse_skip, floor, strides, stride, tau, measured, sums):
    """Advance the chains by `strides` times `stride` layers.

    - measured: whether the observables after each stride, and their squares, are added to `sums (2,
      5, LANES)`.
    - law: position of the weights' distribution in LAWS.
    - width, columns: d and K without padding.
    - inverse_skip: 1 / gamma.
    - floor: number that is added to the eigenvalues of S, as in `RotatedChain`.
    - tau: threshold of the soft rank.
    """
    for _ in range(strides):
        for _ in range(stride):
            if law == GAUSSIAN:
                step(chains, width, columns, inverse_skip, floor)
            else:
                direct_step(chains, width, inverse_skip, law)
        if measured:
            if law != GAUSSIAN:
                clear(chains.S)
                add_gram(chains.G, 0, width, chains.S)
            values = observables(chains, width, columns, tau)
            for n in range(len(values)):
                store(sums, 0, n, load(sums, 0, n) + values[n])
                store(sums, 1, n, load(sums, 1, n) + values[n] * values[n])


# Interface for the study


class CompiledChains:
    """Eight chains of one width and gamma with Gaussian inputs, computed by compiled code.

    With Gaussian weights they have the distribution of `RotatedChain`, otherwise of `DirectChain`.
    """

    def __init__(self, width: int, columns: int, skip: float, seed: int, law: str = "gaussian"):
        """Start with inputs `(width, columns)`.

        skip: gamma; inf is allowed. seed: seed of the random stream. law: one of `LAWS`.
        """
        d, K = width + width % 2, columns + columns % 2
        S = _zeros(K, K)
        S[range(columns), range(columns)] = 1  # a layer from G = 0 and S = I: Gaussian inputs
        stream = _zeros(4, 1, np.uint32)
        stream.flat = np.random.SeedSequence(seed).generate_state(stream.size, np.uint32)
        two_rows, product = _zeros(2, K), _zeros(2 if law == "gaussian" else d, K)
        self.chains = Chains(_zeros(d, K), S, _zeros(K, K), two_rows, _zeros(2, d), product, stream)
        self.constants = width, columns, 1 / skip, RotatedChain.FLOOR * width
        self.strides_of_call = MULTIPLICATIONS_OF_A_CALL // (d * K * (K + 16))
        self.law = GAUSSIAN
        self._run(strides=1, stride=1, tick=lambda strides: None)
        self.law = LAWS.index(law)
        if law == "rademacher":
            self.chains.G[:width] /= np.linalg.norm(self.chains.G[:width], axis=1, keepdims=True)

    @property
    def state(self) -> Float[np.ndarray, "8 d K"]:
        """Return the states `G = H / sqrt(N)` of the eight chains."""
        width, columns, *_ = self.constants
        return np.moveaxis(self.chains.G[:width, :columns], -1, 0).copy()

    def sample(
        self, plan: Plan, tau: float, tick: Callable[[int], None] = lambda strides: None
    ) -> Float[np.ndarray, "2 batches 8 5"]:
        """Run the chains by the plan; return batch means of each observable and of its square.

        The axes of the result are: mean or mean square; batches; chains; OBSERVABLES. tau:
        threshold of the soft rank. tick: called with the number of strides done, about ten times a
        second.
        """
        self._run(ceil(plan.burn_in / plan.stride), plan.stride, tick)
        sums = [self._run(plan.count, plan.stride, tick, tau) for _ in range(plan.batches)]
        return np.stack(sums, axis=1).swapaxes(2, 3) / plan.count

    def _run(
        self, strides: int, stride: int, tick: Callable[[int], None], tau: float | None = None
    ) -> Float[np.ndarray, "2 5 8"]:
        """Return sums over `strides` measurements, one after each stride; zeros without `tau`."""
        sums = _zeros(2, len(OBSERVABLES))
        while strides > 0:
            now = min(strides, max(1, self.strides_of_call // stride))
            measuring = tau or 0.0, tau is not None, sums
            advance(self.chains, self.law, *self.constants, now, stride, *measuring)
            strides -= now
            tick(now)
        return sums


def _zeros(rows: int, columns: int, dtype: type = np.float64) -> np.ndarray:
    """Return zeros `(rows, columns, LANES)`, aligned for vector instructions."""
    size = rows * columns * LANES * np.dtype(dtype).itemsize
    memory = np.zeros(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size].view(dtype).reshape(rows, columns, LANES)
