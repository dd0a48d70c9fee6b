"""What paper D says of figure 1, judged over networks of many depths.

Depths and replicates of a recipe are one sequence of networks each: a replicate has its own data
and starts. Where the paper sees several minima at one depth, several ranks are accepted.
"""

import numpy as np
import pandas as pd

from runner.papers.bottleneck.depth.tables import ENOUGH, affine_fits, bottleneck_lengths, fitted
from runner.papers.bottleneck.theorem_claims import claim_theorems
from runner.results.claims import Judgement, Tables, claim, compare, decide, undecided

SOURCE = "paper D, figure 1 and section 3.1"
TRUE_RANK = 2
"""k* of the task of figure 1."""


@claim(
    figure="bottleneck-fig1",
    name="affine-norm",
    statement="within a range of equal rank ||theta||^2 is affine in L",
    source=SOURCE,
)
def affine(tables: Tables) -> Judgement:
    """R^2 > 0.99 in every range of three or more depths."""
    fits = affine_fits(tables["metrics"])
    expected = "R^2 > 0.99 in every range of three or more depths"
    if fits.empty:
        return undecided("no rank holds over three depths", expected)
    lowest = float(fits["r2"].min())
    return decide(lowest > 0.99, f"R^2 >= {lowest:.4f} in {len(fits)} ranges", expected)


@claim(
    figure="bottleneck-fig1",
    name="slope-is-rank",
    statement="within a range of equal rank the slope of ||theta||^2 in L is the rank",
    source=SOURCE,
)
def slope_is_rank(tables: Tables) -> Judgement:
    """In every range the slope is nearer to the rank than to any other integer.

    At finite L the slope is below the rank, by the 1/L terms of the norm; above it, training has
    not converged.
    """
    fits = affine_fits(tables["metrics"])
    expected = "slope within 1/2 of the rank in every range"
    if fits.empty:
        return undecided("no rank holds over three depths", expected)
    near = (fits["slope"] - fits["rank"]).abs() < 0.5
    by_rank = "; ".join(
        f"rank {k}: slope {group.mean():.2f} ({group.min():.2f}..{group.max():.2f}, {len(group)})"
        for k, group in fits.groupby("rank")["slope"]
    )
    return decide(bool(near.all()), f"{near.sum()} of {len(near)} ranges; {by_rank}", expected)


@claim(
    figure="bottleneck-fig1",
    name="rank-falls",
    statement="larger depths lead to smaller ranks",
    source=SOURCE,
)
def rank_falls(tables: Tables) -> Judgement:
    """Rank correlation of depth and rank over the fitting networks, in every sequence."""
    found = {
        key: group["depth"].corr(group["rank_gap"], method="spearman")
        for key, group in fitted(tables["metrics"]).groupby(["recipe", "replicate"])
        if group["rank_gap"].nunique() > 1
    }
    expected = "negative rank correlation of depth and rank in every sequence"
    if not found:
        return undecided("every sequence has a single rank", expected)
    values = pd.Series(found)
    measured = f"correlation {values.min():.2f}..{values.max():.2f} in {len(values)} sequences"
    return decide(bool((values < 0).all()), measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="rank-never-rises",
    statement="the rank never rises with depth",
    source=SOURCE,
)
def rank_never_rises(tables: Tables) -> Judgement:
    """From one depth to the next the rank of a fitting network never rises."""
    steps = pd.concat(
        group.sort_values("depth")["rank_gap"].diff().dropna()
        for _, group in fitted(tables["metrics"]).groupby(["recipe", "replicate"])
    )
    expected = "no rise"
    if steps.empty:
        return undecided("no sequence has two fitting networks", expected)
    return decide(
        bool((steps <= 0).all()), f"{(steps > 0).sum()} rises in {len(steps)} steps", expected
    )


@claim(
    figure="bottleneck-fig1",
    name="singular-values",
    statement="inside the bottleneck k singular values are close to 1, the others small",
    source="paper D, section 4, figure 1b",
)
def spectrum_of_middle(tables: Tables) -> Judgement:
    """In the middle half of the layers the first k singular values are nearer to 1 than to 0, the
    others nearer to 0; k is the network's rank by the largest gap."""
    key = ["recipe", "replicate", "depth"]
    table = tables["spectrum"].merge(fitted(tables["metrics"])[[*key, "rank_gap"]], on=key)
    L, layer = table["depth"], table["layer"]
    table = table[(layer >= np.ceil(L / 4)) & (layer <= np.floor(3 * L / 4))]
    large = table["index"] <= table["rank_gap"]
    inside, outside = table.loc[large, "singular_value"], table.loc[~large, "singular_value"]
    expected = "k values in (0.5, 1.5), the others below 0.5, in nine of ten cases or more"
    if inside.empty:
        return undecided("no network fits", expected)
    near = float(((inside - 1).abs() < 0.5).mean())
    small = float(
        (table.loc[table["index"] == table["rank_gap"] + 1, "singular_value"] < 0.5).mean()
    )
    measured = (
        f"median of the k {inside.median():.3g}, of the others {outside.median():.2g};"
        f" {near:.0%} near 1, s_(k+1) small in {small:.0%} of the layers"
    )
    return decide(min(near, small) >= 0.9, measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="only-the-middle-grows",
    statement="through a range of depths only the middle low-rank part grows",
    source="paper D, figure 1b",
)
def bottleneck_lengthens(tables: Tables) -> Judgement:
    """Of each further layer in a range of equal rank, most goes into the bottleneck."""
    lengths = bottleneck_lengths(tables["metrics"], tables["spectrum"])
    slopes = [
        np.polyfit(group["depth"], group["outside"], 1)[0]
        for _, group in lengths.groupby("range")
        if len(group) >= ENOUGH
    ]
    expected = "layers outside the bottleneck per layer of depth: nearer to 0 than to 1"
    if not slopes:
        return undecided("no rank holds over three depths", expected)
    measured = f"{np.mean(slopes):.2f} on average, {min(slopes):.2f}..{max(slopes):.2f}"
    return decide(bool(max(slopes) < 0.5), measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="representations-low-rank",
    statement="the representations in the middle are nearly k-dimensional",
    source="paper D, section 4, Corollary 8",
)
def representations_collapse(tables: Tables) -> Judgement:
    """s_{k+1}(W_l alpha_{l-1}(X) / sqrt N) in the middle layer against that at both ends."""
    table = tables.get("representation")
    expected = "smaller in the middle than at either end, in every fitting network"
    if table is None:
        return undecided("no network with a rank below its width", expected)
    key = ["recipe", "replicate", "depth"]
    table = table.merge(fitted(tables["metrics"])[key], on=key)
    if table.empty:
        return undecided("no network fits", expected)
    pivot = table.pivot(index=key, columns="layer", values="tail")
    L = pivot.index.get_level_values("depth")
    middle, last = (
        np.array([row[layer] for (_, row), layer in zip(pivot.iterrows(), layers, strict=True)])
        for layers in (L // 2, L)
    )
    first = pivot[1].to_numpy()
    small = (middle < first) & (middle < last)
    measured = (
        f"{small.sum()} of {len(small)} networks; medians: first layer {np.median(first):.2g},"
        f" middle {np.median(middle):.2g}, last {np.median(last):.2g}"
    )
    return decide(bool(small.all()), measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="training-fails-deep",
    statement="at large depth training fails and recovers zero parameters (plain recipe)",
    source=SOURCE,
)
def training_fails(tables: Tables) -> Judgement:
    """The deepest networks of the plain recipe end at zero parameters, the shallowest fit."""
    metrics = tables["metrics"].query("recipe == 'plain'")
    expected = "at the largest depth every replicate is zero, at the smallest none"
    if metrics.empty:
        return undecided("no run of the plain recipe", expected)
    # The zero network costs 1; a network that fits nothing has no reason to keep parameters.
    zero = metrics["parameter_norm"] < 0.01
    first = metrics.loc[zero, "depth"].min()
    ends = [zero[metrics["depth"] == L] for L in (metrics["depth"].min(), metrics["depth"].max())]
    by_depth = zero.groupby(metrics["depth"]).mean()
    measured = (
        f"first zero network at L = {first}; all zero at L = {list(by_depth[by_depth == 1].index)}"
    )
    return decide(bool(ends[1].all() and not ends[0].any()), measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="failure-is-optimisation",
    statement="where plain training ends below rank 2, better minima exist: annealing finds them",
    source="paper D, section 3.1: non-fitting minima can in theory be avoided",
)
def outcome_of_optimisation(tables: Tables) -> Judgement:
    """Where the plain recipe ends below rank 2, the annealed one reaches a lower loss."""
    pivot = tables["metrics"].pivot(index=["depth", "replicate"], columns="recipe")
    expected = "annealed loss below plain loss in every such pair of depth and replicate, trimmed"
    if not {"plain", "annealed"} <= set(tables["metrics"]["recipe"]):
        return undecided("one recipe only", expected)
    low = pivot["rank_gap"]["plain"] < TRUE_RANK
    both = pivot[low & pivot["loss"]["annealed"].notna()]
    if both.empty:
        return undecided("no common depth where the plain recipe ends below rank 2", expected)
    loss = both["loss"]
    depths = sorted(both.index.get_level_values("depth").unique())
    measured = (
        f"{int((loss['annealed'] < loss['plain']).sum())} of {len(loss)} pairs, L = {depths}:"
        f" mean annealed {loss['annealed'].mean():.3g}, plain {loss['plain'].mean():.3g}"
    )
    return Judgement(compare(loss["annealed"], loss["plain"]), measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="no-rank-1-fit",
    statement="fitting minima that underestimate the rank are never observed",
    source="paper D, section 3.1",
)
def never_underestimates(tables: Tables) -> Judgement:
    """Among the networks that fit (cost below 0.1) none has a rank below that of the task."""
    found = fitted(tables["metrics"])
    low = found[found["rank_gap"] < TRUE_RANK]
    expected = "no fitting network of rank 1"
    measured = f"{len(low)} of {len(found)} fitting networks"
    if len(low):
        measured += (
            f", train cost {low['train_cost'].min():.2g}..{low['train_cost'].max():.2g},"
            f" test cost {low['test_cost'].min():.2g}..{low['test_cost'].max():.2g}"
        )
    return decide(low.empty, measured, expected)


@claim(
    figure="bottleneck-fig1",
    name="rank-1-is-narrow",
    statement="minima that underestimate the rank have a larger NTK",
    source="paper D, section 4.1",
)
def narrow_when_underestimating(tables: Tables) -> Judgement:
    """Tr Theta / L of fitting networks of rank 1 against that of all other fitting networks."""
    found = fitted(tables["metrics"]).query("rank_gap > 0")
    ntk = found["ntk_trace"] / found["depth"]
    underestimates = found["rank_gap"] < TRUE_RANK
    low, high = ntk[underestimates], ntk[~underestimates]
    expected = "every fitting network of rank 1 above every one of rank 2 or more"
    if low.empty or high.empty:
        return undecided(f"{len(low)} networks of rank 1, {len(high)} of rank 2 or more", expected)
    measured = (
        f"Tr Theta / L: rank 1 {low.min():.3g}..{low.max():.3g},"
        f" rank 2 or more {high.min():.3g}..{high.max():.3g}"
    )
    return decide(bool(low.min() > high.max()), measured, expected)


claim_theorems(figure="bottleneck-fig1")
