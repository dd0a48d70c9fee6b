"""All figures at scale smoke, made once by the real command, in the first process that asks."""

import json
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from filelock import FileLock
from repository import REPOSITORY


class Made(NamedTuple):
    """The folder of outputs and the printed text of the command."""

    outputs: Path
    returncode: int
    stdout: str
    stderr: str


def make(factory: pytest.TempPathFactory) -> Made:
    """Run `make figures SCALE=smoke` once, in a folder that all test processes share."""
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    outputs, told = shared / "smoke", shared / "smoke.json"
    with FileLock(shared / "smoke.lock"):
        if not told.exists():
            command = ["make", "figures", "SCALE=smoke", "JOBS=1", f"OUTPUTS={outputs}"]
            done = subprocess.run(
                command, cwd=REPOSITORY, capture_output=True, text=True, timeout=1500
            )
            told.write_text(json.dumps([done.returncode, done.stdout, done.stderr]))
    return Made(outputs, *json.loads(told.read_text()))
