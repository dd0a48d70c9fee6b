"""python -m runner: runs, sweeps and figures; and the subcommands."""

import logging
import os
import re
import shlex
import sys
import traceback
from importlib import import_module
from pathlib import Path

from runner.core.errors import InputError, RunFailed
from runner.core.folders import at_home
from runner.core.rooms import add_room
from runner.runs.provenance import COMMAND

SUBCOMMANDS = {
    "runs": "runner.cli.runs",
    "figures": "runner.publish.figures",
    "show": "runner.publish.show",
    "report": "runner.publish.gallery",
    "reference": "runner.publish.reference",
    "compare": "runner.publish.comparison",
    "bench": "runner.bench.table",
    "new": "runner.cli.new",
    "claims": "runner.publish.plan",
}
"""Each module has a `main(arguments)` that returns an exit code; its parser knows `--help`."""


def enter_rooms(arguments: list[str]) -> list[str]:
    """Add the rooms that `--config-dir` gives; returns the other arguments.

    Raises InputError when there is no such folder.
    """
    rest = []
    words = iter(arguments)
    for word in words:
        flag, equals, folder = word.partition("=")
        if flag not in ("--config-dir", "-cd"):
            rest.append(word)
            continue
        folder = folder if equals else next(words, "")
        if not folder:
            raise InputError(f"{flag} needs a folder")
        add_room(Path(folder))
    return rest


def dispatch(arguments: list[str]) -> int:
    """Carry out the command; returns its exit code.

    Raises InputError when the input is wrong, RunFailed when a run failed.
    """
    if arguments and arguments[0] in SUBCOMMANDS:
        return import_module(SUBCOMMANDS[arguments[0]]).main(arguments[1:])
    if arguments and arguments[0] in ("-sc", "--shell-completion"):
        from runner.cli import completion

        return completion.main(arguments[1:], SUBCOMMANDS)
    asks = {"--help", "-h"} & set(arguments)
    bare = arguments and re.fullmatch(r"\w[\w-]*", arguments[0])
    if asks or bare or not arguments:
        from runner.cli import help  # late: Hydra takes a while to import

        if bare and not asks:
            raise help.meant(arguments[0])
        print(help.text(arguments) if asks else help.ALONE)
        return 0
    from runner.cli import command

    return command.main()


def main() -> int:
    """Returns 0, 1 (a run failed, a check did not hold), 2 (wrong input), 130 or 141.

    130: interrupted. 141: whoever read the output has gone (`| head`).
    """
    sys.argv[1:] = map(at_home, sys.argv[1:])
    try:
        rest = enter_rooms(sys.argv[1:])
        command = shlex.join(["python", "-m", "runner", *sys.argv[1:]])
        os.environ[COMMAND] = command.replace("\0", "")  # which no shell can pass on
        try:
            return dispatch(rest)
        finally:
            print(end="", flush=True)  # a reader that has gone is noticed here at the latest
    except (InputError, RunFailed) as error:
        if logging.getLogger().level == logging.DEBUG:  # hydra.verbose=true
            traceback.print_exc()
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, RunFailed) else 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on where it stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:  # a file or a folder that nothing above has expected to be so
        if error.filename is None:  # of what was printed
            _drop_output()
        place = "" if error.filename is None else f"{error.filename}: "
        print(f"error: {place}{error.strerror or error}", file=sys.stderr)
        return 2


def _drop_output() -> None:
    """What is left to be printed is lost: at its end Python would try again, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    sys.exit(main())
