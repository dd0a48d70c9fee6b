"""Where numbers come from: commit, command, versions, device, time and memory of a run."""

import importlib.metadata
import os
import platform
import re
import resource
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

if TYPE_CHECKING:
    import torch

REPOSITORY = Path(__file__).resolve().parents[3]
_CLONE, _WHEEL = REPOSITORY / "outputs" / "reference", Path(__file__).resolve().parents[1]
INSTALLED = (_WHEEL / "reference").is_dir()
"""Whether this is a wheel's, which has what the pictures at `quick` need, in six digits."""
REFERENCE = _WHEEL / "reference" if INSTALLED else _CLONE
"""What stands behind every figure, kept in git: `<scale>/<figure>/`."""
COMMAND = "RUNNER_COMMAND"
"""The environment variable with the command; processes started from this one know it, too."""

DRIVER = Path("/proc/driver/nvidia/version")
"""Where Linux tells the version of NVIDIA's driver, without asking a GPU that may hang."""

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
    """What is known before a run: commit, command, versions, device and its instructions."""
    import torch

    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = None
    versions |= gpu_versions(device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return {
        **commit(),
        "command": command_line(),
        "versions": versions,
        "device": str(device),
        "device_name": name,
        "instructions": instructions(),
        "threads": torch.get_num_threads(),
    }


def gpu_versions(device: "torch.device") -> dict[str, str | None]:
    """The versions of CUDA, cuDNN and the driver; nulls where no GPU computes."""
    import torch

    if device.type != "cuda":
        return dict.fromkeys(("cuda", "cudnn", "driver"))
    return {
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version()),
        "driver": driver(),
    }


def driver() -> str | None:
    """The version of NVIDIA's driver; None where Linux does not tell it."""
    try:
        found = re.search(r"\d+(\.\d+)+", DRIVER.read_text())
    except OSError:
        return None
    return found and found[0]


def processor() -> str:
    """The processor's name where Linux tells it, else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def instructions() -> dict[str, str]:
    """What the processor's sums are made with, by whom: with others, they round differently.

    The instruction set of torch, and the BLAS libraries of NumPy and SciPy with the processor that
    each takes this one for (OpenBLAS chooses by it, or by OPENBLAS_CORETYPE).
    """
    import scipy.linalg  # noqa: F401  its library is loaded with it
    import torch

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = {f"{each['internal_api']} {each.get('architecture', '')}".strip() for each in libraries}
    return {"torch": torch.backends.cpu.get_cpu_capability(), "blas": ", ".join(sorted(names))}


def peak_memory(device: "torch.device") -> dict[str, int]:
    """Peak memory of this process, and of the GPU where one is used, in bytes."""
    import torch

    used = {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device.type == "cuda":
        used["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    return used
