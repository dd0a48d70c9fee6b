"""Select the quantities that the figure and the claims of study `practical_layers` are about."""

import pandas as pd

from runner.papers.training_invariances.orders import local_orders
from runner.results.rows import Tables, nonempty

SHOWN = {
    "average pooling: all of D": ("average_pooling", "all", "columns of 2.weight"),
    "max pooling: diagonal of D": ("max_pooling", "diagonal", "columns of 2.weight"),
    "before batch norm: ‖w‖²": ("batch_norm", "diagonal", "rows of 2.branch"),
    "batch norm: γ, β, next layer": ("batch_norm", "diagonal", "columns of 2.branch.3"),
    "residual stream": ("batch_norm", "diagonal", "columns of 2.branch.0"),
    "layer norm: γ, β, next layer": ("transformer", "diagonal", "columns of .*in_proj.*norm"),
    "attention: queries, keys": ("transformer", "heads", "rows of .*in_proj"),
    "attention: values, output": ("transformer", "heads", "columns of .*out_proj.*in_proj"),
    "gated unit: value": ("gated", "diagonal", r"columns of 3.*\(part 1"),
    "gated unit: gate": ("gated", "diagonal", r"columns of 3.*\(part 2"),
    "GELU unit": ("transformer", "diagonal", "columns of block.linear2"),
    "max pooling: all of D": ("max_pooling", "all", "columns of 2.weight"),
}
"""Quantities by their printed name: network, part of D, pattern of the quantity."""

CONTROLS = [*SHOWN][-3:]
"""Printed names of the quantities that gradient flow moves."""

METHODS = {"sgd": "SGD", "momentum": "momentum", "adam": "Adam"}
DECAY = "SGD, weight decay"
"""Printed names of the optimizers."""

MIDDLE = 0.5
"""The convergence order in the middle of 0 (the flow moves a quantity) and 1 (conserved)."""


def shown(tables: Tables) -> pd.DataFrame:
    """Return the rows of the quantities in SHOWN, with three more columns.

    - `label`: the printed name of the quantity.
    - `method`: the printed name of the optimizer.
    - `control`: whether gradient flow moves the quantity.

    Raises NoRows if there are no rows.
    """
    rows = tables["metrics"]
    parts = []
    for label, (network, part, pattern) in SHOWN.items():
        of_part = rows[(rows["network"] == network) & (rows["part"] == part)]
        parts.append(of_part[of_part["quantity"].str.match(pattern)].assign(label=label))
    chosen = nonempty(pd.concat(parts), "quantity that is shown")
    method = chosen["optimizer"].map(METHODS).where(chosen["weight_decay"] == 0, DECAY)
    return chosen.assign(method=method, control=chosen["label"].isin(CONTROLS))


def orders(tables: Tables) -> pd.DataFrame:
    """Return the convergence order of each quantity: the drift's exponent in the learning rate.

    There is a row for each quantity, network, optimizer and replicate. `value` is the exponent
    between the two smallest learning rates, `asymptotic` whether it no longer changes, see
    `local_orders`. Raises NoRows if no quantity of SHOWN was measured at three learning rates.
    """
    keys = ["label", "control", "network", "method", "quantity", "replicate"]
    local = local_orders(shown(tables), keys).rename(columns={"fine": "value"})
    return nonempty(local, "quantity at three learning rates")
