"""What we say of the residual stream, judged over the tables of study `residual_stream`."""

from functools import partial

import pandas as pd

from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import above, below, less

COLLAPSED = 0.05
"""r(H) - 1 at or below which a stream has one direction."""

SOURCE = "ours, after paper B, Section 3"


def last(tables: Tables, normalization: str) -> pd.Series:
    """r(H) - 1 behind the last block, for each replicate."""
    metrics = tables["metrics"]
    of_it = metrics[metrics["normalization"] == normalization]
    return of_it[of_it["block"] == of_it["block"].max()].set_index("replicate")["excess"]


def collapses(tables: Tables, normalization: str) -> Found:
    """The median over replicates."""
    return Found([below(last(tables, normalization), COLLAPSED)])


def pre_norm_keeps(tables: Tables) -> Found:
    """The median over replicates, and replicate by replicate."""
    without, pre = last(tables, "none"), last(tables, "pre")
    return Found([above(pre, COLLAPSED), less(without, pre)])


def collapse(name: str, normalization: str, statement: str) -> Claim:
    """Return the claim that a stream of this normalisation collapses."""
    judge = partial(collapses, normalization=normalization)
    expected = f"r(H) - 1 behind the last block below {COLLAPSED:g}"
    return Claim(name, statement, SOURCE, judge, expected, kind="ours")


CLAIMS = {
    "residual-stream": [
        collapse(
            "collapse",
            "none",
            "without normalisation the tokens of a deep random transformer become one direction",
        ),
        collapse(
            "post-norm-collapses",
            "post",
            "post-norm does not help: the tokens become one direction as well",
        ),
        Claim(
            "pre-norm-keeps",
            "pre-norm keeps more than one direction, and more than no normalisation does",
            SOURCE,
            pre_norm_keeps,
            f"r(H) - 1 behind the last block above {COLLAPSED:g}, and above that without",
            kind="ours",
        ),
    ],
}
"""By figure, in the order in which they are told."""
