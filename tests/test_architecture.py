"""The layers: import-linter holds them, and would notice one that goes astray."""

import shutil
import subprocess
import sys

import pytest
from scratch_copy import REPOSITORY, lint


def test_every_contract_is_kept():
    done = lint(REPOSITORY)
    assert done.returncode == 0, done.stdout
    assert " 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("core/errors.py", "from runner.runs import tables"),
        ("core/errors.py", "import torch"),
        ("runs/tables.py", "import hydra"),
        ("results/claims.py", "import runner.papers.norm_tuning.theory"),
        ("publish/gallery.py", "import hydra"),
        ("papers/norm_tuning/theory.py", "import runner.papers.bottleneck_structure.theory"),
        (
            "papers/norm_tuning/bn_only/study.py",
            "import runner.papers.norm_tuning.constructions.study",
        ),
        ("papers/norm_tuning/bn_only/config.py", "import torch"),
        (
            "papers/norm_tuning/bn_only/claims.py",
            "import runner.papers.norm_tuning.bn_only.figures",
        ),
        (
            "papers/norm_tuning/bn_only/figures.py",
            "import runner.papers.norm_tuning.bn_only.claims",
        ),
        ("papers/norm_tuning/bn_only/study.py", "import runner.results.claims"),
        ("papers/batch_norm_rank/theory.py", "import runner.papers.batch_norm_rank.measures"),
    ],
)
def test_an_arrow_that_goes_astray_is_noticed(tmp_path, module, line):
    shutil.copytree(REPOSITORY / "src", tmp_path / "src")
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    path = tmp_path / "src" / "runner" / module
    path.write_text(f"{path.read_text()}\n{line}\n")
    assert lint(tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("imported", "absent"),
    [
        (
            "runner.cli.help, runner.core.settings, runner.core.streams",
            ("torch", "hydra", "pandas"),
        ),
        ("runner.cli.composing, runner.runs.run; runner.cli.composing.register()", ("torch",)),
    ],
)
def test_what_checks_a_command_starts_without_torch(imported, absent):
    """At run time, where late imports do not count."""
    code = f"import sys, {imported}; assert not set({absent}) & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
