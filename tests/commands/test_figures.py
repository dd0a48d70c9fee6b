"""Many figures in one sweep: shared runs, failures, what is refused, what is left alone."""

import json
import logging
import re
import sys
from pathlib import Path

import pytest

from runner import __main__ as program
from runner.core.catalogue import configs
from runner.results.figure import Figure
from runner.runs import costs
from runner.runs.provenance import COMMAND
from runner.runs.run import Run

SIZES = ["scale=smoke", "device=cpu", "layers=200", "chains=4", "draws=20"]


@pytest.fixture
def make(tmp_path, monkeypatch, capsys):
    """Runs `runner figures <words>` in this process: exit code, stdout, stderr."""

    def run(*words: str) -> tuple[int, str, str]:
        arguments = ["figures", *words, *SIZES, f"outputs={tmp_path}"]
        monkeypatch.setattr(sys, "argv", ["runner", *arguments])
        monkeypatch.setenv(COMMAND, "is set by the program, and taken back here")
        monkeypatch.setattr(logging.getLogger("runner"), "handlers", [])
        code = program.main()
        return code, *capsys.readouterr()

    return run


def drawn(stdout: str) -> set[str]:
    """The figures of the summary; the names are without the hash of a variant."""
    return {
        line.split()[0].rpartition("-")[0] for line in stdout.splitlines()[1:-1] if "/" not in line
    }


def test_a_run_that_figures_share_is_computed_once_and_what_is_current_is_left_alone(
    make, tmp_path
):
    code, stdout, stderr = make("rank-fig8", "rank-fig3a", "rank-lemma7")
    assert code == 0 and drawn(stdout) == {"rank-fig8", "rank-fig3a", "rank-lemma7"}
    assert "4 runs" in stderr and "\n4 of 4 runs in" in stderr
    assert "3 figures in" in stdout
    pictures = [line for line in stdout.splitlines() if line.startswith(f"{tmp_path}/figures/")]
    assert len(pictures) == 3 and all(Path(path).is_file() for path in pictures)
    for path in tmp_path.glob("runs/*/*/provenance.json"):
        command = json.loads(path.read_text())["command"]
        assert command.startswith("runner figures rank-fig8 rank-fig3a rank-lemma7 scale=")
    (picture,) = tmp_path.glob("figures/smoke/rank-fig3a-*.pdf")
    picture.unlink()
    code, stdout, stderr = make("rank-fig8", "rank-fig3a")
    assert code == 0 and "starts:" not in stderr
    assert re.search("rank-fig8-.*: unchanged", stderr)
    assert re.search("rank-fig3a-.*: drawn", stderr)
    about = next(tmp_path.glob("figures/smoke/rank-fig8-*.provenance.json"))
    about.write_text(about.read_text().replace('"program": "', '"program": "0'))
    assert re.search("rank-fig8-.*: drawn", make("rank-fig8", "rank-fig3a")[2])  # of other code
    code, stdout, stderr = make("rank-lemma7", "force=true")
    assert code == 0 and stderr.count("starts:") == 1  # a single run speaks for itself


def test_a_dry_run_lists_the_runs_of_all_figures_and_computes_none(make, tmp_path):
    code, stdout, _ = make("rank-fig8", "rank-fig3a", "--dry-run")
    assert code == 0 and "3 runs" in stdout and not [*tmp_path.iterdir()]


def test_a_failed_run_costs_its_own_figures_and_no_other(make, tmp_path):
    """The place of a run's configuration is taken by a folder."""
    code, *_ = make("rank-fig8")
    assert code == 0
    (folder,) = tmp_path.glob("runs/rank_chain/*widths=8,*")
    (folder / "result.json").unlink()
    (folder / "config.yaml").unlink()
    (folder / "config.yaml").mkdir()
    code, stdout, stderr = make("rank-fig8", "rank-fig3a", "rank-lemma7")
    assert code == 1 and drawn(stdout) == {"rank-lemma7"}
    assert stderr.count(": 1 of 3 runs are missing") == 2
    assert "1 of 4 runs failed:" in stderr and "error.txt" in stderr


def test_a_drawing_that_fails_is_said_and_the_others_are_made(make, monkeypatch):
    real = Figure.make

    def draw(figure):
        if figure.figure == "rank-fig8":
            raise KeyError("no such column")
        return real(figure)

    monkeypatch.setattr(Figure, "make", draw)
    code, stdout, stderr = make("rank-fig8", "rank-fig3a")
    assert code == 1 and re.search("rank-fig8-.* is not drawn: KeyError", stderr)
    assert drawn(stdout) == {"rank-fig3a"}
    code, _, stderr = make("rank-fig8")
    assert code == 1 and "Traceback" not in stderr and "hydra.verbose=true" in stderr


def test_a_key_that_one_figure_lacks_is_refused_before_anything_runs(make, tmp_path):
    code, _, stderr = make("rank-fig8", "fig4")
    assert code == 2 and "bn_only has no parameter layers" in stderr
    assert not list(tmp_path.glob("runs/*"))


def test_the_reference_knows_how_long_runs_take(tmp_path):
    """Figure 4 at quick: wider teachers take longer; unknown runs may be the longest."""
    config = configs()["bn_only"]
    seconds = [
        costs.expected_seconds(Run(config(seed=4, target_width=width), tmp_path))
        for width in (5, 15, 30, 29)
    ]
    assert seconds == sorted(seconds) and seconds[0] > 0 and seconds[3] == float("inf")
