"""How what has a name looks in drawings, and what they call it: known names, and all others.

A drawing shows what there is. What nobody has given a look is drawn plainly, under its own name.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from runner.results.style import DOTTED, GREY, Look

V = TypeVar("V")


class _Named(dict[Any, V]):
    """Values by name, with one for every other name, which is not kept: `Looks() | {name: ...}`."""

    def __or__(self, others: Mapping[Any, V]) -> "_Named[V]":
        return type(self)({**self, **others})

    def covering(self, names: Iterable[Any]) -> dict[Any, V]:
        """All that are known, in their order, then those of the other names."""
        others = sorted(set(names) - set(self), key=str)
        return self | {name: self[name] for name in others}

    def of(self, names: Iterable[Any]) -> dict[Any, V]:
        """Those of these names alone, in the same order."""
        there = set(names)
        return {name: value for name, value in self.covering(there).items() if name in there}


class Looks(_Named[Look]):
    """Looks by name; a name without one has a plain look that says the name."""

    def __missing__(self, name: Any) -> Look:
        return Look(GREY, ".", DOTTED, str(name))


class Labels(_Named[str]):
    """What legends and titles say by name; a name without a label stands for itself."""

    def __missing__(self, name: Any) -> str:
        return str(name)
