"""What docs/tutorial.md builds: its study runs, and the page shows the code as it is."""

import re
import shlex
import shutil

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


COMMANDS = [line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.S)
            for line in block.splitlines()]  # fmt: skip
STYLE = "font.size: 8\npre: '#123456'\nnobody: black\n"


@pytest.fixture
def finished(tmp_path):
    """A folder with the finished files, as a reader has it at the end."""
    shutil.copytree(ROOM, tmp_path / ROOM.name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.long
def test_every_command_works_on_the_finished_files(finished):
    (written,) = [line for line in COMMANDS if " new " in line]
    for line in COMMANDS:
        words = shlex.split(line)[1:]
        words += ["scale=smoke"] if "scale=" not in line and line != written else []
        folder = finished / "template" if line == written else finished
        folder.mkdir(exist_ok=True)
        done = warm.run("-m", "runner", *words, cwd=folder)
        assert done.returncode == 0, (line, done.stderr)
    (points,) = finished.glob("outputs/sweeps/residual_stream-depth-*.csv")
    assert set(pd.read_csv(points)["line"]) == {"no normalization", "pre-norm", "post-norm"}


def test_a_style_file_names_a_value_and_its_line_has_the_color(finished):
    (finished / "my_style.yaml").write_text(STYLE)
    words = ("figure=residual-stream", "scale=smoke", "style=my_style.yaml")
    done = warm.run("-m", "runner", "--config-dir", ROOM.name, *words, cwd=finished)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("no series of this figure is called nobody") == 1
    (picture,) = finished.glob("outputs/figures/smoke/*.svg")
    assert "#123456" in picture.read_text()


def test_an_entry_of_names_in_an_older_form_is_one_line_before_anything_runs(finished):
    path = finished / ROOM.name / "names.py"
    path.write_text(
        path.read_text().replace('Name("pre-norm", Look(BLUE', '("pre-norm", Look(BLUE')
    )
    words = ("study=residual_stream", "scale=smoke")
    done = warm.run("-m", "runner", "--config-dir", ROOM.name, *words, cwd=finished)
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert """names.py: NAMES["normalization"]['pre'] is ('pre-norm'""" in done.stderr
    assert not list(finished.glob("outputs/runs/*/*"))


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
