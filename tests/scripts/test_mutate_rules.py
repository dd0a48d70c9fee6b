import pytest
from mutate_rules import altered, literals, mutants
from samples import samples

from runner.core.catalogue import configs

TEXT = '''
"""Words of 1 and 2."""
SMALL = 0.01
CLAIMS = {
    "fig4": [
        Claim("a-1", "at d = 5", "figure 4",
            loss("sgd", f"m < d ** 2 and p == {3}").above("1 - 1 / d"), needs={"d": 0},
            note="2 < 3"),
    ],
}
'''


def test_numbers_of_rules_are_found_and_those_in_words_are_not():
    found = [old for _, old, _ in literals(TEXT)]
    assert found == ["0.01", "2", "3", "1", "1", "0"]


def test_a_number_becomes_half_as_large_again():
    assert [altered(each) for each in ("1", "2", "0.5", "0", "1e-4")] == [
        "2", "3", "0.75", "0.5", "0.00015",
    ]  # fmt: skip


UNNOTICED = {
    # whether a network needs 100 digits; of the closed formula, which only a note prints
    "constructions": ["1000", "1", "2"],
    "norm_active": ["0"],  # of `d > 0`
    "norm_layers": ["1"],  # no stored table has d = 1
    "rank_collapse": ["0"],  # of `depth > 0`
    "symmetry": ["2"],  # of the column `right`, which only a note prints
}
"""Numbers of the sample that change no number of the stored tables."""


@pytest.mark.parametrize("study", samples(configs(), lambda _: "study"))
def test_an_altered_number_is_noticed(study):
    """Every ninth number of a module: the script alters all of them."""
    unnoticed = [old for _, _, old, _, noticed in mutants([study], step=9) if not noticed]
    assert unnoticed == UNNOTICED.get(study, [])
