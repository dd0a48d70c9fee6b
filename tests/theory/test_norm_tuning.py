"""Paper A's statements as tests: construct, compare with the target, state the tolerance."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from runner.core.errors import InputError
from runner.papers.norm_tuning.arithmetic import MultiPrecision
from runner.papers.norm_tuning.constructions.quantities import half_point
from runner.papers.norm_tuning.network import Layer, Network, relu_network, truncate
from runner.papers.norm_tuning.solvers import EPSILON, Scales, solve_scales
from runner.papers.norm_tuning.theorem_1 import khatri_rao
from runner.papers.norm_tuning.theory import (
    LAWS,
    Construction,
    cut_off_units,
    deep,
    deep_weights,
    factorize,
    live_units_probability,
    structural_rank,
    wide,
    wide_layer,
    wide_weights,
)


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=stream(seed), dtype=torch.float64)


def random_target(*widths, bias=1.0, seed=0):
    """A ReLU network through these widths whose matrices have spectral norm one."""
    weights = [normal(o, i, seed=seed + o + i) for i, o in zip(widths, widths[1:], strict=False)]
    weights = [W / torch.linalg.matrix_norm(W, 2) for W in weights]
    return relu_network(weights, [bias * normal(len(W), seed=seed + 99) for W in weights])


def ball(points, width, norm=1.0, seed=7):
    """Inputs of norms between 0 and `norm`, the largest ones included."""
    x = normal(points, width, seed=seed)
    radii = norm * torch.linspace(0, 1, points, dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True) * radii[:, None]


def error(construction, target, inputs):
    return float((construction.network(inputs) - target(inputs)).abs().max())


# Lemmas 1 and 2


@pytest.mark.parametrize("d, k, m", [(1, 1, 1), (3, 4, 12), (4, 3, 5), (2, 5, 40)])
def test_lemma_1_khatri_rao_times_scales_is_the_matrix_product(d, k, m):
    W1, W2, gamma = normal(m, k), normal(d, m, seed=1), normal(m, seed=2)
    product = W2 @ torch.diag(gamma) @ W1
    torch.testing.assert_close(khatri_rao(W2, W1) @ gamma, product.reshape(-1))


@pytest.mark.parametrize("d, k", [(1, 1), (1, 2), (2, 2), (3, 7), (10, 10), (20, 15)])
def test_lemma_2_square_khatri_rao_products_of_gaussian_matrices_have_full_rank(d, k):
    scales = solve_scales(normal(d * k, k), normal(d, d * k, seed=1), normal(d, k, seed=2))
    assert scales.solver == "lu" and scales.solvable


DRAWS = 400


def drawn(law, *shape, stream):
    return LAWS[law](*shape, generator=stream, dtype=torch.float64)


@pytest.mark.parametrize("law", LAWS)
def test_lemma_2_with_probability_one_for_any_continuous_law_and_never_one_unit_below(law):
    d, draw = 10, stream(3)
    W1 = drawn(law, DRAWS, d * d, d, stream=draw)
    W2 = drawn(law, DRAWS, d, d * d, stream=draw)
    K = torch.einsum("rim,rmj->rijm", W2, W1).flatten(1, 2)
    assert (torch.linalg.matrix_rank(K) == d * d).all()
    assert (torch.linalg.matrix_rank(K[..., :-1]) == d * d - 1).all(), "m = d^2 - 1"


@pytest.mark.parametrize("law", LAWS)
def test_lemmas_3_and_8_no_scale_is_zero(law):
    """The rows of the inverse of K are orthogonal to no fixed vector: here vec(W*)."""
    d, draw = 6, stream(4)
    W1 = drawn(law, DRAWS, d * d, d, stream=draw)
    W2 = drawn(law, DRAWS, d, d * d, stream=draw)
    D = 1 + drawn("uniform", DRAWS, 1, d * d, stream=draw)  # diagonal, not zero
    for A, C in ((W2, D.mT * W1), (W2 * D, W1)):
        K = torch.einsum("rim,rmj->rijm", A, C).flatten(1, 2)
        gamma = torch.linalg.solve(K, normal(d * d, seed=5))
        assert gamma.abs().min() > 1e-9
        assert torch.linalg.cond(K).max() * EPSILON < 1e-9, "so that this is no rounding"


def test_remark_5_khatri_rao_products_of_three_and_four_matrices_have_full_rank():
    n, m = 4, 5
    A, B = normal(DRAWS, n, n * m, seed=1), normal(DRAWS, n * m, n * m, seed=2)
    C, D = normal(DRAWS, m, n * m, seed=3), normal(DRAWS, n * m, n * m, seed=4)
    for left, right in ((A, C @ D), (A @ B, C @ D)):
        K = torch.einsum("rim,rjm->rijm", left, right).flatten(1, 2)
        assert (torch.linalg.matrix_rank(K) == n * m).all()


# Theorem 1


def test_theorem_1_gamma_2_may_be_any_diagonal_matrix_of_full_rank():
    """Section 4.1, step 1: with Gamma_2 W2 in place of W2 the same system is solved."""
    target, d = random_target(6, 6), 6
    (W1, W2), gamma2 = wide_weights(target, None, stream())[0], 0.5 + normal(d, seed=9).abs()
    (layer,) = target.layers
    p, _ = wide_layer(W1, gamma2[:, None] * W2, layer.weight, layer.shift, input_norm=1.0)
    first = Layer(W1, p.gamma1, p.beta1, relu=True)
    second = Layer(W2, gamma2, p.beta2, relu=layer.relu)
    inputs = ball(300, d)
    found = Network(((first, second),))(inputs)
    assert float((found - target(inputs)).abs().max()) < 1e-10


@pytest.mark.parametrize("widths", [(1, 1), (6, 6), (5, 7, 3), (8, 8, 8, 8), (3, 9, 1)])
def test_theorem_1_wide_networks_equal_their_targets_of_any_widths(widths):
    target = random_target(*widths)
    construction = wide(target, wide_weights(target, None, stream()))
    assert construction.full_rank
    assert error(construction, target, ball(300, widths[0])) < 1e-10
    assert construction.rounding < 1e-10


def test_theorem_1_two_frozen_convolutions_equal_a_convolution():
    """3 x 3 with 9 d^2 channels, then 1 x 1; without the first one's last channel they do not."""
    d, images = 3, normal(5, 3, 6, 6) / 20
    kernel, frozen = normal(d, d, 3, 3, seed=1), normal(9 * d**2, d, 3, 3, seed=2)
    mixing = normal(d, 9 * d**2, seed=3)
    patch_norm = float(torch.nn.functional.unfold(images, 3).norm(dim=1).max())
    expected = torch.conv2d(images, kernel)
    for channels, is_exact in ((9 * d**2, True), (9 * d**2 - 1, False)):
        W1, W2 = frozen[:channels], mixing[:, :channels]
        zero = torch.zeros(d, dtype=torch.float64)
        norm, _ = wide_layer(W1.flatten(1), W2, kernel.flatten(1), zero, patch_norm)
        gamma1, beta1, gamma2, beta2 = (p[:, None, None] for p in norm)
        active = (gamma1 * torch.conv2d(images, W1) + beta1).relu()
        output = gamma2 * torch.conv2d(active, W2[..., None, None]) + beta2
        assert ((output - expected).abs().max() < 1e-9) == is_exact


def layers_by_the_theorems(d, depth, width):
    """Layers that Theorem 1 (width d^2) or Theorem 2 (width d k, skips) needs for a target."""
    if width >= d**2:
        return 2 * depth
    return (math.ceil(d / (width // d)) + 1) * depth


def test_informal_theorem_follows_for_one_layer_and_not_for_two():
    """It allows d' l' >= 2 d^2 l, d' >= d, l' >= 2 l; the theorems are about multiples of d."""
    missing = {}
    for d, depth in itertools.product(range(2, 13), (1, 2, 3)):
        for width in range(d, d**2 + 1):
            allowed = max(math.ceil(2 * d**2 * depth / width), 2 * depth)
            if layers_by_the_theorems(d, depth, width) > allowed:
                missing.setdefault(depth, []).append((d, width, allowed))
    assert 1 not in missing
    assert missing[2][0] == (3, 8, 5) and missing[3][0] == (2, 3, 8)


def test_theorem_1_leaves_the_random_weights_alone_and_sets_gamma_2_to_one():
    target = random_target(4, 4)
    (pair,) = wide_weights(target, None, stream())
    (block,) = wide(target, [(pair[0].clone(), pair[1].clone())]).network.blocks
    assert torch.equal(block[0].weight, pair[0])
    assert torch.equal(block[1].weight, pair[1])
    assert torch.equal(block[1].scale, torch.ones(4, dtype=torch.float64))


def test_theorem_1_needs_the_norm_of_the_inputs_that_are_seen():
    """The paper's rule is for ||x|| <= 1; Gaussian inputs have norms about sqrt(d)."""
    target = random_target(25, 25)
    weights = wide_weights(target, None, stream())
    gaussian = normal(500, 25, seed=3)
    assert error(wide(target, weights, input_norm=1.0), target, gaussian) > 1
    assert error(wide(target, weights, input_norm=math.sqrt(25) + 7), target, gaussian) < 1e-9


def test_theorem_1_needs_the_reachable_norm_in_the_second_layer():
    """After a bias the hidden layer is longer than 1; shifts for 1 do not keep its ReLUs on."""
    target = random_target(6, 6, 6, bias=5.0)
    weights, inputs = wide_weights(target, None, stream()), ball(300, 6)
    blocks = []
    for layer, (W1, W2) in zip(target.layers, weights, strict=True):
        p, _ = wide_layer(W1, W2, layer.weight, layer.shift, input_norm=1.0)
        first = Layer(W1, p.gamma1, p.beta1, relu=True)
        blocks.append((first, Layer(W2, p.gamma2, p.beta2, relu=layer.relu)))
    as_stated = Network(tuple(blocks))
    assert float((as_stated(inputs) - target(inputs)).abs().max()) > 0.1
    assert error(wide(target, weights), target, inputs) < 1e-10


def test_too_few_hidden_units_cannot_reach_the_target():
    target = random_target(6, 6)
    construction = wide(target, wide_weights(target, 30, stream()))
    (system,) = construction.systems
    assert system.numerical_rank == 30 and not system.solvable and not construction.full_rank
    assert error(construction, target, ball(300, 6)) > 1e-3


# Corollary 1


@pytest.mark.parametrize("widths, rank", [((8, 8), 1), ((8, 8), 3), ((7, 5, 6), 2)])
def test_corollary_1_low_rank_targets_need_width_d_r(widths, rank):
    target = truncate(random_target(*widths), rank)
    weights = wide_weights(factorize(target, rank), None, stream())
    assert max(len(W1) for W1, _ in weights) == max(widths) * rank
    construction = wide(factorize(target, rank), weights)
    assert len(construction.network.layers) == 4 * (len(widths) - 1)
    assert error(construction, target, ball(300, widths[0])) < 1e-10


def test_corollary_1_scales_of_the_target_that_are_zero_need_two_layers_of_width_d_r():
    """Before Corollary 2: the other case of low rank follows trivially, with Gamma_2 zero there."""
    d, live, inputs = 6, [1, 4], ball(300, 6)
    W, shift = normal(d, d) / 4, normal(d, seed=8)
    scale = torch.zeros(d, dtype=torch.float64)
    scale[live] = 1.0
    W1, W2 = normal(d * len(live), d, seed=1), normal(d, d * len(live), seed=2)
    p, _ = wide_layer(W1, W2[live], W[live], shift[live], input_norm=1.0)
    shifts = shift.clone()
    shifts[live] = p.beta2
    layers = (Layer(W1, p.gamma1, p.beta1, relu=True), Layer(W2, scale, shifts, relu=True))
    target = Network(((Layer(W, scale, shift, relu=True),),))
    assert float((Network((layers,))(inputs) - target(inputs)).abs().max()) < 1e-10


def test_corollary_1_keeps_its_middle_relu_on_by_a_shift():
    """The proof says that the ReLU between the factors is linearized first; here without that."""
    target = truncate(random_target(8, 8), 3)
    factors, inputs = factorize(target, 3), ball(300, 8)
    B, A = factors.layers
    torch.testing.assert_close(factors(inputs), target(inputs))
    without = replace(B, shift=0 * B.shift), replace(A, shift=target.layers[0].shift)
    skipped = Network((without,))
    assert float((skipped(inputs) - target(inputs)).abs().max()) > 0.01


def test_corollary_1_refuses_a_target_of_higher_rank():
    with pytest.raises(InputError, match="rank 4: give rank=4"):
        factorize(random_target(4, 4), 3)


# Eq. (3) and Appendix A


def test_eq_3_batch_norm_divides_by_the_root_of_the_variance():
    """Printed is the power -1 of eps I + Sigma; and both variants "before" the affine map."""
    h, gamma, beta = 3 * normal(200, 4), normal(4, seed=1), normal(4, seed=2)
    expected = torch.nn.functional.batch_norm(h, None, None, gamma, beta, training=True, eps=1e-5)
    inverse, centred = 1 / (1e-5 + h.var(0, correction=0)), h - h.mean(0)
    torch.testing.assert_close(gamma * inverse.sqrt() * centred + beta, expected)
    assert float((gamma * inverse * centred + beta - expected).abs().max()) > 0.5


def test_fact_1_is_not_necessary_where_l_exceeds_n():
    """Remark 4 says "necessary and sufficient": two planes of R^3 always meet, yet A B has rank 1.

    n = 1, m = 3, l = 2. Where l <= n the condition is necessary, too.
    """

    def meet(A, B):
        """Whether the nullspace of A and the column space of B have more than zero in common."""
        nullspace = torch.linalg.svd(A).Vh[len(A) :].T
        both = torch.cat([nullspace, B], dim=1)
        return int(torch.linalg.matrix_rank(both, atol=1e-12)) < both.shape[1]

    A, B = normal(1, 3), normal(3, 2, seed=1)
    assert meet(A, B) and int(torch.linalg.matrix_rank(A @ B)) == min(1, 2)
    A, B = normal(2, 3), normal(3, 2, seed=1)
    assert not meet(A, B) and int(torch.linalg.matrix_rank(A @ B)) == 2
    B[:, 0] = torch.linalg.svd(A).Vh[2]
    assert meet(A, B) and int(torch.linalg.matrix_rank(A @ B, atol=1e-12)) == 1


# Theorem 2


def test_theorem_2_eq_55_the_nullspace_moves_with_an_invertible_factor():
    """Null(P M) is M^-1 Null(P), not Null(P). The system of Eq. (52) has full rank all the same."""
    d = k = 2
    W1, W2, W3 = (normal(d * k, d * k, seed=seed) for seed in (1, 2, 3))
    A, output, gamma = normal(d * k, k, seed=4), normal(d, d * k, seed=5), normal(d * k, seed=6)
    P = torch.kron(output, A.T.contiguous())
    M = torch.kron(torch.diag(gamma) @ W2, torch.eye(d * k, dtype=torch.float64))
    v = torch.linalg.svd(P).Vh[-1]
    assert float((P @ v).norm()) < 1e-12 < 0.1 < float((P @ (M @ v)).norm())
    assert float((P @ (M @ torch.linalg.solve(M, v))).norm()) < 1e-12
    system = khatri_rao(output @ (gamma[:, None] * W2) @ W3, W1 @ A)
    assert int(torch.linalg.matrix_rank(system)) == d * k


@pytest.mark.parametrize(
    "widths, block",
    [((6, 6), 6), ((8, 8), 4), ((8, 8), 3), ((7, 5), 2), ((6, 9, 4), 3), ((4, 4), 1)],
)
def test_theorem_2_deep_networks_equal_their_targets_for_any_block(widths, block):
    target = random_target(*widths)
    construction = deep(target, deep_weights(target, block, stream()))
    depths = [len(block) for block in construction.network.blocks]
    assert depths == [math.ceil(width / block) + 1 for width in widths[:-1]]
    assert construction.full_rank and construction.rounding < 1e-6
    assert error(construction, target, ball(300, widths[0])) < 100 * construction.rounding


def test_theorem_2_ends_without_a_relu():
    """Statement (4) has a ReLU after every W_{n+1}; it must not follow the linear last layer."""
    target = random_target(6, 6)
    network, inputs = deep(target, deep_weights(target, 3, stream())).network, ball(300, 6)
    assert float(target(inputs).min()) < -0.1
    assert not network.layers[-1].relu and float(network(inputs).min()) < -0.1


def test_theorem_2_needs_A_1():
    """`W_1 z_1` of the statement has no fitting shapes: W_1 is (dk, dk) and z_1 has k entries."""
    target = random_target(6, 6)
    (weights,) = deep_weights(target, 2, stream())
    first_block = ball(10, 6)[:, :2]
    with pytest.raises(RuntimeError, match="shapes"):
        first_block @ weights.hidden[0].T
    assert (first_block @ weights.skips[0].T @ weights.hidden[0].T).shape == (10, 12)


def without_block(columns):
    target = random_target(6, 6)
    (layer,) = target.layers
    weight = layer.weight.clone()
    weight[:, columns] = 0
    return Network(((replace(layer, weight=weight),),))


def test_theorem_2_breaks_at_a_zero_last_block():
    """W*_n = 0 gives Gamma_n = 0, so the systems of all other blocks are zero."""
    target = without_block(slice(4, 6))
    construction = deep(target, deep_weights(target, 2, stream()))
    assert [system.numerical_rank for system in construction.systems] == [0, 0, 12]
    assert float(construction.systems[-1].gamma.abs().max()) == 0
    assert error(construction, target, ball(300, 6)) > 0.1


def test_theorem_2_survives_a_zero_first_block():
    target = without_block(slice(0, 2))
    construction = deep(target, deep_weights(target, 2, stream()))
    assert error(construction, target, ball(300, 6)) < 1e-10


def test_theorem_2_with_single_inputs_needs_more_digits_than_float64_has():
    """k = 1, d = 16: condition numbers of 1e24. The theorem is right, float64 is too short."""
    target = random_target(16, 16)
    weights, inputs = deep_weights(target, 1, stream()), ball(10, 16)
    assert error(deep(target, weights), target, inputs) > 1e-3
    exact = MultiPrecision(digits=100)
    construction = deep(target, weights, arithmetic=exact)
    (layer,) = target.layers
    g = Layer(exact.exact(layer.weight), exact.exact(layer.scale), exact.exact(layer.shift), False)
    x = exact.exact(inputs)
    difference = construction.network(x) - Network(((g,),))(x)
    assert construction.condition_number > 1 / EPSILON
    assert float(abs(difference).max()) < 1e-60


def test_multiprecision_agrees_with_float64_where_both_are_exact():
    target = random_target(5, 4)
    weights = deep_weights(target, 3, stream())
    double, exact = deep(target, weights), deep(target, weights, arithmetic=MultiPrecision(50))
    for a, b in zip(double.systems, exact.systems, strict=True):
        np.testing.assert_allclose(a.gamma.numpy(), b.gamma.astype(float), rtol=1e-8)
        assert a.condition_number == pytest.approx(b.condition_number, rel=1e-5)


def test_multiprecision_reports_a_singular_system():
    target = without_block(slice(4, 6))
    construction = deep(target, deep_weights(target, 2, stream()), arithmetic=MultiPrecision(50))
    assert [system.numerical_rank for system in construction.systems] == [0, 0, 12]
    exact = MultiPrecision(50)
    W1, W2, block = (exact.exact(t) for t in (normal(4, 2), normal(2, 4, seed=1), normal(2, 2)))
    W1[1], W2[:, 1] = W1[0], W2[:, 0] / 3  # the same column of K twice, up to 50 digits
    assert exact.solve_scales(W1, W2, block).condition_number == float("inf")


def test_theorem_2_refuses_blocks_wider_than_the_input():
    with pytest.raises(InputError, match="block=7 is larger than a layer's 6 inputs"):
        deep_weights(random_target(6, 6), 7, stream())


# Remarks 1 and 8


@pytest.mark.parametrize("d", [10, 40])
def test_remark_3_counts_of_weights_that_are_not_zero(d):
    """2 d^3 l p weights are not zero: apart from logarithms d^2 sqrt(d) l at p = sqrt(log d / d),
    and d^2 l at log d / d. (One of the two texts of the paper has no factor l here.)"""
    target = random_target(d, d)
    for p, order in ((math.sqrt(math.log(d) / d), d**2.5), (math.log(d) / d, d**2)):
        (pair,) = wide_weights(target, None, stream(), sparsity=p)
        left = sum(int((W != 0).sum()) for W in pair)
        mean, deviation = 2 * d**3 * p, math.sqrt(2 * d**3 * p * (1 - p))
        assert abs(left - mean) < 5 * deviation
        assert order <= left <= 3 * math.log(d) * order


def test_remark_1_parameter_counts():
    """f trains 2 (d^2 + d) l numbers and g d^2 l: the same order; 2 d^3 l are frozen."""
    d, depth = 4, 3
    target = random_target(*[d] * (depth + 1))
    layers = wide(target, wide_weights(target, None, stream())).network.layers
    assert len(layers) == 2 * depth
    assert sum(len(layer.scale) + len(layer.shift) for layer in layers) == 2 * (d**2 + d) * depth
    assert sum(layer.weight.numel() for layer in layers) == 2 * d**3 * depth
    assert sum(layer.weight.numel() for layer in target.layers) == d**2 * depth


def test_remark_8_padding_all_layers_to_one_width_changes_nothing():
    """With zeros; of the output the first d entries are the target's, the others stay 0."""
    target, d = random_target(3, 3, 3), 3
    construction = wide(target, wide_weights(target, None, stream()))
    padded = []
    for layer in construction.network.layers:
        weight = torch.zeros(d * d, d * d, dtype=torch.float64)
        weight[: layer.weight.shape[0], : layer.weight.shape[1]] = layer.weight
        missing = weight.new_zeros(d * d - len(layer.shift))
        scale, shift = (torch.cat([v, missing]) for v in (layer.scale, layer.shift))
        padded.append((Layer(weight, scale, shift, layer.relu),))
    x = ball(50, d)
    found = Network(tuple(padded))(torch.nn.functional.pad(x, (0, d * d - d)))
    torch.testing.assert_close(found[:, :d], construction.network(x))
    assert not found[:, d:].any()


# Theorem 3


@pytest.mark.parametrize("p", [0.05, 0.3, 0.7, 1.0])
def test_lemma_10_products_of_bernoulli_variables_vanish_less_often(p):
    """For every set S of positions, by counting all u and v; d = 3 and p = sqrt(2 q d)."""
    d = 3
    states = (torch.arange(2 ** (2 * d))[:, None] >> torch.arange(2 * d)) % 2
    ones = states.sum(1)
    weights = p**ones * (1 - p) ** (2 * d - ones)
    products = (states[:, :d, None] * states[:, None, d:]).flatten(1)
    q = p**2 / (2 * d)
    for S in range(1, 2 ** (d * d)):
        members = (S >> torch.arange(d * d)) % 2
        vanishes = float(weights[(products * members).sum(1) == 0].sum())
        assert vanishes <= (1 - q) ** int(members.sum()) + 1e-6


def bernoulli(n, constant, draws=200):
    """Return which matrices of density constant log n / n have a zero row or column, and which are
    singular."""
    found = []
    for seed in range(draws):
        A = (torch.rand(n, n, generator=stream(seed)) < constant * math.log(n) / n).double()
        zero = not (A.any(0).all() and A.any(1).all())
        found.append((zero, int(torch.linalg.matrix_rank(A)) < n))
    return torch.tensor(found).double().unbind(1)


def test_theorem_4_excludes_the_matrices_with_a_zero_row():
    """Step 4 of Theorem 3's proof does not: at density log n / n they are 1 - e^{-2} of all."""
    zero, singular = bernoulli(64, 1)
    assert float(zero.mean()) == pytest.approx(1 - math.exp(-2), abs=0.1)
    assert float(singular.mean()) > 0.8
    assert float(singular[zero == 0].mean()) < 0.5


def test_theorem_4_says_that_few_matrices_are_singular_not_that_few_are_invertible():
    """Remark 11: "non-singular with probability of the order 1/n^c" must be singular."""
    singular = []
    for n in (16, 64, 128):
        zero, is_singular = bernoulli(n, 1)
        singular.append(float(is_singular[zero == 0].mean()))
    assert singular[0] > singular[1] > singular[2] and singular[2] < 0.3


def test_theorem_4_gives_step_4_of_theorem_3_at_twice_the_density():
    """At C log n / n a row or column is zero in at most 2 n^(1 - C) of all; here C = 2."""
    for n in (32, 128):
        zero, singular = bernoulli(n, 2)
        assert float(zero.mean()) <= 2 / n + 0.03
        assert float(singular.mean()) <= 2 / n + 0.03


@pytest.mark.parametrize(
    ("constant", "d", "holds"), [(1, 10, False), (1, 15, False), (1, 20, True), (1, 30, True),
                                 (2, 10, True), (2, 30, True)],
)  # fmt: skip
def test_theorem_3_names_no_constant_and_1_is_too_small_below_d_20(constant, d, holds):
    """By the closed formula, an upper bound; we judge p = 2 sqrt(log d / d)."""
    p = constant * math.sqrt(math.log(d) / d)
    assert (live_units_probability(d, d, d * d, p) > 1 - 1 / d) == holds


def test_remark_3_the_closed_formula_has_an_exponent_below_one_at_small_d():
    few, many = (pd.Index(d) for d in ((10, 20, 30, 40), (1000, 2000, 5000, 10_000)))
    for d, p in half_point(few).items():
        assert live_units_probability(d, d, d * d, p) == pytest.approx(0.5)
    slopes = [np.polyfit(np.log(np.log(d) / d), np.log(half_point(d)), 1)[0] for d in (few, many)]
    assert slopes == [pytest.approx(0.897, abs=5e-4), pytest.approx(1.006, abs=5e-4)]


def test_theorem_3_at_depth_2_asks_for_both_layers():
    """Their weights are independent: the probability is the product (the union bound is below)."""
    target, draws = random_target(6, 6, 6), 150
    ranks = torch.tensor(
        [
            [
                int(torch.linalg.matrix_rank(khatri_rao(W2, W1))) == 36
                for W1, W2 in wide_weights(target, None, stream(seed), sparsity=0.5)
            ]
            for seed in range(draws)
        ]
    ).double()
    one, both = ranks.mean(), ranks.prod(1).mean()
    assert 0.1 < float(one) < 0.95
    assert float(both) == pytest.approx(float(one) ** 2, abs=4 * math.sqrt(0.25 / draws))


@pytest.mark.parametrize("sparsity", [0.35, 0.5])
def test_lemma_9_numerical_rank_equals_structural_rank(sparsity):
    target = random_target(9, 9)
    for seed in range(10):
        (pair,) = wide_weights(target, None, stream(seed), sparsity)
        scales = solve_scales(*pair, target.layers[0].weight)
        assert scales.numerical_rank == structural_rank(*pair)


def test_wide_sparse_networks_have_their_structural_rank():
    """m = 2 d^2: most entries of the target are reached by some hidden unit, not all."""
    target, short = random_target(10, 10), 0
    for seed in range(6):
        (pair,) = wide_weights(target, 200, stream(seed), sparsity=0.15)
        scales = solve_scales(*pair, target.layers[0].weight)
        rank = structural_rank(*pair)
        assert (scales.numerical_rank, scales.solvable) == (rank, rank == 100)
        short += rank < 100
    assert 0 < short < 6


@pytest.mark.parametrize("dead, rank", [("input", 90), ("output", 90), ("nothing", 100)])
def test_a_dead_feature_lowers_the_rank(dead, rank):
    W1, W2, target = normal(200, 10), normal(10, 200, seed=1), normal(10, 10, seed=2)
    if dead == "input":
        W1[:, 3] = 0
    if dead == "output":
        W2[3] = 0
    scales = solve_scales(W1, W2, target)
    assert scales.numerical_rank == rank
    assert (scales.condition_number > 1e12) == (rank < 100)
    if dead == "input":
        target[:, 3] = 0  # a target that such a system reaches makes it no more solvable
        assert solve_scales(W1, W2, target).numerical_rank == rank


@pytest.mark.parametrize("small", [1e-2, 1e-8])
def test_condition_of_a_system_that_is_nearly_of_lower_rank(small):
    W1, W2, target = normal(98, 7), normal(7, 98, seed=1), normal(7, 7, seed=2)
    W1[:, 3] *= small
    scales = solve_scales(W1, W2, target)
    s = torch.linalg.svdvals(khatri_rao(W2, W1))
    assert scales.numerical_rank == 49
    assert scales.condition_number == pytest.approx(float(s[0] / s[-1]), rel=1e-3)


def test_condition_of_systems_of_which_one_is_not_finite():
    finite = Scales(normal(1), 5.0, 1, (1, 1), "lu")
    nothing = finite._replace(condition_number=math.nan)
    for systems in ((finite, nothing), (nothing, finite)):
        assert math.isnan(Construction(Network(()), systems).condition_number)


def test_theorem_3_sparse_networks_of_full_rank_equal_their_targets():
    target = random_target(12, 12)
    exact = 0
    for seed in range(6):
        construction = wide(target, wide_weights(target, None, stream(seed), sparsity=0.6))
        if construction.full_rank:
            exact += 1
            assert error(construction, target, ball(300, 12)) < 1e-8
    assert exact >= 3


def test_sparse_weights_have_their_share_of_zeros_and_their_variance():
    (pair,) = wide_weights(random_target(30, 30), None, stream(), sparsity=0.3)
    for weight, variance in zip(pair, (1 / 30, 2 / 900), strict=True):
        kept = (weight != 0).double()
        assert float(kept.mean()) == pytest.approx(0.3, abs=4 * math.sqrt(0.21 / weight.numel()))
        assert float(weight.var()) == pytest.approx(variance, rel=0.1)


def test_structural_rank_finds_what_counting_zero_rows_and_columns_misses():
    """Two hidden units that both reach a single entry of W*: no row or column is zero."""
    W1 = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    W2 = torch.tensor([[1.0, 1.0]], dtype=torch.float64)
    assert cut_off_units(W1, W2) == 0
    assert structural_rank(W1, W2) == 1


@pytest.mark.parametrize("d, sparsity", [(6, 0.5), (10, 0.3)])
def test_live_units_probability_is_the_frequency_of_draws_without_cut_off_units(d, sparsity):
    target, draws = random_target(d, d), 200
    weights = (wide_weights(target, None, stream(seed), sparsity)[0] for seed in range(draws))
    frequency = sum(cut_off_units(*pair) == 0 for pair in weights) / draws
    p = live_units_probability(d, d, d * d, sparsity)
    assert frequency == pytest.approx(p, abs=4 * math.sqrt(p * (1 - p) / draws) + 1e-9)
