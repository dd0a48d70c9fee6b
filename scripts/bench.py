"""`make bench [STUDY=bn_only]`: speed against the straightforward way, as ratios from one run."""

import importlib
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import torch

import runner
from runner.bench import Comparison, as_table, matrix_rate, median_seconds
from runner.errors import nearest


def sweep() -> Iterator[Comparison]:
    """The sweep of figure 4 one run after the other against one run on each core."""

    def command(jobs: int) -> None:
        with tempfile.TemporaryDirectory() as outputs:
            launcher = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={jobs}"]
            sizes = ["train_samples=64000", "test_samples=10000", f"outputs={outputs}"]
            arguments = ["-m", "runner", "figure=fig4", *sizes, *(launcher if jobs > 1 else [])]
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    cores = os.cpu_count() or 1
    one = median_seconds(partial(command, 1), 1)
    yield Comparison(
        "sweep", "fig4 at an eighth", one, median_seconds(partial(command, cores), 1), one / cores
    )


def main() -> int:
    """Run the benchmarks of all studies, or of the one in the variable STUDY; print the tables."""
    rooms = sorted(path.parent.name for path in Path(runner.__path__[0]).glob("*/bench.py"))
    benches = {}
    for room in rooms:
        benches |= importlib.import_module(f"runner.{room}.bench").BENCHES
    benches["sweep"] = sweep
    study = os.environ.get("STUDY")
    if study and study not in benches:
        print(f"error: STUDY={study} has no benchmark: {nearest(study, benches)}", file=sys.stderr)
        return 2
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__} with"
        f" {torch.get_num_threads()} threads, matrix product"
        f" {matrix_rate(torch.float32) / 1e9:.0f} GFLOP/s in float32"
    )
    if torch.cuda.is_available():
        print(f"{torch.cuda.get_device_name()}")
    for name in [study] if study else sorted(benches):
        table = as_table(list(benches[name]()))
        print(f"\n{table.to_string(index=False, float_format=lambda value: f'{value:.3g}')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
