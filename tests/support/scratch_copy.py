"""Python in a copy of the repository, whose code goes before the installed one."""

import os
import subprocess
import sys
from pathlib import Path

from repository import REPOSITORY

LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)

__all__ = ["REPOSITORY", "in_copy", "lint"]


def in_copy(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """`python <arguments>` in the folder of the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    command = [sys.executable, *arguments]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900
    )


def lint(folder: Path) -> subprocess.CompletedProcess:
    """import-linter over the copy."""
    return in_copy(folder, "-c", LINT)
