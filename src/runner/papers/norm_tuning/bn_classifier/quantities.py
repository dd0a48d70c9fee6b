"""What is measured of a classifier inside a frozen random network, over all images."""

import pandas as pd

from runner.papers.norm_tuning.bn_classifier.tables import of_network
from runner.results.quantities import Tables, quantity


@quantity()
def logit_error(tables: Tables) -> pd.Series:
    """largest difference of a logit from the classifier's"""
    return of_network(tables, "construction", "max_abs_error")


@quantity()
def agreement(tables: Tables) -> pd.Series:
    """share of all 1797 images in which classifier and construction agree"""
    return of_network(tables, "construction", "agreement")
