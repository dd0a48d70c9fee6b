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
"""What a run can be at: one name for each stage, in every study."""

SECONDS_TO_FIRST_LINE = 1.0
SECONDS_BETWEEN_LINES = 25.0
"""The longest time between two lines. The times double until they reach it."""

log = logging.getLogger("runner.run")
"""The log of a run. The terminal shows it unless one line tells of all runs: see `told_of_all`."""

OF_ALL = "runner.runs"
"""The log of that one line."""

_notebook = "ipykernel.kernelapp" in sys.modules  # a kernel runs this; it is not imported alone
_bars = sys.stderr.isatty() or _notebook
_told_of_all = False

tqdm.set_lock(threading.RLock())  # each process has its own bars


@contextmanager
def told_of_all() -> Iterator[None]:
    """Keep the log and the bars of single runs off the terminal: one line shows all runs."""
    global _told_of_all
    before, _told_of_all = _told_of_all, True
    try:
        yield
    finally:
        _told_of_all = before


class Progress(tqdm):
    """Counts to `total` and shows the time left and the numbers that matter (loss, rank).

    The first line comes after a second, whether a unit is done by then or not. A number may be a
    tensor or a function. It is read only when it is shown, since reading waits for the device. Of
    several values (one for each network) the median of the finite ones is shown, and how many are
    not finite.
    """

    monitor_interval = 0  # tqdm's own thread
    mininterval: float
    last_print_t: float
    log = log

    def __init__(self, total: float, what: str, done: int = 0, unit: str = "steps") -> None:
        self.numbers: dict[str, Any] = {}
        self.is_bar = _bars and not _told_of_all
        self.timer = threading.Timer(SECONDS_TO_FIRST_LINE, self._announce)
        self.timer.daemon = True
        times = {"mininterval": 0.5 if self.is_bar else SECONDS_TO_FIRST_LINE, "smoothing": 0}
        form = "{bar}{text}" if _notebook else "|{bar:20}| {text}"
        look = {"bar_format": form, "dynamic_ncols": True, "leave": False, "miniters": 0}
        file = None if self.is_bar else StringIO()
        super().__init__(
            None, what, total, initial=done, unit=unit, file=file, delay=0.001, **times, **look
        )
        self.counted = self.start_t

    def __enter__(self) -> "Progress":
        self.timer.start()
        return self

    def _announce(self) -> None:
        """Say what is being done where no unit has ended so far."""
        if self.last_print_t == self.start_t:
            self.refresh()
            self.last_print_t = self._time()

    def close(self) -> None:
        """Remove the bar."""
        self.timer.cancel()
        if self.timer.is_alive():
            self.timer.join()
        super().close()

    def update(self, count: float = 1, **numbers: Any) -> None:
        """Count `count` more units, or a part of one: 0; `numbers` go beside the bar."""
        self.numbers = numbers
        if count:
            self.counted = self._time()
        super().update(count)

    def refresh(self, *args: Any, **options: Any) -> None:
        """Draw the bar again, or write a line into the log."""
        if self.is_bar:
            super().refresh(*args, **options)
        else:
            self.mininterval = min(2 * self.mininterval, SECONDS_BETWEEN_LINES)
            self.log.info("%s", self.text())

    @property
    def format_dict(self) -> dict[str, Any]:
        """What a bar can show: `text` beside what tqdm knows."""
        return super().format_dict | {"text": self.text()}

    def text(self) -> str:
        """Return the line: `training: 340 of 1000 steps, about 30 s left, loss 0.25`."""
        numbers = (_in_words(name, value) for name, value in self.numbers.items())
        parts = (f"{self.n} of {self.total} {self.unit}", self.time_left(), *numbers)
        return f"{self.desc}: {', '.join(filter(None, parts))}"

    def time_left(self) -> str:
        """Return the time left at the speed so far; nothing where it is unknown or short."""
        done, seconds = self.n - self.initial, self.counted - self.start_t
        if not done or seconds < SECONDS_TO_FIRST_LINE:
            return ""
        left = (self.total - self.n) / done * seconds - (self._time() - self.counted)
        return f"{duration(left)} left" if left >= 1 else ""


def _in_words(name: str, value: Any) -> str:
    """Return a number with its name; of several the median of the finite ones."""
    value = value() if callable(value) else value
    values = np.ravel(value.tolist() if hasattr(value, "tolist") else value).astype(float)
    if len(values) == 1:
        return f"{name} {values[0]:.4g}"
    finite = values[np.isfinite(values)]
    lost = len(values) - len(finite)
    median = f"median {name} {np.median(finite):.4g}" if len(finite) else name
    return f"{median} ({lost} of {len(values)} diverged)" if lost else median


def duration(seconds: float) -> str:
    """Return a time in the unit that suits it: `about 3 days`."""
    units = (("years", 365.25 * 86400), ("days", 86400), ("hours", 3600), ("min", 60))
    for unit, length in units:
        if seconds >= 2 * length:
            return f"about {float(f'{seconds / length:.2g}'):g} {unit}"
    return f"about {max(1, round(seconds))} s"


def log_to_terminal() -> None:
    """Send the log of the program to stderr, once."""
    runner = logging.getLogger("runner")
    runner.setLevel(logging.INFO)
    runner.propagate = False
    if not runner.handlers:
        handler = _AboveBars()
        handler.setFormatter(logging.Formatter("%(message)s"))
        handler.addFilter(is_shown)
        runner.addHandler(handler)


def is_shown(record: logging.LogRecord) -> bool:
    """Return whether a line of the log belongs on the terminal."""
    return not (_told_of_all and record.name == log.name)


class _AboveBars(logging.StreamHandler):
    """Writes lines above a bar, and draws the bar again below them."""

    def emit(self, record: logging.LogRecord) -> None:
        with tqdm.external_write_mode(self.stream):
            super().emit(record)


def prepare_log(arguments: Iterable[str] = ()) -> None:
    """Send the program's log to stderr; with `hydra.verbose=true` the logs of all packages."""
    log_to_terminal()
    if "hydra.verbose=true" not in arguments:
        return
    logging.getLogger().setLevel(logging.DEBUG)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logging.getLogger().handlers[:] = [handler]
