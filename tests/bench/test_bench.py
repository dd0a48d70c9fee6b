"""The benchmarks: every study has one, its sizes are valid, and what is fitted to the times."""

import json
import sys
import time

import numpy as np
import pytest
import torch
from compiled import compile_loops

from runner.bench import growth, table
from runner.bench.growth import Cost, Growth, cost, exponents
from runner.bench.timing import Comparison
from runner.core.catalogue import configs, room_of
from runner.core.errors import InputError
from runner.core.papers import PAPERS
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs import memory
from runner.runs.limits import STATM


def test_every_study_of_a_paper_is_compared_and_varied_in_sizes_that_it_has():
    comparisons, growths = table.collect()
    of_papers = {study for study in configs() if room_of(study) in PAPERS}
    of_papers -= {"bn_only"}  # of it all of figure 4 is measured
    assert of_papers | {"sweep"} <= set(comparisons)
    assert of_papers <= set(growths)
    for study, one in growths.items():
        assert one.config.study == study
        for name, values in one.sizes.items():
            assert len(values) >= 3 and values == sorted(values)
            for value in values:
                memory.resized(one.config, name, value)


def once(work, repetitions=5):
    """Instead of the median of repetitions: the time of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@pytest.mark.parametrize("study", [name for name in table.collect()[0] if name != "sweep"])
def test_both_ways_of_a_study_are_compared(study, monkeypatch):
    """The first row; that both ways give the same numbers is checked before it."""
    compare = table.collect()[0][study]
    for name, module in sys.modules.items():
        if name.startswith("runner.papers.") and hasattr(module, "median_seconds"):
            monkeypatch.setattr(module, "median_seconds", once)
    row = next(compare()).as_row()
    assert row["study"] == study and row["speedup"] > 0 and row["share_of_floor"] > 0


def test_a_comparison_gives_its_ratios():
    row = Comparison("s", "w", straightforward=6.0, ours=2.0, floor=1.0).as_row()
    assert row["speedup"] == 3.0 and row["share_of_floor"] == 0.5


def kept(folder, speedups):
    rows = [f"s,{work},{speedup}" for work, speedup in speedups.items()]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "s.csv").write_text("\n".join(["study,work,speedup", *rows]))
    return folder / "s.csv"


def test_a_study_is_slower_by_its_ratios_and_not_by_its_seconds(tmp_path):
    path = kept(tmp_path, {"d=10": 2.0, "d=20: 31 images/s": 9.0, "d=30": 4.0})
    rows = [
        Comparison("s", work, straightforward=100 * speedup, ours=100, floor=1).as_row()
        for work, speedup in {"d=10": 2.0, "d=20: 20 images/s": 6.0, "d=40": 1.0}.items()
    ]
    assert table.slowdown(rows, path) == pytest.approx(1.25)
    assert np.isnan(table.slowdown(rows, tmp_path / "none.csv"))


def miniature(tmp_path, monkeypatch, kept_row, before):
    """The bench in miniature: one row, and a machine that need not be measured."""
    described = {"cores": 2, "memory_gib": 4, "device_name": "x86_64", "device": "cpu"}
    described |= {"processor": "Some Core", "float32_gflops": 90.0, "float64_gflops": 40.0}
    described |= {"float32_normals_per_us": 300.0}
    bench = kept(tmp_path / "reference" / "bench", {kept_row: before}).parent
    (bench / "s.provenance.json").write_text(json.dumps(described | {"processor": "Old Core"}))
    monkeypatch.setattr(table, "REFERENCE", tmp_path / "reference")
    monkeypatch.setattr(table, "machine", lambda: described)
    row = Comparison("s", "w", straightforward=2.0, ours=1.0, floor=0.5, dtype="float64")
    monkeypatch.setattr(table, "collect", lambda: ({"s": lambda: iter([row])}, {}))
    assert table.main([f"outputs={tmp_path}"]) == 0


@pytest.mark.parametrize(("before", "is_named"), [(2.3, False), (2.6, True)])
def test_a_study_slower_by_a_fifth_is_named(before, is_named, tmp_path, monkeypatch, capsys):
    miniature(tmp_path, monkeypatch, "w", before)
    shown = capsys.readouterr().out
    assert "on Some Core: 90 / 40 GFLOP/s" in shown and "float64" in shown
    named = "s is 1.30 times slower, in speedup, than on Old Core: 90 / 40 GFLOP/s"
    assert (named in shown) == is_named == ("slower" in shown)


def test_a_study_without_kept_rows_is_named(tmp_path, monkeypatch, capsys):
    miniature(tmp_path, monkeypatch, "another", 2.6)
    shown = capsys.readouterr().out
    assert "no row is kept of s: nothing to compare with" in shown and "slower" not in shown


def test_an_unknown_study_is_named():
    with pytest.raises(InputError, match="did you mean 'symmetry'"):
        table.main(["symetry"])


def test_exponents_of_known_costs(monkeypatch):
    """Cubic seconds and quadratic bytes are found as such."""

    def known(config):
        return Cost(seconds=1e-3 * config.target_width**3, bytes=10**6 * config.target_width**2)

    monkeypatch.setattr(growth, "cost", known)
    (row,) = exponents(Growth(BnOnly(), {"target_width": [10, 20, 40]}))
    assert row.seconds_exponent == pytest.approx(3) and row.memory_exponent == pytest.approx(2)
    assert row.seconds == pytest.approx(64) and row.first == 10 and row.last == 40
    largest = memory.resized(BnOnly(), "target_width", int(row.fits_24_gib) + 1)
    assert memory.needed(largest) > growth.MEMORY


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
def test_a_run_that_fails_is_not_measured(capfd):
    bad = BnOnly(target_width=2, train_samples=100, test_samples=100)
    object.__setattr__(bad, "target_width", "two")
    with pytest.raises(RuntimeError, match="could not be measured"):
        cost(bad)


@pytest.mark.skipif(not STATM.exists(), reason="needs /proc")
def test_the_peak_of_a_run_is_its_own():
    """What this process has allocated before does not count, what the run allocates does."""
    compile_loops()
    before = torch.ones(50_000_000)
    tiny = {"target_width": 2, "replicates": 20, "methods": ["sgd"], "test_samples": 100}
    small = cost(BnOnly(**tiny, train_samples=100))
    large = cost(BnOnly(**tiny, batch_size=100_000, train_samples=100_000))
    three_buffers = 3 * 4 * 20 * 100_000 * 4
    assert small.bytes < before.numel() * 4 / 2
    assert large.bytes > small.bytes + three_buffers
