"""Shape and type checks for the whole package while the tests run, and what tests share."""

import compileall
import os
import shutil
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side, and start processes of their own

import typechecking

typechecking.install()  # before anything of the package is imported

import pytest  # noqa: E402
import torch  # noqa: E402
import warm  # noqa: E402
from repository import REPOSITORY  # noqa: E402

from runner.core import catalogue  # noqa: E402

torch.set_num_threads(1)
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


@pytest.fixture(autouse=True)
def environment():
    """Restore what a command sets for its own process: matplotlib's backend (notebooks that tests
    start draw inline) and the folders of a user's studies.
    """
    before = {name: os.environ.get(name) for name in ("MPLBACKEND", catalogue.FOLDERS)}
    yield
    folders = os.environ.get(catalogue.FOLDERS)
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if folders != before[catalogue.FOLDERS]:
        catalogue.forget()
