"""What paper B says of pre-training (Figures 4, 6, 11, 12), judged over study `pretraining`.

The paper's pre-trained networks are those that are not rescaled; where several numbers of
iterations were run, the one with the highest training accuracy speaks for them, as the best
learning rate does for each. Networks are compared replicate by replicate: they share initialisation
and data.
"""

from itertools import combinations

import pandas as pd

from runner.papers.rank_collapse.learning import DEEP, LITTLE, learned_share
from runner.papers.rank_collapse.pretraining.tables import (
    ASYMMETRIC,
    BATCH_NORM,
    CONTROL,
    VANILLA,
    Variant,
    best_raised,
    deepest,
    ends,
    name_of,
    of,
    raised,
    starts,
)
from runner.results.claims import (
    Judgement,
    Tables,
    Verdict,
    all_of,
    claim,
    compare,
    trimmed,
    undecided,
)

SECTION = "paper B, Section 4"
LOSS = {"train_loss": False}
OTHERS = {"train_accuracy": True, "test_loss": False}
"""Columns to be ahead in; the value says whether larger is better."""


def _pair(rows: pd.DataFrame, first: Variant, second: Variant, column: str) -> str:
    values = (of(rows, variant, column).mean() for variant in (first, second))
    texts = [f"{name_of(v)} {x:.3g}" for v, x in zip((first, second), values, strict=True)]
    return ", ".join(texts)


def _at(rows: pd.DataFrame) -> str:
    return f"{rows['data'].iloc[0]}, depth {rows['depth'].iloc[0]}"


@claim(
    figure="rank-fig4",
    name="rank-is-raised",
    statement="pre-training raises r",
    source=f"{SECTION}, Appendix G",
)
@claim(
    figure="rank-fig6",
    name="rank-is-raised",
    statement="pre-training raises r",
    source=f"{SECTION}, Appendix G",
)
@claim(
    figure="rank-fig12",
    name="rank-is-raised",
    statement="pre-training raises r",
    source=f"{SECTION}, Appendix G",
)
def rank_is_raised(tables: Tables) -> Judgement:
    """r before training grows with M at every depth, from vanilla on."""
    verdicts, texts = [], []
    for depth, rows in starts(tables).groupby("depth"):
        chain = [VANILLA, *raised(rows)]
        bounds = [of(rows, variant, "rank_bound") for variant in chain]
        verdicts += [compare(*pair) for pair in zip(bounds[:-1], bounds[1:], strict=True)]
        texts.append(f"depth {depth}: " + ", ".join(f"{bound.mean():.3g}" for bound in bounds))
    steps = ", ".join(str(variant[1]) for variant in chain)
    measured = f"r of the last layer at M = {steps}; " + "; ".join(texts)
    return Judgement(all_of(verdicts), measured, "larger with each M, in all trimmed replicates")


@claim(
    figure="rank-fig4",
    name="pretraining-lets-learn",
    statement="deep vanilla networks learn when pre-trained, and only then",
    source=f"{SECTION}, figure 4",
)
@claim(
    figure="rank-fig6",
    name="pretraining-lets-learn",
    statement="deep vanilla networks learn when pre-trained, and only then",
    source=f"{SECTION}, figure 6",
)
@claim(
    figure="rank-fig12",
    name="pretraining-lets-learn",
    statement="deep vanilla networks learn when pre-trained, and only then",
    source=f"{SECTION}, figure 12",
)
def vanilla_fails_pretrained_learns(tables: Tables) -> Judgement:
    """The deepest vanilla network does not learn, the pre-trained one does."""
    rows = deepest(ends(tables))
    best = best_raised(rows)
    expected = f"vanilla: learned share below {LITTLE:g}; pre-trained above it and above vanilla"
    if rows["depth"].iloc[0] <= DEEP:
        return undecided(f"no network of more than {DEEP} layers", expected)
    accuracy = {variant: of(rows, variant, "train_accuracy") for variant in (VANILLA, best)}
    shares = {variant: trimmed(learned_share(a)) for variant, a in accuracy.items()}
    stuck: Verdict = "holds" if shares[VANILLA].max() < LITTLE else "fails"
    learns: Verdict = "holds" if shares[best].min() > LITTLE else "fails"
    verdict = all_of([stuck, learns, compare(accuracy[VANILLA], accuracy[best])])
    measured = f"{_at(rows)}: accuracy {_pair(rows, VANILLA, best, 'train_accuracy')}"
    return Judgement(verdict, measured, expected)


def _beats(
    rows: pd.DataFrame, winner: Variant, loser: Variant, columns: dict[str, bool]
) -> Judgement:
    """Whether `winner` is ahead in each column; its value says whether larger is better."""
    verdicts, texts, wanted = [], [], []
    for column, larger in columns.items():
        ahead, behind = of(rows, winner, column), of(rows, loser, column)
        verdicts.append(compare(behind, ahead) if larger else compare(ahead, behind))
        texts.append(f"{column.replace('_', ' ')} {_pair(rows, winner, loser, column)}")
        wanted.append(f"{'higher' if larger else 'lower'} {column.replace('_', ' ')}")
    expected = f"{' and '.join(wanted)} in all trimmed replicates"
    return Judgement(all_of(verdicts), f"{_at(rows)}: {'; '.join(texts)}", expected)


@claim(
    figure="rank-fig4",
    name="ahead-of-batch-norm",
    statement="on the deepest networks pre-trained SGD is ahead of batch norm in training loss",
    source=f"{SECTION}, figure 4",
    columns=LOSS,
)
@claim(
    figure="rank-fig11",
    name="ahead-of-batch-norm",
    statement="on the deepest networks pre-trained SGD is ahead of batch norm in training accuracy"
    " and test loss",
    source=f"{SECTION}, figure 11",
    columns=OTHERS,
)
@claim(
    figure="rank-fig12",
    name="ahead-of-batch-norm",
    statement="on the deepest networks pre-trained SGD is ahead of batch norm in training loss,"
    " training accuracy and test loss",
    source=f"{SECTION}, figure 12",
    columns=LOSS | OTHERS,
)
def beats_batch_norm(tables: Tables, columns: dict[str, bool]) -> Judgement:
    """On the deepest networks, at the end of training."""
    rows = deepest(ends(tables))
    return _beats(rows, best_raised(rows), BATCH_NORM, columns)


@claim(
    figure="rank-fig4",
    name="slows-down-less",
    statement="depth slows pre-trained networks down less than those with batch norm",
    source=f"{SECTION}, figure 4",
)
@claim(
    figure="rank-fig12",
    name="slows-down-less",
    statement="depth slows pre-trained networks down less than those with batch norm",
    source=f"{SECTION}, figure 12",
)
def slows_down_less(tables: Tables) -> Judgement:
    """From the shallowest to the deepest networks the training loss rises less than batch
    norm's."""
    rows = ends(tables)
    expected = "a smaller rise of the training loss in all trimmed replicates"
    depths = sorted(set(rows["depth"]))
    if len(depths) < 2:
        return undecided("one depth alone", expected)
    ends_of = {depth: rows[rows["depth"] == depth] for depth in (depths[0], depths[-1])}
    first, last = ends_of.values()

    def rise(choose) -> pd.Series:
        return of(last, choose(last), "train_loss") - of(first, choose(first), "train_loss")

    ours, batch_norm = rise(best_raised), rise(lambda rows: BATCH_NORM)
    measured = (
        f"{rows['data'].iloc[0]}, depth {depths[0]} to {depths[-1]}: loss rises by"
        f" {ours.mean():.3g} pre-trained, {batch_norm.mean():.3g} with batch norm"
    )
    return Judgement(compare(ours, batch_norm), measured, expected)


@claim(
    figure="rank-fig6",
    name="more-is-better",
    statement="the more pre-training, the better vanilla networks learn",
    source=f"{SECTION}, figure 6 left",
)
def more_is_better(tables: Tables) -> Judgement:
    """Accuracy of the deepest networks grows with M, from vanilla on."""
    rows = deepest(ends(tables))
    chain = [VANILLA, *raised(rows)]
    accuracy = [of(rows, variant, "train_accuracy") for variant in chain]
    verdicts = [compare(*pair) for pair in zip(accuracy[:-1], accuracy[1:], strict=True)]
    texts = [
        f"{values.mean():.3g} at M = {variant[1]}"
        for variant, values in zip(chain, accuracy, strict=True)
    ]
    measured = f"{_at(rows)}: accuracy {', '.join(texts)}"
    return Judgement(all_of(verdicts), measured, "higher with each M, in all trimmed replicates")


@claim(
    figure="rank-fig6",
    name="order-of-ranks-kept",
    statement="the order of the initial ranks is kept through training",
    source=f"{SECTION}, figure 6 right",
)
def order_is_kept(tables: Tables) -> Judgement:
    """Networks whose r differs before training keep its order to the end."""
    before, after = deepest(starts(tables)), deepest(ends(tables))
    variants = [VANILLA, *raised(after), BATCH_NORM, ASYMMETRIC]
    verdicts, kept, broken = [], 0, []
    for pair in combinations(variants, 2):
        first, second = (of(before, variant, "rank_bound") for variant in pair)
        if compare(first, second) == "undecided":
            continue
        lower, higher = pair if compare(first, second) == "holds" else pair[::-1]
        bounds = [of(after, variant, "rank_bound") for variant in (lower, higher)]
        verdicts.append(compare(*bounds))
        kept += verdicts[-1] == "holds"
        if verdicts[-1] != "holds":
            low, high = (bound.mean() for bound in bounds)
            broken.append(f"{name_of(higher)} {high:.3g} against {name_of(lower)} {low:.3g}")
    measured = f"{_at(after)}: {kept} of {len(verdicts)} pairs keep their order"
    measured += f"; not: {'; '.join(broken)}" if broken else ""
    expected = "every pair that differs before training, in all trimmed replicates"
    return Judgement(all_of(verdicts), measured, expected)


@claim(
    figure="rank-fig6",
    name="asymmetric-start",
    statement="batch norm from an asymmetric start has a low rank and learns slowly",
    source=f"{SECTION}, figure 6",
)
def asymmetric_start_breaks_batch_norm(tables: Tables) -> Judgement:
    """The asymmetric initialisation has the lower r before training and learns more slowly."""
    before, after = deepest(starts(tables)), deepest(ends(tables))
    rank = _beats(before, BATCH_NORM, ASYMMETRIC, {"rank_bound": True})
    speed = _beats(after, BATCH_NORM, ASYMMETRIC, {"train_accuracy": True})
    return Judgement(
        all_of([rank.verdict, speed.verdict]),
        f"{rank.measured} before training; {speed.measured.split(': ')[1]} at the end",
        "higher r before training and higher accuracy, in all trimmed replicates",
    )


@claim(
    figure="rank-fig4",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
)
@claim(
    figure="rank-fig6",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
)
@claim(
    figure="rank-fig11",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
)
@claim(
    figure="rank-fig12",
    name="rank-beyond-scale",
    statement="control: pre-training helps beyond what it does to the scale of the weights",
    source="ours, beside paper B, figures 4 and 6",
)
def rank_beyond_scale(tables: Tables) -> Judgement:
    """The control: is pre-training better than bringing the layers to unit scale and no more?"""
    rows = deepest(ends(tables))
    expected = "higher train accuracy than with unit scale alone, in all trimmed replicates"
    if not rows["rescaled"].any():
        return undecided("no rescaled networks", expected)
    candidates = [best_raised(rows), best_raised(rows, rescaled=True)]
    best = max(candidates, key=lambda variant: of(rows, variant, "train_accuracy").mean())
    return Judgement(
        compare(of(rows, CONTROL, "train_accuracy"), of(rows, best, "train_accuracy")),
        f"{_at(rows)}: accuracy {_pair(rows, best, CONTROL, 'train_accuracy')}",
        expected,
    )
