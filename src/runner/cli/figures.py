"""`runner figures`: many figures in one go, all their runs in one pool."""

import argparse

from runner.__main__ import carry_out, prepare
from runner.cli.composing import hydra_ready
from runner.cli.orders import compose_figures
from runner.core.catalogue import figure_names
from runner.core.errors import InputError, nearest
from runner.results.figures import make


def main(words: list[str]) -> int:
    """Make the figures that are named, or all; return 0.

    Raises InputError when a name or an override is wrong, RunFailed when a run failed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner figures",
        description="All figures, or those named; what is complete and drawn is left alone.",
    )
    parser.add_argument("words", nargs="*", metavar="FIGURE | key=value")
    parser.add_argument("--redraw", action="store_true", help="draw again and compute nothing")
    options = parser.parse_intermixed_args(words)
    typed = [word for word in options.words if "=" in word]
    names = [word for word in options.words if "=" not in word] or figure_names()
    for name in names:
        if name not in figure_names():
            raise InputError(f"figure {name} is not known: {nearest(name, figure_names())}")
    prepare()
    with hydra_ready([f"figure={names[0]}"] if len(names) == 1 else []):
        order = compose_figures(names, typed)
        if not options.redraw:
            return carry_out(order, redraw=False)
    for figure in order.figures:
        print(make(figure))
    return 0
