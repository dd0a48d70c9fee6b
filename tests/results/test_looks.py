"""Looks and labels by name, and of names that have none."""

from runner.results.looks import Labels, Looks
from runner.results.style import BLUE, GREY, Look

LOOKS = Looks() | {"b": Look(BLUE, label="known"), "a": Look(BLUE)}


def test_a_name_without_a_look_is_plain_and_says_itself_and_is_not_kept():
    assert LOOKS["new"].label == "new" and LOOKS["new"].color == GREY
    assert list(LOOKS) == ["b", "a"] and LOOKS["b"].label == "known"
    assert (Labels() | {"b": "known"})["new"] == "new"


def test_all_that_are_known_come_first_and_every_other_name_after_them():
    assert list(LOOKS.covering(["z", "a", "y", "z"])) == ["b", "a", "y", "z"]
    assert list(LOOKS.of(["z", "a", "y", "z"])) == ["a", "y", "z"]
    assert LOOKS.of(["z"])["z"].label == "z"
