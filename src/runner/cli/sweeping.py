"""A sweep, from what was typed to its runs: Hydra composes it, its launcher runs the jobs."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra.core.plugins import Plugins
from hydra.experimental.callback import Callback
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig

from runner.cli.composing import compose_jobs, require_own_folders, variant_of
from runner.cli.grids import expand, grids_at, without_keys
from runner.cli.launching import ComposedJobs, launch, submit
from runner.core.errors import InputError
from runner.results.variants import Variant
from runner.runs.run import Run

log = logging.getLogger("runner")


@dataclass(frozen=True)
class Swept:
    """A sweep that was launched: its runs, and the figure that it is for, if any."""

    runs: tuple[Run, ...]
    outputs: Path
    variant: Variant | None


swept: list[Swept] = []
"""What has been launched here: Hydra hands nothing back from a sweep."""


def sweep(
    config: DictConfig,
    preset: list[str],
    typed: list[str],
    hydra_context: HydraContext,
    task_function: TaskFunction,
) -> None:
    """Compose and check all jobs, and launch those whose run is not complete.

    config: the composition of the whole; preset: overrides of a file, for keys that are not typed.
    Raises InputError before anything runs, RunFailed at the end.
    """
    require_own_folders(config.hydra)
    if config.hydra.job.config_name != "config":
        raise InputError("--config-name works on single commands: a sweep is composed from config")
    typed = [*without_keys(preset, typed), *typed]
    loader = hydra_context.config_loader
    jobs = compose_jobs(expand(grids_at(config.grids, config.scale), typed, loader))
    if any(job.settings.figure != config.figure for job in jobs):
        raise InputError(
            "one command sweeps one figure; several at once: python -m runner figures fig4 fig5"
        )
    variant = None
    if config.figure is not None:  # before anything is computed
        from runner.results.figures import not_in_the_picture  # late: matplotlib

        configs = [job.config for job in jobs]
        absent = not_in_the_picture(config.figure, configs[0].study, configs)
        variant = variant_of(config.figure, jobs, [*config.hydra.overrides.hydra, *typed])
        if absent and not variant.is_canonical:
            log.info("%s does not draw %s: only the tables will have it", config.figure, absent)
    launcher = launcher_of(config, task_function, hydra_context.callbacks)
    variants = [] if variant is None else [variant]
    if config.submit_only and submit(launcher, jobs, variants):
        return
    swept.append(Swept(tuple(job.run for job in jobs), jobs[0].settings.folder(), variant))
    launch(launcher, jobs)


def launcher_of(config: DictConfig, task: TaskFunction, callbacks: Any = None) -> Launcher:
    """The launcher that a composed configuration chooses, for jobs that are composed already.

    task: called for each job, where it runs. callbacks: Hydra's own; by default none.
    """
    return Plugins.instance().instantiate_launcher(
        hydra_context=HydraContext(ComposedJobs(), callbacks or Callback()),
        task_function=task,
        config=config,
    )
