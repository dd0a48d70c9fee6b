"""What claims of study `breaking_bn` select and exclude, and its drawings."""

from math import nan

import pandas as pd
import pytest
from in_memory import judged, verdicts

from runner.papers.batch_norm_rank.breaking_bn.figures import by_epoch
from runner.papers.batch_norm_rank.breaking_bn.tables import chosen_rates, paths

FIGURES = ("rank-fig5", "rank-fig7", "rank-fig10", "rank-fig13")

WELL = {  # method: (accuracy, rank before, rank after, r, alignment)
    "batch_norm": (0.97, 60.0, 50.0, 9.0, 0.5),
    "batch_norm_asymmetric": (0.12, 1.0, 3.0, 1.0, 1.0),
    "batch_norm_no_mean": (0.96, 60.0, 50.0, 8.0, 0.5),
    "vanilla": (0.1, 20.0, 20.0, 1.0, 0.9999),
    "vanilla_100x": (nan, 1.0, nan, 1.0, nan),
    "vanilla_random_pixels": (0.1, 1.0, 1.0, 1.0, 1.0),
}
RATES = (0.03, 0.1, 0.3)


def told(numbers, replicates=6, rates=(0.1,)) -> dict[str, pd.DataFrame]:
    """Tables of some replicates and three epochs, which tell these numbers: at the first rate what
    is judged; at every one, where there are several, what rates are chosen on."""
    metrics, training = [], []
    for method, (accuracy, before, after, r, aligned) in numbers.items():
        for replicate, rate in ((r, rate) for rate in rates for r in range(replicates)):
            common = {"method": method, "replicate": replicate, "architecture": "vgg19"}
            common |= {"learning_rate": rate, "rank_bound": r, "gradient_alignment": aligned}
            common |= {"data": "digits", "multiplier": 0.5}
            metrics.append(common | {"matrix_rank": before})
            for epoch in (1, 2, 3):
                row = {"epoch": epoch, "steps": 12 * epoch, "rank": after, "train_loss": accuracy}
                row |= {"train_accuracy": accuracy + 3e-3 * replicate, "test_accuracy": accuracy}
                training.append(common | row)
    every = pd.DataFrame(training)
    judged = every[every["learning_rate"] == rates[0]]
    tables = {"metrics": pd.DataFrame(metrics), "training": judged}
    return tables | ({"selection": every} if len(rates) > 1 else {})


@pytest.mark.parametrize(
    ("figure", "changes", "failing"),
    [
        ("rank-fig7", {}, set()),
        ("rank-fig7", {"batch_norm_no_mean": (0.8, 60.0, 50.0, 9, 0.5)},
         {"centring-redundant", "centring-changes-no-path"}),
        ("rank-fig10", {}, set()),
        ("rank-fig10", {"vanilla": (0.5, 1.0, 1.0, 1, 1)},
         {"vanilla-untrainable"}),
    ],
)  # fmt: skip
def test_claims_follow_the_numbers(figure, changes, failing):
    """Those that no altered column of the stored tables makes fail."""
    found = verdicts(figure, told(WELL | changes))
    assert {name for name, verdict in found.items() if verdict == "fails"} == failing
    assert set(found.values()) <= {"holds", "fails"}


@pytest.mark.parametrize("figure", FIGURES)
def test_methods_that_were_not_run_are_not_replaced_by_others(figure):
    found = told(WELL)
    found = {name: table[table["method"] == "batch_norm"] for name, table in found.items()}
    assert set(verdicts(figure, found).values()) == {"undecided"}


def test_methods_speak_at_the_rate_chosen_on_the_replicates_that_are_judged():
    """At the other rates batch norm without mean is worse, and on the replicates of the choice."""
    found = told(WELL)
    tried = told(WELL | {"batch_norm_no_mean": (0.4, 60.0, 50.0, 8.0, 0.5)}, 2, rates=RATES)
    found["selection"] = tried["selection"].assign(replicate=lambda rows: rows["replicate"] + 6)
    assert set(verdicts("rank-fig7", found).values()) == {"holds"}
    rows = paths(found)
    assert set(rows["replicate"]) == set(range(6)) and set(rows["learning_rate"]) == {0.1}


COMPARED_TO_BATCH_NORM = {
    "rank-fig5": ["asymmetric-start-cannot-fit", "centring-redundant"],
    "rank-fig7": ["centring-redundant", "centring-changes-no-path"],
    "rank-fig10": ["vanilla-untrainable", "larger-rate-does-not-help"],
}


@pytest.mark.parametrize(("failing", "verdict"), [(1, "holds"), (2, "undecided"), (8, "undecided")])
@pytest.mark.parametrize(("figure", "names"), COMPARED_TO_BATCH_NORM.items())
def test_replicates_in_which_batch_norm_has_not_learned_are_left_out_and_counted(
    figure, names, failing, verdict
):
    """One of eight is; two of eight are more than a fifth."""
    tables = told(WELL, replicates=8)
    rows = tables["training"]
    rows.loc[(rows["method"] == "batch_norm") & (rows["replicate"] < failing), "train_accuracy"] = 0
    found = judged(figure, tables, *names)
    assert len(found) == len(names) and set(found["verdict"]) == {verdict}
    assert set(found["left_out"]) == {failing / 8}


def test_a_rate_at_an_end_of_its_grid_is_flagged():
    assert set(chosen_rates(told(WELL))["end_of_grid"]) == {""}, "one rate has no ends"
    tables = told(WELL, rates=(0.1, 0.03, 0.3))
    assert set(chosen_rates(tables)["end_of_grid"]) == {""}
    no_mean = tables["training"]["method"] == "batch_norm_no_mean"
    for rate, end in ((0.03, "smallest"), (0.3, "largest")):
        tables["training"].loc[no_mean, "learning_rate"] = rate
        flags = chosen_rates(tables).set_index("method")["end_of_grid"]
        assert flags["batch_norm_no_mean"] == end and set(flags.drop("batch_norm_no_mean")) == {""}
        drawn = by_epoch(tables)
        flagged = drawn[drawn["end_of_grid"] == end]
        assert set(flagged["method"]) == {"batch_norm_no_mean"}
        assert set(flagged["learning_rate"]) == {rate}
