"""Making several figures: all their runs in one sweep, each figure drawn when its runs are there.

A run that figures share is computed once. A launcher, which may be a cluster's, says nothing before
all its jobs have ended: a thread looks after the runs meanwhile, and draws.
"""

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event

import pandas as pd
from hydra.plugins.launcher import Launcher

from runner.cli.command import prepare
from runner.cli.composing import FigureSweep, Job
from runner.cli.launching import launch, require_sound, submit
from runner.cli.sweeping import launcher_of
from runner.cli.working import Attempt, carry_out
from runner.core.errors import InputError, RunFailed
from runner.results.figures import drawing_of, is_current, make
from runner.runs.provenance import code_of

log = logging.getLogger("runner")

LOOK_SECONDS = 0.5
"""Between two looks at the runs."""


@dataclass(frozen=True)
class Outcome:
    """What became of a figure: drawn, unchanged, or why it is neither.

    seconds: of those of its runs that this command computed; figures may share them.
    """

    figure: str
    outcome: str
    seconds: float = 0.0
    holds: int = 0
    fails: int = 0
    undecided: int = 0

    @property
    def is_good(self) -> bool:
        """Whether the figure is there, drawn from its runs as they are now, or will be."""
        return self.outcome in ("drawn", "unchanged", "queued")


class Making:
    """A figure on its way, with the runs that are to be computed for it.

    Raises InputError when it has no drawing, or its runs cannot be launched.
    """

    def __init__(self, sweep: FigureSweep, launcher: Launcher) -> None:
        self.variant, self.jobs = sweep.variant, sweep.jobs
        drawing_of(self.variant.figure, self.variant.study)
        wanted = [job for job in self.jobs if job.run.is_wanted(job.settings)]
        require_sound(wanted, launcher)
        self.attempts = [Attempt(job) for job in wanted]

    def is_ready(self) -> bool:
        """Whether all its runs are there."""
        return all(attempt.is_done() for attempt in self.attempts)

    def end(self) -> Outcome:
        """Draw the figure unless it is current; whatever is in the way is its outcome."""
        if missing := sum(not attempt.is_done() for attempt in self.attempts):
            return Outcome(self.variant.name, f"{missing} of {len(self.jobs)} runs missing")
        try:
            return self._draw()
        except Exception as error:  # of any kind: the other figures are drawn all the same
            log.info("%s is not drawn: %s: %s", self.variant.name, type(error).__name__, error)
            return Outcome(self.variant.name, "not drawn")

    def _draw(self) -> Outcome:
        current = not self.attempts and is_current(self.variant)
        if not current:
            make(self.variant)
        verdicts = list(pd.read_csv(self.variant.path("claims.csv"))["verdict"])
        counts = [verdicts.count(verdict) for verdict in ("holds", "fails", "undecided")]
        seconds = sum(attempt.job.run.provenance()["seconds"] for attempt in self.attempts)
        return Outcome(self.variant.name, "unchanged" if current else "drawn", seconds, *counts)


class Makings:
    """Several figures: those on their way, and what has become of the others.

    A figure that is refused is said and left out. Raises InputError where it is the only one.
    """

    def __init__(self, sweeps: list[FigureSweep], launcher: Launcher) -> None:
        self.number = len(sweeps)
        self.waiting: list[Making] = []
        self.outcomes: dict[str, Outcome] = {}
        for sweep in sweeps:
            try:
                self.waiting.append(Making(sweep, launcher))
            except InputError as error:
                if len(sweeps) == 1:
                    raise
                log.info("%s", error)
                self._note(Outcome(sweep.variant.name, "refused"))

    def jobs(self) -> list[Job]:
        """The jobs of those on their way; of jobs that are one run, one."""
        jobs = [job for making in self.waiting for job in making.jobs]
        return list({job.run.folder: job for job in jobs}.values())

    def submit(self, launcher: Launcher) -> bool:
        """Leave runs and drawings to a cluster's queue; whether there are runs to be computed."""
        jobs = self.jobs()
        if not (jobs and submit(launcher, jobs, [making.variant for making in self.waiting])):
            return False
        for making in self.waiting.copy():
            self.waiting.remove(making)
            self._note(Outcome(making.variant.name, "queued"))
        return True

    def draw_until(self, ended: Event) -> None:
        """Draw figures as their runs are completed."""
        while not ended.wait(LOOK_SECONDS):
            for making in filter(Making.is_ready, self.waiting.copy()):
                self.end(making)

    def end(self, making: Making) -> None:
        """Draw a figure, or leave it where runs are missing, and say so."""
        self.waiting.remove(making)
        self._note(making.end())

    def _note(self, outcome: Outcome) -> None:
        self.outcomes[outcome.figure] = outcome
        log.info("[%d/%d] %s: %s", len(self.outcomes), self.number, outcome.figure, outcome.outcome)


def make_figures(sweeps: list[FigureSweep]) -> list[Outcome]:
    """Compute what is missing of several figures, all with the launcher of the first, and draw.

    Raises InputError when the only figure is refused, or the launcher cannot start.
    """
    prepare()
    sweeps = list({sweep.variant.name: sweep for sweep in sweeps}.values())
    launcher = launcher_of(sweeps[0].whole, carry_out)
    makings = Makings(sweeps, launcher)
    if sweeps[0].whole.submit_only and makings.submit(launcher):
        return [makings.outcomes[sweep.variant.name] for sweep in sweeps]
    ended = Event()
    for making in makings.waiting:
        # Kept: beside the drawing thread CPython 3.11 may fail to parse (gh-106905).
        code_of(making.variant.study)
    with ThreadPoolExecutor(1) as drawer:
        drawing = drawer.submit(makings.draw_until, ended)
        try:
            if jobs := makings.jobs():
                launch(launcher, jobs)
        except RunFailed as error:
            log.info("%s", error)
        finally:
            ended.set()
    drawing.result()
    for making in makings.waiting.copy():
        makings.end(making)
    return [makings.outcomes[sweep.variant.name] for sweep in sweeps]
