
import numpy as np
import pytest
import torch
from bench.growth import Quiet, embedded
from scipy.optimize import linprog

from runner.core.errors import InputError
from runner.core.streams import generator
from runner.core.studies import Context
from runner.papers.training_invariances.invariances.assumptions import largest_margins
from runner.papers.training_invariances.invariances.config import SMALLEST_DEPTH, Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow, Objective, unit
from runner.papers.training_invariances.invariances.graphs import SHARE
from runner.papers.training_invariances.invariances.network import build
from runner.papers.training_invariances.invariances.problem import INPUT_NORM, SIDE, draw_examples
from runner.papers.training_invariances.invariances.study import run
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


def rows(restored=None, checkpoint=lambda make_state: None, **changes):
    context = Context(torch.device("cpu"), restored, Quiet, checkpoint, embedded)
    return list(run(Invariances(**{**TINY, **changes}), context))


def of(table, found):
    return [row for row in found if row.table == table]


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
    with pytest.raises(InputError, match="samples=2000: there are .* half of the samples"):
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


def test_active_neurons_are_on_for_every_example():
    config = Invariances(replicates=1)
    x, _ = draw_examples(config, embedded)
    network = build("relu_then_linear", 6, 16, 8, SIDE, 0.0)
    theta = network.draw(1.0, 0.5, 0.25, generator(0, 0, "initialisation"))[None]
    for z in network.forward(theta, x)[1]:
        assert (z[..., :8] > 0).float().mean() > 0.99


def test_logarithms_of_losses():
    z = torch.linspace(-50, 29, 60, dtype=torch.float64)[None]
    for loss in ("logistic", "exponential"):
        torch.testing.assert_close(log_losses(z, loss).exp(), MARGIN_LOSSES[loss](z))
    far = torch.tensor([[40.0, 1e6]], dtype=torch.float64)
    torch.testing.assert_close(log_losses(far, "logistic"), -far)


@pytest.mark.parametrize("architecture", LAYERED)
def test_rows_of_every_architecture(architecture):
    found = rows(architecture=architecture)
    metrics, lowrank = of("metrics", found), of("lowrank", found)
    assert len(lowrank) == 3 * 4 * 6
    for row in metrics:
        assert row.drift == 0 or row.time > 0
        if row.promised and row.entries and row.time == 0.4:
            assert row.drift < 1e-3
    assert any(row.drift > 1e-4 for row in metrics if not row.promised) or architecture == "linear"
    for row in lowrank:
        assert 0 < row.operator_ratio <= 1 + 1e-12
        assert not row.alignment > 1 + 1e-12
        assert (row.layer < 6) == (row.alignment == row.alignment)
    assert all(row.operator_ratio == pytest.approx(1) for row in lowrank if row.layer == 6)


@pytest.mark.parametrize("architecture", SHARE)
def test_rows_of_every_graph(architecture):
    found = rows(architecture=architecture, width=8, learning_rates=[0.02, 0.01, 0.005])
    metrics = of("metrics", found)
    assert {row.pair for row in metrics} >= {"diagonal", "full", "layer", "less an edge"}
    assert not of("lowrank", found) and not of("assumptions", found)
    finest = [row for row in metrics if row.learning_rate == 0.005 and row.time == 0.4]
    for row in finest:
        if row.promised and row.entries:
            assert row.drift < 1e-4
    beside = [row for row in finest if row.place == "beside frozen"]
    assert all(row.drift > 1e-4 and not row.promised for row in beside)


def test_a_replicate_has_its_own_graph_at_every_rate():
    def key(row):
        return (
            row.replicate,
            row.learning_rate,
            row.time,
            row.layer,
            row.place,
            row.pair,
            row.linear,
        )

    many = {key(r): r for r in of("metrics", rows(architecture="random_graph"))}
    alone = of("metrics", rows(architecture="random_graph", replicates=1, learning_rates=[0.01]))
    for row in alone:
        if row.pair not in ("active", "mixed"):  # of a pattern at every rate
            assert row.initial == pytest.approx(many[key(row)].initial, rel=1e-12)
            assert row.drift == pytest.approx(many[key(row)].drift, rel=1e-6, abs=1e-15)
    assert len({r.initial for r in many.values() if r.pair == "full" and r.linear}) > 1


def test_the_margin_of_a_linear_network_grows_towards_the_largest():
    found = of(
        "assumptions",
        rows(architecture="linear", normalized_time=True, time=10.0, learning_rates=[0.05]),
    )
    first, last = ([row.margin for row in found if row.time == t] for t in (0.0, 10.0))
    assert all(a < b <= 1 + 1e-9 for a, b in zip(first, last, strict=True))
    assert min(last) > 0.5
    assert all(np.isnan(row.margin) for row in of("assumptions", rows()))


def test_the_largest_margin_is_that_of_the_hard_svm():
    """Of two points: the distance of the segment between y x and y' x' from the origin."""
    two = torch.tensor([[[3.0, 0.0], [0.0, -4.0]]]).double()
    margin = largest_margins(two, torch.tensor([[1.0, -1.0]]).double())
    assert float(margin) == pytest.approx(3 * 4 / 5)


def test_twins_are_on_for_the_same_examples_and_off_for_the_same():
    config = Invariances(replicates=1)
    x, _ = draw_examples(config, embedded)
    network = build("relu_then_linear", 6, 16, 8, SIDE, 0.0)
    theta = network.draw(1.0, 0.5, 0.5, generator(0, 0, "initialisation"))[None]
    on = torch.cat([z[0, :, 8:] > 0 for z in network.forward(theta, x)[1]], dim=1)
    assert (on[:, ::2] == on[:, 1::2]).double().mean() > 0.95
    assert 0.05 < on.double().mean() < 0.95


def test_pairs_of_a_mixed_pattern_and_the_tables_of_the_assumptions():
    found = rows(width=16, samples=12, time=1.0)
    entries = {row.pair: row.entries for row in of("metrics", found) if row.layer == 1}
    assert entries["mixed"] > 0 and entries["active"] >= 8 * 7
    assumed = of("assumptions", found)
    assert len(assumed) == 3 * 4
    for row in assumed:
        assert (row.turned > 0) == (row.time > 0) and 0 <= row.sign_changes < 0.5
        assert 0 <= row.off < 1 and row.smallest > 0
    assert not of("decomposition", found)


def test_a_small_network_is_compared_with_its_tree():
    found = of("decomposition", rows(depth=4, width=3, time=1.0))
    assert [row.time for row in found] == [0.0, 1.0] * 2
    for row in found:
        assert row.paths == 64 * 27
        assert row.error < 1e-12 * max(row.output, 1)
        assert row.time > 0 or row.frozen_error == row.error




def test_a_replicate_and_a_rate_alone_give_the_numbers_of_the_stack():
    """Equality up to the rounding of batched products."""

    def key(row):
        return (row.replicate, row.learning_rate, row.time, row.layer)

    stack = {key(row): row for row in of("lowrank", rows())}
    alone = of("lowrank", rows(replicates=1, learning_rates=[0.01]))
    assert len(alone) == 3 * 6
    for row in alone:
        other = stack[key(row)]
        assert row.frobenius == pytest.approx(other.frobenius, rel=1e-12)
        assert row.log_loss == pytest.approx(other.log_loss, rel=1e-12)


def test_the_normalized_clock_moves_at_unit_speed_and_never_slows_down():
    found = of(
        "lowrank", rows(architecture="linear", normalized_time=True, time=8.0, learning_rates=[0.1])
    )
    last = [row for row in found if row.time == 8.0]
    assert min(row.frobenius for row in last) > 1
    assert max(row.log_loss for row in last) < -10
    assert all(np.isfinite(row.log_loss) and np.isfinite(row.log_flow_time) for row in last)








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
    found = of("assumptions", rows(learning_rates=[1e9], time=4e10, records=4))
    last = found[-1]
    assert np.isnan([last.sign_changes, last.turned, last.smallest, last.off]).all()
    assert not np.isnan([found[0].sign_changes, found[0].off]).any()
