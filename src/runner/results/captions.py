"""Captions of figures: what a figure shows, what its marks are, and the data behind it.

The first part comes from the figure's configuration, the second from its drawing, the third from
its tables. A caption therefore names exactly the data, the sizes and the replicates that were used.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from functools import partial
from textwrap import fill

import pandas as pd

from runner.core.catalogue import config_of
from runner.core.studies import StudyConfig
from runner.results.labels import Names, names_of, upper
from runner.results.rows import SEEDS, NoRows, Present, Tables
from runner.runs.folder_names import UNNAMED

Caption = str | Callable[[Tables], str]
"""The description of a drawing's panels and marks: a text, or a function of the tables that returns
it."""

SIZES = {
    "data": "data",
    "architecture": "architecture",
    "activation": "activation",
    "dimension": "dimension",
    "depth": "depth",
    "target_width": "target width d",
    "width": "width",
    "multiplier": "fraction of channels",
    "train_images": "training images",
    "samples": "samples",
    "train_samples": "training samples",
}
"""The parameters that a caption may name, in this order, with their printed names."""

REPLICATES = {"replicates": "replicates", "chains": "networks"}
"""Columns with the number of repetitions, and the printed name of a repetition in the plural."""


def caption(
    title: str,
    description: Caption,
    study: str,
    tables: Tables,
    scale: str | None = None,
    overrides: Sequence[str] = (),
    drawn: Tables | None = None,
    verdicts: str = "",
    code: str = "",
    settings: Sequence[str] = (),
) -> str:
    """Return the caption of a figure: two paragraphs, in lines of at most 100 characters.

    The first says what is drawn. The second has the settings: data, sizes, seed, scale, and how
    many claims hold.

    - title: what the figure shows;
    - description: its panels and marks, as text or as a function of the tables;
    - study: the name of the study;
    - tables: the tables of the figure;
    - scale: the scale of the runs, such as `quick`; None: it is not mentioned;
    - overrides: the parameters `key=value` that the user typed;
    - drawn: the tables with only the drawn rows, whose data and sizes are named; None: `tables`;
    - verdicts: a phrase with the numbers of claims that hold, fail and are undecided;
    - code: a phrase with the commit that computed the runs, if today's code is another;
    - settings: further phrases about the runs.
    """
    try:
        words = description if isinstance(description, str) else description(Present(tables))
    except NoRows as absent:
        words = str(absent)
    changed = f"drawn with {', '.join(overrides)}" if overrides else ""
    lacking = left_out(words, tables, study) if overrides else ""
    shown = tables if drawn is None else drawn
    scales = [f"scale: {scale}"] if scale else []
    data = "; ".join([*facts(study, shown), *settings, *scales])
    explained = (title, changed, words, lacking)
    behind = (columns_named(words, tables, study), data, verdicts, code)
    texts = [" ".join(filter(None, map(_sentence, some))) for some in (explained, behind)]
    lines = [fill(text, 100, break_on_hyphens=False) for text in texts if text]
    return "\n\n".join(lines).replace(" %", "\u00a0%") + "\n"


def left_out(words: str, tables: Tables, study: str) -> str:
    """Return a phrase with the values that a caption names, but of which the tables have no rows.

    It is for figures with changed parameters or chosen rows, whose captions were written for all
    rows. An example is `left out: method dense network`. The phrase is empty if there are none.
    Only names that a parameter of the study may have are searched. words: the text of the caption.
    """
    names, missing = names_of(study), list[str]()
    allowed = {
        column: item.metadata["choices"]
        for item in fields(config_of(study))
        for column in (item.name, re.sub("ies$", "y", item.name), item.name.removesuffix("s"))
        if item.metadata.get("choices")
    }
    texts = [
        rows.select_dtypes(exclude="number") for rows in tables.values()
    ]  # not a measured loss
    columns = {column for rows in texts for column in rows if column in allowed}
    shown = {
        names.value(column, value)
        for rows in texts
        for column in columns & {*rows}
        for value in rows[column].dropna().unique()
    }
    for text in sorted(shown, key=len, reverse=True):
        words = re.sub(rf"(?<!\w){re.escape(text)}(?!\w)", "", words, flags=re.I)
    for column in sorted(columns):
        known = [value for value in names.listed(column) if value in allowed[column]]
        others = (names.value(column, value) for value in known)
        for text in sorted({*others} - shown):
            if re.search(rf"(?<!\w){re.escape(text)}s?(?!\w)", words, re.I):
                missing.append(f"{names.column(column)} {text}")
    return f"left out: {', '.join(missing)}" if missing else ""


def columns_named(words: str, tables: Tables, study: str) -> str:
    """Return a phrase with the names of columns and values for which a caption has other names.

    words: the text of the caption. If the caption writes p for the column `sparsity`, the phrase is
    `names in tables: sparsity (p)`. The phrase is empty if no name differs. A printed name is
    skipped if a table has a column with this name, or if it begins like the name in the tables.
    """
    names = names_of(study)
    printed = {column: names.column(column) for rows in tables.values() for column in rows}
    for rows in tables.values():
        for column in rows.select_dtypes(exclude="number"):
            values = filter(partial(names.entry, column), rows[column].unique())
            printed |= {value: names.value(column, value) for value in values}
    named = []
    for name, text in sorted(printed.items(), key=lambda pair: -len(pair[1])):
        words, count = re.subn(rf"(?<!\w){re.escape(text)}(?!\w)", "", words, flags=re.I)
        if count and text not in printed and not _are_alike(name, text):
            named.append(f"{name} ({text})")
    return f"names in tables: {', '.join(named)}" if named else ""


def _are_alike(name: str, printed: str) -> bool:
    """Return whether each word of a name begins a word of its printed name."""
    printed = f"{printed.replace('-', '')} {printed}"
    return all(re.search(rf"\b{re.escape(word)}", printed, re.I) for word in name.split("_"))


def dataset_in(tables: Tables) -> str:
    """Return the printed names of the datasets in some tables, for a header.

    For one dataset of one size, the number of training images is added. The text is empty if all
    inputs are Gaussian, or no table has the column `data`.
    """
    values, sizes = _values(tables, "data"), _values(tables, "train_images")
    if values == ["gaussian"]:
        return ""
    names = [Names().value("data", value) for value in values]
    if len(names) == len(sizes) == 1:
        return f"{names[0]} ({int(sizes[0]):,} training images)"
    return ", ".join(names)


def _sentence(text: str) -> str:
    text = upper(" ".join(text.split()))
    return text if not text or text[-1] in ".!?" else f"{text}."


def facts(study: str, tables: Tables) -> Iterator[str]:
    """Yield phrases about the runs behind some tables: data, sizes, replicates and seed.

    An example is `training images: 1,437`. study: the study's name; only its parameters are
    mentioned.
    """
    helps = {item.name: item.metadata.get("help", "") for item in fields(config_of(study))}
    parameters = {*helps}
    for column, name in SIZES.items():
        if {column, f"{column}s"} & parameters and (values := _values(tables, column)):
            name = _of_what(helps["samples"]) if column == "samples" else name
            yield f"{name}: {span(values, column, study)}"
            if column == "data" and (pixels := _values(tables, "image_pixels")):  # a user's file
                yield f"images: {' and '.join(pixels)}"
    if count := repeated(tables, parameters):
        yield count
    if (seeds := _values(tables, "seed")) and not _values(tables, SEEDS):
        yield f"seed: {span(seeds)}"


def changes(configs: Sequence[StudyConfig]) -> Iterator[str]:
    """Yield phrases about parameters that differ from their defaults in the same way in all runs.

    An example is `epochs: 10`. Parameters that `facts` names are left out. configs: the parameters
    of the runs, which are of one study.
    """
    named, said = names_of(configs[0].study), {"seed", *REPLICATES, *UNNAMED}
    said |= {*SIZES, *(f"{name}s" for name in SIZES)}
    for name, value in configs[0].identity().items():
        if name not in said and all(getattr(config, name) == value for config in configs):
            values = value if isinstance(value, list) else [value]
            yield f"{named.column(name)}: {', '.join(named.value(name, one) for one in values)}"


def _of_what(help_text: str) -> str:
    """Return what a parameter is the number of: "N: number of images; all" gives `images`."""
    words = re.match(r"(?:\w[:,] )?(?:the )?(?:list of )?(?:numbers? of )?([^;,(]+)", help_text)
    return words[1].strip() if words else SIZES["samples"]


def repeated(tables: Tables, among: Collection[str] = tuple(REPLICATES)) -> str:
    """Return the number of repetitions behind some tables as a phrase: `8 replicates`.

    Of several seeds it is `8 replicates of each of the seeds 1 and 2`. The text is empty if no
    table has the number. among: the columns that may have it.
    """
    for column, name in REPLICATES.items():
        if column in among and (values := _values(tables, column)):
            of = [f" of each of the seeds {_listed(text)}" for text in _values(tables, SEEDS)]
            name = name if values != [1] else name.removesuffix("s")
            return f"{span(values)} {name}{' or'.join(of)}"
    return ""


def _listed(seeds: str) -> str:
    """Return seeds that are joined by `+` as a list in words."""
    *first, last = seeds.split("+")
    return " and ".join(filter(None, (", ".join(first), last)))


def _values(tables: Tables, column: str) -> list:
    """Return the sorted values of a column in the tables that have it."""
    columns = [rows[column] for rows in tables.values() if column in rows and len(rows)]
    return sorted(pd.concat(columns).dropna().unique()) if columns else []


def span(values: list, column: str = "", study: str = "") -> str:
    """Return values as text: names, or numbers, or the range of many numbers.

    column, study: where the printed names of texts belong.
    """
    if isinstance(values[0], str):
        if len(values) > 3:
            return f"{len(values)} kinds"
        return ", ".join(names_of(study).value(column, value) for value in values)
    numbers = [f"{value:,}" if value % 1 else f"{int(value):,}" for value in map(float, values)]
    return " and ".join(numbers) if len(numbers) < 3 else f"{numbers[0]} to {numbers[-1]}"
