"""Progress of long work: a bar on a terminal or in a notebook, lines in the log otherwise."""

import logging
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import StringIO
from typing import Any, Literal

import numpy as np
from tqdm.auto import tqdm

Stage = Literal[
    "choosing learning rates", "pre-training", "training", "polishing", "solving", "measuring"
]
"""The stages of a run, with the same names in every study."""

SECONDS_TO_FIRST_LINE = 1.0
SECONDS_BETWEEN_LINES = 25.0
"""The longest time between two lines in the log. The time doubles after each line until then."""

log = logging.getLogger("runner.run")
"""The log of a run. The terminal shows it, except during a sweep: see `single_runs_silent`."""

SWEEP_LOG = "runner.runs"
"""The name of the log of a sweep, which has one line for all runs."""

_notebook = "ipykernel.kernelapp" in sys.modules  # a kernel runs, which means more than its import
_bars = sys.stderr is not None and sys.stderr.isatty() or _notebook
_silent = False

tqdm.set_lock(threading.RLock())  # each process has its own bars


@contextmanager
def single_runs_silent() -> Iterator[None]:
    """Print neither log lines nor bars of single runs on the terminal within the block."""
    global _silent
    before, _silent = _silent, True
    try:
        yield
    finally:
        _silent = before


class Progress(tqdm):
    """A progress bar that counts to `total` and shows the time left and some numbers (loss, rank).

    A number may be a tensor, a list, or a function that returns one of them. It is read only when
    it is shown, because reading waits for the device. If it has several values (one for each
    network), the bar shows the median of the finite values, and how many are not finite.
    """

    monitor_interval = 0  # tqdm's own thread
    mininterval: float
    log = log
    first_is_slow = True  # it compiles code, and loads libraries

    def __init__(self, total: float, what: str, done: int = 0, unit: str = "steps") -> None:
        self.numbers: dict[str, Any] = {}
        self.is_bar = _bars and not _silent
        super().__init__(
            None,
            what,
            total,
            initial=done,
            unit=unit,
            file=None if self.is_bar else StringIO(),
            bar_format="{bar}{text}" if _notebook else "|{bar:20}| {text}",
            mininterval=0.5 if self.is_bar else SECONDS_TO_FIRST_LINE,
            delay=0 if self.is_bar else 0.001,
            miniters=0,
            smoothing=0,
            dynamic_ncols=True,
            leave=False,
        )
        self.counted = self.start_t
        self.first = (0.0, self.start_t)  # count and time of the first update

    @property
    def what(self) -> str:
        """Return the stage that the bar names, such as `training`. It can be set."""
        return self.desc

    @what.setter
    def what(self, stage: Stage) -> None:
        self.desc = stage

    def update(self, count: float = 1, **numbers: Any) -> None:
        """Advance the bar by `count` units, and show these numbers next to it.

        count: 0 if only a part of a unit is done; then only the numbers change. numbers: they
        replace the numbers of the last call.
        """
        self.numbers = numbers
        if count:
            self.counted = self._time()
            if self.n == self.initial:
                self.first = (count, self.counted)
        super().update(count)

    def refresh(self, *args: Any, **options: Any) -> None:
        """Draw the bar again. If there is no bar, write its text as a line into the log."""
        if self.is_bar:
            super().refresh(*args, **options)
        else:
            self.mininterval = min(2 * self.mininterval, SECONDS_BETWEEN_LINES)
            self.log.info("%s", self.text())

    @property
    def format_dict(self) -> dict[str, Any]:
        """Return the values that tqdm's `bar_format` may name: the values of tqdm, and `text`."""
        return super().format_dict | {"text": self.text()}

    def text(self) -> str:
        """Return the text of the bar: `training: 340 of 1000 steps, about 30 s left, loss 0.25`."""
        numbers = (_in_words(name, value) for name, value in self.numbers.items())
        parts = (f"{self.n} of {self.total} {self.unit}", self.time_left(), *numbers)
        return f"{self.desc}: {', '.join(filter(None, parts))}"

    def time_left(self) -> str:
        """Return the time left in words, estimated from the average speed so far.

        The first update is often much slower than later ones. It counts only if it does a tenth of
        the work. The text is empty if the speed is unknown, or if less than a second is left.
        """
        done = self.n - self.initial
        if not done:
            return ""
        count, at = self.first
        if not self.first_is_slow or count >= 0.1 * (self.total - self.initial):
            count, at = 0.0, self.start_t
        seconds, done = self.counted - at, done - count
        if seconds < SECONDS_TO_FIRST_LINE or not done:
            return ""
        left = (self.total - self.n) / done * seconds - (self._time() - self.counted)
        return f"{duration(left)} left" if left >= 1 else ""


def _in_words(name: str, value: Any) -> str:
    """Return a number with its name as text. For several numbers, return their median.

    Only finite numbers count for the median. The text says how many have diverged.
    """
    value = value() if callable(value) else value
    values = np.ravel(value.tolist() if hasattr(value, "tolist") else value).astype(float)
    if len(values) == 1:
        return f"{name} {values[0]:.4g}"
    finite = values[np.isfinite(values)]
    lost = len(values) - len(finite)
    median = f"median {name} {np.median(finite):.4g}" if len(finite) else name
    return f"{median} ({lost} of {len(values)} diverged)" if lost else median


def duration(seconds: float) -> str:
    """Return a time in words, in a unit that suits its length: `about 3 days`."""
    units = (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("min", 60))
    for unit, length in units:
        if seconds >= 2 * length:
            return f"about {float(f'{seconds / length:.2g}'):g} {unit}"
    return f"about {max(1, round(seconds))} s"


def log_to_terminal(arguments: Iterable[str] = ()) -> None:
    """Print the log of this program on stderr.

    arguments: the command's arguments. With `hydra.verbose=true`, the logs of all packages are
    printed.
    """
    runner, root = logging.getLogger("runner"), logging.getLogger()
    runner.setLevel(logging.INFO)
    runner.propagate = False
    if not runner.handlers:
        handler: logging.StreamHandler = _AboveBars()
        handler.addFilter(is_shown)
        runner.addHandler(handler)
    if "hydra.verbose=true" in arguments:
        root.setLevel(logging.DEBUG)
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        root.handlers[:] = [handler]


def is_shown(record: logging.LogRecord) -> bool:
    """Return whether a line of the log is printed on the terminal.

    Lines of single runs are not printed within the block `single_runs_silent`.
    """
    return not (_silent and record.name == log.name)


class _AboveBars(logging.StreamHandler):
    """Writes lines above a bar, and draws the bar again below them."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line above the bars."""
        with tqdm.external_write_mode(self.stream):
            super().emit(record)
