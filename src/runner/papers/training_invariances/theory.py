"""Paper C's formulas: invariants of gradient flow, their rates of change, and low-rank bounds.

A neuron (or channel) has a row in `U`, the matrix of incoming weights, and a column in `V`, the
matrix of outgoing weights. Gradient flow conserves all or a part of the matrix

    D = V^T V - U U^T.

- The diagonal of D is conserved vertex-wise (Lemma 2, first part).
- Some entries off the diagonal are conserved edge-wise (Lemma 2, second part).
- All of D is conserved matrix-wise (Theorem 1).
- The trace of D is conserved layer-wise (Lemma 3).

The reason is a symmetry. The risk does not change under W_in -> A W_in, W_out -> W_out A^{-1} for
every A in a group of matrices. The flow is orthogonal to the orbits of the group. Hence W_in'
W_in^T = W_out^T W_out' for all generators. The symmetric part of this equation is dD/dt = 0. For
linear neurons that share all neighbors, the group has every invertible A. For positively
homogeneous neurons, it has every positive diagonal A. Neurons that are active for the same examples
act like linear neurons.

There is an equivalent view. Sum w_e dR/dw_e over the edges e into a neuron, or out of it. The sum
counts every path through the neuron once (Eq. (10), (11)).

All functions accept leading batch axes `*R`.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from runner.core.arrays import takes_arrays
from runner.networks.spectra import eigvalsh, operator_norm, svdvals

RESIDUAL_FACTOR = 8
"""Factor of a ResNetFree block in the bound of Theorem 2 (Lemma 11)."""


@takes_arrays()
def matrix_invariant(
    U: Float[Tensor, "*R c i"], V: Float[Tensor, "*R o c"]
) -> Float[Tensor, "*R c c"]:
    """Return the matrix D = V^T V - U U^T of c neurons (Theorem 1, Eq. 6).

    U has the i weights into each neuron as a row. V has the o weights out of each neuron as a
    column. For two fully connected layers U = W_l and V = W_{l+1} (item 1). For other kinds of
    layers, the functions below flatten and stack the weights to matrices U and V (items 2 to 7).
    """
    return V.mT @ V - U @ U.mT


@takes_arrays()
def convolution_incoming(T: Float[Tensor, "*R o i k k"]) -> Float[Tensor, "*R o ikk"]:
    """Return the matrix U of the weights into a convolution's o output channels, as rows.

    A row has all i * k * k weights into the channel (Theorem 1, items 2, 5 and 6). T: weights of
    the convolution, with i input channels and k x k kernels.
    """
    return T.flatten(-3)


@takes_arrays()
def convolution_outgoing(T: Float[Tensor, "*R o i k k"]) -> Float[Tensor, "*R okk i"]:
    """Return the matrix V of the weights out of a convolution's i input channels, as columns.

    A column has all o * k * k weights out of the channel (Theorem 1, item 2). T: weights of the
    convolution, with o output channels and k x k kernels.
    """
    return T.movedim(-3, -1).flatten(-4, -2)


@takes_arrays()
def by_channel(W: Float[Tensor, "*R o i"], channels: int) -> Float[Tensor, "*R op c"]:
    """Return the matrix V of the weights out of c channels into a fully connected layer.

    W: weights of the layer, which reads c channels of p positions, i = c p. A column of V, `(o p) x
    c`, has the weights from all positions of a channel (Theorem 1, items 5 and 6). With one
    position V is W. channels: c.
    """
    return W.unflatten(-1, (channels, -1)).transpose(-1, -2).flatten(-3, -2)


@takes_arrays()
def residual_incoming(
    W2: Float[Tensor, "*R o h"], Z: Float[Tensor, "*R o i"]
) -> Float[Tensor, "*R o hi"]:
    """Return the matrix U = `[W2 Z]` of the weights into the outputs of a residual block.

    The block computes Z x + W2 sigma(W1 x). See Theorem 1, items 4 and 7.
    """
    return torch.cat((W2, Z), dim=-1)


@takes_arrays()
def residual_outgoing(
    W1: Float[Tensor, "*R h i"], Z: Float[Tensor, "*R o i"]
) -> Float[Tensor, "*R ho i"]:
    """Return the matrix V of the weights out of the inputs of a residual block: W1 above Z.

    The block computes Z x + W2 sigma(W1 x). See Theorem 1, items 4, 6 and 7.
    """
    return torch.cat((W1, Z), dim=-2)


@takes_arrays()
def same_pattern(preactivations: Float[Tensor, "*R n c"]) -> Bool[Tensor, "*R c c"]:
    """Return which pairs of c neurons are active for exactly the same examples (Lemma 2, part 2).

    preactivations: one row for each of n examples. A neuron is active for an example if its
    preactivation is positive.
    """
    on = (preactivations > 0).float()  # counts are exact in float32
    count = on.sum(-2)
    return count[..., :, None] + count[..., None, :] == 2 * (on.mT @ on)


@takes_arrays()
def noninvariance_rate(
    z: Float[Tensor, "*R n c"], slopes: Float[Tensor, "*R n c"], upstream: Float[Tensor, "*R n c"]
) -> Float[Tensor, "*R c c"]:
    """Return dD/dt of c neurons under gradient flow (Lemma 4; the difference of Eq. (65) and (67)).

    D is `matrix_invariant` of the neurons' weights, and R is the risk.

    - z: preactivations of the neurons for each of n examples.
    - slopes: the slopes sigma'(z) of the activation.
    - upstream: b = dR/da, the derivative of the risk by the activations a = sigma(z) = sigma'(z) z.

    For neurons u and v,

        dD_uv/dt = sum_i (sigma'(z_iu) - sigma'(z_iv)) (b_iu z_iv - b_iv z_iu).

    The rate is zero on the diagonal, and for two neurons that are active for the same examples. In
    all other cases it is nonzero in general.
    """
    cross = (slopes * upstream).mT @ z - upstream.mT @ (slopes * z)
    return cross + cross.mT


@takes_arrays()
def squared_norm(W: Float[Tensor, "*R o i"]) -> Float[Tensor, "*R"]:
    """Return the squared Frobenius norm ||W||_F^2.

    Gradient flow conserves the difference of the squared norms of two layers (Lemma 3).
    """
    return W.square().sum((-2, -1))


@takes_arrays()
def squared_operator_norm(W: Float[Tensor, "*R o i"]) -> Float[Tensor, "*R"]:
    """Return ||W||_2^2, the square of the largest singular value; nan if W has nan or inf."""
    return operator_norm(W).square()


@takes_arrays()
def alignment(
    of_U: tuple[Tensor, Tensor, Tensor], of_V: tuple[Tensor, Tensor, Tensor]
) -> Float[Tensor, "*R"]:
    """Return |<v, u>| for leading singular vectors of two adjacent layers (Eq. 15).

    u is the first left singular vector of the first layer's matrix U (*R, c, i). v is the first
    right singular vector of the second layer's matrix V (*R, o, c). of_U, of_V: the decompositions
    of U and V by `spectra.svd`. The result is 1 if the vectors are parallel, and nan if one of the
    matrices is not finite.
    """
    return (of_U[0][..., :, 0] * of_V[2][..., 0, :]).sum(-1).abs()


def flattening_factor(shared: int, positions: int) -> int:
    """Return min(i, k), the largest ||U||_2^2 / ||V||_2^2 of a tensor's flattenings (Lemma 10).

    A tensor T (o, i, k) can be flattened to U = `o x (i k)` or to V = `(o k) x i`. shared: i.
    positions: k. The reason: T contracted with a unit vector of R^o is an i x k matrix. The squared
    Frobenius norm of this matrix is at most min(i, k) times its squared operator norm (Wang et al.
    2017, Theorem 4.8).
    """
    return min(shared, positions)


def low_rank_bound(factors: list[int]) -> list[float]:
    """Return a lower bound of the final ||W_j||_2^2 / ||W_j||_F^2 of each layer j (Eq. 14).

    It is the bound of the limit inferior in Theorem 2. factors: a number s_j for each layer, the
    largest ||U_j||_2^2 / ||V_j||_2^2 of its incoming and outgoing matrices.

    - A fully connected layer has s_j = 1.
    - A residual block with a trained skip has s_j = `RESIDUAL_FACTOR`.
    - A convolution, or a layer that reads channels, has s_j = `flattening_factor`.

    The bound of layer j has the factors of all later layers:

        bound_j = 1 / (s_{j+1} ... s_L) = 1 / (8^{N_j} M_j).

    The paper's factor 8 for a block Z x + W2 W1 x is larger than necessary. W2^T W2 - W1 W1^T is
    constant. Up to a constant, ||[W2 Z]||^2 <= ||W2||^2 + ||Z||^2 = ||W1||^2 + ||Z||^2. The right
    side is at most twice ||[W1; Z]||^2.
    """
    bounds = [1.0]
    for factor in reversed(factors[1:]):
        bounds.insert(0, bounds[0] / factor)
    return bounds


@takes_arrays()
def finite_time_bound(
    last: Float[Tensor, "*R"],
    invariants: list[Float[Tensor, "*R _ _"]],
    factors: list[int],
    offsets: list[Float[Tensor, "*R"]],
) -> list[Float[Tensor, "*R"]]:
    """Return a lower bound of ||U_j||_2^2 for each layer j at finite time (Theorem 2, Eq. 13).

    U_j and V_j are two matrices of the weights of layer j. U_j has a row for each output of the
    layer, V_j has a column for each input. In a fully connected layer both are W_j.

    - last: the current ||W_L||_F^2 of the last layer. It is also the last bound, because W_L has a
      single row.
    - invariants: for each j < L the matrix D_j = V_{j+1}^T V_{j+1} - U_j U_j^T at initialization,
      which gradient flow conserves.
    - factors, offsets: numbers s_j and e_j with ||U_j||_2^2 <= s_j ||V_j||_2^2 + e_j. The numbers
      of the first layer are not used.

    From the last layer to the first, Weyl's inequality gives

        ||U_j||_2^2 >= ||V_{j+1}||_2^2 - lambda_max(D_j)
                    >= (||U_{j+1}||_2^2 - e_{j+1}) / s_{j+1} - lambda_max(D_j).
    """
    bounds = [last]
    steps = zip(reversed(invariants), reversed(factors[1:]), reversed(offsets[1:]), strict=True)
    for D, factor, offset in steps:
        largest = eigvalsh(D)[..., -1]
        bounds.insert(0, (bounds[0] - offset) / factor - largest)
    return bounds


@takes_arrays()
def residual_offset(D: Float[Tensor, "*R h h"]) -> Float[Tensor, "*R"]:
    """Return the number e with ||[W2 Z]||^2 <= 2 ||[W1; Z]||^2 + e for residual blocks.

    A block computes Z x + W2 W1 x. D: the matrix W2^T W2 - W1 W1^T at initialization. e is its
    largest eigenvalue, or zero if this eigenvalue is negative. The inequality is Lemma 11,
    sharpened.
    """
    return eigvalsh(D)[..., -1].clamp(min=0)


@takes_arrays()
def remainder(W: Float[Tensor, "*R o i"], rank: int) -> Float[Tensor, "*R"]:
    """Return the sum of all squared singular values of W except the `rank` largest.

    The sum is nan if W is not finite.
    """
    return svdvals(W)[..., rank:].square().sum(-1)


@takes_arrays()
def last_remainder_bound(W: Float[Tensor, "*R o w"]) -> Float[Tensor, "*R"]:
    """Return an upper bound of the last layer's remainder at all times, from its initial weights W.

    The remainder is the sum of all squared singular values except the k largest.

    With one output under a loss of the margin, k = 1. W has a single singular value, so the bound
    is zero.

    With K outputs under cross entropy, k = K - 1. The remainder is sigma_K^2 <= ||u^T W||^2 for
    every unit vector u, for example u = (1, ..., 1) / sqrt(K). The derivatives of the cross entropy
    by the K outputs have the sum zero. Hence 1^T W is constant for every step length, and the bound
    is `||1^T W||^2 / K`.
    """
    outputs = W.shape[-2]
    if outputs == 1:
        return torch.zeros_like(W[..., 0, 0])
    return W.sum(-2).square().sum(-1) / outputs


@takes_arrays()
def remainder_bounds(
    invariants: list[Float[Tensor, "*R _ _"]], last: Float[Tensor, "*R"], rank: int
) -> list[tuple[Float[Tensor, "*R"], Float[Tensor, "*R"]]]:
    """Return lower and upper bounds of the remainder of each linear layer at all times (Theorem 1).

    The remainder rem_l of layer l is the sum of all squared singular values except the k largest.

    - invariants: D_l = W_{l+1}^T W_{l+1} - W_l W_l^T at initialization, of the w neurons between
      linear layers l and l+1.
    - last: the bound `last_remainder_bound` of the last layer L.
    - rank: k.

    Gradient flow conserves A_l = -D_l. Hence W_l W_l^T = W_{l+1}^T W_{l+1} + A_l at all times, and

        lo_l = sum_{i > k} max(lambda_i(A_l), 0)  <=  rem_l  <=
        hi_l = hi_{l+1} + sum_{i <= w - k} lambda_i(A_l),   hi_L = last,   lo_L = 0,

    with the eigenvalues lambda_1 >= ... >= lambda_w of A_l.

    Lower bound: W_{l+1}^T W_{l+1} is positive semidefinite. By Weyl's inequality, no eigenvalue of
    the sum is below that of A_l. Upper bound: the sum of the w - k smallest eigenvalues of a matrix
    M is the least tr(P M) over projections P of rank w - k (Ky Fan). The best P for W_{l+1}^T
    W_{l+1} gives rem_{l+1} for this term. For A_l it gives at most the sum of the w - k largest
    eigenvalues.

    Under weight decay, dW/dt = -grad - lambda W, every D_l and the square of 1^T W_L decay like
    exp(-2 lambda t). Both bounds decay equally.
    """
    bounds = [(torch.zeros_like(last), last)]
    for D in reversed(invariants):
        falling = eigvalsh(-D).flip(-1)
        beyond = max(falling.shape[-1] - rank, 0)
        least = falling[..., rank:].clamp(min=0).sum(-1)
        bounds.insert(0, (least, bounds[0][1] + falling[..., :beyond].sum(-1)))
    return bounds
