"""The numbers on a paper's page, in its tables and sentences, are computed from stored tables.

A page joins with modules of its own in `tests/support`. TABLES has for each table, by the first
cell of its heading, a function that returns the numbers of each row. SENTENCES has functions for
parts of sentences, in which # stands for a number.
"""

import re

import pytest
import sentences_of_paper_a
import sentences_of_paper_b
import sentences_of_paper_c
import sentences_of_paper_d
import statements
import tables_of_paper_a
import tables_of_paper_b
import tables_of_paper_c
import tables_of_paper_d
import yaml
from repository import REPOSITORY
from written_numbers import NUMBER, rounds_to

JOINED = {
    "paper-a.md": tables_of_paper_a.TABLES,
    "paper-b.md": tables_of_paper_b.TABLES,
    "paper-c.md": tables_of_paper_c.TABLES,
    "paper-d.md": tables_of_paper_d.TABLES,
    "norm-finetuning.md": tables_of_paper_a.RESNET,
    "results.md": {"network": tables_of_paper_a.example},
}

SENTENCES = {
    "paper-a.md": sentences_of_paper_a.SENTENCES,
    "paper-b.md": sentences_of_paper_b.SENTENCES,
    "paper-c.md": sentences_of_paper_c.SENTENCES,
    "paper-d.md": sentences_of_paper_d.SENTENCES,
}

STATEMENTS = {
    "A": tables_of_paper_a.STATEMENTS,
    "C": tables_of_paper_c.STATEMENTS,
    "D": tables_of_paper_d.STATEMENTS,
}

NO_NUMBERS = {
    "paper-a.md": {"question": "questions and short answers", "place": "errors in the paper"},
    "paper-b.md": {
        "question": "questions and short answers",
        "place": "errors in the paper, which tests/theory checks; see also ERRORS",
    },
    "paper-c.md": {
        "question": "questions and short answers",
        "layer": "layers and their invariants",
        "place": "errors in the paper",
    },
    "paper-d.md": {"place": "errors in the paper"},
}
"""Tables without numbers of a stored table, and what they have, of the pages whose tables all have
a source."""

TABLE = re.compile(r"(?m)^\| .*\|\n\|[ :|-]+\|\n(?:\|.*\|\n)+")
LINK_OR_CODE = re.compile(r"\[[^\]]*\]\([^)]*\)|`[^`]*`")
POWER = re.compile(r"(?:(\d[\d.]*) × )?10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def cells(line: str) -> list[str]:
    """Return the cells of a row of a table. A bar inside of code or with a backslash is text."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def numbers(row: list[str]) -> list[str]:
    """Return the numbers in a row as they are written, without those of its first cell.

    A number such as 4 × 10⁸ is returned as 4e8. Links and code have no numbers.
    """
    text = LINK_OR_CODE.sub("", " ; ".join(row[1:]))
    text = POWER.sub(lambda found: f"{found[1] or 1}e{found[2].translate(DIGITS)}", text)
    return re.findall(NUMBER, text)


def tables_of(page: str) -> list[tuple[str, list[list[str]]]]:
    """Return for each table of a page the first cell of its heading, and the rows."""
    text = (REPOSITORY / "docs" / page).read_text()
    found = [[cells(line) for line in table.splitlines()] for table in TABLE.findall(text)]
    return [(rows[0][0], rows[2:]) for rows in found]


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the only table of a page whose heading begins with this cell."""
    (rows,) = [rows for first, rows in tables_of(page) if first == heading]
    return rows


@pytest.mark.parametrize("page", NO_NUMBERS)
def test_every_table_of_a_page_has_a_source(page):
    headings = sorted(heading for heading, _ in tables_of(page))
    assert headings == sorted([*NO_NUMBERS[page], *JOINED[page]])


@pytest.mark.parametrize(
    ("page", "heading"), [(page, heading) for page, of in JOINED.items() for heading in of]
)
def test_the_numbers_of_a_table_are_those_of_the_stored_tables(page, heading):
    rows, stored = rows_of(page, heading), JOINED[page][heading]()
    assert len(rows) == len(stored)
    for row, values in zip(rows, stored, strict=True):
        written = numbers(row)
        assert len(written) == len(values), (row, values)
        wrong = [
            (text, value)
            for text, value in zip(written, values, strict=True)
            if not rounds_to(value, text)
        ]
        assert not wrong, (row[0], wrong)


@pytest.mark.parametrize(
    ("page", "sentence"), [(page, sentence) for page, of in SENTENCES.items() for sentence in of]
)
def test_the_numbers_of_a_sentence_are_those_of_the_stored_tables(page, sentence):
    text = " ".join((REPOSITORY / "docs" / page).read_text().split())
    parts = map(re.escape, " ".join(sentence.split()).split("#"))
    (written,) = re.findall(f"({NUMBER})".join(parts), text)
    written = [written] if isinstance(written, str) else written
    stored = SENTENCES[page][sentence]()
    assert len(written) == len(stored) and all(map(rounds_to, stored, written)), stored


@pytest.mark.parametrize(
    ("paper", "start"), [(paper, start) for paper, of in STATEMENTS.items() for start in of]
)
def test_a_statement_that_is_measured_and_not_judged_has_the_stored_numbers(paper, start):
    listed = yaml.safe_load(statements.OTHERS.read_text())[paper]
    (row,) = [each for each in listed if each["statement"].startswith(start)]
    written, stored = numbers(["", row["numbers"]]), STATEMENTS[paper][start]()
    assert len(written) == len(stored) and all(map(rounds_to, stored, written)), stored


@pytest.mark.parametrize("start", tables_of_paper_b.ERRORS)
def test_an_error_in_the_paper_that_is_measured_has_the_stored_numbers(start):
    (row,) = [row for row in rows_of("paper-b.md", "place") if row[0].startswith(start)]
    written, stored = numbers(row), tables_of_paper_b.ERRORS[start]()
    assert len(written) == len(stored) and all(map(rounds_to, stored, written)), stored


def test_another_number_another_row_and_an_unknown_table_are_noticed(tmp_path, monkeypatch):
    """The test can fail: in a page with one digit changed, and in one with a table more."""
    page = "paper-c.md"
    text = (REPOSITORY / "docs" / page).read_text()
    heading, line = "drift divided by initial size, depth 6", "| D of two linear layers"
    assert text.count(line) == 1
    (row,) = [each for each in text.splitlines() if each.startswith(line)]
    changed = row.replace(numbers(cells(row))[0], "5.9e-5")
    assert changed != row
    (tmp_path / "docs").mkdir()
    monkeypatch.setitem(globals(), "REPOSITORY", tmp_path)
    (tmp_path / "docs" / page).write_text(text.replace(row, changed))
    with pytest.raises(AssertionError, match="D of two linear layers"):
        test_the_numbers_of_a_table_are_those_of_the_stored_tables(page, heading)
    (tmp_path / "docs" / page).write_text(text + "\n\n| new | n |\n| --- | --- |\n| a | 3 |\n")
    with pytest.raises(AssertionError):
        test_every_table_of_a_page_has_a_source(page)
