"""Study `rank_gradients`: what its rows hold, against gradients that are implemented by hand."""

import pytest
import torch
from in_memory import tables_of
from matplotlib.text import Text

from runner.papers.batch_norm_rank.measures import last_hidden
from runner.papers.batch_norm_rank.mlp_training import drawn_stack
from runner.papers.batch_norm_rank.rank_gradients.config import RankGradients
from runner.papers.batch_norm_rank.rank_gradients.figures import overview
from runner.papers.batch_norm_rank.rank_gradients.study import gaussian_batch
from runner.papers.batch_norm_rank.rank_gradients.tables import network_name
from runner.results.drawing import draw
from runner.training.backpropagation import gradients


@pytest.mark.parametrize("activation", ["relu", "linear"])
def test_gradients_are_those_of_back_propagation(activation):
    config = RankGradients(
        depths=[3, 4], widths=[5], samples=7, replicates=2, activation=activation
    )
    rows = tables_of(config)["metrics"].set_index(["normalization", "depth"])
    for normalization in ("none", "batch"):
        for depth in (3, 4):
            weights, data = (
                [config.stream(r, f"{part} L={depth} d=5") for r in range(2)]
                for part in ("weights", "data")
            )
            network = drawn_stack(
                [5] * (depth + 1) + [10], weights, normalization, "gain", activation
            )
            x, labels = map(torch.stack, zip(*(gaussian_batch(7, 5, s) for s in data), strict=True))
            r = [torch.linalg.svdvals(H).square() for H in last_hidden(network, x)]
            _, found = gradients(network, x, labels)
            expected = {
                "first_gradient": found["W1"].flatten(1).norm(dim=1),
                "last_gradient": found[f"W{depth}"].flatten(1).norm(dim=1),
                "rank_bound": torch.stack([s.sum() ** 2 / s.square().sum() for s in r]),
            }
            for column, values in expected.items():
                assert rows.loc[(normalization, depth), column].tolist() == pytest.approx(
                    values.tolist(), rel=1e-9
                )


def test_a_network_is_the_same_beside_others():
    """A width, a depth and a replicate draw the same numbers alone as with others."""
    together = tables_of(RankGradients(depths=[2, 3], widths=[4, 6], samples=5, replicates=3))
    alone = tables_of(RankGradients(depths=[3], widths=[6], samples=5, replicates=2))["metrics"]
    same = together["metrics"].query("width == 6 and depth == 3 and replicate < 2")
    assert same.reset_index(drop=True).equals(alone)


def test_networks_that_the_figure_does_not_have_are_drawn_with_their_names():
    config = RankGradients(depths=[2], widths=[8], samples=8, activation="tanh", replicates=1)
    rows = tables_of(config)["metrics"]
    shared = {"activation": "tanh", "init": config.init, "samples": 8}
    picture, drawn = draw(overview, {"metrics": rows.assign(**shared)})
    assert drawn["network"].tolist() == ["tanh, batch norm", "tanh, plain"]
    texts = {text.get_text() for text in picture.findobj(Text)}
    assert {"tanh, batch norm", "tanh, plain"} <= texts
    assert network_name("relu", "max_norm", "orthogonal") == "ReLU, max_norm, orthogonal weights"
