"""The papers, by the folder of each."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Paper:
    """A paper as the project calls it."""

    letter: str
    title: str
    venue: str
    arxiv: str = ""


PAPERS = {
    "norm_tuning": Paper(
        "A",
        "The Expressive Power of Tuning Only the Normalization Layers",
        "COLT 2023",
        "2302.07937",
    ),
    "batch_norm_rank": Paper(
        "B",
        "Batch Normalization Provably Avoids Rank Collapse for Randomly Initialised Deep Networks",
        "NeurIPS 2020",
        "2003.01652",
    ),
    "training_invariances": Paper(
        "C",
        "Training invariances and the low-rank phenomenon: beyond linear networks",
        "ICLR 2022",
        "2201.11968",
    ),
    "bottleneck_structure": Paper(
        "D",
        "Bottleneck Structure in Learned Features: Low-Dimension vs Regularity Tradeoff",
        "NeurIPS 2023",
        "2305.19008",
    ),
}


def paper_of(folder: str) -> Paper:
    """Return the paper of a folder; one's own has no letter, and its name for a title."""
    return PAPERS.get(folder, Paper("", folder, ""))
