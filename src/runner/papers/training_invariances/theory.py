"""Paper C's formulas: invariants of gradient flow, their rates of change, and the low-rank bound.

A neuron (or channel) has a row in `U`, the matrix of incoming weights, and a column in `V`, the
matrix of outgoing weights. Gradient flow conserves

    D = V^T V - U U^T

or a part of D: its diagonal (vertex-wise, Lemma 2, first part), some entries off the diagonal
(edge-wise, Lemma 2, second part), all of it (matrix-wise, Theorem 1), or its trace (layer-wise,
Lemma 3).

Why: the risk does not change under W_in -> A W_in, W_out -> W_out A^{-1} for every A in a group of
matrices. The flow is orthogonal to the orbits of the group. Hence W_in' W_in^T = W_out^T W_out' for
all generators. The symmetric part of this equation is dD/dt = 0. For linear neurons that share all
neighbors the group has every invertible A. For positively homogeneous neurons it has every positive
diagonal A. Neurons with the same activation pattern act like linear neurons. Equivalently w_e
dR/dw_e, summed over the edges into a neuron or out of it, counts every path through the neuron once
(Eq. (10), (11)).

All functions accept leading batch axes `*R`.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from runner.networks.spectra import eigvalsh, operator_norm, svdvals

RESIDUAL_FACTOR = 8
"""Factor of a ResNetFree block in the bound of Theorem 2 (Lemma 11)."""


def matrix_invariant(
    U: Float[Tensor, "*R c i"], V: Float[Tensor, "*R o c"]
) -> Float[Tensor, "*R c c"]:
    """Return D = V^T V - U U^T of c neurons (Theorem 1, Eq. 6).

    U has the i weights into each neuron as a row, V the o weights out of each neuron as a column.
    For two fully connected layers U = W_l and V = W_{l+1} (item 1). The other items have the
    flattened and stacked matrices below instead.
    """
    return V.mT @ V - U @ U.mT


def convolution_incoming(T: Float[Tensor, "*R o i k k"]) -> Float[Tensor, "*R o ikk"]:
    """Return the incoming weights U of a convolution's o output channels, one row for each channel.

    A row has all i * k * k weights into the channel. T: weights of the convolution, with i input
    channels and k x k kernels. See Theorem 1, items 2, 5, 6.
    """
    return T.flatten(-3)


def convolution_outgoing(T: Float[Tensor, "*R o i k k"]) -> Float[Tensor, "*R okk i"]:
    """Return the outgoing weights V of a convolution's i input channels, one column per channel.

    A column has all o * k * k weights that leave the channel. T: weights of the convolution, with o
    output channels and k x k kernels. See Theorem 1, item 2.
    """
    return T.movedim(-3, -1).flatten(-4, -2)


def by_channel(W: Float[Tensor, "*R o i"], channels: int) -> Float[Tensor, "*R op c"]:
    """Return the outgoing weights V of c channels into a layer W, one column for each channel.

    The layer reads c channels of p positions, i = c p. A column has the weights to all positions of
    a channel, `(o p) x c` (Theorem 1, items 5 and 6). With one position V is W.
    """
    return W.unflatten(-1, (channels, -1)).transpose(-1, -2).flatten(-3, -2)


def residual_incoming(
    W2: Float[Tensor, "*R o h"], Z: Float[Tensor, "*R o i"]
) -> Float[Tensor, "*R o hi"]:
    """Return the incoming weights `[W2 Z]` of the outputs of a block Z x + W2 sigma(W1 x).

    See Theorem 1, items 4 and 7.
    """
    return torch.cat((W2, Z), dim=-1)


def residual_outgoing(
    W1: Float[Tensor, "*R h i"], Z: Float[Tensor, "*R o i"]
) -> Float[Tensor, "*R ho i"]:
    """Return the outgoing weights of the inputs of a block Z x + W2 sigma(W1 x): W1 above Z.

    See Theorem 1, items 4, 6, 7.
    """
    return torch.cat((W1, Z), dim=-2)


def same_pattern(preactivations: Float[Tensor, "*R n c"]) -> Bool[Tensor, "*R c c"]:
    """Return which pairs of c neurons are active for the same of n examples (Lemma 2, part 2).

    A neuron is active for an example if its preactivation is positive.
    """
    on = (preactivations > 0).float()  # counts are exact in float32
    count = on.sum(-2)
    return count[..., :, None] + count[..., None, :] == 2 * (on.mT @ on)


def noninvariance_rate(
    z: Float[Tensor, "*R n c"], slopes: Float[Tensor, "*R n c"], upstream: Float[Tensor, "*R n c"]
) -> Float[Tensor, "*R c c"]:
    """Return dD/dt of c neurons under gradient flow (Lemma 4; the difference of Eq. (65) and (67)).

    z: preactivations of the neurons for each of n examples. slopes: sigma'(z). upstream: dR/da, the
    derivative b of the risk R by the activations a = sigma(z) = sigma'(z) z. For neurons u and v,

        dD_uv/dt = sum_i (sigma'(z_iu) - sigma'(z_iv)) (b_iu z_iv - b_iv z_iu).

    It is zero on the diagonal and for two neurons with the same pattern, and nonzero in general.
    """
    cross = (slopes * upstream).mT @ z - upstream.mT @ (slopes * z)
    return cross + cross.mT


def squared_norm(W: Float[Tensor, "*R o i"]) -> Float[Tensor, "*R"]:
    """Return ||W||_F^2.

    Gradient flow conserves the difference of this norm between two layers (Lemma 3).
    """
    return W.square().sum((-2, -1))


def squared_operator_norm(W: Float[Tensor, "*R o i"]) -> Float[Tensor, "*R"]:
    """Return ||W||_2^2, the square of the largest singular value; it is nan if W is not finite."""
    return operator_norm(W).square()


def alignment(
    of_U: tuple[Tensor, Tensor, Tensor], of_V: tuple[Tensor, Tensor, Tensor]
) -> Float[Tensor, "*R"]:
    """Return |<v, u>| for singular vectors of two adjacent layers (Eq. 15).

    u is the first left singular vector of U, and v the first right singular vector of V. of_U,
    of_V: the decompositions of U (*R, c, i) and V (*R, o, c) by `spectra.svd`. The result is nan if
    one of the matrices is not finite.
    """
    return (of_U[0][..., :, 0] * of_V[2][..., 0, :]).sum(-1).abs()


def flattening_factor(shared: int, positions: int) -> int:
    """Return the largest ||U||^2 / ||V||^2 of two flattenings of one tensor: min(i, k) (Lemma 10).

    The tensor T (o, i, k) has the flattenings U = `o x (i k)` and V = `(o k) x i`. shared: i.
    positions: k. The reason: T contracted with a unit vector of R^o is an i x k matrix. Its squared
    Frobenius norm is at most min(i, k) times its squared operator norm (Wang et al. 2017, Theorem
    4.8).
    """
    return min(shared, positions)


def low_rank_bound(factors: list[int]) -> list[float]:
    """Return the limit inferior of ||W_j||_2^2 / ||W_j||_F^2 for each layer j (Theorem 2, Eq. 14).

    factors: s_j, the largest ||U_j||_2^2 / ||V_j||_2^2 of layer j, with its incoming and outgoing
    matrices. It is 1 for a fully connected layer, `RESIDUAL_FACTOR` for a ResNetFree block, and
    `flattening_factor` for a convolution or a layer that reads channels. The bound of layer j has
    the factors of all later layers:

        bound_j = 1 / (s_{j+1} ... s_L) = 1 / (8^{N_j} M_j).

    The paper's 8 for a block Z x + W2 W1 x is larger than necessary. W2^T W2 - W1 W1^T is constant,
    so up to a constant ||[W2 Z]||^2 <= ||W2||^2 + ||Z||^2 = ||W1||^2 + ||Z||^2. This is at most
    twice ||[W1; Z]||^2.
    """
    bounds = [1.0]
    for factor in reversed(factors[1:]):
        bounds.insert(0, bounds[0] / factor)
    return bounds


def finite_time_bound(
    last: Float[Tensor, "*R"],
    invariants: list[Float[Tensor, "*R _ _"]],
    factors: list[int],
    offsets: list[Float[Tensor, "*R"]],
) -> list[Float[Tensor, "*R"]]:
    """Return a lower bound of ||U_j||_2^2 for each layer j (Theorem 2, Eq. 13).

    U_j and V_j are the incoming and outgoing matrices of layer j; U_j is W_j without biases and
    skips.

    - last: current ||W_L||_F^2, which is ||W_L||_2^2 because W_L has a single row. It is the last
      bound.
    - invariants: D_j at initialization, between layers j and j+1.
    - factors, offsets: s_j and e_j with ||U_j||_2^2 <= s_j ||V_j||_2^2 + e_j. Those of the first
      layer are not used.

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


def residual_offset(D: Float[Tensor, "*R h h"]) -> Float[Tensor, "*R"]:
    """Return e with ||[W2 Z]||^2 <= 2 ||[W1; Z]||^2 + e for blocks Z x + W2 W1 x.

    This is Lemma 11, sharpened. D: W2^T W2 - W1 W1^T at initialization. e is its largest
    eigenvalue, or zero if this is negative.
    """
    return eigvalsh(D)[..., -1].clamp(min=0)


def remainder(W: Float[Tensor, "*R o i"], rank: int) -> Float[Tensor, "*R"]:
    """Return the sum of all squared singular values of W except the `rank` largest.

    It is nan if W is not finite.
    """
    return svdvals(W)[..., rank:].square().sum(-1)


def last_remainder_bound(W: Float[Tensor, "*R o w"]) -> Float[Tensor, "*R"]:
    """Return an upper bound of the last layer's remainder at all times, from initial weights W.

    The remainder is the sum of all squared singular values except the k largest. With one output
    under a loss of the margin k = 1, and W has one singular value, hence the bound is zero.

    With K outputs under cross entropy k = K - 1. The remainder is sigma_K^2 <= ||u^T W||^2 for
    every unit vector u, here 1 / sqrt(K). The derivatives of the cross entropy by the K outputs
    have the sum zero. Hence 1^T W is constant for every step length, and the bound is `||1^T W||^2
    / K`.
    """
    outputs = W.shape[-2]
    if outputs == 1:
        return torch.zeros_like(W[..., 0, 0])
    return W.sum(-2).square().sum(-1) / outputs


def remainder_bounds(
    invariants: list[Float[Tensor, "*R _ _"]], last: Float[Tensor, "*R"], rank: int
) -> list[tuple[Float[Tensor, "*R"], Float[Tensor, "*R"]]]:
    """Return lower and upper bounds of the remainder of each linear layer at all times (Theorem 1).

    The remainder rem_l of layer l is the sum of all squared singular values except the k largest.

    - invariants: D_l = W_{l+1}^T W_{l+1} - W_l W_l^T at initialization, of the w neurons between
      linear layers l and l+1.
    - last: `last_remainder_bound` of the last layer L.
    - rank: k.

    The flow conserves A_l = -D_l. Hence W_l W_l^T = W_{l+1}^T W_{l+1} + A_l at all times, and

        lo_l = sum_{i > k} max(lambda_i(A_l), 0)  <=  rem_l  <=
        hi_l = hi_{l+1} + sum_{i <= w - k} lambda_i(A_l),   hi_L = last,   lo_L = 0,

    with the eigenvalues lambda_1 >= ... >= lambda_w of A_l.

    Lower bound: W_{l+1}^T W_{l+1} is positive semidefinite, so no eigenvalue of the sum is below
    that of A_l (Weyl). Upper bound: the sum of the w - k smallest eigenvalues of a matrix M is the
    least tr(P M) over projections P of rank w - k (Ky Fan). The best P for W_{l+1}^T W_{l+1} gives
    rem_{l+1} for this term, and at most the sum of the w - k largest eigenvalues of A_l.

    Under weight decay, dW/dt = -grad - lambda W, every D_l, and the square of 1^T W_L, decays as
    exp(-2 lambda t). Both bounds decay equally.
    """
    bounds = [(torch.zeros_like(last), last)]
    for D in reversed(invariants):
        falling = eigvalsh(-D).flip(-1)
        beyond = max(falling.shape[-1] - rank, 0)
        least = falling[..., rank:].clamp(min=0).sum(-1)
        bounds.insert(0, (least, bounds[0][1] + falling[..., :beyond].sum(-1)))
    return bounds
