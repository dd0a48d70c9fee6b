"""A complete run is computed again beside itself, and replaced once the new attempt is complete.

The attempt is a folder in the run's own, `.again`, with all that a run's folder has but the lease;
meanwhile the complete run is what everybody sees. An attempt that was stopped stays there, and goes
on when it is asked for again. One that is complete is put in place file by file, its result last:
a kill in between is made up for by who next holds the run's lease.
"""

import shutil
from pathlib import Path

from runner.core.catalogue import rows_of
from runner.core.errors import InputError
from runner.runs.run import CHECKPOINT, RESULT, WEIGHTS, Run, holds, read_result

LEFT_OVER = (CHECKPOINT, "error.txt", "overview.png")
"""Files that a complete attempt does not bring: they would be left from the run before."""


def begin(run: Run) -> Path:
    """Return the folder of a new attempt, as the last one left it. Only for who holds the lease."""
    if run.again.is_symlink():
        run.again.unlink()
    run.again.mkdir(exist_ok=True)
    return run.again


def settle(run: Run) -> bool:
    """Put a complete new attempt in the place of the run; return whether there was one.

    Only for who holds the lease. Raises OSError when a file cannot be moved.
    """
    if run.again.is_symlink() or not (run.again / RESULT).is_file():
        return False
    try:
        result = read_result(run.again / RESULT)
        tables = result["tables"]
        places = (run.again, run.folder)  # a table has been moved, or not yet
        is_whole = all(
            any(holds(place / f"{name}.csv", table) for place in places)
            for name, table in tables.items()
        )
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        is_whole = False
    if not is_whole:
        shutil.rmtree(run.again)
        return False
    for name in LEFT_OVER if "weights" in result else (*LEFT_OVER, WEIGHTS):
        (run.folder / name).unlink(missing_ok=True)
    for path in sorted(run.again.iterdir()):
        if path.name in LEFT_OVER:
            path.unlink()
        elif path.name != RESULT:
            path.replace(run.folder / path.name)
    for table in set(rows_of(run.config.study)) - set(tables):
        (run.folder / f"{table}.csv").unlink(missing_ok=True)
    (run.again / RESULT).replace(run.result_path)
    run.again.rmdir()
    return True
