"""Progress of long work: a bar on a terminal or in a notebook, plain lines in the log otherwise."""

import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from tqdm.auto import tqdm

Stage = Literal["choosing rates", "pre-training", "training", "polishing", "solving", "measuring"]
"""What a run can be at: one name for each stage, in every study."""

SECONDS_TO_FIRST_LINE = 1.0
SECONDS_BETWEEN_LINES = 25.0
"""Reached by doubling: a log is never silent for half a minute."""
SECONDS_BETWEEN_NUMBERS = 0.5
"""On a bar."""

log = logging.getLogger("runner.run")
"""What a run says of itself: shown unless another line tells of all runs, as in `told_of_all`."""

OF_ALL = "runner.runs"
"""The log of that other line."""

_notebook = "ipykernel" in sys.modules
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
    """Whether a line of the log belongs on the terminal."""
    return not (_told_of_all and record.name == log.name)


class WhenShown:
    """A number of a progress bar that is computed only when the bar shows it."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute


class Progress:
    """Counts towards `total` and shows the time left and the numbers that matter (loss, rank).

    The first line comes after a second, whether a unit is done by then or not. A number may be a
    tensor: it is read, and the device waited for, only when it is shown. Of several values (of
    networks that are trained at once) the median of the finite ones is shown, and how many are not.
    """

    log = log

    def __init__(self, total: int, what: str, done: int = 0, unit: str = "steps") -> None:
        self.total, self.what, self.done, self.unit = total, what, done, unit
        self.shown = self.said = time.monotonic()  # when there were numbers, and when any line
        self.updated = self.shown
        self.pause = SECONDS_TO_FIRST_LINE
        self.since: tuple[float, int] | None = None
        self.foretold = 0.0
        self.numbers = ""
        self.ended = threading.Event()
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.bar = None
        if _bars and not _told_of_all:
            self.bar = tqdm(
                total=total,
                desc=self.text(),
                initial=done,
                bar_format="{bar}{desc}" if _notebook else "|{bar:20}| {desc}",
                dynamic_ncols=True,
                leave=False,
            )

    def __enter__(self) -> "Progress":
        self.watcher.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        self.watcher.join()
        if self.bar is not None:
            self.bar.close()

    def update(self, count: int = 1, **numbers: Any) -> None:
        """`count` more units are done, or a part of one: 0; `numbers` go beside the bar."""
        self.done += count
        now = self.updated = time.monotonic()
        if self.since is None:  # the first units also load libraries and fill caches
            self.since = (now, self.done)
        if now - self.shown < (SECONDS_BETWEEN_NUMBERS if self.bar is not None else self.pause):
            return
        self.shown = now
        self.numbers = ", ".join(_in_words(name, value) for name, value in numbers.items())
        self._show()

    def foretell(self, seconds: float) -> None:
        """Let the work take so many seconds from now on, until its speed is known."""
        self.foretold = time.monotonic() + seconds

    def text(self) -> str:
        """How far the work is: `training: 340 of 1000 steps, about 30 s left, loss 0.25`."""
        left = self.seconds_left()
        time_left = f"{duration(left)} left" if left >= 1 else ""
        parts = (f"{self.done} of {self.total} {self.unit}", time_left, self.numbers)
        return f"{self.what}: {', '.join(filter(None, parts))}"

    def seconds_left(self) -> float:
        """At the speed since the first units were done; 0: not known."""
        now = time.monotonic()
        start, done = self.since or (now, self.done)
        if self.done == done or self.updated - start < SECONDS_TO_FIRST_LINE:
            return self.foretold - now
        left = (self.total - self.done) * (self.updated - start) / (self.done - done)
        return left - (now - self.updated)

    def _watch(self) -> None:
        """Say what is being done when no unit ends for long."""
        while not self.ended.wait(SECONDS_TO_FIRST_LINE):
            self.look()
            late = self.pause + SECONDS_TO_FIRST_LINE / 2
            if self.bar is not None or time.monotonic() - self.said >= late:
                self._show()

    def look(self) -> None:
        """Called every second, by another thread: what is counted may have to be looked at."""

    def _show(self) -> None:
        """On the bar, or as a line of the log."""
        if self.bar is not None:
            self.bar.n = self.done
            self.bar.set_description_str(self.text())
            return
        self.said, self.pause = time.monotonic(), min(2 * self.pause, SECONDS_BETWEEN_LINES)
        self.log.info("%s", self.text())


def _in_words(name: str, value: Any) -> str:
    """A number with its name; of several the median of the finite ones."""
    value = value.compute() if isinstance(value, WhenShown) else value
    values = np.ravel(value.tolist() if hasattr(value, "tolist") else value).astype(float)
    if len(values) == 1:
        return f"{name} {values[0]:.4g}"
    finite = values[np.isfinite(values)]
    lost = f" ({len(values) - len(finite)} of {len(values)} diverged)"
    median = f"median {name} {np.median(finite):.4g}" if len(finite) else name
    return median + lost * (len(finite) < len(values))


def duration(seconds: float) -> str:
    """A time in the unit that suits it: `about 3 days`."""
    units = (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("min", 60))
    for unit, length in units:
        if seconds >= 2 * length:
            return f"about {seconds / length:.2g} {unit}"
    return f"about {max(1, round(seconds))} s"
