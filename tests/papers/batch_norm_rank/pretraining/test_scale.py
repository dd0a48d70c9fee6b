"""The control of scale: what its claims and its picture read from the tables."""

import pandas as pd
import pytest
from in_memory import verdicts

from runner.papers.batch_norm_rank.pretraining.tables import against_pretraining

LOSSES = {  # at depth 8, at depth 32
    "pretrained": (0.8, 0.9),
    "vanilla": (0.7, 1.8),
    "scale_matched": (0.6, 0.99),
    "batch_norm": (0.4, 1.2),
}
NAMES = {
    "batch_norm": "helps-against-batch-norm",
    "vanilla": "helps-against-nothing",
    "scale_matched": "helps-beyond-scale",
}


def told(changes=None, replicates=8, M=1000):
    """Return a table of training that tells these losses on two datasets; on the second they are
    ten times smaller. changes: losses on the second dataset, as on the first."""
    rows = []
    for data, factor in (("cifar10", 1.0), ("fashion_mnist", 0.1)):
        losses = LOSSES | ((changes or {}) if data == "fashion_mnist" else {})
        for method, (shallow, deep) in losses.items():
            for depth, loss in ((8, shallow), (16, (shallow + deep) / 2), (32, deep)):
                for replicate in range(replicates):
                    for epoch, share in enumerate((9.0, 1.5, 0.5)):  # the last two have mean 1
                        rows.append({
                            "run": f"{data} {depth}", "data": data, "depth": depth,
                            "protocol": "authors", "method": method,
                            "pretraining_steps": M * (method in ("pretrained", "scale_matched")),
                            "replicate": replicate, "judged": True, "learning_rate": 0.01,
                            "epoch": epoch, "train_loss": factor * (1 + replicate) * loss * share,
                        })  # fmt: skip
    return {"training": pd.DataFrame(rows)}


def test_losses_are_compared_on_the_same_dataset_depth_and_replicate():
    rows = against_pretraining(told()).set_index(["data", "depth", "method"])["ratio"]
    for data in ("cifar10", "fashion_mnist"):
        assert rows[data, 32, "scale_matched"].to_list() == pytest.approx([1.1] * 8)
        assert rows[data, 8, "batch_norm"].to_list() == pytest.approx([0.5] * 8)


@pytest.mark.parametrize("network", [*NAMES, None])
def test_the_deepest_networks_are_judged_and_one_dataset_refutes(network):
    changes = {network: (2.0, 0.8)} if network else None
    expected = {name: "fails" if key == network else "holds" for key, name in NAMES.items()}
    assert verdicts("rank-scale", told(changes=changes)) == expected


@pytest.mark.parametrize("options", [{"M": 999}, {"replicates": 4}])
def test_a_shorter_pre_training_or_four_replicates_decide_nothing(options):
    assert set(verdicts("rank-scale", told(**options)).values()) == {"undecided"}
