"""Pre-training by a protocol of ours beside Section 4 of paper B, judged over study `pretraining`.

Our protocol turns the weights of a layer at unit scale towards a higher r. The authors' code
(github.com/jonaskohler/Batchnorm_prevents_rank_collpase) does another experiment, so that what is
said of pre-training here is ours and no verdict on the paper.

For each M the angle that raises r most on replicates of their own speaks, whatever is learned
there. M = 75 is the paper's; what more of it does, the largest M, is judged beside it. Networks are
compared replicate by replicate: they share initialisation and data. What they learn is the mean
over all epochs; one that has diverged has an infinite loss and the accuracy zero.
"""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import permutations

import numpy as np
import pandas as pd

from runner.papers.batch_norm_rank.learning import DEEP, LEARNED, LITTLE, learned_share
from runner.papers.batch_norm_rank.pretraining.tables import (
    ASYMMETRIC,
    BATCH_NORM,
    CONTROL,
    HE,
    ORTHOGONAL,
    VANILLA,
    VARIANT,
    Variant,
    deepest,
    name_of,
    of,
    raising_most,
    rows_of,
    starts,
    through_training,
    variants_in,
)
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import Evidence, above, below, less, slopes
from runner.results.rows import NoRows, nonempty

SECTION = "paper B, Section 4"
OURS = "ours, beside paper B, figures 4 and 6"
BY_TURNS = f"ours, by turns at unit scale and not the authors' protocol, beside {SECTION}"

LOSS = {"train_loss": False}
OTHERS = {"train_accuracy": True, "test_loss": False}
"""Columns to be ahead in; the value says whether larger is better."""

RAISED = 1.1
"""r over that of another network, by at least a tenth: two that are nearer are not told apart."""

AT_UNIT_SCALE = ("unit_scale", "pretrained", "pretrained_end_to_end", "orthogonal")
"""Methods whose layers are all scaled to root mean square one before training."""

SCALE_ALONE = (CONTROL, HE)
"""What gives the weights a scale and does nothing else: the controls of every statement."""

OF_THE_PAPER = 75
"""M of figure 6: the larger of its two."""

BY_DEPTH = {"depth": 3}
"""What a statement on growing depth needs."""

NOTHING: Mapping[str, int] = {}
"""What a statement on one depth needs."""


def _deep(rows: pd.DataFrame) -> pd.DataFrame:
    """The deepest networks. Raises NoRows when they are not deep in the paper's sense."""
    last = deepest(rows)
    return nonempty(last[last["depth"] > DEEP], f"network of more than {DEEP} layers")


def _learned(tables: Tables) -> tuple[pd.DataFrame, dict[int, Variant]]:
    """What the deepest networks learn, and the variant that speaks for each M."""
    rows = _deep(through_training(tables))
    return rows, raising_most(tables, rows["depth"].iloc[0])


def _speaking(most: dict[int, Variant], M: int | None) -> Variant:
    """That which speaks for M, or for the largest M (None). Raises NoRows where M was not run."""
    M = max(most) if M is None else M
    if M not in most:
        raise NoRows(f"rows: pre-trained, M = {M}")
    return most[M]


def _at(rows: pd.DataFrame) -> str:
    return f"depth {rows['depth'].iloc[0]}"


def _means(rows: pd.DataFrame, column: str, *variants: Variant) -> str:
    """The mean of a column for each variant, as it stands in the text of a claim."""
    means = (f"{name_of(each)} {of(rows, each, column).mean():.3g}" for each in variants)
    return f"mean {column.replace('_', ' ')}: {', '.join(means)}"


def _ahead(
    rows: pd.DataFrame, winner: Variant, loser: Variant, column: str, larger: bool = True
) -> Evidence:
    """Whether one variant is ahead of the other in a column of one depth."""
    values = [of(rows, winner, column), of(rows, loser, column)]
    lower, higher = values[::-1] if larger else values
    return less(lower, higher, point=f"{name_of(winner)}, {column.replace('_', ' ')}, {_at(rows)}")


def rank_is_raised(tables: Tables, M: int | None) -> Found:
    """At every depth."""
    points = []
    for depth, rows in starts(tables).groupby("depth"):
        best = _speaking(raising_most(tables, depth), M)
        for other in (BATCH_NORM, VANILLA):
            ratio = of(rows, best, "rank_bound") / of(rows, other, "rank_bound")
            point = f"{name_of(best)} over {name_of(other)}, depth {depth}"
            points.append(above(ratio, RAISED, point=point, unit="ratio"))
    return Found(points)


def scale_alone_raises_no_rank(tables: Tables) -> Found:
    """What pre-training does beyond the scale of the weights is to raise r."""
    points = [
        below(
            of(rows, each, "rank_bound") / of(rows, BATCH_NORM, "rank_bound"),
            1.0,
            point=f"{name_of(each)} over {name_of(BATCH_NORM)}, depth {depth}",
            unit="ratio",
        )
        for depth, rows in starts(tables).groupby("depth")
        for each in SCALE_ALONE
    ]
    return Found(points)


def end_to_end_raises_rank(tables: Tables) -> Found:
    """Of the deepest networks, against those that it starts from."""
    rows = _deep(starts(tables))
    (variant,) = raising_most(tables, rows["depth"].iloc[0], "pretrained_end_to_end").values()
    ratio = of(rows, variant, "rank_bound") / of(rows, CONTROL, "rank_bound")
    return Found([above(ratio, RAISED, point=f"{name_of(variant)}, {_at(rows)}", unit="ratio")])


def vanilla_fails_pretrained_learns(tables: Tables, M: int | None) -> Found:
    """The deepest vanilla network does not learn, the pre-trained one does."""
    rows, most = _learned(tables)
    best = _speaking(most, M)
    stuck, learned = (learned_share(of(rows, v, "train_accuracy")) for v in (VANILLA, best))
    points = [
        below(stuck, LITTLE, point=f"vanilla, {_at(rows)}", unit="share"),
        above(learned, LEARNED, point=f"{name_of(best)}, {_at(rows)}", unit="share"),
    ]
    return Found(points, _means(rows, "train_accuracy", VANILLA, best))


def nothing_else_lets_learn(tables: Tables) -> Found:
    """Whether pre-training is needed at all."""
    rows = _deep(through_training(tables))
    both = {each: learned_share(of(rows, each, "train_accuracy")) for each in SCALE_ALONE}
    larger = pd.DataFrame(both).max(axis=1)
    words = _means(rows, "train_accuracy", *SCALE_ALONE)
    return Found([below(larger, LITTLE, point=_at(rows), unit="share")], words)


def beats_batch_norm(tables: Tables, columns: dict[str, bool], M: int | None) -> Found:
    """At the deepest."""
    rows, most = _learned(tables)
    best = _speaking(most, M)
    points = [_ahead(rows, best, BATCH_NORM, *column) for column in columns.items()]
    return Found(points, "; ".join(_means(rows, column, best, BATCH_NORM) for column in columns))


def scale_alone_beats_batch_norm(tables: Tables, columns: dict[str, bool]) -> Found:
    """At the deepest."""
    rows = _deep(through_training(tables))
    points = [
        _ahead(rows, each, BATCH_NORM, *column)
        for column in columns.items()
        for each in SCALE_ALONE
    ]
    words = (_means(rows, column, *SCALE_ALONE, BATCH_NORM) for column in columns)
    return Found(points, "; ".join(words))


def _slopes(tables: Tables, *variants: Callable[[int], Variant]) -> list[pd.Series]:
    """For each variant, given by the depth, the slope of its mean training loss in depth.

    A network that has diverged at any depth has no slope, and its replicate speaks for neither
    side. Raises NoRows where a variant lacks a depth, or no network is deep.
    """
    rows = through_training(tables).replace(np.inf, np.nan)
    _deep(rows)
    by_depth = list(rows.groupby("depth"))
    found = [pd.concat([rows_of(part, each(d)) for d, part in by_depth]) for each in variants]
    return [slopes(each, "depth", "train_loss") for each in found]


def slows_down_less(tables: Tables, M: int | None) -> Found:
    """With every layer the training loss rises by less than batch norm's."""
    own, other = _slopes(
        tables,
        lambda depth: _speaking(raising_most(tables, depth), M),
        lambda depth: BATCH_NORM,
    )
    words = f"loss a layer {own.mean():.3g} pre-trained, {other.mean():.3g} with batch norm"
    return Found([less(own, other, point="batch norm's slope less that of pre-trained")], words)


def scale_alone_slows_down_less(tables: Tables) -> Found:
    """What is said of pre-training is said of the scale of the weights, where this holds."""
    every = (*SCALE_ALONE, BATCH_NORM)
    *own, other = _slopes(tables, *(lambda depth, each=each: each for each in every))
    points = [
        less(slope, other, point=f"batch norm's slope less that of {name_of(each)}")
        for slope, each in zip(own, SCALE_ALONE, strict=True)
    ]
    means = ", ".join(
        f"{name_of(each)} {slope.mean():.3g}" for each, slope in zip(SCALE_ALONE, own, strict=True)
    )
    return Found(points, f"loss a layer: {means}, batch norm {other.mean():.3g}")


def more_is_better(tables: Tables) -> Found:
    """From the control on, which has the scale of pre-trained networks."""
    rows, most = _learned(tables)
    chain = [CONTROL, *most.values()]
    accuracy = [of(rows, variant, "train_accuracy") for variant in chain]
    points = [
        less(accuracy[i], accuracy[i + 1], point=f"M = {chain[i][1]} to {chain[i + 1][1]}")
        for i in range(len(chain) - 1)
    ]
    return Found(points, _means(rows, "train_accuracy", *chain))


def order_is_kept(tables: Tables, controls: tuple[Variant, ...] = ()) -> Found:
    """Those of the paper's figure 6, and what M = 300 adds; with controls, the pairs that these are
    in. A pair is one that differs in every replicate. A network that diverges has no r any more,
    and its replicate speaks for neither side.
    """
    before, rows = _deep(starts(tables)), _deep(tables["training"])
    most = raising_most(tables, before["depth"].iloc[0])
    variants = [VANILLA, *most.values(), BATCH_NORM, ASYMMETRIC, *controls]
    initial = {each: of(before, each, "rank_bound") for each in variants}
    mean = {
        each: rows_of(rows, each).groupby("replicate")["rank_bound"].apply(
            lambda path: path.mean(skipna=False)
        )
        for each in variants
    }  # fmt: skip
    points = [
        less(
            mean[lower],
            mean[higher],
            point=f"{name_of(higher)} over {name_of(lower)}",
            unit="ratio",
        )
        for lower, higher in permutations(variants, 2)
        if not controls or {lower, higher} & set(controls)
        if (initial[higher] > RAISED * initial[lower]).all()
    ]
    return Found(points, f"{len(points)} pairs")


def asymmetric_start_breaks_batch_norm(tables: Tables) -> Found:
    """The asymmetric initialisation has the lower r before training and learns more slowly."""
    before, after = _deep(starts(tables)), _deep(through_training(tables))
    points = [
        _ahead(before, BATCH_NORM, ASYMMETRIC, "rank_bound"),
        _ahead(after, BATCH_NORM, ASYMMETRIC, "train_accuracy"),
    ]
    return Found(points, _means(after, "train_accuracy", BATCH_NORM, ASYMMETRIC))


def rank_beyond_scale(tables: Tables, M: int | None) -> Found:
    """At the same scale as the control, where rank alone differs."""
    rows, most = _learned(tables)
    best = _speaking(most, M)
    points = [_ahead(rows, best, CONTROL, "train_accuracy")]
    return Found(points, _means(rows, "train_accuracy", CONTROL, best))


def rank_beyond_scale_at_every_angle(tables: Tables) -> Found:
    """All pre-trained networks against the control."""
    rows = _deep(through_training(tables))
    every = variants_in(rows, "pretrained")
    points = [_ahead(rows, each, CONTROL, "train_accuracy") for each in every]
    return Found(points, _means(rows, "train_accuracy", CONTROL))


def higher_rank_learns_better(tables: Tables) -> Found:
    """At fixed scale, whatever r comes from: the explanation of the paper as it stands."""
    before = _deep(starts(tables))
    rows, most = _learned(tables)
    pretrained = most[max(most)]
    r = [of(before, each, "rank_bound") for each in (pretrained, ORTHOGONAL)]
    apart = nonempty(r[0][r[0] > RAISED * r[1]], f"{name_of(pretrained)} with the higher r")
    rows = rows[rows["replicate"].isin(apart.index)]
    words = f"{_means(before, 'rank_bound', pretrained, ORTHOGONAL)}"
    words += f"; {_means(rows, 'train_accuracy', pretrained, ORTHOGONAL)}"
    return Found([_ahead(rows, pretrained, ORTHOGONAL, "train_accuracy")], words)


def rank_and_learning_go_together(tables: Tables) -> Found:
    """One correlation for each replicate."""
    keys = [*VARIANT, "replicate"]
    learned = _deep(through_training(tables))
    both = learned.merge(_deep(starts(tables))[[*keys, "rank_bound"]], on=keys)
    both = both[both["method"].isin(AT_UNIT_SCALE)]
    correlation = both.groupby("replicate")[["rank_bound", "train_accuracy"]].apply(
        lambda of_one: of_one["rank_bound"].corr(of_one["train_accuracy"], method="spearman")
    )
    count = len(variants_in(both))
    return Found([above(correlation, point=f"{count} networks, {_at(learned)}")])


def plain_ascent_inflates(tables: Tables) -> Found:
    """Before training; what is no longer finite is larger than all."""
    rows = _deep(starts(tables)).fillna({"root_mean_square": np.inf})
    plain = variants_in(nonempty(rows[rows["method"] == "plain_ascent"], "rows: plain ascent"))
    size = {each: of(rows, each, "root_mean_square") for each in [VANILLA, *plain]}
    points = [
        above(size[plain[-1]] / size[VANILLA], 10, point=name_of(plain[-1]), unit="ratio"),
        *(
            less(size[a], size[b], point=f"{name_of(b)} over {name_of(a)}", unit="ratio")
            for a, b in zip(plain, plain[1:], strict=False)
        ),
    ]
    return Found(points, _means(rows, "root_mean_square", VANILLA, *plain))


def _at_both_budgets(
    name: str,
    statement: str,
    source: str,
    judge: Callable[..., Found],
    expected: str,
    needs: Mapping[str, int] = NOTHING,
) -> list[Claim]:
    """Return two claims of ours by one judge: with the paper's M, and with the largest there is."""
    return [
        Claim(
            name + suffix,
            f"{statement} ({words})",
            source,
            partial(judge, M=M),
            expected,
            kind="ours",
            needs=needs,
        )
        for M, suffix, words in (
            (OF_THE_PAPER, "", f"M = {OF_THE_PAPER}"),
            (None, "-with-more", "the largest M"),
        )
    ]


def _rank_is_raised(needs: Mapping[str, int] = NOTHING) -> list[Claim]:
    return _at_both_budgets(
        "rank-is-raised",
        "our pre-training raises r above that of batch norm",
        f"{BY_TURNS}, Appendix G, figure 6 right",
        rank_is_raised,
        f"r of the last layer before training: pre-trained / batch norm above {RAISED:g}, and"
        f" pre-trained / vanilla above {RAISED:g}",
        needs,
    )


def _scale_alone_raises_no_rank(needs: Mapping[str, int] = NOTHING) -> Claim:
    return Claim(
        "scale-alone-raises-no-rank",
        "control: neither unit scale alone nor He's initialisation raises r above that of batch"
        " norm",
        OURS,
        scale_alone_raises_no_rank,
        "r of the last layer before training: either / batch norm below 1 at every depth",
        kind="ours",
        needs=needs,
    )


def _lets_learn(figure: int, needs: Mapping[str, int] = NOTHING) -> list[Claim]:
    return _at_both_budgets(
        "pretraining-lets-learn",
        "deep vanilla networks, which do not learn, learn with our pre-training",
        f"{BY_TURNS}, figure {figure}",
        vanilla_fails_pretrained_learns,
        f"learned share: vanilla below {LITTLE:g}, pre-trained above {LEARNED:g}",
        needs,
    )


def _only_then(needs: Mapping[str, int] = NOTHING) -> Claim:
    return Claim(
        "only-then",
        "they learn only then: neither at unit scale alone, nor with He's initialisation",
        OURS,
        nothing_else_lets_learn,
        f"learned share below {LITTLE:g} for both (the larger of the two)",
        kind="ours",
        needs=needs,
    )


def _beyond_scale(needs: Mapping[str, int] = NOTHING) -> list[Claim]:
    return _at_both_budgets(
        "rank-beyond-scale",
        "our pre-training helps beyond what it does to the scale of the weights",
        OURS,
        rank_beyond_scale,
        "higher training accuracy than at unit scale alone",
        needs,
    )


def _ahead_of_batch_norm(
    figure: int, words: str, expected: str, columns: dict[str, bool]
) -> list[Claim]:
    """Return what a figure by depth says of these columns, and its control."""
    return [
        *_at_both_budgets(
            "ahead-of-batch-norm",
            f"on the deepest networks SGD after our pre-training is ahead of batch norm in {words}",
            f"{BY_TURNS}, figure {figure}",
            partial(beats_batch_norm, columns=columns),
            f"{expected}, in the mean of all epochs",
            BY_DEPTH,
        ),
        Claim(
            "scale-alone-ahead-of-batch-norm",
            "control: at unit scale alone, and from He's initialisation, SGD is ahead of batch norm"
            f" on the deepest networks, too, in {words}",
            OURS,
            partial(scale_alone_beats_batch_norm, columns=columns),
            "as for pre-trained networks, for both",
            kind="ours",
            needs=BY_DEPTH,
        ),
    ]


def _slows_down_less(figure: int) -> list[Claim]:
    """Return what a figure by depth says of growing depth, and its control."""
    return [
        *_at_both_budgets(
            "slows-down-less",
            "depth slows networks of our pre-training down less than those with batch norm",
            f"{BY_TURNS}, figure {figure}",
            slows_down_less,
            "slope of the mean training loss in depth below that of batch norm",
            BY_DEPTH,
        ),
        Claim(
            "scale-alone-slows-down-less",
            "control: depth slows networks at unit scale alone, and from He's initialisation, down"
            " less than those with batch norm, too",
            OURS,
            scale_alone_slows_down_less,
            "slope of the mean training loss in depth below that of batch norm, for both",
            kind="ours",
            needs=BY_DEPTH,
        ),
    ]


ORDER_KEPT = (
    "r in the mean of all epochs / that of the lower one above 1, for every pair of networks whose"
    " r differs by a tenth or more before training"
)
"""By which it is judged whether the order of the initial ranks is kept."""

CLAIMS = {
    "rank-fig4": [
        *_rank_is_raised(BY_DEPTH),
        _scale_alone_raises_no_rank(BY_DEPTH),
        *_lets_learn(4, BY_DEPTH),
        _only_then(BY_DEPTH),
        *_ahead_of_batch_norm(4, "training loss", "lower train loss", LOSS),
        *_slows_down_less(4),
        *_beyond_scale(BY_DEPTH),
    ],
    "rank-fig11": [
        _only_then(BY_DEPTH),
        *_ahead_of_batch_norm(
            11,
            "training accuracy and test loss",
            "higher train accuracy and lower test loss",
            OTHERS,
        ),
        *_beyond_scale(BY_DEPTH),
    ],
    "rank-fig12": [
        *_rank_is_raised(BY_DEPTH),
        _scale_alone_raises_no_rank(BY_DEPTH),
        *_lets_learn(12, BY_DEPTH),
        _only_then(BY_DEPTH),
        *_ahead_of_batch_norm(
            12,
            "training loss, training accuracy and test loss",
            "lower train loss, higher train accuracy and lower test loss",
            LOSS | OTHERS,
        ),
        *_slows_down_less(12),
        *_beyond_scale(BY_DEPTH),
    ],
    "rank-fig6": [
        *_rank_is_raised(),
        *_lets_learn(6),
        Claim(
            "more-is-better",
            "the more of our pre-training, the better networks learn",
            f"{BY_TURNS}, figure 6 left",
            more_is_better,
            "higher training accuracy with each larger M, from none at the same scale on",
            kind="ours",
            needs={"pretraining_steps": 3},
        ),
        Claim(
            "order-of-ranks-kept",
            "the order of the initial ranks is kept through training",
            f"{BY_TURNS}, figure 6 right; Section 1 (ii)",
            order_is_kept,
            ORDER_KEPT,
            kind="ours",
            needs={"pretraining_steps": 3},
        ),
        Claim(
            "asymmetric-start",
            "batch norm from an asymmetric start has a low rank and learns slowly",
            f"{SECTION}, figure 6",
            asymmetric_start_breaks_batch_norm,
            "r before training, and training accuracy in the mean of all epochs, below those of the"
            " standard start",
        ),
    ],
    "rank-pretraining": [
        _scale_alone_raises_no_rank(),
        Claim(
            "end-to-end-raises-rank",
            "from unit scale the ascent on all layers at once raises r of the last layer, too",
            "ours, beside paper B, Appendix G: from PyTorch's initialisation Algorithm 1 is dead",
            end_to_end_raises_rank,
            f"r of the last layer before training: end to end / unit scale alone above {RAISED:g}",
            kind="ours",
        ),
        _only_then(),
        Claim(
            "order-of-ranks-kept-with-controls",
            "control: the order of the initial ranks is kept through training, too, between"
            " networks at unit scale alone or from He's initialisation and the others",
            OURS,
            partial(order_is_kept, controls=SCALE_ALONE),
            ORDER_KEPT,
            kind="ours",
            needs={"pretraining_steps": 3},
        ),
        *_beyond_scale(),
        Claim(
            "rank-beyond-scale-at-every-angle",
            "our pre-training helps beyond the scale of the weights however far and fast it goes",
            OURS,
            rank_beyond_scale_at_every_angle,
            "higher training accuracy than at unit scale alone, at every M and angle",
            kind="ours",
            needs={"angle": 3},
        ),
        Claim(
            "low-rank-does-not",
            "of two networks of one scale that of the higher rank learns better: our pre-training"
            " with the largest M against orthogonal",
            "ours, beside paper B, Section 1 (ii): rank is crucial for gradient-based learning",
            higher_rank_learns_better,
            "higher training accuracy, where r before training is higher by a tenth",
            kind="ours",
        ),
        Claim(
            "rank-and-learning",
            "rank before training and learning are positively correlated at one scale",
            f"{BY_TURNS}: a clear correlation of pre-training and performance",
            rank_and_learning_go_together,
            "Spearman's correlation of r before training and training accuracy above 0, over all"
            " networks at unit scale: control, orthogonal, and pre-trained at every angle",
            kind="ours",
            needs={"angle": 3},
        ),
        Claim(
            "plain-ascent-inflates",
            "a plain ascent on r makes the weights longer and longer",
            "ours, beside paper B, Appendix G, Algorithm 1",
            plain_ascent_inflates,
            "root mean square of the last layer above 10 times that of vanilla, and larger with"
            " each larger M",
            kind="ours",
            needs={"pretraining_steps": 3},
        ),
    ],
}
"""By figure, in the order in which they are told."""
