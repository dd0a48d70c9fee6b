"""What claims of study `bn_only` exclude and choose, and how they measure it."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from in_memory import judged, kept_tables, verdicts

from runner.papers.norm_tuning.bn_only.claims import FULL_RANK
from runner.papers.norm_tuning.bn_only.config import PAPER
from runner.papers.norm_tuning.bn_only.quantities import error_over_rounding
from runner.papers.norm_tuning.bn_only.tables import TEACHER, at_best_rates

D = 25
VARIANCE = 10


def table(errors, widths, series=PAPER, replicates=10):
    """errors: (series, target_width, width) -> test_mse, of the variance 10."""
    rows = pd.DataFrame(
        [
            {"method": name, "target_width": d, "width": m, "replicate": replicate}
            | {"test_mse": errors(name, d, m) * (1 + 0.01 * replicate)}
            for (d, m), name, replicate in product(widths, series, range(replicates))
        ]
    )
    trained = rows["method"].isin(["sgd", "dense"])
    return rows.assign(
        sparsity=1.0,
        relative_mse=rows["test_mse"] / VARIANCE,
        source_mse=rows["test_mse"].mask(rows["method"] == "student_construction", 1e-26),
        condition_number=100.0,
        numerical_rank=np.minimum(rows["target_width"] ** 2, rows["width"]).astype(float),
        optimizer=np.where(trained, "sgd", "none"),
        statistics=np.where(trained, "batch", "none"),
    )


FIG4_WIDTHS = [(5, 25), (10, 100), (D, 625), (D, 25), (D, 500), (D, 600), (D, 700)]


def as_the_paper_says(series, target_width, width):
    exact, near = width >= target_width**2, width >= 0.95 * target_width**2
    if series == "teacher_construction":
        return 1e-26 if exact else 1 if near else 50
    if series == "student_construction":
        return 0.1 if exact else 1 if near else 60
    return {"sgd": 2, "dense": 0.1}[series]


@pytest.mark.parametrize("narrow", [0.5, 8])
def test_a_loss_that_falls_or_rises_with_the_width_is_not_constant(narrow):
    """Of 2 at every other width; small or not."""

    def errors(name, target_width, width):
        here = name == "sgd" and width == D < target_width**2
        return narrow if here else as_the_paper_says(name, target_width, width)

    metrics = table(errors, FIG4_WIDTHS)
    constant = judged("fig4", {"metrics": metrics}).loc["sgd-constant-loss"]
    assert constant["verdict"] == "fails" and constant["estimate"] == pytest.approx(narrow / 2)
    assert constant["note"].endswith(
        f"the smallest error of a network is {min(narrow, 2) / VARIANCE:.3g}"
    )
    two = metrics.query("width != 500 or target_width != @D")
    assert verdicts("fig4", {"metrics": two})["sgd-constant-loss"] == "fails"
    one = two.query("width != 600 or target_width != @D")
    assert verdicts("fig4", {"metrics": one})["sgd-constant-loss"] == "undecided"


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_sparse_constructions_are_exact_where_the_system_has_full_rank(scale):
    full = error_over_rounding(TEACHER, "m == d ** 2 and p == 0.2").given(FULL_RANK)
    measured = full.measure(kept_tables("fig5", scale))
    ratios = full.assuming(measured)["value"]
    assert 10 < len(ratios) < len(measured) and ratios.max() <= 1


def test_networks_that_are_left_out_are_counted_and_decide_nothing_when_many():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    square = metrics["width"] == metrics["target_width"] ** 2
    for most, expected in ((2, "holds"), (3, "undecided")):  # of ten replicates
        singular = metrics.assign(
            numerical_rank=metrics["numerical_rank"].mask(square & (metrics["replicate"] < most), 1)
        )
        exact = judged("fig4", {"metrics": singular}).loc["exact"]
        assert (exact["verdict"], exact["left_out"]) == (expected, most / 10)


def test_one_that_diverged_has_lost():
    metrics = table(as_the_paper_says, FIG4_WIDTHS)
    metrics.loc[metrics["method"] == "sgd", "relative_mse"] = np.nan
    found = verdicts("fig4", {"metrics": metrics})
    assert found["constructions-beat-sgd"] == "holds" and found["sgd-wins-narrow"] == "fails"


def test_without_a_narrow_network_nothing_is_said_of_small_m():
    metrics = table(as_the_paper_says, FIG4_WIDTHS).query("width != 25 or target_width != 25")
    assert verdicts("fig4", {"metrics": metrics})["sgd-wins-narrow"] == "undecided"


def schedules(errors, rates=(0.1, 0.2), ends=(0.05, 0.4)):
    """Eighteen replicates of `sgd`; errors: (schedule, rate, replicate) -> test_mse.

    At the ends of the grid nothing is learned.
    """
    parts = []
    for schedule, rate in product(("constant", "cosine", "exponential"), (*rates, *ends)):
        rows = table(lambda *_: 1.0, [(10, 100), (20, 400)], series=["sgd"], replicates=18)
        rows = rows.assign(schedule=schedule, learning_rate=rate)
        own = [9.0 if rate in ends else errors(schedule, rate, r) for r in rows["replicate"]]
        parts.append(rows.assign(test_mse=own, relative_mse=np.array(own) / VARIANCE))
    return pd.concat(parts, ignore_index=True)


def verdict_of(metrics):
    return verdicts("norm-schedules", {"metrics": metrics})["constant-beats-schedules"]


def diverging(schedule, rate, replicate):
    """At 0.2 all schedules are best on a few networks, and diverge on most."""
    if rate == 0.2:
        return 0.1 if replicate < 5 else np.nan
    return 0.5 if schedule == "constant" else 1.0


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        (lambda schedule, *_: 0.5 if schedule == "constant" else 1.0, "holds"),
        (lambda schedule, *_: 2.0 if schedule == "constant" else 1.0, "fails"),
        (diverging, "holds"),
    ],
)
def test_schedules_are_judged_by_the_constant_one_at_rates_chosen_on_other_replicates(
    errors, expected
):
    assert verdict_of(schedules(errors)) == expected


def test_a_network_has_no_part_in_the_choice_of_its_rate():
    metrics = schedules(lambda _, rate, r: 0.0 if (rate == 0.2) == (r == 7) else 1.0)
    assert set(at_best_rates(metrics)["learning_rate"]) == {0.1}
    split = schedules(lambda _, rate, r: float((rate == 0.1) != (r < 9)))  # nine for each rate
    rows = at_best_rates(split).set_index("replicate")
    assert (rows["test_mse"] == 1).all(), "the nine others outvote the eight"
    assert (rows["learning_rate"] == np.where(rows.index < 9, 0.2, 0.1)).all()


@pytest.mark.parametrize("best", [0.1, 0.4])
def test_a_best_rate_at_an_end_of_its_grid_decides_nothing(best):
    def errors(schedule, rate, _):
        return 0.2 if schedule == "constant" and rate == best else 1.0

    assert verdict_of(schedules(errors, rates=(0.1, 0.2, 0.4), ends=())) == "undecided"
