"""Images of users: one scale for a file, plain labels, fair subsets."""

import logging

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import run

from runner.core.errors import InputError
from runner.core.input_files import sha256_of
from runner.data.own_images import load

STREAM = np.random.default_rng(5)
BYTES, LABELS = STREAM.integers(0, 256, (60, 4, 4)), np.arange(60) % 3


def read(path):
    return load(path.name, path.parent, [sha256_of(path)])


@pytest.mark.parametrize("types", [("u1", "f4"), ("f8", "u1"), ("i8", "f2"), ("u2", "i4")])
def test_all_arrays_of_a_file_have_one_scale_whatever_their_dtypes(types, tmp_path):
    train, test = BYTES[:40].astype(types[0]), BYTES[40:].astype(types[1])
    labels = {"labels": LABELS[:40], "test_labels": LABELS[40:]}
    np.savez(tmp_path / "a.npz", images=train, test_images=test, **labels)
    data = read(tmp_path / "a.npz")
    for part, written in ((data.train, BYTES[:40]), (data.test, BYTES[40:])):
        assert torch.equal(part.pixels[:, 0], torch.from_numpy(written).float() / 255)


@pytest.mark.parametrize("factor", [1 / 255, 0.8 / 255])
def test_arrays_of_different_scales_are_refused(factor, tmp_path):
    labels = {"labels": LABELS[:40], "test_labels": LABELS[40:]}
    parts = [BYTES[:40] * factor, BYTES[40:] + 0.5]
    for train, test in (parts, parts[::-1]):
        np.savez(tmp_path / "a.npz", images=train, test_images=test, labels=LABELS[: len(train)],
                 test_labels=LABELS[: len(test)])  # fmt: skip
        with pytest.raises(InputError, match=r"images has pixels from .*: save both on one scale"):
            read(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", images=BYTES[:40] - 90.5, test_images=parts[0][:20], **labels)
    assert read(tmp_path / "a.npz").train.pixels.min() < -80, "standardized images may be below 1"


def test_a_csv_file_of_bytes_has_the_pixels_of_the_npz_file_and_the_log_says_them(tmp_path, caplog):
    table = pd.DataFrame(BYTES.reshape(60, -1)).add_prefix("p").assign(label=LABELS)
    table.to_csv(tmp_path / "a.csv", index=False)
    np.savez(tmp_path / "a.npz", images=BYTES.reshape(60, -1).astype("u1"), labels=LABELS)
    caplog.set_level(logging.INFO)
    pixels = [read(tmp_path / name).train.pixels for name in ("a.csv", "a.npz")]
    assert torch.equal(*pixels) and pixels[0].max() == 1
    assert "a.csv: 48 training and 12 test images of 1 x 1 x 16" in caplog.text
    assert "16 pixels from 0 to 1; 3 classes: 0, 1, 2" in caplog.text


def test_the_authors_pixels_are_not_multiplied_twice(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", images=BYTES + 0.25, labels=LABELS)
    words = ["study=pretraining", "scale=smoke", "protocol=authors", "script=fig4", "data=a.npz"]
    assert run(words, monkeypatch) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert "a.npz has pixels up to 255: protocol=authors multiplies pixels by 255" in line


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (np.array([0, 1e20, 2e20]), 3),
        (np.array([2**63, 2**63 + 1, 5], dtype="u8"), 3),
        (np.array([False, True, True]), 2),
        (np.array([b"NA", b"null", "Æ".encode()]), 3),
        (np.array(["01", "1", "1.0"]), 3),
    ],
)
def test_labels_of_an_npz_file_do_not_merge(labels, classes, tmp_path):
    np.savez(tmp_path / "a.npz", images=BYTES, labels=labels[LABELS])
    assert read(tmp_path / "a.npz").classes == classes


@pytest.mark.parametrize("labels", [["a", "a ", "b"], ["1", " 1", "x"]])
def test_names_that_differ_in_blanks_only_are_refused(labels, tmp_path):
    np.savez(tmp_path / "a.npz", images=BYTES, labels=np.array(labels)[LABELS])
    with pytest.raises(InputError, match="differ in blanks only"):
        read(tmp_path / "a.npz")


def test_bytes_that_are_no_text_and_files_that_are_no_arrays_are_one_line(tmp_path):
    np.savez(tmp_path / "a.npz", images=BYTES, labels=np.array([b"\xff\xfe", b"b", b"c"])[LABELS])
    with pytest.raises(InputError, match="labels are bytes that are no UTF-8 text"):
        read(tmp_path / "a.npz")


def test_the_training_images_of_a_sorted_file_are_of_all_classes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    order = np.argsort(LABELS, kind="stable")
    np.savez("a.npz", images=BYTES[order], labels=LABELS[order])
    words = ["study=rank_collapse", "scale=smoke", "depth=1", "samples=4", "batch_size=4"]
    assert run([*words, "data=a.npz", "train_images=12"], monkeypatch) == 0
    (log,) = tmp_path.glob("outputs/runs/*/*/run.log")
    assert "have none of" not in log.read_text()
