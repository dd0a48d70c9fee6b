"""Selections from the tables of study `pretraining`, for its drawings and claims."""

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.learning import NOTHING_LEARNED, with_divergence
from runner.results.claims import Tables
from runner.results.labels import Labels
from runner.results.rows import nonempty

VARIANT = ["method", "pretraining_steps", "angle"]
"""The columns that say what a network starts as."""

Variant = tuple[str, int, float]
"""Method, iterations of pre-training, angle of a step."""

VANILLA: Variant = ("vanilla", 0, 0.0)
HE: Variant = ("he", 0, 0.0)
CONTROL: Variant = ("unit_scale", 0, 0.0)
ORTHOGONAL: Variant = ("orthogonal", 0, 0.0)
BATCH_NORM: Variant = ("batch_norm", 0, 0.0)
ASYMMETRIC: Variant = ("batch_norm_asymmetric", 0, 0.0)

LABELS = Labels() | {
    "vanilla": "vanilla",
    "he": "He",
    "unit_scale": "unit scale alone (control)",
    "pretrained": "pre-trained",
    "pretrained_end_to_end": "pre-trained end to end",
    "plain_ascent": "plain ascent",
    "orthogonal": "orthogonal",
    "whitened": "whitened",
    "batch_norm": "batch norm",
    "batch_norm_asymmetric": "batch norm, asymmetric",
}


def name_of(variant: Variant) -> str:
    """What legends and claims call a variant."""
    method, steps, angle = variant
    words = [f"M = {steps}"] * bool(steps) + [f"eta = {angle:g}"] * bool(angle)
    return ", ".join([LABELS[method], *words])


def through_training(tables: Tables) -> pd.DataFrame:
    """One row per depth, variant and replicate: the means over all epochs of its training.

    The last epoch would not do: several networks end at a perfect fit, sooner or later.
    """
    rows = with_divergence(tables["training"])
    keys = ["depth", *VARIANT, "replicate"]
    return rows.groupby(keys, as_index=False, sort=False)[list(NOTHING_LEARNED)].mean()


def starts(tables: Tables) -> pd.DataFrame:
    """The last hidden layer of every network before training."""
    metrics = tables["metrics"]
    return metrics[metrics["layer"] == metrics["depth"]]


def rows_of(rows: pd.DataFrame, variant: Variant) -> pd.DataFrame:
    """The rows of one variant. Raises NoRows where it was not run."""
    method, steps, angle = variant
    found = rows.query("method == @method and pretraining_steps == @steps and angle == @angle")
    return nonempty(found, f"rows: {name_of(variant)}")


def of(rows: pd.DataFrame, variant: Variant, column: str) -> pd.Series:
    """A column of one variant, indexed by replicate. Raises NoRows where it was not run."""
    return rows_of(rows, variant).set_index("replicate")[column]


def variants_in(rows: pd.DataFrame, method: str | None = None) -> list[Variant]:
    """The variants that there are, of one method or of all, by iterations and angle."""
    if method is not None:
        rows = rows[rows["method"] == method]
    found = rows[VARIANT].drop_duplicates().itertuples(index=False, name=None)
    order = list(LABELS | {each: each for each in rows["method"] if each not in LABELS})
    return sorted(found, key=lambda each: (order.index(each[0]), *each[1:]))


def raising_most(tables: Tables, depth: int, method: str = "pretrained") -> dict[int, Variant]:
    """By M the variant that speaks for it at this depth: that whose angle raises r most.

    Raises NoRows where nothing was pre-trained.
    """
    angles = tables["angles"]
    rows = angles[angles["chosen"] & (angles["depth"] == depth) & (angles["method"] == method)]
    return {variant[1]: variant for variant in variants_in(nonempty(rows, f"rows: {method}"))}


def deepest(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the deepest networks."""
    return rows[rows["depth"] == rows["depth"].max()]


def divergences(tables: Tables) -> pd.DataFrame:
    """The last epoch of every network that diverges, with its scores then; all nan where it does in
    the first."""
    key = ["depth", *VARIANT, "replicate"]
    rows = tables["training"].sort_values("epoch")
    lost = ~np.isfinite(rows["train_loss"].astype(float))
    diverged = rows[lost].drop_duplicates(key)[key]
    last = rows[~lost].drop_duplicates(key, keep="last")
    return diverged.merge(last[[*key, "epoch", *NOTHING_LEARNED]], on=key, how="left")
