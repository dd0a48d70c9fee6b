"""Quantities: the numbers that a claim is about.

In the `quantities.py` of a study a function for each quantity reads the tables of a figure. It
returns a `value` for each replicate (or a value with its standard `error` and `n`, or a `count` of
`n`), and the columns of the point:

    @quantity("test error of {top} / test error of {bottom}", each=("d",), unit="ratio")
    def ratio(tables: Tables, top: str, bottom: str) -> pd.Series:
        \"""Return the ratio of the test errors of two methods in each network.\"""

A call with the other arguments, plain data, returns a `Quantity`. With a comparison it is the rule
of a claim: `ratio("sgd", "construction").above(1)`.
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
"""Columns of a quantity beside `value`, by the kind of numbers."""

PLAIN = str | int | float | bool | tuple | None
"""Types of a quantity's arguments: they can be printed and hashed."""


@dataclass(frozen=True)
class Quantity:
    """A number that claims judge: a function of the tables, together with all its other arguments.

    - name: as rules print it; `{argument}` is replaced by an argument in words.
    - function: called as `function(tables, **arguments)`.
    - each: the columns that make up a point.
    - unit: the kind of the estimates.
    - numbers: `replicates`, `estimates` or `counts`.
    - needs: for a column, how many different values it must have.
    """

    name: str
    function: Callable[..., pd.DataFrame | pd.Series]
    arguments: Mapping[str, Any]
    each: tuple[str, ...]
    unit: Unit
    numbers: Numbers
    needs: Mapping[str, int]
    of: str = "replicates"
    """The plural of what the number n of the test counts."""
    assumed: str = ""
    """A condition on measured columns. Rows that do not meet it are excluded."""

    def __str__(self) -> str:
        fields = {field for _, field, _, _ in string.Formatter().parse(self.name) if field}
        printed = fields | {"where"}
        defaults = inspect.signature(self.function).parameters
        words = {key: _in_words(value, self.names) for key, value in self.arguments.items()}
        others = [
            words[key] if value in self.names.values else f"{self.names.column(key)} = {words[key]}"
            for key, value in self.arguments.items()
            if key not in printed and value != defaults[key].default
        ]
        return self.name.format(**words) + (f" ({', '.join(others)})" if others else "")

    @property
    def names(self) -> Names:
        """Return the printed names of the quantity's paper.

        The dictionary PRINTED in the function's module replaces some of them.
        """
        module = self.function.__module__
        printed = getattr(sys.modules[module], "PRINTED", {})
        return names_in(module.rpartition(".")[0]).with_others(printed)

    @property
    def place(self) -> str:
        """Return in words at which points a rule is tested: ` at every d where m = d²`."""
        *first, last = map(self.names.column, self.each or ("",))
        points = f" at every {', '.join(first)}{' and ' if first else ''}{last}" if last else ""
        conditions = (str(self.arguments.get("where", "")), self.assumed)
        where = " and ".join(filter(None, conditions))
        return points + (f" where {self.names.condition(where)}" if where else "")

    def measure(self, tables: Tables) -> pd.DataFrame:
        """Return a row for each number, in a column `value`, with the columns of the point.

        Rows that do not meet the assumption are included. Raises NoRows if there are none.
        """
        rows = self.function(tables, **self.arguments)
        if isinstance(rows, pd.Series):
            rows = rows.rename("value").reset_index()
        extra = {"error", "n", "count"} - NUMBERS[self.numbers]  # columns of the study's table
        rows = rows.drop(columns=list(extra), errors="ignore")
        if self.numbers == "counts":
            rows = rows.assign(value=rows["count"] / rows["n"])
        return nonempty(rows, str(self))

    def given(self, condition: str) -> "Quantity":
        """Return the quantity under an assumption on measured columns, as "numerical_rank == d".

        The fraction of measurements that do not meet it is reported. Conditions on sizes and
        methods belong in the argument `where`.
        """
        return replace(self, assumed=condition)

    def assuming(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that meet the assumption; all rows if the quantity has none.

        Raises NoRows if no row meets the assumption.
        """
        if not self.assumed:
            return rows
        met = self.names.condition(self.assumed)
        return nonempty(rows.query(self.assumed), f"measurement where {met}")

    @property
    def unmet(self) -> str:
        """Return in words that the assumption is not met: `the linear system lacks full rank`."""
        words = self.names.unmet.get(self.assumed)
        return words or f"it is not true that {self.names.condition(self.assumed)}"

    def above(self, bound: float | str) -> "Rule":
        """Return the rule that the quantity is above a bound. See `evidence.Above`."""
        return Rule(self, Above(bound))

    def below(self, bound: float | str) -> "Rule":
        """Return the rule that the quantity is below a bound. See `evidence.Below`."""
        return Rule(self, Below(bound))

    def within(self, margin: float, of: float = 0.0) -> "Rule":
        """Return the rule that the quantity differs from `of` by less than `margin`."""
        return Rule(self, Within(margin, of))

    def always(self, relation: Literal["<", "<=", "=", ">=", ">"], bound: float = True) -> "Rule":
        """Return the rule that every number satisfies a relation, as `always("<=", 1)`."""
        return Rule(self, Always(relation, bound))


def _in_words(value: Any, names: Names) -> str:
    if isinstance(value, tuple):
        return names.values.get(value) or ", ".join(_in_words(part, names) for part in value)
    if not isinstance(value, str):
        return number(value) if isinstance(value, float) else str(value)
    return names.column(value) if value in names.columns else names.value(value)


@dataclass(frozen=True)
class Rule:
    """A quantity and the comparison that it must satisfy, the printed rule of a claim."""

    quantity: Quantity
    comparison: Comparison

    def __str__(self) -> str:
        return f"{self.quantity} is {self.comparison}{self.quantity.place}"

    def places(self, rows: pd.DataFrame) -> set[str]:
        """Return the points of some rows in words, as `d = 5`; empty if the quantity has one point.

        rows: the result of `Quantity.measure`.
        """
        columns = [*self.quantity.each]
        points = rows[columns].drop_duplicates().itertuples(index=False) if columns else ()
        return {self._point(values) for values in points}

    def _point(self, values: Iterable[Any]) -> str:
        names, pairs = self.quantity.names, zip(self.quantity.each, values, strict=True)
        return ", ".join(_place(symbol, value, names) for symbol, value in pairs)

    def points(self, rows: pd.DataFrame) -> Iterator[Evidence]:
        """Yield the result of the test at each point.

        rows: the result of `Quantity.measure` or `Quantity.assuming`.
        """
        columns, name = [*self.quantity.each], str(self.quantity)
        groups = rows.groupby(columns, dropna=False) if columns else [((), rows)]
        for values, group in groups:
            point, evidence = self._point(values), self.comparison.evidence(group)
            unit = evidence.unit if evidence.unit == "share" else self.quantity.unit
            yield replace(evidence, unit=unit, point=point, quantity=name, of=self.quantity.of)


def _place(symbol: str, value: Any, names: Names) -> str:
    """Return a value of a point in words: `d = 5`, or a name alone."""
    if isinstance(value, str):
        return names.value(value)
    return f"{names.column(symbol)} = {'∞' if np.isinf(value) else number(value)}"


def quantity(
    name: str,
    *,
    each: tuple[str, ...] = (),
    unit: Unit = "value",
    numbers: Numbers = "replicates",
    needs: Mapping[str, int] | None = None,
    of: str = "",
) -> Callable[[Callable[..., pd.DataFrame | pd.Series]], Callable[..., Quantity]]:
    """Return a decorator that turns a function from tables to numbers into a quantity.

    Calling the decorated function without the tables returns a `Quantity`.

    - name: as rules print it; `{argument}` is replaced by an argument in words.
    - each: the columns that make up a point; the rule prints "at every d".
    - unit: the kind of the estimates.
    - numbers: `replicates`, `estimates` or `counts`.
    - needs: for a column, how many different values it must have.
    - of: the plural of what n counts; by default the paper's word for replicates.

    A call with an argument that is not plain data raises TypeError.
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
            return Quantity(name, function, arguments, each, unit, numbers, needs or {}, counted)

        del bind.__wrapped__  # `bind` has another signature
        return bind

    return make
