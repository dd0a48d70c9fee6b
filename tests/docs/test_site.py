"""The documentation is built without a warning, says what there is, and loads nothing."""

import importlib
import inspect
import re
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlparse

import pytest
from repository import REPOSITORY

pytest.importorskip("material")
pytest.importorskip("mkdocstrings_handlers.python")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("nbconvert")
pytest.importorskip("latex2mathml")

from mkdocs.commands.build import build  # noqa: E402
from mkdocs.config import load_config  # noqa: E402

from runner.core.catalogue import config_of, configs  # noqa: E402
from runner.core.settings import Settings  # noqa: E402

DOCS = REPOSITORY / "docs"
MADE_LATER = {"report/index.html"}
"""By `make docs`, when the site is there."""
PAGES = [*DOCS.glob("functions/*.md"), DOCS / "api.md"]
BLOCKS = [(page.stem, block) for page in PAGES for block in page.read_text().split("```")[1::2]]


class Links(HTMLParser):
    """Where a page leads to, and what it loads by itself."""

    def __init__(self, path: Path):
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        if tag == "a":
            self.leads.append(found.get("href") or "")
        elif tag in ("script", "link", "img", "iframe", "source"):
            self.loads += filter(None, (found.get("src"), found.get("href")))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, in which one notebook has been executed as it is, another in an older version."""
    outputs = tmp_path_factory.mktemp("outputs")
    (outputs / "notebooks").mkdir()
    for name in ("bottleneck_structure", "training_invariances"):
        notebook = nbformat.read(DOCS / "notebooks" / f"{name}.ipynb", 4)
        printed = nbformat.v4.new_output("stream", name="stdout", text="these are its outputs")
        warned = nbformat.v4.new_output("stream", name="stderr", text="a bar")
        drawn = nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
        notebook.cells[1].outputs = [printed, warned, drawn]
        if name == "training_invariances":
            notebook.cells[1].source += "\n# older"
        nbformat.write(notebook, outputs / "notebooks" / f"{name}.ipynb")
    config = str(DOCS / "site" / "mkdocs.yml")
    build(load_config(config, strict=True, site_dir=str(outputs / "site")))
    return outputs / "site"


def test_nothing_is_loaded_from_elsewhere(site):
    for page in site.rglob("*.html"):
        assert not [each for each in Links(page).loads if urlparse(each).netloc], page
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*['\"]?(?:https?:)?//", sheet.read_text()), sheet


def test_what_pages_lead_to_and_load_is_there(site):
    for page in site.rglob("*.html"):
        if page.name == "404.html":
            continue
        links = Links(page)
        for link in links.leads + links.loads:
            parts = urlparse(link)
            if parts.scheme or not parts.path:
                continue
            target = page.parent / unquote(parts.path)
            inside = target.resolve().relative_to(site.resolve())
            assert target.is_file() or inside.as_posix() in MADE_LATER, (page, link)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_public_function_of_a_module_is_on_its_page(site, page):
    text = (site / page.relative_to(DOCS).with_suffix(".html")).read_text()
    modules = re.findall(r"^::: (runner\.\S+\.[a-z_]+|runner\.api)$", page.read_text(), re.M)
    assert modules
    for name in modules:
        assert f"<code>{name}</code></a>" not in text, "the repository's list of functions"
        for member, what in vars(importlib.import_module(name)).items():
            own = (inspect.isfunction(what) or inspect.isclass(what)) and what.__module__ == name
            if own and not member.startswith("_") and not member.endswith("_bytes"):
                assert f'id="{name}.{member}"' in text, f"{name}.{member}"


def test_the_theory_of_every_paper_has_a_page():
    shown = "".join(page.read_text() for page in PAGES)
    for path in (REPOSITORY / "src" / "runner" / "papers").glob("*/theory.py"):
        assert f"::: runner.papers.{path.parent.name}.theory\n" in shown


@pytest.mark.parametrize("code", [code for _, code in BLOCKS], ids=[page for page, _ in BLOCKS])
def test_the_code_on_a_page_runs(code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert code.startswith("python\n")
    exec(compile(code.removeprefix("python\n"), "page", "exec"), {})


def test_every_study_has_its_keys_on_a_page(site):
    text = (site / "command-line.html").read_text()
    anchors = {
        *(f"{study}-{item.name}" for study in configs() for item in fields(config_of(study))),
        *(f"setting-{item.name}" for item in fields(Settings)),
    }
    assert all(f'id="{anchor}"' in text for anchor in anchors)
    assert "runner report [-h]" in text


def test_formulas_are_mathml(site):
    for page in site.glob("notebooks/*.html"):
        text = page.read_text()
        assert "arithmatex" not in text and "<math " in text
        assert not re.search(
            r"\\(?:frac|lVert|sum|gamma|mathrm)", re.sub("<pre.*?</pre>", "", text)
        )


def test_a_notebook_shows_its_outputs_where_it_was_executed_as_it_is(site):
    text = (site / "notebooks" / "bottleneck_structure.html").read_text()
    assert "these are its outputs" in text and "a bar" not in text
    loads = Links(site / "notebooks" / "bottleneck_structure.html").loads
    (picture,) = [each for each in loads if each.startswith("bottleneck_structure")]
    assert (site / "notebooks" / picture).exists()
    assert (
        "these are its outputs"
        not in (site / "notebooks" / "training_invariances.html").read_text()
    )
