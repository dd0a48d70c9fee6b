"""All runs under an outputs folder: the status of each, and whether its files are whole."""

import math
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from runner.core.catalogue import rows_of, studies
from runner.core.errors import InputError
from runner.core.folders import require_readable
from runner.core.studies import StudyConfig
from runner.runs import lock
from runner.runs.run import (
    AGAIN,
    NAME,
    RESULT,
    WEIGHTS,
    Run,
    holds,
    knobs,
    read_config,
    read_provenance,
    run_name,
    whose_code,
)
from runner.runs.tables import read_table

STATUSES = ("complete", "running", "interrupted", "failed", "dead", "absent")
"""dead: its process ended without a message. absent: no file says that it was ever begun."""


@dataclass(frozen=True)
class RunInfo:
    """A run as its folder shows it, or an attempt to compute a complete run again.

    config: None if it cannot be read, or is of another version. seconds: worked so far; nan if
    unknown. code: of a complete run, as of `run.whose_code`: today's, other, unknown. ended: when
    its last file was written; None while it is running. again: the status of the attempt to compute
    it again; None without one.
    """

    folder: Path
    config: StudyConfig | None
    status: str
    seconds: float
    code: str
    ended: datetime | None
    again: str | None

    @property
    def home(self) -> Path:
        """The folder of the run itself."""
        return home_of(self.folder)

    @property
    def study(self) -> str:
        """The name of its study, which may no longer exist."""
        return self.home.parent.name

    @property
    def hash8(self) -> str:
        """The end of its name, which tells it from the others."""
        return short_hash(self.home.name)

    @property
    def knobs(self) -> str:
        """The parameters that differ from their defaults; if unreadable, from the folder's name."""
        if self.config is not None:
            return knobs(self.config) or "(defaults)"
        name = NAME.fullmatch(self.home.name)
        return name["knobs"] if name else self.home.name

    @property
    def is_stale(self) -> bool:
        """Whether it is complete, and not known to be by today's code."""
        return self.code in ("other", "unknown")

    @property
    def weights(self) -> int:
        """The bytes of its kept weights; 0 without any."""
        path = self.folder / WEIGHTS
        return path.stat().st_size if path.is_file() else 0

    @property
    def run(self) -> Run:
        """The run, in this very folder. Raises InputError as `run_in` does."""
        return run_in(self.folder)


def short_hash(name: str) -> str:
    """Return the hash, and the number behind it, of the name of a run's folder."""
    found = NAME.fullmatch(name)
    return f"{found['hash']}{found['number'] or ''}" if found else name


def home_of(folder: Path) -> Path:
    """Return the folder of a run, given it or the folder where the run is computed again."""
    return folder.with_name(folder.name.removesuffix(AGAIN))


def attempt_at(folder: Path) -> Path:
    """Return the folder where the run of a folder is computed again."""
    return folder.with_name(folder.name + AGAIN)


def folders(outputs: Path, study: str = "*") -> list[Path]:
    """Return the folders of all runs, or of one study's, by name, whatever is left in them.

    Raises InputError if there is no such folder of outputs.
    """
    require_readable(outputs)
    paths = outputs.glob(f"runs/{study}/*")
    return sorted(path for path in paths if os.path.isdir(path) and path == home_of(path))


def find(outputs: Path, study: str = "*") -> list[RunInfo]:
    """Return all runs, or one study's, by name. Raises InputError as `folders` does."""
    return [describe(folder) for folder in folders(outputs, study)]


def describe(folder: Path) -> RunInfo:
    """Return what a folder shows of its run, or of an attempt to compute it again."""
    home, attempt, config = home_of(folder), attempt_at(folder), None
    with suppress(InputError):
        config = read_config(folder)
    about = read_provenance(folder)
    is_held = lock.is_held(home)
    status = status_of(folder, is_held)
    again = "absent"
    if attempt.is_dir() and not attempt.is_symlink():
        again = status_of(attempt, is_held)
    code, seconds = "", math.nan
    if status == "complete" and folder == home and home.parent.name in studies():
        code = whose_code(about, home.parent.name, config)
    with suppress(TypeError, ValueError, OverflowError):
        seconds = float(about["seconds"]) if "seconds" in about else math.nan
    ended = None if status == "running" else _last_change(folder)
    return RunInfo(
        folder, config, status, seconds, code, ended, None if again == "absent" else again
    )


def status_of(folder: Path, is_held: bool | None) -> str:
    """Return the status of a run, one of STATUSES.

    is_held: whether a process works on the run; None if unknown. A run that has begun and not ended
    is dead only if no process works on it.
    """
    if os.path.isfile(folder / RESULT):
        return "complete"
    if is_held:
        return "running"
    said = read_provenance(folder).get("status")
    if said in ("running", "complete"):  # complete: without the result that is written last
        return "dead" if is_held is False else "running"
    return said if said in ("interrupted", "failed") else "absent"


def _last_change(folder: Path) -> datetime | None:
    """Return when the result was written, or the last other file if there is no result."""
    # The folder may be about to go, and a time beyond all years.
    with suppress(OSError, ValueError, OverflowError):
        result = folder / RESULT
        written = [result] if result.is_file() else [*folder.glob("[!.]*")]
        if written:
            return datetime.fromtimestamp(max(path.stat().st_mtime for path in written))
    return None


def run_in(folder: Path) -> Run:
    """Return the run in a folder, wherever that is, whatever its name.

    Raises InputError if `config.yaml` is damaged or of another version.
    """
    run = Run(read_config(folder), folder.parent)
    run.folder = folder
    return run


def problem(folder: Path) -> str | None:
    """Return what is wrong with a run's files, in one line; None when nothing is."""
    try:
        run = run_in(folder)
        name, study = NAME.fullmatch(folder.name), run.config.study
        if (folder.parent.name, name and name["own"]) != (study, run_name(run.config)):
            return f"{folder}: config.yaml describes the run {run_name(run.config)} of {study}"
        if os.path.isfile(attempt_at(folder) / RESULT):
            attempt = attempt_at(folder)
            return f"{attempt} is complete and not in its place: the run's command puts it there"
        status = run.provenance().get("status")
        if not run.result_path.exists():
            # Before its end there is nothing to verify.
            return f"{run.result_path} is gone" if status == "complete" else None
        if status != "complete":
            return f"{folder / 'provenance.json'} is not that of a complete run"
        return _damage(folder, study, run.result)
    except InputError as error:
        return " ".join(str(error).splitlines())
    except (KeyError, TypeError, AttributeError, ValueError, OSError):
        return f"{folder / RESULT} is damaged"


def _damage(folder: Path, study: str, result: dict[str, Any]) -> str | None:
    """Return which file of a complete run is not as its result says."""
    for name, expected in result["tables"].items():
        read_table(folder / f"{name}.csv", expected)
    if "weights" in result and not holds(folder / WEIGHTS, result["weights"]):
        return f"{folder / WEIGHTS} is damaged"
    tables = {path.stem for path in folder.glob("*.csv")}
    if missing := set(rows_of(study)) & tables - set(result["tables"]):
        return f"{folder / RESULT} says nothing of {', '.join(sorted(missing))}.csv"
    return None if (folder / "run.log").exists() else f"{folder / 'run.log'} is gone"
