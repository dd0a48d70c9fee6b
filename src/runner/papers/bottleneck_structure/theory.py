"""Formulas of paper D, each with its equation.

k is the rank of a network. Its excess norm is c_1 = ||theta||^2 - k L. |A|_+ is the
pseudo-determinant, the product of the nonzero singular values of A. alpha_l(x) are the activations
of layer l, alpha~_l(x) its pre-activations.

The theorems assume that J f(x) has rank exactly k. In a trained network the remaining singular
values are small but not zero, so the functions use the k largest. Each statement is proved for
every k up to the rank of J f(x). It is the paper's statement if k is this rank.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.networks.spectra import operator_norm, svd, svdvals
from runner.papers.bottleneck_structure.networks import (
    Derivatives,
    Inputs,
    Jacobians,
    Network,
    PerPoint,
)


@takes_arrays()
def log_pseudo_determinant(A: Float[Tensor, "... m n"], k: int) -> Float[Tensor, "..."]:
    """Return `log |A|_+`, the sum of the logarithms of the k largest singular values (section 1.1).

    The result is -inf if the rank of A is below k.
    """
    return svdvals(A)[..., :k].log().sum(-1)


@takes_arrays()
def representation_cost(A: Float[Tensor, "... m n"], L: float) -> Float[Tensor, "..."]:
    """Return `R(A; L) = L ||A||_{2/L}^{2/L} = L sum_i s_i(A)^{2/L}` of linear networks (section 3).

    With A = J f(x) the result is a lower bound of `||theta||^2` of every ReLU network of depth L
    that represents f (Appendix A.1). Singular values within the rounding errors of a product of L
    matrices are excluded, since the power 2/L would make them large. The result is nan if A is not
    finite.
    """
    s = svdvals(A)
    rounding = max(A.shape[-2:]) * L * torch.finfo(A.dtype).eps * operator_norm(A)
    return L * torch.where(s <= rounding[..., None], 0.0, s ** (2 / L)).sum(-1)


@takes_arrays()
def corrections(A: Float[Tensor, "m n"], k: int) -> tuple[float, float]:
    """Return the first two corrections of a linear network's cost (section 3).

    The expansion is `R(A; L) = L k + first + second / L + O(L^-2)`. The corrections are `first = 2
    log |A|_+` and `second = ||log_+ A^T A||^2 / 2`, computed from the k largest singular values.
    """
    logs = 2 * svdvals(A)[:k].log()
    return float(logs.sum()), float(logs.square().sum() / 2)


@takes_arrays()
def imbalance(network: Network) -> float:
    """Return the relative imbalance of the parameters (Appendix B, proof of Theorem 7).

    The formula is `sum_{l,i} | ||W_{l,i.}||^2 + b_{l,i}^2 - ||W_{l+1,.i}||^2 | / ||theta||^2`. The
    sum over neurons i measures how much the norms of incoming and outgoing weights differ. The
    imbalance is 0 if they are equal.
    """
    total = network.parameter_norm()
    if total == 0:
        return 0.0
    layers = zip(network.weights[:-1], network.biases[:-1], network.weights[1:], strict=True)
    difference = sum(
        (W.square().sum(1) + b.square() - after.square().sum(0)).abs().sum()
        for W, b, after in layers
    )
    return float(difference / total)


@takes_arrays()
def bottleneck_frames(
    network: Network, derivatives: Derivatives, k: int
) -> list[tuple[Float[Tensor, "N _ k"], Float[Tensor, "N _ k"]]]:
    """Return semi-orthonormal (U_l, V_l) with W_l near U_l V_l^T, by layer and point (Theorem 6).

    They are computed layer by layer. M_0 has the k leading right singular vectors of J f(x) as
    columns. `W_l M_{l-1} = U S Q^T` gives `U_l = U`, `V_l = M_{l-1} Q`, and `M_l = orth(D_l U)`.
    Then `|J f(x)|_+ = prod_l |W_l M_{l-1}| |D_l U_l|`. With `||W - U V^T||^2 = ||W||^2 - 2 tr S +
    k` and `log s <= s - 1`, the theorem follows.

    The printed proof projects W_l from both sides, onto Im J(alpha~_l -> f)^T and Im J alpha_{l-1}.
    These determinants do not multiply to |J f|_+.
    """
    _, _, right = svd(derivatives.jacobian)
    M = right[:, :k].mT
    frames = []
    for W, D in zip(network.weights, derivatives.active, strict=True):
        U, _, Q = svd(W @ M)
        frames.append((U, M @ Q.mT))
        M = torch.linalg.qr(D[..., None] * U)[0]
    return frames


@takes_arrays()
def bottleneck_distance(network: Network, derivatives: Derivatives, k: int) -> PerPoint:
    """Return the left side of Theorem 6, `sum_l ||W_l - U_l V_l^T||_F^2`, at every point.

    The right side is `c_1 - 2 log |J f(x)|_+`. derivatives: those at the points. k: the rank.
    """
    layers = zip(network.weights, bottleneck_frames(network, derivatives, k), strict=True)
    # ||W - U V^T||^2 = ||W||^2 - 2 <W, U V^T> + k, without a large matrix at every point.
    return sum(W.square().sum() - 2 * (U * (W @ V)).sum((1, 2)) + k for W, (U, V) in layers)


@takes_arrays()
def squared_inputs(network: Network, x: Inputs) -> list[PerPoint]:
    """Return `||alpha_{l-1}(x)||^2`, the squared norm of every layer's input, at every point x."""
    return [alpha.square().sum(1) for alpha in network.activations(x)[:-1]]


@takes_arrays()
def ntk_trace(network: Network, derivatives: Derivatives, x: Inputs) -> PerPoint:
    """Return `Tr Theta(x, x) = sum_l ||alpha_{l-1}(x)||^2 ||J(alpha~_l -> f)(x)||_F^2`.

    Theta is the tangent kernel. As in the paper (Appendix B), the kernel includes the derivatives
    by the weights and not by the biases. The result has a number for each point x.
    """
    layers = zip(squared_inputs(network, x), derivatives.outer, strict=True)
    return sum(a * J.square().sum((1, 2)) for a, J in layers)


@takes_arrays()
def activation_bound(
    trace: PerPoint, excess: Float[Tensor, ""], log_determinant: PerPoint, k: int
) -> PerPoint:
    """Return the right side of Theorem 7, `c max{1, e^{c_1/k}} / (k |J f(x)|_+^{2/k}) L`.

    The left side is `sum_l ||alpha_{l-1}(x)||^2`. trace: `c L = Tr Theta(x, x)`. excess: c_1.
    log_determinant: `log |J f(x)|_+`. k: the rank.
    """
    return trace * torch.exp((excess / k).clamp(min=0) - 2 * log_determinant / k) / k


@takes_arrays()
def representation_tail(
    network: Network, x: Inputs, k: int, with_bias: bool = False
) -> Float[Tensor, " L"]:
    """Return `s_{k+1}(W_l alpha_{l-1}(X) / sqrt N)` of every layer, small by Corollary 8.

    s_{k+1} is singular value k + 1 of the pre-activations without bias at the N points X. The value
    is 0 if there are at most k points. with_bias: use `W_l alpha_{l-1}(X) + b_l`; the proof omits
    b.
    """
    inputs = network.activations(x)[:-1]
    layers = zip(network.weights, network.biases, inputs, strict=True)
    spectra = [svdvals(alpha @ W.mT + with_bias * b) for W, b, alpha in layers]
    # With fewer than k + 1 samples this singular value does not exist.
    tails = [s[k] if len(s) > k else s.new_zeros(()) for s in spectra]
    return torch.stack(tails) / math.sqrt(len(x))


@takes_arrays()
def negative_shares(network: Network, x: Inputs) -> Float[Tensor, " L"]:
    """Return `||sigma(a) - a||^2 / ||a||^2` of every layer's pre-activations a at the points x.

    The fraction is 0 where the ReLU sigma changes nothing. Section 3.3 expects this of
    representations that converge.
    """
    layers = zip(network.weights, network.biases, network.activations(x)[:-1], strict=True)
    pre = [alpha @ W.mT + b for W, b, alpha in layers]
    return torch.stack([a.clamp(max=0).square().sum() / a.square().sum() for a in pre])


@takes_arrays()
def representation_bound(
    trace: PerPoint, excess: Float[Tensor, ""], log_determinant: PerPoint, k: int, L: int
) -> Float[Tensor, ""]:
    """Return the bound of Corollary 8 on singular value k + 1 of the representations, at p = 1.

    The bound is the square root of

        c (c_1 - 2 log max_i |J f(x_i)|_+) max{1, e^{c_1/k}} / (k min_i |J f(x_i)|_+^{2/k}) / L.

    The paper prints e^{c_1/k}; the maximum, which is never smaller, is from Theorem 7. For any p in
    (0, 1) at least (1-p) L layers have `s_{k+1} <= bound / p`. Equivalently, the j-th largest of
    the L values is at most `bound L / j`. trace: Tr Theta(x_i, x_i), with mean c L. excess: c_1.
    log_determinant: `log |J f(x_i)|_+`.
    """
    growth = torch.exp((excess / k).clamp(min=0) - 2 * log_determinant.min() / k)
    return torch.sqrt((trace.mean() / L) * (excess - 2 * log_determinant.max()) * growth / k / L)


@takes_arrays()
def ntk_mixed_derivative(derivatives: Derivatives) -> PerPoint:
    """Return `||d^2_{xy} Theta(x, x)||_op`, the norm of a second derivative of the tangent kernel.

    At every point the derivative is the (d_in d_out)-square matrix `sum_l (J alpha_{l-1}^T J
    alpha_{l-1}) (x) (J(alpha~_l -> f) J(alpha~_l -> f)^T)` (Proposition 9).
    """
    layers = zip(derivatives.inner, derivatives.outer, strict=True)
    total = sum(torch.einsum("nab,ncd->nacbd", A.mT @ A, B @ B.mT) for A, B in layers)
    n = total.shape[1] * total.shape[2]
    return operator_norm(total.reshape(-1, n, n))


@takes_arrays()
def narrowness_bound(jacobian: Jacobians, L: int) -> PerPoint:
    """Return `L ||J f(x)||_op^{2 - 2/L}`, a lower bound of `||d^2_{xy} Theta(x, x)||_op`.

    The proof of Proposition 9 ends with this bound, and linear networks attain it. The printed
    proposition has 2 L, not L. The network x -> x with unit weights contradicts 2 L.
    """
    return L * svdvals(jacobian)[:, 0] ** (2 - 2 / L)


@takes_arrays()
def ntk_norm(network: Network, derivatives: Derivatives, x: Inputs) -> PerPoint:
    """Return the operator norm of the tangent kernel Theta(x, x), a (d_out, d_out) matrix.

    `Theta = sum_l ||alpha_{l-1}||^2 J_l J_l^T` with `J_l = J(alpha~_l -> f)`. The kernel includes
    the derivatives by the weights and not by the biases, as in Appendix B. The result has a number
    for each point x.
    """
    layers = zip(squared_inputs(network, x), derivatives.outer, strict=True)
    return operator_norm(sum(a[:, None, None] * J @ J.mT for a, J in layers))


@takes_arrays()
def active_segment(network: Network, x: Inputs, step: Inputs) -> tuple[Inputs, Inputs]:
    """Return the two ends of the segment around x on which no neuron switches on or off.

    The segment is a part of `[x - step, x + step]`. All neurons have the same state, on or off, as
    at x. The region of one state is convex, so bisection finds the ends, to 2^-30 of the step.
    """

    def states(points: Inputs) -> Tensor:
        return torch.cat(network.activations(points)[1:-1], dim=1) > 0

    def end(direction: Inputs) -> Inputs:
        low = torch.zeros_like(x[:, :1])
        t = high = torch.ones_like(low)
        for _ in range(31):  # first the whole step
            same = (states(x + t * direction) == here).all(1, keepdim=True)
            low, high = torch.where(same, t, low), torch.where(same, high, t)
            t = (low + high) / 2
        return x + low * direction

    here = states(x)
    return end(-step), end(step)


@takes_arrays()
def segment_bound(jacobian: Jacobians, x: Inputs, y: Inputs, L: int) -> PerPoint:
    """Return `L / 4 ||x - y||^2 ||J f(x) u||^{2 - 2/L}`, the bound of Proposition 9 on a segment.

    u is the direction from x to y. If no neuron switches from x to y, one of the two ends has a
    tangent kernel of at least this norm. jacobian: J f(x).
    """
    length = (y - x).norm(dim=1).clamp(min=torch.finfo(x.dtype).tiny)
    stretch = (jacobian @ (y - x)[..., None]).squeeze(-1).norm(dim=1) / length
    return L / 4 * length**2 * stretch ** (2 - 2 / L)


def divergent_network(L: int, epsilon: float) -> Network:
    """Return Example 20's network of even depth L for `f(x, y, z) = (x, y, z + relu(x - y))`.

    The inputs are in [0, 1]^3. Let `epsilon = L^-g` with 1/2 < g < 1. Then `||theta||^2 - 3 L`
    tends to 0 as L grows, while the middle representations grow like `e^{(L-2) epsilon / 2}`.
    """
    exponents = torch.tensor([epsilon, epsilon, -2 * epsilon], dtype=torch.float64)
    forth, back, half = exponents.exp().diag(), (-exponents).exp().diag(), (L - 2) // 2
    small = math.exp(-half * epsilon)
    eye = torch.eye(3, dtype=torch.float64)
    kink = torch.cat([eye, eye.new_tensor([[small, -small, 0.0]])])
    merge = torch.cat([eye, eye.new_tensor([[0.0], [0.0], [small * small]])], dim=1)
    weights = [*[forth] * half, kink, merge, *[back] * half]
    return Network(weights, [W.new_zeros(len(W)) for W in weights])


def divergent_excess(L: int, epsilon: float) -> float:
    """Return Example 20's `||theta||^2 - 3 L` in closed form, in terms that lose no digits.

    The closed form is

        (L-2)/2 [2 (e^{2 eps} - 1) + (e^{-4 eps} - 1) + 2 (e^{-2 eps} - 1) + (e^{4 eps} - 1)]
        + 2 e^{-(L-2) eps} + e^{-2 (L-2) eps}.

    The bracket is `8 sinh(eps)^2 + 4 sinh(2 eps)^2` because cosh(2 x) - 1 = 2 sinh(x)^2. The
    printed formula lacks the factor (L-2)/2.
    """
    bracket = 8 * math.sinh(epsilon) ** 2 + 4 * math.sinh(2 * epsilon) ** 2
    decay = math.exp(-(L - 2) * epsilon)
    return (L - 2) / 2 * bracket + 2 * decay + decay**2
