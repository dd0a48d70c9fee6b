"""Progress of long work: a bar on a terminal or in a notebook, plain lines in the log otherwise."""

import logging
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from tqdm.auto import tqdm

Stage = Literal[
    "choosing learning rates", "pre-training", "training", "polishing", "solving", "measuring"
]
"""What a run can be at: one name for each stage, in every study."""

SECONDS_TO_FIRST_LINE = 1.0
SECONDS_BETWEEN_LINES = 25.0
"""Reached by doubling: a log is never silent for half a minute."""
SECONDS_ON_A_BAR = 0.5
"""Between two looks at the numbers."""

log = logging.getLogger("runner.run")
"""What a run says of itself: shown unless another line tells of all runs, as in `told_of_all`."""

OF_ALL = "runner.runs"
"""The log of that other line."""

_notebook = "ipykernel.kernelapp" in sys.modules  # a kernel runs this; it is not imported alone
_bars = sys.stderr.isatty() or _notebook
_told_of_all = False


@contextmanager
def told_of_all() -> Iterator[None]:
    """Within, a run tells its own log alone how far it is: one line of another's shows all runs."""
    global _told_of_all
    before, _told_of_all = _told_of_all, True
    try:
        yield
    finally:
        _told_of_all = before


def is_shown(record: logging.LogRecord) -> bool:
    """Say whether a line of the log belongs on the terminal."""
    return not (_told_of_all and record.name == log.name)


class Progress:
    """Counts towards `total` and shows the time left and the numbers that matter (loss, rank).

    The first line comes after a second, whether a unit is done by then or not. A number may be a
    tensor or a function: it is read, and the device waited for, only when it is shown. Of several
    values (of networks that are trained at once) the median of the finite ones is shown, and how
    many are not.
    """

    log = log

    def __init__(self, total: int, what: str, done: int = 0, unit: str = "steps") -> None:
        self.total, self.what, self.done, self.unit = total, what, done, unit
        self.numbers, self.foretold, self.pause = "", 0.0, SECONDS_TO_FIRST_LINE
        self.since: tuple[float, int] | None = None
        self.shown = self.said = self.updated = time.monotonic()  # with numbers, at all, counted
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.bar = None
        if _bars and not _told_of_all:
            form = "{bar}{desc}" if _notebook else "|{bar:20}| {desc}"
            look = {"bar_format": form, "dynamic_ncols": True, "leave": False}
            self.bar = tqdm(total=total, desc=self.text(), initial=done, **look)

    def __enter__(self) -> "Progress":
        self.watcher.start()
        return self

    def __exit__(self, kind: type | None, *exception: object) -> None:
        self.ended.set()
        self.watcher.join()
        if self.bar is not None:
            self.bar.close()

    def update(self, count: int = 1, **numbers: Any) -> None:
        """Count `count` more units, or a part of one: 0; `numbers` go beside the bar."""
        self.done += count
        self.updated = time.monotonic()
        self.since = self.since or (self.updated, self.done)  # the first also load libraries
        if self.updated - self.shown >= (self.pause if self.bar is None else SECONDS_ON_A_BAR):
            self.shown = self.updated
            self.numbers = ", ".join(_in_words(name, value) for name, value in numbers.items())
            self._show()

    def foretell(self, seconds: float) -> None:
        """Let the work take so many seconds from now on, until its speed is known."""
        self.foretold = time.monotonic() + seconds

    def text(self) -> str:
        """Say how far it is: `training: 340 of 1000 steps, about 30 s left, loss 0.25`."""
        parts = (f"{self.done} of {self.total} {self.unit}", self.time_left(), self.numbers)
        return f"{self.what}: {', '.join(filter(None, parts))}"

    def time_left(self) -> str:
        """Say it in words; nothing where it is unknown."""
        left = self.seconds_left()
        return f"{duration(left)} left" if left >= 1 else ""

    def seconds_left(self) -> float:
        """Return the time left at the speed since the first units were done; 0: not known."""
        now = time.monotonic()
        start, done = self.since or (now, self.done)
        if self.done == done or self.updated - start < SECONDS_TO_FIRST_LINE:
            return self.foretold - now
        speed = (self.done - done) / (self.updated - start)
        return (self.total - self.done) / speed - (now - self.updated)

    def _watch(self) -> None:
        """Say what is being done when no unit ends for long."""
        while not self.ended.wait(SECONDS_TO_FIRST_LINE):
            self.look()
            late = self.pause + SECONDS_TO_FIRST_LINE / 2
            if self.bar is not None or time.monotonic() - self.said >= late:
                self._show()

    def look(self) -> None:
        """Look at what is counted, where it has to be looked at: every second, in a thread."""

    def _show(self) -> None:
        """Put it on the bar, or into the log."""
        if self.bar is not None:
            self.bar.n = self.done
            self.bar.set_description_str(self.text())
        else:
            self.said, self.pause = time.monotonic(), min(2 * self.pause, SECONDS_BETWEEN_LINES)
            self.log.info("%s", self.text())


def _in_words(name: str, value: Any) -> str:
    """Name a number; of several the median of the finite ones."""
    value = value() if callable(value) else value
    values = np.ravel(value.tolist() if hasattr(value, "tolist") else value).astype(float)
    if len(values) == 1:
        return f"{name} {values[0]:.4g}"
    finite = values[np.isfinite(values)]
    lost = len(values) - len(finite)
    median = f"median {name} {np.median(finite):.4g}" if len(finite) else name
    return f"{median} ({lost} of {len(values)} diverged)" if lost else median


def duration(seconds: float) -> str:
    """Write a time in the unit that suits it: `about 3 days`."""
    units = (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("min", 60))
    for unit, length in units:
        if seconds >= 2 * length:
            return f"about {float(f'{seconds / length:.2g}'):g} {unit}"
    return f"about {max(1, round(seconds))} s"
