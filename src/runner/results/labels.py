"""Printed names of a study: of columns in its tables, of values in them, and of conditions."""

import importlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

from runner.core.catalogue import package_of
from runner.core.choices import names_images


@dataclass(frozen=True)
class Names:
    """Printed names of columns, of values in them, and of conditions on them.

    unmet: for a condition, the text that it is not met. A name without an entry is printed as it
    is, with spaces instead of underscores.
    """

    columns: Mapping[str, str]
    values: Mapping[Any, str]
    conditions: Mapping[str, str]
    unmet: Mapping[str, str]

    def with_others(self, printed: Mapping[Any, str]) -> "Names":
        """Return a copy of these names in which the entries of `printed` replace older entries."""
        texts = {name: words for name, words in printed.items() if isinstance(name, str)}
        columns, conditions = {**self.columns, **texts}, {**self.conditions, **texts}
        return Names(columns, {**self.values, **printed}, conditions, self.unmet)

    def column(self, name: str) -> str:
        """Return the printed name of a column.

        A name `<column>_before` is a measurement before training; its printed name says this.
        """
        label = self.columns.get(name.removesuffix("_before"))
        if label and name.endswith("_before"):
            label += " before training"
        return label or name.replace("_", " ")

    def value(self, value: Any) -> str:
        """Return the printed name of a value in a column, for example of a method.

        The name of a file of images stays as it is.
        """
        if names_images(value):
            return str(value)
        text = f"{value:g}" if isinstance(value, float) else str(value)
        words = text.replace("_", " ")
        return (self.values.get(text) or self.values.get(words, words)).replace("\n", " ")

    def condition(self, code: str) -> str:
        """Return a condition in words, or as a formula if it has no words: `m = d²`.

        code: the condition as an expression of Python.
        """
        pattern = "|".join(map(re.escape, sorted(self.conditions, key=len, reverse=True)))
        parts = re.split(rf"(?<!\w)({pattern})(?!\w)", code) if pattern else [code]
        return "".join(self.conditions.get(part) or self._formula(part) for part in parts)

    def _formula(self, code: str) -> str:
        code = re.sub(r"(['\"])(.*?)\1", lambda match: self.value(match[2]), code)
        names = {name: printed for name, printed in self.columns.items() if name.isidentifier()}
        code = re.sub(r"\b[^\W\d]\w*", lambda match: names.get(match[0], match[0]), code)
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
"""How the code of a condition is printed: regular expressions and replacements, applied in this
order."""


def names_of(study: str) -> Names:
    """Return the printed names of columns, values and conditions in a study's tables."""
    return names_in(package_of(study))


def names_module(package: str) -> str:
    """Return the full name of the module `names` of a package; empty if there is none.

    If the package has no such module, the nearest package above it that has one is used.
    """
    while package:
        with suppress(ModuleNotFoundError):  # `package` is a module, not a package
            if find_spec(f"{package}.names"):
                return f"{package}.names"
        package = package.rpartition(".")[0]
    return ""


@cache
def names_in(package: str) -> Names:
    """Return the printed names in the module `names_module(package)`.

    The module may define MEASURES (names of columns), NAMES (of values), CONDITIONS, and UNMET
    (texts for conditions that are not met). If there is no module, there are no printed names.
    """
    name = names_module(package)
    module = importlib.import_module(name) if name else None
    tables = ("MEASURES", "NAMES", "CONDITIONS", "UNMET")
    return Names(*(getattr(module, table, {}) for table in tables))
