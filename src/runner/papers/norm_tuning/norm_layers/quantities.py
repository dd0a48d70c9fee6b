"""Measure networks of Theorem 1 of paper A in real normalization layers.

The construction of Theorem 1 sets gamma and beta so that a frozen network equals a target g of
width d. An error is the mean squared error divided by the variance of g. Kinds of layers are
"batch_norm", "layer_norm" and "rms_norm", each also "... with biases": frozen random biases before
the normalization. A row of a result is one replicate at one d. A function raises NoRows if a kind
of layer was not run.
"""

import numpy as np
import pandas as pd

from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty, select


def _rows(tables: Tables, layer: str, mode: str = "evaluation") -> pd.DataFrame:
    return select(tables["metrics"].rename(columns={"target_width": "d"}), layer=layer, mode=mode)


@quantity(
    "relative error of the construction in {layer}, divided by an estimate of its rounding error"
    " (machine epsilon × (condition number + 9) × input norm),",
    each=("d",),
)
def error_over_rounding(tables: Tables, layer: str = "batch_norm") -> pd.DataFrame:
    """Return the error of constructed networks divided by the error that rounding can cause.

    A row is a replicate with target width d, and `value` is the ratio. The numerator is the root
    mean square error in standard deviations of the target g, the column `relative_error`. The
    largest absolute error replaces it if this is smaller, since g may hardly vary on few inputs.
    The denominator is ε (condition number + 9) × input norm, with the machine epsilon ε. The 9
    allows for about a dozen operations that round, even at condition number 1.

    With biases, networks are judged only from d = 2 on. The biases are divided by the weights, and
    a system of one equation has condition number 1 even if its weights are tiny.

    layer: kind of layer, "batch_norm" or "batch_norm with biases". Raises NoRows if it was not run.
    """
    rows = _rows(tables, layer)
    if layer.endswith("with biases"):
        rows = nonempty(rows[rows["d"] > 1], f"{layer} at d above 1")
    relative = np.sqrt(rows["relative_mse"])
    error = np.fmin(relative, rows.get("max_abs_error", np.inf))
    rounding = np.finfo(np.float64).eps * (rows["condition_number"] + 9) * rows["input_norm"]
    return rows.assign(value=error / rounding, relative_error=relative)


@quantity("smallest error of any function that ignores the norm of its input", each=("d",))
def least_in_layer_norm(tables: Tables) -> pd.DataFrame:
    """Return the smallest error that any function with f(c x) = f(x) for c > 0 can have.

    Networks with LayerNorm and without biases are such functions. A row is a replicate with target
    width d, and `value` is the error divided by the variance of the target. Raises NoRows if
    LayerNorm was not run.
    """
    return _rows(tables, "layer_norm").eval("value = lower_bound")


@quantity(
    "error of the construction in LayerNorm minus the smallest error of any function that ignores"
    " the norm of its input",
    each=("d",),
    unit="difference",
)
def above_least_in_layer_norm(tables: Tables) -> pd.DataFrame:
    """Return the error of the construction in LayerNorm minus a lower bound of this error.

    The bound is the smallest error of any function with f(c x) = f(x) for c > 0. A row is a
    replicate with target width d, and `value` is the difference. Errors are divided by the variance
    of the target. Raises NoRows if LayerNorm was not run.
    """
    return _rows(tables, "layer_norm").eval("value = relative_mse - lower_bound")


@quantity(
    "the error of γ and β fitted in {layers} is {} the smallest error of any function that ignores"
    " the norm of its input",
    each=("d", "layer"),
    unit="ratio",
)
def fitted_over_least(tables: Tables, layers: tuple[str, ...]) -> pd.DataFrame:
    """Return the error of fitted gamma and beta divided by the smallest error without biases.

    The denominator is the smallest error of any function with f(c x) = f(x) for c > 0, as networks
    with LayerNorm without biases are. A row is a replicate with target width d and kind of layer,
    and `value` is the ratio. layers: kinds of layers, as "rms_norm with biases". Raises NoRows if a
    kind was not fitted.
    """
    fitted = pd.concat(_rows(tables, layer, "fitted") for layer in layers)
    least = _rows(tables, "layer_norm")[["d", "replicate", "lower_bound"]]
    rows = fitted.drop(columns="lower_bound").merge(least, on=["d", "replicate"])
    return rows.eval("value = relative_mse / lower_bound")


@quantity(
    "R² of a linear regression of the input's norm on the first layer's output, in {layers},",
    each=("d", "layer"),
)
def explained_norm(tables: Tables, layers: tuple[str, ...]) -> pd.DataFrame:
    """Return the fraction of the variance of ‖x‖ that the first layer's output explains linearly.

    x is an input of the network, and the layer contains a normalization. A row is a replicate with
    target width d and kind of layer, and `value` is the fraction. It is negative if predicting the
    mean of ‖x‖ is better. layers: kinds of layers, as "layer_norm with biases". Raises NoRows if no
    kind was fitted.
    """
    rows = tables["norms"].rename(columns={"target_width": "d"})
    rows = nonempty(rows[rows["layer"].isin(layers)], f"norms in {', '.join(layers)}")
    return rows.assign(value=rows["explained"])
