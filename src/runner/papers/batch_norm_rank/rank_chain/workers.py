"""Averages over depth for many widths and gammas at once, on all cores.

A point is one width and one gamma. The chains of a point, which are independent networks, are
divided into stacks. Each stack has a separate random stream. Results therefore depend neither on
the run's other points nor on the number of threads. Torch and compiled code release Python's
interpreter lock. One thread per core, with kernels of one thread each, is much faster than many
threads on one small kernel.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.errors import InputError
from runner.core.streams import stream_seed
from runner.core.studies import Context
from runner.networks.precision import torch_dtype
from runner.papers.batch_norm_rank.rank_chain import engines
from runner.papers.batch_norm_rank.rank_chain.batch_means import Plan, sample, tell_nan
from runner.papers.batch_norm_rank.rank_chain.config import RankChain

NUMBERS_IN_STACK = 2**17
"""Numbers in the state `G` of a stack that fit in the cache of a core.

Compiled stacks have `LANES` chains instead. Results of a seed depend on this number, so all devices
use the same number.
"""


@dataclass(frozen=True)
class ChainStack:
    """A group of networks of one width and one gamma (`skip`) that are computed together.

    index: number of the stack among the stacks of this width and gamma. chains: number of networks.
    plan: which layers are measured.
    """

    width: int
    skip: float
    index: int
    chains: int
    plan: Plan

    @property
    def name(self) -> str:
        """Return the stack's key in a checkpoint, which is also the name of its random stream."""
        return f"average d={self.width} gamma={self.skip} block={self.index}"

    @property
    def layers(self) -> int:
        """Return the total number of layers over all networks, the burn-in included."""
        return self.chains * (self.plan.layers + self.plan.burn_in)


class Stopped(Exception):
    """Error that ends the computation of a stack in its thread when the run ends early."""


def average(
    config: RankChain, context: Context
) -> Iterator[tuple[int, float, Plan, Float[Tensor, "2 batches 5"]]]:
    """Yield for each point its width, gamma, plan, and batch means (see `batch_means.sample`).

    Raises InputError for engine=kernel on a GPU.
    """
    if config.engine == "kernel" and context.device.type != "cpu":
        raise InputError(f"engine=kernel needs device=cpu, not {context.device}")
    stacks = plan_stacks(config, context.device.type)
    results = dict(context.restored or {})
    todo = [stack for stack in stacks if stack.name not in results]
    total = sum(stack.layers for stack in stacks)
    done = total - sum(stack.layers for stack in todo)
    with context.progress(total, "measuring", done=done, unit="layers") as bar:
        for stack, moments in compute(todo, config, context.device, bar.update):
            results[stack.name] = moments
            context.checkpoint(lambda: results)
    for width, skip in product(config.widths, config.skips):
        alike = [stack for stack in stacks if (stack.width, stack.skip) == (width, skip)]
        parts, plan = [results[stack.name] for stack in alike], alike[0].plan
        ends = [part[0].unflatten(0, (plan.batches, -1))[-1] for part in parts]
        tell_nan(torch.cat(ends), f"d={width} gamma={skip}")
        yield width, skip, plan, torch.cat(parts, dim=1)


def plan_stacks(config: RankChain, device: str) -> list[ChainStack]:
    """Return all stacks of a run, the most expensive first, so that threads end together.

    device: "cpu" or "cuda".
    """
    stacks = []
    for width in config.widths:
        largest = chains_in_stack(config, width, device)
        for skip in config.skips:
            plan = plan_of(config, width, config.burn_in_of(width, skip))
            for index, start in enumerate(range(0, config.chains, largest)):
                chains = min(largest, config.chains - start)
                stacks.append(ChainStack(width, skip, index, chains, plan))
    return sorted(stacks, key=lambda stack: stack.layers * stack.width**2, reverse=True)


def plan_of(config: RankChain, width: int, burn_in: int) -> Plan:
    """Return the plan of each network of a width: its layers, and which layers are measured.

    burn_in: layers before the first measurement.
    """
    return Plan.of(config.layers_of_chain(), config.chains, config.stride_of(width), burn_in)


def chains_in_stack(config: RankChain, width: int, device: str) -> int:
    """Return the largest number of networks of a width that are computed together.

    device: "cpu" or "cuda".
    """
    if config.engine_on(device) == "kernel":
        return engines.LANES
    return max(1, NUMBERS_IN_STACK // (width * engines.columns(width)))


def compute(
    stacks: list[ChainStack], config: RankChain, device: torch.device, report: Callable[[int], None]
) -> Iterator[tuple[ChainStack, Float[Tensor, "2 batches 5"]]]:
    """Yield each stack with its batch means, as soon as they are ready.

    The stacks are computed in several threads on the CPU, in one thread on other devices. report:
    called with the number of layers done.
    """
    threads = torch.get_num_threads()
    workers = threads if device.type == "cpu" else 1
    stop, lock = threading.Event(), threading.Lock()

    def work(stack: ChainStack) -> Tensor:
        """Return the batch means of a stack. Raises Stopped if the run has ended."""

        def tick(strides: int) -> None:
            if stop.is_set():
                raise Stopped
            with lock:
                report(stack.chains * strides * stack.plan.stride)

        return batch_means(stack, config, device, tick)

    pool = ThreadPoolExecutor(workers, initializer=torch.set_num_threads, initargs=(1,))
    try:
        futures = {pool.submit(work, stack): stack for stack in stacks}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)


def batch_means(
    stack: ChainStack, config: RankChain, device: torch.device, tick: Callable[[int], None]
) -> Float[Tensor, "2 batches 5"]:
    """Return the batch means of a stack's networks, computed with the engine that the run selects.

    tick: called with the number of strides done. Raises InputError for an unknown engine.
    """
    if config.engine_on(device.type) != "kernel":
        return sample(make_chain(stack, config, device), stack.plan, config.tau, tick).cpu()
    from runner.papers.batch_norm_rank.rank_chain import kernel  # late import of a compiler

    width, seed = stack.width, stream_seed(config.seed, stack.index, stack.name)
    is_rotated = config.law == "gaussian"
    count = kept_columns(width, config) if is_rotated else config.samples_of(width)
    chains = kernel.CompiledChains(width, count, stack.skip, seed, config.law)
    moments = torch.from_numpy(chains.sample(stack.plan, config.tau, tick))
    return moments[:, :, : stack.chains].flatten(1, 2)  # without unused lanes


def make_chain(stack: ChainStack, config: RankChain, device: torch.device) -> engines.Chain:
    """Return the networks of a stack, which start from Gaussian inputs.

    The engine is `RotatedChain` or `DirectChain`, as the parameters select. Raises InputError for
    an unknown engine.
    """
    width, engine = stack.width, config.engine_on(device.type)
    is_rotated = lookup("engine", engine, {"rotated": True, "direct": False})
    count = kept_columns(width, config) if is_rotated else config.samples_of(width)
    stream = config.stream(stack.index, stack.name)
    dtype = torch_dtype(config.dtype)
    inputs = engines.gaussian_inputs(stack.chains, width, count, stream, dtype).to(device)
    if is_rotated:
        return engines.RotatedChain(inputs, stack.skip, stream)
    return engines.DirectChain(inputs, stack.skip, stream, config.law, config.centred)


def kept_columns(width: int, config: RankChain) -> int:
    """Return the number K of columns of the rotated state, at most the number of samples."""
    return min(config.columns or engines.columns(width), config.samples_of(width))
