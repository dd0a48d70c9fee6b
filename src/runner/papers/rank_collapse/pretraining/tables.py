"""Selections from the tables of study `pretraining`, for its drawings and claims."""

import pandas as pd

from runner.results.claims import Tables
from runner.results.statistics import best_rates, last_epoch

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


def ends(tables: Tables) -> pd.DataFrame:
    """The last epoch of every network at the best rate of its variant, by depth."""
    return last_epoch(best_rates(tables["training"], ["depth", *VARIANT]))


def starts(tables: Tables) -> pd.DataFrame:
    """The last hidden layer of every network before training."""
    metrics = tables["metrics"]
    return metrics[metrics["layer"] == metrics["depth"]]


def of(rows: pd.DataFrame, variant: Variant, column: str) -> pd.Series:
    """A column of one variant, indexed by replicate."""
    method, steps, rescaled = variant
    chosen = rows.query(
        "method == @method and pretraining_steps == @steps and rescaled == @rescaled"
    )
    return chosen.set_index("replicate")[column]


def deepest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the deepest networks."""
    return rows[rows["depth"] == rows["depth"].max()]


def raised(rows: pd.DataFrame, rescaled: bool = False) -> list[Variant]:
    """The pre-trained variants in the order of their iterations."""
    steps = sorted(set(rows["pretraining_steps"]) - {0})
    return [("pretrained", M, rescaled) for M in steps]


def best_raised(rows: pd.DataFrame, rescaled: bool = False) -> Variant:
    """The pre-trained variant of one depth with the highest mean training accuracy at the end."""
    return max(
        raised(rows, rescaled), key=lambda variant: of(rows, variant, "train_accuracy").mean()
    )
