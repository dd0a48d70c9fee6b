"""Commands that Hydra's own main function carries out.

They have Hydra's flags, or sweepers that choose jobs by earlier results, such as Optuna's.
"""

import os
import sys

import hydra
from hydra.core.config_store import ConfigStore
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from runner.compose.composing import (
    as_whole_numbers,
    bare,
    hydras_errors_explained,
    is_own_images,
    read,
    register,
    search_path,
)
from runner.compose.hydra_errors import check_flag, check_once
from runner.core.catalogue import CONF, own_conf_folders, rows_of
from runner.core.errors import InputError, nearest
from runner.core.studies import column_types
from runner.results.reported import report
from runner.runs.jobs import Job, complete
from runner.runs.run import Run

CLOCKS = ("epoch", "step", "time")
"""Columns that say when a row was measured. In a table with one of them only the last rows are
used."""


def main(words: list[str]) -> int:
    """Carry out a command by Hydra's own main function; return 0.

    words: the command's arguments. Raises InputError if Hydra cannot use them.
    """
    for word in words:
        check_flag(word)
    check_once(word for word in words if "=" in word)
    words = as_whole_numbers(words)
    register(words)
    for index, word in enumerate(words):
        key, _, typed = word.partition("=")
        if is_own_images(key, path := typed.strip("'\"")):
            words[index], node = "data=own_images", {"data": path}
            ConfigStore.instance().store("own_images", node, group="data", package="_global_")
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors arrive here as exceptions
    pairs = [word for word in words if "=" in word and not word.startswith("-")]
    flags = [word for word in words if word not in pairs]
    for folder in own_conf_folders()[-1:]:  # may hold the file of --config-name
        flags += ["--config-dir", str(folder)]
    is_completion = bool({"-sc", "--shell-completion"} & set(words))
    if not is_completion:  # takes no overrides except its own
        pairs += search_path()
    sys.argv[1:] = [*flags, *pairs]  # Hydra's parser needs all overrides side by side
    try:
        with hydras_errors_explained():
            task()
    except KeyError as error:
        if not is_completion:
            raise
        raise InputError(
            f"a shell that completes words sets {error}: it calls -sc query"
        ) from error
    return 0


@hydra.main(config_path=str(CONF), config_name="config", version_base="1.3")
def task(composed: DictConfig) -> float | None:
    """Compute the run of a job unless it is complete; return the number for the sweeper.

    The number is the value of the setting `objective`; None if it is not set. composed: Hydra's
    configuration. Raises InputError if the configuration is wrong or names a figure.
    """
    job = Job(*read(bare(composed)))
    if job.settings.figure is not None:
        raise InputError("figures need the basic sweeper and the program's own configuration")
    name = job.settings.objective
    if name is not None:
        require_objective(name, job.config.study)
    run = complete(job) if job.run.is_wanted(job.settings) else job.run
    if HydraConfig.get().mode == RunMode.RUN:
        print(report(run))
    return None if name is None else value_of(name, run)


def require_objective(objective: str, study: str) -> None:
    """Raise InputError unless the objective `table.column` is a column of numbers of the study."""
    columns = [
        f"{table}.{name}"
        for table, row_class in rows_of(study).items()
        for name, kind in column_types(row_class).items()
        if kind in (int, float)
    ]
    if objective not in columns:
        raise InputError(f"objective={objective} is unknown: {nearest(objective, columns)}")


def value_of(objective: str, run: Run) -> float:
    """Return the value of the objective `table.column`: the mean of this column in the run.

    If the table has the column epoch, step or time, only the rows with its largest value are used.
    """
    table, column = objective.split(".")
    rows = run.tables()[table]
    for clock in CLOCKS:
        if clock in rows:
            rows = rows[rows[clock] == rows[clock].max()]
    return float(rows[column].mean())
