"""The four papers, by the names of their packages."""

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Paper:
    """A paper: its letter in this project, title, conference with year, and number on arXiv."""

    letter: str
    title: str
    venue: str
    arxiv: str = ""
    replicates: str = "replicates"
    """What one independent repetition is called in the plural: `networks` or `tasks`."""


PAPERS = {
    "norm_tuning": Paper(
        "A",
        "The Expressive Power of Tuning Only the Normalization Layers",
        "COLT 2023",
        "2302.07937",
        "networks",
    ),
    "batch_norm_rank": Paper(
        "B",
        "Batch Normalization Provably Avoids Rank Collapse for Randomly Initialised Deep Networks",
        "NeurIPS 2020",
        "2003.01652",
        "networks",
    ),
    "training_invariances": Paper(
        "C",
        "Training invariances and the low-rank phenomenon: beyond linear networks",
        "ICLR 2022",
        "2201.11968",
        "networks",
    ),
    "bottleneck_structure": Paper(
        "D",
        "Bottleneck Structure in Learned Features: Low-Dimension vs Regularity Tradeoff",
        "NeurIPS 2023",
        "2305.19008",
        "tasks",
    ),
}


def paper_of(folder: str) -> Paper:
    """Return the paper of a package.

    folder: the package's name, such as `norm_tuning`. A user's package gives a paper without a
    letter, with the package's name as its title.
    """
    return PAPERS.get(folder, Paper("", folder, ""))


def replicates_in(module: str) -> str:
    """Return what a paper calls its independent repetitions: `networks`, `tasks` or `replicates`.

    module: the full name of a module of the paper. A user's module gives `replicates`.
    """
    return paper_of(module.removeprefix("runner.papers.").partition(".")[0]).replicates
