"""Errors that end a command: wrong input, a failed run, a run that another process computes."""

import difflib
import logging
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


class InputError(Exception):
    """Error in what the user gave: a key, a value, a file or a name.

    The message says in one or two lines what is wrong, where, and what would be right. The command
    line prints the message without a traceback and exits with code 2.
    """


class RunFailed(Exception):
    """Error if runs failed. Each failed run has the traceback in its folder, in `error.txt`.

    The command line prints the message without a traceback and exits with code 1.
    """


class Busy(RunFailed):
    """Error if another process computes the run, and the setting `wait` is false."""


LIKE = 0.7
"""Smallest ratio of `difflib` for two similar words; at 0.6 `optimizer` resembles `time`."""


OWN_NAME = "a name of your own needs --config-dir FOLDER"
"""A hint for a name that the program does not know, where users can register names."""

MOST_LISTED = 60
"""The largest number of names that a message lists."""


def nearest(word: str, options: Iterable[str]) -> str:
    """Return a hint for an error message about an unknown word, such as `did you mean 'seed'?`.

    The hint names the option that is most similar to the word, or has the same letters. If there is
    none, the hint lists all options, or the three most similar of more than MOST_LISTED, and
    `options.hint`.
    """
    more, options = getattr(options, "hint", ""), sorted(options)
    begun = [option for option in options if len(word) > 2 and option.startswith(word)]
    close = difflib.get_close_matches(word, begun or options, n=1, cutoff=0.0 if begun else LIKE)
    close = close or [option for option in options if sorted(option) == sorted(word)]
    if close:
        return f"did you mean {close[0]!r}?"
    if len(options) > MOST_LISTED:
        some = difflib.get_close_matches(word, options, n=3, cutoff=0.0)
        return f"the nearest of {len(options)} names are {', '.join(some)}{more}"
    return f"choose from {', '.join(options)}{more}"


def beside(missing: Iterable[Path], ends: tuple[str, ...]) -> str:
    """Return a hint with the files in the folders of missing files, `: did you mean 'a.npz'?`.

    missing: the paths, all with one name. ends: the endings of files that are meant. The hint is
    empty if there are no such files.
    """
    paths, names = [path.absolute() for path in missing], set[str]()
    for folder in (path.parent for path in paths):
        with suppress(OSError):
            names |= {path.name for path in folder.iterdir() if path.name.lower().endswith(ends)}
    return f": {nearest(paths[0].name, names)}" if names else ""


def show_traceback() -> None:
    """Print the traceback of the current exception if the command has `hydra.verbose=true`."""
    if logging.getLogger().level == logging.DEBUG:
        traceback.print_exc()
