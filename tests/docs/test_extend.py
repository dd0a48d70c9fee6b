"""What docs/extend.md and docs/running.md show of one's own methods and data works as it says."""

import re

import numpy as np
import pandas as pd
import pytest
import warm
from PIL import Image
from repository import REPOSITORY

from runner.core.input_files import sha256_of
from runner.data import own_images

PAGE = (REPOSITORY / "docs" / "extend.md").read_text()
DATA = (REPOSITORY / "docs" / "running.md").read_text().split("\n## ")[1]
METHODS = re.findall(r"```python\n# (my_\w+/methods\.py)\n(.*?)```\n\n```sh\n(.*?)```", PAGE, re.S)


def carried_out(commands: str, folder) -> list[str]:
    """Carry out commands of a page in a folder; return what each prints."""
    printed = []
    for line in commands.splitlines():
        done = warm.run_line(line, cwd=folder)
        assert done.returncode == 0, (line, done.stderr)
        printed.append(done.stdout)
    return printed


def test_a_normalization_an_optimizer_and_an_architecture_are_shown():
    names = re.findall(r'register\("(\w+)", "(\w+)"\)\n', "".join(code for _, code, _ in METHODS))
    assert [kind for kind, _ in names] == ["normalization", "optimizer", "architecture"]


@pytest.mark.parametrize(("path", "code", "commands"), METHODS, ids=lambda text: text[:11])
def test_a_method_of_at_most_25_lines_is_in_the_paper_s_figure(path, code, commands, tmp_path):
    lines = [line for line in code.splitlines() if line]
    assert len(lines) <= 25 and max(map(len, lines)) <= 100
    (tmp_path / path).parent.mkdir()
    (tmp_path / path).write_text(code)
    name = re.search(r'register\("\w+", "(\w+)"\)', code)[1]
    carried_out(commands, tmp_path)
    (caption,) = tmp_path.glob("outputs/figures/smoke/*.caption.txt")
    assert name in caption.read_text()
    (table,) = tmp_path.glob("outputs/figures/smoke/rank-fig[17]-????????.csv")
    assert table.with_suffix(".png").stat().st_size > 10_000
    if name == "flat_resnet":
        (header,) = tmp_path.glob("outputs/figures/smoke/parts/*.header.json")
        assert "VGG" not in header.read_text() + caption.read_text()
        (claims,) = tmp_path.glob("outputs/figures/smoke/*.claims.csv")
        judged = pd.read_csv(claims)
        assert set(judged["verdict"]) == {"undecided"}
        assert set(judged["note"]) == {"the statement is about VGG-19, the runs are of flat_resnet"}
    if name == "max_norm":
        assert set(pd.read_csv(table)["normalization"]) == {"none", "batch", name}


def test_a_study_that_reads_a_file_has_another_run_for_another_file(tmp_path):
    for path, code in [
        *re.findall(r"```python\n# (my_studies/\S+)\n(.*?)```", PAGE, re.S),
        *re.findall(r'```yaml title="(my_studies/\S+)"\n(.*?)```', PAGE, re.S),
    ]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(code)
    writes_file, command = re.findall(r"```sh\n(.*)\n(.*my_studies.*)\n```", PAGE)[0]
    (script,) = re.findall(r"```python\n# make_weights.py\n(.*?)```", PAGE, re.S)
    (tmp_path / "make_weights.py").write_text(script)
    carried_out(writes_file, tmp_path)
    assert np.load(tmp_path / "weights.npz")["W"].shape == (8, 5)
    for scale in (1, 1, 2):
        np.savez(tmp_path / "weights.npz", W=scale * np.eye(2))
        carried_out(command, tmp_path)
    tables = sorted(tmp_path.glob("outputs/runs/spectrum/*/metrics.csv"))
    assert sorted(pd.read_csv(table)["value"].max() for table in tables) == [1, 2]
    (tmp_path / "weights.npz").unlink()
    done = warm.run_line(command, cwd=tmp_path)
    assert done.returncode == 2 and "weights.npz cannot be read" in done.stderr


def test_one_s_own_images_are_in_the_run_s_name_and_in_the_caption(tmp_path):
    (script,) = re.findall(r"```python\n# stripes\.py\n(.*?)```", DATA, re.S)
    (commands,) = re.findall(r"```sh\n(.*?)```", DATA, re.S)
    (tmp_path / "stripes.py").write_text(script)
    carried_out("python stripes.py\n" + commands, tmp_path)
    assert list(tmp_path.glob("outputs/runs/rank_collapse/*data=stripes.npz*"))
    (caption,) = tmp_path.glob("outputs/figures/smoke/*.caption.txt")
    assert "Data: stripes.npz" in " ".join(caption.read_text().split())


def test_the_lines_for_a_folder_of_png_files_write_images_of_all_classes(tmp_path, monkeypatch):
    (script,) = re.findall(r"```python\n# pack\.py\n(.*?)```", DATA, re.S)
    assert len(script.strip().splitlines()) <= 5
    for index in range(20):
        folder = tmp_path / "png" / ("circle", "square")[index % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5, 4), (index, index, index)).save(folder / f"{index}.png")
    monkeypatch.chdir(tmp_path)
    exec(script, {})
    data = own_images.load("png.npz", None, [sha256_of(tmp_path / "png.npz")])
    assert data.classes == 2 and len(data.train) + len(data.test) == 20
    assert data.train.pixels.shape[1:] == (1, 4, 5)
