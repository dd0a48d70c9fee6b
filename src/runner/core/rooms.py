"""Where studies are found: in the papers' rooms, and in rooms of one's own.

A room is a package with a folder for each of its studies (see `core.studies`) and, for a room of
one's own, a folder `conf/` with their YAML files (`study/`, `size/`, `figure/`, `experiment/`).
Beside the papers' rooms there are those of installed packages, by the entry point

    [project.entry-points."runner.studies"]
    my_room = "my_room"

and folders: `--config-dir my_room`. Studies are found by their place: nothing imports one by name.
"""

import importlib
import importlib.util
import os
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from runner.core.errors import InputError, nearest
from runner.core.studies import Row, StudyConfig

PAPERS = Path(__file__).resolve().parents[1] / "papers"
"""Where the papers' rooms are."""

GROUP = "runner.studies"
"""Of the entry points."""

FOLDERS = "RUNNER_ROOMS"
"""The environment variable with the folders of `--config-dir`: processes started from this one
know them, too."""


@dataclass(frozen=True)
class Room:
    """A package of studies. conf: its YAML files; None for a paper's, which are the program's."""

    package: str
    folder: Path
    conf: Path | None = None

    @property
    def name(self) -> str:
        """What the room is called: the last part of its package."""
        return self.package.rpartition(".")[2]


@cache
def rooms() -> tuple[Room, ...]:
    """The papers' rooms, those of installed packages, and those of folders, in this order.

    Raises InputError when one cannot be found.
    """
    papers = [Room(f"runner.papers.{path.name}", path) for path in sorted(PAPERS.glob("*/"))]
    installed = [_installed(point.name, point.value) for point in entry_points(group=GROUP)]
    given = [_at(Path(text)) for text in os.environ.get(FOLDERS, "").split(os.pathsep) if text]
    return tuple({room.folder: room for room in (*papers, *installed, *given)}.values())


def own_rooms() -> list[Room]:
    """The rooms that are no paper's."""
    return [room for room in rooms() if room.conf is not None]


def add_room(folder: Path) -> None:
    """Make the studies and the YAML files of a folder known, here and in processes to come.

    Raises InputError when there is no such folder, or its name is another module's.
    """
    room = _at(folder)
    known = os.environ.get(FOLDERS, "").split(os.pathsep)
    os.environ[FOLDERS] = os.pathsep.join(dict.fromkeys([*filter(None, known), str(room.folder)]))
    rooms.cache_clear()
    configs.cache_clear()


def _installed(name: str, package: str) -> Room:
    """The room of an entry point."""
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"entry point {name} of {GROUP}: there is no package {package}")
    folder = Path(next(iter(spec.submodule_search_locations))).resolve()
    return Room(package, folder, _conf(folder))


def _at(folder: Path) -> Room:
    """The room of a folder: a package of this name, if there are studies in it."""
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"--config-dir {folder}: there is no such folder")
    if any(folder.glob("*/config.py")):
        if not folder.name.isidentifier():
            raise InputError(f"{folder} holds studies: its name must be that of a Python package")
        if str(folder.parent) not in sys.path:
            sys.path.append(str(folder.parent))
        spec = importlib.util.find_spec(folder.name)
        if spec is None or folder not in map(_resolved, spec.submodule_search_locations or []):
            raise InputError(f"{folder} holds studies, but {folder.name} is another module's name")
    return Room(folder.name, folder, _conf(folder))


def _conf(folder: Path) -> Path:
    """Where the YAML files of a room are: in its `conf`, or in itself."""
    return folder / "conf" if (folder / "conf").is_dir() else folder


def _resolved(text: str) -> Path:
    return Path(text).resolve()


@cache
def configs() -> dict[str, type[StudyConfig]]:
    """Every study's parameter class by the study's name.

    Raises InputError when a study's `config.py` has no such class, or two have one name.
    """
    found: dict[str, type[StudyConfig]] = {}
    for room in rooms():
        for path in sorted(room.folder.glob("*/config.py")):
            module = importlib.import_module(f"{room.package}.{path.parent.name}.config")
            classes = [value for value in vars(module).values() if _is_study(value)]
            if len(classes) != 1 or classes[0].study in found:
                raise InputError(
                    f"{path}: one StudyConfig with a name (study: ClassVar[str]) of its own is"
                    " needed"
                )
            found[classes[0].study] = classes[0]
    return found


def _is_study(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, StudyConfig) and "study" in vars(value)


def package_of(study: str) -> str:
    """The package of a study's folder. Raises InputError when there is no such study."""
    if study not in configs():
        raise InputError(f"study={study} is not known: {nearest(study, configs())}")
    return configs()[study].__module__.rpartition(".")[0]


def room_of(study: str) -> str:
    """The room of a study: the folder of its paper, or one's own."""
    return package_of(study).split(".")[-2]


def part_of(study: str, part: str) -> ModuleType | None:
    """The module `<part>.py` of a study's folder (figures, claims), None without one."""
    name = f"{package_of(study)}.{part}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def module_of(study: str) -> ModuleType:
    """The module that holds the study's rows and its `run`.

    Raises InputError when there is none, or it lacks one of them.
    """
    place = f"study={study}: {package_of(study).replace('.', '/')}/study.py"
    module = part_of(study, "study")
    if module is None:
        raise InputError(f"{place} is missing")
    if not callable(getattr(module, "run", None)):
        raise InputError(f"{place} has no run(config, context)")
    if not _row_classes(module):
        raise InputError(f"{place} has no row class: a frozen dataclass derived from Row")
    return module


def rows_of(study: str) -> dict[str, type[Row]]:
    """The row classes of a study by the names of their tables."""
    return {row_class.table(): row_class for row_class in _row_classes(module_of(study))}


def _row_classes(module: ModuleType) -> list[type[Row]]:
    """Those made in the module first, then those that it has from others."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Row) and value is not Row
    ]
    return sorted(found, key=lambda row_class: row_class.__module__ != module.__name__)
