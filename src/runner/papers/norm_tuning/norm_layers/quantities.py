"""Measure the construction of Theorem 1 in real normalization layers.

d is the width of the target. An error is the mean squared error divided by the variance of the
target g.
"""

import numpy as np
import pandas as pd

from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select

PRINTED = {
    "batch_norm": "BatchNorm",
    "batch_norm with biases": "BatchNorm with biases",
    "layer_norm with biases": "LayerNorm with biases",
    "rms_norm with biases": "RMSNorm with biases",
    ("layer_norm with biases", "rms_norm with biases"): "LayerNorm or RMSNorm with biases",
    "layer": "kind of layer",
}
"""Printed names of layers and columns."""


def _rows(tables: Tables, layer: str, mode: str = "evaluation") -> pd.DataFrame:
    return select(tables["metrics"].rename(columns={"target_width": "d"}), layer=layer, mode=mode)


@quantity(
    "relative error of the construction in {layer} / (ε (condition number + 9) × input norm)",
    each=("d",),
)
def error_over_rounding(tables: Tables, layer: str = "batch_norm") -> pd.DataFrame:
    """ε: machine epsilon. The 9 allows for about a dozen operations that round, even at condition
    number 1. An error is relative to the standard deviation of g, or to 1 if this deviation is
    smaller, since g may hardly vary on few inputs. Biases are divided by the weights. A system of
    one equation has condition number 1 even for tiny weights. Networks with biases are therefore
    judged from d = 2 on.
    """
    rows = _rows(tables, layer)
    if layer.endswith("with biases"):
        rows = nonempty(rows[rows["d"] > 1], f"{layer} at d above 1")
    relative = np.sqrt(rows["relative_mse"])
    error = np.fmin(relative, rows.get("max_abs_error", np.inf))
    rounding = np.finfo(np.float64).eps * (rows["condition_number"] + 9) * rows["input_norm"]
    return rows.assign(value=error / rounding, relative_error=relative)


@quantity("smallest error of any function with f(c x) = f(x)", each=("d",))
def least_in_layer_norm(tables: Tables) -> pd.DataFrame:
    """Networks with LayerNorm and without biases are such functions, for c > 0."""
    return _rows(tables, "layer_norm").eval("value = lower_bound")


@quantity(
    "error of the construction in LayerNorm − smallest error of any function with f(c x) = f(x)",
    each=("d",),
    unit="difference",
)
def above_least_in_layer_norm(tables: Tables) -> pd.DataFrame:
    """TODO"""
    return _rows(tables, "layer_norm").eval("value = relative_mse - lower_bound")


@quantity(
    "error of γ and β fitted in {layers} / smallest error of any function with f(c x) = f(x)",
    each=("d", "layer"),
    unit="ratio",
)
def fitted_over_least(tables: Tables, layers: tuple[str, ...]) -> pd.DataFrame:
    """TODO"""
    fitted = pd.concat(_rows(tables, layer, "fitted") for layer in layers)
    least = _rows(tables, "layer_norm")[["d", "replicate", "lower_bound"]]
    rows = fitted.drop(columns="lower_bound").merge(least, on=["d", "replicate"])
    return rows.eval("value = relative_mse / lower_bound")


@quantity(
    "fraction of the variance of ‖x‖ that is linear in the output of the first layer, {layers}",
    each=("d", "layer"),
)
def explained_norm(tables: Tables, layers: tuple[str, ...]) -> pd.DataFrame:
    """TODO"""
    rows = tables["norms"].rename(columns={"target_width": "d"})
    rows = nonempty(rows[rows["layer"].isin(layers)], f"norms in {', '.join(layers)}")
    return rows.assign(value=rows["explained"])
