"""Where rows can go beside their tables, while they come: TensorBoard, MLflow, Weights & Biases.

A table and its columns make the series `<table>/<column>/<key>=<value>,...`. The step is the first
of the keys step, epoch, time, layer and depth that the table has; the others stand in the name,
apart from those that are a parameter of the run and have its value. Where the step is no whole
number (a time), or there is none, steps count the records of a series, and the time is a series of
its own. Text is left to the tables.

A tracker is a class with `start`, `row` and `end`. Each is an optional package, imported when a run
begins, and writes below `<outputs>/tracking`; what its own environment variables say
(MLFLOW_TRACKING_URI, WANDB_MODE, ...) comes first. A local store holds one entry a run, that of the
last attempt; a server keeps every attempt.
"""

import json
import logging
import os
import re
import shutil
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

from runner.core.errors import InputError, lookup
from runner.core.studies import Row
from runner.runs.run import Run

log = logging.getLogger("runner")

PROJECT = "theory-runner"
"""What the runs are filed under at Weights & Biases, unless WANDB_PROJECT says otherwise."""

STEPS = ("step", "epoch", "time", "layer", "depth")
"""The keys that a curve is drawn against, the first that there is."""

SERIES = 1000
"""The most series of a column: what lies beyond is in the table alone, and the log says so."""

SECONDS = 1.0
"""How long MLflow's metrics are collected: each request costs more than what it carries."""


class TensorBoard:
    """Writes event files into `<folder>/<study>/<run>`, in single precision."""

    modules = ("tensorboard",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """Write parameters as hyperparameters, the provenance as text."""
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(_emptied(self.folder, run), flush_secs=5)
        simple = bool | int | float | str
        parameters = {k: v if isinstance(v, simple) else str(v) for k, v in _parameters(run)}
        self.writer.add_hparams(parameters, {}, run_name=".")
        self.writer.add_text("provenance", f"```\n{json.dumps(provenance, indent=2)}\n```")

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """Write a scalar for each value."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def end(self, status: str) -> None:
        """Bring everything to the disk."""
        self.writer.add_text("status", status)
        self.writer.close()


class MLflow:
    """Fills the database `<folder>/mlflow.db`, an experiment for each study, or the server of
    MLFLOW_TRACKING_URI.

    MLflow admits neither `=` nor `,` in names, which become `:` and a space; and it keeps an
    infinity as the largest number.
    """

    modules = ("mlflow", "sqlalchemy", "alembic")

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """Write parameters as params, the provenance as tags."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from mlflow import MlflowClient, MlflowException
        from mlflow.entities import Param

        is_local = not os.environ.get("MLFLOW_TRACKING_URI")
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / "lock"):  # two at once would spoil a database in making
            store = f"sqlite:///{self.folder.resolve()}/mlflow.db"
            self.client = MlflowClient(store if is_local else None)
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", run.config.study)
        artifacts = (self.folder.resolve() / "artifacts").as_uri() if is_local else None
        with suppress(MlflowException):  # it is there already
            self.client.create_experiment(name, artifact_location=artifacts)
        experiment = self.client.get_experiment_by_name(name).experiment_id
        for earlier in self.client.search_runs(
            [experiment], f"attributes.run_name = '{run.folder.name}'"
        ):
            if is_local:
                self.client.delete_run(earlier.info.run_id)
        tags = {key: _text(value) for key, value in provenance.items()}
        tags |= {"mlflow.source.name": tags["command"], "mlflow.source.git.commit": tags["commit"]}
        created = self.client.create_run(experiment, run_name=run.folder.name, tags=tags)
        self.id, self.waiting, self.sent = created.info.run_id, [], time.monotonic()
        params = [Param(key, _text(value)) for key, value in _parameters(run)]
        self.client.log_batch(self.id, params=params)

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """Keep a metric for each value; they are sent together, about once a second."""
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.waiting += [Metric(admitted(name), v, now, step) for name, v in values.items()]
        if len(self.waiting) > 900 or time.monotonic() - self.sent >= SECONDS:  # 1000 are allowed
            self._send()

    def _send(self) -> None:
        self.client.log_batch(self.id, metrics=self.waiting)
        self.waiting, self.sent = [], time.monotonic()

    def end(self, status: str) -> None:
        """Send what is left, and say how the run ended."""
        self._send()
        ends = {"complete": "FINISHED", "interrupted": "KILLED"}
        self.client.set_terminated(self.id, ends.get(status, "FAILED"))


class WeightsAndBiases:
    """Writes offline runs into `<folder>/<study>/<run>`, which `wandb sync` uploads; or what
    WANDB_MODE and WANDB_DIR say.
    """

    modules = ("wandb",)

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """Write parameters and provenance as its config, the study as its group."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        self.tables: set[str] = set()
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            group=os.environ.get("WANDB_RUN_GROUP", run.config.study),
            name=run.folder.name,
            config={**dict(_parameters(run)), "provenance": provenance},
            dir=os.environ.get("WANDB_DIR") or str(_emptied(self.folder, run)),
            mode=os.environ.get("WANDB_MODE", "offline"),
            settings=wandb.Settings(console="off", silent=True),
        )

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """Write one entry of the history; the step of a table is `<table>/step`."""
        if table not in self.tables:
            self.tables.add(table)
            self.run.define_metric(f"{table}/*", step_metric=f"{table}/step")
        self.run.log({f"{table}/step": step, **values})

    def end(self, status: str) -> None:
        """Close the run."""
        self.run.finish(exit_code=int(status != "complete"))


Tracker = TensorBoard | MLflow | WeightsAndBiases
TRACKERS = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WeightsAndBiases}


def require(name: str | None) -> None:
    """Raise InputError when the packages of a tracker are not installed."""
    missing = [module for module in TRACKERS[name].modules if not is_installed(module)] if name else []
    if missing:
        raise InputError(
            f"tracker={name}: {' and '.join(missing)} not installed here.\n"
            f"pip install '{PROJECT}[{name}]' does so."
        )
