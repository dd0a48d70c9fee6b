"""Add the files for `runner show` to the wheel: tables at scale `quick`, and verdicts.

Tables have six digits; verdicts are as stored. hatchling calls this module.
"""

import lzma
import re
import shutil
from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KEPT = Path("outputs", "reference", "quick")
JUDGED_ALONE = (
    "*/curves.csv*",
    "*/representation.csv*",
    "*/selection.csv.xz",
    "*/theorems.csv*",
    "beyond-gradient-flow/training.csv.xz",
    "low-rank-training/spectrum.csv.xz",
    "low-rank-training/training.csv.xz",
)
"""Tables that claims need, but no picture."""

LONG = re.compile(rb"(?<![^,\n])-?\d+\.\d{6,}(e[+-]\d+)?(?![^,\n])")


def short(table: bytes) -> bytes:
    """Return a table whose numbers have six digits."""
    return LONG.sub(lambda number: b"%.6g" % float(number[0]), table)


def files(repository: Path) -> dict[Path, bytes]:
    """Return the files of the reference for the wheel: their contents, by path below `<scale>/`."""
    folder = repository / KEPT
    left_out = {path for pattern in JUDGED_ALONE for path in folder.glob(pattern)}
    contents = {}
    for path in sorted({*folder.glob("*/*")} - left_out):
        content = path.read_bytes()
        if path.suffix == ".xz":
            content = lzma.compress(short(lzma.decompress(content)), preset=9 | lzma.PRESET_EXTREME)
        elif path.suffix == ".csv" and path.name != "claims.csv":
            content = short(content)
        contents[path.relative_to(folder)] = content
    return contents


class Tables(BuildHookInterface):
    """Build hook that adds the files as `runner/reference/quick`. A clone does not need it."""

    def _place(self) -> Path:
        return Path(self.directory) / "reference"

    def initialize(self, version: str, build_data: dict) -> None:
        """Write the files that the wheel will include."""
        if version == "editable":
            return
        folder = self._place()
        for name, content in files(Path(self.root)).items():
            path = folder / KEPT.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        build_data["force_include"][str(folder)] = "runner/reference"

    def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
        """Delete the written files."""
        shutil.rmtree(self._place(), ignore_errors=True)
