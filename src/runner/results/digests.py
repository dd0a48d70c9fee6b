"""Digests of rules: sixteen digits that change when a rule changes, and not when its words do.

A digest is a hash of a rule's quantity, arguments, points, assumption, comparison and bounds, and
of the claim's needs. The printed sentence is not in it, and neither is the code that computes a
quantity: if that changes, the numbers in the reference change.

Until November 2026, a digest was a hash of the printed rule, too. Verdicts and runs of that time
have registered such digests. The table `registered_rules.csv` lists them, so that a rule that has
not changed since then keeps the digest under which it was registered.
"""

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from runner.results.quantities import Rule

REGISTERED = Path(__file__).with_name("registered_rules.csv")


def digest(rules: Sequence[Rule], needs: Mapping[str, int]) -> str:
    """Return the digest of a claim's rules and needs, as it is registered."""
    own = without_words(rules, needs)
    return _registered().get(own, own)


def without_words(rules: Sequence[Rule], needs: Mapping[str, int]) -> str:
    """Return the first sixteen digits of the hash of all that decides a verdict."""
    content = json.dumps([[_decides(rule) for rule in rules], needs], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _decides(rule: Rule) -> list[object]:
    """Return what a rule is, without words."""
    quantity, comparison = rule.quantity, rule.comparison
    function = quantity.function
    # the names of study, module and function: a package may have another name
    name = [*function.__module__.split(".")[-2:], function.__name__]
    what = [name, quantity.arguments, quantity.each, quantity.assumed, quantity.numbers]
    return [*what, type(comparison).__name__, asdict(comparison)]


@cache
def _registered() -> dict[str, str]:
    """Return the registered digest of each rule in the table, by the digest without words."""
    with REGISTERED.open(encoding="utf-8", newline="") as file:
        return {row["rule"]: row["digest"] for row in csv.DictReader(file)}
