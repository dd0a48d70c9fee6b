"""The command `runner runs`: list, show, check or remove runs in a folder of outputs.

Its actions `diff`, `export` and `plot` stand in `run_diff` and `run_tables`.
"""

import argparse
import json
import math
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd

from runner.commands import numbers as measured
from runner.commands.choosing import chosen_runs, counted, none_chosen, printable, separated
from runner.core.arguments import PICTURE
from runner.core.catalogue import studies
from runner.core.errors import InputError, nearest
from runner.core.folders import outputs_at
from runner.core.shell import command
from runner.results.reported import report
from runner.runs import cleaning
from runner.runs.folder_names import old_of, shown
from runner.runs.inventory import AGAIN, STATUSES, RunInfo, about_old, find, folders, problem
from runner.runs.query import facts, listing, named
from runner.runs.run import CHECKPOINT, OF_CODE, RESULT, UnknownName, read_config

Action = Callable[[argparse.Namespace, Path], int]


def main(arguments: list[str]) -> int:
    """Carry out the action that the first argument names, such as `list`; return the exit status.

    Without an action, the runs are listed. Raises InputError for wrong arguments.
    """
    action, *rest = arguments or ["list"]
    parser, actions = _parsers()
    if action in ("-h", "--help"):
        parser.print_help()
        return 0
    if action.startswith("-") or "=" in action:
        action, rest = "list", arguments
    if action not in actions:
        raise InputError(f"runs {action} is unknown: {nearest(action, actions)}")
    for at in [i for i, word in enumerate(rest[:-1]) if word == "--sort"]:
        rest[at : at + 2] = ["", f"--sort={rest[at + 1]}"]  # its value may begin with a dash
    rest = [word for word in rest if word]
    given = actions[action].parse_intermixed_args(rest)  # options may stand between words
    typed = [word for word in given.words if word.startswith("outputs=")]
    given.words = [word for word in given.words if word not in typed]
    for word in given.words:
        if "=" in word and given.takes not in ("RUN", "A B"):  # their words name runs
            hint = "choose runs with --where '...'"
            if word.partition("=")[0] in PICTURE:
                hint = "for a size or style of your own, draw its numbers (--csv)"
            raise InputError(f"{word}: only outputs=... is a key here; {hint}")
        if not given.takes and word in studies() and not Path(word).is_dir():
            raise InputError(f"{word} is a study: choose its runs with --study {word}")
    if not given.takes:
        typed += given.words
    if len(typed) > 1:
        raise InputError(f"name one folder of outputs, not {len(typed)}: outputs=FOLDER")
    outputs = outputs_at(typed[0].removeprefix("outputs=") if typed else "outputs")
    return int(given.carry_out(given, outputs))


def list_runs(options: argparse.Namespace, outputs: Path) -> int:
    """Print a line for each chosen run, and how many runs have each status; return 0.

    options: the parsed arguments, which choose the runs. outputs: the folder of outputs. Raises
    InputError if a condition or a name is wrong, or `-n` is below 1.
    """
    if options.n is not None and options.n < 1:
        raise InputError(f"-n {options.n}: give a number of at least 1")
    infos = find(outputs)
    runs = chosen_runs(options, infos)
    runs, numbers, said = _leading(options, runs)
    parameters = listing(runs) if runs else pd.DataFrame()
    if options.json:
        listed = [facts(info) for info in runs]
        for line, info in zip(listed if numbers else [], runs, strict=False):
            of_run = {name: of[info.folder] for name, of in numbers.items() if info.folder in of}
            line["numbers"] = {name: x if math.isfinite(x) else None for name, x in of_run.items()}
        print(json.dumps(listed, indent=1))
    elif not runs:
        print(none_chosen(infos, outputs, options))
    else:
        statuses = Counter(info.status for info in runs)
        counts = ", ".join(f"{statuses[name]} {name}" for name in STATUSES if statuses[name])
        codes = Counter(info.code for info in runs)
        stale = [f"{codes[kind]} by {code}" for kind, code in OF_CODE.items() if codes[kind]]
        note = f" ({', '.join(stale)})" if stale else ""
        asked = [name for name in separated(options.columns) if name in parameters]
        texts = {name: [shown(x) if x == x else "" for x in parameters[name]] for name in asked}
        texts |= {
            name: [f"{of[run.folder]:.4g}" if run.folder in of else "" for run in runs]
            for name, of in numbers.items()
        }
        order = [
            name for word in separated(options.columns) for name in texts if _is_of(word, name)
        ]
        texts = {name: texts[name] for name in [*order, *texts]}
        print(f"{_table(runs, **texts)}\n\n{counted(runs)}: {counts}{note}", *said, sep="\n")
        _print_old(runs)
    return 0


def _is_of(word: str, column: str) -> bool:
    """Return whether a column is what `--columns` names: `rank (plain)` is a column of `rank`."""
    return column == word or column.startswith(f"{word} (")


def _leading(
    options: argparse.Namespace, runs: Sequence[RunInfo]
) -> tuple[list[RunInfo], dict[str, Mapping[Path, float]], list[str]]:
    """Return the runs in the wanted order, the wanted numbers by column, and notes on them.

    With `--method`, only runs that have a number of this method are returned. Raises InputError if
    a name is unknown, or `--method` is given without a number.
    """
    methods, found = separated(options.method), dict[str, Mapping[Path, float]]()
    notes, parameters = dict[str, None](), listing(runs)
    for name in separated(options.columns):
        if name not in parameters:
            columns, note = measured.numbers(name, runs, methods)
            found |= columns
            notes[note] = None
    in_order = list(runs)
    if options.sort:
        in_order, ordering, note = measured.ordered(options.sort, runs, methods)
        found |= ordering
        notes |= {note: None} if ordering else {}
    if methods and runs and not found:
        raise InputError(f"--method {methods[0]}: choose a number, too, as --sort -test_accuracy")
    if methods:
        in_order = [run for run in in_order if any(run.folder in of for of in found.values())]
    return in_order[: options.n], found, [*notes]


def show(options: argparse.Namespace, outputs: Path) -> int:
    """Print one run: numbers, files, the command that computed it, and a command to change it.

    Returns 0. options: `options.words` has one text that names the run. outputs: the folder of
    outputs. Raises InputError if the text names no run, or several.
    """
    if len(options.words) != 1:
        raise InputError(f"runs show needs one run, not {len(options.words)}")
    info = named(options.words[0], outputs)
    if info.config is None and (old := about_old(info.folder)):
        raise InputError(old)
    config = info.config or read_config(info.folder)  # raises an error that says why it is unread
    from runner.compose.composing import hydra_ready, overrides_of  # late: Hydra takes a while
    from runner.compose.orders import compose_order

    with hydra_ready(typed := [f"study={info.study}"]):
        usual = vars(compose_order(typed).jobs[0].config)
    about, changed = info.run.provenance(), dict[str, Any]()
    changed = {key: value for key, value in vars(config).items() if value != usual[key]}
    if config.own_images():  # its folder is no parameter; the file has its checksum
        changed |= {"data": next(iter(about.get("data") or {}), changed["data"])}
        del changed["checksums"]
    defaults = overrides_of({key: usual[key] for key in changed})
    pairs = zip(overrides_of(changed), defaults, strict=True)
    others = [f"{word} (not {default.partition('=')[2]})" for word, default in pairs]
    took = "" if math.isnan(info.seconds) else f", {info.seconds:.1f} s"
    stale = f", by {OF_CODE[info.code]}" if info.is_stale else ""
    ended = f", ended {info.ended:%Y-%m-%d %H:%M}" if info.ended else ""
    print(f"{info.study} {info.hash8}: {', '.join(others) or 'all parameters at their defaults'}")
    print(f"status: {info.status}{took}{ended}{stale}")
    _print_old([info])
    if info.failure:
        print(f"error: {printable(info.failure)}")
    print(f"folder: {info.folder}")
    if info.status == "complete":
        report(info.run)  # draws the picture again if it is not up to date
        tables = info.run.result["tables"].items()
        listed = ", ".join(f"{name}.csv ({table['rows']} rows)" for name, table in tables)
        print(f"tables: {listed}\npicture: {info.folder / 'overview.png'}\n")
        print(f"{measured.last_numbers(info.run)}\n")
    print(f"command: {about.get('command')}")
    where = info.folder.parents[2] if info.folder.parent.parent.name == "runs" else outputs
    again = command(*typed, *overrides_of(changed), outputs=where)
    print(f"with a change: {again} KEY=VALUE")
    return 0


def check(options: argparse.Namespace, outputs: Path) -> int:
    """Check all files of all runs, and print what is damaged.

    Returns 1 if a file is damaged, else 0. outputs: the folder of outputs.
    """
    paths, unknown, problems = folders(outputs), list[str](), list[str]()
    for folder in paths:
        try:
            problems += [text] if (text := problem(folder)) else []
        except UnknownName as error:
            unknown.append(f"not checked: {error}")
    for path in sorted(outputs.glob(f"runs/*/*{AGAIN}")):
        name = path.name.removesuffix(AGAIN)
        problems.append(
            f"{path} was left by version 2.0, which computed {name} again there. If it has a"
            f" {RESULT}, it is complete: give it the name {name}. Otherwise remove it"
        )
    counts = [f"{len(problems)} damaged", *([f"{len(unknown)} not checked"] if unknown else [])]
    old = filter(None, map(about_old, paths))
    lines = [*map(printable, [*problems, *unknown, *old]), ", ".join([counted(paths), *counts])]
    print("\n".join(lines))
    return 1 if problems else 0


def clean(options: argparse.Namespace, outputs: Path) -> int:
    """Print which runs would be removed. With `--yes`, remove them; return 0.

    Complete runs are removed only if the user chooses them by `--status` or `--stale`. Raises
    InputError for `--status running`.
    """
    if "running" in options.status:
        raise InputError("--status running: a run that is being computed is never removed")
    asked_for = options.status or (["complete"] if options.stale else [])
    chosen, runs = chosen_runs(options, find(outputs)), []
    for info in chosen:
        if info.status not in (asked_for or cleaning.LEFT_OVER):
            continue
        if reason := cleaning.reason_to_leave(info, info.status in asked_for):
            print(printable(f"left, for {reason}: {info.folder}"))
        else:
            runs.append(info)
    if not runs:
        print(f"nothing to remove under {outputs}")
        complete = [info for info in chosen if info.status == "complete"]
        if complete and not asked_for and (options.study or options.where):
            print(f"complete runs that match: {len(complete)} (add --status complete)")
    elif options.yes:
        for info in runs:
            done = "removed"
            if old_of(info.folder) and info.status != "complete":
                done = "removed, and its old numbers put back:"
            reason = cleaning.remove(info)
            print(printable(f"{f'left, for {reason}:' if reason else done} {info.folder}"))
    else:
        saved = ["yes" if (info.folder / CHECKPOINT).exists() else "" for info in runs]
        sizes = [cleaning.size_of(info.folder) for info in runs]
        print(_table(runs, checkpoint=saved, size=[*map(_megabytes, sizes)]))
        print(f"\n{counted(runs)}, {_megabytes(sum(sizes))}: --yes removes the folders")
        if goes_on := saved.count("yes"):
            print(f"{goes_on} with a checkpoint: their command goes on where it stopped")
        _print_old(runs)
    return 0


def _print_old(runs: Sequence[RunInfo]) -> None:
    """Print a line about each run whose old numbers are stored in another folder."""
    for text in filter(None, (about_old(info.folder) for info in runs)):
        print(printable(text))


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def _table(runs: Sequence[RunInfo], **more: list[str]) -> str:
    """Return a table of runs as text. On a terminal it is cut to the terminal's width."""
    table = listing(runs)[["study", "knobs", "hash", "status"]].map(printable)
    words = {"other": "stale", "unknown": "unknown"}
    table["code"] = [words.get(info.code, "") for info in runs]
    table["seconds"] = ["" if math.isnan(i.seconds) else f"{i.seconds:.1f}" for i in runs]
    table["ended"] = [f"{info.ended:%Y-%m-%d %H:%M}" if info.ended else "" for info in runs]
    table = table.assign(**more, failure=[printable(info.failure or "") for info in runs])
    if sys.stdout.isatty():
        room = max(20, shutil.get_terminal_size().columns - 70)
        for name in ("knobs", "failure"):
            table[name] = [t if len(t) <= room else f"{t[: room - 1]}…" for t in table[name]]
    table = table.loc[:, (table != "").any()]
    for name in set(table) - {"seconds", "size"}:
        table[name] = table[name].str.ljust(max(table[name].str.len().max(), len(name)))
    return table.to_string(index=False, justify="left")


def _late(module: str, name: str) -> Action:
    """Return an action of another module, which is imported only when it is carried out."""

    def carry_out(options: argparse.Namespace, outputs: Path) -> int:
        action: Action = getattr(import_module(f"runner.commands.{module}"), name)
        return action(options, outputs)

    return carry_out


diff = _late("run_diff", "diff")
export, plot = _late("run_tables", "export"), _late("run_tables", "plot")


class _Help(argparse.HelpFormatter):
    """Shows the words of an action as they are named. argparse would add `...` to them."""

    def _format_args(self, action: argparse.Action, default_metavar: Any) -> str:
        is_words = action.nargs == "*" and isinstance(action.metavar, str)
        return str(action.metavar) if is_words else super()._format_args(action, default_metavar)


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the parser of the command, for its help, and the parser of each action by name."""
    parser = argparse.ArgumentParser(prog="runner runs", description="Without an action: list.")
    actions = parser.add_subparsers(title="actions, each with --help", metavar="ACTION")
    several: dict[str, Any] = {"action": "append", "default": []}

    def add(name: str, carry_out: Action, about: str, takes: str = "") -> Callable[..., object]:
        text = f"{about[0].upper()}{about[1:]}."
        action = actions.add_parser(name, help=about, description=text, formatter_class=_Help)
        action.add_argument("words", nargs="*", metavar=f"{takes} [outputs=FOLDER]".strip())
        action.set_defaults(carry_out=carry_out, takes=takes)
        return action.add_argument

    def choose(option: Callable[..., object]) -> None:
        where = "depth=8, or a condition of pandas: 'depth in [8, 16] and seconds > 60'"
        option("--study", **several, help="runs of this study")
        option("--status", **several, help=f"in this status: {', '.join(STATUSES)}")
        option("--where", **several, metavar="CONDITION", help=where)
        option("--stale", action="store_true", help="complete runs of older code")

    def lead(option: Callable[..., object], what: str = "") -> None:
        by = "by a parameter or a number; -NAME: the largest first"
        option("--sort", metavar="NAME", help=f"{what}{by}")
        option("--method", **several, metavar="METHOD", help="numbers of this method only, as sgd")
        option("-n", type=int, help="only the first N")

    option = add("list", list_runs, "list all runs, or the chosen ones: parameters, status, time")
    choose(option)
    option("--columns", **several, metavar="NAME", help="numbers, as test_mse,rank, or parameters")
    lead(option)
    option("--json", action="store_true", help="as JSON with all parameters, for programs")

    add("show", show, "show one run: numbers, files, its command, a command with a change", "RUN")
    add("check", check, "verify every file of every run, and list the damaged ones")
    add("diff", diff, "compare two runs side by side: parameters, code, numbers", "A B")

    option = add("export", export, "write the tables of runs as one table: CSV or LaTeX", "[FILE]")
    choose(option)
    option("--table", help="name of the table (default: metrics)")
    option("--columns", **several, metavar="NAME", help="only these columns, as width,test_mse")
    means = "mean, standard deviation, number of replicates, 90 %% confidence interval of the"
    means += " median (five replicates or more), by what varies"
    option("--mean", action="store_true", help=means)
    medians = "the table at the end of a sweep: medians of headline numbers"
    option("--summary", action="store_true", help=medians)
    option("--csv", action="store_true", help="all numbers, as CSV")
    tex = "a LaTeX table, without columns that are equal in all rows"
    option("--latex", action="store_true", help=tex)

    option = add("plot", plot, "draw numbers against parameters, layers or epochs")
    choose(option)
    option("--x", help="a parameter, or a column such as layer or epoch")
    option("--y", **several, help="a number of any table")
    option("--color", help="a parameter, or a column such as method")
    option("--band", action="store_true", help="90 %% confidence bands of the medians")
    lead(option, "a table under the picture, ")
    option("--out", type=Path, help="the file: .png, .pdf or .svg")
    numbers = "print the drawn medians as CSV; with --out, write them next to the picture"
    option("--csv", action="store_true", help=numbers)

    option = add("clean", clean, "list failed, dead or interrupted runs; --yes removes them")
    choose(option)
    option("--yes", action="store_true", help="remove them")
    return parser, actions.choices
