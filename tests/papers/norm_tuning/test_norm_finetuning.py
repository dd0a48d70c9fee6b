"""What each arm trains, where it starts, and what is said of where it ends."""

import os
from dataclasses import replace
from itertools import product

import pandas as pd
import pytest
import torch
import warm
from bench.growth import lent
from in_memory import verdicts
from tiny import tiny

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.data.datasets import load
from runner.papers.norm_tuning.norm_finetuning import study
from runner.papers.norm_tuning.norm_finetuning.config import NormFinetuning

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


def test_it_runs_on_a_processor_without_avx512(tmp_path):
    """oneDNN reads the variable once, so the run needs a process of its own."""
    words = ["study=norm_finetuning", "scale=smoke", "start=pretrained", "arms=[low_rank]"]
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX2"}
    done = warm.run("-m", "runner", *words, f"outputs={tmp_path}", env=environment)
    assert done.returncode == 0, done.stderr


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


def tables_with(rate=0.3, **accuracies: float) -> dict[str, pd.DataFrame]:
    """Return the tables of networks of 8 and 20 layers, 4 and 16 channels.

    accuracies: of an arm, or of an arm at a depth: `norm_20=0.1`.
    """
    arms = {"norm": 0.7, "random_weights": 0.5, "last_layer": 0.6, "all": 0.6}
    rows = pd.DataFrame(
        [
            {"blocks": blocks, "width": width, "arm": arm, "replicate": replicate}
            | {"test_accuracy": accuracies.get(f"{arm}_{6 * blocks + 2}", accuracies.get(arm, own))}
            for blocks, width, (arm, own), replicate in product(
                (1, 3), (4, 16), arms.items(), range(8)
            )
        ]
    ).assign(
        start="random",
        run="run",
        data="digits",
        epoch=1,
        learning_rate=rate,
        trained=10,
        train_loss=0.1,
    )
    rows["test_accuracy"] += 0.05 * (rows["blocks"] > 1) + 0.05 * (rows["width"] > 4)
    tried = [rows.assign(learning_rate=tried_rate) for tried_rate in (0.1, 0.3, 1.0)]
    return {"training": rows, "metrics": rows, "selection": pd.concat(tried)}


@pytest.mark.parametrize(
    ("claim", "accuracies"),
    [
        ("norm-beats-random-weights", {"random_weights_20": 0.8}),
    ],
)
def test_each_statement_can_fail(claim, accuracies):
    assert set(verdicts("norm-finetuning", tables_with()).values()) == {"holds"}
    assert verdicts("norm-finetuning", tables_with(**accuracies))[claim] == "fails"


def test_a_rate_at_the_end_of_its_grid_decides_nothing():
    assert set(verdicts("norm-finetuning", tables_with(rate=1.0)).values()) == {"undecided"}
