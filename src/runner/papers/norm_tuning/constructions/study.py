"""Study `constructions`: paper A's constructive theorems, and where rounding ends them.

The paper proves that a frozen random network can be made equal to any target by its normalization
parameters; it never computes one such network. Each replicate draws a target and a frozen network,
constructs the parameters, and compares both functions on inputs from the domain of the theorem.
Float64 on the CPU (LAPACK, one thread), whatever the device; or mpmath with `precision` digits.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from threadpoolctl import threadpool_limits
from torch import Tensor

from runner.core.errors import lookup
from runner.core.streams import generator
from runner.core.studies import Context, Row
from runner.data import CLASSES, SHAPES
from runner.papers.norm_tuning import theory
from runner.papers.norm_tuning.arithmetic import FLOAT64, Arithmetic, MultiPrecision
from runner.papers.norm_tuning.classifier import PIXELS, digit_images, train_classifier
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.norm_tuning.constructions.sparsity import (
    cut_off_units,
    khatri_rao_structural_rank,
)
from runner.papers.norm_tuning.network import (
    Block,
    Layer,
    Matrix,
    Network,
    agreement,
    relu_network,
    truncate,
)
from runner.papers.norm_tuning.solvers import EPSILON, system_bytes

MPMATH_NUMBER = 200
"""Bytes of a number of mpmath without its digits."""


@dataclass(frozen=True)
class Reconstruction(Row):
    """One row per replicate."""

    table: ClassVar[str] = "metrics"
    keys: ClassVar[tuple[str, ...]] = (
        "theorem",
        "target",
        "target_width",
        "width",
        "block",
        "rank",
        "depth",
        "sparsity",
        "dtype",
        "replicate",
    )

    theorem: str
    target: str
    target_width: int  # d
    width: int  # most hidden units in a layer of the reconstruction: m, d r or d k
    block: int  # k of Theorem 2; 0 for the others
    rank: int  # r of Corollary 1; 0 for the others
    depth: int  # l, the layers of the target
    sparsity: float  # p, the fraction of frozen weights that are kept
    dtype: str
    replicate: int
    max_abs_error: float  # largest |f(x) - g(x)| over all test inputs and outputs
    agreement: float  # fraction of test inputs where the largest output is the same; nan if one is
    condition_number: float  # the largest sigma_max / sigma_min of K among the linear systems
    rounding: float  # the largest n eps condition_number, for n equations; eps that of float64
    equations: int  # in all systems
    numerical_rank: int  # sum over all systems
    structural_rank: int  # sum over all systems
    full_rank: bool  # whether every system can be solved for every target
    cut_off_units: int  # hidden units with no incoming or no outgoing frozen weight
    solver: str
    target_accuracy: float  # fraction of the digits that the target gets right; nan if random


def run(config: Constructions, context: Context) -> Iterator[Reconstruction]:
    """Yield one row per replicate."""
    pairs = 2 if config.theorem == "low_rank" else 1
    total = config.replicates * config.depth * pairs
    with context.progress(total, "solving", unit="matrices") as bar:
        if config.dtype == "mpmath":
            bar.foretell(mpmath_seconds(config))
        for replicate in range(config.replicates):
            with one_thread():
                row = _measure(config, replicate, bar.update)
            bar.update(0, error=row.max_abs_error)
            yield row


def memory(config: Constructions) -> int:
    """Bytes at the peak of one replicate: the target and the frozen weights, and by turns the
    training or the factorization of the target, one linear system or the zeros of one, and an
    evaluation of the reconstruction. With mpmath a number is an object.
    """
    number = 8 if config.dtype == "float64" else MPMATH_NUMBER + config.precision // 2
    digits, p = config.target == "digits", config.sparsity
    points = SHAPES["digits"][0] if digits else config.points
    ends = (PIXELS, CLASSES) if digits else (config.target_width,) * 2
    hidden = [config.target_width] * (config.depth - 1)
    shapes = list(pairwise([ends[0], *hidden, ends[1]]))
    target = 8 * sum(n_in * n_out for n_in, n_out in shapes)
    largest = 8 * max(n_in * n_out for n_in, n_out in shapes)
    training = 4 * target + 8 * 2 * points * sum(n_out for _, n_out in shapes) if digits else 0
    if config.theorem == "deep":
        blocks = [(n_out * config.block, -(-n_in // config.block)) for n_in, n_out in shapes]
        # The W_i and A_i as they are drawn and in the arithmetic of the construction; half as much
        # again is lost between them, measured.
        frozen = int(1.5 * (8 + number)) * sum(n * w * (w + config.block) for w, n in blocks)
        widest = max(w for w, _ in blocks)
        elimination = 1 if config.dtype == "float64" else 6
        systems = [number * elimination * widest**2]
    else:
        rank = config.rank
        pairs = [(k, d, config.width or d * k) for k, d in shapes]
        if config.theorem == "low_rank":
            pairs = [
                (a, b, a * b) for n_in, n_out in shapes for a, b in ((n_in, rank), (rank, n_out))
            ]
        frozen = 8 * sum(m * (k + d) for k, d, m in pairs)
        widest = max(m for _, _, m in pairs)
        systems = [
            system_bytes(d, k, m, theory.rank_is_likely_lower(d, k, m, p)) for k, d, m in pairs
        ]
        if p < 1:
            systems += [int(d * k * m * (5 + 30 * p**2)) for k, d, m in pairs]
    factorization = 8 * largest  # the copies and the workspace of an SVD
    # The values of a layer on their way through it, and what the skips of Theorem 2 bring in.
    passing = 5 if config.theorem == "deep" else 3
    evaluation = number * points * (passing * widest + 2 * ends[0])
    return 2 * target + frozen + max(training, factorization, *systems, evaluation)


def mpmath_seconds(config: Constructions) -> float:
    """How long the systems of Theorem 2 take with `precision` digits, from the time of a row."""
    arithmetic = MultiPrecision(config.precision)
    d = config.target_width
    ends = (PIXELS, CLASSES) if config.target == "digits" else (d, d)
    shapes = Counter(pairwise([ends[0], *[d] * (config.depth - 1), ends[1]]))
    one = sum(
        count * -(-n_in // config.block) * arithmetic.seconds(n_out * config.block)
        for (n_in, n_out), count in shapes.items()
    )
    return config.replicates * one


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for torch and LAPACK: the order of sums, and so the last digits, depend on it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


def _measure(config: Constructions, replicate: int, tick: Callable[[], None]) -> Reconstruction:
    """Draw, construct, and compare one replicate; `tick` is called after every matrix."""
    target, inputs, accuracy = _problem(config, replicate)
    arithmetics = {"float64": lambda: FLOAT64, "mpmath": lambda: MultiPrecision(config.precision)}
    arithmetic: Arithmetic = lookup("dtype", config.dtype, arithmetics)()
    input_norm = float(inputs.norm(dim=1).max())
    construction, pairs = _construct(config, target, replicate, input_norm, arithmetic, tick)
    found = construction.network(arithmetic.exact(inputs))
    expected = _in_arithmetic(target, arithmetic)(arithmetic.exact(inputs))
    systems = construction.systems
    equations = sum(system.shape[0] for system in systems)
    return Reconstruction(
        theorem=config.theorem,
        target=config.target,
        target_width=config.target_width,
        width=max(system.shape[1] for system in systems),
        block=config.block if config.theorem == "deep" else 0,
        rank=config.rank if config.theorem == "low_rank" else 0,
        depth=config.depth,
        sparsity=config.sparsity,
        dtype=config.dtype,
        replicate=replicate,
        max_abs_error=float(abs(found - expected).max()),
        agreement=agreement(found, expected),
        condition_number=construction.condition_number,
        rounding=float(
            np.max([each.shape[0] * EPSILON * each.condition_number for each in systems])
        ),
        equations=equations,
        numerical_rank=sum(system.numerical_rank for system in systems),
        # The systems of Theorem 2 have no zeros.
        structural_rank=sum(khatri_rao_structural_rank(*p) for p in pairs) if pairs else equations,
        full_rank=construction.full_rank,
        cut_off_units=sum(cut_off_units(*pair) for pair in pairs),
        solver="+".join(sorted({system.solver for system in systems})),
        target_accuracy=accuracy,
    )


def _problem(
    config: Constructions, replicate: int
) -> tuple[Network, Float[Tensor, "points d_in"], float]:
    """A target, the inputs on which to compare, and the target's accuracy (nan if random)."""
    draw, d = generator(config.seed, replicate, "target"), config.target_width

    def random() -> tuple[Network, Matrix, None]:
        inputs = unit_inputs(config.points, d, generator(config.seed, replicate, "inputs"))
        return random_target(d, config.depth, draw), inputs, None

    def digits() -> tuple[Network, Matrix, Tensor]:
        # on all images: it serves as a target, not as a predictor of unseen digits
        inputs, classes = digit_images()
        return train_classifier(d, config.depth, draw, inputs, classes), inputs, classes

    targets = {"random": random, "digits": digits}
    target, inputs, classes = lookup("target", config.target, targets)()
    if config.theorem == "low_rank":
        target = truncate(target, config.rank)
    if classes is None:
        return target, inputs, float("nan")
    return target, inputs, float((target(inputs).argmax(dim=1) == classes).double().mean())


def random_target(width: int, depth: int, draw: torch.Generator) -> Network:
    """A target of Theorem 1: Gaussian `W*_i (d, d)` of spectral norm one, biases `N(0, I / d)`."""
    weights, biases = [], []
    for _ in range(depth):
        W = torch.randn(width, width, generator=draw, dtype=torch.float64)
        weights.append(W / torch.linalg.matrix_norm(W, 2))
        biases.append(torch.randn(width, generator=draw, dtype=torch.float64) / width**0.5)
    return relu_network(weights, biases)


def unit_inputs(points: int, width: int, draw: torch.Generator) -> Float[Tensor, "points width"]:
    """Inputs on the unit sphere, the far edge of the domain `||x|| <= 1` of the theorems."""
    directions = torch.randn(points, width, generator=draw, dtype=torch.float64)
    return directions / directions.norm(dim=1, keepdim=True)


def _construct(
    config: Constructions,
    target: Network,
    replicate: int,
    input_norm: float,
    arithmetic: Arithmetic,
    tick: Callable[[], None],
) -> tuple[theory.Construction, list[tuple[Tensor, Tensor]]]:
    """The reconstruction, and its pairs of frozen weights (none for Theorem 2)."""
    draw = generator(config.seed, replicate, "frozen weights")

    def wide() -> tuple[theory.Construction, list[tuple[Tensor, Tensor]]]:
        pairs = theory.wide_weights(target, config.width, draw, config.sparsity)
        return theory.wide(target, _ticking(pairs, tick), input_norm), pairs

    def low_rank() -> tuple[theory.Construction, list[tuple[Tensor, Tensor]]]:
        factors = theory.factorize(target, config.rank, input_norm)
        pairs = theory.wide_weights(factors, None, draw)
        return theory.low_rank(target, config.rank, _ticking(pairs, tick), input_norm), pairs

    def deep() -> tuple[theory.Construction, list[tuple[Tensor, Tensor]]]:
        weights = theory.deep_weights(target, config.block, draw)
        return theory.deep(target, _ticking(weights, tick), input_norm, arithmetic), []

    theorems = {"wide": wide, "sparse": wide, "low_rank": low_rank, "deep": deep}
    return lookup("theorem", config.theorem, theorems)()


def _ticking(weights: list[Any], tick: Callable[[], None]) -> Iterator[Any]:
    """The weights one after the other; `tick` is called when one has been used."""
    for each in weights:
        yield each
        tick()


def _in_arithmetic(target: Network, arithmetic: Arithmetic) -> Network:
    """The same network with its numbers in another arithmetic."""
    exact = arithmetic.exact
    return Network(
        tuple(
            Block((Layer(exact(t.weight), exact(t.scale), exact(t.shift), t.relu),))
            for t in target.layers
        )
    )
