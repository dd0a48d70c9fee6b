"""What paper D says of rank-1 interpolants, judged over the table of study `rank_one`."""

from functools import partial

from runner.papers.bottleneck_structure.rank_one.tables import (
    NORM_SLOPE,
    NTK_EXPONENT,
    interpolants,
    slopes,
    with_logarithms,
)
from runner.results import evidence
from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import above, below


def interpolants_are_rare(tables: Tables) -> Found:
    """Whether the networks of a replicate fit all points, against N."""
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index).astype(float)
    table = metrics[["replicate", "samples"]].assign(fits=fits)
    shares = table.groupby("samples")["fits"].mean()
    words = "fit " + ", ".join(f"N={N}: {value:.0%}" for N, value in shares.items())
    found = evidence.slopes(table, "samples", "fits")
    return Found([below(found, unit="slope")], words)


def growth(tables: Tables, column: str, bound: float) -> Found:
    """Whether a logarithm grows faster than `bound` log N over the networks that fit."""
    fitting = interpolants(tables["metrics"])
    found = slopes(with_logarithms(fitting), column)
    words = f"{len(found)} replicates fit at three sizes or more"
    if len(fitting):
        words += f"; c_1 = {fitting['excess'].min():.0f} to {fitting['excess'].max():.0f}"
        words += f", L = {', '.join(map(str, sorted(fitting['depth'].unique())))}"
    return Found([above(found, bound, unit="slope")] if len(found) else [], words)


CLAIMS = {
    "bottleneck-theorems": [
        Claim(
            "interpolants-are-rare",
            "gradient descent finds fewer rank-1 interpolants the more points there are",
            "paper D, sections 3.1 and 4.1",
            interpolants_are_rare,
            "slope of fitting (1 or 0) in N below 0",
            needs={"samples": 3},
        ),
        Claim(
            "ntk-lower-bound",
            "somewhere Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*} for rank-1 interpolants",
            "paper D, Theorem 10 (far from tight; its proof asks for L above e^{c_1 + 1})",
            partial(growth, column="log_ntk_plus_excess", bound=NTK_EXPONENT),
            f"slope of log(Tr Theta / L) + c_1 in log N above {NTK_EXPONENT:g}",
            kind="illustration",
            needs={"samples": 3},
        ),
        Claim(
            "norm-lower-bound",
            "the norm of rank-1 interpolants grows at least as 2 (1 - 1/k*) log N",
            "paper D, section 3.1, after Theorem 2 of its reference [10] (far from tight)",
            partial(growth, column="excess", bound=NORM_SLOPE),
            f"slope of ||theta||^2 - L in log N above {NORM_SLOPE:g}",
            kind="illustration",
            needs={"samples": 3},
        ),
        Claim(
            "ntk-blows-up",
            "the largest NTK of rank-1 interpolants grows with N: narrow minima",
            "paper D, section 4.1",
            partial(growth, column="log_ntk", bound=0.0),
            "exponent of Tr Theta / L in N above 0",
            needs={"samples": 3},
        ),
    ],
}
"""By figure, in the order in which they are told."""
