"""The command line within the process of the test: in full, or only the check of its input."""

import logging
import runpy
import shlex
import sys

from runner import __main__ as command_line
from runner.commands import compute, figures
from runner.compose import hydra_main
from runner.compose.composing import hydra_ready
from runner.compose.orders import Order, compose_order, paper_figure
from runner.core.settings import Settings
from runner.core.studies import StudyConfig
from runner.runs.jobs import Job


def order_of(*words: str, multirun: bool = False) -> Order:
    """Return the order that these arguments ask for."""
    with hydra_ready(words):
        return compose_order(list(words), multirun)


def job_of(*words: str) -> Job:
    """Return the only job that these arguments ask for."""
    (job,) = order_of(*words).jobs
    return job


def composed(*words: str) -> tuple[Settings, StudyConfig]:
    """Return the settings and the parameters of the only job that these arguments ask for."""
    job = job_of(*words)
    return job.settings, job.config


def configs_of(figure: str, *words: str) -> list[StudyConfig]:
    """Return the parameters of all runs of a figure."""
    return [run.config for run in paper_figure(figure, list(words)).runs]


def check_only(arguments, monkeypatch) -> int:
    """Return the exit code of `runner <arguments>`, without computing anything."""
    for module in (compute, figures):
        monkeypatch.setattr(module, "carry_out", lambda order, redraw=True: 0)
    monkeypatch.setattr(hydra_main, "complete", lambda job: job.run)
    monkeypatch.setattr(hydra_main, "report", lambda run: "")
    return run(arguments, monkeypatch)


def run_line(line: str, monkeypatch) -> int:
    """Return the exit code of a command as a page shows it, `runner ...` or `python script.py`."""
    program, *words = shlex.split(line)
    if program == "runner":
        return run(words, monkeypatch)
    with monkeypatch.context() as patches:
        patches.setattr(sys, "argv", words)
        runpy.run_path(words[0], run_name="__main__")
    return 0


def run(arguments, monkeypatch) -> int:
    """Return the exit code of `runner <arguments>`."""
    log = logging.getLogger("runner")
    monkeypatch.setattr(log, "handlers", [])  # a new handler writes to this test's stderr
    monkeypatch.setattr(log, "propagate", log.propagate)
    root = logging.getLogger()  # hydra.verbose=true changes its level
    monkeypatch.setattr(root, "handlers", list(root.handlers))
    monkeypatch.setattr(root, "level", root.level)
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    try:
        return command_line.main()
    except SystemExit as error:  # argparse exits for arguments that begin with a dash
        return int(error.code or 0)
