"""Compute hidden representations of linear networks with batch norm by layer (paper B, Eq. 1).

A chain carries `G = H / sqrt(N)`, so that `M(H) = H H^T / N = G G^T` and batch normalisation gives
every row of `G` the norm one. Because normalisation forgets the scale of a row, Eq. (1) becomes

    G  <-  rows of unit norm( G / gamma + W G ),

and `gamma = inf`, no skip connection, is simply `1 / gamma = 0`. The engines differ only in how
they draw `W G`:

`DirectChain`
    draws `W (d, d)` and multiplies: any law, any dtype, `G (d, N)`. The reference.
`RotatedChain`
    uses that, for Gaussian `W`, `W G` has the law of `Z R` with `Z (d, K)` iid normal and
    `R^T R = G^T G`. Only a few times `sqrt(d)` directions of `H` live above rounding, so
    `G (d, K)` with `K` just above that number stands for the whole of `H`: `d K` normals and
    `4 d K^2` flops a layer instead of `d^2` and `2 d^2 N`.
`kernel.CompiledChains`
    is the same, compiled for the CPU and several times faster there.

The first two advance a stack of independent chains, each with its own `gamma`, on the device of
their input, to which they move what is drawn.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import ceil, sqrt

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from runner.core.errors import InputError, lookup

Fill = Callable[[Tensor, Generator], Tensor]


LAWS: dict[str, Fill] = {
    "gaussian": lambda W, stream: W.normal_(generator=stream),
    "uniform": lambda W, stream: W.uniform_(-sqrt(3), sqrt(3), generator=stream),
    "rademacher": lambda W, stream: W.random_(0, 2, generator=stream).mul_(2).sub_(1),
}
"""Laws of the weights with zero mean and unit variance, symmetric around zero (Definition 1)."""

EVERY_LAW = LAWS | {"asymmetric": lambda W, stream: W.uniform_(0, 2 * sqrt(3), generator=stream)}
"""And one of positive weights of unit variance, as Section 4 has it against assumption (ii)."""

CONTINUOUS = ("gaussian", "uniform", "asymmetric")
"""Laws with a density: `H_l + gamma W_l H_l` has a row of zeros with probability zero."""

ZERO_DRAW = 2.0**-13
"""Typical size of a normal number that is drawn as exactly zero, once in 2^24 draws in float32: the
uniform number in its radius `sqrt(-2 log(1 - u))` is then below 2^-24."""


def fill(weights: Tensor, law: str, generator: Generator) -> Tensor:
    """Fill `weights` in place with iid draws of `law` and return it.

    Raises InputError for an unknown law.
    """
    return lookup("law", law, EVERY_LAW)(weights, generator)


def gaussian_inputs(
    chains: int, width: int, samples: int, generator: Generator, dtype: torch.dtype
) -> Float[Tensor, "chains d N"]:
    """Return inputs `X (d, N)` with iid standard Gaussian entries, one for each chain."""
    X = torch.empty(chains, width, samples, dtype=dtype)
    X.normal_(generator=generator)
    return without_zeros(X, 1.0) if samples == 1 else X


def collinear_inputs(
    chains: int, width: int, samples: int, noise: float, generator: Generator
) -> Float[Tensor, "chains d N"]:
    """Return nearly collinear inputs `u v^T + noise * X`, Gaussian `u, v, X` (Figure 3b)."""
    u = gaussian_inputs(chains, width, 1, generator, torch.float64)
    v = gaussian_inputs(chains, 1, samples, generator, torch.float64)
    return u @ v + noise * gaussian_inputs(chains, width, samples, generator, torch.float64)


def without_zeros(column: Float[Tensor, "*stack d 1"], scale: float) -> Float[Tensor, "*stack d 1"]:
    """Give the exact zeros among numbers of this scale the size that they were rounded from.

    In place. A row of one number has no direction where that is zero, and normalises to nan; rows
    of two and more are never zero altogether.
    """
    return column.masked_fill_(column == 0, ZERO_DRAW * scale)


def unit_rows(G: Float[Tensor, "*stack d K"], centred: bool = False) -> Float[Tensor, "*stack d K"]:
    """Return the batch normalization of `G = H / sqrt(N)` (Eq. 2): every row divided by its norm.

    `centred` subtracts the mean of each row first, as standard batch normalisation does; the paper
    leaves that out (Appendix C).
    """
    if centred:
        G = G - G.mean(dim=-1, keepdim=True)
    return G / torch.linalg.vector_norm(G, dim=-1, keepdim=True)


LANES = 8
"""Chains that the compiled engine carries side by side. Part of what a seed means."""


def columns(width: int) -> int:
    """Return `K = 2 sqrt(d) + 4`, enough columns for every surviving direction at width `d`.

    The number of live directions, `k*`, is measured at 1.4 to 1.9 `sqrt(d)`; the rest is margin.
    """
    return min(width, ceil(2 * sqrt(width)) + 4)


class Chain(ABC):
    """A stack of independent chains `H_{l+1} = BN(H_l + gamma W_l H_l)` (Eq. 1).

    A row of zeros cannot be normalised and makes its chain nan for good. It has probability zero
    under laws with a density, and where rounding makes one it is mended; under `rademacher` it is
    the chain's own end.

    Attributes:
        state: `G = H_l / sqrt(N) (chains, d, K)`, with rows of unit norm.
        norms: by what the last step divided the rows, `(chains, d, 1)`.
    """

    law, centred = "gaussian", False

    def __init__(
        self,
        inputs: Float[Tensor, "chains d K"],
        skips: Float[Tensor, " chains"] | float,
        generator: Generator,
    ):
        """Start at `inputs` (`H_0` at any scale of its rows); `skips` is gamma, inf allowed: of all
        chains or of each.

        Raises InputError for a gamma that is not positive.
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
        """Advance every chain by so many layers; `tick(1)` is called after each."""
        for _ in range(layers):
            self.step()
            tick(1)


class DirectChain(Chain):
    """Advance the chain directly: draw `W (d, d)` and multiply. `K` is the batch size `N`."""

    def __init__(
        self,
        inputs: Float[Tensor, "chains d N"],
        skips: Float[Tensor, " chains"] | float,
        generator: Generator,
        law: str = "gaussian",
        centred: bool = False,
    ):
        """As `Chain`; `law` is one of `EVERY_LAW`, else the first step raises InputError."""
        self.law, self.centred = law, centred
        super().__init__(inputs, skips, generator)
        chains, width, _ = inputs.shape
        self._weights = torch.empty(chains, width, width, dtype=inputs.dtype)  # on the CPU

    def _product(self) -> Float[Tensor, "chains d N"]:
        W = fill(self._weights, self.law, self.generator).to(self.state.device)
        return torch.bmm(W, self.state)


class RotatedChain(Chain):
    """Advance it in distribution, for Gaussian `W`: draw `Z (d, K)`, multiply by a root of `G^T G`.

    Conditionally on `G` the rows of `W G` are iid `N(0, G^T G)`, as are those of `Z R` with
    `R^T R = G^T G`. What is kept of `H` is `M = G G^T`, hence its singular values; its right
    singular vectors turn freely, so that the mean over samples is lost.

    A direction whose share of `G` sinks to rounding must be able to rise again, as it does in
    `DirectChain`, where rounding errors feed all directions. Hence `FLOOR * d` is added to the
    eigenvalues of `G^T G`, whose sum is `d`: directions are reflected there, not lost.

    The normals are drawn in float32, five times faster than float64 on a CPU: that changes the law
    of a weight by its rounding, 6e-8. All the rest is done in the dtype of `inputs`.
    """

    FLOOR = 1e-13

    def _product(self) -> Float[Tensor, "chains d K"]:
        gram = torch.bmm(self.state.mT, self.state)
        gram.diagonal(dim1=-2, dim2=-1).add_(self.FLOOR * self.state.shape[1])
        L, _ = torch.linalg.cholesky_ex(gram)  # unlike cholesky, does not wait for the device
        return torch.bmm(self._normals().to(self.state), L.mT)

    def _normals(self) -> Float[Tensor, "chains d K"]:
        """`Z`, on the CPU."""
        return torch.randn(self.state.shape, generator=self.generator, dtype=torch.float32)
