"""The constructions of paper A: gamma and beta with which a random network equals a target network.

Notation of the paper: a layer of the target has weights `W* (d, k)`. The frozen random weights of
the layers that replace it are `W1 (m, k)` and `W2 (d, m)`. Their normalization layers have the
scales gamma and the shifts beta. By Proposition 1 a normalization layer with fixed mean and
variance is the affine map `z -> gamma z + beta`. Mean and variance therefore do not appear here.

Every construction is a function of a target, of frozen weights, and of `input_norm`, the largest
norm of an input (1 in the paper's theorems). The functions at the end of the module draw frozen
weights.
"""

from collections.abc import Iterable
from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from scipy.sparse import csgraph, csr_array
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.core.choices import lookup
from runner.core.errors import InputError
from runner.papers.norm_tuning.arithmetic import FLOAT64, Arithmetic
from runner.papers.norm_tuning.network import Block, Layer, Network, relu_network
from runner.papers.norm_tuning.solvers import EPSILON, Scales, solve_scales
from runner.papers.norm_tuning.theorem_1 import Norm, khatri_rao, set_shifts

Pair = tuple[Float[Tensor, "_ _"], Float[Tensor, "_ _"]]
"""Frozen weights W1 (m, k), W2 (d, m) of the two layers that replace one layer of the target."""


class Construction(NamedTuple):
    """A constructed network, together with the linear systems that were solved for its gamma.

    The systems are in the order of the layers.
    """

    network: Network
    systems: tuple[Scales, ...]

    @property
    def condition_number(self) -> float:
        """Return the largest condition number of all linear systems; nan if one of them is nan."""
        return float(np.max([system.condition_number for system in self.systems]))

    @property
    def rounding(self) -> float:
        """Return an estimate of the error that rounding in float64 can cause.

        The estimate is the sum of `n eps condition_number` over all linear systems. n is the number
        of equations of a system, and eps is the machine epsilon.
        """
        return float(np.sum([s.shape[0] * EPSILON * s.condition_number for s in self.systems]))

    @property
    def full_rank(self) -> bool:
        """Return whether each linear system can be solved for every target."""
        return all(system.solvable for system in self.systems)


class DeepWeights(NamedTuple):
    """Frozen weights of the narrow layers that replace one target layer in Theorem 2 of paper A.

    The target layer has d_out outputs and d_in inputs. It is replaced by n = ceil(d_in / k) hidden
    layers of width w = d_out k, and one output layer. Each hidden layer reads k more inputs.

    - hidden: n matrices W_i (w, w).
    - skips: n matrices A_i (w, k), through which the inputs enter.
    - output: W_{n+1} (d_out, w).
    """

    hidden: tuple[Float[Tensor, "w w"], ...]
    skips: tuple[Float[Tensor, "w k"], ...]
    output: Float[Tensor, "d w"]


# Theorems 1 and 3


@takes_arrays(torch.float64, detach=True)
def wide_layer(
    W1: Float[Tensor, "m k"],
    W2: Float[Tensor, "d m"],
    target: Float[Tensor, "d k"],
    bias: Float[Tensor, " d"],
    input_norm: float,
) -> tuple[Norm, Scales]:
    """Return gamma and beta with which two frozen layers compute `target x + bias`.

    - W1, W2: frozen weights of the two layers.
    - target, bias: weights and bias of the layer to compute.
    - input_norm: the largest norm of an input x.

    Returns gamma and beta as vectors, and the solved linear system. The result is exact for `||x||
    <= input_norm` if the system has full rank (paper A, Lemma 7, in the proof sketch of Theorem 1).
    All tensors are float64.
    """
    scales = solve_scales(W1, W2, target)
    columns = set_shifts(W1, W2, scales.gamma[:, None], input_norm, bias[:, None])
    return Norm(*(v[:, 0] for v in columns)), scales


@takes_arrays(torch.float64, detach=True)
def wide(target: Network, weights: Iterable[Pair], input_norm: float = 1.0) -> Construction:
    """Return the construction of Theorem 1: two frozen layers for each layer of the target.

    - target: the network that the construction equals.
    - weights: for each layer of the target a pair W1 (m, d_in), W2 (d_out, m). The widths m of the
      layers may differ (Remark 2).
    - input_norm: the largest norm of an input.

    The construction is exact if the Khatri-Rao product of each pair has rank d_out d_in. With
    sparse weights it is the construction of Theorem 3.

    The paper's proof treats all layers like the first one, with inputs in the unit ball. Outputs of
    hidden layers can be longer because of their biases. The function therefore computes the largest
    possible norm from layer to layer.
    """
    blocks, systems = [], []
    for layer, (W1, W2) in zip(target.layers, weights, strict=True):
        p, system = wide_layer(W1, W2, layer.weight, layer.shift, input_norm)
        first = Layer(W1, p.gamma1, p.beta1, relu=True)
        blocks.append((first, Layer(W2, p.gamma2, p.beta2, relu=layer.relu)))
        systems.append(system)
        input_norm = _reachable_norm(layer, input_norm)
    return Construction(Network(tuple(blocks)), tuple(systems))


# Corollary 1


@takes_arrays()  # the rank is counted in the precision of the weights
def factorize(target: Network, rank: int, input_norm: float = 1.0) -> Network:
    """Return a network that computes the same function, with two layers of low rank for each layer.

    - target: the network, whose weight matrices W* (d, d) have at most rank r.
    - rank: r.
    - input_norm: the largest norm of an input for which the functions are equal.

    A layer with weights W* becomes two layers with weights B (r, d) and A (d, r), with W* = A B. A
    ReLU of width r lies between them. As in Lemma 7, a shift `input_norm ||B_i||` of B keeps the
    ReLU active, and A subtracts the shift. By Corollary 1 of paper A (Corollary 2 of its appendix),
    four random layers of width d r replace a target layer of rank r. The function `wide` constructs
    them from the two layers of this function, as the text above the corollary describes.

    Raises InputError if a weight matrix has a higher rank than `rank`.
    """
    weights, biases = [], []
    for index, layer in enumerate(target.layers):
        U, s, Vh = torch.linalg.svd(layer.weight, full_matrices=False)
        has = int((s > s[0] * max(layer.weight.shape) * torch.finfo(s.dtype).eps).sum())
        if has > rank:
            raise InputError(
                f"layer {index + 1} of the target has rank {has}: give rank={has} or more"
            )
        A, B = U[:, :rank] * s[:rank].sqrt(), s[:rank, None].sqrt() * Vh[:rank]
        on = input_norm * B.norm(dim=1)
        weights += [B, A]
        biases += [on, layer.shift - A @ on]
        input_norm = _reachable_norm(layer, input_norm)
    return relu_network(weights, biases)


# Theorem 2


@takes_arrays(torch.float64, detach=True)
def deep(
    target: Network,
    weights: Iterable[DeepWeights],
    input_norm: float = 1.0,
    arithmetic: Arithmetic = FLOAT64,
) -> Construction:
    """Return the construction of Theorem 2: ceil(d / k) + 1 narrow layers for each target layer.

    The layers have skip connections.

    - target: the network that the construction equals.
    - weights: frozen weights for each layer of the target.
    - input_norm: the largest norm of an input.
    - arithmetic: float64, or numbers with more digits.

    The theorem in the paper has errors. This function differs from the paper as follows:

    - L_1 lacks A_1 (`W_1 z_1` has no fitting shapes). We read it as `Gamma_1 W_1 A_1 z_1 + beta_1`.
    - The A_i are (k, d k) in the sketch of the proof and (d k, k) in the theorem. The latter is
      correct.
    - L_n with n = ceil(d / k) has no ReLU. There is also no ReLU after the last W_{n+1}, because
      the target's last layer is linear (Remark 9).
    - The weights of the last input block must not be zero. W*_n = 0 gives Gamma_n = 0, so the
      factor `W_{n+1} Gamma_n W_n` of all other systems is 0. Lemma 8 needs a nonzero vector.
    - If k does not divide d, the input is padded with zeros.
    - Eq. (55) of the proof is false: Null(P M) is M^-1 Null(P). The systems have full rank anyway.
    """
    blocks, systems = [], []
    for layer, frozen in zip(target.layers, weights, strict=True):
        block, solved = _deep_block(layer, frozen, input_norm, arithmetic)
        blocks.append(block)
        systems += solved
        input_norm = _reachable_norm(layer, input_norm)
    return Construction(Network(tuple(blocks)), tuple(systems))


def _deep_block(
    layer: Layer, frozen: DeepWeights, input_norm: float, arithmetic: Arithmetic
) -> tuple[Block, list[Scales]]:
    """Return one block of Theorem 2 and its solved linear systems.

    The scales are computed from the last layer to the first. For i = n, ..., 1 they solve `W_{n+1}
    (prod_{j > i} Gamma_j W_j) Gamma_i W_i A_i = W*_i` (Eq. 52). Each is a system of d k equations
    and d k unknowns. Then the shifts are computed from the first layer to the last. With all ReLUs
    active, layer i computes `M_i x + s_i`. The smallest offset that keeps its ReLUs active is `s_i
    = input_norm ||row of M_i||`. The last shift solves `W_{n+1} s_n = beta*`, which subtracts all
    others.
    """
    exact = arithmetic.exact
    hidden, skips = ([exact(W) for W in Ws] for Ws in (frozen.hidden, frozen.skips))
    output, n, (w, k) = exact(frozen.output), len(hidden), skips[0].shape
    padded = torch.nn.functional.pad(layer.weight, (0, n * k - layer.weight.shape[1]))
    blocks = [exact(block) for block in padded.split(k, dim=1)]
    systems: list[Scales] = []
    tail = output
    for i in reversed(range(n)):
        systems.insert(0, arithmetic.solve_scales(hidden[i] @ skips[i], tail, blocks[i]))
        tail = (tail * systems[0].gamma) @ hidden[i]

    zeros = torch.zeros(w, n * k, dtype=torch.float64)
    M, offset = exact(zeros), exact(zeros[:, 0])
    layers = []
    for i, (W, A, gamma) in enumerate(zip(hidden, skips, [s.gamma for s in systems], strict=True)):
        M[:, i * k : (i + 1) * k] = A  # these inputs enter here; zero so far
        M = gamma[:, None] * (W @ M)
        arriving, last = gamma * (W @ offset), i == n - 1
        offset = input_norm * arithmetic.row_norms(M)
        if last:
            offset = arithmetic.least_norm(output, exact(layer.shift))
        layers.append(Layer(W, gamma, offset - arriving, not last, A, i * k))
    one = exact(torch.ones_like(layer.shift))
    return (*layers, Layer(output, one, one * 0, layer.relu)), systems


def _reachable_norm(layer: Layer, input_norm: float) -> float:
    """Return the largest possible norm of a layer's output.

    A ReLU never increases a norm. input_norm: the largest norm of an input.
    """
    return float(torch.linalg.matrix_norm(layer.weight, 2)) * input_norm + float(layer.shift.norm())


# frozen weights

LAWS = {
    "normal": torch.randn,
    "uniform": torch.rand,
    "torch_default": lambda *shape, **options: 2 * torch.rand(*shape, **options) - 1,
}
"""Continuous distributions of unscaled weights; Lemma 2 holds for each."""


def random_matrix(
    rows: int, columns: int, stream: torch.Generator, sparsity: float = 1.0, law: str = "normal"
) -> Float[Tensor, "rows columns"]:
    """Return a random matrix in float64.

    - stream: draws the entries.
    - sparsity: the probability that an entry is nonzero.
    - law: name of the distribution of the nonzero entries: `normal`, `uniform` on [0, 1), or
      `torch_default`, uniform on [-1, 1).

    Raises InputError for an unknown distribution.
    """
    options = {"generator": stream, "dtype": torch.float64}
    weight = lookup("distribution", law, LAWS)(rows, columns, **options)
    return weight * (torch.rand(rows, columns, **options) < sparsity) if sparsity < 1 else weight


def wide_weights(
    target: Network,
    width: int | None,
    generator: torch.Generator,
    sparsity: float = 1.0,
    distribution: str = "normal",
) -> list[Pair]:
    """Return frozen random weights W1 (m, d_in), W2 (d_out, m) for each layer of a target.

    - width: m; None: d_out d_in, the width of Theorem 1.
    - generator: draws the weights.
    - sparsity: the probability that a weight is nonzero (Theorem 3).
    - distribution: `normal`, `uniform` or `torch_default`, as in `random_matrix`.

    By default W1 ~ N(0, 1/d_in) and W2 ~ N(0, 2/m). Other distributions are multiplied by the same
    factors. Sparse weights are divided by the root of `sparsity`, so that the variances do not
    depend on it. Raises InputError for an unknown distribution.
    """
    pairs = []
    for layer in target.layers:
        d_out, d_in = layer.weight.shape
        m = width or d_out * d_in
        W1 = random_matrix(m, d_in, generator, sparsity, distribution) * sqrt(1 / d_in / sparsity)
        W2 = random_matrix(d_out, m, generator, sparsity, distribution) * sqrt(2 / m / sparsity)
        pairs.append((W1, W2))
    return pairs


def deep_weights(
    target: Network, block: int, generator: torch.Generator, distribution: str = "normal"
) -> list[DeepWeights]:
    """Return the frozen random weights of Theorem 2 for each layer of a target network.

    - block: k, the number of inputs that enter at one layer.
    - generator: draws the weights.
    - distribution: `normal`, `uniform` or `torch_default`, as in `random_matrix`. The entries are
      divided by the root of the number of columns.

    Raises InputError if a layer has fewer inputs than `block`, or if the distribution is unknown.
    """

    def draw(rows: int, columns: int) -> Float[Tensor, "rows columns"]:
        return random_matrix(rows, columns, generator, law=distribution) / sqrt(columns)

    drawn = []
    for layer in target.layers:
        d_out, d_in = layer.weight.shape
        if block > d_in:
            raise InputError(
                f"block={block} is larger than a layer's {d_in} inputs: give {d_in} or less"
            )
        n, w = -(-d_in // block), d_out * block
        hidden = tuple(draw(w, w) for _ in range(n))
        drawn.append(DeepWeights(hidden, tuple(draw(w, block) for _ in range(n)), draw(d_out, w)))
    return drawn


# Theorem 3


@takes_arrays()
def structural_rank(W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"]) -> int:
    """Return the largest rank of the Khatri-Rao matrix K that the zeros of the weights allow.

    K (d k, m) is the matrix of the linear system of Theorem 1, see `theorem_1.khatri_rao`. The
    result, the structural rank of K, is the size of the largest matching of rows and columns by
    nonzero entries. A square K has full structural rank if and only if the Boolean determinant of
    its zero pattern is one (Definition 8 of paper A). With continuous weights K is then invertible
    with probability one, and otherwise never (Lemma 9).
    """
    if bool((W1 != 0).all()) and bool((W2 != 0).all()):
        return min(W2.shape[0] * W1.shape[1], W1.shape[0])
    pattern = khatri_rao((W2 != 0).numpy(), (W1 != 0).numpy())
    return int(csgraph.structural_rank(csr_array(pattern)))


@takes_arrays()
def cut_off_units(W1: Float[Tensor, "m k"], W2: Float[Tensor, "d m"]) -> int:
    """Return the number of hidden units whose incoming or outgoing weights are all zero.

    Each of these units is a zero column of the Khatri-Rao matrix K of the weights.
    """
    return int(((W1 == 0).all(dim=1) | (W2 == 0).all(dim=0)).sum())


def live_units_probability(d: int, k: int, m: int, sparsity: float) -> float:
    """Return the probability that each of m hidden units has incoming and outgoing weights.

    W1 (m, k) has the incoming and W2 (d, m) the outgoing weights. They are sparse: each weight is
    nonzero with probability p, the argument `sparsity`. The result is `((1 - (1-p)^d) (1 -
    (1-p)^k))^m`.

    A unit without incoming or outgoing weights is a zero column of the Khatri-Rao matrix K. For m =
    d k the result is therefore an upper bound of the probability that K has full rank. For m = k^2
    = d^2 it rises from 0 to 1 around `p = 2 log(d) / d`. The order log d / d of p in the conjecture
    of Remark 3 can therefore not be improved. The bound is not in the paper.
    """
    with np.errstate(divide="ignore"):  # log(0) at sparsity 1
        log_absent = np.log1p(-sparsity)
    incoming, outgoing = -np.expm1(k * log_absent), -np.expm1(d * log_absent)
    return float((incoming * outgoing) ** m)
