"""Benchmark of many runs: their jobs are composed and launched; they are checked and listed.

The baseline composes each job with Hydra, and once more when it is launched, as Hydra's launchers
do. It reads each run with PyYAML in Python and with pandas.
"""

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

import yaml
from hydra import compose
from hydra.core.global_hydra import GlobalHydra

import runner
from bench.timing import Comparison, median_seconds
from runner.commands import runs
from runner.compose.composing import Composer, hydra_ready
from runner.compose.launching import Unchanged
from runner.runs.inventory import folders, problem
from runner.runs.run import Run, read_config, read_result
from runner.runs.tables import read_table

RUNS = 100
LISTED = 2000


def make_runs(outputs: Path, number: int = RUNS) -> list[Path]:
    """Write complete runs that differ in their seeds; return their folders."""
    runner.run("example20", scale="smoke", seed=0, outputs=outputs, device="cpu")
    (first,) = folders(outputs)
    for seed in range(1, number):
        run = Run(dataclasses.replace(read_config(first), seed=seed), outputs)
        shutil.copytree(first, run.folder)
        (run.folder / "config.yaml").write_bytes(run.config_text())
    return folders(outputs)


def read_all(paths: list[Path]) -> None:
    """Read configuration and tables of all runs."""
    for path in paths:
        yaml.safe_load((path / "config.yaml").read_bytes())
        for name, expected in read_result(path / "result.json")["tables"].items():
            read_table(path / f"{name}.csv", expected)


def check_all(paths: list[Path]) -> None:
    """Check the files of all runs. Raises AssertionError if one is damaged."""
    assert not any(map(problem, paths))


def list_all(outputs: str) -> None:
    """List all runs with their parameters and their numbers."""
    with redirect_stdout(StringIO()):
        runs.main(["list", f"outputs={outputs}"])


def compare() -> Iterator[Comparison]:
    """Yield four comparisons: composing, launching, checking and listing.

    The floor of checking is reading the files' bytes. The baseline of listing reads configuration
    and tables of all runs.
    """
    jobs = [["study=example20", "scale=smoke", f"seed={seed}"] for seed in range(RUNS)]
    with hydra_ready(["study=example20"]):
        one_by_one = median_seconds(lambda: [compose("config", job) for job in jobs[:5]], 3)
        together = median_seconds(lambda: [*map(Composer().job, jobs)], 3)
        whole = compose("config", jobs[0], return_hydra_config=True)
        launched = [
            median_seconds(lambda load=load: [load(whole, job) for job in jobs[:5]], 3)
            for load in (
                GlobalHydra.instance().config_loader().load_sweep_config,
                Unchanged().load_sweep_config,
            )
        ]
    per_job = one_by_one / 5
    yield Comparison("sweep", "composing a job", per_job, together / RUNS, 0.0, dtype="")
    yield Comparison("sweep", "launching a job", launched[0] / 5, launched[1] / 5, 0.0, dtype="")
    with tempfile.TemporaryDirectory() as outputs:
        paths = make_runs(Path(outputs))
        files = [file for path in paths for file in path.iterdir()]
        times = (
            median_seconds(partial(read_all, paths)),
            median_seconds(partial(check_all, paths)),
            median_seconds(lambda: [file.read_bytes() for file in files]),
        )
        yield Comparison("sweep", f"checking {RUNS} runs", *times, dtype="")
    with tempfile.TemporaryDirectory() as outputs:
        paths = make_runs(Path(outputs), LISTED)
        listed = median_seconds(partial(list_all, outputs), 3)
        read = median_seconds(partial(read_all, paths), 1)
        yield Comparison("sweep", f"list of {LISTED} runs", read, listed, 0.0, dtype="")
