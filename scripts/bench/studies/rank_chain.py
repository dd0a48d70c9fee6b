"""Benchmark of study `rank_chain`: the compiled engine, one plain chain, and the torch engines.

The plain chain computes a rank at every layer. The torch engines are for GPUs.
"""

from collections.abc import Iterator
from functools import partial
from math import inf

import torch

from bench.growth import Growth
from bench.timing import Comparison, matrix_rate, median_seconds
from runner.papers.batch_norm_rank.rank_chain.batch_means import OBSERVABLES, Plan, sample
from runner.papers.batch_norm_rank.rank_chain.config import RankChain
from runner.papers.batch_norm_rank.rank_chain.engines import (
    LANES,
    Chain,
    DirectChain,
    RotatedChain,
    columns,
    gaussian_inputs,
)

TAU = 0.5

STACK = 4 * LANES
"""Networks that the torch engine advances together."""

LAYERS = 100_000
"""Number of layers to which times are scaled; only some of them are run."""


def plain_chain(width: int, layers: int, burn_in: int = 0) -> torch.Tensor:
    """Return the means of rank_tau and r over the layers of one chain, (2,).

    The code follows paper B's Eq. (1) with N = d and gamma = inf, and computes singular values at
    each layer.
    """
    H = torch.randn(width, width, dtype=torch.float64)
    total = torch.zeros(2, dtype=torch.float64)
    for layer in range(burn_in + layers):
        H = torch.randn(width, width, dtype=torch.float64) @ H
        H = H / H.square().mean(dim=1, keepdim=True).sqrt()
        if layer >= burn_in:
            eigenvalues = torch.linalg.svdvals(H).square() / width  # of M, whose trace is d
            total[0] += (eigenvalues >= TAU).sum()
            total[1] += width**2 / eigenvalues.square().sum()
    return total / layers


def compiled_chains(
    width: int, layers: int, burn_in: int = 0, law: str = "gaussian"
) -> torch.Tensor:
    """Run eight chains by the compiled engine, with the observables and the stride of the study."""
    from runner.papers.batch_norm_rank.rank_chain.kernel import (
        CompiledChains,  # late import of a compiler
    )

    plan = Plan.of(layers, LANES, RankChain().stride_of(width), burn_in)
    chains = CompiledChains(width, columns_of(width, law), inf, 0, law)
    return torch.from_numpy(chains.sample(plan, TAU))


def columns_of(width: int, law: str) -> int:
    """Return the number of columns in the chain's state.

    Only with Gaussian weights it can be smaller than the number of samples. law: the distribution
    of the weights.
    """
    return columns(width) if law == "gaussian" else width


def torch_chains(width: int, layers: int, burn_in: int = 0, law: str = "gaussian") -> torch.Tensor:
    """Run several chains by a torch engine, as on GPUs, with the same observables."""
    plan = Plan.of(layers, STACK, RankChain().stride_of(width), burn_in)
    generator = torch.Generator().manual_seed(0)
    inputs = gaussian_inputs(STACK, width, columns_of(width, law), generator, torch.float64)
    chain: Chain = RotatedChain(inputs, inf, generator)
    if law != "gaussian":
        chain = DirectChain(inputs, inf, generator, law)
    return sample(chain, plan, TAU)


def require_same_ranks(width: int) -> None:
    """Raise AssertionError unless all programs have the same mean of r, to 5 %."""
    plain = plain_chain(width, layers=max(300, 16_000 // width), burn_in=100)
    r = OBSERVABLES.index("rank_bound")
    for engine in (compiled_chains, torch_chains):
        ours = engine(width, layers=500, burn_in=100)
        torch.testing.assert_close(ours[0, ..., r].mean(), plain[1], rtol=0.05, atol=0)


def compare() -> Iterator[Comparison]:
    """Yield the seconds for 1e5 layers on one core, by width.

    The floor of a layer is the 2 d K^2 floating-point operations of two triangular products. It
    excludes drawing the d K normal numbers. The engine draws them faster than torch, so there is no
    rate for comparison.
    """
    flops = matrix_rate(torch.float64)
    for width in (8, 16, 32, 64, 128, 256):
        require_same_ranks(width)
        few = max(20, 20_000 // width)
        many = max(200, 200_000 // width)
        plain = median_seconds(partial(plain_chain, width, few), 3) / few
        ours = median_seconds(partial(compiled_chains, width, many), 3) / (many * LANES)
        in_torch = median_seconds(partial(torch_chains, width, many), 3) / (many * STACK)
        floor = 2 * width * columns(width) ** 2 / flops
        work = f"1e5 layers, d={width}"
        for what, theirs in (
            (work, plain),
            (f"{work}, first column: our torch version (for GPUs)", in_torch),
        ):
            times = (LAYERS * theirs, LAYERS * ours, LAYERS * floor)
            yield Comparison("rank_chain", what, *times, dtype="float64")
    for width in (8, 32):  # the floor of a layer is its product W G
        few, many = max(20, 6_000 // width), 200_000 // width
        compiled, in_torch = (
            way(width, few, burn_in=200, law="uniform")[0, ..., OBSERVABLES.index("rank_bound")]
            for way in (compiled_chains, torch_chains)
        )
        torch.testing.assert_close(compiled.mean(), in_torch.mean(), rtol=0.05, atol=0)
        work = f"1e5 layers, d={width}, uniform weights, our torch version (used on GPUs)"
        ours = median_seconds(partial(compiled_chains, width, many, law="uniform"), 3)
        theirs = median_seconds(partial(torch_chains, width, few, law="uniform"), 3)
        times = (theirs / (few * STACK), ours / (many * LANES), 2 * width**3 / flops)
        yield Comparison("rank_chain", work, *(LAYERS * t for t in times), dtype="float64")


GROWTH = Growth(
    RankChain(widths=[64], skips=[inf], layers=400_000),
    {"widths": (64, 256), "chains": (32, 128), "layers": (400_000, 1_600_000)},
)
