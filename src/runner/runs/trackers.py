"""Send rows to a tracker while they are computed: TensorBoard, MLflow, Weights & Biases.

A column of a table makes the series `<table>/<column>/<key>=<value>,...`. The step of a series is
the first key of the table among step, epoch, time, layer and depth. The other keys are part of the
series' name, unless a parameter of the run has the same name and value. If the step is not a whole
number (a time), or there is none, the records of a series are counted. Text is not sent.

A tracker is a class with two methods. An object is made for each attempt at a run. `row` takes
numbers by their series, and `end` takes the status of the attempt. The package of a tracker is
optional, and is imported when a run begins. The user's environment variables (MLFLOW_TRACKING_URI,
WANDB_MODE, ...) have priority.
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
"""The keys against which curves are drawn. The first one in a table is used."""

ENVIRONMENT = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_PROJECT": "theory-runner"}
ENVIRONMENT |= {"MLFLOW_DISABLE_TELEMETRY": "true"}
"""Values of the packages' environment variables that the user has not set."""


class TensorBoard:
    """Writes the rows of a run as event files into a folder, in single precision.

    folder: the folder to write into. parameters, provenance: dictionaries about the run.
    """

    def __init__(self, folder: Path, parameters: Facts, provenance: Facts) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer = SummaryWriter(folder, flush_secs=5)
        listed = {k: v if isinstance(v, int | float) else str(v) for k, v in parameters.items()}
        self.writer.add_hparams(listed, {}, run_name=".")
        self.writer.add_text("provenance", "\n".join(f"- {k}: {provenance[k]}" for k in provenance))

    def row(self, values: dict[str, float], step: int) -> None:
        """Write a scalar for each value. values: numbers by the name of the series."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def end(self, status: str) -> None:
        """Write everything to the disk, and close the files."""
        self.writer.close()


class MLflow:
    """Writes the rows of a run to MLflow.

    The rows go into the database `mlflow.db`, or to the server in MLFLOW_TRACKING_URI. A study is
    an experiment of MLflow, and each attempt at a run is a run of MLflow. Metrics are sent together
    once a second, since a request takes long. MLflow does not allow `=` and `,` in names: they
    become `:` and a space. MLflow stores an infinity as the largest number.

    folder: its name names the run. parameters, provenance: dictionaries about the run.
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

        values: numbers by the name of the series. step: the step of all values.
        """
        from mlflow.entities import Metric

        now = int(time.time() * 1000)
        self.waiting += [Metric(admitted(name), v, now, step) for name, v in values.items()]
        if len(self.waiting) > 900 or time.monotonic() > self.due:  # 1000 are allowed
            self.client.log_batch(self.id, metrics=self.waiting)
            self.waiting, self.due = [], time.monotonic() + 1

    def end(self, status: str) -> None:
        """Send the remaining metrics, and the status: complete, interrupted or failed."""
        self.client.log_batch(self.id, metrics=self.waiting)
        ends = {"complete": "FINISHED", "interrupted": "KILLED"}
        self.client.set_terminated(self.id, ends.get(status, "FAILED"))


class WeightsAndBiases:
    """Writes the rows of a run into a folder, offline. The command `wandb sync` can upload them.

    folder: the folder to write into. parameters, provenance: dictionaries about the run.
    """

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
        """Write one entry of the history: the step, and all values by the name of the series."""
        self.run.log({"step": step, **values})

    def end(self, status: str) -> None:
        """Close the entry of the run. It is marked as failed unless the status is `complete`."""
        self.run.finish(exit_code=int(status != "complete"))


TRACKERS = {"tensorboard": TensorBoard, "mlflow": MLflow, "wandb": WeightsAndBiases}


def require(name: str) -> None:
    """Raise InputError if a tracker's package is not installed.

    name: the tracker's name, also the name of its package. A folder of this name, which wandb
    creates, does not count as the package.
    """
    if not getattr(find_spec(name), "origin", None):
        hint = f"pip install 'theory-runner[{name}]' installs it."
        raise InputError(f"tracker={name} is not installed here.\n{hint}")


class Tracking:
    """Gives the rows of a run to its tracker.

    If the tracker fails, the run continues without it. A tracker writes into
    `<outputs>/tracking/<name>/<study>/<run>`. name: the name of the tracker.
    """

    def __init__(self, run: Run, name: str, outputs: Path) -> None:
        self.run, self.name = run, name
        self.tracker: TensorBoard | MLflow | WeightsAndBiases | None = None
        self.folder = outputs.resolve() / f"tracking/{name}/{run.config.study}/{run.folder.name}"
        self.parameters = {"study": run.config.study, **vars(run.config)}
        self.records: Counter[tuple[str, str]] = Counter()

    def start(self, provenance: Facts) -> None:
        """Start the tracker for a new attempt at the run.

        Files of an earlier attempt in the tracker's folder are deleted. provenance: commit,
        command, versions and device, which the tracker records. If the tracker fails, the run
        continues without it.
        """
        os.environ.update({**ENVIRONMENT, **os.environ})
        shutil.rmtree(self.folder, ignore_errors=True)
        begin = TRACKERS[self.name]
        self.tracker = self._survive(begin, self.folder, self.parameters, provenance)

    def row(self, row: Row) -> None:
        """Give the numbers in a row to the tracker, each under the name of its series."""
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
        """Call a function, return its result. An exception ends the tracking, but not the run."""
        try:
            return call(*arguments)
        except Exception as error:
            log.info("%s goes on without %s: %r", self.run, self.name, error)
            self.tracker = None


def admitted(name: str) -> str:
    """Return a name for MLflow: characters that MLflow does not allow are replaced."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("=", ":").replace(",", " "))
