"""What a run's folder shows of its status, and which runs a condition or a name means."""

import json
import os
import time
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest
from in_process import order_of
from some_runs import METHODS, one, say

from runner.core.errors import InputError
from runner.runs import lock
from runner.runs.folder_names import LONGEST_NAME
from runner.runs.inventory import describe, find
from runner.runs.jobs import complete
from runner.runs.query import chosen, conditions_for, fits, named


@pytest.fixture
def folder(outputs) -> Path:
    return one(outputs, target_width=2)


def test_a_complete_run_shows_what_it_is(folder):
    info = describe(folder)
    assert (info.study, info.status, info.is_stale) == ("bn_only", "complete", False)
    assert info.knobs.startswith("target_width=2,") and folder.name.endswith(info.hash8)
    assert info.seconds > 0 and abs(info.ended.timestamp() - time.time()) < 600
    assert info.run.tables()["metrics"].shape[0] > 0


@pytest.mark.parametrize(
    ("said", "status"),
    [("running", "dead"), ("complete", "dead"), ("interrupted", "interrupted")]
    + [("failed", "failed"), ("nonsense", "absent")],
)
@pytest.mark.parametrize("is_held", [True, False])
def test_the_status_is_that_of_the_process_or_what_it_said_last(folder, said, status, is_held):
    say(folder, said)
    with lock.held(folder, wait=False, what="this") if is_held else nullcontext():
        info = describe(folder)
    assert info.status == ("running" if is_held else status)
    assert (info.ended is None) == is_held


def test_an_empty_folder_is_absent(folder):
    for path in folder.iterdir():
        path.unlink()
    info = describe(folder)
    assert (info.status, info.config, info.ended) == ("absent", None, None)
    assert info.seconds != info.seconds and info.knobs == folder.name.rpartition("-")[0]


def test_the_time_of_a_running_run_goes_on(folder):
    provenance = say(folder, "running") / "provenance.json"
    before = json.loads(provenance.read_text())["seconds"]
    os.utime(provenance, (time.time() - 500,) * 2)
    with lock.held(folder, wait=False, what="this"):
        assert describe(folder).seconds - before == pytest.approx(500, abs=60)
    assert describe(folder).seconds == before, "it is dead"


@pytest.mark.parametrize("typed", [["scale=smoke", "target_width=2", "methods=[sgd,dense]"], None])
@pytest.mark.parametrize("damage", ["", "study: [", None])
def test_a_condition_chooses_an_unreadable_run_by_what_the_list_shows(folder, typed, damage):
    (folder / "config.yaml").unlink()
    if damage is not None:
        (folder / "config.yaml").write_text(damage)
    about = json.loads((folder / "provenance.json").read_text())
    (folder / "provenance.json").write_text(json.dumps(about | {"typed": typed}))
    info = describe(folder)
    assert info.config is None and "target_width=2" in info.knobs
    infos = find(folder.parents[2])
    conditions = ["target_width=2", "target_width < 3"]
    conditions += (
        ["methods == 'sgd+dense'"] if typed else ["target_width == 2 and train_samples == 640"]
    )
    for condition in conditions:
        assert [found.folder for found in chosen(infos, where=[condition])] == [folder]
    assert folder not in [found.folder for found in chosen(infos, where=["target_width > 2"])]
    assert "scale" not in info.parameters, "it is no parameter"


def test_the_cut_end_of_a_name_is_no_value(folder):
    name = f"target_width=2,{'x' * 80}=1,train_samples=640"[: LONGEST_NAME - 1] + "6"
    folder = folder.rename(folder.with_name(f"{name.ljust(LONGEST_NAME, '0')}-01234567"))
    for path in folder.iterdir():
        path.unlink()
    assert describe(folder).parameters == {"target_width": 2}


def test_runs_are_ordered_by_values(tmp_path):
    typed = ["depths=[4]", "seed=2,0,10", "scale=smoke", f"outputs={tmp_path}"]
    for job in order_of("study=example20", "grid=7,5", *typed, multirun=True).jobs:
        job.run.folder.mkdir(parents=True)
        (job.run.folder / "config.yaml").write_bytes(job.run.config_text())
    (tmp_path / "runs" / "example20" / "grid=1-01234567").mkdir()
    found = [(info.parameters["grid"], info.parameters.get("seed")) for info in find(tmp_path)]
    assert found == sorted(found[:-1]) + [(1, None)] and len(found) == 7


@pytest.mark.parametrize(
    ("condition", "number"),
    [
        ("target_width == 3", 2),
        ("target_width in [2, 3.0] and methods == 'sgd'", 1),
        (f"methods == '{METHODS}'", 2),
        ("methods.str.contains('dense') and target_width < 3", 1),
        ("learning_rate.isnull() and study == 'bn_only'", 3),
        ("learning_rate > 0", 0),
        ("depths == '4'", 1),
        ("status != 'complete' or seconds > 1e6 or stale", 0),
        ("ended > '2020'", 4),
        ("target_width=3", 2),
        ("target_width=[3, 4]", 2),
        ("target_width=3e0", 2),
        ("learning_rate=null", 4),
        ("stale=false", 4),
    ],
)
def test_a_condition_means_the_runs_that_fit_it(outputs, condition, number):
    infos = find(outputs)
    assert len(chosen(infos, where=[condition])) == number
    assert chosen(infos, [], ["complete"], [condition, "seed == 1"]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"studies": ["bn_onyl"]}, "did you mean 'bn_only'"),
        ({"statuses": ["complet"]}, "did you mean 'complete'"),
        ({"where": ["target_widht == 3"]}, "did you mean 'target_width'"),
        ({"where": ["depths == 3"], "studies": ["bn_only"]}, "there is no depths"),
        ({"where": ["seconds"]}, "a comparison is needed.*write it as 'depth == 32"),
        ({"where": ["target_width"]}, "a comparison is needed"),
        ({"where": ["1"]}, "a comparison is needed"),
        ({"where": [""]}, "is no condition"),
        ({"where": ["("]}, "is no condition"),
        ({"where": ["methods > 3"]}, "is no condition"),
        ({"where": ["__import__('os')"]}, "is no condition"),
        ({"where": ["@outputs == 1"]}, "there is no outputs"),
        ({"where": ["@values == 1"]}, "there is no values"),
        ({"where": ["target_width=[1"]}, "is no condition.*write it as 'depth == 32"),
        ({"where": ["target_width=3 and seed=0"]}, "is no condition.*write it as 'depth == 32"),
    ],
)
def test_a_wrong_choice_is_explained_in_one_line(outputs, options, message):
    with pytest.raises(InputError, match=message) as error:
        chosen(find(outputs), **options)
    assert "\n" not in str(error.value)


def test_a_value_that_looks_like_a_number_is_found_as_text():
    rows = pd.DataFrame({"hash": ["39765891", "12345e67"], "note": ["yes", "a and b"]})
    rows["skip"] = [float("inf"), 1e5]
    for condition in ("hash=39765891", "note=yes", "skip=inf"):
        assert fits(rows, condition).tolist() == [True, False]
    for condition in ("hash=12345e67", "note=a and b", "skip=1e5", "skip=[1e5, 3]"):
        assert fits(rows, condition).tolist() == [False, True]


def test_the_condition_of_a_sweep_chooses_its_runs_alone(outputs):
    found = find(outputs)
    study = [info for info in found if info.study == "bn_only"]
    for infos in (study, study[:1], study[1:], [study[0], study[2]], found[-1:]):
        conditions = conditions_for([info.run for info in infos], found)
        assert chosen(found, [infos[0].study], where=conditions) == infos
    assert conditions_for([info.run for info in study], found) == []
    assert conditions_for([study[0].run], found) == ["target_width=2"]


def test_runs_that_no_parameter_tells_apart_are_chosen_by_their_hashes(tmp_path):
    words = ("study=example20", "scale=smoke", "depths=[4]", "seed=0,1", "exponents=[0.6],[0.8]")
    for job in order_of(*words, f"outputs={tmp_path}", multirun=True).jobs:
        complete(job)
    found = find(tmp_path)
    conditions = conditions_for([info.run for info in found[:3]], found)
    assert chosen(found, where=conditions) == found[:3]


def test_a_list_of_values_may_hold_null_and_texts_that_look_like_numbers():
    rows = pd.DataFrame({"rate": [None, 0.1, 0.2], "hash": ["01234567", "12345678", "abcdef01"]})
    assert fits(rows, "rate=[null,0.1]").tolist() == [True, True, False]
    assert fits(rows, "hash=[01234567,abcdef01]").tolist() == [True, False, True]


def test_a_run_is_named_by_folder_name_hash_or_beginning(outputs, folder):
    hash8 = folder.name[-8:]
    for text in (str(folder), folder.name, f"bn_only/{folder.name}", hash8, hash8[:5]):
        assert named(text, outputs).folder == folder
    assert named("target_width=2", outputs).folder == folder
    assert named(str(folder), outputs / "runs").folder == folder, "wherever the outputs are"
    for text, where, message in (
        ("target_width=", outputs, "names 3 runs: bn_only [0-9a-f]{8}, "),
        ("nothing", outputs, "names no run"),
        ("nothing", outputs / "nowhere", "names no run"),
    ):
        with pytest.raises(InputError, match=message):
            named(text, where)
