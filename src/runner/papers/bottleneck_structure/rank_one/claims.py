"""What paper D says of rank-1 interpolants, judged over the table of study `rank_one`."""

from runner.papers.bottleneck_structure.rank_one.tables import (
    NORM_SLOPE,
    NTK_EXPONENT,
    interpolants,
    slopes,
    with_logarithms,
)
from runner.results import evidence
from runner.results.claims import Found, Tables, claim
from runner.results.evidence import above, below


@claim(
    figure="bottleneck-theorems",
    name="interpolants-are-rare",
    statement="gradient descent finds fewer rank-1 interpolants the more points there are",
    source="paper D, sections 3.1 and 4.1",
    expected="slope of fitting (1 or 0) in N below 0",
    needs={"samples": 3},
)
def interpolants_are_rare(tables: Tables) -> Found:
    """Whether the networks of a replicate fit all points, against N."""
    metrics = tables["metrics"]
    fits = metrics.index.isin(interpolants(metrics).index).astype(float)
    table = metrics[["replicate", "samples"]].assign(fits=fits)
    shares = table.groupby("samples")["fits"].mean()
    words = "fit " + ", ".join(f"N={N}: {value:.0%}" for N, value in shares.items())
    found = evidence.slopes(table, "samples", "fits")
    return Found([below(found, unit="slope")], words)


@claim(
    figure="bottleneck-theorems",
    name="ntk-blows-up",
    statement="the largest NTK of rank-1 interpolants grows with N: narrow minima",
    source="paper D, section 4.1",
    expected="exponent of Tr Theta / L in N above 0",
    needs={"samples": 3},
    column="log_ntk",
    bound=0.0,
)
@claim(
    figure="bottleneck-theorems",
    name="norm-lower-bound",
    statement="the norm of rank-1 interpolants grows at least as 2 (1 - 1/k*) log N",
    source="paper D, section 3.1, after Theorem 2 of its reference [10] (far from tight)",
    kind="illustration",
    expected=f"slope of ||theta||^2 - L in log N above {NORM_SLOPE:g}",
    needs={"samples": 3},
    column="excess",
    bound=NORM_SLOPE,
)
@claim(
    figure="bottleneck-theorems",
    name="ntk-lower-bound",
    statement="somewhere Theta(x, x) >= c L e^{-c_1} N^{4 - 4/k*} for rank-1 interpolants",
    source="paper D, Theorem 10 (far from tight; its proof asks for L above e^{c_1 + 1})",
    kind="illustration",
    expected=f"slope of log(Tr Theta / L) + c_1 in log N above {NTK_EXPONENT:g}",
    needs={"samples": 3},
    column="log_ntk_plus_excess",
    bound=NTK_EXPONENT,
)
def growth(tables: Tables, column: str, bound: float) -> Found:
    """Whether a logarithm grows faster than `bound` log N over the networks that fit."""
    fitting = interpolants(tables["metrics"])
    found = slopes(with_logarithms(fitting), column)
    words = f"{len(found)} replicates fit at three sizes or more"
    if len(fitting):
        words += f"; c_1 = {fitting['excess'].min():.0f} to {fitting['excess'].max():.0f}"
        words += f", L = {', '.join(map(str, sorted(fitting['depth'].unique())))}"
    return Found([above(found, bound, unit="slope")] if len(found) else [], words)
