"""The study `breaking_bn`: alignment, training, resume, memory, divergence."""

import dataclasses

import pandas as pd
import pytest
import torch
from in_memory import context, tables_of
from torch.nn import functional

from runner.data.datasets import Dataset, Images
from runner.papers.batch_norm_rank.breaking_bn import study as breaking_bn
from runner.papers.batch_norm_rank.breaking_bn.alignment import gradient_alignment
from runner.papers.batch_norm_rank.breaking_bn.config import BREAKING_METHODS, BreakingBN
from runner.papers.batch_norm_rank.breaking_bn.tables import paths
from runner.training.images import Task, on_device

TINY = BreakingBN(
    multiplier=1 / 32, image_size=8, samples=40, epochs=2, replicates=2,
    methods=["batch_norm", "vanilla_random_pixels"], learning_rates=[0.03],
)  # fmt: skip


def stream(seed=0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small_data(n=24) -> Dataset:
    pixels = torch.rand(n, 1, 8, 8, generator=stream())
    images = Images(pixels, torch.randint(3, (n,), generator=stream()))
    return on_device(
        Dataset("small", images, images, classes=3).standardized(), torch.device("cpu")
    )


def test_alignment_is_that_of_the_gradients_of_single_samples():
    """One backward pass for each sample, and the cosine for each neuron and pair."""
    H = torch.randn(6, 5, generator=stream(), dtype=torch.float64).relu()
    H[3] = 0  # no gradient, no direction
    labels = torch.tensor([0, 1, 2, 0, 1, 1])
    W = torch.randn(3, 5, generator=stream(1), dtype=torch.float64, requires_grad=True)
    gradients = torch.stack([
        torch.autograd.grad(functional.cross_entropy(W @ h, label), W)[0]
        for h, label in zip(H, labels, strict=True)
    ])  # fmt: skip
    cosines = [
        functional.cosine_similarity(gradients[i, k], gradients[j, k], dim=0).abs()
        for k in range(3) for i in range(6) for j in range(i) if 3 not in (i, j)
    ]  # fmt: skip
    errors = (H @ W.detach().mT).softmax(1) - functional.one_hot(labels, 3)
    expected = torch.stack(cosines).mean()
    torch.testing.assert_close(gradient_alignment(H, errors), expected)


def test_neurons_without_error_have_no_part_in_the_alignment():
    """The first two samples, which are orthogonal, are the only two with an error in neuron 0."""
    H = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    errors = torch.tensor([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert gradient_alignment(H, errors).item() == pytest.approx((0 + 0.5**0.5) / 2)
    assert gradient_alignment(torch.zeros(4, 3), torch.ones(4, 2)).isnan()
    assert gradient_alignment(torch.ones(4, 3), torch.full((4, 2), torch.nan)).isnan()


def test_methods_of_a_replicate_share_initialisation_labels_and_order():
    images = {random: breaking_bn.images(TINY, context(), random) for random in (False, True)}
    trainers = {
        name: breaking_bn.start(TINY, images, Task(name, 1), 0.03) for name in BREAKING_METHODS
    }
    assert {name for name, trainer in trainers.items() if trainer.rate == 3.0} == {"vanilla_100x"}
    data, noise = (trainers[n] for n in ("vanilla", "vanilla_random_pixels"))
    assert data.order().equal(noise.order())
    assert data.data.train.labels.equal(noise.data.train.labels)
    assert not data.data.train.pixels.equal(noise.data.train.pixels)
    first = [next(t.network.parameters()) for n, t in trainers.items() if "asymmetric" not in n]
    assert all(weights.equal(first[0]) for weights in first)


def test_a_step_is_that_of_plain_gradient_descent():
    data = small_data()
    config, task = dataclasses.replace(TINY, batch_size=12), Task("batch_norm", 0)
    trainer = breaking_bn.start(config, {False: data}, task, 0.03)
    before = [p.detach().clone() for p in trainer.network.parameters()]
    chosen = torch.arange(12)
    loss = functional.cross_entropy(trainer.network(data.train.pixels[:12]), data.train.labels[:12])
    gradients = torch.autograd.grad(loss, list(trainer.network.parameters()))
    assert trainer.train_on(chosen).item() == pytest.approx(loss.item())
    for old, gradient, new in zip(before, gradients, trainer.network.parameters(), strict=True):
        torch.testing.assert_close(new.detach(), old - 0.03 * gradient)


def test_scores_are_means_of_the_epoch_and_of_the_test_images():
    data = small_data()
    config, task = dataclasses.replace(TINY, batch_size=8), Task("batch_norm", 0)
    trainer = breaking_bn.start(config, {False: data}, task, 0.03)
    losses = []
    (_, scores), *_ = trainer.until(1, losses.append)
    assert scores["train_loss"] == pytest.approx(torch.stack(losses).mean().item(), rel=1e-6)
    trainer.network.set_mode("evaluate")
    logits = trainer.network(data.test.pixels)
    expected = functional.cross_entropy(logits, data.test.labels).item()
    assert scores["test_loss"] == pytest.approx(expected, rel=1e-5)
    hits = (logits.argmax(1) == data.test.labels).double().mean().item()
    assert scores["test_accuracy"] == pytest.approx(hits)


def test_rates_are_chosen_on_replicates_of_their_own():
    """Vanilla on random pixels takes the rate that is chosen for vanilla on data; 100 times it is
    100 times that rate."""
    config = dataclasses.replace(
        TINY, methods=["batch_norm", "vanilla_random_pixels", "vanilla_100x"], replicates=1,
        learning_rates=[1e-4, 0.1], selection_replicates=1, epochs=1,
    )  # fmt: skip
    tables = tables_of(config)
    selection, training = tables["selection"], tables["training"]
    assert set(selection["method"]) == {"batch_norm", "vanilla"}
    assert set(selection["replicate"]) == {1} and set(training["replicate"]) == {0}
    assert set(training["selected_on"]) == {"replicates 1"}
    mean = selection.groupby(["method", "learning_rate"])["train_accuracy"].mean()
    best = {method: mean[method].idxmax() for method in ("batch_norm", "vanilla")}
    rate = training.set_index("method")["learning_rate"]
    assert rate["batch_norm"] == best["batch_norm"] == 0.1
    assert rate["vanilla_random_pixels"] == best["vanilla"]
    assert rate["vanilla_100x"] == pytest.approx(100 * best["vanilla"])
    assert set(paths(tables)["replicate"]) == {0}
    alone = tables_of(dataclasses.replace(config, learning_rates=[0.1], methods=["batch_norm"]))
    assert "selection" not in alone
    judged = training[training["method"] == "batch_norm"].drop(columns="selected_on")
    pd.testing.assert_frame_equal(judged, alone["training"].drop(columns="selected_on"))
