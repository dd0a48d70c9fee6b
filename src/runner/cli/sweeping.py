"""A sweep, from what was typed to its runs: Hydra composes it, its launcher runs the jobs."""

from dataclasses import dataclass
from typing import Any

from hydra.core.plugins import Plugins
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from runner.cli.composing import Job, compose_jobs
from runner.cli.grids import expand, grids_at
from runner.cli.launching import ComposedJobs, launch
from runner.core.errors import InputError
from runner.results.figures import drawing_of


@dataclass(frozen=True)
class Sweep:
    """A sweep that has come to its end; figure: the one that it belongs to, if any."""

    figure: str | None
    scale: str
    jobs: list[Job]


swept: list[Sweep] = []
"""What `sweep` has done, for the command: Hydra hands nothing back from a sweep."""


def sweep(
    config: DictConfig,
    grids: Any,
    typed: list[str],
    hydra_context: HydraContext,
    task_function: TaskFunction,
) -> None:
    """Compose and check all jobs, and launch those whose run is not complete.

    config: the composition of the whole; grids: of its figure, by scale, or None. Raises InputError
    before anything runs, RunFailed at the end.
    """
    jobs = compose_jobs(expand(grids_at(grids, config.scale), typed))
    if any(job.settings.figure != config.figure for job in jobs):
        raise InputError(
            "one command sweeps one figure; several at once: python -m runner figures fig4 fig5"
        )
    if config.figure is not None:
        drawing_of(config.figure, jobs[0].config.study)  # before anything is computed
    launcher = Plugins.instance().instantiate_launcher(
        hydra_context=HydraContext(ComposedJobs(), hydra_context.callbacks),
        task_function=task_function,
        config=config,
    )
    launch(launcher, jobs)
    swept.append(Sweep(config.figure, config.scale, jobs))
