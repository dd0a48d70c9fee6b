"""The measured numbers of sentences on docs/paper-a.md, computed from the stored tables.

SENTENCES has a function for each part of a sentence, in which # stands for a number. It returns
these numbers in their order. Errors are in percent of the variance of the target.
"""

from collections.abc import Callable

import numpy as np
import pandas as pd
from in_memory import kept_tables
from scipy.optimize import brentq
from scipy.stats import binom
from tables_of_paper_a import (
    EXACT,
    GAMMA,
    arm,
    metrics,
    more_width,
    only,
)
from tables_of_paper_d import ends

from runner.papers.norm_tuning.bn_only.figures import medians
from runner.papers.norm_tuning.bn_only.quantities import narrow_over_wide, schedule_ratio
from runner.papers.norm_tuning.bn_only.tables import ADAM, DENSE, SGD, STUDENT, TEACHER, left
from runner.papers.norm_tuning.constructions.claims import BLOCKS
from runner.papers.norm_tuning.constructions.quantities import (
    FAR,
    error_with_digits,
    threshold_exponent,
)
from runner.papers.norm_tuning.constructions.tables import random_targets
from runner.papers.norm_tuning.norm_layers import quantities as layers
from runner.results.evidence import median_limits
from runner.results.rows import select

MILLION = 1_000_000
"""The number of training samples of paper A."""


def of_sgd() -> list[float]:
    """Errors of SGD on γ and β at m = d²: the smallest and largest median."""
    return ends(100 * medians(left(metrics("fig4")), SGD))


def below_square() -> list[float]:
    """SGD's smallest error below d² units, rounded down, and its fall between two widths."""
    rows = metrics("fig4")
    least = 100 * narrow_over_wide(SGD).measure({"metrics": rows})["least"].min()
    at = medians(rows.query("target_width == 25 and width < 625"), SGD, "width")
    narrow, wide = at.index.min(), at.index.max()
    return [np.floor(10 * least) / 10, at[narrow] / at[wide], narrow, wide]


def by_samples() -> list[float]:
    """Errors at d = 10: SGD's with one and with eight million samples, and Adam's with both."""
    rows = metrics("norm-budget").query("width == 100 and epochs == 1")
    one, eight = (rows[rows["train_samples"] == n * MILLION] for n in (1, 8))
    sgd, adam = ([100 * only(medians(part, s)) for part in (one, eight)] for s in (SGD, ADAM))
    return [*sgd, *ends(adam, 1)]


def by_units() -> list[float]:
    """Width / d² and the errors of SGD and Adam there."""
    _, _, adam, ratio = more_width()
    rows = metrics("norm-budget")
    return [ratio, 100 * medians(rows, SGD, "width")[1000], adam]


def with_and_without_hidden() -> list[float]:
    """Networks that find the target at d = 5 and 10: with hidden ReLUs, and without."""
    names = ("from_active", GAMMA)
    return [arm(name, d, ratio=2)["found"].sum() for name in names for d in (5, 10)]


def choosing(name: str, steps: int) -> pd.DataFrame:
    """Return the networks at d = 10 and m = d² that chose the learning rates of an arm."""
    rows = kept_tables("norm-active", "paper")["networks"]
    rows = select(rows, judged=False, arm=name, optimizer="adam", steps=steps, width=100)
    return rows.assign(found=rows["relative_mse"] < EXACT)


def dense_by_rate() -> list[float]:
    """Learning rates, and at each of them the targets that dense networks find, of how many."""
    by = choosing(DENSE, 2000).query("learning_rate <= 4").groupby("learning_rate")["found"]
    return [*ends(by.sum().index, 1), *ends(by.sum()), only(by.size())]


def rotated_weights() -> list[float]:
    """Networks that find the target from rotated weights, with d, and from dense weights."""
    found = ([arm(name, d)["found"].sum() for name in ("rotated_weights", DENSE)] for d in (5, 10))
    (rotated_five, dense_five), (rotated_ten, dense_ten) = found
    return [rotated_five, 5, rotated_ten, 10, dense_five, dense_ten]


def condition_numbers() -> list[float]:
    """The median condition number of K at d = 10, with d² and 2 d² units."""
    square, twice = (arm(GAMMA, 10, ratio)["condition_number"].median() for ratio in (1, 2))
    return [10, square, 2, twice]


def long_training() -> list[float]:
    """Errors of γ at d = 10 and m = d² after few and many steps, and networks of the choice."""
    errors = [100 * arm(name, 10)["relative_mse"].median() for name in (GAMMA, f"{GAMMA} long")]
    found = choosing(GAMMA, 20_000).groupby("replicate")["found"].any()
    assert found.sum() == 1  # the page writes it as a word
    return [*errors, len(found)]


def none_found() -> list[float]:
    """Width d, networks and steps of a long training of γ at m = d² that finds no target."""
    rows = arm(f"{GAMMA} long", 10)
    assert not rows["found"].any()
    return [10, len(rows), only(rows["steps"])]


def single_precision() -> list[float]:
    """Median errors at d = 25 in single precision, relative and not, and exact networks."""
    rows = metrics("norm-budget").query("width == 625 and series == @TEACHER")
    relative = rows["float32_mse"] * rows["relative_mse"] / rows["test_mse"]
    exact = (relative < EXACT).sum()
    return [100 * relative.median(), rows["float32_mse"].median(), exact, len(rows)]


def sparsest() -> list[float]:
    """Percentage of weights, the smallest median error, and the largest d of both methods."""
    rows = metrics("fig5").query("sparsity == 0.05")
    both = [rows[rows["series"].isin(s)] for s in ((TEACHER, STUDENT), (SGD,))]
    keys = ["series", "target_width", "width"]
    least = min(100 * part.groupby(keys)["relative_mse"].median().min() for part in both)
    return [5, least, *(part["target_width"].max() for part in both)]


def exponents() -> list[float]:
    """Exponents of the threshold: measured, by the formula, and by the formula at large d."""
    stored = kept_tables("constructions-sparse", "paper")
    (row,) = threshold_exponent(BLOCKS).measure(stored).itertuples()
    return [row.value, row.of_formula, row.of_formula_far, min(FAR), max(FAR)]


def of_theorem_2() -> pd.DataFrame:
    """Return the networks of Theorem 2 with random targets, in double precision."""
    rows = random_targets(kept_tables("constructions", "paper")["metrics"])
    return select(rows, theorem="deep", dtype="float64", depth=1)


def enough_digits() -> list[float]:
    """The smallest block size whose rounding error is small in every network, and the largest d."""
    rows = of_theorem_2()
    worst = rows.groupby("block")["rounding"].max()
    return [worst.index[worst < 1].min(), rows["target_width"].max()]


def too_few_digits() -> list[float]:
    """Block size and d at which double precision fails, its error, and the one with 100 digits."""
    rows = of_theorem_2().query("rounding >= 1")
    stored = kept_tables("constructions", "paper")
    digits = only(stored["metrics"]["precision"].dropna())
    largest = error_with_digits().measure(stored)["value"].max()
    block, d = only(rows["block"]), rows["target_width"].min()
    return [block, d, rows["max_abs_error"].median(), digits, largest]


def of_layers(layer: str, mode: str, column: str = "relative_mse") -> pd.DataFrame:
    """Return the medians by batch size and d of one kind of normalization layer, in percent."""
    rows = select(kept_tables("norm-layers", "paper")["metrics"], layer=layer, mode=mode)
    return 100 * rows.pivot_table(column, "batch_size", "target_width", "median")


def with_batch_statistics() -> list[float]:
    """The largest batch, and the errors of BatchNorm with it at the smallest and largest d."""
    by = of_layers("batch_norm", "training")
    (size, errors), ds = (by.index.max(), by.loc[by.index.max()]), by.columns
    return [size, errors[ds.min()], ds.min(), errors[ds.max()], ds.max()]


def bound_of_layer_norm() -> list[float]:
    """The lower bound of LayerNorm's error: smallest and largest median."""
    bound = layers.least_in_layer_norm().measure(kept_tables("norm-layers", "paper"))
    return ends(100 * bound.groupby("d")["value"].median())


def fitted_with_biases() -> list[float]:
    """Errors of γ and β fitted in LayerNorm with biases, and the target widths."""
    errors = of_layers("layer_norm with biases", "fitted").loc[0]
    return [*ends(errors), *errors.index]


def cosine_and_constant() -> list[float]:
    """Error with cosine / error with constant at the best rates: median, limits, and d."""
    stored = kept_tables("norm-schedules", "paper")
    ratios = schedule_ratio("cosine", "constant").measure(stored)
    return [x for d, rows in ratios.groupby("d")["value"]
            for x in (rows.median(), *median_limits(rows.to_numpy()), d)]  # fmt: skip


def smallest_effects() -> list[float]:
    """Networks, power, and the median ratio that the sign test finds with it, by target width."""
    ratios = schedule_ratio("cosine", "constant").measure(kept_tables("norm-schedules", "paper"))
    n, power = ratios["replicate"].nunique(), 0.8
    needed = next(k for k in range(n + 1) if binom.sf(k - 1, n, 0.5) <= 0.05)
    above = brentq(lambda p: binom.sf(needed - 1, n, p) - power, 0.5, 0.999)
    found = [n, power]
    for d, values in ratios.groupby("d")["value"]:
        found += [values.median() / values.quantile(1 - above), d]
    return found


SENTENCES: dict[str, Callable[[], list[float]]] = {
    "If the ratios of # networks scatter as they do here, the test at one width finds with"
    " probability # that constant is better, provided that the true median ratio is at least # (d ="
    " #) or # (d = #)":
        smallest_effects,
    "SGD leaves # to # % of the target's variance unexplained": of_sgd,
    "SGD's error is above # % in every network with fewer than d² units. If it means the same loss"
    " at every width, it is wrong, because the error falls by a factor of # between # and # units":
        below_square,
    "SGD's error falls from # to # %, and Adam's error stays at # %": by_samples,
    "at # d² units their errors are # % and # %": by_units,
    "find # and # instead of # and # targets": with_and_without_hidden,
    "At each learning rate from # to #, the dense network found # to # of # other targets":
        dense_by_rate,
    "Adam on d² randomly rotated weights finds # targets at d = # and # at d = #, while the dense"
    " network finds # and #": rotated_weights,
    "At d = # the median condition number of K is #, but with # d² units it is #":
        condition_numbers,
    "At d = # it finds none of # targets in # steps": none_found,
    "the median error of γ falls from # to # %, and one of # networks on which we tried learning"
    " rates finds its target": long_training,
    "the construction's median error is # % (# before we divide by the variance), and # of #"
    " networks are exact": single_precision,
    "With # %, no median error is below # %, neither of the construction (up to d = #) nor of SGD"
    " (up to d = #)": sparsest,
    "falls like (log d / d)^#. The formula for cut-off units has the exponent # over the same"
    " widths, but # at d = # to #": exponents,
    "For k ≥ # and d up to # double precision is enough": enough_digits,
    "For k = # and d ≥ # the largest absolute error over the inputs is # (median of the"
    " networks). This error is due to rounding, because with # digits it is at most #":
        too_few_digits,
    "but # samples still leave # % at d = # and # % at d = #": with_batch_statistics,
    "the error stays above a bound, # to # % for our targets (medians)": bound_of_layer_norm,
    "fitted γ and β reach an error of # to # % at d = # and #": fitted_with_biases,
    "the ratio is # (# to #) at d = # and # (# to #) at d = #": cosine_and_constant,
}  # fmt: skip
