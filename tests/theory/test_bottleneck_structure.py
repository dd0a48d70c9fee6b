"""Paper D's statements, on networks whose answer is known."""

import math
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import torch
from scipy.optimize import brentq, minimize, nnls
from torch.nn.functional import softplus

from runner.papers.bottleneck_structure import theory
from runner.papers.bottleneck_structure.minima import Problem, balanced, merged, polished
from runner.papers.bottleneck_structure.networks import Network, differentiate
from runner.papers.bottleneck_structure.stability.curvature import largest_curvature
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.bottleneck_structure.symmetry.dynamics import Dynamics
from runner.papers.bottleneck_structure.theorems import check

F64 = torch.float64


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=stream(seed), dtype=F64)


def random_network(widths: list[int], seed: int = 0, gain: float = 1.4) -> Network:
    generator = stream(seed)
    weights, biases = [], []
    for n_in, n_out in zip(widths[:-1], widths[1:], strict=True):
        drawn = torch.randn(n_out, n_in, generator=generator, dtype=F64)
        weights.append(gain / math.sqrt(n_in) * drawn)
        biases.append(0.1 * torch.randn(n_out, generator=generator, dtype=F64))
    return Network(weights, biases)


def linear_network(A: torch.Tensor, L: int) -> Network:
    """The balanced linear network of A: W_l = U S^{1/L} V^T. Its biases switch on every ReLU near
    0.
    """
    U, s, Vh = torch.linalg.svd(A, full_matrices=False)
    root = (s ** (1 / L)).diag()
    weights = [root @ Vh, *[root] * (L - 2), U @ root]
    return Network(weights, [*[torch.ones(len(s), dtype=F64)] * (L - 1), A.new_zeros(len(A))])


def rank_two_network(L: int) -> Network:
    """f(x) = P x on the positive cone of a plane in R^3, by L semi-orthonormal matrices."""
    P = torch.tensor([[1.0, 0, 0], [0, 0.6, 0.8]], dtype=F64)
    eye = torch.eye(2, dtype=F64)
    return Network([P, *[eye] * (L - 2), P.mT], [torch.zeros(2, dtype=F64)] * (L - 1) + [P[0] * 0])


def excess(network: Network, k: int) -> torch.Tensor:
    return network.parameter_norm() - k * network.depth


# formulas


def test_pseudo_determinant_multiplies_the_nonzero_singular_values():
    A = (
        randn(6, 3)
        @ torch.diag(torch.tensor([2.0, 3.0, 0.0], dtype=F64))
        @ torch.eye(3, 5, dtype=F64)
    )
    s = torch.linalg.svdvals(A)
    expected = math.log(float(s[0] * s[1]))
    assert float(theory.log_pseudo_determinant(A, 2)) == pytest.approx(expected)
    assert float(theory.log_pseudo_determinant(A, 3)) < -20


def test_expansion_of_the_representation_cost_is_second_order():
    A = randn(5, 4, seed=1)
    first, second = theory.corrections(A, 4)
    errors = [
        abs(float(theory.representation_cost(A, L)) - (4 * L + first + second / L))
        for L in (200, 400)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


def test_a_matrix_that_is_not_finite_costs_no_number():
    A = randn(2, 3, 3)
    A[0, 1, 2] = math.nan
    assert theory.representation_cost(A, 4).isnan().tolist() == [True, False]
    assert all(map(math.isnan, theory.corrections(A[0], 2)))


def test_an_inequality_of_nan_is_violated():
    lower = torch.tensor([0.0, 0.0, 2.0, math.nan], dtype=F64)
    upper = torch.tensor([1.0, math.nan, 1.0, 1.0], dtype=F64)
    assert check(rank_two_network(3), 2, 0, "", (lower, upper)).violations == 3


def test_a_balanced_linear_network_attains_the_cost_and_is_balanced_without_biases():
    A, L = randn(4, 3, seed=3), 7
    network = linear_network(A, L)
    network = Network(network.weights, [0 * b for b in network.biases])
    assert float(network.parameter_norm()) == pytest.approx(float(theory.representation_cost(A, L)))
    assert theory.imbalance(network) < 1e-12


def test_no_relu_network_undercuts_the_cost_of_its_jacobian():
    network, x = random_network([4, 9, 9, 9, 3]), randn(50, 4, seed=1)
    cost = theory.representation_cost(differentiate(network, x).jacobian, network.depth)
    assert (cost <= network.parameter_norm()).all()


# derivatives


def test_derivatives_equal_automatic_differentiation():
    network, x = random_network([3, 7, 6, 5, 2], seed=4), randn(4, 3, seed=5)
    derivatives = differentiate(network, x)
    for n in range(len(x)):
        jacobian = torch.autograd.functional.jacobian(
            lambda v: network.activations(v[None])[-1][0], x[n]
        )
        torch.testing.assert_close(derivatives.jacobian[n], jacobian)
    for layer, W in enumerate(network.weights):
        parts = derivatives.outer[layer] @ W @ derivatives.inner[layer]
        torch.testing.assert_close(parts, derivatives.jacobian)


def test_ntk_trace_equals_the_squared_gradients_by_the_weights():
    network, x = random_network([3, 6, 5, 2], seed=6), randn(3, 3, seed=7)
    trace = theory.ntk_trace(network, differentiate(network, x), x)
    for W in network.weights:
        W.requires_grad_()
    for n in range(len(x)):
        outputs = network.activations(x[n : n + 1])[-1][0]
        total = sum(
            gradient.square().sum()
            for output in outputs
            for gradient in torch.autograd.grad(output, network.weights, retain_graph=True)
        )
        torch.testing.assert_close(total, trace[n])


def test_mixed_derivative_equals_automatic_differentiation():
    """d^2_{xy} Theta(x, y) at y = x, as a matrix, for a network with scalar output."""
    network, x = random_network([3, 6, 5, 1], seed=8), randn(1, 3, seed=9)
    weights = [W.clone().requires_grad_() for W in network.weights]

    def features(v: torch.Tensor) -> torch.Tensor:
        output = Network(weights, network.biases).activations(v[None])[-1][0, 0]
        gradients = torch.autograd.grad(output, weights, create_graph=True)
        return torch.cat([g.flatten() for g in gradients])

    J = torch.autograd.functional.jacobian(features, x[0])
    expected = torch.linalg.matrix_norm(J.mT @ J, 2)
    found = theory.ntk_mixed_derivative(differentiate(network, x))
    torch.testing.assert_close(found[0], expected)


# Theorem 3 and Theorem 6


@pytest.mark.parametrize("L", [3, 6])
def test_semi_orthonormal_weights_have_distance_zero(L):
    network, x = rank_two_network(L), torch.tensor([[0.3, 0.2, 0.1]], dtype=F64)
    derivatives = differentiate(network, x)
    assert float(theory.bottleneck_distance(network, derivatives, 2)) == pytest.approx(0, abs=1e-12)
    assert float(excess(network, 2)) == pytest.approx(0, abs=1e-12)
    assert float(theory.log_pseudo_determinant(derivatives.jacobian, 2)) == pytest.approx(
        0, abs=1e-12
    )


def test_distance_of_a_balanced_linear_network_in_closed_form():
    """All W_l have the singular values s^{1/L} in one frame: the distance is L sum (s^{1/L} -
    1)^2.
    """
    A, L = randn(4, 3, seed=3), 5
    network = linear_network(A, L)
    s = torch.linalg.svdvals(A)
    found = theory.bottleneck_distance(network, differentiate(network, 0.01 * randn(2, 3)), 3)
    expected = float(L * (s ** (1 / L) - 1).square().sum())
    assert found.tolist() == pytest.approx([expected] * 2)


def test_frames_are_semi_orthonormal_and_give_the_distance():
    network, x = random_network([5, 8, 8, 8, 4], seed=11), randn(3, 5, seed=12)
    derivatives = differentiate(network, x)
    eye, total = torch.eye(2, dtype=F64).expand(3, 2, 2), 0
    frames = theory.bottleneck_frames(network, derivatives, 2)
    for W, (U, V) in zip(network.weights, frames, strict=True):
        torch.testing.assert_close(U.mT @ U, eye)
        torch.testing.assert_close(V.mT @ V, eye)
        total = total + (W - U @ V.mT).square().sum((1, 2))
    torch.testing.assert_close(total, theory.bottleneck_distance(network, derivatives, 2))


@pytest.mark.parametrize("seed", range(3))
def test_theorems_3_and_6_hold_for_every_k_up_to_the_rank(seed):
    network, x = random_network([5, 12, 12, 12, 4], seed=seed), randn(40, 5, seed=seed)
    derivatives = differentiate(network, x)
    s = torch.linalg.svdvals(derivatives.jacobian)
    for k in (1, 2, 3, 4):
        kept = s[:, k - 1] > 1e-9
        logarithm = theory.log_pseudo_determinant(derivatives.jacobian, k)
        distance = theory.bottleneck_distance(network, derivatives, k)
        assert kept.any()
        assert (2 * logarithm <= excess(network, k))[kept].all()
        assert (distance <= excess(network, k) - 2 * logarithm)[kept].all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("k", [1, 2, 3])
def test_theorem_6_holds_with_frames_that_neighbouring_layers_share(seed, k):
    """The main text's `sum_l ||W_l - V_l V_{l-1}^T||^2`, stronger than with frames of their own.

    M_l = orth(D_l W_l M_{l-1}), A_l = M_l^T W_l M_{l-1}, and V_l = M_l R_l with `A_l R_{l-1} = R_l
    P_l`, the polar decomposition: <W_l, V_l V_{l-1}^T> = tr P_l >= k + log det P_l, and the
    determinants of the A_l multiply to |J f(x)|_+.
    """
    network, x = random_network([5, 12, 12, 12, 4], seed=seed), randn(40, 5, seed=seed)
    derivatives = differentiate(network, x)
    logarithm = theory.log_pseudo_determinant(derivatives.jacobian, k)
    kept = torch.linalg.svdvals(derivatives.jacobian)[:, k - 1] > 1e-9
    M = torch.linalg.svd(derivatives.jacobian).Vh[:, :k].mT
    V, R, total = M, torch.eye(k, dtype=F64), 0
    for W, D in zip(network.weights, derivatives.active, strict=True):
        image, _ = torch.linalg.qr(D[..., None] * (W @ M))
        U, _, Qh = torch.linalg.svd(image.mT @ W @ M @ R)
        R = U @ Qh
        total = total + (W - image @ R @ V.mT).square().sum((1, 2))
        M, V = image, image @ R
    assert kept.any()
    assert (total <= excess(network, k) - 2 * logarithm)[kept].all()


def test_projecting_from_both_sides_as_printed_breaks_theorem_6():
    """W_1 = e, W_2 = g^T with angle phi between e and g: 4 - 4 cos(phi) is above -2 log
    cos(phi).
    """
    cos = 0.7
    e = torch.tensor([[1.0], [0.0]], dtype=F64)
    g = torch.tensor([[cos], [math.sqrt(1 - cos**2)]], dtype=F64)
    network = Network([e, g.mT], [torch.zeros(2, dtype=F64), torch.zeros(1, dtype=F64)])
    # Both neurons are on: a ReLU of 0 would be off, so look at the network with a positive bias.
    network.biases[0].add_(1)
    norm = float(e.square().sum() + g.square().sum())
    derivatives = differentiate(network, torch.ones(1, 1, dtype=F64))
    bound = norm - 2 - 2 * float(theory.log_pseudo_determinant(derivatives.jacobian, 1))
    # printed: U V^T from the SVD of P_{Im J(alpha~_l -> f)^T} W_l P_{Im J alpha_{l-1}}
    printed = 0.0
    projected = [(e, (g @ g.mT) @ e), (g.mT, g.mT @ (e @ e.mT))]
    for W, A in projected:
        U, _, Vh = torch.linalg.svd(A, full_matrices=False)
        printed += float((W - U @ Vh).square().sum())
    assert printed == pytest.approx(4 - 4 * cos)
    assert printed > bound
    assert float(theory.bottleneck_distance(network, derivatives, 1)) <= bound


# Theorem 7, Corollary 8, Proposition 9


@pytest.mark.parametrize("seed", range(3))
def test_theorem_7_and_corollary_8_hold_for_balanced_networks(seed):
    network = balanced(random_network([4, 10, 10, 10, 3], seed=seed), sweeps=2000)
    assert theory.imbalance(network) < 1e-6
    x, k, L = randn(30, 4, seed=seed), 2, network.depth
    derivatives = differentiate(network, x)
    logarithm = theory.log_pseudo_determinant(derivatives.jacobian, k)
    trace = theory.ntk_trace(network, derivatives, x)
    squares = sum(a.square().sum(1) for a in network.activations(x)[:-1])
    bound = theory.activation_bound(trace, excess(network, k), logarithm, k)
    kept = logarithm > -20
    assert kept.any() and (squares <= bound)[kept].all()
    bound = theory.representation_bound(trace, excess(network, k), logarithm, k, L)
    tail = theory.representation_tail(network, x, k).sort(descending=True).values
    assert (tail <= bound * L / torch.arange(1, L + 1)).all()


def test_activation_bound_of_semi_orthonormal_weights_in_closed_form():
    """All |J|_+ = 1, c_1 = 0, and ||J(alpha~_l -> f)||_F^2 = k but for the last layer's d_out."""
    network, x = rank_two_network(5), torch.tensor([[0.3, 0.2, 0.1]], dtype=F64)
    derivatives = differentiate(network, x)
    trace = theory.ntk_trace(network, derivatives, x)
    bound = theory.activation_bound(trace, excess(network, 2), torch.zeros(1, dtype=F64), 2)
    squares = [a.square().sum(1) for a in network.activations(x)[:-1]]
    torch.testing.assert_close(bound, sum(squares) + (3 / 2 - 1) * squares[-1])


def test_representations_of_a_rank_two_network_have_no_tail():
    network, x = rank_two_network(5), randn(20, 3).abs()
    wide = [torch.eye(3, 2, dtype=F64) @ network.weights[0], *network.weights[1:]]
    wide[1] = network.weights[1] @ torch.eye(2, 3, dtype=F64)
    biases = [torch.zeros(len(W), dtype=F64) for W in wide]
    tail = theory.representation_tail(Network(wide[:2] + wide[-1:], biases[:2] + biases[-1:]), x, 1)
    assert (tail > 0.1).all()
    assert (theory.representation_tail(network, x, 2) < 1e-15).all()
    assert (theory.representation_tail(network, x, 3)[:-1] == 0).all()  # of two singular values


@pytest.mark.parametrize("seed", range(3))
def test_proposition_9_holds_with_the_factor_of_its_proof(seed):
    network, x = random_network([4, 9, 9, 9, 3], seed=seed), randn(20, 4, seed=seed)
    derivatives = differentiate(network, x)
    bound = theory.narrowness_bound(derivatives.jacobian, network.depth)
    assert (theory.ntk_mixed_derivative(derivatives) >= bound * (1 - 1e-12)).all()


def test_proposition_9_as_printed_fails_for_linear_networks():
    """The chain x -> s x has d^2_{xy} Theta = L s^{2-2/L}, half of the printed bound."""
    L, s = 6, 3.0
    network = linear_network(torch.tensor([[s]], dtype=F64), L)
    derivatives = differentiate(network, torch.ones(1, 1, dtype=F64))
    found = float(theory.ntk_mixed_derivative(derivatives))
    assert found == pytest.approx(L * s ** (2 - 2 / L))
    assert found < 2 * float(theory.narrowness_bound(derivatives.jacobian, L))


# Example 20


@pytest.mark.parametrize("L", [4, 10, 64])
def test_example_20_represents_f_on_the_cube(L):
    x = torch.rand(200, 3, generator=stream(), dtype=F64)
    expected = x.clone()
    expected[:, 2] += (x[:, 0] - x[:, 1]).relu()
    network = theory.divergent_network(L, L**-0.75)
    assert network.depth == L
    torch.testing.assert_close(network.activations(x)[-1], expected)


def test_example_20_norm_follows_its_closed_form_to_zero():
    for L in (10, 100, 1000):
        norm = float(theory.divergent_network(L, L**-0.75).parameter_norm())
        assert norm - 3 * L == pytest.approx(theory.divergent_excess(L, L**-0.75), abs=1e-9)
    # 12 L^{1-2g} for large L
    L, g = 10**9, 0.75
    assert theory.divergent_excess(L, L**-g) == pytest.approx(12 * L ** (1 - 2 * g), rel=1e-3)


@pytest.mark.parametrize("L", [2, 4, 100, 10**6, 10**12])
def test_example_20_excess_loses_no_digits(L):
    with mpmath.workdps(60):
        e = mpmath.mpf(L**-0.75)  # the terms as they are printed
        terms = [2 * mpmath.e ** (2 * e), mpmath.e ** (-4 * e), 2 * mpmath.e ** (-2 * e)]
        bracket = sum(terms) + mpmath.e ** (4 * e) - 6
        decay = mpmath.e ** (-(L - 2) * e)
        excess = mpmath.mpf(L - 2) / 2 * bracket + 2 * decay + decay**2
    assert theory.divergent_excess(L, L**-0.75) == pytest.approx(float(excess), rel=1e-14, abs=0)


def test_example_20_middle_is_not_lipschitz():
    L = 1000
    network = theory.divergent_network(L, L**-0.6)
    derivatives = differentiate(network, torch.tensor([[0.2, 0.6, 0.5]], dtype=F64))
    largest = max(float(torch.linalg.matrix_norm(J, 2)) for J in derivatives.inner)
    assert largest == pytest.approx(math.exp((L - 2) / 2 * L**-0.6), rel=0.05)


# section 5


@pytest.fixture
def noiseless() -> Dynamics:
    return Dynamics.drawn(12, 0.0, 1e-6, stream(3))


def test_statistics_obey_their_equations_without_noise(noiseless):
    """d/dt (w.v)^2 = -8 (||v||^2 - 1)(w.v)^2 and d/dt ||v_perp||^2 = -8 ||v||^2 ||v_perp||^2."""
    v = noiseless.starts(20, stream(4))
    u = noiseless.statistics(v)
    rate = (noiseless.statistics(noiseless.step(v)) - u) / noiseless.step_size
    square = u.sum(1)
    expected = torch.stack([-8 * (square - 1) * u[:, 0], -8 * square * u[:, 1]], dim=1)
    torch.testing.assert_close(rate, expected, atol=1e-3, rtol=1e-4)


def test_cost_is_a_function_of_the_statistics_without_noise(noiseless):
    v = noiseless.starts(20, stream(5))
    u = noiseless.statistics(v)
    torch.testing.assert_close(noiseless.cost(v), u.sum(1).square() - 2 * u[:, 0] + 1)


def test_cost_and_step_equal_their_definition():
    dynamics = Dynamics.drawn(7, 0.1, 0.02, stream(6))
    assert float(torch.linalg.matrix_norm(dynamics.E, 2)) == pytest.approx(0.1)
    v = dynamics.starts(1, stream(7))[0].requires_grad_()
    cost = (torch.outer(v, v) - torch.outer(dynamics.w, dynamics.w) - dynamics.E).square().sum()
    torch.testing.assert_close(dynamics.cost(v.detach()[None])[0], cost.detach())
    (gradient,) = torch.autograd.grad(cost, v)
    torch.testing.assert_close(dynamics.step(v.detach()[None])[0], v.detach() - 0.02 * gradient)


def test_paths_have_their_start_and_as_many_costs_as_steps():
    dynamics = Dynamics.drawn(7, 0.1, 0.02, stream(6))
    v = dynamics.starts(3, stream(8))
    assert torch.equal(dynamics.path(v, 4)[0], v)
    torch.testing.assert_close(dynamics.costs(v, 4)[:, 1], dynamics.cost(dynamics.path(v, 2)[2]))


# Theorem 3, items 1 to 3


def biasless(weights: list[torch.Tensor]) -> Network:
    return Network(weights, [W.new_zeros(len(W)) for W in weights])


def log_det(A: torch.Tensor, k: int) -> float:
    return float(theory.log_pseudo_determinant(A, k))


def concatenated(f: Network, g: Network) -> Network:
    """The layers of g, a ReLU, the layers of f."""
    return Network([*g.weights, *f.weights], [*g.biases, *f.biases])


def side_by_side(f: Network, g: Network) -> Network:
    """f + g: stacked first layers, block diagonal ones, last layers in a row."""
    weights = [torch.block_diag(V, W) for V, W in zip(f.weights, g.weights, strict=True)]
    weights[0] = torch.cat([f.weights[0], g.weights[0]])
    weights[-1] = torch.cat([f.weights[-1], g.weights[-1]], dim=1)
    biases = [torch.cat(pair) for pair in zip(f.biases, g.biases, strict=True)]
    return Network(weights, [*biases[:-1], f.biases[-1] + g.biases[-1]])


def test_parallel_neurons_become_one_and_nothing_else_changes():
    """Two copies of a neuron, of other sizes, are one whose `||theta||^2` is not larger."""
    network = random_network([4, 6, 5, 3], seed=33)
    W, b = network.weights, network.biases
    W[0], b[0] = torch.cat([W[0], 2 * W[0][:2]]), torch.cat([b[0], 2 * b[0][:2]])
    W[1] = torch.cat([W[1], randn(5, 2, seed=34)], 1)
    found, x = merged(network), randn(20, 4, seed=35)
    assert [len(bias) for bias in found.biases] == [6, 5, 3]
    torch.testing.assert_close(found.activations(x)[-1], network.activations(x)[-1])
    before, after = (balanced(each).parameter_norm() for each in (network, found))
    assert float(after) < float(before)


def smallest_norm(
    x: torch.Tensor, y: torch.Tensor, L: int, width: int = 4, starts: int = 4, ridge: float = 1e-3
) -> float:
    """The lowest `C / ridge + ||theta||^2` from some random starts: R(f; X, L), up to O(ridge).

    A global minimum is below R, by as much as the fit gives way.
    """
    problem = Problem(x.mT.contiguous(), y.mT.contiguous(), ridge)
    widths = [x.shape[1], *[width] * (L - 1), y.shape[1]]
    found = (polished(random_network(widths, seed=seed), problem) for seed in range(starts))
    return min(problem.loss(network) for network in found) / ridge


def test_theorem_3_needs_a_point_where_the_jacobian_has_the_full_rank():
    """Theorem 3's condition Rank J f(x) = R^(0)(f): f(x, y) = (s x, relu(y) / s) on x >= 0.

    Where y < 0, |J f|_+ = s; but R^(0) = 2 and ||theta||^2 - 2 L -> 0 = 2 log |J f| at y > 0.
    """
    L, s = 400, 3.0
    step = torch.tensor([s, 1 / s], dtype=F64).pow(1 / L).diag()
    network, eye = biasless([step] * L), torch.eye(2, dtype=F64)
    # The last layer has no ReLU: an identity, of squared norm 2, follows the L layers.
    network = biasless([*network.weights, eye])
    jacobians = differentiate(network, torch.tensor([[1.0, 1], [1, -1]], dtype=F64)).jacobian
    assert float(excess(network, 2)) == pytest.approx(4 * math.log(s) ** 2 / L, rel=1e-3)
    assert log_det(jacobians[0], 2) == pytest.approx(0, abs=1e-9)
    assert 2 * log_det(jacobians[1], 1) == pytest.approx(2 * math.log(s))
    assert 2 * log_det(jacobians[1], 1) > 100 * float(excess(network, 2))


def test_norms_add_under_composition_where_the_inner_outputs_are_not_negative():
    """Theorem 3, proof of (1): R(f o g; L_1 + L_2) <= R(f; g(Omega), L_1) + R(g; L_2)."""
    f, g = random_network([3, 7, 7, 2], seed=30), random_network([4, 8, 3], seed=31)
    x = randn(30, 4, seed=32)
    g.biases[-1].sub_(g.activations(x)[-1].min(0).values)
    joined = concatenated(f, g)
    expected = f.activations(g.activations(x)[-1])[-1]
    torch.testing.assert_close(joined.activations(x)[-1], expected)
    torch.testing.assert_close(joined.parameter_norm(), f.parameter_norm() + g.parameter_norm())
    g.biases[-1].sub_(1)
    expected = f.activations(g.activations(x)[-1])[-1]
    assert (concatenated(f, g).activations(x)[-1] - expected).abs().max() > 0.1


def test_norms_are_not_subadditive_under_composition_with_negative_inner_outputs():
    """Counterexample to the inequality of (1) in Theorem 3's proof: f = g = id on [-1, 1].

    R(id; 1) = 1, but R(id; 2) = 2 sqrt 2 > 1 + 1. A neuron that is on at both ends has |b| >= |w|
    and costs 2 sqrt 2 for a unit of slope, one that is on at one end costs 2, and two are needed.
    Attained by x = ((x + 1) - (1 - x)) / 2. On [0, 1] R(id; 2) = 2.
    """
    x = torch.linspace(-1, 1, 21, dtype=F64)[:, None]
    assert smallest_norm(x, x, L=1) == pytest.approx(1, abs=0.01)
    assert smallest_norm(x, x, L=2) == pytest.approx(2 * math.sqrt(2), abs=0.03)
    assert smallest_norm((x + 1) / 2, (x + 1) / 2, L=2) == pytest.approx(2, abs=0.03)
    w = 8**-0.25  # the balanced network that attains it: w v = 1 / 2, v^2 = 2 w^2
    v, b = 0.5 / w, torch.tensor([w, w], dtype=F64)
    network = Network([b[:, None] * x[[-1, 0]], x.new_tensor([[v, -v]])], [b, x.new_zeros(1)])
    torch.testing.assert_close(network.activations(x)[-1], x)
    assert float(network.parameter_norm()) == pytest.approx(2 * math.sqrt(2))


def test_pseudo_determinants_are_submultiplicative_at_equal_ranks_only():
    """Theorem 3 (1) on linear maps, R^(1)(A) = 2 log |A|_+.

    With Rank AB = Rank A = Rank B, |A B|_+ <= |A|_+ |B|_+, and equality if A is taken on Im B, the
    domain of f in f o g. A = diag(1, 1/9), B = diag(1, 0) shows that the ranks must be equal.
    """
    k = 2
    for seed in range(50):
        A = randn(5, k, seed=seed) @ randn(k, 4, seed=100 + seed)
        B = randn(4, k, seed=200 + seed) @ randn(k, 3, seed=300 + seed)
        on_image = A @ (B @ torch.linalg.pinv(B))
        assert log_det(A @ B, k) < log_det(A, k) + log_det(B, k)
        assert log_det(A @ B, k) == pytest.approx(log_det(on_image, k) + log_det(B, k))
    A, B = (torch.tensor(d, dtype=F64).diag() for d in ([1.0, 1 / 9], [1.0, 0.0]))
    assert log_det(A @ B, 1) > log_det(A, 2) + log_det(B, 1) + 2


def test_norms_add_under_addition_up_to_the_last_biases():
    """Theorem 3, proof of (2): the network of f + g has the norms' sum and 2 <b_L^f, b_L^g>.

    The printed R(f + g; L) <= R(f; L) + R(g; L) leaves the last term out; see the next test.
    """
    f, g = random_network([4, 6, 7, 3], seed=33), random_network([4, 5, 8, 3], seed=34)
    x, both = randn(30, 4, seed=35), side_by_side(f, g)
    torch.testing.assert_close(both.activations(x)[-1], f.activations(x)[-1] + g.activations(x)[-1])
    cross = 2 * f.biases[-1] @ g.biases[-1]
    assert abs(cross) > 1e-3
    total = f.parameter_norm() + g.parameter_norm() + cross
    torch.testing.assert_close(both.parameter_norm(), total)


def test_constants_are_a_counterexample_to_subadditivity_under_addition():
    """Theorem 3 (2) fails as printed for f = g = 1: R^(0) = 0, R^(1)(1) = 1, R^(1)(2) = 3 > 1 + 1.

    At x = 0 in Omega norms obey y_l <= ||b_l|| + ||W_l|| y_{l-1}, y_0 = 0, so that scalars suffice:
    R(c; L) = min sum_l b_l^2 + w_l^2 with y_L = c, which is 1 for c = 1 and 3 for c = 2, L >= 2.
    """

    def cost(theta: np.ndarray, c: float) -> float:
        b, w = np.split(theta, 2)  # b_1 .. b_{L-1}; w_2 .. w_L
        y = b[0]
        for shift, weight in zip(b[1:], w[:-1], strict=True):
            y = shift + weight * y
        return float(theta @ theta) + (c - w[-1] * y) ** 2

    def smallest(c: float, L: int) -> float:
        starts = np.random.default_rng(0).uniform(0, 1.5, (8, 2 * (L - 1)))
        return min(minimize(cost, start, args=(c,)).fun for start in starts)

    for L in (2, 5):
        assert smallest(1, L) == pytest.approx(1, abs=1e-6)
        assert smallest(2, L) == pytest.approx(3, abs=1e-6)
    one = torch.ones(1, dtype=F64)
    two = Network([one[:, None] * 0, one[:, None]], [one, one])
    assert float(two.activations(one[:, None])[-1]) == 2 and float(two.parameter_norm()) == 3


def test_linear_maps_are_subadditive_where_the_ranks_add():
    """Theorem 3 (2) on linear maps: |A + B|_+ <= |A|_+ |B|_+ if Rank(A + B) = Rank A + Rank B.

    A + A shows that the ranks must add. R(A + B; L) <= R(A; L) + R(B; L) holds at every rank.
    """
    for seed in range(50):
        A = randn(5, 1, seed=seed) @ randn(1, 4, seed=100 + seed)
        B = randn(5, 2, seed=200 + seed) @ randn(2, 4, seed=300 + seed)
        assert log_det(A + B, 3) < log_det(A, 1) + log_det(B, 2)
        for L in (2, 3, 20):
            costs = [float(theory.representation_cost(M, L)) for M in (A + B, A, B)]
            assert costs[0] < costs[1] + costs[2]
    A = A / torch.linalg.matrix_norm(A)
    assert log_det(A + A, 1) > 2 * log_det(A, 1) + 0.6


def kernel_network(
    inner: torch.Tensor, outer: torch.Tensor, A: torch.Tensor, L: int, swapped: bool = False
) -> Network:
    """Theorem 3, proof of (3): W_l = B_l B_{l-1}^+ with B_0 = I, B_L = A and
    B_l^T B_l = (1 - l / L) P_{Im A^T} + (l / L) A^T A; swapped: the weights as printed.

    inner: O_in; outer: O_out A.
    """
    fractions = [layer / L for layer in range(1, L)]
    fractions = fractions[::-1] if swapped else fractions
    parts = [torch.cat([(1 - p) ** 0.5 * inner, p**0.5 * outer]) for p in fractions]
    before = [torch.eye(A.shape[1], dtype=F64), *parts]
    return biasless([B @ torch.linalg.pinv(C) for B, C in zip([*parts, A], before, strict=True)])


@pytest.fixture(scope="module")
def positive_map() -> tuple[torch.Tensor, torch.Tensor]:
    """O_in and A of rank 2 on R^3_+, with O_in Omega and A Omega in R^2_+."""
    inner = torch.tensor([[0.5**0.5, 0.5**0.5, 0], [0, 0, 1]], dtype=F64)
    return inner, torch.tensor([[2, 0.3], [0.5, 0.7]], dtype=F64) @ inner


def test_completely_positive_linear_maps_have_the_pseudo_determinant_as_regularity(positive_map):
    """Theorem 3 (3): networks for A on R^3_+ whose excess norm falls to 2 log |A|_+ as 1 / L."""
    inner, A = positive_map
    x, above = torch.rand(50, 3, generator=stream(36), dtype=F64), []
    for L in (50, 100, 200):
        network = kernel_network(inner, A, A, L)
        torch.testing.assert_close(network.activations(x)[-1], x @ A.mT)
        above.append(float(excess(network, 2)) - 2 * log_det(A, 2))
    assert 0 < above[2] < 0.02
    assert above[0] / above[1] == pytest.approx(2, rel=0.05)
    assert above[1] / above[2] == pytest.approx(2, rel=0.05)


def test_kernels_interpolated_as_printed_do_not_reach_the_pseudo_determinant(positive_map):
    """The proof of (3) prints (l / L) P + (1 - l / L) A^T A, from A to the identity.

    Then W_1 and W_L are A, the others undo one of them: 2 ||A||_F^2 - 2 k - 2 log |A|_+.
    """
    inner, A = positive_map
    network = kernel_network(inner, A, A, 400, swapped=True)
    x = torch.rand(50, 3, generator=stream(36), dtype=F64)
    torch.testing.assert_close(network.activations(x)[-1], x @ A.mT)
    found = float(excess(network, 2))
    assert found == pytest.approx(2 * float(A.square().sum()) - 4 - 2 * log_det(A, 2), rel=0.02)
    assert found > 2 * log_det(A, 2) + 4


@pytest.mark.parametrize("L", [10, 1000])
def test_a_linear_map_is_cheaper_where_the_domain_is_thin(L):
    """Counterexample to Theorem 3 (3) as printed: A = (1, 0) on Omega = {(t, t): 0 <= t <= 1}.

    P_{Im A^T} Omega and A Omega are segments of R_+, and 2 log |A|_+ = 0, but A (x) = (1/2, 1/2) x
    on Omega, and R^(1) = 2 log |A P_{span Omega}|_+ = -log 2: the lower bound of Theorem 3 is
    about J f(x) on T_x Omega, which must contain Im A^T.
    """
    A = torch.tensor([[1.0, 0]], dtype=F64)
    P = torch.full((2, 2), 0.5, dtype=F64)
    network = linear_network(A @ P, L)
    network = biasless([W * W.sum().sign() for W in network.weights])
    x = torch.linspace(0, 1, 9, dtype=F64)[:, None].expand(9, 2)
    torch.testing.assert_close(network.activations(x)[-1], x @ A.mT)
    found = float(excess(network, 1))
    assert found == pytest.approx(L * (0.5 ** (1 / L) - 1))
    assert found < 2 * log_det(A, 1) - 0.6
    assert 2 * log_det(A @ P, 1) == pytest.approx(-math.log(2))
    assert found >= 2 * log_det(A @ P, 1)


# Remarks 1 and 2


def with_few_neurons(network: Network, x: torch.Tensor) -> Network:
    """The same outputs at N points, by at most N (N + 1) neurons in every layer, of no larger norm.

    Let Z (N, n) be a layer's pre-activations, A = relu(Z). The layers before and after need at
    least tr Z Z^T (H H^T)^+ and tr Y Y^T (A A^T)^+, H and Y their other ends. Both depend on sums
    over neurons, Z Z^T and A A^T, which have N (N + 1) entries: by Caratheodory's theorem, as many
    neurons have the same sums with other sizes, since relu(c z) = c relu(z).
    """
    weights, biases = [*network.weights], [*network.biases]
    first, second = torch.tril_indices(len(x), len(x))
    for i in range(network.depth - 1):
        H = network.activations(x)[i]
        H = torch.cat([H, torch.ones_like(H[:, :1])], 1)
        Z = H @ torch.cat([weights[i], biases[i][:, None]], 1).mT
        sums = torch.cat([M[first] * M[second] for M in (Z, Z.relu())])
        sizes = torch.from_numpy(nnls(sums.numpy(), sums.sum(1).numpy())[0])
        Z_few = Z[:, sizes > 0] * sizes[sizes > 0].sqrt()
        before = torch.linalg.pinv(H) @ Z_few
        after = torch.linalg.pinv(Z_few.relu()) @ Z.relu() @ weights[i + 1].mT
        weights[i], biases[i], weights[i + 1] = before[:-1].mT, before[-1], after.mT
        network = Network([*weights], [*biases])
    return network


@pytest.mark.parametrize("N", [2, 3])
def test_a_width_of_n_times_n_plus_1_suffices(N):
    """Remark 1: any network of width 60 has the norm, at least, of one of width N (N + 1)."""
    network, x = random_network([4, 60, 60, 60, 3], seed=42), randn(N, 4, seed=43)
    few = with_few_neurons(network, x)
    assert max(map(len, few.biases[:-1])) <= N * (N + 1)
    torch.testing.assert_close(few.activations(x)[-1], network.activations(x)[-1])
    assert float(few.parameter_norm()) < float(network.parameter_norm())


def test_a_much_smaller_width_is_often_sufficient():
    """Remark 1: |x| on three points costs as much with 2 neurons as with N (N + 1) = 12.

    Where L-BFGS finds this minimum, its ends differ by up to 0.2 % between starts.
    """
    x = torch.tensor([[-1.0], [0.0], [1.0]], dtype=F64)
    costs = [smallest_norm(x, x.abs(), L=3, width=width) for width in (1, 2, 12)]
    assert costs[1] == pytest.approx(costs[2], rel=3e-3)
    assert costs[0] > 2 * costs[1]


def norm_after_cross_entropy(sizes, x, signs, activation, seed=0) -> float:
    """`||theta||^2` at margin 1, after gradient descent on the cross-entropy of two classes.

    There are no biases and no weight decay. Steps have length 0.02, and end at margins near 640,
    where the loss ends in float64. signs: 1 for the first class, -1 for the second.
    """
    generator, log_loss = stream(seed), torch.zeros(())
    shapes = [(n, fan_in) for fan_in, n in pairwise(sizes)]
    drawn = [torch.randn(shape, generator=generator, dtype=F64) for shape in shapes]
    weights = [(0.4 / math.sqrt(W.shape[1]) * W).requires_grad_() for W in drawn]
    while log_loss > math.log(1e-280):
        h = x
        for W in weights[:-1]:
            h = activation(h @ W.mT)
        first, second = (h @ weights[-1].mT).unbind(1)
        margins = signs * (first - second)
        log_loss = softplus(-margins).mean().log()
        gradients = torch.autograd.grad(log_loss, weights)
        length = math.sqrt(sum(float(g.square().sum()) for g in gradients))
        with torch.no_grad():
            for W, g in zip(weights, gradients, strict=True):
                W -= 0.02 / length * g
    norm = sum(float(W.detach().square().sum()) for W in weights)
    return norm / float(margins.detach().min()) ** (2 / len(weights))


@pytest.mark.parametrize("L", [2, 3, 4])
def test_cross_entropy_leads_linear_networks_to_the_smallest_cost_at_margin_1(L):
    """Remark 2: to min R(A; L) over A with margins of 1, which are w.x for A = (w, -w) / 2.

    So s_1(A) = |w| / sqrt 2, and w is that of the largest margin.
    """
    x = torch.tensor([[1.0, 0.5], [2, -1], [0.3, 2], [-1, 0.2], [-0.5, -1.5]], dtype=F64)
    signs = torch.tensor([1.0, 1, 1, -1, -1], dtype=F64)
    outside = {"type": "ineq", "fun": lambda w: (signs[:, None] * x).numpy() @ w - 1}
    w = minimize(lambda w: w @ w, [1.0, 1.0], constraints=outside).x
    A = torch.tensor(np.stack([w, -w]) / 2)
    norm = norm_after_cross_entropy([2, *[4] * (L - 1), 2], x, signs, lambda h: h)
    assert norm == pytest.approx(float(theory.representation_cost(A, L)), rel=0.02)


@pytest.mark.parametrize("seed", range(2))
def test_cross_entropy_leads_shallow_networks_to_the_smallest_cost_at_margin_1(seed):
    """Remark 2: classes 1, 2, 1 at t = -1, 0, 1, x = (t, 1). The margin 2 |t| - 1 costs 5 sqrt 2.

    Less is impossible: sum_i mu_i sign_i relu(w.x_i) is between -1 and 1 for unit w and mu = (1, 3,
    1), so that neurons a_j relu(w_j.x) with margins of 1 have sum_j |a_j| >= 1 + 3 + 1. Two logits
    +-a / 2 and w cost 2 |w| |a| / sqrt 2.
    """
    x = torch.tensor([[-1.0, 1], [0, 1], [1, 1]], dtype=F64)
    signs, mu = torch.tensor([[1.0, -1, 1], [1, 3, 1]], dtype=F64)
    angle = torch.linspace(0, 2 * math.pi, 1001, dtype=F64)
    w = torch.stack([angle.cos(), angle.sin()])
    assert float(((mu * signs) @ (x @ w).relu()).abs().max()) == pytest.approx(1)
    norm = norm_after_cross_entropy([2, 8, 2], x, signs, torch.relu, seed)
    assert norm == pytest.approx(5 * math.sqrt(2), rel=0.01)


# Proposition 4


def second_correction(A: torch.Tensor) -> float:
    """`||log_+ A^T A||^2 / 2 = 2 sum_i log^2 s_i(A)` over the nonzero singular values."""
    s = torch.linalg.svdvals(A)
    return float(2 * s[s > 1e-9 * s[0]].log().square().sum())


def rotation(angle: float) -> torch.Tensor:
    cos, sin = math.cos(angle), math.sin(angle)
    return torch.tensor([[cos, -sin], [sin, cos]], dtype=F64)


def turning_network(A: torch.Tensor, cone: torch.Tensor, L: int) -> Network:
    """W_l = U_l S^{1/L} U_{l-1}^T for a (2, 2) A = U S V^T, U_l S^{l/L} V^T cone in R^2_+."""
    U, s, Vh = torch.linalg.svd(A)
    frames = [Vh.mT]
    for layer in range(1, L):
        rays = (s ** (layer / L)).diag() @ Vh @ cone
        first, second = torch.atan2(rays[1], rays[0]).tolist()
        middle = first + math.remainder(second - first, 2 * math.pi) / 2
        frames.append(rotation(math.pi / 4 - middle))
    frames.append(U)
    step = (s ** (1 / L)).diag()
    return biasless([b @ step @ a.mT for a, b in pairwise(frames)])


def test_a_turning_relu_network_attains_the_second_correction():
    """Proposition 4 (3): the norm is R(A; L), L (||theta||^2 - k L - 2 log |A|_+) -> R^(2).

    A turns the cone out of the quadrant and stretches it, so that every U_l must turn it back. A
    cone whose image A^p Omega is wider than a right angle does not pass.
    """
    cone = torch.tensor([[1.0, 0.5], [0.4, 1.0]], dtype=F64)
    A = rotation(2.0) @ torch.tensor([2.0, 0.8], dtype=F64).diag() @ rotation(0.3)
    x = torch.rand(50, 2, generator=stream(37), dtype=F64) @ cone.mT
    scaled = []
    for L in (100, 200):
        network = turning_network(A, cone, L)
        torch.testing.assert_close(network.activations(x)[-1], x @ A.mT)
        cost = float(theory.representation_cost(A, L))
        assert float(network.parameter_norm()) == pytest.approx(cost, rel=1e-12)
        scaled.append(L * (float(excess(network, 2)) - 2 * log_det(A, 2)))
    assert 2 * scaled[1] - scaled[0] == pytest.approx(second_correction(A), rel=1e-4)
    wide = torch.tensor([[1.0, 0.2], [0.1, 1.0]], dtype=F64)
    first, second = (A @ wide).mT
    assert first @ second < 0
    found = turning_network(A, wide, 100).activations(wide.mT)[-1]
    assert (found - wide.mT @ A.mT).abs().max() > 0.01


def test_interpolated_kernels_attain_the_first_but_not_the_second_correction():
    """Theorem 3's network of x -> s x reaches (s - 1/s)^2 / 2 where R^(2) = 2 log^2 s."""
    s, one = 3.0, torch.ones(1, 1, dtype=F64)
    scaled = []
    for L in (200, 400):
        network = kernel_network(one, s * one, s * one, L)
        scaled.append(L * (float(excess(network, 1)) - 2 * math.log(s)))
    assert 2 * scaled[1] - scaled[0] == pytest.approx((s - 1 / s) ** 2 / 2, rel=1e-3)
    assert (s - 1 / s) ** 2 / 2 > 1.4 * second_correction(s * one)


def test_roots_of_the_second_correction_obey_the_triangle_inequality():
    """Proposition 4 (1) on invertible matrices, where R^(1)(AB) = R^(1)(A) + R^(1)(B).

    Without the roots it fails for B = A; without the condition on R^(1) for A = e e^T, B = q q^T.
    """
    for seed in range(100):
        A, B = randn(3, 3, seed=seed), randn(3, 3, seed=100 + seed)
        roots = [math.sqrt(second_correction(M)) for M in (A @ B, A, B)]
        assert roots[0] < roots[1] + roots[2]
    S = torch.tensor([3.0, 0.5], dtype=F64).diag()
    assert math.sqrt(second_correction(S @ S)) == pytest.approx(2 * math.sqrt(second_correction(S)))
    assert second_correction(S @ S) > 2 * second_correction(S) + 1
    e, q = rotation(0)[:, :1], rotation(1.0)[:, :1]
    A, B = e @ e.mT, q @ q.mT
    assert log_det(A @ B, 1) < log_det(A, 1) + log_det(B, 1) - 0.1
    assert second_correction(A) + second_correction(B) == pytest.approx(0)
    assert second_correction(A @ B) == pytest.approx(2 * math.log(math.cos(1)) ** 2)


def test_second_corrections_divide_by_the_share_of_the_depth():
    """(1) of Proposition 4's proof: R^(2)(f) / p + R^(2)(g) / (1 - p) with p = L_f / (L_f + L_g).

    (The print swaps p and 1 - p, and divides by L_f + L_g where it multiplies.) The best share of a
    limiting representation A^q is q, and there the two parts make up R^(2)(A).
    """
    f, g, L_f, L_g = (torch.full((1, 1), v, dtype=F64) for v in (3.0, 0.5, 9e3, 1e3))
    L_f, L_g, p = float(L_f), float(L_g), 0.9
    rest = sum(
        float(theory.representation_cost(M, L)) - L - 2 * log_det(M, 1)
        for M, L in ((f, L_f), (g, L_g))
    )
    expected = second_correction(f) / p + second_correction(g) / (1 - p)
    swapped = second_correction(f) / (1 - p) + second_correction(g) / p
    assert (L_f + L_g) * rest == pytest.approx(expected, rel=1e-3)
    assert swapped > 2 * expected
    A, q = torch.tensor([3.0, 0.4], dtype=F64), 0.3
    parts = [second_correction((A**power).diag()) for power in (q, 1 - q)]
    shares = np.arange(1, 100) / 100
    sums = parts[0] / shares + parts[1] / (1 - shares)
    assert shares[sums.argmin()] == pytest.approx(q)
    assert sums.min() == pytest.approx(second_correction(A.diag()))


def test_second_corrections_add_where_the_first_ones_do():
    """Proposition 4 (2): block diagonal A + B. Unit a c^T + b d^T at an angle shows the need of
    R^(1)(A + B) = R^(1)(A) + R^(1)(B): R^(2) of both is 0, of the sum it is not.
    """
    A, B = torch.zeros(2, 4, 4, dtype=F64)
    A[:2, :2], B[2:, 2:] = randn(2, 2, seed=38), randn(2, 2, seed=39)
    assert log_det(A + B, 4) == pytest.approx(log_det(A, 2) + log_det(B, 2))
    both = second_correction(A) + second_correction(B)
    assert second_correction(A + B) == pytest.approx(both)
    a, b = rotation(0)[:, :1], rotation(1.0)[:, :1]
    A, B = a @ a.mT, b @ b.mT
    assert log_det(A + B, 2) < log_det(A, 1) + log_det(B, 1) - 0.1
    assert second_correction(A) + second_correction(B) == pytest.approx(0)
    assert second_correction(A + B) > 0.5


# Proposition 5 and section 3.3


def corner(points: int = 11) -> torch.Tensor:
    """{(t, 0)} and {(0, t)}: a bent line, Rank_J = Rank_BN = 1."""
    t = torch.linspace(0, 1, points, dtype=F64)[:, None]
    return torch.cat([torch.cat([t, 0 * t], 1), torch.cat([0 * t, t], 1)])


@pytest.mark.parametrize("L", [2, 5, 30])
def test_the_identity_of_a_planar_completely_positive_domain_costs_its_dimension(L):
    """Proposition 5, if: W_1 = O, W_l = P_{Im O}, W_L = O^T have the norm k L at every depth.

    A cone with four rays in a 3-dimensional subspace of R^5: no rotation takes it into R^3_+, but
    an isometry into R^4_+.
    """
    frame = torch.tensor([[1, 1, 1], [1, -1, -1], [1, -1, 1], [1, 1, -1]], dtype=F64)
    rays = torch.linalg.qr(frame)[0]
    plane = torch.linalg.qr(randn(5, 3, seed=40))[0]
    # Omega is where its four isometric coordinates are not negative.
    coordinates = torch.rand(3000, 4, generator=stream(41), dtype=F64) @ rays @ rays.mT
    coordinates = coordinates[(coordinates >= 0).all(1)]
    x, isometry = coordinates @ rays @ plane.mT, rays @ plane.mT
    network = biasless([isometry, *[isometry @ isometry.mT] * (L - 2), isometry.mT])
    assert len(x) > 100 and torch.linalg.matrix_rank(x) == 3
    torch.testing.assert_close(network.activations(x)[-1], x)
    assert float(excess(network, 3)) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("angle", [0.0, 0.5, math.pi / 2])
def test_two_tangents_at_an_angle_bound_the_regularity_of_the_identity(angle):
    """Proposition 5, only if: the bound of its proof is log(1 + sin angle) for k = 1.

    `min ||W_L||^2 - 1 + 2 log max(||W_L^+ p||, ||W_L^+ q||)` over all W_L with p and q in its
    image; 0 only for the same tangent. At its minimum ||W_L||_F^2 = k, as the proof says.
    """
    p, q = (rotation(a)[:, 0].numpy() for a in (0.0, angle))

    def bound(w: np.ndarray) -> float:
        inverse = np.linalg.pinv(w.reshape(2, 2))
        longest = max(np.linalg.norm(inverse @ p), np.linalg.norm(inverse @ q))
        return float(w @ w) - 1 + 2 * math.log(longest)

    starts = np.random.default_rng(0).normal(size=(4, 4))
    options = {"maxiter": 1500, "maxfev": 1500, "xatol": 1e-6, "fatol": 1e-8}
    found = [minimize(bound, s, method="Nelder-Mead", options=options) for s in starts[:3]]
    best = min(found, key=lambda result: result.fun)
    assert best.fun == pytest.approx(math.log(1 + math.sin(angle)), abs=1e-3)
    assert best.x @ best.x == pytest.approx(1, abs=0.01)


def test_only_planar_domains_in_a_quadrant_have_an_identity_without_regularity_cost():
    """Proposition 5 on four segments, by ||theta||^2 - L of trained networks, which every L bounds.

    The proof treats tangents that differ (the corner: at least log 2). Its "only if" also claims
    the segments {(t, 1)}, whose linear span is a plane, and [-1, 1], which is not completely
    positive: there the first layer alone costs min 2 u - 1 - log u = log 2.
    """
    t, L = torch.linspace(0, 1, 11, dtype=F64)[:, None], 3
    planar, signed = torch.cat([t, 0.5 * t], 1), 2 * t - 1
    lifted = torch.cat([t, torch.ones_like(t)], 1)
    assert smallest_norm(planar, planar, L) - L == pytest.approx(0, abs=0.02)
    assert smallest_norm(corner(6), corner(6), L, starts=2) - L > math.log(2)
    assert smallest_norm(signed, signed, L) - L > math.log(2)
    assert smallest_norm(lifted, lifted, L) - L == pytest.approx(1, abs=0.02)


def test_no_scalar_bottleneck_passes_a_circle():
    """Section 3.3.1: Rank_J(id; circle) = 1 but Rank_BN = 2: g(x) - g(-x) has a zero for every
    continuous scalar g, so that two points fall together. A plane separates them.
    """
    for seed in range(10):
        g = random_network([2, 12, 12, 1], seed=seed)

        def difference(angle: float, g: Network = g) -> float:
            x = rotation(angle)[:, 0][None]
            return float(g.activations(x)[-1] - g.activations(-x)[-1])

        angle = brentq(difference, 0, math.pi, xtol=1e-14)
        assert abs(difference(angle)) < 1e-10
    tangent = rotation(0.3)[:, 1:]
    assert log_det(tangent @ tangent.mT, 1) == pytest.approx(0, abs=1e-12)


def test_the_halves_of_a_minimal_network_are_minimal():
    """Section 3.3: R(f; L) = R(alpha~_l; l) + R(sigma(alpha~_l) -> f; L - l) at every layer of a
    minimal network, and R^(1) of the part from l to m tends to (m - l) / L of the whole (A.3).

    The interpolated kernels are not minimal: there the parts, each made minimal, cost more.
    """
    A, L, cut = torch.tensor([[4.0, 0.2], [0.3, 0.5]], dtype=F64), 12, 5
    whole = float(theory.representation_cost(A, L))

    def parts(network: Network) -> float:
        halves = (network.weights[:cut], network.weights[cut:])
        products = [torch.linalg.multi_dot(weights[::-1]) for weights in halves]
        return sum(
            float(theory.representation_cost(M, depth))
            for M, depth in zip(products, (cut, L - cut), strict=True)
        )

    minimal = linear_network(A, L)
    assert parts(minimal) == pytest.approx(whole, rel=1e-12)
    eye = torch.eye(2, dtype=F64)
    assert parts(kernel_network(eye, A, A, L)) > whole + 0.03
    middle = torch.linalg.multi_dot(minimal.weights[3:9])
    assert log_det(middle, 2) == pytest.approx(6 / L * log_det(A, 2))


@pytest.mark.parametrize("L", [2, 4])
def test_the_absolute_value_has_a_regularity_above_its_jacobian(L):
    """R(|x|; [-1, 1], L) = L 2^{2/L}: R^(1) = 2 log 2, where |J f| = 1 gives only 0 (section 3.3.1:
    R^(1) sees curvature). All layers of the balanced network have the same norm, so that the part
    of m of its layers has m / L of the cost (section 3.3).
    """
    x = torch.linspace(-1, 1, 21, dtype=F64)[:, None]
    w, ends = 2 ** (1 / L), torch.tensor([[1.0], [-1.0]], dtype=F64) / math.sqrt(2)
    weights = [w * ends, w * ends.mT.abs(), *[torch.full((1, 1), w, dtype=F64)] * (L - 2)]
    network = biasless(weights)
    torch.testing.assert_close(network.activations(x)[-1], x.abs())
    assert theory.imbalance(network) < 1e-12
    norm = float(network.parameter_norm())
    assert norm == pytest.approx(L * 2 ** (2 / L))
    assert smallest_norm(x, x.abs(), L) == pytest.approx(norm, abs=0.05)


# Proposition 13


def squared_lipschitz(network: Network, x: torch.Tensor, y: torch.Tensor) -> float:
    """C^2 of Proposition 13's proof: max_l ||J(alpha~_{l+1} -> f)(y)|| ||J alpha_{l-1}(x)||.

    At most the square of any C that bounds both, if C >= 1: the ends contribute factors of 1.
    """
    outer, inner = differentiate(network, y).outer[1:], differentiate(network, x).inner[:-1]
    return max(
        float(torch.linalg.matrix_norm(B[0], 2) * torch.linalg.matrix_norm(A[0], 2))
        for A, B in zip(inner, outer, strict=True)
    )


def two_jacobians(network: Network, x: torch.Tensor, y: torch.Tensor) -> tuple[float, float]:
    """`(L ||J(x)||_{2/L}^{2/L} + L ||J(y)||_{2/L}^{2/L}) / 2` and `||J(x) - J(y)||_* / C^2`."""
    J, K = (differentiate(network, point).jacobian[0] for point in (x, y))
    costs = [float(theory.representation_cost(M, network.depth)) for M in (J, K)]
    distance = float(torch.linalg.matrix_norm(J - K, "nuc"))
    return sum(costs) / 2, distance / squared_lipschitz(network, x, y)


def test_proposition_13_holds_for_random_networks_with_the_printed_factor():
    """||theta||^2 >= mean of the two Schatten norms + C^{-2} ||J f(x) - J f(y)||_*.

    The inequalities of the printed proof leave C^{-2} / 2: they give 1/4 of the sum of
    ||W_l dD_{l-1}||^2 + ||dD_l W_l||^2, of which 2 / C^2 is the bound. The printed factor follows
    with ||D_l W_l D_{l-1}|| in their place, entry by entry: see the next test.
    """
    for seed in range(20):
        network = random_network([3, 6, 6, 6, 3], seed=seed)
        x, y = randn(2, 1, 3, seed=seed)
        mean, gap = two_jacobians(network, x, y)
        assert gap > 0
        assert float(network.parameter_norm()) >= mean + gap


def test_every_weight_pays_for_its_part_of_the_change_of_the_jacobian():
    """The step that repairs Proposition 13's proof, for the states of two neurons at x and y.

    Weight (i, j) enters the bound of ||J f(x) - J f(y)||_* with (d_i j_x + i_y d_j) / 2, d = |i_x -
    i_y|, and ||theta||^2 less the mean norm with 1 - (i_x j_x + i_y j_y) / 2, never less.
    """
    states = [(a, b) for a in (0, 1) for b in (0, 1)]
    for i_x, i_y in states:
        for j_x, j_y in states:
            used = (abs(i_x - i_y) * j_x + i_y * abs(j_x - j_y)) / 2
            assert used <= 1 - (i_x * j_x + i_y * j_y) / 2


def test_the_absolute_value_attains_proposition_13_at_depth_2():
    """W_1 = (1, -1)^T, W_2 = (1, 1): 4 = 2 + 2, with C = 1: a larger factor would be wrong.

    And C < 1 is not allowed: at 1/8 of that function all Lipschitz constants are at most 1/2, and
    C^{-2} ||J f(x) - J f(y)||_* = 1 is above ||theta||^2 = 1/2.
    """
    W = torch.tensor([[1.0], [-1.0]], dtype=F64)
    x, y = torch.tensor([[[0.5]], [[-0.5]]], dtype=F64)
    network = biasless([W, W.mT.abs()])
    mean, gap = two_jacobians(network, x, y)
    assert (mean, gap) == pytest.approx((2, 2))
    assert float(network.parameter_norm()) == pytest.approx(mean + gap)
    small = biasless([W / math.sqrt(8), W.mT.abs() / math.sqrt(8)])
    constants = [float(torch.linalg.matrix_norm(V, 2)) for V in small.weights]
    constants.append(float(differentiate(small, x).jacobian.abs()))
    assert max(constants) == pytest.approx(0.5)
    mean, _ = two_jacobians(small, x, y)
    assert float(small.parameter_norm()) < mean + 4 * 2 / 8


def test_example_20_evades_proposition_13_by_its_lipschitz_constant():
    """D.1 (2): R^(1) = 0 though J f(x) != J f(y), so that C^2 >= sqrt 2 / excess must diverge."""
    x, y = torch.tensor([[[0.2, 0.6, 0.5]], [[0.6, 0.2, 0.5]]], dtype=F64)
    constants = []
    for L in (100, 400, 1600):
        network = theory.divergent_network(L, L**-0.75)
        J, K = (differentiate(network, point).jacobian[0] for point in (x, y))
        distance = float(torch.linalg.matrix_norm(J - K, "nuc"))
        assert distance == pytest.approx(math.sqrt(2), rel=1e-6)
        constants.append(max(squared_lipschitz(network, x, y), squared_lipschitz(network, y, x)))
        assert theory.divergent_excess(L, L**-0.75) >= distance / constants[-1]
    assert constants[0] < constants[1] / 2 and constants[1] < constants[2] / 2
    assert theory.divergent_excess(1600, 1600**-0.75) < math.sqrt(2) / 4  # C = 2 is refuted


def test_the_ntk_of_linear_minima_grows_as_the_depth():
    """Section 4: of order L is the normal size. W_l = S^(1/L) on the positive quadrant: over L the
    trace tends to the integral of (sum_i s_i^(2p) x_i^2) (sum_j s_j^(2 - 2p)) over p in (0, 1).
    """
    s, x = torch.tensor([3.0, 0.5], dtype=F64), torch.tensor([[1.0, 2.0]], dtype=F64)

    def over_depth(L: int) -> float:
        network = biasless([s.pow(1 / L).diag()] * L)
        return float(theory.ntk_trace(network, differentiate(network, x), x)) / L

    ratio = s[:, None] / s
    mean = torch.where(
        ratio == 1, 1.0, (ratio.square() - 1) / (2 * ratio.log().where(ratio != 1, 1.0))
    )
    limit = float((x.mT.square() * s.square() * mean).sum())
    left = [over_depth(L) / limit - 1 for L in (50, 100, 200)]
    assert all(0 < abs(after) < 0.6 * abs(before) for before, after in pairwise(left)), left


# Proposition 9, on a segment


def ntk(network: Network, x: torch.Tensor) -> torch.Tensor:
    """Theta(x, x), a d_out-square matrix, of the derivatives by the weights."""
    derivatives, inputs = differentiate(network, x), network.activations(x)
    return sum(
        a.square().sum() * B[0] @ B[0].mT
        for a, B in zip(inputs[:-1], derivatives.outer, strict=True)
    )


def ntk_norm(network: Network, x: torch.Tensor) -> float:
    return float(theory.ntk_norm(network, differentiate(network, x), x))


def segment_bound(network: Network, x: torch.Tensor, y: torch.Tensor) -> float:
    return float(theory.segment_bound(differentiate(network, x).jacobian, x, y, network.depth))


def test_the_norm_of_the_ntk_is_that_of_the_matrix():
    network, x = random_network([3, 5, 4, 2]), randn(6, 3)
    found = theory.ntk_norm(network, differentiate(network, x), x)
    expected = [torch.linalg.matrix_norm(ntk(network, point[None]), 2) for point in x]
    torch.testing.assert_close(found, torch.stack(expected))


def gradients(network: Network, x: torch.Tensor, biases: bool) -> torch.Tensor:
    """J, the derivatives of the outputs at all points by all weights, and by all biases."""
    L = network.depth

    def outputs(*theta):
        b = theta[L:] if biases else network.biases
        return Network(list(theta[:L]), list(b)).activations(x)[-1].flatten()

    theta = (*network.weights, *(network.biases if biases else ()))
    parts = torch.autograd.functional.jacobian(outputs, theta)
    return torch.cat([part.flatten(1) for part in parts], 1)


@pytest.mark.parametrize("biases", [True, False])
def test_the_largest_curvature_is_that_of_the_gram_matrix_of_gradients(biases):
    """2 ||Theta(X, X)|| / N by automatic differentiation, for each network of a stack."""
    depths, N = [5, 3, 3], 6
    networks = [random_network([3, *[7] * (L - 1), 2], seed=n) for n, L in enumerate(depths)]
    stack, x = DepthStack(depths, 7, 3, 2, dtype=F64), randn(3, 3, N)
    for n, network in enumerate(networks):
        for b in network.biases:
            b.normal_(0, 0.3, generator=torch.Generator().manual_seed(n))
        stack.load(n, network)
    found, _ = largest_curvature(stack, x, torch.ones(3, 2, N, dtype=F64), 400, biases)
    for n, network in enumerate(networks):
        J = gradients(network, x[n].mT, biases)
        expected = 2 * float(torch.linalg.matrix_norm(J @ J.mT, 2)) / N
        assert float(found[n]) == pytest.approx(expected, rel=1e-6)


def test_the_kernel_is_at_least_the_sum_of_squared_outputs_over_squared_weights():
    """Section 4: no function that is not zero has a tangent kernel much smaller than L.

    Without biases f = J_l W_l alpha_(l-1), so ||f|| <= ||J_l|| ||W_l|| ||alpha_(l-1)|| in each
    layer, and Tr Theta = sum_l ||alpha_(l-1)||^2 ||J_l||^2 >= sum_l ||f||^2 / ||W_l||^2. With
    ||W_l|| near 1 in the bottleneck the sum is about L ||f||^2. Layers of one neuron attain it.
    """
    for seed in range(30):
        L = 2 + seed % 7
        network = biasless(random_network([3, *[6] * (L - 1), 2], seed=seed).weights)
        x = randn(20, 3)
        trace = theory.ntk_trace(network, differentiate(network, x), x)
        squares = sum(1 / torch.linalg.matrix_norm(W, 2).square() for W in network.weights)
        bound = network.activations(x)[-1].square().sum(1) * squares
        assert (bound > 0).sum() > 5 and (trace >= bound * (1 - 1e-9)).all()
    chain = biasless([torch.full((1, 1), s, dtype=F64) for s in (2.0, 0.5, 3.0)])
    x = torch.full((1, 1), 1.5, dtype=F64)
    trace = float(theory.ntk_trace(chain, differentiate(chain, x), x))
    assert trace == pytest.approx(4.5**2 * (1 / 4 + 4 + 1 / 9))


def test_the_bound_on_the_kernel_needs_networks_without_biases():
    """A network of zero weights represents any constant by its last bias; its Theta is zero."""
    network = Network([torch.zeros(1, 1, dtype=F64)] * 2, [*torch.eye(2, dtype=F64)[1, :, None]])
    x = torch.ones(1, 1, dtype=F64)
    assert float(network.activations(x)[-1]) == 1
    assert float(theory.ntk_trace(network, differentiate(network, x), x)) == 0


def test_the_norm_of_the_gram_matrix_does_not_bound_its_trace_as_printed():
    """Section 4: "||Theta(X, X)|| / N <= c L (which implies d_out Tr Theta(X, X) <= c L)".

    The identity of depth L = 1 at N inputs sqrt(N) e_i has Theta(X, X) = N 1, so c = 1. The trace
    of this matrix of N d_out rows is N^2 d_out. Right: Tr Theta(X, X) <= N d_out ||Theta(X, X)||,
    so (1/N) Tr Theta(X, X) <= N d_out c L, which this network attains.
    """
    N, L = 3, 1
    network, x = biasless([torch.eye(N, dtype=F64)] * L), N**0.5 * torch.eye(N, dtype=F64)
    J = gradients(network, x, biases=False)
    gram = J @ J.mT
    c, d_out = float(torch.linalg.matrix_norm(gram, 2)) / N / L, N
    assert c == pytest.approx(1)
    assert float(gram.trace()) / N == pytest.approx(N * d_out * c * L)
    assert d_out * float(gram.trace()) > 80 * c * L


def test_the_share_of_negative_pre_activations_of_known_layers():
    """W_1 x = (3, -4): 16 of 25; W_2 maps (3, 0) to (3, 3): nothing; W_3 to -3: all."""
    weights = [torch.tensor([[3.0], [-4.0]]), torch.tensor([[1.0, 9], [1, 9]])]
    weights += [torch.tensor([[-0.5, -0.5]])]
    network = Network(
        [W.double() for W in weights], [W.new_zeros(len(W)).double() for W in weights]
    )
    shares = theory.negative_shares(network, torch.ones(1, 1, dtype=torch.float64))
    assert shares.tolist() == pytest.approx([16 / 25, 0, 1])


def test_an_active_segment_ends_where_the_first_neuron_switches():
    """relu(t - 1/4) and relu(-t + 3) on the line: from 2 the steps of 10 end at 1/4 and 3."""
    weights = [torch.tensor([[1.0], [-1.0]], dtype=F64), torch.ones(1, 2, dtype=F64)]
    network = Network(weights, [torch.tensor([-0.25, 3.0], dtype=F64), torch.zeros(1, dtype=F64)])
    x = torch.full((1, 1), 2.0, dtype=F64)
    for step, ends in ((10.0, (0.25, 3.0)), (0.5, (1.5, 2.5))):
        found = theory.active_segment(network, x, torch.full_like(x, step))
        assert [float(end) for end in found] == pytest.approx(ends, abs=1e-7)


def test_one_end_of_a_segment_has_the_ntk_of_proposition_9():
    """Proposition 9 for x, y in one linear region, out to where the first neuron switches.

    Its proof: along the segment v^T Theta v is a parabola, not negative, with a second derivative
    of at least 8 times the bound; balanced chains have exactly that, whatever their biases.
    (Printed: "the pre-activations remain constant"; it is the states of the neurons, D_l.)
    """
    chain = linear_network(torch.full((1, 1), 3.0, dtype=F64), 5)
    cases = [(chain, *torch.tensor([[[-0.1]], [[0.2]]], dtype=F64))]
    for seed in range(12):
        network = biasless(random_network([3, 3, 3, 3, 2], seed=seed).weights)
        x, u = randn(2, 1, 3, seed=50 + seed)
        if differentiate(network, x).jacobian.any():
            cases.append((network, *theory.active_segment(network, x, 10 * u / u.norm())))
    assert len(cases) >= 8
    curvatures = []
    for network, x, y in cases:
        middle = (x + y) / 2
        bound = 4 * segment_bound(network, middle, y)  # of the whole segment
        v = differentiate(network, middle).jacobian[0] @ (y - x)[0]
        v = v / v.norm()
        h = [float(v @ ntk(network, point) @ v) for point in (x, middle, y)]
        curvatures.append(4 * (h[0] - 2 * h[1] + h[2]) / (8 * bound))
        assert max(ntk_norm(network, x), ntk_norm(network, y)) >= bound
    assert curvatures[0] == pytest.approx(1)
    assert min(curvatures[1:]) > 1


def test_the_segment_bound_of_proposition_9_is_attained_by_linear_networks():
    """Without ReLU x -> s x has Theta(x, x) = L x^2 s^{2 - 2/L}: on [-d/2, d/2] exactly L / 4.

    So here the factor is right as printed, and it follows from L, not 2 L, in the first part. Where
    ReLUs keep the activations from being negative the factor is larger: 4 times that on [0, d].
    """
    L, s, d = 5, 3.0, 0.8
    weights = torch.full((L,), s ** (1 / L), dtype=F64, requires_grad=True)
    (gradient,) = torch.autograd.grad(weights.prod() * d / 2, weights)
    network = biasless([torch.full((1, 1), s ** (1 / L), dtype=F64)] * L)
    ends = [torch.full((1, 1), v, dtype=F64) for v in (1e-9, d)]
    bound = segment_bound(network, ends[1], ends[0])
    assert float(gradient.square().sum()) == pytest.approx(bound)
    assert ntk_norm(network, ends[1]) == pytest.approx(4 * bound)


def test_the_segment_bound_of_proposition_9_needs_constant_states():
    """relu(s x) on [-1, 0.01] has a kink: J f = s at the right end, the NTK is near 0 at both."""
    network = biasless([torch.full((1, 1), 3.0, dtype=F64), torch.ones(1, 1, dtype=F64)])
    x, y = torch.tensor([[[-1.0]], [[0.01]]], dtype=F64)
    assert max(ntk_norm(network, x), ntk_norm(network, y)) < 0.01 * segment_bound(network, y, x)


# section 3, linear networks


def test_regularised_linear_networks_learn_the_minimum_of_cost_and_schatten_norm():
    """min ||A_theta - T||^2 + lambda ||theta||^2 = min_A ||A - T||^2 + lambda R(A; L).

    The learned A has T's singular vectors and singular values s with (s - t) + lambda s^{2/L - 1}
    = 0; and ||theta||^2 -> R(T; L) as lambda -> 0.
    """
    L, n = 4, 3
    U, _, Vh = torch.linalg.svd(randn(n, n, seed=60))
    t = torch.tensor([2.5, 1.5, 0.9], dtype=F64)
    target = U @ t.diag() @ Vh

    def loss(flat: np.ndarray, ridge: float) -> tuple[float, np.ndarray]:
        theta = torch.from_numpy(flat).requires_grad_()
        product = torch.linalg.multi_dot(list(theta.view(L, n, n)))
        total = (product - target).square().sum() + ridge * theta.square().sum()
        (gradient,) = torch.autograd.grad(total, theta)
        return float(total.detach()), gradient.numpy()

    start = torch.eye(n, dtype=F64).repeat(L, 1, 1) + 0.3 * randn(L, n, n, seed=61)
    flat, errors = start.flatten().numpy(), []
    limit = float(theory.representation_cost(target, L))
    options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
    for ridge in (1e-1, 1e-2, 1e-3):
        flat = minimize(loss, flat, (ridge,), "L-BFGS-B", jac=True, options=options).x
        weights = list(torch.from_numpy(flat).view(L, n, n))
        expected = [
            brentq(lambda s, v=v, c=ridge: s - v + c * s ** (2 / L - 1), v / 2, v)
            for v in t.tolist()
        ]
        learned = U.mT @ torch.linalg.multi_dot(weights) @ Vh.mT
        torch.testing.assert_close(
            learned, torch.tensor(expected, dtype=F64).diag(), atol=1e-4, rtol=0
        )
        errors.append(1 - float(flat @ flat) / limit)
    assert errors[2] == pytest.approx(0, abs=1e-3)
    assert errors[1] / errors[2] == pytest.approx(10, rel=0.1)


def test_at_interpolation_the_hessian_has_the_norm_of_the_ntk_over_n():
    """Section 4: ||H|| = ||Theta(X, X)|| / N where f fits, for a cost of (1 / 2N) sum ||f - y||^2;
    with the cost of section 3.1 and of our studies, without the half, twice that."""
    x, N = torch.randn(6, 3, generator=stream(1), dtype=F64), 6
    network = random_network([3, 4, 4, 2])
    weights = [W.clone().requires_grad_() for W in network.weights]
    y = network.activations(x)[-1]

    def outputs(*weights: torch.Tensor) -> torch.Tensor:
        return Network(list(weights), network.biases).activations(x)[-1]

    def cost(*weights: torch.Tensor) -> torch.Tensor:
        return (outputs(*weights) - y).square().sum() / N

    blocks = torch.autograd.functional.hessian(cost, tuple(weights))
    sizes = [W.numel() for W in weights]
    rows = [
        torch.cat([b.reshape(m, -1) for b in row], 1) for m, row in zip(sizes, blocks, strict=True)
    ]
    jacobian = torch.autograd.functional.jacobian(outputs, tuple(weights))
    J = torch.cat([part.reshape(2 * N, -1) for part in jacobian], 1)
    hessian, ntk = (torch.linalg.matrix_norm(A, 2) for A in (torch.cat(rows), J @ J.mT))
    torch.testing.assert_close(hessian, 2 * ntk / N)
