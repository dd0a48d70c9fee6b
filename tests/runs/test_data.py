"""The content of a dataset's files is part of a run's identity; where they are is not."""

import gzip
import hashlib
import struct
from dataclasses import replace

import pandas as pd
import pytest
import torch
from in_process import composed
from stopped import interrupted

from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.papers.batch_norm_rank.breaking_bn.config import BreakingBN
from runner.papers.batch_norm_rank.pretraining.config import Pretraining
from runner.papers.batch_norm_rank.rank_collapse.config import RankCollapse
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.runs.execution import execute
from runner.runs.inventory import problem
from runner.runs.run import Run, read_config, run_name

NAMES = ("train-images", "train-labels", "test-images", "test-labels")
SOURCE = {
    "url": "http://127.0.0.1:9/",  # the discard port: refuses connections
    "files": [{"name": f"{name}.gz", "checksum": None} for name in NAMES],
}
TINY = {
    "depth": 1, "width": 4, "data": "fashion_mnist", "samples": 8, "epochs": 3,
    "batch_size": 4, "replicates": 1, "learning_rates": [0.1], "normalizations": ["none"],
}  # fmt: skip


def contents(seed: int = 0, size: tuple = (28, 28), classes: int = 10) -> dict[str, bytes]:
    """Twelve images to train on and four to test on, as IDX files."""
    stream = torch.Generator().manual_seed(seed)
    found = {}
    for part, count in (("train", 12), ("test", 4)):
        pixels = torch.randint(256, (count, *size), generator=stream)
        for name, values in (("images", pixels), ("labels", torch.arange(count) % classes)):
            header = struct.pack(f">BBBB{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
            found[f"{part}-{name}"] = header + values.to(torch.uint8).numpy().tobytes()
    return found


def place(folder, files: dict[str, bytes], compressed: bool = True) -> list[str]:
    """Write the files; returns their checksums."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        path = folder / (f"{name}.gz" if compressed else name)
        path.write_bytes(gzip.compress(content) if compressed else content)
    return [hashlib.sha256(content).hexdigest() for content in files.values()]


def settings(outputs, data, **changes) -> Settings:
    changes = {"data_folder": str(data), "source": SOURCE, **changes}
    return Settings(outputs=str(outputs), device="cpu", **changes)


def tables(run: Run) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in run.folder.glob("*.csv")}


def test_the_same_images_from_other_files_give_the_same_run(tmp_path):
    checksums = place(tmp_path / "compressed", contents())
    assert place(tmp_path / "plain", contents(), compressed=False) == checksums
    runs = []
    for kind in ("compressed", "plain"):
        runs.append(Run(RankCollapse(**TINY, checksums=checksums), tmp_path / f"from {kind}"))
        execute(runs[-1], settings(tmp_path / f"from {kind}", tmp_path / kind))
    assert runs[0].folder.name == runs[1].folder.name
    assert tables(runs[0]) == tables(runs[1])
    assert problem(runs[0].folder) is None
    assert read_config(runs[0].folder) == runs[0].config
    paths = [str(tmp_path / "plain" / name) for name in NAMES]
    assert runs[1].provenance()["data"] == dict(zip(paths, checksums, strict=True))
    execute(runs[0], settings(tmp_path / "from compressed", tmp_path / "nowhere"))  # complete


def test_other_images_are_another_run(tmp_path):
    one, other = (
        RankCollapse(**TINY, checksums=place(tmp_path / str(seed), contents(seed)))
        for seed in (0, 1)
    )
    assert run_name(one) != run_name(other)
    assert run_name(one).rpartition("-")[0] == run_name(other).rpartition("-")[0]
    run = Run(one, tmp_path)
    with pytest.raises(InputError, match=f"train-images.gz .* expected {one.checksums[0]}"):
        execute(run, settings(tmp_path, tmp_path / "1"))
    assert not run.is_complete()


def test_files_replaced_while_a_run_is_interrupted_are_noticed(tmp_path):
    data = tmp_path / "data"
    checksums = place(data, contents())
    config = RankCollapse(**TINY, checksums=checksums)
    whole, run = Run(config, tmp_path / "whole"), Run(config, tmp_path / "parts")
    execute(whole, settings(tmp_path / "whole", data))

    with interrupted(after=4):
        execute(run, settings(tmp_path / "parts", data, checkpoint_seconds=0))
    assert list(run.provenance()["data"].values()) == checksums

    place(data, contents(seed=1))
    with pytest.raises(InputError, match="does not hold what fashion_mnist has there"):
        execute(run, settings(tmp_path / "parts", data))
    assert not run.is_complete() and (run.folder / "checkpoint.safetensors").exists()

    place(data, contents())
    execute(run, settings(tmp_path / "parts", data))
    assert tables(run) == tables(whole)
    assert "goes on" in (run.folder / "run.log").read_text()
    assert list(run.provenance()["first"]["data"].values()) == checksums


def test_absent_checksums_are_refused_before_anything_is_computed(tmp_path):
    place(tmp_path / "data", contents())
    run = Run(RankCollapse(**TINY), tmp_path)
    with pytest.raises(InputError, match="checksums=null"):
        execute(run, settings(tmp_path, tmp_path / "data"))
    assert not tables(run)


FEW = {"data": "fashion_mnist", "replicates": 1, "samples": 8, "epochs": 2}
OF_IMAGES = [
    RankCollapse(**TINY),
    Pretraining(**FEW, depth=1, width=4, batch_size=4, learning_rates=[0.1], methods=["vanilla"]),
    BreakingBN(**FEW, batch_size=4, learning_rates=[0.1], image_size=None, methods=["batch_norm"]),
    LowRankTraining(**FEW, width=4, classes=10, loss_function="cross_entropy"),
    LowRankTraining(**FEW, width=4, classes=10, loss_function="cross_entropy", architecture="conv"),
]


@pytest.mark.parametrize("config", OF_IMAGES, ids=run_name)
def test_every_study_takes_images_of_any_size_and_goes_on_without_a_class(config, tmp_path):
    checksums = place(tmp_path / "data", contents(size=(9, 6), classes=7))
    run = Run(replace(config, checksums=checksums), tmp_path)
    execute(run, settings(tmp_path, tmp_path / "data"))
    losses = pd.read_csv(run.folder / "training.csv").filter(regex="loss$")
    assert run.is_complete() and losses.notna().all(axis=None)
    lines = (run.folder / "run.log").read_text().splitlines()
    told = [line for line in lines if line.endswith("have none of classes 7, 8, 9")]
    assert len(told) == 1 and "the training images of fashion_mnist" in told[0]


def test_the_first_images_are_another_run_and_other_numbers(tmp_path):
    checksums = place(tmp_path / "data", contents())
    runs = {
        count: Run(RankCollapse(**TINY, checksums=checksums, train_images=count), tmp_path)
        for count in (None, 8, 13)
    }
    for count in (None, 8):
        execute(runs[count], settings(tmp_path, tmp_path / "data"))
    assert "train_images=8" in runs[8].folder.name
    assert tables(runs[8])["training.csv"] != tables(runs[None])["training.csv"]
    with pytest.raises(InputError, match="train_images=13: fashion_mnist has 12 training images"):
        execute(runs[13], settings(tmp_path, tmp_path / "data"))


def test_composing_names_the_official_content_wherever_the_files_are(tmp_path):
    words = ("study=rank_collapse", "data=fashion_mnist", f"data_folder={tmp_path / 'nowhere'}")
    fashion = composed(*words)[1]
    assert [checksum[:4] for checksum in fashion.checksums] == ["c59f", "bad3", "5b41", "0402"]
    assert len(composed("study=rank_collapse", "data=cifar10")[1].checksums) == 6
    assert composed("study=rank_collapse")[1].checksums is None
    mirror = ["source.url=http://127.0.0.1:9/", "data_folder=elsewhere", "source.packages=[]"]
    assert run_name(fashion) == run_name(composed(*words[:2], *mirror)[1])
