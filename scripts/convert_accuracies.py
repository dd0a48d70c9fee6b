"""Convert stored tables once: a network whose loss is NaN has no accuracy.

    python scripts/convert_accuracies.py [REFERENCE]

Before, such a network had the accuracy of the class that comes first. An accuracy becomes NaN in
the rows whose loss is NaN, as the studies now write them. The checksums of the runs' tables in
`provenance.json` follow: the table of each run is written again from the stored rows, and must have
the recorded checksum before the conversion. Then `scripts/reference.py judge` writes numbers,
verdicts and captions.
"""

import csv
import hashlib
import io
import json
import lzma
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from runner.commands.kept import kept_folders, read_csv, read_json
from runner.core.catalogue import figure_study, rows_of
from runner.core.studies import column_types
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE
from runner.runs.tables import _cell

LOSSES = {"train_accuracy": "train_loss", "test_accuracy": "test_loss", "accuracy": "loss"}
"""The column of the loss that belongs to each column of an accuracy."""


def loss_of(accuracy: str, rows: pd.DataFrame) -> str | None:
    """Return the column with the loss of an accuracy, or None if the table has neither."""
    loss = LOSSES[accuracy] if LOSSES[accuracy] in rows else "loss"
    return loss if accuracy in rows and loss in rows else None


def converted(rows: pd.DataFrame) -> tuple[pd.DataFrame, int]:
    """Return a table in which accuracies are NaN where the loss is, and the number of its rows."""
    changed = np.zeros(len(rows), dtype=bool)
    for accuracy in LOSSES:
        if loss := loss_of(accuracy, rows):
            lost = rows[loss].isna() & rows[accuracy].notna()
            rows = rows.assign(**{accuracy: rows[accuracy].mask(lost)})
            changed |= lost.to_numpy()
    return rows, int(changed.sum())


def checksum(rows: pd.DataFrame, columns: dict) -> str:
    """Return the SHA-256 of a run's table, as a run writes it. columns: the columns' types."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    cells = [[_cell(kind(value), kind, "table", name) for value in rows[name]]
             for name, kind in columns.items()]  # fmt: skip
    writer.writerows(zip(*cells, strict=True))
    return hashlib.sha256(text.getvalue().encode()).hexdigest()


def convert(folder: Path) -> str:
    """Convert the tables of one figure; return a line about it, empty if nothing changes.

    Raises ValueError if a run's table does not have the recorded checksum before the conversion.
    """
    about, lines = read_json(folder / "provenance.json"), []
    shared = read_json(folder / "shared.json")
    for table, row_class in rows_of(figure_study(folder.name)).items():
        paths = [*folder.glob(f"{table}.csv"), *folder.glob(f"{table}.csv.xz")]
        if not paths:
            continue
        columns = column_types(row_class)
        text = {name: str for name, kind in columns.items() if kind is str}
        before = read_csv(paths[0], dtype=text, float_precision="round_trip")
        after, count = converted(before)
        if not count:
            continue
        names = before.get("run")
        new = {}
        for name in names.unique() if names is not None else [shared[table]["run"]]:
            part = slice(None) if names is None else names == name
            new[checksum(before[part], columns)] = checksum(after[part], columns)
        for run in about["runs"]:
            if run["tables"][table] not in new:
                raise ValueError(f"{folder}: {run['run']} has other rows than its {table}.csv had")
            run["tables"][table] = new[run["tables"][table]]
        _write(paths[0], after.to_csv(index=False))
        lines.append(f"{table}: {count} rows")
    if lines:
        _write(folder / "provenance.json", json.dumps(about, indent=2))
    return f"{folder.parent.name}/{folder.name}: {', '.join(lines)}" if lines else ""


def _write(path: Path, text: str) -> None:
    """Write a text; compress a file whose name ends in `.xz`."""
    content = text.encode()
    if path.suffix == ".xz":
        content = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    write_atomically(path, content)


def main(arguments: list[str]) -> int:
    """Convert all figures of a reference and print what has changed; return 0."""
    reference = Path(arguments[0]) if arguments else REFERENCE
    for folder in kept_folders(reference):
        if line := convert(folder):
            print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
