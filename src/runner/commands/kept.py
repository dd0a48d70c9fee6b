"""Figures of the reference. Their tables, claims and provenance are in folders under git."""

import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from runner.core.catalogue import figure_study, rows_of
from runner.core.errors import InputError
from runner.core.studies import Row, column_types
from runner.results.claims import COLUMNS
from runner.results.drawing import Header
from runner.results.figure import Figure, program_of
from runner.results.finishing import save
from runner.results.rows import Tables
from runner.results.verdicts import KINDS, MARKS, STANDINGS
from runner.runs.files import read, require_replaceable, write_atomically
from runner.runs.provenance import REFERENCE, code_of

FROM_REFERENCE = "figures-from-reference"
"""The folder for pictures of the reference, within the folder of outputs."""


STORED = (*COLUMNS, "standing")
"""The columns of stored claims."""


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

    def tables(self, keys: bool = True) -> dict[str, pd.DataFrame]:
        """Return the stored tables by name. keys: whether they must identify each row."""
        return read_tables(self.folder, rows_of(self.study), keys)

    def claims(self) -> pd.DataFrame:
        """Return the stored claims with their verdicts, a row for each claim."""
        return read_claims(self.folder / "claims.csv", STORED, keep_default_na=False)

    def stored_caption(self) -> str:
        """Return the stored caption."""
        return read_text(self.folder / "caption.txt")

    def header(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> Header:
        """Return the two lines above the picture: what it shows, and what was found.

        judged: the judged claims; None: the stored claims.
        """
        return super().header(tables, self.claims() if judged is None else judged)

    def caption(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> str:
        """Return the caption. judged: the judged claims; None: the stored claims."""
        return super().caption(tables, self.claims() if judged is None else judged)

    def other_code(self) -> str:
        """Return a phrase with the commits of runs that today's code does not compute, or ""."""
        about, today = read_json(self.folder / "provenance.json"), code_of(self.study)
        with damage_named(self.folder / "provenance.json"):
            runs = [run for run in about["runs"] if run["code"] != today]
            commits = sorted({run["commit"][:8] for run in runs})
        if not commits:
            return ""
        noun = "commit" if len(commits) == 1 else "commits"
        return f"computed by earlier code, at {noun} {' and '.join(commits)}"

    def picture(self, end: str = "png") -> Path:
        """Draw the picture unless there is an up-to-date one; return its path.

        end: `png`, or `body.png` for the picture without its header. The texts of the header are
        written into `parts/<figure>.header.json`. Raises the exception of the drawing if today's
        code cannot draw the stored tables.
        """
        path, words, source = map(self.path, (end, "header.json", "drawn-from"))
        digits = drawn_from(self.folder)
        require_replaceable(path, words, source)
        is_current = words.exists() and source.exists() and source.read_bytes() == digits.encode()
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


def read_tables(
    folder: Path, rows: Mapping[str, type[Row]] | None = None, keys: bool = True
) -> dict[str, pd.DataFrame]:
    """Return the stored tables of a figure, by name. folder: the figure's folder in the reference.

    rows: the classes of the tables' rows. keys: whether a table must have the columns that identify
    its rows; a table of older code may lack some.
    Raises InputError if a file is damaged.
    """
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.glob("*.csv*"))}
    paths.pop("claims", None)
    shared, tables = read_json(folder / "shared.json"), {}
    for name, path in paths.items():
        with damage_named(folder / "shared.json"):
            columns = {**shared.get(name, {})}
        with damage_named(path):
            tables[name] = read_csv(path).assign(**columns)
            if rows and name in rows:
                _require_rows(tables[name], rows[name], keys)
    return tables


def _require_rows(table: pd.DataFrame, row_class: type[Row], keys: bool) -> None:
    """Raise ValueError unless a table has rows of this class, with numbers where they belong."""
    require_columns(table, ("run", *(row_class.keys if keys else ())))
    if table.empty:
        raise ValueError("it has no rows")
    for name, kind in column_types(row_class).items():
        if kind is not str and name in table and table[name].dtype.kind not in "iufb":
            raise ValueError(f"its column {name} has texts")


def require_columns(table: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise ValueError if a table has no such columns."""
    if missing := [column for column in columns if column not in table]:
        raise ValueError(f"it has no column {missing[0]}")


KNOWN = {"verdict": {*MARKS}, "kind": {*KINDS}, "standing": {*STANDINGS}}
"""The texts that columns of judged claims may have."""


def read_claims(path: Path, columns: Iterable[str], **options: Any) -> pd.DataFrame:
    """Return the judged claims in a CSV file, a row for each claim.

    columns: those that the file must have. options: for `pandas.read_csv`. Raises InputError if the
    file is damaged, or has a verdict, kind or standing that the program does not know.
    """
    with damage_named(path):
        claims = read_csv(path, **options)
        require_columns(claims, columns)
        for column, known in KNOWN.items():
            found = set(claims[column].dropna()) if column in claims else set()
            if wrong := found - known:
                raise ValueError(f"its {column} {min(map(str, wrong))!r} is unknown")
        pd.to_numeric(claims.get("left_out", pd.Series()).replace("", 0))
    return claims


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Return a stored table. path: a CSV file, which may be compressed (`.xz`).

    options: for `pandas.read_csv`. Raises InputError if the file is damaged.
    """
    with damage_named(path):
        content = read(path)
        content = lzma.decompress(content) if path.suffix == ".xz" else content
        if not content.endswith(b"\n"):  # each written line has an end
            raise ValueError("its last line is cut off")
        return pd.read_csv(BytesIO(content), **options)


def read_json(path: Path) -> dict[str, Any]:
    """Return the mapping in a JSON file. Raises InputError if the file is damaged."""
    with damage_named(path):
        content = json.loads(read(path))
        if not isinstance(content, dict):
            raise ValueError("it has no keys and values")
        return content


def read_text(path: Path) -> str:
    """Return the content of a text file. Raises InputError if the file is damaged."""
    with damage_named(path):
        return read(path).decode()


DAMAGED = (
    lzma.LZMAError, EOFError, OSError, ValueError, LookupError, TypeError, AttributeError,
    RecursionError,
)  # fmt: skip
"""The errors of reading a damaged file, or of using what it holds."""


@contextmanager
def damage_named(path: Path) -> Iterator[None]:
    """Turn the errors of a block that reads a file into an InputError, which names the file."""
    try:
        yield
    except DAMAGED as error:
        why = " ".join(str(getattr(error, "strerror", None) or error).split())
        why = f"it has no {why}" if isinstance(error, KeyError) else why
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
