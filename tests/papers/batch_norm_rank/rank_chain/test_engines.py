"""The engines of the chain: each against its definition, and one against the other."""

import os
import subprocess
import sys
from math import inf
from pathlib import Path

import numba
import numpy as np
import pytest
import torch

from runner.core.errors import InputError
from runner.core.input_files import sha256_of
from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.rank_chain import kernel, lanes
from runner.papers.batch_norm_rank.rank_chain.batch_means import BatchMeans, Plan, observe, sample
from runner.papers.batch_norm_rank.rank_chain.engines import (
    ZERO_DRAW,
    DirectChain,
    RotatedChain,
    collinear_inputs,
    columns,
    fill,
    gaussian_inputs,
    unit_rows,
)
from runner.papers.batch_norm_rank.rank_chain.kernel import CompiledChains
from runner.papers.batch_norm_rank.rank_chain.lyapunov import ProbedChain, outside_range


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def make(engine, chains, width, skip, seed=0, dtype=torch.float64, law="gaussian"):
    generator = stream(seed)
    kept = columns(width) if engine == "rotated" else width
    inputs = gaussian_inputs(chains, width, kept, generator, dtype)
    skips = torch.full((chains,), skip, dtype=dtype)
    if engine == "rotated":
        return RotatedChain(inputs, skips, generator)
    return DirectChain(inputs, skips, generator, law)


def means(chain, layers, stride=2, burn_in=200):
    plan = Plan.of(layers, len(chain.state), stride, burn_in)
    return BatchMeans(sample(chain, plan, 0.5), plan.count)


def compiled(width, skip, plan, seeds, law="gaussian"):
    kept = columns(width) if law == "gaussian" else width
    moments = [
        torch.from_numpy(CompiledChains(width, kept, skip, seed, law).sample(plan, 0.5))
        for seed in seeds
    ]
    return BatchMeans(torch.cat(moments, dim=2).flatten(1, 2), plan.count)


def assert_agree(a, b, name, most=0.02):
    (x, dx), (y, dy) = a.mean(name), b.mean(name)
    error = (dx**2 + dy**2) ** 0.5
    assert error < most * x, "the test could not fail"
    assert abs(x - y) < 4 * error, f"{name}: {x:.4f} ± {dx:.4f} and {y:.4f} ± {dy:.4f}"


@pytest.mark.parametrize("law", ["gaussian", "uniform", "rademacher"])
@pytest.mark.parametrize("centred", [False, True])
def test_direct_chain_is_equation_1(law, centred):
    """H + gamma W H, normalised, with the same W; the scale of gamma does not matter for BN."""
    skips = torch.tensor([0.3, 1.0, inf], dtype=torch.float64)
    X = gaussian_inputs(3, 5, 8, stream(), torch.float64)
    chain = DirectChain(X, skips, stream(1), law, centred)
    generator = stream(1)
    H = theory.batch_norm(X, centred)
    for _ in range(3):
        W = fill(torch.empty(3, 5, 5, dtype=torch.float64), law, generator)
        residual = H + skips.clamp(max=1)[:, None, None] * W @ H
        residual[2] = W[2] @ H[2]
        H = theory.batch_norm(residual, centred)
        chain.step()
        torch.testing.assert_close(chain.state * 8**0.5, H)


def test_rotated_product_has_the_law_of_the_direct_one():
    """Covariance of (W G)_{ij}, (W G)_{ik}: (G^T G)_{jk}, independent between rows."""
    G = unit_rows(gaussian_inputs(1, 6, 4, stream(), torch.float64)).expand(100_000, 6, 4)
    chain = RotatedChain(G, torch.full((len(G),), inf), stream(1))
    product = chain._product()
    expected = (G[0].mT @ G[0]).expand(6, 4, 4)
    torch.testing.assert_close(
        torch.einsum("cij,cik->ijk", product, product) / len(G), expected, atol=0.03, rtol=0
    )
    between = torch.einsum("cj,ck->jk", product[:, 0], product[:, 1]) / len(G)
    assert between.abs().max() < 0.03


@pytest.mark.parametrize("width, skip", [(8, inf), (8, 0.5)])
def test_engines_agree(width, skip):
    direct = means(make("direct", 128, width, skip, seed=1), 400)
    plan = Plan.of(800, 128, 2, 200)
    for fast in (
        means(make("rotated", 128, width, skip), 800),
        compiled(width, skip, plan, range(16)),
    ):
        for name in ("soft_rank", "rank_bound", "frobenius"):
            assert_agree(fast, direct, name)
        a, da = fast.ratio("diagonal", "cubic")
        b, db = direct.ratio("diagonal", "cubic")
        assert abs(a - b) < 4 * (da**2 + db**2) ** 0.5


@pytest.mark.parametrize("law, width, skip", [("uniform", 8, inf), ("rademacher", 9, 0.5)])
def test_compiled_chains_of_other_laws_agree_with_the_direct_ones(law, width, skip):
    direct = means(make("direct", 128, width, skip, seed=1, law=law), 400)
    fast = compiled(width, skip, Plan.of(800, 128, 2, 200), range(16), law)
    for name in ("soft_rank", "rank_bound", "frobenius"):
        assert_agree(fast, direct, name)


@numba.njit
def draw_weights(stream, law, W):
    kernel.draw_weights(stream, law, W.shape[1], W)


@pytest.mark.parametrize(
    "law, limits", [("uniform", (-3, 3)), ("asymmetric", (0, 12)), ("rademacher", (-1, 1))]
)
def test_compiled_weights_have_their_law(law, limits):
    W = np.zeros((2, 2000, 8))
    draw_weights(CompiledChains(2, 2, inf, 0).chains.stream, kernel.LAWS.index(law), W)
    expected = fill(torch.empty(2, 2000, 8, dtype=torch.float64), law, stream()).numpy()
    for moment in (1, 2, 4):
        assert abs((W**moment).mean() - (expected**moment).mean()) < 0.05 * 3**moment
    for values in (W, expected):
        smallest, largest = values.min(), values.max()
        squares = smallest * abs(smallest), largest * abs(largest)
        assert squares == pytest.approx(limits, abs=0.05)
    assert abs((W[0, :-1] * W[0, 1:]).mean() - W.mean() ** 2) < 0.05


@pytest.mark.parametrize("law", ["uniform", "rademacher", "asymmetric"])
@pytest.mark.parametrize("skip", [0.5, inf])
def test_a_compiled_layer_of_drawn_weights_is_equation_1(law, skip):
    chains = CompiledChains(7, 5, skip, 0, law)
    G, stream = chains.state, chains.chains.stream.copy()
    W, H = np.zeros((2, 7, 8)), np.zeros_like(G)
    for i in range(0, 7, 2):
        draw_weights(stream, chains.law, W)
        for row in range(i, min(i + 2, 7)):
            H[:, row] = G[:, row] / skip + np.einsum("jc,cjk->ck", W[row - i], G)
    H /= np.linalg.norm(H, axis=-1, keepdims=True)
    chains.sample(Plan(0, 1, 1, 1), 0.5)
    np.testing.assert_allclose(chains.state, H, rtol=1e-12, atol=1e-14)


def test_rows_of_one_number_are_signs_and_rows_of_zeros_end_a_chain_of_signs():
    continuous = CompiledChains(5, 1, inf, 0, "uniform")
    continuous.sample(Plan(0, 1, 1, 50), 0.5)
    np.testing.assert_allclose(np.abs(continuous.state), 1, rtol=1e-15)
    signs = CompiledChains(2, 1, inf, 0, "rademacher")  # 1 + 1 or 1 - 1
    moments = signs.sample(Plan(0, 1, 1, 50), 0.5)
    assert np.isnan(moments[0]).all()


@pytest.mark.parametrize("width", [2, 11, 40])
@pytest.mark.parametrize("skip", [0.1, inf])
def test_compiled_observables_are_those_of_torch(width, skip):
    chains = CompiledChains(width, columns(width), skip, 0)
    for _ in range(5):
        values = chains.sample(Plan(20, 1, 1, 1), 0.5)[0, 0]
        expected = observe(torch.from_numpy(chains.state), 0.5).numpy()
        np.testing.assert_allclose(values, expected, rtol=2e-15, atol=0)


def test_few_columns_stay_few():
    """Fewer samples than features, an odd number: what fills them up to even stays zero."""
    chains = CompiledChains(9, 3, inf, 0)
    moments = chains.sample(Plan(200, 1, 1, 1), 0.5)
    assert chains.state.shape == (8, 9, 3)
    assert not chains.chains.G[9:].any() and not chains.chains.G[:, 3:].any()
    np.testing.assert_allclose(np.square(chains.state).sum(axis=-1), 1, rtol=1e-15)
    assert (moments[0, 0, :, 1] <= 3).all()


@numba.njit
def draw(stream, Z):
    kernel.draw_normals(stream, Z)


@pytest.mark.parametrize("skip", [0.3, inf])
def test_a_compiled_layer_is_that_of_the_rotated_chain(skip, monkeypatch):
    chains = CompiledChains(7, 5, skip, 0)
    G, stream = torch.from_numpy(chains.state), chains.chains.stream.copy()
    Z = np.zeros((8, 6, 8))
    draw(stream, Z)
    Z = torch.from_numpy(np.moveaxis(Z[:7, :5], -1, 0).copy())
    rotated = RotatedChain(G, torch.full((8,), skip, dtype=G.dtype), torch.Generator())
    monkeypatch.setattr(rotated, "_normals", lambda: Z)
    rotated.step()
    chains.sample(Plan(0, 1, 1, 1), 0.5)
    np.testing.assert_allclose(chains.state, rotated.state.numpy(), rtol=0, atol=1e-12)


def reference_words(state):
    """xoshiro128++ as published, one lane."""
    mask = 2**32 - 1
    rotl = lambda x, k: (x << k | x >> (32 - k)) & mask  # noqa: E731
    s = [int(word) for word in state]
    while True:
        yield (rotl((s[0] + s[3]) & mask, 7) + s[0]) & mask
        t = s[1] << 9 & mask
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 11)


def test_normals_are_box_muller_of_xoshiro():
    state = np.random.SeedSequence(0).generate_state(32, np.uint32).reshape(4, 1, 8)
    Z = np.zeros((100, 4, 8))
    draw(state.copy(), Z)
    for lane in (0, 5):
        words = reference_words(state[:, 0, lane])
        a, b = np.array([next(words) for _ in range(400)], dtype=np.int64).reshape(-1, 2).T
        radius = np.sqrt(-2 * np.log(((a >> 1) + 0.5) / 2**31))
        angle = 2 * np.pi * np.where(b < 2**31, b, b - 2**32) / 2**32
        expected = -radius * np.exp(-1j * angle)  # the sign of the cosine does not matter
        found = Z[:, :, lane].reshape(-1, 2)
        np.testing.assert_allclose(found[:, 0], expected.real, rtol=0, atol=2e-6)
        np.testing.assert_allclose(found[:, 1], expected.imag, rtol=0, atol=2e-6)


def test_calls_of_compiled_code_may_be_cut_anywhere(monkeypatch):
    """So that a run can be stopped within a moment, without changing its numbers."""
    plan = Plan(30, 2, 3, 50)
    whole = CompiledChains(12, 11, inf, 0).sample(plan, 0.5)
    monkeypatch.setattr(kernel, "MULTIPLICATIONS_OF_A_CALL", 30_000)
    strides = []
    cut = CompiledChains(12, 11, inf, 0).sample(plan, 0.5, strides.append)
    assert sum(strides) == 15 + 150 and len(strides) > 30
    assert cut.tobytes() == whole.tobytes()


def test_numbas_cache_of_the_kernel_is_void_after_a_change_of_its_vectors():
    """numba watches the file of a function alone. Write the new digits into `kernel.py`."""
    assert sha256_of(Path(lanes.__file__)).startswith(kernel.OF_LANES)


@pytest.mark.long
def test_bytes_of_compiled_code_do_not_depend_on_the_processor(tmp_path):
    """The same without AVX and fused multiplication."""
    program = (
        "from runner.papers.batch_norm_rank.rank_chain.batch_means import Plan\n"
        "from runner.papers.batch_norm_rank.rank_chain.kernel import CompiledChains\n"
        "print(CompiledChains(11, 11, 0.5, 7).sample(Plan(100, 2, 1, 50), 0.5).tobytes().hex())"
    )
    plain = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=plain, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    here = CompiledChains(11, 11, 0.5, 7).sample(Plan(100, 2, 1, 50), 0.5)
    assert done.stdout.strip() == here.tobytes().hex()


def test_observables_against_the_paper_s_formulas():
    H = theory.batch_norm(gaussian_inputs(7, 9, 12, stream(), torch.float64))
    values = observe(H / 12**0.5, 0.5)
    M = theory.second_moment(H)
    expected = [
        theory.soft_rank(H, 0.5).double(),
        theory.rank_bound(H),
        M.square().sum(dim=(-2, -1)),
        *theory.regularity_terms(M),
    ]
    torch.testing.assert_close(values, torch.stack(expected, dim=-1))


def test_a_direction_that_sank_to_rounding_rises_again():
    """The floor reflects: from almost rank one the chain reaches the law of full rank."""
    generator = stream()
    inputs = collinear_inputs(128, 8, columns(8), 1e-12, generator)
    lifted = means(RotatedChain(inputs, torch.full((128,), inf), generator), 400)
    assert_agree(lifted, means(make("rotated", 128, 8, inf, seed=1), 400), "soft_rank")


def test_transverse_exponent_at_rank_one_in_closed_form():
    """From rank one, gamma = inf: the new direction is the part of z / |z_1| across sign(z_1)."""
    chain = ProbedChain(torch.ones(64, 8, 1).double(), torch.full((64,), inf), stream())
    chain.advance(1000)
    rates = chain.growth_rate()
    draws = 100_000
    z = torch.randn(2, draws, 8, generator=stream(1), dtype=torch.float64)
    ratio = z[0] / (8**0.5 * z[1].abs())  # the norm of W G is sqrt(8) |z_1|: G^T G = 8
    signs = z[1].sign()[..., None] / 8**0.5
    expected = outside_range(ratio[..., None], signs).norm(dim=(1, 2)).log()
    error = (rates.var() / len(rates) + expected.var() / draws).sqrt()
    assert abs(rates.mean() - expected.mean()) < 4 * error
    assert error < 0.01 * expected.mean()


def test_probe_grows_below_the_live_directions_and_dies_above():
    for rank, sign in ((3, 1), (8, -1)):
        inputs = gaussian_inputs(32, 16, rank, stream(), torch.float64)
        chain = ProbedChain(inputs, torch.full((32,), inf), stream(1))
        chain.advance(400)
        rates = chain.growth_rate()
        assert (sign * rates > 0).all()


def test_gamma_must_be_positive():
    for skip in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="gamma must be positive"):
            make("direct", 2, 4, skip)


def test_autocorrelation_and_error_of_a_known_process():
    """x_{t+1} = a x_t + noise has integrated time (1 + a) / (1 - a) and that much more variance."""
    a, chains, count = 0.8, 1000, 400
    x = torch.randn(chains, generator=stream(), dtype=torch.float64) / (1 - a**2) ** 0.5
    sums = torch.zeros(2, chains, 5, dtype=torch.float64)
    generator = stream(1)
    for _ in range(count):
        x = a * x + torch.randn(chains, generator=generator, dtype=torch.float64)
        sums[0] += x[:, None]
        sums[1] += x[:, None] ** 2
    batches = BatchMeans(sums / count, count)
    assert batches.autocorrelation("soft_rank") == pytest.approx(9, rel=0.12)
    mean, error = batches.mean("soft_rank")
    assert error == pytest.approx(1 / (1 - a) / (chains * count) ** 0.5, rel=0.1)
    assert abs(mean) < 4 * error


def test_a_chain_of_rank_one_outlives_a_draw_of_zero(monkeypatch):
    """float32 draws an exact zero once in 2^24 times: here in step 24 (seed 12)."""
    generator = stream(12)
    inputs = gaussian_inputs(64, 256, 1, generator, torch.float64)
    chain = RotatedChain(inputs, torch.full((64,), inf), generator)
    drawn, draw = [], chain._normals
    monkeypatch.setattr(chain, "_normals", lambda: drawn.append(draw()) or drawn[-1])
    for _ in range(30):
        chain.step()
        assert (chain.state.abs() == 1).all()
        assert (observe(chain.state, 0.5)[:, :2] == 1).all()
    assert (torch.stack(drawn) == 0).any(), "the test could not fail"


def test_the_size_of_a_draw_of_zero_is_that_of_the_numbers_it_was_rounded_from():
    """`sqrt(-2 log(1 - u)) cos(angle)` for u below 2^-24: the exponent averages its logarithm."""
    u, angle = torch.rand(2, 10**6, generator=stream(), dtype=torch.float64)
    radius = (-2 * torch.log1p(-(2.0**-24) * u)).sqrt()
    typical = (radius * (2 * torch.pi * angle).cos().abs()).log().mean()
    assert abs(typical - np.log(ZERO_DRAW)) < 0.2


@pytest.mark.parametrize("law", ["gaussian", "uniform"])
def test_a_direct_chain_of_one_sample_outlives_a_sum_of_zero(law):
    generator = stream()
    inputs = gaussian_inputs(2, 2, 1, generator, torch.float32)
    chain = DirectChain(inputs, torch.full((2,), inf), generator, law)
    chain._product = lambda: torch.zeros_like(chain.state)
    chain.step()
    assert (chain.state == 1).all()


def test_one_sample_is_never_drawn_as_zero():
    X = gaussian_inputs(2**12, 2**12, 1, stream(2), torch.float32)
    plain = torch.empty_like(X).normal_(generator=stream(2))
    assert (plain == 0).any(), "the test could not fail"
    assert torch.equal(X, plain.where(plain != 0, ZERO_DRAW))


@pytest.mark.parametrize("kept, skip", [(1, inf), (1, 0.5), (4, inf)])
def test_a_compiled_chain_outlives_a_radius_of_zero(kept, skip):
    """The radius of two normals is zero where the word that they come from is all ones."""
    chains = CompiledChains(5, kept, skip, 0)
    chains.chains.stream[0], chains.chains.stream[3] = 0, 2**32 - 1
    values = chains.sample(Plan(0, 1, 1, 1), 0.5)
    np.testing.assert_allclose(np.square(chains.state).sum(axis=-1), 1, rtol=1e-15)
    assert np.isfinite(values).all()
    if kept == 1:
        assert (values[0, 0, :, :2] == 1).all()


def test_nan_is_counted_by_no_engine():
    chains = CompiledChains(5, 4, inf, 0)
    chains.chains.G[0, 0, 3] = chains.chains.S[0, 0, 3] = np.nan
    values = chains.sample(Plan(0, 1, 1, 1), 0.5)[0, 0]
    assert np.isnan(values).any(axis=1).tolist() == [lane == 3 for lane in range(8)]
    assert np.isnan(values[3]).all()
    seen = observe(torch.from_numpy(chains.state), 0.5)
    assert torch.equal(seen.isnan(), torch.from_numpy(np.isnan(values)))


def test_errors_of_nan_are_nan():
    moments = torch.ones(2, 4, 5, dtype=torch.float64)
    moments[:, 2] = torch.nan
    means = BatchMeans(moments, 10)
    numbers = [*means.mean("soft_rank"), *means.ratio("diagonal", "cubic")]
    numbers += [means.deviation("soft_rank"), means.autocorrelation("soft_rank")]
    assert np.isnan(numbers).all()
