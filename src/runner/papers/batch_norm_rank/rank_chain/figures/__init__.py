"""Draw the figures of study `rank_chain`, and the preview of one run."""

import pandas as pd
from matplotlib.figure import Figure

from runner.papers.batch_norm_rank.rank_chain.figures import layers, widths
from runner.results.rows import Tables

OVERVIEW = {
    "metrics": widths.draw_fig3a,
    "spectrum": layers.draw_fig3b,
    "products": layers.draw_lemma3,
    "expansions": layers.draw_lemma7,
    "input_ranks": layers.draw_live,
}
"""Function that draws the preview, by the table that a run has."""


def overview(tables: Tables) -> tuple[Figure, pd.DataFrame]:
    """Draw the preview of one run with the figure of its table.

    Returns the picture and the drawn numbers. A table of more than 40 rows is reduced to 20 to 30
    evenly spaced rows.
    """
    picture, drawn = next(draw for table, draw in OVERVIEW.items() if table in tables)(tables)
    return picture, drawn if len(drawn) <= 40 else drawn.iloc[:: len(drawn) // 20]


STATISTIC = "mean"

TITLE = "very deep linear networks"
"""Title of the preview."""

HEADLINE = ["soft_rank", "rank_bound", "log_ratio", "change"]

FIGURES = [*widths.FIGURES, *layers.FIGURES]
