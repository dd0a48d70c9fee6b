"""Loops compiled for the CPU."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from inspect import unwrap
from io import BytesIO
from pathlib import Path
from typing import Any

import numba
from numba.core import caching

log = logging.getLogger("runner")

REORDERED = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in the order that vectors like. nan and inf stay what they are."""


def compiled(function: Callable, **options: Any) -> Callable:
    """Return a function of arrays and numbers, compiled when it is first called and kept on the
    disk, where there is a folder for it.

    Division by zero gives inf or nan. options: of `numba.njit`. What is kept is compiled anew when
    the function's own file changes, and no other.
    """
    compiler = {"error_model": "numpy", "nogil": True} | options
    bare = unwrap(function)  # without the checks of types that the tests add
    try:
        kept = numba.njit(cache=True, **compiler)(bare)
        kept._cache = _Kept(bare)
        return kept
    except RuntimeError:  # no folder can be written
        return numba.njit(**compiler)(bare)


class _Kept(caching.FunctionCache):
    """Numba's cache of a function, for which damage is no error: what is damaged is compiled again.

    Numba would raise, crash, or compute with what is left.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        stamp = self._impl.locator.get_source_stamp()
        self._cache_file = _Verified(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, *arguments: Any) -> Any:
        """Return what was compiled for these arguments; None where that is not there, or
        damaged."""
        try:
            return super().load_overload(*arguments)
        except Exception as error:  # whatever damaged files come up with
            log.info("%s is compiled again: its stored code is damaged (%s)", self._name, error)
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *arguments: Any) -> None:
        """Keep what was compiled, if the files can be written."""
        with suppress(OSError):
            super().save_overload(*arguments)


class _Verified(caching.IndexDataCacheFile):
    """Its files, each with the SHA-256 of its content at its end, where numba reads no further."""

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        with super()._open_for_write(filepath) as file:
            yield (content := BytesIO())
            file.write(content.getvalue() + sha256(content.getvalue()).digest())

    def _load_index(self) -> dict:
        _verify(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        _verify(self._data_path(name))
        return super()._load_data(name)


def _verify(path: str) -> None:
    """Raise ValueError when the file is there and its content is not what was written."""
    with suppress(FileNotFoundError):
        content = Path(path).read_bytes()
        end = len(content) - sha256().digest_size
        if sha256(content[:end]).digest() != content[end:]:
            raise ValueError(f"{path} has changed")


def one_pass(function: Callable) -> Callable:
    """Return the same for a loop that goes over its arrays once, between two products."""
    return compiled(function, fastmath=REORDERED)
