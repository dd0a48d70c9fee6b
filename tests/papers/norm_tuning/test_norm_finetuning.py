"""What each arm trains, where it starts, and what is said of where it ends."""

import os
import subprocess
import sys
from dataclasses import replace

import pandas as pd
import pytest
import torch
from bench.growth import lent
from tiny import tiny

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.data.datasets import load
from runner.papers.norm_tuning.norm_finetuning import study
from runner.papers.norm_tuning.norm_finetuning.config import NormFinetuning
from runner.results.claims import claims_of, judge

RANDOM = NormFinetuning(width=4)
PRETRAINED = NormFinetuning(width=4, start="pretrained")


@pytest.fixture(scope="module")
def digits():
    return load("digits", {}, None, 0, None).standardized()


def after_steps(config, arm, data, steps=3):
    """Which entries of a network's tensors training has changed, and its row."""
    task = study.Task(arm, 0)
    trainer = study.start(replace(config, batch_size=64), (data, data), {}, task, 0.5)
    network = trainer.network
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    for step in range(steps):
        trainer.train_on(trainer.order()[64 * step : 64 * (step + 1)])
    after = dict(network.named_parameters())
    return {name: before[name] != after[name] for name in before}, study.size_of(task, network)


@pytest.mark.parametrize(
    ("config", "arm", "trained"),
    [
        (RANDOM, "norm", (".1.scale", ".1.shift")),
        (RANDOM, "last_layer", ("classifier.",)),
        (RANDOM, "all", ("",)),
        (PRETRAINED, "norm", (".1.scale", ".1.shift", "classifier.")),
        (PRETRAINED, "biases", (".1.shift", "classifier.")),
        (PRETRAINED, "low_rank", (".down", ".up", "classifier.")),
    ],
)
def test_an_arm_changes_what_it_is_called_after_and_nothing_else(config, arm, trained, digits):
    changed, size = after_steps(config, arm, digits)
    own = {name for name in changed if any(part in name for part in trained)}
    assert {name for name, where in changed.items() if where.any()} == own
    assert size.trained == sum(changed[name].numel() for name in own)


def test_as_many_random_weights_are_two_of_each_channel(digits):
    changed, size = after_steps(RANDOM, "random_weights", digits, steps=10)
    convolutions = {name: where for name, where in changed.items() if where.ndim == 4}
    for where in convolutions.values():
        assert (where.flatten(1).sum(1) <= 2).all() and where.any()
    others = [where for name, where in changed.items() if name not in convolutions]
    assert not torch.cat([where.flatten() for where in others]).any()
    assert size.trained == after_steps(RANDOM, "norm", digits)[1].trained


def test_a_product_of_rank_one_changes_nothing_at_first(digits):
    x = digits.test.pixels[:8]
    plain, added = (
        study.start(PRETRAINED, (digits, digits), {}, study.Task(arm, 0), 0.5).network.eval()
        for arm in ("last_layer", "low_rank")
    )
    torch.testing.assert_close(added(x), plain(x))
    with torch.no_grad():
        layer = next(m for m in added.modules() if isinstance(m, torch.nn.Conv2d))
        (product,) = layer.parametrizations.weight
        product.up.fill_(1.0)
        kernel = layer.parametrizations.weight.original.clone()
        kernel[:, :, 1, 1] += product.up @ product.down
        torch.testing.assert_close(layer.weight, kernel)


def test_it_runs_on_a_processor_without_avx512():
    check = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    of_one_arm = [*check, "-k", "an_arm_changes and low_rank"]
    subprocess.run(of_one_arm, env=environment, check=True, capture_output=True)


def test_the_classes_are_learned_in_two_halves(digits):
    lower, upper = study.of_classes(digits, range(5)), study.of_classes(digits, range(5, 10))
    assert len(lower.train) + len(upper.train) == len(digits.train)
    assert set(upper.train.labels.tolist()) == set(lower.test.labels.tolist()) == {*range(5)}
    chosen = digits.train.labels >= 5
    assert torch.equal(upper.train.pixels, digits.train.pixels[chosen])
    assert torch.equal(upper.train.labels + 5, digits.train.labels[chosen])
    with pytest.raises(InputError, match=r"digits has no images of the classes \[10, 11\]"):
        study.of_classes(digits, range(10, 12))


def test_every_arm_starts_from_the_features_of_the_pretrained_network():
    config = tiny("norm_finetuning", start="pretrained", arms=["last_layer"], batch_size=16)
    kept = {}

    def keep(name, replicate, time, tensors):
        tensors = {tensor: value.clone() for tensor, value in tensors().items()}
        kept[name.partition("/")[0], replicate, time] = tensors
        return ()

    list(study.run(config, replace(lent(torch.device("cpu")), hand_over=keep)))
    for replicate in range(2):
        learned, start, end = (
            kept[each] for each in (("pretraining", replicate, 1), ("last_layer", replicate, 0),
                                    ("last_layer", replicate, 1))
        )  # fmt: skip
        weights = [name for name in learned if name.startswith("features") and "weight" in name]
        for name in weights:
            assert torch.equal(learned[name], start[name]) and torch.equal(start[name], end[name])
        drawn = study.ResNetForCifar(1, 5, config.blocks, config.width)
        study.initialize(drawn, "pytorch", generator(config.seed, replicate, "initialisation"))
        assert not torch.equal(drawn.features[0][0].weight, learned["features.0.0.weight"])


def test_rates_are_chosen_in_fewer_epochs_where_so_many_are_named():
    config = tiny("norm_finetuning", arms=["norm"], learning_rates=[0.1, 0.3], epochs=2)
    rows = {}
    for epochs in (None, 1):
        table = study.run(replace(config, selection_epochs=epochs), lent(torch.device("cpu")))
        rows[epochs] = pd.DataFrame([vars(row) | {"table": row.table} for row in table])
        trained = rows[epochs].query("table == 'training'")
        assert sorted(trained["epoch"]) == [1, 1, 2, 2]
    pilots = {epochs: of.query("table == 'selection'") for epochs, of in rows.items()}
    assert len(pilots[None]) == 2 * len(pilots[1]) and set(pilots[1]["epoch"]) == {1}
    first = pilots[None].query("epoch == 1").reset_index(drop=True)
    pd.testing.assert_frame_equal(first, pilots[1].reset_index(drop=True))
    with pytest.raises(InputError, match="selection_epochs=3 is above epochs=2"):
        replace(config, selection_epochs=3)




ACCURACY = {"norm": 0.7, "random_weights": 0.5, "last_layer": 0.6, "all": 0.6}


def verdicts(rate=0.3, **changed: float) -> pd.Series:
    """Of networks of 8 and 20 layers, 4 and 16 channels; `norm_20=.1`: at 20 layers."""
    keys = {"start": "random", "run": "run", "data": "digits"}
    training, metrics, selection = [], [], []
    for blocks in (1, 3):
        for width in (4, 16):
            for arm, accuracy in ACCURACY.items():
                own = {**keys, "blocks": blocks, "width": width, "arm": arm}
                layers, larger = 6 * blocks + 2, 0.05 * (blocks > 1) + 0.05 * (width > 4)
                right = changed.get(f"{arm}_{layers}", changed.get(arm, accuracy)) + larger
                selection += [{**own, "learning_rate": each} for each in (0.1, 0.3, 1.0)]
                for replicate in range(8):
                    row = {**own, "replicate": replicate, "epoch": 1, "learning_rate": rate}
                    metrics.append({**own, "replicate": replicate, "trained": 10})
                    training.append(row | {"train_loss": 0.1, "test_accuracy": right})
    tables = {"training": training, "metrics": metrics, "selection": selection}
    tables = {name: pd.DataFrame(rows) for name, rows in tables.items()}
    judged = judge("norm-finetuning", claims_of("norm-finetuning", "norm_finetuning"), tables)
    return judged.set_index("claim")["verdict"]


@pytest.mark.parametrize(
    ("claim", "changed"),
    [
        ("norm-beats-random-weights", {"random_weights": 0.8}),
        ("norm-beats-random-weights", {"random_weights_20": 0.8}),
        ("norm-grows", {"norm_20": 0.5}),
        ("square-width", {"all": 0.9}),
    ],
)
def test_each_statement_can_fail(claim, changed):
    assert (verdicts() == "holds").all()
    assert verdicts(**changed)[claim] == "fails"


def test_a_rate_at_the_end_of_its_grid_decides_nothing():
    assert (verdicts(rate=1.0) == "undecided").all()
