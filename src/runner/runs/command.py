"""The subcommand `runs`: what there is under an outputs folder, and what can be done with it."""

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from runner.core.arguments import outputs_folder
from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at
from runner.runs import cleaning, differences, exporting
from runner.runs.inventory import STATUSES, Found, find, folders, in_queue, problem
from runner.runs.run import Run, stale_note
from runner.runs.selection import Selection, named, parse_where, titles

ACTIONS = {
    "list": "all runs, or those chosen: study, knobs, status, seconds, when they ended",
    "check": "verify every file of every run",
    "diff": "two runs side by side: parameters, code, numbers",
    "export": "the tables of runs as one: LaTeX, CSV or Parquet",
    "clean": "what failed, died or was interrupted: what it is, and with --yes remove it",
}


def main(arguments: list[str]) -> int:
    """Carry out an action of `runs`, by default the list; returns its exit code.

    Raises InputError for wrong input.
    """
    first, *rest = arguments or ["list"]
    if first in ("-h", "--help"):
        print(_help())
        return 0
    if first.startswith("-") or "=" in first:
        first, rest = "list", arguments
    if first not in ACTIONS:
        raise InputError(f"runs {first} is not known: {nearest(first, ACTIONS)}")
    carry_out: dict[str, Callable[[argparse.ArgumentParser, list[str]], int]] = {
        "list": _list,
        "check": _check,
        "diff": _diff,
        "export": _export,
        "clean": _clean,
    }
    parser = argparse.ArgumentParser(
        prog=f"python -m runner runs {first}", description=f"{ACTIONS[first].capitalize()}."
    )
    return carry_out[first](parser, rest)


def _help() -> str:
    width = max(map(len, ACTIONS))
    lines = [f"  {name:<{width}}  {about}" for name, about in ACTIONS.items()]
    usage = "usage: python -m runner runs [list|check|diff|export|clean] ... [outputs=...]"
    return "\n".join([usage, "", "Actions, each with --help:", *lines])


def _list(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """One line for each run, and how many there are of each status."""
    _add_selection(parser)
    _add_folder(parser)
    options = parser.parse_intermixed_args(arguments)
    outputs = _folder(options.words)
    found = find(outputs)
    chosen = _selection(options).choose(found)
    if not chosen:
        print(_none(found, outputs))
        return 0
    _print_runs(_lines(chosen))
    print(f"\n{_counts(chosen)}")
    return 0


def _check(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Verify every file; 1 when a run is damaged."""
    _add_folder(parser)
    outputs = _folder(parser.parse_args(arguments).words)
    found = folders(outputs)
    problems = [text for folder in found if (text := problem(folder, outputs))]
    print(
        "\n".join([*map(_shown, problems), f"{len(found)} runs, {len(problems)} of them damaged"])
    )
    return 1 if problems else 0


def _diff(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Two runs side by side; 1 when their numbers differ by more than rounding, or one has none."""
    runs = "a run: its folder, its name, the hash at its end, or how one of these begins"
    parser.add_argument("words", nargs="*", metavar="A B", help=runs)
    words, outputs = _words(parser.parse_args(arguments).words)
    if len(words) != 2:
        raise InputError(f"runs diff compares two runs; these are {len(words)}: {' '.join(words)}")
    found = [named(word, outputs) for word in words]
    for letter, each in zip("AB", found, strict=True):
        print(f"{letter}  {each.folder}")
    a, b = (each.run for each in found)
    _print_pairs("parameters", differences.parameters(a, b))
    _print_pairs("code, machine, versions", differences.origins(a, b))
    incomplete = [f"{letter} is {each.status}" for letter, each in zip("AB", found, strict=True)
                  if each.status != "complete"]  # fmt: skip
    if incomplete or a.config.study != b.config.study:
        print(f"\nnumbers: nothing to compare: {', '.join(incomplete) or 'of two studies'}")
        return 1
    tables = differences.numbers(a, b)
    for table in tables:
        print(f"\n{_table_text(table)}")
    return 0 if all(table.is_none for table in tables) else 1


def _print_pairs(title: str, pairs: dict[str, tuple[Any, Any]]) -> None:
    if not pairs:
        print(f"\n{title}: the same")
        return
    table = pd.DataFrame(
        [[str(value)[:60] for value in pair] for pair in pairs.values()],
        index=list(pairs),
        columns=["A", "B"],
    )
    print(f"\n{title}:\n{_indented(table.to_string())}")


def _table_text(found: differences.TableDifference) -> str:
    """The columns of a table that differ, and in one line those that do not."""
    head = f"{found.table}: {found.matched} rows matched by {', '.join(found.keys)}"
    alone = [f"{n} only in {side}" for side, n in (("A", found.only_a), ("B", found.only_b)) if n]
    columns = found.columns
    equal = columns["differ"] == 0
    lines = ["; ".join([head, *alone])]
    if not equal.all():
        worst = columns[~equal].sort_values("largest", ascending=False, kind="stable")
        lines.append(_indented(worst.to_string(index=False, float_format="{:.2g}".format)))
    if equal.any() and found.matched:
        rounded = " (but for rounding)" if columns.loc[equal, "rounding"].any() else ""
        lines.append(f"  the same{rounded}: {', '.join(columns.loc[equal, 'column'])}")
    return "\n".join(lines)


def _export(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Write the joined table to a file, or print it."""
    _add_selection(parser)
    parser.add_argument("--table", help="which table; by default metrics")
    formats = parser.add_mutually_exclusive_group(required=True)
    formats.add_argument(
        "--latex", action="store_true", help="a booktabs tabular, without what all rows share"
    )
    formats.add_argument("--csv", action="store_true", help="all rows with all parameters")
    formats.add_argument("--parquet", action="store_true", help="the same; needs pyarrow")
    parser.add_argument("words", nargs="*", metavar="FILE", help="by default the terminal")
    options = parser.parse_intermixed_args(arguments)
    words, outputs = _words(options.words)
    if len(words) > 1:
        raise InputError(f"runs export writes one file; these are {len(words)}: {' '.join(words)}")
    if options.parquet and not words:
        raise InputError("--parquet is for a file: name one, as in --parquet metrics.parquet")
    runs = _complete(_selection(options), outputs)
    rows = exporting.joined(runs, options.table)
    if options.parquet:
        exporting.write_parquet(rows, Path(words[0]))
    elif options.latex:
        rows = exporting.concise(rows, runs)
    text = exporting.as_latex(rows) if options.latex else exporting.as_csv(rows)
    if not words:
        print(text, end="")
        return 0
    if not options.parquet:
        exporting.write_text(text, Path(words[0]))
    print(f"{words[0]}: {len(rows)} rows of {len(runs)} runs")
    return 0


def _complete(selection: Selection, outputs: Path) -> list[Run]:
    """The complete runs that are chosen, all of one study; what is to be known of them is said.

    Raises InputError when there are none, or they are of several studies.
    """
    found = find(outputs)
    chosen = selection.choose(found)
    complete = [each for each in chosen if each.status == "complete"]
    if not complete:
        raise InputError(f"{_none(found, outputs)}: only complete runs have tables")
    if len(studies := sorted({each.study for each in complete})) > 1:
        raise InputError(f"runs of {len(studies)} studies: choose one, --study {studies[0]}")
    runs = [each.run for each in complete]
    if left := len(chosen) - len(complete):
        print(f"{left} of {len(chosen)} runs are not complete: left out", file=sys.stderr)
    if note := stale_note(runs):
        print(note, file=sys.stderr)
    return runs


def _clean(parser: argparse.ArgumentParser, arguments: list[str]) -> int:
    """Say which runs would be removed, or remove them."""
    _add_selection(parser)
    parser.add_argument("--yes", action="store_true", help="remove them")
    _add_folder(parser)
    options = parser.parse_intermixed_args(arguments)
    outputs = _folder(options.words)
    considered = cleaning.considered(outputs, _selection(options))
    for each, reason in considered:
        if reason is not None:
            print(_left(each, reason))
    chosen = [each for each, reason in considered if reason is None]
    if not chosen:
        print(f"nothing to remove under {outputs}")
        return 0
    sizes = [cleaning.size_of(each.folder) for each in chosen]
    if not options.yes:
        saved = ["yes" if _has_checkpoint(each) else "" for each in chosen]
        _print_runs(
            [
                {**line, "checkpoint": goes_on, "size": _megabytes(size)}
                for line, goes_on, size in zip(_lines(chosen), saved, sizes, strict=True)
            ]
        )
        runs = "1 run" if len(chosen) == 1 else f"{len(chosen)} runs"
        print(f"\n{runs}, {_megabytes(sum(sizes))}: --yes removes the folders")
        if goes_on := saved.count("yes"):
            print(f"{goes_on} with a checkpoint: their command goes on where it stopped")
        return 0
    queued = in_queue(outputs)
    for each in chosen:
        left = cleaning.remove(each, queued)
        print(_left(each, left) if left else f"removed {_shown(each.folder)}")
    return 0


def _left(each: Found, reason: str) -> str:
    return _shown(f"left, for {reason}: {each.folder}")


def _has_checkpoint(each: Found) -> bool:
    return (each.folder / "checkpoint.safetensors").exists()


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _add_selection(parser: argparse.ArgumentParser) -> None:
    """The options that choose runs; each can be given several times."""
    parser.add_argument("--study", action="append", default=[], help="runs of this study")
    parser.add_argument(
        "--status", action="append", default=[], help=f"in this status: {', '.join(STATUSES)}"
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="whose parameter has this value, or one of several: depth=32, depth=8,16",
    )
    parser.add_argument("--stale", action="store_true", help="complete, by other code than today's")


def _selection(options: argparse.Namespace) -> Selection:
    return Selection(
        tuple(options.study), tuple(options.status), parse_where(options.where), options.stale
    )


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="outputs=...", help="the folder of outputs")


def _folder(words: list[str]) -> Path:
    """The folder of `outputs=...`, or of a plain path. Raises InputError for other words."""
    for word in words:
        if "=" in word and not word.startswith("outputs="):
            raise InputError(f"{word} is not outputs=...; runs are chosen by --where {word}")
    if len(words) > 1:
        raise InputError(f"one folder of outputs is needed; these are {len(words)}")
    return outputs_at(words[0].removeprefix("outputs=")) if words else outputs_at("outputs")


def _words(words: list[str]) -> tuple[list[str], Path]:
    """The words but `outputs=...`, and the folder that this names."""
    typed = [word for word in words if word.startswith("outputs=")]
    return [word for word in words if word not in typed], outputs_folder(typed)


def _none(found: Sequence[Found], outputs: Path) -> str:
    return f"none of {len(found)} runs is chosen" if found else f"no runs under {outputs}"


def _shown(text: object) -> str:
    """A text in one line, with escapes for what no terminal shows: names of files are any bytes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(text))


def _lines(chosen: Sequence[Found]) -> list[dict[str, Any]]:
    """The columns of a list of runs."""
    titled = iter(titles([each.config for each in chosen if each.config is not None]))
    return [_line(each, each.knobs if each.config is None else next(titled)) for each in chosen]


def _line(each: Found, title: str) -> dict[str, Any]:
    return {
        "study": _shown(each.study),
        "knobs": _shown(title),
        "hash": _shown(each.hash8),
        "status": each.status,
        "again": each.again or "",
        "stale": "stale" if each.is_stale else "",
        "seconds": "" if pd.isna(each.seconds) else f"{each.seconds:.1f}",
        "ended": each.ended.strftime("%Y-%m-%d %H:%M") if each.ended else "",
    }


def _counts(chosen: Sequence[Found]) -> str:
    """How many runs there are, and of which status."""
    statuses = Counter(each.status for each in chosen)
    parts = [f"{statuses[status]} {status}" for status in STATUSES if statuses[status]]
    stale = sum(each.is_stale for each in chosen)
    other = f" ({stale} by other code than today's)" if stale else ""
    return f"{len(chosen)} run{'s' * (len(chosen) > 1)}: {', '.join(parts)}{other}"


def _print_runs(lines: list[dict[str, Any]]) -> None:
    """A table of runs; on a terminal the knobs are cut to its width."""
    table = pd.DataFrame(lines)
    table = table.loc[:, (table != "").any()]
    if sys.stdout.isatty():
        others = table.drop(columns="knobs").to_string(index=False).partition("\n")[0]
        room = max(20, shutil.get_terminal_size().columns - len(others) - 2)
        table["knobs"] = [_cut(text, room) for text in table["knobs"]]
    for name in table:
        width = max(table[name].str.len().max(), len(name))
        if name not in ("seconds", "size"):
            table[name] = table[name].str.ljust(width)
    print(table.to_string(index=False, justify="left"))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
