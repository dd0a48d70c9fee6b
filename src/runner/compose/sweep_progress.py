"""The progress of a sweep, as a bar or as lines in the log: `5 of 16 runs, about 1 min left`."""

import logging
import math
import threading
from collections.abc import Sequence

from runner.core import progress
from runner.core.progress import Progress
from runner.runs.costs import expected_seconds
from runner.runs.jobs import Attempt


class SweepProgress(Progress):
    """A progress bar of a sweep, which counts the runs that have ended.

    It looks at the runs' folders every second, so any process may compute the runs. The length of a
    run on the bar is its expected time. If the time of any run is unknown, all runs have the same
    length.
    """

    log = logging.getLogger(progress.SWEEP_LOG)
    first_is_slow = False  # several runs may end at once

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        seconds = [expected_seconds(attempt.job.run) for attempt in attempts]
        weights = seconds if all(map(math.isfinite, seconds)) else [1.0] * len(attempts)
        self.weights = dict(zip(attempts, weights, strict=True))
        self.pending = list(attempts)
        self.failed = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        super().__init__(sum(weights), "runs")

    def __enter__(self) -> "SweepProgress":
        self.thread.start()
        super().__enter__()
        return self

    def __exit__(self, kind: type | None, *exception: object) -> None:
        self.ended.set()
        self.thread.join()
        super().__exit__(kind, *exception)
        if kind is None:
            self.count_ended()
            took = progress.duration(self._time() - self.start_t).removeprefix("about ")
            self.log.info("%s in %s", self.count(), took)

    def _watch(self) -> None:
        """Look at the folders every second until the sweep has ended."""
        while not self.ended.wait(1):
            self.count_ended()

    def count_ended(self) -> None:
        """Advance the bar by the runs that have ended since the last call."""
        failed = [attempt for attempt in self.pending if attempt.error()]
        ended = [attempt for attempt in self.pending if attempt in failed or attempt.is_done()]
        self.failed += len(failed)
        self.pending = [attempt for attempt in self.pending if attempt not in ended]
        self.update(sum(self.weights[attempt] for attempt in ended))

    def text(self) -> str:
        """Return the text of the bar: `5 of 16 runs, 1 failed, about 1 min left`."""
        return ", ".join(filter(None, (self.count(), self.time_left())))

    def count(self) -> str:
        """Return in words how many runs are complete, and how many have failed."""
        total = len(self.weights)
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{total - len(self.pending) - self.failed} of {total} runs{failed}"
