"""Signals that announce the end of a process: a run takes its checkpoint before they do their work.

SIGTERM comes from `kill`, from a preemption or `scancel`; SIGUSR2 from Slurm before a time limit.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ANNOUNCING = (signal.SIGTERM, signal.SIGUSR2)

GRACE_SECONDS = 25.0
"""How long a checkpoint is waited for. Slurm kills 30 s after a SIGTERM, unless told otherwise."""


class Notice:
    """Whether the end of the process has been announced."""

    def __init__(self) -> None:
        self.signal: int | None = None
        """What was received and not passed on yet."""
        self.is_ending = False
        """Whether an error that is raised now is how the signal ends the process."""
        self.handlers = {number: signal.getsignal(number) for number in ANNOUNCING}

    @property
    def is_given(self) -> bool:
        """Whether a checkpoint is waited for."""
        return self.signal is not None

    def receive(self, number: int, frame: FrameType | None) -> None:
        """Wait for the next checkpoint, but not long; the same signal again waits for nothing."""
        if number in ANNOUNCING and number != self.signal:
            self.signal = number
            signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        elif self.is_given:
            self.pass_on()

    def pass_on(self) -> None:
        """Do what the signal did before; that may be nothing, and the run goes on then."""
        number, self.signal = signal.Signals(self.signal), None
        signal.setitimer(signal.ITIMER_REAL, 0)
        handler = self.handlers[number]
        self.is_ending = True
        if callable(handler):
            handler(number, None)
        elif handler == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        self.is_ending = False


@contextmanager
def held() -> Iterator[Notice]:
    """Hold the signals back while a run is computed; what was not passed on by its end is then."""
    notice = Notice()
    if threading.current_thread() is not threading.main_thread():  # Python gives signals to it
        yield notice
        return
    before = {number: signal.getsignal(number) for number in (*ANNOUNCING, signal.SIGALRM)}
    for number in before:
        signal.signal(number, notice.receive)
    try:
        yield notice
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if notice.is_given:
            notice.pass_on()
