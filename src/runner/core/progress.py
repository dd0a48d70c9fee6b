"""Progress of long work: a bar on a terminal, plain lines in the log otherwise."""

import logging
import sys
import time
from typing import Any

from tqdm import tqdm

SECONDS_BETWEEN_LINES = 15.0

log = logging.getLogger("runner")

_bars = sys.stderr.isatty()


def plain_lines() -> None:
    """Show lines even on a terminal: several processes would draw their bars over each other."""
    global _bars
    _bars = False


class Progress:
    """Counts towards `total` and shows the numbers that matter (loss, rank).

    A number may be a 0-d tensor: it is read, and the device waited for, only when it is shown.
    """

    def __init__(self, total: int, what: str, done: int = 0, unit: str = "steps") -> None:
        self.total, self.what, self.done, self.unit = total, what, done, unit
        self.shown = self.started = time.monotonic()
        self.at_start = done
        self.bar = (
            tqdm(total=total, desc=what, initial=done, unit=f" {unit}", leave=False)
            if _bars
            else None
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *exception: object) -> None:
        if self.bar is not None:
            self.bar.close()

    def update(self, count: int = 1, **numbers: Any) -> None:
        """`count` more units are done; `numbers` go beside the bar, with four digits."""
        self.done += count
        if self.bar is not None:
            self.bar.update(count)
        now = time.monotonic()
        if now - self.shown < (0.5 if self.bar is not None else SECONDS_BETWEEN_LINES):
            return
        self.shown = now
        text = "  ".join(f"{name} {float(value):.4g}" for name, value in numbers.items())
        if self.bar is not None:
            self.bar.set_postfix_str(text)
            return
        speed = (self.done - self.at_start) / (now - self.started)
        log.info(
            "%s  %d of %d %s (%.3g/s)  %s", self.what, self.done, self.total, self.unit, speed, text
        )
