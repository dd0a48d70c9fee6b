"""Images of the user: what is read, what is refused in one line, and what makes another run."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from in_process import composed, job_of, order_of, run

from runner.core import catalogue
from runner.core.errors import InputError
from runner.core.input_files import sha256_of
from runner.data.own_images import load
from runner.papers.batch_norm_rank.learning import chance_level
from runner.runs import run as stored
from runner.runs.execution import execute
from runner.runs.inventory import find
from runner.runs.query import differing, fits, values_of
from runner.runs.run import functions_of, run_name

N = 30
IMAGES, LABELS = np.random.default_rng(0).random((N, 6, 5)), np.arange(N) % 3
WORDS = ("study=rank_collapse", "scale=smoke", "depth=1", "samples=4", "batch_size=4")


def read(path: Path):
    return load(path.name, path.parent, [sha256_of(path)])


def saved(path: Path, **arrays) -> Path:
    np.savez(path, **{"images": IMAGES, "labels": LABELS} | arrays)
    return path


def table(**columns) -> pd.DataFrame:
    pixels = pd.DataFrame(IMAGES.reshape(N, -1), columns=[f"pixel{i}" for i in range(30)])
    return pixels.assign(label=LABELS, **columns)


@pytest.mark.parametrize(
    ("arrays", "shape"),
    [
        ({}, (1, 6, 5)),
        ({"images": IMAGES.reshape(N, -1)}, (1, 1, 30)),
        ({"images": np.repeat(IMAGES[..., None], 3, -1)}, (3, 6, 5)),
        ({"images": np.repeat(IMAGES[:, None], 2, 1)}, (2, 6, 5)),
        ({"labels": LABELS[:, None] + 7.0}, (1, 6, 5)),
        ({"labels": np.array(["cat", "dog", "eel"])[LABELS]}, (1, 6, 5)),
    ],
)
def test_any_shape_and_any_names_of_classes_are_read(arrays, shape, tmp_path):
    data = read(saved(tmp_path / "a.npz", **arrays))
    assert data.train.pixels.shape == (24, *shape) and data.test.pixels.shape == (6, *shape)
    assert data.classes == 3 and data.name == "a.npz"
    assert data.test.labels.bincount().tolist() == [2, 2, 2], "a fifth of each class"
    first = torch.from_numpy(IMAGES[0]).float()
    found = [(image[0].reshape(-1) == first.reshape(-1)).all() for image in data.train.pixels]
    assert sum(found) <= 1, "each image once"


def test_test_images_are_those_of_the_file_and_bytes_become_pixels_up_to_one(tmp_path):
    tests = {"test_images": np.full((2, 6, 5), 255, np.uint8), "test_labels": [2, 0]}
    data = read(saved(tmp_path / "a.npz", images=(IMAGES * 255).astype(np.uint8), **tests))
    assert (data.test.pixels == 1).all() and data.test.labels.tolist() == [2, 0]
    bytes_ = torch.from_numpy((IMAGES * 255).astype(np.uint8))
    assert torch.equal(data.train.pixels[:, 0], bytes_.float() / 255)
    is_test = (np.arange(N) > 20).astype(int)
    table(test=is_test).to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv")
    assert len(data.test) == is_test.sum() and data.train.pixels.shape[1:] == (1, 1, 30)


def test_classes_in_a_csv_file_may_be_called_na(tmp_path):
    names = pd.Series(["NA", "null", "nan"])[LABELS].to_numpy()
    table().assign(label=names).to_csv(tmp_path / "a.csv", index=False)
    data = read(tmp_path / "a.csv")
    assert data.classes == 3 and len(data.train) == 24
    table(test=np.arange(N) > 20).assign(label=LABELS + 9).to_csv(tmp_path / "b.csv", index=False)
    data = read(tmp_path / "b.csv")
    assert data.classes == 3 and len(data.test) == 9, "9, 10, 11 are sorted as numbers"
    assert data.train.labels.tolist() == LABELS[:21].tolist()


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("test", "", "row 3, column test is blank: 0 or 1 is needed"),
        ("test", " ", "row 3, column test is blank: 0 or 1 is needed"),
        ("test", "yes", "row 3, column test is yes"),
        ("test", "2", "row 3, column test is 2"),
        ("label", "", "row 3, column label is blank: a name or a whole number"),
        ("label", " ", "row 3, column label is blank"),
        ("pixel3", "", "row 3, column pixel3 is blank: a number within"),
        ("pixel3", "dog", "row 3, column pixel3 is dog"),
        ("pixel3", "nan", "row 3, column pixel3 is nan"),
        ("pixel3", "inf", "row 3, column pixel3 is inf"),
        ("pixel3", "1e300", "row 3, column pixel3 is 1e"),
        ("label", "0.5", "row 3, column label is 0.5: a name or a whole number"),
    ],
)
def test_a_wrong_cell_of_a_csv_file_is_refused(column, cell, said, tmp_path):
    cells = table(test=(np.arange(N) > 20).astype(int)).astype(str)
    cells.loc[2, column] = cell
    cells.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(InputError, match=said):
        read(tmp_path / "a.csv")


WITH_NAN = np.where(np.arange(30).reshape(6, 5) == 7, np.nan, IMAGES)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"images": IMAGES[:0], "labels": LABELS[:0]}, "images is empty"),
        (
            {"images": np.moveaxis(IMAGES, 0, -1)},
            "6 images, 30 labels. The first axis counts images",
        ),
        ({"images": IMAGES + 1j}, "array images has the type complex128: store real numbers"),
        ({"images": IMAGES.astype(str)}, "store real numbers, as in images.astype"),
        ({"labels": LABELS.astype(object)}, r"cannot be read as npz .*labels\.astype\(str\)"),
        ({"images": IMAGES.astype(object)}, r"as npz .*save images\.astype\(float\)"),
        ({"images": WITH_NAN}, "npz: images has NaN"),
        ({"images": np.where(np.arange(N)[:, None, None] < 15, IMAGES, np.nan)}, r"images\[15\]$"),
        ({"images": IMAGES * 1e300}, "beyond float32"),
        ({"images": IMAGES[..., None, None]}, r"has the shape \(24, 6, 5, 1, 1\)"),
        ({"images": IMAGES[:, 0, 0]}, r"has the shape \(24,\)"),
        ({"labels": LABELS[:20]}, "30 images, 20 labels"),
        ({"labels": LABELS * 0}, r"one class only \(0\)"),
        ({"labels": LABELS + 0.5}, "labels are float64: whole numbers"),
        ({"labels": np.eye(3)[LABELS]}, r"labels has the shape \(30, 3\)"),
        ({"images": IMAGES[:4], "labels": LABELS[:4]}, "too few images to use some as test images"),
        ({"test_images": IMAGES}, "test_images and test_labels are needed together"),
        ({"test_images": IMAGES, "test_labels": LABELS[:20]}, "30 images, 20 labels"),
        ({"test_images": IMAGES, "test_labels": LABELS + 1}, "has 3, which no training image"),
        ({"test_images": IMAGES[:, :4], "test_labels": LABELS}, r"\(1, 4, 5\)"),
    ],
)
def test_wrong_content_is_one_line_with_the_name_of_the_file(arrays, said, tmp_path):
    with np.errstate(over="ignore"), pytest.raises(InputError, match=said) as error:
        read(saved(tmp_path / "a.npz", **arrays))
    assert "\n" not in str(error.value) and str(tmp_path / "a.npz") in str(error.value)


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("a.npz", lambda path: path.write_text("text"), "no whole npz file"),
        ("a.npz", lambda path: np.savez(path, images=IMAGES), "no array labels"),
        ("a.npy", lambda path: np.save(path, IMAGES), "np.savez"),
        ("a.csv", lambda path: path.write_text(""), "cannot be read as csv"),
        ("a.csv", lambda path: path.write_text("label,a\n"), "has no rows below the header"),
        ("a.csv", lambda path: path.write_text("a,b\n1,2\n"), "is a, its last b: name"),
        (
            "a.csv",
            lambda path: path.write_text("label,a\n0,1\n1,dog\n" * 9),
            "row 2, column a is dog",
        ),
    ],
)
def test_files_of_another_kind_are_refused(name, write, said, tmp_path):
    write(tmp_path / name)
    with pytest.raises(InputError, match=said):
        read(tmp_path / name)


def test_the_content_is_part_of_the_run_and_the_folder_is_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("one", "other, with spaces"):
        (tmp_path / folder).mkdir()
        saved(tmp_path / folder / "a, b.npz")
    names = {
        run_name(composed(*WORDS, *words)[1])
        for words in (
            ["data=one/a, b.npz"],
            [f"data={tmp_path}/other, with spaces/a, b.npz"],
            ["data=a, b.npz".replace("data=", "data='") + "'", "data_folder=one"],
        )
    }
    (name,) = names
    assert "data=a, b.npz" in name
    saved(tmp_path / "one" / "a, b.npz", labels=LABELS[::-1])
    assert run_name(composed(*WORDS, "data=one/a, b.npz")[1]) != name


def test_a_run_on_three_classes_and_a_file_that_changes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "a.npz")
    job = job_of(*WORDS, "data=a.npz")
    execute(job.run, job.settings)
    assert list(job.run.provenance()["data"]) == [str(tmp_path / "a.npz")]
    assert chance_level(stored.load([job.run])) == pytest.approx(1 / 3)
    assert "runner.data.own_images:load" in functions_of(job.config)
    assert run(["runs", "show", job.run.folder.name[-8:]], monkeypatch) == 0
    assert f"'{tmp_path}/a.npz'" in (shown := capsys.readouterr().out) and "checksums" not in shown

    late = job_of(*WORDS, "data=a.npz", "seed=1")
    saved(tmp_path / "a.npz", labels=LABELS[::-1])
    with pytest.raises(InputError, match=r"a\.npz has changed: give the command again"):
        execute(late.run, late.settings)
    assert run([*WORDS, "data=a.npz"], monkeypatch) == 0
    assert len(list(tmp_path.glob("outputs/runs/rank_collapse/*/result.json"))) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("data=nowhere/a.npz",), "data=nowhere/a.npz: there is no file {here}/nowhere/a.npz"),
        (
            ("data=b.npz", "data_folder=c"),
            "no file {here}/b.npz or {here}/c/b.npz: did you mean",
        ),
        (("data=grain.npz",), "there is no file {here}/grain.npz: did you mean 'grains.npz'?"),
        (("data=a.npz", "data=digits"), "data is given twice: a.npz and digits"),
        (("data=a.npz", "checksums=[a]"), "a file of your own needs no checksums"),
        (("data=images",), "or your own images, as stripes.npz"),
        (
            ("study=invariances", "data=a.npz"),
            "data=a.npz is unknown: choose from digits, gaussian",
        ),
    ],
)
def test_wrong_words_are_one_line(words, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("a.npz", *["grains.npz"] * ("grain" in said)):
        saved(tmp_path / name)
    typed = words if words[0].startswith("study") else ("study=rank_collapse", *words)
    assert run([*typed, "--dry-run"], monkeypatch) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said.format(here=tmp_path) in line


def test_sweeps_and_hydra_s_flags_know_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    saved(tmp_path / "a.npz")
    jobs = order_of(*WORDS, "data=digits,a.npz", "seed=0,1", multirun=True).jobs
    assert [job.config.data for job in jobs] == ["digits", "digits", "a.npz", "a.npz"]
    assert [job.config.checksums is None for job in jobs] == [True, True, False, False]
    folder = tmp_path / "mine" / "experiment"
    folder.mkdir(parents=True)
    text = "# @package _global_\ndefaults:\n  - override /study: rank_collapse\ndata: a.npz\n"
    (folder / "own.yaml").write_text(text)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    words = ["--config-dir", "mine", "experiment=own", *WORDS[1:]]
    assert run(words, monkeypatch) == 0
    assert [*tmp_path.glob("outputs/runs/rank_collapse/*data=a.npz*/result.json")]
    assert "starts: rank_collapse data=a.npz experiment=own " in capsys.readouterr().err
    catalogue.forget()
    assert run([*WORDS, "data=a.npz", "--cfg", "job"], monkeypatch) == 0
    assert "data: a.npz" in capsys.readouterr().out


def test_two_files_of_one_name_are_told_apart_in_lists_and_plots(tmp_path, monkeypatch, capsys):
    for number in (0, 1):
        folder = tmp_path / str(number)
        folder.mkdir()
        saved(folder / "a.npz", images=IMAGES + number)
        settings, config = composed(*WORDS, "train=false", f"data={folder}/a.npz")
        execute(stored.Run(config, tmp_path / "outputs"), settings)
    runs = [info.run for info in find(tmp_path / "outputs")]
    digits = {run.config.checksums[0][:4] for run in runs}
    assert differing(runs) == ["data"]
    assert {*values_of(runs, "data")} == {f"a.npz#{four}" for four in digits}
    assert values_of(runs[:1], "data") == ["a.npz"], "one file needs no digits"
    assert run(["runs", "list", f"outputs={tmp_path}/outputs"], monkeypatch) == 0
    shown = capsys.readouterr().out
    assert len(digits) == 2 and all(f"a.npz#{four}" in shown for four in digits)


def test_a_whole_number_chooses_no_neighbor():
    rows = pd.DataFrame({"seed": [2**53, 2**53 + 1, 2**53 + 2, 2**62 + 1]})
    assert fits(rows, f"seed={2**53 + 1}").tolist() == [False, True, False, False]
    assert fits(rows, f"seed=[{2**62 + 1},{2**53}]").tolist() == [True, False, False, True]
    numbers = pd.DataFrame({"rate": [1e5, 0.1], "hash": ["39765891", "1e5"]})
    assert fits(numbers, "rate=1e5").tolist() == [True, False]
    assert fits(numbers, "hash=39765891").tolist() == [True, False]
