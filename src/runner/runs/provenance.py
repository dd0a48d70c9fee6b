"""Where numbers come from: code, commit, command, versions, device, time and memory of a run."""

import hashlib
import importlib.metadata
import os
import platform
import re
import resource
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

from runner.core.catalogue import package_of
from runner.runs.what_counts import imports, written

if TYPE_CHECKING:
    import torch

REPOSITORY = Path(__file__).resolve().parents[3]
_WHEEL = Path(__file__).resolve().parents[1]
INSTALLED = (_WHEEL / "reference").is_dir()
"""Whether this is a wheel's, which has what the pictures at `quick` need, in six digits."""
REFERENCE = _WHEEL / "reference" if INSTALLED else REPOSITORY / "outputs" / "reference"
"""The stored tables of every figure, kept in git: `<scale>/<figure>/`."""
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
    """Return what git prints in this checkout; None where it fails, or is not there.

    Hooks of git and some editors export where their own repository is: that is not passed on.
    """
    if not (REPOSITORY / "src" / "runner").is_dir():  # installed, maybe inside another checkout
        return None
    command = ["git", "-C", str(REPOSITORY), *arguments]
    own = {name: os.environ[name] for name in os.environ if not re.match("GIT_(?!CONFIG)", name)}
    own["GIT_OPTIONAL_LOCKS"] = "0"  # others may be at work there
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, env=own)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


@cache
def commit() -> dict[str, Any]:
    """Return the commit of the code and whether files differ from it; nulls outside a checkout."""
    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else status != ""}


def command_line() -> str:
    """Return the command as it was typed; else that the package was imported, and by what."""
    program = Path(sys.argv[0]).name
    return os.environ.get(COMMAND, f"import runner ({program or 'Python'})")


def describe(device: "torch.device") -> dict[str, Any]:
    """Return what is known before a run: commit, command, versions, device and instructions."""
    import torch

    versions = {"python": platform.python_version(), **dict.fromkeys(PACKAGES)}
    for package in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
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
    """Return the versions of CUDA, cuDNN and the driver; nulls where no GPU computes."""
    import torch

    if device.type != "cuda":
        return dict.fromkeys(("cuda", "cudnn", "driver"))
    driver = re.search(r"\d+(\.\d+)+", _text(DRIVER))
    return {
        "cuda": torch.version.cuda,
        "cudnn": str(torch.backends.cudnn.version()),
        "driver": driver and driver[0],
    }


def processor() -> str:
    """Return the processor's name where Linux tells it, else its architecture."""
    name = re.search(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return name[1] if name else platform.machine()


def _text(path: Path) -> str:
    """Return the content of a file; nothing if it does not exist."""
    try:
        return path.read_text()
    except OSError:
        return ""


def instructions() -> dict[str, str]:
    """Return what the processor's sums are made with, by whom: with others, they round differently.

    The instruction set of torch, and the BLAS libraries of NumPy and SciPy with the processor that
    each takes this one for (OpenBLAS chooses by it, or by OPENBLAS_CORETYPE).
    """
    import scipy.linalg  # noqa: F401  its library is loaded with it
    import torch

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = {f"{each['internal_api']} {each.get('architecture', '')}".strip() for each in libraries}
    return {"torch": torch.backends.cpu.get_cpu_capability(), "blas": ", ".join(sorted(names))}


def peak_memory(device: "torch.device") -> dict[str, int]:
    """Return the peak memory of this process, and of the GPU where one is used, in bytes."""
    import torch

    used = {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device.type == "cuda":
        used["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    return used


@cache
def code_of(study: str, own: tuple[str, ...] = ()) -> str:
    """Return sixteen digits that change when the code of a study does.

    They cover `config.py` and `study.py` of the study and every module of this package, and of the
    study's own, that these import, directly or through others, without layout, comments and words
    (`what_counts` lists them). own: functions of the user's that a run's parameters name, whose
    modules count as well. Other packages are named in the provenance by their versions. Raises
    InputError when there is no such study.
    """
    package = package_of(study)
    modules = {place.partition(":")[0] for place in own}
    found = {name for name in modules if find_spec(name.partition(".")[0]) is not None}
    return fingerprint({f"{package}.config", f"{package}.study", *found})


def fingerprint(modules: set[str]) -> str:
    """Return sixteen digits that change when one of these modules does, or one that they import.

    Layout, comments and words (`what_counts` lists them) count as nothing.
    """
    packages = {"runner", *(name.partition(".")[0] for name in modules)}
    found: set[str] = set()
    waiting = set(modules)
    while waiting:
        name = waiting.pop()
        if name not in found and name.partition(".")[0] in packages and source_of(name) is not None:
            found.add(name)
            package = name if _place(name).is_dir() else name.rpartition(".")[0]
            waiting |= imports(package, source_of(name))
    digest = hashlib.sha256()
    for name in sorted(found):
        digest.update(f"{name}\n{written(source_of(name))}\n".encode())
    return digest.hexdigest()[:16]


_sources: dict[str, str | None] = {}
"""The texts of modules as they were imported or, before that, looked at; None: there is none."""


class _Remembering:
    """A finder that finds nothing, and remembers the text of each module that is being imported.

    Its file may change at any time from then on; numbers come from what was imported. Other
    installed packages are left out: the provenance has their versions.
    """

    @staticmethod
    def find_spec(name: str, path: Iterable[str] | None, target: object = None) -> None:
        """Remember a module's text, as Python asks for it; another text makes fingerprints anew."""
        folder = next(iter(path or ()), "-packages")
        if name.startswith("runner.") or "-packages" not in folder:
            text = _text_of(Path(folder, name.rpartition(".")[2]))
            if _sources.get(name) != text:
                _sources[name] = text
                code_of.cache_clear()


def source_of(name: str) -> str | None:
    """Return the text of a module; None for what is no module of Python's."""
    if name not in _sources:
        _sources[name] = _text_of(_place(name))
    return _sources[name]


def _place(name: str) -> Path:
    """Return the folder of a package, or the file of a module without its ending."""
    package, *rest = name.split(".")
    return _folder(package).joinpath(*rest)


@cache
def _folder(package: str) -> Path:
    """Return where a package is, or a module alone, without its ending.

    Raises ModuleNotFoundError when there is none.
    """
    spec = find_spec(package)
    if spec is None:
        raise ModuleNotFoundError(f"there is no package {package}")
    if not spec.submodule_search_locations:
        return Path(spec.origin or package).with_suffix("")
    return Path(next(iter(spec.submodule_search_locations)))


def _text_of(place: Path) -> str | None:
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


for _name in [name for name in sys.modules if name.startswith("runner.")]:
    source_of(_name)  # what has been imported this very moment
sys.meta_path.insert(0, _Remembering)
