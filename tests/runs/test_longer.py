"""A longer run goes on from a shorter one, with the bytes of a run from the beginning."""

import pytest
import torch
from samples import samples
from stopped import bytes_of, interrupted
from tiny import tiny

from runner.commands.runs import main as runs_command
from runner.core import catalogue
from runner.core.settings import Settings
from runner.runs import longer
from runner.runs.execution import execute
from runner.runs.run import STATES, Run
from runner.training.classification import StackTrainer

RATES = {"learning_rates": [0.03, 0.1], "selection_replicates": 1}
CASES = {
    "rank_collapse": [RATES, {"protocol": "authors"}, {"optimizer": "adam"}],
    "pretraining": [{"protocol": "text", "batch_norm_rates": [0.03, 0.1], **RATES}, {}],
    "breaking_bn": [RATES],
    "norm_finetuning": [
        {"start": "pretrained", "arms": ["norm", "all"], **RATES},
        {"arms": ["norm"], "selection_epochs": 2, **RATES},
    ],
    "rank_or_size": [{}],
    "vgg_size": [RATES],
}
"""Parameters with which the studies that can go on are tried."""


def compute(run: Run, **wishes) -> dict[str, bytes]:
    execute(run, Settings(outputs=str(run.folder.parents[2]), device="cpu", **wishes))
    return bytes_of(run)


@pytest.fixture
def jumps(monkeypatch):
    """The folders of the shorter runs, one for each phase from which a run has gone on."""
    join, jumped = longer.Jump.join_tables, []

    def counted(self, *arguments):
        jumped.append(self.folder)
        return join(self, *arguments)

    monkeypatch.setattr(longer.Jump, "join_tables", counted)
    return jumped


def test_every_study_that_can_go_on_is_tried():
    assert {s for s in catalogue.studies() if catalogue.part_of(s, "longer")} == set(CASES)


@pytest.mark.parametrize(
    ("name", "changes"),
    samples(
        [(study, changes) for study, of in CASES.items() for changes in of], lambda study, _: study
    ),
)
def test_its_tables_are_those_of_a_run_from_the_beginning(name, changes, tmp_path, jumps):
    def run(epochs, folder):
        return Run(tiny(name, epochs=epochs, **changes), tmp_path / folder)

    compute(run(2, "a"), keep_checkpoint=True)
    ours = compute(run(3, "a"), keep_checkpoint=True)
    assert jumps, "it has not gone on"
    assert ours == compute(run(3, "b"))
    jumps.clear()
    ours = compute(run(5, "a"))
    assert {path.name for path in jumps} == {run(3, "a").folder.name}, "the longest"
    assert ours == compute(run(5, "b"))
    assert not [*run(5, "a").folder.glob(STATES.format("*"))]
    assert runs_command(["check", str(tmp_path / "a")]) == 0


def rank_collapse(epochs, folder, **changes):
    """A run in which the larger learning rate is the better one, however many epochs there are."""
    far = {"learning_rates": [1e-4, 0.1], "selection_replicates": 1, "normalizations": ["batch"]}
    return Run(tiny("rank_collapse", epochs=epochs, **far | changes), folder)


@pytest.mark.parametrize("stop", [1, 5, 9])
def test_an_interrupted_continuation_loses_nothing(stop, tmp_path, jumps):
    """Also where the states of the interrupted run are kept, for a run that is longer still."""
    now = {"checkpoint_seconds": 0.0, "keep_checkpoint": True}
    compute(rank_collapse(3, tmp_path), **now)
    with interrupted(after=stop):
        compute(rank_collapse(5, tmp_path), **now)
    broken = compute(rank_collapse(5, tmp_path), **now)
    assert len(jumps) == 2, "both phases went on"
    assert broken == compute(rank_collapse(5, tmp_path / "b"))
    ours = compute(rank_collapse(6, tmp_path))
    assert len(jumps) == 4 and ours == compute(rank_collapse(6, tmp_path / "b"))


def test_an_interrupted_run_that_keeps_its_states_is_continued_later(tmp_path, jumps):
    now = {"checkpoint_seconds": 0.0, "keep_checkpoint": True}
    for stop in (1, 3, 4):  # 2 steps in an epoch, 8 in a phase
        with interrupted(after=stop):
            compute(rank_collapse(4, tmp_path), **now)
    compute(rank_collapse(4, tmp_path), **now)
    ours = compute(rank_collapse(5, tmp_path))
    assert len(jumps) == 2 and ours == compute(rank_collapse(5, tmp_path / "b"))


def test_weights_of_a_longer_run_are_those_of_a_run_from_the_beginning(tmp_path, jumps, caplog):
    compute(rank_collapse(2, tmp_path), keep_checkpoint=True, keep_weights=[0, 1])
    compute(rank_collapse(3, tmp_path), keep_checkpoint=True, keep_weights=[0, 1, 3])
    compute(rank_collapse(3, tmp_path / "b"), keep_weights=[0, 1, 3])
    ours, theirs = (rank_collapse(3, folder) for folder in (tmp_path, tmp_path / "b"))
    assert len(jumps) == 2
    for at in (None, 0, 1, 3):
        for network, weights in theirs.weights(at).items():
            assert all(torch.equal(ours.weights(at)[network][n], W) for n, W in weights.items())
    compute(rank_collapse(4, tmp_path), keep_weights=[2])
    assert len(jumps) == 2 and "it has no weights at 2" in caplog.text


def test_it_says_why_it_begins_anew(tmp_path, jumps, caplog, monkeypatch):
    short = rank_collapse(2, tmp_path)
    compute(short)
    compute(rank_collapse(3, tmp_path))
    assert (
        f"does not go on from {short.folder.name}: it was computed without keep_checkpoint"
        in caplog.text
    )
    compute(rank_collapse(1, tmp_path))
    assert "epochs=3" in caplog.text and "it is longer" in caplog.text
    caplog.clear()
    compute(rank_collapse(4, tmp_path, optimizer="adam"))
    assert "go on" not in caplog.text, "another optimizer is another run"
    short = rank_collapse(2, tmp_path / "b")
    compute(short, keep_checkpoint=True)
    damaged = short.folder / STATES.format(1)
    whole = damaged.read_bytes()
    damaged.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    compute(rank_collapse(3, tmp_path / "b"))
    assert "its files are damaged" in caplog.text and not jumps
    assert runs_command(["check", str(tmp_path / "b")]) == 1
    for name, by in (("bottleneck", "steps"), ("bn_only", "epochs")):
        compute(Run(tiny(name, **{by: 8}), tmp_path), keep_checkpoint=True)
        assert "keep_checkpoint=true has no effect: its schedule (a cosine) or" in caplog.text
        caplog.clear()
        compute(Run(tiny(name, **{by: 9}), tmp_path))
        assert (
            f"its schedule (a cosine) or its times of measurement depend on the number of {by}"
            in (caplog.text)
        )


def test_a_schedule_that_depends_on_the_number_of_epochs_is_noticed(tmp_path, jumps, monkeypatch):
    """Even if a study promises that there is none."""
    train_on = StackTrainer.train_on

    def with_cosine(self, chosen):
        for group in self.groups.values():
            group.rates.mul_(1 - 0.5 * self.done / (self.epochs * self.steps))
        return train_on(self, chosen)

    monkeypatch.setattr(StackTrainer, "train_on", with_cosine)
    compute(rank_collapse(2, tmp_path), keep_checkpoint=True)
    ours = compute(rank_collapse(3, tmp_path))
    assert not jumps and ours == compute(rank_collapse(3, tmp_path / "b"))


def test_another_choice_of_the_learning_rate_begins_its_phase_anew(tmp_path, jumps):
    near = {**RATES, "normalizations": ["none", "batch"]}
    compute(rank_collapse(3, tmp_path, **near), keep_checkpoint=True)
    ours = compute(rank_collapse(5, tmp_path, **near))
    of_none = []
    for epochs in (3, 5):
        rows = rank_collapse(epochs, tmp_path, **near).tables()["training"]
        of_none.append(set(rows[rows["normalization"] == "none"]["learning_rate"]))
    assert of_none[0] != of_none[1] and len(jumps) == 1, "only the choice of rates goes on"
    assert ours == compute(rank_collapse(5, tmp_path / "b", **near))
