"""Studies of a few lines, in a separate folder."""

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
    table = "metrics"
    keys = ("value",)
    value: int


def run(config, context):
    {body}
    yield Metrics(config.value)
"""


def toys(folder: Path, **bodies: str) -> Path:
    """Write small studies into the folder `toys` in a folder; return its path.

    bodies: for each study a line of Python, which its `run` executes before it yields its value.
    """
    place = folder / "toys"
    for kind in ("study", "size"):
        (place / "conf" / kind).mkdir(parents=True, exist_ok=True)
    (place / "__init__.py").touch()
    for name, body in bodies.items():
        (place / name).mkdir()
        (place / name / "__init__.py").touch()
        (place / name / "config.py").write_text(CONFIG.format(name=name))
        (place / name / "study.py").write_text(STUDY.format(body=body))
        about = f"# @package _global_\n# toy\n# none\ndefaults:\n  - /schema: {name}\n"
        (place / "conf" / "study" / f"{name}.yaml").write_text(about)
        sizes = "".join(f"{scale}: {{}}\n" for scale in ("smoke", "quick", "medium", "paper"))
        (place / "conf" / "size" / f"{name}.yaml").write_text(sizes)
    return place
