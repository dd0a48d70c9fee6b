"""Numbers that are typed on the papers' pages: those of the stored verdicts."""

import re
from pathlib import Path

import pandas as pd
import pytest
from written_numbers import NUMBER, rounds_to

from runner.runs.provenance import REFERENCE

PAGES = Path(REFERENCE).parent.parent / "docs"
INTERVAL = re.compile(rf"({NUMBER})(?: %| times)?(?: [a-z ]+)? \(({NUMBER})(?: %)? to ({NUMBER})")
"""A number with an interval, such as `2.4 times less (1.9 to 2.8)`."""

WRITTEN = [
    lambda x: x,
    lambda x: -x,
    lambda x: 100 * x,
    lambda x: 100 / x,
    lambda x: 1 / x,
    lambda x: 1 - x,
    lambda x: 2**x,
]
"""How a page may write a stored number: as a percentage, a reciprocal, a power of two, ..."""

RANGES = {
    "0.95 (0.92 to 0.97)", "0.99 (0.96 to 1.11)", "0.97 (0.88 to 0.98)",
    "0.97 (0.93 to 0.99)", "1.000 (0.977 to 1.002)", "1.000 (0.955 to 1.027)",
    "1.000 (0.975 to 1.005)", "1.000 (0.977 to 1.015)",
}  # fmt: skip
"""Ranges of the rows of a table, which belong to no verdict."""


def is_stored(found: tuple[str, str, str], stored: pd.DataFrame) -> bool:
    """Return whether a verdict has this number with this interval."""
    middle, *ends = found
    for row in stored.itertuples():
        for write in WRITTEN:
            try:
                number, *interval = map(write, (row.estimate, row.low, row.high))
            except (ZeroDivisionError, OverflowError):
                continue
            if rounds_to(number, middle) and (
                all(map(rounds_to, interval, ends)) or all(map(rounds_to, interval, ends[::-1]))
            ):
                return True
    return False


@pytest.mark.parametrize("page", sorted(path.name for path in PAGES.glob("paper-?.md")))
def test_intervals_in_the_table_of_statements_are_those_of_the_verdicts(page):
    rows = re.findall(r"^\|.*`make [a-z].*\|$", (PAGES / page).read_text(), flags=re.M)
    old, tested = [], 0
    for row in rows:
        names = re.findall(r"`make ([\w-]+)", row)
        tables = [pd.read_csv(p) for n in names for p in REFERENCE.glob(f"*/{n}/claims.csv")]
        for found in INTERVAL.findall(row):
            text = f"{found[0]} ({found[1]} to {found[2]})"
            tested += 1
            if text not in RANGES and not is_stored(found, pd.concat(tables)):
                old.append(f"{text}: {row[:90]}")
    assert tested > 5 and not old, "\n".join(old)
