"""What captions and titles call what has a name: known names, and all others."""

from collections.abc import Mapping
from typing import Any


class Labels(dict[Any, str]):
    """Labels by name; a name without one stands for itself: `Labels() | {name: ...}`."""

    def __or__(self, others: Mapping[Any, str]) -> "Labels":  # type: ignore[override]  # texts only
        return type(self)({**self, **others})

    def __missing__(self, name: Any) -> str:
        return str(name)
