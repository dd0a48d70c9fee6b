"""What a tracker is given: names, steps, numbers; each row once; and its failures cost no run."""

import json
from dataclasses import dataclass
from math import inf, isnan, nan
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import Row
from runner.papers.bottleneck_structure.example20 import study as example20
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.runs import execution, trackers, tracking
from runner.runs.execution import execute
from runner.runs.run import Run
from runner.runs.tracking import Tracking, numbers, series_name, step_key


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
    keys: ClassVar[tuple[str, ...]] = ("replicate", "time")

    replicate: int
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

    def __init__(self, failing: str = ""):
        self.failing, self.calls, self.points = failing, [], []

    def _note(self, call):
        self.calls.append(call)
        if call == self.failing:
            raise OSError("no space left")

    def start(self, run, provenance):
        self.provenance = provenance
        self._note("start")

    def row(self, table, step, values):
        self.points += [(name, step, value) for name, value in values.items()]
        self._note("row")

    def end(self, status):
        self._note(status)


@pytest.fixture
def noting(monkeypatch):
    """The notes of every attempt from here on."""
    attempts = []

    def tracker_of(name, outputs):
        attempts.append(Notes())
        return attempts[-1]

    monkeypatch.setattr(trackers, "tracker_of", tracker_of)
    return attempts


def given(rows):
    """What a tracker gets of these rows."""
    notes = Notes()
    tracking = Tracking(Run(Example20(), Path("outputs")), notes)
    for row in rows:
        tracking.row(row)
    return notes.points


def tiny(outputs):
    """A run of eight rows, in milliseconds."""
    return Run(Example20(depths=[4, 6], grid=2), outputs)


def settings(outputs, **changes):
    return Settings(outputs=str(outputs), device="cpu", checkpoint_seconds=0, **changes)


def tables(run):
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def test_keys_are_in_the_name_apart_from_the_step_and_what_the_parameters_say():
    row = Training("sgd", 2, 16, 7, 0.5, 3, True, "replicates 5, 6")
    assert step_key(Training) == "epoch"
    assert series_name(row, {}) == "method=sgd,replicate=2,depth=16"
    assert series_name(row, {"method": "sgd", "depth": 8}) == "replicate=2,depth=16"
    assert series_name(Training("sgd", 2, 8, 7, 0, 0, True, ""), {"depth": 8, "replicate": 2}) == (
        "method=sgd"
    )


def test_measurements_are_the_numbers_among_the_other_columns():
    row = Training("sgd", 2, 16, 7, inf, 3, True, "replicates 5, 6")
    assert numbers(row) == {"loss": inf, "rank": 3.0, "diverged": 1.0}
    name = "method=sgd,replicate=2,depth=16"
    points = given([row])
    assert points == [
        (f"training/loss/{name}", 7, inf),
        (f"training/rank/{name}", 7, 3.0),
        (f"training/diverged/{name}", 7, 1.0),
    ]


def test_steps_that_are_no_whole_numbers_are_counted_for_each_series():
    points = given([Flow(r, time, 10 * time) for time in (0.0, 0.25) for r in (0, 1)])
    assert [point for point in points if "drift" in point[0]] == [
        ("flow/drift/replicate=0", 0, 0.0),
        ("flow/drift/replicate=1", 0, 0.0),
        ("flow/drift/replicate=0", 1, 2.5),
        ("flow/drift/replicate=1", 1, 2.5),
    ]
    assert ("flow/time/replicate=1", 1, 0.25) in points


def test_a_table_without_a_step_has_one_point_a_series():
    points = given([Layers("batch", nan), Layers("layer", 0.5)])
    assert [point[:2] for point in points] == [
        ("layers/error/layer=batch", 0),
        ("layers/error/layer=layer", 0),
    ]
    assert isnan(points[0][2])


def test_series_beyond_the_most_are_left_out_and_the_log_says_so(tmp_path, monkeypatch, noting):
    monkeypatch.setattr(tracking, "SERIES", 7)
    run = tiny(tmp_path)
    execute(run, settings(tmp_path))
    assert len({name for name, _, _ in noting[0].points}) == 7
    assert "metrics/epsilon/exponent=0.6" in {name for name, _, _ in noting[0].points}
    log = (run.folder / "run.log").read_text()
    assert log.count("the tracker gets 7 series of metrics.csv") == 1


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


def test_the_provenance_is_given(tmp_path, noting):
    run = tiny(tmp_path)
    execute(run, settings(tmp_path))
    stored = json.loads((run.folder / "provenance.json").read_text())
    about = noting[0].provenance
    assert {"commit", "code", "command", "versions", "device"} <= set(about)
    assert {key: stored[key] for key in about} == about


@pytest.mark.parametrize("call", ["start", "row", "complete"])
def test_a_tracker_that_fails_costs_the_run_nothing(tmp_path, monkeypatch, call):
    notes = Notes(failing=call)
    monkeypatch.setattr(trackers, "tracker_of", lambda name, outputs: notes)
    run = tiny(tmp_path / "tracked")
    execute(run, settings(tmp_path / "tracked"))
    plain = tiny(tmp_path / "plain")
    monkeypatch.setattr(trackers, "tracker_of", lambda name, outputs: None)
    execute(plain, settings(tmp_path / "plain"))
    assert run.is_complete() and tables(run) == tables(plain)
    log = (run.folder / "run.log").read_text()
    assert log.count("goes on without Notes: OSError: no space left") == 1
    assert notes.calls.count(call) == 1 and notes.calls[-1] == "failed"


def test_an_error_that_ends_the_process_is_passed_on(tmp_path):
    """Submitit's handlers of signals raise one, and a tracker may be at work then."""
    tracked = Tracking(tiny(tmp_path), Notes(failing="row"), is_ending=lambda: True)
    with pytest.raises(OSError, match="no space left"):
        tracked.row(Layers("batch", 0.5))
    tracked.tracker.failing = "interrupted"
    tracked.end("interrupted")  # where another error is under way


def test_a_failing_run_says_so_to_its_tracker(tmp_path, monkeypatch, noting):
    monkeypatch.setattr(execution.TableWriter, "write", lambda self, row: 1 / 0)
    with pytest.raises(execution.RunFailed):
        execute(tiny(tmp_path), settings(tmp_path))
    assert noting[0].calls == ["start", "failed"]


def test_an_unknown_tracker_is_named():
    with pytest.raises(InputError, match="tracker=mlfow is not known: did you mean 'mlflow'"):
        Settings(tracker="mlfow")
