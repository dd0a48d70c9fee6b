"""What there is to run, found by its place: studies, figures, and where their YAML files are.

A study is a folder with a `config.py` (see `core.studies`) in a package of studies: that of a
paper; one's own that is installed with an entry point

    [project.entry-points."runner.studies"]
    my_studies = "my_studies"

or a folder that is named: `--config-dir my_studies`. A package of the user's has its YAML files
(`study/`, `size/`, `figure/`, `experiment/`) in its `conf/`. Nothing imports a study by name.
"""

import importlib
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from runner.core.errors import InputError, nearest
from runner.core.studies import Measured, Row, StudyConfig, TrainingConfig

PROGRAM = Path(__file__).resolve().parents[1]

_CLONE, _WHEEL = PROGRAM.parents[1] / "conf", PROGRAM / "conf"
CONF = _CLONE if (_CLONE / "config.yaml").exists() else _WHEEL
"""The program's own YAML files: of the clone it runs in, else those that were installed with it."""

ENTRY_POINTS = "runner.studies"

FOLDERS = "RUNNER_STUDIES"
"""The environment variable with the folders that were named, as JSON: workers know them, too."""

SCALES = {
    "smoke": "seconds; what the tests run",
    "quick": "minutes on two cores; the default",
    "medium": "hours on two cores. Paper B and norm_finetuning: mostly fewer of the images,"
    " or smaller networks. All others: as paper",
    "paper": "the papers' own sizes: a GPU for convolutional networks; hours on two cores for most"
    " other figures",
}
"""How big, and what that means."""


@dataclass(frozen=True)
class Package:
    """A package of studies. conf: its YAML files; None for a paper's, which are the program's."""

    name: str
    folder: Path
    conf: Path | None = None


@cache
def packages() -> tuple[Package, ...]:
    """Return the papers' packages, those installed, and those of folders, in this order.

    Raises InputError when one cannot be found.
    """
    papers = [
        Package(f"runner.papers.{path.name}", path) for path in sorted(PROGRAM.glob("papers/*/"))
    ]
    installed = [_installed(point.name, point.value) for point in entry_points(group=ENTRY_POINTS)]
    given = [_at(folder) for folder in given_folders()]
    return tuple({each.folder: each for each in (*papers, *installed, *given)}.values())


def own_conf_folders() -> list[Path]:
    """Return the folders with YAML files of the packages that are no paper's."""
    return [each.conf for each in packages() if each.conf is not None]


def given_folders() -> list[Path]:
    """Return the folders that were named, here or by the process that started this one."""
    try:
        return list(map(Path, json.loads(os.environ.get(FOLDERS) or "[]")))
    except (ValueError, TypeError) as error:
        raise InputError(f"the variable {FOLDERS} is no list of folders in JSON") from error


def add_studies(folder: str | Path) -> None:
    """Make the studies and the YAML files of a folder known, here and in processes to come.

    Raises InputError when there is no such folder, or its name is another module's.
    """
    known = [*given_folders(), _at(Path(folder)).folder]
    os.environ[FOLDERS] = json.dumps(list(dict.fromkeys(map(str, known))))
    packages.cache_clear()
    studies.cache_clear()


def _installed(name: str, package: str) -> Package:
    """Return the package that an entry point names."""
    try:
        spec = importlib.util.find_spec(package)
    except ImportError:
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise InputError(f"entry point {name} of {ENTRY_POINTS}: there is no package {package}")
    folder = Path(next(iter(spec.submodule_search_locations))).resolve()
    return Package(package, folder, _conf(folder))


def _at(folder: Path) -> Package:
    """Return what a folder given by --config-dir holds: studies, or configuration alone."""
    folder = folder.expanduser().resolve()
    if not folder.is_dir():
        raise InputError(f"--config-dir {folder}: there is no such folder")
    if any(folder.glob("*/config.py")):
        if not folder.name.isidentifier():
            raise InputError(
                f"{folder} holds studies: its name must be the name of a Python package"
            )
        if str(folder.parent) not in sys.path:
            sys.path.append(str(folder.parent))
        spec = importlib.util.find_spec(folder.name)
        found = [] if spec is None else map(Path, spec.submodule_search_locations or [])
        if folder not in [path.resolve() for path in found]:
            raise InputError(f"{folder} holds studies, but {folder.name} is another module's name")
    return Package(folder.name, folder, _conf(folder))


def _conf(folder: Path) -> Path:
    return folder / "conf" if (folder / "conf").is_dir() else folder


@cache
def studies() -> dict[str, str]:
    """Return the Python package of every study by the study's name; imports none of them.

    Raises InputError when two studies have one name.
    """
    found: dict[str, str] = {}
    for package in packages():
        for path in sorted(package.folder.glob("*/config.py")):
            name = path.parent.name
            if name in found:
                raise InputError(f"{path.parent}: there is a study {name} already, {found[name]}")
            found[name] = f"{package.name}.{name}"
    return found


def package_of(study: str) -> str:
    """Return the package of a study's folder. Raises InputError when there is no such study."""
    if study not in studies():
        raise InputError(f"study={study} is unknown: {nearest(study, studies())}")
    return studies()[study]


def paper_folder(study: str) -> str:
    """Return the folder of a study's paper, or of the user's studies."""
    return package_of(study).split(".")[-2]


@cache
def _config_of(package: str) -> type[StudyConfig]:
    """Import a study's `config.py` and return its single class of parameters."""
    module = importlib.import_module(f"{package}.config")
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, StudyConfig) and "study" in vars(value)
    ]
    name = package.rpartition(".")[2]
    if [each.study for each in found] != [name]:
        raise InputError(f'{module.__file__}: one StudyConfig with study = "{name}" is needed')
    return found[0]


def config_of(study: str) -> type[StudyConfig]:
    """Return the parameter class of a study, which its `config.py` defines.

    Raises InputError when there is no such study, or its module does not define one such class.
    """
    return _config_of(package_of(study))


def configs() -> dict[str, type[StudyConfig]]:
    """Return the parameter class of every study by the study's name; raises as `config_of` does."""
    return {study: config_of(study) for study in studies()}


def part_of(study: str, part: str) -> ModuleType | None:
    """Return the module `<part>.py` of a study's folder (figures, claims), None without one."""
    name = f"{package_of(study)}.{part}"
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


def module_of(study: str) -> ModuleType:
    """Return the module that holds the study's rows and its `run`.

    Raises InputError when there is none, it lacks one of them, or a row class has no table.
    """
    place = f"study={study}: {package_of(study).replace('.', '/')}/study.py"
    module = part_of(study, "study")
    if module is None:
        raise InputError(f"{place} is missing")
    if not callable(getattr(module, "run", None)):
        raise InputError(f"{place} has no run(config, context)")
    found = _row_classes(module)
    if not found:
        raise InputError(f"{place} has no row class: a frozen dataclass derived from Row")
    tables = [vars(each).get("table") for each in found]
    for each, table in zip(found, tables, strict=True):
        if table is None or tables.count(table) > 1:
            raise InputError(
                f"{place}: {each.__name__} needs a separate table: table: ClassVar[str]"
            )
    return module


def rows_of(study: str) -> dict[str, type[Row]]:
    """Return the row classes of a study by the names of their tables."""
    found = {row_class.table: row_class for row_class in _row_classes(module_of(study))}
    own = issubclass(config_of(study), TrainingConfig)
    return found | ({Measured.table: Measured} if own else {})


def _row_classes(module: ModuleType) -> list[type[Row]]:
    """Return what the module defines first, then what it imports."""
    found = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Row) and value not in (Row, Measured)
    ]
    return sorted(found, key=lambda row_class: row_class.__module__ != module.__name__)


def folder_words(study: str) -> list[str]:
    """Return the words that make the study known where its folder was given by `--config-dir`."""
    package = package_of(study).rpartition(".")[0]
    folders = [known.folder for known in packages() if known.name == package]
    given = [folder for folder in folders if folder in given_folders()]
    return [word for folder in given for word in ("--config-dir", str(folder))]


def conf_folders() -> list[Path]:
    """Return the folders with YAML files: the program's, then those of the user's packages."""
    return [CONF, *own_conf_folders()]


def options(group: str) -> dict[str, Path]:
    """Return the YAML files of a group by their names, the first of each name."""
    found = [path for folder in conf_folders() for path in sorted((folder / group).glob("*.yaml"))]
    return {path.stem: path for path in reversed(found)}


def figure_names(scale: str | None = None) -> list[str]:
    """Return the names of all figures, fig2 before fig11; scale: of those that are drawn at it."""
    names = sorted(options("figure"), key=natural_order)
    return [name for name in names if scale is None or scale in _scales_of(name)]


def scale_in(words: Iterable[str]) -> str:
    """Return the scale that words on the command line ask for; without one the default.

    Raises InputError when there is no such scale.
    """
    typed = [word.removeprefix("scale=") for word in words if word.startswith("scale=")]
    if typed and typed[-1] not in SCALES:
        raise InputError(f"scale={typed[-1]} is unknown: {nearest(typed[-1], SCALES)}")
    return typed[-1] if typed else "quick"


def _scales_of(figure: str) -> Iterable[str]:
    found = _parsed(_text("figure", figure))
    return found.get("grids") or () if isinstance(found, dict) else ()


RENAMED = {
    "invariances-fig1": "conserved",
    "invariances-fig2": "first-order",
    "invariances-fig3": "what-grows",
    "invariances-fig4": "low-rank-training",
    "invariances-fig5": "beyond-gradient-flow",
}
"""Figures by the names that they had in the release before; these go with the next one."""


def renamed(word: str) -> str:
    """Return a word, a figure's name or `figure=name`, with today's name, and say so on stderr."""
    key, equals, name = word.rpartition("=")
    if name not in RENAMED or key not in ("", "figure"):
        return word
    print(f"{name} is called {RENAMED[name]} now", file=sys.stderr)
    return f"{key}{equals}{RENAMED[name]}"


def natural_order(name: str) -> list[tuple[str, int]]:
    """Sort numbers within a name as numbers."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def sizes(study: str) -> dict[str, dict[str, Any]]:
    """Return the sizes of a study by scale, of `size/<study>.yaml`; none without a file.

    Raises InputError where it holds something else.
    """
    found = _parsed(_text("size", study) or "{}")
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise InputError(f"conf/size/{study}.yaml: sizes are written `scale: {{key: value}}`")
    return found


def headline(group: str, name: str) -> str:
    """Return what an option is: the first comment of its YAML file that is no directive."""
    for line in _text(group, name).splitlines():
        if line.startswith("# ") and not line.startswith("# @package"):
            return line[2:]
    return ""


def figure_study(figure: str) -> str:
    """Return the study whose runs a figure draws. Raises InputError without such a figure."""
    if figure not in options("figure"):
        raise InputError(f"figure={figure} is unknown: {nearest(figure, figure_names())}")
    try:
        chosen = _parsed(_text("figure", figure))["defaults"]
        return next(line["override /study"] for line in chosen if "override /study" in line)
    except (TypeError, KeyError, StopIteration) as error:
        where = options("figure")[figure]
        raise InputError(f"{where}: its defaults have no line `override /study: ...`") from error


@cache
def _parsed(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        first = text.strip().partition("\n")[0]
        raise InputError(f"no YAML file ({first} ...): {' '.join(str(error).split())}") from error


def _text(group: str, name: str) -> str:
    """Return the text of an option's YAML file; empty without a file."""
    path = options(group).get(name)
    return path.read_text() if path else ""
