"""The command line: compose the configuration, check it, run the study, report.

python -m runner                                      the default study at scale quick
python -m runner study=bn_only target_width=7         one run
python -m runner -m target_width=5,10,15              a sweep
python -m runner figure=fig4 scale=smoke              a figure: its sweep, its drawing, its claims
"""

import logging
import os
import signal
import sys

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from runner import configs, helptext, progress
from runner.errors import InputError, RunFailed

raised: list[Exception] = []


@hydra.main(config_path=str(configs.CONF), config_name="config", version_base="1.3")
def command(composed: DictConfig) -> None:
    """One run: called once by a plain command, and for each run of a sweep."""
    log_to_terminal()
    hydra_config = HydraConfig.get()
    if "BasicLauncher" not in hydra_config.launcher._target_:
        progress.plain_lines()
    if hydra_config.mode == RunMode.MULTIRUN:
        run_study(composed)
        return
    try:
        report(run_study(composed))
    except (InputError, RunFailed) as error:
        raised.append(error)  # Hydra would print more than the error says


def run_study(composed: DictConfig):
    """Check the configuration, bring its run to completion, and return the run."""
    settings, config = configs.read(composed)
    from runner.runs import Run, execute  # late: checking needs none of it

    if settings.device == "auto":
        settings.device = next_gpu()
    run = Run(config, settings.folder())
    execute(run, settings)
    return run


def next_gpu() -> str:
    """`auto`, or the GPU whose turn it is when jobs run side by side on a machine with several."""
    import torch

    hydra_config = HydraConfig.get()
    number = torch.cuda.device_count()
    if number < 2 or hydra_config.launcher.get("n_jobs", 1) == 1:
        return "auto"
    return f"cuda:{hydra_config.job.num % number}"


def report(run) -> None:
    """Print what a run found and where its files are."""
    from runner.figures import overview

    print(overview(run))
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


def main() -> int:
    """Run the command; returns 0, 1 (a run failed), 2 (wrong input) or 130 (interrupted)."""
    if {"--help", "-h"} & set(sys.argv[1:]):
        print(helptext.text())
        return 0
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors arrive here as exceptions
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    log_to_terminal()
    try:
        configs.register()
        command()
        if raised:
            raise raised[0]
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RunFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Exception as error:
        if not configs.is_hydras(error):
            raise
        print(f"error: {configs.explain(error)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
