"""The command: compose the configuration, check it, run the study, report.

python -m runner                                      the default study at scale quick
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
from runner.cli.composing import Job
from runner.core import progress
from runner.core.errors import InputError
from runner.core.folders import require_writable
from runner.runs.run import Run, stale_note

single: list[DictConfig] = []
"""The configuration of a plain command, run when Hydra has returned: it would add to its errors."""


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def compose(composed: DictConfig) -> Exception | None:
    """Called by Hydra once for a plain command, and by its launcher for each job of a sweep."""
    if HydraConfig.get().mode == RunMode.RUN:
        single.append(composed)
        return None
    return carry_out(composed)


def carry_out(composed: DictConfig) -> Exception | None:
    """Called by a launcher for a job; hands its error back, so that the sweep goes on."""
    hydra_config = HydraConfig.get()
    log_to_terminal()
    if "BasicLauncher" not in hydra_config.launcher._target_:
        progress.plain_lines()
    try:
        n_jobs = hydra_config.launcher.get("n_jobs", 1)
        run_study(Job.of(composed), turn=hydra_config.job.num, n_jobs=n_jobs)
    except Exception as error:
        return error
    return None


def run_study(job: Job, turn: int = 0, n_jobs: int = 1) -> Run:
    """Bring the run of a job to completion, and return it.

    turn, n_jobs: number of the job in its sweep, and how many run side by side.
    """
    require_writable(job.settings.folder())
    if job.run.is_wanted(job.settings):
        from runner.runs.devices import next_gpu  # late, with torch: checking needs none of it
        from runner.runs.execution import execute

        job.settings.device = next_gpu(job.settings.device, turn, n_jobs)
        execute(job.run, job.settings)
    elif note := stale_note([job.run]):
        logging.getLogger("runner").info(note)
    return job.run


def report(run: Run) -> None:
    """Print what a run found and where its files are."""
    from runner.results.figures import quick_look  # late: pandas and matplotlib

    print(quick_look(run))
    print(f"\n{run}\n{run.folder}: overview.png, config.yaml, run.log, provenance.json")
    for name, table in run.result["tables"].items():
        print(f"  {name}.csv  {table['rows']} rows")


def log_to_terminal() -> None:
    """Send the log of the program to stderr, once."""
    log = logging.getLogger("runner")
    log.setLevel(logging.INFO)
    log.propagate = False
    if not log.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)


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
        jobs = [Job.of(composed) for composed in single]
    except Exception as error:
        if not explaining.is_hydras(error):
            raise
        raise InputError(explaining.explain(error)) from error
    for job in jobs:
        report(run_study(job))
    for variant in sweeping.swept:
        from runner.results.figures import make

        print(make(variant))
    return 0
