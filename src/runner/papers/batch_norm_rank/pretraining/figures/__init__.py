"""Draw the figures of study `pretraining`, and the preview of one run."""

import pandas as pd
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.pretraining.figures import depths, initializations
from runner.papers.batch_norm_rank.pretraining.tables import VARIANT
from runner.results.rows import Tables


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw figure 6 of one run as its preview; return the picture and a table.

    The table has a row for each network, with medians over replicates: r before training, and
    results of the last epoch.
    """
    picture, _ = initializations.draw_rank_and_accuracy(tables)
    rows = initializations.by_network(tables)
    shown = rows.groupby([*VARIANT, "learning_rate"], sort=False).median(numeric_only=True)
    return picture, shown.drop(columns="replicate").reset_index()


TITLE = "training accuracy and lower bound r by epoch"

CAPTION = (
    "(a) shows the training accuracy, (b) the lower bound r of the rank, a mean over layers."
    " Lines are medians, bands the range of the replicates."
)
"""Title and caption of the preview."""

HEADLINE = ["rank_bound", "train_accuracy", "test_accuracy"]

FIGURES = [*depths.FIGURES, *initializations.FIGURES]
