"""Code is part of a number: its fingerprint, and what is done with runs of other code."""

import json
import shutil

import pytest
from repository import REPOSITORY
from scratch_copy import in_copy

from runner.core.catalogue import configs
from runner.runs.code import code_of

ARGUMENTS = ("study=example20", "scale=smoke", "device=cpu")
STUDY = "src/runner/papers/bottleneck_structure/example20/study.py"
THEORY = "src/runner/papers/bottleneck_structure/theory.py"
ELSEWHERE = "src/runner/papers/batch_norm_rank/theory.py"


def test_studies_have_different_fingerprints():
    assert len({code_of(study) for study in configs()}) == len(configs())


@pytest.fixture
def copy(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("conf", "src"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=ignore)
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def run(copy, *more):
    done = in_copy(copy, "runner", *ARGUMENTS, *more)
    return done, done.stdout + done.stderr


def table(copy):
    (path,) = copy.glob("outputs/runs/example20/*/metrics.csv")
    return path.read_bytes()


def code(copy):
    (path,) = copy.glob("outputs/runs/example20/*/provenance.json")
    return json.loads(path.read_text())["code"]


def test_an_edited_formula_never_gives_old_numbers_without_a_word(copy):
    done, text = run(copy)
    assert done.returncode == 0 and "other code" not in text
    before, first = table(copy), code(copy)
    edit(copy / STUDY, "epsilon = L**-exponent", "epsilon = 2 * L**-exponent")
    done, text = run(copy)
    assert done.returncode == 0 and "was computed by other code and kept" in text
    assert "stale=recompute" in text and table(copy) == before
    done, text = run(copy, "stale=refuse")
    assert done.returncode == 2 and "stale=recompute computes it again" in text
    done, text = run(copy, "stale=recompute")
    assert done.returncode == 0 and "its code has changed" in text
    assert table(copy) != before and code(copy) != first
    done, text = run(copy)
    assert done.returncode == 0 and "other code" not in text


def test_a_sweep_and_a_figure_say_so_as_well(copy):
    figure = ("runner", "figure=bottleneck-example20", "scale=smoke", "device=cpu")
    assert in_copy(copy, *figure).returncode == 0
    edit(copy / STUDY, "epsilon = L**-exponent", "epsilon = 2 * L**-exponent")
    again = in_copy(copy, *figure)
    assert again.returncode == 0 and "computed by other code" in again.stderr
    assert "note: " in again.stdout
    about = json.loads(
        (
            copy / "outputs" / "figures" / "smoke" / "bottleneck-example20.provenance.json"
        ).read_text()
    )
    assert about["stale"] and all(each["stale"] for each in about["runs"])
    report = in_copy(copy, "runner", "report")
    assert report.returncode == 0
    assert (
        "by other code" in (copy / "outputs" / "report" / "bottleneck-example20.html").read_text()
    )
    compared = in_copy(copy, "runner", "figures", "bottleneck-example20", "scale=smoke")
    assert compared.returncode == 0 and "unchanged" in compared.stdout


def test_what_a_study_imports_counts_and_nothing_else(copy):
    assert run(copy)[0].returncode == 0
    edit(copy / ELSEWHERE, "def second_moment", "def moment_of_second_order")
    assert "other code" not in run(copy)[1]
    edit(copy / THEORY, "def divergent_excess(", "def divergent_excess_of(")
    edit(copy / STUDY, "theory.divergent_excess(", "theory.divergent_excess_of(")
    assert "other code" in run(copy)[1]


def test_comments_docstrings_and_layout_do_not_count(copy):
    assert run(copy)[0].returncode == 0
    edit(
        copy / STUDY,
        "    epsilon = L**-exponent\n",
        "    # why\n    epsilon = (\n        L**-exponent)\n",
    )
    edit(copy / STUDY, '"""Build and measure every network."""', '"""Another text."""')
    edit(copy / THEORY, '"""', '"""More of it. ')
    assert "other code" not in run(copy)[1]
