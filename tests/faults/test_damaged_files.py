"""Damaged files of a run or a figure are named, and the same command writes them again."""

import os
import re

import pytest
from in_process import run as run_here
from PIL import Image
from samples import samples

from runner.commands import gallery_data
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


def flip(path):
    """Change the third byte from which on a digit stands: JSON stays JSON."""
    content = path.read_bytes()
    digit = re.search(rb"[2-8]", content).start()
    path.write_bytes(content[:digit] + b"9" + content[digit + 1 :])


@pytest.mark.parametrize("damage", [flip, DAMAGES["gone"], DAMAGES["empty"]])
@pytest.mark.parametrize("name", ["provenance.json", "run.log"])
def test_what_only_the_computation_can_write_has_a_hint(made, name, damage):
    (path,) = made.glob(f"runs/example20/depths=4-*/{name}")
    content = path.read_bytes()
    damage(path)
    said = problem(path.parent)
    assert said.startswith(str(path)) and said.endswith(": force=true computes the run again")
    path.write_bytes(content + b"a later line\n" * (name == "run.log"))
    assert problem(path.parent) is None


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def picture(width, height):
    return lambda path: Image.new("1", (width, height)).save(path)


def replaced(old, new):
    return lambda path: path.write_text(path.read_text().replace(old, new, 1))


@pytest.mark.parametrize(
    ("end", "damage", "said"),
    [
        *((end, pipe, "it is no regular file")
          for end in ("body.png", "header.json", "claims.csv", "caption.txt", "provenance.json")),
        ("body.png", picture(2, 60_000), "it has 2 x 60000 pixels"),
        ("body.png", picture(60_000, 3_000), "exceeds limit"),
        ("body.png", lambda path: path.write_text("GIF"), "it has another content"),
        ("body.png", lambda path: path.write_bytes(path.read_bytes()[:999]), "truncated"),
        ("claims.csv", replaced(",holds,", ",maybe,"), "its verdict 'maybe' is unknown"),
        ("claims.csv", replaced(",paper,", ",book,"), "its kind 'book' is unknown"),
        ("claims.csv", replaced("verdict", "judgment"), "it has no column verdict"),
        ("claims.csv", lambda path: path.write_text('{"a": 1}\n'), "it has no column claim"),
        ("provenance.json", lambda path: path.write_text("{}"), "it has no 'seconds'"),
        ("header.json", replaced('"what": "', '"what": 1, "was": "'), "its texts are no texts"),
    ],
)  # fmt: skip
def test_a_report_names_a_file_that_is_none_of_the_program_and_what_makes_it_again(
    made, end, damage, said, monkeypatch, capsys
):
    monkeypatch.setattr(gallery_data, "figure_names", lambda: [FIGURE])
    figure = paper_figure(FIGURE, ["scale=smoke", f"outputs={made}"])
    path = figure.path(end)
    content = path.read_bytes()
    damage(path)
    capsys.readouterr()
    assert run_here(["report", "scale=smoke", f"outputs={made}"], monkeypatch) == 2
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert first.startswith(f"error: {path} is ") and said in first
    assert second.strip().startswith(f"runner figures {FIGURE} scale=smoke outputs=")
    assert second.endswith(" makes it again.") and not figure.is_current()
    if damage is pipe:
        assert run_here(["figures", FIGURE, "scale=smoke", f"outputs={made}"], monkeypatch) == 2
        assert f"{path} is no regular file: remove it" in capsys.readouterr().err
        path.unlink()
    path.write_bytes(content)
    assert figure.is_current()


def test_a_figure_without_checksums_is_current_while_its_files_exist(made):
    figure = paper_figure(FIGURE, ["scale=smoke", f"outputs={made}"])
    for end, is_current in (("sums.json", True), ("svg", False)):
        path = figure.path(end)
        content = path.read_bytes()
        path.unlink()
        assert figure.is_current() == is_current
        path.write_bytes(content)


ENDS = [*FILES, "provenance.json"]


@pytest.mark.parametrize("damage", ["appended", "gone"])
@pytest.mark.parametrize(
    "ends", samples([ENDS, *([end] for end in ENDS)], lambda _: "figure", "+".join)
)
def test_a_figure_with_a_damaged_file_is_made_again(made, ends, damage, monkeypatch, capsys):
    figure = paper_figure(FIGURE, ["scale=smoke", f"outputs={made}"])
    assert figure.is_current()
    contents = {end: figure.path(end).read_bytes() for end in ends}
    for end, content in contents.items():
        DAMAGES[damage](figure.path(end))
        assert not figure.is_current(), end
        figure.path(end).write_bytes(content)
        assert figure.is_current(), end
    for end in ends:
        DAMAGES[damage](figure.path(end))
    assert run_here(["figures", FIGURE, "scale=smoke", f"outputs={made}"], monkeypatch) == 0
    for end, content in contents.items():
        assert figure.path(end).read_bytes() == content or end == "pdf", "it has the time in it"
