"""Images of the user, such as `data=stripes.npz`, of any shape and any number of classes.

An npz file has the arrays `images` and `labels`, and may have `test_images` and `test_labels`. A
CSV file has a column `label`. It may have a column `test`, which is 1 in the rows of test images.
All other columns are pixels. In a file without test images, a fifth of each class is chosen at
random for testing.
"""

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
from runner.data.datasets import Dataset, Images

NAMES = ("images", "labels", "test_images", "test_labels")
"""The arrays in an npz file. The last two are optional."""

CHANNELS = (1, 3, 4)
"""Numbers of channels that are recognized as the last axis: grey, color, color with alpha."""

HELD_OUT = 5
"""In a file without test images, one of so many images of each class is used for testing."""


def load(name: str, folder: str | Path | None, checksums: Sequence[str] | None) -> Dataset:
    """Return the images in a file, in float32 on the CPU, with labels 0..classes-1.

    Bytes become pixels in [0, 1]. Other numbers are not changed. Labels are numbered in their
    order: 3, 5, 8 become 0, 1, 2. name: the file's name. folder: the file's folder. checksums: a
    list with the expected SHA-256 of the file. Raises InputError with the file's name if the file
    has another checksum, or does not have images with labels.
    """
    path = Path(folder or "") / name
    if (digest := sha256_of(path)) not in (checksums or []):
        raise InputError(f"{path} has changed: give the command again")
    arrays = _arrays(path)
    images, labels = (_array(path, arrays, key) for key in NAMES[:2])
    if len(extra := [key for key in NAMES[2:] if key in arrays]) == 1:
        raise InputError(f"{path} has {extra[0]}: test_images and test_labels are needed together")
    if extra:
        tests = [_array(path, arrays, key) for key in extra]
    else:
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
    return Dataset(name, train, test, len(classes), {str(path): digest})


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
    try:
        if kind == ".csv":
            as_text = {"label": str, "test": str}
            table = pd.read_csv(path, dtype=as_text, keep_default_na=False)  # a class may be NA
            return _of_table(path, table)
        with np.load(path, allow_pickle=False) as file:
            return {key: file[key] for key in file.files if key in NAMES}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        why = " ".join(str(error).split())
        if "allow_pickle" in why:
            why = "an array holds Python objects: save labels with .astype(str)"
        raise InputError(f"{path} cannot be read as {kind[1:]} ({why})") from error


def _of_table(path: Path, table: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the arrays of a CSV file: images (n, pixels), labels, and test images if any.

    table: its columns `label` and `test` are text. Raises InputError if there is no column `label`,
    if a label is blank, or if `test` has another value than 0, 1, False and True.
    """
    if "label" not in table:
        raise InputError(f"{path} has no column label; its first column is {table.columns[0]}")
    labels = table["label"]
    is_test = table.get("test", pd.Series("0", table.index))
    numbers = pd.to_numeric(is_test.replace({"False": "0", "True": "1"}), errors="coerce")
    _require_cells(path, labels, labels.str.strip() != "", "a name or a whole number")
    _require_cells(path, is_test, numbers.isin([0, 1]), "0 or 1")
    if (whole := pd.to_numeric(labels, errors="coerce")).notna().all():
        labels = whole
    pixels, arrays = table.drop(columns=["label", "test"], errors="ignore"), {}
    for prefix, rows in (("", numbers == 0), ("test_", numbers == 1)):
        if rows.any():
            arrays[f"{prefix}images"] = pixels[rows].to_numpy()
            arrays[f"{prefix}labels"] = labels[rows].to_numpy()
    return arrays


def _require_cells(path: Path, cells: pd.Series, are_right: pd.Series, needed: str) -> None:
    """Raise InputError with the first wrong cell of a column of a CSV file.

    cells: the column, as text. are_right: whether each cell can be used. needed: what a cell is.
    """
    if not are_right.all():
        row = int(are_right.argmin())
        what = f"{cells.name} is {cells.iloc[row] or 'blank'} in image {row + 1}"
        raise InputError(f"{path}: {what}: {needed} is needed")


def _array(path: Path, arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    """Return one array of the file.

    Raises InputError if the array is missing or empty, or if labels are neither integers nor names.
    """
    if key not in arrays:
        raise InputError(f"{path} has no array {key}: images and labels are needed")
    array = arrays[key]
    if not array.size:
        raise InputError(f"{path}: {key} is empty, of shape {array.shape}")
    if key.endswith("labels"):
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1:
            raise InputError(f"{path}: {key} has the shape {array.shape}: one label for each image")
        if array.dtype.kind == "f" and np.array_equal(array, np.round(array)):
            array = array.astype(np.int64)
        if array.dtype.kind not in "iubUSO" or pd.isna(array).any():
            raise InputError(f"{path}: {key} are {array.dtype}: whole numbers or names are needed")
    return array.astype(str) if array.dtype.kind in "SO" and array.ndim == 1 else array


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
        )


def _labelled(
    path: Path, key: str, images: np.ndarray, labels: np.ndarray, classes: np.ndarray
) -> Images:
    """Return images with their classes, numbered from 0.

    key: the name of the images in the file. classes: all labels, sorted.
    """
    _require_equal(path, f"{key} and labels", images, labels)
    numbers = torch.from_numpy(np.searchsorted(classes, labels)).long()
    return Images(_pixels(path, key, images), numbers)


def _pixels(path: Path, key: str, images: np.ndarray) -> Tensor:
    """Return the images as a tensor (n, channels, height, width).

    Rows of numbers become images of height 1. Channels are the second axis, or the last axis if
    only its length is in CHANNELS. Raises InputError for other numbers of axes, for arrays without
    real numbers, and for NaN.
    """
    if images.dtype.kind not in "biuf":
        raise InputError(f"{path}: {key} are {images.dtype}: numbers are needed")
    if images.ndim not in (2, 3, 4):
        raise InputError(
            f"{path}: {key} has the shape {images.shape}: (n, pixels), (n, height, width) or (n,"
            " channels, height, width) is needed"
        )
    pixels = torch.from_numpy(images.astype(np.float32))
    if not pixels.isfinite().all():
        raise InputError(f"{path}: {key} has NaN, or numbers beyond float32")
    if images.dtype == np.uint8:
        pixels /= 255
    if images.ndim == 4 and images.shape[3] in CHANNELS and images.shape[1] not in CHANNELS:
        return pixels.movedim(3, 1).contiguous()
    return pixels.reshape(len(pixels), *[1] * (4 - images.ndim), *images.shape[1:])
