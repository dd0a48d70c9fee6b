"""The command `runner figures`: make all figures, or the named ones, and compute their runs."""

import argparse

from runner.commands.compute import carry_out, tell
from runner.compose import orders
from runner.compose.composing import hydra_ready
from runner.core import catalogue
from runner.core.errors import InputError
from runner.core.progress import log_to_terminal


def main(arguments: list[str]) -> int:
    """Make the named figures, or all: `runner figures fig4 fig5 scale=paper`; return 0.

    Raises InputError if a name or an argument is wrong, or if runs are missing with `--redraw`.
    Raises RunFailed if a run failed.
    """
    parser = argparse.ArgumentParser(
        prog="runner figures",
        description="Make all figures, or those named. Complete runs and drawn figures stay.",
    )
    parser.add_argument("words", nargs="*", metavar="FIGURE | key=value")
    parser.add_argument("--redraw", action="store_true", help="draw again and compute nothing")
    several = "one figure for each combination of several values"
    parser.add_argument("-m", "--multirun", action="store_true", help=several)
    parser.add_argument("--dry-run", action="store_true", help="list the runs; compute nothing")
    options = parser.parse_intermixed_args(arguments)
    names, typed = catalogue.named_figures(options.words)
    names = names or catalogue.figure_names(catalogue.scale_in(typed))
    log_to_terminal(typed)
    with hydra_ready([f"figure={names[0]}"] if len(names) == 1 else []):
        order = orders.compose_figures(names, typed, options.multirun)
        if options.dry_run:
            return tell(order)
        if not options.redraw:
            return carry_out(order, redraw=False)
    failures = []
    for figure in order.figures:
        try:
            print(figure.make())
        except InputError as error:
            failures.append(str(error))
    if failures:
        raise InputError("\n".join(failures))
    return 0
