"""Engines that compute hidden representations of linear networks with batch norm (paper B, Eq. 1).

A chain is the sequence of hidden representations H of one network, layer by layer. Its state is `G
= H / sqrt(N)`. Then `M(H) = H H^T / N = G G^T`, and batch normalization gives every row of `G` the
norm one. Normalization removes the scale of a row, hence Eq. (1) becomes

    G  <-  rows of unit norm( G / gamma + W G ),

`gamma = inf` means no skip connection: `1 / gamma = 0`. The engines differ only in how they draw `W
G`:

- `DirectChain`, the reference, draws `W (d, d)` and multiplies. It works for any distribution and
  dtype. Its state is `G (d, N)`.
- `RotatedChain` is for Gaussian `W`. Then `W G` has the distribution of `Z R` with `Z (d, K)` iid
  normal and `R^T R = G^T G`. Only a few times `sqrt(d)` directions of `H` survive above rounding. A
  state `G (d, K)` with K just above this number therefore represents `H`. A layer needs `d K`
  normals and `4 d K^2` flops, not `d^2` and `2 d^2 N`.
- `kernel.CompiledChains` is the same algorithm, compiled for the CPU and several times faster.

The first two engines advance independent chains together, each with a separate `gamma`. They
compute on the device of their input and move the random draws to this device.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import ceil, sqrt

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.core.errors import InputError
from runner.networks.own_calls import method_of

Fill = Callable[[Tensor, Generator], Tensor]


LAWS: dict[str, Fill] = {
    "gaussian": lambda W, stream: W.normal_(generator=stream),
    "uniform": lambda W, stream: W.uniform_(-sqrt(3), sqrt(3), generator=stream),
    "rademacher": lambda W, stream: W.random_(0, 2, generator=stream).mul_(2).sub_(1),
}
"""Distributions with zero mean and unit variance, symmetric around zero (Definition 1)."""

EVERY_LAW = LAWS | {"asymmetric": lambda W, stream: W.uniform_(0, 2 * sqrt(3), generator=stream)}
"""LAWS, and positive weights of unit variance, which violate assumption (ii) (Section 4)."""

CONTINUOUS = ("gaussian", "uniform", "asymmetric")
"""Distributions with a density. `H_l + gamma W_l H_l` then has almost surely no row of zeros."""

ZERO_DRAW = 2.0**-13
"""Typical size of a normal number that float32 rounds to exactly zero, once in 2^24 draws.

The uniform number u in the radius `sqrt(-2 log(1 - u))` of such a number is below 2^-24.
"""


def fill(weights: Tensor, law: str, generator: Generator) -> Tensor:
    """Fill `weights` in place with iid draws of the distribution `law` and return them.

    Raises InputError for an unknown distribution.
    """
    return method_of("law", law, EVERY_LAW)(weights, generator)


def gaussian_inputs(
    chains: int, width: int, samples: int, generator: Generator, dtype: torch.dtype
) -> Float[Tensor, "chains d N"]:
    """Return inputs `X (d, N)` with iid standard Gaussian entries, one matrix per network.

    chains: number of networks. width: d. samples: N.
    """
    X = torch.empty(chains, width, samples, dtype=dtype)
    X.normal_(generator=generator)
    return without_zeros(X, 1.0) if samples == 1 else X


def collinear_inputs(
    chains: int, width: int, samples: int, noise: float, generator: Generator
) -> Float[Tensor, "chains d N"]:
    """Return nearly collinear inputs `u v^T + noise * X` of independent networks (Figure 3b).

    The vectors `u (d, 1)` and `v (N, 1)` and the matrix `X (d, N)` are iid standard Gaussian.
    chains: number of networks. width: d. samples: N. noise: the factor of X.
    """
    u = gaussian_inputs(chains, width, 1, generator, torch.float64)
    v = gaussian_inputs(chains, 1, samples, generator, torch.float64)
    return u @ v + noise * gaussian_inputs(chains, width, samples, generator, torch.float64)


def without_zeros(column: Float[Tensor, "*stack d 1"], scale: float) -> Float[Tensor, "*stack d 1"]:
    """Replace exact zeros in place by a typical size of numbers that were rounded to zero.

    Returns the column. Its rows have one number each. A zero has no direction and would be
    normalized to nan. scale: standard deviation of the numbers.
    """
    return column.masked_fill_(column == 0, ZERO_DRAW * scale)


def unit_rows(G: Float[Tensor, "*stack d K"], centred: bool = False) -> Float[Tensor, "*stack d K"]:
    """Return the batch normalization of `G = H / sqrt(N)` (Eq. 2): every row divided by its norm.

    centred: subtract the mean of each row first, like standard batch normalization; the paper omits
    this (Appendix C).
    """
    if centred:
        G = G - G.mean(dim=-1, keepdim=True)
    return G / torch.linalg.vector_norm(G, dim=-1, keepdim=True)


LANES = 8
"""Number of chains that the compiled engine advances together. Results of a seed depend on it."""


def columns(width: int) -> int:
    """Return K, the number of columns that `RotatedChain` stores of a state G of width d.

    K is 2 sqrt(d), rounded up, plus 4, and at most d. These columns are enough: in our measurements
    only 1.4 sqrt(d) to 1.9 sqrt(d) directions of G stay above rounding errors.
    """
    return min(width, ceil(2 * sqrt(width)) + 4)


class Chain(ABC):
    """Independent chains `H_{l+1} = BN(H_l + gamma W_l H_l)` (Eq. 1), advanced together.

    A row of zeros cannot be normalized, so its chain is nan from then on. If the distribution of
    the weights has a density, rows of zeros have probability zero. Rows that are zero by rounding
    are then corrected. With `rademacher` weights they are not corrected.

    - state: `G = H_l / sqrt(N) (chains, d, K)`, with rows of unit norm.
    - norms: the norms by which the last step divided the rows, `(chains, d, 1)`.
    """

    law, centred = "gaussian", False

    def __init__(
        self,
        inputs: Float[Tensor, "chains d K"],
        skips: Float[Tensor, " chains"] | float,
        generator: Generator,
    ):
        """Start at `inputs`, which are `H_0` with rows of any scale.

        skips: gamma of all chains, or of each chain; inf is allowed. Raises InputError for a gamma
        that is not positive.
        """
        skips = torch.as_tensor(skips, dtype=inputs.dtype, device=inputs.device)
        if not bool((skips > 0).all()):
            raise InputError(f"skips={skips.tolist()}: gamma must be positive, or inf for no skip")
        self.generator = generator
        self.state = unit_rows(inputs, self.centred)
        self.norms = torch.ones_like(self.state[..., :1])
        self.inverse_skips = (1 / skips).view(-1, 1, 1)

    def step(self) -> None:
        """Advance every chain by one layer."""
        G = self._product().addcmul_(self.state, self.inverse_skips)
        if self.centred:
            G.sub_(G.mean(dim=-1, keepdim=True))
        elif G.shape[-1] == 1 and self.law in CONTINUOUS:
            without_zeros(G, sqrt(G.shape[-2]))
        self.norms = torch.linalg.vector_norm(G, dim=-1, keepdim=True)
        self.state = G / self.norms

    @abstractmethod
    def _product(self) -> Float[Tensor, "chains d K"]:
        """Return a draw of `W G`."""

    def advance(self, layers: int, tick: Callable[[int], None] = lambda layers: None) -> None:
        """Advance every chain by a number of layers.

        tick: called with 1 after each layer.
        """
        for _ in range(layers):
            self.step()
            tick(1)


class DirectChain(Chain):
    """Chains that compute `W G` directly: they draw the whole `W (d, d)` and multiply.

    Every distribution of `EVERY_LAW` is possible. The state `G (chains, d, K)` has one column for
    each sample: `K = N`, the batch size.
    """

    def __init__(
        self,
        inputs: Float[Tensor, "chains d N"],
        skips: Float[Tensor, " chains"] | float,
        generator: Generator,
        law: str = "gaussian",
        centred: bool = False,
    ):
        """Start as `Chain`. law: one of `EVERY_LAW`; else the first step raises InputError."""
        self.law, self.centred = law, centred
        super().__init__(inputs, skips, generator)
        chains, width, _ = inputs.shape
        self._weights = torch.empty(chains, width, width, dtype=inputs.dtype)  # on the CPU

    def _product(self) -> Float[Tensor, "chains d N"]:
        W = fill(self._weights, self.law, self.generator).to(self.state.device)
        return torch.bmm(W, self.state)


class RotatedChain(Chain):
    """Chains with Gaussian `W` that draw `W G` without drawing `W`, with the same distribution.

    For a given state `G (d, K)`, the rows of `W G` are iid `N(0, G^T G)`. The rows of `Z R` have
    the same distribution, with standard normal `Z (d, K)` and `R^T R = G^T G`. The chains compute
    `Z R`. The distributions of `M = G G^T` and of the singular values of `H` do not change. The
    right singular vectors rotate freely, so the mean over samples is lost.

    A direction whose fraction of `G` falls to rounding must be able to rise again. In `DirectChain`
    rounding errors feed all directions. Here `FLOOR * d` is added to the eigenvalues of `G^T G`,
    whose sum is `d`. Directions are therefore reflected at this value and not lost.

    The normals are drawn in float32, which on a CPU is five times faster than float64. This
    rounding changes the distribution of a weight by 6e-8. All other numbers have the dtype of
    `inputs`.
    """

    FLOOR = 1e-13

    def _product(self) -> Float[Tensor, "chains d K"]:
        gram = torch.bmm(self.state.mT, self.state)
        gram.diagonal(dim1=-2, dim2=-1).add_(self.FLOOR * self.state.shape[1])
        L, _ = torch.linalg.cholesky_ex(gram)  # cholesky would wait for the device
        return torch.bmm(self._normals().to(self.state), L.mT)

    def _normals(self) -> Float[Tensor, "chains d K"]:
        """Return standard normal `Z`, on the CPU."""
        return torch.randn(self.state.shape, generator=self.generator, dtype=torch.float32)
