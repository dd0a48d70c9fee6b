"""The actions `runner runs export` and `plot`: tables of several runs, and pictures of them."""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from runner.commands import export as exporting
from runner.commands import numbers as measured
from runner.commands.choosing import chosen_runs, counted, none_chosen, printable, separated
from runner.core.errors import InputError
from runner.results.rows import with_names
from runner.runs.files import write_atomically
from runner.runs.inventory import RunInfo, find
from runner.runs.query import fits
from runner.runs.run import Run, read_config, stale_note


def export(options: argparse.Namespace, outputs: Path) -> int:
    """Write the joined tables of complete runs of one study, to a file or the terminal; return 0.

    A condition of `--where` on columns of the list of runs chooses runs. A condition on other
    columns chooses rows of the table. Raises InputError if the file cannot be written, if options
    contradict each other, or if the complete runs are of several studies or none.
    """
    if len(options.words) > 1:
        raise InputError(f"runs export writes one file, not {len(options.words)}: name one")
    if options.summary and (options.mean or options.table):
        raise InputError("--summary has its own table: leave out --mean and --table")
    of_rows: list[str] = []
    asked, runs = _with_tables(options, outputs, of_rows)
    if left := len(asked) - len(runs):
        print(f"{left} of {len(asked)} runs are not complete: left out", file=sys.stderr)
    study, columns = runs[0].config.study, separated(options.columns)
    if options.summary:
        from runner.results.sweeps import Sweep  # late: it imports matplotlib

        name, rows = "", Sweep(runs).table()
    else:
        name, rows = exporting.joined(runs, options.table)
    for condition in of_rows:
        rows = rows[fits(rows, condition)]
    if options.mean:
        rows = exporting.means_of(exporting.means(rows, runs, name), columns)
        table = rows.drop(columns="n").to_csv(index=False)
        text = exporting.means_in_tex(rows, runs[0], columns) if options.latex else table
    else:
        empty = exporting.with_empty_cells(rows, name, runs) if name else exporting.filled(rows)
        rows = exporting.only(empty, columns)
        text = rows.to_csv(index=False, na_rep="nan")
        if options.latex and options.summary:
            text = exporting.latex(with_names(rows, study))
        elif options.latex:
            text = exporting.latex(*exporting.fitting(rows, runs[0], columns))
    if not options.words:
        print(text, end="")
        return 0
    path = Path(*options.words)
    try:
        write_atomically(path, text.encode())
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
    print(f"{path}: {len(rows)} rows of {counted(runs)}")
    return 0


def plot(options: argparse.Namespace, outputs: Path) -> int:
    """Draw measured numbers of complete runs of one study against their parameters; return 0.

    Writes the picture, and prints its caption and path. With `--csv` the drawn medians are printed
    instead; with `--out`, too, they are written next to the picture. Raises InputError if the
    file's ending is unknown, if it cannot be written, or if the complete runs are of several
    studies or none.
    """
    from runner.results import sweep_plot  # late: it imports matplotlib
    from runner.results.preview import printed
    from runner.results.sweeps import Sweep

    if options.out and options.out.suffix not in (ends := (".png", ".pdf", ".svg")):
        raise InputError(f"--out {options.out}: its name must end in {', '.join(ends)}")
    of_rows: list[str] = []
    asked, complete = _with_tables(options, outputs, of_rows)
    study = complete[0].config.study
    runs = [info.run for info in asked if info.config is not None and info.study == study]
    sweep = Sweep(runs)
    for condition in of_rows:
        sweep.where(condition)
    methods = separated(options.method)
    measured.require_methods(methods, [sweep.only(methods)])
    drawn = sweep.choose(options.x, options.y, options.color, options.band)
    if options.sort:
        drawn = replace(drawn, board=sweep.board(options.sort, options.n or 10))
    elif options.n:
        raise InputError(f"-n {options.n}: the table under the picture needs --sort, too")
    if options.csv and not options.out:
        print(sweep_plot.medians(drawn).to_csv(index=False), end="")
        return 0
    try:
        path = sweep_plot.write(drawn, outputs, options.out, options.csv)
    except OSError as error:
        name = options.out or error.filename or outputs
        hint = "" if options.out else "; --out FILE.png writes it elsewhere"
        raise InputError(f"{name} cannot be written: {error.strerror}{hint}") from error
    board = "" if drawn.board is None else f"{printed(drawn.board, study)}\n\n"
    print(f"{board}{drawn.caption}{path}")
    if options.csv:
        print(path.with_suffix(".csv"))
    return 0


def _with_tables(
    options: argparse.Namespace, outputs: Path, of_rows: list[str]
) -> tuple[list[RunInfo], list[Run]]:
    """Return the chosen runs, and the complete runs among them, all of one study.

    of_rows: a list to which conditions on other columns than the list's are added. Raises
    InputError if there are no complete runs, or runs of several studies.
    """
    infos = find(outputs)
    asked = chosen_runs(options, infos, of_rows)
    whole = [info for info in asked if info.status == "complete"]
    runs = [info.run for info in whole if info.config is not None]
    for folder in [info.folder for info in whole if info.config is None]:
        try:
            read_config(folder)
        except InputError as error:
            print(f"left out: {printable(error)}", file=sys.stderr)
    asked = [info for info in asked if info not in whole or info.config is not None]
    if not runs:
        why = ": only complete runs have tables" if asked or options.status else ""
        raise InputError(none_chosen(infos, outputs, options) + why)
    if len(studies := sorted({run.config.study for run in runs})) > 1:
        raise InputError(f"runs of {len(studies)} studies: choose one, --study {studies[0]}")
    if note := stale_note(runs):
        print(note, file=sys.stderr)
    return asked, runs
