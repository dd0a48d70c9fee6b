"""What users read is in plain words: pages with the captions, help, claims, and errors."""

import ast
import re
from collections.abc import Iterator

import pytest
from repository import REPOSITORY

from runner.core import catalogue
from runner.results.claims import claims_of

INSTEAD = {
    r"untouched (weights?|networks?)": "not pre-trained",
    r"\blive directions?": "surviving directions",
    r"\bown starts?\b": "initialization",
    r"\bat a guess\b|\blike a guess\b": "at chance level",
    r"\bthe (rail|strip)\b": "values below ... are drawn here",
    r"authors' protocol": "following the authors' code",
    r"(weight|gamma|γ) of the (random )?branch": "residual weight γ",
    r"(?<!convergence )order of the drift": "convergence order in the step size",
    r"\b[Rr]ais(e|es|ed|ing) the rank\b(?! of the input)": "raises r; increases the rank",
    r"[nN]ormalis|\b(?<!Randomly )[iI]nitialis|[sS]tandardis|[rR]andomis": "z: normalization",
}
"""Private phrases that have no other meaning, and what to write instead."""

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md"]
PAGES += sorted((REPOSITORY / "docs").rglob("*.md"))


def pages() -> Iterator[tuple[str, str]]:
    for path in PAGES:
        yield str(path.relative_to(REPOSITORY)), path.read_text()


def helps() -> Iterator[tuple[str, str]]:
    for study, config in catalogue.configs().items():
        for name, field in config.__dataclass_fields__.items():
            yield f"{study} {name}", str(field.metadata)
    for path in sorted((REPOSITORY / "conf").rglob("*.yaml")):
        yield str(path.relative_to(REPOSITORY)), "\n".join(path.read_text().split("\n")[:3])


def claims() -> Iterator[tuple[str, str]]:
    for path in sorted((REPOSITORY / "conf" / "figure").glob("*.yaml")):
        study = catalogue.figure_study(path.stem)
        for claim in claims_of(path.stem, study):
            yield f"claim {claim.name}", f"{claim.statement} {claim.source} {claim.note}"


def errors() -> Iterator[tuple[str, str]]:
    for path in sorted((REPOSITORY / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            is_logged = isinstance(node, ast.Call) and is_of_log(node.func)
            if isinstance(node, ast.Raise) or is_logged:
                yield f"{path.name}:{node.lineno}", strings(node)


def is_of_log(function: ast.expr) -> bool:
    """Say whether it is a method of the logger `log`."""
    return isinstance(function, ast.Attribute) and getattr(function.value, "id", "") == "log"


def strings(node: ast.AST) -> str:
    """Return the texts in a piece of code, without conditions on the rows of a table."""
    values = [str(each.value) for each in ast.walk(node) if isinstance(each, ast.Constant)]
    return " ".join(value for value in values if " == " not in value)


def drawings() -> Iterator[tuple[str, str]]:
    """Yield what figures say: headlines, captions, labels."""
    papers = REPOSITORY / "src" / "runner" / "papers"
    for path in sorted([*papers.rglob("figures.py"), *papers.rglob("figures/*.py")]):
        for node in ast.parse(path.read_text()).body:
            yield f"{path.parent.name}/{path.name}:{node.lineno}", strings(node)


@pytest.mark.parametrize("where", [pages, helps, claims, errors, drawings])
def test_listed_words_stand_nowhere_that_a_user_reads(where):
    phrases = {re.compile(words): instead for words, instead in INSTEAD.items()}
    found = [
        f"{place}: ...{text[max(0, match.start() - 40) : match.end() + 30]!r}: {instead}"
        for place, text in where()
        for words, instead in phrases.items()
        for match in words.finditer(text)
    ]
    assert not found, "\n".join(found)
