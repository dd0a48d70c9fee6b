"""Draw the figures of study `rank_chain`, and the preview of one run."""

from runner.papers.batch_norm_rank.rank_chain.figures import layers, widths

overview = {
    "metrics": widths.draw_fig3a,
    "spectrum": layers.draw_fig3b,
    "products": layers.draw_lemma3,
    "expansions": layers.draw_lemma7,
    "input_ranks": layers.draw_live,
}
"""Function that draws the preview, by the table that a run has."""

TITLE = "very deep linear networks"
"""Title of the preview."""

HEADLINE = ["soft_rank", "rank_bound", "log_ratio", "change"]

FIGURES = [*widths.FIGURES, *layers.FIGURES]
