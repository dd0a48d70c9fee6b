"""Figures of the reference. Their tables, claims and provenance are in folders under git."""

import hashlib
import json
import lzma
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from runner.core.catalogue import figure_study
from runner.core.errors import InputError
from runner.results.drawing import Header
from runner.results.figure import Figure, program_of
from runner.results.finishing import save
from runner.results.rows import Tables
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE

FROM_REFERENCE = "figures-from-reference"
"""The folder for pictures of the reference, within the folder of outputs."""


def kept_folders(reference: Path) -> list[Path]:
    """Return the folders of all figures in the reference, `<reference>/<scale>/<figure>`."""
    return sorted(path.parent for path in reference.glob("*/*/claims.csv"))


@dataclass(frozen=True)
class KeptFigure(Figure):
    """A figure of the reference. Its tables are read from a folder, since it has no runs.

    All methods raise InputError if a file of the folder is damaged.
    """

    folder: Path = REFERENCE
    """The figure's folder, `<reference>/<scale>/<figure>`."""

    folder_name: ClassVar[str] = FROM_REFERENCE

    @classmethod
    def of(
        cls, folder: Path, outputs: Path = Path("outputs"), style: str = "screen"
    ) -> "KeptFigure":
        """Return the figure that is stored in a folder of the reference.

        outputs: the folder of outputs, into which the picture is drawn.
        """
        return cls(folder.name, folder.parent.name, (), (), outputs, style, folder)

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return the stored tables by name."""
        return read_tables(self.folder)

    def claims(self) -> pd.DataFrame:
        """Return the stored claims with their verdicts, a row for each claim."""
        return read_csv(self.folder / "claims.csv", keep_default_na=False)

    def header(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> Header:
        """Return the two lines above the picture.

        judged: the judged claims; None: the stored claims.
        """
        return super().header(tables, self.claims() if judged is None else judged)

    def caption(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> str:
        """Return the caption. judged: the judged claims; None: the stored claims."""
        return super().caption(tables, self.claims() if judged is None else judged)

    def picture(self, end: str = "png") -> Path:
        """Draw the picture unless there is an up-to-date one; return its path.

        end: `png`, or `body.png` for the picture without its header. The texts of the header are
        written into `parts/<figure>.header.json`. Raises the exception of the drawing if today's
        code cannot draw the stored tables.
        """
        path, words, source = map(self.path, (end, "header.json", "drawn-from"))
        digits = drawn_from(self.folder)
        is_current = words.exists() and source.exists() and source.read_text() == digits
        if is_current and path.exists():
            return path
        tables = self.tables()
        header = self.header(tables)
        for old in () if is_current else ("png", "body.png"):
            self.path(old).unlink(missing_ok=True)
        words.parent.mkdir(parents=True, exist_ok=True)
        save(self.drawn(tables, header)[0], self.stem, (end,))
        write_atomically(words, header.as_json())
        write_atomically(source, digits.encode())
        return path


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the stored tables of a figure, by name. folder: the figure's folder in the reference.

    Raises InputError if a file is damaged.
    """
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.glob("*.csv*"))}
    paths.pop("claims", None)
    shared = read_json(folder / "shared.json")
    return {name: read_csv(path).assign(**shared.get(name, {})) for name, path in paths.items()}


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return a stored table. path: a CSV file, which may be compressed (`.xz`).

    options: for `pandas.read_csv`. Raises InputError if the file is damaged.
    """
    with _damage_named(path):
        content = path.read_bytes()
        content = lzma.decompress(content) if path.suffix == ".xz" else content
        if not content.endswith(b"\n"):  # each written line has an end
            raise ValueError("its last line is cut off")
        return pd.read_csv(BytesIO(content), **options)


def read_json(path: Path) -> dict[str, Any]:
    """Return the mapping in a JSON file. Raises InputError if the file is damaged."""
    with _damage_named(path):
        content = json.loads(path.read_bytes())
        if not isinstance(content, dict):
            raise ValueError("it has no keys and values")
        return content


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        yield
    except (lzma.LZMAError, EOFError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())
        raise InputError(f"{path} is damaged ({why}): restore it, or make it again") from error


def drawn_from(folder: Path) -> str:
    """Return a text of digits that changes with a figure's stored tables, claims or drawing.

    folder: the figure's folder in the reference. For each picture, the file
    `parts/<figure>.drawn-from` has the digits with which it was drawn.
    """
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.csv*"), folder / "shared.json"]):
        digest.update(path.name.encode() + path.read_bytes())
    return f"{digest.hexdigest()[:16]} {program_of(folder.name, figure_study(folder.name))}"
