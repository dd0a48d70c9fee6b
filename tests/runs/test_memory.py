"""What a run will take in memory: the formula against measured runs, and refusals."""

import dataclasses
import errno

import pytest
import torch
from hydra.plugins.launcher import Launcher
from in_process import composed
from omegaconf import OmegaConf

from runner.cli.composing import Job, figure_runs
from runner.cli.launching import launch
from runner.core.catalogue import configs
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.papers.bottleneck_structure.bottleneck.config import Bottleneck
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import memory
from runner.runs.execution import execute
from runner.runs.run import Run


def test_every_study_has_a_formula_and_every_figure_fits_into_24_gib():
    for study, config in configs().items():
        assert memory.needed(config()) > 0, study
    for figure in ("fig5", "bottleneck-fig1", "rank-fig13", "invariances-fig2"):
        for config in figure_runs(figure, ["scale=paper"])[1]:
            assert memory.needed(config) < 24 * 2**30, figure


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with 100 MiB beside the program."""
    monkeypatch.setattr(memory, "available", lambda device, abreast=1: 100 * 2**20 // abreast)


def test_what_does_not_fit_is_refused_before_it_starts(small_machine, tmp_path):
    settings, config = composed("study=bottleneck", "width=2000", f"outputs={tmp_path}")
    run = Run(config, settings.folder())
    with pytest.raises(InputError, match=r"needs about [\d.]+ GiB .* cpu has 0\.1 GiB: ") as error:
        execute(run, settings)
    assert not run.folder.exists()
    advised = dict(
        item.split("=") for item in str(error.value).partition("GiB: ")[2].split() if "=" in item
    )
    assert "width" in advised
    for name, value in advised.items():
        smaller = dataclasses.replace(config, **{name: int(value)})
        assert memory.needed(smaller) <= 100 * 2**20
        larger = dataclasses.replace(config, **{name: int(value) + 1})
        assert memory.needed(larger) > 100 * 2**20


class BasicLauncher(Launcher):
    """A launcher of this machine that must not launch. n_jobs: runs side by side."""

    def __init__(self, **settings):
        runtime = {"choices": {"hydra/launcher": "basic"}}
        self.config = OmegaConf.create({"hydra": {"launcher": settings, "runtime": runtime}})

    def setup(self, *, hydra_context, task_function, config):
        pass

    def launch(self, job_overrides, initial_job_idx):
        raise AssertionError("a job was launched")


def test_a_sweep_with_one_run_that_does_not_fit_starts_none(small_machine, tmp_path):
    settings = Settings(outputs=str(tmp_path))
    fits, does_not = Bottleneck(width=5), Bottleneck(width=2000)
    assert memory.needed(fits) < 100 * 2**20 < memory.needed(does_not)
    with pytest.raises(InputError, match="width="):
        launch(BasicLauncher(), [Job({}, settings, fits), Job({}, settings, does_not)])
    assert not list(tmp_path.glob("runs/*/*"))


def test_runs_side_by_side_share_the_memory(small_machine, tmp_path):
    settings = Settings(outputs=str(tmp_path))
    jobs = [Job({}, settings, Example20(depths=[1024], grid=10, exponents=[g])) for g in (0.6, 0.7)]
    assert 50 * 2**20 < memory.needed(jobs[0].config) < 100 * 2**20
    with pytest.raises(InputError, match=r"has 0\.0 GiB for each of 2 runs side by side: "):
        launch(BasicLauncher(n_jobs=2), jobs)
    for launcher, some in ((BasicLauncher(n_jobs=2), jobs[:1]), (BasicLauncher(n_jobs=1), jobs)):
        with pytest.raises(InputError, match="a job was launched"):
            launch(launcher, some)


def test_the_largest_size():
    config = BnOnly(target_width=10)
    limit = 2**30
    value = memory.largest(config, "target_width", limit)
    assert memory.needed(memory.resized(config, "target_width", value)) <= limit
    assert memory.needed(memory.resized(config, "target_width", value + 1)) > limit
    assert memory.largest(config, "seed", limit) is None  # takes no memory
    assert memory.largest(config, "sparsity", limit) is None  # is no whole number
    assert memory.largest(config, "target_width", 1000) is None  # nothing fits


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("...: can't allocate memory: ..."),
    ],
)
def test_want_of_memory_is_known(error):
    assert memory.is_exhausted(error)


def test_the_real_allocator_is_understood():
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**60)
    assert memory.is_exhausted(raised.value)


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), OSError(errno.EIO, "bad")])
def test_other_errors_are_not_taken_for_want_of_memory(error):
    assert not memory.is_exhausted(error)
