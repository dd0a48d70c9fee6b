"""What captions, titles and tables call what has a name: known names, and all others."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from runner.core.catalogue import package_of


class Labels(dict[Any, str]):
    """Labels by name; a name without one stands for itself: `Labels() | {name: ...}`."""

    def __or__(self, others: Mapping[Any, str]) -> "Labels":  # type: ignore[override]  # texts only
        return type(self)({**self, **others})

    def __missing__(self, name: Any) -> str:
        return str(name)


@dataclass(frozen=True)
class Names:
    """Printed names of the columns of a study's tables, and of values in them.

    What has none is printed as it is written, with spaces for underscores.
    """

    columns: Mapping[str, str]
    values: Mapping[str, str]

    def column(self, name: str) -> str:
        """Return what a column is called; `<name>_before` was measured before training."""
        known = self.columns.get(name.removesuffix("_before"))
        if known and name.endswith("_before"):
            known += " before training"
        return known or name.replace("_", " ")

    def value(self, value: Any) -> str:
        """Return what a value is called, as a method."""
        text = f"{value:g}" if isinstance(value, float) else str(value)
        return self.values.get(text, text.replace("_", " ")).replace("\n", " ")


@cache
def names_of(study: str) -> Names:
    """Return the printed names of a study: of columns MEASURES, of values NAMES of its paper's
    `looks.py`."""
    module = f"{package_of(study).rpartition('.')[0]}.looks"
    found = importlib.import_module(module) if find_spec(module) else None
    return Names(getattr(found, "MEASURES", {}), getattr(found, "NAMES", {}))
