"""Paper B's statements as tests: formulas against definitions, theorems against simulation."""

from fractions import Fraction
from itertools import product
from math import inf, log10, sqrt

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from runner.core.errors import InputError
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.networks.normalization import layer_norm, rms_norm
from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.breaking_bn.alignment import gradient_alignment
from runner.papers.batch_norm_rank.measures import last_hidden
from runner.papers.batch_norm_rank.rank_chain.engines import (
    LAWS,
    collinear_inputs,
    fill,
    unit_rows,
)
from runner.papers.batch_norm_rank.rank_chain.expansion import frobenius_step
from runner.papers.batch_norm_rank.rank_chain.random_products import collapse
from runner.papers.batch_norm_rank.starts import draw_glorot


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=stream(seed), dtype=torch.float64)


def test_batch_norm_gives_unit_diagonal_and_bounded_entries():
    """Properties (p.1) and (p.2), Equations 8 and 9."""
    M = theory.second_moment(theory.batch_norm(3 * normal(4, 7, 11)))
    torch.testing.assert_close(M.diagonal(dim1=-2, dim2=-1), torch.ones(4, 7, dtype=M.dtype))
    assert M.abs().max() <= 1 + 1e-12


def test_centred_batch_norm_has_rows_without_mean():
    H = theory.batch_norm(normal(5, 9) + 2, centred=True)
    torch.testing.assert_close(H.mean(dim=1), torch.zeros(5, dtype=H.dtype))
    torch.testing.assert_close(H.square().mean(dim=1), torch.ones(5, dtype=H.dtype))


def test_rank_bound_is_exact_for_orthogonal_rows():
    H = torch.linalg.qr(normal(12, 12)).Q[:5]
    assert theory.rank_bound(H).item() == pytest.approx(5)


@given(
    d=st.integers(2, 12),
    N=st.integers(1, 12),
    tau=st.floats(0, 1),
    scale=st.floats(0.01, 1),
    seed=st.integers(0, 10**6),
)
def test_lemma_1(d, N, tau, scale, seed):
    """rank(H) >= r(H), and rank_tau(H) >= (1 - tau)^2 r(H) for normalised H, collinear or not."""
    H = theory.batch_norm(normal(d, 1, seed=seed) @ normal(1, N) + scale * normal(d, N, seed=seed))
    r = theory.rank_bound(H).item()
    assert torch.linalg.matrix_rank(H) >= r - 1e-9
    assert theory.soft_rank(H, tau) >= (1 - tau) ** 2 * r - 1e-9


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rank_bound_has_no_scale(dtype):
    """To the last bit, also where squares of squares leave the range of the dtype."""
    H = normal(3, 6, 9).to(dtype).requires_grad_()
    r = theory.rank_bound(H)
    M = H @ H.mT / 9  # Eq. (4) as it stands
    plain = theory.trace(M).square() / M.square().sum(dim=(-2, -1))
    assert torch.equal(r, plain)
    gradient = torch.autograd.grad(r.sum(), H)
    assert torch.equal(gradient[0], torch.autograd.grad(plain.sum(), H)[0])
    most = 120 if dtype == torch.float32 else 1000
    for exponent in (-most, -40, 40, most):
        assert torch.equal(theory.rank_bound(H * 2.0**exponent), r)
    signs = H.detach().sign()
    denormal = signs * torch.finfo(dtype).tiny / 8
    assert torch.equal(theory.rank_bound(denormal), theory.rank_bound(signs))


def test_batch_norm_has_no_scale():
    H = normal(3, 6, 9).float()
    plain = H / H.square().mean(dim=-1, keepdim=True).sqrt()
    scales = 2.0 ** torch.tensor([-120.0, -40, 0, 40, 60, 120])[:, None]
    assert torch.equal(theory.batch_norm(H), plain)
    assert torch.equal(theory.batch_norm(scales * H), plain)


def test_rank_bound_of_no_number_is_nan():
    H = torch.ones(4, 3, 5)
    H[0], H[1, 2, 2], H[2, 0, 0] = 0, torch.nan, inf
    assert theory.rank_bound(H).isnan().tolist() == [True, True, True, False]


def test_inertia_of_nan_is_nan():
    M = torch.eye(4).double().expand(4, 4, 4).clone()
    M[0], M[1, 3, 0], M[2, 3, 3] = torch.nan, torch.nan, inf
    counted = theory.count_above(M, 0.5)
    assert counted[:3].isnan().all() and counted[3] == 4


@pytest.mark.parametrize("k", [1, 2, 8, 20, 36])
def test_inertia_counts_the_eigenvalues(k):
    M = normal(500, k, 2 * k)
    M = M @ M.mT / k
    for tau in (0.0, 0.5, 1.0, 5.0):
        counted = theory.count_above(M, tau)
        assert torch.equal(counted, (torch.linalg.eigvalsh(M) >= tau).sum(dim=-1).double())


def test_inertia_with_indefinite_blocks():
    """A zero diagonal forces 2 x 2 pivots."""
    M = torch.tensor([[[0.0, 1, 0], [1, 0, 0], [0, 0, -2]]], dtype=torch.float64)
    assert theory.count_above(M, 0.0).tolist() == [1]


def test_regularity_terms_against_their_definition():
    M = theory.second_moment(theory.batch_norm(normal(6, 6)))
    diagonal, cubic = theory.regularity_terms(M)
    squared = torch.diag(torch.diag(M @ M))
    torch.testing.assert_close(diagonal, torch.trace(squared @ squared))
    torch.testing.assert_close(cubic, torch.trace(M @ M @ M))


def test_proposition_8():
    """Equation 45 agrees with Lemma 7's delta_F where all rows of M have the same norm."""
    row = normal(16)
    circulant = torch.stack([row.roll(shift) for shift in range(16)])
    for H in (circulant, torch.ones(16, 4, dtype=torch.float64)):
        M = theory.second_moment(theory.batch_norm(H))
        of_spectrum = theory.frobenius_change_of_spectrum(torch.linalg.eigvalsh(M))
        torch.testing.assert_close(theory.frobenius_change(M), of_spectrum)


@pytest.mark.parametrize("law", LAWS)
def test_lemma_7(law):
    """Monte-Carlo of the change over one layer against gamma^2 delta_F(M), at five matrices."""
    skip = 1e-3
    z = []
    for seed in range(5):
        G = unit_rows(normal(12, 5, seed=seed))
        change, error = frobenius_step(G, skip, law, 4000, stream(seed))
        predicted = skip**2 * theory.frobenius_change(G @ G.mT).item()
        assert error < 0.1 * skip**2 * 12**2
        z.append((change - predicted) / error)
    assert max(abs(each) for each in z) < 4


def test_lemma_7_remainder_is_even_in_gamma():
    """Symmetric weights leave no odd power of gamma, so the remainder falls as gamma^2."""
    G = unit_rows(normal(8, 4))
    delta = theory.frobenius_change(G @ G.mT).item()
    left = {}
    for skip in (0.05, 0.1):
        change, _ = frobenius_step(G, skip, "gaussian", 150_000, stream())
        left[skip] = change / skip**2 - delta
    assert left[0.1] / left[0.05] == pytest.approx(4, rel=0.25)


@pytest.mark.parametrize("width", [2, 3, 16])
def test_lyapunov_gap_without_skip_has_a_closed_form(width):
    gap, error = theory.lyapunov_gap(width, inf, 200_000, stream())
    assert abs(gap - theory.lyapunov_gap_ginibre(width)) < 4 * error
    assert error < 0.01 * gap


@pytest.mark.parametrize("width", [10, 1000, 10**7])
def test_lyapunov_gap_loses_no_digits(width):
    """psi(x) - psi(x - 1/2) = int_0^1 t^(x - 3/2) / (1 + sqrt t) dt, here with t = s^2."""
    with mpmath.workdps(40):
        d, decay = mpmath.mpf(width), mpmath.mpf(40) / width
        points = [mpmath.e**-decay if width > 40 else 0, 1]
        gap = mpmath.quad(lambda s: s ** (d - 2) / (1 + s), points)
    assert theory.lyapunov_gap_ginibre(width) == pytest.approx(float(gap), rel=1e-15, abs=0)


def test_lyapunov_gap_of_a_huge_gamma_is_that_without_skip():
    without = theory.lyapunov_gap(8, inf, 10_000, stream())
    assert theory.lyapunov_gap(8, 1e200, 10_000, stream()) == without


def test_lyapunov_gap_does_not_depend_on_the_threads():
    found = set()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.add(theory.lyapunov_gap(8, 0.1, 100_000, stream()))
    finally:
        torch.set_num_threads(1)
    assert len(found) == 1


def test_lemma_3_rate():
    """log(sigma_2 / sigma_1) of the residual product falls by the Lyapunov gap in a layer."""
    layers = list(collapse(64, 8, 0.5, "gaussian", 200, stream(), torch.device("cpu")))
    rates = (layers[49][0] - layers[199][0]) / 150
    gap, gap_error = theory.lyapunov_gap(8, 0.5, 100_000, stream(1))
    error = rates.std().item() / sqrt(len(rates))
    assert abs(rates.mean().item() - gap) < 4 * (error**2 + gap_error**2) ** 0.5
    assert gap > 20 * gap_error


@pytest.mark.parametrize("law", LAWS)
def test_definition_1(law):
    """Zero mean, unit variance, symmetric; third moment zero."""
    W = fill(torch.empty(1_000_000, dtype=torch.float64), law, stream())
    assert abs(W.mean().item()) < 4e-3
    assert W.square().mean().item() == pytest.approx(1, abs=6e-3)
    assert abs(W.pow(3).mean().item()) < 2e-2


def test_bounds_of_theorem_14():
    """(58) is d^2 over (50); the corrected forms differ by two; alpha < 1 is needed."""
    assert theory.frobenius_bound(16, 0.75) == pytest.approx(128)
    assert theory.rank_bound_theorem(16, 0.75) == pytest.approx(2)
    assert theory.rank_bound_theorem(16, 0.75, tau=0.5) == pytest.approx(0.5)
    assert theory.rank_bound_theorem(16, 0.75, as_printed=False) == pytest.approx(4)
    for bound in (theory.frobenius_bound, theory.rank_bound_theorem):
        with pytest.raises(InputError, match="below one"):
            bound(16, 1.0)


def test_example_9_to_first_order():
    """(78) with its powers of d put right: lambda = (d - g2 (d - 1), g2, ..., g2)."""
    d, g2 = 50, 1e-7
    eigenvalues = torch.full((d,), g2, dtype=torch.float64)
    eigenvalues[0] = d - g2 * (d - 1)
    square = eigenvalues.square().sum().item()
    cube = eigenvalues.pow(3).sum().item()
    assert (d**2 - square) / g2 == pytest.approx(2 * d * (d - 1), rel=1e-3)
    assert (d**3 - cube) / g2 == pytest.approx(3 * d**2 * (d - 1), rel=1e-3)
    change = theory.frobenius_change_of_spectrum(eigenvalues).item()
    assert change / g2 == pytest.approx(-4 * d * (d - 1) * (2 * d - 1), rel=1e-3)


ONE_SIDED = "one-sided"
"""Exponential weights less their mean: zero mean, unit variance, not symmetric."""


def weights(H, law, generator):
    """A draw of `W (d, d)` for each matrix of the stack `H`."""
    W = H.new_empty(*H.shape[:-1], H.shape[-2])
    return W.exponential_(generator=generator) - 1 if law == ONE_SIDED else fill(W, law, generator)


def layer(H, skip, W):
    """Equation 1."""
    return theory.batch_norm(W @ H if skip == inf else H + skip * W @ H)


def after(layers, H, skip, law, generator):
    for _ in range(layers):
        H = layer(H, skip, weights(H, law, generator))
    return H


def deviations_from_zero(sample):
    """Mean of each column in units of its standard error."""
    return sample.mean(dim=0) / (sample.std(dim=0) / sqrt(len(sample)))


def pairs(M):
    """The entries of `M` above the diagonal."""
    row, column = torch.triu_indices(*M.shape[-2:], offset=1)
    return M[..., row, column]


def regularity(M):
    """alpha of the law that gives each matrix of the stack the same weight (Definition 3)."""
    diagonal, cubic = theory.regularity_terms(M)
    return (diagonal.mean() / cubic.mean()).item()


@pytest.mark.parametrize("skip", [0.1, 1.0, inf])
def test_lemma_4_sign_flips_pass_through_the_chain(skip):
    """Equations 22 to 29: from S X with weights S W S the chain is S H_l, at any depth and gamma.

    No invariant law is needed: a symmetric law of the input stays symmetric.
    """
    H, generator = normal(5, 7), stream(1)
    S = torch.tensor([1.0, -1, -1, 1, -1], dtype=torch.float64)[:, None]
    flipped = S * H
    for _ in range(20):
        W = weights(H, "uniform", generator)
        H, flipped = layer(H, skip, W), layer(flipped, skip, S * W * S.T)
    torch.testing.assert_close(flipped, S * H, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("law", LAWS)
def test_lemma_4_rows_lose_the_sign_of_the_input(law):
    """4000 chains from one input: odd moments of H and, Equation 31, the mean of M_ij vanish."""
    generator = stream(2)
    H = after(1, normal(4, 4).expand(4000, 4, 4), 0.6, law, generator)
    assert deviations_from_zero(H.flatten(1)).abs().max() > 50
    H = after(40, H, 0.6, law, generator)
    for sample in (H.flatten(1), H.flatten(1).pow(3), pairs(theory.second_moment(H))):
        assert deviations_from_zero(sample).abs().max() < 4.5


def test_equation_31_needs_symmetric_weights_and_lemma_4_does_not():
    """Equation 31 does not follow from Lemma 4 as printed, only from its proof (S H ~ H).

    H -> -H passes through every chain, so that rows are symmetric for any law of the weights; with
    one-sided weights M_12 still has a mean (about -0.16 at d = 2, gamma = 1).
    """
    H = after(20, normal(2, 2).expand(8000, 2, 2), 1.0, ONE_SIDED, stream(3))
    assert deviations_from_zero(H.flatten(1)).abs().max() < 4.5
    M = theory.second_moment(H)
    assert deviations_from_zero(pairs(M)).item() < -8
    assert pairs(M).mean().item() == pytest.approx(-0.16, abs=0.04)


def test_no_invariant_law_of_the_representations_is_unique():
    """Against the assumption of Lemmas 4, 5, 10 and Theorem 14; it can hold for the law of M only.

    If H is invariant, so is H Q for orthogonal Q. A unique law would hence have
    E H^T H = d I, but the chain keeps a few directions of sample space, and drops the others.
    """
    generator = stream(5)
    H = after(300, torch.eye(8, dtype=torch.float64), 1.0, "uniform", generator)
    mean = torch.zeros(8, 8, dtype=torch.float64)
    for _ in range(300):
        H = after(1, H, 1.0, "uniform", generator)
        mean += H.T @ H / 8 / 300
    found = torch.linalg.eigvalsh(mean)
    assert found.sum().item() == pytest.approx(8)
    assert found[0] < 1e-9
    assert found[-1] > 1.5


def test_lemma_4_determinants_keep_their_sign_below_one_over_bd():
    """gamma B d < 1 makes I + gamma W keep orientation: S H ~ H fails for d = N and det S = -1."""
    generator = stream(6)
    H = normal(50, 3, 3)
    sign = torch.linalg.det(H).sign()
    for _ in range(100):
        H = after(1, H, 0.99 / (sqrt(3) * 3), "uniform", generator)
        assert torch.equal(torch.linalg.det(H).sign(), sign)
    turned = torch.linalg.det(after(1, H, 1.0, "uniform", generator)).sign() != sign
    assert turned.sum() > 5


@pytest.mark.parametrize("law, bound", [("uniform", sqrt(3)), ("rademacher", 1.0)])
@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_lemma_5_every_layer_keeps_the_rank_of_the_input(rank, law, bound):
    """At gamma <= 1 / (8 B d), with no invariant law needed: rank(H_l) = rank(X), hence
    rank(H_l) = d in Corollary 15.

    So rank(H_l) >= 2 if and only if rank(X) >= 2; an input of rank one is the counterexample.
    |gamma W| <= 1/8 gives quantitatively sigma_k(H_{l+1}) >= 7/9 sigma_k(H_l).
    """
    d, generator = 6, stream(7)
    H = theory.batch_norm(normal(d, rank) @ normal(rank, 8, seed=1))
    for _ in range(200):
        before = torch.linalg.svdvals(H)
        H = after(1, H, 1 / (8 * bound * d), law, generator)
        singular = torch.linalg.svdvals(H)
        assert (singular > 1e-9 * singular[0]).sum() == rank
        assert singular[rank - 1] >= 7 / 9 * before[rank - 1]


def test_lemma_5_fails_at_the_printed_gamma():
    """The printed 1 / (8 d) lacks the B of the proof's 1 / (8 B d).

    d = 2, gamma = 1/16, weights +-8 sqrt(2) with probability 1/256 each, else 0: unit variance.
    Four of the 81 I + gamma W are singular, so that rank one is reached almost surely from any
    input, and kept. No draw makes a row of it vanish, and M_12 then changes sign in either
    direction, so that the invariant law of M is unique.
    """
    bound, skip = 8 * sqrt(2), 1 / 16
    assert bound**2 * 2 / 256 == pytest.approx(1)
    H = theory.batch_norm(torch.tensor([[2.0, 1], [-1, 3]], dtype=torch.float64))
    same = torch.tensor([[1.0, -1], [1, -1]], dtype=torch.float64)
    opposite = torch.tensor([[1.0, -1], [-1, 1]], dtype=torch.float64)
    ranks, signs = [], {1: set(), -1: set()}
    for entries in product((-bound, 0.0, bound), repeat=4):
        W = torch.tensor(entries, dtype=torch.float64).reshape(2, 2)
        ranks.append(torch.linalg.matrix_rank(layer(H, skip, W), rtol=1e-9).item())
        for sign, collinear in ((1, same), (-1, opposite)):
            after_layer = pairs(theory.second_moment(layer(collinear, skip, W))).item()
            assert abs(after_layer) == pytest.approx(1)
            signs[sign].add(round(after_layer))
    assert (ranks.count(1), ranks.count(2)) == (4, 77)
    assert signs == {1: {1, -1}, -1: {1, -1}}


def test_lemmas_5_and_10_need_a_small_gamma():
    """Rademacher weights, d = 2, gamma = 1 / sqrt(2): a quarter of I + gamma W is singular.

    (3/4)^l of the chains keep rank two, and the law that all end in, unique for M, has rank one,
    M_12 = +-1 with equal probability and alpha = 1.
    """
    generator, chains = stream(8), 4000
    H = normal(chains, 2, 2)
    for depth in range(1, 9):
        H = after(1, H, 1 / sqrt(2), "rademacher", generator)
        share = (pairs(theory.second_moment(H)).abs() < 1 - 1e-12).double().mean().item()
        expected = 0.75**depth
        assert abs(share - expected) < 4.5 * sqrt(expected * (1 - expected) / chains)
    M = theory.second_moment(after(72, H, 1 / sqrt(2), "rademacher", generator))
    assert regularity(M) == pytest.approx(1, abs=1e-9)
    assert pairs(M).abs().min().item() == pytest.approx(1, abs=1e-9)
    assert deviations_from_zero(pairs(M)).abs().item() < 4.5


def test_lemma_6_rank_one_stands_still():
    """At gamma <= 1 / (8 B d) not only M but H itself: each s v^T carries an invariant law alone.

    Hence the law is never unique where Lemma 5 speaks of it. k = 0 is excluded: X has other rows.
    """
    X = normal(5, 1) @ normal(1, 7, seed=1)
    start = theory.batch_norm(X)
    H = after(200, start, 1 / (8 * sqrt(3) * 5), "uniform", stream(9))
    torch.testing.assert_close(H, start, rtol=0, atol=1e-12)
    ones = torch.ones(5, 5, dtype=torch.float64)
    torch.testing.assert_close(theory.second_moment(H).abs(), ones, rtol=0, atol=1e-12)
    assert (theory.second_moment(X).abs() - 1).abs().max() > 0.5


@pytest.mark.parametrize("d", [2, 5, 16])
@pytest.mark.parametrize("gamma_bd, kept", [(0.99, True), (1.01, False)])
def test_lemma_6_holds_up_to_gamma_one_over_bd_and_no_further(d, gamma_bd, kept):
    """The worst weights, W_1j = -B s_1 s_j and no others, turn row one just when gamma B d > 1."""
    s = normal(d, 1).sign()
    H = s @ normal(1, 7).sign()
    M = theory.second_moment(H)
    W = torch.zeros(d, d, dtype=torch.float64)
    W[0] = -s[0] * s[:, 0]
    found = theory.second_moment(layer(H, gamma_bd / d, W))
    if not kept:
        M[0, 1:] *= -1
        M[1:, 0] *= -1
    torch.testing.assert_close(found, M)


def test_lemma_6_large_gamma_changes_signs_and_keeps_rank_one():
    """|M_ij| = 1 needs no small gamma; that M stands still does.

    Samples of +-1 make the rows collinear without rounding: rank one is unstable, and rounding
    grows to order one within 20 layers.
    """
    generator = stream(10)
    H = normal(100, 5, 1).sign() @ normal(100, 1, 7, seed=1).sign()
    before = theory.second_moment(H)
    M = theory.second_moment(after(20, H, 1.0, "uniform", generator))
    torch.testing.assert_close(M.abs(), torch.ones_like(M))
    assert 0.4 < (pairs(M) * pairs(before) < 0).double().mean() < 0.6


def test_lemma_6_bound_of_its_proof_lacks_the_width():
    """|Delta M_ij| <= 2 gamma B d + (gamma B d)^2, attained; `4 gamma B` as printed is exceeded.

    The conclusion |Delta M_ij| < 1/2 at gamma = 1 / (8 B d) stands: 17/64.
    """
    d, B = 8, sqrt(3)
    skip = 1 / (8 * B * d)
    s = normal(d, 1).sign()
    M, W = s @ s.T, B * s @ s.T
    change = skip * W @ M + skip * M @ W.T + skip**2 * W @ M @ W.T
    torch.testing.assert_close(change.abs(), torch.full((d, d), 17 / 64, dtype=torch.float64))
    assert 4 * skip * B < 17 / 64


@given(
    d=st.integers(2, 12),
    N=st.integers(1, 12),
    scale=st.floats(0.01, 1),
    seed=st.integers(0, 10**6),
)
def test_lemma_10_alpha_never_exceeds_one(d, N, scale, seed):
    """Row by row, (M^2)_ii^2 <= M_ii (M^3)_ii = (M^3)_ii by Cauchy-Schwarz.

    So alpha <= 1 for every law of normalised H, invariant or not, at every gamma.
    """
    H = theory.batch_norm(normal(d, 1, seed=seed) @ normal(1, N) + scale * normal(d, N, seed=seed))
    M = theory.second_moment(H)
    left = (M @ M).diagonal().square()
    assert (left <= (M @ M @ M).diagonal() * (1 + 1e-12)).all()


def flat(d, modes):
    """Circulant M of unit diagonal with equal eigenvalues at the given Fourier modes, else zero."""
    spectrum = torch.zeros(d, dtype=torch.float64)
    spectrum[list(modes)] = d / len(modes)
    return circulant(spectrum)


def circulant(spectrum):
    """Symmetric matrix with equal rows, up to their order, and the eigenvalues `spectrum`."""
    torch.testing.assert_close(spectrum[1:], spectrum[1:].flip(0))
    row = torch.fft.ifft(spectrum).real
    return torch.stack([row.roll(shift) for shift in range(len(row))])


def test_lemma_10_alpha_is_one_where_blocks_have_flat_spectra():
    """Equality in (M^2)_ii^2 <= (M^3)_ii: blocks with one non-zero eigenvalue each.

    Among them every matrix of rank one, so that Lemma 10 fails for the invariant laws of Lemma 6;
    away from them alpha is below one.
    """
    sign = normal(6, 1).sign()
    blocks = torch.block_diag(sign @ sign.T, torch.eye(3).double(), flat(6, (1, 5)))
    for M in (sign @ sign.T, blocks):
        assert regularity(M) == pytest.approx(1, abs=1e-12)
    assert regularity(theory.second_moment(theory.batch_norm(normal(200, 6, 6)))) < 0.9


def test_lemma_10_at_width_two_alpha_is_19_over_20():
    """As gamma -> 0 the angle of the two rows is uniform: its generator is (sin^2 f')'.

    M_12 = cos(angle) then has the arcsine law, hence alpha = 0.95, E r = sqrt(2), E ||M||_F^2 = 3.
    At gamma = 0.1 alpha and r lie within 0.005 and 0.02 of that.
    """
    chains = 4000
    H = torch.eye(2, dtype=torch.float64).expand(chains, 2, 2)
    H = after(400, H, 0.1, "uniform", stream(11))
    M = theory.second_moment(H)
    cosine = pairs(M)
    assert deviations_from_zero(cosine).abs().item() < 4.5
    assert cosine.square().mean().item() == pytest.approx(1 / 2, abs=0.025)
    assert cosine.pow(4).mean().item() == pytest.approx(3 / 8, abs=0.025)
    assert regularity(M) == pytest.approx(0.95, abs=0.005)
    assert theory.rank_bound(H).mean().item() == pytest.approx(sqrt(2), abs=0.02)
    assert M.square().sum(dim=(1, 2)).mean().item() == pytest.approx(3, abs=0.05)


def test_lemma_10_alpha_of_the_chain_is_below_one():
    """From inputs of full rank, within four standard errors, at small, large and no skip."""
    for skip in (0.1, 1.0, inf):
        M = theory.second_moment(after(150, normal(200, 8, 8), skip, "uniform", stream(12)))
        diagonal, cubic = theory.regularity_terms(M)
        alpha = regularity(M)
        error = ((diagonal - alpha * cubic).std() / cubic.mean()).item() / sqrt(200)
        assert alpha + 4 * error < 0.93


def test_example_11_gap_to_one_is_the_spread_of_the_eigenvalues():
    """Equations 83 to 86, exactly: for rows of equal norm
    Tr M^3 - Tr diag(M^2)^2 = sum_ij lambda_i lambda_j (lambda_i - lambda_j)^2 / (2 d)."""
    row = normal(9)
    rows = torch.stack([row.roll(shift) for shift in range(9)])
    M = theory.second_moment(theory.batch_norm(rows))
    eigenvalues = torch.linalg.eigvalsh(M)
    spread = (eigenvalues[:, None] - eigenvalues).square()
    diagonal, cubic = theory.regularity_terms(M)
    weighted = (eigenvalues[:, None] * eigenvalues * spread).sum() / 18
    torch.testing.assert_close(cubic - diagonal, weighted)
    assert regularity(M) < 0.95


def test_example_11_equal_eigenvalues_make_alpha_one_at_every_rank():
    """Flat spectra of any rank, and any mixture of them; one uneven spectrum, and alpha falls."""
    flats = [flat(8, modes) for modes in ((0,), (1, 7), (0, 2, 6), (1, 2, 6, 7), range(8))]
    assert [torch.linalg.matrix_rank(M).item() for M in flats] == [1, 2, 3, 4, 8]
    assert regularity(torch.stack(flats)) == pytest.approx(1, abs=1e-12)
    uneven = circulant(torch.tensor([4.0, 1, 1, 0, 0, 0, 1, 1], dtype=torch.float64))
    assert regularity(torch.stack([*flats, uneven])) < 1 - 1e-3


def test_example_11_needs_rows_of_equal_norm():
    """Without it alpha = 1 at the non-zero eigenvalues 2 and 1."""
    M = torch.tensor([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]], dtype=torch.float64)
    assert regularity(M) == pytest.approx(1)
    torch.testing.assert_close(torch.linalg.eigvalsh(M), torch.tensor([0.0, 1, 2]).double())


def alpha_of_levels(d, *levels):
    """alpha for rows of equal norm (Proposition 8); `levels` are eigenvalues and how many."""
    assert sum(value * count for value, count in levels) == pytest.approx(d)
    square = sum(value**2 * count for value, count in levels)
    return square / d * (square / sum(value**3 * count for value, count in levels))


def spike_and_flat(d, spike):
    """alpha where one eigenvalue is `spike` and all others are equal."""
    return alpha_of_levels(d, (spike, 1), ((d - spike) / (d - 1), d - 1))


def test_example_12_spectra_belong_to_normalised_representations():
    """`alpha_of_levels` against Definition 3 at a circulant M, and at H with H H^T / N = M."""
    d, spike = 64, 16.0
    spectrum = torch.full((d,), (d - spike) / (d - 1), dtype=torch.float64)
    spectrum[0] = spike
    M = circulant(spectrum)
    assert regularity(M) == pytest.approx(spike_and_flat(d, spike))
    H = sqrt(d) * torch.linalg.cholesky(M)
    torch.testing.assert_close(theory.batch_norm(H), H)


@pytest.mark.parametrize("beta, exponent", [(0.4, -0.2), (0.5, -0.5), (0.6, -0.4), (0.8, -0.2)])
def test_example_12_alpha_vanishes_where_the_other_eigenvalues_are_flat(beta, exponent):
    """Spike d^beta, others equal, beta > 1/3: alpha falls to 0, not only below 0.9.

    As d^{beta - 1} from beta = 1/2 on (Eq. 89), as d^{1 - 3 beta} below, where Eq. 87 fails:
    ||lambda||_2^2 >= d always.
    """
    small, large = (spike_and_flat(d, d**beta) for d in (1e40, 1e60))
    assert large < small < 0.01
    assert log10(large / small) / 20 == pytest.approx(exponent, abs=1e-3)


def test_example_12_fails_at_and_below_beta_one_third():
    """The same spectra: alpha -> 1 below, and -> 1 / (1 + c^3) at lambda_1 = c d^{1/3}."""
    below = [spike_and_flat(d, d**0.25) for d in (1e4, 1e8, 1e16)]
    assert below == pytest.approx([0.926, 0.990, 1], abs=1e-3)
    for c in (0.3, 0.5, 1, 2):
        assert spike_and_flat(1e24, c * 1e24 ** (1 / 3)) == pytest.approx(1 / (1 + c**3), rel=1e-6)


def spike_and_plateau(d, beta, second):
    """alpha for one eigenvalue `d^beta` and as many eigenvalues `second` as the trace allows."""
    return alpha_of_levels(d, (d**beta, 1), (second, (d - d**beta) / second))


def test_example_12_needs_more_than_little_o_at_every_beta():
    """lambda_i = d^{beta - e} = o(d^beta) with e < (1 - beta) / 2: alpha -> 1 at any beta < 1.

    Reading it as lambda_i = o(d^{(3 beta - 1) / 2}), which needs beta > 1/3, alpha -> 0 holds; the
    exponent is sharp: with kappa d^{(3 beta - 1) / 2}, alpha -> kappa^2 / (1 + kappa^2).
    """
    for beta in (0.2, 0.5, 0.75, 0.9):
        d, exponent = 1e100, (3 * beta - 1) / 2
        assert spike_and_plateau(d, beta, d ** (beta - (1 - beta) / 4)) > 1 - 1e-4
        if beta > 1 / 3:
            assert spike_and_plateau(d, beta, d ** (exponent - 0.05)) < 1e-6
            for kappa in (0.5, 1, 2):
                alpha = spike_and_plateau(d, beta, kappa * d**exponent)
                assert alpha == pytest.approx(kappa**2 / (1 + kappa**2), rel=1e-3)
    assert spike_and_plateau(1e8, 0.5, 1e3) == pytest.approx(0.992, abs=1e-3)


def non_increasing(sequence):
    return all(later <= earlier for earlier, later in zip(sequence, sequence[1:], strict=False))


def test_lemma_16_and_that_it_needs_a_non_increasing_sequence():
    """All sequences of six integers from 0 to 3 whose last entry repeats for ever.

    Their averages tend to that entry, and a non-increasing sequence never falls below it, hence
    not below any alpha under it. Without monotony 0, 3, 3, ... is a counterexample: the soft rank
    from nearly collinear inputs behaves so.
    """
    N = 10**6
    counts = {True: 0, False: 0}
    for sequence in product(range(4), repeat=6):
        limit = sequence[-1]
        average = Fraction(sum(sequence) + (N - 6) * limit, N)
        assert abs(average - limit) <= Fraction(5 * 3, N)
        holds = min(sequence) >= average - Fraction(5 * 3, N)
        assert holds or not non_increasing(sequence)
        counts[holds] += 1
    assert counts == {True: 1300, False: 2796}


@pytest.mark.parametrize("skip", [0.3, 1.0, inf])
def test_corollary_15_soft_rank_rises_from_nearly_collinear_inputs(skip):
    """The assumption of monotony fails, and with it the bound for every finite layer.

    X has full rank 64, the first layer has rank_0.01 = 1, below (58); a dozen layers later it is
    above, and so is the average of Theorem 14.
    """
    d, tau, generator = 64, 0.01, stream(13)
    H = collinear_inputs(16, d, d, 1e-6, generator)
    assert (torch.linalg.matrix_rank(H) == d).all()
    ranks, terms = [], []
    for depth in range(1, 41):
        H = after(1, H, skip, "uniform", generator)
        ranks.append(theory.soft_rank(H, tau))
        if depth > 20:
            terms.append(theory.second_moment(H))
    bound = theory.rank_bound_theorem(d, regularity(torch.cat(terms)), tau)
    assert 2.5 < bound < 4
    assert (ranks[0] == 1).all()
    assert (ranks[12] > bound).all()
    assert skip != 1 or ranks[9].double().mean() == pytest.approx(5.75, abs=0.1)
    assert torch.stack(ranks).double().mean() > bound


@pytest.mark.parametrize("skip", [0.1, 1.0])
def test_corollary_15_soft_rank_rises_as_often_as_it_falls(skip):
    """Under the invariant law too: a non-increasing rank_tau would be constant there."""
    generator = stream(14)
    H = after(300, normal(32, 16, 16), skip, "uniform", generator)
    rises, falls = 0, 0
    rank = theory.soft_rank(H, 0.5)
    for _ in range(100):
        H = after(1, H, skip, "uniform", generator)
        before, rank = rank, theory.soft_rank(H, 0.5)
        rises += (rank > before).sum().item()
        falls += (rank < before).sum().item()
    assert 0.05 < rises / 3200 < 0.3
    assert rises / falls == pytest.approx(1, abs=0.15)


def test_example_17_swapping_the_axes_keeps_their_union():
    """T = [0 1; 1 0] maps V_1 to V_2 and back: not strongly irreducible (Definition 6).

    Nor is it contracting (Definition 4), so that neither assumption of Lemma 18 holds: T^n / |T^n|
    keeps rank two. A Gaussian matrix leaves the union.
    """
    T = torch.tensor([[0.0, 1], [1, 0]], dtype=torch.float64)
    v1, v2 = torch.tensor([[0.0, 1], [1, 0]], dtype=torch.float64)
    for scale in (-2.0, 0.5, 3.0):
        assert torch.equal(scale * T @ v1, scale * v2)
        assert torch.equal(scale * T @ v2, scale * v1)
    for n in range(1, 9):
        assert torch.linalg.matrix_rank(torch.linalg.matrix_power(T, n)) == 2
    W = normal(2, 2)
    for v in (v1, v2):
        assert (W @ v).abs().min() > 0.1


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("skip", [0.1, inf])
def test_theorem_2_at_every_threshold(tau, skip):
    """(58) for tau = .1, .5, .9: the mean soft rank is above both forms of the bound.

    The nearer tau is to one, the less the bound says: at d = 32 it is 1.7, .53 and .02 where the
    soft rank is 8.3, 7.1 and 6.4.
    """
    for d in (8, 32):
        generator = stream(15)
        H = after(400, normal(32, d, d), skip, "uniform", generator)
        ranks, terms = [], []
        for _ in range(60):
            H = after(1, H, skip, "uniform", generator)
            ranks.append(theory.soft_rank(H, tau).double().mean().item())
            terms.append(theory.second_moment(H))
        alpha, rank = regularity(torch.cat(terms)), sum(ranks) / len(ranks)
        assert rank > 2 * theory.rank_bound_theorem(d, alpha, tau, as_printed=False)
        assert rank > sqrt(d) * (0.75 if tau == 0.9 else 0.85)


def log_ratio(skip, layers):
    """Median over 32 chains of log(sigma_2 / sigma_1) of the product of so many layers."""
    chains = collapse(32, 16, skip, "gaussian", layers, stream(16), torch.device("cpu"))
    *_, (ratio, _) = chains
    return ratio.median().item()


def test_section_3_2_gamma_of_order_one_over_depth_keeps_the_rank():
    """ "Unless one is willing to incorporate a depth dependent down-scaling": gamma = c / L.

    At a constant gamma log(sigma_2 / sigma_1) falls in proportion to L; at c / L the product tends
    to I + O(c / sqrt L), and the ratio to one.
    """
    depths = (25, 100, 400)
    constant = [log_ratio(0.3, L) for L in depths]
    assert constant[2] / constant[1] == pytest.approx(4, rel=0.5) and constant[2] < -8
    for c in (1, 4):
        scaled = [log_ratio(c / L, L) for L in depths]
        assert -1 < scaled[0] < scaled[1] < scaled[2]


@pytest.mark.parametrize("skip", [0.1, 1.0, inf])
@pytest.mark.parametrize("centred", [False, True])
def test_assumption_ii_weights_of_one_sign_collapse_the_chain(skip, centred):
    """Uniform on [0, 2 sqrt 3], of unit variance as in Definition 1 but for its mean: rank one.

    With and without centring, whatever gamma is: positive matrices contract (Perron). Zero mean
    alone, without symmetry, is enough to keep the rank.
    """
    d = 16
    for law, low, high in (("positive", 1, 1 + 1e-9), (ONE_SIDED, 2.5, 6)):
        generator = stream(17)
        H = normal(8, d, d)
        for _ in range(150):
            W = torch.rand(8, d, d, generator=generator, dtype=torch.float64) * 2 * sqrt(3)
            W = W if law == "positive" else weights(H, law, generator)
            step = W @ H if skip == inf else H + skip * W @ H
            H = theory.batch_norm(step, centred)
        r = theory.rank_bound(H).mean().item()
        assert low - 1e-9 <= r <= high


def gradients(init, normalization, depth):
    """Of 128 Gaussian inputs with random labels, medians over three networks of width 64: norm of
    the gradient of the first layer, of the last; mean |cosine| of single gradients in the last.
    init: also "glorot", Glorot weights and torch's biases, as in figure 6."""
    sizes, streams = [32, *[64] * depth, 10], [stream(r) for r in range(3)]
    known = "pytorch" if init == "glorot" else init
    weights, biases = draw(known, sizes, streams, torch.float64)
    network = MLP(weights, biases, "relu", normalization)
    if init == "glorot":
        draw_glorot(network, streams)
    x, labels = normal(3, 128, 32), torch.randint(10, (3, 128), generator=stream(1))
    logits = network.logits(x, "probe")
    hot = torch.nn.functional.one_hot(labels, 10).mT
    E = (logits.softmax(1) - hot).detach()
    H = last_hidden(network, x)
    aligned = [gradient_alignment(h.mT, e.mT).item() for h, e in zip(H, E, strict=True)]
    leaves = [network.parameters[f"W{n}"].requires_grad_() for n in (1, depth + 1)]
    losses = torch.nn.functional.cross_entropy(network.logits(x, "probe"), labels, reduction="none")
    found = torch.autograd.grad(losses.mean(-1).sum(), leaves)
    first, last = (g.flatten(1).norm(dim=1).median().item() for g in found)
    return first, last, sorted(aligned)[1]


def test_section_3_2_the_direction_is_lost_where_the_norm_is_not():
    """Vanishing norm is not what all of it is: from He's start the norm stays and the direction
    goes; as torch starts them, that of the classifier keeps its norm, while that of the first layer
    vanishes, too (5e-14 of 32 layers); with batch norm the direction stays, and the norm of the
    first layer explodes.
    """
    first, last, aligned = gradients("he", "none", 32)
    shallow = gradients("he", "none", 1)
    assert shallow[2] < 0.4 and aligned > 0.97
    assert first > 0.3 * shallow[0] and last > 0.3 * shallow[1]
    eight, deep = gradients("pytorch", "none", 8), gradients("pytorch", "none", 32)
    assert eight[2] > 0.999 and deep[2] > 0.999
    assert 0.5 < deep[1] / eight[1] < 2 and deep[0] < 1e-9 * eight[0]
    figure_6 = gradients("glorot", "none", 30)
    assert figure_6[2] > 0.999 and figure_6[0] < 0.01 * figure_6[1]
    norm = gradients("pytorch", "batch", 32)
    assert norm[2] < 0.4 and norm[0] > 10 * gradients("pytorch", "batch", 1)[0]


def test_gradients_grow_as_the_variance_of_relus_says():
    """One wide layer between two ReLUs: automatic differentiation against the formula."""
    d, N = 1024, 512
    H = normal(d, N).relu().requires_grad_()
    W = normal(d, d, seed=1) * (2 / d) ** 0.5
    after = theory.batch_norm(W @ H, centred=True).relu()
    G = normal(d, N, seed=2)
    (before,) = torch.autograd.grad(after, H, G)
    assert (before.norm() / G.norm()).item() == pytest.approx(theory.RELU_GRADIENT_GROWTH, rel=0.01)


def test_layer_norm_keeps_the_rank_after_the_relu_only():
    """Joudaki, Daneshmand, Bach 2023: after the activation it subtracts what all samples share."""

    def deep(layer):
        """Return r after 100 layers, from nearly parallel inputs."""
        H = normal(1, 128, 1) + 0.3 * normal(1, 128, 16, seed=1)
        for n in range(100):
            H = layer(normal(1, 128, 128, seed=n) @ H)
        return theory.rank_bound(H).item()

    assert deep(lambda Z: layer_norm(Z.relu())) > 12
    assert deep(lambda Z: layer_norm(Z).relu()) < 1.1
    assert deep(lambda Z: rms_norm(Z.relu())) < 1.1


def attention(X, seed):
    """Return one head of self-attention with Gaussian weights; the columns of X are tokens."""
    Q, K, V = (W @ X / len(X) ** 0.5 for W in normal(3, len(X), len(X), seed=seed))
    return V @ (K.mT @ Q / len(X) ** 0.5).softmax(0)


def test_attention_loses_the_rank_with_and_without_residual_branches():
    norm = lambda X: layer_norm(X[None])[0]  # noqa: E731
    layers = {
        "attention alone": (8, attention),
        "residual": (64, lambda X, n: X + attention(X, n)),
        "residual, layer norm after the sum": (64, lambda X, n: norm(X + attention(X, n))),
        "residual, layer norm before attention": (256, lambda X, n: X + attention(norm(X), n)),
    }
    for name, (depth, layer) in layers.items():
        X = normal(32, 32, seed=1000)
        assert theory.rank_bound(X) > 14
        for n in range(depth):
            X = layer(X, n)
        assert theory.rank_bound(X) < 1.15, name


def test_orthogonality_gap_is_a_function_of_r():
    H = normal(7, 5)
    direct = (H.mT @ H / H.square().sum() - torch.eye(5, dtype=H.dtype) / 5).norm().item()
    assert theory.orthogonality_gap(theory.rank_bound(H).item(), 5) == pytest.approx(direct)
    assert theory.orthogonality_gap(5.0 + 1e-12, 5) == 0


@pytest.mark.parametrize("rank", [1, 2])
def test_proposition_19_gradients_of_the_last_layer_are_parallel_at_rank_one(rank):
    """(96): those of two images differ by the factor c of their columns and by their errors; at
    rank two they are not parallel."""
    left, right = normal(16, rank), normal(rank, 2, seed=1)
    H, W = left @ right, normal(10, 16, seed=2).requires_grad_()
    losses = torch.nn.functional.cross_entropy((W @ H).mT, torch.tensor([3, 7]), reduction="none")
    one, other = (torch.autograd.grad(loss, W, retain_graph=True)[0] for loss in losses)
    errors = (W @ H).softmax(0).detach() - torch.eye(10, dtype=H.dtype)[:, [3, 7]]
    factor = (right[0, 0] / right[0, 1]) * errors[:, 0] / errors[:, 1]
    assert torch.allclose(one, factor[:, None] * other, atol=1e-12) == (rank == 1)
    cosines = torch.cosine_similarity(one, other, dim=1).abs()
    assert (cosines.min() > 1 - 1e-12) == (rank == 1)


def test_section_3_1_whitening_keeps_the_full_rank():
    """With M^(-1/2) in place of diag(M)^(-1/2) all singular values are sqrt(N), at every depth."""
    d, N, generator = 16, 24, stream(18)
    white = normalized = normal(4, d, N)
    for _ in range(100):
        W = torch.randn(4, d, d, generator=generator, dtype=torch.float64)
        Z = W @ white
        values, vectors = torch.linalg.eigh(theory.second_moment(Z))
        white = vectors @ (vectors.mT @ Z / values.sqrt()[..., None])
        normalized = theory.batch_norm(W @ normalized)
        assert (torch.linalg.svdvals(white) / sqrt(N) - 1).abs().max() < 1e-6
    assert (theory.soft_rank(white, 0.5) == d).all() and (theory.rank_bound(white) > 15.99).all()
    assert (theory.soft_rank(normalized, 0.5) < d / 2).all()


def block(H, width, generator):
    """The law of a block of layers of this width: what leaves it, and its mean r."""
    W = H.new_empty(len(H), width, H.shape[-2])
    H = after(100, theory.batch_norm(fill(W, "uniform", generator) @ H), inf, "uniform", generator)
    r = []
    for _ in range(60):
        H = after(1, H, inf, "uniform", generator)
        r.append(theory.rank_bound(H).mean().item())
    return H, sum(r) / len(r)


def test_appendix_e_blocks_of_falling_widths_have_the_rank_of_their_own_width():
    """64, 32, 16: each block ends where a chain of its width does."""
    generator, H = stream(18), normal(16, 64, 64)
    for width, alone in ((64, 7.2), (32, 4.9), (16, 3.3)):
        H, r = block(H, width, generator)
        assert r == pytest.approx(alone, rel=0.05)


def test_appendix_e_does_not_hold_behind_a_narrow_block():
    """A block keeps at most the rank that enters it, whatever its width: Corollary 15 asks for
    inputs of full rank, which those that leave a narrower block have not.

    Behind a block of width 4 one of width 64 has r below 4, where its own width has 7.2. What
    leaves the narrow block is written in the coordinates of its four directions, which changes no
    M: rounding would raise its rank.
    """
    generator, H = stream(19), normal(16, 64, 64)
    H, _ = block(H, 4, generator)
    U, S, _ = torch.linalg.svd(2 * H / 8, full_matrices=False)  # (16, 4, 64), now for N = 4
    H, r = block(U * S[:, None], 64, generator)
    assert torch.linalg.matrix_rank(H).max() <= 4
    assert 2 < r < 4


def test_appendix_c_rows_have_mean_zero_and_no_small_average():
    """E H_i = 0 (Lemma 4) says nothing of the average of one row over the samples.

    From Gaussian inputs that is of order 1 / sqrt N; from inputs that share a part, as images do,
    it stays a third of the row's root mean square after 300 layers, twice that: the entries of a
    row are not weakly dependent (footnote 8), since few directions of sample space live.
    """
    d = N = 32
    common = normal(64, d, 1, seed=5) + 0.1 * normal(64, d, N)
    average = {}
    for name, X in (("gaussian", normal(64, d, N)), ("common", common)):
        H = after(300, X, 1.0, "uniform", stream(20))
        assert deviations_from_zero(H.mean(dim=-1)[:, :1]).abs().item() < 4.5
        average[name] = H.mean(dim=-1).square().mean().sqrt().item()
    assert average["gaussian"] == pytest.approx(1 / sqrt(N), rel=0.1)
    assert average["common"] > 1.5 / sqrt(N)
    assert average == pytest.approx({"gaussian": 0.17, "common": 0.30}, abs=0.005)
