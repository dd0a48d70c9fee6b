"""Shape and type checks for the whole package while the tests run, and what tests share."""

import subprocess
import sys
from pathlib import Path

from jaxtyping import install_import_hook

install_import_hook("runner", "typechecking.check")

import pytest  # noqa: E402
import torch  # noqa: E402
from repository import REPOSITORY  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture
def command(tmp_path):
    """Runs `python -m runner ... outputs=<tmp_path>` in a process of its own."""

    def run(*arguments: str, outputs: Path = tmp_path):
        return subprocess.run(
            [sys.executable, "-m", "runner", *arguments, f"outputs={outputs}"],
            capture_output=True,
            text=True,
            cwd=REPOSITORY,
            timeout=600,
        )

    return run
