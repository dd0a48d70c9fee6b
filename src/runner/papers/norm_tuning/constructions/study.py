"""Study `constructions`: the constructions of paper A, and how far rounding limits them.

The paper proves that a frozen random network with suitable normalization parameters gamma and beta
equals any target network. Each replicate draws a target and frozen weights, and computes gamma and
beta. Then both functions are compared on inputs from the domain of the theorem. Numbers are float64
on the CPU for every `device` (LAPACK, one thread), or mpmath numbers with `precision` digits.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from math import nan

import torch
from jaxtyping import Float
from threadpoolctl import threadpool_limits
from torch import Tensor

from runner.core.choices import lookup
from runner.core.studies import Context
from runner.data import digits
from runner.papers.norm_tuning import theory
from runner.papers.norm_tuning.arithmetic import FLOAT64, Arithmetic, MultiPrecision
from runner.papers.norm_tuning.classifier import train_classifier
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.norm_tuning.constructions.rows import Reconstruction
from runner.papers.norm_tuning.network import Network, agreement, relu_network, truncate


def run(config: Constructions, context: Context) -> Iterator[Reconstruction]:
    """Construct a network for each replicate, compare it with its target, and yield the row."""
    with context.progress(config.replicates, "solving", unit="networks") as bar:
        for replicate in range(config.replicates):
            with one_thread():
                row = measured(config, replicate)
            bar.update(error=row.max_abs_error)
            yield row


@contextmanager
def one_thread() -> Iterator[None]:
    """Use only one thread in torch and LAPACK within the `with` block.

    Otherwise the number of threads would decide the order of sums, and so the last digits.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(threads)


def measured(config: Constructions, replicate: int) -> Reconstruction:
    """Draw a target, construct a network that equals it, compare both, and return the row."""
    target, inputs, accuracy = draw_problem(config, replicate)
    many = lookup("dtype", config.dtype, {"float64": False, "mpmath": True})
    arithmetic = MultiPrecision(config.precision) if many else FLOAT64
    construction, pairs = construct(config, target, replicate, inputs, arithmetic)
    exact = arithmetic.exact
    output = construction.network(exact(inputs))
    layers = target.layers
    g = relu_network([exact(t.weight) for t in layers], [exact(t.shift) for t in layers])
    expected = g(exact(inputs))
    systems = construction.systems
    equations = sum(system.shape[0] for system in systems)
    as_given = ("theorem", "target", "target_width", "depth", "sparsity", "dtype")
    return Reconstruction(
        **{name: getattr(config, name) for name in as_given},
        width=max(system.shape[1] for system in systems),
        block=config.block if config.theorem == "deep" else 0,
        rank=config.rank if config.theorem == "low_rank" else 0,
        replicate=replicate,
        max_abs_error=float(abs(output - expected).max()),
        agreement=agreement(output, expected),
        condition_number=construction.condition_number,
        rounding=construction.rounding,
        equations=equations,
        numerical_rank=sum(system.numerical_rank for system in systems),
        # The systems of Theorem 2 have no zeros.
        structural_rank=sum(theory.structural_rank(*p) for p in pairs) if pairs else equations,
        full_rank=construction.full_rank,
        cut_off_units=sum(theory.cut_off_units(*pair) for pair in pairs),
        solver="+".join(sorted({system.solver for system in systems})),
        target_accuracy=accuracy,
    )


def draw_problem(
    config: Constructions, replicate: int
) -> tuple[Network, Float[Tensor, "points d_in"], float]:
    """Return a target network, the inputs on which it is compared, and its accuracy on digits.

    The accuracy of a random target is nan. Raises InputError for an unknown target.
    """
    stream, d = config.stream(replicate, "target"), config.target_width
    if lookup("target", config.target, {"random": True, "convolution": True, "digits": False}):
        if config.target == "convolution":  # an input is a patch of d channels of 3 x 3 pixels
            d *= 9
        inputs = theory.random_matrix(config.points, d, config.stream(replicate, "inputs"))
        inputs /= inputs.norm(dim=1, keepdim=True)  # the boundary of the theorems' domain
        target, classes = random_target(config.target_width, config.depth, stream, d), None
    else:  # trained on all images, because it is only a target
        images, classes = digits.all_images()
        inputs = images.flatten(1)
        target = train_classifier(d, config.depth, stream, inputs, classes)
    if config.theorem == "low_rank":
        target = truncate(target, config.rank)
    right = nan if classes is None else (target(inputs).argmax(dim=1) == classes).double().mean()
    return target, inputs, float(right)


def random_target(width: int, depth: int, draw: torch.Generator, inputs: int) -> Network:
    """Return a random ReLU network, a target of Theorem 1.

    The weights are Gaussian matrices, divided by their spectral norm. The biases are `N(0, I /
    width)`.

    - width: number of units of each layer.
    - depth: number of layers.
    - draw: draws the numbers.
    - inputs: number of inputs.
    """
    weights, biases = [], []
    for layer in range(depth):
        W = theory.random_matrix(width, width if layer else inputs, draw)
        weights.append(W / torch.linalg.matrix_norm(W, 2))
        biases.append(torch.randn(width, generator=draw, dtype=torch.float64) / width**0.5)
    return relu_network(weights, biases)


def construct(
    config: Constructions,
    target: Network,
    replicate: int,
    inputs: Float[Tensor, "points d_in"],
    arithmetic: Arithmetic,
) -> tuple[theory.Construction, list[theory.Pair]]:
    """Return the network that Theorem 1, 2 or 3 or Corollary 1 constructs, and its frozen weights.

    The frozen weights are pairs W1, W2, one for each layer of the target. For Theorem 2 the list is
    empty.

    - target: the network to equal.
    - inputs: the inputs of the network. All hidden ReLUs are active up to their largest norm.
    - arithmetic: float64, or more digits (only for Theorem 2).

    Raises InputError for an unknown theorem.
    """
    stream, law = config.stream(replicate, "frozen weights"), config.distribution
    input_norm = float(inputs.norm(dim=1).max())
    lookup("theorem", config.theorem, dict.fromkeys(("wide", "low_rank", "deep", "sparse")))
    if config.theorem == "deep":
        weights = theory.deep_weights(target, config.block, stream, law)
        return theory.deep(target, weights, input_norm, arithmetic), []
    if config.theorem == "low_rank":
        target = theory.factorize(target, config.rank, input_norm)
    pairs = theory.wide_weights(target, config.width, stream, config.sparsity, law)
    return theory.wide(target, pairs, input_norm), pairs
