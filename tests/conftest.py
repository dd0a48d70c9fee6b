"""Shape and type checks for the whole package while the tests run, and what tests share."""

import os
import shutil
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # tests run side by side, and start processes of their own

import typechecking

typechecking.install()  # before anything of the package is imported

import pytest  # noqa: E402
import torch  # noqa: E402
import warm  # noqa: E402

torch.set_num_threads(1)


def pytest_collection_modifyitems(items):
    """The longest tests first, so that no worker is left with one when all else is done."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def command(tmp_path):
    """Runs `python -m runner ... outputs=<tmp_path>` in a process of its own."""

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
