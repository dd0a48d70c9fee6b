"""A complete run is computed again beside itself, and replaced once the new attempt is complete.

The attempt is a folder in the run's own, `.again`, with all that a run's folder has but the lock;
meanwhile the complete run is what everybody sees. An attempt that was stopped stays there, and goes
on when it is asked for again. One that is complete is put in place file by file, its result last:
a kill in between is made up for by who next holds the run's lock.
"""

import shutil
from pathlib import Path

from runner.core.catalogue import rows_of
from runner.core.errors import InputError
from runner.runs.run import RESULT, Run, holds, read_result

LEFT_OVER = ("checkpoint.safetensors", "error.txt", "overview.png")
"""What a complete attempt does not bring, and would be that of the run before."""


def begin(run: Run) -> Path:
    """The folder of a new attempt, as the last one left it. Only for who holds the run's lock."""
    if run.again.is_symlink():
        run.again.unlink()
    run.again.mkdir(exist_ok=True)
    return run.again


def settle(run: Run) -> bool:
    """Put a complete new attempt in the place of the run; whether there was one.

    Only for who holds the run's lock. Raises OSError when a file cannot be moved.
    """
    if run.again.is_symlink() or not (run.again / RESULT).is_file():
        return False
    if (tables := _vouched(run)) is None:
        shutil.rmtree(run.again)
        return False
    for name in LEFT_OVER:
        (run.folder / name).unlink(missing_ok=True)
    for path in sorted(run.again.iterdir()):
        if path.name in LEFT_OVER:
            path.unlink()
        elif path.name != RESULT:
            path.replace(run.folder / path.name)
    for table in set(rows_of(run.config.study)) - tables:
        (run.folder / f"{table}.csv").unlink(missing_ok=True)
    (run.again / RESULT).replace(run.result_path)
    run.again.rmdir()
    return True


def _vouched(run: Run) -> set[str] | None:
    """The tables that the attempt's result names; None unless all are there, moved or not."""
    try:
        tables = read_result(run.again / RESULT)["tables"]
        for name, table in tables.items():
            if not any(_is(path / f"{name}.csv", table) for path in (run.again, run.folder)):
                return None
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        return None
    return set(tables)


def _is(path: Path, table: dict) -> bool:
    try:
        return holds(path, table)
    except OSError:
        return False
