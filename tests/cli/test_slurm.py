"""What Slurm's commands print, read; the scheduler itself is asked in scripts/slurm-test."""

import pytest

from runner.cli import slurm
from runner.cli.slurm import Seen

SQUEUE = """\
7_0|RUNNING|None
7_1|PENDING|Resources
7_2|CANCELLED|None
7_3|FAILED|NonZeroExitCode
"""

SACCT = """\
8_0|COMPLETED|0:0
8_1|CANCELLED by 1000|0:0
8_2|FAILED|0:9
8_3|OUT_OF_MEMORY|0:125
8_4|CANCELLED+|1:0
9|NODE_FAIL|1:0
"""


def test_states_and_reasons_are_read_from_the_queue():
    assert slurm.parse(SQUEUE) == {
        "7_0": Seen("RUNNING"),
        "7_1": Seen("PENDING", "Resources"),
        "7_2": Seen("CANCELLED"),
        "7_3": Seen("FAILED", "NonZeroExitCode"),
    }


def test_states_and_reasons_are_read_from_accounting():
    found = {task: str(seen) for task, seen in slurm.parse(SACCT).items()}
    assert found == {
        "8_0": "COMPLETED",
        "8_1": "CANCELLED (by user 1000)",
        "8_2": "FAILED (signal 9)",
        "8_3": "OUT_OF_MEMORY (signal 125)",
        "8_4": "CANCELLED (exit code 1)",
        "9": "NODE_FAIL (exit code 1)",
    }


@pytest.mark.parametrize(
    ("state", "alive"),
    [("PENDING", True), ("COMPLETING", True), ("REQUEUED", True), ("SUSPENDED", True)]
    + [("COMPLETED", False), ("TIMEOUT", False), ("PREEMPTED", False), ("CANCELLED", False)],
)
def test_what_waits_or_runs_is_alive(state, alive):
    assert Seen(state).is_alive == alive


def test_accounting_is_asked_for_what_the_queue_has_forgotten(monkeypatch):
    asked = []

    def ask(*command):
        asked.append(command)
        return SQUEUE if command[0] == "squeue" else SACCT

    monkeypatch.setattr(slurm, "_ask", ask)
    found = slurm.look(["7", "8", "7"])
    assert found["7_1"].reason == "Resources" and found["8_2"].state == "FAILED"
    assert [command[0] for command in asked] == ["squeue", "sacct"]
    assert asked[1][-1] == "8"
    assert slurm.look([]) == {}


def test_without_accounting_what_is_forgotten_is_unknown(monkeypatch):
    def ask(*command):
        if command[0] == "sacct":
            raise slurm.Unreachable("Slurm accounting storage is disabled")
        return SQUEUE

    monkeypatch.setattr(slurm, "_ask", ask)
    assert set(map(slurm.job_of, slurm.look(["7", "8"]))) == {"7"}


def test_a_scheduler_that_does_not_answer_is_no_verdict_on_its_jobs():
    with pytest.raises(slurm.Unreachable, match="no-such-command"):
        slurm._ask("no-such-command")
    with pytest.raises(slurm.Unreachable, match="No such file"):
        slurm._ask("ls", "/no/such/folder")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (
            "sbatch: error: Invalid generic resource (gres) specification",
            "the partition has no GPUs .*\n.*slurm-cpu needs none; .* another: gpu gpu:a100:8",
        ),
        (
            "sbatch: error: invalid partition specified: x\n"
            "sbatch: error: Batch job submission failed: Invalid partition name specified",
            "Invalid partition name specified.\n.* is one of: cpu ",
        ),
        (
            "sbatch: error: Batch job submission failed: Requested time limit is invalid",
            "Requested time limit is invalid.\n.*timeout_min=.* is in minutes",
        ),
        ("sbatch: error: anything\n  else", "^anything else$"),
    ],
)
def test_a_refusal_says_what_would_be_right(said, meant, monkeypatch):
    import re

    monkeypatch.setattr(slurm, "_ask", lambda *command: "cpu* (null)\ngpu gpu:a100:8\n")
    text = slurm.refusal(said, gpus=True)
    assert re.search(meant, text) and len(text.splitlines()) <= 2
