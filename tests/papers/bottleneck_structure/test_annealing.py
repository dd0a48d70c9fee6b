"""Annealed and constant weight decay from the same initial weights."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from in_memory import context, judged, tables_of, verdicts

from runner.papers.bottleneck_structure.annealing.config import Annealing
from runner.papers.bottleneck_structure.annealing.figures import (
    arm,
    draw_annealing,
    say_depths,
    say_loss,
)
from runner.papers.bottleneck_structure.annealing.study import run
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.bottleneck.study import run as run_bottleneck
from runner.papers.bottleneck_structure.recipes import RECIPES
from runner.results.rows import NoRows

SIZES = {"depths": [3, 4], "width": 6, "samples": 12, "test_samples": 30, "ridge": 0.01}
SMALL = Annealing(**SIZES, steps=260, replicates=2)  # annealed training begins after 200 steps

FIGURE = "bottleneck-annealing"


@pytest.mark.parametrize(
    ("recipe", "theirs"), [("annealed", "annealed"), ("constant", "plain")], ids=str
)
def test_with_the_settings_of_a_procedure_of_figure_1_the_networks_are_its_networks(recipe, theirs):
    settings = {"gain": RECIPES[theirs].gain, "learning_rate": RECIPES[theirs].learning_rate}
    found = pd.DataFrame(run(replace(SMALL, recipe=recipe, **settings), context()))
    config = Bottleneck(**SIZES, recipe=theirs, steps=260, replicates=2)
    rows = [row for row in run_bottleneck(config, context()) if row.table == "metrics"]
    same = ["depth", "replicate", "parameter_norm", "train_cost", "test_cost", "loss", "rank"]
    pd.testing.assert_frame_equal(found[same], pd.DataFrame(rows)[same], check_exact=True)


def test_the_recipes_start_alike_and_differ_by_the_weight_decay_alone():
    """Without weight decay, or at the first step without annealing, both are one training."""
    both = [
        tables_of(replace(SMALL, recipe=recipe, ridge=0.0))["metrics"].drop(columns="recipe")
        for recipe in ("annealed", "constant")
    ]
    pd.testing.assert_frame_equal(*both, check_exact=True)
    norms = [
        tables_of(replace(SMALL, recipe=recipe))["metrics"]["parameter_norm"]
        for recipe in ("annealed", "constant")
    ]
    assert (norms[0] != norms[1]).all()


def networks(fits: dict[tuple[str, float], int], losses: dict[str, float]) -> dict:
    """Return the table of eight tasks, five depths: how many depths fit, and the losses there."""
    depths = np.array([6, 10, 14, 18, 26])
    rows = [
        {"recipe": recipe, "gain": gain, "depth": depth, "replicate": task, "rank": 2}
        | {"train_cost": 1.0 if place >= most else 0.005, "parameter_norm": 30.0}
        | {"loss": 1.0 if place >= most else losses[recipe] * (1 + 0.01 * task)}
        for (recipe, gain), most in fits.items()
        for place, depth in enumerate(depths)
        for task in range(8)
    ]
    return {"metrics": pd.DataFrame(rows).assign(run="run", test_cost=0.1, learning_rate=0.003)}


ARMS = [("annealed", 1.2), ("annealed", 1.0), ("constant", 1.2), ("constant", 1.0)]


@pytest.mark.parametrize(
    ("fits", "losses", "expected"),
    [
        ((5, 5, 3, 2), (0.03, 0.04), ("holds", "holds", "holds")),
        ((4, 4, 5, 2), (0.04, 0.03), ("fails", "fails", "holds")),  # annealing is not what helps
        ((5, 5, 5, 2), (0.03, 0.04), ("undecided", "holds", "holds")),  # nor if both fit alike
        ((5, 4, 2, 3), (0.03, 0.04), ("holds", "holds", "fails")),  # the weights are not
        ((5, 4, 2, 0), (0.03, 0.04), ("holds", "undecided", "holds")),  # no depth in common
    ],
)
def test_rules_separate_annealing_from_initial_weights(fits, losses, expected):
    losses = dict(zip(("annealed", "constant"), losses, strict=True))
    tables = networks(dict(zip(ARMS, fits, strict=True)), losses)
    assert tuple(verdicts(FIGURE, tables).values()) == expected
    compared = judged(FIGURE, tables, "annealing-fits-deeper")["estimate"].iloc[0]
    assert compared == min(fits[0] - fits[2], fits[1] - fits[3])


def test_a_missing_arm_is_not_judged():
    tables = networks({ARMS[0]: 5, ARMS[1]: 5}, {"annealed": 0.03})
    assert set(verdicts(FIGURE, tables).values()) == {"undecided"}
    with pytest.raises(NoRows):
        say_depths(tables)


def test_the_headline_counts_the_deepest_networks_and_four_looks_differ_without_color():
    tables = networks(dict(zip(ARMS, (5, 4, 3, 2), strict=True)), {"annealed": 1, "constant": 2})
    tables["metrics"].loc[0:0, "train_cost"] = 1.0  # depth 6: not counted
    assert say_depths(tables) == (
        "From equal weights of gain 1.2, 8 of 8 networks of depth 26 fit after annealed training"
        " and 0 with weight decay λ throughout"
    )
    assert draw_annealing(tables)[1]["fits"].sum() == 8 * 14 - 1
    assert len({(arm(key).look.marker, arm(key).look.hollow) for key in ARMS}) == 4


def test_the_headline_compares_losses_of_equal_weights_where_both_fit():
    losses = {"annealed": 0.03, "constant": 0.036}
    tables = networks(dict(zip(ARMS, (5, 5, 4, 2), strict=True)), losses)
    rows = tables["metrics"]
    deep = (rows["recipe"] == "constant") & (rows["gain"] == 1.2) & (rows["depth"] == 18)
    rows.loc[deep, "loss"] *= 1.25
    rows.loc[rows["gain"] == 1.0, "loss"] *= 7
    assert say_loss(tables) == (
        "From equal weights of gain 1.2, training with λ throughout ends 20 to 50 % above annealed"
        " training's loss"
    )
    picture, _ = draw_annealing(tables)
    words = {text.get_text() for text in picture.axes[1].texts}
    assert {"20\u00a0%", "50\u00a0%"} <= words
    with pytest.raises(NoRows):
        say_loss(networks({ARMS[0]: 5, ARMS[1]: 5}, losses))
