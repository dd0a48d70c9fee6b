"""Studies of a few lines, in a room of their own."""

from pathlib import Path

CONFIG = """
from dataclasses import dataclass
from typing import ClassVar

from runner.core.studies import StudyConfig, parameter


@dataclass(frozen=True)
class Toy(StudyConfig):
    study: ClassVar[str] = "{name}"
    value: int = parameter("a value", 1)
"""
STUDY = """
import sys
from dataclasses import dataclass
from pathlib import Path

from runner.core.studies import Row


@dataclass(frozen=True)
class Metrics(Row):
    keys = ("value",)
    value: int


def run(config, context):
    {body}
    yield Metrics(config.value)
"""


def toys(folder: Path, **bodies: str) -> Path:
    """Return the room of these studies: each yields its value, after a line of Python."""
    room = folder / "toys"
    for kind in ("study", "size"):
        (room / "conf" / kind).mkdir(parents=True, exist_ok=True)
    (room / "__init__.py").touch()
    for name, body in bodies.items():
        (room / name).mkdir()
        (room / name / "__init__.py").touch()
        (room / name / "config.py").write_text(CONFIG.format(name=name))
        (room / name / "study.py").write_text(STUDY.format(body=body))
        about = f"# @package _global_\n# toy\n# none\ndefaults:\n  - /schema: {name}\n"
        (room / "conf" / "study" / f"{name}.yaml").write_text(about)
        sizes = "".join(f"{scale}: {{}}\n" for scale in ("smoke", "quick", "medium", "paper"))
        (room / "conf" / "size" / f"{name}.yaml").write_text(sizes)
    return room
