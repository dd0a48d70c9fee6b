"""What a run's folder shows: how far it is, whether it lives, and which runs are meant."""

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from some_runs import METHODS, one, say

from runner.core.errors import InputError
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import lock
from runner.runs.inventory import QUEUED, describe, find, in_queue
from runner.runs.selection import _values, chosen, is_one_of, named, typed, words


@pytest.fixture
def folder(outputs) -> Path:
    return one(outputs, target_width=2)


def test_a_complete_run_shows_what_it_is(folder):
    found = describe(folder)
    assert (found.study, found.status, found.is_stale) == ("bn_only", "complete", False)
    assert found.knobs.startswith("target_width=2,") and found.folder.name.endswith(found.hash8)
    assert found.seconds > 0 and abs(found.ended.timestamp() - time.time()) < 600
    assert found.run.tables()["metrics"].shape[0] > 0


def test_a_run_of_other_code_is_stale(folder):
    about = json.loads((folder / "provenance.json").read_text())
    (folder / "provenance.json").write_text(json.dumps(about | {"code": "another"}))
    assert describe(folder).is_stale
    assert not describe(say(folder, "interrupted")).is_stale


@pytest.mark.parametrize("said", ["running", "complete"])
def test_begun_and_not_ended_is_running_with_a_living_process_and_dead_without(folder, said):
    say(folder, said)
    with lock.held(folder, wait=False, what="this"):
        assert describe(folder).status == "running" and describe(folder).ended is None
    assert describe(folder).status == "dead"
    assert describe(folder, is_queued=True).status == "running"


@pytest.mark.parametrize("said", ["interrupted", "failed"])
def test_what_has_ended_badly_says_so_until_a_process_takes_it_up(folder, said):
    say(folder, said)
    assert describe(folder).status == said
    with lock.held(folder, wait=False, what="this"):
        assert describe(folder).status == "running"


def test_a_folder_without_a_word_is_absent(folder):
    for path in folder.iterdir():
        path.unlink()
    found = describe(folder)
    assert (found.status, found.config, found.ended) == ("absent", None, None)
    assert found.seconds != found.seconds and found.knobs == folder.name.rpartition("-")[0]


def test_a_run_that_a_queue_may_have_is_not_dead(outputs, folder):
    say(folder, "running")
    note = outputs / QUEUED / "7.json"
    note.parent.mkdir(parents=True)
    label = str(folder.relative_to(outputs))
    note.write_text(json.dumps({"forced": False, "tasks": [[label]]}))
    assert in_queue(outputs) == {folder: note}
    assert {each.status for each in find(outputs) if each.folder == folder} == {"running"}
    note.write_text("{")
    assert in_queue(outputs) == {}


# ------------------------------------------------------------------------------ which are meant


CONFIG = BnOnly(batch_size=32, learning_rate=0.1, optimizer="adam", methods=["sgd", "dense"])


@pytest.mark.parametrize(
    ("text", "is_meant"),
    [
        ("batch_size=32", True),
        ("batch_size=32.0", True),
        ("batch_size=8,16,32", True),
        ("batch_size=8,16", False),
        ("batch_size=many", False),
        ("batch_size=true", False),
        ("learning_rate=1e-1", True),
        ("learning_rate=null", False),
        ("sparsity=null", False),
        ("optimizer=sgd,adam", True),
        ("methods=[sgd,dense]", True),
        ("methods=sgd, dense", True),
        ("methods=[dense,sgd]", False),
        ("methods=[sgd],[sgd,dense]", True),
    ],
)
def test_values_are_compared_by_their_type(folder, text, is_meant):
    found = replace(describe(folder), config=CONFIG)
    assert bool(chosen([found], where=[text])) == is_meant


@pytest.mark.parametrize("text", ["001", "1_0", "1e3", "null", "true", "a,b", "a: b", "it's", ""])
def test_a_text_is_found_by_what_is_typed_for_it(text):
    listed = _values("", typed(text))
    assert is_one_of(text, listed)
    assert not any(is_one_of(other, listed) for other in ("1", "10", "1000.0", "None", "True", "a"))


def test_a_selection_means_what_fits_all_of_it(outputs):
    say(one(outputs, target_width=2), "failed")
    found = find(outputs)
    assert len(chosen(found)) == 4 and len(chosen(found, ["bn_only"])) == 3
    assert len(chosen(found, where=["target_width=3", "methods=[sgd]"])) == 1
    assert len(chosen(found, statuses=["failed", "dead"])) == 1
    assert chosen(found, stale=True) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"studies": ["bn_onyl"]}, "did you mean 'bn_only'"),
        ({"statuses": ["complet"]}, "did you mean 'complete'"),
        ({"where": ["target_widht=3"]}, "did you mean 'target_width'"),
        ({"where": ["target_width=3"], "studies": ["example20"]}, "parameter of example20"),
        ({"where": ["target_width=[3"]}, "cannot be read"),
        ({"where": ["depth"]}, "key=value is needed"),
    ],
)
def test_what_does_not_exist_is_explained(outputs, options, message):
    with pytest.raises(InputError, match=message):
        chosen(find(outputs), **options)


def test_a_run_is_named_by_folder_name_hash_or_beginning(outputs, folder):
    hash8 = folder.name[-8:]
    for text in (str(folder), folder.name, f"bn_only/{folder.name}", hash8, hash8[:5]):
        assert named(text, outputs).folder == folder
    assert named("target_width=2", outputs).folder == folder
    assert named(str(folder), outputs / "runs").folder == folder, "wherever the outputs are"
    with pytest.raises(InputError, match="names 3 runs: bn_only [0-9a-f]{8}, "):
        named("target_width=", outputs)
    with pytest.raises(InputError, match="names no run"):
        named("nothing", outputs)


def test_the_options_of_a_sweep_choose_its_runs_alone(outputs):
    found = find(outputs)
    runs = [describe(one(outputs, target_width=3, methods=m)).run for m in ("[sgd]", METHODS)]
    assert words(runs, found) == ["--study", "bn_only", "--where", "target_width=3"]
    options = words(runs[:1], found)
    (only,) = chosen(found, options[1:2], where=options[3::2])
    assert only.folder == runs[0].folder
    everything = [each.run for each in found if each.study == "bn_only"]
    assert words(everything, found) == ["--study", "bn_only"]
