"""What docs/tutorial.md builds: its study runs, and the page shows the code as it is."""

import re

import pandas as pd
import pytest
import warm
from repository import REPOSITORY

ROOM = REPOSITORY / "docs" / "tutorial" / "transformer_studies"
PAGE = (REPOSITORY / "docs" / "tutorial.md").read_text()
TEMPLATE = REPOSITORY / "src" / "runner" / "commands" / "template" / "{package}" / "{study}"
PATHS = [*sorted(ROOM.rglob("*.py")), TEMPLATE / "rows.py.jinja", TEMPLATE / "study.py.jinja"]
CODE = "\n".join(path.read_text() for path in PATHS)


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", PAGE, re.S))
def test_the_page_shows_the_code_as_it_is(block):
    assert block.rstrip() in CODE


def test_its_figure_is_drawn_and_judged(tmp_path):
    words = ("figure=residual-stream", "scale=smoke", "device=cpu")
    done = warm.run("-m", "runner", "--config-dir", str(ROOM), *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "outputs" / "figures" / "smoke"
    assert set(pd.read_csv(folder / "residual-stream.claims.csv")["verdict"]) <= {
        "holds",
        "undecided",
    }
    (path,) = tmp_path.glob("outputs/runs/residual_stream/*/metrics.csv")
    metrics = pd.read_csv(path)
    assert ((metrics["rank"] - 1 - metrics["excess"]).abs() < 1e-9 * metrics["rank"]).all()
    assert metrics["rank"].between(1, 8).all(), "at most as many as there are tokens"
    starts = metrics[metrics["block"] == 0].groupby("replicate")["rank"].nunique()
    assert (starts == 1).all(), "the normalisations see the same tokens"
