"""The studies and figures that can be run, and their YAML files.

A study is a folder with a file `config.py` (see `core.studies`). Studies are in Python packages of
three kinds: a paper's package, an installed package of the user with an entry point

    [project.entry-points."runner.studies"]
    my_studies = "my_studies"

and a folder that the command names, `--config-dir my_studies`. A user's package has its YAML files
(`study/`, `size/`, `figure/`, `experiment/`) in its folder `conf/`. If it has a file `methods.py`,
this file is imported first: it registers functions under names. No code imports a study by name.
"""

import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from runner.core.errors import InputError, nearest
from runner.core.studies import Measured, Row, StudyConfig, TrainingConfig
from runner.core.user_functions import NAMED, register_as_parent

PROGRAM = Path(__file__).resolve().parents[1]

_CLONE, _WHEEL = PROGRAM.parents[1] / "conf", PROGRAM / "conf"
CONF = _CLONE if (_CLONE / "config.yaml").exists() else _WHEEL
"""Folder of the program's YAML files: in a clone its `conf/`, in a wheel the installed copy."""

ENTRY_POINTS = "runner.studies"

FOLDERS = "RUNNER_STUDIES"
"""Environment variable with the folders of `--config-dir`, as JSON. Worker processes read it."""

METHODS = "methods.py"
"""File of a user's package that registers functions, see `core.user_functions.register`."""

SCALES = {
    "smoke": "seconds; what the tests run",
    "quick": "minutes on two cores; the default",
    "medium": "hours on two cores. Paper B and norm_finetuning mostly use fewer of the images,"
    " or smaller networks. All other studies have the sizes of paper",
    "paper": "the papers' own sizes: a GPU for convolutional networks; hours on two cores for most"
    " other figures",
}
"""The sizes of an experiment by name, the smallest first, and what each means."""


def judges(scale: str) -> bool:
    """Return whether experiments of a scale are large enough to refute a statement."""
    return scale != "smoke"


@dataclass(frozen=True)
class Package:
    """A Python package whose subfolders are studies.

    - name: the import name;
    - folder: the path of the package;
    - conf: the folder of its YAML files; None for a paper's package, since the program's folder
      `conf/` has the files of all papers.
    """

    name: str
    folder: Path
    conf: Path | None = None


@cache
def packages() -> tuple[Package, ...]:
    """Return all packages of studies.

    The papers' packages come first. Packages that are installed with an entry point follow, then
    the folders of `--config-dir`. An entry point without a package is skipped; `broken` reports it.
    Raises InputError if a folder of `--config-dir` does not exist, or if Python cannot import the
    package in it.
    """
    papers = sorted(PROGRAM.glob("papers/*/"))
    candidates = [
        *(Package(f"runner.papers.{folder.name}", folder) for folder in papers),
        *(_installed(point.value) for point in metadata.entry_points(group=ENTRY_POINTS)),
        *map(_at, given_folders()),
    ]
    return tuple({package.folder: package for package in candidates if package}.values())


def own_conf_folders() -> list[Path]:
    """Return the folders with the YAML files of the user's packages, one for each package."""
    return [package.conf for package in packages() if package.conf is not None]


def given_folders() -> list[Path]:
    """Return the folders that were given to `--config-dir` or `add_studies`.

    The folders are in an environment variable, so child processes have them, too.
    """
    return list(map(Path, json.loads(os.environ.get(FOLDERS) or "[]")))


def add_studies(folder: str | Path) -> None:
    """Add the studies and YAML files of a folder, for this process and its child processes.

    Raises InputError if the folder does not exist. Raises it also for a folder with studies if its
    name is no valid package name, or is the name of another module.
    """
    folders = [*given_folders(), _at(Path(folder)).folder]
    os.environ[FOLDERS] = json.dumps(list(dict.fromkeys(map(str, folders))))
    forget()


def forget() -> None:
    """Forget the packages and studies that were found, so that the next call searches again."""
    packages.cache_clear()
    _found_studies.cache_clear()


def _installed(package: str) -> Package | None:
    """Return a user's package that Python can import; None if there is none with this name."""
    try:
        spec = importlib.util.find_spec(package)
    except Exception:  # its parent package is imported, and may raise anything
        spec = None
    if spec is None or not spec.submodule_search_locations:
        return None
    return _package(package, Path(next(iter(spec.submodule_search_locations))).resolve())


def _at(folder: Path) -> Package:
    """Return the package in a folder of `--config-dir`. The folder may have only YAML files."""
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"--config-dir {folder}: there is no such folder")
    if any(folder.glob("*/config.py")) or (folder / METHODS).exists():
        if not folder.name.isidentifier():
            raise InputError(f"{folder} has studies, so its name must be a Python name: rename it")
        if str(folder.parent) not in sys.path:
            sys.path.append(str(folder.parent))
        imported = _installed(folder.name)
        if imported is None or imported.folder != folder:
            raise InputError(f"{folder} holds studies, but {folder.name} is another module's name")
    return _package(folder.name, folder)


def _package(name: str, folder: Path) -> Package:
    """Return a user's package; its YAML files are in its folder `conf/` if it has one."""
    return Package(name, folder, folder / "conf" if (folder / "conf").is_dir() else folder)


@cache
def _found_studies() -> tuple[dict[str, str], dict[str, str]]:
    """Return the package of each study, and the fault of each study that cannot be used.

    The user's `config.py` files are imported here. If one fails, all other studies can still be
    used. Before them, functions are registered: first the functions of a parent process, then those
    in the user's `methods.py`.
    """
    failed = {
        point.name: f"entry point {point.name} of {ENTRY_POINTS}: there is no package {point.value}"
        for point in metadata.entry_points(group=ENTRY_POINTS)
        if _installed(point.value) is None
    }
    if NAMED in os.environ:
        register_as_parent()
    known: dict[str, str] = {}
    for package in packages():
        failed |= _register_methods(package)
        for path in sorted(package.folder.glob("*/config.py")):
            name = path.parent.name
            try:
                _require_usable(path, package, known)
                known[name] = f"{package.name}.{name}"
            except (Exception, SystemExit) as error:  # the user's code may raise anything
                failed.setdefault(name, _reason(path, error))
    return known, failed


def _register_methods(package: Package) -> dict[str, str]:
    """Import the `methods.py` of a user's package; return its fault by its path, if it has one."""
    methods = package.folder / METHODS
    if package.conf is not None and methods.is_file():
        try:
            importlib.import_module(f"{package.name}.{methods.stem}")
        except (Exception, SystemExit) as error:  # the user's code may raise anything
            return {str(methods): _reason(methods, error) + _beside(package, error)}
    return {}


def _beside(package: Package, error: BaseException) -> str:
    """Return how to import a module of the user's package that was not found; empty otherwise."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    paths = (package.folder / name, package.folder / f"{name}.py")
    if not name.isidentifier() or not any(path.exists() for path in paths):
        return ""
    return f": from {package.name} import {name}"


def _require_usable(path: Path, package: Package, known: dict[str, str]) -> None:
    """Import a user's `config.py`; raise InputError if another study has the same name.

    known: the packages of the studies that were found before, by name. An error of the user's code
    is raised as it is.
    """
    name = path.parent.name
    if name in known:
        raise InputError(
            f"{path}: there is a study {name} already ({known[name]}): rename this one"
        )
    if package.conf is not None:
        _config_of(f"{package.name}.{name}")


def _reason(path: Path, error: BaseException) -> str:
    """Return in one line why a file cannot be imported."""
    if isinstance(error, InputError):
        return str(error)
    where, message = str(path), str(error)
    if isinstance(error, SyntaxError) and error.filename == where:
        where, message = f"{path}, line {error.lineno}", error.msg
    return f"{where} cannot be imported ({type(error).__name__}: {message})"


def studies() -> dict[str, str]:
    """Return the import name of the package of each study that can be used, by the study's name."""
    return _found_studies()[0]


def broken() -> dict[str, str]:
    """Return why a study cannot be used, by the study's name, for each study with a fault.

    The dictionary also has a reason for each entry point without a package, by its name. It has one
    for each `methods.py` that cannot be imported, by its path.
    """
    return _found_studies()[1]


def package_of(study: str) -> str:
    """Return the import name of a study's package, such as `runner.papers.norm_tuning.bn_only`.

    study: the study's name. Raises InputError if there is no such study, its parameters cannot be
    imported, or two studies have this name.
    """
    if study in broken():
        raise InputError(broken()[study])
    if study not in studies():
        raise InputError(f"study={study} is unknown: {nearest(study, studies())}")
    return studies()[study]


def paper_folder(study: str) -> str:
    """Return the name of the package around a study: a paper's, as `norm_tuning`, or a user's.

    Raises InputError as `package_of` does.
    """
    return package_of(study).split(".")[-2]


@cache
def _config_of(package: str) -> type[StudyConfig]:
    """Import a study's `config.py` and return its parameter class."""
    module = importlib.import_module(f"{package}.config")
    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, StudyConfig) and "study" in vars(value)
    ]
    name = package.rpartition(".")[2]
    if [config_class.study for config_class in classes] != [name]:
        raise InputError(f'{module.__file__}: one StudyConfig with study = "{name}" is needed')
    return classes[0]


def config_of(study: str) -> type[StudyConfig]:
    """Return the class of a study's parameters, which its `config.py` defines.

    Raises InputError if there is no such study, or if `config.py` does not define exactly one
    class.
    """
    return _config_of(package_of(study))


def configs() -> dict[str, type[StudyConfig]]:
    """Return the parameter class of every study, by the study's name."""
    return {study: _config_of(package) for study, package in studies().items()}


def part_of(study: str, part: str) -> ModuleType | None:
    """Return the module `<part>.py` of a study, or None if the study has no such module.

    part: `rows`, `study`, `figures`, `quantities` or `claims`. Raises InputError as `package_of`
    does.
    """
    name = f"{package_of(study)}.{part}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def module_of(study: str) -> ModuleType:
    """Return a study's module `study.py`, with its function `run`.

    Raises InputError if the module or `run` is missing, as `rows_of` does, and if `study.py` has a
    row class that `rows.py` lacks.
    """
    where = _file(study, "study")
    module = part_of(study, "study")
    if module is None:
        raise InputError(f"{where} is missing")
    if not callable(getattr(module, "run", None)):
        raise InputError(f"{where} has no run(config, context)")
    known = rows_of(study).values()
    for row_class in _row_classes(module):
        if row_class not in known:
            name = row_class.__name__
            raise InputError(f"{where}: the row class {name} is not in rows.py: move it there")
    return module


def rows_of(study: str) -> dict[str, type[Row]]:
    """Return the row classes of a study, by the names of their tables.

    A row class defines the columns of a table. The row classes are in `rows.py`; a study without
    row classes in such a file has them in `study.py`, which usually imports torch. For studies that
    train networks, the class `Measured` is added. Raises InputError as `package_of` does, if there
    is no row class, and if a row class has no table or shares its table with another one.
    """
    found: list[type[Row]] = []
    for part in ("rows", "study"):
        module, where = part_of(study, part), _file(study, part)
        if module is not None and (found := _row_classes(module)):
            break
    else:
        raise InputError(f"{where} has no row class: a frozen dataclass derived from Row")
    tables: dict[str, type[Row]] = {}
    for row_class in found:
        table = vars(row_class).get("table")
        if table is None or table in tables:
            name = row_class.__name__
            raise InputError(f"{where}: {name} needs a separate table: table: ClassVar[str]")
        tables[table] = row_class
    trains = issubclass(config_of(study), TrainingConfig)
    return tables | ({Measured.table: Measured} if trains else {})


def _file(study: str, part: str) -> str:
    """Return how a message names a file of a study."""
    return f"study={study}: {package_of(study).replace('.', '/')}/{part}.py"


def _row_classes(module: ModuleType) -> list[type[Row]]:
    """Return the row classes of a module: first the classes defined in it, then imported ones."""
    row_classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Row) and value not in (Row, Measured)
    ]
    return sorted(row_classes, key=lambda row_class: row_class.__module__ != module.__name__)


def options(group: str) -> dict[str, Path]:
    """Return the paths of all YAML files in a folder of `conf/`, by name without the ending.

    group: the folder, such as `study` or `figure`. The user's packages have such folders, too. If
    the program and a user have files of the same name, the program's file is returned.
    """
    folders = [CONF, *own_conf_folders()]
    paths = [path for folder in folders for path in sorted((folder / group).glob("*.yaml"))]
    return {path.stem: path for path in reversed(paths)}


def figure_names(scale: str | None = None) -> list[str]:
    """Return the names of all figures in natural order: fig2 comes before fig11.

    scale: return only the figures that have this scale; None: all.
    """
    names = sorted(options("figure"), key=natural_order)
    if scale is None:
        return names
    contents = {name: _parsed(_text("figure", name)) or {} for name in names}
    return [name for name in names if scale in (contents[name].get("grids") or ())]


def named_figures(words: Iterable[str]) -> tuple[list[str], list[str]]:
    """Split the arguments of a command: return the names of figures, and all other arguments.

    words: the arguments. `fig4` and `figure=fig4` name a figure; other arguments are `key=value`.
    Raises InputError if there is no such figure.
    """
    words, known = list(words), figure_names()
    named = [word for word in words if "=" not in word or word.startswith("figure=")]
    names = [word.removeprefix("figure=") for word in named]
    for name in names:
        if name not in known:
            raise InputError(f"figure {name} is unknown: {nearest(name, known)}")
    return names, [word for word in words if word not in named]


def scale_in(words: Iterable[str]) -> str:
    """Return the scale that the argument `scale=...` names, or `quick` without this argument.

    words: the command's arguments. Raises InputError if there is no such scale.
    """
    typed = [word.removeprefix("scale=") for word in words if word.startswith("scale=")]
    if typed and typed[-1] not in SCALES:
        raise InputError(f"scale={typed[-1]} is unknown: {nearest(typed[-1], SCALES)}")
    return typed[-1] if typed else "quick"


def natural_order(name: str) -> list[tuple[str, int]]:
    """Return a key for `sorted` that compares numbers within names as numbers.

    `fig2` therefore comes before `fig11`.
    """
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def sizes(study: str) -> dict[str, dict[str, Any]]:
    """Return the parameters that each scale sets for a study, by scale and parameter.

    They are in the file `size/<study>.yaml`; without this file the dictionary is empty. Raises
    InputError if the file does not map scales to parameters.
    """
    by_scale = deepcopy(_parsed(_text("size", study) or "{}"))
    if not isinstance(by_scale, dict) or not all(isinstance(v, dict) for v in by_scale.values()):
        raise InputError(f"conf/size/{study}.yaml: sizes are written `scale: {{key: value}}`")
    return by_scale


def title_of(group: str, name: str) -> str:
    """Return the title of a YAML file in `conf/`: its first comment, without `# `.

    group: the file's folder, such as `figure`. name: the file's name without the ending. The title
    is empty if there is no comment or no file. The line `# @package` is for Hydra, and is skipped.
    """
    for line in _text(group, name).splitlines():
        if line.startswith("# ") and not line.startswith("# @package"):
            return line[2:]
    return ""


def figure_study(figure: str) -> str:
    """Return the name of the study whose runs a figure draws.

    Raises InputError if there is no such figure, or its YAML file chooses no study.
    """
    if figure not in options("figure"):
        raise InputError(f"figure={figure} is unknown: {nearest(figure, figure_names())}")
    try:
        chosen = _parsed(_text("figure", figure))["defaults"]
        return next(line["override /study"] for line in chosen if "override /study" in line)
    except (TypeError, KeyError, StopIteration) as error:
        where = options("figure")[figure]
        raise InputError(f"{where}: its defaults have no line `override /study: ...`") from error


def settings_of(figure: str) -> dict[str, Any]:
    """Return the parameters that a figure's YAML file sets, and its grids by scale as `grids`."""
    content = _parsed(_text("figure", figure)) or {}
    return {key: value for key, value in content.items() if key not in ("defaults", "figure")}


@cache
def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        first = text.strip().partition("\n")[0]
        raise InputError(f"no YAML file ({first} ...): {' '.join(str(error).split())}") from error


def _text(group: str, name: str) -> str:
    """Return the text of an option's YAML file, empty if there is none."""
    path = options(group).get(name)
    return path.read_text() if path else ""
