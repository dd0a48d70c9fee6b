"""Papers are found by their packages: a new one changes no file of the program."""

import os
import shutil
import subprocess
import sys

import pytest
from repository import REPOSITORY

from runner.core.papers import paper_of, papers, replicates_in

SHOWN = """
import sys
from runner.core.papers import papers, paper_of, replicates_in
print(*(paper.letter for paper in papers().values()))
print(paper_of("fifth_paper").title, replicates_in("runner.papers.fifth_paper.one.quantities"))
print(*{"torch", "pandas", "matplotlib"} & set(sys.modules))
"""


def shown(tmp_path, names: str) -> subprocess.CompletedProcess:
    """The papers of a copy of the program that has another package of a paper."""
    shutil.copytree(REPOSITORY / "src", tmp_path / "src")
    fifth = tmp_path / "src" / "runner" / "papers" / "fifth_paper"
    fifth.mkdir()
    (fifth / "__init__.py").touch()
    (fifth / "names.py").write_text(f"from runner.core.papers import Paper\n\n{names}\n")
    return subprocess.run(
        [sys.executable, "-c", SHOWN],
        env={**os.environ, "PYTHONPATH": str(tmp_path / "src")},
        capture_output=True,
        text=True,
    )


def test_a_new_paper_has_its_letter_and_title_and_imports_nothing_heavy(tmp_path):
    done = shown(tmp_path, 'PAPER = Paper("E", "A fifth", "ICML 2026", "1", "graphs")')
    assert done.stdout.splitlines() == ["A B C D E", "A fifth graphs", ""], done.stderr


@pytest.mark.parametrize(
    ("names", "fault"),
    [
        ("NAMES = {}", "fifth_paper/names.py has no PAPER = Paper("),
        ('PAPER = Paper("C", "A fifth", "ICML")', "has the letter C already"),
    ],
)
def test_a_paper_without_a_letter_of_its_own_is_refused(tmp_path, names, fault):
    done = shown(tmp_path, names)
    assert "InputError" in done.stderr and fault in done.stderr.splitlines()[-1]


def test_a_users_package_is_no_paper():
    assert paper_of("my_studies").letter == "" and paper_of("my_studies").title == "my_studies"
    assert replicates_in("my_studies.norm_tuning.quantities") == "replicates"
    assert replicates_in("norm_tuning.my_study.quantities") == "replicates"
    assert papers()["bottleneck_structure"].replicates == "tasks"
