"""The table of `make bench`: every study's comparisons, and how its cost grows with its sizes.

Each study's tables are kept in `outputs/bench/`: `<study>.csv`, `<study>-growth.csv`, and
`<study>.provenance.json` with the machine. `make reference` keeps them in the reference, with which
the next measurement is compared.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from math import isnan
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from runner.bench.growth import STATM, Growth, exponents
from runner.bench.timing import Comparison, matrix_rate, normal_rate
from runner.core.arguments import outputs_folder
from runner.core.catalogue import configs, part_of
from runner.core.errors import InputError, nearest
from runner.core.folders import require_writable
from runner.runs import provenance
from runner.runs.files import write_atomically
from runner.runs.machine import device as device_of
from runner.runs.machine import keep_freed_memory
from runner.runs.provenance import REFERENCE

SLOWER = 1.2
"""From which slowdown on a study is named."""


def sweep() -> Iterator[Comparison]:
    """Figure 4, one run after the other against one run on each core; and shown, not computed.

    At its size at quick, and once: where runs are shorter, what is measured is the start. Showing
    has to import pandas and matplotlib, which is its floor.
    """
    cores = os.cpu_count() or 1
    side_by_side = ["hydra/launcher=joblib", f"hydra.launcher.n_jobs={cores}"]
    one = _seconds("-m", "runner", "figure=fig4")
    all_cores = _seconds("-m", "runner", "figure=fig4", *side_by_side)
    yield Comparison("sweep", "fig4", one, all_cores, one / cores, dtype="")
    shown = _seconds("-m", "runner", "show", "fig4")
    imports = _seconds("-c", "import pandas, matplotlib.figure")
    yield Comparison("sweep", "fig4, shown", all_cores, shown, imports, dtype="")


def _seconds(*arguments: str) -> float:
    """Of a whole command of Python, from its start to its end, with an empty folder of outputs."""
    with tempfile.TemporaryDirectory() as outputs:
        where = [f"outputs={outputs}"] if "runner" in arguments else []
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments, *where], check=True, capture_output=True)
        return time.perf_counter() - start


def collect() -> tuple[dict[str, Callable[[], Iterator[Comparison]]], dict[str, Growth]]:
    """The benchmarks and the growths of all studies that have a `bench.py`, by study."""
    comparisons: dict[str, Callable[[], Iterator[Comparison]]] = {"sweep": sweep}
    growths: dict[str, Growth] = {}
    for study in configs():
        module = part_of(study, "bench")
        if module is not None:
            comparisons[study], growths[study] = module.compare, module.GROWTH
    return comparisons, growths


def machine() -> dict[str, Any]:
    """What the times were taken on; rates in GFLOP and in millions of numbers per second."""
    device = device_of("auto")
    return {
        **provenance.describe(device),
        "processor": provenance.processor(),
        "cores": os.cpu_count(),
        "memory_gib": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
        "float32_gflops": matrix_rate(torch.float32, device.type) / 1e9,
        "float64_gflops": matrix_rate(torch.float64, device.type) / 1e9,
        "float32_normals_per_us": normal_rate(device.type) / 1e6,
    }


def machine_name(described: dict[str, Any]) -> str:
    """What `machine` says, in a few words."""
    gpu = f" and {described['device_name']}" if described["device"] != "cpu" else ""
    rates = (described[f"{dtype}_gflops"] for dtype in ("float32", "float64"))
    float32, float64 = (f"{rate:.0f}" for rate in rates)
    return f"{described['processor']}{gpu}: {float32} / {float64} GFLOP/s"


def keep(folder: Path, study: str, table: str, rows: list[dict[str, Any]]) -> None:
    """Write one table of a study."""
    folder.mkdir(parents=True, exist_ok=True)
    content = pd.DataFrame(rows).to_csv(index=False, float_format="%.4g").encode()
    write_atomically(folder / f"{study}{table}.csv", content)


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    print(pd.DataFrame(rows).to_string(index=False, float_format=lambda value: f"{value:.3g}"))


def slowdown(rows: list[dict[str, Any]], kept: Path) -> float:
    """How many times slower a study is than when its table was kept, by its median row.

    Not in seconds, of which another machine has others, but in speedup over the straightforward
    way. nan where no row was kept. What stands behind a colon in the name of a row is measured.
    """
    if not kept.exists():
        return float("nan")
    before, now = (
        table.set_index(table["work"].str.partition(": ")[0])["speedup"]
        for table in (pd.read_csv(kept), pd.DataFrame(rows))
    )
    return float((before / now).median())


def main(arguments: list[str]) -> int:
    """Measure all studies, or those named, into <outputs>/bench; returns 0.

    Raises InputError when a study has no benchmark.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner bench",
        description="Measure all studies, or those named, into <outputs>/bench; say which of them"
        " are slower than in the reference.",
    )
    parser.add_argument("words", nargs="*", metavar="STUDY | outputs=...")
    words = parser.parse_args(arguments).words
    studies = [word for word in words if "=" not in word]
    folder = outputs_folder(word for word in words if "=" in word) / "bench"
    comparisons, growths = collect()
    for name in studies:
        if name not in comparisons:
            raise InputError(f"{name} has no benchmark: {nearest(name, comparisons)}")
    require_writable(folder.parent, folder)
    torch.set_num_threads(1)  # as every run, and the next lines; both ways profit from it
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
    for study in studies or comparisons:
        print(f"measuring {study}", file=sys.stderr)
        rows = [comparison.as_row() for comparison in comparisons[study]()]
        compared += rows
        slower[study] = slowdown(rows, REFERENCE / "bench" / f"{study}.csv")
        keep(folder, study, "", rows)
        if study in growths and STATM.exists():
            rows = [asdict(row) for row in exponents(growths[study])]
            grown += rows
            keep(folder, study, "-growth", rows)
        write_atomically(
            folder / f"{study}.provenance.json", json.dumps(described, indent=1).encode()
        )
    print("\nSeconds for the same work; speedup over the straightforward way, share of the floor")
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
