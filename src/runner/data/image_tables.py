"""CSV files of images: a row for each image, with a column `label` and a column for each pixel.

Each message about a cell has its row and its column. Row 1 is the first row below the header.
"""

import csv
import re
from collections import Counter
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd

from runner.core.errors import InputError

NO_PIXELS = ("labels", "test", "class", "target", "split", "id", "index")
"""Names of columns that are no pixels. They are refused, in upper case and with blanks, too."""

INSTEAD = dict.fromkeys(("label", "labels", "class", "target"), ", or name it label")
INSTEAD |= {"test": ", or name it test", "split": ", or name it test, with 0 and 1"}
"""What else to do with a column that is no pixel, by its name in lower case."""

UNNAMED = re.compile(r"\s*(Unnamed: \d+)?\s*")
"""The names that pandas gives and reads for a column without a name, such as an index."""

COUNTED = 5
"""The number of rows from which on a column 0, 1, 2, ... or 1, 2, 3, ... is a numbering."""

TESTS = {"0": False, "1": True, "0.0": False, "1.0": True, "false": False, "true": True}
"""The values of the column `test`, in lower case."""

FRACTION = re.compile(r"[+-]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][+-]?\d+)?")


def read(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of a CSV file: images (n, pixels) and labels, and test images if any.

    Labels are text without blanks at both ends. Raises InputError if the header or a row is wrong;
    other exceptions if the file cannot be read.
    """
    header = _header(path)
    texts = {name: str for name in ("label", "test") if name in header}
    try:
        table = pd.read_csv(
            path,
            dtype=texts,
            keep_default_na=False,
            low_memory=False,
            encoding="utf-8-sig",
        )
    except pd.errors.ParserError:
        _require_cells(path, len(header))
        raise
    if table.empty:
        raise InputError(f"{path} has no rows below the header")
    labels = _labels(path, table["label"])
    is_test = _is_test(path, table["test"]) if "test" in table else np.zeros(len(table), bool)
    pixels = _pixels(path, table.drop(columns=[*texts]))
    arrays = {}
    for prefix, rows in (("", ~is_test), ("test_", is_test)):
        if rows.any():
            arrays[f"{prefix}images"], arrays[f"{prefix}labels"] = pixels[rows], labels[rows]
    return arrays


def _header(path: Path) -> list[str]:
    """Return the names of the columns, after checking them and the length of the first row.

    pandas would use the first cells of longer rows as names of the rows.
    """
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = (row for row in csv.reader(file) if row)
        header = next(rows, [])
        first = next(rows, header)
    if not header:
        raise InputError(f"{path} is empty: it cannot be read as csv")
    if len(header) == 1 and (found := re.search(r"[;\t|]", header[0])):
        raise InputError(f"{path}: {found[0]!r} separates its cells: commas are needed")
    if "label" not in header and not any(re.search(r"[^\d.eE+-]", name) for name in header):
        raise InputError(f"{path}: its first line has numbers only: a header with label is needed")
    for number, name in enumerate(header, start=1):
        if UNNAMED.fullmatch(name):
            raise InputError(
                f"{path}: column {number} has no name: delete it"
                " (to_csv(..., index=False) writes no index)"
            )
        plain = name.strip().lower()
        if plain == "label" != name or plain in NO_PIXELS and name != "test":
            raise InputError(
                f"{path}: column {name!r} is no pixel: delete it{INSTEAD.get(plain, '')}"
            )
    if repeated := [name for name, count in Counter(header).items() if count > 1]:
        raise InputError(f"{path}: two columns are named {repeated[0]}")
    if "label" not in header:
        raise InputError(
            f"{path} has no column label; its first column is {header[0]}, its last {header[-1]}:"
            " name the column with the labels label"
        )
    if len(header) == 1 + ("test" in header):
        raise InputError(f"{path} has no column with pixels, only {' and '.join(header)}")
    if len(first) != len(header):
        _refuse_row(path, 1, len(first), len(header))
    return header


def _require_cells(path: Path, columns: int) -> None:
    """Raise InputError with the first row that has not one cell for each column."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        for number, row in enumerate(row for row in csv.reader(file) if row):
            if len(row) != columns:
                _refuse_row(path, number, len(row), columns)


def _refuse_row(path: Path, row: int, cells: int, columns: int) -> NoReturn:
    raise InputError(f"{path}: row {row} has {cells} cells, but the header names {columns} columns")


def _refuse_cell(path: Path, row: int, column: str, cell: object, needed: str) -> NoReturn:
    """Raise InputError for a wrong cell. row: its index, from 0. needed: what a cell is."""
    is_blank = pd.isna(cell) or not str(cell).strip()
    what = "blank" if is_blank else str(cell)
    raise InputError(f"{path}: row {row + 1}, column {column} is {what}: {needed} is needed")


def _labels(path: Path, cells: pd.Series) -> np.ndarray:
    """Return the labels as text. Raises InputError for blank labels and for fractions."""
    labels = [cell.strip() if isinstance(cell, str) else "" for cell in cells]
    for row, label in enumerate(labels):
        is_number = FRACTION.fullmatch(label) is not None
        if not label or is_number and not float(label).is_integer():
            _refuse_cell(path, row, "label", label, "a name or a whole number")
    return np.array(labels, dtype=object)


def _is_test(path: Path, cells: pd.Series) -> np.ndarray:
    """Return which rows are test images. Raises InputError for another value than 0 and 1."""
    values = [cell.strip().lower() if isinstance(cell, str) else "" for cell in cells]
    for row, value in enumerate(values):
        if value not in TESTS:
            _refuse_cell(path, row, "test", cells.iloc[row], "0 or 1")
    return np.array([TESTS[value] for value in values])


def _pixels(path: Path, table: pd.DataFrame) -> np.ndarray:
    """Return the pixels (n, pixels) in float64.

    Raises InputError for a cell that is no number within float32, and for a column that only
    numbers the rows, or has truth values among columns of numbers.
    """
    needed = "a number within the range of float32"
    truths = [*table.select_dtypes("bool")]
    if truths and len(truths) < len(table.columns):
        raise InputError(f"{path}: column {truths[0]} has truth values and is no pixel: delete it")
    for name in table.select_dtypes(exclude=["number", "bool"]):
        numbers = pd.to_numeric(table[name].astype(str), errors="coerce")
        if (wrong := numbers.isna()).any():
            row = int(wrong.argmax())
            _refuse_cell(path, row, name, table[name].iloc[row], needed)
        table[name] = numbers
    pixels = table.to_numpy(np.float64)
    wrong = ~(np.abs(pixels) <= np.finfo(np.float32).max)
    if wrong.any():
        row, column = (int(index) for index in np.argwhere(wrong)[0])
        _refuse_cell(path, row, table.columns[column], table.iloc[row, column], needed)
    if len(table) >= COUNTED:
        steps = (np.diff(pixels, axis=0) == 1).all(0) & np.isin(pixels[0], [0, 1])
        if steps.any():
            name = table.columns[int(steps.argmax())]
            raise InputError(f"{path}: column {name} numbers the rows and is no pixel: delete it")
    return pixels
