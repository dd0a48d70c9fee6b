"""Images of the user, such as `data=stripes.npz`, of any shape and any number of classes.

An npz file has the arrays `images` and `labels`, and may have `test_images` and `test_labels`. A
CSV file has a column `label`. It may have a column `test`, which is 1 in the rows of test images.
All other columns are pixels. In a file without test images, a fifth of each class is chosen at
random for testing.
"""

import tokenize
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from runner.core.errors import InputError
from runner.core.input_files import sha256_of
from runner.core.progress import log
from runner.data import image_tables
from runner.data.datasets import Dataset, Images

NAMES = ("images", "labels", "test_images", "test_labels")
"""The arrays in an npz file. The last two are optional."""

ALIASES = {
    "x_train": "images", "y_train": "labels", "x_test": "test_images", "y_test": "test_labels",
    "train_images": "images", "train_labels": "labels",
}  # fmt: skip
"""Other names of these arrays, as Keras and MedMNIST write them."""

CHANNELS = (1, 3, 4)
"""Numbers of channels that are recognized as the last axis: grey, color, color with alpha."""

HELD_OUT = 5
"""In a file without test images, one of so many images of each class is used for testing."""

BYTE = 255
"""The largest pixel of images that are stored as bytes, or as other whole numbers."""

LIKE_BYTES = 16
"""Images with a larger pixel are not on the scale [0, 1]."""

DAMAGED = (
    OSError, ValueError, EOFError, AttributeError, TypeError, KeyError, IndexError, SyntaxError,
    NotImplementedError, MemoryError, RuntimeError, tokenize.TokenError, zipfile.BadZipFile,
    zlib.error,
)  # fmt: skip
"""Exceptions of numpy, pandas and zipfile for files that are damaged."""


def load(name: str, folder: str | Path | None, checksums: Sequence[str] | None) -> Dataset:
    """Return the images in a file, in float32 on the CPU, with labels 0..classes-1.

    Whole numbers from 0 to 255 are divided by 255, whatever their dtype. All arrays of the file
    have one scale. Other numbers are not changed. Labels are numbered in their order: 3, 5, 8
    become 0, 1, 2. Labels that are not all whole numbers of 64 bits are names. name: the file's
    name. folder: the file's folder. checksums: a list with the expected SHA-256 of the file. Raises
    InputError with the file's name if the file has another checksum, or does not have images with
    labels.
    """
    path = Path(folder or "") / name
    if (digest := sha256_of(path)) not in (checksums or []):
        raise InputError(f"{path} has changed: give the command again")
    arrays = _arrays(path)
    images, labels = (_array(path, arrays, key) for key in NAMES[:2])
    if len(extra := [key for key in NAMES[2:] if key in arrays]) == 1:
        raise InputError(f"{path} has {extra[0]}: test_images and test_labels are needed together")
    if extra:
        test_images, test_labels = (_array(path, arrays, key) for key in extra)
        labels, test_labels = _names_or_numbers(path, [labels, test_labels])
        images, test_images = _scaled(path, {"images": images, "test_images": test_images})
        tests = [test_images, test_labels]
    else:
        (labels,), (images,) = _names_or_numbers(path, [labels]), _scaled(path, {"images": images})
        (images, labels), tests = _divided(path, images, labels)
    classes = np.unique(labels)
    if len(classes) < 2:
        raise InputError(f"{path}: labels has one class only ({classes[0]}): two are needed")
    if len(unknown := np.setdiff1d(tests[1], classes)):
        raise InputError(f"{path}: test_labels has {unknown[0]}, which no training image has")
    train = _labelled(path, "images", images, labels, classes)
    test = _labelled(path, "test_images" if extra else "images", tests[0], tests[1], classes)
    if train.pixels.shape[1:] != test.pixels.shape[1:]:
        sizes = " but test_images ".join(str(tuple(p.pixels.shape[1:])) for p in (train, test))
        raise InputError(f"{path}: images have the shape {sizes}")
    data = Dataset(name, train, test, len(classes), {str(path): digest}, is_own=True)
    _tell(path, data, classes)
    return data


def _tell(path: Path, data: Dataset, classes: np.ndarray) -> None:
    """Log what was read: numbers of images, their shape, the range of the pixels, the classes."""
    names = ", ".join(map(str, classes[:5])) + (", ..." if len(classes) > 5 else "")
    shape = " x ".join(map(str, data.train.pixels.shape[1:]))
    log.info(
        "%s: %d training and %d test images of %s (channels x height x width), %s; %d classes: %s",
        *(path, len(data.train), len(data.test), shape, data.pixels_in_words(), len(classes)),
        names,
    )


def _arrays(path: Path) -> Mapping[str, np.ndarray]:
    """Return the arrays in a file by name. Raises InputError if they cannot be read."""
    kind = path.suffix.lower()
    if kind == ".npy":
        raise InputError(
            f"{path} has one array only: np.savez('{path.stem}.npz', images=..., labels=...) saves"
            " images with their labels"
        )
    if kind == ".npz" and not zipfile.is_zipfile(path):
        raise InputError(f"{path} is no whole npz file, which np.savez writes")
    key = ""
    try:
        if kind == ".csv":
            return image_tables.read(path)
        with np.load(path, allow_pickle=False) as file:
            arrays, used = {}, {name: ALIASES.get(name, name) for name in file.files}
            for key, name in [(key, name) for key, name in used.items() if name in NAMES]:
                if name in arrays:
                    raise InputError(f"{path} has two arrays with {name}: {key} is one of them")
                arrays[name] = file[key]
            if left := [key for key, name in used.items() if name not in NAMES]:
                log.info("%s: not read: %s", path, ", ".join(left))
            return arrays
    except InputError:
        raise
    except DAMAGED as error:
        why = " ".join(str(error).split()) or type(error).__name__
        if "allow_pickle" in why:
            kept = ".astype(str)" if key.endswith("labels") else ".astype(float)"
            why = f"{key} holds Python objects: save {key}{kept}"
        raise InputError(f"{path} cannot be read as {kind[1:]} ({why})") from error


def _array(path: Path, arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    """Return one array of the file.

    Raises InputError if the array is missing or empty, or if labels are neither whole numbers nor
    names.
    """
    if key not in arrays:
        raise InputError(f"{path} has no array {key}: images and labels are needed")
    array = arrays[key]
    if not isinstance(array, np.ndarray):  # zipfile returns the bytes of another kind of file
        raise InputError(f"{path}: {key} is no array, which np.savez writes")
    if not array.size:
        raise InputError(f"{path}: {key} is empty, of shape {array.shape}")
    return _label_array(path, key, array) if key.endswith("labels") else array


def _label_array(path: Path, key: str, array: np.ndarray) -> np.ndarray:
    """Return labels (n,) as whole numbers, or as an array of Python's texts."""
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(
            f"{path}: {key} has the shape {array.shape}: one label for each image is needed"
            " (labels.argmax(1) of rows with a single 1)"
        )
    if array.dtype.kind == "S":
        try:
            array = np.char.decode(array, "utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{path}: {key} are bytes that are no UTF-8 text") from error
    if array.dtype.kind in "UO":
        return array.astype(object)
    if array.dtype.kind == "f" and np.isfinite(array).all():
        if np.array_equal(array, np.round(array)):
            return np.array([int(label) for label in array], dtype=object)
    elif array.dtype.kind in "iub":
        return array.astype(np.int64) if array.dtype.kind == "b" else array
    raise InputError(f"{path}: {key} are {array.dtype}: whole numbers or names are needed")


PLAIN = np.iinfo(np.int64)


def _names_or_numbers(path: Path, parts: list[np.ndarray]) -> list[np.ndarray]:
    """Return labels in int64 if all are plain whole numbers of 64 bits, otherwise as texts.

    parts: the labels of training images, and of test images if any. `01` and `1.0` are no plain
    whole numbers. Raises InputError for names that differ only in blanks at their ends.
    """
    texts = [[str(label) for label in part] for part in parts]
    every = {text for part in texts for text in part}
    if all(_is_plain(text) for text in every):
        return [np.array([int(text) for text in part], dtype=np.int64) for part in texts]
    bare: dict[str, str] = {}
    for text in sorted(every):
        if bare.setdefault(text.strip(), text) != text:
            both = f"{bare[text.strip()]!r} and {text!r}"
            raise InputError(f"{path}: the labels {both} differ in blanks only: give them one name")
    return [np.array(part, dtype=object) for part in texts]


def _is_plain(text: str) -> bool:
    """Return whether a text is a whole number of 64 bits, written as Python writes it."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return False
    return str(int(text)) == text and PLAIN.min <= int(text) <= PLAIN.max


def _scaled(path: Path, parts: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Return all images of a file on one scale, as float32.

    If all are whole numbers from 0 to 255, and some are above 1, they are divided by 255. Otherwise
    no image is changed. parts: the arrays by name. Raises InputError for arrays without finite real
    numbers, and for arrays of different scales.
    """
    lows, highs, whole = {}, {}, {}
    for key, images in parts.items():
        if images.dtype.kind not in "biuf":
            raise InputError(
                f"{path}: the array {key} has the type {images.dtype}: store real numbers, as in"
                f' {key}.astype("float32")'
            )
        low, high = float(images.min()), float(images.max())
        if not -(largest := np.finfo(np.float32).max) <= low <= high <= largest:  # or NaN
            raise InputError(
                f"{path}: {key} has NaN, or numbers beyond float32, first in {key}"
                f"[{np.nonzero(~(np.abs(images) <= largest))[0][0]}]"
            )
        lows[key], highs[key] = low, high
        whole[key] = images.dtype.kind in "biu" or np.array_equal(images, np.round(images))
    for key in parts:
        if not whole[key] and 0 <= lows[key] <= highs[key] <= 1:
            other = max(highs, key=highs.__getitem__)
            if highs[other] > (1 if whole[other] else LIKE_BYTES) and lows[other] >= 0:
                raise InputError(
                    f"{path}: {key} has pixels from {lows[key]:.3g} to {highs[key]:.3g}, but"
                    f" {other} from {lows[other]:.3g} to {highs[other]:.3g}: save both on one scale"
                )
    are_bytes = all(whole.values()) and min(lows.values()) >= 0 and 1 < max(highs.values()) <= BYTE
    pixels = [images.astype(np.float32) for images in parts.values()]
    if are_bytes:
        log.info("%s: pixels are whole numbers up to %d: divided by 255", path, max(highs.values()))
        for images in pixels:
            images /= BYTE
    return pixels


def _divided(
    path: Path, images: np.ndarray, labels: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return images and labels for training, and a fifth of each class for testing."""
    _require_equal(path, "images and labels", images, labels)
    order = np.random.default_rng(0).permutation(len(labels))
    number_in_class = pd.Series(order).groupby(labels[order]).cumcount().to_numpy()
    is_test = np.empty(len(labels), dtype=bool)
    is_test[order] = number_in_class % HELD_OUT == HELD_OUT - 1
    if not is_test.any():
        raise InputError(
            f"{path} has no test_images, and too few images to use some as test images"
        )
    log.info("%s has no test_images: %d of its images are used for testing", path, is_test.sum())
    return [images[~is_test], labels[~is_test]], [images[is_test], labels[is_test]]


def _require_equal(path: Path, what: str, images: np.ndarray, labels: np.ndarray) -> None:
    """Raise InputError if there are not as many labels as images."""
    if len(images) != len(labels):
        raise InputError(
            f"{path}: the numbers of {what} differ: {len(images)} images, {len(labels)} labels"
            f"{'. The first axis counts images' * (len(labels) in images.shape)}"
        )


def _labelled(
    path: Path, key: str, images: np.ndarray, labels: np.ndarray, classes: np.ndarray
) -> Images:
    """Return images with their classes, numbered from 0.

    key: the name of the images in the file. classes: all labels, sorted.
    """
    _require_equal(path, f"{key} and labels", images, labels)
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    known = torch.tensor([numbers[label] for label in labels.tolist()], dtype=torch.long)
    return Images(_pixels(path, key, images), known)


def _pixels(path: Path, key: str, images: np.ndarray) -> Tensor:
    """Return the images as a tensor (n, channels, height, width).

    Rows of numbers become images of height 1. Channels are the second axis, or the last axis if
    only its length is in CHANNELS. Raises InputError for other numbers of axes, and if both may be
    the channels.
    """
    if images.ndim not in (2, 3, 4):
        raise InputError(
            f"{path}: {key} has the shape {images.shape}: (n, pixels), (n, height, width) or (n,"
            " channels, height, width) is needed"
        )
    pixels = torch.from_numpy(images)
    is_last = images.ndim == 4 and images.shape[3] in CHANNELS
    if is_last and images.shape[1] in CHANNELS:
        raise InputError(
            f"{path}: {key} has the shape {images.shape}: the channels may be the second axis or"
            " the last. Save grey images as (n, height, width), and others with a border"
        )
    if is_last:
        return pixels.movedim(3, 1).contiguous()
    return pixels.reshape(len(pixels), *[1] * (4 - images.ndim), *images.shape[1:])
