"""What the README says about adding a study, done in a scratch copy; and each step forgotten."""

import re
import shutil

import pandas as pd
import pytest
from scratch_copy import REPOSITORY, in_copy, lint

BLOCK = re.compile(r"```(?:python|yaml)\n# ((?:src|conf)/\S+)\n(.*?)```", re.S)
FOLDER = "src/runner/papers/random_walks/distance"
PATHS = [
    "conf/figure/distance.yaml",
    *(f"conf/size/distance/{scale}.yaml" for scale in ("medium", "paper", "quick", "smoke")),
    "conf/study/distance.yaml",
    *(f"{FOLDER}/{part}.py" for part in ("claims", "config", "figures", "study")),
]


@pytest.fixture
def scratch(tmp_path):
    """A copy of the repository with the study of the README."""
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("conf", "src", "tests", "scripts"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=ignore)
    for name in ("pyproject.toml", "Makefile", "README.md"):
        shutil.copy(REPOSITORY / name, tmp_path / name)
    blocks = dict(BLOCK.findall((REPOSITORY / "README.md").read_text()))
    assert sorted(blocks) == sorted(PATHS)
    for path, content in blocks.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content)
    return tmp_path


def python(scratch, *arguments):
    """`python -m <arguments>` in the copy."""
    return in_copy(scratch, *arguments)


def test_the_study_runs_and_its_figure_is_drawn_and_judged(scratch):
    done = python(scratch, "runner", "study=distance", "scale=smoke", "steps=9", "device=cpu")
    assert done.returncode == 0, done.stderr
    assert "metrics.csv  5 rows" in done.stdout
    (picture,) = scratch.glob("outputs/runs/distance/*/overview.png")
    assert picture.stat().st_size > 5000, "without an overview there is a default"
    done = python(scratch, "runner", "figure=distance", "scale=smoke", "device=cpu")
    assert done.returncode == 0, done.stderr
    claims = pd.read_csv(scratch / "outputs" / "figures" / "smoke" / "distance.claims.csv")
    assert list(claims["claim"]) == ["root"] and list(claims["verdict"]) == ["holds"]
    assert "distance" in python(scratch, "runner", "--help").stdout
    assert "walks of each replicate" in python(scratch, "runner", "study=distance", "--help").stdout
    report = python(scratch, "runner", "report", "scale=smoke")
    assert report.returncode == 0, report.stderr


def test_the_tests_and_contracts_cover_it(scratch):
    """Those named after a study or a figure; the others hold with it as well, and take longer."""
    done = python(
        scratch, "pytest", "-k", "distance", "tests/cli", "tests/runs", "tests/test_every_study.py"
    )
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) >= 10
    done = lint(scratch)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("forgotten", "typed", "message"),
    [
        (f"{FOLDER}/config.py", "study=distance", "conf/study/distance.yaml has no study"),
        (f"{FOLDER}/study.py", "study=distance", f"{FOLDER[4:]}/study.py is missing"),
        ("conf/study/distance.yaml", "study=distance", "has no conf/study/distance.yaml"),
        ("conf/size/distance/smoke.yaml", "study=distance", "no conf/size/distance/smoke.yaml"),
        ("conf/figure/distance.yaml", "figure=distance", "figure=distance is not known"),
        (f"{FOLDER}/figures.py", "figure=distance", f"{FOLDER[4:]}/figures.py has no @figure"),
    ],
)
def test_what_is_forgotten_is_named_before_anything_is_computed(scratch, forgotten, typed, message):
    (scratch / forgotten).unlink()
    done = python(scratch, "runner", typed, "scale=smoke", "device=cpu")
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert not list(scratch.glob("outputs/runs/*/*/metrics.csv"))


@pytest.mark.parametrize(
    ("text", "instead", "message"),
    [
        ("def run(", "def go(", "study.py has no run(config, context)"),
        ("class Metrics(Row)", "class Metrics", "study.py has no row class"),
    ],
)
def test_a_study_that_is_not_whole_is_refused(scratch, text, instead, message):
    path = scratch / FOLDER / "study.py"
    path.write_text(path.read_text().replace(text, instead))
    for typed in (["study=distance"], ["figure=distance"]):
        done = python(scratch, "runner", *typed, "scale=smoke", "device=cpu")
        assert done.returncode == 2 and message in done.stderr, done.stderr
        assert "Traceback" not in done.stderr
    assert not list(scratch.glob("outputs/runs/*/*/metrics.csv"))


@pytest.mark.parametrize("optional", ["claims", "memory"])
def test_what_is_optional_may_be_absent(scratch, optional):
    if optional == "claims":
        (scratch / FOLDER / "claims.py").unlink()
    else:
        path = scratch / FOLDER / "study.py"
        path.write_text(path.read_text().partition("\n\ndef memory")[0] + "\n")
    done = python(scratch, "runner", "figure=distance", "scale=smoke", "device=cpu")
    assert done.returncode == 0, done.stderr
    assert f"{0 if optional == 'claims' else 1} holds, 0 fails, 0 undecided" in done.stdout
