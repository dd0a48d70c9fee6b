"""Nothing holds for lack of evidence: every claim, given too little, is undecided."""

import pytest
from repository import REPOSITORY

from runner.commands.kept import read_tables
from runner.core.catalogue import figure_study
from runner.results.claims import claims_of, judge

KEPT = sorted((REPOSITORY / "outputs" / "reference").glob("*/*/claims.csv"))
SIZES = ("width", "target_width", "depth", "layers", "samples", "block")


def verdicts(name, tables):
    return judge(name, claims_of(name, figure_study(name)), tables).set_index("claim")["verdict"]


def first(tables, column):
    """The tables with the smallest value of a column alone, where they have it."""
    return {
        name: table[table[column] == table[column].min()] if column in table else table
        for name, table in tables.items()
    }


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_one_replicate_of_one_size_decides_nothing(path):
    name, tables = path.parent.name, read_tables(path.parent)
    for column in (*SIZES, "replicate"):
        tables = first(tables, column)
    assert "holds" not in set(verdicts(name, tables))


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_one_replicate_decides_nothing_that_replicates_decide(path):
    name, tables = path.parent.name, read_tables(path.parent)
    of_replicates = [
        claim.name
        for claim in claims_of(name, figure_study(name))
        if all(rule.quantity.numbers == "replicates" for rule in claim.rules)
    ]
    if any("replicate" in table for table in tables.values()):
        assert "holds" not in set(verdicts(name, first(tables, "replicate"))[of_replicates])


@pytest.mark.parametrize("path", KEPT, ids=lambda path: "-".join(path.parts[-3:-1]))
def test_what_needs_several_sizes_is_undecided_with_one(path):
    name, tables = path.parent.name, read_tables(path.parent)
    needs = {each.name: each.needs for each in claims_of(name, figure_study(name))}
    for column in sorted({column for columns in needs.values() for column in columns}):
        judged = verdicts(name, first(tables, column))
        without = [claim for claim, columns in needs.items() if column in columns]
        assert set(judged[without]) == {"undecided"}, column
