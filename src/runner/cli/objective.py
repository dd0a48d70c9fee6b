"""The number that a run returns to a sweeper which searches, as Hydra's other sweepers do."""

from dataclasses import fields

from runner.core.errors import InputError, nearest
from runner.core.rooms import rows_of
from runner.runs.run import Run

CLOCKS = ("epoch", "step", "time")
"""Columns that say when a row was measured: of those that have one, the last rows count."""


def require_objective(objective: str, study: str) -> None:
    """Raise InputError unless `table.column` is a column of numbers of the study."""
    columns = [
        f"{table}.{item.name}"
        for table, row_class in rows_of(study).items()
        for item in fields(row_class)  # inherited ones as well
        if item.type in (int, float)
    ]
    if objective not in columns:
        raise InputError(f"objective={objective} is not known: {nearest(objective, columns)}")


def value_of(objective: str, run: Run) -> float:
    """The mean of a column over its rows; of a table with a clock, over the last of them.

    objective: `table.column`, see `require_objective`.
    """
    table, column = objective.split(".")
    rows = run.tables()[table]
    for clock in CLOCKS:
        if clock in rows:
            rows = rows[rows[clock] == rows[clock].max()]
    return float(rows[column].mean())
