"""Printed names of a study: of columns in its tables, of values in them, and of conditions.

They are in the file `names.py` of the study's package, or of the paper's or user's package around
it. The file may define

    MEASURES = {"excess": "r(H) − 1"}                       # names of columns
    NAMES = {"optimizer": {"sgd": Name("SGD", Look(BLUE))}} # names and looks of values, by column
    CONDITIONS = {"m == d ** 2": "m = d²"}                  # conditions on rows, in words
    UNMET = {"m == d ** 2": "m is not d²"}                  # that such a condition is not met
    SYMBOLS = {"d": "target width"}                         # what symbols of rules are

Each name in MEASURES and NAMES is a text, or a `Name`: it may have a look, and another name in
rules. A key of NAMES may be a tuple of values, which rules call by one name. In the other tables, a
key `("rank_one", "excess")` is for the study `rank_one` alone.
"""

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from runner.core.catalogue import package_of
from runner.core.errors import InputError
from runner.results.looks import Look, Name, as_name

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


ENDINGS = {
    "_before": " before training",
    "_se": " (standard error)",
    "_sd": " (standard deviation)",
}
"""What endings of a column's name mean, as its printed name says."""


@dataclass(frozen=True)
class Names:
    """Printed names of columns, of values by column, and of conditions.

    unmet: for a condition, the text that it is not met. symbols: what a symbol is, in words.
    """

    columns: Mapping[str, str | Name] = field(default_factory=dict)
    values: Mapping[str, Mapping[Any, str | Name]] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)
    unmet: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)

    def column(self, name: str) -> str:
        """Return the printed name of a column, by default with spaces instead of underscores.

        An ending of a name is printed, too: `<column>_before` is a measurement before training,
        `<column>_se` a standard error, see ENDINGS.
        """
        return self._column(name, lambda found: found.printed)

    def column_in_rule(self, name: str) -> str:
        """Return what a rule calls a column."""
        return self._column(name, lambda found: found.in_rule)

    def of_point(self, name: str) -> str:
        """Return what a rule calls a column of its points: `target width d`."""
        symbol = self.column_in_rule(name)
        return f"{self.symbols[symbol]} {symbol}" if symbol in self.symbols else symbol

    def _column(self, name: str, text: Callable[[Name], str]) -> str:
        ending = next((end for end in ENDINGS if name.endswith(end)), "")
        if (found := self.columns.get(name.removesuffix(ending))) is None:
            return name.replace("_", " ")
        return text(as_name(found)) + ENDINGS.get(ending, "")

    def entry(self, column: str, value: Any) -> Name | None:
        """Return the name and look of a value in a column; None if `names.py` does not list it.

        column: a parameter with a list of values is named like their column: `families`, `family`.
        """
        columns = dict.fromkeys([column, re.sub("ies$", "y", column), column.removesuffix("s")])
        for table in [every.get(name) for name in columns for every in (self.values, SHARED)]:
            if table and (found := table.get(value)) is not None:
                return as_name(found)
        return None

    def value(self, column: str, value: Any) -> str:
        """Return the printed name of a value in a column, in one line.

        A value that is not listed, such as a user's own name, is printed as it is.
        """
        if found := self.entry(column, value):
            return found.printed.replace("\n", " ")
        return f"{value:g}" if isinstance(value, float) else str(value)

    def listed(self, column: str) -> list[Any]:
        """Return the values of a column that have a printed name, without tuples of values."""
        values = [*self.values.get(column, {}), *SHARED.get(column, {})]
        return [value for value in values if not isinstance(value, tuple)]

    def look(self, column: str, value: Any) -> Look | None:
        """Return the look of a value in a column; None if `names.py` lists none."""
        found = self.entry(column, value)
        return found.look if found else None

    def in_rule(self, value: Any, column: str = "") -> str | None:
        """Return what a rule calls a value, or a tuple of values; None if it has no name.

        column: the value's column. Without it, the value may be of any column, as a word in a
        rule's code: the first name that is for rules is used, or else the first name.
        """
        found = self.entry(column, value) if column else next(self._entries(value), None)
        return (None if column else self.for_rules(value)) or (found.in_rule if found else None)

    def for_rules(self, value: Any) -> str | None:
        """Return the first name of a value, of any column, that is for rules; None if none is."""
        return next((name.in_rule for name in self._entries(value) if name.rule), None)

    def _entries(self, value: Any) -> Iterator[Name]:
        found = (self.entry(column, value) for column in [*self.values, *SHARED])
        return filter(None, found)

    def has(self, value: Any) -> bool:
        """Return whether a value has a printed name in some column."""
        return self.in_rule(value) is not None

    def condition(self, code: str) -> str:
        """Return a condition in words, or as a formula if it has no words: `m = d²`.

        code: the condition as an expression of Python.
        """
        pattern = "|".join(map(re.escape, sorted(self.conditions, key=len, reverse=True)))
        parts = re.split(rf"(?<!\w)({pattern})(?!\w)", code) if pattern else [code]
        return "".join(self.conditions.get(part) or self._formula(part) for part in parts)

    def _formula(self, code: str) -> str:
        code = re.sub(r"(['\"])(.*?)\1", lambda match: self.in_rule(match[2]) or match[2], code)
        known = [name for name in self.columns if name.isidentifier()]
        names = {name: self.column_in_rule(name) for name in known}
        code = re.sub(r"\b[^\W\d]\w*", lambda match: names.get(match[0], match[0]), code)
        for pattern, sign in SIGNS.items():
            code = re.sub(pattern, sign, code)
        return code


SIGNS = {
    r"(\S+) == \1\.max\(\)": r"\1 is the largest",
    r"(\S+) == \1\.min\(\)": r"\1 is the smallest",
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
    tables = {"MEASURES": (str, Name), "CONDITIONS": str, "UNMET": str, "SYMBOLS": str}
    columns, conditions, unmet, symbols = (
        _of_study(package.rpartition(".")[2], _texts(module, table, kinds))
        for table, kinds in tables.items()
    )
    return Names(columns, values, conditions, unmet, symbols)


def _texts(module: ModuleType, table: str, kinds: Any) -> Mapping[Any, Any]:
    """Return a table of `names.py` whose entries are of some kinds; raise InputError if not."""
    entries = getattr(module, table, {})
    _check(module, table, entries, Mapping, "a table of texts")
    for key, words in entries.items():
        _check(module, f"{table}[{key!r}]", words, kinds, "a text")
        if isinstance(key, tuple) and len(key) != 2:
            needed = 'a text, or a study with a text, ("my_study", "loss")'
            raise InputError(f"{module.__file__}: a key of {table} is {key!r}: it must be {needed}")
    return entries


def _of_study(study: str, table: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the entries of a table that are for all studies, replaced by those of one study."""
    shared = {key: words for key, words in table.items() if isinstance(key, str)}
    pairs = {key: words for key, words in table.items() if isinstance(key, tuple)}
    return shared | {name: words for (owner, name), words in pairs.items() if owner == study}


def _check(module: ModuleType, where: str, value: Any, kind: Any, needed: str) -> None:
    """Raise InputError if an entry of `names.py` is not of a kind.

    where: the entry, as `NAMES["optimizer"]`. needed: what the entry must be, in words.
    """
    if not isinstance(value, kind):
        raise InputError(f"{module.__file__}: {where} is {value!r:.60}: it must be {needed}")
