"""Write the page of all statements, `docs/statements.md`, as Markdown.

Judged statements come from the stored claims, each at the largest stored scale. The list OTHERS has
the statements that a test checks, and those that are not tested.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import yaml
from markdown_table import table

from runner.commands.gallery_data import claims_of, collect
from runner.commands.report import VERDICTS, capital
from runner.core.catalogue import figure_study, paper_folder
from runner.core.papers import paper_of, papers
from runner.results.claims import distinct
from runner.runs.provenance import REPOSITORY

PAGE = REPOSITORY / "docs" / "statements.md"
OTHERS = Path(__file__).with_name("statements.yaml")

HEAD = """# All statements

{counts} The signs mean {signs} ([how we judge](results.md#what-a-verdict-means)). Each verdict is
from the largest scale that we computed, which the command in the last column names. A range in
parentheses is the interval of the test: each of its ends is wrong with a probability of at most
5 %. *Additional* statements are ours. `runner claims FIGURE` prints the rules of a figure.
Some laws appear twice, because two figures judge them. If the last column names a test,
`.venv/bin/python -m pytest -k 'NAME'` runs it, after `make test` once."""

KINDS = {"paper": "", "ours": "*Additional:* ", "illustration": "*Loose bound:* "}

COLUMNS = ["statement", "where", "verdict", "numbers", "figure or test"]


def page(reference: Path, counts: str) -> str:
    """Return the page.

    reference: the folder of the reference. counts: the first sentence. Raises InputError if a file
    of the reference is damaged.
    """
    claims = claims_of(collect(PAGE.parent, None, reference, draws=False))
    judged = distinct(claims[claims["is_main"]])
    letters = [paper_of(paper_folder(figure_study(name))).letter for name in judged["figure"]]
    others = yaml.safe_load(OTHERS.read_text())
    signs = ", ".join(f"{sign} {verdict}" for verdict, sign in VERDICTS.items())
    parts = [HEAD.format(counts=counts, signs=signs)]
    for paper in papers().values():
        rows = [*_judged(judged[[letter == paper.letter for letter in letters]])]
        rows += [*_others(others.get(paper.letter, []))]
        parts += [f"## Paper {paper.letter}", f"*{paper.title}.*", table(COLUMNS, rows)]
    return "\n\n".join(parts) + "\n"


def _judged(claims: pd.DataFrame) -> Iterator[list[str]]:
    """Yield the cells of each judged statement about a paper: its own, additional, loose bounds."""
    for kind, word in KINDS.items():
        for row in claims[claims["kind"] == kind].itertuples():
            where = re.sub(r"^(supplementary to |from )?(the )?paper [A-Z][,:]? ", "", row.source)
            numbers = "; ".join(filter(None, (row.measured, row.note)))
            how = f"`make {row.figure} SCALE={row.scale}`".replace(" SCALE=quick", "")
            yield [word + capital(row.statement), where, VERDICTS[row.verdict], numbers, how]


def _others(listed: list[dict[str, str]]) -> Iterator[list[str]]:
    """Yield the cells of each statement of the list. One without a test was not tested."""
    for row in listed:
        cells = [row.get(key, "") for key in ("where", "verdict", "numbers")]
        yield [row["statement"], *cells, row.get("test", "not tested")]
