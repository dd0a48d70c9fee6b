"""`runner show`: what the reference holds of a figure, its verdicts and its picture, at once.

It computes nothing and imports no torch; a picture is drawn from the kept tables where it is not
there yet, into `<outputs>/figures-from-reference/<scale>/`.
"""

import argparse
from pathlib import Path
from textwrap import fill

from runner.commands.gallery_data import SCALES
from runner.commands.kept_figure import FROM_REFERENCE, KeptFigure
from runner.core.arguments import key_values
from runner.core.catalogue import figure_names, headline
from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at, require_writable
from runner.results.verdicts import lines as verdict_lines
from runner.runs.provenance import INSTALLED, REFERENCE

ELSEWHERE = "the tables of larger scales are in the repository, outputs/reference"


def kept_scales(figure: str) -> list[str]:
    """Return the scales at which the reference holds a figure, the largest first."""
    return [each for each in SCALES if (REFERENCE / each / figure / "claims.csv").exists()]


def shown(figure: str, scale: str | None, outputs: Path) -> str:
    """Return the verdicts of a figure of the reference and the path of its picture, as text.

    scale: None for the largest that is kept. Raises InputError when there is no such figure,
    nothing is kept of it at this scale, or a file of it is damaged.
    """
    if figure not in figure_names():
        raise InputError(f"{figure} is no figure: {nearest(figure, figure_names())}")
    kept = kept_scales(figure)
    at = scale or next(iter(kept), "quick")
    if at not in kept:
        others = f"; there is: scale={', scale='.join(kept)}" if kept else ""
        others += f" ({ELSEWHERE})" if INSTALLED and at != "quick" else ""
        raise InputError(
            f"nothing is kept of {figure} at scale {at}{others}."
            f" To compute it: runner figure={figure} scale={at}"
        )
    require_writable(outputs, outputs / FROM_REFERENCE)
    shown_figure = KeptFigure.of(REFERENCE / at / figure, outputs)
    picture, folder = shown_figure.picture(), shown_figure.folder
    caption = fill((folder / "caption.txt").read_text(), 100)
    largest = " (the largest kept)" if at == kept[0] and len(kept) > 1 else ""
    lines = [f"{figure}, scale={at}{largest}: {shown_figure.headline}"]
    lines += [*verdict_lines(shown_figure.claims(), folder / "claims.csv", at), caption]
    lines += [f"also kept: runner show {figure} scale={each}" for each in kept if each != at]
    lines += [ELSEWHERE] * INSTALLED
    return "\n".join([*lines, str(picture)])


def listed() -> str:
    """Return every figure that can be shown, with its scales."""
    rows = [
        (name, " ".join(kept_scales(name)), headline("figure", name)) for name in figure_names()
    ]
    width = max(len(name) for name, _, _ in rows)
    lines = [f"  {name:<{width}}  {scales:<12}  {what}" for name, scales, what in rows if scales]
    return "\n".join([*lines, "To see one: runner show fig4"])


def main(arguments: list[str]) -> int:
    """Show a figure of the reference, or list all of them; returns 0.

    Raises InputError when there is no such figure, or nothing is kept of it.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner show",
        description="A figure as it was kept: its verdicts and its picture. Computes nothing."
        " Without a name: the figures that there are.",
    )
    parser.add_argument("figure", nargs="?", help="fig4")
    words = "scale=... (of those kept the largest, unless one is named), outputs=..."
    parser.add_argument("words", nargs="*", metavar="key=value", help=words)
    options = parser.parse_args(arguments)
    values = key_values(options.words, ["scale", "outputs"])
    if options.figure is None:
        print(listed())
        return 0
    print(shown(options.figure, values.get("scale"), outputs_at(values.get("outputs", "outputs"))))
    return 0
