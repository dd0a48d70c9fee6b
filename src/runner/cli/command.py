"""The command: compose the configuration, check it, run the study, report.

python -m runner                                      the default study at scale quick
python -m runner study=bn_only target_width=7         one run
python -m runner -m target_width=5,10,15              a sweep
python -m runner figure=fig4 scale=smoke              a figure: its sweep, its drawing, its claims
"""

import os
import signal

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from runner.cli import composing, explaining, sweeping
from runner.cli.catalogue import CONF
from runner.cli.composing import Job
from runner.cli.working import carry_out, log_to_terminal, run_study
from runner.core.errors import InputError
from runner.runs.run import Run

single: list[DictConfig] = []
"""The configuration of a plain command, run when Hydra has returned: it would add to its errors."""


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def compose(composed: DictConfig) -> Exception | None:
    """Called by Hydra once for a plain command, and by its launcher for each job of a sweep."""
    if HydraConfig.get().mode == RunMode.RUN:
        if composed.submit_only:
            raise InputError("submit_only=true is for sweeps: -m hydra/launcher=slurm-cpu")
        single.append(composed)
        return None
    return carry_out(composed)


def report(run: Run) -> None:
    """Print what a run found and where its files are."""
    from runner.results.figures import quick_look  # late: pandas and matplotlib

    print(quick_look(run))
    print(f"\n{run}\n{run.folder}: overview.png, config.yaml, run.log, provenance.json")
    for name, table in run.result["tables"].items():
        print(f"  {name}.csv  {table['rows']} rows")


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
