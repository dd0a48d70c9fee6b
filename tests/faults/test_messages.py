"""What is said of an argument, a file or a name that cannot be used: one line about this thing."""

import io
import shlex
import subprocess
import tarfile

import numpy as np
import pytest
from in_process import check_only

from runner.core import catalogue
from runner.core.errors import InputError
from runner.core.input_files import sha256_of
from runner.data import cifar
from runner.data.own_images import load

SAID = [
    (["seed=${oc.decode:'[1'}"], "seed: its ${...} cannot be resolved (GrammarParseError"),
    (["grid=${oc.env:NO_SUCH_VARIABLE}"], "grid: its ${...} cannot be resolved (KeyError"),
    (["depths=${oc.decode:'{'}"], "depths: its ${...} cannot be resolved"),
    (["depths=x", "--info=config"], "depths must be a list: depths=[...]"),
    (["seed=a=b"], "seed=a=b cannot be read: seed is int, as in seed=1"),
    (["grid=!"], "grid=! cannot be read: grid is int, as in grid=1"),
    (["depths=[8;16]"], "depths is list[int], as in depths=[8,16]"),
    (["force=&"], "force is bool, as in force=true"),
    (["note=x=y"], "a text with signs needs quotes, as in \"note='x=y'\""),
    (["experiment=true"], "experiment=true is unknown: a name is needed"),
    (["scale=1e308"], "scale=1e308 is unknown: choose from"),
    (["scale=null"], "scale=null is unknown: choose from"),
    (["figure=7"], "figure=7 is unknown: choose from"),
    (["figure=true"], "figure=true is unknown: choose from"),
    (["data=12"], "data=12 is unknown: a name is needed"),
    (["depths=8,16"], "depths=8,16: a list needs brackets: depths=[8,16], or -m depths=[8],[16]"),
    (["-m", "depths=4,8,12"], "depths=[4,8,12], or -m depths=[4],[8],[12] for a run of each"),
]


@pytest.mark.parametrize(("words", "said"), SAID)
def test_a_wrong_argument_is_one_line(words, said, monkeypatch, capsys):
    assert check_only(["study=example20", *words], monkeypatch) == 2
    shown = capsys.readouterr().err.splitlines()
    assert said in shown[-1] and len(shown) == 1, shown


@pytest.mark.parametrize("study", ["1e308", "true", "null", "[nothing]"])
def test_a_study_that_is_no_name_lists_the_names(study, monkeypatch, capsys):
    assert check_only([f"study={study}"], monkeypatch) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "is unknown: choose from annealing, bn_only, " in line


def test_a_file_with_a_byte_order_mark_is_named(tmp_path, monkeypatch, capsys):
    path = tmp_path / "mine" / "experiment" / "own.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("\ufeff# @package _global_\nseed: 3\n", "utf-8")
    monkeypatch.setenv(catalogue.FOLDERS, "")
    assert check_only(["--config-dir", str(tmp_path / "mine"), "experiment=own"], monkeypatch) == 2
    assert f"{path} begins with a byte order mark" in capsys.readouterr().err
    catalogue.forget()


@pytest.mark.parametrize("text", ["import sys\nsys.exit()", "raise SystemExit('x')", "exit(0)"])
def test_methods_that_end_the_program_end_no_command(text, tmp_path, monkeypatch, capsys):
    folder = tmp_path / tmp_path.name  # a module of its own for each test
    folder.mkdir()
    (folder / "methods.py").write_text(text)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    words = ["--config-dir", str(folder), "study=example20", "--dry-run"]
    assert check_only(words, monkeypatch) == 0
    shown = capsys.readouterr()
    assert "methods.py cannot be imported (SystemExit" in shown.err and shown.out
    catalogue.forget()


CLASS = """
import runner


@runner.register("normalization", "halved_norm")
class Halved:
    pass
"""


@pytest.mark.parametrize(("name", "start"), [("halved_norm", "error: "), ("none", "note: ")])
def test_a_method_that_cannot_be_registered_is_the_error_if_it_is_needed(
    name, start, tmp_path, monkeypatch, capsys
):
    folder = tmp_path / tmp_path.name
    folder.mkdir()
    (folder / "methods.py").write_text(CLASS)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    words = ["study=rank_collapse", f"normalizations=[{name}]", "--dry-run"]
    assert check_only(["--config-dir", str(folder), *words], monkeypatch) == 2 * (name != "none")
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{start}normalization=halved_norm: a function is needed, not a class")
    catalogue.forget()


@pytest.mark.parametrize("words", [["Ünï"], ["uni", "--package", "pä"], ["λ"]])
def test_a_new_study_has_a_name_that_arguments_can_have(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert check_only(["new", "study", *words], monkeypatch) == 2
    assert "cannot be used as a name here" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


IMAGES = np.random.default_rng(0).random((30, 6, 5))
LABELS = np.arange(30) % 3


def read(path, **arrays):
    np.savez(path, **arrays)
    return load(path.name, path.parent, [sha256_of(path)])


@pytest.mark.parametrize(
    "names",
    [
        ("x_train", "y_train", "x_test", "y_test"),
        ("train_images", "train_labels", "test_images", "test_labels"),
    ],
)
def test_names_of_other_programs_are_read(names, tmp_path, caplog):
    parts = (IMAGES, LABELS[:, None], IMAGES[:9], LABELS[:9])
    data = read(tmp_path / "a.npz", **dict(zip(names, parts, strict=True)), val_images=IMAGES)
    assert len(data.train) == 30 and len(data.test) == 9
    assert (data.train.pixels[:, 0].numpy() == IMAGES.astype(np.float32)).all()
    assert "not read: val_images" in caplog.text
    with pytest.raises(InputError, match="two arrays with images: x_train is one of them"):
        read(tmp_path / "b.npz", images=IMAGES, labels=LABELS, x_train=IMAGES)


@pytest.mark.parametrize("shape", [(4, 4, 3), (1, 8, 3), (3, 7, 1), (1, 9, 1), (4, 2, 4)])
def test_channels_that_may_be_first_or_last_are_refused(shape, tmp_path):
    images = np.random.default_rng(0).random((30, *shape))
    with pytest.raises(InputError, match="channels may be the second axis or the last") as error:
        read(tmp_path / "a.npz", images=images, labels=LABELS)
    assert "\n" not in str(error.value) and str((24, *shape)) in str(error.value)


def test_files_of_cifar_under_other_names_in_the_archive_are_unpacked_as_the_message_says(tmp_path):
    members = {
        f"{cifar.FOLDER}/{name}": bytes([1] * cifar.RECORD) for name in cifar.TRAIN + cifar.TEST
    }
    with tarfile.open(tmp_path / "cifar.tar.gz", "w:gz") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(f"./{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    source = {"url": "", "files": [{"name": "cifar.tar.gz", "checksum": ""}]}
    with pytest.raises(InputError) as error:
        cifar.files(source, tmp_path)
    told = str(error.value).rpartition("unpack it: ")[2]
    subprocess.run(shlex.split(told), check=True)
    assert [file.content for file in cifar.files(source, tmp_path)] == [*members.values()]
