"""Networks that diverge: where that is, and what bands and medians make of them."""

from math import inf, nan

import pandas as pd

from runner.papers.batch_norm_rank.pretraining.figures import drawn_curves
from runner.papers.batch_norm_rank.pretraining.tables import VANILLA, VARIANT, divergences

LOSSES = ((1.0, 0.8, 0.6), (1.0, 0.9, nan), (nan, nan, nan))
"""By replicate and epoch: one goes on, one diverges in the third epoch, one in the first."""


def tables() -> dict[str, pd.DataFrame]:
    rows = [
        dict(zip(VARIANT, VANILLA, strict=True))
        | {"depth": 8, "replicate": replicate, "learning_rate": 0.1, "epoch": epoch}
        | {"train_loss": loss, "test_loss": loss, "rank_bound": 2.0}
        | {"train_accuracy": 0.1 * epoch, "test_accuracy": 0.1 * epoch}
        for replicate, losses in enumerate(LOSSES)
        for epoch, loss in enumerate(losses, start=1)
    ]
    return {"training": pd.DataFrame(rows)}


def test_a_network_diverges_behind_its_last_finite_epoch():
    found = divergences(tables()).set_index("replicate").sort_index()
    assert list(found.index) == [1, 2]
    assert found.loc[1, "epoch"] == 2 and found.loc[1, "train_loss"] == 0.9
    assert found.loc[2, ["epoch", "train_loss", "train_accuracy"]].isna().all()


def test_the_median_counts_what_has_diverged_and_the_range_does_not():
    drawn = drawn_curves(tables()).set_index("epoch")
    assert list(drawn["train_loss"]) == [1.0, 0.9, inf]
    assert list(drawn["train_loss_high"]) == [1.0, 0.9, 0.6]
    assert list(drawn["train_accuracy_low"]) == [0.1, 0.2, 0.1 * 3]
