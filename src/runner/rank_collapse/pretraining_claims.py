"""What paper B says of pre-training (Figures 4, 6, 11, 12), judged over study `pretraining`.

The paper's pre-trained networks are those that are not rescaled; where several numbers of
iterations were run, the one with the highest training accuracy speaks for them, as the best
learning rate does for each. Networks are compared replicate by replicate: they share initialisation
and data.
"""

from itertools import combinations

import pandas as pd

from runner.claims import Claim, Judgement, Tables, Verdict, all_of, compare, trimmed, undecided
from runner.rank_collapse.depth_claims import DEEP, LITTLE, learned_share
from runner.rank_collapse.pretraining_figures import VARIANT, name_of
from runner.rank_collapse.statistics import best_rates, last_epoch

Variant = tuple[str, int, bool]

VANILLA: Variant = ("vanilla", 0, False)
CONTROL: Variant = ("vanilla", 0, True)
BATCH_NORM: Variant = ("batch_norm", 0, False)
ASYMMETRIC: Variant = ("batch_norm_asymmetric", 0, False)


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


def _pair(rows: pd.DataFrame, first: Variant, second: Variant, column: str) -> str:
    values = (of(rows, variant, column).mean() for variant in (first, second))
    texts = [f"{name_of(v)} {x:.3g}" for v, x in zip((first, second), values, strict=True)]
    return ", ".join(texts)


def _at(rows: pd.DataFrame) -> str:
    return f"{rows['data'].iloc[0]}, depth {rows['depth'].iloc[0]}"


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


def beats_batch_norm(tables: Tables, columns: dict[str, bool]) -> Judgement:
    """On the deepest networks, at the end of training."""
    rows = deepest(ends(tables))
    return _beats(rows, best_raised(rows), BATCH_NORM, columns)


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


SECTION = "paper B, Section 4"

RAISED = Claim(
    "rank-is-raised", "pre-training raises r", "paper B, Section 4, Appendix G", rank_is_raised
)
CONTROLLED = Claim(
    "rank-beyond-scale",
    "control: pre-training helps beyond what it does to the scale of the weights",
    "ours, beside paper B, figures 4 and 6",
    rank_beyond_scale,
)


def _trains(figure: str) -> Claim:
    return Claim(
        "pretraining-lets-learn",
        "deep vanilla networks learn when pre-trained, and only then",
        f"{SECTION}, {figure}",
        vanilla_fails_pretrained_learns,
    )


def _ahead(figure: str, columns: dict[str, bool], what: str) -> Claim:
    return Claim(
        "ahead-of-batch-norm",
        f"on the deepest networks pre-trained SGD is ahead of batch norm in {what}",
        f"{SECTION}, {figure}",
        lambda tables: beats_batch_norm(tables, columns),
    )


def _slower(figure: str) -> Claim:
    return Claim(
        "slows-down-less",
        "depth slows pre-trained networks down less than those with batch norm",
        f"{SECTION}, {figure}",
        slows_down_less,
    )


LOSS = {"train_loss": False}
OTHERS = {"train_accuracy": True, "test_loss": False}

CLAIMS = {
    "rank-fig4": [
        RAISED,
        _trains("figure 4"),
        _ahead("figure 4", LOSS, "training loss"),
        _slower("figure 4"),
        CONTROLLED,
    ],
    "rank-fig6": [
        RAISED,
        _trains("figure 6"),
        Claim(
            "more-is-better",
            "the more pre-training, the better vanilla networks learn",
            f"{SECTION}, figure 6 left",
            more_is_better,
        ),
        Claim(
            "order-of-ranks-kept",
            "the order of the initial ranks is kept through training",
            f"{SECTION}, figure 6 right",
            order_is_kept,
        ),
        Claim(
            "asymmetric-start",
            "batch norm from an asymmetric start has a low rank and learns slowly",
            f"{SECTION}, figure 6",
            asymmetric_start_breaks_batch_norm,
        ),
        CONTROLLED,
    ],
    "rank-fig11": [_ahead("figure 11", OTHERS, "training accuracy and test loss"), CONTROLLED],
    "rank-fig12": [
        RAISED,
        _trains("figure 12"),
        _ahead("figure 12", LOSS | OTHERS, "training loss, training accuracy and test loss"),
        _slower("figure 12"),
        CONTROLLED,
    ],
}
