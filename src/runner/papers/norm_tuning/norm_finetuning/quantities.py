"""Measure the training of a part of a ResNet with L layers and d channels in its first stage.

All quantities are differences of test accuracies at the last epoch in each replicate. The other
weights are random and frozen. norm: γ and β are trained. `inside_grid`: neither chosen learning
rate is an end of its grid.
"""

import pandas as pd

from runner.papers.norm_tuning.norm_finetuning.tables import right_of
from runner.results.quantities import Tables, quantity
from runner.results.rows import nonempty


@quantity(
    "test accuracy of training {one} − test accuracy of training {other}",
    each=("L", "d"),
    unit="difference",
)
def ahead(tables: Tables, one: str, other: str) -> pd.DataFrame:
    """one, other: the parts of the network that are trained. Raises NoRows if a part was not trained."""
    arms = [right_of(tables, arm).reset_index() for arm in (one, other)]
    pairs = arms[0].merge(arms[1], on=["L", "d", "replicate"], suffixes=("", "_other"))
    value = nonempty(pairs["right"], "pairs of networks") - pairs["right_other"]
    return pairs.assign(value=value, inside_grid=pairs["inside_grid"] & pairs["inside_grid_other"])
