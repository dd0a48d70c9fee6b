"""Shape and type checks for the whole package while the tests run, and what tests share."""

import compileall
import os
import shutil
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side, and start processes of their own

import typechecking

typechecking.install()  # before anything of the package is imported

import pytest  # noqa: E402
import torch  # noqa: E402
import warm  # noqa: E402
from fontTools import subset  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402
from repository import REPOSITORY  # noqa: E402

from runner.core import catalogue  # noqa: E402
from runner.core.choices import REGISTERED  # noqa: E402

SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}
settings.register_profile("few", max_examples=10, derandomize=True, database=None, **SHARED)
settings.register_profile("many", max_examples=200, **SHARED)  # of `make test-more`
settings.load_profile("few")

torch.set_num_threads(1)
LAYOUT = ["GDEF", "GPOS", "GSUB", "MATH", "kern"]  # a PDF does not need them; half of its time
subset.Options._drop_tables_default = [*subset.Options._drop_tables_default, *LAYOUT]
compileall.compile_dir(REPOSITORY / "src", quiet=1)  # hundreds of processes import it


def pytest_collection_modifyitems(items):
    """The longest tests first, so that no worker is left with one when all else is done."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def command(tmp_path):
    """Runs `runner ... outputs=<tmp_path>` in a process of its own."""

    def run(*arguments: str, outputs: Path = tmp_path):
        return warm.run("-m", "runner", *arguments, f"outputs={outputs}")

    return run


@pytest.fixture(scope="session")
def computed(tmp_path_factory):
    """An outputs folder with four complete runs, of two studies."""
    import some_runs

    return some_runs.compute(tmp_path_factory.mktemp("computed"))


@pytest.fixture
def outputs(computed, tmp_path):
    """The same, for one test to change."""
    return shutil.copytree(computed, tmp_path / "outputs")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The current folder, whose modules can be imported; they are forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if (getattr(module, "__file__", None) or "").startswith(f"{tmp_path}/"):
            del sys.modules[name]


@pytest.fixture(autouse=True)
def environment():
    """Restore what a command sets for its own process, so that no test depends on earlier ones:
    variables of the environment, the folders and names of a user, the number of threads.
    """
    before, registered = {**os.environ}, {kind: {**own} for kind, own in REGISTERED.items()}
    yield
    folders = os.environ.get(catalogue.FOLDERS)
    os.environ.clear()
    os.environ.update(before)
    REGISTERED.clear()
    REGISTERED.update(registered)
    torch.set_num_threads(1)
    if folders != before.get(catalogue.FOLDERS):
        catalogue.forget()
