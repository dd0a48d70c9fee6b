"""python -m runner: runs, sweeps and figures; and the subcommands."""

import sys
from importlib import import_module

from runner.core.errors import InputError, RunFailed

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
    """Returns 0, 1 (a run failed, a check did not hold), 2 (wrong input) or 130 (interrupted)."""
    try:
        return dispatch(sys.argv[1:])
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RunFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted: the same command goes on where it stopped", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
