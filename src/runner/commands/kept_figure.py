"""A figure of the reference: its tables, claims and provenance lie in a folder that git keeps."""

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import pandas as pd

from runner.commands.kept import read_csv, read_json
from runner.core.catalogue import figure_study, package_of
from runner.results.drawing import Header
from runner.results.figure import Figure
from runner.results.rows import Tables
from runner.results.style import drawn_in, save
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE, fingerprint

FROM_REFERENCE = "figures-from-reference"
"""The folder, in the outputs folder, where figures of the reference are drawn."""


@dataclass(frozen=True)
class KeptFigure(Figure):
    """A figure of the reference. It has no runs: the tables of its folder are read instead.

    Methods raise InputError where a file of the folder is damaged.
    """

    folder: Path = REFERENCE
    """Its folder in the reference, `<scale>/<figure>`."""

    folder_name: ClassVar[str] = FROM_REFERENCE

    @classmethod
    def of(
        cls, folder: Path, outputs: Path = Path("outputs"), style: str = "screen"
    ) -> "KeptFigure":
        """Return the figure whose tables a folder has, to be drawn in `outputs`."""
        return cls(folder.name, folder.parent.name, (), (), outputs, style, folder)

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return its kept tables."""
        return read_tables(self.folder)

    def claims(self) -> pd.DataFrame:
        """Return its kept claims, one row for each."""
        return read_csv(self.folder / "claims.csv", keep_default_na=False)

    def header(self, tables: Tables | None = None, judged: pd.DataFrame | None = None) -> Header:
        """Return the lines above the picture. judged: its claims; those kept if none are given."""
        return super().header(tables, self.claims() if judged is None else judged)

    def picture(self, end: str = "png") -> Path:
        """Return the path of the picture; draw it unless it is there, up to date.

        end: `png`, or `body.png` without its header. Beside it stands `<figure>.header.json`, the
        words of the header. Raises what the drawing raises where the tables are not those that the
        code of today draws.
        """
        now = drawn_from(self.folder)
        path, words, source = map(self.path, (end, "header.json", "drawn-from"))
        is_current = words.exists() and source.exists() and source.read_text() == now
        if is_current and path.exists():
            return path
        tables = self.tables()
        header = self.header(tables)
        for old in () if is_current else ("png", "body.png"):
            self.path(old).unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with drawn_in(self.style):
            save(self.drawn(tables, header)[0], self.path("png").with_suffix(""), (end,))
        write_atomically(words, header.as_json())
        write_atomically(source, now.encode())
        return path


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """Return the tables of one figure's reference. Raises InputError where a file is damaged."""
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.glob("*.csv*"))}
    del paths["claims"]
    shared = read_json(folder / "shared.json")
    return {name: read_csv(path).assign(**shared.get(name, {})) for name, path in paths.items()}


def drawn_from(folder: Path) -> str:
    """Digits that change with a figure of the reference, tables and claims, and its drawing's code.

    The text of `<figure>.drawn-from`, the file next to a picture.
    """
    digest = hashlib.sha256()
    for path in sorted([*folder.glob("*.csv*"), folder / "shared.json"]):
        digest.update(path.name.encode() + path.read_bytes())
    return f"{digest.hexdigest()[:16]} {_drawing_code(figure_study(folder.name))}"


@cache
def _drawing_code(study: str) -> str:
    """Return the fingerprint of a study's drawings."""
    return fingerprint({f"{package_of(study)}.figures"})
