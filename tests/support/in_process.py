"""The command line within the test's own process: as it is, or where only input is checked."""

import logging
import sys

from hydra import compose, initialize_config_dir

from runner import __main__ as command_line
from runner.cli import command, composing, sweeping
from runner.cli.catalogue import CONF


def composed(*overrides):
    """The settings and the study's parameters that these overrides make."""
    composing.register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return composing.read(compose("config", list(overrides)))


def check_only(arguments, monkeypatch) -> int:
    """The exit code of `python -m runner <arguments>` where a good command computes nothing."""
    monkeypatch.setattr(command, "run_study", lambda job: job.run)
    monkeypatch.setattr(command, "report", lambda run: None)
    monkeypatch.setattr(sweeping, "launch", lambda launcher, jobs: None)
    monkeypatch.setattr("runner.results.figures.make", lambda variant: "")
    return run(arguments, monkeypatch)


def run(arguments, monkeypatch) -> int:
    """The exit code of `python -m runner <arguments>`."""
    log = logging.getLogger("runner")
    monkeypatch.setattr(log, "handlers", [])  # one that writes to this test's stderr
    monkeypatch.setattr(log, "propagate", log.propagate)
    monkeypatch.setattr(command, "single", [])
    monkeypatch.setattr(sweeping, "swept", [])
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    try:
        return command_line.main()
    except SystemExit as error:  # argparse, for what begins with a dash
        return int(error.code or 0)
