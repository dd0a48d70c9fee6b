"""Damaged files of a run or a figure are named, and the same command writes them again."""

import pytest
from in_process import run as run_here

from runner.compose.orders import paper_figure
from runner.results.figure import FILES
from runner.runs.inventory import problem

WORDS = ["study=example20", "scale=smoke", "depths=[4]", "grid=3"]
FIGURE = "bottleneck-example20"

DAMAGES = {
    "gone": lambda path: path.unlink(),
    "changed": lambda path: path.write_bytes(path.read_bytes()[::-1]),
    "appended": lambda path: path.write_bytes(path.read_bytes() + b"\nx: 1\n"),
    "empty": lambda path: path.write_bytes(b""),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a complete run and a figure."""
    outputs = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        for words in (WORDS, ["figures", FIGURE, "scale=smoke"]):
            assert run_here([*words, f"outputs={outputs}"], patch) == 0
    return outputs


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize(
    "name", ["config.yaml", "overview.png", "overview.txt", "metrics.csv", "result.json"]
)
def test_the_command_of_a_run_mends_its_files(made, name, damage, monkeypatch, capsys):
    (path,) = made.glob(f"runs/example20/depths=4-*/{name}")
    content = path.read_bytes()
    DAMAGES[damage](path)
    is_named = name.startswith("overview") or name in problem(path.parent)
    assert is_named, "`runs check` names the file"
    capsys.readouterr()
    assert run_here([*WORDS, f"outputs={made}"], monkeypatch) == 0
    said = "its config.yaml was damaged, and is written again" in capsys.readouterr().err
    assert said == (name == "config.yaml")
    assert path.read_bytes() == content and problem(path.parent) is None


@pytest.mark.parametrize("name", ["provenance.json", "run.log"])
def test_what_only_the_computation_can_write_has_a_hint(made, name):
    (path,) = made.glob(f"runs/example20/depths=4-*/{name}")
    content = path.read_bytes()
    path.unlink()
    assert problem(path.parent).endswith(": force=true computes the run again")
    path.write_bytes(content)


def test_a_figure_without_checksums_is_current_while_its_files_exist(made):
    figure = paper_figure(FIGURE, ["scale=smoke", f"outputs={made}"])
    for end, is_current in (("sums.json", True), ("svg", False)):
        path = figure.path(end)
        content = path.read_bytes()
        path.unlink()
        assert figure.is_current() == is_current
        path.write_bytes(content)


@pytest.mark.parametrize("end", [*FILES, "provenance.json"])
def test_a_figure_with_a_damaged_file_is_made_again(made, end, monkeypatch, capsys):
    figure = paper_figure(FIGURE, ["scale=smoke", f"outputs={made}"])
    path = figure.path(end)
    for damage in ("appended", "gone"):
        assert figure.is_current()
        content = path.read_bytes()
        DAMAGES[damage](path)
        assert not figure.is_current()
        assert run_here(["figures", FIGURE, "scale=smoke", f"outputs={made}"], monkeypatch) == 0
        assert path.read_bytes() == content or end == "pdf", "a PDF has the time in it"
