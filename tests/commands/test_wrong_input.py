"""Malformed command lines and configurations: a short message, and the right exit code."""

import shlex
from pathlib import Path

import pytest
from in_process import check_only
from in_process import run as run_here

from runner.core import catalogue
from runner.core.settings import Settings

TABLE = Path(__file__).with_name("wrong_input.txt").read_text()
ROWS = [line.split("  ->  ") for line in TABLE.splitlines() if not line.startswith("#")]
HYDRAS_FOLDERS = ("run.dir=x", "sweep.dir=x", "sweep.subdir=x", "job.chdir=true")

COMMANDS = [
    *((shlex.split(words), message) for words, message in ROWS),
    *(([f"hydra.{key}"], "outputs=FOLDER moves them all") for key in HYDRAS_FOLDERS),
    ([f"seed={10**399}"], "seed is too large: give a number between -9223372036854775807 and"),
    (
        ["study=rank_one", f"samples=[4,{10**399}]"],
        "samples is too large: give a number between -9223372036854775807 and",
    ),
    ([f"learning_rate={10**399}"], "int too large to convert to float"),
    ([f"study={'a' * 300}"], "is unknown: choose from"),
    ([f"{'a' * 300}=3"], "bn_only has no parameter aaa"),
    (["target_width=\x00"], "target_width"),
    (["figure=fig4", "outputs='a\nb'"], "outputs='a\\nb' is not a folder: give outputs=FOLDER"),
]


@pytest.mark.parametrize(("arguments", "message"), COMMANDS)
def test_a_wrong_command_is_explained(arguments, message, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert check_only(arguments, monkeypatch) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert "Traceback" not in shown.out + shown.err
    if "unrecognized" not in message:  # argparse puts its usage before the line
        assert shown.err.startswith("error: ") and len(shown.err.splitlines()) <= 2


def test_a_separate_configuration_serves_single_commands(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("a: [b\n c: {")
    assert check_only(["--config-dir=.", "--config-name=bad"], monkeypatch) == 2
    shown = capsys.readouterr().err
    assert "bad.yaml" in shown and len(shown.splitlines()) <= 2
    (tmp_path / "mine.yaml").write_text("defaults: [config, _self_]\ntarget_width: 4\n")
    words = ["--config-dir=.", "--config-name=mine"]
    assert check_only(words, monkeypatch) == 0
    assert check_only([*words, "figure=fig4"], monkeypatch) == 2
    assert "the program's own configuration" in capsys.readouterr().err


SMALLEST = "study=example20 scale=smoke threads=1"

WAYS = [
    SMALLEST,
    f"-m {SMALLEST}",
    "figure=bottleneck-example20 scale=smoke",
    "figures bottleneck-example20 scale=smoke",
    "runs",
    "runs list",
    "runs check",
    "runs diff a b",
    "runs export --csv",
    "runs clean",
    "report",
    "compare",
]


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("/proc/x", "outputs=/proc/x cannot be used (No such file or directory)"),
        ("file", "outputs=file cannot be used (file is a file, not a folder)"),
        ("", "outputs='' is not a folder: give outputs=FOLDER"),
    ],
)
def test_bad_outputs_end_alike_everywhere(typed, shown, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("")
    for way in WAYS:
        assert run_here([*way.split(), f"outputs={typed}"], monkeypatch) == 2, way
        said = capsys.readouterr().err
        if way == "runs diff a b" and typed == "/proc/x":  # a run is named, and there is none
            assert said == "error: a names no run: there are no runs under /proc/x\n"
        else:
            assert said == f"error: {shown}\n", way
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_in_the_way_of_a_folder_is_named(monkeypatch, capsys, tmp_path):
    (tmp_path / "runs").mkdir()
    for path in (tmp_path / "runs/example20", tmp_path / "figures-from-reference"):
        path.write_text("")
    for way in (SMALLEST, "show fig4"):
        assert run_here([*way.split(), f"outputs={tmp_path}"], monkeypatch) == 2
        file = tmp_path / ("runs/example20" if way == SMALLEST else "figures-from-reference")
        assert f"cannot be used ({file} is a file, not a folder)" in capsys.readouterr().err


def test_a_tilde_is_the_home_everywhere(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert run_here([*SMALLEST.split(), "outputs=~/runs"], monkeypatch) == 0
    for way in ("runs check", "report scale=smoke", f"-m {SMALLEST}"):
        assert run_here([*way.split(), "outputs=~/runs"], monkeypatch) == 0
    assert "1 run, 0 damaged" in capsys.readouterr().out
    assert run_here(["runs", "list", "~/runs"], monkeypatch) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert Settings(outputs="~/runs").folder() == tmp_path / "home" / "runs"


FILES = [
    (b"# @package _global_\nseed: 1\n# caf\xe9\n", "line 3: not in UTF-8"),
    (b"# mine\n# @package _global_\nseed: 1\n", "must be the first line"),
    (b"# @package _global_\nseed: 1\nseed: 2\n", "line 3: found duplicate key seed"),
    (b"# @package _global_\nseed: 010\n", "line 2: seed: 010 is 8 in YAML: write 8"),
    (b"# @package _global_\nseed: 1:30  # s\n", "line 2: seed: 1:30 is 90 in YAML: write 90"),
    (b"# @package _global_\nscale: paper\ndepths: [8]\n", "- override /scale: paper"),
    (b"# @package _global_\nseed: [\n", "line"),
    (b"# @package _global_\nseed: 1\ndepht: 3\n", "depht is not a key"),
]


GRID = b"defaults: [override /study: rank_collapse]\nfigure: mine\ngrids:"
CHANGES = b"defaults: [override /figure: rank-fig1]\ngrids:"

FIGURES = [
    ("figure", GRID + b" [{depth: 4}]\n", "figure=mine: a figure has a list of grids for each"),
    ("figure", GRID + b"\n  smoke: {depth: 4}\n", "scale=smoke: a figure has a list of grids"),
    ("experiment", CHANGES + b" [{depth: 4}]\n", "experiment/mine.yaml: a figure has a list of gr"),
    ("figure", GRID + b"\n  smoke: [{depth: 4}]\n", "runner new study NAME. For other parameters"),
]


@pytest.mark.parametrize(("group", "content", "message"), FIGURES)
def test_a_figures_file_is_explained(group, content, message, monkeypatch, capsys, tmp_path):
    folder = tmp_path / "mine"
    (folder / group).mkdir(parents=True)
    (folder / group / "mine.yaml").write_bytes(b"# @package _global_\n" + content)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    catalogue.add_studies(folder)
    try:
        assert run_here([f"{group}=mine", "scale=smoke", "--dry-run"], monkeypatch) == 2
    finally:
        catalogue.forget()
    errors = capsys.readouterr().err
    assert message in errors and len(errors.splitlines()) < 3 and "DictConfig" not in errors


@pytest.mark.parametrize(("content", "message"), FILES)
def test_a_wrong_file_is_named_with_the_correction(content, message, monkeypatch, capsys, tmp_path):
    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    (folder / "small.yaml").write_bytes(content)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    catalogue.add_studies(tmp_path / "mine")
    try:
        assert check_only(["study=example20", "experiment=small"], monkeypatch) == 2
    finally:
        catalogue.forget()
    errors = capsys.readouterr().err
    assert message in errors and "experiment/small.yaml" in errors and len(errors.splitlines()) < 3
