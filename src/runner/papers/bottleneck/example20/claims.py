"""What paper D says of Example 20, judged over the table of study `example20`."""

import numpy as np
import pandas as pd

from runner.results.claims import Judgement, Tables, claim, decide


@claim(
    figure="bottleneck-example20",
    name="represents",
    statement="the explicit networks equal f(x, y, z) = (x, y, z + relu(x - y)) on [0, 1]^3",
    source="paper D, Example 20",
)
def represents(tables: Tables) -> Judgement:
    """The networks equal f on the cube, up to rounding that adds up over the layers."""
    metrics = tables["metrics"]
    unit = metrics["max_error"] / (np.finfo(np.float64).eps * metrics["depth"])
    measured = f"largest error {metrics['max_error'].max():.2g}; {unit.max():.2g} eps L"
    return decide(
        bool((unit <= 3).all()), measured, "at most 3 eps L: three roundings in every layer"
    )


def _rates(metrics: pd.DataFrame, column: str) -> list[tuple[float, float, float]]:
    """(exponent g, value at the shallowest, value at the deepest network)."""
    return [
        (g, *rows.sort_values("depth")[column].iloc[[0, -1]])
        for g, rows in metrics.groupby("exponent")
    ]


@claim(
    figure="bottleneck-example20",
    name="norm-converges",
    statement="||theta||^2 - 3 L goes to 0: R^(0)(f) = 3, R^(1)(f) = 0",
    source="paper D, Example 20 (its last line drops a factor (L-2)/2)",
)
def excess_vanishes(tables: Tables) -> Judgement:
    """The measured norm is the closed form, which tends to 0 as 12 L^{1-2g} for 1/2 < g < 1."""
    metrics = tables["metrics"]
    difference = (metrics["parameter_norm"] - 3 * metrics["depth"] - metrics["excess"]).abs()
    rounding = np.finfo(np.float64).eps * metrics["parameter_norm"] * metrics["depth"]
    falls = all(last < first for _, first, last in _rates(metrics, "excess"))
    ends = ", ".join(f"g={g:g}: {last:.3g}" for g, _, last in _rates(metrics, "excess"))
    measured = (
        f"at L = {metrics['depth'].max()}: {ends}; off the closed form {difference.max():.2g}"
    )
    agrees = bool((difference <= rounding).all())
    return decide(bool(agrees and falls), measured, "equal to the closed form, falling with L")


@claim(
    figure="bottleneck-example20",
    name="representations-diverge",
    statement="the middle representations are not uniformly Lipschitz",
    source="paper D, Example 20",
)
def representations_diverge(tables: Tables) -> Judgement:
    """The Lipschitz constant of the middle grows as e^{(L-2) eps / 2} for each g < 1."""
    metrics = tables["metrics"]
    rates = _rates(metrics, "middle_lipschitz")
    ends = ", ".join(f"g={g:g}: {first:.2g} to {last:.2g}" for g, first, last in rates)
    grows = all(
        (rows.sort_values("depth")["middle_lipschitz"].diff().dropna() > 0).all()
        for _, rows in metrics.groupby("exponent")
    )
    return decide(bool(grows), ends, "growing with L")
