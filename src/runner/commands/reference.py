"""Reference results: the tables behind every figure, kept in git.

`outputs/reference/<scale>/<figure>/` holds the tables of the figure's runs, the parameters that all
runs share, the claims and the provenance. Every figure can be drawn from them, and a user's results
be compared with them.
"""

import argparse
import json
import lzma
import shutil
import sys
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from runner.commands.claims import rules
from runner.commands.kept import read_csv, read_json
from runner.commands.kept_figure import FROM_REFERENCE, KeptFigure, drawn_from, read_tables
from runner.compose.orders import paper_figure
from runner.core.arguments import key_values, outputs_folder
from runner.core.catalogue import figure_names, figure_study, rows_of
from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_readable, require_writable
from runner.core.studies import column_types
from runner.results.claims import claims_of, judge
from runner.results.figure import Figure
from runner.results.preregistration import (
    PREREGISTERED,
    earlier_seeds,
    rules_before_numbers,
    with_standing,
)
from runner.results.rows import NoRows, Present
from runner.results.table_diff import fault
from runner.runs.files import write_atomically
from runner.runs.provenance import INSTALLED, REFERENCE

SAID = ("rule", "verdict", "measured", "note")
"""Columns of kept claims that another rule changes."""

RULES, JUDGED = "rules.csv", "judged.csv.xz"
"""Beside the figures: all printed rules with their digests, and all numbers that they judge."""

NO_NUMBERS = pd.DataFrame(
    columns=["scale", "figure", "claim", "number", "point",
             "replicate", "value", "error", "n", "count"],
    dtype=float,
)  # fmt: skip
"""An empty JUDGED."""

RELATIVE, ABSOLUTE = 1e-5, 1e-12
"""Differences up to which two numbers are the same: numbers are stored with six digits, and below
1e-12 they are rounding errors themselves, which differ between machines."""

LARGE = 200_000
"""Bytes from which a table is kept compressed."""


def canonical_figure(name: str, typed: list[str]) -> Figure:
    """Return the figure that the reference knows.

    Raises InputError when the overrides make another one, or do not compose.
    """
    figure = paper_figure(name, typed)
    if not figure.is_canonical:
        overrides = " ".join(figure.overrides)
        raise InputError(f"the reference has {name} as it is, not with {overrides}")
    return figure


def keep(name: str, typed: list[str], reference: Path) -> Path:
    """Copy the tables of a drawn figure into the reference; return the folder.

    Raises InputError when the overrides make another figure than the canonical one, it is not drawn
    from its runs as they are now, rows of its tables are missing or twice, or its verdicts are not
    those that its tables give.
    """
    figure = canonical_figure(name, typed)
    if not figure.is_current():
        raise InputError(f"{name} is not drawn yet at scale {figure.scale}: {figure.command}")
    folder = reference / figure.scale / name
    new = reference / f".{figure.scale}-{name}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        _write(figure, new, folder)
        check_kept(new, name, figure.study)
    except BaseException:
        shutil.rmtree(new)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    new.rename(folder)
    _keep_numbers(reference, folder)
    return folder


def check_kept(folder: Path, name: str, study: str) -> None:
    """Raise InputError unless a figure's kept tables are whole, and its verdicts follow from them.

    folder: of the figure, in the reference.
    """
    tables = read_tables(folder)
    for table, row_class in rows_of(study).items():
        if table in tables and (wrong := fault(tables[table], row_class)):
            raise InputError(f"{name}: {table}: {wrong}")
    judged = judge(name, claims_of(name, study), tables)
    kept = read_csv(folder / "claims.csv", keep_default_na=False)
    said = [each[["claim", *SAID]].to_numpy().tolist() for each in (judged, kept)]
    if said[0] != said[1]:
        wrong = next(a or b for a, b in zip_longest(*said) if a != b)
        raise InputError(f"{name}: {wrong[0]}: the kept tables give {wrong[2]}, not what was kept")


def _write(figure: Figure, folder: Path, kept: Path) -> None:
    """Write the tables of a figure's runs into a folder, and what else is kept of it.

    kept: its folder in the reference, which this one will replace.
    """
    row_classes = rows_of(figure.study)
    shared: dict[str, dict[str, Any]] = {}
    for table, rows in figure.tables().items():
        if table in figure.drawing.unread:
            continue
        columns = {*column_types(row_classes[table]), "run"}
        same = [name for name in rows if name not in columns and rows[name].nunique() == 1]
        shared[table] = rows[same].iloc[0].to_dict() if len(rows) else {}
        content = rows.drop(columns=same).to_csv(index=False).encode()
        if len(content) > LARGE:
            write_atomically(folder / f"{table}.csv.xz", _compressed(content))
        else:
            write_atomically(folder / f"{table}.csv", content)
    write_atomically(folder / "shared.json", json.dumps(shared, indent=1).encode())
    write_atomically(folder / "caption.txt", figure.path("caption.txt").read_bytes())
    judged = pd.read_csv(figure.path("claims.csv"))
    about = json.loads(figure.path("provenance.json").read_text())
    stored = {
        path.parent: (read_json(path), read_csv(path.with_name("claims.csv")))
        for path in kept.parent.parent.glob(f"*/{figure.figure}/provenance.json")
    }
    stood = rules_before_numbers(judged, about, stored.values())
    content = with_standing(judged, figure.scale, stood).to_csv(index=False).encode()
    write_atomically(folder / "claims.csv", content)
    about["earlier_seeds"] = earlier_seeds(about, stored[kept][0] if kept in stored else {})
    write_atomically(folder / "provenance.json", json.dumps(about, indent=2).encode())


def keep_benchmarks(measured: Path, reference: Path) -> list[Path]:
    """Copy the benchmarks that were measured, each study's in place of its old ones."""
    kept = []
    (reference / "bench").mkdir(parents=True, exist_ok=True)
    for path in sorted([*measured.glob("*.csv"), *measured.glob("*.json")]):
        kept.append(reference / "bench" / path.name)
        write_atomically(kept[-1], path.read_bytes())
    return kept


def draw_all(reference: Path, outputs: Path, style: str = "screen") -> Iterator[Path]:
    """Draw every figure of the reference, at every scale; yield its PNG.

    style: `screen` or `paper`. Raises InputError when a claim has another verdict than was kept.
    """
    for folder in sorted(path.parent for path in reference.glob("*/*/claims.csv")):
        figure = KeptFigure.of(folder, outputs, style)
        read_json(folder / "provenance.json")  # whether it is whole: it is copied
        now = figure.save()
        write_atomically(figure.path("provenance.json"), (folder / "provenance.json").read_bytes())
        write_atomically(figure.path("drawn-from"), drawn_from(folder).encode())
        if list(now["verdict"]) != list(figure.claims()["verdict"]):
            raise InputError(f"{folder}: the claims judged now differ from the kept ones")
        yield figure.path("png")


def judge_all(reference: Path) -> None:
    """Judge the claims of every figure anew over its kept tables, and write its caption; print what
    changed.

    A verdict stays pre-registered if its rule and all numbers that the rule judges are the same.
    Numbers that differ by rounding are the same, and the stored ones stay. Writes RULES and JUDGED,
    too.
    """
    tables = kept_tables(reference)
    numbers, path = numbers_judged(tables), reference / JUDGED
    numbers, changed = ignore_rounding(numbers, _read_numbers(path), ["scale", "figure", "claim"])
    for folder, each in tables.items():
        scale, name = folder.parent.name, folder.name
        stored = read_csv(folder / "claims.csv")
        judged = judge(name, claims_of(name, figure_study(name)), each)
        before = stored[stored["standing"] == PREREGISTERED]
        same = {*zip(before["claim"], before["digest"], strict=True)}
        stay = [
            (row.claim, row.digest) in same and (scale, name, row.claim) not in changed
            for row in judged.itertuples()
        ]
        claims, others = ignore_rounding(with_standing(judged, scale, stay), stored, ["claim"])
        if others:
            _replace(folder / "claims.csv", claims.to_csv(index=False))
        _replace(folder / "caption.txt", KeptFigure.of(folder).caption(each))
    _replace(reference / RULES, rules().to_csv(index=False))
    if changed:
        _write_numbers(path, numbers)


def ignore_rounding(
    now: pd.DataFrame, stored: pd.DataFrame, by: list[str]
) -> tuple[pd.DataFrame, set[tuple]]:
    """Return the rows of now, and the groups of them in which more than rounding has changed.

    by: the columns that tell the groups apart. A group that differs by rounding alone is returned
    as it is stored.
    """
    before, groups = dict(list(stored.groupby(by))), dict(list(now.groupby(by, sort=False)))
    same = {key for key in groups if key in before and _are_close(groups[key], before[key])}
    rows = [before[key] if key in same else group for key, group in groups.items()]
    return pd.concat(rows or [now]), {*groups, *before} - same


def _are_close(now: pd.DataFrame, stored: pd.DataFrame) -> bool:
    """Return whether two frames differ by rounding alone."""
    if list(now) != list(stored) or len(now) != len(stored):
        return False
    numeric = [name for name in now if all(is_numeric_dtype(rows[name]) for rows in (now, stored))]
    words = [rows.drop(columns=numeric).astype(object).fillna("") for rows in (now, stored)]
    return np.array_equal(*words) and np.allclose(
        now[numeric].astype(float), stored[numeric].astype(float), RELATIVE, ABSOLUTE, True
    )


def _replace(path: Path, text: str) -> None:
    """Write a text, compressed where the name says so, and print the path, if it is another."""
    is_compressed = path.suffix == ".xz"
    before = path.read_bytes() if path.exists() else b""
    if text.encode() != (lzma.decompress(before) if is_compressed and before else before):
        write_atomically(path, _compressed(text.encode()) if is_compressed else text.encode())
        print(path)


def _read_numbers(path: Path) -> pd.DataFrame:
    """Return the stored numbers of all rules; none if there is no file."""
    return read_csv(path, dtype={"point": str}) if path.exists() else NO_NUMBERS


def _write_numbers(path: Path, numbers: pd.DataFrame) -> None:
    _replace(path, numbers.to_csv(index=False, float_format="%.6g"))


def _keep_numbers(reference: Path, folder: Path) -> None:
    """Store the numbers that the rules of one figure judge, in place of its earlier ones."""
    stored = _read_numbers(reference / JUDGED)
    is_of_figure = (stored["scale"] == folder.parent.name) & (stored["figure"] == folder.name)
    numbers = numbers_judged({folder: read_tables(folder)})
    rows = pd.concat([stored[~is_of_figure], numbers]).sort_values(
        ["scale", "figure"], kind="stable"
    )
    _write_numbers(reference / JUDGED, rows)


def _compressed(content: bytes) -> bytes:
    return lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)


def kept_tables(reference: Path) -> dict[Path, dict[str, pd.DataFrame]]:
    """Return the tables of all figures of the reference, by folder."""
    folders = sorted(path.parent for path in reference.glob("*/*/claims.csv"))
    return {folder: read_tables(folder) for folder in folders}


def numbers_judged(kept: Mapping[Path, dict[str, pd.DataFrame]]) -> pd.DataFrame:
    """Return the numbers that each rule judges in kept tables: one row for each number.

    number: which of the claim's rules it is of.
    """
    frames = []
    for folder, tables in kept.items():
        name, tables = folder.name, Present(tables)
        for claim in claims_of(name, figure_study(name)):
            for number, rule in enumerate(claim.rules):
                try:
                    rows = rule.quantity.assuming(rule.quantity.measure(tables))
                except NoRows:
                    continue
                point = rows[list(rule.quantity.each)].astype(str).agg(" ".join, axis=1)
                known = [c for c in ("replicate", "value", "error", "n", "count") if c in rows]
                about = {"scale": folder.parent.name, "figure": name, "claim": claim.name}
                frames.append(rows[known].assign(**about, number=number, point=point))
    return pd.concat(frames or [NO_NUMBERS], ignore_index=True).reindex(columns=[*NO_NUMBERS])


def main(arguments: list[str]) -> int:
    """Keep what was made, or draw or judge all figures of the reference; returns 0.

    Raises InputError when an override is wrong, or a claim has another verdict than was kept.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner reference",
        description="keep: take what was made into the reference. draw: draw all figures from it."
        " judge: judge all its claims anew, after a rule was changed.",
    )
    parser.add_argument("what", choices=("keep", "draw", "judge"))
    keys = "scale=..., outputs=...; of draw: outputs=..., style=..."
    parser.add_argument("overrides", nargs="*", metavar="key=value", help=keys)
    options = parser.parse_args(arguments)
    if INSTALLED:
        raise InputError("the reference is in the repository: keep, judge and draw it in a clone")
    if options.what == "keep":
        require_readable(paper_figure(figure_names()[0], options.overrides).outputs)
        _keep_all(options.overrides)
        return 0
    if options.what == "judge":
        if options.overrides:
            raise InputError("`reference judge` judges all figures: it takes no words")
        judge_all(REFERENCE)
        return 0
    if any("=" not in word for word in options.overrides):
        raise InputError(
            "`reference draw` draws all kept figures and takes no name."
            " To see one: runner show fig4"
        )
    values = key_values(options.overrides, ["outputs", "style"])
    outputs = outputs_at(values.get("outputs", "outputs"))
    require_writable(outputs, outputs / FROM_REFERENCE)
    for path in draw_all(REFERENCE, outputs, values.get("style", "screen")):
        print(path)
    return 0


def _keep_all(typed: list[str]) -> None:
    """Keep all figures that are drawn, and all benchmarks; say which figures are left out."""
    for name in figure_names():
        try:
            print(keep(name, typed, REFERENCE))
        except InputError as error:
            print(f"left out: {' '.join(str(error).splitlines())}", file=sys.stderr)
    typed_folder = [text for text in typed if text.startswith("outputs=")]
    for path in keep_benchmarks(outputs_folder(typed_folder) / "bench", REFERENCE):
        print(path)
