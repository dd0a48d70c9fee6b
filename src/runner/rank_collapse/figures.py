"""Drawings of paper B's figures and the quick looks of its studies."""

from runner.rank_collapse import chain_figures

FIGURES = {**chain_figures.FIGURES}
OVERVIEWS = {"rank_chain": chain_figures.overview}
