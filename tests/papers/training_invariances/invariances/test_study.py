import numpy as np
import pytest
import torch
from bench.growth import embedded
from in_memory import tables_of
from scipy.optimize import linprog

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.papers.training_invariances.invariances.assumptions import largest_margins
from runner.papers.training_invariances.invariances.config import SMALLEST_DEPTH, Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow, Objective, unit
from runner.papers.training_invariances.invariances.graphs import SHARE
from runner.papers.training_invariances.invariances.network import build
from runner.papers.training_invariances.invariances.problem import INPUT_NORM, SIDE, draw_examples
from runner.papers.training_invariances.losses import MARGIN_LOSSES, log_losses

LAYERED = [name for name in SMALLEST_DEPTH if name not in SHARE]

TINY = {
    "width": 6,
    "channels": 3,
    "samples": 8,
    "learning_rates": [0.02, 0.01],
    "time": 0.4,
    "records": 2,
    "replicates": 2,
}


def tables(**changes):
    return tables_of(Invariances(**TINY | changes))


@pytest.mark.parametrize("data", ["gaussian", "digits"])
def test_examples_are_separable_balanced_and_of_the_stated_norm(data):
    x, y = draw_examples(Invariances(data=data, replicates=4, samples=40), embedded)
    assert x.shape == (4, 40, SIDE**2) and (y.sum(-1) == 0).all()
    torch.testing.assert_close(
        x.square().sum(-1).mean(-1).sqrt(), torch.full((4,), INPUT_NORM).double()
    )
    for inputs, labels in zip(x.numpy(), y.numpy(), strict=True):
        constraints = -labels[:, None] * inputs
        free = (None, None)
        solved = linprog(
            np.zeros(SIDE**2), A_ub=constraints, b_ub=-np.ones(len(labels)), bounds=free
        )
        assert solved.status == 0


def test_replicates_have_examples_of_their_own_that_stay_when_there_are_more():
    for data in ("gaussian", "digits"):
        few, _ = draw_examples(Invariances(data=data, replicates=2), embedded)
        many, _ = draw_examples(Invariances(data=data, replicates=4), embedded)
        assert torch.equal(few, many[:2])
        assert not torch.equal(few[0], few[1])


def test_more_digits_than_there_are():
    with pytest.raises(InputError, match="samples=2000: half of the samples .* there are only"):
        draw_examples(Invariances(data="digits", samples=2000), embedded)


@pytest.mark.parametrize("slope", [0.0, 0.2])
def test_a_convolution_is_torch_s(slope):
    network = build("conv", 6, 5, channels=3, side=8, slope=slope)
    theta = torch.stack([network.draw(1.0, 0.5, 0.25, generator(0, r, "t")) for r in range(2)])
    for block, weights in zip(network.layers[:3], network.unpack(theta)[:3], strict=True):
        grid = block.source
        a = torch.randn(2, 4, grid.features, dtype=torch.float64)
        out, _ = block.forward(weights, a)
        for replicate in range(2):
            image = a[replicate].view(4, grid.channels, grid.side, grid.side)
            z = torch.nn.functional.conv2d(
                image, weights["W"][replicate], stride=block.stride
            ).flatten(1)
            expected = z if block.is_linear else torch.nn.functional.leaky_relu(z, slope)
            torch.testing.assert_close(out[replicate], expected)


@pytest.mark.parametrize("architecture", LAYERED)
def test_every_architecture_has_its_depth_and_one_output(architecture):
    for depth in (SMALLEST_DEPTH[architecture], 9):
        network = build(architecture, depth, 5, 3, SIDE, 0.0)
        assert len(network.layers) == depth and network.layers[-1].width == 1
        for before, behind in zip(network.layers, network.layers[1:], strict=False):
            assert before.target == behind.source


def test_logarithms_of_losses():
    z = torch.linspace(-50, 29, 60, dtype=torch.float64)[None]
    for loss in ("logistic", "exponential"):
        torch.testing.assert_close(log_losses(z, loss).exp(), MARGIN_LOSSES[loss](z))
    far = torch.tensor([[40.0, 1e6]], dtype=torch.float64)
    torch.testing.assert_close(log_losses(far, "logistic"), -far)


@pytest.mark.parametrize("architecture", LAYERED)
def test_rows_of_every_architecture(architecture):
    found = tables(architecture=architecture)
    metrics, lowrank = found["metrics"], found["lowrank"]
    assert len(lowrank) == 3 * 4 * 6 and (metrics.query("time == 0")["drift"] == 0).all()
    conserved = metrics.query("promised and entries > 0 and time == 0.4")
    assert (conserved["drift"] < 1e-3).all()
    moved = metrics.query("not promised")["drift"] > 1e-4
    assert moved.any() or architecture == "linear"
    assert (lowrank["operator_ratio"] > 0).all() and (lowrank["operator_ratio"] < 1 + 1e-12).all()
    assert not (lowrank["alignment"] > 1 + 1e-12).any()
    assert (lowrank["alignment"].isna() == (lowrank["layer"] == 6)).all()
    assert lowrank.query("layer == 6")["operator_ratio"].to_numpy() == pytest.approx(1)


@pytest.mark.parametrize("architecture", SHARE)
def test_rows_of_every_graph(architecture):
    found = tables(architecture=architecture, width=8, learning_rates=[0.02, 0.01, 0.005])
    assert "lowrank" not in found and "assumptions" not in found
    metrics = found["metrics"]
    assert set(metrics["pair"]) >= {"diagonal", "full", "layer", "less an edge"}
    finest = metrics.query("learning_rate == 0.005 and time == 0.4")
    assert (finest.query("promised and entries > 0")["drift"] < 1e-4).all()
    beside = finest.query("place == 'beside frozen'")
    assert (beside["drift"] > 1e-4).all() and not beside["promised"].any()


def test_a_replicate_has_its_own_graph_at_every_rate():
    keys = ["replicate", "learning_rate", "time", "layer", "place", "pair", "linear"]
    many = tables(architecture="random_graph")["metrics"]
    alone = {"replicates": 1, "learning_rates": [0.01]}
    one = tables(architecture="random_graph", **alone)["metrics"]
    one = one[~one["pair"].isin(["active", "mixed"])]  # of a pattern at every rate
    both = one.merge(many, on=keys, suffixes=("", "_many"))
    assert len(both) == len(one)
    np.testing.assert_allclose(both["initial"], both["initial_many"], rtol=1e-12)
    np.testing.assert_allclose(both["drift"], both["drift_many"], rtol=1e-6, atol=1e-15)
    assert many.query("pair == 'full' and linear")["initial"].nunique() > 1


def test_the_margin_of_a_linear_network_grows_towards_the_largest():
    options = {"architecture": "linear", "normalized_time": True, "learning_rates": [0.05]}
    found = tables(time=10.0, **options)["assumptions"].set_index("time")["margin"]
    first, last = found[0.0].to_numpy(), found[10.0].to_numpy()
    assert (first < last).all() and (last <= 1 + 1e-9).all() and (last > 0.5).all()
    assert tables()["assumptions"]["margin"].isna().all()


def test_the_largest_margin_is_that_of_the_hard_svm():
    """Of two points: the distance of the segment between y x and y' x' from the origin."""
    two = torch.tensor([[[3.0, 0.0], [0.0, -4.0]]]).double()
    margin = largest_margins(two, torch.tensor([[1.0, -1.0]]).double())
    assert float(margin) == pytest.approx(3 * 4 / 5)


@pytest.mark.parametrize("twins", [0.25, 0.5])
def test_active_neurons_are_on_for_every_example_and_twins_for_the_same(twins):
    x, _ = draw_examples(Invariances(replicates=1), embedded)
    network = build("relu_then_linear", 6, 16, 8, SIDE, 0.0)
    theta = network.draw(1.0, 0.5, twins, generator(0, 0, "initialisation"))[None]
    active = torch.stack([z > 0 for z in network.forward(theta, x)[1]])
    assert active[..., :8].double().mean() > 0.99
    if twins == 0.5:
        on = active[..., 8:].double()
        assert (on[..., ::2] == on[..., 1::2]).double().mean() > 0.95
        assert 0.05 < on.mean() < 0.95


def test_pairs_of_a_mixed_pattern_and_the_tables_of_the_assumptions():
    found = tables(width=16, samples=12, time=1.0)
    assert "decomposition" not in found
    entries = found["metrics"].query("layer == 1").groupby("pair")["entries"].last()
    assert entries["mixed"] > 0 and entries["active"] >= 8 * 7
    assumed = found["assumptions"]
    assert len(assumed) == 3 * 4
    assert ((assumed["turned"] > 0) == (assumed["time"] > 0)).all()
    assert assumed["sign_changes"].between(0, 0.5, inclusive="left").all()
    assert assumed["off"].between(0, 1, inclusive="left").all() and (assumed["smallest"] > 0).all()


def test_a_small_network_is_compared_with_its_tree():
    found = tables(depth=4, width=3, time=0.4, records=1)["decomposition"]
    assert list(found["time"]) == [0.0, 0.4] * 2 and (found["paths"] == 64 * 27).all()
    assert (found["error"] < 1e-12 * found["output"].clip(lower=1)).all()
    start = found.query("time == 0")
    assert (start["frozen_error"] == start["error"]).all()


def test_a_replicate_and_a_rate_alone_give_the_numbers_of_the_stack():
    """Equality up to the rounding of batched products."""
    stack = tables()["lowrank"]
    alone = tables(replicates=1, learning_rates=[0.01])["lowrank"]
    both = alone.merge(stack, on=["replicate", "learning_rate", "time", "layer"])
    assert len(both) == 3 * 6
    for column in ("frobenius", "log_loss"):
        np.testing.assert_allclose(both[f"{column}_x"], both[f"{column}_y"], rtol=1e-12)


def test_the_normalized_clock_moves_at_unit_speed_and_never_slows_down():
    options = {"architecture": "linear", "normalized_time": True, "learning_rates": [0.1]}
    last = tables(time=8.0, **options)["lowrank"].query("time == 8")
    assert last["frobenius"].min() > 1 and last["log_loss"].max() < -10
    assert np.isfinite(last[["log_loss", "log_flow_time"]]).all(axis=None)


def test_a_network_that_is_off_for_every_example_stays_where_it_is():
    """The gradient is zero and has no direction: the normalized clock must not make nan of it."""
    network = build("relu_then_linear", 6, 4, 3, SIDE, 0.0)
    theta = -network.draw(1.0, 1.0, 0.0, generator(0, 0, "t")).abs()[None]
    x, y = draw_examples(Invariances(replicates=1, data="digits"), embedded)
    flow = Flow(Objective(network, x, y, "logistic"), theta.clone(), [0.1], "rk4", normalized=True)
    flow.advance(0.5)
    assert torch.equal(flow.theta, theta)


def test_unit_vectors_of_gradients_whose_squares_underflow():
    g = torch.tensor([[3e-250, 4e-250], [0.0, 0.0], [3.0, -4.0]], dtype=torch.float64)
    direction, log_norm = unit(g)
    expected = torch.tensor([[0.6, 0.8], [0.0, 0.0], [0.6, -0.8]], dtype=torch.float64)
    torch.testing.assert_close(direction, expected)
    assert float(log_norm[0]) == pytest.approx(np.log(5) - 250 * np.log(10))
    assert float(log_norm[2]) == pytest.approx(np.log(5))


def test_what_is_assumed_of_weights_that_are_nan_is_nan():
    found = tables(learning_rates=[1e9], time=4e10, records=4)["assumptions"]
    assert found[["sign_changes", "turned", "smallest", "off"]].iloc[-1].isna().all()
    assert found[["sign_changes", "off"]].iloc[0].notna().all()
