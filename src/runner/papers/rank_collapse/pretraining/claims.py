"""What paper B says of pre-training (Figures 4, 6, 11, 12), judged over study `pretraining`.

The paper's pre-trained networks are those that are not rescaled; where several numbers of
iterations were run, the largest speaks for them, whatever comes out. Networks are compared
replicate by replicate: they share initialisation and data. One that has diverged has an infinite
loss and the accuracy zero.
"""

from itertools import permutations

import numpy as np
import pandas as pd

from runner.papers.rank_collapse.learning import DEEP, LEARNED, LITTLE, learned_share
from runner.papers.rank_collapse.pretraining.tables import (
    ASYMMETRIC,
    BATCH_NORM,
    CONTROL,
    VANILLA,
    Variant,
    curves,
    deepest,
    ends,
    most_raised,
    name_of,
    of,
    raised,
    rows_of,
    starts,
)
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import Evidence, above, below, less, slopes

SECTION = "paper B, Section 4"
LOSS = {"train_loss": False}
OTHERS = {"train_accuracy": True, "test_loss": False}
"""Columns to be ahead in; the value says whether larger is better."""

RAISED = 1.1
"""r before training over that of the vanilla network: by at least a tenth, as r = 1 is collapse."""

BEYOND_SCALE = "higher train accuracy than with unit scale alone, both as it is and at unit scale"


def _deep(rows: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The deepest networks, and why they are not deep in the paper's sense; empty if they are."""
    last = deepest(rows)
    shallow = last.empty or last["depth"].iloc[0] <= DEEP
    return last, f"no network of more than {DEEP} layers" if shallow else ""


def _missing(rows: pd.DataFrame, *variants: Variant | None) -> str:
    """Which of these variants was not run; empty if all were."""
    names = [
        "pre-trained" if each is None else name_of(each)
        for each in variants
        if each is None or rows_of(rows, each).empty
    ]
    return f"not run: {', '.join(names)}" if names else ""


def _means(rows: pd.DataFrame, column: str, *variants: Variant) -> str:
    """The mean of a column for each variant, as it stands in the text of a claim."""
    means = (f"{name_of(each)} {of(rows, each, column).mean():.3g}" for each in variants)
    return f"mean {column.replace('_', ' ')} {', '.join(means)}"


def _at(rows: pd.DataFrame) -> str:
    return f"depth {rows['depth'].iloc[0]}"


@claim(
    figure="rank-fig4",
    name="rank-is-raised",
    statement="pre-training raises r",
    source=f"{SECTION}, Appendix G",
    expected=f"r / r of vanilla above {RAISED:g} before training, for every M at every depth",
    needs={"depth": 3},
)
@claim(
    figure="rank-fig6",
    name="rank-is-raised",
    statement="pre-training raises r",
    source=f"{SECTION}, Appendix G",
    expected=f"r / r of vanilla above {RAISED:g} before training, for every M",
)
@claim(
    figure="rank-fig12",
    name="rank-is-raised",
    statement="pre-training raises r",
    source=f"{SECTION}, Appendix G",
    expected=f"r / r of vanilla above {RAISED:g} before training, for every M at every depth",
    needs={"depth": 3},
)
def rank_is_raised(tables: Tables) -> Found:
    """r before training is above that of the vanilla network, at every depth and M."""
    points = []
    for depth, rows in starts(tables).groupby("depth"):
        vanilla = of(rows, VANILLA, "rank_bound")
        for variant in raised(rows):
            ratio = of(rows, variant, "rank_bound") / vanilla
            point = f"M = {variant[1]}, depth {depth}"
            points.append(above(ratio, RAISED, point=point, unit="ratio"))
    return Found(points)


@claim(
    figure="rank-fig4",
    name="pretraining-lets-learn",
    statement="deep vanilla networks, which do not learn, learn when pre-trained",
    source="paper B, Section 1 (ii), Section 4, figure 4",
    expected=f"learned share: vanilla below {LITTLE:g}, pre-trained above {LEARNED:g}",
    needs={"depth": 3},
)
@claim(
    figure="rank-fig6",
    name="pretraining-lets-learn",
    statement="deep vanilla networks, which do not learn, learn when pre-trained",
    source="paper B, Section 1 (ii), Section 4, figure 6",
    expected=f"learned share: vanilla below {LITTLE:g}, pre-trained above {LEARNED:g}",
)
@claim(
    figure="rank-fig12",
    name="pretraining-lets-learn",
    statement="deep vanilla networks, which do not learn, learn when pre-trained",
    source="paper B, Section 1 (ii), Section 4, figure 12",
    expected=f"learned share: vanilla below {LITTLE:g}, pre-trained above {LEARNED:g}",
    needs={"depth": 3},
)
def vanilla_fails_pretrained_learns(tables: Tables) -> Found:
    """The deepest vanilla network does not learn, the pre-trained one does."""
    rows, missing = _deep(ends(tables))
    best = most_raised(rows)
    if missing := missing or _missing(rows, VANILLA, best):
        return Found([], missing)
    stuck, learned = (learned_share(of(rows, v, "train_accuracy")) for v in (VANILLA, best))
    points = [
        below(stuck, LITTLE, point=f"vanilla, {_at(rows)}", unit="share"),
        above(learned, LEARNED, point=f"{name_of(best)}, {_at(rows)}", unit="share"),
    ]
    return Found(points, _means(rows, "train_accuracy", VANILLA, best))


@claim(
    figure="rank-fig4",
    name="nothing-else-lets-learn",
    statement="control: deep vanilla networks that are brought to unit scale alone do not learn",
    source="ours, beside paper B, figures 4 and 6",
    expected=f"learned share below {LITTLE:g}",
    kind="ours",
    needs={"depth": 3},
)
@claim(
    figure="rank-fig6",
    name="nothing-else-lets-learn",
    statement="control: deep vanilla networks that are brought to unit scale alone do not learn",
    source="ours, beside paper B, figures 4 and 6",
    expected=f"learned share below {LITTLE:g}",
    kind="ours",
)
@claim(
    figure="rank-fig12",
    name="nothing-else-lets-learn",
    statement="control: deep vanilla networks that are brought to unit scale alone do not learn",
    source="ours, beside paper B, figures 4 and 6",
    expected=f"learned share below {LITTLE:g}",
    kind="ours",
    needs={"depth": 3},
)
def control_does_not_learn(tables: Tables) -> Found:
    """Whether pre-training is needed: unit scale without it lets the deepest network learn, too."""
    rows, missing = _deep(ends(tables))
    if missing := missing or _missing(rows, CONTROL):
        return Found([], missing)
    share = learned_share(of(rows, CONTROL, "train_accuracy"))
    points = [below(share, LITTLE, point=f"{name_of(CONTROL)}, {_at(rows)}", unit="share")]
    return Found(points, _means(rows, "train_accuracy", CONTROL))


@claim(
    figure="rank-fig4",
    name="ahead-of-batch-norm",
    statement="on the deepest networks pre-trained SGD is ahead of batch norm in training loss",
    source=f"{SECTION}, figure 4",
    expected="lower train loss at the end",
    needs={"depth": 3},
    columns=LOSS,
)
@claim(
    figure="rank-fig11",
    name="ahead-of-batch-norm",
    statement="on the deepest networks pre-trained SGD is ahead of batch norm in training accuracy"
    " and test loss",
    source=f"{SECTION}, figure 11",
    expected="higher train accuracy and lower test loss at the end",
    needs={"depth": 3},
    columns=OTHERS,
)
@claim(
    figure="rank-fig12",
    name="ahead-of-batch-norm",
    statement="on the deepest networks pre-trained SGD is ahead of batch norm in training loss,"
    " training accuracy and test loss",
    source=f"{SECTION}, figure 12",
    expected="lower train loss, higher train accuracy and lower test loss at the end",
    needs={"depth": 3},
    columns=LOSS | OTHERS,
)
def beats_batch_norm(tables: Tables, columns: dict[str, bool]) -> Found:
    """On the deepest networks, at the end of training."""
    rows, missing = _deep(ends(tables))
    best = most_raised(rows)
    if missing := missing or _missing(rows, BATCH_NORM, best):
        return Found([], missing)
    points = [_ahead(rows, best, BATCH_NORM, *column) for column in columns.items()]
    return Found(points, "; ".join(_means(rows, column, best, BATCH_NORM) for column in columns))


def _ahead(
    rows: pd.DataFrame, winner: Variant, loser: Variant, column: str, larger: bool
) -> Evidence:
    """Whether one variant is ahead of the other in a column of one depth."""
    values = [of(rows, winner, column), of(rows, loser, column)]
    lower, higher = values[::-1] if larger else values
    return less(lower, higher, point=f"{column.replace('_', ' ')}, {_at(rows)}")


@claim(
    figure="rank-fig4",
    name="slows-down-less",
    statement="depth slows pre-trained networks down less than those with batch norm",
    source=f"{SECTION}, figure 4",
    expected="slope of the training loss in depth below that of batch norm",
    needs={"depth": 3},
)
@claim(
    figure="rank-fig12",
    name="slows-down-less",
    statement="depth slows pre-trained networks down less than those with batch norm",
    source=f"{SECTION}, figure 12",
    expected="slope of the training loss in depth below that of batch norm",
    needs={"depth": 3},
)
def slows_down_less(tables: Tables) -> Found:
    """With every layer the training loss rises by less than batch norm's.

    A network that has diverged at any depth has no slope, and its replicate speaks for neither.
    """
    rows, missing = _deep(ends(tables))
    best = most_raised(rows)
    if missing := missing or _missing(rows, BATCH_NORM, best):
        return Found([], missing)
    finite = ends(tables).replace(np.inf, np.nan)
    slope = [slopes(rows_of(finite, each), "depth", "train_loss") for each in (best, BATCH_NORM)]
    words = f"loss a layer {slope[0].mean():.3g} pre-trained, {slope[1].mean():.3g} with batch norm"
    return Found([less(*slope, point="batch norm's slope less that of pre-trained")], words)


@claim(
    figure="rank-fig6",
    name="more-is-better",
    statement="the more pre-training, the better vanilla networks learn",
    source=f"{SECTION}, figure 6 left",
    expected="higher training accuracy with each larger M, from M = 0 on",
    needs={"pretraining_steps": 3},
)
def more_is_better(tables: Tables) -> Found:
    """Accuracy of the deepest networks grows with M, from vanilla on."""
    rows, missing = _deep(ends(tables))
    if missing := missing or _missing(rows, VANILLA):
        return Found([], missing)
    chain = [VANILLA, *raised(rows)]
    accuracy = [of(rows, variant, "train_accuracy") for variant in chain]
    points = [
        less(accuracy[i], accuracy[i + 1], point=f"M = {chain[i][1]} to {chain[i + 1][1]}")
        for i in range(len(chain) - 1)
    ]
    return Found(points, _means(rows, "train_accuracy", *chain))


@claim(
    figure="rank-fig6",
    name="order-of-ranks-kept",
    statement="the order of the initial ranks is kept through training",
    source=f"{SECTION}, figure 6 right; Section 1 (ii)",
    expected="r / r of the lower one above 1 at every epoch, for every pair of networks whose r"
    " differs by a tenth or more before training (least of all pairs and epochs)",
    needs={"pretraining_steps": 3},
)
def order_is_kept(tables: Tables) -> Found:
    """Networks whose r differs before training keep its order in every epoch.

    One number for each replicate, the least of all its pairs and epochs; a network that diverges
    has no r any more, and its replicate speaks for neither side.
    """
    before, missing = _deep(starts(tables))
    rows = deepest(curves(tables))
    variants = [VANILLA, *raised(rows), BATCH_NORM, ASYMMETRIC]
    if missing := missing or _missing(rows, *variants):
        return Found([], missing)
    initial = {each: of(before, each, "rank_bound") for each in variants}
    paths = {
        each: rows_of(rows, each).pivot(index="epoch", columns="replicate", values="rank_bound")
        for each in variants
    }
    least = {}
    for lower, higher in permutations(variants, 2):
        apart = initial[higher] > RAISED * initial[lower]
        ratio = (paths[higher] / paths[lower]).min(skipna=False)
        least[f"{name_of(higher)} over {name_of(lower)}"] = ratio.where(apart, np.inf)
    pairs = pd.DataFrame(least)
    worst = pairs.min(axis=1, skipna=False).replace(np.inf, np.nan)
    pair = pairs.median().idxmin()
    return Found([above(worst, 1.0, point=_at(rows), unit="ratio")], f"least of {pair}")


@claim(
    figure="rank-fig6",
    name="asymmetric-start",
    statement="batch norm from an asymmetric start has a low rank and learns slowly",
    source=f"{SECTION}, figure 6",
    expected="r before training and training accuracy at the end below those of the standard start",
)
def asymmetric_start_breaks_batch_norm(tables: Tables) -> Found:
    """The asymmetric initialisation has the lower r before training and learns more slowly."""
    before, after = deepest(starts(tables)), deepest(ends(tables))
    if missing := _deep(after)[1] or _missing(after, BATCH_NORM, ASYMMETRIC):
        return Found([], missing)
    points = [
        _ahead(before, BATCH_NORM, ASYMMETRIC, "rank_bound", True),
        _ahead(after, BATCH_NORM, ASYMMETRIC, "train_accuracy", True),
    ]
    return Found(points, _means(after, "train_accuracy", BATCH_NORM, ASYMMETRIC))


@claim(
    figure="rank-fig4",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
    expected=BEYOND_SCALE,
    kind="ours",
    needs={"depth": 3},
)
@claim(
    figure="rank-fig6",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
    expected=BEYOND_SCALE,
    kind="ours",
)
@claim(
    figure="rank-fig11",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
    expected=BEYOND_SCALE,
    kind="ours",
    needs={"depth": 3},
)
@claim(
    figure="rank-fig12",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
    expected=BEYOND_SCALE,
    kind="ours",
    needs={"depth": 3},
)
def rank_beyond_scale(tables: Tables) -> Found:
    """The control: is pre-training better than bringing the layers to unit scale and no more?

    As the paper has it, and at the same scale as the control, where rank alone differs.
    """
    rows, missing = _deep(ends(tables))
    raw, rescaled = most_raised(rows), most_raised(rows, rescaled=True)
    if missing := missing or _missing(rows, CONTROL, raw, rescaled):
        return Found([], missing)
    control = of(rows, CONTROL, "train_accuracy")
    points = [
        less(control, of(rows, each, "train_accuracy"), point=f"{name_of(each)}, {_at(rows)}")
        for each in (raw, rescaled)
    ]
    return Found(points, _means(rows, "train_accuracy", CONTROL, raw, rescaled))
