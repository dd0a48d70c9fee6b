"""The command `runner report`: a gallery of all figures, and a table of all claims, as web pages.

The pages show what `commands.gallery_data` collects. They are written into `<outputs>/report/`,
with copies of all pictures and links to the tables behind the numbers. For a figure without
results, the command that makes it is shown. Variants of a figure, made with other parameters,
follow the figure. They are not counted in totals.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from PIL import Image, UnidentifiedImageError

from runner.commands.gallery_data import Entry, Result, claims_of, collect, reason
from runner.core.arguments import key_values
from runner.core.catalogue import judges, scale_in
from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_writable
from runner.core.papers import Paper
from runner.core.progress import log_to_terminal
from runner.results.claims import distinct
from runner.results.verdicts import MARKS, STANDINGS
from runner.runs.files import read, write_atomically
from runner.runs.provenance import REFERENCE

PAGES = files("runner.commands") / "pages"
VERDICTS = {verdict: sign for verdict, (sign, _, _) in MARKS.items()}
KINDS = {
    "paper": "What the paper says",
    "ours": "Additional: controls, and what goes beyond the paper",
    "illustration": "Loose bounds: statements of the paper that a wide margin does not test",
}
"""What the pages call each kind of claim. The paper's claims come first."""
THUMBNAIL = 800
"""The width of a thumbnail in pixels, two for each pixel of the page."""
LARGEST_PICTURE = 16_383
"""The largest width and height of a picture in pixels, those of the format WebP."""
NBSP = "\u00a0"
"""A space at which no line is broken."""
LETTERS = {"theta": "θ", "Theta": "Θ", "lambda": "λ", "gamma": "γ", "alpha": "α", "sigma": "σ"}
LETTERS |= {"delta": "δ", "epsilon": "ε", "eps": "ε", "eta": "η"}


@dataclass(frozen=True)
class PaperResults:
    """The results for one paper, as the index of the gallery shows them."""

    paper: Paper
    entries: list[Entry]
    claims: pd.DataFrame
    """All claims in all results for the paper's figures."""
    counts: dict[str, Counter[str]]
    """For each kind of claim, the number of main claims with each verdict."""
    found: str
    """Sentences about the paper, each shown only if its claims have the required verdicts."""


def by_paper(entries: list[Entry], claims: pd.DataFrame) -> Iterator[PaperResults]:
    """Yield the results for each paper, as the index of the gallery shows them.

    claims: the result of `claims_of(entries)`.
    """
    main = claims[claims["is_main"]]
    decided = main[main["scale"].map(judges).astype(bool)]
    verdicts = decided.set_index(decided["figure"] + "/" + decided["claim"])["verdict"]
    for paper in dict.fromkeys(entry.paper for entry in entries):
        figures = [entry for entry in entries if entry.paper == paper]
        findings = [
            sentence["says"]
            for sentence in papers().get(paper.letter, {}).get("found", [])
            if all(
                verdicts.get(claim) == verdict
                for verdict in VERDICTS
                for claim in sentence.get(verdict, [])
            )
        ]
        rows = claims[claims["figure"].isin([entry.name for entry in figures])]
        yield PaperResults(paper, figures, rows, counts(rows[rows["is_main"]]), " ".join(findings))


def papers() -> dict[str, Any]:
    """Return texts about each paper, by its letter: authors, question, possible findings."""
    return yaml.safe_load((PAGES / "papers.yaml").read_text())


def counts(claims: pd.DataFrame) -> dict[str, Counter[str]]:
    """Return for each kind of claim how many claims have each verdict.

    A statement that is repeated about the same numbers counts once.
    """
    each_once = distinct(claims)
    return {kind: Counter(each_once.loc[each_once["kind"] == kind, "verdict"]) for kind in KINDS}


def tallies(claims: pd.DataFrame) -> Iterator[tuple[str, str, int, dict[str, Counter[str]]]]:
    """Yield source, scale, number of figures and `counts` of claims, for each source and scale.

    The source is `own` or `reference`. claims: a result of `claims_of`. Variants of figures are not
    counted.
    """
    canonical = claims[claims["is_canonical"]]
    for (whose, scale), rows in canonical.groupby(["whose", "scale"], sort=False):
        yield whose, scale, rows["figure"].nunique(), counts(rows)


def capital(text: str) -> str:
    """Return a text that begins with a capital, unless its first word is a symbol."""
    word = re.match(r"(a|[a-z]{2,})[ :,-]", text)
    return text[0].upper() + text[1:] if word and word[1] not in LETTERS else text


def pretty(text: str) -> Markup:
    """Return a text as HTML, with formulas as in mathematics.

    Examples are ‖θ‖² for ||theta||^2, and 1.2·10⁻⁵ for 1.2e-05.
    """
    text = re.sub(rf"\b({'|'.join(LETTERS)})(?=\b|_)", lambda match: LETTERS[match[1]], text)
    text = re.sub(r"sqrt\((\w)\)", r"√\1", text).replace("sqrt", "√").replace("sum_", "Σ_")
    text = text.replace("||", "‖").replace("<=", "≤").replace(">=", "≥").replace("^T", "ᵀ")
    text = re.sub(r"(-?\d[.\d]*)e([+-]?\d+)", _power_of_ten, text)
    text = re.sub(r"(?<=\bn) = (?=\d)| (?=%)", lambda match: match[0].replace(" ", NBSP), text)
    html = re.sub(
        r"\^(?:\{([^}]*)\}|(\(\d\))|\(([^)]*)\)|(-?[\d.]*\d|\w\b))", _raised, str(escape(text))
    )
    lowered = r"<sub>\1\2</sub>"
    return Markup(re.sub(r"(?:(?<=\b\w)|(?<=[‖|>]))_(?:\{([^}]*)\}|(\w+|\+))", lowered, html))


def _power_of_ten(match: re.Match[str]) -> str:
    power = int(match[2])
    return f"{float(match[0]):,.0f}" if 0 <= power < 5 else f"{match[1]}·10^{power}"


def _raised(match: re.Match[str]) -> str:
    return f"<sup>{next(filter(None, match.groups()))}</sup>".replace("-", "−")


def duration(seconds: float) -> str:
    """Return a time as text in seconds, minutes or hours, for example `5 min`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def pages(entries: list[Entry], **variables: Any) -> Environment:
    """Return a Jinja environment with the templates of the gallery's pages and their variables.

    entries: the figures. variables: further variables of the templates. In HTML pages text is
    escaped.
    """
    loader = PackageLoader("runner.commands", "pages")
    options: Any = {"trim_blocks": True, "lstrip_blocks": True, "undefined": StrictUndefined}
    made = Environment(loader=loader, autoescape=lambda name: ".html" in str(name), **options)
    made.filters |= {f.__name__: f for f in (pretty, capital, duration, reason)}
    claims = claims_of(entries)
    first = [entry.first for entry in entries if entry.is_canonical and entry.first]
    about = {"first": first, "total": counts(claims[claims["is_main"]])}
    about |= {"shown": list(by_paper(entries, claims)), "tallies": list(tallies(claims))}
    about |= {"said": papers(), "verdicts": VERDICTS, "kinds": KINDS, "standings": STANDINGS}
    made.globals |= about | {"counts": counts} | variables
    return made


def write(entries: list[Entry], folder: Path) -> None:
    """Write all pages of the gallery, and the pictures that they show, into a folder.

    entries: the figures. Raises OSError if a file cannot be written, and InputError if a picture is
    damaged.
    """
    pictures = folder / "pictures"
    pictures.mkdir(parents=True, exist_ok=True)
    drawings = {
        result.stem: _publish(result, pictures / result.stem, result is entry.first)
        for entry in entries
        for result in entry.results
        if result.picture
    }
    made = pages(entries, drawings=drawings)
    plain = ("index.html", "claims.html")
    content = {name: made.get_template(f"{name}.jinja").render() for name in plain}
    for before, entry, after in zip([None, *entries], entries, [*entries[1:], None], strict=False):
        page = made.get_template("figure.html.jinja")
        content[f"{entry.name}.html"] = page.render(entry=entry, before=before, after=after)
    content |= {name: (PAGES / name).read_text() for name in ("style.css", "filter.js")}
    for name, text in content.items():
        write_atomically(folder / name, text.encode())


def _publish(result: Result, stem: Path, small: bool) -> tuple[int, int]:
    """Copy a result's picture, with a thumbnail if `small`; return its size in pixels.

    Raises InputError if the picture is damaged.
    """
    picture, encoded = Path(result.picture or ""), BytesIO()
    try:
        content = read(picture)
        image = Image.open(BytesIO(content))
        if max(image.size) > LARGEST_PICTURE:
            raise ValueError(f"it has {image.width} x {image.height} pixels")
        if small:
            thumbnail = image.convert("RGB")
            thumbnail.thumbnail((THUMBNAIL, image.height), Image.Resampling.LANCZOS)
            thumbnail.save(encoded, "webp", quality=80)
    except Exception as error:  # a damaged picture may raise anything
        why = getattr(error, "strerror", None) or error
        why = "it has another content" if isinstance(error, UnidentifiedImageError) else why
        raise InputError(f"{picture} is no picture ({why}).\n{result.again}") from error
    write_atomically(Path(f"{stem}.png"), content)
    if small:
        write_atomically(Path(f"{stem}.webp"), encoded.getvalue())
    return image.size


def main(arguments: list[str]) -> int:
    """Write a gallery of all figures and claims, `<outputs>/report/index.html`; return 0.

    Raises InputError if an argument is wrong, files of a figure are damaged, or the pages cannot be
    written.
    """
    parser = argparse.ArgumentParser(
        prog="runner report",
        description="Write a gallery of every figure and every claim, yours next to the stored"
        " ones: <outputs>/report/index.html. Compute nothing.",
    )
    parser.add_argument("words", nargs="*", metavar="key=value", help="outputs=..., scale=...")
    words = parser.parse_args(arguments).words
    values = key_values(words, ["outputs", "scale"])
    scale_in(words)
    outputs = outputs_at(values.get("outputs", "outputs"))
    folder = outputs / "report"
    require_writable(outputs, folder)
    log_to_terminal()
    entries = collect(outputs, values.get("scale"), REFERENCE)
    try:
        write(entries, folder)
    except OSError as error:
        raise InputError(f"{folder} cannot be written ({error.strerror})") from error
    print(folder / "index.html")
    return 0
