"""`runner runs`: the runs there are under an outputs folder, and what can be done with them."""

import argparse
import io
import json
import math
import re
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.catalogue import configs, rows_of
from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at
from runner.core.studies import Row, column_types
from runner.results import sweep_pictures
from runner.results.table_diff import compare
from runner.runs import cleaning
from runner.runs.files import write_named
from runner.runs.inventory import STATUSES, Found, attempts, find, folders, in_queue, problem
from runner.runs.run import Run, joined, stale_note
from runner.runs.selection import chosen, named


def main(arguments: list[str]) -> int:
    """Carry out an action, by default the list; return its exit code.

    Raises InputError for wrong input.
    """
    action, *rest = arguments or ["list"]
    if action in ("-h", "--help"):
        listed = "\n".join(f"  {name:<8}{about}" for name, (_, about) in ACTIONS.items())
        usage = f"usage: runner runs [{'|'.join(ACTIONS)}] ... [outputs=...]"
        print(f"{usage}\n\nActions, each with --help:\n{listed}")
        return 0
    if action.startswith("-") or "=" in action:
        action, rest = "list", arguments
    if action not in ACTIONS:
        raise InputError(f"runs {action} is unknown: {nearest(action, ACTIONS)}")
    carry_out, about = ACTIONS[action]
    parser = argparse.ArgumentParser(prog=f"runner runs {action}", description=f"Show {about}.")
    of_action = {"diff": "A B", "export": "[FILE]"}.get(action, "")
    parser.add_argument("words", nargs="*", metavar=f"{of_action} [outputs=...]".strip())
    if action in ("list", "export", "plot", "clean"):
        several: dict[str, Any] = {"action": "append", "default": []}
        parser.add_argument("--study", help="runs of this study", **several)
        parser.add_argument("--status", help=f"in this status: {', '.join(STATUSES)}", **several)
        about = "whose parameter has this value, or one of several: depth=32, depth=8,16"
        parser.add_argument("--where", metavar="KEY=VALUE", help=about, **several)
        parser.add_argument("--stale", action="store_true", help="complete, by other code")
    if action == "list":
        parser.add_argument("--json", action="store_true", help="with all parameters, for programs")
    if action == "export":
        parser.add_argument("--table", help="which table; by default metrics")
        about = "mean, standard deviation and number of replicates, by what varies"
        parser.add_argument("--mean", action="store_true", help=about)
        formats = parser.add_mutually_exclusive_group(required="--mean" not in rest)
        formats.add_argument(
            "--latex", action="store_true", help="a booktabs tabular, without what all rows share"
        )
        formats.add_argument("--csv", action="store_true", help="all rows with all parameters")
        formats.add_argument("--parquet", action="store_true", help="the same; needs pyarrow")
    if action == "plot":
        parser.add_argument("--x", help="a parameter, or what a table follows: a layer, an epoch")
        parser.add_argument("--y", action="append", default=[], help="a number of any table")
        parser.add_argument("--color", help="a parameter, or what a table tells apart: a method")
        parser.add_argument("--out", type=Path, help="the file: .png, .pdf or .svg")
        parser.add_argument("--table", action="store_true", help="the numbers drawn, as CSV")
    if action == "clean":
        parser.add_argument("--yes", action="store_true", help="remove them")
    options = parser.parse_intermixed_args(rest)
    typed = [word for word in options.words if word.startswith("outputs=")]
    options.words = [word for word in options.words if word not in typed]
    for word in options.words:
        if "=" in word and action != "diff":
            raise InputError(f"{word} is not outputs=...; runs are chosen by --where {word}")
    for word in options.words:
        if not of_action and word in configs() and not Path(word).is_dir():
            raise InputError(f"{word} is a study: its runs are chosen by --study {word}")
    if not of_action:
        typed += options.words
    if len(typed) > 1:
        raise InputError(f"name one folder of outputs, not {len(typed)}: outputs=FOLDER")
    return carry_out(options, outputs_at(typed[0].removeprefix("outputs=") if typed else "outputs"))


def _chosen(options: argparse.Namespace, found: Sequence[Found]) -> list[Found]:
    return chosen(found, options.study, options.status, options.where, options.stale)


def list_runs(options: argparse.Namespace, outputs: Path) -> int:
    """Print a line for each run, and how many there are of each status."""
    found = find(outputs)
    runs = _chosen(options, found)
    if options.json:
        print(json.dumps([_facts(each) for each in runs], indent=1))
    elif not runs:
        print(_none(found, outputs))
    else:
        statuses = Counter(each.status for each in runs)
        counts = ", ".join(f"{statuses[name]} {name}" for name in STATUSES if statuses[name])
        stale = sum(each.is_stale for each in runs)
        unknown = sum(each.is_of_unknown_code for each in runs)
        notes = [f"{stale - unknown} by other code than today's"] * (stale > unknown)
        notes += [f"{unknown} by code that is not known"] * (unknown > 0)
        other = f" ({', '.join(notes)})" if notes else ""
        print(f"{_table(runs)}\n\n{_count(runs)}: {counts}{other}")
    return 0


def check(options: argparse.Namespace, outputs: Path) -> int:
    """Verify every file of every run; return 1 when one is damaged."""
    found = folders(outputs)
    problems = [text for folder in found if (text := problem(folder, outputs))]
    print("\n".join([*map(_shown, problems), f"{_count(found)}, {len(problems)} damaged"]))
    return 1 if problems else 0


def diff(options: argparse.Namespace, outputs: Path) -> int:
    """Print two runs side by side; return 1 when their numbers differ by more than rounding."""
    if len(options.words) != 2:
        words = " ".join(options.words)
        raise InputError(f"runs diff needs two runs, not {len(options.words)}: {words}")
    found = [named(word, outputs) for word in options.words]
    print("\n".join(f"{letter}  {each.folder}" for letter, each in zip("AB", found, strict=True)))
    a, b = (each.run for each in found)
    _print_pairs("parameters", *({"study": r.config.study, **vars(r.config)} for r in (a, b)))
    _print_pairs("code, machine, versions", *(_origin(run.provenance()) for run in (a, b)))
    statuses = [f"{letter} is {each.status}" for letter, each in zip("AB", found, strict=True)
                if each.status != "complete"]  # fmt: skip
    if statuses or a.config.study != b.config.study:
        print(f"\nnumbers: nothing to compare: {', '.join(statuses) or 'of two studies'}")
        return 1
    ours, theirs = a.tables(), b.tables()
    differ = 0
    for name in dict.fromkeys([*ours, *theirs]):
        own, other = (tables.get(name, pd.DataFrame()) for tables in (ours, theirs))
        columns = compare(own, other, rows_of(a.config.study).get(name))
        differ += columns["differ"].sum()
        print(f"\n{name}: {_difference(columns)}")
    return int(differ > 0)


def _print_pairs(title: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> None:
    """Print what differs, with both values."""
    pairs = {name: (a.get(name), b.get(name)) for name in dict.fromkeys([*a, *b])}
    rows = {
        name: [str(value)[:60] for value in pair]
        for name, pair in pairs.items()
        if pair[0] != pair[1]
    }
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["A", "B"])
    print(f"\n{title}:\n{_indented(table.to_string())}" if rows else f"\n{title}: the same")


def _origin(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a run came about: code, commit, machine, data, versions, instructions."""
    kept = {name: about.get(name) for name in ("code", "device_name", "threads")}
    kept["commit"] = f"{str(about.get('commit'))[:8]}{'+' if about.get('dirty') else ''}"
    for group in ("data", "versions", "instructions"):
        of = "instructions of " if group == "instructions" else ""
        if isinstance(values := about.get(group), dict):
            kept |= {f"{of}{name}": value for name, value in values.items()}
    return kept


def _difference(compared: pd.DataFrame) -> str:
    """Return how two tables differ: rows, columns that differ, and in one line equal columns."""
    rows, columns = compared.iloc[0], compared.iloc[1:]
    lines = [f"{rows['equal']} rows matched{'; ' * bool(rows['at'])}{rows['at']}"]
    differ = columns["differ"] > 0
    if differ.any():
        worst = columns[differ].sort_values("largest", ascending=False, kind="stable")
        lines += [_indented(worst[SHOWN].to_string(index=False, float_format="{:.2g}".format))]
    if not differ.all():
        rounded = " (except for rounding)" if columns.loc[~differ, "rounding"].any() else ""
        lines += [f"  the same{rounded}: {', '.join(columns.loc[~differ, 'column'])}"]
    return "\n".join(lines)


def export(options: argparse.Namespace, outputs: Path) -> int:
    """Write the tables of complete runs of one study as one, to a file or the terminal."""
    if len(options.words) > 1:
        raise InputError(f"runs export writes one file, not {len(options.words)}: name one")
    path = Path(options.words[0]) if options.words else None
    if options.parquet and path is None:
        raise InputError("--parquet is for a file: name one, as in --parquet metrics.parquet")
    if options.parquet and find_spec("pyarrow") is None:
        raise InputError("--parquet needs pyarrow, which is not installed: pip install pyarrow")
    asked, runs = _with_tables(options, outputs)
    if left := len(asked) - len(runs):
        print(f"{left} of {len(asked)} runs are not complete: left out", file=sys.stderr)
    name, rows, absent = joined(runs, options.table)
    if options.mean:
        rows = means(rows, runs, name, options.latex)
    elif not options.parquet:
        rows = _without_unmeasured(rows, rows_of(runs[0].config.study).get(name), absent)
    if options.latex and not options.mean:
        keys = [key for key in vars(runs[0].config) if key in rows]
        shared = [key for key in keys if rows[key].nunique(dropna=False) < 2]
        rows = rows.drop(columns=["run", *shared])
    if options.latex:
        latex = rows.rename(columns=_as_tex).map(_as_tex).to_latex(index=False)
        text = f"% \\usepackage{{booktabs}}\n{latex}"
    else:
        text = rows.to_csv(index=False, na_rep="nan")
    if path is None:
        print(text, end="")
        return 0
    content = io.BytesIO() if options.parquet else io.BytesIO(text.encode())
    if options.parquet:
        rows.to_parquet(content, index=False)
    try:
        write_named(path, content.getvalue())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    print(f"{path}: {len(rows)} rows of {_count(runs)}")
    return 0


def _without_unmeasured(
    rows: pd.DataFrame, row_class: type[Row] | None, absent: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Return the rows; a cell that was not measured is empty, while nan is a number that was.

    absent: by column the runs that do not keep it. In a column that is nan unless a study says
    otherwise, every nan was not measured.
    """
    rows = rows.copy()
    for column in rows:
        default = getattr(row_class, column, None)
        optional = isinstance(default, float) and math.isnan(default)
        empty = rows["run"].isin(absent.get(column, ())) | (rows[column].isna() & optional)
        if empty.any():
            rows[column] = rows[column].astype(object).mask(empty, "")
    return rows


def means(rows: pd.DataFrame, runs: Sequence[Run], table: str, latex: bool = False) -> pd.DataFrame:
    """Return mean, standard deviation and number of each measurement over replicates and seeds, for
    each combination of what else varies; `latex`: mean and deviation in one cell.

    A column of the table may have the name of a parameter, as a rate that was found. It is a
    measurement where the parameter is the same in all runs; else the parameter takes its place.
    """
    row_class = rows_of(runs[0].config.study).get(table)
    keys, columns = ({*row_class.keys}, column_types(row_class)) if row_class else (set(), {})
    for name in vars(runs[0].config):
        values = {run.folder.name: str(getattr(run.config, name)) for run in runs}
        if name not in columns:
            keys.add(name)
        elif name not in keys and len(set(values.values())) > 1:
            keys.add(name)
            rows = rows.assign(**{name: rows["run"].map(values).replace("None", "null")})
    numbers = [name for name in rows.select_dtypes("number") if name not in keys]
    varied = [name for name in rows if name in keys and rows[name].nunique(dropna=False) > 1]
    by = [name for name in varied if name not in ("seed", "replicate")]
    groups = rows.assign(of="all").groupby(by or ["of"], sort=False, dropna=False)[numbers]
    found = groups.agg(["mean", "std", "count"]).rename(columns={"count": "n"}, level=1)
    if not latex:
        return found.set_axis(map("_".join, found.columns), axis=1).reset_index()
    cells = {
        name: [_mean_in_tex(mean, std) for mean, std, _ in found[name].to_numpy()]
        for name in numbers
    }
    n = found.xs("n", axis=1, level=1).max(axis=1)
    return pd.DataFrame(cells, index=found.index).assign(n=n).reset_index()


def _mean_in_tex(mean: float, deviation: float) -> str:
    """Return `$mean \\pm deviation$`; of one number, which has no deviation, the number."""
    if math.isnan(deviation):
        return _number_in_tex(mean, 4)
    number, error = _number_in_tex(mean, 4).strip("$"), _number_in_tex(deviation, 2).strip("$")
    return f"${number} \\pm {error}$"


def _number_in_tex(value: float, digits: int) -> str:
    """Return `1.234`, `$1.234 \\times 10^{-16}$`, `$\\infty$` or `nan`."""
    if math.isinf(value):
        return "$\\infty$" if value > 0 else "$-\\infty$"
    number, _, exponent = f"{value:.{digits}g}".partition("e")
    return f"${number} \\times 10^{{{int(exponent)}}}$" if exponent else number


def _as_tex(value: Any) -> Any:
    """Return a value as LaTeX shows it: in a text, but for formulas, what it takes for its own is
    escaped."""
    if isinstance(value, float):
        return _number_in_tex(value, 4)
    plain = isinstance(value, str) and not value.startswith("$")
    return (
        TEX.sub(lambda found: TEX_ESCAPES.get(found[0], f"\\{found[0]}"), value) if plain else value
    )


TEX = re.compile(r"[_%&#${}~^\\]")
TEX_ESCAPES = {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}


def plot(options: argparse.Namespace, outputs: Path) -> int:
    """Draw numbers of complete runs of one study against their parameters, or print them."""
    if options.out and options.out.suffix not in (ends := (".png", ".pdf", ".svg")):
        raise InputError(f"--out {options.out}: its name must end in {', '.join(ends)}")
    asked, complete = _with_tables(options, outputs)
    study = complete[0].config.study
    runs = [each.run for each in asked if each.config is not None and each.config.study == study]
    drawn = sweep_pictures.chosen(runs, options.x, options.y, options.color)
    if options.table:
        print(drawn.points.to_csv(index=False), end="")
        return 0
    try:
        path = sweep_pictures.write(drawn, outputs, options.out)
    except OSError as error:
        name = options.out or error.filename or outputs
        raise InputError(f"{name} cannot be written: {error.strerror}") from error
    print(f"{drawn.caption}{path}")
    return 0


def _with_tables(options: argparse.Namespace, outputs: Path) -> tuple[list[Found], list[Run]]:
    """Return what is chosen, and the complete runs among it, of one study.

    Raises InputError where these are none, or of several.
    """
    found = find(outputs)
    asked = _chosen(options, found)
    runs = [each.run for each in asked if each.status == "complete"]
    if not runs:
        raise InputError(f"{_none(found, outputs)}: only complete runs have tables")
    if len(studies := sorted({run.config.study for run in runs})) > 1:
        raise InputError(f"runs of {len(studies)} studies: choose one, --study {studies[0]}")
    if note := stale_note(runs):
        print(note, file=sys.stderr)
    return asked, runs


def clean(options: argparse.Namespace, outputs: Path) -> int:
    """Say which runs would be removed, or remove them; complete ones only if they are asked for."""
    if "running" in options.status:
        raise InputError("--status running: a run that is being computed is never removed")
    asked_for = options.status
    options.status = asked_for or (["complete"] if options.stale else cleaning.LEFT_OVER)
    queued = in_queue(outputs)
    found = find(outputs)
    runs = _chosen(options, [*found, *attempts(found, queued)])
    homes = {each.folder for each in runs}
    runs = [each for each in runs if each.folder == each.home or each.home not in homes]
    reasons = [cleaning.reason_to_leave(each, each.status in asked_for) for each in runs]
    for each, reason in zip(runs, reasons, strict=True):
        if reason:
            print(_shown(f"left, for {reason}: {each.folder}"))
    runs = [each for each, reason in zip(runs, reasons, strict=True) if not reason]
    if not runs:
        print(f"nothing to remove under {outputs}")
    elif not options.yes:
        saved = ["yes" * (each.folder / "checkpoint.safetensors").exists() for each in runs]
        sizes = [cleaning.size_of(each.folder) for each in runs]
        print(_table(runs, checkpoint=saved, size=[_megabytes(size) for size in sizes]))
        print(f"\n{_count(runs)}, {_megabytes(sum(sizes))}: --yes removes the folders")
        if goes_on := saved.count("yes"):
            print(f"{goes_on} with a checkpoint: their command goes on where it stopped")
    else:
        for each in runs:
            reason = cleaning.remove(each, queued)
            print(_shown(f"{f'left, for {reason}:' if reason else 'removed'} {each.folder}"))
    return 0


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _count(runs: Sequence[object]) -> str:
    return f"{len(runs)} run{'s' * (len(runs) != 1)}"


def _none(found: Sequence[Found], outputs: Path) -> str:
    return f"none of {_count(found)} is chosen" if found else f"no runs under {outputs}"


def _shown(text: object) -> str:
    """Return a text in one line, with escapes for what no terminal shows: names are any bytes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def _facts(each: Found) -> dict[str, Any]:
    """Return what there is to know of a run, as JSON has it: infinite numbers are text."""
    parameters = {} if each.config is None else vars(each.config)
    return {
        "study": each.study,
        "knobs": each.knobs,
        "hash": each.hash8,
        "status": each.status,
        "again": each.again,
        "stale": each.is_stale,
        "weights_bytes": each.weights,
        "seconds": None if math.isnan(each.seconds) else each.seconds,
        "ended": each.ended.isoformat(timespec="seconds") if each.ended else None,
        "folder": str(each.folder),
        "parameters": {
            key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
            for key, value in parameters.items()
        },
    }


def _table(runs: Sequence[Found], **more: list[str]) -> str:
    """Return a table of runs; on a terminal the knobs are cut to its width."""
    room = max(20, shutil.get_terminal_size().columns - 70) if sys.stdout.isatty() else None
    lines = [
        {
            "study": _shown(each.study),
            "knobs": _cut(_shown(each.knobs), room),
            "hash": _shown(each.hash8),
            "status": each.status,
            "again": each.again or "",
            "stale": "unknown" if each.is_of_unknown_code else "stale" * each.is_stale,
            "weights": _megabytes(each.weights) if each.weights else "",
            "seconds": "" if math.isnan(each.seconds) else f"{each.seconds:.1f}",
            "ended": each.ended.strftime("%Y-%m-%d %H:%M") if each.ended else "",
        }
        for each in runs
    ]
    table = pd.DataFrame(lines).assign(**more)
    table = table.loc[:, (table != "").any()]
    for name in set(table) - {"seconds", "size"}:
        table[name] = table[name].str.ljust(max(table[name].str.len().max(), len(name)))
    return table.to_string(index=False, justify="left")


def _cut(text: str, room: int | None) -> str:
    """Return a text of at most so many characters, with a mark where something is cut off."""
    return text if room is None or len(text) <= room else f"{text[: room - 1]}…"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


SHOWN = ["column", "equal", "rounding", "differ", "largest", "at"]

ACTIONS = {
    "list": (list_runs, "all runs, or those chosen: knobs, status, seconds, when they ended"),
    "check": (check, "what is damaged: every file of every run is verified"),
    "diff": (diff, "two runs side by side: parameters, code, numbers"),
    "export": (export, "the tables of runs as one: LaTeX, CSV or Parquet"),
    "plot": (plot, "numbers of runs against their parameters, layers or epochs: a picture"),
    "clean": (clean, "what failed, died or was interrupted, and with --yes remove it"),
}
