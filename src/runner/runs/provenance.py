"""Where numbers come from: code, commit, command, versions, device, time and memory of a run."""

import hashlib
import importlib.metadata
import os
import platform
import re
import resource
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
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
"""Whether this is a wheel's, which has what the pictures at `quick` need, in six digits."""
REFERENCE = _WHEEL / "reference" if INSTALLED else REPOSITORY / "outputs" / "reference"
"""The stored tables of every figure, kept in git: `<scale>/<figure>/`."""
COMMAND = "RUNNER_COMMAND"
"""The environment variable with the command; processes started from this one know it, too."""

DRIVER = Path("/proc/driver/nvidia/version")
"""Where Linux tells the version of NVIDIA's driver, without asking a GPU that may hang."""

LIBRARY = Path(os.__file__).parent
"""Python's own library."""

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

    They cover `config.py` and `study.py` of the study and what these import, as `fingerprint` says.
    own: functions of the user's that a run's parameters name, whose modules count as well. Raises
    InputError when there is no such study, or a module cannot be read.
    """
    package = package_of(study)
    modules = {place.partition(":")[0] for place in own}
    return fingerprint({f"{package}.config", f"{package}.study"}, modules)


def fingerprint(modules: set[str], own: Iterable[str] = ()) -> str:
    """Return sixteen digits that change when the code does that `covered` returns."""
    texts, versions = covered(modules, own)
    parts = [f"{name}\n{texts[name]}\n" for name in sorted(texts)]
    parts += [f"{version}\n" for version in sorted(versions)]
    return hashlib.sha256("".join(parts).encode()).hexdigest()[:16]


def covered(modules: set[str], own: Iterable[str] = ()) -> tuple[dict[str, str], set[str]]:
    """Return the code of modules and of all that they import, by name, and versions of packages.

    Imports count wherever they stand in the text, and through other modules. Layout, comments and
    words, which `what_counts` lists, are left out. What the user's modules import of installed
    packages and of Python's own library counts by its version. The provenance has the versions of
    what this package imports. own: the user's modules, which may be of an installed package. Raises
    InputError where one of these is missing, or a module's text is not Python's.
    """
    texts: dict[str, str] = {}
    versions: set[str] = set()
    ours = {"runner", *map(_root, modules)}
    waiting: list[tuple[str, Path | None]] = [(name, None) for name in sorted({*modules, *own})]
    seen: set[str] = set()
    while waiting:
        name, beside = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if _root(name) not in ours and (version := _installed(_root(name))):
            versions.add(version)
            continue
        try:
            text = source_of(name, beside)
        except ModuleNotFoundError as error:
            if beside is None:
                raise InputError(f"{name}: {error}") from error
            continue  # what can be done without
        place = _place(name, beside)
        package = name if place.is_dir() else name.rpartition(".")[0]
        if _root(name) != "runner" and "." in name:
            waiting.append((name.rpartition(".")[0], beside or place.parent))
        if text is None:
            continue
        try:
            texts[name] = written(text)
            found = sorted(imports(package, text))
        except (SyntaxError, ValueError, RecursionError) as error:
            raise InputError(f"{name} cannot be read: {error}") from error
        if _root(name) == "runner":
            found = [each for each in found if _root(each) in ours]
        waiting += [(each, place.parent) for each in found]
    return texts, versions


def _root(name: str) -> str:
    return name.partition(".")[0]


def _installed(package: str) -> str | None:
    """Return an installed package, or Python's own library, with its version; None for the user's.

    A module among the installed ones that no package owns is the user's.
    """
    spec = _spec(package)
    if spec is None:
        return None
    place = Path(next(iter(spec.submodule_search_locations or ()), spec.origin or ""))
    if _is_among_installed(place):
        owners = sorted(set(_owners(tuple(sys.path)).get(package, ())))
        return " ".join(f"{each} {importlib.metadata.version(each)}" for each in owners) or None
    if spec.origin in ("built-in", "frozen") or place.is_relative_to(LIBRARY):
        return f"python {sysconfig.get_python_version()}"
    return None


@cache
def _owners(path: tuple[str, ...]) -> Mapping[str, list[str]]:
    """Return the installed packages, as pip names them, by what one imports; path: sys.path."""
    return importlib.metadata.packages_distributions()


def _is_among_installed(place: Path) -> bool:
    return not {"site-packages", "dist-packages"}.isdisjoint(place.parts)


_sources: dict[str, str | None] = {}
"""The texts of modules as they were imported or, before that, looked at; None: there is none."""


class _Remembering:
    """A finder that finds nothing, and remembers the text of each module that is being imported.

    Its file may change at any time from then on; numbers come from what was imported. Other
    installed packages are left out: they count by their versions.
    """

    @staticmethod
    def find_spec(name: str, path: Iterable[str] | None, target: object = None) -> None:
        """Remember a module's text, as Python asks for it; another text makes fingerprints anew."""
        path = None if path is None else list(path)
        if path is None and name in sys.stdlib_module_names:
            return
        is_ours = name.startswith("runner.")
        if path is not None and not is_ours and any("-packages" in each for each in path):
            return
        spec = PathFinder.find_spec(name, path)
        if spec is None or not spec.has_location or spec.origin is None:
            return
        place = _without_ending(spec)
        if is_ours or not _is_among_installed(place):
            text = _text_of(place)
            if _sources.get(name) != text:
                _sources[name] = text
                code_of.cache_clear()


def source_of(name: str, beside: Path | None = None) -> str | None:
    """Return the text of a module; None for what is no module of Python's.

    beside: a folder in which it is looked for, too. Raises ModuleNotFoundError when there is no
    such package.
    """
    if name not in _sources:
        _sources[name] = _text_of(_place(name, beside))
    return _sources[name]


def _place(name: str, beside: Path | None = None) -> Path:
    """Return the folder of a package, or the file of a module without its ending."""
    package, *rest = name.split(".")
    folders = _folders(package, beside)
    places = [folder.joinpath(*rest) for folder in folders]
    return next((place for place in places if _is_there(place)), places[0])


@cache
def _folders(package: str, beside: Path | None) -> list[Path]:
    """Return where a package is, or a module alone, without its ending.

    Raises ModuleNotFoundError when there is none.
    """
    spec = _spec(package)
    if spec is not None and spec.submodule_search_locations:
        return list(map(Path, spec.submodule_search_locations))
    if spec is not None:
        return [_without_ending(spec)]
    if beside is not None and _is_there(beside / package):
        return [beside / package]
    raise ModuleNotFoundError(f"there is no package {package}")


def _spec(package: str) -> ModuleSpec | None:
    try:
        return find_spec(package)
    except ValueError:  # made by a program, as `__main__` may be
        return None


def _without_ending(spec: ModuleSpec) -> Path:
    """Return the folder of a package, or the file of a module without its ending."""
    origin = Path(spec.origin or spec.name)
    return origin.parent if spec.submodule_search_locations else origin.with_suffix("")


def _is_there(place: Path) -> bool:
    return place.is_dir() or place.with_suffix(".py").is_file()


def _text_of(place: Path) -> str | None:
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return None


for _name in [name for name in sys.modules if name.startswith("runner.")]:
    source_of(_name)  # what has been imported this very moment
sys.meta_path.insert(0, _Remembering)
