"""Selections from the tables of study `pretraining`, for its drawings and claims."""

import numpy as np
import pandas as pd

from runner.papers.rank_collapse.learning import at_chosen_rate
from runner.results.claims import Tables
from runner.results.rows import nonempty
from runner.results.statistics import last_epoch

VARIANT = ["method", "pretraining_steps", "rescaled"]
"""The columns that say what a network starts as."""

Variant = tuple[str, int, bool]
"""Method, iterations of pre-training, whether rescaled."""

VANILLA: Variant = ("vanilla", 0, False)
CONTROL: Variant = ("vanilla", 0, True)
BATCH_NORM: Variant = ("batch_norm", 0, False)
ASYMMETRIC: Variant = ("batch_norm_asymmetric", 0, False)

LABELS = {
    "vanilla": "vanilla",
    "batch_norm": "batch norm",
    "batch_norm_asymmetric": "batch norm, asymmetric",
}


def name_of(variant: Variant) -> str:
    """What legends and claims call a variant."""
    method, steps, rescaled = variant
    name = f"pre-trained, M = {steps}" if method == "pretrained" else LABELS[method]
    return f"{name}, rescaled" if rescaled else name


def curves(tables: Tables) -> pd.DataFrame:
    """All epochs of every network at the chosen rate of its variant, by depth."""
    return at_chosen_rate(tables["training"], ["depth", *VARIANT])


def ends(tables: Tables) -> pd.DataFrame:
    """The last epoch of `curves`; one that has diverged has infinite losses and no accuracy."""
    worst = dict.fromkeys(["train_loss", "test_loss"], np.inf)
    return last_epoch(curves(tables)).fillna(worst | {"train_accuracy": 0.0})


def starts(tables: Tables) -> pd.DataFrame:
    """The last hidden layer of every network before training."""
    metrics = tables["metrics"]
    return metrics[metrics["layer"] == metrics["depth"]]


def rows_of(rows: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    """The rows of one variant."""
    method, steps, rescaled = variant
    return rows.query("method == @method and pretraining_steps == @steps and rescaled == @rescaled")


def of(rows: pd.DataFrame, variant: Variant, column: str) -> pd.Series:
    """A column of one variant, indexed by replicate. Raises NoRows where it was not run."""
    found = nonempty(rows_of(rows, variant), f"rows: {name_of(variant)}")
    return found.set_index("replicate")[column]


def deepest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the deepest networks."""
    return rows[rows["depth"] == rows["depth"].max()]


def raised(rows: pd.DataFrame, rescaled: bool = False) -> list[Variant]:
    """The pre-trained variants in the order of their iterations."""
    steps = rows.query("method == 'pretrained' and rescaled == @rescaled")["pretraining_steps"]
    return [("pretrained", M, rescaled) for M in sorted(set(steps))]


def most_raised(rows: pd.DataFrame, rescaled: bool = False) -> Variant | None:
    """The pre-trained variant of the most iterations; None where there is none."""
    variants = raised(rows, rescaled)
    return variants[-1] if variants else None
