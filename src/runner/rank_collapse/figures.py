"""Drawings of paper B's figures and the quick looks of its studies."""

from runner.rank_collapse import (
    breaking_figures,
    chain_figures,
    depth_figures,
    pretraining_figures,
)

FIGURES = {
    **chain_figures.FIGURES,
    **depth_figures.FIGURES,
    **pretraining_figures.FIGURES,
    **breaking_figures.FIGURES,
}
OVERVIEWS = {
    "rank_chain": chain_figures.overview,
    "rank_collapse": depth_figures.overview,
    "pretraining": pretraining_figures.overview,
    "breaking_bn": breaking_figures.overview,
}
