"""Study `rank_chain`: depth as a Markov chain (paper B, Sections 3.1 and 3.2, Appendices E and F).

The hidden representations of a linear network, H_{l+1} = BN(H_l + gamma W_l H_l) (Eq. 1), form a
Markov chain in l. `measure` selects what is measured:

- `average`: ranks, norms and regularity averaged over depth (Figures 3a, 8, 9): `metrics.csv`;
- `spectrum`: singular values by layer from nearly collinear inputs (Figure 3b): `spectrum.csv`;
- `product`: the same network without normalization (Eq. 6, Lemma 3): `products.csv`;
- `expansion`: the change of ||M||_F^2 over one layer against Lemma 7: `expansions.csv`;
- `input_rank`: the limit of inputs of lower rank, and its stability: `input_ranks.csv`.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from math import inf, isinf, nan

import torch
from jaxtyping import Float
from torch import Tensor

from runner.core.choices import lookup
from runner.core.studies import Context, Row
from runner.networks.precision import torch_dtype
from runner.networks.spectra import svdvals
from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.rank_chain import authors, batch_means, engines
from runner.papers.batch_norm_rank.rank_chain.batch_means import tell_nan
from runner.papers.batch_norm_rank.rank_chain.config import EVERY, RankChain
from runner.papers.batch_norm_rank.rank_chain.expansion import frobenius_step
from runner.papers.batch_norm_rank.rank_chain.lyapunov import ProbedChain
from runner.papers.batch_norm_rank.rank_chain.random_products import collapse
from runner.papers.batch_norm_rank.rank_chain.rows import (
    ChainAverage,
    InputRank,
    NormExpansion,
    ProductLayer,
    SingularValue,
)
from runner.papers.batch_norm_rank.rank_chain.workers import average, plan_of

TOP_SINGULAR_VALUES = 10
"""Number of singular values in Figure 3b."""

GAP_NUMBERS = 4_000_000
"""Number of random numbers for the expected rate of Lemma 3.

With so many, the expected rate is more precise than the measured one.
"""


def run(config: RankChain, context: Context) -> Iterator[Row]:
    """Yield the rows of the measurement that the parameter `measure` selects.

    Raises InputError for an unknown measurement or protocol.
    """
    if (config.measure, config.protocol) == ("average", "text"):
        yield from averages(config, context)
        return
    measure = lookup("measure", config.measure, lookup("protocol", config.protocol, PROTOCOLS))
    points: list[tuple] = list(product(config.widths, config.skips))
    if config.measure == "input_rank":
        points = [(*point, rank) for point in points for rank in input_ranks_of(config, point[0])]
    layers = [work(config, *point) for point in points]
    done = int(context.restored["points"]) if context.restored else 0
    unit = "layers and draws" if config.measure == "expansion" else "layers"
    with context.progress(sum(layers), "measuring", done=sum(layers[:done]), unit=unit) as bar:
        for number, point in enumerate(points[done:], done + 1):
            tick = partial(bar.update, width=point[0], gamma=point[1])
            yield from measure(config, *point, context.device, tick)
            context.checkpoint(lambda number=number: {"points": torch.tensor(number)})


def work(config: RankChain, width: int, skip: float, rank: int = 0) -> int:
    """Return the number of layers that a point computes, as the progress bar counts them.

    A point is a width, a gamma (`skip`), and for `input_rank` a rank of the inputs. For
    `expansion`, random draws are counted, too.
    """
    if config.measure == "expansion":
        return config.burn_in_of(width, inf) + config.chains * config.draws
    if config.measure == "input_rank":
        return config.burn_in_of(width, skip) + plan_of(config, width, burn_in=0).layers
    return config.layers


def averages(config: RankChain, context: Context) -> Iterator[ChainAverage]:
    """Yield one row for each width and gamma, with averages over depth."""
    for width, skip, plan, moments in average(config, context):
        means, columns = batch_means.BatchMeans(moments, plan.count), {}
        for name in ("soft_rank", "rank_bound", "frobenius"):
            columns[name], columns[f"{name}_se"] = means.mean(name)
        for name in ("soft_rank", "rank_bound"):
            columns[f"{name}_sd"] = means.deviation(name)
        columns["regularity"], columns["regularity_se"] = means.ratio("diagonal", "cubic")
        columns["autocorrelation"] = plan.stride * means.autocorrelation("soft_rank")
        layers = plan.layers * config.chains
        yield ChainAverage(width=width, skip=skip, law=config.law, layers=layers, **columns)


Tick = Callable[[int], None]
"""Function that is called with the number of layers (or draws) done."""


def spectra(
    config: RankChain, width: int, skip: float, device: torch.device, tick: Tick
) -> Iterator[SingularValue]:
    """Yield the largest singular values at layers 0 to `layers`, from nearly collinear inputs.

    There is a row for each of the ten largest values, layer and network. skip: gamma. tick: called
    with the number of layers done.
    """
    stream = config.stream(0, f"spectrum d={width} gamma={skip}")
    samples = config.samples_of(width)
    inputs = engines.collinear_inputs(config.chains, width, samples, config.input_noise, stream)
    inputs = inputs.to(device, torch_dtype(config.dtype))
    chain = engines.DirectChain(inputs, skip, stream, config.law, config.centred)
    for layer in range(config.layers + 1):
        sigma = svdvals(chain.state)
        yield from _largest(width, skip, layer, sigma)
        chain.step()
        tick(1 if layer else 0)
    tell_nan(sigma, f"d={width} gamma={skip}")


def authors_average(
    config: RankChain, width: int, skip: float, device: torch.device, tick: Tick
) -> Iterator[ChainAverage]:
    """Yield one row with the averages of figure 3a, as the authors' code computes them.

    The column `soft_rank` has the authors' rank, the mean of the two numbers of `authors.counted`.
    skip: gamma. tick: called with the number of layers done, over all chains.
    """
    stream = config.stream(0, f"M d={width} gamma={skip}")
    start = torch.eye(width, dtype=torch.float64, device=device).expand(config.chains, -1, -1)
    chain, counts, norms = authors.layers(start, skip, stream), [], []
    for layer in range(1, config.layers_of_chain() + 1):
        M = next(chain)
        if layer % EVERY == 0:
            counts.append(authors.counted(M))
            norms.append(M.square().sum((-2, -1)))
        tick(config.chains)
    rank, norm = torch.cat(counts).double(), torch.stack(norms)
    columns = dict.fromkeys(("regularity", "regularity_se", "autocorrelation"), nan)
    measured = {"soft_rank": rank, "rank_bound": width**2 / norm, "frobenius": norm}
    for name, values in measured.items():
        columns[name], columns[f"{name}_se"] = batch_means.mean_and_error(values.mean(0).tolist())
    for name in ("soft_rank", "rank_bound"):
        columns[f"{name}_sd"] = float(measured[name].std(correction=0))
    yield ChainAverage(width, skip, config.law, layers=layer * config.chains, **columns)


def authors_spectra(
    config: RankChain, width: int, skip: float, device: torch.device, tick: Tick
) -> Iterator[SingularValue]:
    """Yield the largest singular values by layer, as the authors' code for figure 3b computes them.

    They are the square roots of the largest eigenvalues of M = H H^T. skip: gamma. tick: called
    with the number of layers done.
    """
    stream = config.stream(0, f"M d={width} gamma={skip}")
    start = authors.nearly_constant(config.chains, width, stream).to(device)
    chain = authors.layers(start, skip, stream)
    for layer in range(1, config.layers + 1):
        yield from _largest(width, skip, layer, svdvals(next(chain)).sqrt())
        tick(1)


def _largest(
    width: int, skip: float, layer: int, sigma: Float[Tensor, "chains _"]
) -> Iterator[SingularValue]:
    for replicate, values in enumerate(sigma[:, :TOP_SINGULAR_VALUES].tolist()):
        for index, value in enumerate(values, start=1):
            yield SingularValue(width, skip, layer, replicate, index, value)


def products(
    config: RankChain, width: int, skip: float, device: torch.device, tick: Tick
) -> Iterator[ProductLayer]:
    """Yield the ratio of the top two singular values without normalization, at about 200 layers.

    skip: gamma. tick: called with the number of layers done. Raises InputError for an unknown
    distribution.
    """
    stream = config.stream(0, f"product d={width} gamma={skip} {config.law}")
    gap, gap_se = _lyapunov_gap(config, width, skip)
    stride = config.stride or max(1, config.layers // 200)
    layers = collapse(config.chains, width, skip, config.law, config.layers, stream, device)
    for layer, (log_ratio, step_length) in enumerate(layers, start=1):
        tick(1)
        if layer % stride and layer < config.layers:
            continue
        pairs = zip(log_ratio.tolist(), step_length.tolist(), strict=True)
        for replicate, (ratio, length) in enumerate(pairs):
            key = width, skip, config.law, replicate, layer
            yield ProductLayer(*key, ratio, length, gap, gap_se)
    tell_nan(step_length, f"d={width} gamma={skip}")


def _lyapunov_gap(config: RankChain, width: int, skip: float) -> tuple[float, float]:
    """Return `lambda_1 - lambda_2` for Gaussian weights and its standard error (0 if exact)."""
    if isinf(skip):
        return theory.lyapunov_gap_ginibre(width), 0.0
    stream = config.stream(0, f"gap d={width} gamma={skip}")
    return theory.lyapunov_gap(width, skip, GAP_NUMBERS // width, stream)


def expansions(
    config: RankChain, width: int, skip: float, device: torch.device, tick: Tick
) -> Iterator[NormExpansion]:
    """Yield the mean change of ||M||_F^2 over a layer, for one matrix M of each chain.

    The matrices are from the invariant distribution at gamma = inf. Matrices and weights are the
    same for every gamma. The remainder of Lemma 7 is therefore measured more precisely than each
    change alone.

    skip: gamma of the measured layer. tick: called with the number of layers or draws done.
    """
    stream, count = config.stream(0, f"invariant law d={width}"), engines.columns(width)
    inputs = engines.gaussian_inputs(config.chains, width, count, stream, torch.float64).to(device)
    chain = engines.RotatedChain(inputs, inf, stream)
    chain.advance(config.burn_in_of(width, inf), tick)
    tell_nan(chain.state, f"d={width} gamma={skip}")
    for replicate, G in enumerate(chain.state):
        weights = config.stream(replicate, f"expansion d={width}")
        change, error = frobenius_step(G, skip, config.law, config.draws, weights, tick)
        predicted, point = theory.frobenius_change(G @ G.mT).item(), (width, skip, config.law)
        yield NormExpansion(*point, replicate, change / skip**2, error / skip**2, predicted)


def input_ranks(
    config: RankChain, width: int, skip: float, rank: int, device: torch.device, tick: Tick
) -> Iterator[InputRank]:
    """Yield one row for inputs of one rank: averages over depth, and growth of a direction.

    The direction is an infinitesimal perturbation outside the range of the representations. skip:
    gamma. rank: the rank of the inputs. tick: called with the number of layers done.
    """
    plan = plan_of(config, width, burn_in=0)
    stream = config.stream(rank, f"input rank d={width} gamma={skip}")
    inputs = engines.gaussian_inputs(config.chains, width, rank, stream, torch.float64).to(device)
    chain = ProbedChain(inputs, skip, stream)
    chain.advance(config.burn_in_of(width, skip), tick)
    chain.forget()
    moments = batch_means.sample(chain, plan, config.tau, lambda n: tick(n * plan.stride))
    tell_nan(chain.state, f"d={width} gamma={skip} input_rank={rank}")
    means = batch_means.BatchMeans(moments, plan.count)
    rates = batch_means.mean_and_error(chain.growth_rate().tolist())
    yield InputRank(width, skip, rank, *means.mean("soft_rank"), *means.mean("rank_bound"), *rates)


def input_ranks_of(config: RankChain, width: int) -> range:
    """Return the ranks of inputs that are measured at a width, from 1 on.

    The largest rank is the number of columns of the rotated engine, the batch size or `width - 1`,
    whichever is smallest. With `width - 1`, one direction remains for the perturbation.
    """
    return range(1, min(engines.columns(width), config.samples_of(width), width - 1) + 1)


PROTOCOLS = {
    "text": {
        "spectrum": spectra,
        "product": products,
        "expansion": expansions,
        "input_rank": input_ranks,
    },
    "authors": {"average": authors_average, "spectrum": authors_spectra},
}
"""Functions that yield the rows of one point, by the parameters `protocol` and `measure`."""
