"""Reference results: the tables behind every figure, kept in git.

`outputs/reference/<scale>/<figure>/` holds the tables of the figure's runs, the parameters that all
runs share, the claims and the provenance. Every figure can be drawn from them, and a user's results
be compared with them.

python scripts/reference.py keep [scale=...]       keep what was made: all figures, all benchmarks
python scripts/reference.py draw                   draw all figures from the reference
python scripts/reference.py compare [scale=...]    say where the user's results differ
"""

import gzip
import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from runner.configs import figure_names
from runner.errors import InputError
from runner.everything import is_current
from runner.figures import judged, publish
from runner.runs import Run, load
from runner.studies import Row, rows_of
from runner.sweeps import figure_runs, figure_study
from runner.tables import write_atomically

REFERENCE = Path("outputs/reference")
LARGE = 200_000
"""Bytes from which a table is kept compressed."""
LARGEST_DEVIATION = 5.0
"""Standard errors beyond which two means differ; thousands of means are compared, so that a smaller
bound would name differences that are chance."""
ROUNDING = 1e-3
"""Relative difference that other hardware may make in a number that has no spread of its own."""


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
    row_classes = rows_of(configs[0].study)
    shared: dict[str, dict[str, Any]] = {}
    for table, rows in load(runs).items():
        columns = {field.name for field in fields(row_classes[table])} | {"run"}
        same = [name for name in rows if name not in columns and rows[name].nunique() == 1]
        shared[table] = rows[same].iloc[0].to_dict() if len(rows) else {}
        content = rows.drop(columns=same).to_csv(index=False).encode()
        if len(content) > LARGE:
            write_atomically(folder / f"{table}.csv.gz", gzip.compress(content, mtime=0))
        else:
            write_atomically(folder / f"{table}.csv", content)
    write_atomically(folder / "shared.json", json.dumps(shared, indent=1).encode())
    shutil.copyfile(drawn / f"{name}.claims.csv", folder / "claims.csv")
    shutil.copyfile(drawn / f"{name}.provenance.json", folder / "provenance.json")
    return folder


def keep_benchmarks(measured: Path, reference: Path) -> list[Path]:
    """Copy the benchmarks that were measured, each study's in place of its old ones."""
    kept = []
    (reference / "bench").mkdir(parents=True, exist_ok=True)
    for path in sorted([*measured.glob("*.csv"), *measured.glob("*.json")]):
        kept.append(reference / "bench" / path.name)
        write_atomically(kept[-1], path.read_bytes())
    return kept


def read_tables(folder: Path) -> dict[str, pd.DataFrame]:
    """The tables of one figure's reference."""
    paths = {path.name.partition(".")[0]: path for path in sorted(folder.glob("*.csv*"))}
    del paths["claims"]
    shared = json.loads((folder / "shared.json").read_text())
    return {name: pd.read_csv(path).assign(**shared[name]) for name, path in paths.items()}


def draw_all(reference: Path, figures: Path) -> Iterator[tuple[str, str]]:
    """Draw every figure of the reference, at every scale; yields its name and scale.

    Raises InputError when a claim now comes out otherwise than it was kept.
    """
    for folder in sorted(path.parent for path in reference.glob("*/*/claims.csv")):
        name, scale = folder.name, folder.parent.name
        now = publish(name, figure_study(name), read_tables(folder), figures / scale)
        shutil.copyfile(folder / "provenance.json", figures / scale / f"{name}.provenance.json")
        if list(now["verdict"]) != list(pd.read_csv(folder / "claims.csv")["verdict"]):
            raise InputError(f"{folder}: the claims judged now are not those that were kept")
        yield name, scale


# ------------------------------------------------------------------------------------ comparison


def compare_tables(own: pd.DataFrame, kept: pd.DataFrame, row_class: type[Row]) -> pd.DataFrame:
    """Where two tables of the same runs differ by more than chance.

    Rows are matched by run and keys; the replicates of a key give mean and standard error, a column
    `<name>_se` gives the error of `<name>`. Returns one row for each key and column whose means
    differ by more than LARGEST_DEVIATION standard errors (and more than ROUNDING): key, column,
    own, reference, deviation in standard errors.
    """
    keys = ["run", *(key for key in row_class.keys if key != "replicate")]
    numbers = [field.name for field in fields(row_class) if field.type in (int, float)]
    values = [name for name in numbers if name not in row_class.keys and not name.endswith("_se")]
    summaries = {"own": _summary(own, keys, values), "kept": _summary(kept, keys, values)}
    both = pd.concat([table.add_suffix(f" {side}") for side, table in summaries.items()], axis=1)
    parts = []
    for name in values:
        deviation = _deviations(*(both[f"{name} {part}"] for part in SUMMARY_PARTS))
        found = both[~(deviation <= LARGEST_DEVIATION)]
        parts.append(
            pd.DataFrame(
                {
                    "key": [", ".join(map(str, _as_tuple(key)[1:])) for key in found.index],
                    "column": name,
                    "own": found[f"{name} mean own"].to_numpy(),
                    "reference": found[f"{name} mean kept"].to_numpy(),
                    "deviation": deviation[found.index].to_numpy(),
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


SUMMARY_PARTS = ("mean own", "mean kept", "variance own", "variance kept")


def _as_tuple(key: Any) -> tuple:
    return key if isinstance(key, tuple) else (key,)


def _summary(table: pd.DataFrame, keys: list[str], values: list[str]) -> pd.DataFrame:
    """Mean and squared standard error of each value column; a row for each key."""
    groups = table.groupby(keys, dropna=False)
    columns = {}
    for name in values:
        columns[f"{name} mean"] = groups[name].mean()
        if f"{name}_se" in table:
            columns[f"{name} variance"] = groups[f"{name}_se"].mean() ** 2 / groups.size()
        else:
            columns[f"{name} variance"] = groups[name].var() / groups.size()
    return pd.DataFrame(columns)


def _deviations(
    own: pd.Series, kept: pd.Series, own_variance: pd.Series, kept_variance: pd.Series
) -> pd.Series:
    """Distances of means in standard errors; inf where only one of them is a number."""
    error = np.sqrt(own_variance.fillna(0) + kept_variance.fillna(0))
    error = np.maximum(error, ROUNDING * kept.abs() / LARGEST_DEVIATION)
    with np.errstate(all="ignore"):
        deviation = (own - kept).abs() / error
    same = (own == kept) | (own.isna() & kept.isna())
    return deviation.mask(same, 0.0).fillna(np.inf)


def compare(name: str, typed: list[str], reference: Path) -> pd.DataFrame | None:
    """Where a user's runs of a figure differ from the reference; None where one of them is missing.

    Returns the rows of `compare_tables` for each table with the column `table`, and a row of the
    table `claims` for each claim whose verdict differs.
    """
    scale, outputs, configs = figure_runs(name, typed)
    folder = reference / scale / name
    runs = [Run(config, Path(outputs)) for config in configs]
    if not folder.exists() or not all(run.is_complete() for run in runs):
        return None
    own, kept = load(runs), read_tables(folder)
    row_classes = rows_of(configs[0].study)
    parts = [
        compare_tables(own[table], kept[table], row_classes[table]).assign(table=table)
        for table in kept
    ]
    parts.append(_changed_claims(judged(name, configs[0].study, own), folder / "claims.csv"))
    return pd.concat(parts, ignore_index=True)


def _changed_claims(own: pd.DataFrame, path: Path) -> pd.DataFrame:
    both = own.merge(pd.read_csv(path), on="claim", suffixes=("", " kept"))
    changed = both[both["verdict"] != both["verdict kept"]]
    return pd.DataFrame(
        {
            "table": "claims",
            "key": changed["claim"],
            "column": "verdict",
            "own": changed["verdict"],
            "reference": changed["verdict kept"],
        }
    )


# ---------------------------------------------------------------------------------- command line


def _keep(typed: list[str]) -> int:
    for name in figure_names():
        try:
            print(keep(name, typed, REFERENCE))
        except InputError as error:
            print(f"left out: {' '.join(str(error).splitlines())}", file=sys.stderr)
    for path in keep_benchmarks(Path("outputs/bench"), REFERENCE):
        print(path)
    return 0


def _draw(typed: list[str]) -> int:
    figures = Path("outputs/figures-from-reference")
    for name, scale in draw_all(REFERENCE, figures):
        print(figures / scale / f"{name}.png")
    return 0


def _compare(typed: list[str]) -> int:
    differing = 0
    for name in figure_names():
        found = compare(name, typed, REFERENCE)
        if found is None:
            print(f"{name}: nothing to compare")
        elif found.empty:
            print(f"{name}: as the reference")
        else:
            differing += 1
            print(f"{name}: {len(found)} numbers differ")
            print(found.head(10).to_string(index=False, float_format=lambda value: f"{value:.4g}"))
    return 1 if differing else 0


COMMANDS = {"keep": _keep, "draw": _draw, "compare": _compare}


def main(arguments: list[str]) -> int:
    """Returns 0, 1 (the user's results differ from the reference) or 2 (wrong input)."""
    if not arguments or arguments[0] not in COMMANDS:
        print(__doc__.split("\n\n")[2].strip(), file=sys.stderr)
        return 2
    try:
        return COMMANDS[arguments[0]](arguments[1:])
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
