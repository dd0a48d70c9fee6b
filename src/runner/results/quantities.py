"""Quantities: the numbers that a claim is about.

The file `quantities.py` of a study has a function for each quantity. It reads the tables of a
figure. It returns a `value` for each replicate, or a value with its standard `error` and `n`, or a
`count` of `n`. It also returns the columns of the point:

    @quantity("the test error of {top} is {} that of {bottom}", each=("d",), unit="ratio")
    def ratio(tables: Tables, top: str, bottom: str) -> pd.Series:
        \"""Return the ratio of the test errors of two methods in each network.\"""

The decorated function is called without the tables, and returns a `Quantity`. With a comparison,
the quantity is the rule of a claim: `ratio("sgd", "construction").above(1)`.
"""

import inspect
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Literal

import numpy as np
import pandas as pd

from runner.core.papers import replicates_in
from runner.results.evidence import (
    ERROR,
    Above,
    Always,
    Below,
    Comparison,
    Evidence,
    Unit,
    Within,
    number,
    replicates_needed,
)
from runner.results.labels import Names, names_in
from runner.results.rows import Tables, nonempty

Numbers = Literal["replicates", "estimates", "counts"]

NUMBERS = {"replicates": set(), "estimates": {"error", "n"}, "counts": {"count", "n"}}
"""The columns of a quantity in addition to `value`, by the kind of its numbers."""

TESTS = {
    "replicates": "sign test",
    "estimates": "t test",
    "counts": "binomial test",
}
"""The test by which numbers are compared with a bound, by the kind of the numbers."""

PLAIN = str | int | float | bool | tuple | None
"""The types that arguments of a quantity may have. They can be printed and hashed."""


@dataclass(frozen=True)
class Quantity:
    """A number that claims judge: a function of the tables, with all its other arguments.

    - name: the printed name; `{argument}` in it is replaced by the argument in words. It may be
      a sentence about a ratio, "the error of {top} is {} that of {bottom}", with a place `{}` for
      the number.
    - function: called as `function(tables, **arguments)`.
    - each: the columns that make up a point, such as the width; the quantity is judged at each
      point.
    - unit: what the numbers are: a ratio, a difference, an exponent and so on.
    - numbers: `replicates` (a value for each), `estimates` (with an error) or `counts`.
    - needs: how many different values a column must have, by column.
    """

    name: str
    function: Callable[..., pd.DataFrame | pd.Series]
    arguments: Mapping[str, Any]
    each: tuple[str, ...]
    unit: Unit
    numbers: Numbers
    needs: Mapping[str, int]
    of: str = "replicates"
    """What the number n of the test counts, in the plural."""
    assumed: str = ""
    """A condition on measured columns. Rows that do not meet the condition are excluded."""
    is_log2: bool = False
    """Whether the numbers are binary logarithms of ratios. Texts then have the ratios."""

    def __str__(self) -> str:
        return self.text.partition(" is {}")[0]

    @property
    def text(self) -> str:
        """Return the printed name with the arguments in words; a place for the number stays."""
        return self.text_with(self.words)

    def text_with(self, words: Mapping[str, str]) -> str:
        """Return the printed name. words: each argument in words."""
        fields = {field for _, field, _, _ in string.Formatter().parse(self.name) if field}
        printed = fields | {"where"}
        defaults = inspect.signature(self.function).parameters
        others = [
            words[key]
            if self.names.has(value)
            else f"{self.names.column_in_rule(key)} = {words[key]}"
            for key, value in self.arguments.items()
            if key not in printed and value != defaults[key].default
        ]
        return self.name.format("{}", **words) + (f" ({', '.join(others)})" if others else "")

    @property
    def words(self) -> dict[str, str]:
        """Return each argument in words."""
        return {key: _in_words(value, self.names, key) for key, value in self.arguments.items()}

    @property
    def names(self) -> Names:
        """Return the printed names that the quantity uses: those of its study or paper."""
        return names_in(self.function.__module__.rpartition(".")[0])

    @property
    def conditions(self) -> list[str]:
        """Return the conditions on rows, as code: the argument `where` and the assumption."""
        code = (str(self.arguments.get("where", "")), self.assumed)
        return list(filter(None, code))

    def measure(self, tables: Tables) -> pd.DataFrame:
        """Return a table with a row for each number.

        The number is in the column `value`; other columns are the point and, if there are any, the
        error and n. Rows that do not meet the quantity's assumption are included. Raises NoRows if
        there are no rows.
        """
        rows = self.function(tables, **self.arguments)
        if isinstance(rows, pd.Series):
            rows = rows.rename("value").reset_index()
        extra = {"error", "n", "count"} - NUMBERS[self.numbers]  # columns of the study's table
        rows = rows.drop(columns=list(extra), errors="ignore")
        if self.numbers == "counts":
            rows = rows.assign(value=rows["count"] / rows["n"])
        return nonempty(rows, f"measurements: {self}")

    def given(self, condition: str) -> "Quantity":
        """Return the quantity under an assumption on measured columns: "numerical_rank == d".

        Measurements that do not meet the assumption are excluded, and their fraction is reported.
        Conditions on sizes and methods belong in the argument `where` instead.
        """
        return replace(self, assumed=condition)

    def assuming(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that meet the quantity's assumption; all rows if it has none.

        rows: the result of `measure`. Raises NoRows if no row meets the assumption.
        """
        if not self.assumed:
            return rows
        met = self.names.condition(self.assumed)
        return nonempty(rows.query(self.assumed), f"measurement where {met}")

    @property
    def unmet(self) -> str:
        """Return a text that says how the assumption fails: `the linear system lacks full rank`."""
        words = self.names.unmet.get(self.assumed)
        return words or f"it is not true that {self.names.condition(self.assumed)}"

    def above(self, bound: float | str) -> "Rule":
        """Return the rule that the quantity is above a bound, see `evidence.Above`."""
        return Rule(self, Above(bound))

    def below(self, bound: float | str) -> "Rule":
        """Return the rule that the quantity is below a bound, see `evidence.Below`."""
        return Rule(self, Below(bound))

    def within(self, margin: float, of: float = 0.0) -> "Rule":
        """Return the rule that the quantity differs from `of` by less than `margin`."""
        return Rule(self, Within(margin, of))

    def always(self, relation: Literal["<", "<=", "=", ">=", ">"], bound: float = True) -> "Rule":
        """Return the rule that every number satisfies a relation: `always("<=", 1)`."""
        return Rule(self, Always(relation, bound))


def _in_words(value: Any, names: Names, column: str) -> str:
    """Return an argument of a quantity in words.

    column: the argument's name. It may be a column of the table, which has the value.
    """
    if isinstance(value, tuple):
        parts = (_in_words(part, names, column) for part in value)
        return names.in_rule(value) or ", ".join(parts)
    if not isinstance(value, str):
        return number(value) if isinstance(value, float) else str(value)
    if value in names.columns:
        return names.column_in_rule(value)
    return names.in_rule(value, column) or names.in_rule(value) or value.replace("_", " ")


@dataclass(frozen=True)
class Rule:
    """The rule of a claim: a quantity, and a comparison that it must satisfy at each point."""

    quantity: Quantity
    comparison: Comparison

    @property
    def test(self) -> str:
        """Return the name of the statistical test, with its error: `sign test, 5 %`."""
        error = f"{100 * ERROR:g} %"
        if isinstance(self.comparison, Always):
            enough = f"at least {replicates_needed()} {self.quantity.of}"
            return f"one counterexample refutes it; without one, it holds if {enough} were tested"
        sides = " on both sides" if isinstance(self.comparison, Within) else ""
        return f"{TESTS[self.quantity.numbers]}{sides}, {error}"

    @property
    def shown(self) -> Comparison:
        """Return the comparison as texts have it: of ratios instead of their logarithms."""
        compared = self.comparison
        if not self.quantity.is_log2 or isinstance(compared, Always):
            return compared
        if isinstance(compared, Within):
            low, high = (2 ** (compared.of + side * compared.margin) for side in (-1, 1))
            return Within((high - low) / 2, (high + low) / 2)
        return replace(compared, bound=2 ** float(compared.bound))

    def places(self, rows: pd.DataFrame) -> set[str]:
        """Return the points in some rows as texts, such as `d = 5`.

        The set is empty if the quantity has a single point. rows: the result of `Quantity.measure`.
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
        columns, comparison = [*self.quantity.each], self.comparison
        quantity, text = self.quantity, self.quantity.text
        groups = rows.groupby(columns, dropna=False) if columns else [((), rows)]
        for values, group in groups:
            point, evidence = self._point(values), comparison.evidence(group)
            unit = evidence.unit if evidence.unit == "share" else self.quantity.unit
            extreme = comparison.extreme(group) if isinstance(comparison, Always) else ""
            bound = str(self.shown)
            if isinstance(comparison, Above | Below) and isinstance(comparison.bound, str):
                bound += f" = {number(evidence.bound, 3)}"
            about = replace(evidence, quantity=text, of=quantity.of, compared=bound)
            yield replace(about, unit=unit, point=point, extreme=extreme, is_log2=quantity.is_log2)


def _place(symbol: str, value: Any, names: Names) -> str:
    """Return a value of a point in words: `d = 5`, or a name alone.

    A quantity may call a column otherwise than the table; then the name for rules is used.
    """
    if isinstance(value, str):
        return names.in_rule(value, symbol) or names.for_rules(value) or value
    return f"{names.of_point(symbol)} = {'∞' if np.isinf(value) else number(value)}"


def quantity(
    name: str | Callable[..., str],
    *,
    each: tuple[str, ...] = (),
    unit: Unit = "value",
    numbers: Numbers = "replicates",
    needs: Mapping[str, int] | None = None,
    of: str = "",
    log2: bool = False,
) -> Callable[[Callable[..., pd.DataFrame | pd.Series]], Callable[..., Quantity]]:
    """Return a decorator that makes a quantity of a function from tables to numbers.

    The decorated function is called with all arguments except the tables, and returns a `Quantity`.

    - name: the printed name, see `Quantity`, or a function that returns it for these arguments.
    - each: the columns that make up a point; the printed rule says "for every d".
    - unit: what the numbers are: a ratio, a difference, an exponent and so on.
    - numbers: `replicates` (a value for each), `estimates` (with an error) or `counts`.
    - needs: how many different values a column must have, by column.
    - of: what n counts, in the plural; by default the paper's word for replicates.
    - log2: whether the numbers are binary logarithms of ratios; texts then have the ratios.

    The decorated function raises TypeError if an argument is not a text, a number, a truth value,
    None or a tuple.
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
            printed = name if isinstance(name, str) else name(**arguments)
            kept = Quantity(printed, function, arguments, each, unit, numbers, needs or {}, counted)
            return replace(kept, is_log2=log2)

        del bind.__wrapped__  # `bind` has another signature
        return bind

    return make
