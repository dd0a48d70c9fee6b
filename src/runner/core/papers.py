"""The papers whose packages are in `runner.papers`: letters, titles and where they appeared."""

import importlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from runner.core.errors import InputError

FOLDER = Path(__file__).resolve().parents[1] / "papers"


@dataclass(frozen=True, order=True)
class Paper:
    """A paper: its letter in this project, title, conference with year, and number on arXiv.

    The file `names.py` of the paper's package has it as `PAPER`.
    """

    letter: str
    title: str
    venue: str
    arxiv: str = ""
    replicates: str = "replicates"
    """What one independent repetition is called in the plural: `networks` or `tasks`."""


@cache
def papers() -> dict[str, Paper]:
    """Return the papers by the names of their packages, in the order of their letters.

    Raises InputError if the `names.py` of a package has no `PAPER`, or two papers have one letter.
    """
    found: dict[str, Paper] = {}
    for path in sorted(FOLDER.glob("*/names.py")):
        paper = paper_of(path.parent.name)
        if twice := [name for name, other in found.items() if other.letter == paper.letter]:
            raise InputError(f"{path}: the paper {twice[0]} has the letter {paper.letter} already")
        found[path.parent.name] = paper
    return dict(sorted(found.items(), key=lambda item: item[1]))


@cache
def paper_of(folder: str) -> Paper:
    """Return the paper of a package.

    folder: the package's name, such as `norm_tuning`. A user's package gives a paper without a
    letter, with the package's name as its title. Raises InputError as `papers` does.
    """
    path = FOLDER / folder / "names.py"
    if not path.is_file():
        return Paper("", folder, "")
    names = importlib.import_module(f"runner.papers.{folder}.names")
    paper = getattr(names, "PAPER", None)
    if not isinstance(paper, Paper):
        raise InputError(f'{path} has no PAPER = Paper("A", "title", "conference and year")')
    return paper


def replicates_in(module: str) -> str:
    """Return what a paper calls its independent repetitions: `networks`, `tasks` or `replicates`.

    module: the full name of a module of the paper. A user's module gives `replicates`.
    """
    inside = module.startswith("runner.papers.")
    return paper_of(module.split(".")[2]).replicates if inside else "replicates"
