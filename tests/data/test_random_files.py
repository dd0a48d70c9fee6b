"""Random files of images: what comes back is what was written, or the file is refused in a line."""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.core.errors import InputError
from runner.core.input_files import sha256_of
from runner.data.own_images import load

PIXELS = {
    "bytes": lambda stream, shape: stream.integers(0, 256, shape).astype(np.uint8),
    "bytes in int64": lambda stream, shape: stream.integers(0, 256, shape),
    "bytes in float32": lambda stream, shape: stream.integers(0, 256, shape).astype(np.float32),
    "two bytes": lambda stream, shape: stream.integers(0, 65_536, shape).astype(np.uint16),
    "signed": lambda stream, shape: stream.integers(-128, 128, shape).astype(np.int8),
    "binary": lambda stream, shape: stream.integers(0, 2, shape).astype(bool),
    "from 0 to 1": lambda stream, shape: stream.random(shape),
    "half": lambda stream, shape: stream.random(shape).astype(np.float16),
    "standardized": lambda stream, shape: stream.normal(size=shape),
    "up to 255, with fractions": lambda stream, shape: 255 * stream.random(shape),
}
LABELS = {
    "numbers": [0, 1, 2],
    "negative": [-7, 0, 12],
    "large": [2**53, 2**53 + 1, 2**63 - 1],
    "floats": [0.0, 1e20, 2e20],
    "names": ["cat", "dog", "Æ"],
    "missing": ["NA", "null", "nan"],
    "digits": ["01", "1", "10"],
    "alike": ["1", "1.0", "1e0"],
    "blanks": ["a", "a b", "b"],
}
COUNTS = st.integers(15, 40)
SHAPES = st.sampled_from([(7,), (3, 5), (1, 2, 6), (2, 5, 6)])


def read(path: Path):
    return load(path.name, path.parent, [sha256_of(path)])


def text(label) -> str:
    return str(int(label)) if isinstance(label, float | int) else str(label)


def require_as_written(data, train, test):
    """Compare a dataset with the pairs (images, labels) of training and test images in the file.

    test: None if the program divides the images.
    """
    parts = [(part.flat().numpy(), part.labels.tolist()) for part in (data.train, data.test)]
    written = [pair for pair in (train, test) if pair is not None]
    every = np.concatenate([images.reshape(len(images), -1) for images, _ in written])
    scale = 255 if all_bytes(every) else 1
    names: dict[int, str] = {}

    def rows(images, labels):
        pixels = images.reshape(len(images), -1).astype(np.float32) / np.float32(scale)
        return [(row.tobytes(), text(label)) for row, label in zip(pixels, labels, strict=True)]

    wanted = [rows(*pair) for pair in written]
    by_row = dict(row for part in wanted for row in part)
    found = []
    for pixels, numbers in parts:
        assert {row.tobytes() for row in pixels} <= by_row.keys(), "the pixels of the file"
        for row, number in zip(pixels, numbers, strict=True):
            assert names.setdefault(number, by_row[row.tobytes()]) == by_row[row.tobytes()]
        found.append([(row.tobytes(), names[n]) for row, n in zip(pixels, numbers, strict=True)])
    assert len(set(names.values())) == len(names) == data.classes
    if test is None:
        assert Counter(found[0] + found[1]) == Counter(wanted[0])
    else:
        assert found == wanted, "the order of the file"


def all_bytes(pixels) -> bool:
    whole = np.array_equal(pixels, np.round(pixels))
    return bool(whole and pixels.min() >= 0 and 1 < pixels.max() <= 255)


def drawn(stream, kind, shape, names, count):
    """Return different images, and labels of which each name has at least two."""
    images = PIXELS[kind](stream, (count, *shape))
    flat = images.reshape(count, -1)
    _, first = np.unique(flat, axis=0, return_index=True)
    images = images[np.sort(first)]
    return images, [names[i % len(names)] for i in range(len(images))]


@given(st.data())
def test_npz_files(tmp_path, data):
    stream = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kinds = [data.draw(st.sampled_from([*PIXELS])) for _ in range(2)]
    shape, names = data.draw(SHAPES), LABELS[data.draw(st.sampled_from([*LABELS]))]
    train = drawn(stream, kinds[0], shape, names, data.draw(COUNTS))
    arrays, test = {"images": train[0], "labels": np.array(train[1])}, None
    if data.draw(st.booleans()):
        test = drawn(stream, kinds[1], shape, names, 9)
        arrays |= {"test_images": test[0], "test_labels": np.array(test[1])}
    every = np.concatenate([pair[0].reshape(len(pair[0]), -1) for pair in (train, test or train)])
    assume(len(np.unique(every, axis=0)) == len(train[0]) + len(test[0] if test else []))
    assume(len(train[0]) >= 15)  # few images of two values are different
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    try:
        found = read(path)
    except InputError as error:
        assert "save both on one scale" in str(error) and kinds[0] != kinds[1]
    else:
        require_as_written(found, train, test)


def cells_of(stream, kind, names, count, has_test):
    """Return header and rows of a CSV file, and the written images, labels and test flags."""
    images, labels = drawn(stream, kind, (6,), names, count)
    flags = np.arange(len(images)) % 4 == 3
    order = stream.permutation(6 + 1 + has_test)
    header = [*(f"p{i}" for i in range(6)), "label", *["test"] * has_test]
    rows = [
        [*(repr(value) for value in row.tolist()), label, *[int(flag)] * has_test]
        for row, label, flag in zip(images, labels, flags, strict=True)
    ]
    moved = [[row[i] for i in order] for row in [header, *rows]]
    return moved[0], moved[1:], images[:, order[order < 6]], labels, flags


OF_TABLES = [kind for kind in PIXELS if kind not in ("half", "binary")]


@given(st.data())
def test_csv_files(tmp_path, data):
    stream = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    names = LABELS[data.draw(st.sampled_from([name for name in LABELS if name != "floats"]))]
    kind, has_test = data.draw(st.sampled_from(OF_TABLES)), data.draw(st.booleans())
    header, rows, images, labels, flags = cells_of(stream, kind, names, 24, has_test)
    write(tmp_path / "a.csv", [header, *rows])
    chosen = [(images[rows], [x for x, r in zip(labels, rows, strict=True) if r])
              for rows in (~flags, flags)]  # fmt: skip
    train, test = chosen if has_test else ((images, labels), None)
    require_as_written(read(tmp_path / "a.csv"), train, test)


def write(path: Path, rows) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def renamed(header, rows, old, new):
    return [[new if name == old else name for name in header], *rows]


def with_names(h, rows):
    """Without a header: the first image is in its place."""
    return [["3" if name == "label" else "0" if name == "test" else f"{i}.5"
             for i, name in enumerate(h)], *rows]  # fmt: skip


WRONG = {
    "truth values": lambda h, rows: [[*h, "is_new"], *([*row, True] for row in rows)],
    "split": lambda h, rows: [[*h, "split"], *([*row, 0] for row in rows)],
    "no header": with_names,
    "tabs": lambda h, rows: [["\t".join(h)], *(["\t".join(map(str, row))] for row in rows)],
    "index": lambda h, rows: [["", *h], *([i, *row] for i, row in enumerate(rows))],
    "index of an index": lambda h, rows: [["Unnamed: 0", *h], *([7, *row] for row in rows)],
    "blank name": lambda h, rows: renamed(h, rows, "p3", "  "),
    "numbering": lambda h, rows: [["picture", *h], *([i + 1, *row] for i, row in enumerate(rows))],
    "id": lambda h, rows: renamed(h, rows, "p0", "ID "),
    "other label": lambda h, rows: [[*h, "Label"], *([*row, 3] for row in rows)],
    "only another label": lambda h, rows: renamed(h, rows, "label", " LABEL"),
    "other test": lambda h, rows: renamed(h, rows, "test", " Test"),
    "two names": lambda h, rows: renamed(h, rows, "p1", "p2"),
    "longer rows": lambda h, rows: [h, *([*row, 1] for row in rows)],
    "a longer row": lambda h, rows: [h, *rows[:4], [*rows[4], 1], *rows[5:]],
    "a shorter row": lambda h, rows: [h, *rows[:4], rows[4][:-1], *rows[5:]],
    "no label": lambda h, rows: renamed(h, rows, "label", "p99"),
    "semicolons": lambda h, rows: [[";".join(h)], *([";".join(map(str, row))] for row in rows)],
}  # fmt: skip


@given(st.data())
def test_csv_files_in_which_a_column_is_no_pixel(tmp_path, data):
    stream = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    kind, way = (data.draw(st.sampled_from([*names])) for names in (OF_TABLES, WRONG))
    header, rows, *_ = cells_of(stream, kind, LABELS["numbers"], 24, True)
    write(tmp_path / "a.csv", WRONG[way](header, rows))
    with pytest.raises(InputError) as error:
        read(tmp_path / "a.csv")
    assert "\n" not in str(error.value) and str(tmp_path / "a.csv") in str(error.value)


@given(st.data())
def test_damaged_files(tmp_path, data):
    """A byte is changed, or the end is missing: a line says it, or nothing has changed."""
    stream = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    train = drawn(stream, "bytes", (3, 5), LABELS["numbers"], 20)
    path = tmp_path / "a.npz"
    np.savez(path, images=train[0], labels=np.array(train[1]))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            content[stream.integers(len(content))] = stream.integers(256)
    path.write_bytes(content)
    try:
        found = read(path)
    except InputError as error:
        assert "\n" not in str(error) and str(path) in str(error)
    else:
        require_as_written(found, train, None)
