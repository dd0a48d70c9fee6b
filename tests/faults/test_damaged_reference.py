"""A file of the reference that is cut in half ends a command in one line that names it."""

import re
import shutil
import sys

import in_process
import pytest
import reference
from repository import REPOSITORY

from runner.commands import compare, report, show
from runner.commands.kept import read_csv, read_json
from runner.core.errors import InputError
from runner.runs.provenance import REFERENCE

NAME = "bottleneck-example20"
LARGE = "rank-fig4"
"""A figure with a compressed table."""

WHOLE = ("claims.csv", "metrics.csv", "shared.json", "provenance.json")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A reference of one figure at one scale, which the commands take."""
    folder = tmp_path / "reference" / "quick" / NAME
    shutil.copytree(REFERENCE / "quick" / NAME, folder)
    for module in (compare, reference, report, show):
        monkeypatch.setattr(module, "REFERENCE", tmp_path / "reference")
        if hasattr(module, "figure_names"):
            monkeypatch.setattr(module, "figure_names", lambda *_: [NAME])
    monkeypatch.setattr("runner.commands.gallery_data.figure_names", lambda: [NAME])
    return folder


def cut(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    ("command", "file"),
    [
        (["show", NAME], "claims.csv"),
        (["show", NAME], "shared.json"),
    ],
)
def test_a_command_names_the_file_that_is_cut(kept, tmp_path, command, file, monkeypatch, capsys):
    cut(kept / file)
    assert in_process.run([*command, f"outputs={tmp_path}/out"], monkeypatch) == 2
    said = capsys.readouterr().err
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert f"{kept / file} is damaged" in line and "Traceback" not in said


@pytest.mark.parametrize(("what", "file"), [("draw", "provenance.json"), ("judge", "metrics.csv")])
def test_the_script_names_the_file_that_is_cut(kept, tmp_path, what, file):
    cut(kept / file)
    words = [what] if what == "judge" else [what, f"outputs={tmp_path}/out"]
    with pytest.raises(InputError, match=f"{re.escape(str(kept / file))} is damaged"):
        reference.main(words)


def test_compare_names_the_file_that_is_cut(kept, tmp_path, monkeypatch, capsys):
    """At scale smoke, which takes a second."""
    words = ["scale=smoke", f"outputs={tmp_path}/computed"]
    assert in_process.run([f"figure={NAME}", *words], monkeypatch) == 0
    table = reference.keep(NAME, words, kept.parents[1]) / "metrics.csv"
    assert in_process.run(["compare", *words], monkeypatch) == 0
    cut(table)
    assert in_process.run(["compare", *words], monkeypatch) == 2
    said = capsys.readouterr().err
    assert f"{table} is damaged" in said and "Traceback" not in said


@pytest.mark.parametrize("file", WHOLE)
def test_a_report_leaves_the_figure_or_its_picture_out(kept, tmp_path, file, monkeypatch, capsys):
    cut(kept / file)
    assert in_process.run(["report", f"outputs={tmp_path}/out"], monkeypatch) == 0
    said = capsys.readouterr().err
    page = (tmp_path / "out" / "report" / f"{NAME}.html").read_text()
    assert "Traceback" not in said
    assert f"{file} is damaged" in (page if file in WHOLE[1:3] else said)


@pytest.mark.parametrize("file", WHOLE[2:])
def test_the_gallery_names_the_file_and_writes_nothing(kept, tmp_path, file, monkeypatch, capsys):
    monkeypatch.syspath_prepend(REPOSITORY / "scripts")
    monkeypatch.setattr(sys, "argv", ["gallery"])
    import gallery as script

    monkeypatch.setattr(script, "REFERENCE", kept.parents[1])
    monkeypatch.setattr(script, "PICTURES", tmp_path / "pictures")
    (tmp_path / "pictures").mkdir()
    for name in ("README", "RESULTS", "NOTES", "PERFORMANCE", "INDEX"):
        monkeypatch.setattr(script, name, tmp_path / f"{name}.md")
    cut(kept / file)
    assert script.main() == 2
    said = capsys.readouterr().err
    assert f"{kept / file} is damaged" in said and "Traceback" not in said
    assert not list(tmp_path.glob("*.md"))


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("metrics.csv", "a,b\n1,2\n", "it has no column run"),
        ("metrics.csv", '{"a": 1}\n', "it has no column run"),
        ("metrics.csv", "{header}\n", "it has no rows"),
        ("metrics.csv", "{header}\n{texts}\n", "its column depth has texts"),
        ("shared.json", '{"metrics": 3}', "is not a mapping"),
        ("claims.csv", "a,b\n1,2\n", "it has no column figure"),
        ("caption.txt", b"\xff", "can't decode byte"),
    ],
)  # fmt: skip
def test_a_file_of_the_wrong_kind_is_damaged(
    kept, tmp_path, file, content, said, monkeypatch, capsys
):
    path = kept / file
    header = path.read_text().splitlines()[0]
    if isinstance(content, str):
        texts = ",".join("x" for _ in header.split(","))
        content = content.replace("{header}", header).replace("{texts}", texts).encode()
    path.write_bytes(content)
    assert in_process.run(["show", NAME, f"outputs={tmp_path}/out"], monkeypatch) == 2
    line = capsys.readouterr().err
    assert f"{path} is damaged (" in line and said in line and "Traceback" not in line


@pytest.mark.parametrize("part", [0, 1, 2])
def test_compressed_tables_and_empty_files_are_damaged_as_well(tmp_path, part):
    (path,) = (REFERENCE / "medium" / LARGE).glob("*.csv.xz")
    whole = path.read_bytes()
    path = tmp_path / path.name
    path.write_bytes(whole)
    assert len(read_csv(path))
    path.write_bytes(whole[: part * len(whole) // 3])
    with pytest.raises(Exception, match="is damaged"):
        read_csv(path)


@pytest.mark.parametrize("content", ["", "[]", "{", "\0", "[" * 100_000])
def test_what_is_no_mapping_is_damaged(tmp_path, content):
    (tmp_path / "shared.json").write_text(content)
    with pytest.raises(Exception, match="shared.json is damaged"):
        read_json(tmp_path / "shared.json")
