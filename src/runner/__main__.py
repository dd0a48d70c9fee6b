"""The command: `runner study=... key=value`, `runner -m ...`, `runner figure=...`, subcommands.

The way of a command, from top to bottom: `main` (what ends badly), `dispatch` (which command it
is), `compute` (words to jobs: `cli.composing`, `cli.orders`), `carry_out` (jobs to runs:
`cli.launching` and `runs.execution`; runs to figures and verdicts: `results.figures`; what is
printed).
"""

import argparse
import logging
import os
import re
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Iterable
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING

from runner.core import catalogue
from runner.core.errors import InputError, RunFailed, nearest
from runner.core.folders import at_home
from runner.runs.provenance import COMMAND

if TYPE_CHECKING:
    import runner.cli.orders  # late: torch and Hydra take a while

log = logging.getLogger("runner")

SUBCOMMANDS = {
    "show": ("runner.publish.show", "a figure as the reference has it; computes nothing"),
    "figures": ("runner.__main__", "all figures, or those named, all their runs in one pool"),
    "runs": ("runner.cli.runs", "list|check|diff|export|plot|clean: the runs of a folder"),
    "report": ("runner.publish.gallery", "a gallery of all figures and claims; computes nothing"),
    "reference": ("runner.publish.reference", "keep|draw|judge|restamp: the tables behind figures"),
    "claims": ("runner.publish.plan", "all statements with their rules; computes nothing"),
    "compare": ("runner.publish.comparison", "where results differ from the reference"),
    "new": ("runner.cli.new", "study: write a working study for you to change"),
}
"""Each has the module whose `main(words)` carries it out, and what it is for."""


def main() -> int:
    """Carry out the command of `sys.argv`; return its exit code.

    0: well; 1: a run failed, a check did not hold; 2: wrong input; 130: interrupted; 141: whoever
    read the output has gone (`| head`).
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the run says so
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may know no check mark
    try:
        words = [catalogue.renamed(at_home(word)) for word in sys.argv[1:]]
        sys.path.append(os.getcwd())  # where the user's functions are, as with python -m
        os.environ["MPLBACKEND"] = "agg"  # no window is opened; a notebook's own needs a notebook
        os.environ[COMMAND] = shlex.join(["python", "-m", "runner", *words]).replace("\0", "")
        try:
            return dispatch(_without_folders(words))
        finally:
            print(end="", flush=True)  # a reader that has gone is noticed here at the latest
    except (InputError, RunFailed) as error:
        show_traceback()
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


def show_traceback() -> None:
    """Print what has been raised with its traceback, where `hydra.verbose=true` was typed."""
    if logging.getLogger().level == logging.DEBUG:
        traceback.print_exc()


def _drop_output() -> None:
    """Lose what is left to be printed: at its end Python would try again, and fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _without_folders(words: list[str]) -> list[str]:
    """Make the studies in folders that `--config-dir` names known; return the other words."""
    rest, following = [], iter(words)
    for word in following:
        flag, equals, folder = word.partition("=")
        if flag not in ("--config-dir", "-cd"):
            rest.append(word)
            continue
        folder = folder if equals else next(following, "")
        if not folder:
            raise InputError(f"{flag} needs a folder")
        catalogue.add_studies(Path(folder))
    return rest


def dispatch(words: list[str]) -> int:
    """Find out which command it is, and carry it out; return its exit code."""
    if words and words[0] == "figures":
        return make_figures(words[1:])
    if words and words[0] in SUBCOMMANDS:
        return import_module(SUBCOMMANDS[words[0]][0]).main(words[1:])
    asks = {"--help", "-h", "--columns"} & set(words)
    bare = bool(words) and re.fullmatch(r"\w[\w-]*", words[0])
    if asks or bare or not words:
        from runner.cli import help  # late: it needs no Hydra, whose import takes a while

        if bare and not asks:
            raise help.meant(words[0], SUBCOMMANDS)
        about = {name: what for name, (_, what) in SUBCOMMANDS.items()}
        print(help.text(words, about) if asks else help.ALONE)
        return 0
    return compute(words)


def compute(words: list[str]) -> int:
    """Compose what `key=value` words ask for, and carry it out; return 0.

    What belongs to Hydra is left to Hydra: its own flags (`--cfg job`, `-sc`), and sweepers that
    choose their jobs by the results of others.
    """
    from runner.cli import composing, orders  # late, as above

    prepare(words)
    flags = [word for word in words if word.startswith("-")]
    has_hydras_flag = bool(set(flags) - {"-m", "--multirun"})
    typed = [word for word in words if word not in flags]
    if not has_hydras_flag:
        with composing.hydra_ready(typed):
            order = orders.compose_order(typed, multirun=bool(flags))
            if not order.searches:
                return carry_out(order)
    from runner.cli import others  # late, as above

    others.main(words)
    if not has_hydras_flag:
        print(f"a picture: python -m runner runs plot --study {order.composed.study}")
    return 0


def make_figures(words: list[str]) -> int:
    """Make the figures that are named, or all: `runner figures fig4 fig5 scale=paper`; return 0.

    Raises InputError when a name or an override is wrong, or runs to redraw are missing, RunFailed
    when a run failed.
    """
    from runner.cli import composing, orders  # late, as above
    from runner.results.figures import make

    parser = argparse.ArgumentParser(
        prog="python -m runner figures",
        description="All figures, or those named; what is complete and drawn is left alone.",
    )
    parser.add_argument("words", nargs="*", metavar="FIGURE | key=value")
    parser.add_argument("--redraw", action="store_true", help="draw again and compute nothing")
    options = parser.parse_intermixed_args(words)
    typed = [word for word in options.words if "=" in word]
    known = catalogue.figure_names()
    names = [word for word in options.words if "=" not in word]
    for name in set(names) - set(known):
        raise InputError(f"figure {name} is unknown: {nearest(name, known)}")
    names = names or catalogue.figure_names(catalogue.scale_in(typed))
    prepare(typed)
    with composing.hydra_ready([f"figure={names[0]}"] if len(names) == 1 else []):
        order = orders.compose_figures(names, typed)
        if not options.redraw:
            return carry_out(order, redraw=False)
    failures = []
    for figure in order.figures:
        try:
            print(make(figure))
        except InputError as error:
            failures.append(str(error))
    if failures:
        raise InputError("\n".join(failures))
    return 0


def carry_out(order: "runner.cli.orders.Order", redraw: bool = True) -> int:
    """Compute what is missing, draw and judge, and print the results; return 0.

    redraw: also figures that were drawn from these very runs. Raises RunFailed at the end when runs
    failed, which stops no other.
    """
    from runner.cli.launching import launch  # late, as above
    from runner.results import figures, sweeps

    start = time.monotonic()
    for figure in order.figures:
        for note in figures.require_drawn(figure):  # before anything is computed
            log.info(note)
    failures = launch(order)
    complete = [job.run for job in order.jobs if job.run.is_complete()]
    drawn = []
    for figure in order.figures:
        if missing := sum(not run.is_complete() for run in figure.runs):
            failures.append(f"{figure.name}: {missing} of {len(figure.runs)} runs are missing")
            continue
        current = not redraw and figures.is_current(figure)
        try:
            said = f"{figure.name}: unchanged" if current else figures.make(figure)
        except Exception as error:  # of any kind: the other figures are drawn all the same
            if len(order.figures) == 1 and isinstance(error, InputError):
                raise
            show_traceback()
            said = f"{type(error).__name__}: {error} (its traceback: hydra.verbose=true)"
            failures.append(f"{figure.name} is not drawn: {said}")
            continue
        drawn.append(figure)
        if len(order.figures) == 1:
            print(said)
        else:
            what = "unchanged" if current else "drawn"
            log.info("[%d/%d] %s: %s", len(drawn), len(order.figures), figure.name, what)
    if len(order.figures) > 1:
        print(f"{sweeps.summary(drawn)} in {time.monotonic() - start:.0f} s")
    elif not order.figures and len(order.jobs) > 1:
        print(sweeps.ending([job.run for job in order.jobs]))
    elif not order.figures and complete:
        print(figures.report(complete[0]))
    if failures:
        raise RunFailed("\n".join(failures))
    return 0


def prepare(words: Iterable[str] = ()) -> None:
    """Prepare the log of a command that computes."""
    from runner.core.progress import log_everything, log_to_terminal  # late, with numpy

    log_to_terminal()
    if "hydra.verbose=true" in words:
        log_everything()


if __name__ == "__main__":
    sys.exit(main())
