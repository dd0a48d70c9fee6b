"""TensorBoard, MLflow and Weights & Biases themselves: what their own readers find of a run."""

import json
import os
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from in_process import composed
from in_process import run as run_command
from repository import REPOSITORY

from runner.core.settings import Settings
from runner.runs import trackers
from runner.runs.execution import execute
from runner.runs.run import Run

SMOKE = ("study=example20", "scale=smoke", "device=cpu")
DEPTHS = [8, 32, 128]


def needs(name):
    return pytest.mark.skipif(
        not all(map(trackers._is_installed, trackers.MODULES[name])),
        reason=f"not installed: pip install 'theory-runner[{name}]'",
    )


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("MLFLOW_", "WANDB_")):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Run:
    """The run without a tracker."""
    return smoke(tmp_path_factory.mktemp("plain"))


def smoke(outputs: Path, *overrides: str) -> Run:
    """The smoke run of study example20, computed."""
    settings, config = composed(*SMOKE, f"outputs={outputs}", *overrides)
    run = Run(config, settings.folder())
    execute(run, settings)
    return run


def assert_as_without(run: Run, plain: Run) -> None:
    """The same name, the same files, the same bytes."""
    assert run.folder.name == plain.folder.name
    names = {path.name for path in run.folder.iterdir()}
    assert names == {path.name for path in plain.folder.iterdir()}
    for name in ("metrics.csv", "config.yaml", "result.json"):
        assert (run.folder / name).read_bytes() == (plain.folder / name).read_bytes()
    assert "goes on without" not in (run.folder / "run.log").read_text()


def numbers_of(run: Run) -> dict[tuple[str, int], float]:
    """The numbers of the table, by the names and steps that they have in a tracker."""
    table = run.tables()["metrics"]
    return {
        (f"metrics/{column}/exponent={row['exponent']}", int(row["depth"])): row[column]
        for _, row in table.iterrows()
        for column in table.columns.drop(["depth", "exponent"])
    }


@needs("tensorboard")
def test_tensorboard(tmp_path, plain):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for overrides in ((), ("force=true",)):  # the second takes the place of the first
        run = smoke(tmp_path, "tracker=tensorboard", *overrides)
        assert_as_without(run, plain)
        place = tmp_path / "tracking" / "tensorboard" / "example20" / run.folder.name
        read = EventAccumulator(str(place)).Reload()
        found = {
            (name, event.step): event.value
            for name in read.Tags()["scalars"]
            for event in read.Scalars(name)
        }
        assert found == pytest.approx(numbers_of(run), rel=1e-6)
        counts = {name: len(read.Scalars(name)) for name in read.Tags()["scalars"]}
        assert set(counts.values()) == {len(DEPTHS)}
    (text,) = read.Tensors("provenance/text_summary")
    assert '"commit"' in text.tensor_proto.string_val[0].decode()
    hyperparameters = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"grid" in hyperparameters and str(DEPTHS).encode() in hyperparameters


@needs("mlflow")
def test_mlflow(tmp_path, plain, monkeypatch):
    """In the local store an attempt takes the place of the last one; a server keeps all."""
    first = smoke(tmp_path, "tracker=mlflow")
    assert_as_without(first, plain)
    from mlflow import MlflowClient

    store = f"sqlite:///{tmp_path / 'tracking' / 'mlflow' / 'mlflow.db'}"
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("example20").experiment_id
    smoke(tmp_path, "tracker=mlflow", "force=true")
    (found,) = client.search_runs([experiment])
    read = {
        (name, metric.step): metric.value
        for name in found.data.metrics
        for metric in client.get_metric_history(found.info.run_id, name)
    }
    expected = {
        (name.replace("=", ":"), step): each for (name, step), each in numbers_of(first).items()
    }
    assert read == expected
    assert found.info.run_name == first.folder.name and found.info.status == "FINISHED"
    assert found.data.params["depths"] == str(DEPTHS) and found.data.params["grid"] == "3"
    stored = json.loads((first.folder / "provenance.json").read_text())
    for key in ("commit", "code", "device"):
        assert found.data.tags[key] == (stored[key] or "null")

    monkeypatch.setenv("MLFLOW_TRACKING_URI", store)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "all of ours")
    for _ in range(2):
        smoke(tmp_path / "other", "tracker=mlflow", "force=true")
    assert not (tmp_path / "other" / "tracking" / "mlflow" / "mlflow.db").exists()
    experiment = client.get_experiment_by_name("all of ours").experiment_id
    assert len(client.search_runs([experiment])) == 2


@needs("mlflow")
def test_names_and_values_as_mlflow_admits_them():
    from mlflow.utils.validation import _validate_metric

    for name in ("table/a/method=sgd,rate=1e-05", "table/a/width=1e+16,data=a&b", "table/é"):
        _validate_metric(trackers._admitted(name), float("nan"), 0, 0)


@needs("wandb")
def test_wandb_offline(tmp_path, plain):
    for overrides in ((), ("force=true",)):
        run = smoke(tmp_path, "tracker=wandb", *overrides)
        assert_as_without(run, plain)
        place = tmp_path / "tracking" / "wandb" / "example20" / run.folder.name
        (path,) = place.glob("wandb/offline-run-*/run-*.wandb")
        records = written_by_wandb(path)
        history = [
            {"/".join(item.nested_key): json.loads(item.value_json) for item in each.history.item}
            for each in records
            if each.HasField("history")
        ]
        found = {
            (name, entry["metrics/step"]): value
            for entry in history
            for name, value in entry.items()
            if name.startswith("metrics/") and name != "metrics/step"
        }
        assert len(history) == len(run.tables()["metrics"])
        assert found == numbers_of(run)
    (about,) = (each.run for each in records if each.HasField("run"))
    config = {item.key: json.loads(item.value_json) for item in about.config.update}
    assert about.display_name == run.folder.name and about.run_group == "example20"
    assert config["depths"] == DEPTHS and "commit" in config["provenance"]
    assert records[-1].exit.exit_code == 0


def written_by_wandb(path: Path) -> list:
    """The records of an offline run that has ended; another process may still be writing them."""
    deadline = time.monotonic() + 60
    while not (records := list(read_wandb(path))) or not records[-1].HasField("exit"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return records


def read_wandb(path: Path) -> Iterator:
    """The records of an offline run: a log in the format of LevelDB, of protobuf messages."""
    from wandb.proto.wandb_internal_pb2 import Record

    content, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(content):
        room = 32768 - at % 32768
        if room < 7:
            at += room
            continue
        size, kind = int.from_bytes(content[at + 4 : at + 6], "little"), content[at + 6]
        whole += content[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # a whole record, or the last part of one
            yield Record.FromString(whole)
            whole = b""


@needs("wandb")
@pytest.mark.parametrize(("name", "value"), [("WANDB_MODE", "disabled"), ("WANDB_DIR", "{}/own")])
def test_the_variables_of_wandb_come_first(tmp_path, plain, monkeypatch, name, value):
    (tmp_path / "own").mkdir()
    monkeypatch.setenv(name, value.format(tmp_path))
    assert_as_without(smoke(tmp_path, "tracker=wandb"), plain)
    found = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.wandb")}
    assert found == (set() if name == "WANDB_MODE" else {"own"})


@needs("tensorboard")
def test_a_place_that_cannot_be_written_costs_the_run_nothing(tmp_path, plain):
    (tmp_path / "tracking").write_text("")
    run = smoke(tmp_path, "tracker=tensorboard")
    assert run.is_complete() and run.tables()["metrics"].equals(plain.tables()["metrics"])
    assert "goes on without TensorBoard" in (run.folder / "run.log").read_text()


@pytest.mark.parametrize("sweep", [(), ("-m", "grid=2,3")])
@pytest.mark.parametrize("name", trackers.MODULES)
def test_a_tracker_that_is_not_installed_is_named_before_anything_runs(
    tmp_path, monkeypatch, capsys, name, sweep
):
    monkeypatch.setattr(trackers, "find_spec", lambda module: None)
    arguments = [*sweep, *SMOKE, f"tracker={name}", f"outputs={tmp_path}"]
    assert run_command(arguments, monkeypatch) == 2
    assert f"pip install 'theory-runner[{name}]'" in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*/*"))


def test_a_folder_of_the_name_is_no_package(tmp_path, monkeypatch):
    """Weights & Biases leaves a folder `wandb` behind, and Python takes it for a package."""
    (tmp_path / "no_such_tracker").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    assert not trackers._is_installed("no_such_tracker") and trackers._is_installed("runner")


def test_every_tracker_is_a_choice_and_an_extra():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert list(trackers.TRACKERS) == list(trackers.MODULES)
    for name in trackers.TRACKERS:
        assert Settings(tracker=name).tracker == name
        assert name in project["optional-dependencies"]
