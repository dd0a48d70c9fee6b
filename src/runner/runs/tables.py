"""Tidy CSV tables on disk: written row by row, resumable, and checked when read."""

import csv
import hashlib
import io
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.errors import InputError
from runner.core.studies import Row
from runner.runs import files


def _cell(value: Any, kind: type, where: str) -> str:
    """One value as CSV text: the shortest text that reads back to the same number."""
    if kind is float and isinstance(value, int | float):
        return repr(float(value)) if math.isfinite(value) else str(float(value))
    if type(value) is kind:
        return str(value)
    raise TypeError(f"{where} is {value!r}, a {type(value).__name__}; the column holds {kind}")


@dataclass(frozen=True)
class Extent:
    """The beginning of a file: so many bytes, and their SHA-256."""

    bytes: int
    sha256: str


def extent_of(path: Path, size: int) -> Extent:
    """The first `size` bytes of a file, or all there are. Raises OSError when it cannot be read."""
    with files.open_to_read(path) as file:
        content = file.read(size)
    return Extent(len(content), hashlib.sha256(content).hexdigest())


class TableWriter:
    """Appends the rows of one study to one CSV file per row class.

    tables: what a checkpoint vouches for of each table; what lies behind is cut off. A table that
    is not named there starts anew. Each is a file of its own from then on, whatever stood there.
    """

    def __init__(self, folder: Path, tables: dict[str, Extent]) -> None:
        self.folder = folder
        self.files: dict[str, io.BufferedWriter] = {}
        self.digests = {}
        for other in folder.glob("*.csv"):
            if other.stem not in tables:
                other.unlink()
        for table, extent in tables.items():
            path = folder / f"{table}.csv"
            content = files.read(path)[: extent.bytes]
            files.write_atomically(path, content)
            self.digests[table] = hashlib.sha256(content)
            self.files[table] = path.open("ab")

    def write(self, row: Row) -> None:
        """Append one row. Raises TypeError when a value is not of its column's type."""
        table = row.table
        columns = fields(row)
        if table not in self.files:
            self.files[table] = (self.folder / f"{table}.csv").open("xb")
            self.digests[table] = hashlib.sha256()
            self._line(table, [column.name for column in columns])
        cells = [
            _cell(getattr(row, column.name), column.type, f"{table}.{column.name}")
            for column in columns
        ]
        self._line(table, cells)

    def _line(self, table: str, cells: list[str]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerow(cells)
        line = text.getvalue().encode()
        self.files[table].write(line)
        self.digests[table].update(line)

    def flush(self) -> dict[str, Extent]:
        """Bring all rows to the disk; returns what each table holds."""
        for file in self.files.values():
            file.flush()
            os.fsync(file.fileno())
        return {
            table: Extent(file.tell(), self.digests[table].hexdigest())
            for table, file in self.files.items()
        }

    def close(self) -> None:
        """Close all files."""
        for file in self.files.values():
            file.close()


def rows_in(path: Path, row_class: type[Row]) -> Iterator[Row]:
    """The rows of a table as the study gave them."""
    kinds = {item.name: item.type for item in fields(row_class)}
    with path.open(newline="") as file:
        for cells in csv.DictReader(file):
            yield row_class(**{name: _value(text, kinds[name]) for name, text in cells.items()})


def _value(text: str, kind: type) -> Any:
    """What `_cell` made the text of."""
    return text == "True" if kind is bool else kind(text)


def facts_of(path: Path) -> dict[str, Any]:
    """Size in bytes, SHA-256 and number of rows of a table: what `result.json` says of it."""
    content = files.read(path)
    return {
        "bytes": len(content),
        "rows": content.count(b"\n") - 1,
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def read_table(path: Path, expected: dict[str, Any]) -> pd.DataFrame:
    """The table at `path`. Raises InputError when it is not the one that was `expected`."""
    try:
        content = files.read(path)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from error
    if hashlib.sha256(content).hexdigest() != expected["sha256"]:
        raise InputError(
            f"{path} is damaged: {len(content)} bytes where result.json promises"
            f" {expected['bytes']}, or other content.\nRun it again with force=true."
        )
    return pd.read_csv(io.BytesIO(content))
