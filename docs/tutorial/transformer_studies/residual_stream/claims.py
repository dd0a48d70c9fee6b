"""What we say of the residual stream, judged over the tables of study `residual_stream`."""

import pandas as pd

from runner.results.claims import Found, Tables, claim
from runner.results.evidence import above, below, less

COLLAPSED = 0.05
"""r(H) - 1 at or below which a stream has one direction."""

SOURCE = "ours, after paper B, Section 3"


def last(tables: Tables, normalization: str) -> pd.Series:
    """r(H) - 1 behind the last block, for each replicate."""
    metrics = tables["metrics"]
    of_it = metrics[metrics["normalization"] == normalization]
    return of_it[of_it["block"] == of_it["block"].max()].set_index("replicate")["excess"]


STATEMENTS = {
    "collapse": (
        "none",
        "without normalisation the tokens of a deep random transformer become one direction",
    ),
    "post-norm-collapses": (
        "post",
        "post-norm does not help: the tokens become one direction as well",
    ),
}
"""By name: the normalisation, and what is said of it."""


def collapses(tables: Tables, normalization: str) -> Found:
    """The median over replicates."""
    return Found([below(last(tables, normalization), COLLAPSED)])


for name, (normalization, statement) in STATEMENTS.items():
    claim(
        figure="residual-stream",
        name=name,
        statement=statement,
        source=SOURCE,
        kind="ours",
        expected=f"r(H) - 1 behind the last block below {COLLAPSED:g}",
        normalization=normalization,
    )(collapses)


@claim(
    figure="residual-stream",
    name="pre-norm-keeps",
    statement="pre-norm keeps more than one direction, and more than no normalisation does",
    source=SOURCE,
    kind="ours",
    expected=f"r(H) - 1 behind the last block above {COLLAPSED:g}, and above that without",
)
def pre_norm_keeps(tables: Tables) -> Found:
    """The median over replicates, and replicate by replicate."""
    without, pre = last(tables, "none"), last(tables, "pre")
    return Found([above(pre, COLLAPSED), less(without, pre)])
