"""Progress of long work: a bar on a terminal or in a notebook, plain lines in the log otherwise."""

import logging
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tqdm.auto import tqdm

SECONDS_TO_FIRST_LINE = 1.0
SECONDS_BETWEEN_LINES = 15.0
"""Reached by doubling."""
SECONDS_BETWEEN_NUMBERS = 0.5
"""On a bar."""
LONG = 3600.0
"""Seconds: work that takes longer says so as soon as it is known."""

log = logging.getLogger("runner")

_bars = sys.stderr.isatty() or "ipykernel" in sys.modules  # a terminal, or a notebook


def plain_lines() -> None:
    """Show lines even on a terminal: several processes would draw their bars over each other."""
    global _bars
    _bars = False


class WhenShown:
    """A number of a progress bar that is computed only when the bar shows it."""

    def __init__(self, compute: Callable[[], Any]) -> None:
        self.compute = compute

    def __float__(self) -> float:
        return float(self.compute())


class Progress:
    """Counts towards `total` and shows the numbers that matter (loss, rank).

    The first line comes after a second, whether a unit is done by then or not; work that will take
    more than an hour says how long, once, as soon as its speed is known. A number may be a 0-d
    tensor: it is read, and the device waited for, only when it is shown.
    """

    def __init__(self, total: int, what: str, done: int = 0, unit: str = "steps") -> None:
        self.total, self.what, self.done, self.unit = total, what, done, unit
        self.shown = self.said = time.monotonic()  # when there were numbers, and when any line
        self.pause = SECONDS_TO_FIRST_LINE
        self.since = (self.shown, done)
        self.warm = self.foretold = False
        self.ended = threading.Event()
        self.bar = (
            tqdm(total=total, desc=what, initial=done, unit=f" {unit}", leave=False)
            if _bars
            else None
        )

    def __enter__(self) -> "Progress":
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.ended.set()
        if self.bar is not None:
            self.bar.close()

    def update(self, count: int = 1, **numbers: Any) -> None:
        """`count` more units are done, or a part of one: 0; `numbers` go beside the bar."""
        self.done += count
        now = time.monotonic()
        if not self.warm:  # the first units also load libraries and fill caches
            self.warm, self.since = True, (now, self.done)
        if self.bar is not None:
            self.bar.update(count)
        if now - self.shown < (SECONDS_BETWEEN_NUMBERS if self.bar is not None else self.pause):
            return
        self.shown = now
        text = "  ".join(f"{name} {float(value):.4g}" for name, value in numbers.items())
        if self.bar is not None:
            self.bar.set_postfix_str(text)
        else:
            self._line(text)
        if now - self.since[0] >= SECONDS_TO_FIRST_LINE and self.done > self.since[1]:
            self.foretell((self.total - self.done) / self._speed())

    def foretell(self, seconds: float) -> None:
        """Say, where that is long and once, that the rest takes so many seconds."""
        if self.foretold or seconds < LONG:
            return
        self.foretold = True
        if self.bar is not None:
            self.bar.clear()
        log.info("%s: %s to go", self.what, duration(seconds))

    def _watch(self) -> None:
        """Say what is being done when no unit ends for long."""
        while not self.ended.wait(SECONDS_TO_FIRST_LINE):
            if self.bar is not None:
                self.bar.refresh()
            elif time.monotonic() - self.said >= self.pause + SECONDS_TO_FIRST_LINE / 2:
                self._line("")

    def _line(self, text: str) -> None:
        self.said, self.pause = time.monotonic(), min(2 * self.pause, SECONDS_BETWEEN_LINES)
        count = f"{self.done} of {self.total} {self.unit} ({self._speed():.3g}/s)"
        log.info("%s  %s  %s", self.what, count, text)

    def _speed(self) -> float:
        """Units per second since the first ones were done."""
        start, done = self.since
        return (self.done - done) / max(time.monotonic() - start, 1e-9)


def duration(seconds: float) -> str:
    """A time in the unit that suits it: `about 3 days`."""
    for unit, length in (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600)):
        if seconds >= 2 * length:
            return f"about {seconds / length:.2g} {unit}"
    return f"about {seconds / 60:.2g} minutes"
