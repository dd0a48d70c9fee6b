"""Send rows to a tracker while they are computed: TensorBoard, MLflow, Weights & Biases.

A table and its columns make the series `<table>/<column>/<key>=<value>,...`. The step is the first
of the keys step, epoch, time, layer and depth that the table has. The other keys are part of the
name, unless a parameter of the run has the same name and value. If the step is no whole number (a
time), or there is none, steps count the records of a series. Text stays in the tables.

A tracker is a class: calling it begins an attempt at a run, `row` takes numbers by their series,
`end` the status of the attempt. Its package is optional, and is imported when a run begins. The
user's environment variables (MLFLOW_TRACKING_URI, WANDB_MODE, ...) come first.
"""

import logging
import os
import re
import shutil
import time
from collections import Counter
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from filelock import FileLock

from runner.core.errors import InputError
from runner.core.studies import Row
from runner.runs.run import Run

log = logging.getLogger("runner")

Facts = dict[str, Any]
"""Parameters or provenance, by name."""

STEPS = ("step", "epoch", "time", "layer", "depth")
"""The keys that a curve is drawn against. The first that a table has is taken."""

ENVIRONMENT = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_PROJECT": "theory-runner"}
ENVIRONMENT |= {"MLFLOW_DISABLE_TELEMETRY": "true"}
"""The packages' environment variables, unless the user has set others."""


class TensorBoard:
    """Writes the rows of a run as event files into a folder, in single precision.

    All trackers are made from the folder to write into, and the run's parameters and provenance.
    """

    def __init__(self, folder: Path, parameters: Facts, provenance: Facts) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(folder, flush_secs=5)
        listed = {k: v if isinstance(v, int | float) else str(v) for k, v in parameters.items()}
        self.writer.add_hparams(listed, {}, run_name=".")
        self.writer.add_text("provenance", "\n".join(f"- {k}: {provenance[k]}" for k in provenance))

    def row(self, values: dict[str, float], step: int) -> None:
        """Write a scalar for each value. values: by name of the series."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def end(self, status: str) -> None:
        """Write everything to the disk, and close the files."""
        self.writer.close()


class MLflow:
    """Writes the rows of a run to MLflow.

    They go into the database `mlflow.db`, or to the server in MLFLOW_TRACKING_URI. A study is an
    experiment, and each time that a run is computed is an entry. Metrics are sent once a second,
    since a request costs more than a metric. MLflow does not admit `=` and `,` in names. They
    become `:` and a space. MLflow stores an infinity as the largest number.
    """

    def __init__(self, folder: Path, parameters: Facts, provenance: Facts) -> None:
        from mlflow import MlflowClient, MlflowException

        with FileLock(folder.parents[1] / "lock"):  # two at once would spoil a new database
            store = f"sqlite:///{folder.parents[1]}/mlflow.db"
            self.client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", store))
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", parameters["study"])
        with suppress(MlflowException):  # it is there already
            self.client.create_experiment(name)
        experiment = self.client.get_experiment_by_name(name).experiment_id
        tags = {key: str(value) for key, value in provenance.items()}
        self.id = self.client.create_run(experiment, run_name=folder.name, tags=tags).info.run_id
        self.waiting, self.due = list[Any](), 0.0
        for key, value in parameters.items():
            self.client.log_param(self.id, key, value)

    def row(self, values: dict[str, float], step: int) -> None:
        """Add a metric for each value, and send the collected metrics once a second.

        values: by name of the series.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.waiting += [Metric(admitted(name), v, now, step) for name, v in values.items()]
        if len(self.waiting) > 900 or time.monotonic() > self.due:  # 1000 are allowed
            self.client.log_batch(self.id, metrics=self.waiting)
            self.waiting, self.due = [], time.monotonic() + 1

    def end(self, status: str) -> None:
        """Send the remaining metrics and the status of the run."""
        self.client.log_batch(self.id, metrics=self.waiting)
        ends = {"complete": "FINISHED", "interrupted": "KILLED"}
        self.client.set_terminated(self.id, ends.get(status, "FAILED"))


class WeightsAndBiases:
    """Writes the rows of a run into a folder, offline; `wandb sync` can upload them."""

    def __init__(self, folder: Path, parameters: Facts, provenance: Facts) -> None:
        import wandb

        folder.mkdir(parents=True)
        options: Facts = {
            "dir": os.environ.get("WANDB_DIR", folder),
            "mode": os.environ["WANDB_MODE"],
        }
        options["group"] = os.environ.get("WANDB_RUN_GROUP", parameters["study"])
        config = parameters | {"provenance": provenance}
        self.run = wandb.init(name=folder.name, config=config, **options)
        self.run.define_metric("*", step_metric="step")

    def row(self, values: dict[str, float], step: int) -> None:
        """Write one entry of the history: the step and all values, by name of the series."""
        self.run.log({"step": step, **values})

    def end(self, status: str) -> None:
        """Close the entry of the run, as failed unless the status is `complete`."""
        self.run.finish(exit_code=int(status != "complete"))


TRACKERS = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WeightsAndBiases}


def require(name: str | None) -> None:
    """Raise InputError if the package of a tracker is not installed; do nothing if `name` is None.

    The package has the tracker's name. A folder of this name, as wandb creates it, is no package.
    """
    if name and not getattr(find_spec(name), "origin", None):
        hint = f"pip install 'theory-runner[{name}]' installs it."
        raise InputError(f"tracker={name} is not installed here.\n{hint}")


class Tracking:
    """Gives the rows of a run to its tracker, if the run has one.

    If the tracker fails, the run goes on without it. Trackers write into
    `<outputs>/tracking/<name>/<study>/<run>`. name: the name of the tracker; None: no tracker.
    """

    def __init__(self, run: Run, name: str | None, outputs: Path) -> None:
        self.run, self.name = run, name
        self.tracker: TensorBoard | MLflow | WeightsAndBiases | None = None
        self.folder = outputs.resolve() / f"tracking/{name}/{run.config.study}/{run.folder.name}"
        self.parameters = {"study": run.config.study, **vars(run.config)}
        self.records: Counter[tuple[str, str]] = Counter()

    def start(self, provenance: Facts) -> None:
        """Start the tracker of this attempt at the run; do nothing if the run has none.

        Deletes the files that an earlier attempt left in the tracker's folder. provenance: commit,
        command, versions and device, which the tracker records. If the tracker fails, the run goes
        on without it.
        """
        if self.name:
            os.environ.update({**ENVIRONMENT, **os.environ})
            shutil.rmtree(self.folder, ignore_errors=True)
            begin = TRACKERS[self.name]
            self.tracker = self._survive(begin, self.folder, self.parameters, provenance)

    def row(self, row: Row) -> None:
        """Give the numbers of a row to the tracker, each under the name of its series."""
        if self.tracker is None:
            return
        columns = vars(row)
        numbers = {c: float(v) for c, v in columns.items() if isinstance(v, int | float)}
        values = {name: number for name, number in numbers.items() if name not in row.keys}
        keys = {key: columns[key] for key in row.keys}
        step_key = next((key for key in STEPS if key in keys and key in numbers), "")
        step = keys.pop(step_key, None)
        name = ",".join(f"{k}={v}" for k, v in keys.items() if self.parameters.get(k, ...) != v)
        if not isinstance(step, int):
            values |= {step_key: step} if step_key else {}
            step = self.records[row.table, name]
            self.records[row.table, name] += 1
        series = {"/".join(filter(None, (row.table, c, name))): v for c, v in values.items()}
        self._survive(self.tracker.row, series, step)

    def end(self, status: str) -> None:
        """Give the tracker the status of the run: complete, failed or interrupted."""
        if self.tracker is not None:
            self._survive(self.tracker.end, status)

    def _survive(self, call: Any, *arguments: Any) -> Any:
        """Call a function and return its result; an exception ends the tracking, not the run."""
        try:
            return call(*arguments)
        except Exception as error:
            log.info("%s goes on without %s: %r", self.run, self.name, error)
            self.tracker = None


def admitted(name: str) -> str:
    """Return a name in which characters that MLflow does not admit are replaced."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("=", ":").replace(",", " "))
