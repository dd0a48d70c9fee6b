from functools import partial

import pytest
import torch
from bench.growth import embedded
from torch.nn.functional import cross_entropy

from runner.core.errors import InputError
from runner.core.progress import Progress
from runner.core.streams import generator, generators
from runner.core.studies import Context
from runner.data.batches import epoch_order
from runner.data.datasets import load
from runner.networks.initialization import draw
from runner.networks.mlp import MLP
from runner.training.classification import Group, StackTrainer, evaluate

STREAM = partial(generator, 0)


def context(restored=None, checkpoint=lambda make_state: None) -> Context:
    return Context(torch.device("cpu"), restored, Progress, checkpoint, embedded)


def group(normalization="batch", replicates=2, rates=(0.1, 0.3)) -> Group:
    """Rate after rate, the replicates of each."""
    streams = generators(0, replicates, "initialisation")
    network = MLP(*draw("pytorch", [64, 12, 12, 10], streams), normalization=normalization)
    chosen = torch.arange(replicates).repeat(len(rates))
    each = torch.tensor(rates).repeat_interleave(replicates)
    return Group(network.select(chosen), each, chosen)


@pytest.fixture(scope="module")
def digits():
    return load("digits", {}, None, seed=0).standardized()


def scores(trainer: StackTrainer) -> list:
    return [(epoch, vars(each)) for epoch, every in trainer.run() for each in every.values()]


def test_networks_learn_the_digits_and_scores_are_those_of_the_network(digits):
    trainer = StackTrainer({"batch": group()}, digits, 64, 3, STREAM, context())
    ends = scores(trainer)
    assert [epoch for epoch, _ in ends] == [1, 2, 3]
    accuracies = torch.stack([each["train_accuracy"] for _, each in ends])
    assert (accuracies.diff(dim=0) > 0).all() and (accuracies[-1] > 0.8).all()
    network = trainer.groups["batch"].network
    logits = network.logits(digits.test.flat().expand(4, -1, -1), "evaluate")
    accuracy = (logits.argmax(1) == digits.test.labels).double().mean(-1)
    torch.testing.assert_close(evaluate(network, digits.test)[1], accuracy)


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_another_optimizer_takes_the_steps_of_torch_and_is_in_checkpoints(name, digits):
    states: list[dict] = []

    def checkpoint(make_state) -> None:
        states.append({key: value.clone() for key, value in make_state().items()})

    given = group("layer", 1, (0.01,))
    trainer = StackTrainer(
        {"a": given}, digits, 512, 2, STREAM, context(checkpoint=checkpoint), name
    )
    ends = scores(trainer)
    after = trainer.groups["a"].network

    ours = group("layer", 1, (0.01,)).network
    tensors = [tensor.requires_grad_() for tensor in ours.parameters.values()]
    make = {"momentum": partial(torch.optim.SGD, momentum=0.9), "adam": torch.optim.Adam}[name]
    optimizer = make(tensors, lr=0.01)
    for epoch in (1, 2):
        order = epoch_order(STREAM, 1, len(digits.train), epoch)[0]
        for chosen in order.split(512):
            optimizer.zero_grad()
            logits = ours.logits(digits.train.flat()[chosen][None])
            cross_entropy(logits, digits.train.labels[chosen][None]).backward()
            optimizer.step()
    for key, W in ours.parameters.items():
        torch.testing.assert_close(after.parameters[key], W, atol=1e-5, rtol=1e-3)

    given = group("layer", 1, (0.01,))
    resumed = StackTrainer({"a": given}, digits, 512, 2, STREAM, context(states[3]), name)
    assert str(scores(resumed)) == str(ends[1:])


def test_replicates_follow_their_own_order_and_rates_share_it(digits):
    both = group(rates=(0.1, 0.1))
    network = StackTrainer({"batch": both}, digits, 64, 1, STREAM, context())
    list(network.run())
    W = network.groups["batch"].network.parameters["W1"]
    torch.testing.assert_close(W[0], W[2])
    assert not torch.allclose(W[0], W[1])


def test_a_batch_larger_than_the_data_is_refused(digits):
    with pytest.raises(InputError, match="batch_size=2000: digits has 1536 images"):
        StackTrainer({"batch": group()}, digits, 2000, 1, STREAM, context())
