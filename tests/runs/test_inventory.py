"""What a run's folder shows: how far it is, whether it lives, and which runs are meant."""

import json
import time
from pathlib import Path

import pytest
from some_runs import METHODS, one, say

from runner.core.errors import InputError
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import lock
from runner.runs.inventory import QUEUED, describe, find, in_queue
from runner.runs.selection import Selection, choosing, is_one_of, named, parse_where, titles


@pytest.fixture
def folder(outputs) -> Path:
    return one(outputs, target_width=2)


def test_a_complete_run_shows_what_it_is(folder):
    found = describe(folder)
    assert (found.study, found.status, found.is_stale) == ("bn_only", "complete", False)
    assert found.knobs.startswith("target_width=2,") and found.folder.name.endswith(found.hash8)
    assert found.seconds > 0 and abs(found.ended.timestamp() - time.time()) < 600
    assert found.run.tables()["metrics"].shape[0] > 0


def test_names_begin_with_what_differs_and_name_a_swept_parameter_at_its_default():
    default = BnOnly().target_width
    sweep = [BnOnly(seed=1, target_width=width, replicates=3) for width in (default, 4)]
    assert titles(sweep) == [f"target_width={d},seed=1,replicates=3" for d in (default, 4)]
    assert titles(sweep, shared=False) == [f"target_width={d}" for d in (default, 4)]
    assert titles(sweep[:1], shared=False) == ["seed=1,replicates=3"]
    assert titles([BnOnly()]) == ["(defaults)"]


def test_names_are_short_where_runs_differ_in_more_than_a_sweep():
    others = [BnOnly(seed=1), BnOnly(target_width=4, replicates=3)]
    assert titles(others) == ["seed=1", "target_width=4,replicates=3"]


def test_names_of_several_studies_tell_these_apart():
    runs = [BnOnly(seed=1), Example20(grid=3), BnOnly(seed=2)]
    assert titles(runs, shared=False) == ["bn_only seed=1", "example20", "bn_only seed=2"]
    assert titles(runs) == ["seed=1", "grid=3", "seed=2"]


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


@pytest.mark.parametrize(
    ("value", "text", "is_meant"),
    [
        (32, "32", True),
        (32, "32.0", True),
        (32.0, "32", True),
        (0.1, "1e-1", True),
        (32, "8,16,32", True),
        (32, "8,16", False),
        (2**63 - 1, str(2**63 - 1), True),
        (32, "many", False),
        (True, "true", True),
        (1, "true", False),
        (True, "1", False),
        (None, "null", True),
        (None, "0", False),
        ("digits", "digits", True),
        ("digits", "cifar10,digits", True),
        (["sgd", "dense"], "[sgd,dense]", True),
        (["sgd", "dense"], "sgd, dense", True),
        (["sgd", "dense"], "[dense,sgd]", False),
        (["sgd"], "[sgd,dense]", False),
        (["sgd"], "[sgd,dense],[sgd]", True),
        ([0.1, 1], "[1e-1,1.0]", True),
    ],
)
def test_values_are_compared_by_their_type(value, text, is_meant):
    assert is_one_of(value, text) == is_meant


def test_a_selection_means_what_fits_all_of_it(outputs):
    found = find(outputs)

    def chosen(**options):
        return [each.knobs for each in Selection(**options).choose(found)]

    assert len(chosen()) == 4 and len(chosen(studies=("bn_only",))) == 3
    assert len(chosen(where=parse_where(["target_width=3.0"]))) == 2
    narrower = parse_where(["target_width=3", "methods=[sgd]"])
    assert len(chosen(where=narrower)) == 1
    assert chosen(where=narrower, statuses=("failed",)) == []
    say(one(outputs, target_width=2), "failed")
    found = find(outputs)
    assert len(chosen(statuses=("failed", "dead"))) == 1
    assert chosen(stale=True) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"studies": ("bn_onyl",)}, "did you mean 'bn_only'"),
        ({"statuses": ("complet",)}, "did you mean 'complete'"),
        ({"where": (("target_widht", "3"),)}, "did you mean 'target_width'"),
        ({"where": (("target_width", "3"),), "studies": ("example20",)}, "parameter of example20"),
    ],
)
def test_what_does_not_exist_is_explained(outputs, options, message):
    with pytest.raises(InputError, match=message):
        Selection(**options).choose(find(outputs))


def test_text_that_is_no_pair_is_explained():
    with pytest.raises(InputError, match="key=value is needed"):
        parse_where(["depth"])


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


def test_a_short_selection_is_found_that_chooses_the_runs_of_a_sweep(outputs):
    found = [each for each in find(outputs) if each.study == "bn_only"]
    runs = {each.folder: each.run for each in found}
    two = [runs[one(outputs, target_width=3, methods=text)] for text in ("[sgd]", METHODS)]
    chosen = choosing(two, found)
    assert chosen.where == (("target_width", "3"),)
    assert {each.folder for each in chosen.choose(found)} == {run.folder for run in two}
    single = choosing(two[:1], found)
    assert [each.folder for each in single.choose(found)] == [two[0].folder]
    assert choosing(list(runs.values()), found).words == ["--study", "bn_only"]
