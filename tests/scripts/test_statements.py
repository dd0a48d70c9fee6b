"""The page of all statements is that of the stored claims, and names tests that exist."""

import re

import pytest
import statements
import yaml
from gallery import totals
from repository import REPOSITORY

from runner.runs.provenance import REFERENCE

OTHERS = yaml.safe_load(statements.OTHERS.read_text())


def test_the_page_is_of_the_stored_claims():
    assert statements.PAGE.read_text() == statements.page(REFERENCE, totals(REFERENCE))


@pytest.mark.parametrize("letter", OTHERS)
def test_statements_that_no_figure_judges_name_tests_that_exist(letter):
    """Each name is part of the name of a test, or of a test's file."""
    files = [*REPOSITORY.glob("tests/**/test_*.py")]
    known = " ".join(
        name
        for path in files
        for name in (path.stem, *re.findall(r"def (test_\w+)", path.read_text()))
    )
    for row in OTHERS[letter]:
        assert set(row) <= {"statement", "where", "verdict", "numbers", "test"}
        for text in re.findall(r"`([\w]+)`", row.get("test", "")):
            assert text in known, f"{row['statement']}: {text}"


def test_a_statement_without_a_test_was_not_tested():
    assert list(statements._others([{"statement": "a", "verdict": "?"}])) == [
        ["a", "", "?", "", "not tested"]
    ]
