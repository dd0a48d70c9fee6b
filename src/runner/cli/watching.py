"""One line for the runs of a sweep, on a bar or in the log: `5 of 16 runs, about 1 min left`."""

import logging
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import fields
from itertools import product

from runner.core import progress
from runner.core.progress import Progress
from runner.core.studies import StudyConfig
from runner.runs.jobs import Attempt
from runner.runs.run import UNNAMED, Run, readable

PROGRESS = re.compile(r" (?P<stage>[^:\n]+: \d+ of \d+ [^\n]*)\n\Z")
"""The end of a run's log, where that is how far it is: see `Progress.text`."""

LONGEST_LINE = 500


class Watch(Progress):
    """Counts the runs that end, whoever computes them, by what is in their folders.

    seconds: how long each is expected to take; inf: not known. abreast: how many run side by side.
    """

    log = logging.getLogger(progress.OF_ALL)

    def __init__(self, attempts: Sequence[Attempt], seconds: Sequence[float], abreast: int) -> None:
        known = all(map(math.isfinite, seconds))
        titled = titles([attempt.job.config for attempt in attempts])
        self.seconds = dict(zip(attempts, seconds if known else [1.0] * len(attempts), strict=True))
        self.titles = dict(zip(attempts, titled, strict=True))
        self.open, self.running = list(attempts), list[Attempt]()
        self.failed = 0
        self.launched = self.begun = time.monotonic()
        super().__init__(len(attempts), "", unit="runs")
        if known:
            self.foretell(max(sum(seconds) / abreast, *seconds))
        self.silence = ExitStack()

    def __enter__(self) -> "Watch":
        self.silence.enter_context(progress.told_of_all())
        super().__enter__()
        return self

    def __exit__(self, kind: type | None, *exception: object) -> None:
        super().__exit__(kind, *exception)
        self.silence.close()
        if kind is None:
            self.look()
            seconds = time.monotonic() - self.launched
            took = progress.duration(seconds).removeprefix("about ")
            self.log.info("%s in %s", self._count(), took)

    def look(self) -> None:
        """Settle what has ended since."""
        failed = [each for each in self.open if each.error()]
        left = [each for each in self.open if not (each in failed or each.is_done())]
        has_ended = len(left) < len(self.open)
        self.failed += len(failed)
        self.done += len(self.open) - len(left)
        self.open = left
        was_running = bool(self.running)
        self.running = [each for each in left if each.job.run.status() == "running"]
        if not self.done and not was_running:
            self.begun = time.monotonic()  # what was before is the start of processes
        if has_ended:  # the rest takes as long for its share; what runs is, on average, half done
            rest = sum(map(self.seconds.__getitem__, left))
            rest -= sum(map(self.seconds.__getitem__, self.running)) / 2
            worked = sum(self.seconds.values()) - rest
            self.foretell(rest / worked * (time.monotonic() - self.begun))

    def seconds_left(self) -> float:
        """As foretold when a run ended last."""
        return self.foretold - time.monotonic()

    def text(self) -> str:
        """Return how many runs have ended, the time left, and how far those are that run."""
        running = ", ".join(self.titles[each] + _stage(each.job.run) for each in self.running)
        told = ", ".join(filter(None, (self._count(), self.time_left())))
        return f"{told}; running {running}" if running else told

    def _count(self) -> str:
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.total} runs{failed}"


def _stage(run: Run) -> str:
    """Return how far a run says it is, in the last line of its log; nothing where it does not."""
    with suppress(OSError), (run.folder / "run.log").open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - LONGEST_LINE))
        if told := PROGRESS.search(file.read().decode(errors="replace")):
            return f" ({told['stage']})"
    return ""


def titles(configs: Sequence[StudyConfig]) -> list[str]:
    """Return what each of these runs is called in the company of the others: what differs.

    A parameter is named where it is not at its default; in a sweep, where others of the runs differ
    in it alone, even there. The study is named where there are several.
    """
    studies = {config.study for config in configs}
    found: dict[int, str] = {}
    for study in studies:
        some = [(i, config) for i, config in enumerate(configs) if config.study == study]
        named = _titles([config for _, config in some])
        if len(studies) > 1:
            named = [f"{study} {title}" if len(some) > 1 else study for title in named]
        found |= dict(zip([i for i, _ in some], named, strict=True))
    return [found[i] for i in range(len(configs))]


def _titles(configs: Sequence[StudyConfig]) -> list[str]:
    """Return what `titles` does, for runs of one study."""
    names = [item.name for item in fields(configs[0]) if item.name not in UNNAMED]
    texts = [{name: readable(getattr(config, name)) for name in names} for config in configs]
    differ = [name for name in names if len({each[name] for each in texts}) > 1]

    def company(each: dict[str, str], name: str) -> tuple[str, ...]:
        return (name, *(each[other] for other in differ if other != name))

    swept: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for each, name in product(texts, differ):
        swept[company(each, name)].add(each[name])
    found = []
    for config, each in zip(configs, texts, strict=True):
        given = [name for name in config.identity() if name in names]
        first = [name for name in differ if name in given or len(swept[company(each, name)]) > 1]
        shown = first or [name for name in given if name not in differ]
        found.append(",".join(f"{name}={each[name]}" for name in shown) or "(defaults)")
    return found
