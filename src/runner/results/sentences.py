"""Sentences about rules and their measured numbers, made from the same objects that decide.

A quantity is printed as a phrase, "R² of ‖x‖ regressed on the first layer's output". A rule adds
the bound, "… is above 0.5 for every d", and a verdict the number, "…: 0.79 (bound: above 0.5; 8
networks; d = 5)". The printed name of a ratio may be a sentence with a place for the number, "the
error of SGD is {} that of the construction": a rule then says "larger than" or "more than 2 times",
and a verdict "17.8 times".
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from runner.results.evidence import Always, Evidence, Verdict, number, short
from runner.results.quantities import Quantity, Rule

ROUNDING = 1e-12
"""A number below this fraction of the largest one and of the bound is printed as 0.

It is a rounding error. But a ratio of 10 is none, even beside a ratio of 1e13.
"""

TIMES = {"above 1": "larger than", "below 1": "smaller than"}
"""How a bound on a ratio is said in a sentence; others are `more than 2 times`."""

CASES: dict[Verdict, str] = {
    "holds": " in the closest case",
    "undecided": " in the closest case",
    "fails": " in the clearest case",
}
"""Which of several points a number is from."""

LEAST_CERTAIN = " in the least certain case"
"""The same, if another point is nearer to its bound, but more certain."""

NUMBER = r"−?\d[\d.]*(?:e−?\d+)?"

BEFORE = "|".join(("at", "by", "for", "from", "in", "of", "on", "than", "with"))
"""Words that are repeated before each item of a list: `of A and of B`."""

STARTS = "after|at|before|in|over|with"
"""First words of what several parts of a rule may share: `at the largest depth, …`."""


@dataclass(frozen=True)
class _Part:
    """A part of a printed rule: a quantity's text, its bounds, and the points and conditions."""

    text: str
    bound: str
    place: str

    def __str__(self) -> str:
        if "{}" in self.text:
            return self.text.replace("{}", self.bound)
        return f"{self.text} is {self.bound}"


def rules_in_words(rules: Sequence[Rule]) -> str:
    """Return in one sentence what rules compare, where, and with which bounds.

    What several rules have in common is said once: the quantity, the bound, points and conditions.
    The other parts are numbered.
    """
    groups: dict[tuple[str, str], list[Rule]] = {}
    for alike in _alike_but_for_a_value(rules):
        groups.setdefault((bound_in_words(alike[0]), _place(alike)), []).append(alike[0])
    bounds: dict[tuple[str, str], list[str]] = {}
    for (bound, place), group in groups.items():
        for text in _texts([rule.quantity for rule in group]):
            bounds.setdefault((text, place), []).append(bound)
    parts = [
        _Part(text, _listed([*[b.removesuffix(" times") for b in said[:-1]], said[-1]]), place)
        for (text, place), said in bounds.items()
    ]
    places = {part.place for part in parts}
    if len(parts) > 1 and len(places) == 1 and (place := places.pop()):
        return _numbered([str(part) for part in parts], place.strip(" ,"))
    words = []
    for before, part in zip([None, *parts], parts, strict=False):
        if before and before.text == part.text and "{}" not in part.text:
            words.append(f"it is {part.bound}{part.place}")
        else:
            words.append(f"{part}{part.place}")
    return _numbered(words)


def _numbered(parts: Sequence[str], place: str = "") -> str:
    """Return parts of a rule as a list after what they share: `at the largest depth: (1) …; (2) …`.

    A single part has no number. place: words that belong to all parts.
    """
    if len(parts) == 1:
        return parts[0]
    start = re.match(f"({STARTS}) [^(),]+, ", parts[0])
    if start and all(part.startswith(start[0]) for part in parts):
        parts = [part.removeprefix(start[0]) for part in parts]
        place = ", ".join(filter(None, [place, start[0].removesuffix(", ")]))
    listed = "; ".join(f"({i}) {part}" for i, part in enumerate(parts, 1))
    return f"{place}: {listed}" if place else listed


def _alike_but_for_a_value(rules: Iterable[Rule]) -> list[list[Rule]]:
    """Return rules in groups that differ only in one condition, such as `tau == 0.1`."""
    groups: list[list[Rule]] = []
    for rule in rules:
        for group in groups:
            if _differing([*group, rule]):
                group.append(rule)
                break
        else:
            groups.append([rule])
    return groups


def _differing(rules: Sequence[Rule]) -> list[str]:
    """Return the conditions `column == value` in which alone rules differ; empty if they do not."""
    first, *others = rules
    if any(
        (bound_in_words(r), r.quantity.text) != (bound_in_words(first), first.quantity.text)
        for r in others
    ):
        return []
    listed = [_conditions(rule.quantity) for rule in rules]
    own = [[one for one in mine if any(one not in all_of for all_of in listed)] for mine in listed]
    columns = {one.partition(" == ")[0] for mine in own for one in mine if " == " in one}
    is_single = all(len(mine) == 1 for mine in own) and len(columns) == 1
    return [mine[0] for mine in own] if is_single else []


def _conditions(quantity: Quantity) -> list[str]:
    """Return the single conditions of a quantity, as code."""
    return [one for code in quantity.conditions for one in code.split(" and ")]


def bound_in_words(rule: Rule) -> str:
    """Return the bound of a rule in words: `above 0.9`, `larger than`, `at most 1 in all tasks`."""
    words = str(rule.shown)
    if "{}" in rule.quantity.name:
        words = TIMES.get(words) or f"{words} times"
        words = re.sub("^above", "more than", re.sub("^below", "less than", words))
    return f"{words} in all {rule.quantity.of}" if isinstance(rule.comparison, Always) else words


def _texts(quantities: Sequence[Quantity]) -> list[str]:
    """Return the texts of quantities with the same bound; one if they differ in one argument."""
    if text := _joined(quantities):
        return [text]
    return list(dict.fromkeys(quantity.text for quantity in quantities))


def _joined(quantities: Sequence[Quantity]) -> str:
    """Return the text of quantities that differ in one argument; empty if they differ in more."""
    first = quantities[0]
    differing = [key for key in first.words if len({q.words[key] for q in quantities}) > 1]
    if len(quantities) == 1 or len({q.name for q in quantities}) > 1 or len(differing) != 1:
        return ""
    (key,) = differing
    before = re.search(rf"\b({BEFORE}) \{{{key}\}}", first.name)
    values = [quantity.words[key].rstrip(",") for quantity in quantities]
    if before:
        values = [values[0], *(f"{before[1]} {value}" for value in values[1:])]
    return first.text_with(first.words | {key: _listed(values)})


def _listed(words: Sequence[str]) -> str:
    """Return words as a list: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last


def _place(alike: Sequence[Rule]) -> str:
    """Return the points and conditions at which a rule is tested: ` for every d, where m = d²`.

    alike: the rule, and rules that differ from it in the value of one condition.
    """
    quantity = alike[0].quantity
    names, codes = quantity.names, quantity.conditions
    several = _differing(alike) if len(alike) > 1 else []
    points = [names.of_point(each) for each in quantity.each if not _is_fixed(each, quantity)]
    words = f" for every {_listed(points)}" if points else ""
    if several:
        column, values = several[0].partition(" == ")[0], [o.partition(" == ")[2] for o in several]
        one_of = f"{names.of_point(column)} = {_listed(values)}"
        words = f" for every {', '.join(points)} and {one_of}" if points else f" for {one_of}"
        codes = [" and ".join(one for one in c.split(" and ") if one not in several) for c in codes]
    if code := " and ".join(filter(None, codes)):
        *first, last = names.condition(code).split(" and ")
        words += f", where {', '.join(first)}{' and ' if first else ''}{last}"
    return words


def _is_fixed(column: str, quantity: Quantity) -> bool:
    """Return whether a condition leaves one value of a column: `m == d ** 2`."""
    return any(
        one.startswith(f"{column} == ") and " or " not in one for one in _conditions(quantity)
    )


def in_words(evidence: Evidence, case: str = "") -> str:
    """Return the numbers of a test as text: estimate, limits, bound, number n, and point.

    Examples are `error of SGD: 0.61 (0.55 to 0.72; bound: below 1; 8 networks; d = 5)` and, for a
    ratio, `the error of SGD is 17.8 times that of the copy (…)`. case: which point it is, a
    text from `CASES`.
    """
    n, counted, extreme = evidence.n, evidence.of, evidence.extreme
    bound = f"bound: {evidence.compared}" if evidence.compared else ""
    if np.isnan(evidence.estimate):
        noun = evidence.quantity.partition(" is {}")[0].removesuffix(",")
        return f"{noun}: no finite number{_bracketed([f'{n} {counted}', evidence.point])}"
    met = round(evidence.estimate * n)
    if extreme:
        meeting = f"all {n}" if met == n else f"only {met} of {n}" if met else f"none of {n}"
        meeting = f"{'true' if bound else 'met'} in {meeting} {counted}"
        details = [bound, meeting, evidence.point]
        return _said(evidence.quantity, extreme, case) + _bracketed(details)
    three = np.array([evidence.estimate, evidence.low, evidence.high])
    three = np.exp2(three) if evidence.is_log2 else three
    largest = np.abs(three[np.isfinite(three)]).max()
    bound_size = abs(np.exp2(evidence.bound) if evidence.is_log2 else evidence.bound) or np.inf
    tiny = ROUNDING * np.fmin(largest, bound_size)  # without a bound: nan, which fmin ignores
    middle, low, high = np.where(np.abs(three) <= tiny, 0.0, three)
    bounds = set(re.findall(NUMBER, evidence.compared))
    limits = " to ".join(_beside(bounds, limit) for limit in (low, high))
    limits = limits if np.isfinite([low, high]).any() else ""
    value = _beside(bounds, middle)
    if 0 < largest <= ROUNDING * abs(evidence.bound) and "{}" not in evidence.quantity:
        value, limits = "0", "up to rounding errors"
    numbers = f"{met} of {n} {counted}" if evidence.unit == "share" else f"{n} {counted}"
    lost = f"{evidence.unknown} without a number" if evidence.unknown else ""
    details = [limits, bound, numbers, lost, evidence.point]
    return _said(evidence.quantity, value, case) + _bracketed(details)


def _beside(bounds: Collection[str], value: float) -> str:
    """Return a number as text, with further digits if it would read like one of the bounds."""
    text = short(value)
    further = (number(value, digits) for digits in range(3, 7)) if text in bounds else ()
    return next((longer for longer in further if longer not in bounds), text)


def _said(text: str, value: str, case: str) -> str:
    """Return the number of a quantity as text, with the case that it is from."""
    if "{}" in text:
        return f"{text.replace('{}', f'{value} times')}{case}"
    return f"{text.removesuffix(',')}: {value}{case}"


def _bracketed(details: Iterable[str]) -> str:
    return f" ({'; '.join(filter(None, details))})"
