"""Each claim of figures 4 and 5 holds on a table that shows it and fails on one that does not."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from runner.papers.norm_tuning.bn_only.config import PAPER
from runner.papers.norm_tuning.bn_only.tables import CHOOSING
from runner.results.claims import claims_of, judge

D = 25
VARIANCE = 10

PLAIN = {"optimizer": "sgd", "statistics": "batch"}
KINDS = {
    "sgd": PLAIN,
    "dense": PLAIN,
    "sgd with fixed statistics": PLAIN | {"statistics": "fixed"},
    "adam": PLAIN | {"optimizer": "adam"},
    "dense by adam": PLAIN | {"optimizer": "adam"},
}
"""Of what is trained: the columns that say how."""

METHODS = {"sgd with fixed statistics": "sgd", "adam": "sgd", "dense by adam": "dense"}
OURS = (*PAPER, *METHODS, "corrected_construction")


def table(errors, widths, sparsity=1.0, series=PAPER, replicates=10):
    """errors: (series, target_width, width) -> test_mse, of the variance 10."""
    rows = []
    for target_width, width in widths:
        for name in series:
            for replicate in range(replicates):
                mse = errors(name, target_width, width) * (1 + 0.01 * replicate)
                rows.append(
                    {
                        "method": METHODS.get(name, name),
                        "target_width": target_width,
                        "width": width,
                        "sparsity": sparsity,
                        "replicate": replicate,
                        "test_mse": mse,
                        "relative_mse": mse / VARIANCE,
                        "source_mse": 1e-26 if name == "student_construction" else mse,
                        "condition_number": 100.0,
                        "numerical_rank": float(min(target_width**2, width)),
                        **KINDS.get(name, {"optimizer": "none", "statistics": "none"}),
                    }
                )
    return pd.DataFrame(rows)


FIG4_WIDTHS = [(5, 25), (10, 100), (D, 625), (D, 25), (D, 500), (D, 600), (D, 700)]


def as_the_paper_says(series, target_width, width):
    exact, near = width >= target_width**2, width >= 0.95 * target_width**2
    if series == "teacher_construction":
        return 1e-26 if exact else 1 if near else 50
    if series == "student_construction":
        return 0.1 if exact else 1 if near else 60
    return {
        "sgd": 2,
        "sgd with fixed statistics": 2.1,
        "adam": 1.5,
        "dense": 0.1,
        "dense by adam": 0.1,
        "corrected_construction": 5,
    }[series]


def verdicts(figure, metrics):
    judged = judge(figure, claims_of(figure, "bn_only"), {"metrics": metrics})
    return judged.set_index("claim")["verdict"]


def test_a_table_as_the_paper_says_holds():
    metrics = table(as_the_paper_says, FIG4_WIDTHS, series=OURS)
    assert set(verdicts("fig4", metrics)) == {"holds"}
    assert set(verdicts("fig4-training", metrics)) == {"holds"}


@pytest.mark.parametrize(
    ("claim", "series", "value"),
    [
        ("exact", "teacher_construction", 1e-12),
        ("constructions-beat-sgd", "sgd", 1e-30),
        ("constructions-beat-sgd", "student_construction", 3),
        ("constructions-beat-sgd", "teacher_construction", 3),
        ("sgd-wins-narrow", "sgd", 55),
        ("constructions-win-wide", "student_construction", 70),
        ("constructions-win-wide", "teacher_construction", 70),
        ("constructions-beat-adam", "dense by adam", 1.7),
        ("constructions-beat-adam", "teacher_construction", 1.7),
    ],
)
def test_a_table_that_violates_a_claim_of_figure_4_fails_it(claim, series, value):
    def violating(name, *widths):
        return value if name == series else as_the_paper_says(name, *widths)

    metrics = table(violating, FIG4_WIDTHS, series=OURS)
    both = pd.concat([verdicts("fig4", metrics), verdicts("fig4-training", metrics)])
    assert both[claim] == "fails"


@pytest.mark.parametrize("narrow", [0.5, 8])
def test_a_loss_that_falls_or_rises_with_the_width_is_not_constant(narrow):
    """Of 2 at every other width; small or not."""

    def errors(name, target_width, width):
        here = name == "sgd" and width == D < target_width**2
        return narrow if here else as_the_paper_says(name, target_width, width)

    metrics = table(errors, FIG4_WIDTHS)
    judged = judge("fig4", claims_of("fig4", "bn_only"), {"metrics": metrics})
    constant = judged.set_index("claim").loc["sgd-constant-loss"]
    assert constant["verdict"] == "fails" and constant["estimate"] == pytest.approx(narrow / 2)
    assert constant["note"].endswith(
        f"no network has an error below {min(narrow, 2) / VARIANCE:.2g}"
    )
    two = metrics.query("width != 500 or target_width != @D")
    assert verdicts("fig4", two)["sgd-constant-loss"] == "fails"
    one = two.query("width != 600 or target_width != @D")
    assert verdicts("fig4", one)["sgd-constant-loss"] == "undecided"


def test_networks_of_equal_error_are_not_equal():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    other = (metrics["method"] == "student_construction") & (metrics["replicate"] == 3)
    metrics.loc[other, "source_mse"] = 1e-6
    assert verdicts("fig4", metrics)["exact"] == "fails"


def figure_5(at_p20, at_p5, widths=tuple((d, d**2) for d in (5, 10, 15, 20, 30))):
    parts = [table(at_p20, widths, 0.2), table(at_p5, widths, 0.05)]
    return pd.concat(parts, ignore_index=True)


def sparse(series, target_width, width):
    small = target_width == 5
    if series == "teacher_construction":
        return 5 if small else 1e-26
    if series == "student_construction":
        return 6 if small else 0.1
    return {"dense": 0.1}.get(series, 1)


def sparsest(series, *_):
    return {"sgd": 1, "dense": 0.1}.get(series, 5)


def rank_deficient(metrics):
    """As sparse systems are at the smaller d."""
    metrics.loc[metrics["target_width"] == 5, "numerical_rank"] = 20.0
    return metrics


def test_a_table_as_the_paper_says_holds_for_figure_5():
    metrics = rank_deficient(figure_5(sparse, sparsest))
    assert set(verdicts("fig5", metrics)) == {"holds"}
    metrics.loc[metrics["target_width"] < 30, "numerical_rank"] = 20.0
    assert verdicts("fig5", metrics)["sparse-exact"] == "undecided"


def test_networks_that_are_left_out_are_counted_and_decide_nothing_when_many():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    square = metrics["width"] == metrics["target_width"] ** 2
    for most, expected in ((2, "holds"), (3, "undecided")):  # of ten replicates
        singular = metrics.assign(
            numerical_rank=metrics["numerical_rank"].mask(square & (metrics["replicate"] < most), 1)
        )
        judged = judge("fig4", claims_of("fig4", "bn_only"), {"metrics": singular})
        exact = judged.set_index("claim").loc["exact"]
        assert (exact["verdict"], exact["left_out"]) == (expected, most / 10)


@pytest.mark.parametrize(
    ("claim", "series", "value"),
    [
        ("sparse-small-d", "teacher_construction", 1e-9),
        ("sparse-small-d", "student_construction", 0.01),
        ("sparse-large-d", "teacher_construction", 0.5),
        ("sparse-large-d", "student_construction", 7),
        ("sparse-exact", "teacher_construction", 1e-9),
        ("sparsest-no-small-loss", "sgd", 0.05),
        ("sgd-beats-sparsest", "sgd", 9),
        ("sgd-beats-sparsest", "student_construction", 0.5),
    ],
)
def test_a_table_that_violates_a_claim_of_figure_5_fails_it(claim, series, value):
    def violating(usual):
        def errors(name, target_width, width):
            factor = 1 + target_width / 100  # so that a gap that stays in place grows with d
            return value * factor if name == series else usual(name, target_width, width)

        return errors

    metrics = rank_deficient(figure_5(violating(sparse), violating(sparsest)))
    assert verdicts("fig5", metrics)[claim] == "fails"


def test_eight_replicates_can_refute_what_is_said_of_every_width_of_figure_5():
    nine = [(d, d**2) for d in (5, 10, 15, 20, 25, 30, 40, 45, 50)]
    metrics = figure_5(sparse, lambda *names: 0.05, nine).query("replicate < 8")
    found = verdicts("fig5", metrics)
    assert found["sparsest-no-small-loss"] == "fails"


def test_replicates_that_disagree_leave_a_claim_undecided():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    high = (metrics["method"] == "student_construction") & (metrics["replicate"] > 2)
    metrics.loc[high, "relative_mse"] = 0.5
    assert verdicts("fig4", metrics)["constructions-beat-sgd"] == "undecided"


def test_one_that_diverged_has_lost():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    metrics.loc[metrics["method"] == "sgd", "relative_mse"] = np.nan
    found = verdicts("fig4", metrics)
    assert found["constructions-beat-sgd"] == "holds" and found["sgd-wins-narrow"] == "fails"


def test_without_a_narrow_network_nothing_is_said_of_small_m():
    metrics = table(as_the_paper_says, FIG4_WIDTHS).query("width != 25 or target_width != 25")
    assert verdicts("fig4", metrics)["sgd-wins-narrow"] == "undecided"


def test_few_replicates_leave_a_comparison_undecided():
    metrics = table(as_the_paper_says, FIG4_WIDTHS, replicates=4)
    assert verdicts("fig4", metrics)["constructions-beat-sgd"] == "undecided"


def schedules(errors, rates=(0.1, 0.2), ends=(0.05, 0.4)):
    """Eighteen replicates of `sgd`; errors: (schedule, rate, chooses) -> test_mse.

    At the ends of the grid nothing is learned.
    """
    parts = []
    for schedule, rate in product(("constant", "cosine", "exponential"), (*rates, *ends)):
        rows = table(lambda *_: 1.0, [(10, 100), (20, 400)], series=["sgd"], replicates=18)
        rows = rows.assign(schedule=schedule, learning_rate=rate)
        for chooses in (True, False):
            those = (rows["replicate"] >= 18 - CHOOSING) == chooses
            mse = 9.0 if rate in ends else errors(schedule, rate, chooses)
            rows.loc[those, "test_mse"] = mse
            rows.loc[those, "relative_mse"] = mse / VARIANCE
        parts.append(rows)
    return verdicts("norm-schedules", pd.concat(parts, ignore_index=True))


@pytest.mark.parametrize(("error", "expected"), [(0.5, "holds"), (2.0, "fails")])
def test_schedules_are_judged_by_the_constant_one(error, expected):
    found = schedules(lambda schedule, *_: error if schedule == "constant" else 1.0)
    assert found["constant-beats-schedules"] == expected


def test_what_is_judged_has_no_part_in_the_choice_of_its_rate():
    """At .1 the constant rate wins on those that choose, at .2 on those that are judged."""

    def errors(schedule, rate, chooses):
        return 1.0 if schedule != "constant" else 0.5 if (rate == 0.1) == chooses else 2.0

    assert schedules(errors)["constant-beats-schedules"] == "fails"


def test_a_rate_at_which_one_of_those_that_choose_diverges_is_not_taken():
    def errors(schedule, rate, chooses):
        if rate == 0.2:
            return np.nan if chooses else 0.1
        return 0.5 if schedule == "constant" else 1.0

    assert schedules(errors)["constant-beats-schedules"] == "holds"


@pytest.mark.parametrize("best", [0.1, 0.4])
def test_a_best_rate_at_an_end_of_its_grid_decides_nothing(best):
    def errors(schedule, rate, _):
        return 0.2 if schedule == "constant" and rate == best else 1.0

    found = schedules(errors, rates=(0.1, 0.2, 0.4), ends=())
    assert found["constant-beats-schedules"] == "undecided"
