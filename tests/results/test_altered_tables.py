"""Every claim can fail: on a stored table of which one column is altered.

`altered_tables.csv` says for each claim which column of which table, and how. A claim that several
figures make by the same rule has one row.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from in_memory import kept_tables
from samples import samples

from runner.core.catalogue import figure_names, figure_study, paper_folder
from runner.core.papers import papers
from runner.results.claims import Claim, claims_of, judgement

ALTERATIONS: dict[str, Callable[[pd.Series], pd.Series]] = {
    "1000 times": lambda column: 1000 * column,
    "a thousandth": lambda column: column / 1000,
    "plus one": lambda column: column + 1,
    "minus one": lambda column: column - 1,
    "mirrored": lambda column: column.max() + column.min() - column,
    "reciprocal": lambda column: 1 / column,
    "squared": lambda column: column * column.abs(),
    "zero": lambda column: 0 * column,
    "reversed": lambda column: column.iloc[::-1].set_axis(column.index),
    "as stored": lambda column: column,
}
ROWS = pd.read_csv(Path(__file__).with_name("altered_tables.csv"), keep_default_na=False)

OWN_TABLES = {
    ("norm-active", "found-at-twice"),
    ("norm-active", "not-found-at-square"),
    ("norm-active", "active-decides"),
    ("norm-active", "as-good-as-dense"),
    ("norm-active", "axes-decide"),
    ("constructions", "wide-full-rank"),
    ("bottleneck-annealing", "annealing-fits-deeper"),
    ("bottleneck-annealing", "annealing-lowers-loss"),
    ("bottleneck-annealing", "larger-weights-fit-deeper"),
    ("bottleneck-recipes", "slope-is-rank-trained"),
    ("bottleneck-recipes", "affine-norm-annealed"),
    ("bottleneck-recipes", "rank-falls-trained"),
    ("bottleneck-recipes", "rank-falls-annealed"),
    ("bottleneck-symmetry", "spurious-symmetry"),
    ("bottleneck-rates", "rate-bounds-kernel"),
    ("bottleneck-rates", "large-rate-small-kernel"),
    ("bottleneck-rates", "edge-from-scratch"),
    ("bottleneck-rates", "kernel-from-scratch"),
    ("bottleneck-rates", "representations-converge"),
    ("bottleneck-rates", "divergent-networks-are-left"),
    ("rank-fig7", "centring-redundant"),
    ("rank-fig7", "centring-changes-no-path"),
    ("rank-or-size", "rank-4-is-enough"),
    ("invariants-in-practice", "practice-adam"),
    ("rank-vgg", "aligned-gradients-untrainable"),
    ("rank-vgg", "norm-does-not-vanish"),
    ("rank-vgg", "size-lets-vgg-learn"),
}
"""Claims that fail on a table of their own, in the tests of their paper."""


def claims(figure: str) -> dict[str, Claim]:
    return {claim.name: claim for claim in claims_of(figure, figure_study(figure))}


@pytest.mark.parametrize(
    ("scale", "figure"),
    samples(ROWS.groupby(["scale", "figure"]).groups, lambda scale, figure: figure_study(figure)),
)
def test_every_claim_fails_where_a_column_is_altered(scale, figure):
    tables = kept_tables(figure, scale)
    for row in ROWS.query("scale == @scale and figure == @figure").itertuples():
        altered = dict(tables)
        if row.table:
            column = tables[row.table][row.column].astype(float)
            with np.errstate(all="ignore"):
                changed = ALTERATIONS[row.change](column)
            altered[row.table] = tables[row.table].assign(**{row.column: changed})
        assert judgement(claims(figure)[row.claim], altered).verdict == "fails", row


def test_every_claim_has_its_row():
    digests = {claims(row.figure)[row.claim].digest for row in ROWS.itertuples()}
    digests |= {claims(figure)[name].digest for figure, name in OWN_TABLES}
    lacking = [
        (name, claim.name)
        for name in figure_names()
        if paper_folder(figure_study(name)) in papers()
        for claim in claims(name).values()
        if claim.digest not in digests
    ]
    where = "add a row to tests/results/altered_tables.csv, or a test of its own to OWN_TABLES"
    assert not lacking, where
