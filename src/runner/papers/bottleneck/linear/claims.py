"""What paper D says of linear networks, judged over the tables of study `linear`."""

from runner.papers.bottleneck.linear.tables import with_remainders
from runner.papers.bottleneck.theorem_claims import inequality
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import below, equivalent, slopes

SOURCE = "paper D, section 3"

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
    expected="||theta||^2 / R(A; L) - 1 below 1e-9 in every network",
)
def attained(tables: Tables) -> Found:
    """In each replicate the network that is farthest from it."""
    excess = with_remainders(tables["metrics"])[["replicate", "excess"]]
    return Found([below(excess.groupby("replicate")["excess"].max(), 1e-9)])


@claim(
    figure="bottleneck-linear",
    name="first-correction",
    statement="||theta||^2 = L Rank A + 2 log |A|_+ + O(1/L)",
    source=SOURCE,
    expected="exponent of the remainder in L within 0.25 of -1",
    needs={"depth": 3},
    column="after_first",
    order=1,
)
@claim(
    figure="bottleneck-linear",
    name="second-correction",
    statement="||theta||^2 = L Rank A + 2 log |A|_+ + ||log_+ A^T A||^2 / (2 L) + O(L^-2)",
    source=f"{SOURCE}, R^(2) of linear networks",
    expected="exponent of the remainder in L within 0.25 of -2",
    needs={"depth": 3},
    column="after_second",
    order=2,
)
def corrections(tables: Tables, column: str, order: int) -> Found:
    """By least squares over the depths, for each replicate."""
    exponents = slopes(with_remainders(tables["metrics"]), "depth", column, log=True)
    words = f"exponent {exponents.median():.3f} ({exponents.min():.3f} to {exponents.max():.3f})"
    return Found([equivalent(exponents + order, 0.25)], words)
