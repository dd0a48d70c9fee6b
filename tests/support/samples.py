"""Which of many similar cases `make test` has, and which only `make test-more`."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import pytest


def samples(
    cases: Iterable[Any], kind: Callable[..., Hashable], name: Callable[..., str] | None = None
) -> list:
    """Return the cases as parameters of a test: the first of each kind, the others marked `more`.

    A case that is a tuple has several arguments, for the test as for the functions. kind: returns
    None for a case that is never the first of its kind. name: returns the id of a case.
    """
    found: set[Hashable] = {None}
    parameters = []
    for case in cases:
        arguments = case if isinstance(case, tuple) else (case,)
        of_case = kind(*arguments)
        marks = [pytest.mark.more] if of_case in found else []
        found.add(of_case)
        label = name(*arguments) if name else None
        parameters.append(pytest.param(*arguments, id=label, marks=marks))
    return parameters
