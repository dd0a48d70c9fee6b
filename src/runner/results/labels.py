"""Printed names of a study: of columns in its tables, of values in them, and of conditions.

They are in the file `names.py` of the study's package, or of the paper's or user's package around
it. The file may define

    MEASURES = {"excess": "r(H) − 1"}                       # names of columns
    NAMES = {"optimizer": {"sgd": Name("SGD", Look(BLUE))}} # names and looks of values, by column
    CONDITIONS = {"m == d ** 2": "m = d²"}                  # conditions on rows, in words
    UNMET = {"m == d ** 2": "m is not d²"}                  # that such a condition is not met

Each name in NAMES is a text, or a `Name`, which may have a look.
"""

import importlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from runner.core.catalogue import package_of
from runner.core.errors import InputError
from runner.results.looks import Look, Name

DATASETS = {
    "digits": "digits",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "random_pixels": "random pixels",
    "gaussian": "Gaussian",
}
"""Printed names of datasets."""

SHARED: dict[str, dict[Any, str | Name]] = {
    "data": {**DATASETS},
    "activation": {"relu": "ReLU", "leaky_relu": "leaky ReLU", "gelu": "GELU"},
    "architecture": {"vgg19": "VGG-19", "resnet50": "ResNet-50"},
    "optimizer": {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW"},
}
"""Printed names of values that studies of several papers have. A `names.py` may replace them."""


@dataclass(frozen=True)
class Names:
    """Printed names of columns, of values by column, and of conditions.

    unmet: for a condition, the text that it is not met. others: what the rules of one study call
    columns, values or conditions instead.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[Any, str | Name]] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    unmet: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[Any, str] = field(default_factory=dict)

    def with_others(self, printed: Mapping[Any, str]) -> "Names":
        """Return a copy of these names in which the entries of `printed` replace older entries."""
        texts = {name: words for name, words in printed.items() if isinstance(name, str)}
        columns, conditions = {**self.columns, **texts}, {**self.conditions, **texts}
        return Names(columns, self.values, conditions, self.unmet, printed)

    def column(self, name: str) -> str:
        """Return the printed name of a column, by default with spaces instead of underscores.

        A name `<column>_before` is a measurement before training; its printed name says this.
        """
        label = self.columns.get(name.removesuffix("_before"))
        if label and name.endswith("_before"):
            label += " before training"
        return label or name.replace("_", " ")

    def entry(self, column: str, value: Any) -> Name | None:
        """Return the name and look of a value in a column; None if `names.py` does not list it.

        column: a parameter with a list of values is named like their column: `methods`, `method`.
        """
        columns = dict.fromkeys([column, column.removesuffix("s")])
        for table in [every.get(name) for name in columns for every in (self.values, SHARED)]:
            if table and (found := table.get(value)) is not None:
                return Name(found) if isinstance(found, str) else found
        return None

    def value(self, column: str, value: Any) -> str:
        """Return the printed name of a value in a column, in one line.

        A value that is not listed, such as a user's own name, is printed as it is.
        """
        if found := self.entry(column, value):
            return found.printed.replace("\n", " ")
        return f"{value:g}" if isinstance(value, float) else str(value)

    def listed(self, column: str) -> list[Any]:
        """Return the values of a column that have a printed name."""
        return [*self.values.get(column, {}), *SHARED.get(column, {})]

    def look(self, column: str, value: Any) -> Look | None:
        """Return the look of a value in a column; None if `names.py` lists none."""
        found = self.entry(column, value)
        return found.look if found else None

    def in_rule(self, value: str, column: str = "") -> str:
        """Return what a rule calls a value.

        column: the value's column. Without it, the value is a word in a rule's code, whose column
        is not known: the first name of this value in any column is used.
        """
        if name := self.others.get(value) or self.others.get(value.replace("_", " ")):
            return name.replace("\n", " ")
        if column:
            return self.value(column, value)
        found = (self.entry(column, value) for column in [*self.values, *SHARED])
        words = next(filter(None, found), Name(value.replace("_", " "))).printed
        return words.replace("\n", " ")

    def has(self, value: Any) -> bool:
        """Return whether a value has a printed name in some column, or in the rules of a study."""
        listed = (value in table for table in [*self.values.values(), *SHARED.values()])
        return value in self.others or any(listed)

    def condition(self, code: str) -> str:
        """Return a condition in words, or as a formula if it has no words: `m = d²`.

        code: the condition as an expression of Python.
        """
        pattern = "|".join(map(re.escape, sorted(self.conditions, key=len, reverse=True)))
        parts = re.split(rf"(?<!\w)({pattern})(?!\w)", code) if pattern else [code]
        return "".join(self.conditions.get(part) or self._formula(part) for part in parts)

    def _formula(self, code: str) -> str:
        code = re.sub(r"(['\"])(.*?)\1", lambda match: self.in_rule(match[2]), code)
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


def upper(text: str) -> str:
    """Return a text that begins with a capital, unless it begins with a symbol or a typed name.

    Symbols such as r, α and r(H), and names such as `my_file.npz`, stay as they are.
    """
    first = text.partition(" ")[0].rstrip(",;:.")
    is_word = re.fullmatch(r"a|[A-Za-z][A-Za-z'’/-]+", first)
    return text[:1].upper() + text[1:] if is_word else text


def names_of(study: str) -> Names:
    """Return the printed names of columns, values and conditions in a study's tables.

    Raises InputError if `names.py` has another form than the module's docstring says.
    """
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

    If there is none, there are no printed names. Raises InputError as `names_of` does.
    """
    if not (name := names_module(package)):
        return Names()
    module = importlib.import_module(name)
    values = getattr(module, "NAMES", {})
    _check(module, "NAMES", values, Mapping, 'a table for each column, {"optimizer": {...}}')
    for column, table in values.items():
        where, name = f'NAMES["{column}"]', 'Name("SGD", Look(BLUE))'
        _check(module, where, table, Mapping, f'a table of names, {{"sgd": {name}}}')
        for value, entry in table.items():
            needed = f"a text or a Name, as {name}"
            _check(module, f"{where}[{value!r}]", entry, (str, Name), needed)
    texts = [getattr(module, table, {}) for table in ("MEASURES", "CONDITIONS", "UNMET")]
    for table, entries in zip(("MEASURES", "CONDITIONS", "UNMET"), texts, strict=True):
        _check(module, table, entries, Mapping, "a table of texts")
        for key, words in entries.items():
            _check(module, f"{table}[{key!r}]", words, str, "a text")
    return Names(texts[0], values, *texts[1:])


def _check(module: ModuleType, where: str, value: Any, kind: Any, needed: str) -> None:
    """Raise InputError if an entry of `names.py` is not of a kind.

    where: the entry, as `NAMES["optimizer"]`. needed: what the entry must be, in words.
    """
    if not isinstance(value, kind):
        raise InputError(f"{module.__file__}: {where} is {value!r:.60}: it must be {needed}")
