"""The study `rank_collapse` and what networks are measured by: rows, ranks, choice of rates."""

import dataclasses

import pandas as pd
import pytest
import torch
from in_memory import rows_of, tables_of

from runner.core.errors import InputError
from runner.core.streams import generators
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.papers.batch_norm_rank import theory
from runner.papers.batch_norm_rank.measures import (
    ranks,
    ranks_by_layer,
    root_mean_square,
)
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse

TINY = {"depth": 3, "width": 12, "samples": 40, "epochs": 2, "replicates": 2, "batch_size": 128}
TINY |= {"learning_rates": [0.1, 0.3], "selection_replicates": 1}
CONFIG = RankCollapse(**TINY)


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


def test_learning_rates_are_chosen_on_replicates_of_their_own():
    """The chosen rates give the same numbers as a run with these rates alone."""
    config = dataclasses.replace(CONFIG, learning_rates=[1e-3, 0.3])
    tables = tables_of(config)
    training, selection = tables["training"], tables["selection"]
    assert set(training["replicate"]) == set(tables["metrics"]["replicate"]) == {0, 1}
    assert set(selection["replicate"]) == {2} and set(training["selected_on"]) == {"replicates 2"}
    # One selection replicate: its mean over epochs is the worst of them.
    mean = selection.groupby(["normalization", "learning_rate"])["train_accuracy"].mean()
    trained = training[["normalization", "learning_rate"]].itertuples(index=False, name=None)
    assert set(trained) == set(mean.groupby("normalization").idxmax())
    alone = tables_of(dataclasses.replace(config, learning_rates=[0.3]))
    assert "selection" not in alone and set(alone["training"]["selected_on"]) == {"one rate alone"}
    pd.testing.assert_frame_equal(alone["metrics"], tables["metrics"], rtol=1e-4)
    keys = ["normalization", "replicate", "learning_rate", "epoch"]
    both = training.merge(alone["training"], on=keys)
    assert len(both) and (both["train_accuracy_x"] - both["train_accuracy_y"]).abs().max() < 0.02


@pytest.mark.parametrize(
    ("rates", "chosen", "selected_on"),
    [
        ([1e30, 1e-9], 1e-9, "replicates 2"),
        ([1e31, 1e30], 1e30, "replicates 2: all rates diverged"),
    ],
)
def test_a_rate_at_which_all_diverge_is_not_chosen_for_its_hits_of_the_first_class(
    rates, chosen, selected_on
):
    config = dataclasses.replace(CONFIG, normalizations=["none"], learning_rates=rates, epochs=1)
    training = tables_of(config)["training"]
    assert set(training["learning_rate"]) == {chosen}
    assert set(training["selected_on"]) == {selected_on}


def test_a_network_that_is_off_has_rank_zero_in_all_later_layers():
    weights, biases = draw("pytorch", [10, 16, 16, 16, 3], generators(0, 2, "w"), torch.float64)
    network = MLP(weights, [torch.zeros_like(b) for b in biases])
    network.parameters["W2"][1] = 0.0
    x = gaussian(2, 10, 32).mT
    layers = dict(ranks_by_layer(network, x, 0.5))
    for layer in (2, 3):
        for column in ("matrix_rank", "soft_rank", "root_mean_square"):
            assert layers[layer][column][1] == 0
        assert layers[layer]["rank_bound"][0] > 1 and layers[layer]["root_mean_square"][0] > 0
    assert layers[1]["matrix_rank"][1] > 1


def test_more_samples_than_images_are_refused():
    with pytest.raises(InputError, match="samples=2000: digits has 1536 training images"):
        rows_of(dataclasses.replace(CONFIG, samples=2000))
