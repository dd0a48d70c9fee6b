"""python -m runner: runs, sweeps and figures; and the subcommands."""

import os
import sys
from importlib import import_module

from runner.core.errors import InputError, RunFailed
from runner.core.folders import at_home

SUBCOMMANDS = {
    "runs": "runner.runs.inventory",
    "figures": "runner.publish.figures",
    "report": "runner.publish.report",
    "reference": "runner.publish.reference",
    "compare": "runner.publish.comparison",
    "bench": "runner.bench.table",
    "claims": "runner.publish.plan",
}
"""Each module has a `main(arguments)` that returns an exit code; its parser knows `--help`."""


def dispatch(arguments: list[str]) -> int:
    """Carry out the command; returns its exit code."""
    if arguments and arguments[0] in SUBCOMMANDS:
        return import_module(SUBCOMMANDS[arguments[0]]).main(arguments[1:])
    if {"--help", "-h"} & set(arguments):
        from runner.cli import help  # late: Hydra takes a while to import

        print(help.text(arguments))
        return 0
    from runner.cli import command

    return command.main()


def main() -> int:
    """Returns 0, 1 (a run failed, a check did not hold), 2 (wrong input), 130 or 141.

    130: interrupted. 141: whoever read the output has gone (`| head`).
    """
    sys.argv[1:] = map(at_home, sys.argv[1:])
    try:
        try:
            return dispatch(sys.argv[1:])
        finally:
            print(end="", flush=True)  # a reader that has gone is noticed here at the latest
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RunFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
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
