"""`runner show`: the verdicts and the picture of a figure of the reference.

The command computes nothing and imports no torch. It draws a missing picture from the stored tables
into `<outputs>/figures-from-reference/<scale>/`.
"""

import argparse
from pathlib import Path
from textwrap import fill

from runner.core.arguments import key_values
from runner.core.catalogue import SCALES, figure_names, headline
from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at, require_writable
from runner.runs.provenance import INSTALLED, REFERENCE

ELSEWHERE = "the tables of larger scales are in the repository, outputs/reference"


def kept_scales(figure: str) -> list[str]:
    """Return the scales at which the reference has a figure, the largest scale first."""
    return [
        scale for scale in reversed(SCALES) if (REFERENCE / scale / figure / "claims.csv").exists()
    ]


def describe(figure: str, scale: str | None, outputs: Path) -> str:
    """Return as text the stored verdicts, the caption and the path of the picture of a figure.

    A missing picture is drawn into the folder of outputs. scale: None means the largest that the
    reference has. Raises InputError if no such figure exists, if the reference does not have it at
    this scale, or if a file is damaged.
    """
    from runner.commands.kept import FROM_REFERENCE, KeptFigure  # late: the list needs no pandas
    from runner.results.verdicts import lines as verdict_lines

    if figure not in figure_names():
        raise InputError(f"{figure} is no figure: {nearest(figure, figure_names())}")
    scales = kept_scales(figure)
    scale = scale or next(iter(scales), "quick")
    if scale not in scales:
        hint = f"; there is: scale={', scale='.join(scales)}" if scales else ""
        hint += f" ({ELSEWHERE})" if INSTALLED else ""
        raise InputError(
            f"nothing is kept of {figure} at scale {scale}{hint}."
            f" To compute it: runner figure={figure} scale={scale}"
        )
    require_writable(outputs, outputs / FROM_REFERENCE)
    kept = KeptFigure.of(REFERENCE / scale / figure, outputs)
    picture = kept.picture()
    largest = " (the largest kept)" if scale == scales[0] and len(scales) > 1 else ""
    lines = [
        f"{figure}, scale={scale}{largest}: {kept.headline}",
        *verdict_lines(kept.claims(), kept.folder / "claims.csv", scale),
        fill((kept.folder / "caption.txt").read_text(), 100),
        *(f"also kept: runner show {figure} scale={other}" for other in scales if other != scale),
        *[ELSEWHERE] * INSTALLED,
        str(picture),
    ]
    return "\n".join(lines)


def list_figures() -> str:
    """Return as text a line for each figure of the reference, with its scales."""
    scales = {name: " ".join(kept_scales(name)) for name in figure_names()}
    width = max(map(len, scales))
    lines = [
        f"  {name:<{width}}  {kept:<12}  {headline('figure', name)}"
        for name, kept in scales.items()
        if kept
    ]
    return "\n".join([*lines, "To see one: runner show fig4"])


def main(arguments: list[str]) -> int:
    """Print the verdicts on a figure of the reference, or list all figures; return 0.

    Raises InputError if no such figure exists, or the reference does not have it.
    """
    parser = argparse.ArgumentParser(
        prog="runner show",
        description="A figure as it was kept: its verdicts and its picture. Computes nothing."
        " Without a name: the figures that there are.",
    )
    parser.add_argument("figure", nargs="?", help="fig4")
    words = "scale=... (of those kept the largest, unless one is named), outputs=..."
    parser.add_argument("words", nargs="*", metavar="key=value", help=words)
    options = parser.parse_args(arguments)
    values = key_values(options.words, ["scale", "outputs"])
    outputs = outputs_at(values.get("outputs", "outputs"))
    name, scale = options.figure, values.get("scale")
    print(list_figures() if name is None else describe(name, scale, outputs))
    return 0
