"""Code is part of a number: its fingerprint, what is done with runs of other code; the device."""

import json
import os
import shutil
import subprocess

import pytest
import torch
import warm
from pretended_cuda import CUDA, pretended_cuda
from repository import REPOSITORY
from scratch_copy import in_copy
from toys import toys

from runner.core.catalogue import configs
from runner.runs import provenance
from runner.runs.provenance import code_of, fingerprint
from runner.runs.what_counts import MODULES

ARGUMENTS = ("study=example20", "scale=smoke", "device=cpu")
STUDY = "src/runner/papers/bottleneck_structure/example20/study.py"
STUDY_MODULE = "runner.papers.bottleneck_structure.example20.study"
THEORY = "src/runner/papers/bottleneck_structure/theory.py"
ELSEWHERE = "src/runner/papers/batch_norm_rank/theory.py"


def test_studies_have_different_fingerprints():
    assert len({code_of(study) for study in configs()}) == len(configs())


@pytest.fixture
def copy(tmp_path):
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("conf", "src"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=ignore)
    return tmp_path


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def run(copy, *more):
    done = in_copy(copy, "runner", *ARGUMENTS, *more)
    return done.returncode, done.stdout + done.stderr


def table(copy):
    (path,) = copy.glob("outputs/runs/example20/*/metrics.csv")
    return path.read_bytes()


def code(copy):
    (path,) = copy.glob("outputs/runs/example20/*/provenance.json")
    return json.loads(path.read_text())["code"]


def test_an_edited_formula_never_gives_old_numbers_without_a_word(copy):
    returned, text = run(copy)
    assert returned == 0 and "other code" not in text
    before, first = table(copy), code(copy)
    edit(
        copy / STUDY,
        "    epsilon = L**-exponent\n",
        "    # why\n    epsilon = (\n  L**-exponent)\n",
    )
    edit(copy / STUDY, '"""Build and measure every network."""', '"""Another text."""')
    edit(copy / THEORY, '"""', '"""More of it. ')
    edit(copy / ELSEWHERE, "def second_moment", "def moment_of_second_order")
    assert "other code" not in run(copy)[1], "words, layout, and what is not imported count nothing"
    edit(copy / THEORY, "def divergent_excess(", "def divergent_excess_of(")
    edit(copy / STUDY, "theory.divergent_excess(", "theory.divergent_excess_of(")
    edit(copy / STUDY, "L**-exponent", "2 * L**-exponent")
    returned, text = run(copy)
    assert returned == 0 and "was computed by other code and kept" in text
    assert "stale=recompute" in text and table(copy) == before
    returned, text = run(copy, "stale=refuse")
    assert returned == 2 and "stale=recompute computes it again" in text
    returned, text = run(copy, "stale=recompute")
    assert returned == 0 and "its code has changed" in text
    assert table(copy) != before and code(copy) != first
    returned, text = run(copy)
    assert returned == 0 and "other code" not in text


def test_a_sweep_and_a_figure_say_so_as_well(copy):
    figure = ("runner", "figure=bottleneck-example20", "scale=smoke", "device=cpu")
    assert in_copy(copy, *figure).returncode == 0
    edit(copy / STUDY, "epsilon = L**-exponent", "epsilon = 2 * L**-exponent")
    again = in_copy(copy, *figure)
    assert again.returncode == 0 and "computed by other code" in again.stderr
    assert "note: " in again.stdout
    kept = copy / "outputs" / "figures" / "smoke" / "bottleneck-example20.provenance.json"
    about = json.loads(kept.read_text())
    assert about["stale"] and all(each["stale"] for each in about["runs"])
    report = in_copy(copy, "runner", "report")
    assert report.returncode == 0
    page = copy / "outputs" / "report" / "bottleneck-example20.html"
    assert "by other code" in page.read_text()
    compared = in_copy(copy, "runner", "figures", "bottleneck-example20", "scale=smoke")
    assert compared.returncode == 0 and "unchanged" in compared.stdout


def test_an_edit_after_the_import_is_of_a_later_run(tmp_path):
    """Numbers come from the code that was imported, and say so."""
    path = "Path(__file__).parents[1] / 'bb' / 'study.py'"
    edits = f"p = {path}; p.write_text(p.read_text().replace('config.value)', '2 * config.value)'))"
    room = toys(tmp_path, aa=edits, bb="pass")
    words = ("--config-dir", str(room), "-m", "study=aa,bb", "scale=smoke", "device=cpu")
    first, second = (warm.run("-m", "runner", *words, cwd=tmp_path) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr
    assert "bb (defaults) was computed by other code" in second.stderr or (
        "1 of 2 runs were computed by other code" in second.stderr
    )


def test_modules_are_remembered_as_they_were_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "remembered"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "a.py").write_text("from . import b")
    (package / "b.py").write_text("x = 1")
    before = fingerprint({"remembered.a"})
    (package / "b.py").write_text("x = 2  # before it is imported")
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
def run(config, context):
    config.refuse(["kind"], "rate=1")
    if config.rate > 1:
        raise InputError(f"rate={config.rate} is wrong")
    with context.progress(2, "training", unit="steps") as bar:
        bar.update(1, cost=2.0)
    log.info("done: %s", config.kind)
    yield {"method": "construction", "loss": 2 * config.rate + 1}
"""
"""A study in short, for the next two tests."""


def same(old, new, monkeypatch):
    """Return whether two texts of one module have one fingerprint."""
    assert COMPUTES.count(old) == 1
    digits = set()
    for text in (COMPUTES, COMPUTES.replace(old, new)):
        monkeypatch.setitem(provenance._sources, STUDY_MODULE, text)
        digits.add(fingerprint({STUDY_MODULE}))
    return len(digits) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("a learning rate", "learning rate (above 0)"),
        ("a kind", "which kind"),
        ('"rate=1"', '"a learning rate of 1"'),
        ("is wrong", "must be at most 1: give a smaller {config.kind}"),
        ("training", "second training"),
        ("steps", "epochs"),
        ("cost=", "loss="),
        ("done: ", "complete: "),
        ("import InputError", "import InputError, nearest"),
        ("    import torch", "    import runner.papers.norm_tuning.theory"),
        ("import TYPE_CHECKING", "import TYPE_CHECKING, Any"),
    ],
)
def test_no_word_makes_a_run_stale(old, new, monkeypatch):
    assert same(old, new, monkeypatch)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.1", "0.2"),
        ('"one"', '"two"'),
        ("above=", "minimum="),
        ("> 1", ">= 1"),
        ("raise", "yield"),
        ("construction", "sgd"),
        ('"loss"', '"error"'),
        ("2 * ", "3 * "),
        (" + 1", " - 1"),
        ("import parameter", "import default_of as parameter"),
    ],
)
def test_every_number_and_operation_makes_it_stale(old, new, monkeypatch):
    assert not same(old, new, monkeypatch)


def test_modules_of_words_alone_are_in_no_fingerprint(monkeypatch):
    """A reworded hint of `core.errors`, or another line of `core.progress`, is no other code."""
    before = fingerprint({STUDY_MODULE})
    for name in MODULES:
        monkeypatch.setitem(provenance._sources, name, "reworded = 1")
    assert fingerprint({STUDY_MODULE}) == before
    monkeypatch.setitem(provenance._sources, "runner.core.studies", "other = 1")
    assert fingerprint({STUDY_MODULE}) != before


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
    seen = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: seen.append(k["env"]) or run(*a, **k))
    provenance.commit.cache_clear()
    assert provenance.commit() == own and own["commit"] is not None
    assert {each["GIT_OPTIONAL_LOCKS"] for each in seen} == {"0"}
    assert os.environ["GIT_DIR"], "what others export stays"


PROPRIETARY = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
"""
OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build  (builder@host)
GCC version:  gcc version 12.3.0
"""


def versions_on(device):
    versions = provenance.describe(device)["versions"]
    return {name: versions[name] for name in ("cuda", "cudnn", "driver")}


def test_a_cpu_has_no_versions_of_a_gpu(monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "DRIVER", tmp_path / "version")
    provenance.DRIVER.write_text(PROPRIETARY)
    assert versions_on(torch.device("cpu")) == {"cuda": None, "cudnn": None, "driver": None}


@pytest.mark.parametrize(
    ("text", "driver"),
    [(PROPRIETARY, "535.129.03"), (OPEN, "570.86"), ("no version", None), (None, None)],
)
def test_a_gpu_names_cuda_cudnn_and_the_driver(text, driver, monkeypatch, tmp_path):
    monkeypatch.setattr(provenance, "DRIVER", tmp_path / "version")
    if text is not None:
        provenance.DRIVER.write_text(text)
    with pretended_cuda():
        assert versions_on(CUDA) == {"cuda": "12.8", "cudnn": "91002", "driver": driver}
