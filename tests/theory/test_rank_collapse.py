"""Paper B's statements as tests: formulas against definitions, theorems against simulation."""

from math import inf, sqrt

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.errors import InputError
from runner.papers.rank_collapse import theory
from runner.papers.rank_collapse.chain.engines import LAWS, fill, gaussian_inputs, unit_rows
from runner.papers.rank_collapse.chain.expansion import frobenius_step
from runner.papers.rank_collapse.chain.random_products import collapse


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


@settings(max_examples=60, deadline=None)
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


@pytest.mark.parametrize("k", [1, 2, 8, 20, 36])
def test_inertia_counts_the_eigenvalues(k):
    M = normal(500, k, 2 * k)
    M = M @ M.mT / k
    for tau in (0.0, 0.5, 1.0, 5.0):
        counted = theory.count_above(M, tau)
        assert torch.equal(counted, (torch.linalg.eigvalsh(M) >= tau).sum(dim=-1))


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
        change, _ = frobenius_step(G, skip, "gaussian", 400_000, stream())
        left[skip] = change / skip**2 - delta
    assert left[0.1] / left[0.05] == pytest.approx(4, rel=0.25)


@pytest.mark.parametrize("width", [2, 3, 16])
def test_lyapunov_gap_without_skip_has_a_closed_form(width):
    gap, error = theory.lyapunov_gap(width, inf, 200_000, stream())
    assert abs(gap - theory.lyapunov_gap_ginibre(width)) < 4 * error
    assert error < 0.01 * gap


def test_lyapunov_gap_at_width_two_in_closed_form():
    """log |w_1| - log |w_2 perpendicular|: (psi(1) - psi(1/2)) / 2 = log 2."""
    assert theory.lyapunov_gap_ginibre(2) == pytest.approx(0.6931471805599453)


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
    layers = list(collapse(64, 8, 0.5, "gaussian", 200, stream()))
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


def test_unknown_law():
    with pytest.raises(InputError, match="law=cauchy is not known.*gaussian, rademacher, uniform"):
        fill(torch.empty(2), "cauchy", stream())


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


def test_gaussian_inputs_have_full_rank():
    X = gaussian_inputs(3, 6, 9, stream(), torch.float64)
    assert torch.linalg.matrix_rank(X).tolist() == [6, 6, 6]
