"""The benchmarks: every study has one, both ways give the same numbers; what is made of times."""

import json
import sys

import bench.__main__ as table
import numpy as np
import pytest
from bench import growth, stacks
from bench.growth import Growth, cost, exponents, resized
from bench.timing import Comparison
from compiled import compile_loops
from samples import samples

from runner.core.catalogue import configs, paper_folder
from runner.papers.norm_tuning.bn_only.config import BnOnly

SMALL = {"example20": {"L": 16}, "linear": {"L": 2}}
"""Depths at which the baseline takes a second, where it takes many."""


PLAIN = {
    "annealing",
    "bn_only",
    "fits_by_rank",
    "norm_active",
    "norm_finetuning",
    "practical_layers",
    "rank_gradients",
    "rank_or_size",
    "small_copies",
    "stability",
    "vgg_size",
}
"""Studies that are written as the baseline is."""


def test_every_other_study_has_a_benchmark():
    for study in sorted({*configs()} | PLAIN):
        assert (study in PLAIN) != (study in table.STUDIES) and study in configs(), (
            f"{study} needs either scripts/bench/studies/{study}.py, or a line in PLAIN of this"
            " file if it is written as the baseline is"
        )


@pytest.mark.parametrize("study", samples(table.STUDIES, paper_folder))
def test_both_ways_give_the_same_numbers(study, monkeypatch):
    """Each benchmark checks this before it times its first row; the times themselves are left."""
    module = table.module(study)
    for each in (module, stacks):
        if hasattr(each, "median_seconds"):
            monkeypatch.setattr(each, "median_seconds", lambda work, repetitions=5: 1.0)
    for name, value in SMALL.get(study, {}).items():
        monkeypatch.setattr(module, name, value)
    row = next(module.compare()).as_row()
    assert row["study"] == study == module.GROWTH.config.study and row["share_of_floor"] > 0
    for name in module.GROWTH.sizes:
        values = module.GROWTH.values(name)
        assert len(values) == 3 and values == sorted(values)
        resized(module.GROWTH.config, name, values[1])


def kept(folder, speedups):
    rows = [f"sweep,{work},{speedup}" for work, speedup in speedups.items()]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sweep.csv").write_text("\n".join(["study,work,speedup", *rows]))
    return folder / "sweep.csv"


def test_a_study_is_slower_by_its_ratios_and_not_by_its_seconds(tmp_path):
    path = kept(tmp_path, {"d=10": 2.0, "d=20: 31 images/s": 9.0, "d=30": 4.0})
    rows = [
        Comparison("sweep", work, baseline=100 * speedup, ours=100, floor=1).as_row()
        for work, speedup in {"d=10": 2.0, "d=20: 20 images/s": 6.0, "d=40": 1.0}.items()
    ]
    assert table.slowdown(rows, path) == pytest.approx(1.25)
    assert np.isnan(table.slowdown(rows, tmp_path / "none.csv"))


@pytest.mark.parametrize(
    ("row", "before", "said"),
    [
        ("w", 2.3, ""),
        ("w", 2.6, "sweep is 1.30 times slower, in speedup, than on Old Core: 90 / 40 GFLOP/s"),
        ("v", 2.6, "no row is kept of sweep: nothing to compare with"),
    ],
)
def test_a_study_slower_by_a_fifth_is_named(row, before, said, tmp_path, monkeypatch, capsys):
    """The command in miniature: one row, and a machine that need not be measured."""
    described = {"cores": 2, "memory_gib": 4, "device_name": "x86_64", "device": "cpu"}
    described |= {"processor": "Some Core", "float32_gflops": 90.0, "float64_gflops": 40.0}
    described |= {"float32_normals_per_us": 300.0}
    folder = kept(tmp_path / "reference" / "bench", {row: before}).parent
    (folder / "sweep.provenance.json").write_text(json.dumps(described | {"processor": "Old Core"}))
    measured = Comparison("sweep", "w", baseline=2.0, ours=1.0, floor=0.5, dtype="float64")
    monkeypatch.setattr(table, "REFERENCE", tmp_path / "reference")
    monkeypatch.setattr(table, "machine", lambda: described)
    monkeypatch.setattr(table, "sweep", lambda: iter([measured]))
    assert table.main(["--outputs", str(tmp_path), "sweep"]) == 0
    shown = capsys.readouterr().out
    assert "on Some Core: 90 / 40 GFLOP/s" in shown and "float64" in shown
    assert said in shown and ("slower" in shown or "no row" in shown) == bool(said)


def test_an_unknown_study_is_named(capsys):
    with pytest.raises(SystemExit, match="2"):
        table.main(["symetry"])
    assert "no benchmark: symetry; there are: sweep, bottleneck" in capsys.readouterr().err


def test_exponents_of_known_costs(monkeypatch):
    """Cubic seconds and quadratic bytes are found as such."""

    def known(config):
        return 1e-3 * config.target_width**3, 10**7 * config.target_width**2

    monkeypatch.setattr(growth, "cost", known)
    (row,) = exponents(Growth(BnOnly(), {"target_width": (10, 40)}))
    assert row["seconds_exponent"] == pytest.approx(3)
    assert row["memory_exponent"] == pytest.approx(2)
    assert (row["seconds"], row["first"], row["last"]) == (pytest.approx(64), 10, 40)


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in KiB")
def test_the_peak_of_a_run_is_its_own():
    """What this process has allocated does not count, what the run allocates does; nor does a run
    that fails."""
    compile_loops()
    before = np.ones(100_000_000)
    tiny = {"target_width": 2, "replicates": 20, "methods": ["sgd"], "test_samples": 100}
    three_buffers = 3 * 4 * 20 * 100_000 * 4
    _, taken = cost(BnOnly(**tiny, batch_size=100_000, train_samples=100_000))
    assert three_buffers < taken < before.nbytes
    bad = BnOnly(**tiny, train_samples=100)
    object.__setattr__(bad, "target_width", "two")
    with pytest.raises(Exception, match="two|str"):
        cost(bad)
