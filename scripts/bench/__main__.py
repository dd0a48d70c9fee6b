"""The command `make bench`: compare speeds for every study, and measure how costs grow with size.

Each study's tables are stored in `<outputs>/bench/`: `<study>.csv`, `<study>-growth.csv`, and
`<study>.provenance.json` about the machine. `make reference` copies them into the reference. The
next measurement is compared with the copies.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib import import_module
from math import isnan
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from bench import many_runs
from bench.growth import exponents
from bench.timing import Comparison, device, machine_name, matrix_rate, normal_rate
from runner.runs import provenance
from runner.runs.machine import keep_freed_memory
from runner.runs.provenance import REFERENCE

STUDIES = sorted(path.stem for path in (Path(__file__).parent / "studies").glob("[a-z]*.py"))

SLOWER = 1.2
"""Smallest slowdown at which a study is named."""


def sweep() -> Iterator[Comparison]:
    """Yield comparisons: figure 4 on one core and on all cores, displays, columns, and many runs.

    They are measured once, at scale quick: shorter runs would measure the start of the program. The
    floor of displaying a figure is the import of pandas and matplotlib. The floor of the list of
    figures and of columns is the start of Python. The baseline of columns imports the study.
    """
    cores = os.cpu_count() or 1
    side_by_side = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={cores}"]
    one = _seconds("-m", "runner", "figure=fig4")
    all_cores = _seconds("-m", "runner", "figure=fig4", *side_by_side)
    yield Comparison("sweep", "fig4", one, all_cores, one / cores, dtype="")
    shown = _seconds("-m", "runner", "show", "fig4")
    imports = _seconds("-c", "import pandas, matplotlib.figure")
    yield Comparison("sweep", "fig4, shown", all_cores, shown, imports, dtype="")
    listed = _seconds("-c", "from runner.commands import show; show.main([])")
    started = _seconds("-c", "")
    yield Comparison("sweep", "list of figures", imports, listed, started, dtype="")
    columns = _seconds("-m", "runner", "study=rank_collapse", "--columns")
    study = _seconds("-c", "import runner.papers.batch_norm_rank.rank_collapse.study")
    yield Comparison("sweep", "columns of a study", study, columns, started, dtype="")
    yield Comparison("sweep", "a complete run again", *_again(), imports, dtype="")
    yield from many_runs.compare()


def _seconds(*arguments: str) -> float:
    """Return the time of a Python command, from start to end, with an empty outputs folder."""
    with tempfile.TemporaryDirectory() as outputs:
        return _command(*arguments, *([f"outputs={outputs}"] if "runner" in arguments else []))


def _command(*arguments: str) -> float:
    """Return the time of a Python command, from start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    return time.perf_counter() - start


def _again() -> tuple[float, float]:
    """Return the times of a run of seconds, and of the same command when the run is complete."""
    with tempfile.TemporaryDirectory() as outputs:
        run = ("-m", "runner", "study=rank_collapse", "scale=smoke", f"outputs={outputs}")
        return _command(*run), _command(*run)


def module(study: str) -> ModuleType:
    """Import and return the benchmark module of a study."""
    return import_module(f"bench.studies.{study}")


def machine() -> dict[str, Any]:
    """Describe the machine, with its rates in GFLOP and in millions of numbers per second."""
    where = device()
    return {
        **provenance.describe(where),
        "processor": provenance.processor(),
        "cores": os.cpu_count(),
        "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        "float32_gflops": matrix_rate(torch.float32, where.type) / 1e9,
        "float64_gflops": matrix_rate(torch.float64, where.type) / 1e9,
        "float32_normals_per_us": normal_rate(where.type) / 1e6,
    }


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.3g}".format))


def slowdown(rows: list[dict[str, Any]], stored: Path) -> float:
    """Return how much slower a study has become: the median of stored speedup / new speedup.

    rows: the new table. stored: the path of the stored table. Speedups are relative to the baseline
    program, because seconds depend on the machine. Rows are matched by their names, without the
    text after a colon, which is a measured value. The result is nan if no rows match.
    """
    if not stored.exists():
        return float("nan")
    before, now = (
        table.set_index(table["work"].str.partition(": ")[0])["speedup"]
        for table in (pd.read_csv(stored), pd.DataFrame(rows))
    )
    return float((before / now).median())


def main(arguments: list[str]) -> int:
    """Measure the named studies, or all; write their tables to `<outputs>/bench`; return 0."""
    parser = argparse.ArgumentParser(
        prog="make bench",
        description="Measure all studies, or those named, into <outputs>/bench; say which of them"
        " are slower than in the reference.",
    )
    parser.add_argument("studies", nargs="*", metavar="STUDY", help=", ".join(STUDIES))
    parser.add_argument("--outputs", type=Path, default=Path("outputs"))
    typed = parser.parse_args(arguments)
    if unknown := set(typed.studies) - {"sweep", *STUDIES}:
        parser.error(f"no benchmark: {', '.join(unknown)}; there are: sweep, {', '.join(STUDIES)}")
    folder = typed.outputs / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)  # as in every run, like the next lines; both ways profit
    threadpool_limits(1, user_api="blas")
    keep_freed_memory()
    described = machine()
    print(
        f"{machine_name(described)} in float32 / float64 with one thread,"
        f" {described['float32_normals_per_us']:.0f} million normals/s; {described['cores']} cores,"
        f" {described['memory_gib']:.0f} GiB, torch {torch.__version__}"
    )
    compared: list[dict[str, Any]] = []
    slower: dict[str, float] = {}
    grown: list[dict[str, Any]] = []
    for study in typed.studies or ["sweep", *STUDIES]:
        print(f"measuring {study}", file=sys.stderr)
        compare = sweep if study == "sweep" else module(study).compare
        tables = {"": [comparison.as_row() for comparison in compare()]}
        if study != "sweep" and sys.platform == "linux":
            tables["-growth"] = [*exponents(module(study).GROWTH)]
        for end, rows in tables.items():
            path = folder / f"{study}{end}.csv"
            pd.DataFrame(rows).to_csv(path, index=False, float_format="%.4g")
        (folder / f"{study}.provenance.json").write_text(json.dumps(described, indent=1))
        slower[study] = slowdown(tables[""], REFERENCE / "bench" / f"{study}.csv")
        compared += tables[""]
        grown += tables.get("-growth", [])
    print("\nSeconds for the same work; speedup over the baseline, fraction of the limit")
    print(f"on {machine_name(described)} in float32 / float64")
    show(compared)
    for study, factor in slower.items():
        if factor > SLOWER:
            about = json.loads((REFERENCE / "bench" / f"{study}.provenance.json").read_text())
            print(
                f"{study} is {factor:.2f} times slower, in speedup, than on {machine_name(about)}"
            )
    if unknown := [study for study, factor in slower.items() if isnan(factor)]:
        print(f"no row is kept of {', '.join(unknown)}: nothing to compare with")
    if grown:
        print("\nCost ~ size^exponent")
        show(grown)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
