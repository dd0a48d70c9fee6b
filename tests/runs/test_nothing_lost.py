"""Kills, failures and company: whatever happens to a sweep, nothing complete is lost or changed."""

import json
import os
import re
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest
import warm
from filelock import SoftFileLease
from repository import REPOSITORY
from samples import samples

from runner.commands.runs import main as runs_command
from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import lock
from runner.runs.execution import execute
from runner.runs.inventory import find
from runner.runs.run import Run

TINY = {"target_width": 2, "train_samples": 640, "test_samples": 100, "batch_size": 32}
KILLS = 5
KILLED = ("bn_only", "rank_chain")
"""All studies are stopped step by step in `test_every_study_on_cuda`."""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.mark.parametrize("study", samples(KILLED, lambda study: "any"))
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(study, tmp_path):
    script = REPOSITORY / "tests" / "support" / "killed_again_and_again.py"
    done = warm.run(str(script), study, str(tmp_path), str(KILLS), env=ENVIRONMENT, timeout=900)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["hits"] >= 3, "the kills came too late to hit the run"
    whole, killed = (
        {path.name: path.read_bytes() for path in (tmp_path / name).glob("runs/*/*/*.csv")}
        for name in ("whole", "killed")
    )
    assert whole and killed == whole
    assert runs_command(["check", str(tmp_path / "killed")]) == 0


def command(outputs: Path, *more: str) -> list[str]:
    """A small sweep. more: further words, which may replace the sizes."""
    typed = {word.partition("=")[0] for word in more}
    sizes = {key: value for key, value in {**TINY, "replicates": 2}.items() if key not in typed}
    settings = ["device=cpu", "threads=1", f"outputs={outputs}"]
    return [
        "-m",
        "runner",
        "-m",
        *(f"{key}={value}" for key, value in sizes.items()),
        *settings,
        *more,
    ]


def test_two_processes_on_one_sweep_share_the_work(tmp_path):
    arguments = command(tmp_path, "target_width=2,3,4,5,6", "train_samples=35000")
    processes = [
        warm.Process(*arguments, f"checkpoint_seconds={seconds}", env=ENVIRONMENT)
        for seconds in (20, 30)
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0] * 2, errors
    logs = [path.read_text() for path in tmp_path.glob("runs/bn_only/*/run.log")]
    assert [log.count("starts:") for log in logs] == [1] * 5
    paths = tmp_path.glob("runs/bn_only/*/provenance.json")
    workers = {json.loads(path.read_text())["command"] for path in paths}
    assert len(workers) > 1, "one process did everything"
    assert all("\n5 of 5 runs in" in text for text in errors)
    assert runs_command(["check", str(tmp_path)]) == 0


def owner_of_a_begun_run(outputs: Path) -> int | None:
    """The process that works on a run which has a checkpoint, by the run's lease."""
    for checkpoint in outputs.glob("runs/*/*/checkpoint.safetensors"):
        with suppress(OSError):  # it has ended meanwhile
            return SoftFileLease(lock.lease_path(checkpoint.parent)).pid
    return None


def test_a_joblib_worker_killed_by_the_system_is_replaced(tmp_path):
    """SIGKILL for a worker in the middle of its run: the sweep goes on and ends well."""
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "checkpoint_seconds=0")
    process = warm.Process(
        *command(tmp_path, "target_width=6,7,8", "train_samples=12000", *launcher),
        env=ENVIRONMENT,
    )
    deadline = time.monotonic() + 120
    while not (worker := owner_of_a_begun_run(tmp_path)):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    logs = [path.read_text() for path in tmp_path.glob("runs/bn_only/*/run.log")]
    assert "a process was killed" in errors and any("goes on:" in log for log in logs)
    assert len(list(tmp_path.glob("runs/bn_only/*/result.json"))) == 3


def is_alive(process: int) -> bool:
    """Return whether a process computes. One that has ended may wait for its parent to notice."""
    with suppress(OSError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def test_the_workers_of_a_killed_command_end(tmp_path):
    """SIGKILL for the command: a joblib worker interrupts its run, and gives its memory back."""
    launcher = ("hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "checkpoint_seconds=0")
    words = command(tmp_path, "target_width=6,7", "train_samples=1000000", *launcher)
    process = warm.Process(*words, env=ENVIRONMENT)
    deadline = time.monotonic() + 240
    while not (worker := owner_of_a_begun_run(tmp_path)):
        assert process.poll() is None and time.monotonic() < deadline, process.texts()
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    assert worker != process.pid and is_alive(worker)
    while is_alive(worker):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    statuses = {info.status for info in find(tmp_path)}
    assert "interrupted" in statuses and statuses <= {"interrupted", "running", "dead"}


LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_FSIZE, (6 * 1024, 6 * 1024))
runpy.run_module("runner", run_name="__main__", alter_sys=True)
"""


def test_a_full_disk_fails_the_run_and_leaves_complete_ones_alone(tmp_path):
    """A limit on the size of files stands for a full disk: writing a table raises OSError."""
    first = Run(BnOnly(**TINY, replicates=2), tmp_path)
    execute(first, Settings(outputs=str(tmp_path), device="cpu"))
    (tmp_path / "limited.py").write_text(LIMITED)
    _, _, *words = command(tmp_path, "target_width=9", "replicates=30")
    done = warm.run(str(tmp_path / "limited.py"), *words, env=ENVIRONMENT)
    assert done.returncode == 1, done.stderr
    assert "OSError" in done.stderr and "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert first.is_complete() and len(first.tables()["metrics"]) == 8
    assert len(list(tmp_path.glob("runs/bn_only/*/result.json"))) == 1


FORBIDDEN = [
    (r"\bpickle\b", "pickled data can run code when it is read"),
    (r"\btorch\.load\b", "reads pickled data"),
    (r"allow_pickle=True", "reads pickled data"),
    (r"(?<![\w.])eval\(|(?<![\w.])exec\(", "runs text as code"),
    (r"yaml\.(load|full_load|unsafe_load)\(", "use yaml.safe_load"),
    (r"\.extractall\(", "archive members must be checked one by one"),
    (r"shell=True|os\.system", "runs text in a shell"),
    (r"hydra\._internal(?!\.callbacks import Callbacks)", "may change with any version of Hydra"),
]


def test_the_source_is_safe_by_construction():
    paths = [*(REPOSITORY / "src").rglob("*.py"), *(REPOSITORY / "scripts").rglob("*.py")]
    sources = {path: path.read_text() for path in paths}
    assert len(sources) > 20
    for pattern, reason in FORBIDDEN:
        hits = [path.name for path, text in sources.items() if re.search(pattern, text)]
        assert not hits, f"{hits}: {reason}"
