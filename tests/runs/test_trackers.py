"""What a tracker is given, and what the readers of the packages find of a run."""

import os
from dataclasses import make_dataclass
from math import inf
from pathlib import Path

import pytest
import torch
from in_process import run as run_command

from runner.core.settings import Settings
from runner.core.studies import Row
from runner.papers.bottleneck_structure.example20 import study as example20
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.runs import trackers
from runner.runs.execution import execute
from runner.runs.run import Run
from runner.runs.trackers import Tracking


def row(table: str, keys: str, **columns) -> Row:
    """A row of a class of its own."""
    kinds = [(name, type(value)) for name, value in columns.items()]
    names = {"table": table, "keys": tuple(keys.split())}
    return make_dataclass("Made", kinds, bases=(Row,), namespace=names)(**columns)


class Notes:
    """A tracker that notes what it gets, and fails at one of its calls if asked to."""

    def __init__(self, failing=""):
        self.failing, self.calls, self.points = failing, [], []

    def __call__(self, place, parameters, provenance):
        self.calls, self.points, self.provenance = [], [], provenance
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
def notes(monkeypatch):
    """The notes of the last attempt."""
    notes = Notes()
    monkeypatch.setitem(trackers.TRACKERS, "tensorboard", notes)
    monkeypatch.setattr(trackers, "require", lambda name: None)
    return notes


def tracked(outputs, tracker="tensorboard", **more) -> Run:
    """A run of eight rows, computed in milliseconds."""
    run = Run(Example20(depths=[4, 6], grid=2), outputs)
    settings = {"device": "cpu", "checkpoint_seconds": 0, "tracker": tracker} | more
    execute(run, Settings(outputs=str(outputs), **settings))
    return run


def flow(grid: int, time: float, drift: float) -> Row:
    return row("flow", "grid time", grid=grid, time=time, drift=drift)


SGD = {"method": "sgd", "grid": 3, "depth": 16, "epoch": 7}
SERIES = [
    # grid=3 is a parameter of the run, so that it is not in the name; grid=4 is in the name.
    ([row("training", "method grid depth epoch", **SGD, loss=inf, diverged=True, chosen_by="5")],
     [("training/loss/method=sgd,depth=16", 7, inf),
      ("training/diverged/method=sgd,depth=16", 7, 1.0)]),
    ([flow(3, 0.0, 0.0), flow(3, 0.25, 2.5), flow(4, 0.25, 5.0)],
     [("flow/drift", 0, 0.0), ("flow/time", 0, 0.0), ("flow/drift", 1, 2.5), ("flow/time", 1, 0.25),
      ("flow/drift/grid=4", 0, 5.0), ("flow/time/grid=4", 0, 0.25)]),
    # layers with names are no step
    ([row("layers", "layer", layer="batch", error=1.0)], [("layers/error/layer=batch", 0, 1.0)]),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "points"), SERIES)
def test_series_are_named_by_table_column_and_keys(notes, rows, points):
    tracking = Tracking(Run(Example20(grid=3), Path("outputs")), "tensorboard", Path("outputs"))
    tracking.start({})
    for each in rows:
        tracking.row(each)
    assert notes.points == points


def test_a_run_that_goes_on_gives_each_row_once(tmp_path, monkeypatch, notes):
    """The rows that the checkpoint kept, and then those that are computed."""
    whole, compute = tracked(tmp_path / "whole"), example20.run
    points = notes.points

    def interrupted(config, context):
        for done, row in enumerate(compute(config, context), 1):
            yield row
            context.checkpoint(lambda done=done: {"done": torch.tensor(done)})
            if done == 6:
                raise KeyboardInterrupt

    def rest(config, context):
        yield from list(compute(config, context))[int(context.restored["done"]) :]

    monkeypatch.setattr(example20, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        tracked(tmp_path / "parts")
    assert notes.calls[-1] == "interrupted" and notes.points == points[: len(notes.points)]
    monkeypatch.setattr(example20, "run", rest)
    run = tracked(tmp_path / "parts")
    assert notes.calls[-1] == "complete" and notes.points == points
    assert_same(run, whole)
    stored = run.provenance()
    assert {"commit", "code", "command", "versions", "device"} <= set(notes.provenance)
    assert {key: stored[key] for key in notes.provenance} == notes.provenance


@pytest.mark.parametrize("call", ["start", "row", "complete"])
def test_a_tracker_that_fails_costs_the_run_nothing(tmp_path, notes, call):
    notes.failing = call
    run = tracked(tmp_path / "tracked")
    assert_same(run, tracked(tmp_path / "plain", tracker=None))
    log = (run.folder / "run.log").read_text()
    assert log.count("goes on without tensorboard: OSError('no space left')") == 1
    assert notes.calls[-1] == call and notes.calls.count(call) == 1


@pytest.mark.parametrize("name", [*trackers.TRACKERS, "mlfow"])
def test_a_tracker_that_is_not_installed_is_named_before_anything_runs(
    tmp_path, monkeypatch, capsys, name
):
    monkeypatch.setattr(trackers, "find_spec", lambda module: None)
    words = ["-m", "study=example20", "scale=smoke", "grid=2,3", f"tracker={name}"]
    assert run_command([*words, f"outputs={tmp_path}"], monkeypatch) == 2
    hint = f"pip install 'theory-runner[{name}]'" if name != "mlfow" else "did you mean 'mlflow'"
    assert hint in capsys.readouterr().err
    assert not list(tmp_path.glob("runs/*/*"))


def assert_same(run: Run, plain: Run) -> None:
    """The same name, the same files, the same bytes."""
    names, plain_names = ({path.name for path in each.folder.iterdir()} for each in (run, plain))
    assert run.folder.name == plain.folder.name and names == plain_names
    for name in ("metrics.csv", "config.yaml", "result.json"):
        assert (run.folder / name).read_bytes() == (plain.folder / name).read_bytes()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Computes the run with an installed tracker, in an environment without its variables."""
    for name in [name for name in os.environ if name.startswith(("MLFLOW_", "WANDB_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "environ", os.environ.copy())

    def compute(tracker, **more) -> tuple[Run, Path, dict[tuple[str, int], float]]:
        """The run, the tracker's folder, and the numbers of the run by series and step."""
        if trackers.find_spec(tracker) is None:
            pytest.skip(f"not installed: pip install 'theory-runner[{tracker}]'")
        run = tracked(tmp_path, tracker, **more)
        assert "goes on without" not in (run.folder / "run.log").read_text()
        assert_same(run, tracked(tmp_path / "plain", None))
        rows = run.tables()["metrics"].to_dict("records")
        numbers = {
            (f"metrics/{column}/exponent={row['exponent']}", int(row["depth"])): row[column]
            for row in rows
            for column in row
            if column not in ("depth", "exponent")
        }
        return run, tmp_path / "tracking" / tracker / "example20" / run.folder.name, numbers

    return compute


def test_tensorboard(installed):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for force in (False, True):  # the second attempt takes the place of the first
        _, place, numbers = installed("tensorboard", force=force)
        read = EventAccumulator(str(place)).Reload()
        names = read.Tags()["scalars"]
        found = [(name, event.step, event.value) for name in names for event in read.Scalars(name)]
        assert len(found) == len(numbers)
        found = {(name, step): value for name, step, value in found}
        assert found == pytest.approx(numbers, rel=1e-6)
    (text,) = read.Tensors("provenance/text_summary")
    assert "- commit: " in text.tensor_proto.string_val[0].decode()
    assert b"grid" in read.SummaryMetadata("_hparams_/session_start_info").plugin_data.content


def test_mlflow(installed):
    run, place, numbers = installed("mlflow")
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{place.parents[1] / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("example20").experiment_id])
    read = {
        (name, metric.step): metric.value
        for name in found.data.metrics
        for metric in client.get_metric_history(found.info.run_id, name)
    }
    assert trackers.admitted("a/method=sgd,data=a&b") == "a/method:sgd data:a_b"
    assert read == {(trackers.admitted(name), step): n for (name, step), n in numbers.items()}
    assert (found.info.run_name, found.info.status) == (run.folder.name, "FINISHED")
    assert found.data.params["grid"] == "2" and found.data.tags["code"] == run.code()


def test_wandb_offline(installed):
    run, place, numbers = installed("wandb")
    (path,) = place.glob("wandb/offline-run-*/run-*.wandb")
    content = path.read_bytes()
    names = {name for name, _ in numbers} | {run.folder.name, "commit"}
    assert all(name.encode() in content for name in names)
