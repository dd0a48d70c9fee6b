"""What paper D says of linear networks, judged over the tables of study `linear`."""

from functools import partial

from runner.papers.bottleneck_structure.linear.tables import of_one_rank, with_remainders
from runner.papers.bottleneck_structure.theorem_claims import inequality
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import equivalent, everywhere, slopes
from runner.results.rows import nonempty

SOURCE = "paper D, section 3"

EQUAL = 1e-9
"""Relative difference up to which two numbers of a converged network are the same."""

ENOUGH = 3
"""Depths that an exponent takes."""


def attained(tables: Tables) -> Found:
    """Networks that end at zero attain it, too: R(0; L) = 0."""
    metrics = with_remainders(tables["metrics"])
    every = (metrics["excess"] < EQUAL).groupby(metrics["replicate"]).all()
    words = f"at most {metrics['excess'].max():.2g} in {len(metrics)} networks"
    words += f", {(metrics['rank'] == 0).sum()} of which end at zero"
    return Found([everywhere(every)], words)


def corrections(tables: Tables, column: str, order: int) -> Found:
    """By least squares over the depths at which a replicate has one rank."""
    rows = of_one_rank(with_remainders(tables["metrics"]), ENOUGH)
    rows = nonempty(rows, f"rank that holds over {ENOUGH} depths")
    exponents = slopes(rows, "depth", column, log=True)
    words = f"exponent {exponents.median():.3f} ({exponents.min():.3f} to {exponents.max():.3f})"
    words += f" over {len(rows)} networks"
    return Found([equivalent(exponents + order, 0.25)], words)


CLAIMS = {
    "bottleneck-linear": [
        Claim(
            "cost-is-least",
            "||theta||^2 >= R(A; L) = L ||A||_{2/L}^{2/L}",
            SOURCE,
            partial(inequality, theorem="linear", balanced=False),
            "no network below",
        ),
        Claim(
            "cost-is-attained",
            "trained with L2 regularisation, deep linear networks attain it",
            SOURCE,
            attained,
            f"||theta||^2 - R(A; L) below {EQUAL:g} of R(A; L), or of 1, in every network",
        ),
        Claim(
            "second-correction",
            "||theta||^2 = L Rank A + 2 log |A|_+ + ||log_+ A^T A||^2 / (2 L) + O(L^-2)",
            f"{SOURCE}, R^(2) of linear networks",
            partial(corrections, column="after_second", order=2),
            f"exponent of the remainder in L within 0.25 of -2, over {ENOUGH} or more depths of"
            " one rank",
            needs={"depth": ENOUGH},
        ),
        Claim(
            "first-correction",
            "||theta||^2 = L Rank A + 2 log |A|_+ + O(1/L)",
            SOURCE,
            partial(corrections, column="after_first", order=1),
            f"exponent of the remainder in L within 0.25 of -1, over {ENOUGH} or more depths of"
            " one rank",
            needs={"depth": ENOUGH},
        ),
    ],
}
"""By figure, in the order in which they are told."""
