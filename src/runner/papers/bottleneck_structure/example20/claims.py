"""What paper D says of Example 20, judged over the table of study `example20`.

The networks are explicit: nothing is drawn. A statement about all of them is judged in every
network, or in every step from one depth to the next, and refuted by a counterexample.
"""

import numpy as np
import pandas as pd

from runner.results.claims import Claim, Found, Tables
from runner.results.evidence import everywhere

SIZES = {"depth": 3, "exponent": 2}


def represents(tables: Tables) -> Found:
    """The networks equal f on the cube, up to rounding that adds up over the layers."""
    metrics = tables["metrics"]
    unit = metrics["max_error"] / (np.finfo(np.float64).eps * metrics["depth"])
    words = f"largest error {metrics['max_error'].max():.2g}, {unit.max():.2g} eps L"
    return Found([everywhere(unit <= 3, point="networks")], words)


def _steps(metrics: pd.DataFrame, column: str) -> pd.Series:
    """The change of a column from each depth to the next, of each exponent g."""
    ordered = metrics.sort_values("depth")
    return ordered.groupby("exponent")[column].diff().dropna()


def _ends(metrics: pd.DataFrame, column: str) -> str:
    """The column at the shallowest and at the deepest network of each exponent g."""
    ends = metrics.sort_values("depth").groupby("exponent")[column].agg(["first", "last"])
    return ", ".join(f"g={g:g}: {first:.2g} to {last:.2g}" for g, first, last in ends.itertuples())


def excess_vanishes(tables: Tables) -> Found:
    """The measured norm is the closed form, which tends to 0 as 12 L^{1-2g} for 1/2 < g < 1."""
    metrics = tables["metrics"]
    difference = (metrics["parameter_norm"] - 3 * metrics["depth"] - metrics["excess"]).abs()
    rounding = np.finfo(np.float64).eps * metrics["parameter_norm"] * metrics["depth"]
    points = [
        everywhere(difference <= rounding, point="networks, closed form"),
        everywhere(_steps(metrics, "excess") < 0, point="steps in depth"),
    ]
    return Found(points, f"{_ends(metrics, 'excess')}; off the closed form {difference.max():.2g}")


def representations_diverge(tables: Tables) -> Found:
    """The Lipschitz constant of the middle grows as e^{(L-2) eps / 2} for each g < 1."""
    metrics = tables["metrics"]
    grows = _steps(metrics, "middle_lipschitz") > 0
    return Found([everywhere(grows, point="steps in depth")], _ends(metrics, "middle_lipschitz"))


CLAIMS = {
    "bottleneck-example20": [
        Claim(
            "represents",
            "the explicit networks equal f(x, y, z) = (x, y, z + relu(x - y)) on [0, 1]^3",
            "paper D, Example 20",
            represents,
            "error at most 3 eps L: three roundings in every layer",
            needs=SIZES,
        ),
        Claim(
            "norm-converges",
            "||theta||^2 - 3 L goes to 0: R^(0)(f) = 3, R^(1)(f) = 0",
            "paper D, Example 20 (its last line drops a factor (L-2)/2)",
            excess_vanishes,
            "equal to the closed form, which tends to 0; smaller at every next depth",
            needs=SIZES,
        ),
        Claim(
            "representations-diverge",
            "the middle representations are not uniformly Lipschitz",
            "paper D, Example 20",
            representations_diverge,
            "Lipschitz constant of the middle larger at every next depth",
            needs=SIZES,
        ),
    ],
}
"""By figure, in the order in which they are told."""
