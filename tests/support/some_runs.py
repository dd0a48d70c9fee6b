"""Four small runs, how to find one of them, and how to change its status."""

import hashlib
import json
from pathlib import Path

from runner.core.settings import Settings
from runner.papers.bottleneck_structure.example20.config import Example20
from runner.papers.norm_tuning.bn_only.config import BnOnly
from runner.runs.execution import execute
from runner.runs.inventory import find
from runner.runs.query import chosen
from runner.runs.run import Run

TINY = {"train_samples": 640, "test_samples": 100, "batch_size": 32, "replicates": 2}

CONFIGS = (
    BnOnly(target_width=2, **TINY),
    BnOnly(target_width=3, **TINY),
    BnOnly(target_width=3, methods=["sgd"], **TINY),
    Example20(depths=[4], grid=3),
)

METHODS = "sgd+teacher_construction+dense+student_construction"
"""The methods of the runs that do not name methods."""


def compute(outputs: Path) -> Path:
    """Compute a complete run of each configuration; return the outputs folder."""
    for config in CONFIGS:
        execute(Run(config, outputs), Settings(outputs=str(outputs), device="cpu"))
    return outputs


def described(table: Path) -> dict:
    """Return the entry of a table in `result.json`: its number of bytes and its SHA-256."""
    content = table.read_bytes()
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def one(outputs: Path, **where: object) -> Path:
    """Return the folder of the only run of bn_only with these parameters."""
    conditions = [f"{key} == {value!r}" for key, value in where.items()]
    (found,) = chosen(find(outputs), ["bn_only"], where=conditions)
    return found.folder


def say(folder: Path, status: str) -> Path:
    """Change the files of a complete run as if it had only reached a status; return its folder."""
    (folder / "result.json").unlink(missing_ok=True)
    path = folder / "provenance.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": status}))
    return folder
