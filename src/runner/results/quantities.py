"""Quantities: what a claim is about, as numbers that a comparison judges.

In the `quantities.py` of a study a function measures each, from the tables of a figure to a tidy
frame: a `value` for each replicate (or with its standard `error` and `n`; or a `count` of `n`) and
the columns of the point that it is at. The first line of its docstring is what the quantity is
called wherever a rule is printed:

    @quantity(each=("d",), unit="ratio")
    def ratio(tables: Tables, top: str, bottom: str) -> pd.Series:
        \"""{top} / {bottom}\"""

Called with its other arguments, which are plain data, it is a `Quantity`, and with a comparison
that is the rule of a claim: `ratio("sgd", "construction").above(1)`.
"""

import inspect
import string
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal

import numpy as np
import pandas as pd

from runner.core.papers import replicates_in
from runner.results.evidence import (
    Above,
    Always,
    Below,
    Comparison,
    Evidence,
    Unit,
    Within,
    number,
)
from runner.results.labels import Names, names_in
from runner.results.rows import Tables, nonempty

Numbers = Literal["replicates", "estimates", "counts"]

NUMBERS = {"replicates": set(), "estimates": {"error", "n"}, "counts": {"count", "n"}}
"""Columns of a quantity next to its `value`, by the kind of its numbers."""

PLAIN = str | int | float | bool | tuple | None
"""What an argument of a quantity may be: what can be printed, and fingerprinted."""


@dataclass(frozen=True)
class Quantity:
    """A function from tables to numbers, and its other arguments."""

    function: Callable[..., pd.DataFrame | pd.Series]
    arguments: Mapping[str, Any]
    each: tuple[str, ...]
    unit: Unit
    numbers: Numbers
    needs: Mapping[str, int]
    of: str = "replicates"
    """What is counted, where the number of them is said."""
    assumed: str = ""
    """A condition on the results: on the columns of its frame."""

    def __str__(self) -> str:
        name = (self.function.__doc__ or "").split("\n")[0].rstrip(".")
        said = {field for _, field, _, _ in string.Formatter().parse(name) if field} | {"where"}
        defaults = inspect.signature(self.function).parameters
        words = {key: _in_words(value, self.names) for key, value in self.arguments.items()}
        others = [
            words[key] if value in self.names.values else f"{self.names.column(key)} = {words[key]}"
            for key, value in self.arguments.items()
            if key not in said and value != defaults[key].default
        ]
        return name.format(**words) + (f" ({', '.join(others)})" if others else "")

    @property
    def names(self) -> Names:
        """The printed names of its paper, and before them those in PRINTED of its module."""
        module = self.function.__module__
        printed = getattr(sys.modules[module], "PRINTED", {})
        return names_in(module.rpartition(".")[0]).with_others(printed)

    @property
    def place(self) -> str:
        """What a rule says of where it is measured: ` at every d where m = d²`."""
        *first, last = map(self.names.column, self.each or ("",))
        every = f" at every {', '.join(first)}{' and ' if first else ''}{last}" if last else ""
        conditions = (str(self.arguments.get("where", "")), self.assumed)
        where = " and ".join(filter(None, conditions))
        return every + (f" where {self.names.condition(where)}" if where else "")

    def measure(self, tables: Tables) -> pd.DataFrame:
        """Return all numbers, also where the assumption is not met. Raises NoRows without any."""
        found = self.function(tables, **self.arguments)
        rows = found.rename("value").reset_index() if isinstance(found, pd.Series) else found
        others = {"error", "n", "count"} - NUMBERS[self.numbers]  # a table may have such columns
        rows = rows.drop(columns=list(others), errors="ignore")
        if self.numbers == "counts":
            rows = rows.assign(value=rows["count"] / rows["n"])
        return nonempty(rows, str(self))

    def given(self, condition: str) -> "Quantity":
        """Return the same where a condition on the results is met, as "fits" or "numerical_rank ==
        d".

        Excluded measurements are counted. Conditions on sizes and methods belong in `where`.
        """
        return replace(self, assumed=condition)

    def assuming(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the numbers that meet the condition. Raises NoRows where none does."""
        if not self.assumed:
            return rows
        met = self.names.condition(self.assumed)
        return nonempty(rows.query(self.assumed), f"measurement where {met}")

    @property
    def unmet(self) -> str:
        """What is so where the assumption is not met: `the linear system lacks full rank`."""
        known = self.names.unmet.get(self.assumed)
        return known or f"it is not true that {self.names.condition(self.assumed)}"

    def above(self, bound: float | str) -> "Rule":
        """Return the rule that replicates, or an estimate, are above a bound."""
        return Rule(self, Above(bound))

    def below(self, bound: float | str) -> "Rule":
        """Return the rule that they are below it."""
        return Rule(self, Below(bound))

    def within(self, margin: float, of: float = 0.0) -> "Rule":
        """Return the rule that they differ from a number by less than a margin."""
        return Rule(self, Within(margin, of))

    def always(self, relation: Literal["<", "<=", "=", ">=", ">"], bound: float = True) -> "Rule":
        """Return the rule that every number is so: `always("<=", 1)`."""
        return Rule(self, Always(relation, bound))


def _in_words(value: Any, names: Names) -> str:
    if isinstance(value, tuple):
        return names.values.get(value) or ", ".join(_in_words(each, names) for each in value)
    if not isinstance(value, str):
        return number(value) if isinstance(value, float) else str(value)
    return names.column(value) if value in names.columns else names.value(value)


@dataclass(frozen=True)
class Rule:
    """A quantity and what is said of it: what a claim is judged by, and what is printed."""

    quantity: Quantity
    comparison: Comparison

    def __str__(self) -> str:
        return f"{self.quantity} is {self.comparison}{self.quantity.place}"

    def places(self, rows: pd.DataFrame) -> set[str]:
        """Return the points of the quantity's frame, in words; none where it has one point."""
        each = list(self.quantity.each)
        points = rows[each].drop_duplicates().itertuples(index=False) if each else ()
        return {self._point(values) for values in points}

    def _point(self, values: Iterable[Any]) -> str:
        names = self.quantity.names
        each = zip(self.quantity.each, values, strict=True)
        return ", ".join(_place(symbol, value, names) for symbol, value in each)

    def points(self, rows: pd.DataFrame) -> Iterator[Evidence]:
        """Yield the evidence at each point of the quantity's frame."""
        each = self.quantity.each
        groups = rows.groupby(list(each), dropna=False) if each else [((), rows)]
        for values, group in groups:
            place = self._point(values)
            found = self.comparison.evidence(group)
            unit = found.unit if found.unit == "share" else self.quantity.unit
            name, of = str(self.quantity), self.quantity.of
            yield replace(found, unit=unit, point=place, quantity=name, of=of)


def _place(symbol: str, value: Any, names: Names) -> str:
    """`d = 5`; of a name alone, the name."""
    if isinstance(value, str):
        return names.value(value)
    return f"{names.column(symbol)} = {'∞' if np.isinf(value) else number(value)}"


def quantity(
    *,
    each: tuple[str, ...] = (),
    unit: Unit = "value",
    numbers: Numbers = "replicates",
    needs: Mapping[str, int] | None = None,
    of: str = "",
) -> Callable[[Callable[..., pd.DataFrame | pd.Series]], Callable[..., Quantity]]:
    """Make the function below a quantity.

    each: the columns of the point that it is measured at, of which a rule says "at every d". unit:
    what they are in; numbers: whether each is a replicate's, an estimate or a count. needs: how
    many different values of a column it takes: an exponent in d is none of two widths. of: what is
    counted, where that is not what the paper's replicates are.
    """

    def make(function: Callable[..., pd.DataFrame | pd.Series]) -> Callable[..., Quantity]:
        signature = inspect.signature(function)

        @wraps(function, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
        def bind(*positional: Any, **named: Any) -> Quantity:
            bound = signature.bind(None, *positional, **named)
            bound.apply_defaults()
            arguments = dict(list(bound.arguments.items())[1:])
            if wrong := [name for name, value in arguments.items() if not isinstance(value, PLAIN)]:
                raise TypeError(f"{function.__name__}: {', '.join(wrong)} is no plain data")
            counted = of or replicates_in(function.__module__)
            return Quantity(function, arguments, each, unit, numbers, needs or {}, counted)

        del bind.__wrapped__  # what is called has another signature
        return bind

    return make
