"""Many figures in one go: `make figures`.

All their runs are one sweep; what is complete and drawn is left alone. At the end a summary says
what each took and how its claims came out.
"""

import argparse
import json
import time
from pathlib import Path

import pandas as pd

from runner.cli.catalogue import SCALES, figure_names
from runner.cli.composing import compose_figure, figure_variant
from runner.cli.making import make_figures
from runner.core.arguments import outputs_folder
from runner.core.errors import InputError, nearest
from runner.core.folders import require_readable
from runner.results.figures import comparing, make


def asked_for(word: str, typed: list[str]) -> tuple[str, list[str]]:
    """The figure and the overrides that a name stands for: of a figure, or of a variant.

    Raises InputError when there is neither, or what is kept of the variant cannot be read.
    """
    if word in figure_names():
        return word, typed
    outputs = outputs_folder(text for text in typed if text.startswith("outputs="))
    require_readable(outputs)
    figures = outputs / "figures"
    paths = [figures / scale / f"{word}.provenance.json" for scale in SCALES]
    path = next(filter(Path.exists, paths), None)
    if path is None:
        made = [each.name.partition(".")[0] for each in figures.glob("*/*.provenance.json")]
        raise InputError(f"figure {word} is not known: {nearest(word, {*figure_names(), *made})}")
    try:
        about = json.loads(path.read_text())
        figure, made_with = about["figure"], [f"scale={about['scale']}", *about["overrides"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__})") from error
    overrides = [*dict.fromkeys([*made_with, *typed])]
    variant = figure_variant(figure, overrides)
    if variant.name != word:
        raise InputError(f"this makes {variant.name}, and no longer {word}: {variant.command}")
    return figure, overrides


def main(arguments: list[str]) -> int:
    """Make the figures that are named, or all; returns 0, or 1 when one of them failed.

    Raises InputError when a name or an override is wrong.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner figures",
        description="All figures, or those named; what is complete and drawn is left alone.",
    )
    parser.add_argument("words", nargs="*", metavar="FIGURE | key=value")
    parser.add_argument("--redraw", action="store_true", help="draw again and compute nothing")
    options = parser.parse_intermixed_args(arguments)
    typed = [word for word in options.words if "=" in word]
    names = [word for word in options.words if "=" not in word] or figure_names()
    start = time.monotonic()
    sweeps = [compose_figure(*asked_for(name, typed)) for name in names]
    if options.redraw:
        for sweep in sweeps:
            print(make(sweep.variant))
        return 0
    outcomes = make_figures(sweeps)
    table = pd.DataFrame(outcomes)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.0f}"))
    totals = ", ".join(f"{table[key].sum()} {key}" for key in ("holds", "fails", "undecided"))
    print(f"{len(outcomes)} figures in {time.monotonic() - start:.0f} s; claims: {totals}")
    for command in sorted({each for sweep in sweeps for each in comparing(sweep.variant)}):
        print(f"compare with the reference: {command}")
    return 0 if all(outcome.is_good for outcome in outcomes) else 1
