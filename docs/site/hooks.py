"""Add to the site what docs/ does not hold: CONTRIBUTING, the notebooks, the help of every study,
the columns of its tables, the tutorial's code. Show formulas as MathML, which needs no script.
"""

import html
import io
import os
import re
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

import nbformat
from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from nbconvert import MarkdownExporter

from runner.__main__ import SUBCOMMANDS, dispatch
from runner.commands import help as help_text
from runner.core.catalogue import configs, figure_names, title_of

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"

REPORT = """
## The gallery

All figures and claims, with the limits of what was measured and where the numbers come from:
<a href="report/index.html">the gallery</a> (`runner report`).
"""
"""Written by `make docs` when the site is there."""

MATHS = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<tex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
"""Formulas as `pymdownx.arithmatex` marks them."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    pages: dict[str, str | bytes] = {
        "contributing.md": _seen_from_docs("CONTRIBUTING.md"),
        "command-line.md": _command_line(),
        "columns.md": _columns(),
        "tutorial/transformer_studies/index.md": _code("tutorial/transformer_studies"),
    }
    executed = Path(config.site_dir).parent / "notebooks"
    for notebook in sorted((DOCS / "notebooks").glob("*.ipynb")):
        pages |= _notebook(notebook, executed / notebook.name)
    for path, content in pages.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to their pages on the site; add pictures to results; show docstrings.

    Links to notebooks, folders and files outside docs/ work in the repository. There the pages also
    list functions (`scripts/functions.py`), which mkdocstrings shows on the site.
    """
    if page.file.src_uri == "results.md":
        markdown += REPORT + _pictures()
    if page.file.src_uri == "index.md":
        markdown = markdown.replace("## Install", f"{_findings()}\n\n## Install", 1)
    markdown = markdown.replace("](../README.md", "](index.md")
    markdown = markdown.replace("](../CONTRIBUTING.md", "](contributing.md")
    markdown = re.sub(r"\]\(((?:\.\./)?notebooks/\w+)\.ipynb", r"](\1.md", markdown)
    markdown = re.sub(r"\]\((tutorial/[a-z_]+)\)", r"](\1/index.md)", markdown)
    markdown = re.sub(r"(?s)<!-- (runner\.\S+): begin -->.*?<!-- \1: end -->", "", markdown)
    return re.sub(r"(?s)<!--\n(::: .*?)\n-->", r"\1", markdown)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Formulas as MathML."""

    def mathml(found: re.Match[str]) -> str:
        display = "block" if found["tag"] == "div" else "inline"
        return convert(html.unescape(found["tex"]), display=display)

    return MATHS.sub(mathml, content)


def _seen_from_docs(name: str) -> str:
    """A document of the repository, its links as seen from docs/."""
    return (REPOSITORY / name).read_text().replace("](docs/", "](")


def _findings() -> str:
    """The README's table of the papers, its links as seen from docs/."""
    _, _, rest = (REPOSITORY / "README.md").read_text().partition("<!-- findings: begin -->")
    table = rest.partition("<!-- findings: end -->")[0].strip()
    return f"## What we found\n\n{table}".replace("](docs/", "](")


def _pictures() -> str:
    """Every picture of the reference, or where they are with their captions."""
    text = "\n## The pictures\n"
    if (DOCS / "figures" / "README.md").exists():
        return text + "\n[All figures with their captions](figures/README.md).\n"
    for name in figure_names():
        if (DOCS / "figures" / f"{name}.png").exists():
            text += f"\n`make {name}`: {title_of('figure', name)}\n"
            text += f"\n![{name}](figures/{name}.png){{ loading=lazy }}\n"
    return text


def _command_line() -> str:
    """The help of the command, of its subcommands, and of every study."""
    about = {name: what for name, (_, what) in SUBCOMMANDS.items()}
    text = f"# All keys\n\n```text\n{help_text.text([], about)}\n```\n\n## Subcommands\n"
    for name in SUBCOMMANDS:
        text += f"\n### {name}\n\n```text\n{_help_of_subcommand(name)}\n```\n"
    text += "\n## Settings\n\nThey do not change the numbers; every study has them.\n\n"
    first, *_ = configs()
    text += _described(
        help_text.of_study(first, [help_text.ALL]).split("\nSettings ")[1], "setting"
    )
    text += "\n## Studies\n"
    for name in configs():
        listed, *others = _parameters(name)
        text += f"\n### {name}\n\n{listed.splitlines()[2]}\n\n{_described(listed, name, others)}"
    return text


def _parameters(study: str) -> list[str]:
    """The help on a study's parameters, then with each choice that gives effect to others."""

    def listed(*words: str) -> str:
        return help_text.of_study(study, [help_text.ALL, *words]).split("\nSettings ")[0]

    choices = re.search(r"^Other parameters apply with (.*): add", listed(), re.MULTILINE)
    return [listed(), *map(listed, choices[1].split(", ") if choices else [])]


KEY = re.compile(r"^  (\w+): (.*)\n      (.*)$", re.MULTILINE)
"""A key in the help: its name, its type and default, its meaning."""


def _described(listed: str, where: str, others: Sequence[str] = ()) -> str:
    """The keys of help texts as a description list. Each has an anchor: `<where>-<name>`."""
    found: dict[str, list[str]] = {}
    for name, *about in KEY.findall("\n".join([listed, *others])):
        found.setdefault(name, about)
    text = ""
    for name, about in found.items():
        facts, meaning = (re.sub(r"([*_|$])", r"\\\1", html.escape(part)) for part in about)
        text += f"`{name}`{{ #{where}-{name} }}\n:   {meaning}<br><small>{facts}</small>\n\n"
    return text


def _columns() -> str:
    """The columns of every table of every study."""
    text = "# All tables\n\n`runner study=<name> --columns` prints the same.\n"
    for name in configs():
        text += f"\n## {name}\n\n```text\n{help_text.columns(name)}\n```\n"
    return text


def _help_of_subcommand(name: str) -> str:
    """What `runner <name> --help` prints."""
    printed = io.StringIO()
    wide = patch.dict(os.environ, COLUMNS="100")  # where argparse breaks its lines
    with wide, redirect_stdout(printed), suppress(SystemExit):
        dispatch([name, "--help"])
    return printed.getvalue().strip()


def _code(folder: str) -> str:
    """All files of a folder in docs/, one after the other."""
    text = f"# {folder}\n"
    for path in sorted((DOCS / folder).rglob("*")):
        if path.suffix in (".py", ".yaml"):
            kind = path.suffix.removeprefix(".").replace("py", "python")
            name = path.relative_to(DOCS / folder)
            text += f"\n## {name}\n\n```{kind}\n{path.read_text().strip()}\n```\n"
    return text


def _notebook(source: Path, executed: Path) -> dict[str, str | bytes]:
    """Return the page of a notebook and its pictures, with outputs if it was executed unchanged."""
    notebook = nbformat.read(source, as_version=4)
    if executed.exists():
        other = nbformat.read(executed, as_version=4)
        if [cell.source for cell in other.cells] == [cell.source for cell in notebook.cells]:
            notebook = other
    for cell in notebook.cells:
        if cell.cell_type == "code":  # bars and warnings are nothing to read
            cell.outputs = [each for each in cell.outputs if each.get("name") != "stderr"]
    names = {"unique_key": source.stem, "output_files_dir": ""}
    text, resources = MarkdownExporter().from_notebook_node(notebook, resources=names)
    text = re.sub(r"<style scoped>.*?</style>", "", text, flags=re.DOTALL)
    text = text.replace('<table border="1" class="dataframe">', "<table>")
    text += f"\n\n[The notebook]({source.name}), to be run and changed.\n"
    pictures = {f"notebooks/{Path(name).name}": data for name, data in resources["outputs"].items()}
    return {f"notebooks/{source.stem}.md": text} | pictures
