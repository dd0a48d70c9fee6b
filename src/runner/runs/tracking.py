"""The rows of a run as series of numbers, handed to its tracker as they come.

A table and its columns make the series `<table>/<column>/<key>=<value>,...`. The step is the first
of the keys step, epoch, time, layer and depth that the table has; the others stand in the name,
apart from those that are a parameter of the run and have its value. Where the step is no whole
number (a time), or there is none, steps count the records of a series, and the time is a series of
its own. Text is left to the tables.
"""

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from typing import Any

from runner.core.studies import Row
from runner.runs.run import Run
from runner.runs.trackers import Tracker

log = logging.getLogger("runner")

STEPS = ("step", "epoch", "time", "layer", "depth")
"""The keys that a curve is drawn against, the first that there is."""

SERIES = 1000
"""The most series of a table: what lies beyond is in the table alone, and the log says so."""


class Tracking:
    """Hands the rows of one attempt at a run to a tracker. Without one it does nothing, and it goes
    on without one that fails.

    is_ending: whether an error is how a signal ends the process, which is no failure of a tracker.
    """

    def __init__(
        self, run: Run, tracker: Tracker | None, is_ending: Callable[[], bool] = lambda: False
    ) -> None:
        self.run, self.tracker, self.is_ending = run, tracker, is_ending
        self.known: dict[str, set[str]] = defaultdict(set)
        self.cut: set[str] = set()
        self.records: Counter[tuple[str, str]] = Counter()

    def start(self, provenance: dict[str, Any]) -> None:
        """Announce the attempt. provenance: what is known before a run."""
        with self._survived() as tracker:
            if tracker is not None:
                tracker.start(self.run, provenance)

    def rows(self, rows: Iterable[Row]) -> None:
        """Hand over all of these, those that a checkpoint has kept."""
        for row in rows:
            if self.tracker is None:
                return
            self.row(row)

    def row(self, row: Row) -> None:
        """Hand over one row."""
        with self._survived() as tracker:
            if tracker is None:
                return
            step, values = self._point(row)
            if values:
                tracker.row(row.table, step, values)

    def end(self, status: str) -> None:
        """Say how the attempt has ended: complete, failed or interrupted."""
        self.is_ending = lambda: False  # what ended the process is on its way already
        with self._survived() as tracker:
            if tracker is not None:
                tracker.end(status)

    def _point(self, row: Row) -> tuple[int, dict[str, float]]:
        """The step of a row, and the values of its series, as far as there is room for them."""
        table, name, values = row.table, series_name(row, vars(self.run.config)), numbers(row)
        record = self.records[table, name]
        self.records[table, name] += 1
        key = step_key(type(row))
        step = getattr(row, key) if key else record
        if not isinstance(step, int):
            values[key], step = step, record
        paths = {column: "/".join(filter(None, (table, column, name))) for column in values}
        shown = self._shown(table, paths.values())
        return step, {path: values[column] for column, path in paths.items() if path in shown}

    def _shown(self, table: str, paths: Iterable[str]) -> set[str]:
        """Those of a table's series that there is room for."""
        known = self.known[table]
        shown = set()
        for path in paths:
            if path in known or len(known) < SERIES:
                known.add(path)
                shown.add(path)
            elif table not in self.cut:
                self.cut.add(table)
                log.info(
                    "%s: the tracker gets %d series of %s.csv, its others are in the table alone",
                    self.run,
                    SERIES,
                    table,
                )
        return shown

    @contextmanager
    def _survived(self) -> Iterator[Tracker | None]:
        """The tracker. Whatever it raises ends the tracking, and not the run."""
        try:
            yield self.tracker
        except Exception as error:
            if self.is_ending():
                raise
            tracker, self.tracker = self.tracker, None
            name = type(tracker).__name__
            log.info("%s goes on without %s: %s: %s", self.run, name, type(error).__name__, error)
            with suppress(Exception):
                tracker.end("failed")


@cache
def step_key(row_class: type[Row]) -> str | None:
    """The key that is the step of a table; None where it has none."""
    numeric = {item.name for item in fields(row_class) if item.type in (int, float)}
    return next((key for key in STEPS if key in row_class.keys and key in numeric), None)


def series_name(row: Row, parameters: dict[str, Any]) -> str:
    """The keys of a row, but for its step and what the parameters of the run say: `key=value,...`.

    It is empty where nothing is left.
    """
    keys = [key for key in row.keys if key != step_key(type(row))]
    values = {key: getattr(row, key) for key in keys}
    return ",".join(
        f"{key}={value}"
        for key, value in values.items()
        if key not in parameters or parameters[key] != value
    )


def numbers(row: Row) -> dict[str, float]:
    """The measurements of a row that are numbers; truth values are 0 and 1."""
    return {
        item.name: float(getattr(row, item.name))
        for item in fields(row)
        if item.name not in row.keys and item.type in (int, float, bool)
    }
