"""Python in a copy of the repository. The code of the copy is used, not the installed code."""

import os
import subprocess
import sys
from pathlib import Path

import warm
from repository import REPOSITORY

LINT = (
    "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
)

__all__ = ["REPOSITORY", "in_copy", "lint"]


def in_copy(folder: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run `python -m <arguments>` in the folder of the copy; return the ended process."""
    return warm.run("-m", *arguments, cwd=folder, env=_environment(folder))


def lint(folder: Path) -> subprocess.CompletedProcess:
    """Run import-linter on the copy."""
    command = [sys.executable, "-c", LINT]
    return subprocess.run(
        command, cwd=folder, env=_environment(folder), capture_output=True, text=True, timeout=900
    )


def _environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(folder / "src")}
