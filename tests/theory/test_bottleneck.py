"""Paper D's statements, on networks whose answer is known."""

import math

import pytest
import torch

from runner.papers.bottleneck import theory
from runner.papers.bottleneck.networks import Network, differentiate
from runner.papers.bottleneck.symmetry.dynamics import Dynamics, draw_dynamics

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


def balanced(network: Network, sweeps: int) -> Network:
    """The same function with every neuron rescaled to `||W_{l,i.}||^2 + b_{l,i}^2 =
    ||W_{l+1,.i}||^2`.

    Incoming weights and bias times a, outgoing weights over a: the ReLU lets it pass. Balanced
    parameters have the smallest norm among all rescalings. Neurons without input or output stay.
    """
    weights = [W.clone() for W in network.weights]
    biases = [b.clone() for b in network.biases]
    for _ in range(sweeps):
        for W, b, after in zip(weights[:-1], biases[:-1], weights[1:], strict=True):
            incoming, outgoing = W.square().sum(1) + b.square(), after.square().sum(0)
            scale = (outgoing / incoming) ** 0.25
            scale = torch.where((incoming > 0) & (outgoing > 0), scale, 1.0)
            W.mul_(scale[:, None])
            b.mul_(scale)
            after.div_(scale)
    return Network(weights, biases)


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
    errors = [
        abs(float(theory.representation_cost(A, L)) - theory.expanded_representation_cost(A, L))
        for L in (200, 400)
    ]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


def test_a_trained_deep_linear_network_has_the_representation_cost():
    """Gradient descent on C + lambda ||theta||^2 ends with ||theta||^2 = R(A_theta; L)."""
    L, target = 4, randn(3, 3, seed=2)
    weights = [torch.eye(3, dtype=F64) + 0.3 * randn(3, 3, seed=10 + i) for i in range(L)]
    weights = [W.requires_grad_() for W in weights]
    optimizer = torch.optim.LBFGS(
        weights,
        max_iter=3000,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-12,
        tolerance_change=0,
    )

    def closure():
        optimizer.zero_grad()
        product = torch.linalg.multi_dot(weights[::-1])
        norm = sum(W.square().sum() for W in weights)
        loss = (product - target).square().sum() + 0.01 * norm
        loss.backward()
        return loss

    optimizer.step(closure)
    with torch.no_grad():
        product = torch.linalg.multi_dot(weights[::-1])
        norm = sum(W.square().sum() for W in weights)
        assert float(norm) == pytest.approx(float(theory.representation_cost(product, L)), rel=1e-6)


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


@pytest.mark.parametrize("seed", range(5))
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


@pytest.mark.parametrize("seed", range(5))
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


def test_balancing_keeps_the_function_and_lowers_the_norm():
    network, x = random_network([4, 9, 9, 3], seed=20), randn(10, 4)
    rescaled = balanced(network, sweeps=500)
    torch.testing.assert_close(rescaled.activations(x)[-1], network.activations(x)[-1])
    assert rescaled.parameter_norm() < network.parameter_norm()
    assert theory.imbalance(rescaled) < 1e-6 < theory.imbalance(network)


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


def test_example_20_middle_is_not_lipschitz():
    L = 1000
    network = theory.divergent_network(L, L**-0.6)
    derivatives = differentiate(network, torch.tensor([[0.2, 0.6, 0.5]], dtype=F64))
    largest = max(float(torch.linalg.matrix_norm(J, 2)) for J in derivatives.inner)
    assert largest == pytest.approx(math.exp((L - 2) / 2 * L**-0.6), rel=0.05)


# section 5


@pytest.fixture
def noiseless() -> Dynamics:
    return draw_dynamics(12, 0.0, 1e-6, stream(3))


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
    dynamics = draw_dynamics(7, 0.1, 0.02, stream(6))
    assert float(torch.linalg.matrix_norm(dynamics.E, 2)) == pytest.approx(0.1)
    v = dynamics.starts(1, stream(7))[0].requires_grad_()
    cost = (torch.outer(v, v) - torch.outer(dynamics.w, dynamics.w) - dynamics.E).square().sum()
    torch.testing.assert_close(dynamics.cost(v.detach()[None])[0], cost.detach())
    (gradient,) = torch.autograd.grad(cost, v)
    torch.testing.assert_close(dynamics.step(v.detach()[None])[0], v.detach() - 0.02 * gradient)


def test_paths_have_their_start_and_as_many_costs_as_steps():
    dynamics = draw_dynamics(7, 0.1, 0.02, stream(6))
    v = dynamics.starts(3, stream(8))
    assert torch.equal(dynamics.path(v, 4)[0], v)
    torch.testing.assert_close(dynamics.costs(v, 4)[:, 1], dynamics.cost(dynamics.path(v, 2)[2]))
