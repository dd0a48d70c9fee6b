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


CHECK = """
rows = figure.reference()["metrics"].query("layer == 0")
print(rank_bound(x.T).item(), *rows["rank_bound"].unique())
"""


def test_the_architecture_has_the_inputs_of_the_networks_that_it_is_drawn_beside(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPTS["residual_rank"] + CHECK)
    done = warm.run("script.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ours, *papers = map(float, done.stdout.split())
    assert papers == pytest.approx([ours] * len(papers), rel=1e-5) and papers
