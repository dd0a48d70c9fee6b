"""What paper D says of figure 1, judged over networks of many depths.

Depths and replicates of a recipe are one sequence of networks each: a replicate has its own data
and starts. It gives one number to each statement, that of its worst network where the statement is
about all. Where the paper sees several minima at one depth, several ranks are accepted.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd

from runner.papers.bottleneck.depth.tables import ENOUGH, affine_fits, bottleneck_lengths, fitted
from runner.papers.bottleneck.theorem_claims import claim_theorems
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import Evidence, above, below, everywhere

SOURCE = "paper D, figure 1 and section 3.1"
TRUE_RANK = 2
"""k* of the task of figure 1."""


def _by_recipe(
    rows: pd.DataFrame, measure: Callable[[pd.DataFrame], float], test: Callable[..., Evidence]
) -> list[Evidence]:
    """A test of one number for each replicate, at each recipe; replicates without rows are out."""
    points = []
    for recipe, sequences in rows.groupby("recipe"):
        values = {replicate: measure(group) for replicate, group in sequences.groupby("replicate")}
        points.append(test(pd.Series(values, dtype=float).dropna(), point=f"recipe {recipe}"))
    return points


def _below(bound: float) -> Callable[..., Evidence]:
    return lambda values, point: below(values, bound, point=point)


def _above(bound: float) -> Callable[..., Evidence]:
    return lambda values, point: above(values, bound, point=point)


@claim(
    figure="bottleneck-fig1",
    name="affine-norm",
    statement="within a range of equal rank ||theta||^2 is affine in L",
    source=SOURCE,
    expected=f"R^2 > 0.99 in every range of {ENOUGH} or more depths, either recipe",
    needs={"depth": ENOUGH},
)
def affine(tables: Tables) -> Found:
    """R^2 > 0.99 in every range of three or more depths."""
    fits = affine_fits(tables["metrics"])
    if fits.empty:
        return Found([], f"no rank holds over {ENOUGH} depths")
    points = _by_recipe(fits, lambda group: group["r2"].min(), _above(0.99))
    return Found(points, f"R^2 at least {fits['r2'].min():.4f} in {len(fits)} ranges")


@claim(
    figure="bottleneck-fig1",
    name="slope-is-rank",
    statement="within a range of equal rank the slope of ||theta||^2 in L is the rank",
    source=SOURCE,
    expected="|slope - rank| below 1/2 in every range, either recipe",
    needs={"depth": ENOUGH},
)
def slope_is_rank(tables: Tables) -> Found:
    """In every range the slope is nearer to the rank than to any other integer.

    At finite L the slope is below the rank, by the 1/L terms of the norm; above it, training has
    not converged.
    """
    fits = affine_fits(tables["metrics"])
    if fits.empty:
        return Found([], f"no rank holds over {ENOUGH} depths")
    off = (fits["slope"] - fits["rank"]).abs()
    by_rank = "; ".join(
        f"rank {k}: slope {group.mean():.2f} ({group.min():.2f}..{group.max():.2f}, {len(group)})"
        for k, group in fits.groupby("rank")["slope"]
    )
    points = _by_recipe(fits.assign(off=off), lambda group: group["off"].max(), _below(0.5))
    return Found(points, f"{(off < 0.5).sum()} of {len(off)} ranges; {by_rank}")


@claim(
    figure="bottleneck-fig1",
    name="rank-falls",
    statement="larger depths lead to smaller ranks",
    source=SOURCE,
    expected="rank correlation of depth and rank below 0, either recipe",
    needs={"depth": ENOUGH},
)
def rank_falls(tables: Tables) -> Found:
    """Spearman's correlation of depth and rank over the fitting networks of each sequence.

    A sequence of a single rank has none: it speaks for neither side.
    """

    def correlation(group: pd.DataFrame) -> float:
        if group["rank_gap"].nunique() < 2:
            return 0.0
        return float(group["depth"].corr(group["rank_gap"], method="spearman"))

    return Found(_by_recipe(fitted(tables["metrics"]), correlation, _below(0.0)))


@claim(
    figure="bottleneck-fig1",
    name="rank-never-rises",
    statement="the rank never rises with depth",
    source=SOURCE,
    expected="no rise from one fitting depth to the next, in any sequence",
    needs={"depth": ENOUGH},
)
def rank_never_rises(tables: Tables) -> Found:
    """From one depth to the next the rank of a fitting network never rises."""
    found = fitted(tables["metrics"]).sort_values("depth")
    found["step"] = found.groupby(["recipe", "replicate"])["rank_gap"].diff()
    steps = found.dropna(subset="step")
    if steps.empty:
        return Found([], "no sequence has two fitting networks")
    never = (steps["step"] <= 0).groupby(steps["replicate"]).all()
    return Found([everywhere(never)], f"{(steps['step'] > 0).sum()} rises in {len(steps)} steps")


@claim(
    figure="bottleneck-fig1",
    name="singular-values",
    statement="inside the bottleneck k singular values are close to 1, the others small",
    source="paper D, section 4, figure 1b",
    expected="k values in (0.5, 1.5) and s_(k+1) below 0.5, each in more than nine of ten cases",
)
def spectrum_of_middle(tables: Tables) -> Found:
    """In the middle half of the layers the first k singular values are nearer to 1 than to 0, the
    others nearer to 0; k is the network's rank by the largest gap."""
    key = ["recipe", "replicate", "depth"]
    table = tables["spectrum"].merge(fitted(tables["metrics"])[[*key, "rank_gap"]], on=key)
    L, layer = table["depth"], table["layer"]
    table = table[(layer >= np.ceil(L / 4)) & (layer <= np.floor(3 * L / 4))]
    if table.empty:
        return Found([], "no network fits")
    large = table["index"] <= table["rank_gap"]
    inside = table[large].assign(near=lambda rows: (rows["singular_value"] - 1).abs() < 0.5)
    next_one = table[table["index"] == table["rank_gap"] + 1]
    next_one = next_one.assign(small=next_one["singular_value"] < 0.5)
    words = (
        f"median of the k {inside['singular_value'].median():.3g}, of the others"
        f" {table.loc[~large, 'singular_value'].median():.2g};"
        f" {inside['near'].mean():.0%} near 1, s_(k+1) small in {next_one['small'].mean():.0%} of"
        " the layers"
    )
    points = [
        *_by_recipe(inside, lambda group: group["near"].mean(), _above(0.9)),
        *_by_recipe(next_one, lambda group: group["small"].mean(), _above(0.9)),
    ]
    return Found(points, words)


@claim(
    figure="bottleneck-fig1",
    name="only-the-middle-grows",
    statement="through a range of depths only the middle low-rank part grows",
    source="paper D, figure 1b",
    expected="layers outside the bottleneck for each layer of depth below 1/2: nearer to 0 than 1",
    needs={"depth": ENOUGH},
)
def bottleneck_lengthens(tables: Tables) -> Found:
    """Of each further layer in a range of equal rank, most goes into the bottleneck."""
    lengths = bottleneck_lengths(tables["metrics"], tables["spectrum"])
    rows = [
        {
            "recipe": group["recipe"].iloc[0],
            "replicate": group["replicate"].iloc[0],
            "slope": np.polyfit(group["depth"], group["outside"], 1)[0],
        }
        for _, group in lengths.groupby("range")
        if len(group) >= ENOUGH
    ]
    if not rows:
        return Found([], f"no rank holds over {ENOUGH} depths")
    table = pd.DataFrame(rows)
    words = f"{table['slope'].mean():.2f} on average"
    return Found(_by_recipe(table, lambda group: group["slope"].max(), _below(0.5)), words)


@claim(
    figure="bottleneck-fig1",
    name="representations-low-rank",
    statement="the representations in the middle are nearly k-dimensional",
    source="paper D, section 4, Corollary 8",
    expected="s_{k+1}(W_l alpha_{l-1}(X) / sqrt N): middle / smaller end below 1 in every fitting"
    " network",
)
def representations_collapse(tables: Tables) -> Found:
    """s_{k+1}(W_l alpha_{l-1}(X) / sqrt N) in the middle layer against that at both ends."""
    table = tables.get("representation")
    if table is None:
        return Found([], "no network with a rank below its width")
    key = ["recipe", "replicate", "depth"]
    table = table.merge(fitted(tables["metrics"])[key], on=key)
    if table.empty:
        return Found([], "no network fits")
    place = {"first": 1, "middle": table["depth"] // 2, "last": table["depth"]}
    tails = pd.DataFrame(
        {name: table[table["layer"] == at].set_index(key)["tail"] for name, at in place.items()}
    )
    tails["ratio"] = tails["middle"] / tails[["first", "last"]].min(axis=1)
    words = (
        f"{(tails['ratio'] < 1).sum()} of {len(tails)} networks; medians: first layer"
        f" {tails['first'].median():.2g}, middle {tails['middle'].median():.2g}, last"
        f" {tails['last'].median():.2g}"
    )
    worst = _by_recipe(tails.reset_index(), lambda group: group["ratio"].max(), _below(1.0))
    return Found(worst, words)


@claim(
    figure="bottleneck-fig1",
    name="training-fails-deep",
    statement="at large depth training fails and recovers zero parameters (plain recipe)",
    source=SOURCE,
    expected="at the largest depth every replicate is zero, at the smallest none",
    needs={"depth": ENOUGH},
)
def training_fails(tables: Tables) -> Found:
    """The deepest networks of the plain recipe end at zero parameters, the shallowest fit."""
    metrics = tables["metrics"].query("recipe == 'plain'")
    if metrics.empty:
        return Found([], "no run of the plain recipe")
    # The zero network costs 1; a network that fits nothing has no reason to keep parameters.
    zero = metrics["parameter_norm"] < 0.01
    depth = metrics["depth"]
    by_depth = zero.groupby(depth).mean()
    words = (
        f"first zero network at L = {depth[zero].min()}; all zero at"
        f" L = {list(by_depth[by_depth == 1].index)}"
    )
    points = [
        everywhere(zero[depth == depth.max()], point=f"L = {depth.max()}, zero"),
        everywhere(~zero[depth == depth.min()], point=f"L = {depth.min()}, not zero"),
    ]
    return Found(points, words)


@claim(
    figure="bottleneck-fig1",
    name="failure-is-optimisation",
    statement="where plain training ends below rank 2, better minima exist: annealing finds them",
    source="paper D, section 3.1: non-fitting minima can in theory be avoided",
    expected="annealed loss / plain loss below 1 at every such depth",
)
def outcome_of_optimisation(tables: Tables) -> Found:
    """Where the plain recipe ends below rank 2, the annealed one reaches a lower loss: in each
    replicate the depth at which it is least so."""
    if not {"plain", "annealed"} <= set(tables["metrics"]["recipe"]):
        return Found([], "one recipe only")
    pivot = tables["metrics"].pivot(index=["depth", "replicate"], columns="recipe")
    low = pivot["rank_gap"]["plain"] < TRUE_RANK
    both = pivot[low & pivot["loss"]["annealed"].notna()]
    if both.empty:
        return Found([], "no common depth where the plain recipe ends below rank 2")
    loss = both["loss"]
    depths = sorted(both.index.get_level_values("depth").unique())
    words = (
        f"{int((loss['annealed'] < loss['plain']).sum())} of {len(loss)} pairs, L = {depths}:"
        f" mean annealed {loss['annealed'].mean():.3g}, plain {loss['plain'].mean():.3g}"
    )
    worst = (loss["annealed"] / loss["plain"]).groupby("replicate").max()
    return Found([below(worst, 1.0, unit="ratio")], words)


@claim(
    figure="bottleneck-fig1",
    name="no-rank-1-fit",
    statement="fitting minima that underestimate the rank are never observed",
    source="paper D, section 3.1",
    expected="no fitting network of rank 1",
)
def never_underestimates(tables: Tables) -> Found:
    """Among the networks that fit (cost below 0.1) none has a rank below that of the task."""
    found = fitted(tables["metrics"])
    low = found[found["rank_gap"] < TRUE_RANK]
    words = f"{len(low)} of {len(found)} fitting networks"
    if len(low):
        words += (
            f", train cost {low['train_cost'].min():.2g}..{low['train_cost'].max():.2g},"
            f" test cost {low['test_cost'].min():.2g}..{low['test_cost'].max():.2g}"
        )
    none = (found["rank_gap"] >= TRUE_RANK).groupby(found["replicate"]).all()
    return Found([everywhere(none)], words)


@claim(
    figure="bottleneck-fig1",
    name="rank-1-is-narrow",
    statement="minima that underestimate the rank have a larger NTK",
    source="paper D, section 4.1",
    expected="Tr Theta / L: smallest of rank 1 in a replicate / largest of rank 2 or more above 1",
)
def narrow_when_underestimating(tables: Tables) -> Found:
    """Tr Theta / L of fitting networks of rank 1 against that of all other fitting networks."""
    found = fitted(tables["metrics"]).query("rank_gap > 0")
    ntk = found["ntk_trace"] / found["depth"]
    underestimates = found["rank_gap"] < TRUE_RANK
    low, high = ntk[underestimates], ntk[~underestimates]
    if low.empty or high.empty:
        return Found([], f"{len(low)} networks of rank 1, {len(high)} of rank 2 or more")
    words = (
        f"Tr Theta / L: rank 1 {low.min():.3g}..{low.max():.3g},"
        f" rank 2 or more {high.min():.3g}..{high.max():.3g}"
    )
    smallest = low.groupby(found["replicate"]).min()
    return Found([above(smallest / high.max(), 1.0, unit="ratio")], words)


claim_theorems(figure="bottleneck-fig1")
