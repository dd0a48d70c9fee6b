"""What a run will take in memory: the formula against measured runs, and refusals."""

import dataclasses

import pytest
import torch
from hydra.plugins.launcher import Launcher
from in_process import composed

from runner.bench.growth import STATM, cost
from runner.cli.composing import Job, figure_runs
from runner.cli.launching import launch
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import configs
from runner.papers.bottleneck.depth.config import Bottleneck
from runner.papers.bottleneck.example20.config import Example20
from runner.papers.bottleneck.rank_one.config import RankOne
from runner.papers.bottleneck.symmetry.config import Symmetry
from runner.papers.invariances.flow.config import Invariances
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.papers.norm_tuning.constructions.config import Constructions
from runner.papers.rank_collapse.breaking_bn.config import BreakingBN
from runner.papers.rank_collapse.chain.config import RankChain
from runner.papers.rank_collapse.depth.config import RankCollapse
from runner.papers.rank_collapse.pretraining.config import Pretraining
from runner.runs import memory
from runner.runs.execution import execute
from runner.runs.run import Run

ABOUT_100_MEGABYTES = [
    BnOnly(target_width=30, replicates=10, methods=["teacher_construction"], test_samples=512),
    BnOnly(target_width=30, replicates=20, methods=["sgd"], train_samples=512, test_samples=512),
    BnOnly(target_width=50, sparsity=0.9, replicates=2, train_samples=512, test_samples=512),
    Constructions(target_width=60, replicates=1),
    Constructions(target_width=50, width=20_000, replicates=1),
    Constructions(theorem="sparse", sparsity=0.9, target_width=40, replicates=1),
    Constructions(theorem="deep", target_width=64, block=8, replicates=1),
    RankChain(widths=[1024], skips=[1.0], chains=4, layers=256, burn_in=0),
    RankChain(widths=[1024], engine="rotated", skips=[1.0], chains=4, layers=256, burn_in=0),
    RankChain(
        widths=[512], engine="direct", skips=[1.0], chains=32, layers=512, stride=8, burn_in=0
    ),
    RankChain(measure="spectrum", widths=[256], skips=[1.0], chains=16, layers=2),
    RankChain(measure="product", widths=[128], skips=[1.0], chains=128, layers=2),
    RankChain(measure="expansion", widths=[48], skips=[0.1], chains=2, draws=4096),
    RankCollapse(width=128, depth=16, epochs=1, learning_rates=[0.01, 0.1], selection_replicates=5),
    RankCollapse(data="gaussian", train=False, width=256, depth=30),
    Pretraining(width=64, depth=8, epochs=1, learning_rates=[0.01, 0.1]),
    BreakingBN(methods=["batch_norm"], multiplier=0.5, epochs=1, replicates=1, batch_size=512),
    BreakingBN(architecture="resnet50", methods=["vanilla"], epochs=1, replicates=1),
    Bottleneck(depths=[20], width=100, replicates=6, samples=400, steps=3),
    Symmetry(width=100, depth=12, steps=3, probes=500, resolution=41, starts=2000),
    RankOne(depth=24, width=100, samples=[32], steps=3),
    Example20(depths=[2048], grid=12),
    Invariances(width=64, depth=6, replicates=10, time=0.2, records=10),
    Invariances(architecture="conv", channels=32, replicates=10, time=0.2, records=10),
]


def name_of(config) -> str:
    changed = {name: value for name, value in config.identity().items() if name != "replicates"}
    return f"{config.study} {changed}"


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
@pytest.mark.parametrize("config", ABOUT_100_MEGABYTES, ids=name_of)
def test_the_formula_is_near_the_measured_peak(config):
    measured, formula = cost(config).bytes, memory.needed(config)
    assert 0.5 * formula - 3e7 < measured < 1.5 * formula + 3e7


def test_every_study_has_a_formula_and_every_figure_fits_into_24_gib():
    for study, config in configs().items():
        assert memory.needed(config()) > 0, study
    for figure in ("fig5", "bottleneck-fig1", "rank-fig13", "invariances-fig2"):
        for config in figure_runs(figure, ["scale=paper"])[1]:
            assert memory.needed(config) < 24 * 2**30, figure


@pytest.fixture
def small_machine(monkeypatch):
    """A machine with 100 MiB beside the program."""
    monkeypatch.setattr(memory, "available", lambda device: 100 * 2**20)


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


def test_a_sweep_with_one_run_that_does_not_fit_starts_none(small_machine, tmp_path):
    class BasicLauncher(Launcher):
        def setup(self, *, hydra_context, task_function, config):
            pass

        def launch(self, job_overrides, initial_job_idx):
            raise AssertionError("a job was launched")

    settings = Settings(outputs=str(tmp_path))
    fits, does_not = BnOnly(target_width=3), BnOnly(target_width=100)
    with pytest.raises(InputError, match="target_width="):
        launch(BasicLauncher(), [Job({}, settings, fits), Job({}, settings, does_not)])
    assert not list(tmp_path.glob("runs/*/*"))


def test_a_limit_on_the_process_counts(tmp_path, monkeypatch):
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(memory, "CGROUP_LIMIT", limit)
    whole = memory.available(torch.device("cpu"))
    limit.write_text("max\n")
    assert memory.available(torch.device("cpu")) == whole
    limit.write_text(f"{2**30}\n")
    assert memory.available(torch.device("cpu")) == 2**30 - memory.PROGRAM


def test_the_largest_size():
    config = BnOnly(target_width=10)
    limit = 2**30
    value = memory.largest(config, "target_width", limit)
    assert memory.needed(memory.resized(config, "target_width", value)) <= limit
    assert memory.needed(memory.resized(config, "target_width", value + 1)) > limit
    assert memory.largest(config, "seed", limit) is None  # takes no memory
    assert memory.largest(config, "sparsity", limit) is None  # is no whole number
    assert memory.largest(config, "target_width", 1000) is None  # nothing fits
