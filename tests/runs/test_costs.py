"""What is said of the time of a command before it computes, and of the choice of learning rates."""

import json

import pytest
from in_process import order_of

from runner.core.catalogue import configs
from runner.runs import costs
from runner.runs.jobs import complete


@pytest.fixture
def stored(monkeypatch):
    """The reference has two runs of the study: one trains, one does not."""
    name = "rank_collapse seed=30,depth=16,epochs=75,selection_replicates=1,replicates=3"
    times = {
        name: {"seconds": 50.0, "cpu_seconds": 40.0, "device": "cpu"},
        f"{name},train=False": {"seconds": 2.0, "cpu_seconds": 1.0, "device": "cpu"},
        "rank_collapse train=False,data=gaussian": {"seconds": 9.0, "device": "cuda"},
    }
    monkeypatch.setattr(costs, "of_reference", lambda: times)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        (["depth=16"], 40),
        (["depth=32"], 80),
        (["depth=32", "learning_rates=[0.03]"], 80 * 3 / 7),
        (["depth=16", "replicates=10"], 80),
        (["depth=16", "train=false"], 1),
    ],
)
def test_the_time_of_a_new_run_is_that_of_a_similar_one(stored, words, seconds):
    (job,) = order_of("study=rank_collapse", *words).jobs
    assert costs.similar(job.config)["seconds"] == pytest.approx(seconds)


def test_no_time_is_said_without_a_similar_run(stored):
    words = ["protocol=authors", "init=gain", "activation=tanh", "width=16"]
    (job,) = order_of("study=rank_collapse", *words[2:], "skip=0.5", "normalizations=[layer]").jobs
    assert costs.similar(job.config) == {"device": ""}
    (job,) = order_of("study=example20").jobs
    assert costs.similar(job.config) == {"device": ""}


def test_a_time_that_the_reference_lacks_is_that_of_the_users_similar_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(costs, "of_reference", dict)
    words = ["study=example20", "scale=smoke", "depths=[4]", "device=cpu", f"outputs={tmp_path}"]
    jobs = order_of(*words, "seed=0,1,2", multirun=True).jobs
    assert costs.announcement(jobs, abreast=1) == ""
    complete(jobs[0])
    path = jobs[0].run.folder / "provenance.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"seconds": 300.0}))
    told = "about 15 min (from times of similar runs)"
    assert costs.announcement(jobs, abreast=1) == told
    path.write_text(json.dumps(json.loads(path.read_text()) | {"device": "cuda"}))
    assert costs.announcement(jobs, abreast=1) == "", "a GPU took this time"


@pytest.mark.parametrize("words", [["scale=smoke"], ["width=512", "samples=8192"]])
def test_a_run_of_quite_other_sizes_is_not_similar(stored, words):
    (job,) = order_of("study=rank_collapse", *words).jobs
    assert costs.similar(job.config) == {"device": ""}
    (job,) = order_of("study=rank_collapse", "width=32").jobs
    assert costs.similar(job.config)["device"] == "cpu"


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (
            ["study=rank_collapse"],
            "part of it chooses learning rates: learning_rates=[0.03] or train=false skips this",
        ),
        (["study=rank_collapse", "learning_rates=[0.03]"], ""),
        (["study=rank_collapse", "train=false"], ""),
        (["study=rank_collapse", "protocol=authors"], ""),
        (["study=breaking_bn", "learning_rates=[0.1,0.2]"], "learning_rates=[0.1] skips this"),
        (["study=norm_finetuning"], "learning_rates=[0.3] skips this"),
        (["study=pretraining", "protocol=text"], "skips this"),
        (["study=pretraining"], ""),
        (["study=example20"], ""),
    ],
)
def test_every_study_that_chooses_learning_rates_says_how_to_skip_it(words, note):
    jobs = order_of(*words).jobs
    said = costs.choice_note(list(jobs))
    assert said.endswith(note) if note else not said


def test_the_advice_leaves_nothing_to_choose():
    for config_class in configs().values():
        config = config_class()
        if grids := config.grids():
            single = {name: [grid[0]] for name, grid in grids.items()}
            assert not config_class(**single).grids()
