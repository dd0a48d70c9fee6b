"""Run folders that are damaged, of another time, or strange: one line each, and nothing is lost."""

import json
import os
import re
import shutil

import pytest
import yaml
from in_process import run as run_here

from runner.cli import runs as command
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.publish import gallery
from runner.results.figure import Figure
from runner.runs import inventory
from runner.runs.execution import execute
from runner.runs.run import Run, load, read_config

TINY = {"target_width": 2, "train_samples": 640, "test_samples": 100, "batch_size": 32}
CONFIG = BnOnly(**TINY, replicates=2)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    outputs = tmp_path_factory.mktemp("fresh")
    execute(Run(CONFIG, outputs), Settings(outputs=str(outputs), device="cpu"))
    return outputs


@pytest.fixture
def run(fresh, tmp_path):
    shutil.copytree(fresh, tmp_path, dirs_exist_ok=True)
    return Run(CONFIG, tmp_path)


def damage(path, **changes):
    """Replace keys of a JSON or YAML file; a value of None removes the key."""
    content = yaml.safe_load(path.read_text())
    content = {key: value for key, value in {**content, **changes}.items() if value is not None}
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"study": "bn_old"}, "no study 'bn_old' is known here"),
        ({"study": None}, "cannot be read (KeyError)"),
        ({"version": None}, "cannot be read (KeyError)"),
        ({"version": 7}, "version 7 of bn_only; the program has version 3"),
        ({"momentum": 0.9}, "bn_only has no parameter momentum any more"),
        ({"target_width": 0}, "target_width=0 must be at least 1"),
        ({"target_width": "two"}, "wrong type"),
        ({"target_width": 3}, "config.yaml describes the run target_width=3"),
    ],
)
def test_a_config_of_another_time_is_explained(run, tmp_path, changes, message):
    damage(run.folder / "config.yaml", **changes)
    text = inventory.problem(run.folder, tmp_path)
    assert message in text and "\n" not in text


def test_a_config_without_a_field_that_came_later_still_loads(run, tmp_path):
    damage(run.folder / "config.yaml", normalization=None, schedule=None)
    assert read_config(run.folder) == run.config
    assert inventory.problem(run.folder, tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"[1, 2", b"[1, 2]", b"\xff\xfe", b"null", b"a: [b"])
def test_a_config_that_is_no_mapping_is_explained(run, tmp_path, content):
    (run.folder / "config.yaml").write_bytes(content)
    assert "config.yaml cannot be read" in inventory.problem(run.folder, tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"tables": 3}', b"\xff\xfe"])
def test_a_damaged_result_is_found_and_the_run_is_computed_again(run, tmp_path, content):
    before = (run.folder / "metrics.csv").read_bytes()
    (run.folder / "result.json").write_bytes(content)
    assert "result.json" in inventory.problem(run.folder, tmp_path)
    assert not run.is_complete()
    execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    assert (run.folder / "metrics.csv").read_bytes() == before
    assert inventory.problem(run.folder, tmp_path) is None


@pytest.mark.parametrize(
    ("table", "change"),
    [("metrics.csv", "cut"), ("curves.csv", "removed"), ("metrics.csv", "edited")],
)
def test_a_damaged_table_never_reaches_a_figure(run, tmp_path, table, change):
    path = run.folder / table
    content = path.read_bytes()
    if change == "removed":
        path.unlink()
    else:
        path.write_bytes(content[:-9] if change == "cut" else content[:-2] + b"7\n")
    assert table in inventory.problem(run.folder, tmp_path) and not run.is_complete()
    with pytest.raises(InputError) as caught:
        load([run])
    assert len(str(caught.value).splitlines()) <= 2


@pytest.mark.parametrize("name", ["result.json", "provenance.json", "run.log", "config.yaml"])
def test_a_deleted_file_is_damage(run, tmp_path, name):
    (run.folder / name).unlink()
    assert name in inventory.problem(run.folder, tmp_path)
    assert inventory.folders(tmp_path) == [run.folder]


@pytest.mark.parametrize(
    ("name", "code"), [("provenance.json", 0), ("result.json", 2), ("metrics.csv", 1)]
)
def test_a_folder_where_a_file_should_be(run, tmp_path, name, code, monkeypatch, capsys):
    (run.folder / name).unlink()
    (run.folder / name).mkdir()
    assert name in inventory.problem(run.folder, tmp_path)
    typed = [f"{key}={value}" for key, value in {**TINY, "replicates": 2}.items()]
    for words in ([f"outputs={tmp_path}", "device=cpu", *typed], ["runs", "list", str(tmp_path)]):
        assert run_here(words, monkeypatch) == (0 if words[0] == "runs" else code)
        shown = capsys.readouterr()
        assert "Traceback" not in shown.out + shown.err


@pytest.mark.parametrize("content", ["{}", "[]", "{", '{"status": "running"}'])
def test_a_damaged_provenance_is_found_and_stops_nothing(run, tmp_path, content):
    (run.folder / "provenance.json").write_text(content)
    assert "provenance.json" in inventory.problem(run.folder, tmp_path)
    assert run.is_complete() and run.is_stale() and load([run])
    assert command.main(["list", str(tmp_path)]) == 0


def test_a_provenance_of_other_types_stops_no_list_no_figure_and_no_report(run, tmp_path):
    content = '{"status": "complete", "commit": 7, "seconds": "long", "dirty": 1}'
    (run.folder / "provenance.json").write_text(content)
    assert command.main(["list", str(tmp_path)]) == 0
    variant = Figure("fig4", "smoke", ("replicates=2",), (run,), tmp_path)
    variant.make()
    assert gallery.main([f"outputs={tmp_path}", "scale=smoke"]) == 0


def test_a_table_that_the_result_does_not_name_is_damage(run, tmp_path):
    result = json.loads((run.folder / "result.json").read_text())
    del result["tables"]["curves"]
    (run.folder / "result.json").write_text(json.dumps(result))
    assert "says nothing of curves.csv" in inventory.problem(run.folder, tmp_path)


def test_a_run_in_a_folder_of_another_name_is_reported(run, tmp_path):
    moved = run.folder.rename(run.folder.with_name("something-else"))
    assert "config.yaml describes the run" in inventory.problem(moved, tmp_path)


DEEP = 10_000 * "[" + 10_000 * "]"

STRANGE = {
    "config.yaml": [
        "study: [bn_only]\nversion: 2\n",
        "study: {a: 1}\nversion: 2\n",
        "study: bn_only\nversion: [2]\n",
        "study: bn_only\nversion: 2\n1: 2\n",
        "study: bn_only\nversion: 2\n1: 2\nmomentum: 3\nnull: 4\n[1, 2]: 5\n",
        "1: 2\n",
        f"study: {DEEP}\n",
        f"study: bn_only\nversion: 2\nmethods: {DEEP}\n",
        "study: bn_only\nversion: 2\nmethods: &a [*a]\n",
        "study: bn_only\nversion: 2\nmethods: {sgd: 1}\n",
        "study: bn_only\nversion: 2\nseed: 2001-01-01\n",
        "study: bn_only\nversion: 2\nseed: [1, 2]\n",
        "study: bn_only\nversion: 2\nlearning_rate: !!set {a, b}\n",
        "study: bn_only\nversion: 2\nchecksums: [!!binary aaaa]\n",
        "study: rank_chain\nversion: 3\nwidths: 3\n",
        "study: invariances\nversion: 2\nlearning_rates: {0.1: 1}\n",
        "study: bn_only\nversion: 2\nseed: !!python/object:os.system x\n",
    ],
    "provenance.json": [
        DEEP,
        '{"status": ["complete"], "code": {}}',
        f'{{"status": "complete", "seconds": 1{400 * "0"}}}',
        '{"status": "complete", "seconds": Infinity}',
        '{"status": "comp\\nlete", "seconds": true}',
    ],
    "result.json": [
        DEEP,
        '{"tables": []}',
        '{"tables": {"metrics": 1}}',
        '{"tables": {"metrics": {"sha256": 1, "bytes": "long"}}}',
        '{"tables": {"\\u0000": {"sha256": "", "bytes": 1}}}',
        f'{{"tables": {{"{300 * "x"}": {{"sha256": "", "bytes": 1}}}}}}',
        f'{{"tables": {DEEP}}}',
    ],
    "metrics.csv": ["", "\x00"],
}

CASES = [(name, content) for name, contents in STRANGE.items() for content in contents]


@pytest.mark.parametrize(
    ("name", "content"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)]
)
def test_strange_content_is_one_line_and_no_traceback(run, tmp_path, name, content, capsys):
    (run.folder / name).write_text(content)
    assert_survived(tmp_path, capsys)


def assert_survived(outputs, capsys, number: int = 1):
    """That runs are listed and checked, a line each, and may be cleaned up and computed again."""
    capsys.readouterr()
    assert command.main(["list", str(outputs)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 3 + number and re.match(rf"{number} runs?: ", listed[-1])
    code = command.main(["check", str(outputs)])
    *damaged, last = capsys.readouterr().out.splitlines()
    runs = f"{number} run{'s' * (number != 1)}"
    assert last == f"{runs}, {len(damaged)} damaged" and len(damaged) <= number
    assert code == (1 if damaged else 0)
    assert command.main(["clean", str(outputs)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("kind", ["fifo", "folder", "loop", "dangling"])
@pytest.mark.parametrize(
    "name", ["config.yaml", "provenance.json", "result.json", "metrics.csv", ".lock", ".lease"]
)
def test_what_is_no_file_is_one_line_and_is_not_waited_for(run, tmp_path, name, kind, capsys):
    path = run.folder / name
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(path if kind == "loop" else path.with_name("nothing"))
    if name.startswith("."):
        (run.folder / "config.yaml").write_text("")  # so that something is wrong
    assert_survived(tmp_path, capsys)


@pytest.mark.parametrize("name", [b"\xff\xfe", b"two\nlines", b"\x1b[31m", "\u202e".encode(), b"-"])
def test_a_folder_of_any_name_is_one_line(run, tmp_path, name, capsys):
    os.mkdir(os.path.join(os.fsencode(run.folder.parent), name))
    assert_survived(tmp_path, capsys, 2)
    assert command.main(["list", str(tmp_path)]) == 0
    capsys.readouterr().out.encode()


def test_a_time_beyond_all_years_is_none(run, tmp_path, capsys):
    os.utime(run.result_path, (1e12, 1e12))
    (run.folder / "run.log").unlink()
    assert_survived(tmp_path, capsys)


@pytest.mark.parametrize("content", [DEEP, '{"tasks": [[3]]}', '{"tasks": [["\\u0000"]]}', None])
def test_a_strange_note_of_a_queue_stops_nothing(run, tmp_path, content, capsys):
    note = tmp_path / inventory.QUEUED / "7.json"
    note.parent.mkdir(parents=True)
    if content is None:
        os.mkfifo(note)
    else:
        note.write_text(content)
    (run.folder / "run.log").unlink()
    assert_survived(tmp_path, capsys)


def test_a_run_in_the_folder_of_another_study_is_reported(run, tmp_path):
    other = run.folder.parent.with_name("example20") / run.folder.name
    shutil.copytree(run.folder, other)
    assert "of bn_only" in inventory.problem(other, tmp_path)


def test_check_and_list_say_what_there_is(run, tmp_path, capsys):
    assert command.main(["check", str(tmp_path)]) == 0
    assert "1 run, 0 damaged" in capsys.readouterr().out
    assert command.main(["list", str(tmp_path)]) == 0
    assert "complete" in capsys.readouterr().out
    (run.folder / "metrics.csv").write_text("")
    assert command.main(["check", str(tmp_path)]) == 1
    assert "1 run, 1 damaged" in capsys.readouterr().out
    with pytest.raises(InputError, match="cannot be used"):
        command.main(["check", str(tmp_path / "nowhere")])
    with pytest.raises(InputError, match="did you mean 'check'"):
        command.main(["chek"])
