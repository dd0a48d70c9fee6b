"""The command `runner show`: the verdicts and the picture of a figure of the reference.

The command computes nothing and imports no torch. It draws a missing picture from the stored tables
into `<outputs>/figures-from-reference/<scale>/`. For the user's paper it can also draw a part of a
picture, or a picture in another size or style.
"""

import argparse
import hashlib
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from runner.core.arguments import PICTURE, key_values
from runner.core.catalogue import SCALES, config_of, figure_names, figure_study, title_of
from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at, require_writable
from runner.core.shell import command, near
from runner.runs.provenance import INSTALLED, REFERENCE

if TYPE_CHECKING:
    import runner.commands.kept

ELSEWHERE = "the tables of larger scales are in the repository, outputs/reference"


def kept_scales(figure: str) -> list[str]:
    """Return the scales at which the reference has a figure, the largest scale first."""
    return [
        scale for scale in reversed(SCALES) if (REFERENCE / scale / figure / "claims.csv").exists()
    ]


def describe(
    figure: str, scale: str | None, outputs: Path, changes: Mapping[str, str] | None = None
) -> str:
    """Return as text the stored verdicts, the caption and the path of the picture of a figure.

    A missing picture is drawn.

    - figure: the figure's name;
    - scale: None means the largest scale at which the reference has the figure;
    - outputs: the folder of outputs, for the picture;
    - changes: values of arguments in PICTURE, which change the picture.

    Raises InputError if there is no such figure, or the reference does not have it at this scale.
    Raises it also if a value is wrong or a file is damaged.
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
        made = outputs / "figures" / scale / f"{figure}.png"
        what = f"To compute it: {command(f'figure={figure}', f'scale={scale}', outputs=outputs)}"
        if made.exists():
            call = f'runner.figure("{figure}", scale="{scale}").draw(size="column")'
            what = f"Yours is {near(made)}. To draw it otherwise, in Python: {call}"
        raise InputError(f"nothing is kept of {figure} at scale {scale}{hint}. {what}")
    require_writable(outputs, outputs / FROM_REFERENCE)
    kept = KeptFigure.of(REFERENCE / scale / figure, outputs)
    picture, caption = (
        draw_changed(kept, changes) if changes else (kept.picture(), kept.stored_caption())
    )
    largest = " (the largest kept)" if scale == scales[0] and len(scales) > 1 else ""
    lines = [
        f"{figure}, scale={scale}{largest}: {kept.title}",
        *verdict_lines(kept.claims(), kept.folder / "claims.csv", scale),
        *(fill(text, 100) for text in caption.split("\n\n")),
        *(f"also kept: {command('show', figure, f'scale={s}')}" for s in scales if s != scale),
        *([ELSEWHERE] if INSTALLED else []),
        str(picture),
    ]
    return "\n".join(lines)


def draw_changed(
    kept: "runner.commands.kept.KeptFigure", changes: Mapping[str, str]
) -> tuple[Path, str]:
    """Draw a changed picture of a figure of the reference; return its path and its caption.

    The caption also says the picture's size. changes: values of arguments in PICTURE. Without `out`
    the picture is written as PNG, PDF and SVG, and the path is of the PDF. The files' name has the
    values of the other arguments. Raises InputError if a value is wrong, or a file cannot be
    written.
    """
    from runner.results.finishing import save  # late, as above
    from runner.results.formats import Format
    from runner.results.style import Picture

    given = {"style": "screen", "size": "", "series": "", "where": "", "header": "true", **changes}
    if given["header"] not in ("true", "false"):
        raise InputError(f"header={given['header']} must be true or false")
    form = Format(given["style"], given["size"], given["header"] == "true")
    if changes.get("header") == "true" and not form.has_header:
        raise InputError("header=true: only style=screen without a size has a header: omit header")
    names = re.findall(r"[^\[\],]+", given["series"])
    series = [name.strip() for name in names if name.strip()]
    where = given["where"]
    digest = hashlib.sha256(where.encode()).hexdigest()[:8]
    words = [Path(form.style).stem, form.size, *series, digest if where else ""]
    name = "-".join([kept.figure, *filter(None, words), *(["bare"] if not form.header else [])])
    out = Path(given.get("out", kept.path("pdf").with_name(f"{name}.pdf")))
    if out.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"out={out}: its name must end in .png, .pdf or .svg")
    tables = kept.tables()
    picture = kept.drawn(tables, form=form, series=series, where=where)[0]
    ends = [out.suffix[1:]] if "out" in given else ["png", "pdf", "svg"]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        save(picture, out.with_suffix(""), ends)
    except OSError as error:
        raise InputError(f"{out} cannot be written ({error.strerror})") from error
    caption = kept.changed(series, where).caption(kept.part(tables, series, where))
    if isinstance(picture, Picture):
        width, height = picture.body
        caption += f"Size: {width:.3g} x {height:.3g} inches; text: {picture.points:.2g} points."
    return out, caption


def list_figures() -> str:
    """Return as text a line for each figure of the reference, with the scales that it has."""
    scales = {name: " ".join(kept_scales(name)) for name in figure_names()}
    width = max(map(len, scales))
    lines = [
        f"  {name:<{width}}  {kept:<12}  {title_of('figure', name)}"
        for name, kept in scales.items()
        if kept
    ]
    return "\n".join([*lines, "To see one: runner show fig4"])


def _refuse_parameters(figure: str | None, words: list[str]) -> None:
    """Raise InputError if an argument is a parameter of the figure's study, such as `data`."""
    if figure not in figure_names():
        return
    known = {item.name for item in fields(config_of(figure_study(str(figure))))}
    for word in words:
        if word.partition("=")[0] in known:
            others = [each for each in words if each.partition("=")[0] in {"scale", "outputs"}]
            raise InputError(
                f"{word}: `runner show` draws figures of the reference and computes nothing. This"
                f" computes the figure: {command(f'figure={figure}', *others, word)}"
            )


def main(arguments: list[str]) -> int:
    """Print the verdicts on a figure of the reference, or list all its figures; return 0.

    Raises InputError if there is no such figure, or the reference does not have it.
    """
    parser = argparse.ArgumentParser(
        prog="runner show",
        description="Show a figure of the reference with its verdicts and its picture; compute"
        " nothing. Without a name, list the figures.",
    )
    parser.add_argument("figure", nargs="?", help="fig4")
    words = "scale=... (default: the largest that the reference has), outputs=...; for a picture of"
    words = f"{words} your own: {'; '.join(PICTURE.values())}"
    parser.add_argument("words", nargs="*", metavar="key=value", help=words)
    options = parser.parse_args(arguments)
    _refuse_parameters(options.figure, options.words)
    values = key_values(options.words, ["scale", "outputs", *PICTURE])
    outputs = outputs_at(values.get("outputs", "outputs"))
    name, scale = options.figure, values.get("scale")
    changes = {key: values[key] for key in PICTURE if key in values}
    print(list_figures() if name is None else describe(name, scale, outputs, changes))
    return 0
