"""Each claim of figures 4 and 5 holds on a table that shows it and fails on one that does not."""

import numpy as np
import pandas as pd
import pytest

from runner.papers.norm_tuning.bn_only.claims import crossings
from runner.papers.norm_tuning.bn_only.config import METHODS
from runner.results.claims import claims_of, judge

D = 25


def table(errors, widths, sparsity=1.0):
    """Ten replicates; errors: (method, target_width, width) -> test_mse of the variance 10."""
    rows = []
    for target_width, width in widths:
        for method in METHODS:
            for replicate in range(10):
                mse = errors(method, target_width, width) * (1 + 0.01 * replicate)
                rows.append(
                    {
                        "method": method,
                        "target_width": target_width,
                        "width": width,
                        "sparsity": sparsity,
                        "replicate": replicate,
                        "test_mse": mse,
                        "relative_mse": mse / 10,
                        "condition_number": 100.0,
                        "numerical_rank": float(min(target_width**2, width)),
                        "dead_at_start": 0.0,
                        "dead": 0.0,
                    }
                )
    return pd.DataFrame(rows)


FIG4_WIDTHS = [(5, 25), (10, 100), (D, 625), (D, 25), (D, 500), (D, 600), (D, 700)]


def as_the_paper_says(method, target_width, width):
    exact, near = width >= target_width**2, width >= 0.95 * target_width**2
    if method == "teacher_construction":
        return 1e-26 if exact else 1 if near else 50
    if method == "student_construction":
        return 0.1 if exact else 1 if near else 60
    return {
        "sgd": 2,
        "batch_norm": 2.1,
        "best": 1.5,
        "dense": 0.1,
        "dense_best": 0.1,
        "corrected_construction": 5,
    }[method]


def verdicts(figure, metrics):
    return judge(figure, claims_of(figure, "bn_only"), {"metrics": metrics}).set_index("claim")[
        "verdict"
    ]


def test_a_table_as_the_paper_says_holds():
    assert set(verdicts("fig4", table(as_the_paper_says, FIG4_WIDTHS))) == {"holds"}


@pytest.mark.parametrize(
    ("claim", "method", "value"),
    [
        ("exact", "teacher_construction", 1e-12),
        ("student-equals-dense", "student_construction", 0.11),
        ("constructions-beat-sgd", "sgd", 1e-30),
        ("constructions-beat-sgd", "student_construction", 3),
        ("sgd-wins-narrow", "sgd", 70),
        ("constructions-win-wide", "student_construction", 70),
        ("constructions-win-wide-best", "teacher_construction", 70),
        ("constructions-beat-best", "dense_best", 1.6),
        ("batch-statistics-differ-little", "batch_norm", 4),
        ("sgd-constant-loss", "sgd", 0.05),
        ("best-constant-loss", "best", 0.05),
        ("corrected-below-constant", "corrected_construction", 11),
    ],
)
def test_a_table_that_violates_a_claim_of_figure_4_fails_it(claim, method, value):
    def violating(name, *widths):
        return value if name == method else as_the_paper_says(name, *widths)

    assert verdicts("fig4", table(violating, FIG4_WIDTHS))[claim] == "fails"


def figure_5(at_p20, at_p5):
    widths = [(5, 25), (10, 100), (30, 900)]
    parts = [table(at_p20, widths, 0.2), table(at_p5, widths, 0.05)]
    return pd.concat(parts, ignore_index=True)


def sparse(method, target_width, width):
    small = target_width == 5
    if method == "teacher_construction":
        return 5 if small else 1e-26
    if method == "student_construction":
        return 6 if small else 0.1
    return {"dense": 0.1, "dense_best": 0.1}.get(method, 1)


def sparsest(method, *_):
    learners = {"sgd": 1, "best": 1, "batch_norm": 1, "dense": 0.1, "dense_best": 0.1}
    return learners.get(method, 5)


def rank_deficient(metrics):
    """As sparse systems are at the smaller d."""
    metrics.loc[metrics["target_width"] == 5, "numerical_rank"] = 20.0
    return metrics


def test_a_table_as_the_paper_says_holds_for_figure_5():
    metrics = rank_deficient(figure_5(sparse, sparsest))
    assert set(verdicts("fig5", metrics)) == {"holds"}
    metrics["numerical_rank"] = 20.0
    assert verdicts("fig5", metrics)["sparse-exact"] == "undecided"


@pytest.mark.parametrize(
    ("claim", "method", "value"),
    [
        ("sparse-small-d", "teacher_construction", 1e-9),
        ("sparse-small-d", "student_construction", 0.01),
        ("sparse-large-d", "teacher_construction", 0.5),
        ("sparse-large-d", "student_construction", 7),
        ("sparse-exact", "teacher_construction", 1e-9),
        ("sparsest-no-small-loss", "sgd", 0.05),
        ("sgd-beats-sparsest", "sgd", 9),
    ],
)
def test_a_table_that_violates_a_claim_of_figure_5_fails_it(claim, method, value):
    def violating(usual):
        def errors(name, target_width, width):
            factor = 1 + target_width / 100  # so that a gap that stays in place grows with d
            return value * factor if name == method else usual(name, target_width, width)

        return errors

    metrics = rank_deficient(figure_5(violating(sparse), violating(sparsest)))
    assert verdicts("fig5", metrics)[claim] == "fails"


def test_replicates_that_disagree_leave_a_claim_undecided():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    high = (metrics["method"] == "student_construction") & (metrics["replicate"] > 2)
    metrics.loc[high, "test_mse"] = 5.0
    assert verdicts("fig4", metrics)["constructions-beat-sgd"] == "undecided"


def test_without_a_narrow_network_nothing_is_said_of_small_m():
    metrics = table(as_the_paper_says, FIG4_WIDTHS).query("width != 25 or target_width != 25")
    assert verdicts("fig4", metrics)["sgd-wins-narrow"] == "undecided"


def test_the_crossing_is_interpolated_in_each_replicate():
    metrics = table(as_the_paper_says, [(D, 100), (D, 600), (D, 700)])
    found = crossings(metrics, "teacher_construction", "sgd") * D**2
    share = np.log(25) / (np.log(25) + np.log(2))
    assert found.to_numpy() == pytest.approx(100 + 500 * share)
    assert (crossings(metrics, "dense", "sgd") == 0).all()  # below everywhere
    assert np.isinf(crossings(metrics, "sgd", "dense")).all()  # nowhere


def test_one_dead_start_is_a_counterexample():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    metrics.loc[metrics["method"].eq("best").idxmax(), "dead_at_start"] = 0.2
    assert verdicts("fig4", metrics)["no-dead-start"] == "fails"


def schedules(errors):
    """Ten replicates of `best` alone; errors: (optimizer, schedule) -> test_mse."""
    parts = []
    for optimizer in ("sgd", "adam"):
        for schedule in ("constant", "cosine", "exponential"):
            value = errors.get((optimizer, schedule), 1.0)
            rows = table(lambda *_, value=value: value, [(10, 100), (20, 400)])
            rows = rows[rows["method"] == "best"]
            parts.append(rows.assign(optimizer=optimizer, schedule=schedule))
    return pd.concat(parts, ignore_index=True)


@pytest.mark.parametrize(("error", "expected"), [(0.5, "holds"), (2.0, "fails")])
def test_schedules_are_judged_by_the_constant_one(error, expected):
    metrics = schedules({("sgd", "constant"): error})
    assert verdicts("norm-schedules", metrics)["constant-beats-schedules"] == expected


def test_adam_is_judged_under_every_schedule():
    names = ("constant", "cosine", "exponential")
    better = {("adam", name): 0.5 for name in names}
    assert verdicts("norm-schedules", schedules(better))["adam-beats-sgd"] == "holds"
    worse = better | {("adam", "cosine"): 2.0}
    assert verdicts("norm-schedules", schedules(worse))["adam-beats-sgd"] == "fails"


def test_few_replicates_leave_a_comparison_undecided():
    metrics = table(as_the_paper_says, FIG4_WIDTHS).query("replicate < 4")
    assert verdicts("fig4", metrics)["constructions-beat-sgd"] == "undecided"
