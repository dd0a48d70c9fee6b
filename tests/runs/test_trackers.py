"""What a tracker is given, and what the readers of the packages find of a run."""

import json
import os
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from math import inf, isnan, nan
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from in_process import composed
from in_process import run as run_command
from repository import REPOSITORY

from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import Row
from runner.papers.bottleneck_structure.example20 import study as example20
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.runs import execution, trackers
from runner.runs.execution import execute
from runner.runs.run import Run
from runner.runs.trackers import Tracking

SMOKE = ("study=example20", "scale=smoke", "device=cpu")
DEPTHS = [8, 32, 128]


@dataclass(frozen=True)
class Training(Row):
    table: ClassVar[str] = "training"
    keys: ClassVar[tuple[str, ...]] = ("method", "replicate", "depth", "epoch")

    method: str
    replicate: int
    depth: int
    epoch: int
    loss: float
    rank: int
    diverged: bool
    chosen_by: str


@dataclass(frozen=True)
class Flow(Row):
    table: ClassVar[str] = "flow"
    keys: ClassVar[tuple[str, ...]] = ("grid", "time")

    grid: int
    time: float
    drift: float


@dataclass(frozen=True)
class Layers(Row):
    """Its layers have names, so that they are no step."""

    table: ClassVar[str] = "layers"
    keys: ClassVar[tuple[str, ...]] = ("layer",)

    layer: str
    error: float


class Notes:
    """A tracker that notes what it gets, and fails at one of its calls if asked to."""

    def __init__(self, failing=""):
        self.failing, self.calls, self.points = failing, [], []

    def __call__(self, place, parameters, provenance):
        self.provenance = provenance
        self._note("start")
        return self

    def _note(self, call):
        self.calls.append(call)
        if call == self.failing:
            raise OSError("no space left")

    def row(self, values, step):
        self.points += [(name, step, value) for name, value in values.items()]
        self._note("row")

    def end(self, status):
        self._note(status)


@pytest.fixture
def noting(monkeypatch):
    """The notes of every attempt from here on."""
    attempts = []

    def begin(*arguments):
        attempts.append(Notes())
        return attempts[-1](*arguments)

    monkeypatch.setitem(trackers.TRACKERS, "tensorboard", begin)
    monkeypatch.setattr(trackers, "require", lambda name: None)
    return attempts


def given(noting, rows):
    """What a tracker gets of these rows, of a run with grid=3."""
    tracking = Tracking(Run(Example20(grid=3), Path("outputs")), "tensorboard", Path("outputs"))
    tracking.start({})
    for row in rows:
        tracking.row(row)
    return noting[-1].points


def tiny(outputs):
    """A run of eight rows, in milliseconds."""
    return Run(Example20(depths=[4, 6], grid=2), outputs)


def settings(outputs, tracker="tensorboard"):
    return Settings(outputs=str(outputs), device="cpu", checkpoint_seconds=0, tracker=tracker)


def tables(run):
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def test_series_have_the_numbers_and_the_keys_but_the_step_and_the_parameters(noting):
    """grid=3 is what the run's parameters say, so that it is not in the name; 4 is not."""
    name = "method=sgd,replicate=2,depth=16"
    assert given(noting, [Training("sgd", 2, 16, 7, inf, 3, True, "replicates 5, 6")]) == [
        (f"training/loss/{name}", 7, inf),
        (f"training/rank/{name}", 7, 3.0),
        (f"training/diverged/{name}", 7, 1.0),
    ]
    assert given(noting, [Flow(g, time, 10 * time) for time in (0.0, 0.25) for g in (3, 4)]) == [
        ("flow/drift", 0, 0.0),
        ("flow/time", 0, 0.0),
        ("flow/drift/grid=4", 0, 0.0),
        ("flow/time/grid=4", 0, 0.0),
        ("flow/drift", 1, 2.5),
        ("flow/time", 1, 0.25),
        ("flow/drift/grid=4", 1, 2.5),
        ("flow/time/grid=4", 1, 0.25),
    ]
    (first, second) = given(noting, [Layers("batch", nan), Layers("layer", 0.5)])
    assert first[:2] == ("layers/error/layer=batch", 0) and isnan(first[2])
    assert second == ("layers/error/layer=layer", 0, 0.5)


def test_a_run_that_goes_on_gives_each_row_once(tmp_path, monkeypatch, noting):
    """The rows that the checkpoint kept, and then those that are computed."""
    compute, seen = example20.run, []

    def interrupted(config, context):
        rows = list(compute(config, context))
        start = int(context.restored["done"]) if context.restored else 0
        for done, row in enumerate(rows[start:], start + 1):
            yield row
            seen.append(len(noting[-1].calls))
            if done != 6:
                context.checkpoint(lambda done=done: {"done": torch.tensor(done)})
            elif start == 0:
                raise KeyboardInterrupt

    whole, run = tiny(tmp_path / "whole"), tiny(tmp_path / "parts")
    execute(whole, settings(tmp_path / "whole"))
    monkeypatch.setattr(example20, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        execute(run, settings(tmp_path / "parts"))
    assert seen == [2, 3, 4, 5, 6, 7], "each row is given before the next is computed"
    execute(run, settings(tmp_path / "parts"))
    assert len(seen) == 6 + 3 and tables(run) == tables(whole)
    first, second, third = noting
    assert second.calls[-1] == "interrupted" and third.calls[-1] == "complete"
    assert second.points == first.points[: len(second.points)]
    assert third.points == first.points
    stored = json.loads((run.folder / "provenance.json").read_text())
    assert {"commit", "code", "command", "versions", "device"} <= set(third.provenance)
    assert {key: stored[key] for key in third.provenance} == third.provenance


@pytest.mark.parametrize("call", ["start", "row", "complete"])
def test_a_tracker_that_fails_costs_the_run_nothing(tmp_path, monkeypatch, call):
    notes = Notes(failing=call)
    monkeypatch.setitem(trackers.TRACKERS, "tensorboard", notes)
    monkeypatch.setattr(trackers, "require", lambda name: None)
    run, plain = tiny(tmp_path / "tracked"), tiny(tmp_path / "plain")
    execute(run, settings(tmp_path / "tracked"))
    execute(plain, settings(tmp_path / "plain", tracker=None))
    assert run.is_complete() and tables(run) == tables(plain)
    log = (run.folder / "run.log").read_text()
    assert log.count("goes on without tensorboard: OSError('no space left')") == 1
    assert notes.calls[-1] == call and notes.calls.count(call) == 1


def test_a_failing_run_says_so_to_its_tracker(tmp_path, monkeypatch, noting):
    monkeypatch.setattr(execution.TableWriter, "write", lambda self, row: 1 / 0)
    with pytest.raises(execution.RunFailed):
        execute(tiny(tmp_path), settings(tmp_path))
    assert noting[0].calls == ["start", "failed"]


def test_every_tracker_is_a_choice_and_an_extra():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for name in trackers.TRACKERS:
        assert Settings(tracker=name).tracker == name
        assert name in project["optional-dependencies"]
    with pytest.raises(InputError, match="tracker=mlfow is unknown: did you mean 'mlflow'"):
        Settings(tracker="mlfow")


@pytest.mark.parametrize("name", trackers.TRACKERS)
def test_a_tracker_that_is_not_installed_is_named_before_anything_runs(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.setattr(trackers, "find_spec", lambda module: None)
    arguments = ["-m", "grid=2,3", *SMOKE, f"tracker={name}", f"outputs={tmp_path}"]
    assert run_command(arguments, monkeypatch) == 2
    assert f"pip install 'theory-runner[{name}]'" in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*/*"))


def test_a_folder_of_the_name_is_no_package(tmp_path, monkeypatch):
    """Weights & Biases leaves a folder `wandb` behind, and Python takes it for a package."""
    (tmp_path / "no_such_tracker").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(trackers.WeightsAndBiases, "modules", ("no_such_tracker",))
    with pytest.raises(InputError, match="no_such_tracker not installed"):
        trackers.require("wandb")


def needs(name):
    def is_there():
        try:
            trackers.require(name)
        except InputError:
            return False
        return True

    why = f"not installed: pip install 'theory-runner[{name}]'"
    return pytest.mark.skipif(not is_there(), reason=why)


@pytest.fixture
def bare_environment():
    """Without variables of the packages, and with what a run sets forgotten after the test."""
    before = dict(os.environ)
    for name in [name for name in before if name.startswith(("MLFLOW_", "WANDB_"))]:
        del os.environ[name]
    yield
    os.environ.clear()
    os.environ.update(before)


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
    """The second attempt takes the place of the first; without a place the run goes on."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for overrides in ((), ("force=true",)):
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
    assert "- commit: " in text.tensor_proto.string_val[0].decode()
    hyperparameters = read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    assert b"grid" in hyperparameters and str(DEPTHS).encode() in hyperparameters
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "tracking").write_text("")
    run = smoke(tmp_path / "other", "tracker=tensorboard")
    assert run.is_complete() and run.tables()["metrics"].equals(plain.tables()["metrics"])
    assert "goes on without tensorboard" in (run.folder / "run.log").read_text()


@needs("mlflow")
def test_mlflow(tmp_path, plain, monkeypatch, bare_environment):
    """An entry for each attempt, in a database or at a server."""
    first = smoke(tmp_path, "tracker=mlflow")
    assert_as_without(first, plain)
    from mlflow import MlflowClient
    from mlflow.utils.validation import _validate_metric

    store = f"sqlite:///{tmp_path / 'tracking' / 'mlflow' / 'mlflow.db'}"
    client = MlflowClient(store)
    experiment = client.get_experiment_by_name("example20").experiment_id
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
    assert all(found.data.tags[key] == str(stored[key]) for key in ("commit", "code", "device"))

    monkeypatch.setitem(os.environ, "MLFLOW_TRACKING_URI", store)
    monkeypatch.setitem(os.environ, "MLFLOW_EXPERIMENT_NAME", "all of ours")
    for _ in range(2):
        smoke(tmp_path / "other", "tracker=mlflow", "force=true")
    assert not (tmp_path / "other" / "tracking" / "mlflow" / "mlflow.db").exists()
    experiment = client.get_experiment_by_name("all of ours").experiment_id
    assert len(client.search_runs([experiment])) == 2
    for name in ("table/a/method=sgd,rate=1e-05", "table/a/width=1e+16,data=a&b", "table/é"):
        _validate_metric(trackers.admitted(name), float("nan"), 0, 0)


@needs("wandb")
def test_wandb_offline(tmp_path, plain, bare_environment):
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
            (name, entry["step"]): value
            for entry in history
            for name, value in entry.items()
            if name.startswith("metrics/")
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
def test_the_variables_of_wandb_come_first(tmp_path, plain, bare_environment, name, value):
    (tmp_path / "own").mkdir()
    os.environ[name] = value.format(tmp_path)
    assert_as_without(smoke(tmp_path, "tracker=wandb"), plain)
    found = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.wandb")}
    assert found == (set() if name == "WANDB_MODE" else {"own"})
