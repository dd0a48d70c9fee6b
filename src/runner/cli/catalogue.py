"""What there is to choose from: options in `conf/` and in rooms of one's own, with headlines."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from runner.core.errors import InputError
from runner.core.rooms import own_rooms

_CLONE, _WHEEL = (Path(__file__).resolve().parents[up] / "conf" for up in (3, 1))
CONF = _CLONE if (_CLONE / "config.yaml").exists() else _WHEEL
"""The program's own YAML files: of the clone it runs in, else those that were installed with it."""

SCALES = {
    "smoke": "seconds; what the tests run",
    "quick": "minutes on two cores; the default",
    "medium": "hours on two cores. Paper B: its own images, fewer of them, smaller networks."
    " All other papers: as paper",
    "paper": "the papers' own sizes: a GPU for paper B's images; hours on two cores for most other"
    " figures",
}
"""How big, and what that means."""


def conf_folders() -> list[Path]:
    """The folders with YAML files: the program's, then those of rooms of one's own."""
    return [CONF, *(room.conf for room in own_rooms() if room.conf is not None)]


def option_path(group: str, name: str) -> Path | None:
    """The YAML file of an option of a group, None where there is none."""
    paths = (folder / group / f"{name}.yaml" for folder in conf_folders())
    return next((path for path in paths if path.exists()), None)


def sizes(study: str) -> dict[str, dict[str, Any]]:
    """The sizes of a study by scale, of `size/<study>.yaml`; none where there is no such file.

    Raises InputError where it holds something else.
    """
    found = _parsed(_text("size", study) or "{}")
    if not isinstance(found, dict) or not all(isinstance(each, dict) for each in found.values()):
        raise InputError(f"conf/size/{study}.yaml: sizes are written `scale: {{key: value}}`")
    return found


def is_group(key: str) -> bool:
    """Whether a key chooses among files, or among what is stored as if it were files."""
    return key in ("scale", "size") or any((folder / key).is_dir() for folder in conf_folders())


def natural_order(name: str) -> list[tuple[str, int]]:
    """Sorts fig2 before fig11: numbers within a name count as numbers."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(number or 0)) for text, number in parts]


def figure_names() -> list[str]:
    """All figures that exist, by name."""
    paths = [path for folder in conf_folders() for path in (folder / "figure").glob("*.yaml")]
    return sorted({path.stem for path in paths}, key=natural_order)


def headline(group: str, name: str) -> str:
    """What an option of a group is: the first comment of its YAML file that is no directive."""
    for line in _text(group, name).splitlines():
        if line.startswith("# ") and not line.startswith("# @package"):
            return line[2:]
    return ""


def figure_study(figure: str) -> str:
    """The study whose runs a figure draws: that which its configuration chooses."""
    return _study_chosen_by(_text("figure", figure))


@cache
def _parsed(text: str) -> Any:
    return yaml.safe_load(text)


def _study_chosen_by(text: str) -> str:
    defaults = _parsed(text)["defaults"]
    return {key: value for line in defaults for key, value in line.items()}["override /study"]


def _text(group: str, name: str) -> str:
    """The text of an option's YAML file, empty where there is none."""
    path = option_path(group, name)
    return path.read_text() if path else ""
