"""Pages read in the repository: their links lead somewhere, and functions have a line each."""

import re
from pathlib import Path

import functions
import pytest
from repository import REPOSITORY

PAGES = [
    *sorted(REPOSITORY.glob("*.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]


def text_of(page: Path) -> str:
    """A page without blocks of code."""
    return re.sub(r"(?ms)^ *(```|~~~).*?^ *\1", "", page.read_text())


def places(page: Path) -> set[str]:
    """The places in a page to which a link can lead: headings as GitHub names them, and ids."""
    text = text_of(page)
    heads = [re.sub(r"[*`]|\]\([^)]*\)", "", head) for head in re.findall(r"(?m)^#+ (.*)$", text)]
    names = {re.sub(r"[^\w -]", "", head.lower()).strip().replace(" ", "-") for head in heads}
    return (
        names
        | set(re.findall(r'(?:id|name)="([^"]+)"', text))
        | set(re.findall(r"\{ ?#([\w-]+) ?\}", text))
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere_in_the_repository(page):
    for link in re.findall(r"\]\(\s*([^)\s]+)\s*\)", text_of(page)):
        if re.match("https?:|mailto:", link):
            continue
        file, _, place = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), link
        assert not place or place in places(target), link


@pytest.mark.parametrize("page", functions.PAGES, ids=lambda page: page.stem)
def test_a_page_about_python_has_a_line_for_each_function(page):
    """As `make gallery` writes them."""
    text = page.read_text()
    lists = functions.lists(page)
    assert lists and len(lists) == text.count("\n::: ")
    for name, listed in lists.items():
        assert f"<!-- {name}: begin -->\n{listed}\n<!-- {name}: end -->" in text
        assert "\n- `" in listed


def test_each_picture_of_the_gallery_stands_on_a_page():
    """At one scale at least. The gallery itself, a list of all, is no page in this sense."""
    docs = REPOSITORY / "docs"
    pages = [page for page in PAGES if page != docs / "gallery.md"]
    links = {
        each for p in pages for each in re.findall(r"(?s)!\[.*?\]\(([^)\s]*)\)", p.read_text())
    }
    shown, drawn = (
        {re.sub(r"-(medium|paper)$", "", Path(each).stem) for each in pictures}
        for pictures in (links, (docs / "figures").glob("*.png"))
    )
    assert not drawn - shown
