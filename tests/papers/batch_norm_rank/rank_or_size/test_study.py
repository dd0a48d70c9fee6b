"""Study `rank_or_size`: against plain torch, and what each family changes and what it keeps."""

import pytest
import torch
from in_memory import context, tables_of
from torch.nn import functional

from runner.papers.batch_norm_rank.images import training_images
from runner.papers.batch_norm_rank.rank_or_size.config import FAMILIES, RankOrSize
from runner.papers.batch_norm_rank.rank_or_size.study import Arm, Task, started

SMALL = {"depth": 6, "width": 16, "samples": 32, "replicates": 2, "train_images": 320, "epochs": 2}
ONE_RATE = {**SMALL, "learning_rates": [0.02]}


def task_of(config):
    return Task(config, training_images(config, context()), context())


def losses_in_plain_torch(config, weights, biases, r, factor=1.0):
    """Return the mean loss in each epoch of one network, with logits times `factor`.

    The loss is divided by the factor before it is differentiated.
    """
    images = training_images(config, context()).train
    x, labels = images.flat(), images.labels
    parameters = [tensor.clone().requires_grad_() for tensor in [*weights, *biases]]
    W, b = parameters[: len(weights)], parameters[len(weights) :]
    means = []
    for epoch in range(1, config.epochs + 1):
        order = torch.randperm(len(x), generator=config.stream(r, f"order of epoch {epoch}"))
        losses = []
        for batch in order.split(config.batch_size):
            H = x[batch]
            for layer in range(config.depth):
                H = torch.relu(H @ W[layer].T + b[layer])
            loss = functional.cross_entropy(factor * (H @ W[-1].T + b[-1]), labels[batch])
            losses.append(loss.item())
            gradients = torch.autograd.grad(loss / factor, parameters)
            with torch.no_grad():
                for tensor, gradient in zip(parameters, gradients, strict=True):
                    tensor -= config.learning_rates[0] * gradient
        means.append(sum(losses) / len(losses))
    return means


def tensors_of(network, r):
    layers = range(1, network.depth + 2)
    return [[network.parameters[f"{name}{layer}"][r] for layer in layers] for name in "Wb"]


@pytest.mark.parametrize(
    ("arm", "from_arm"),
    [
        (Arm("product", 4.0), Arm("product", 4.0)),
        (Arm("unscaled_layer_rates"), Arm("signed")),  # the same, in units of each layer's size
    ],
)
def test_losses_are_those_of_plain_torch(arm, from_arm):
    config = RankOrSize(families=[arm.family], ranks=[4], **ONE_RATE)
    tables, task = tables_of(config), task_of(config)
    network, rows = started(task, from_arm).network, tables["training"]
    for r in range(config.replicates):
        own = rows[(rows["replicate"] == r) & (rows["level"] == arm.level)]
        before = tables["before"].query("replicate == @r and level == @arm.level")
        factor = 1.0 if arm == from_arm else float(before["size"].iloc[0])
        expected = losses_in_plain_torch(config, *tensors_of(network, r), r, factor)
        assert own["train_loss"].tolist() == pytest.approx(expected, rel=1e-4)
        assert len({round(loss, 3) for loss in expected}) == config.epochs, "it learns"


@pytest.fixture(scope="module")
def before():
    """The networks before training, by family and level; medians of two replicates."""
    config = RankOrSize(families=list(FAMILIES), ranks=[1, 4], sizes=[0.01], pretraining_steps=5,
                        **{**ONE_RATE, "epochs": 1})  # fmt: skip
    return tables_of(config)["before"].groupby(["family", "level"]).median(numeric_only=True)


def test_a_product_has_its_rank_and_every_rank_has_size_one(before):
    for family in ("product", "copied"):
        assert before.loc[family, "rank"].tolist()[:2] == [1, 4]
        assert before.loc[family, "rank"].iloc[2] > 4
    for family in ("signed", "product", "copied", "flipped", "default_biases_unit"):
        assert before.loc[family, "size"].tolist() == pytest.approx([1.0] * len(before.loc[family]))


def test_flipped_signs_change_the_directions_and_not_the_rank(before):
    flipped = before.loc["flipped"].sort_index()
    assert flipped["deviations_bound"].is_monotonic_increasing
    assert flipped["deviations_bound"].iloc[-1] > 1.5 * flipped["deviations_bound"].iloc[0]
    assert flipped["rank"].min() > 4


def test_a_size_changes_neither_rank_nor_r(before):
    columns = ["rank", "rank_bound", "deviations_bound", "spread"]
    expected = before.loc[("signed", 0.0), columns].to_numpy()
    for arm in [("sized", 0.01), ("sized_layer_rates", 0.01), ("even", 0.0), ("unscaled", 0.0)]:
        assert before.loc[arm, columns].to_numpy() == pytest.approx(expected, rel=1e-3)
    assert before.loc[("sized", 0.01), "size"] == pytest.approx(0.01)
    sizes = before["size"].xs(0.0, level="level")
    assert sizes["even"] == pytest.approx(sizes["unscaled"])
    assert sizes["pretrained_small"] == pytest.approx(sizes["default_biases"])
    assert sizes["size_of_pretrained"] == pytest.approx(sizes["pretrained"])
    assert sizes["pretrained"] != pytest.approx(sizes["default_biases"], rel=0.02)


def test_the_same_functions_at_size_one_have_the_same_directions(before):
    columns = ["rank_bound", "deviations_bound", "spread"]
    plain, unit = (before.loc[(f, 0.0), columns] for f in ("default_biases", "default_biases_unit"))
    assert unit.to_numpy() == pytest.approx(plain.to_numpy(), rel=1e-3)
