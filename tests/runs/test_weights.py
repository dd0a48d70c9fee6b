"""Trained weights that are kept, and measurements of one's own, wherever a run was stopped."""

import math
import re

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from samples import samples
from stopped import bytes_of, compute_with_stops, interrupted
from tiny import tiny
from torch.nn.functional import cross_entropy

from runner.commands.runs import main as runs_command
from runner.core.catalogue import configs, paper_folder
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import TrainingConfig
from runner.data.datasets import load
from runner.papers.bottleneck_structure.bottleneck import study as bottleneck
from runner.papers.training_invariances.low_rank_training import study as low_rank
from runner.runs import cleaning, inventory, provenance
from runner.runs.execution import execute
from runner.runs.run import WEIGHTS, Run, kept_notes

TRAINING = [name for name, each in configs().items() if issubclass(each, TrainingConfig)]
CHEAP = ("bn_only", "rank_collapse", "bottleneck", "low_rank_training")
"""The study of each paper that `make test` has."""
MEASURE = f"{__name__}:sizes"
SEVERAL = {"learning_rates": [0.03, 0.1], "selection_replicates": 1, "epochs": 2}


def sizes(tensors: dict[str, torch.Tensor]) -> dict[str, float]:
    """A measurement of one's own; what it does to the tensors is nothing to the run."""
    found = {name: float(tensor.double().norm()) for name, tensor in tensors.items()}
    for tensor in tensors.values():
        tensor.zero_()
    return found


def settings(run: Run, **wishes) -> Settings:
    return Settings(outputs=str(run.folder.parents[2]), device="cpu", **wishes)


@pytest.mark.parametrize(
    "study", samples(sorted(TRAINING, key=lambda name: name not in CHEAP), paper_folder)
)
def test_they_are_the_same_wherever_the_run_was_stopped_and_change_no_table(
    study, tmp_path, monkeypatch
):
    plain = Run(tiny(study), tmp_path / "plain")
    compute_with_stops(plain, [], monkeypatch)
    runs = [Run(tiny(study, measure=MEASURE), tmp_path / name) for name in ("whole", "broken")]
    written = compute_with_stops(runs[0], [], monkeypatch, keep_weights=True)
    stops = sorted({1, (written + 1) // 2, written} - {0}) if written else []
    compute_with_stops(runs[1], stops, monkeypatch, keep_weights=True)
    whole, broken = map(bytes_of, runs)
    assert whole == broken
    assert {**bytes_of(plain), "measured.csv": whole["measured.csv"]} == whole
    ours, theirs = (load_file(run.folder / WEIGHTS) for run in runs)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0, equal_nan=True)
    measured = runs[0].tables()["measured"]
    last = measured[measured["time"] == measured.groupby("network")["time"].transform("max")]
    networks = [
        f"{n}/replicate={r}" for n, r in zip(last["network"], last["replicate"], strict=True)
    ]
    assert set(networks) == set(runs[0].weights())
    for network, row in zip(networks, last.itertuples(), strict=True):
        if (kept := ours.get(f"{network}/{row.quantity}")) is not None:
            assert float(kept.double().norm()) == pytest.approx(row.value, nan_ok=True)
    assert runs_command(["check", str(tmp_path / "whole")]) == 0


@pytest.mark.parametrize("changes", [{}, {"normalizations": ["batch_no_mean"], "skip": 0.5}])
@pytest.mark.parametrize("study", ["rank_collapse", "pretraining", "breaking_bn"])
def test_the_modules_have_the_recorded_losses_and_accuracies(study, changes, tmp_path):
    if changes and study != "rank_collapse":
        pytest.skip("of rank_collapse")
    own = {"protocol": "text", "batch_norm_rates": [0.03, 0.1]} if study == "pretraining" else {}
    run = Run(tiny(study, **{**SEVERAL, **own, **changes}), tmp_path)
    execute(run, settings(run, keep_weights=True))
    images = load("digits", {}, None, run.config.seed, None)
    images = images.reduced(run.config.train_images, torch.Generator)
    if study == "breaking_bn":
        images = images.resized(run.config.image_size)
    test = images.standardized().test
    inputs = test.pixels if study == "breaking_bn" else test.flat()
    rows = run.tables()["training"]
    rows = rows[rows["epoch"] == 2].set_index("replicate")
    for name, module in run.modules().items():
        kind, *_, replicate = name.split("/")
        of_it = rows.loc[[int(replicate.removeprefix("replicate="))]]
        column = "normalization" if study == "rank_collapse" else "method"
        of_it = of_it[of_it[column] == kind]
        if study == "pretraining":
            rate = re.search("learning_rate=([^/]*)", name)[1]
            of_it = of_it[of_it["learning_rate"] == float(rate)]
        (row,) = of_it.itertuples()
        with torch.no_grad():
            logits = module(inputs)
        loss = cross_entropy(logits.double(), test.labels).item()
        assert loss == pytest.approx(row.test_loss, rel=1e-5, nan_ok=True)
        right = (logits.argmax(1) == test.labels).double().mean().item()
        expected = float("nan") if math.isnan(loss) else right  # of a diverged network
        assert row.test_accuracy == pytest.approx(expected, abs=1.5 / len(test), nan_ok=True)


def test_those_of_paper_d_have_the_recorded_cost(tmp_path):
    run = Run(tiny("bottleneck", depths=[4, 3]), tmp_path)
    execute(run, settings(run, keep_weights=True))
    rows = run.tables()["metrics"].set_index(["depth", "replicate"])["train_cost"]
    for name, module in run.modules().items():
        _, depth, replicate = (part.partition("=")[2] for part in name.split("/"))
        task = bottleneck._task(run.config, int(replicate))
        with torch.no_grad():
            cost = (module(task.x.mT) - task.y.mT).square().sum(1).mean()
        assert float(cost) == pytest.approx(rows[int(depth), int(replicate)], rel=1e-9)


def test_those_without_a_module_have_the_recorded_loss_by_their_tensors(tmp_path):
    run = Run(tiny("low_rank_training", epochs=4), tmp_path)
    execute(run, settings(run, keep_weights=True))
    problem = low_rank.draw_problem(run.config, lambda *of: load(of[0], {}, None, *of[1:3]))
    rows = run.tables()["training"]
    rows = rows[rows["epoch"] == 4]
    found = run.weights()
    assert len(found) == len(rows)
    for row in rows.itertuples():
        (name,) = [
            n for n in found if f"/gain={row.gain}/" in n and n.endswith(f"={row.replicate}")
        ]
        x, y = (each[row.replicate][None] for each in (problem.x.float(), problem.y.float()))
        f = low_rank.outputs({n: W[None] for n, W in found[name].items()}, x)
        losses = low_rank.image_losses(f, y, run.config.loss_function)
        assert losses.double().mean().item() == pytest.approx(row.loss, rel=1e-6)
    with pytest.raises(InputError, match="has no module for its networks"):
        run.modules()


def test_a_run_without_them_says_how_to_get_them_and_another_attempt_leaves_none_behind(tmp_path):
    run = Run(tiny("bottleneck"), tmp_path)
    execute(run, settings(run))
    with pytest.raises(InputError, match="keep_weights=true force=true computes it again"):
        run.weights()
    (note,) = kept_notes([run], settings(run, keep_weights=True))
    assert "without keeping weights" in note and "force=true" in note
    execute(run, settings(run, keep_weights=True, force=True))
    assert run.weights() and not kept_notes([run], settings(run, keep_weights=True))
    assert cleaning.size_of(run.folder) > (run.folder / WEIGHTS).stat().st_size > 0
    execute(run, settings(run, force=True))
    assert not (run.folder / WEIGHTS).exists() and "weights" not in run.result


@pytest.mark.parametrize("content", [None, b"!"])
def test_weights_that_are_gone_or_damaged_are_noticed(tmp_path, content):
    run = Run(tiny("bottleneck"), tmp_path)
    execute(run, settings(run, keep_weights=True))
    path = run.folder / WEIGHTS
    path.unlink() if content is None else path.write_bytes(path.read_bytes()[:-1] + content)
    with pytest.raises(InputError, match="or they are damaged"):
        run.weights()
    (note,) = kept_notes([run], settings(run, keep_weights=True))
    assert "or lost them: force=true" in note


def test_a_checkpoint_without_weights_is_of_no_use_where_they_are_wanted(tmp_path, caplog):
    run = Run(tiny("breaking_bn", replicates=2, epochs=2), tmp_path)
    now = {"checkpoint_seconds": 0.0}
    with interrupted(after=3):
        execute(run, settings(run, **now))
    execute(run, settings(run, keep_weights=True, **now))
    assert "its checkpoint cannot be used (it has no weights to keep)" in caplog.text
    assert len(run.weights()) == 2


def test_weights_at_chosen_times_are_those_of_a_training_that_ends_there(tmp_path, caplog):
    runs = [Run(tiny("rank_collapse", epochs=epochs), tmp_path) for epochs in (1, 2)]
    execute(runs[0], settings(runs[0], keep_weights=True))
    now = {"checkpoint_seconds": 0.0, "keep_weights": [0, 1, 7]}
    with interrupted(after=3):
        execute(runs[1], settings(runs[1], **now))
    execute(runs[1], settings(runs[1], **now))
    ends, whole = runs[0].weights(), runs[1].weights(at=1)
    assert ends.keys() == whole.keys() == runs[1].weights().keys()
    for network, weights in ends.items():
        torch.testing.assert_close(whole[network], weights, rtol=0, atol=0)
        assert not torch.equal(runs[1].weights(0)[network]["W1"], weights["W1"])
        assert not torch.equal(runs[1].weights()[network]["W1"], weights["W1"])
    assert runs[1].modules(at=0).keys() == whole.keys()
    assert "no network was measured at 7" in caplog.text
    with pytest.raises(InputError, match="no weights at 3, only the last, 0, 1."):
        runs[1].weights(at=3)
    with pytest.raises(InputError, match="no weights at 1, only the last."):
        runs[0].weights(at=1)
    assert not kept_notes([runs[1]], settings(runs[1], keep_weights=[1]))
    assert kept_notes([runs[1]], settings(runs[1], keep_weights=[2]))
    assert runs_command(["check", str(tmp_path)]) == 0


def test_a_checkpoint_without_the_wanted_times_is_of_no_use(tmp_path, caplog):
    run = Run(tiny("rank_collapse", epochs=2), tmp_path)
    with interrupted(after=3):
        execute(run, settings(run, keep_weights=[1], checkpoint_seconds=0.0))
    execute(run, settings(run, keep_weights=[0, 1]))
    assert "its checkpoint cannot be used (it has no weights to keep)" in caplog.text
    assert run.weights(at=0) and run.weights(at=1)


def test_a_study_without_networks_says_so_in_a_line(tmp_path, caplog):
    run = Run(tiny("example20"), tmp_path)
    execute(run, settings(run, keep_weights=True))
    assert "example20 stores no weights: keep_weights=true has no effect" in caplog.text
    assert not kept_notes([run], settings(run, keep_weights=True))
    with pytest.raises(InputError, match="this study stores no weights"):
        run.weights()


def test_a_measurement_is_part_of_the_run_and_its_code_of_the_fingerprint(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "my_sizes.py"
    path.write_text("import my_helper\n\ndef size(tensors):\n    return len(tensors)\n")
    (tmp_path / "my_helper.py").write_text("")
    plain, own = (tiny("bottleneck", **each) for each in ({}, {"measure": "my_sizes:size"}))
    assert (
        "measure" not in plain.identity()
        and Run(plain, tmp_path).folder != Run(own, tmp_path).folder
    )
    run = Run(own, tmp_path / "outputs")
    before = run.code()
    assert before != Run(plain, tmp_path).code() == provenance.code_of("bottleneck")
    execute(run, settings(run))
    assert not run.is_stale() and run.provenance()["code"] == run.code() == before
    assert set(pd.read_csv(run.folder / "measured.csv")["quantity"]) == {"size"}
    provenance._sources["my_sizes"] = path.read_text() + "\nMORE = 1\n"
    provenance.code_of.cache_clear()
    (found,) = inventory.find(tmp_path / "outputs")
    assert run.is_stale() and found.is_stale
    del provenance._sources["my_sizes"]
    provenance.code_of.cache_clear()


@pytest.mark.parametrize(
    ("measure", "wrong"),
    [("sizes", "names no function: write module:function"), ("", "names no function")],
)
def test_what_names_no_function_is_refused(measure, wrong):
    with pytest.raises(InputError, match=wrong):
        tiny("bottleneck", measure=measure)
