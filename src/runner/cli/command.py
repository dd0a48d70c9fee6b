"""The command: compose the configuration, check it, run the study, report.

python -m runner study=bn_only target_width=7         one run
python -m runner -m target_width=5,10,15              a sweep
python -m runner figure=fig4 scale=smoke              a figure: its sweep, its drawing, its claims
"""

import logging
import os
import signal

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from runner.cli import composing, explaining, sweeping
from runner.cli.catalogue import CONF
from runner.cli.composing import Job, require_own_folders
from runner.cli.costs import announcement
from runner.cli.objective import require_objective, value_of
from runner.cli.sweeping import Swept
from runner.cli.working import carry_out, log_everything, log_to_terminal, run_study
from runner.core.errors import InputError, RunFailed
from runner.runs.run import Run

log = logging.getLogger("runner")

single: list[tuple[DictConfig, DictConfig]] = []
"""The configuration of a plain command, its own and Hydra's; checked and run when Hydra has
returned, which would add to its errors."""


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def compose(composed: DictConfig) -> Exception | float | None:
    """Called by Hydra once for a plain command, and by its launcher for each job of a sweep.

    A job of a sweeper other than ours returns its objective and raises what goes wrong.
    """
    hydra_config = HydraConfig.get()
    if hydra_config.verbose:
        log_everything()
    if hydra_config.mode == RunMode.RUN:
        single.append((composed, hydra_config))
        return None
    if hydra_config.sweeper._target_.startswith("hydra_plugins.grid_sweeper."):
        return carry_out(composed)
    job = Job.of(composed)
    if job.settings.objective is None:
        run_study(job)
        return None
    require_objective(job.settings.objective, job.config.study)
    return value_of(job.settings.objective, run_study(job))


def _job_of(composed: DictConfig, hydra_config: DictConfig) -> Job:
    """The job of a plain command. Raises InputError for what is for sweeps, or for others."""
    require_own_folders(hydra_config)
    if composed.submit_only:
        raise InputError("submit_only=true is for sweeps: -m hydra/launcher=slurm-cpu")
    return Job.of(composed)


def report(run: Run) -> None:
    """Print what a run found and where its files are."""
    from runner.results.figures import quick_look  # late: pandas and matplotlib

    print(quick_look(run))
    print(f"\n{run}\n{run.folder}: overview.png, config.yaml, run.log, provenance.json")
    for name, table in run.result["tables"].items():
        print(f"  {name}.csv  {table['rows']} rows")


def report_sweep(sweep: Swept) -> None:
    """Print what the complete runs of a sweep found, or its figure, and how to go on from there."""
    from runner.results.figures import make  # late: pandas and matplotlib
    from runner.results.sweeps import ending

    made = None if sweep.variant is None else make(sweep.variant)
    if text := ending(sweep.runs, sweep.outputs, sweep.variant):
        print(text)
    if made:
        print(f"\n{made}")


def prepare() -> None:
    """Prepare this process for a command that computes: its log, and what ends it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    log_to_terminal()


def main() -> int:
    """Run the command of `sys.argv`; returns 0.

    Raises InputError when the input is wrong, RunFailed when a run failed.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors arrive here as exceptions
    prepare()
    composing.register()
    try:
        compose()
        jobs = [_job_of(*configurations) for configurations in single]
    except RunFailed:
        for sweep in sweeping.swept:
            if sweep.variant is None:  # a figure needs all its runs
                report_sweep(sweep)
        raise
    except Exception as error:
        if not explaining.is_hydras(error):
            raise
        raise InputError(explaining.explain(error)) from error
    for job in jobs:
        if job.run.is_wanted(job.settings) and (cost := announcement([job], abreast=1)):
            log.info("%s", cost)
        report(run_study(job))
    for sweep in sweeping.swept:
        report_sweep(sweep)
    return 0
