"""A checkpoint is bound to its run, its code and its rows; whatever is wrong: anew, right bytes."""

import json
import shutil

import pytest
import stopped
import torch
from pretended_cuda import pretended_cuda
from safetensors import safe_open
from safetensors.torch import save

from runner.core.settings import Settings
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.execution import execute
from runner.runs.run import Run

TINY = {"target_width": 3, "train_samples": 6400, "test_samples": 500, "batch_size": 32}


def settings(outputs, device="cpu"):
    return Settings(outputs=str(outputs), device=device, checkpoint_seconds=0)


def interrupted(outputs, **changes):
    """A run that was stopped after its third checkpoint."""
    run = Run(BnOnly(**TINY | {"replicates": 2} | changes), outputs)
    with stopped.interrupted(3):
        execute(run, settings(outputs))
    return run


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    return interrupted(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def run(begun, tmp_path):
    return Run(begun.config, shutil.copytree(begun.folder.parents[2], tmp_path / "parts"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    outputs = tmp_path_factory.mktemp("whole")
    run = Run(BnOnly(**TINY, replicates=2), outputs)
    execute(run, settings(outputs))
    return tables(run)


def tables(run):
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def finish(run, device="cpu"):
    """Go on; returns the new lines of the log."""
    log = run.folder / "run.log"
    before = len(log.read_text())
    execute(Run(run.config, run.folder.parents[2]), settings(run.folder.parents[2], device))
    return log.read_text()[before:]


def content(path):
    with safe_open(path, "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()  # noqa: SIM118


def test_a_sound_checkpoint_is_used_and_the_first_provenance_kept(run, whole):
    before = json.loads((run.folder / "provenance.json").read_text())
    assert "goes on" in finish(run) and tables(run) == whole
    after = json.loads((run.folder / "provenance.json").read_text())
    assert (
        after["first"]["command"] == before["command"] and after["first"]["code"] == before["code"]
    )
    assert after["status"] == "complete" and "first" not in after["first"]


def written(change):
    """A damage that changes the bytes of the file."""
    return lambda path, run: path.write_bytes(change(path.read_bytes()))


def digit(path, run):
    table = run.folder / "curves.csv"
    table.write_bytes(table.read_bytes().replace(b"0.", b"1.", 1))


def changed(**changes):
    def change(path, run):
        state, about = content(path)
        said = json.loads(about["about"]) | changes
        path.write_bytes(save(state, {"about": json.dumps(said)}))

    return change


def restated(change):
    """A damage that changes the tensors and not what is said of them."""

    def damage(path, run):
        state, about = content(path)
        path.write_bytes(save(change(state), about))

    return damage


def outside(path, run):
    """A table that lies outside of the folder: today's code would cut it off."""
    victim = run.folder.parents[2] / "victim.csv"
    victim.write_text("precious")
    held = {"bytes": 3, "rows": 1, "sha256": "0" * 64, "columns": {}}
    changed(tables={"../../../victim": held})(path, run)


DAMAGES = [
    (written(lambda old: old[:-5] + bytes([old[-5] ^ 1]) + old[-4:]), "its numbers have changed"),
    (written(lambda old: old[:-100]), "cannot be used"),
    (written(lambda old: b"not a checkpoint"), "cannot be used"),
    (written(lambda old: b""), "cannot be used"),
    (digit, "curves.csv has changed"),
    (lambda path, run: (run.folder / "curves.csv").unlink(), "curves.csv is gone"),
    (changed(run="another"), "its run is another"),
    (changed(code="0" * 16), "its code is 0000"),
    (changed(seconds="many"), "cannot be used"),
    (changed(tables=[]), "cannot be used"),
    (changed(tables={"curves": 7}), "cannot be used"),
    (restated(lambda state: {**state, "step": torch.zeros(3)}), "its numbers have changed"),
    (restated(lambda state: {"step": state["step"]}), "its numbers have changed"),
    (outside, "Invalid name"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES, ids=[m for _, m in DAMAGES])
def test_a_checkpoint_that_must_not_be_used_means_a_clean_start(run, whole, damage, message):
    damage(run.folder / "checkpoint.safetensors", run)
    log = finish(run)
    assert message in log and "starts:" in log and "goes on" not in log
    assert tables(run) == whole
    victim = run.folder.parents[2] / "victim.csv"
    assert not victim.exists() or victim.read_text() == "precious"


def test_the_checkpoint_of_another_run_is_not_used(run, whole, tmp_path):
    other = interrupted(tmp_path / "other", seed=1)
    for name in ("checkpoint.safetensors", "curves.csv"):
        (run.folder / name).write_bytes((other.folder / name).read_bytes())
    assert "its run is " in finish(run) and tables(run) == whole


def test_the_checkpoint_of_another_kind_of_device_means_a_clean_start(run, tmp_path):
    """A GPU may take other networks at once than a CPU."""
    with pretended_cuda():
        log = finish(run, "cuda:0")
        whole = Run(run.config, tmp_path / "whole")
        execute(whole, settings(tmp_path / "whole", "cuda:0"))
    assert tables(run) == tables(whole)
    assert "its device is cpu, not cuda" in log and "goes on" not in log
