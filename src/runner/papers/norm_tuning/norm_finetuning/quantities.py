"""Compare what a ResNet learns if only one part of it is trained.

The other weights are random and frozen. The ResNet has L layers and d channels in its first stage.
A part is a value of the parameter `arms`: "norm" (gamma and beta of the BatchNorm layers),
"random_weights", "last_layer" or "all".
"""

import pandas as pd

from runner.papers.norm_tuning.norm_finetuning.tables import right_of
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity(
    "test accuracy of training {one} minus that of training {other}",
    each=("L", "d"),
    unit="difference",
)
def ahead(tables: Tables, one: str, other: str) -> pd.DataFrame:
    """Return the difference in test accuracy between training one part of a ResNet and another.

    A row is a replicate of a ResNet with L layers and d channels. `value` is the accuracy of
    training the part `one` minus that of training the part `other`, after the last epoch. A network
    that diverged has accuracy 0. The column `inside_grid` is false if one of the chosen learning
    rates is the smallest or largest one that was tried. one, other: "norm", "random_weights",
    "last_layer" or "all". Raises NoRows if a part was not trained.
    """
    arms = [right_of(tables, arm).reset_index() for arm in (one, other)]
    pairs = arms[0].merge(arms[1], on=["L", "d", "replicate"], suffixes=("", "_other"))
    value = nonempty(pairs["right"], "pairs of networks") - pairs["right_other"]
    return pairs.assign(value=value, inside_grid=pairs["inside_grid"] & pairs["inside_grid_other"])
