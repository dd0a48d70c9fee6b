import numpy as np
import pandas as pd
import pytest

from runner.results.claims import Claim, all_of, as_text, compare, decide, judge, trimmed


def test_trimming_drops_the_smallest_and_the_largest():
    assert list(trimmed(np.array([5.0, 1.0, 3.0, 2.0, 9.0]))) == [2.0, 3.0, 5.0]
    assert list(trimmed(np.array([2.0, 1.0]))) == [1.0, 2.0]


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        ([1, 2, 3, 4, 5], "holds"),
        ([-9, 2, 3, 4, 5], "holds"),  # one outlier is trimmed
        ([-9, -2, 3, 4, 5], "undecided"),
        ([-1, -2, -3, -4, -5], "fails"),
        ([1, 2], "undecided"),
    ],
)
def test_comparison_of_replicates(difference, verdict):
    lower = pd.Series(0.0, index=range(len(difference)))
    assert compare(lower, lower + difference) == verdict


def test_comparison_is_paired_by_replicate_not_by_order():
    lower = pd.Series([0.0, 10.0, 20.0], index=[0, 1, 2])
    higher = pd.Series([21.0, 11.0, 1.0], index=[2, 1, 0])
    assert compare(lower, higher) == "holds"


def test_several_verdicts_become_one():
    assert all_of(["holds", "holds"]) == "holds"
    assert all_of(["holds", "undecided"]) == "undecided"
    assert all_of(["holds", "undecided", "fails"]) == "fails"
    assert all_of([]) == "undecided"


def test_a_claim_becomes_a_row_and_a_text():
    claim = Claim("small", "x is small", "paper, Lemma 1", lambda t: decide(False, "x = 3", "< 1"))
    judged = judge("fig", [claim], {})
    columns = ["figure", "claim", "statement", "source", "verdict", "measured", "expected"]
    assert list(judged.columns) == columns
    assert judged.loc[0, "verdict"] == "fails"
    assert "0 holds, 1 fails, 0 undecided" in as_text(judged)
