"""All runs under an outputs folder: as a table, and verified."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from runner.core.errors import InputError
from runner.core.folders import outputs_at, require_readable
from runner.core.studies import StudyConfig, configs, rows_of
from runner.runs.run import Run, run_name
from runner.runs.tables import read_table


def folders(outputs: Path) -> list[Path]:
    """The folders of all runs, by study and name, whatever is left in them.

    Raises InputError if there is no such folder.
    """
    require_readable(outputs)
    return sorted(path for path in outputs.glob("runs/*/*") if path.is_dir())


def read_config(folder: Path) -> StudyConfig:
    """The configuration that a run's `config.yaml` describes, with today's defaults for new fields.

    Raises InputError when the file is damaged, names a study or a parameter that no longer exists,
    or was written when the same parameters meant other numbers.
    """
    path = folder / "config.yaml"
    try:
        values = yaml.safe_load(path.read_text())
        study, version = values.pop("study"), values.pop("version")
    except (OSError, yaml.YAMLError, KeyError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__})") from error
    if study not in configs():
        raise InputError(f"{path}: there is no study {study!r} any more")
    config_class = configs()[study]
    if version != config_class.version:
        raise InputError(
            f"{path}: version {version} of {study}; the program has version {config_class.version},"
            " in which the same parameters give other numbers"
        )
    known = {field.name for field in dataclasses.fields(config_class)}
    if unknown := sorted(set(values) - known):
        raise InputError(f"{path}: {study} has no parameter {', '.join(unknown)} any more")
    try:
        return config_class(**values)
    except TypeError as error:
        raise InputError(f"{path}: a value is of the wrong type ({error})") from error


def problem(folder: Path, outputs: Path) -> str | None:
    """What is wrong with a run's files, in one line; None when nothing is."""
    try:
        config = read_config(folder)
        if folder.name != run_name(config):
            return f"{folder}: config.yaml describes the run {run_name(config)}"
        run = Run(config, outputs)
        status = run.status()
        if not run.result_path.exists():
            # Before its end there is nothing to verify.
            return f"{run.result_path} is gone" if status == "complete" else None
        if status != "complete":
            return f"{folder / 'provenance.json'} is not that of a complete run"
        for name, expected in run.result["tables"].items():
            read_table(folder / f"{name}.csv", expected)
        if missing := set(rows_of(config.study)) & _tables(folder) - set(run.result["tables"]):
            return f"{run.result_path} says nothing of {', '.join(sorted(missing))}.csv"
        if not (folder / "run.log").exists():
            return f"{folder / 'run.log'} is gone"
    except InputError as error:
        return " ".join(str(error).splitlines())
    except (KeyError, TypeError, AttributeError):
        return f"{folder / 'result.json'} is damaged"
    return None


def _tables(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.csv")}


def describe(folder: Path) -> dict[str, Any]:
    """One line of the list: study, knobs, status, seconds, commit."""
    try:
        about = json.loads((folder / "provenance.json").read_text())
    except (OSError, ValueError):
        about = {}
    if not isinstance(about, dict):
        about = {}
    complete = (folder / "result.json").is_file()
    return {
        "study": folder.parent.name,
        "run": folder.name,
        "status": "complete" if complete else about.get("status", "unknown"),
        "seconds": about.get("seconds", float("nan")),
        "commit": str(about.get("commit") or "")[:8] + ("+" if about.get("dirty") else ""),
    }


def main(arguments: list[str]) -> int:
    """List all runs, or verify every file of them; returns 0, or 1 when a run is damaged.

    Raises InputError when there is no such folder of outputs.
    """
    parser = argparse.ArgumentParser(
        prog="python -m runner runs",
        description="List all runs of an outputs folder, or verify every file of them.",
    )
    parser.add_argument("what", choices=("list", "check"))
    parser.add_argument("outputs", nargs="?", default="outputs", help="the folder: outputs=...")
    options = parser.parse_args(arguments)
    outputs = outputs_at(options.outputs.removeprefix("outputs="))
    found = folders(outputs)
    if options.what == "list":
        table = pd.DataFrame([describe(folder) for folder in found])
        print(table.to_string(index=False) if found else f"no runs under {outputs}")
        return 0
    problems = [text for folder in found if (text := problem(folder, outputs))]
    print("\n".join([*problems, f"{len(found)} runs, {len(problems)} of them damaged"]))
    return 1 if problems else 0
