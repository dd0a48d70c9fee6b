"""What the claims of figure rank-or-size read from the tables, and when they fail."""

import numpy as np
import pandas as pd
import pytest
from in_memory import judged, verdicts
from matplotlib.text import Text

from runner.papers.batch_norm_rank.rank_or_size.figures import (
    RANK_4,
    caption,
    draw_rank_or_size,
    say_ranks,
)
from runner.papers.batch_norm_rank.rank_or_size.tables import networks

RANKS = [1.0, 4.0, 16.0, 64.0]
ACCURACY = {
    ("signed", 0.0): 0.8, ("unscaled", 0.0): 0.1, ("unscaled_layer_rates", 0.0): 0.1,
    ("even", 0.0): 0.4, ("default_biases", 0.0): 0.1, ("pretrained", 0.0): 0.7,
    **{(family, k): 0.4 for family in ("product", "copied") for k in RANKS},
    **{("flipped", f): 0.4 + f for f in (0.0, 0.25, 0.5)},
}  # fmt: skip
"""Accuracy at the better of two learning rates, by family and level."""


def told(changes=None, replicates=8, deviations=None):
    """Return tables that tell these accuracies. changes: other accuracies, by family and level.

    deviations: a function from an accuracy to r of the deviations; by default larger is better.
    """
    training, before = [], []
    for (family, level), accuracy in {**ACCURACY, **(changes or {})}.items():
        arm = {"run": "one", "family": family, "level": level}
        rank = level if family in ("product", "copied") else 50.0
        for replicate in range(replicates + 2):
            own = {**arm, "replicate": replicate, "judged": replicate < replicates}
            reached = accuracy + 0.001 * replicate
            r = (deviations or (lambda value: 1 + value))(reached)
            size = 1e-5 if "unscaled" in family else 1.0
            measured = {"rank": rank, "rank_bound": 1 + r / 50, "deviations_bound": r}
            before.append({**own, **measured, "size": size, "spread": 0.3 + 0.1 * r})
            for rate, share in ((0.01, 1.0), (0.1, 0.5)):
                for epoch in (1, 2):
                    now = reached * share * epoch / 2
                    training.append({**own, "learning_rate": rate, "epoch": epoch,
                                     "train_loss": 2.4 - now, "train_accuracy": now})  # fmt: skip
    return {"training": pd.DataFrame(training), "before": pd.DataFrame(before)}


def test_networks_are_read_at_the_rate_that_other_replicates_chose():
    tables = told()
    rows = tables["training"]
    better = rows["judged"] & (rows["learning_rate"] == 0.1)  # on judged replicates alone
    tables["training"] = rows.assign(train_loss=rows["train_loss"].mask(better, 0.0))
    found = networks(tables)
    assert set(found["learning_rate"]) == {0.01} and set(found["end"]) == {"smallest"}
    assert len(found) == 8 * len(ACCURACY)
    assert found.query("family == 'signed' and replicate == 3")["train_accuracy"].item() == 0.803
    assert "This is an end of the grid for" in caption(tables)


ALL = ("size-decides", "rank-4-is-enough", "directions-order-learning")


@pytest.mark.parametrize(
    ("changes", "failing"),
    [
        ({}, None),
        ({("even", 0.0): 0.7}, "size-decides"),
        ({("unscaled_layer_rates", 0.0): 0.9}, "size-decides"),
        ({("copied", 4.0): 0.2}, "rank-4-is-enough"),
        ({("product", 64.0): 0.6}, "rank-4-is-enough"),
    ],
)
def test_each_claim_fails_where_one_comparison_fails(changes, failing):
    expected = {name: "fails" if name == failing else "holds" for name in ALL}
    assert verdicts("rank-or-size", told(changes)) == expected


def test_directions_fail_where_they_order_the_accuracies_worse_than_the_rank():
    tables = told(deviations=lambda accuracy: 2 - accuracy)
    row = judged("rank-or-size", tables, *ALL[2:]).loc[ALL[2]]
    assert row["verdict"] == "fails" and row["estimate"] < -0.5
    assert "is -1.00 for r of the deviations" in row["note"]


def test_four_replicates_decide_nothing():
    assert set(verdicts("rank-or-size", told(replicates=4)).values()) == {"undecided"}


def test_a_diverged_network_has_accuracy_zero():
    tables = told()
    rows = tables["training"]
    lost = (rows["family"] == "even") & rows["judged"]
    tables["training"] = rows.assign(train_loss=rows["train_loss"].mask(lost, np.nan))
    assert (networks(tables).query("family == 'even'")["train_accuracy"] == 0).all()


def test_the_picture_names_what_it_draws():
    picture, drawn = draw_rank_or_size(told())
    texts = {text.get_text().replace("\n", " ") for text in picture.findobj(Text)}
    names = {text.partition(":")[0] for text in texts}  # single points have their accuracy
    assert {f"{name}, r 1.03" for name in ("copied units", "product A B", "pre-trained")} <= names
    assert {"random signs, r 1.04", "zero biases", "unscaled weights, r 1.02"} <= names
    assert {"25 % flipped", "50 % flipped"} <= names
    few, full = (f"{ACCURACY['product', level]:.2f}" for level in (4.0, 64.0))
    assert {f"rank 4: {few}", f"full rank: {full}"} <= texts
    assert len(drawn) == len(ACCURACY)


@pytest.mark.parametrize(
    ("family", "rank", "pair"),
    [
        ("copied", 4.0, "copied units: 0.20 and 0.40"),
        ("product", 64.0, "product A B: 0.40 and 0.30"),
    ],
)
def test_the_headline_compares_ranks_in_the_construction_in_which_they_differ_most(
    family, rank, pair
):
    changed = {(family, rank): 0.2 if family == "copied" else 0.3}
    said = say_ranks(told(changed), RANK_4["undecided"])
    assert said.endswith(f"({pair})")
