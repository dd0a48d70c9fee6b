"""Reference results: the tables behind every figure, kept in git.

`<outputs>/reference/<scale>/<figure>/` holds the tables of the figure's runs, its `claims.csv` and its
`provenance.json`. Every figure can be drawn from them, and a user's own results compared with them.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runner.errors import InputError
from runner.everything import figure_names, is_current
from runner.figures import publish
from runner.runs import Run, load
from runner.studies import room_of
from runner.sweeps import figure_runs
from runner.tables import write_atomically

NOT_TABLES = ("claims",)
LARGEST_DEVIATION = 5.0
"""Standard errors beyond which two means differ. With thousands of comparisons a smaller bound would
name differences that are chance."""
RELATIVE_ROUNDING = 1e-3
"""What other hardware may change in a number that has no spread of its own."""


def keep(name: str, typed: list[str], reference: Path) -> Path:
    """Copy what stands behind a drawn figure into the reference; returns the folder.

    Raises InputError when the figure is not drawn from its runs as they are now.
    """
    scale, outputs, configs = figure_runs(name, typed)
    runs = [Run(config, Path(outputs)) for config in configs]
    drawn = Path(outputs) / "figures" / scale
    if not is_current(name, scale, runs, drawn):
        raise InputError(f"{name} is not drawn yet at scale {scale}: make {name} SCALE={scale}")
    folder = reference / scale / name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    for table, rows in load(runs).items():
        write_atomically(folder / f"{table}.csv", rows.to_csv(index=False).encode())
    shutil.copyfile(drawn / f"{name}.claims.csv", folder / "claims.csv")
    shutil.copyfile(drawn / f"{name}.provenance.json", folder / "provenance.json")
    return folder


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of one figure's reference. Raises InputError when there are none."""
    paths = [path for path in sorted(folder.glob("*.csv")) if path.stem not in NOT_TABLES]
    if not paths:
        raise InputError(f"{folder} holds no reference tables")
    return {path.stem: pd.read_csv(path) for path in paths}


def study_of(name: str) -> str:
    """The study whose runs a figure draws."""
    return figure_runs(name, [])[2][0].study


def draw_all(reference: Path, figures: Path) -> list[Path]:
    """Draw every figure of the reference, at every scale, without computing; returns the pictures."""
    pictures = []
    for folder in sorted(path.parent for path in reference.glob("*/*/claims.csv")):
        target = figures / folder.parent.name
        name = folder.name
        judged = publish(name, study_of(name), read_tables(folder), target)
        shutil.copyfile(folder / "provenance.json", target / f"{name}.provenance.json")
        kept = pd.read_csv(folder / "claims.csv")
        if list(judged["verdict"]) != list(kept["verdict"]):
            raise InputError(f"{folder}: the claims judged now are not those that were kept")
        pictures.append(target / f"{name}.png")
    return pictures


# ------------------------------------------------------------------------------------ comparison


def is_measured(column: pd.Series) -> bool:
    """Whether a column holds measurements (floats) and not a key of the row."""
    return pd.api.types.is_float_dtype(column)


def compare_tables(own: pd.DataFrame, kept: pd.DataFrame) -> pd.DataFrame:
    """Where two tables of the same experiment differ by more than chance.

    Rows are matched by their keys: all columns that are not floats, without `replicate`, `run` and
    `seed`. The replicates of a key give mean and standard error; a column `<name>_se` gives the error
    of `<name>` where it exists. Returns a row for each key and column whose means differ by more than
    LARGEST_DEVIATION standard errors: key, column, own, reference, deviation (in standard errors).
    """
    skipped = {"replicate", "run", "seed"}
    keys = [name for name in kept if name in own and not is_measured(kept[name])]
    keys = [name for name in keys if name not in skipped]
    values = [
        name
        for name in kept
        if name in own and name not in skipped | set(keys) and not name.endswith("_se")
    ]
    both = _summary(own, keys, values).join(
        _summary(kept, keys, values), how="outer", lsuffix=" own", rsuffix=" kept"
    )
    rows: list[dict[str, Any]] = []
    for key, row in both.iterrows():
        for name in values:
            deviation = _deviation(row, name)
            if not deviation <= LARGEST_DEVIATION:
                shown = dict(zip(keys, key if isinstance(key, tuple) else (key,), strict=True))
                rows.append(
                    {
                        "key": ", ".join(f"{k}={v}" for k, v in shown.items()),
                        "column": name,
                        "own": row[f"{name} mean own"],
                        "reference": row[f"{name} mean kept"],
                        "deviation": deviation,
                    }
                )
    return pd.DataFrame(rows, columns=["key", "column", "own", "reference", "deviation"])


def _summary(table: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    """Mean and squared standard error of each value column by key; a row for each key."""
    filled = table.assign(**{key: table[key].astype(str) for key in keys})
    groups = filled.groupby(keys) if keys else filled.groupby(lambda _: "all")
    columns = {}
    for name in values:
        columns[f"{name} mean"] = groups[name].mean()
        if f"{name}_se" in table:
            columns[f"{name} square"] = groups[f"{name}_se"].apply(
                lambda se: (se**2).mean() / len(se)
            )
        else:
            columns[f"{name} square"] = groups[name].var(ddof=1) / groups[name].count()
    return pd.DataFrame(columns)


def _deviation(row: pd.Series, name: str) -> float:
    """Distance of two means in standard errors; 0 if both are missing, inf if one is."""
    own, kept = row[f"{name} mean own"], row[f"{name} mean kept"]
    if not (np.isfinite(own) and np.isfinite(kept)):
        return 0.0 if str(own) == str(kept) else np.inf
    square = np.nansum([row[f"{name} square own"], row[f"{name} square kept"]])
    error = max(np.sqrt(square), RELATIVE_ROUNDING * abs(kept))
    return 0.0 if own == kept else abs(own - kept) / max(error, np.finfo(float).tiny)


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Where a user's runs of a figure differ from the reference; None when there is nothing to compare.

    Returns the rows of `compare_tables` for each table, with the column `table`; a claim whose verdict
    differs is a row of the table `claims`.
    """
    scale, outputs, configs = figure_runs(name, typed)
    folder = reference / scale / name
    runs = [Run(config, Path(outputs)) for config in configs]
    if not folder.exists() or not all(run.is_complete() for run in runs):
        return None
    own, kept = load(runs), read_tables(folder)
    parts = [
        compare_tables(own[table], kept[table]).assign(table=table)
        for table in kept
        if table in own
    ]
    path = Path(outputs) / "figures" / scale / f"{name}.claims.csv"
    if path.exists():
        verdicts = pd.read_csv(path).merge(
            pd.read_csv(folder / "claims.csv"), on="claim", suffixes=("", "_kept")
        )
        changed = verdicts[verdicts["verdict"] != verdicts["verdict_kept"]]
        parts.append(
            pd.DataFrame(
                {
                    "table": "claims",
                    "key": changed["claim"],
                    "column": "verdict",
                    "own": changed["verdict"],
                    "reference": changed["verdict_kept"],
                }
            )
        )
    return pd.concat([part for part in parts if len(part)] or [pd.DataFrame()], ignore_index=True)


def papers() -> dict[str, list[str]]:
    """The figures of each room."""
    found: dict[str, list[str]] = {}
    for name in figure_names():
        found.setdefault(room_of(study_of(name)), []).append(name)
    return found


def read_provenance(path: Path) -> dict[str, Any]:
    """The content of a figure's provenance file. Raises InputError when it cannot be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error})") from error
