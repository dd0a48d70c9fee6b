"""A verdict that a page shows as the program prints it is one of the reference."""

import re

import pandas as pd
import pytest
from repository import REPOSITORY

from runner.results.verdicts import line
from runner.runs.provenance import REFERENCE

SHOWN = re.compile(r"(?m)^(?:✓ holds|✗ fails|\? undecided) .*\n {13}.*$")


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_a_shown_verdict_is_that_of_the_reference(page):
    found = SHOWN.findall((REPOSITORY / page).read_text())
    claims = pd.read_csv(REFERENCE / "paper" / "fig4" / "claims.csv", keep_default_na=False)
    printed = {line(row, "paper") for row in claims.itertuples()}
    assert found and not {*found} - printed
