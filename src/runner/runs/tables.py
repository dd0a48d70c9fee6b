"""Tables as CSV files, written row by row. They can be continued, and are checked when read."""

import csv
import hashlib
import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.errors import InputError
from runner.core.studies import Row, column_types
from runner.runs import files


@dataclass(frozen=True)
class Extent:
    """How much of a table was written: numbers of bytes and rows, SHA-256, types of the columns."""

    bytes: int
    rows: int
    sha256: str
    columns: dict[str, str]


def sha256_of(path: Path, size: int = -1) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits.

    size: how many bytes to use, from the beginning; -1: all. Raises OSError if the file cannot be
    read.
    """
    return hashlib.sha256(files.read(path, size)).hexdigest()


class TableWriter:
    """Writes rows to CSV files in a folder, one file for each table.

    extents: how much of each table was written when the last checkpoint was stored, by the table's
    name; empty: nothing. At the beginning each file is cut to this length, and the CSV files of all
    other tables are deleted.
    """

    def __init__(self, folder: Path, extents: dict[str, Extent]) -> None:
        self.folder = folder
        self.rows = {table: extent.rows for table, extent in extents.items()}
        self.columns = {table: extent.columns for table, extent in extents.items()}
        self.files: dict[str, io.BufferedWriter] = {}
        self.digests: dict[str, Any] = {}
        for path in folder.glob("*.csv"):
            if path.stem not in extents:
                path.unlink()
        for table, extent in extents.items():
            path = folder / f"{table}.csv"
            os.truncate(path, extent.bytes)
            self.files[table] = path.open("ab")
            self.digests[table] = hashlib.sha256(path.read_bytes())

    def write(self, row: Row) -> None:
        """Append one row to its table. Raises TypeError if a value is not of its column's type."""
        table, columns = row.table, column_types(row)
        if table not in self.files:
            self.files[table] = (self.folder / f"{table}.csv").open("xb")
            self.digests[table] = hashlib.sha256()
            self.columns[table] = {name: kind.__name__ for name, kind in columns.items()}
            self.rows[table] = -1  # the line of names does not count
            self._line(table, list(self.columns[table]))
        cells = [_cell(getattr(row, name), kind, table, name) for name, kind in columns.items()]
        self._line(table, cells)

    def _line(self, table: str, cells: list[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\r\n").writerow(cells)  # quotes texts with either
        line = f"{text.getvalue()[:-2]}\n".encode()
        self.files[table].write(line)
        self.digests[table].update(line)
        self.rows[table] += 1

    def sizes(self) -> dict[str, int]:
        """Return how many bytes were written to each table, by its name."""
        return {name: file.tell() for name, file in self.files.items()}

    def flush(self) -> dict[str, Extent]:
        """Write all rows to the disk; return the extent of each table, by the table's name."""
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        return {
            name: Extent(file.tell(), self.rows[name], digest.hexdigest(), self.columns[name])
            for (name, file), digest in zip(self.files.items(), self.digests.values(), strict=True)
        }

    def close(self) -> None:
        """Close all files."""
        for file in self.files.values():
            file.close()


def _cell(value: Any, kind: type, table: str, column: str) -> str:
    """Return a value as CSV text: the shortest text that reads back to the same number."""
    if kind is float and isinstance(value, int | float):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if type(value) is not kind:
        held = f"{value!r}, a {type(value).__name__}"
        raise TypeError(f"{table}.{column} is {held}; the column holds {kind}")
    return str(value)


def rows_in(path: Path, row_class: type[Row]) -> Iterator[Row]:
    """Yield the rows in a CSV file as objects of `row_class`."""
    kinds = column_types(row_class)
    with path.open(newline="") as file:
        for cells in csv.DictReader(file):
            values = {
                name: text == "True" if kinds[name] is bool else kinds[name](text)
                for name, text in cells.items()
            }
            yield row_class(**values)


def read_table(path: Path, expected: dict[str, Any]) -> pd.DataFrame:
    """Return the table in a CSV file. Text columns stay text, even if they contain digits.

    expected: the table's entry in `result.json`. Raises InputError if the file cannot be read, or
    its content does not have the recorded checksum.
    """
    content = table_bytes(path, expected)
    kinds = expected.get("columns")
    if kinds is None:  # an old run: pandas guesses the types
        return pd.read_csv(io.BytesIO(content))
    text = {name: str for name, kind in kinds.items() if kind == "str"}
    nan = {name: ["nan"] for name in kinds if name not in text}
    return pd.read_csv(io.BytesIO(content), dtype=text, keep_default_na=False, na_values=nan)


def table_bytes(path: Path, expected: dict[str, Any]) -> bytes:
    """Return the content of a table's CSV file, after comparing its checksum.

    expected: the table's entry in `result.json`. Raises InputError as `read_table` does.
    """
    try:
        content = files.read(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise InputError(
            f"{path} is damaged: {len(content)} bytes where result.json promises"
            f" {expected['bytes']}, or other content.\nRun it again with force=true."
        )
    return content
