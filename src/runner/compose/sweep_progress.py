"""One line for the runs of a sweep, on a bar or in the log: `5 of 16 runs, about 1 min left`."""

import logging
import math
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import fields

from runner.core import progress
from runner.core.progress import Progress
from runner.core.studies import StudyConfig
from runner.runs.costs import expected_seconds
from runner.runs.jobs import Attempt
from runner.runs.run import readable


class Watch(Progress):
    """Counts the runs that end, whichever process computes them: a run is complete in its folder.

    Each run counts as many units as it takes seconds, where these are known.
    """

    log = logging.getLogger(progress.OF_ALL)

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        seconds = [expected_seconds(attempt.job.run) for attempt in attempts]
        weights = seconds if all(map(math.isfinite, seconds)) else [1.0] * len(attempts)
        self.weights = dict(zip(attempts, weights, strict=True))
        names = titles([attempt.job.config for attempt in attempts])
        self.titles = dict(zip(attempts, names, strict=True))
        self.open, self.running = list(attempts), list[Attempt]()
        self.failed = 0
        self.begun = time.monotonic()
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.silence = ExitStack()
        super().__init__(sum(weights), "runs")

    def __enter__(self) -> "Watch":
        self.silence.enter_context(progress.told_of_all())
        self.thread.start()
        super().__enter__()
        return self

    def __exit__(self, kind: type | None, *exception: object) -> None:
        self.ended.set()
        self.thread.join()
        super().__exit__(kind, *exception)
        self.silence.close()
        if kind is None:
            self.look()
            took = progress.duration(time.monotonic() - self.begun).removeprefix("about ")
            self.log.info("%s in %s", self.count(), took)

    def _watch(self) -> None:
        """Look at the folders every second until the sweep has ended."""
        while not self.ended.wait(1):
            self.look()

    def look(self) -> None:
        """Count the runs that have ended since the last look."""
        failed = [each for each in self.open if each.error()]
        complete = [each for each in self.open if each not in failed and each.is_done()]
        self.failed += len(failed)
        self.open = [each for each in self.open if each not in (*failed, *complete)]
        self.running = [each for each in self.open if each.job.run.status() == "running"]
        self.update(sum(self.weights[each] for each in (*failed, *complete)))

    def text(self) -> str:
        """Return how many runs have ended, the time left, and which runs are being computed."""
        text = ", ".join(filter(None, (self.count(), self.time_left())))
        running = " ".join(self.titles[attempt] for attempt in self.running)
        return f"{text}; running {running}" if running else text

    def count(self) -> str:
        """Return how many runs are complete, and how many have failed."""
        total = len(self.weights)
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{total - len(self.open) - self.failed} of {total} runs{failed}"


def titles(configs: Sequence[StudyConfig]) -> list[str]:
    """Return what tells each run from the others: the parameters in which the runs differ."""
    names = dict.fromkeys(["study", *(item.name for each in configs for item in fields(each))])
    texts = [{name: readable(getattr(each, name, None)) for name in names} for each in configs]
    varied = [name for name in names if len({text[name] for text in texts}) > 1]
    return [
        ",".join(f"{name}={text[name]}" for name in varied if hasattr(config, name))
        for config, text in zip(configs, texts, strict=True)
    ]
