"""What paper D says of linear networks, judged over the tables of study `linear`."""

from runner.papers.bottleneck_structure.linear.tables import of_one_rank, with_remainders
from runner.papers.bottleneck_structure.theorem_claims import inequality
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import equivalent, everywhere, slopes
from runner.results.rows import nonempty

SOURCE = "paper D, section 3"

EQUAL = 1e-9
"""Relative difference up to which two numbers of a converged network are the same."""

ENOUGH = 3
"""Depths that an exponent takes."""

claim(
    figure="bottleneck-linear",
    name="cost-is-least",
    statement="||theta||^2 >= R(A; L) = L ||A||_{2/L}^{2/L}",
    source=SOURCE,
    expected="no network below",
    theorem="linear",
    balanced=False,
)(inequality)


@claim(
    figure="bottleneck-linear",
    name="cost-is-attained",
    statement="trained with L2 regularisation, deep linear networks attain it",
    source=SOURCE,
    expected=f"||theta||^2 - R(A; L) below {EQUAL:g} of R(A; L), or of 1, in every network",
)
def attained(tables: Tables) -> Found:
    """Networks that end at zero attain it, too: R(0; L) = 0."""
    metrics = with_remainders(tables["metrics"])
    every = (metrics["excess"] < EQUAL).groupby(metrics["replicate"]).all()
    words = f"at most {metrics['excess'].max():.2g} in {len(metrics)} networks"
    words += f", {(metrics['rank'] == 0).sum()} of which end at zero"
    return Found([everywhere(every)], words)


@claim(
    figure="bottleneck-linear",
    name="first-correction",
    statement="||theta||^2 = L Rank A + 2 log |A|_+ + O(1/L)",
    source=SOURCE,
    expected=f"exponent of the remainder in L within 0.25 of -1, over {ENOUGH} or more depths of"
    " one rank",
    needs={"depth": ENOUGH},
    column="after_first",
    order=1,
)
@claim(
    figure="bottleneck-linear",
    name="second-correction",
    statement="||theta||^2 = L Rank A + 2 log |A|_+ + ||log_+ A^T A||^2 / (2 L) + O(L^-2)",
    source=f"{SOURCE}, R^(2) of linear networks",
    expected=f"exponent of the remainder in L within 0.25 of -2, over {ENOUGH} or more depths of"
    " one rank",
    needs={"depth": ENOUGH},
    column="after_second",
    order=2,
)
def corrections(tables: Tables, column: str, order: int) -> Found:
    """By least squares over the depths at which a replicate has one rank."""
    rows = of_one_rank(with_remainders(tables["metrics"]), ENOUGH)
    rows = nonempty(rows, f"rank that holds over {ENOUGH} depths")
    exponents = slopes(rows, "depth", column, log=True)
    words = f"exponent {exponents.median():.3f} ({exponents.min():.3f} to {exponents.max():.3f})"
    words += f" over {len(rows)} networks"
    return Found([equivalent(exponents + order, 0.25)], words)
