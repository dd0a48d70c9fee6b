"""The scripts of docs/extend.md run alone in an empty folder, and are as short as it says."""

import re

import pytest
import warm
from repository import REPOSITORY

PAGE = (REPOSITORY / "docs" / "extend.md").read_text()
SCRIPTS = dict(re.findall(r"```python\n# (\w+)\.py\n(.*?)```", PAGE, re.S))


def test_a_normalisation_an_optimiser_and_an_architecture_are_shown():
    assert list(SCRIPTS) == ["layer_norm_rank", "sign_descent", "residual_rank"]


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_draws_its_curve_into_the_paper_s_figure(name, tmp_path):
    code = SCRIPTS[name]
    lines = [line for line in code.splitlines() if line]
    assert len(lines) <= 30 and max(map(len, lines)) <= 100
    (tmp_path / "script.py").write_text(code)
    done = warm.run("script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
