import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time

import pandas as pd
import pytest
import warm
from in_process import job_of
from in_process import run as run_here
from repository import REPOSITORY
from samples import samples

from runner.__main__ import SUBCOMMANDS
from runner.core.settings import Settings
from runner.papers.batch_norm_rank.pretraining.config import Pretraining
from runner.results.claims import COLUMNS

SMOKE = ("scale=smoke", "device=cpu", "threads=1")
SMALL = (*SMOKE, "test_samples=500", "replicates=3")
TINY = (*SMALL, "train_samples=2000")  # the study's smallest runs


def test_wrong_input_in_a_separate_process_ends_in_one_line_and_code_2(command):
    done = command("device=cuda:99")
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert "error: device=cuda:99 is not there" in done.stderr


def test_help_and_no_arguments_list_what_can_be_typed(monkeypatch, capsys):
    assert run_here([], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert "runner show fig4" in shown
    assert all(line.startswith("  runner ") for line in shown.splitlines()[2:])
    assert run_here(["--help"], monkeypatch) == 0
    shown = capsys.readouterr().out
    for text in ("bn_only", "smoke", "quick", "paper", "fig4", "fig5", "--multirun", "--cfg"):
        assert text in shown


def test_the_help_of_a_study_describes_its_parameters_and_eight_settings(monkeypatch, capsys):
    shown = {}
    for word in ("--help", "--help all"):
        assert run_here(["study=pretraining", *word.split()], monkeypatch) == 0
        shown[word] = capsys.readouterr().out
    described = {word: set(re.findall(r"^  (\w+): ", text, re.M)) for word, text in shown.items()}
    settings = {item.name for item in dataclasses.fields(Settings)}
    parameters = {item.name for item in dataclasses.fields(Pretraining)}
    short, everything = described.values()
    assert len(short & settings) == 8 and short >= parameters - {"checksums"}
    assert everything == parameters | settings
    (listed,) = re.findall(r"^Rarely used: (.*)$", shown["--help"], re.M)
    assert {*listed.split(", "), "study", "figure"} == everything - short


def test_the_help_of_a_figure_has_its_own_parameters(monkeypatch, capsys):
    assert run_here(["figure=rank-fig2", "--help"], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("usage: runner figure=rank-fig2 [key=value ...]\n")
    assert "It sets: seed 33, train false, " in shown
    assert "At scale smoke: activation [linear, relu], depth 100, replicates 3\n" in shown


def test_make_help_lists_the_targets_for_users_and_help_all_the_others():
    short, everything = (
        subprocess.run(
            ["make", "--no-print-directory", word], cwd=REPOSITORY, capture_output=True, text=True
        ).stdout
        for word in ("help", "help-all")
    )
    listed = [line.split()[0] for line in short.splitlines()]
    assert len(listed) == 11 and listed[-1] == "More:"
    assert {"show", "figures", "test", "fig4"} < {*listed[:-1]} < {*everything.split()}
    assert "lint" not in listed and "\nlint " in everything


def test_one_run_prints_its_table_and_draws_a_preview(command, tmp_path):
    done = command("study=bn_only", *TINY, "target_width=3", "sparsity=0.37")
    assert done.returncode == 0, done.stderr
    assert "construction from the target" in done.stdout and "metrics.csv  12 rows" in done.stdout
    (picture,) = tmp_path.glob("runs/bn_only/*/overview.png")
    assert picture.stat().st_size > 5000


def test_a_sweep_computes_each_run_once(command, tmp_path):
    first = command("-m", *TINY, "target_width=2,3")
    assert first.returncode == 0 and "2 runs" in first.stderr
    assert first.stdout.count(" construction from the target ") == 2, (
        "each run in one line of the table"
    )
    assert re.search(rf"\n2 runs of bn_only .*: {tmp_path}/runs/bn_only\n", first.stdout)
    again = command("-m", *TINY, "target_width=2,3,4")
    assert "3 runs, 2 of them complete" in again.stderr
    assert again.stderr.count("starts:") == 1
    assert len(list(tmp_path.glob("runs/bn_only/*/result.json"))) == 3


def test_a_figure_draws_exactly_its_own_runs(command, tmp_path):
    sizes = ("train_samples=2000", "test_samples=500")
    foreign = command(*SMOKE, *sizes, "target_width=4")
    assert foreign.returncode == 0
    done = command("figure=fig4", *SMOKE, *sizes)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "figures" / "smoke"
    (name,) = {path.name.partition(".")[0] for path in folder.iterdir()} - {"parts"}
    assert re.fullmatch("fig4-[0-9a-f]{8}", name)
    for end in ("png", "pdf", "csv", "claims.csv"):
        assert (folder / f"{name}.{end}").stat().st_size > 100
    drawn = pd.read_csv(folder / f"{name}.csv")
    assert set(drawn["target_width"].dropna()) == {3, 5}
    claims = pd.read_csv(folder / f"{name}.claims.csv")
    assert list(claims.columns)[: len(COLUMNS)] == list(COLUMNS)
    assert set(claims["verdict"]) <= {"holds", "fails", "undecided"}
    *before, summary, rules, place = done.stdout.splitlines()
    assert len(before) < 22
    verdicts = [line[:1] for line in before if line[:1] in "✓✗?"]
    assert verdicts == ["?"] * len(claims)
    assert summary.startswith(f"{len(claims)} claims are undecided. smoke is too small to judge")
    assert rules.startswith("rules and sources: runner claims fig4 scale=smoke")
    assert place == str(folder / f"{name}.png")

    pictures = {path.name: path.read_bytes() for path in folder.glob("*.*")}
    again = command("figures", "--redraw", "fig4", *SMOKE, *sizes)
    assert again.returncode == 0 and done.stdout == again.stdout
    assert {path.name: path.read_bytes() for path in folder.glob("*.*")} == pictures


def test_a_failing_run_of_a_pool_does_not_stop_the_other(command, tmp_path):
    """The file of one run is a folder, so that this run cannot work. Meanwhile there is one line
    for both runs, and each writes its own log.
    """
    folder = job_of(*TINY, "target_width=2", f"outputs={tmp_path}").run.folder
    (folder / "config.yaml").mkdir(parents=True)
    pool = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2")
    done = command("-m", *TINY, "target_width=2,3", *pool)
    assert done.returncode == 1, done.stderr
    assert "1 of 2 runs failed" in done.stderr and "error.txt" in done.stderr
    assert re.search(r"^1 of 2 runs, 1 failed in \d+ s$", done.stderr, re.MULTILINE)
    assert "starts:" not in done.stderr and "complete: " not in done.stderr
    logs = [path.read_text() for path in tmp_path.glob("runs/bn_only/*/run.log")]
    assert sum("starts:" in log and "complete: " in log for log in logs) == 1
    assert "1 of 2 runs of bn_only " in done.stdout
    assert "Traceback" in (folder / "error.txt").read_text()
    assert len(list(tmp_path.glob("runs/bn_only/*/result.json"))) == 1
    (folder / "config.yaml").rmdir()
    again = command("-m", *TINY, "target_width=2,3")
    assert again.returncode == 0 and "2 runs, 1 of them complete" in again.stderr


def test_ctrl_c_marks_the_run_interrupted_and_the_same_command_goes_on(command, tmp_path):
    arguments = (*SMALL, "target_width=3", "train_samples=500000", "checkpoint_seconds=0")
    process = warm.Process("-m", "runner", *arguments, f"outputs={tmp_path}")
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("runs/bn_only/*/checkpoint.safetensors")):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors and "Traceback" not in errors
    (path,) = tmp_path.glob("runs/bn_only/*/provenance.json")
    assert json.loads(path.read_text())["status"] == "interrupted"
    done = command(*arguments)
    assert done.returncode == 0 and "goes on:" in done.stderr


def test_ctrl_c_marks_every_run_of_a_pool(tmp_path):
    """As a terminal does, which interrupts all processes of the command."""
    arguments = (*SMALL, "train_samples=5000000", "checkpoint_seconds=0", "target_width=2,3")
    pool = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", f"outputs={tmp_path}")
    process = warm.Process("-m", "runner", "-m", *arguments, *pool)
    deadline = time.monotonic() + 240
    while len(list(tmp_path.glob("runs/bn_only/*/checkpoint.safetensors"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "Traceback" not in errors, errors
    paths = list(tmp_path.glob("runs/bn_only/*/provenance.json"))
    assert [json.loads(path.read_text())["status"] for path in paths] == ["interrupted"] * 2


@pytest.mark.parametrize(
    "closed", samples(["<&- >&- 2>&-", ">&- 2>&-", "2>&-"], lambda _: "streams")
)
def test_a_closed_stream_is_no_fault(closed, tmp_path):
    words = f"study=example20 scale=smoke depths=[4] grid=3 outputs={tmp_path}"
    script = f"{sys.executable} -m runner {words} {closed}"
    assert subprocess.run(["sh", "-c", script]).returncode == 0
    assert len(list(tmp_path.glob("runs/example20/*/result.json"))) == 1


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["runs", "list"], "no runs under outputs"),
        (["figures", "fig4", "--redraw", "scale=smoke"], "3 of 3 runs are missing"),
        (["figures", "fig4", "--redraw", "scale=smoke"], "runner figure=fig4 scale=smoke"),
        (["report", "scale=smoke"], "outputs/report/index.html"),
        (["compare", "scale=smoke"], "not in the reference at scale smoke: "),
        (["compare", "figure=fig4", "fig5"], "not made at scale quick: fig4, fig5\n"),
        (["--version"], "theory-runner "),
        (["-m", "study=example20", "seed=8,9", "--dry-run"], "2 runs"),
        (["study=example20", "grid=3", "grid=4"], "grid is given twice: 3 and 4\n"),
        (["figures", "fig4", "seed=3", "seed=4"], "seed is given twice: 3 and 4\n"),
        (["study=example20", "grid=3", "grid=4", "--cfg", "job"], "grid is given twice: 3 and 4"),
        (["study=example20", "grid=3", "grid=3", "--dry-run"], "a few seconds"),
        (["study=example20", "grid=3", "--dry-run"], "a few seconds (from times"),
        (["study=example20", "--dry-run", "-cn", "config"], "--dry-run computes nothing: omit -cn"),
        (["compare", "outputs=nowhere"], "outputs=nowhere cannot be used"),
        (["study=bn_only", "--help"], "target_width: int; default 10; at least 1"),
        *(([name, "--help"], f"runner {name}") for name in SUBCOMMANDS),
        (["figure=fig4", "scale=smoke", "--cfg", "job"], "target_width: 10"),
    ],
)
def test_every_command_works_from_any_folder(arguments, shown, tmp_path, monkeypatch, capsys):
    (tmp_path / "outputs").mkdir()
    monkeypatch.chdir(tmp_path)
    run_here(arguments, monkeypatch)
    printed = capsys.readouterr()
    assert shown in printed.out + printed.err


def test_a_reader_that_has_gone_is_no_fault(tmp_path):
    """As in `| head`: the end of the pipe is closed before anything is written."""
    (tmp_path / "outputs").mkdir()
    processes = []
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    for words in (["--help"], ["study=bn_only", "--cfg", "job"]):
        command = [sys.executable, "-m", "runner", *words]
        process = subprocess.Popen(command, cwd=tmp_path, **pipes)
        process.stdout.close()
        processes.append(process)
    for process in processes:
        assert (process.wait(timeout=120), process.stderr.read()) == (141, "")


def test_an_output_that_takes_nothing_is_one_line():
    command = [sys.executable, "-m", "runner", "--help"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "error: No space left on device\n")


def test_a_figure_is_the_same_in_a_poor_terminal_of_a_strict_python(tmp_path, monkeypatch, capsys):
    """Neither a matplotlibrc nor ASCII output changes the picture; nor do warnings as errors."""
    words = ("figure=bottleneck-example20", *SMOKE)
    assert run_here([*words, f"outputs={tmp_path}/here"], monkeypatch) == 0
    assert "✓ holds" in capsys.readouterr().out
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\nsavefig.facecolor: red\n")
    poor = {"PYTHONIOENCODING": "ascii", "MATPLOTLIBRC": str(tmp_path / "matplotlibrc")}
    command = [sys.executable, "-W", "error", "-m", "runner", *words, f"outputs={tmp_path}/poor"]
    done = subprocess.run(command, env=os.environ | poor, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "3 claims hold." in done.stdout and "? holds" in done.stdout
    here, there = tmp_path.glob("*/figures/smoke/bottleneck-example20.png")
    assert here.read_bytes() == there.read_bytes()
