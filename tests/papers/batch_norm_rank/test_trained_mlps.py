"""The study `rank_collapse` and what networks are measured by: rows, ranks, choice of rates."""

import dataclasses

import pandas as pd
import pytest
import torch
from bench.growth import embedded

from runner.core.errors import InputError
from runner.core.progress import Progress
from runner.core.streams import generators
from runner.core.studies import Context
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.measures import (
    ranks,
    ranks_by_layer,
    root_mean_square,
)
from runner.papers.batch_norm_rank.rank_collapse import study as rank_collapse
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse

TINY = {"depth": 3, "width": 12, "samples": 40, "epochs": 2, "replicates": 2, "batch_size": 128}
TINY |= {"learning_rates": [0.1, 0.3], "selection_replicates": 1}
CONFIG = RankCollapse(**TINY)


def tables(study, config, restored=None, checkpoint=lambda make_state: None):
    context = Context(torch.device("cpu"), restored, Progress, checkpoint, embedded)
    found: dict[str, list] = {}
    for row in study.run(config, context):
        found.setdefault(row.table, []).append(dataclasses.asdict(row))
    return {name: pd.DataFrame(rows) for name, rows in found.items()}


def gaussian(replicates: int, d: int, N: int, dtype=torch.float64) -> torch.Tensor:
    return torch.randn(replicates, d, N, generator=torch.Generator().manual_seed(0)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_ranks_are_those_of_the_theory_and_of_torch(dtype):
    H = gaussian(3, 7, 20, dtype)
    H[1] = H[1, :1] * torch.arange(1, 8)[:, None]
    H[2, 4:] = H[2, :3]
    measured = ranks(H)
    assert measured.matrix_rank.tolist() == [7, 1, 4]
    scaled = H * (7 / theory.trace(theory.second_moment(H))).sqrt()[:, None, None]
    assert measured.soft_rank.tolist() == theory.soft_rank(scaled, 0.5).tolist()
    torch.testing.assert_close(
        measured.rank_bound, theory.rank_bound(H.double()), rtol=1e-4, atol=0
    )


def test_a_matrix_that_is_not_finite_has_no_rank():
    H = gaussian(3, 4, 9)
    H[1, 2, 3] = torch.inf
    measured = ranks(H)
    assert measured.matrix_rank[0] == 4 and measured.rank_bound[1].isnan()
    assert measured.soft_rank.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_root_mean_square_has_no_range(dtype):
    H = gaussian(3, 4, 9, dtype)
    plain = H.double().square().mean(dim=(1, 2)).sqrt()
    for scale in (2.0**-100, 1.0, 2.0**100, *([2.0**-900, 2.0**900] * (dtype == torch.float64))):
        assert torch.equal(root_mean_square(scale * H), scale * plain)
    H[0], H[1, 0, 0] = 0, torch.inf
    sizes = root_mean_square(H)
    assert sizes[0] == 0 and not sizes[1].isfinite()








def test_rates_are_chosen_on_replicates_of_their_own():
    """What is judged is what a run at the chosen rate alone would give, and says what it was
    chosen on."""
    config = dataclasses.replace(CONFIG, learning_rates=[1e-3, 0.3])
    found = tables(rank_collapse, config)
    training, keys = found["training"], ["normalization"]
    assert set(training["selected_on"]) == {"replicates 2"}
    # One selection replicate: its mean over epochs is the worst of them.
    mean = found["selection"].groupby([*keys, "learning_rate"])["train_accuracy"].mean()
    trained = training[[*keys, "learning_rate"]].itertuples(index=False, name=None)
    assert set(trained) == set(mean.groupby(keys).idxmax())
    fixed = dataclasses.replace(config, learning_rates=[0.3])
    alone = tables(rank_collapse, fixed)
    assert "selection" not in alone and set(alone["training"]["selected_on"]) == {"one rate alone"}
    pd.testing.assert_frame_equal(alone["metrics"], found["metrics"], rtol=1e-4)
    both = training.merge(alone["training"], on=[*keys, "replicate", "learning_rate", "epoch"])
    assert len(both) and (both["train_accuracy_x"] - both["train_accuracy_y"]).abs().max() < 0.02


def test_a_rate_at_which_all_diverge_is_never_chosen_and_the_smallest_is_where_every_one_does():
    """What has diverged still hits the first class, which is no reason to choose it."""
    config = dataclasses.replace(CONFIG, normalizations=["none"], learning_rates=[1e30, 1e-9])
    training = tables(rank_collapse, config)["training"]
    assert set(training["learning_rate"]) == {1e-9}
    config = dataclasses.replace(config, learning_rates=[1e31, 1e30])
    training = tables(rank_collapse, config)["training"]
    assert set(training["learning_rate"]) == {1e30}
    assert set(training["selected_on"]) == {"replicates 2: all rates diverged"}


def fresh(depth=6, width=16, replicates=2) -> MLP:
    sizes = [10, *[width] * depth, 3]
    return MLP(*draw("pytorch", sizes, generators(0, replicates, "w"), torch.float64))


def inputs(replicates=2, N=32) -> torch.Tensor:
    stream = torch.Generator().manual_seed(1)
    return torch.randn(replicates, N, 10, generator=stream, dtype=torch.float64)


def off() -> MLP:
    """Two networks of which the second is off from its second layer on."""
    network = fresh(depth=3)
    network.parameters["W2"][1], network.parameters["b2"][1] = 0.0, 0.0
    network.parameters["b3"][1] = 0.0
    return network


def test_a_network_that_is_off_has_rank_zero_in_all_later_layers():
    network = off()
    for layer in range(1, 5):
        network.parameters[f"b{layer}"].zero_()
    layers = dict(ranks_by_layer(network, inputs(), 0.5))
    for layer in (2, 3):
        for column in ("matrix_rank", "soft_rank", "root_mean_square"):
            assert layers[layer][column][1] == 0
        assert layers[layer]["rank_bound"][0] > 1 and layers[layer]["root_mean_square"][0] > 0
    assert layers[1]["matrix_rank"][1] > 1


def test_more_samples_than_images_are_refused():
    with pytest.raises(InputError, match="samples=2000: digits has 1536 training images"):
        tables(rank_collapse, dataclasses.replace(CONFIG, samples=2000))
