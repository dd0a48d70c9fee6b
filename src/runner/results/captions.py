"""Captions of figures: what a figure is, what its marks are, and what it was drawn from.

The first comes from the figure's configuration, the second from its drawing, the third from its
tables, so that a caption names the data, the sizes and the replicates that were used, and no other.
"""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import fields
from textwrap import fill

import pandas as pd

from runner.core.catalogue import config_of
from runner.results.labels import Labels, names_of
from runner.results.rows import NoRows, Present, Tables

Said = str | Callable[[Tables], str]
"""What a drawing says of its panels and marks, or how it makes that from the tables."""

SIZES = {
    "data": "data",
    "architecture": "architecture",
    "activation": "activation",
    "dimension": "dimension",
    "depth": "depth",
    "target_width": "target width d",
    "width": "width",
    "multiplier": "fraction of the channels",
    "train_images": "training images",
    "samples": "samples N",
    "train_samples": "training samples",
}
"""The parameters that a caption names, in this order, as far as a study has them."""

DATASETS = Labels() | {
    "digits": "digits",
    "fashion_mnist": "Fashion-MNIST",
    "cifar10": "CIFAR-10",
    "random_pixels": "random pixels",
    "gaussian": "Gaussian",
}
"""Their names in captions and titles."""

REPLICATES = {"replicates": "replicates", "chains": "networks"}
"""What is repeated: n."""


def caption(
    headline: str,
    said: Said,
    study: str,
    tables: Tables,
    scale: str | None = None,
    overrides: Sequence[str] = (),
) -> str:
    """Return a figure's caption, in lines of a hundred letters, with a newline at its end.

    headline: what the figure is; said: what its drawing says of its marks; overrides: what was
    typed to make it another figure.
    """
    try:
        words = said if isinstance(said, str) else said(Present(tables))
    except NoRows as absent:
        words = str(absent)
    drawn = f"drawn with {', '.join(overrides)}" if overrides else ""
    about = "; ".join([*facts(study, tables), *([f"scale: {scale}"] if scale else [])])
    parts = (headline, drawn, words, in_tables(words, tables, study), about)
    text = " ".join(filter(None, map(_sentence, parts))).replace(" %", "\u00a0%")
    return fill(text, 100, break_on_hyphens=False) + "\n"


def in_tables(words: str, tables: Tables, study: str) -> str:
    """Return which names in these words differ from the names in the tables.

    A printed name that is also the name of a column is omitted: it has several columns.
    """
    names = names_of(study)
    called = {column: names.column(column) for rows in tables.values() for column in rows}
    for rows in tables.values():
        texts = {
            each
            for column in rows.select_dtypes(exclude="number")
            for each in rows[column].unique()
        }
        called |= {each: names.value(each) for each in names.values if each in texts}
    said = []
    for name, printed in sorted(called.items(), key=lambda pair: -len(pair[1])):
        words, count = re.subn(rf"(?<!\w){re.escape(printed)}(?!\w)", "", words, flags=re.I)
        if count and printed not in called and not _alike(name, printed):
            said.append(f'"{printed}" is called {name}')
    return f"in the tables, {'; '.join(said)}" if said else ""


def _alike(name: str, printed: str) -> bool:
    """Return whether each word of a name begins one of its printed name."""
    return all(re.search(rf"\b{re.escape(word)}", printed, re.I) for word in name.split("_"))


def dataset(rows: pd.DataFrame) -> str:
    """Return the dataset of a study's rows, for a title, with the training images if it is a
    part."""
    first = rows.iloc[0]
    name, part = DATASETS[first["data"]], first.get("train_images")
    return name if pd.isna(part) else f"{name} ({int(part):,} training images)"


def dataset_in(tables: Tables) -> str:
    """Architecture and datasets of some tables, for a header; nothing for Gaussian inputs alone."""
    values = _values(tables, "data")
    names = [DATASETS.get(value, value) for value in values]
    parts = _values(tables, "train_images")
    if len(names) == 1 and len(parts) == 1 and values != ["gaussian"]:
        names = [f"{names[0]} ({int(parts[0]):,} training images)"]
    return "" if values == ["gaussian"] else ", ".join(names)


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + "." * (bool(text) and text[-1] not in ".!?")


def facts(study: str, tables: Tables) -> Iterator[str]:
    """Data, sizes, replicates and seed of the runs behind some tables."""
    own = {item.name for item in fields(config_of(study))}
    for column, name in SIZES.items():
        if {column, f"{column}s"} & own and (values := _values(tables, column)):
            yield f"{name}: {_span(values)}"
    if how_many := repeated(tables, own):
        yield how_many
    if seeds := _values(tables, "seed"):
        yield f"seed: {_span(seeds)}"


def repeated(tables: Tables, among: Collection[str] = tuple(REPLICATES)) -> str:
    """How many replicates, or chains, there are; nothing where tables do not say. among: the
    columns that may."""
    for column, name in REPLICATES.items():
        if column in among and (values := _values(tables, column)):
            return f"n = {_span(values)} {name}"
    return ""


def _values(tables: Tables, column: str) -> list:
    """Return the different values of a column in the tables that have it, in order."""
    found = [rows[column] for rows in tables.values() if column in rows and len(rows)]
    return sorted(pd.concat(found).dropna().unique()) if found else []


def _span(values: list) -> str:
    """Words one after the other; of numbers one, two, or the first and the last."""
    if isinstance(values[0], str):
        return ", ".join(DATASETS.get(value, value) for value in values)
    numbers = [f"{value:,}" if value % 1 else f"{int(value):,}" for value in map(float, values)]
    return " and ".join(numbers) if len(numbers) < 3 else f"{numbers[0]} to {numbers[-1]}"
