"""A step on a device never waits for it, and leaves nothing on the host.

Checked without a GPU on torch's meta device, where tensors have shapes but no numbers, so that
reading one raises. Operations on tensors of two devices are caught as they are dispatched.
"""

import pytest
import torch
from bench.growth import Quiet, embedded
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from runner.core.studies import Context
from runner.data import gaussian
from runner.data.datasets import Dataset, Images
from runner.networks.mlp import MLP
from runner.networks.resnet import ResNet50
from runner.networks.vgg import VGG19
from runner.papers.batch_norm_rank.pretraining.rank_ascent import (
    Minibatches,
    raise_layer_wise,
    turn,
)
from runner.papers.batch_norm_rank.rank_chain.batch_means import observe
from runner.papers.batch_norm_rank.rank_chain.engines import DirectChain, RotatedChain
from runner.papers.batch_norm_rank.rank_chain.lyapunov import ProbedChain
from runner.papers.bottleneck_structure.stack import DepthStack
from runner.papers.norm_tuning.bn_only import study as bn_only
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.training_invariances.invariances.config import SMALLEST_DEPTH, Invariances
from runner.papers.training_invariances.invariances.gradient_flow import Flow, Objective
from runner.papers.training_invariances.invariances.problem import SIDE
from runner.papers.training_invariances.invariances.trajectory import network_of, rates
from runner.papers.training_invariances.low_rank_training import networks
from runner.papers.training_invariances.low_rank_training.training import (
    Decayed,
    losses_and_gradients,
)
from runner.training.classification import Group, StackTrainer
from runner.training.convolutional import ConvolutionalTrainer

META = torch.device("meta")


def meta(*shape: int, dtype=torch.float32) -> torch.Tensor:
    return torch.empty(*shape, device=META, dtype=dtype)


class OneDevice(TorchDispatchMode):
    """Raises at an operation that has tensors of several devices; numbers (0-d) may be anywhere,
    and what is drawn on the CPU may be copied."""

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        if operation.overloadpacket is torch.ops.aten.copy_:
            return operation(*args, **(kwargs or {}))
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, torch.Tensor)]
        devices = {tensor.device.type for tensor in tensors if tensor.ndim}
        assert len(devices) < 2, f"{operation} on tensors of {devices}"
        return operation(*args, **(kwargs or {}))


def test_what_is_forbidden_is_caught():
    for read in (float, bool, torch.Tensor.tolist, torch.Tensor.cpu):
        with pytest.raises((RuntimeError, NotImplementedError)):
            read(meta(1))
    for mixed in (torch.matmul, torch.add, lambda a, b: a[b.long()]):
        with OneDevice(), pytest.raises((AssertionError, RuntimeError)):
            mixed(meta(3, 3), torch.zeros(3, 3))


@pytest.mark.parametrize("statistics", ["batch", "fixed"])
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_bn_only(statistics, optimizer, monkeypatch):
    context = Context(META, None, Quiet, lambda make_state: None, embedded)
    config = BnOnly(
        target_width=3, replicates=2, train_samples=48, batch_size=4,
        statistics=statistics, optimizer=optimizer,
    )  # fmt: skip
    problem = bn_only.draw_problem(config)
    learners = bn_only.start(config, context, problem)
    # Streams have no meta device, and curves are read on the host.
    monkeypatch.setattr(bn_only.GaussianStream, "draw", lambda self, samples: meta(2, samples, 3))
    monkeypatch.setattr(gaussian, "generators", lambda *arguments: [])
    monkeypatch.setattr(bn_only, "curves", lambda learners, samples: [])
    with OneDevice():
        list(bn_only.train(config, context, problem, learners))
    for learner in learners.values():
        assert all(each.device == META for each in [learner.mse, *learner.network.found()])


@pytest.mark.parametrize("normalization", ["none", "batch", "batch_no_mean"])
def test_stacks_of_classifiers(normalization, monkeypatch):
    shapes = [(5, 4), (5, 5), (3, 5)]
    network = MLP(
        [meta(2, *shape) for shape in shapes],
        [meta(2, shape[0]) for shape in shapes],
        normalization=normalization,
    )
    images = Images(meta(20, 1, 2, 2), meta(20, dtype=torch.int64))
    context = Context(META, None, Quiet, lambda make_state: None, embedded)
    group = Group(network, torch.ones(2), torch.zeros(2, dtype=torch.int64))
    # How many replicates there are is asked once, before training.
    monkeypatch.setattr(torch.Tensor, "max", lambda tensor: torch.zeros((), dtype=torch.int64))
    trainer = StackTrainer({"all": group}, Dataset("x", images, images, 3), 5, 1, 0, context)
    order = meta(1, 20, dtype=torch.int64)
    with OneDevice():
        for _ in range(2):
            losses = trainer.train_on(order[:, :5])
            assert losses.device == META and trainer.sums["all"].device == META


def test_rank_ascent():
    network = MLP(
        [meta(2, 4, 4), meta(2, 4, 4), meta(2, 3, 4)], [meta(2, 4), meta(2, 4), meta(2, 3)]
    )
    batches = Minibatches(meta(24, 4), meta(2, 3, 8, dtype=torch.int64))
    with OneDevice():
        layers = list(raise_layer_wise(network, batches, 1, turn(meta(2))))
    assert len(layers) == 2 and all(bound.device == META for _, *of in layers for bound in of)


@pytest.mark.parametrize("architecture", [VGG19, ResNet50])
@pytest.mark.parametrize("norm", ["none", "batch", "batch_no_mean"])
def test_convolutional_networks(architecture, norm):
    with META:
        network = architecture(1, 10, norm, 1 / 32)
        images = Images(meta(8, 1, 8, 8), meta(8, dtype=torch.int64))
    trainer = ConvolutionalTrainer(
        network, Dataset("x", images, images, 10), 0.1, 4, seed=0, replicate=0
    )
    with OneDevice():  # all but the optimizer, whose fused kernel meta does not know
        for _ in range(2):
            loss, hits = trainer._gradients(meta(4, dtype=torch.int64))
            assert loss.device == META and hits.device == META


def test_stacks_of_depths():
    stack = DepthStack([5, 3, 2], width=4, d_in=3, d_out=2, device=META)
    with OneDevice():
        for _ in range(2):
            assert stack.descend(meta(3, 3, 6), meta(3, 2, 6)).device == META
    assert stack.gradient.device == META


@pytest.mark.parametrize("architecture", sorted(SMALLEST_DEPTH))
@pytest.mark.parametrize("normalized", [False, True])
def test_gradient_flow(architecture, normalized):
    config = Invariances(architecture=architecture, replicates=2, normalized_time=normalized)
    network, S = network_of(config), len(rates(config))
    x, y = meta(S, 4, SIDE**2, dtype=torch.float64), meta(S, 4, dtype=torch.float64)
    parameters = network.draw(1.0, 0.5, 0.0, torch.Generator()).numel()
    theta = meta(S, parameters, dtype=torch.float64)
    objective = Objective(network, x, y, "logistic")
    flow = Flow(objective, theta, rates(config), "rk4", normalized)
    with OneDevice():
        for moving in (S, 2):
            flow.step(moving)
    assert flow.log_time.device == META


@pytest.mark.parametrize("architecture", ["mlp", "conv"])
@pytest.mark.parametrize("optimizer", ["sgd", "momentum", "adam", "adamw"])
def test_low_rank_training(architecture, optimizer):
    layers = networks.shapes(architecture, 4, 2, (1, 8, 8), 1)
    parameters = {f"W{number}": meta(6, *shape) for number, shape in enumerate(layers, start=1)}
    with META:
        decayed = Decayed(optimizer, parameters, meta(6), meta(6))
    if "t" in decayed.own.state:  # a count of the host's
        decayed.own.state["t"] = torch.zeros((), dtype=torch.int64)
    x, y = meta(3, 5, 1, 8, 8), meta(3, 5)
    with OneDevice():
        for _ in range(2):
            losses, found = losses_and_gradients(parameters, x, y, "logistic")
            decayed.step(found)
            assert losses.device == META


@pytest.mark.parametrize("chain", [DirectChain, RotatedChain, ProbedChain])
def test_chains(chain, monkeypatch):
    monkeypatch.setattr(torch.Tensor, "__bool__", lambda tensor: True)  # gamma > 0, asked once
    chain = chain(meta(3, 8, 5, dtype=torch.float64), meta(3), torch.Generator())
    monkeypatch.undo()
    with OneDevice():
        for _ in range(2):
            chain.step()
    assert chain.state.device == META and chain.state.shape == (3, 8, 5)


def test_observables():
    with OneDevice():
        assert observe(meta(3, 8, 5, dtype=torch.float64), 0.5).device == META
