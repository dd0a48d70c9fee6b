"""What claims of study `bn_only` exclude and choose, and how they measure it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from runner.papers.norm_tuning.bn_only.config import PAPER
from runner.papers.norm_tuning.bn_only.tables import CHOOSING
from runner.results.claims import claims_of, judge

D = 25
VARIANCE = 10

TRAINED = {"optimizer": "sgd", "statistics": "batch"}
UNTRAINED = {"optimizer": "none", "statistics": "none"}


def table(errors, widths, series=PAPER, replicates=10):
    """errors: (series, target_width, width) -> test_mse, of the variance 10."""
    rows = []
    for target_width, width in widths:
        for name in series:
            for replicate in range(replicates):
                mse = errors(name, target_width, width) * (1 + 0.01 * replicate)
                rows.append(
                    {
                        "method": name,
                        "target_width": target_width,
                        "width": width,
                        "sparsity": 1.0,
                        "replicate": replicate,
                        "test_mse": mse,
                        "relative_mse": mse / VARIANCE,
                        "source_mse": 1e-26 if name == "student_construction" else mse,
                        "condition_number": 100.0,
                        "numerical_rank": float(min(target_width**2, width)),
                        **(TRAINED if name in ("sgd", "dense") else UNTRAINED),
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
    return {"sgd": 2, "dense": 0.1}[series]


def verdicts(figure, metrics):
    judged = judge(figure, claims_of(figure, "bn_only"), {"metrics": metrics})
    return judged.set_index("claim")["verdict"]


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


@pytest.mark.parametrize(("error", "verdict"), [(1e-26, "holds"), (1e-9, "fails")])
def test_sparse_constructions_are_exact_where_the_system_has_full_rank(error, verdict):
    """In the stored tables too many systems are singular to decide."""

    def errors(name, *_):
        return error if name == "teacher_construction" else 1.0

    metrics = table(errors, [(d, d**2) for d in (5, 10, 15, 20, 30)]).assign(sparsity=0.2)
    assert verdicts("fig5", metrics)["sparse-exact"] == verdict


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


def test_one_that_diverged_has_lost():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    metrics.loc[metrics["method"] == "sgd", "relative_mse"] = np.nan
    found = verdicts("fig4", metrics)
    assert found["constructions-beat-sgd"] == "holds" and found["sgd-wins-narrow"] == "fails"


def test_without_a_narrow_network_nothing_is_said_of_small_m():
    metrics = table(as_the_paper_says, FIG4_WIDTHS).query("width != 25 or target_width != 25")
    assert verdicts("fig4", metrics)["sgd-wins-narrow"] == "undecided"


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
