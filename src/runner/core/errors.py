"""How a command ends badly: wrong input, a run that failed, a run that is another's."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

T = TypeVar("T")


class InputError(Exception):
    """Something that was given is wrong: a key, a value, a file, a name.

    The message says in one or two lines what is wrong, where, and what would be right. The command
    line prints it without a traceback and exits with code 2.
    """


class RunFailed(Exception):
    """Runs ended in an exception; each one's traceback is in the `error.txt` of its folder.

    The command line prints the message without a traceback and exits with code 1.
    """


class Busy(RunFailed):
    """Another process computes the run, and the settings say not to wait for it."""


LIKE = 0.7
"""From which ratio of `difflib` on two words are alike; at 0.6 `optimizer` is like `time`."""


def nearest(word: str, options: Iterable[str]) -> str:
    """Return the end of an error message: the option nearest to `word`, or all of them."""
    options = sorted(options)
    begun = [option for option in options if len(word) > 2 and option.startswith(word)]
    close = difflib.get_close_matches(word, begun or options, n=1, cutoff=0.0 if begun else LIKE)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"choose from {', '.join(options)}"


def lookup(key: str, name: str, known: Mapping[str, T]) -> T:
    """Return the value of a name, where it is used. key: the parameter that holds the name.

    Raises InputError for a name that is unknown: none is ever taken for another.
    """
    if name not in known:
        raise InputError(f"{key}={name} is unknown: {nearest(name, known)}")
    return known[name]
