"""Installed from a wheel, without the repository: it runs from any folder."""

import lzma
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
import zlib

import warm
from repository import REPOSITORY

from runner.core.catalogue import figure_names

SHOWN = "rank-fig3b"
"""The only kept figure in the wheel of the test: to compress all of them takes minutes."""

COMMANDS = (
    (["--help"], "rank_collapse"),
    (["figure=bottleneck-example20", "scale=smoke", "device=cpu"], "holds"),
    (["new", "study", "my_study"], "my_studies/my_study/study.py"),
    (["--config-dir", "my_studies", "study=my_study", "scale=smoke"], "metrics.csv"),
    (["show", SHOWN], f"{SHOWN}.png"),
    (["compare", SHOWN], f"not made at scale quick: {SHOWN}"),
)


def install(place):
    """Return the folder of what a wheel installs; it is built from a copy of the repository."""
    copy = place / "copy"
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in ("conf", "src", f"outputs/reference/quick/{SHOWN}"):
        shutil.copytree(REPOSITORY / name, copy / name, symlinks=True, ignore=ignore)
    (copy / "scripts").mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "scripts/wheel.py"):
        shutil.copy(REPOSITORY / name, copy / name)
    options = ("--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q")
    command = [sys.executable, "-m", "pip", "wheel", *options, "-w", str(place), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place)
    assert done.returncode == 0, done.stderr
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def test_a_wheel_runs_from_any_folder(tmp_path):
    site = install(tmp_path)
    conf = {str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("conf/**/*.yaml")}
    of_wheel = (site / "runner").glob("conf/**/*.yaml")
    assert {str(path.relative_to(site / "runner")) for path in of_wheel} == conf
    assert (site / "runner" / "py.typed").exists()
    (entry_points,) = site.glob("*.dist-info/entry_points.txt")
    assert "runner = runner.__main__:main" in entry_points.read_text()

    env = {**os.environ, "PYTHONPATH": str(site)}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for arguments, words in COMMANDS:
        done = warm.run("-m", "runner", *arguments, cwd=elsewhere, env=env)
        assert done.returncode == 0, done.stderr
        assert words in done.stdout
    done = warm.run("-m", "runner", "show", "fig4", "scale=paper", cwd=elsewhere, env=env)
    assert done.returncode == 2 and "in the repository, outputs/reference" in done.stderr
    (provenance,) = elsewhere.glob("outputs/runs/example20/*/provenance.json")
    assert '"commit": null' in provenance.read_text(), "not that of some checkout around it"


def test_the_tables_in_a_wheel_stay_small(monkeypatch):
    """Below 6 MB as the wheel compresses them; they have 5.84 MB, and 8.50 MB in this test."""
    compress = lzma.compress
    monkeypatch.setattr(lzma, "compress", lambda table, preset: compress(table, preset=0))
    files = runpy.run_path(str(REPOSITORY / "scripts" / "wheel.py"))["files"](REPOSITORY)
    assert {path.parts[0] for path in files} == set(figure_names("quick"))
    packed = (
        len(text if path.suffix == ".xz" else zlib.compress(text)) for path, text in files.items()
    )
    assert sum(packed) < 8.50e6 * 6 / 5.84
