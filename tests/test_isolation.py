"""A broken study breaks no other command; a run enters few modules; a figure its own paper."""

import shutil
import subprocess
import sys

import pytest
from in_process import run
from samples import samples

from runner.commands import report
from runner.core import catalogue
from runner.core.errors import InputError
from runner.runs.provenance import REFERENCE

BROKEN = {
    "x = (": "config.py, line 1 cannot be imported (SyntaxError: '(' was never closed)",
    "import nothing_of_that_name": "config.py cannot be imported (ModuleNotFoundError: No module",
    "1 / 0": "config.py cannot be imported (ZeroDivisionError: division by zero)",
    "x = 1": 'config.py: one StudyConfig with study = "broken" is needed',
}
"""Texts of a `config.py`, and what is said of it."""

COMMANDS = (
    ("figure=rank-fig3b", "scale=smoke"),
    ("runs", "list"),
    ("report",),
    ("--help",),
    ("claims", "rank-fig3b"),
)


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder of studies with a broken one; forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(catalogue.FOLDERS, "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / "own_studies"
    (folder / "broken").mkdir(parents=True)
    yield folder
    catalogue.forget()
    for name in [name for name in sys.modules if name.partition(".")[0] == folder.name]:
        del sys.modules[name]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_study_is_named_in_one_line(own, text, monkeypatch, capsys):
    (own / "broken" / "config.py").write_text(text)
    assert run(["--config-dir", str(own), "--help"], monkeypatch) == 0
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and said[0].startswith("note: ") and BROKEN[text] in said[0]
    with pytest.raises(InputError, match=r"config\.py"):
        catalogue.config_of("broken")


def test_no_other_command_is_broken(own, tmp_path, monkeypatch, capsys):
    kept = REFERENCE / "quick" / "bottleneck-example20"
    shutil.copytree(kept, tmp_path / "reference" / "quick" / kept.name)
    monkeypatch.setattr(report, "REFERENCE", tmp_path / "reference")  # one picture to draw, not all
    (own / "broken" / "config.py").write_text("x = (")
    for words in COMMANDS:
        assert run(["--config-dir", str(own), *words], monkeypatch) == 0, words
        said = capsys.readouterr().err
        assert said.count("broken/config.py, line 1") == 1, words


def test_an_entry_point_without_its_package_breaks_nothing(own, monkeypatch, capsys):
    point = catalogue.metadata.EntryPoint("mine", "gone.studies", catalogue.ENTRY_POINTS)
    monkeypatch.setattr(catalogue.metadata, "entry_points", lambda group: [point])
    catalogue.forget()
    assert run(["--help"], monkeypatch) == 0
    assert "entry point mine of runner.studies: " in capsys.readouterr().err


def test_two_studies_of_one_name_are_told_apart_by_none(own, monkeypatch, capsys):
    (own / "broken").rename(own / "bn_only")
    (own / "bn_only" / "config.py").write_text("")
    assert run(["--config-dir", str(own), "claims", "rank-fig3b"], monkeypatch) == 0
    assert "there is a study bn_only already" in capsys.readouterr().err
    assert run(["--config-dir", str(own), "study=bn_only", "scale=smoke"], monkeypatch) == 2


FRAMEWORK_MODULES_ENTERED = 48
MODULES_LOADED = 94

ENTERED = """
import inspect, pathlib, sys, threading
from runner import __main__ as command
folder = pathlib.Path(command.__file__).parent
entered = set()
def note(frame, event, argument):
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # no class, no module
        entered.add(frame.f_code.co_filename)
sys.settrace(note)  # calls alone: `note` returns no function that would trace lines and returns
threading.settrace(note)
command.main()
sys.settrace(None)
files = [pathlib.Path(name) for name in entered if name.startswith(f"{folder}/")]
print("ENTERED", *sorted(str(path.relative_to(folder)) for path in files))
print("COMPILER", *{"torch._inductor"} & {*sys.modules})
print("LOADED", *sorted(name for name in sys.modules if name.startswith("runner.")))
"""
"""Prints the files of which a function was called, and the modules that were loaded."""

PARTS_OF_RUNS = ("papers", "data", "networks", "training")
"""Packages that are no framework."""


@pytest.mark.parametrize(
    ("words", "paper"),
    samples(
        [
            ("figure=bottleneck-example20", "bottleneck_structure"),  # compiles nothing
            ("figure=rank-fig3b", "batch_norm_rank"),
            ("study=rank_collapse depth=32", "batch_norm_rank"),
        ],
        lambda *_: "command",
    ),
)
def test_a_command_passes_few_modules_and_one_paper(words, paper, tmp_path):
    command = [sys.executable, "-c", ENTERED, *words.split(), "scale=smoke", "device=cpu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    *_, entered, compiler, loaded = (line.split()[1:] for line in done.stdout.splitlines())
    framework = [name for name in entered if name.partition("/")[0] not in PARTS_OF_RUNS]
    assert len(framework) <= FRAMEWORK_MODULES_ENTERED, framework
    assert len(loaded) <= MODULES_LOADED, loaded
    papers = {name.split(".")[2] for name in loaded if name.count(".") >= 2 and ".papers." in name}
    assert papers == {paper} and not compiler, "torch's compiler takes 1.5 s"
