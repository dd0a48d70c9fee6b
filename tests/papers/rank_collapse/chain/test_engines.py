"""The two engines of the chain: each against its definition, and one against the other."""

from math import inf

import pytest
import torch

from runner.core.errors import InputError
from runner.papers.rank_collapse import theory
from runner.papers.rank_collapse.chain.batch_means import BatchMeans, Plan, observe, sample
from runner.papers.rank_collapse.chain.engines import (
    DirectChain,
    RotatedChain,
    collinear_inputs,
    columns,
    fill,
    gaussian_inputs,
    unit_rows,
)
from runner.papers.rank_collapse.chain.lyapunov import ProbedChain, outside_range


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
    G = unit_rows(gaussian_inputs(1, 6, 4, stream(), torch.float64)).expand(200_000, 6, 4)
    chain = RotatedChain(G, torch.full((len(G),), inf), stream(1))
    product = torch.empty_like(chain.state)
    chain._draw_product(product)
    expected = (G[0].mT @ G[0]).expand(6, 4, 4)
    torch.testing.assert_close(
        torch.einsum("cij,cik->ijk", product, product) / len(G), expected, atol=0.03, rtol=0
    )
    between = torch.einsum("cj,ck->jk", product[:, 0], product[:, 1]) / len(G)
    assert between.abs().max() < 0.03


@pytest.mark.parametrize("width, skip", [(8, inf), (8, 0.5), (16, 0.1), (32, 1.0), (32, inf)])
def test_engines_agree(width, skip):
    rotated = means(make("rotated", 128, width, skip), 800)
    direct = means(make("direct", 128, width, skip, seed=1), 400)
    for name in ("soft_rank", "rank_bound", "frobenius"):
        assert_agree(rotated, direct, name)
    a, da = rotated.ratio("diagonal", "cubic")
    b, db = direct.ratio("diagonal", "cubic")
    assert abs(a - b) < 4 * (da**2 + db**2) ** 0.5


def test_precision_does_not_bias_the_mean():
    single = means(make("direct", 256, 16, inf, dtype=torch.float32), 800)
    double = means(make("direct", 256, 16, inf, seed=1), 800)
    for name in ("soft_rank", "rank_bound"):
        assert_agree(single, double, name, most=0.005)


def test_stride_does_not_bias_the_mean():
    often = means(make("rotated", 256, 16, inf), 800, stride=1)
    seldom = means(make("rotated", 256, 16, inf, seed=1), 1600, stride=16)
    for name in ("soft_rank", "rank_bound"):
        assert_agree(often, seldom, name, most=0.005)


def test_more_columns_change_nothing():
    few = means(make("rotated", 256, 32, inf), 400)
    generator = stream(1)
    inputs = gaussian_inputs(256, 32, 32, generator, torch.float64)
    all_of_them = RotatedChain(inputs, torch.full((256,), inf), generator)
    assert_agree(few, means(all_of_them, 400), "soft_rank", most=0.005)


def test_stacking_points_does_not_bias_them():
    """Chains of different gamma in one stack keep their own means."""
    generator = stream()
    skips = torch.tensor([0.1, inf], dtype=torch.float64).repeat(128)
    chain = RotatedChain(gaussian_inputs(256, 8, 8, generator, torch.float64), skips, generator)
    plan = Plan.of(1000, 256, 2, 900)
    moments = sample(chain, plan, 0.5)
    for column, skip in enumerate((0.1, inf)):
        mixed = BatchMeans(moments[:, column::2], plan.count)
        alone = means(make("rotated", 128, 8, skip, seed=2), 1000, burn_in=900)
        assert_agree(mixed, alone, "rank_bound")


def test_state_stays_normalised_and_finite():
    chain = make("rotated", 4, 64, 0.1)
    chain.repeated(2000)()
    torch.testing.assert_close(chain.state.square().sum(dim=-1), torch.ones(4, 64).double())


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
    inputs = collinear_inputs(128, 16, columns(16), 1e-12, generator)
    lifted = means(RotatedChain(inputs, torch.full((128,), inf), generator), 400)
    assert_agree(lifted, means(make("rotated", 128, 16, inf, seed=1), 400), "soft_rank")


def test_collinear_inputs_are_nearly_of_rank_one():
    sigma = torch.linalg.svdvals(collinear_inputs(5, 32, 32, 1e-3, stream()))
    assert (sigma[:, 1] / sigma[:, 0]).max() < 1e-2


def test_transverse_exponent_at_rank_one_in_closed_form():
    """From rank one, gamma = inf: the new direction is the part of z / |z_1| across sign(z_1)."""
    chain = ProbedChain(torch.ones(64, 8, 1).double(), torch.full((64,), inf), stream())
    chain.repeated(2000)()
    rates = chain.growth_rate()
    draws = 400_000
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
        chain.repeated(400)()
        rates = chain.growth_rate()
        assert (sign * rates > 0).all()


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan")])
def test_gamma_must_be_positive(bad):
    with pytest.raises(InputError, match="gamma must be positive"):
        make("direct", 2, 4, bad)


def test_autocorrelation_and_error_of_a_known_process():
    """x_{t+1} = a x_t + noise has integrated time (1 + a) / (1 - a) and that much more variance."""
    a, chains, count = 0.8, 2000, 400
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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_recorded_graph_draws_fresh_weights_and_agrees_with_the_cpu():
    generator = torch.Generator("cuda").manual_seed(0)
    inputs = gaussian_inputs(256, 16, columns(16), generator, torch.float64)
    skips = torch.full((256,), inf, device="cuda", dtype=torch.float64)
    on_gpu = means(RotatedChain(inputs, skips, generator), 800)
    assert_agree(on_gpu, means(make("rotated", 256, 16, inf), 800), "soft_rank", most=0.005)
