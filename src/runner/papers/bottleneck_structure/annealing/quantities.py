"""Quantities of the claims about annealed and constant weight decay.

A replicate is one task, with separate data and initial weights. Its networks have many depths.

Arguments that recur:

- tables: the tables of a figure's runs; only `metrics` is used.
- recipe, than: "annealed" (annealed training) or "constant" (weight decay λ throughout).
"""

import pandas as pd

from runner.papers.bottleneck_structure.annealing.tables import depths_that_fit, fitting
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity(
    "number of depths at which {recipe} fit minus the number at which {than} fit",
    each=("gain",),
    unit="difference",
    needs={"depth": 3},
)
def more_depths(tables: Tables, recipe: str, than: str) -> pd.Series:
    """Return at how many more depths a training procedure fits than the other one.

    There is a number for each gain and replicate. Both have the same initial weights and learning
    rate. Raises NoRows if one of them was not run.
    """
    counts = (depths_that_fit(tables["metrics"], name) for name in (recipe, than))
    return next(counts) - next(counts)


@quantity(
    "number of depths at which {recipe} fit with initial weights of gain {gain} minus the number"
    " with gain {than}",
    unit="difference",
    needs={"depth": 3},
)
def more_depths_by_gain(tables: Tables, recipe: str, gain: float, than: float) -> pd.Series:
    """Return at how many more depths a training procedure fits with one gain than with another.

    gain, than: gains of the initial weights; the learning rates differ, too. There is a number for
    each replicate. Raises NoRows if one of them was not run.
    """
    counts = depths_that_fit(tables["metrics"], recipe).unstack("gain")
    nonempty(counts.columns.intersection([gain, than]).to_frame()[1:], f"gains {gain} and {than}")
    return counts[gain] - counts[than]


@quantity(
    "the loss of {recipe} is {} that of {than} (median of the ratio over depths where both fit)",
    each=("gain",),
    unit="ratio",
)
def loss_ratio(tables: Tables, recipe: str, than: str) -> pd.DataFrame:
    """Return the ratio of two training procedures' losses, the median over depths.

    Only depths at which both fit count. There is a number for each gain and replicate; without such
    a depth it is nan. Raises NoRows if no network of both fits.
    """
    rows = fitting(tables["metrics"])
    keys = ["gain", "replicate", "depth"]
    losses = rows[rows["fits"]].pivot(index=keys, columns="recipe", values="loss")
    both = nonempty(losses.reindex(columns=[recipe, than]).dropna(), "depth at which both fit")
    ratio = both[recipe] / both[than]
    every = rows.set_index(["gain", "replicate"]).index.unique()
    medians = ratio.groupby(level=["gain", "replicate"]).median().reindex(every)
    return medians.rename("value").reset_index()
