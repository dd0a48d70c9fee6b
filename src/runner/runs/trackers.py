"""Where rows can go beside their tables, while they come: TensorBoard, MLflow, Weights & Biases.

Each is an optional package, imported when a run begins, and writes below `<outputs>/tracking`; what
its own environment variables say (MLFLOW_TRACKING_URI, WANDB_MODE, ...) comes first. A local store
holds one entry a run, that of the last attempt; a server keeps every attempt.
"""

import json
import os
import re
import shutil
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from runner.core.errors import InputError, lookup
from runner.runs import lock
from runner.runs.run import Run

if TYPE_CHECKING:
    from mlflow import MlflowClient

PROJECT = "theory-runner"
"""What the runs are filed under at Weights & Biases, unless WANDB_PROJECT says otherwise."""

SECONDS = 1.0
"""How long MLflow's metrics are collected: each request costs more than what it carries."""

MOST = 1000
"""The most metrics that MLflow takes in a request."""


@runtime_checkable
class Tracker(Protocol):
    """Takes the rows of one run. Whatever it raises ends the tracking, not the run."""

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """An attempt at the run begins. provenance: commit, code, command, versions, device."""

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """One row of a table, as the values of its series at a step."""

    def end(self, status: str) -> None:
        """The attempt has ended: complete, failed or interrupted."""


class TensorBoard:
    """Event files in `<folder>/<study>/<run>`, in single precision."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """Parameters as hyperparameters, the provenance as text."""
        from torch.utils.tensorboard import SummaryWriter

        place = self.folder / run.config.study / run.folder.name
        for earlier in place.glob("events.out.tfevents.*"):
            earlier.unlink()
        self.writer = SummaryWriter(place, flush_secs=5)
        scalars = {
            name: value if isinstance(value, bool | int | float | str) else str(value)
            for name, value in _parameters(run).items()
        }
        self.writer.add_hparams(scalars, {}, run_name=".")
        indented = json.dumps(provenance, indent=2).replace("\n", "\n    ")
        self.writer.add_text("provenance", f"    {indented}")

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """A scalar for each value."""
        for name, value in values.items():
            self.writer.add_scalar(name, value, step)

    def end(self, status: str) -> None:
        """Bring everything to the disk."""
        self.writer.add_text("status", status)
        self.writer.close()


class MLflow:
    """The database `<folder>/mlflow.db`, with an experiment for each study; or the server of
    MLFLOW_TRACKING_URI.

    MLflow admits neither `=` nor `,` in names, which become `:` and a space; and it keeps an
    infinity as the largest number.
    """

    STATUS = {"complete": "FINISHED", "failed": "FAILED", "interrupted": "KILLED"}

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """Parameters as params, the provenance as tags."""
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        from mlflow.entities import Metric, Param
        from mlflow.utils.mlflow_tags import MLFLOW_GIT_COMMIT, MLFLOW_SOURCE_NAME

        self.metric = Metric
        is_local = not os.environ.get("MLFLOW_TRACKING_URI")
        self.client = self._client(is_local)
        experiment = self._experiment(run.config.study, is_local)
        hash8 = run.folder.name.rpartition("-")[2]
        if is_local:
            for earlier in self.client.search_runs([experiment], f"tags.run_hash = '{hash8}'"):
                self.client.delete_run(earlier.info.run_id)
        tags = {"run_hash": hash8, **{name: _text(value) for name, value in provenance.items()}}
        tags[MLFLOW_SOURCE_NAME] = _text(provenance.get("command"))
        tags[MLFLOW_GIT_COMMIT] = _text(provenance.get("commit"))
        created = self.client.create_run(experiment, run_name=run.folder.name, tags=tags)
        self.id = created.info.run_id
        params = [Param(name, _text(value)) for name, value in _parameters(run).items()]
        self.client.log_batch(self.id, params=params)
        self.waiting: list[Metric] = []
        self.sent = time.monotonic()

    def _client(self, is_local: bool) -> "MlflowClient":
        """A client of the server, or of the database, which two at once would spoil in making."""
        from mlflow import MlflowClient

        if not is_local:
            return MlflowClient()
        self.folder.mkdir(parents=True, exist_ok=True)
        with lock.held(self.folder, wait=True, what=str(self.folder)):
            return MlflowClient(f"sqlite:///{self.folder.resolve() / 'mlflow.db'}")

    def _experiment(self, study: str, is_local: bool) -> str:
        """The id of the study's experiment, made where there is none."""
        from mlflow.exceptions import MlflowException

        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", study)
        found = self.client.get_experiment_by_name(name)
        if found is None:
            artifacts = (self.folder.resolve() / "artifacts" / study).as_uri() if is_local else None
            try:
                return self.client.create_experiment(name, artifact_location=artifacts)
            except MlflowException:  # another process was first
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        return found.experiment_id

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """A metric for each value; they are sent together, about once a second."""
        now = int(time.time() * 1000)
        self.waiting += [
            self.metric(_admitted(name), value, now, step) for name, value in values.items()
        ]
        if len(self.waiting) >= MOST or time.monotonic() - self.sent >= SECONDS:
            self._send()

    def _send(self) -> None:
        while self.waiting:
            self.client.log_batch(self.id, metrics=self.waiting[:MOST])
            del self.waiting[:MOST]
        self.sent = time.monotonic()

    def end(self, status: str) -> None:
        """Send what is left, and say how the run ended."""
        self._send()
        self.client.set_terminated(self.id, self.STATUS.get(status, "FAILED"))


class WeightsAndBiases:
    """Offline runs in `<folder>/<study>/<run>`, which `wandb sync` uploads; or what WANDB_MODE and
    WANDB_DIR say.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self, run: Run, provenance: dict[str, Any]) -> None:
        """Parameters and provenance as its config, the study as its group."""
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        place = self.folder / run.config.study / run.folder.name
        if "WANDB_DIR" not in os.environ:
            place.mkdir(parents=True, exist_ok=True)
            for earlier in place.glob("wandb/offline-run-*"):
                shutil.rmtree(earlier, ignore_errors=True)
        self.tables: set[str] = set()
        self.run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            group=os.environ.get("WANDB_RUN_GROUP", run.config.study),
            name=run.folder.name,
            config={**_parameters(run), "provenance": provenance},
            dir=os.environ.get("WANDB_DIR", str(place)),
            mode=os.environ.get("WANDB_MODE", "offline"),
            settings=wandb.Settings(console="off", silent=True),
        )

    def row(self, table: str, step: int, values: dict[str, float]) -> None:
        """One entry of the history; the step of a table is `<table>/step`."""
        if table not in self.tables:
            self.tables.add(table)
            self.run.define_metric(f"{table}/step")
            self.run.define_metric(f"{table}/*", step_metric=f"{table}/step")
        self.run.log({f"{table}/step": step, **values})

    def end(self, status: str) -> None:
        """Close the run."""
        self.run.finish(exit_code=int(status != "complete"))


TRACKERS: dict[str, type] = {
    "tensorboard": TensorBoard,
    "mlflow": MLflow,
    "wandb": WeightsAndBiases,
}

MODULES = {
    "tensorboard": ("tensorboard",),
    "mlflow": ("mlflow", "sqlalchemy", "alembic"),
    "wandb": ("wandb",),
}
"""What each needs; the extras of these names install it."""


def require(name: str | None) -> None:
    """Raise InputError when the packages of a tracker are not installed."""
    missing = [module for module in MODULES.get(name or "", ()) if not _is_installed(module)]
    if missing:
        raise InputError(
            f"tracker={name}: {' and '.join(missing)} not installed here.\n"
            f"pip install '{PROJECT}[{name}]' does so."
        )


def _is_installed(module: str) -> bool:
    """Whether it can be imported; a mere folder of the name, as wandb leaves behind, cannot."""
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def tracker_of(name: str | None, outputs: Path) -> Tracker | None:
    """The tracker of that name, which writes below `<outputs>/tracking`; None without a name."""
    return lookup("tracker", name, TRACKERS)(outputs / "tracking" / name) if name else None


def _parameters(run: Run) -> dict[str, Any]:
    return {"study": run.config.study, **vars(run.config)}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _admitted(name: str) -> str:
    """A name as MLflow takes it."""
    return re.sub(r"[^\w\-. :/]", "_", name.replace("=", ":").replace(",", " "))
