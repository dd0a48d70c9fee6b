"""Images with labels as tensors on one device. `load` returns a dataset by its name."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
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
"""The modules that find and read the files of datasets, by the datasets' names."""

ROUNDING = 16
"""How much the pixels of a constant channel may vary, in machine epsilons of its largest pixel.

Resizing changes the last bits of constant channels. Pixels of files differ by 1/255 at least.
"""


@dataclass(frozen=True)
class Images:
    """Images as a tensor (n, channels, height, width), and the label of each image."""

    pixels: Float[Tensor, "n channels height width"]
    labels: Int[Tensor, " n"]

    def __len__(self) -> int:
        return len(self.labels)

    def flat(self) -> Float[Tensor, "n features"]:
        """Return each image as one row of numbers, ordered by channel, row and column."""
        return self.pixels.flatten(1)


@dataclass(frozen=True)
class Dataset:
    """Training and test images of one dataset, with labels 0..classes-1.

    files: the SHA-256 of each file's content, by the file's path; empty for datasets without files.
    is_own: whether the images are a user's file.
    """

    name: str
    train: Images
    test: Images
    classes: int
    files: Mapping[str, str] = field(default_factory=dict)
    is_own: bool = False

    def map(self, change) -> "Dataset":
        """Return a copy in which the pixels of all images are replaced by `change(pixels)`.

        change: a function of a tensor (n, channels, height, width).
        """
        train, test = (
            replace(images, pixels=change(images.pixels)) for images in (self.train, self.test)
        )
        return replace(self, train=train, test=test)

    def pixels_in_words(self) -> str:
        """Return the number of pixels of an image, and their range: `64 pixels from 0 to 1`."""
        parts = [part.pixels for part in (self.train, self.test)]
        low = min(float(pixels.min()) for pixels in parts)
        high = max(float(pixels.max()) for pixels in parts)
        return f"{parts[0][0].numel()} pixels from {low:.3g} to {high:.3g}"

    def reduced(self, count: int | None, stream: Callable[[], torch.Generator]) -> "Dataset":
        """Return the dataset with `count` training images. None means all.

        These are the first ones, except in a user's file, which may be sorted by class. There the
        images are drawn in equal shares by class; a class with too few images gives all.

        stream: a function that returns the random generator for this draw. Raises InputError if
        there are fewer training images.
        """
        if count is None:
            return self
        if count > len(self.train):
            raise InputError(
                f"train_images={count}: {self.name} has {len(self.train)} training images"
            )
        of_all = self.train.labels
        chosen = equal_shares(of_all, count, stream()) if self.is_own else torch.arange(count)
        pixels, labels = self.train.pixels[chosen], of_all[chosen]
        which = "" if self.is_own else "first "
        which = f"the {which}{count} training images of {self.name}"
        _tell_missing(which, labels, of_all.unique().tolist())
        return replace(self, train=Images(pixels, labels))

    def standardized(self) -> "Dataset":
        """Return the dataset with mean 0 and variance 1 of each channel over the training images.

        Test images are shifted and scaled in the same way. A channel that is constant over the
        training images becomes zero in all images.
        """
        train, dims = self.train.pixels, (0, 2, 3)
        mean = train.mean(dim=dims, keepdim=True)
        low, high = train.amin(dims, keepdim=True), train.amax(dims, keepdim=True)
        rounding = ROUNDING * torch.finfo(train.dtype).eps * torch.maximum(high, -low)
        # Divide by infinity, not by the rounding of a standard deviation of zero.
        deviation = train.std(dim=dims, keepdim=True).where(high - low > rounding, inf)
        return self.map(lambda pixels: (pixels - mean) / deviation)

    def resized(self, size: int) -> "Dataset":
        """Return the dataset with all images resized to `size` x `size` pixels, bilinearly."""
        return self.map(
            lambda pixels: functional.interpolate(pixels, size=(size, size), mode="bilinear")
        )

    def with_random_pixels(self, stream: torch.Generator) -> "Dataset":
        """Return a dataset of the same shape whose pixels are uniform random numbers in [0, 1).

        The labels are unchanged. stream: the random generator.
        """
        return self.map(lambda pixels: torch.rand(pixels.shape, generator=stream))

    def to(self, device: torch.device) -> "Dataset":
        """Return a copy of the dataset on a device."""
        train, test = (
            Images(images.pixels.to(device), images.labels.to(device))
            for images in (self.train, self.test)
        )
        return replace(self, train=train, test=test)


def equal_shares(
    labels: Int[Tensor, " n"], count: int, stream: torch.Generator
) -> Int[Tensor, " count"]:
    """Return the indices of `count` images, ascending, drawn in equal shares by class.

    The numbers of two classes differ by one at most, unless a class has too few images.
    """
    order = torch.randperm(len(labels), generator=stream)
    turn = torch.empty_like(order)  # of each image in the order, among the images of its class
    for number in labels.unique():
        of_class = (labels[order] == number).nonzero()[:, 0]
        turn[of_class] = torch.arange(len(of_class))
    return order[turn.argsort(stable=True)[:count]].sort().values


def load(
    name: str,
    source: Mapping[str, Any],
    folder: str | Path | None,
    seed: int,
    checksums: Sequence[str] | None = None,
) -> Dataset:
    """Return the dataset `name` with pixels in [0, 1], in float32 on the CPU.

    - source: where to find the files; the entry `source` of `conf/data/<name>.yaml`;
    - folder: the folder that is searched first and gets downloads; None: the user's cache;
    - seed: the seed of random pixels;
    - checksums: the SHA-256 of each file's content; None for datasets without files.

    Raises InputError if the dataset is unknown, its files cannot be fetched or have other content,
    or checksums are missing or superfluous.
    """
    if name not in LABELLED:
        raise InputError(f"data={name} holds no labeled images: {nearest(name, LABELLED)}")
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
    """Log a line if there are classes without images.

    which: what the images are, for the line. labels: their labels. classes: all classes.
    """
    if missing := sorted(set(classes) - set(labels.unique().tolist())):
        named = "class" if len(missing) == 1 else "classes"
        log.info("%s have none of %s %s", which, named, ", ".join(map(str, missing)))


def _read(
    name: str,
    source: Mapping[str, Any],
    folder: str | Path | None,
    checksums: Sequence[str] | None,
) -> tuple[tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]], dict[str, str]]:
    """Return pixels and labels of training and test images, and each file's SHA-256 by path."""
    if checksums is None:
        raise InputError(f"checksums=null: conf/data/{name}.yaml has the checksums of data={name}")
    files = FROM_FILES[name].files(source, folder)
    check(name, files, checksums)
    return FROM_FILES[name].parse(files), {file.where: file.sha256 for file in files}


def _unit(pixels: Tensor) -> Float[Tensor, "n channels height width"]:
    return pixels if pixels.is_floating_point() else pixels.float().div_(255)


def random_pixels(
    seed: int, train: int = 60_000, test: int = 10_000, shape: tuple[int, ...] = (1, 28, 28)
) -> Dataset:
    """Return a dataset of uniform random pixels in [0, 1) with uniform random labels.

    train, test: the numbers of images. shape: channels, height and width; by default as in
    Fashion-MNIST.
    """

    def part(purpose: str, count: int) -> Images:
        stream = generator(seed, 0, f"random pixels {purpose}")
        pixels = torch.rand(count, *shape, generator=stream)
        return Images(pixels, torch.randint(CLASSES, (count,), generator=stream))

    return Dataset("random_pixels", part("train", train), part("test", test), CLASSES)
