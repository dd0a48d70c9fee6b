"""The command line within the test's own process, without the study: only input is checked."""

import sys

from hydra import compose, initialize_config_dir

from runner import __main__ as command_line
from runner import configs


def composed(*overrides):
    """The settings and the study's parameters that these overrides make."""
    configs.register()
    with initialize_config_dir(str(configs.CONF), version_base="1.3"):
        return configs.read(compose("config", list(overrides)))


def check_only(arguments, monkeypatch) -> int:
    """The exit code of `python -m runner <arguments>` where a good command computes nothing."""
    monkeypatch.setattr(command_line, "run_study", lambda composed: configs.read(composed))
    monkeypatch.setattr(command_line, "report", lambda run: None)
    monkeypatch.setattr(command_line, "raised", [])
    monkeypatch.setattr(sys, "argv", ["runner", *arguments])
    try:
        return command_line.main()
    except SystemExit as error:  # argparse, for what begins with a dash
        return int(error.code or 0)
