"""What paper D says of figure 1, judged over networks of many depths.

What the paper says of minima is judged by the lowest loss that was found of each depth (recipe
`minimum`), what it says of training by the other recipes. The depths of a replicate, which has its
own data and starts, are one sequence of networks. It gives one number to each statement, that of
its worst network where the statement is about all.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd

from runner.papers.bottleneck_structure.bottleneck.tables import (
    ENOUGH,
    affine_fits,
    bottleneck_lengths,
    fitted,
    successive_slopes,
)
from runner.papers.bottleneck_structure.theorem_claims import theorem_claims
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import above, below, everywhere, slopes
from runner.results.rows import nonempty, select

SOURCE = "paper D, figure 1 and section 3.1"
TRUE_RANK = 2
"""k* of the task of figure 1."""


MINIMUM = "minimum"

NEAR = 0.1
"""How near the slope of loss / lambda comes to the rank at the end of the longest range."""


def _minima(tables: Tables, name: str = "metrics") -> pd.DataFrame:
    """The rows of the lowest losses that fit their data. Raises NoRows where there are none."""
    rows = select(tables[name], recipe=MINIMUM)
    key = ["recipe", "replicate", "depth"]
    good = fitted(select(tables["metrics"], recipe=MINIMUM))
    good = nonempty(good, "minimum that fits")
    return good if name == "metrics" else rows.merge(good[[*key, "rank", "rank_gap"]], on=key)


def _fitting(tables: Tables, recipe: str) -> pd.DataFrame:
    """The networks of a recipe that fit. Raises NoRows where there are none."""
    return nonempty(fitted(select(tables["metrics"], recipe=recipe)), "network that fits")


def _of_replicates(rows: pd.DataFrame, measure: Callable[[pd.DataFrame], float]) -> pd.Series:
    """One number for each replicate."""
    return pd.Series({r: measure(group) for r, group in rows.groupby("replicate")}, dtype=float)


def affine(tables: Tables) -> Found:
    """R^2 > 0.99 in every range of three or more depths."""
    fits = nonempty(affine_fits(_minima(tables)), f"rank that holds over {ENOUGH} depths")
    least = _of_replicates(fits, lambda group: group["r2"].min())
    words = f"R^2 at least {fits['r2'].min():.4f} in {len(fits)} ranges"
    return Found([above(least, 0.99)], words)


def slope_at_most_rank(tables: Tables) -> Found:
    """Above k it would be no minimum. The search puts such layers in, so that this tests the search
    and not the paper."""
    steps = nonempty(successive_slopes(_minima(tables)), "range of two depths")
    excess = steps.assign(excess=steps["slope"] - steps["rank"])
    most = _of_replicates(excess, lambda group: group["excess"].max())
    return Found([below(most, 0.0)], f"{len(steps)} steps of {excess['replicate'].nunique()} tasks")


def slope_is_rank(tables: Tables) -> Found:
    """At finite L the slope is below the rank, by the 1/L terms of the norm."""
    steps = nonempty(successive_slopes(_minima(tables)), "range of two depths")
    longest = steps.groupby(["replicate", "range"]).agg(
        steps=("slope", "size"),
        rank=("rank", "first"),
        first=("slope", "first"),
        last=("slope", "last"),
    )
    longest = longest.sort_values("steps").groupby("replicate").tail(1)
    longest = nonempty(longest[longest["steps"] >= 2], f"range of {ENOUGH} depths")
    longest = longest.reset_index("range")
    points = [
        below((longest["rank"] - longest["last"]).abs(), NEAR, point="distance at the end"),
        above(longest["last"] - longest["first"], point="rise along the range", unit="difference"),
    ]
    words = f"first slopes {longest['first'].min():.3f} to {longest['first'].max():.3f}, last"
    words += f" {longest['last'].min():.3f} to {longest['last'].max():.3f}"
    return Found(points, f"{words}, rank {sorted(set(longest['rank']))}")


def rank_falls(tables: Tables) -> Found:
    """Spearman's correlation of depth and rank over the minima of each task.

    A sequence of a single rank has none: it speaks for neither side.
    """

    def correlation(group: pd.DataFrame) -> float:
        if group["rank"].nunique() < 2:
            return 0.0
        return float(group["depth"].corr(group["rank"], method="spearman"))

    return Found([below(_of_replicates(_minima(tables), correlation), 0.0)])


def rank_never_rises(tables: Tables, trained: str | None = None) -> Found:
    """From one depth to the next. (The search for the lowest loss starts each depth from its
    neighbours, too, which makes equal ranks more likely.)"""
    found = _minima(tables) if trained is None else _fitting(tables, trained)
    found = found.sort_values("depth")
    found = found.assign(step=found.groupby("replicate")["rank"].diff())
    steps = nonempty(found.dropna(subset="step"), "sequence of two fitting networks")
    never = (steps["step"] <= 0).groupby(steps["replicate"]).all()
    return Found([everywhere(never)], f"{(steps['step'] > 0).sum()} rises in {len(steps)} steps")


def spectrum_of_middle(tables: Tables) -> Found:
    """In the middle half of the layers the first k singular values are nearer to 1 than to 0, the
    others nearer to 0; k is the network's rank."""
    table = _minima(tables, "spectrum")
    L, layer = table["depth"], table["layer"]
    table = table[(layer >= np.ceil(L / 4)) & (layer <= np.floor(3 * L / 4))]
    table = nonempty(table, "layer in the middle half")
    large = table["index"] <= table["rank"]
    inside = table[large].assign(near=lambda rows: (rows["singular_value"] - 1).abs() < 0.5)
    next_one = table[table["index"] == table["rank"] + 1]
    next_one = next_one.assign(small=next_one["singular_value"] < 0.5)
    words = (
        f"median of the k {inside['singular_value'].median():.3g}, of the others"
        f" {table.loc[~large, 'singular_value'].median():.2g};"
        f" {inside['near'].mean():.0%} near 1, s_(k+1) small in {next_one['small'].mean():.0%} of"
        " the layers"
    )
    points = [
        above(inside.groupby("replicate")["near"].mean(), 0.9, point="near 1", unit="share"),
        above(next_one.groupby("replicate")["small"].mean(), 0.9, point="small", unit="share"),
    ]
    return Found(points, words)


def gap_agrees(tables: Tables) -> Found:
    """Whether the threshold matters."""
    found = _minima(tables)
    same = found["rank"] == found["rank_gap"]
    every = same.groupby(found["replicate"]).all()
    return Found([everywhere(every)], f"{same.sum()} of {len(found)} minima")


def adam_ends_above(tables: Tables) -> Found:
    """At the depths that both were found at. That it ends above is no finding: the search for the
    lowest loss starts there."""
    loss = tables["metrics"].pivot(index=["depth", "replicate"], columns="recipe")["loss"]
    for recipe in ("annealed", MINIMUM):
        nonempty(loss.get(recipe, pd.Series(dtype=float)), f"rows: recipe={recipe}")
    ratio = (loss["annealed"] / loss[MINIMUM]).dropna().rename("ratio")
    ratio = nonempty(ratio, "depth at which both are finite")
    by_depth = ratio.groupby("depth").median()
    words = f"median ratio {by_depth.iloc[0]:.3f} at L = {by_depth.index[0]},"
    words += f" {by_depth.iloc[-1]:.3f} at L = {by_depth.index[-1]}"
    rows = np.log(ratio).rename("above").reset_index()
    return Found([above(slopes(rows, "depth", "above"), 0.0, unit="slope")], words)


def bottleneck_lengthens(tables: Tables) -> Found:
    """Of each further layer in a range of equal rank, most goes into the bottleneck."""
    lengths = bottleneck_lengths(_minima(tables), select(tables["spectrum"], recipe=MINIMUM))
    rows = [
        {
            "replicate": group["replicate"].iloc[0],
            "slope": np.polyfit(group["depth"], group["outside"], 1)[0],
        }
        for _, group in lengths.groupby("range")
        if len(group) >= ENOUGH
    ]
    table = nonempty(pd.DataFrame(rows), f"rank that holds over {ENOUGH} depths")
    most = _of_replicates(table, lambda group: group["slope"].max())
    return Found([below(most, 0.5, unit="slope")], f"{table['slope'].mean():.2f} on average")


def representations_collapse(tables: Tables, column: str) -> Found:
    """The middle layer against that at both ends; the corollary is about L to infinity."""
    table = _minima(tables, "representation")
    depths = np.sort(table["depth"].unique())
    table = table[table["depth"] >= depths[len(depths) // 2]]
    key = ["replicate", "depth"]
    place = {"first": 1, "middle": table["depth"] // 2, "last": table["depth"]}
    tails = pd.DataFrame(
        {name: table[table["layer"] == at].set_index(key)[column] for name, at in place.items()}
    )
    tails["ratio"] = tails["middle"] / tails[["first", "last"]].min(axis=1)
    words = (
        f"{len(tails)} networks from L = {table['depth'].min()} on; medians: first layer"
        f" {tails['first'].median():.2g}, middle {tails['middle'].median():.2g}, last"
        f" {tails['last'].median():.2g}"
    )
    most = _of_replicates(tails.reset_index(), lambda group: group["ratio"].max())
    return Found([below(most, 0.1, unit="ratio")], words)


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


def outcome_of_optimisation(tables: Tables) -> Found:
    """In each replicate the depth at which it is least so."""
    pivot = tables["metrics"].pivot(index=["depth", "replicate"], columns="recipe")
    for recipe in ("plain", MINIMUM):
        nonempty(pivot["loss"].get(recipe, pd.Series(dtype=float)), f"rows: recipe={recipe}")
    low = pivot["rank"]["plain"] < TRUE_RANK
    both = pivot[low & pivot["loss"][MINIMUM].notna()]
    both = nonempty(both, "common depth where the plain recipe ends below rank 2")
    loss = both["loss"]
    depths = sorted(both.index.get_level_values("depth").unique())
    words = (
        f"{int((loss[MINIMUM] < loss['plain']).sum())} of {len(loss)} pairs, L = {depths}:"
        f" mean lowest {loss[MINIMUM].mean():.3g}, plain {loss['plain'].mean():.3g}"
    )
    worst = (loss[MINIMUM] / loss["plain"]).groupby("replicate").max()
    return Found([below(worst, 1.0, unit="ratio")], words)


def never_underestimates(tables: Tables, trained: str | None = None) -> Found:
    """Among those that fit (cost below 0.1) none has a rank below that of the task."""
    found = _minima(tables) if trained is None else _fitting(tables, trained)
    low = found[found["rank"] < TRUE_RANK]
    words = f"{len(low)} of {len(found)} fitting networks"
    if len(low):
        words += (
            f", train cost {low['train_cost'].min():.2g}..{low['train_cost'].max():.2g},"
            f" test cost {low['test_cost'].min():.2g}..{low['test_cost'].max():.2g}"
        )
    none = (found["rank"] >= TRUE_RANK).groupby(found["replicate"]).all()
    return Found([everywhere(none)], words)


def narrow_when_underestimating(tables: Tables) -> Found:
    """Tr Theta / L of fitting networks of rank 1 against that of all others of the task: those that
    were trained plainly, since no lowest loss has rank 1."""
    found = _fitting(tables, "plain").query("rank > 0")
    ntk = found["ntk_trace"] / found["depth"]
    underestimates = found["rank"] < TRUE_RANK
    low, high = ntk[underestimates], ntk[~underestimates]
    if low.empty or high.empty:
        return Found([], f"{len(low)} networks of rank 1, {len(high)} of rank 2 or more")
    words = (
        f"Tr Theta / L: rank 1 {low.min():.3g}..{low.max():.3g},"
        f" rank 2 or more {high.min():.3g}..{high.max():.3g}"
    )
    smallest, largest = (part.groupby(found["replicate"]) for part in (low, high))
    ratio = (smallest.min() / largest.max()).dropna()
    return Found([above(ratio, 1.0, unit="ratio")], words)


CLAIMS = {
    "bottleneck-fig1": [
        Claim(
            "affine-norm",
            "within a range of equal rank ||theta||^2 is affine in L",
            SOURCE,
            affine,
            f"R^2 > 0.99 in every range of {ENOUGH} or more depths",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "slope-at-most-rank",
            "control: within a range of equal rank k the lowest loss / lambda grows by at most k a"
            " layer",
            "ours, beside paper D, section 3.1: one more layer of rank k costs lambda k",
            slope_at_most_rank,
            "slope - k below 0 from every depth to the next",
            kind="ours",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "slope-is-rank",
            "within a range of equal rank the slope tends to the rank as depth grows",
            SOURCE,
            slope_is_rank,
            f"on the longest range the last slope of loss / lambda within {NEAR:g} of k, and above"
            " the first",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "rank-falls",
            "larger depths lead to smaller ranks",
            SOURCE,
            rank_falls,
            "rank correlation of depth and rank below 0",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "rank-never-rises",
            "the rank never rises with depth",
            SOURCE,
            rank_never_rises,
            "no rise from one depth to the next, in any sequence of minima",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "singular-values",
            "inside the bottleneck k singular values are close to 1, the others small",
            "paper D, section 4, figure 1b",
            spectrum_of_middle,
            "k values in (0.5, 1.5) and s_(k+1) below 0.5, each in more than nine of ten cases",
        ),
        Claim(
            "gap-agrees",
            "control: the largest gap of the spectrum is where the caption's count has it",
            "ours, beside paper D, figure 1: the rank is counted above 0.1",
            gap_agrees,
            "rank by the largest gap = rank above 0.1 in every minimum",
            kind="ours",
        ),
        Claim(
            "only-the-middle-grows",
            "through a range of depths only the middle low-rank part grows",
            "paper D, figure 1b",
            bottleneck_lengthens,
            "layers outside the bottleneck for each layer of depth below 1/2: nearer to 0 than 1",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "representations-low-rank-with-bias",
            "so they are with the bias, which the proof drops",
            "paper D, section 4, Corollary 8: alpha_l is W_l alpha_{l-1} + b_l",
            partial(representations_collapse, column="tail_with_bias"),
            "s_{k+1}((W_l alpha_{l-1}(X) + b_l) / sqrt N): middle / smaller end below 0.1 at the"
            " deeper half of the depths",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "representations-low-rank",
            "the representations in the middle of deep networks are nearly k-dimensional",
            "paper D, section 4, Corollary 8",
            partial(representations_collapse, column="tail"),
            "s_{k+1}(W_l alpha_{l-1}(X) / sqrt N): middle / smaller end below 0.1 at the deeper"
            " half of the depths",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "training-fails-deep",
            "at large depth training fails and recovers zero parameters (plain recipe)",
            SOURCE,
            training_fails,
            "at the largest depth every replicate is zero, at the smallest none",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "failure-is-optimisation",
            "where plain training ends below rank 2, better minima exist",
            "paper D, section 3.1: non-fitting minima can in theory be avoided",
            outcome_of_optimisation,
            "lowest loss / plain loss below 1 at every such depth",
        ),
        Claim(
            "no-rank-1-fit",
            "fitting minima that underestimate the rank are never observed",
            "paper D, section 3.1",
            never_underestimates,
            "no fitting minimum of rank 1",
        ),
        Claim(
            "no-rank-1-fit-trained",
            "networks that were trained (plainly) and fit never underestimate the rank",
            "paper D, section 3.1",
            partial(never_underestimates, trained="plain"),
            "no fitting network of rank 1",
        ),
        Claim(
            "rank-1-is-narrow",
            "minima that underestimate the rank have a larger NTK",
            "paper D, section 4.1",
            narrow_when_underestimating,
            "Tr Theta / L in a replicate: smallest of rank 1 / largest of rank 2 or more above 1",
        ),
        *theorem_claims(),
    ],
    "bottleneck-recipes": [
        Claim(
            "rank-never-rises-trained",
            "the rank of networks that were trained (annealed) never rises with depth",
            SOURCE,
            partial(rank_never_rises, trained="annealed"),
            "no rise from one fitting depth to the next, in any sequence",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "adam-ends-above",
            "control: the deeper the network, the farther above the lowest loss Adam ends",
            "ours, beside paper D, figure 1",
            adam_ends_above,
            "slope in L of log(annealed loss / lowest loss) above 0",
            kind="ours",
            needs={"depth": ENOUGH},
        ),
    ],
}
"""By figure, in the order in which they are told."""
