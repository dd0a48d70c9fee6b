"""Every module of the user's is code of a run, installed packages are not."""

import sys
from importlib import metadata
from importlib.machinery import PathFinder

import numpy as np
import pytest
from stopped import interrupted

from runner.core import catalogue
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.user_functions import function_at
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.runs import inventory, own_files, provenance
from runner.runs.execution import execute
from runner.runs.provenance import fingerprint
from runner.runs.run import Run, kept_notes

MINE = "from helper_x import g\n\n\ndef f(tensors):\n    return g()\n"
HELPER = "def g():\n    return 1.0\n"
OTHER = HELPER.replace("1.0", "2.0")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder on sys.path; what is imported from it is forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0].endswith("_x")]:
        del sys.modules[name]
    forget()


def forget():
    """Forget the texts of modules, as a new process does."""
    sys.path_importer_cache.clear()
    PathFinder.invalidate_caches()
    for name in [name for name in provenance._sources if not name.startswith("runner.")]:
        del provenance._sources[name]
    provenance._bases.cache_clear()
    provenance._is_installed.cache_clear()
    provenance.code_of.cache_clear()
    own_files._digests.clear()


def write(home, files):
    for name, text in files.items():
        path = home / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def code(*own):
    forget()
    return fingerprint(set(), own)


WAYS = {
    "beside": {"mine_x": MINE, "helper_x": HELPER},
    "import": {"mine_x": "import helper_x as h\nf = lambda t: h.g()\n", "helper_x": HELPER},
    "late": {"mine_x": "def f(t):\n    from helper_x import g\n    return g()", "helper_x": HELPER},
    "through another": {"mine_x": "import between_x", "between_x": MINE, "helper_x": HELPER},
    "through a package": {
        "mine_x": "from own_x import g",
        "own_x/__init__": "from .inner import *",
        "own_x/inner": "from .. import helper_x\nfrom helper_x import g",
        "helper_x": HELPER,
    },
    "of a package": {
        "mine_x": "import helper_x.a",
        "helper_x/__init__": HELPER,
        "helper_x/a": "",
    },
    "without __init__": {"mine_x": "from helper_x import a", "helper_x/a": HELPER},
    "either way": {
        "mine_x": "try:\n    from .helper_x import g\nexcept ImportError:\n"
        "    from helper_x import g",
        "helper_x": HELPER,
    },
    "through what is not there": {"mine_x": "try:\n    import nowhere_x\nexcept ImportError:\n"
                                  "    import helper_x", "helper_x": HELPER},
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_module_that_the_users_module_imports_is_code(home, way):
    write(home, WAYS[way])
    before = code("mine_x")
    assert code("mine_x") == before
    (name,) = [name for name, text in WAYS[way].items() if text == HELPER]
    write(home, {name: f"# a comment\n{HELPER}"})
    assert code("mine_x") == before
    write(home, {name: OTHER})
    assert code("mine_x") != before


def test_a_module_beside_one_of_another_folder_is_code(home):
    """A module may add its own folder to sys.path; what only lists runs does not import it."""
    write(home, {"tools_x/part": "import helper_x", "tools_x/helper_x": HELPER})
    before = code("tools_x.part")
    write(home, {"tools_x/helper_x": OTHER})
    assert code("tools_x.part") != before


def test_installed_packages_count_by_version_and_are_not_read(home, monkeypatch):
    monkeypatch.syspath_prepend(home / "site-packages")
    write(home, {"mine_x": "import os, pack_x, torch\nf = torch.sin\n"})
    write(home / "site-packages", {"pack_x/__init__": "x = 1\n"})
    forget()
    covered = provenance.covered(set(), ["mine_x"])
    assert covered.keys() == {"mine_x", "os", "pack_x", "torch"}
    assert covered["torch"] == metadata.version("torch")
    assert provenance.covered(set(), ["torch.nn.functional"]).keys() == {"torch"}
    before = code("mine_x")
    monkeypatch.setattr(provenance, "_version_of", lambda package: "another")
    assert code("mine_x") != before


def test_a_text_is_remembered_as_it_was_imported(home):
    write(home, {"mine_x": MINE, "helper_x": HELPER})
    forget()
    function_at("mine_x:f")
    write(home, {"helper_x": OTHER})
    imported = fingerprint(set(), ["mine_x"])
    write(home, {"helper_x": HELPER})
    assert imported == code("mine_x")


@pytest.mark.parametrize("text", ["def g(:", "x = 1\0"])
def test_what_is_not_pythons_is_named(home, text):
    write(home, {"mine_x": "def f(t):\n    import helper_x\n", "helper_x": text})
    with pytest.raises(InputError, match="helper_x cannot be read"):
        code("mine_x")


READS = """
import numpy as np
import runner

TABLE = np.load(runner.own_file("table.npy"))


def f(tensors):
    return float(TABLE.sum())
"""


def test_a_file_that_the_users_module_reads_is_code(home):
    write(home, {"mine_x": READS})
    without = code("mine_x")
    with pytest.raises(InputError, match=r"own_file finds no file .*table\.npy"):
        function_at("mine_x:f")
    found = []
    for value in (1.0, 2.0, 1.0):
        np.save(home / "table.npy", [value])
        found.append(code("mine_x"))
    assert found[0] == found[2] != found[1] and without not in found
    assert function_at("mine_x:f")({}) == 1.0
    np.save(home / "table.npy", [2.0])
    assert fingerprint(set(), ["mine_x"]) == found[0], "what the module has read counts"
    del sys.modules["mine_x"]
    assert function_at("mine_x:f")({}) == 2.0 and fingerprint(set(), ["mine_x"]) == found[1]


def test_the_name_of_a_file_is_written_out(home):
    write(home, {"mine_x": "import runner\nname = 'a.npy'\nx = runner.own_file(name)\n"})
    np.save(home / "a.npy", [1.0])
    with pytest.raises(
        InputError, match=r'write the name of the file itself, own_file\("a\.npy"\)'
    ):
        function_at("mine_x:f")
    with pytest.raises(InputError, match="works in a file that Python can import"):
        own_files.handed_out("a.npy", {})


def test_the_program_is_no_code_of_a_module_that_imports_it(home):
    write(home, {"mine_x": "import runner\nfrom runner import register\nf = len\n"})
    assert not [name for name in provenance.covered(set(), ["mine_x"]) if name != "mine_x"]


SIZES = {"samples": 20, "epochs": 4, "width": 3, "replicates": 1, "measure": "mine_x:f"}


def test_a_run_is_stale_when_a_helper_has_changed(home):
    write(home, {"mine_x": MINE, "helper_x": HELPER})
    forget()
    run = Run(LowRankTraining(**SIZES), home / "outputs")
    settings = Settings(outputs=str(home / "outputs"), device="cpu")
    execute(run, settings)
    assert not run.is_stale() and not kept_notes([run], settings)
    write(home, {"helper_x": OTHER})
    forget()
    (note,) = kept_notes([run], settings)
    assert "computed by other code" in note
    (home / "mine_x.py").unlink()
    del sys.modules["mine_x"]
    forget()
    (found,) = inventory.find(home / "outputs")
    assert found.is_stale, "its module is gone, so nothing is known"


def test_an_interrupted_run_starts_anew_when_a_helper_has_changed(home, caplog):
    write(home, {"mine_x": MINE, "helper_x": HELPER})
    forget()
    run = Run(LowRankTraining(**SIZES), home / "outputs")
    settings = Settings(outputs=str(home / "outputs"), device="cpu", checkpoint_seconds=0.0)
    with interrupted(after=3):
        execute(run, settings)
    write(home, {"helper_x": OTHER})
    for name in ("mine_x", "helper_x"):
        del sys.modules[name]
    forget()
    execute(run, settings)
    assert "starts again" in caplog.text
    assert set(run.tables()["measured"]["value"]) == {2.0}


def test_a_module_next_to_the_users_methods_is_imported_from_their_package(home, capsys):
    write(home, {"own_x/methods": "import part_x\n", "own_x/part_x": HELPER})
    (home / "own_x" / "conf").mkdir()
    catalogue.add_studies(home / "own_x")
    (said,) = [why for path, why in catalogue.broken().items() if path.endswith("methods.py")]
    assert said.endswith("No module named 'part_x'): from own_x import part_x")
