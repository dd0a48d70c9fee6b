"""Nothing holds for lack of evidence: every claim, given too little, is undecided."""

import pytest
from in_memory import kept_tables
from repository import REPOSITORY
from samples import samples

from runner.core.catalogue import figure_study
from runner.results.claims import claims_of, judge

KEPT = sorted((REPOSITORY / "outputs" / "reference").glob("*/*/claims.csv"))[::-1]  # first quick
SIZES = ("width", "target_width", "depth", "layers", "samples", "block")


def verdicts(name, tables):
    return judge(name, claims_of(name, figure_study(name)), tables).set_index("claim")["verdict"]


def first(tables, column):
    """The tables with the smallest value of a column alone, where they have it."""
    return {
        name: table[table[column] == table[column].min()] if column in table else table
        for name, table in tables.items()
    }


@pytest.mark.parametrize(
    "path",
    samples(
        KEPT, lambda path: figure_study(path.parts[-2]), lambda path: "-".join(path.parts[-3:-1])
    ),
)
def test_a_claim_holds_neither_with_one_replicate_nor_with_one_size(path):
    scale, name = path.parts[-3:-1]
    tables = kept_tables(name, scale)
    claims = claims_of(name, figure_study(name))
    if any("replicate" in table for table in tables.values()):
        judged = verdicts(name, first(tables, "replicate"))
        kinds = {claim.name: {rule.quantity.numbers for rule in claim.rules} for claim in claims}
        assert "holds" not in {judged[name] for name in kinds if kinds[name] == {"replicates"}}
    for column in sorted({column for claim in claims for column in claim.needs}):
        judged = verdicts(name, first(tables, column))
        without = [claim.name for claim in claims if column in claim.needs]
        assert set(judged[without]) == {"undecided"}, column
    for column in (*SIZES, "replicate"):
        tables = first(tables, column)
    assert "holds" not in set(verdicts(name, tables))
