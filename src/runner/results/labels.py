"""What captions, titles and tables call what has a name: known names, and all others."""

import importlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from runner.core.catalogue import package_of


class Labels(dict[Any, str]):
    """Labels by name; a name without one is its own label: `Labels() | {name: ...}`."""

    def __or__(self, others: Mapping[Any, str]) -> "Labels":  # type: ignore[override]  # texts only
        return type(self)({**self, **others})

    def __missing__(self, name: Any) -> str:
        return str(name)


@dataclass(frozen=True)
class Names:
    """Printed names of a study: of columns, of values in them, and of conditions on them.

    What has none is printed as it is written, with spaces for underscores.
    """

    columns: Mapping[str, str]
    values: Mapping[Any, str]
    conditions: Mapping[str, str]
    unmet: Mapping[str, str]

    def with_others(self, printed: Mapping[Any, str]) -> "Names":
        """Return these names with others for columns, values and conditions, which come first."""
        texts = {name: words for name, words in printed.items() if isinstance(name, str)}
        columns, conditions = {**self.columns, **texts}, {**self.conditions, **texts}
        return Names(columns, {**self.values, **printed}, conditions, self.unmet)

    def column(self, name: str) -> str:
        """Return what a column is called; `<name>_before` was measured before training."""
        known = self.columns.get(name.removesuffix("_before"))
        if known and name.endswith("_before"):
            known += " before training"
        return known or name.replace("_", " ")

    def value(self, value: Any) -> str:
        """Return what a value is called, as a method."""
        text = f"{value:g}" if isinstance(value, float) else str(value)
        words = text.replace("_", " ")
        return (self.values.get(text) or self.values.get(words, words)).replace("\n", " ")

    def condition(self, code: str) -> str:
        """Write the code of a condition in words, and the rest of it as mathematics: `m = d²`."""
        known = "|".join(map(re.escape, sorted(self.conditions, key=len, reverse=True)))
        parts = re.split(rf"(?<!\w)({known})(?!\w)", code) if known else [code]
        texts = (self.conditions.get(part) or self._mathematics(part) for part in parts)
        return "".join(texts)

    def _mathematics(self, code: str) -> str:
        code = re.sub(r"(['\"])(.*?)\1", lambda found: self.value(found[2]), code)
        names = {name: printed for name, printed in self.columns.items() if name.isidentifier()}
        code = re.sub(r"\b[^\W\d]\w*", lambda found: names.get(found[0], found[0]), code)
        for pattern, sign in SIGNS.items():
            code = re.sub(pattern, sign, code)
        return code


SIGNS = {
    r"(\S+) == \1\.(max|min)\(\)": r"\1 is \2imal",
    " == ": " = ",
    " <= ": " ≤ ",
    " >= ": " ≥ ",
    r" \*\* 2": "²",
    r" \* ": " ",
    "_": " ",
}
"""How the code of a condition is printed: pattern and replacement, applied in this order."""


def names_of(study: str) -> Names:
    """Return the printed names of a study."""
    return names_in(package_of(study))


@cache
def names_in(package: str) -> Names:
    """Return the printed names of the nearest `names.py`, in a package or above it: of columns
    MEASURES, of values NAMES, of conditions CONDITIONS, of conditions that are not met UNMET."""
    found = None
    while package and not found:
        with suppress(ModuleNotFoundError):  # of a package that is none
            found = find_spec(f"{package}.names") and importlib.import_module(f"{package}.names")
        package = package.rpartition(".")[0]
    tables = ("MEASURES", "NAMES", "CONDITIONS", "UNMET")
    return Names(*(getattr(found, table, {}) for table in tables))
