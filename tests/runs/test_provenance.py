"""Code is part of a number: its fingerprint, what is done with runs of other code; the device."""

import json
import subprocess
from importlib.util import find_spec

import in_process
import pytest
import torch
from pretended_cuda import CUDA, pretended_cuda

from runner.core.catalogue import configs, package_of
from runner.runs import provenance
from runner.runs.provenance import code_of, covered, fingerprint
from runner.runs.what_counts import MODULES

STUDY = "runner.papers.bottleneck_structure.example20.study"
COUNTED = {f"runner.core.{name}" for name in ("arrays", "compiling", "streams", "studies")}
COUNTED |= {"runner.core"}
"""The modules of `core` that can change a number."""


def test_a_fingerprint_covers_the_study_and_what_computes():
    fingerprints = set()
    for study in configs():
        package = package_of(study)
        paper = package.rpartition(".")[0]
        names = set(covered({f"{package}.config", f"{package}.study"}))
        computing = ("runner.data", "runner.networks", "runner.training", paper)
        assert {name for name in names - COUNTED if not name.startswith(computing)} == set()
        fingerprints.add(code_of(study))
    assert len(fingerprints) == len(configs())


@pytest.fixture
def figure(tmp_path, monkeypatch, capsys):
    """Makes a figure: its exit code and what is printed. Its runs are of other code, if asked."""

    def make(*words: str, other_code: bool = False) -> tuple[int, str]:
        for path in tmp_path.glob("runs/*/*/provenance.json") if other_code else ():
            path.write_text(json.dumps(json.loads(path.read_text()) | {"code": "another"}))
        words = ("figure=bottleneck-example20", "scale=smoke", "device=cpu", *words)
        code = in_process.run([*words, f"outputs={tmp_path}"], monkeypatch)
        shown = capsys.readouterr()
        return code, shown.out + shown.err

    return make


def test_a_run_of_other_code_is_never_kept_without_a_word(figure, tmp_path):
    code, text = figure()
    assert code == 0 and "other code" not in text
    results = [path.stat().st_ino for path in tmp_path.glob("runs/*/*/result.json")]
    code, text = figure(other_code=True)
    assert code == 0 and "computed by other code and kept" in text and "note: " in text
    assert results == [path.stat().st_ino for path in tmp_path.glob("runs/*/*/result.json")]
    about = json.loads(next(tmp_path.glob("figures/smoke/*.provenance.json")).read_text())
    assert about["stale"] and all(each["stale"] for each in about["runs"])
    code, text = figure("stale=refuse")
    assert code == 2 and "stale=recompute computes it again" in text
    code, text = figure("stale=recompute")
    assert code == 0 and "its code has changed" in text
    assert "other code" not in figure()[1]


def test_modules_are_remembered_as_they_were_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "remembered"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("from . import b")
    (package / "b.py").write_text("x = 1")
    before = fingerprint({"remembered.a"})
    (package / "b.py").write_text("x = 2")
    import remembered.a  # noqa: F401

    imported = fingerprint({"remembered.a"})
    (package / "b.py").write_text("x = 3")
    assert before != imported == fingerprint({"remembered.a"})


COMPUTES = """
import logging
from typing import TYPE_CHECKING

from runner.core.errors import InputError
from runner.core.studies import parameter

if TYPE_CHECKING:
    import torch

log = logging.getLogger("runner")
class Config:
    rate = parameter("a learning rate", 0.1, above=0.0)
    kind = parameter(help="a kind", default="one")
class Cost:
    cost = column("a mean cost", -2.5)
def run(config, context):
    "Build and measure every network."
    config.refuse(["kind"], "rate=1")
    if config.rate > 1:
        raise InputError(f"rate={config.rate} is wrong")
    with context.progress(2, "training", unit="steps") as bar:
        bar.update(1, cost=2.0)
    log.info("done: %s", config.kind)
    yield {"method": "construction", "loss": 2 * config.rate + 1}
"""
"""A study in short, for the next two tests."""
WORDS = [
    ("a mean cost", "mean cost C"),
    ("a learning rate", "learning rate (above 0)"), ("a kind", "which kind"),
    ("Build and measure", "Draw"), ('"rate=1"', '"a learning rate of 1"'),
    ("is wrong", "must be at most 1: give a smaller {config.kind}"),
    ("training", "second training"), ("steps", "epochs"), ("cost=", "loss="),
    ("done: ", "complete: "), ("import InputError", "import InputError, nearest"),
    ("    import torch", "    import runner.papers.norm_tuning.theory"),
    ("import TYPE_CHECKING", "import TYPE_CHECKING, Any"), ("    yield", "    # why\n    yield"),
]  # fmt: skip
NUMBERS = [
    ("0.1", "0.2"), ("-2.5", "nan"), ('"one"', '"two"'), ("above=", "minimum="), ("> 1", ">= 1"),
    ("raise", "yield"), ("construction", "sgd"), ('"loss"', '"error"'), ("2 * ", "3 * "),
    (" + 1", " - 1"), ("import parameter", "import default_of as parameter"),
    ("import parameter", "import parameter\nimport runner.papers.norm_tuning.theory"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "counts"),
    [(*pair, False) for pair in WORDS] + [(*pair, True) for pair in NUMBERS],
)
def test_numbers_and_operations_make_a_run_stale_and_words_do_not(old, new, counts, monkeypatch):
    assert COMPUTES.count(old) == 1
    digits = set()
    for text in (COMPUTES, COMPUTES.replace(old, new)):
        monkeypatch.setitem(provenance._sources, STUDY, text)
        digits.add(fingerprint({STUDY}))
    assert (len(digits) == 2) == counts


def test_modules_of_words_alone_are_in_no_fingerprint(monkeypatch):
    """A reworded hint of `core.errors`, or another line of `core.progress`, is no other code."""
    before = fingerprint({STUDY})
    for name in MODULES:
        assert find_spec(name), name
        monkeypatch.setitem(provenance._sources, name, "reworded = 1")
    assert fingerprint({STUDY}) == before
    monkeypatch.setitem(provenance._sources, "runner.core.studies", "other = 1")
    assert fingerprint({STUDY}) != before


SOURCE = """
def f(x, *, y: int = 1) -> str:  # a comment
    '''A docstring.'''
    return f"{x['a']!r:>{y}s} {[*x, 0x10]}"
class C:
    pass
"""


def test_a_fingerprint_is_the_same_in_every_version_of_python(tmp_path, monkeypatch):
    (tmp_path / "versions.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    assert fingerprint({"versions"}) == "06036aa5a21bb1fd"


def test_the_commit_is_this_repositorys(tmp_path, monkeypatch):
    """Git's hooks and some editors export where their own repository is."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    provenance.commit.cache_clear()
    own = provenance.commit()
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / ".git"))
    provenance.commit.cache_clear()
    assert provenance.commit() == own and own["commit"] is not None


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build  (builder)"


@pytest.mark.parametrize(("text", "driver"), [(OPEN, "570.86"), ("", None), (None, None)])
def test_a_gpu_names_cuda_cudnn_and_the_driver_and_a_cpu_none(text, driver, monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "DRIVER", tmp_path / "version")
    if text is not None:
        provenance.DRIVER.write_text(text)
    of_gpu = {"cuda": "12.8", "cudnn": "91002", "driver": driver}
    with pretended_cuda():
        assert of_gpu.items() <= provenance.describe(CUDA)["versions"].items()
    of_cpu = provenance.describe(torch.device("cpu"))["versions"]
    assert dict.fromkeys(of_gpu).items() <= of_cpu.items()
