"""The official files of Fashion-MNIST and CIFAR-10, where they are.

DATA_FOLDER names their folder, as data_folder=... does on the command line; without it, it is the
user's cache, where the program keeps what it has downloaded.
"""

import os
from pathlib import Path

import pytest
import torch
import yaml
from repository import REPOSITORY

from runner.data import SHAPES
from runner.data.cifar import FOLDER
from runner.data.datasets import Dataset, load
from runner.data.files import default_folder, find

REAL = Path(os.environ.get("DATA_FOLDER") or default_folder())
PACKAGE = Path("/usr/share/datasets/fashion-mnist")
FASHION = "train-images-idx3-ubyte.gz"
HOW = "name their folder with DATA_FOLDER=..., or run once with data={} where there is a network"


def needs(present: bool, name: str, how: str = HOW) -> pytest.MarkDecorator:
    return pytest.mark.skipif(not present, reason=f"no files of {name}: {how.format(name)}")


def official(name: str, folder: Path) -> Dataset:
    described = yaml.safe_load((REPOSITORY / "conf" / "data" / f"{name}.yaml").read_text())
    return load(name, described["source"], folder, 0, described["checksums"])


def is_balanced(data: Dataset, train: int, test: int) -> bool:
    counts = [images.labels.bincount().tolist() for images in (data.train, data.test)]
    return counts == [[train] * 10, [test] * 10]


@needs(find(FASHION, [REAL]) is not None, "fashion_mnist")
def test_fashion_mnist_is_that_of_its_authors():
    data = official("fashion_mnist", REAL)
    assert (len(data.train) + len(data.test), *data.train.pixels.shape[1:]) == SHAPES[data.name]
    assert is_balanced(data, 6000, 1000)
    assert data.train.labels[:8].tolist() == [9, 0, 0, 3, 0, 2, 7, 2]
    assert abs(float(data.train.pixels.mean()) - 0.2860) < 1e-4


@needs(find(FASHION, [PACKAGE]) is not None, "dataset-fashion-mnist", "apt install {}")
def test_the_package_of_the_system_has_the_same_content(tmp_path):
    data = official("fashion_mnist", tmp_path)
    assert all(path.startswith(str(PACKAGE)) for path in data.files)
    assert is_balanced(data, 6000, 1000)


@needs(
    find("cifar-10-binary.tar.gz", [REAL]) is not None
    or find("test_batch.bin", [REAL, REAL / FOLDER]) is not None,
    "cifar10",
)
def test_cifar10_is_that_of_its_authors():
    data = official("cifar10", REAL)
    assert (len(data.train) + len(data.test), *data.train.pixels.shape[1:]) == SHAPES[data.name]
    assert is_balanced(data, 5000, 1000)
    assert data.train.labels[:8].tolist() == [6, 9, 9, 4, 1, 1, 2, 7]
    means = data.train.pixels.mean(dim=(0, 2, 3))
    torch.testing.assert_close(means, torch.tensor([0.4914, 0.4822, 0.4465]), atol=1e-4, rtol=0)
