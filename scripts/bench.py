"""`make bench [STUDY=bn_only]`: speed against the straightforward way, as ratios from one run."""

import importlib
import os
import platform
import sys
from pathlib import Path

import torch

import runner
from runner.bench import as_table, matrix_rate
from runner.errors import nearest


def main() -> int:
    """Run the benchmarks of all studies, or of the one in the variable STUDY; print the tables."""
    rooms = sorted(path.parent.name for path in Path(runner.__path__[0]).glob("*/bench.py"))
    benches = {}
    for room in rooms:
        benches |= importlib.import_module(f"runner.{room}.bench").BENCHES
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
