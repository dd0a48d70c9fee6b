"""Labelled images, as tensors that live on one device; `load` finds a dataset by its name."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from runner.core.errors import InputError, nearest
from runner.core.streams import generator
from runner.data import CLASSES, LABELLED, cifar, digits, idx
from runner.data.files import check

log = logging.getLogger("runner")

FROM_FILES = {"fashion_mnist": idx, "cifar10": cifar}
"""The module that finds and reads the files of a dataset."""

ROUNDING = 16
"""Machine epsilons, relative to the largest pixel, that a constant channel may vary by: resizing
does not keep it to the last bit. Pixels of files differ by 1/255 at least."""


@dataclass(frozen=True)
class Images:
    """n labelled images."""

    pixels: Float[Tensor, "n channels height width"]
    labels: Int[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.labels)

    def flat(self) -> Float[Tensor, "n features"]:
        """Return each image as one row: channel, row, column."""
        return self.pixels.flatten(1)


@dataclass(frozen=True)
class Dataset:
    """Images to train on and images to test on, labelled 0..classes-1.

    files: the SHA-256 of what each file held, by its path; none where there are no files.
    """

    name: str
    train: Images
    test: Images
    classes: int
    files: Mapping[str, str] = field(default_factory=dict)

    def map(self, change) -> "Dataset":
        """Return the dataset with `change` applied to the pixels of both parts."""
        train, test = (
            replace(images, pixels=change(images.pixels)) for images in (self.train, self.test)
        )
        return replace(self, train=train, test=test)

    def first(self, count: int | None) -> "Dataset":
        """Return the dataset with the first `count` images to train on, in its own order; None:
        all.

        Raises InputError when there are fewer.
        """
        if count is None:
            return self
        if count > len(self.train):
            raise InputError(
                f"train_images={count}: {self.name} has {len(self.train)} training images"
            )
        pixels, labels = self.train.pixels[:count].clone(), self.train.labels[:count].clone()
        which = f"the first {count} training images of {self.name}"
        _tell_missing(which, labels, self.train.labels.unique().tolist())
        return replace(self, train=Images(pixels, labels))

    def standardized(self) -> "Dataset":
        """Return each channel with mean zero and variance one over the training images; a channel
        that is the same in all of them is zero, in the test images too."""
        train, dims = self.train.pixels, (0, 2, 3)
        mean = train.mean(dim=dims, keepdim=True)
        low, high = train.amin(dims, keepdim=True), train.amax(dims, keepdim=True)
        rounding = ROUNDING * torch.finfo(train.dtype).eps * torch.maximum(high, -low)
        # Over infinity, not over what is left of a deviation of zero.
        deviation = train.std(dim=dims, keepdim=True).where(high - low > rounding, inf)
        return self.map(lambda pixels: (pixels - mean) / deviation)

    def resized(self, size: int) -> "Dataset":
        """Return all images bilinearly resized to `size` x `size` pixels."""
        return self.map(
            lambda pixels: functional.interpolate(pixels, size=(size, size), mode="bilinear")
        )

    def with_random_pixels(self, stream: torch.Generator) -> "Dataset":
        """Return the same labels on images whose pixels are uniform in [0, 1]."""
        return self.map(lambda pixels: torch.rand(pixels.shape, generator=stream))

    def to(self, device: torch.device) -> "Dataset":
        """Return the same dataset on another device."""
        train, test = (
            Images(images.pixels.to(device), images.labels.to(device))
            for images in (self.train, self.test)
        )
        return replace(self, train=train, test=test)


def load(
    name: str,
    source: Mapping[str, Any],
    folder: str | Path | None,
    seed: int,
    checksums: Sequence[str] | None = None,
) -> Dataset:
    """Return the dataset `name` with pixels in [0, 1], in float32 on the CPU.

    source: the `source` of `conf/data/<name>.yaml` (where its files are); folder: where files are
    looked for first and downloaded to, None for the user's cache; seed: of the random pixels;
    checksums: the SHA-256 of the content of each file. Raises InputError when there is no such
    dataset, or its files are absent and cannot be fetched, or have other content.
    """
    if name not in LABELLED:
        raise InputError(f"data={name} holds no labelled images: {nearest(name, LABELLED)}")
    if name not in FROM_FILES and checksums is not None:
        raise InputError(f"data={name} has no files: leave checksums=null")
    if name == "random_pixels":
        return random_pixels(seed)
    if name in FROM_FILES:
        parts, files = _read(name, source, folder, checksums)
    else:
        parts, files = digits.read(), {}
    train, test = (Images(_unit(pixels), labels) for pixels, labels in parts)
    for part, images in (("training", train), ("test", test)):
        _tell_missing(f"the {part} images of {name}", images.labels, range(CLASSES))
    return Dataset(name, train, test, CLASSES, files)


def _tell_missing(which: str, labels: Int[Tensor, " n"], classes: Iterable[int]) -> None:
    """Log a line when `which` images, those with these labels, have none of some classes."""
    if missing := sorted(set(classes) - set(labels.unique().tolist())):
        named = "class" if len(missing) == 1 else "classes"
        log.info("%s have none of %s %s", which, named, ", ".join(map(str, missing)))


def _read(
    name: str,
    source: Mapping[str, Any],
    folder: str | Path | None,
    checksums: Sequence[str] | None,
) -> tuple[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]], dict[str, str]]:
    """Pixels and labels of both parts, and the SHA-256 of each file by its path."""
    if checksums is None:
        raise InputError(f"checksums=null: those of data={name} are in conf/data/{name}.yaml")
    files = FROM_FILES[name].files(source, folder)
    check(name, files, checksums)
    return FROM_FILES[name].parse(files), {file.where: file.sha256 for file in files}


def _unit(pixels: Tensor) -> Float[Tensor, "n channels height width"]:
    return pixels if pixels.is_floating_point() else pixels.float().div_(255)


def random_pixels(
    seed: int, train: int = 60_000, test: int = 10_000, shape: tuple[int, ...] = (1, 28, 28)
) -> Dataset:
    """Uniform pixels and uniform labels: by default a dataset of Fashion-MNIST's shape."""

    def part(purpose: str, count: int) -> Images:
        stream = generator(seed, 0, f"random pixels {purpose}")
        pixels = torch.rand(count, *shape, generator=stream)
        return Images(pixels, torch.randint(CLASSES, (count,), generator=stream))

    return Dataset("random_pixels", part("train", train), part("test", test), CLASSES)
