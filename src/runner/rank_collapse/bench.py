"""Benchmark: the rotated engine against one plain chain with a rank at every layer."""

from collections.abc import Iterator
from functools import partial
from math import inf

import torch

from runner.bench import Comparison, matrix_rate, median_seconds
from runner.rank_collapse import bench_breaking, bench_training
from runner.rank_collapse.averages import Plan, sample
from runner.rank_collapse.chains import RotatedChain, columns, gaussian_inputs
from runner.rank_collapse.config import RankChain
from runner.rank_collapse.pool import NUMBERS_IN_BLOCK, plan_blocks

LAYERS = 100_000
"""Times are those of so many layers; what is run is a part of them."""


def plain_chain(width: int, layers: int) -> torch.Tensor:
    """One chain as one would write it down: (1) with N = d, gamma = inf, and the rank by layer."""
    H = torch.randn(width, width, dtype=torch.float64)
    total = torch.zeros((), dtype=torch.int64)
    for _ in range(layers):
        H = torch.randn(width, width, dtype=torch.float64) @ H
        H = H / H.square().mean(dim=1, keepdim=True).sqrt()
        total += torch.linalg.matrix_rank(H)
    return total / layers


def rotated_chains(width: int, layers: int) -> torch.Tensor:
    """A block of chains by the rotated engine, with the observables and the stride of the study."""
    generator = torch.Generator().manual_seed(0)
    chains = chains_in_block(width)
    inputs = gaussian_inputs(chains, width, columns(width), generator, torch.float64)
    chain = RotatedChain(inputs, torch.full((chains,), inf), generator)
    plan = Plan.of(layers, chains, RankChain().stride_of(width), burn_in=0)
    return sample(chain, plan, tau=0.5)


def chains_in_block(width: int) -> int:
    """The size of the study's first block at its default number of chains."""
    config = RankChain(widths=[width], skips=[inf])
    return plan_blocks(config, NUMBERS_IN_BLOCK["cpu"])[0].chains


def unavoidable(width: int) -> float:
    """Seconds of one layer's normals and 2 d K^2 flops of one product, at this machine's rates."""
    kept = columns(width)
    normals = torch.empty(2**16)
    drawing = median_seconds(normals.normal_) / len(normals)
    return width * kept * drawing + 2 * width * kept**2 / matrix_rate(torch.float64)


def rank_chain() -> Iterator[Comparison]:
    """Seconds for 1e5 layers on one core, by width."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        for width in (8, 16, 32, 64, 128, 256):
            few = max(20, 20_000 // width)
            many = max(20, 12_800 // width)
            plain = median_seconds(partial(plain_chain, width, few), 3) / few
            ours = median_seconds(partial(rotated_chains, width, many), 3) / (
                many * chains_in_block(width)
            )
            floor = unavoidable(width)
            work = f"1e5 layers, d = {width}"
            yield Comparison("rank_chain", work, LAYERS * plain, LAYERS * ours, LAYERS * floor)
    finally:
        torch.set_num_threads(threads)


BENCHES = {
    "rank_chain": rank_chain,
    "rank_collapse": bench_training.compare,
    "breaking_bn": bench_breaking.compare,
}
