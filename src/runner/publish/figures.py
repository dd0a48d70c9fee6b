"""Many figures in one go: `make figures`.

Each figure is a command `python -m runner figure=...` of its own; what is complete and drawn is
left alone. At the end a summary says what each took and how its claims came out.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from runner.cli.catalogue import SCALES, figure_names
from runner.cli.composing import figure_variant
from runner.core.arguments import outputs_folder
from runner.core.errors import InputError, nearest
from runner.core.folders import require_readable, require_writable
from runner.results.figures import describe, make
from runner.results.variants import Variant


def is_current(variant: Variant) -> bool:
    """Whether the figure was drawn from exactly its runs as they are now."""
    try:
        about = json.loads(variant.path("provenance.json").read_text())
        keys = ("run", "tables", "stale")
        drawn = [[run[key] for key in keys] for run in about["runs"]]
        now = [[run[key] for key in keys] for run in map(describe, variant.runs)]
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return False
    files = map(variant.path, ("png", "pdf", "csv", "claims.csv"))
    return drawn == now and about["scale"] == variant.scale and all(map(Path.exists, files))


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


@dataclass(frozen=True)
class Outcome:
    """One line of the summary; seconds are those of this command."""

    figure: str
    outcome: str
    seconds: float
    holds: int = 0
    fails: int = 0
    undecided: int = 0


def make_figure(name: str, typed: list[str]) -> Outcome:
    """Bring one figure up to date. Raises InputError when the overrides do not compose."""
    start = time.monotonic()
    variant = figure_variant(name, typed)
    require_writable(variant.outputs)
    outcome = "unchanged"
    if not is_current(variant):
        command = [sys.executable, "-m", "runner", f"figure={name}", *typed]
        code = subprocess.run(command, stdout=subprocess.DEVNULL).returncode
        if code == 130:
            raise KeyboardInterrupt
        if code != 0:
            return Outcome(variant.name, f"exit code {code}", time.monotonic() - start)
        outcome = "drawn"
    verdicts = pd.read_csv(variant.path("claims.csv"))["verdict"].value_counts()
    counts = {verdict: int(verdicts.get(verdict, 0)) for verdict in ("holds", "fails", "undecided")}
    return Outcome(variant.name, outcome, time.monotonic() - start, **counts)


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
    asked = [asked_for(name, typed) for name in names]
    if options.redraw:
        for name, overrides in asked:
            make(figure_variant(name, overrides))
        return 0
    outcomes: list[Outcome] = []
    for index, (name, overrides) in enumerate(asked, 1):
        print(f"[{index}/{len(names)}] {name}", file=sys.stderr, flush=True)
        outcomes.append(make_figure(name, overrides))
    table = pd.DataFrame(outcomes)
    print(table.to_string(index=False, float_format=lambda value: f"{value:.0f}"))
    totals = ", ".join(f"{table[key].sum()} {key}" for key in ("holds", "fails", "undecided"))
    print(f"{len(names)} figures in {table['seconds'].sum():.0f} s; claims: {totals}")
    return 0 if table["outcome"].isin(["drawn", "unchanged"]).all() else 1
