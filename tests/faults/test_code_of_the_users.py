"""Every module of the user's is code of a run, installed packages are by their version."""

import ast
import sys
from importlib.machinery import PathFinder

import pytest
import warm
from stopped import interrupted

from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.user_functions import function_at
from runner.papers.training_invariances.low_rank_training.config import LowRankTraining
from runner.runs import inventory, provenance
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
    provenance._folders.cache_clear()
    provenance.code_of.cache_clear()


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


def installed(home, version):
    """Install a package of two modules."""
    place = home / "site-packages"
    texts = {"pack_x/__init__": "from pack_x import inner\n", "pack_x/inner": f"x = {version}\n"}
    write(place, texts)
    for old in place.glob("*.dist-info/*"):
        old.unlink()
    about = place / "Pack_X.dist-info"
    about.mkdir(exist_ok=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: Pack-X\nVersion: {version}\n")
    (about / "RECORD").write_text("pack_x/__init__.py,,\npack_x/inner.py,,\n")
    return place


@pytest.mark.parametrize("own", ["pack_x", "mine_x"])
def test_an_installed_package_is_code_by_its_version_and_is_not_parsed(home, own, monkeypatch):
    monkeypatch.syspath_prepend(installed(home, "1.0"))
    write(home, {"mine_x": "import os\nimport json\nimport pack_x\nimport torch\nf = torch.sin\n"})
    parsed = []
    parse = ast.parse
    monkeypatch.setattr(ast, "parse", lambda text, *a, **k: parsed.append(text) or parse(text))
    before = code(own)
    assert len(parsed) <= (own == "mine_x")
    write(home / "site-packages", {"pack_x/inner": "x = 3\n"})
    assert code(own) == before
    installed(home, "1.1")
    provenance._owners.cache_clear()
    assert code(own) != before


def test_a_function_of_torch_parses_nothing_of_torch(monkeypatch):
    monkeypatch.setattr(provenance, "source_of", lambda *a: pytest.fail("a text is read"))
    assert fingerprint(set(), ["torch"]) == fingerprint(set(), ["torch.nn.functional"])


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


SIZES = {"samples": 20, "epochs": 4, "width": 3, "replicates": 1, "measure": "mine_x:f"}


def test_a_run_is_stale_when_a_helper_has_changed(home, monkeypatch):
    write(home, {"mine_x": MINE, "helper_x": HELPER})
    forget()
    run = Run(LowRankTraining(**SIZES), home / "outputs")
    settings = Settings(outputs=str(home / "outputs"), device="cpu")
    execute(run, settings)
    assert not run.is_stale() and not kept_notes([run], settings)
    write(home, {"helper_x": OTHER})
    forget()
    (found,) = inventory.find(home / "outputs")
    assert run.is_stale() and found.code == "other"
    (note,) = kept_notes([run], settings)
    assert "computed by other code" in note
    (home / "mine_x.py").unlink()
    del sys.modules["mine_x"]
    forget()
    (found,) = inventory.find(home / "outputs")
    assert found.code == "unknown", "its module is not there, so nothing is known"


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


def test_the_command_refuses_a_run_whose_helper_has_changed(tmp_path):
    write(tmp_path, {"mine_x": MINE, "helper_x": HELPER})
    words = ["study=low_rank_training", "scale=smoke", "epochs=2", "measure=mine_x:f", "device=cpu"]
    assert warm.run("-m", "runner", *words, cwd=tmp_path).returncode == 0
    write(tmp_path, {"helper_x": OTHER})
    done = warm.run("-m", "runner", *words, "stale=refuse", cwd=tmp_path)
    assert done.returncode == 2 and "computed by other code" in done.stderr
    listed = warm.run("-m", "runner", "runs", "list", "--stale", cwd=tmp_path)
    assert "low_rank_training" in listed.stdout
