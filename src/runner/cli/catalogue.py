"""What there is to choose from: the options in `conf/`, each with its headline."""

import re
from pathlib import Path

import yaml

from runner.core.errors import InputError

CONF = Path(__file__).resolve().parents[3] / "conf"

SCALES = ("smoke", "quick", "medium", "paper")


def require_conf() -> None:
    """Raise InputError where the package was installed without its repository."""
    if not (CONF / "config.yaml").exists():
        raise InputError(
            f"{CONF} holds no config.yaml.\nThe runner works from a clone of its repository:"
            " install it with `make setup` there."
        )


def natural_order(name: str) -> list[tuple[str, int]]:
    """Sorts fig2 before fig11: numbers within a name count as numbers."""
    parts = re.findall(r"(\D*)(\d*)", name)
    return [(text, int(number or 0)) for text, number in parts]


def figure_names() -> list[str]:
    """All figures that exist, by name."""
    return sorted((path.stem for path in (CONF / "figure").glob("*.yaml")), key=natural_order)


def headline(group: str, name: str) -> str:
    """What an option of a group is: the first comment of its YAML file that is no directive."""
    for line in (CONF / group / f"{name}.yaml").read_text().splitlines():
        if line.startswith("# ") and not line.startswith("# @package"):
            return line[2:]
    return ""


def figure_study(figure: str) -> str:
    """The study whose runs a figure draws: that which its configuration chooses."""
    content = yaml.safe_load((CONF / "figure" / f"{figure}.yaml").read_text())
    choices = {key: value for line in content["defaults"] for key, value in line.items()}
    return choices["override /study"]
