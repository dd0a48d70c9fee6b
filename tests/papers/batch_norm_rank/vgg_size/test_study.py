"""Study `vgg_size`: what rescaling changes and keeps, against plain torch."""

import pandas as pd
import pytest
import torch
from in_memory import context, judged, tables_of, verdicts
from torch import nn
from torch.nn import functional

from runner.papers.batch_norm_rank.images import probed
from runner.papers.batch_norm_rank.vgg_size.config import METHODS, VGGSize
from runner.papers.batch_norm_rank.vgg_size.study import images, start
from runner.training.images import Task

SMALL = VGGSize(multiplier=0.06, image_size=8, samples=48, replicates=2, train_images=128,
                epochs=1, learning_rates=[0.05])  # fmt: skip


@pytest.fixture(scope="module")
def tables():
    return tables_of(SMALL)


def test_a_rescaled_network_has_size_one_and_the_directions_of_its_last_layer(tables):
    before = tables["before"].set_index(["replicate", "method"])
    for replicate in range(2):
        he, unit = (before.loc[(replicate, method)] for method in ("he", "unit_scale"))
        assert unit["size"] == pytest.approx(1, rel=1e-4) and he["size"] < 0.3
        for column in ("rank", "rank_bound", "alignment"):
            assert unit[column] == pytest.approx(he[column], rel=1e-3)


def test_measures_and_first_step_are_those_of_plain_torch(tables):
    data = images(SMALL, context())
    network = start(SMALL, data, Task("unit_scale", 1), 0.05).network
    layers = [layer for layer in network.features if not isinstance(layer, nn.Identity)]
    x = on = probed(SMALL, data).pixels
    weights = [layer.weight for layer in layers if isinstance(layer, nn.Conv2d)]
    assert len(weights) == 16
    index = 0
    for layer in layers:
        if isinstance(layer, nn.Conv2d):
            x, index = functional.conv2d(x, weights[index], padding=1).relu(), index + 1
            assert x.square().mean().sqrt().item() == pytest.approx(1, rel=1e-4)
        elif isinstance(layer, nn.MaxPool2d):
            x = functional.max_pool2d(x, 2, ceil_mode=True)
    H = x.flatten(1)
    assert len(H) == len(on) == 48
    labels = probed(SMALL, data).labels
    gradients = []
    for i in range(4):  # gradients of single images by the classifier
        loss = functional.cross_entropy(network.classifier(H[i : i + 1]), labels[i : i + 1])
        (of_image,) = torch.autograd.grad(loss, network.classifier.weight, retain_graph=True)
        gradients.append(functional.normalize(of_image, dim=1))
    pairs = [(gradients[i] * gradients[j]).sum(1).abs().mean() for i in range(4) for j in range(i)]
    directions = functional.normalize(H[:4], dim=1)
    cosines = [(directions[i] @ directions[j]).abs() for i in range(4) for j in range(i)]
    assert torch.stack(pairs).tolist() == pytest.approx(torch.stack(cosines).tolist(), rel=1e-4)
    loss = functional.cross_entropy(network.classifier(H), labels)
    norms = [float(gradient.norm()) for gradient in torch.autograd.grad(loss, weights)]
    row = tables["before"].query("method == 'unit_scale' and replicate == 1").iloc[0]
    assert row[["first_gradient", "last_gradient"]].tolist() == pytest.approx(
        [norms[0], norms[-1]], rel=1e-3
    )


ACCURACY = {"vanilla": 0.1, "he": 0.3, "unit_scale": 0.9}
ALL = ("aligned-gradients-untrainable", "norm-does-not-vanish", "size-lets-vgg-learn")


def told(accuracies=None, alignment=0.98, first=1e-6):
    """Tables that tell these last accuracies, alignments and gradient norms."""
    training, before = [], []
    for method, accuracy in (ACCURACY | (accuracies or {})).items():
        for replicate in range(8):
            own = {"run": "one", "method": method, "replicate": replicate}
            measured = {"rank": 30.0, "rank_bound": 1.03, "size": 1.0, "alignment": alignment}
            before.append({**own, **measured, "first_gradient": first, "last_gradient": 1.0})
            for epoch in (1, 2):
                training.append({**own, "epoch": epoch, "learning_rate": 0.03, "train_loss": 1.0,
                                 "train_accuracy": accuracy * epoch / 2})  # fmt: skip
    return {"training": pd.DataFrame(training), "before": pd.DataFrame(before)}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (told(), ("fails", "fails", "holds")),
        (told(dict.fromkeys(METHODS, 0.1)), ("holds", "fails", "fails")),
        (told({"he": 0.9}), ("fails", "fails", "fails")),
        (told(first=0.5), ("fails", "holds", "holds")),
        (told(alignment=0.5), ("undecided", "fails", "holds")),
    ],
)
def test_verdicts_on_tables_that_tell_them(tables, expected):
    assert verdicts("rank-vgg", tables) == dict(zip(ALL, expected, strict=True))


def test_networks_without_aligned_gradients_are_named():
    row = judged("rank-vgg", told(alignment=0.5)).loc[ALL[0]]
    assert "the alignment of gradients before training is at most 0.9" in row["note"]
