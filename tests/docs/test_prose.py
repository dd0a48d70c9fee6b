"""Pages are read at first sight: short sentences, few numbers in prose, each picture on a page.

Prose is what is left of a page without code, tables, headings, pictures and their captions (a
paragraph in italics), and blocks that the program generates. A sentence of a list counts as any.
"""

import re
from pathlib import Path

import pytest
from repository import REPOSITORY

DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", *sorted(DOCS.glob("*.md"))]
PAGES.remove(DOCS / "gallery.md")  # generated

LONGEST_MEAN = 17
"""Words of the mean sentence of a page."""

MOST_NUMBERS, MOST_ON_A_PAPERS_PAGE = 6, 11
"""In a hundred words of prose."""

NO_PROSE = [
    r"(?s)<!--\s*([\w .-]+): begin.*?-->.*?<!--\s*\1: end.*?-->",  # generated
    r"(?s)<!--.*?-->",
    r"(?ms)^ *(```|~~~).*?^ *\1",
    r"(?s)!\[.*?\]\([^)]*\)",
    r"(?m)^ *\|.*$",  # tables
    r"(?m)^#.*$",
    r"(?ms)^\*(?!\*)[^*]+\*$",  # captions
]
REFERENCE = (
    r"\b(figures?|theorems?|lemmas?|corollary|propositions?|facts?|remarks?|equations?|eqs?\.|"
    r"sections?|appendix|tables?|steps?|items?|seeds?|papers?|versions?|python|arxiv)"
    r"((,| and| to| or)? \(?[\d.]+[a-z]?\)?)+"
)
"""Numbers of this kind are names."""


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a page's prose, each item of a list alone. Code in a line is a
    word."""
    for pattern in NO_PROSE:
        text = re.sub(pattern, "\n\n", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "code", text))
    text = re.sub(r"(?m)^ *([-*>]|\d+\.) ", "\n\n", text)
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", text) if each.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of a page's prose."""
    end = r"(?<!\bEq\.)(?<!\bcf\.)(?<=[.!?])[*\")”]*\s+(?=[\"“*(]*[^\W\d_a-z])"
    return [part for each in paragraphs(text) for part in re.split(end, each)]


def numbers_in_hundred_words(text: str) -> float:
    """Return how many words of a page's prose are numbers."""
    words = re.sub(REFERENCE, r"\1", " ".join(paragraphs(text)), flags=re.IGNORECASE).split()
    return 100 * sum(bool(re.match(r"\W*\d", word)) for word in words) / max(1, len(words))


def mean_sentence(text: str) -> float:
    """Return the mean number of words in a sentence of a page."""
    found = sentences(text)
    return sum(len(each.split()) for each in found) / max(1, len(found))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_the_mean_sentence_is_short(path):
    assert mean_sentence(path.read_text()) <= LONGEST_MEAN


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_prose_has_few_numbers(path):
    papers = ("paper-", "norm-finetuning", "statements")  # the second is paper A's
    is_of_a_paper = path.name.startswith(papers)
    most = MOST_ON_A_PAPERS_PAGE if is_of_a_paper else MOST_NUMBERS
    assert numbers_in_hundred_words(path.read_text()) <= most


def figure_of(picture: str) -> str:
    """Return the figure of a picture, which each scale has a picture of."""
    return re.sub(r"-(medium|paper)$", "", Path(picture).stem)


def test_each_picture_of_the_gallery_stands_on_a_page():
    """At one scale at least. The gallery itself, a list of all, is no page in this sense."""
    shown = {
        figure_of(each)
        for page in PAGES
        for each in re.findall(r"(?s)!\[.*?\]\(([^)\s]*)\)", page.read_text())
    }
    kept = {figure_of(path.name) for path in (DOCS / "figures").glob("*.png")}
    assert not kept - shown
