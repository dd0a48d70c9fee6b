"""The command `runner`: find the subcommand in the arguments, and turn errors into messages.

Each subcommand has a module in `commands`. Without one, `commands.compute` computes runs and
figures: `runner study=... key=value`, `runner -m ...`, `runner figure=...`.
"""

import argparse
import os
import re
import signal
import sys
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

from runner.core import catalogue
from runner.core.errors import OWN_NAME, InputError, RunFailed, show_traceback
from runner.core.folders import at_home
from runner.core.shell import typed
from runner.runs.provenance import COMMAND

SUBCOMMANDS = {
    "show": ("runner.commands.show", "a figure as the reference has it; computes nothing"),
    "figures": ("runner.commands.figures", "make all figures, or the figures that you name"),
    "runs": (
        "runner.commands.runs",
        "list|show|check|diff|export|plot|clean: the runs of a folder",
    ),
    "report": ("runner.commands.report", "a gallery of all figures and claims; computes nothing"),
    "claims": ("runner.commands.claims", "all statements with their rules; computes nothing"),
    "compare": ("runner.commands.compare", "where results differ from the reference"),
    "new": ("runner.commands.new", "study: write a working study that you can change"),
}
"""The subcommands: the module whose `main(arguments)` carries each out, and its description."""


def main() -> int:
    """Carry out the command in `sys.argv`; return its exit status.

    - 0: success;
    - 1: a run or a check failed;
    - 2: wrong input;
    - 130: the user interrupted the command;
    - 141: the program that reads the output has ended (`| head`).
    """
    _open_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the run says so
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may know no check mark
    faults: list[str] = []
    try:
        words = [at_home(word) for word in sys.argv[1:]]
        sys.path.append(os.getcwd())  # where the user's functions are, as with python -m
        os.environ["MPLBACKEND"] = "agg"  # opens no window; a notebook's backend needs a notebook
        os.environ[COMMAND] = typed(["runner", *words]).replace("\0", "")
        try:
            words = _without_folders(words)
            faults += catalogue.broken().values()
            status = dispatch(words)
            _note(faults)
            return status
        finally:
            print(end="", flush=True)  # fails here at the latest if the reader has ended
    except (InputError, RunFailed) as error:
        if any("hydra.verbose" in word for word in sys.argv):  # --info logs as much
            show_traceback()
        is_own = faults and OWN_NAME in str(error)  # the user's file would have had the name
        _note([] if is_own else faults)
        for text in faults if is_own else [error]:
            print(f"error: {text}", file=sys.stderr)
        return 1 if isinstance(error, RunFailed) else 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on from the last checkpoint", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _drop_output()
        return 141
    except OSError as error:  # a file or a folder that cannot be used
        if error.filename is None:  # standard output
            _drop_output()
        file = f"{error.filename}: " if error.filename is not None else ""
        print(f"error: {file}{error.strerror or error}", file=sys.stderr)
        return 2


def _note(faults: list[str]) -> None:
    """Print faults in the user's files that the command did not need."""
    for reason in faults:
        print(f"note: {reason}", file=sys.stderr)


def _open_streams() -> None:
    """Discard what is written to a standard stream that is closed, as `2>&-` and cron leave it.

    Otherwise the next file that is opened would get its number, and the messages.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            empty = os.open(os.devnull, os.O_RDWR)
            if empty != number:
                os.dup2(empty, number)
                os.close(empty)
            setattr(sys, name, open(number, "w" if number else "r", closefd=False))  # noqa: SIM115


def _drop_output() -> None:
    """Discard unprinted output. At its end Python would try to print it, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _without_folders(words: list[str]) -> list[str]:
    """Add the studies in the folders of `--config-dir`; return the other arguments."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config-dir", "-cd", action="append", default=[])
    options, rest = parser.parse_known_args(words)
    for folder in options.config_dir:
        catalogue.add_studies(folder)
    return rest


def dispatch(words: list[str]) -> int:
    """Carry out the subcommand that the first argument names; return its exit status.

    words: the command's arguments. Without a subcommand, runs or figures are computed, or help is
    printed. Raises InputError if the first argument is a word that is not a command.
    """
    if words and words[0] in SUBCOMMANDS:
        return import_module(SUBCOMMANDS[words[0]][0]).main(words[1:])
    if words == ["--version"]:
        print(f"theory-runner {version('theory-runner')}")
        return 0
    is_help = bool({"--help", "-h", "--columns"} & set(words))
    is_name = bool(words) and re.fullmatch(r"\w[\w-]*", words[0])
    if is_help or is_name or not words:
        from runner.commands import help  # late: Hydra takes a while, and help needs none

        if is_name and not is_help:
            raise help.meant(words[0], SUBCOMMANDS)
        about = {name: purpose for name, (_, purpose) in SUBCOMMANDS.items()}
        print(help.text(words, about) if is_help else help.ALONE)
        return 0
    from runner.commands.compute import compute  # late, as above

    return compute(words)


if __name__ == "__main__":
    sys.exit(main())
