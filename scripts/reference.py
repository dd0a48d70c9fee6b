"""Keep the tables behind every figure in git, draw them, and judge them again.

    python scripts/reference.py keep|draw|judge [key=value ...]

`outputs/reference/<scale>/<figure>/` has the tables of the figure's runs, the parameters that all
runs share, the claims and the provenance. Every figure can be drawn from these files. A user's
results can be compared with them.
"""

import argparse
import json
import lzma
import shutil
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from runner.commands.claims import rules
from runner.commands.compare import canonical_figure
from runner.commands.kept import (
    FROM_REFERENCE,
    STORED,
    KeptFigure,
    drawn_from,
    kept_folders,
    read_claims,
    read_csv,
    read_json,
    read_tables,
)
from runner.compose.orders import paper_figure
from runner.core.arguments import key_values, outputs_folder
from runner.core.catalogue import figure_names, figure_study, rows_of
from runner.core.errors import InputError
from runner.core.folders import at_home, outputs_at, require_readable, require_writable
from runner.core.shell import command
from runner.core.studies import column_types
from runner.results import preregistration
from runner.results.claims import claims_of
from runner.results.figure import Figure
from runner.results.rows import NoRows, Present, Tables
from runner.results.table_diff import fault
from runner.runs.files import write_atomically
from runner.runs.provenance import REFERENCE

RULES, JUDGED = "rules.csv", "judged.csv.xz"
"""Two files of the reference: the printed rules with their digests, and the numbers that they
judge."""

NO_NUMBERS = pd.DataFrame(
    columns=["scale", "figure", "claim", "number", "point",
             "replicate", "value", "error", "n", "count"],
    dtype=float,
)  # fmt: skip
"""The table JUDGED without rows."""

RELATIVE, ABSOLUTE = 1e-5, 1e-12
"""Relative and absolute differences up to which two numbers are equal. Numbers are stored with six
digits. Those below 1e-12 are rounding errors, which differ between machines."""

LARGE = 200_000
"""A table with more bytes is stored compressed."""


def keep(name: str, typed: list[str], reference: Path) -> Path:
    """Store a figure in the reference: tables, claims, caption and provenance; return its folder.

    name: the name of a figure that is drawn. typed: further arguments, such as `scale=paper`.
    reference: the folder of the reference. Raises InputError if the figure has changed parameters,
    is not drawn from its present runs, or has missing or doubled rows. Also raises InputError if
    the verdicts do not follow from the tables.
    """
    figure = canonical_figure(name, typed)
    if not figure.is_current():
        this = command(*figure.arguments, outputs=figure.outputs)
        raise InputError(f"{name} is not drawn yet at scale {figure.scale}: {this}")
    folder = reference / figure.scale / name
    new = reference / f".{figure.scale}-{name}"
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir(parents=True)
    try:
        _write_tables(figure, new)
        _write_claims(figure, new, folder)
    except BaseException:
        shutil.rmtree(new)
        raise
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    new.rename(folder)
    stored = _read_numbers(reference)
    numbers = numbers_judged(folder, read_tables(folder))
    rows = pd.concat([stored[~_is_of(stored, folder)], numbers])
    _write_numbers(reference, rows.sort_values(["scale", "figure"], kind="stable"))
    return folder


def _write_tables(figure: Figure, folder: Path) -> None:
    """Write the tables of a figure's runs, and the parameters that all runs share."""
    row_classes = rows_of(figure.study)
    shared: dict[str, dict[str, Any]] = {}
    for table, rows in figure.tables().items():
        if table in figure.drawing.unread:
            continue
        columns = {*column_types(row_classes[table]), "run"}
        same = [name for name in rows if name not in columns and rows[name].nunique() == 1]
        shared[table] = rows[same].iloc[0].to_dict() if len(rows) else {}
        text = rows.drop(columns=same).to_csv(index=False)
        _write(folder / f"{table}.csv{'.xz' * (len(text.encode()) > LARGE)}", text)
    _write(folder / "shared.json", json.dumps(shared, indent=1))


def _write_claims(figure: Figure, folder: Path, replaced: Path) -> None:
    """Write the caption of a figure, its claims with their standing, and its provenance.

    The claims are judged on the stored tables in the folder. replaced: the folder of the earlier
    result, which this one will replace. Raises InputError if rows are missing or doubled, or if a
    verdict differs from the drawn figure's.
    """
    tables = read_tables(folder)
    for table, row_class in rows_of(figure.study).items():
        if table in tables and (wrong := fault(tables[table], row_class)):
            raise InputError(f"{figure.name}: {table}: {wrong}")
    judged, drawn = figure.judge(tables), pd.read_csv(figure.path("claims.csv"))
    for now, before in zip_longest(judged["verdict"], drawn["verdict"]):
        if now != before:
            raise InputError(f"{figure.name}: its tables now give the verdict {now}, not {before}")
    about = json.loads(figure.path("provenance.json").read_text())
    del about["program"]  # the reference is drawn again by later programs
    stored = {
        path.parent: (read_json(path), read_csv(path.with_name("claims.csv")))
        for path in replaced.parent.parent.glob(f"*/{figure.figure}/provenance.json")
    }
    standing = preregistration.rules_before_numbers(judged, about, stored.values())
    claims = preregistration.with_standing(judged, figure.scale, standing)
    earlier = stored.get(replaced, ({},))[0]
    about["earlier_seeds"] = preregistration.earlier_seeds(about, earlier)
    _write(folder / "caption.txt", figure.path("caption.txt").read_text())
    _write(folder / "claims.csv", claims.to_csv(index=False))
    _write(folder / "provenance.json", json.dumps(about, indent=2))


def keep_benchmarks(measured: Path, reference: Path) -> list[Path]:
    """Copy the files of measured benchmarks into the reference; return the copies' paths.

    measured: the folder with these files.
    """
    folder = reference / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted([*measured.glob("*.csv"), *measured.glob("*.json")])
    return [Path(shutil.copy(path, folder)) for path in paths]


def draw_all(reference: Path, outputs: Path, style: str = "screen") -> Iterator[Path]:
    """Draw every figure of the reference, at every scale; yield the path of each PNG file.

    outputs: the folder of outputs, for the pictures. style: `screen`, `paper`, or the path of a
    style file. Raises InputError if a file is damaged, or if a claim has another verdict now than
    the stored one.
    """
    for folder in kept_folders(reference):
        figure = KeptFigure.of(folder, outputs, style)
        read_json(folder / "provenance.json")  # fails if the file is damaged
        judged = figure.save()
        shutil.copy(folder / "provenance.json", figure.path("provenance.json"))
        write_atomically(figure.path("drawn-from"), drawn_from(folder).encode())
        if list(judged["verdict"]) != list(figure.claims()["verdict"]):
            raise InputError(f"{folder}: the claims judged now differ from the kept ones")
        yield figure.path("png")


def judge_all(reference: Path) -> None:
    """Judge all claims of the reference again on the stored tables; print the files that change.

    Captions and the files RULES and JUDGED are written again. A verdict stays pre-registered if its
    rule and all numbers that the rule judges are unchanged. Numbers that differ only by rounding
    count as unchanged, and the stored numbers are not replaced.
    """
    all_numbers, frames, any_changed = _read_numbers(reference), [], False
    for folder in kept_folders(reference):
        figure = KeptFigure.of(folder)
        tables = figure.tables()
        before = all_numbers[_is_of(all_numbers, folder)]
        numbers, changed = ignore_rounding(numbers_judged(folder, tables), before)
        frames.append(numbers)
        any_changed = any_changed or bool(changed)
        judged, stored = figure.judge(tables), read_claims(folder / "claims.csv", STORED)
        old = stored[stored["standing"] == preregistration.PREREGISTERED]
        same = {*zip(old["claim"], old["digest"], strict=True)}
        stay = [
            (row.claim, row.digest) in same and row.claim not in changed
            for row in judged.itertuples()
        ]
        claims, is_changed = ignore_rounding(
            preregistration.with_standing(judged, figure.scale, stay), stored
        )
        if is_changed:
            _replace(folder / "claims.csv", claims.to_csv(index=False))
        _replace(folder / "caption.txt", figure.caption(tables, claims))
    _replace(reference / RULES, rules().to_csv(index=False))
    numbers = pd.concat(frames or [NO_NUMBERS])
    if any_changed or len(numbers) != len(all_numbers):  # fewer: a figure is gone
        _write_numbers(reference, numbers)


def ignore_rounding(now: pd.DataFrame, stored: pd.DataFrame) -> tuple[pd.DataFrame, set[str]]:
    """Return a figure's rows with changes by rounding undone, and the names of changed claims.

    A claim gets its stored rows if its present rows differ from them only by rounding. All other
    claims have their present rows, and their names are in the set. The set also has the names of
    stored claims that no longer exist. now, stored: tables with the column `claim`.
    """
    before = dict(list(stored.groupby("claim")))
    groups = dict(list(now.groupby("claim", sort=False)))
    same = {key for key in groups if key in before and _are_close(groups[key], before[key])}
    rows = [before[key] if key in same else group for key, group in groups.items()]
    return pd.concat(rows or [now]), {*groups, *before} - same


def _are_close(now: pd.DataFrame, stored: pd.DataFrame) -> bool:
    """Return whether two frames differ only by rounding, or in the order of judged numbers.

    This order depends on the processor, which may sort equal keys in another order.
    """
    if _have_close_rows(now, stored):
        return True
    key = ["number", "point", "replicate", "value"]
    return {*key} <= {*now} and _have_close_rows(now.sort_values(key), stored.sort_values(key))


def _have_close_rows(now: pd.DataFrame, stored: pd.DataFrame) -> bool:
    """Return whether the rows of two frames, one after the other, differ only by rounding."""
    if list(now) != list(stored) or len(now) != len(stored):
        return False
    numeric = [name for name in now if all(is_numeric_dtype(rows[name]) for rows in (now, stored))]
    words = [rows.drop(columns=numeric).astype(object).fillna("") for rows in (now, stored)]
    return np.array_equal(*words) and np.allclose(
        now[numeric].astype(float), stored[numeric].astype(float), RELATIVE, ABSOLUTE, True
    )


def _write(path: Path, text: str) -> None:
    """Write a text; compress a file whose name ends in `.xz`."""
    content = text.encode()
    if path.suffix == ".xz":
        content = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
    write_atomically(path, content)


def _replace(path: Path, text: str) -> None:
    """Write a text and print the path. Do nothing if the file has this text already."""
    content = path.read_bytes() if path.exists() else b""
    if text.encode() != (lzma.decompress(content) if content and path.suffix == ".xz" else content):
        _write(path, text)
        print(path)


def _read_numbers(reference: Path) -> pd.DataFrame:
    """Return the stored numbers of all rules; an empty table if there is no file."""
    path = reference / JUDGED
    return read_csv(path, dtype={"point": str}) if path.exists() else NO_NUMBERS


def _write_numbers(reference: Path, numbers: pd.DataFrame) -> None:
    _replace(reference / JUDGED, numbers.to_csv(index=False, float_format="%.6g"))


def _is_of(numbers: pd.DataFrame, folder: Path) -> pd.Series:
    """Return which numbers belong to a figure. folder: the figure's folder in the reference."""
    return (numbers["scale"] == folder.parent.name) & (numbers["figure"] == folder.name)


def numbers_judged(folder: Path, tables: Tables) -> pd.DataFrame:
    """Return the numbers that the rules of a figure's claims judge, one row for each number.

    folder: the figure's folder in the reference. tables: its stored tables. A claim may have
    several rules; the column `number` is the index of the rule, from 0.
    """
    frames = []
    for claim in claims_of(folder.name, figure_study(folder.name)):
        about = {"scale": folder.parent.name, "figure": folder.name, "claim": claim.name}
        for number, rule in enumerate(claim.rules):
            try:
                with np.errstate(all="ignore"):  # a diverged run is data
                    rows = rule.quantity.assuming(rule.quantity.measure(Present(tables)))
            except NoRows:
                continue
            point = rows[list(rule.quantity.each)].astype(str).agg(" ".join, axis=1)
            numbers = rows[rows.columns.intersection(NO_NUMBERS.columns)]
            frames.append(numbers.assign(**about, number=number, point=point))
    return pd.concat(frames or [NO_NUMBERS], ignore_index=True).reindex(columns=[*NO_NUMBERS])


def main(arguments: list[str]) -> int:
    """Store the user's figures (keep), or draw or judge all figures of the reference; return 0.

    Raises InputError if an argument is wrong, a stored file is damaged, or a claim has another
    verdict than the stored one.
    """
    parser = argparse.ArgumentParser(
        prog="scripts/reference.py",
        description="keep: store your figures in the reference. draw: draw all its figures. judge:"
        " judge all its claims again, after a rule was changed.",
    )
    parser.add_argument("what", choices=("keep", "draw", "judge"))
    keys = "for keep: scale=..., outputs=...; for draw: outputs=..., style=..."
    parser.add_argument("overrides", nargs="*", metavar="key=value", help=keys)
    options = parser.parse_args(arguments)
    if options.what == "keep":
        _keep_all(options.overrides)
    elif options.what == "draw":
        _draw_all(options.overrides)
    elif options.overrides:
        raise InputError("judge takes no further words: it judges all figures")
    else:
        judge_all(REFERENCE)
    return 0


def _keep_all(typed: list[str]) -> None:
    """Store all figures that are drawn, and all benchmarks; print which figures are not stored."""
    require_readable(paper_figure(figure_names()[0], typed).outputs)
    for name in figure_names():
        try:
            print(keep(name, typed, REFERENCE))
        except InputError as error:
            print(f"left out: {' '.join(str(error).splitlines())}", file=sys.stderr)
    typed_folder = [text for text in typed if text.startswith("outputs=")]
    for path in keep_benchmarks(outputs_folder(typed_folder) / "bench", REFERENCE):
        print(path)


def _draw_all(typed: list[str]) -> None:
    """Draw all figures of the reference and print the paths."""
    if any("=" not in word for word in typed):
        raise InputError("draw takes no name: it draws all figures. To see one: runner show fig4")
    values = key_values(typed, ["outputs", "style"])
    outputs = outputs_at(values.get("outputs", "outputs"))
    require_writable(outputs, outputs / FROM_REFERENCE)
    for path in draw_all(REFERENCE, outputs, values.get("style", "screen")):
        print(path)


if __name__ == "__main__":
    try:
        sys.exit(main([at_home(word) for word in sys.argv[1:]]))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
