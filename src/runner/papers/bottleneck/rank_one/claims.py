"""What paper D says of rank-1 interpolants, judged over the table of study `rank_one`."""

import pandas as pd

from runner.papers.bottleneck.rank_one.tables import (
    NORM_SLOPE,
    NTK_EXPONENT,
    interpolants,
    slopes,
    with_logarithms,
)
from runner.results.claims import Judgement, Tables, claim, decide, trimmed, undecided


def _at_least(found: pd.Series, bound: float) -> Judgement:
    """Whether the slopes of all trimmed replicates reach a bound."""
    kept = trimmed(found)
    expected = f"at least {bound:g} in all trimmed replicates"
    if len(kept) < 3:
        return undecided(f"{len(found)} replicates that fit at three sizes or more", expected)
    measured = f"slope {found.mean():.2f}, replicates {kept.min():.2f}..{kept.max():.2f}"
    if (kept >= bound).all():
        return Judgement("holds", measured, expected)
    verdict = "fails" if (kept < bound).all() else "undecided"
    return Judgement(verdict, measured, expected)


@claim(
    figure="bottleneck-theorems",
    name="interpolants-are-rare",
    statement="gradient descent finds fewer rank-1 interpolants the more points there are",
    source="paper D, sections 3.1 and 4.1",
)
def interpolants_are_rare(tables: Tables) -> Judgement:
    """The share of networks that fit all points, at the smallest and at the largest N."""
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index)
    share = pd.Series(fits, index=metrics["samples"]).groupby(level=0).mean()
    measured = ", ".join(f"N={N}: {value:.0%}" for N, value in share.items())
    expected = "fewer at the largest N than at the smallest"
    return decide(bool(share.iloc[-1] < share.iloc[0]), f"fit {measured}", expected)


@claim(
    figure="bottleneck-theorems",
    name="ntk-blows-up",
    statement="the largest NTK of rank-1 interpolants grows with N: narrow minima",
    source="paper D, section 4.1",
    column="log_ntk",
    bound=0.0,
)
@claim(
    figure="bottleneck-theorems",
    name="norm-lower-bound",
    statement="the norm of rank-1 interpolants grows at least as 2 (1 - 1/k*) log N",
    source="paper D, section 3.1, after Theorem 2 of its reference [10]",
    column="excess",
    bound=NORM_SLOPE,
)
@claim(
    figure="bottleneck-theorems",
    name="ntk-lower-bound",
    statement="somewhere Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*} for rank-1 interpolants",
    source="paper D, Theorem 10",
    column="log_ntk_plus_excess",
    bound=NTK_EXPONENT,
)
def growth(tables: Tables, column: str, bound: float) -> Judgement:
    """Whether a logarithm grows at least as `bound` log N over the networks that fit."""
    return _at_least(slopes(with_logarithms(interpolants(tables["metrics"])), column), bound)
