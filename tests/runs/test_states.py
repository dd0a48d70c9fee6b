"""What is on the disk, what `runs check` says of it, and what the run's command makes of it."""

import json
import os
import re
import shutil

import pytest
import yaml
from in_process import run as run_here

from runner.commands import runs as command
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.execution import execute
from runner.runs.inventory import problem
from runner.runs.run import Run, load, read_config

TINY = {"target_width": 2, "train_samples": 640, "test_samples": 100, "batch_size": 32}
CONFIG = BnOnly(**TINY, replicates=2)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Run:
    run = Run(CONFIG, tmp_path_factory.mktemp("fresh"))
    execute(run, Settings(outputs=str(run.folder.parents[2]), device="cpu"))
    return run


@pytest.fixture
def run(fresh, tmp_path) -> Run:
    shutil.copytree(fresh.folder.parents[2], tmp_path, dirs_exist_ok=True)
    return Run(CONFIG, tmp_path)


def tables(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


FOLDER, LOOP, DANGLING = object(), object(), object()
"""What may stand where a file should be."""


def put(path, content) -> None:
    """Bring a file into a state: other bytes, other keys, cut by so many bytes, gone, no file."""
    old = path.read_bytes()
    path.unlink()
    if isinstance(content, dict):
        keys = {**yaml.safe_load(old), **content}
        path.write_text(json.dumps({k: value for k, value in keys.items() if value is not None}))
    elif isinstance(content, str | bytes):
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    elif isinstance(content, int):
        path.write_bytes(old[:content])
    elif content is FOLDER:
        path.mkdir()
    elif content in (LOOP, DANGLING):
        path.symlink_to(path if content is LOOP else path.with_name("nothing"))


DEEP = 2000 * "[" + 2000 * "]"
NO_CONFIG, NO_RESULT = "config.yaml cannot be read", "result.json"

STATES = [
    # a configuration of another time
    ("config.yaml", {"study": "bn_old"}, "the study 'bn_old' is unknown"),
    ("config.yaml", {"study": None}, "cannot be read (KeyError)"),
    ("config.yaml", {"version": None}, "cannot be read (KeyError)"),
    ("config.yaml", {"version": 7}, "version 7 of bn_only; the program has version 3"),
    ("config.yaml", {"momentum": 0.9}, "bn_only has no parameter momentum any more"),
    ("config.yaml", {"target_width": 0}, "target_width=0 must be at least 1"),
    ("config.yaml", {"target_width": "two"}, "wrong type"),
    ("config.yaml", {"normalization": None, "schedule": None}, None),  # fields that came later
    # a configuration that is none
    *(("config.yaml", content, NO_CONFIG)
      for content in ("", "[1, 2", "[1, 2]", b"\xff\xfe", "null", "a: [b", "1: 2\n",
                      f"study: {600 * '['}", "study: bn_only\nseed: !!python/object:os.system x\n",
                      None, FOLDER, LOOP, DANGLING)),
    ("config.yaml", {"study": ["bn_only"]}, "is unknown"),
    ("config.yaml", {"version": [2]}, "version [2]"),
    ("config.yaml", {"methods": {"sgd": 1}}, "config.yaml"),
    ("config.yaml", {"seed": [1, 2]}, "config.yaml"),
    ("config.yaml", {"checksums": ["aaaa"], "1": 2}, "has no parameter 1"),
    ("config.yaml", "study: bn_only\nversion: 3\nmethods: &a [*a]\n", "config.yaml"),
    ("config.yaml", "study: bn_only\nversion: 3\nseed: 2001-01-01\n", "config.yaml"),
    ("config.yaml", "study: bn_only\nversion: 3\n1: 2\nnull: 4\n", "has no parameter"),
    ("config.yaml", "study: rank_chain\nversion: 3\nwidths: 3\n", "config.yaml"),
    # a result that is none
    *(("result.json", content, NO_RESULT)
      for content in ("", "{", "[]", "null", b"\xff\xfe", DEEP, None, FOLDER, LOOP, DANGLING,
                      '{"tables": 3}', '{"tables": []}', '{"tables": {"metrics": 1}}',
                      '{"tables": {"metrics": {"sha256": 1, "bytes": "long"}}}',
                      '{"tables": {"\\u0000": {"sha256": "", "bytes": 1}}}')),
    ("result.json", {"tables": {300 * "x": {"sha256": "", "bytes": 1}}}, "File name too long"),
    # a provenance that is none; the run is complete all the same
    *(("provenance.json", content, "provenance.json")
      for content in ("{}", "[]", "{", DEEP, '{"status": "running"}', None, FOLDER, LOOP, DANGLING,
                      '{"status": ["complete"], "code": {}}', '{"status": "comp\\nlete"}')),
    *(("provenance.json", {"seconds": seconds, "commit": 7, "dirty": 1}, "is damaged: force=true")
      for seconds in (10**400, float("inf"), "long", True)),
    # tables and log
    *(("metrics.csv", content, "metrics.csv")
      for content in ("", "\x00", -9, None, FOLDER, LOOP, DANGLING)),
    ("curves.csv", None, "curves.csv"),
    ("run.log", None, "run.log is gone"),
    ("run.log", "\x00", "run.log is damaged: force=true"),
]  # fmt: skip


def named(state) -> str:
    name, content, message = state
    return f"{name} {str(content)[:20]} {message}"


def test_a_run_of_other_code_may_have_a_parameter_that_went_at_its_default(run):
    put(run.folder / "provenance.json", {"code": "0123456789abcdef"})
    put(run.folder / "config.yaml", {"momentum": 0.9})  # the folder's hash is that of the others
    assert read_config(run.folder) == CONFIG
    put(run.folder / "config.yaml", {"seed": 9})
    with pytest.raises(InputError, match="has no parameter momentum any more"):
        read_config(run.folder)


@pytest.mark.parametrize("state", STATES, ids=named)
def test_a_state_is_one_line_and_the_command_ends_with_the_same_bytes(
    run, fresh, tmp_path, state, capsys
):
    name, content, message = state
    put(run.folder / name, content)
    assert_survived(tmp_path, capsys, message=message)
    if name.endswith(".csv"):
        with pytest.raises(InputError, match=name):
            load([run])
    if content is FOLDER and name in ("result.json", "metrics.csv"):
        return  # see the next test
    run = Run(CONFIG, tmp_path)
    execute(run, Settings(outputs=str(tmp_path), device="cpu"))
    assert run.is_complete() and tables(run) == tables(fresh)
    if name in ("result.json", "metrics.csv", "curves.csv") and content not in (LOOP, DANGLING):
        assert_survived(tmp_path, capsys)


def assert_survived(outputs, capsys, number: int = 1, message: str | None = None) -> None:
    """Check that runs are listed, checked and may be cleaned up, a line for each."""
    capsys.readouterr()
    assert command.main(["list", str(outputs)]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert len(listed) == 3 + number and re.match(rf"{number} runs?: ", listed[-1])
    code = command.main(["check", str(outputs)])
    *damaged, last = capsys.readouterr().out.splitlines()
    unknown = sum("is unknown" in line for line in damaged)
    counts = f"{number} run{'s' * (number != 1)}, {len(damaged) - unknown} damaged"
    assert last == counts + (f", {unknown} not checked" if unknown else "")
    assert code == (len(damaged) > unknown) and len(damaged) == (message is not None), damaged
    assert message is None or message in damaged[0]
    assert command.main(["clean", str(outputs)]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("name", "code"), [("provenance.json", 0), ("result.json", 2), ("metrics.csv", 1)]
)
def test_a_folder_where_a_file_should_be_is_an_exit_code(
    run, tmp_path, name, code, monkeypatch, capsys
):
    put(run.folder / name, FOLDER)
    typed = [f"{key}={value}" for key, value in {**TINY, "replicates": 2}.items()]
    assert run_here([f"outputs={tmp_path}", "device=cpu", *typed], monkeypatch) == code
    shown = capsys.readouterr()
    assert "Traceback" not in shown.out + shown.err


def test_a_table_that_the_result_does_not_name_is_damage(run, tmp_path, capsys):
    about = run.result["tables"]
    put(run.result_path, {"tables": {"metrics": about["metrics"]}})
    assert_survived(tmp_path, capsys, message="says nothing of curves.csv")


def test_a_config_of_another_run_is_reported_and_left_alone(run, tmp_path, capsys):
    put(run.folder / "config.yaml", {"target_width": 3})
    assert_survived(tmp_path, capsys, message="config.yaml describes the run target_width=3")
    second = Run(CONFIG, tmp_path).folder
    assert second == run.folder.with_name(f"{run.folder.name}-2")
    shutil.copytree(run.folder, second)
    put(second / "config.yaml", {"target_width": run.config.target_width})
    assert problem(second) is None


def test_a_run_in_another_folder_is_reported(run, tmp_path, capsys):
    shutil.copytree(run.folder, run.folder.parent.with_name("example20") / run.folder.name)
    assert_survived(tmp_path, capsys, 2, "of bn_only")
    shutil.rmtree(run.folder.parent.with_name("example20"))
    run.folder.rename(run.folder.with_name("something-else"))
    assert_survived(tmp_path, capsys, 1, "config.yaml describes the run")


@pytest.mark.parametrize("name", [b"\xff\xfe", b"two\nlines", b"\x1b[31m", "\u202e".encode(), b"-"])
def test_a_folder_of_any_name_is_one_line(run, tmp_path, name, capsys):
    os.mkdir(os.path.join(os.fsencode(run.folder.parent), name))
    assert_survived(tmp_path, capsys, 2, "config.yaml cannot be read")
    assert command.main(["list", str(tmp_path)]) == 0
    capsys.readouterr().out.encode()


def test_a_config_without_a_field_that_came_later_still_loads(run):
    put(run.folder / "config.yaml", {"normalization": None, "schedule": None})
    assert read_config(run.folder) == run.config


def test_wrong_words_are_an_error(tmp_path):
    with pytest.raises(InputError, match="cannot be used"):
        command.main(["check", str(tmp_path / "nowhere")])
    with pytest.raises(InputError, match="did you mean 'check'"):
        command.main(["chek"])
