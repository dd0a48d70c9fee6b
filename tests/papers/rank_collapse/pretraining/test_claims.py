"""The claims of study `pretraining`: tables that make each hold, fail and stay undecided."""

from math import nan

import pandas as pd
import pytest

from runner.papers.rank_collapse.pretraining.tables import VARIANT
from runner.results.claims import claims_of, judgement

FIGURES = ("rank-fig4", "rank-fig6", "rank-fig11", "rank-fig12")

VANILLA, CONTROL = ("vanilla", 0, False), ("vanilla", 0, True)
FEW, MANY = ("pretrained", 25, False), ("pretrained", 75, False)
FEW_SCALED, MANY_SCALED = ("pretrained", 25, True), ("pretrained", 75, True)
BATCH, ASYMMETRIC = ("batch_norm", 0, False), ("batch_norm_asymmetric", 0, False)

WELL = {  # variant: (accuracy at depth 32, r before and through training)
    VANILLA: (0.1, 1.0),
    CONTROL: (0.12, 2.0),
    FEW: (0.6, 4.0),
    MANY: (0.9, 9.0),
    FEW_SCALED: (0.6, 4.0),
    MANY_SCALED: (0.8, 9.0),
    BATCH: (0.7, 6.0),
    ASYMMETRIC: (0.2, 1.5),
}


def told(changes=None, depths=(8, 16, 32), replicates=6, after=None):
    """Tables that tell these numbers; nearer to perfect in shallow networks; after: other r."""
    metrics, training = [], []
    for variant, (value, r) in (WELL | (changes or {})).items():
        for depth in depths:
            for replicate in range(replicates):
                jitter = 1e-3 * replicate
                common = dict(zip(VARIANT, variant, strict=True))
                common |= {"replicate": replicate, "depth": depth, "data": "digits"}
                metrics.append(common | {"layer": depth, "rank_bound": r + jitter})
                for epoch in (1, 2):
                    end = 1 - (1 - value - jitter) * depth / max(depths)
                    path = (after or {}).get(variant, r) if epoch == 2 else r
                    row = common | {"rank_bound": path + jitter, "train_accuracy": end}
                    row |= {"learning_rate": 0.1, "epoch": epoch}
                    training.append(row | {"train_loss": 1 - end, "test_loss": 1 - end})
    return {"metrics": pd.DataFrame(metrics), "training": pd.DataFrame(training)}


def tables_of(figure, **options):
    return told(depths=(32,) if figure == "rank-fig6" else (8, 16, 32), **options)


def verdicts(figure, tables):
    return {e.name: judgement(e, tables).verdict for e in claims_of(figure, "pretraining")}


def failing(figure, **options):
    found = verdicts(figure, tables_of(figure, **options))
    return {name for name, verdict in found.items() if verdict == "fails"}


@pytest.mark.parametrize("figure", FIGURES)
def test_claims_hold_where_the_numbers_are_the_papers(figure):
    assert set(verdicts(figure, tables_of(figure)).values()) == {"holds"}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({VANILLA: (0.4, 1.0)}, {"pretraining-lets-learn"}),
        ({MANY: (0.3, 9.0)},
         {"pretraining-lets-learn", "more-is-better"}),
        ({CONTROL: (0.99, 2.0)}, {"nothing-else-lets-learn", "rank-beyond-scale"}),
        ({MANY_SCALED: (0.11, 9.0)}, {"rank-beyond-scale"}),
        ({FEW: (0.95, 4.0)}, {"more-is-better"}),
        ({FEW: (0.6, 0.9), MANY: (0.9, 1.0), BATCH: (0.7, 2.0)}, {"rank-is-raised"}),
        ({ASYMMETRIC: (0.2, 8.0)}, {"asymmetric-start"}),
        ({ASYMMETRIC: (0.8, 1.5)}, {"asymmetric-start"}),
    ],
)  # fmt: skip
def test_claims_of_figure_6_follow_the_numbers(changes, expected):
    assert failing("rank-fig6", changes=changes) == expected


def test_ranks_that_cross_in_one_epoch_break_their_order():
    assert failing("rank-fig6", after={BATCH: 1.2}) == {"order-of-ranks-kept"}
    close = WELL[MANY][1] * 1.05
    found = verdicts("rank-fig6", tables_of("rank-fig6", changes={BATCH: (0.7, close)}))
    assert found["order-of-ranks-kept"] == "holds"


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        ("rank-fig4", {"ahead-of-batch-norm", "slows-down-less"}),
        ("rank-fig11", {"ahead-of-batch-norm"}),
        ("rank-fig12", {"ahead-of-batch-norm", "slows-down-less"}),
    ],
)
def test_batch_norm_ahead_fails_what_says_the_contrary(figure, expected):
    assert failing(figure, changes={BATCH: (0.95, 6.0)}) == expected


def test_the_largest_number_of_iterations_speaks_whatever_comes_out():
    """The accuracy of M = 25 is the higher one, and below batch norm is that of M = 75."""
    found = failing("rank-fig11", changes={FEW: (0.99, 4.0), MANY: (0.65, 9.0)})
    assert "ahead-of-batch-norm" in found


def test_a_network_that_diverges_is_behind_and_its_loss_is_no_slope():
    tables = told()
    rows = tables["training"]
    many = (rows["method"] == "pretrained") & (rows["pretraining_steps"] == 75)
    rows.loc[many & (rows["depth"] == 32), ["train_loss", "train_accuracy", "test_loss"]] = nan
    found = verdicts("rank-fig12", tables)
    assert found["ahead-of-batch-norm"] == found["pretraining-lets-learn"] == "fails"
    assert found["slows-down-less"] == "undecided"


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("cut", [{"replicates": 1}, {"replicates": 4}])
def test_few_replicates_decide_nothing(figure, cut):
    assert set(verdicts(figure, tables_of(figure, **cut)).values()) == {"undecided"}


@pytest.mark.parametrize("figure", ["rank-fig4", "rank-fig11", "rank-fig12"])
def test_one_depth_decides_nothing(figure):
    assert set(verdicts(figure, told(depths=(32,))).values()) == {"undecided"}


@pytest.mark.parametrize("figure", FIGURES)
def test_shallow_networks_say_nothing_of_deep_ones(figure):
    found = verdicts(figure, told(depths=(4,) if figure == "rank-fig6" else (2, 4, 8)))
    assert {v for name, v in found.items() if name != "rank-is-raised"} == {"undecided"}


@pytest.mark.parametrize("figure", FIGURES)
def test_variants_that_were_not_run_are_not_replaced_by_others(figure):
    tables = {
        name: table[(table["method"] != "pretrained") & ~table["rescaled"]]
        for name, table in tables_of(figure).items()
    }
    found = verdicts(figure, tables)
    assert {v for name, v in found.items() if name != "asymmetric-start"} == {"undecided"}
