"""Where numbers come from: commit, command, versions, device, time and memory of a run."""

import importlib.metadata
import os
import platform
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

REPOSITORY = Path(__file__).resolve().parents[3]
REFERENCE = REPOSITORY / "outputs" / "reference"
"""What stands behind every figure, kept in git: `<scale>/<figure>/`."""
COMMAND = "RUNNER_COMMAND"
"""The environment variable with the command; processes started from this one know it, too."""

PACKAGES = (
    "torch",
    "numpy",
    "scipy",
    "numba",
    "pandas",
    "hydra-core",
    "omegaconf",
    "scikit-learn",
)


def git(*arguments: str) -> str | None:
    """What git prints in this checkout; None where it fails, or is not there."""
    if not (REPOSITORY / "src" / "runner").is_dir():  # installed, maybe inside another checkout
        return None
    command = ["git", "-C", str(REPOSITORY), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def commit() -> dict[str, Any]:
    """The commit of the code and whether files differ from it; nulls outside a git checkout."""
    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else status != ""}


def command_line() -> str:
    """The command as it was typed; without one, that the package was imported, and by what."""
    program = Path(sys.argv[0]).name
    return os.environ.get(COMMAND, f"import runner ({program or 'Python'})")


def describe(device: "torch.device") -> dict[str, Any]:
    """What is known before a run: code, command, versions, device."""
    import torch

    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else platform.machine()
    return {
        **commit(),
        "command": command_line(),
        "versions": versions,
        "device": str(device),
        "device_name": name,
        "threads": torch.get_num_threads(),
    }


def peak_memory(device: "torch.device") -> dict[str, int]:
    """Peak memory of this process, and of the GPU where one is used, in bytes."""
    import torch

    used = {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device.type == "cuda":
        used["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    return used
