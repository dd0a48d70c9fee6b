"""The provenance of a run: code, commit, command, versions, device, time and memory."""

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
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from threadpoolctl import threadpool_info

from runner.core.catalogue import package_of
from runner.core.errors import InputError
from runner.runs.what_counts import imports, written

if TYPE_CHECKING:
    import torch

REPOSITORY = Path(__file__).resolve().parents[3]
_WHEEL = Path(__file__).resolve().parents[1]
INSTALLED = (_WHEEL / "reference").is_dir()
"""Whether the program is installed from a wheel. A wheel has only the part of the reference that
pictures at scale `quick` need, with six digits."""
REFERENCE = _WHEEL / "reference" if INSTALLED else REPOSITORY / "outputs" / "reference"
"""The folder of the reference, the stored tables of every figure: `<scale>/<figure>/`."""
COMMAND = "RUNNER_COMMAND"
"""The environment variable with the command as it was typed. Child processes have it, too."""

DRIVER = Path("/proc/driver/nvidia/version")
"""The file in which Linux shows the version of NVIDIA's driver. Unlike a GPU, it never hangs."""

AMONG = re.compile(r"\b(site|dist)-packages\b")
"""Pattern of the paths of installed packages."""

PACKAGES = ["torch", "numpy", "scipy", "numba", "pandas", "hydra-core", "omegaconf", "scikit-learn"]
"""The packages whose versions are stored."""


def git(*arguments: str) -> str | None:
    """Return what git prints for these arguments in this repository.

    The result is None if git fails or is missing, or if the package is installed from a wheel.
    Environment variables that lead git to another repository are not passed on.
    """
    if not (REPOSITORY / "src" / "runner").is_dir():  # installed, maybe inside another checkout
        return None
    command = ["git", "-C", str(REPOSITORY), *arguments]
    variables = {k: v for k, v in os.environ.items() if not re.match("GIT_(?!CONFIG)", k)}
    variables["GIT_OPTIONAL_LOCKS"] = "0"  # other processes may use git at the same time
    try:
        return subprocess.run(
            command, capture_output=True, text=True, timeout=20, env=variables, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


@cache
def commit() -> dict[str, Any]:
    """Return the `commit` of the code, and whether files differ from it (`dirty`), by name.

    Both are None outside a clone of the repository.
    """
    status = git("status", "--porcelain", "--untracked-files=no")
    return {"commit": git("rev-parse", "HEAD"), "dirty": None if status is None else status != ""}


def command_line() -> str:
    """Return the command as it was typed, or the name of the program that imported the package."""
    program = Path(sys.argv[0]).name
    return os.environ.get(COMMAND, f"import runner ({program or 'Python'})")


def describe(device: "torch.device") -> dict[str, Any]:
    """Return the origin of a run that starts now, as a dictionary for its provenance.

    The entries are the commit, the command, versions of packages, the device, the processor's
    instructions and the number of threads.
    """
    import torch

    versions = {package: importlib.metadata.version(package) for package in PACKAGES}
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else processor()
    return {
        **commit(),
        "command": command_line(),
        "versions": {"python": platform.python_version()} | versions | gpu_versions(device),
        "device": str(device),
        "device_name": name,
        "instructions": instructions(),
        "threads": torch.get_num_threads(),
    }


def gpu_versions(device: "torch.device") -> dict[str, str | None]:
    """Return the versions of CUDA, cuDNN and the driver, by name. On a CPU all are None."""
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
    """Return the name of the processor on Linux, or its architecture on other systems."""
    name = re.search(r"^model name\s*:\s*(.+)$", _text(Path("/proc/cpuinfo")), re.MULTILINE)
    return name[1] if name else platform.machine()


def _text(path: Path) -> str:
    """Return the content of a file, empty if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return ""


def instructions() -> dict[str, str]:
    """Return which processor instructions torch uses, and which BLAS libraries are loaded.

    The keys are `torch` and `blas`. Both are recorded because sums are rounded differently with
    other instructions or libraries. The name of OpenBLAS includes its kernels. OpenBLAS chooses
    them by the processor or by the variable OPENBLAS_CORETYPE.
    """
    import scipy.linalg  # noqa: F401  its library is loaded with it
    import torch

    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    names = {f"{lib['internal_api']} {lib.get('architecture', '')}".strip() for lib in libraries}
    return {"torch": torch.backends.cpu.get_cpu_capability(), "blas": ", ".join(sorted(names))}


def peak_memory(device: "torch.device") -> dict[str, int]:
    """Return the peak memory of this process in bytes and, on a GPU, the peak of the GPU's memory.

    The keys are `peak_memory_bytes` and `peak_device_memory_bytes`.
    """
    import torch

    used = {"peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}
    if device.type == "cuda":
        used["peak_device_memory_bytes"] = torch.cuda.max_memory_allocated(device)
    return used


@cache
def code_of(study: str, functions: tuple[str, ...] = ()) -> str:
    """Return a fingerprint of a study's code: sixteen digits that change when the code changes.

    The code is `config.py` and `study.py` of the study, with everything that they import, see
    `covered`. functions: the user's functions among the parameters' values, `module:function`.
    Raises InputError if there is no such study, or a module cannot be read.
    """
    package = package_of(study)
    modules = {function.partition(":")[0] for function in functions}
    return fingerprint({f"{package}.config", f"{package}.study"}, modules)


def fingerprint(modules: set[str], others: Iterable[str] = ()) -> str:
    """Return sixteen digits that change when the code that `covered` returns changes.

    modules, others: as in `covered`. Raises InputError as `covered` does.
    """
    texts = covered(modules, others)
    parts = [f"{name}\n{texts[name]}\n" for name in sorted(texts)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def covered(modules: set[str], others: Iterable[str] = ()) -> dict[str, str]:
    """Return the code of modules and of everything that they import, by name of the module.

    modules: their full names. others: further modules, which may be in installed packages. Imports
    within functions and imports of imported modules count, too, and so do the files that the user's
    modules name (`own_files`), by their SHA-256. Layout, comments and texts for
    people (`what_counts` lists them) are removed. If a user's module imports an installed package,
    the package's version replaces its code. Raises InputError if a given module is missing, or a
    module is not valid Python.
    """
    texts: dict[str, str] = {}
    ours = {"runner", *map(_root, modules)}
    first = {*modules, *others}
    waiting = [(name, Path()) for name in sorted(first)]
    seen: set[str] = set()
    while waiting:
        name, beside = waiting.pop()
        root = _root(name)
        if name in seen:
            continue
        seen.add(name)
        if root not in ours and _is_installed(root):
            texts[root] = _version_of(root)
            continue
        file, text = _file_of(name, beside), source_of(name, beside)
        if text is None and name in first:
            raise InputError(f"there is no module {name}")
        package = name if file and file.stem == "__init__" else name.rpartition(".")[0]
        folder = file.parent if file else beside
        if root != "runner" and "." in name:
            waiting.append((name.rpartition(".")[0], folder))
        if text is None:  # a folder, a function, or an import that the code can do without
            continue
        try:
            texts[name] = written(text)
            imported = sorted(imports(package, text))
            if root != "runner":
                from runner.runs import own_files  # late: most runs have no code of the user

                files = own_files.names_in(text)
                texts |= {f"{name}: {own}": own_files.digest_of(folder / own) for own in files}
        except (SyntaxError, ValueError, RecursionError) as error:
            raise InputError(f"{name} cannot be read: {error}") from error
        waiting += [
            (other, folder) for other in imported if root != "runner" or _root(other) in ours
        ]
    return texts


def _root(name: str) -> str:
    return name.partition(".")[0]


@cache
def _is_installed(package: str) -> bool:
    """Return whether a package is installed, or part of Python."""
    is_pythons = package in sys.stdlib_module_names
    return is_pythons or any(AMONG.search(str(base)) for base in _bases(package))


@cache
def _version_of(package: str) -> str:
    """Return the version of an installed package, or of Python for a module of its library."""
    for name in (package, *importlib.metadata.packages_distributions().get(package, [])):
        with suppress(importlib.metadata.PackageNotFoundError):
            return importlib.metadata.version(name)
    return platform.python_version()


def _file_of(name: str, beside: Path) -> Path | None:
    """Return the file of a module, without importing it; None if there is none.

    beside: a folder in which the module is searched, too.
    """
    package, *rest = name.split(".")
    for base in _bases(package, beside):
        path = base.joinpath(*rest)
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.is_file():
                return file
    return None


@cache
def _bases(package: str, beside: Path = Path()) -> list[Path]:
    """Return the folders of a package, or the file of a module without its ending."""
    spec = None
    with suppress(ValueError):  # a module that a program has made, for example `__main__`
        spec = find_spec(package)
    if spec is None:
        return [beside / package]
    if spec.submodule_search_locations:
        return list(map(Path, spec.submodule_search_locations))
    return [Path(spec.origin or package).with_suffix("")]


_sources: dict[str, str] = {}
"""The texts of modules as they were imported or, before that, looked at."""


def source_of(name: str, beside: Path = Path()) -> str | None:
    """Return the text of a module, as it was when the module was imported; None if there is none.

    name: the full name of the module. beside: a folder in which the module is searched, too.
    """
    if name not in _sources:
        if (file := _file_of(name, beside)) is None:
            return None
        _sources[name] = file.read_text("utf-8", "replace")
    return _sources[name]


class _Recorder:
    """An import hook that stores the text of each module that is being imported.

    A file may change at any time after its import, but numbers come from the imported text.
    """

    @staticmethod
    def find_spec(name: str, path: Any, target: object = None) -> None:
        """Store the text of a module that Python imports. A new text voids fingerprints."""
        is_ours = name.startswith("runner.")
        if _root(name) in sys.stdlib_module_names or not is_ours and AMONG.search(str(path)):
            return
        spec = PathFinder.find_spec(name, path)
        file = Path(spec.origin if spec and spec.origin else "")
        if file.suffix == ".py" and (is_ours or not AMONG.search(str(file))):
            text = file.read_text("utf-8", "replace")
            if _sources.get(name) != text:
                _sources[name] = text
                code_of.cache_clear()


def _record_imports() -> None:
    """Store the texts of the program's modules that are imported, and of all later modules."""
    for name in [name for name in sys.modules if name.startswith("runner.")]:
        source_of(name)
    sys.meta_path.insert(0, _Recorder)


_record_imports()  # now: a worker process imports the user's modules when it reads its jobs
