"""All runs under an outputs folder: what each is, how far it is, whether its files are whole."""

import json
import math
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from runner.core.catalogue import configs, rows_of
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
"""dead: its process died without a message. absent: nothing says that it was ever begun."""

QUEUED = Path("submitit") / "queued"
"""Where, under an outputs folder, it is noted which runs a cluster's queue has."""


@dataclass(frozen=True)
class Found:
    """A run as its folder shows it, or what remains of an attempt to compute a complete one again.

    config: None where it cannot be read, or is of another version. seconds: worked so far; nan if
    unknown. is_stale: whether it is complete, and not known to be by today's code. ended: when its
    last file was written; None while it is running. again: how far it is computed again; None where
    it is not. is_of_unknown_code: whether its provenance or today's code cannot be read.
    """

    folder: Path
    config: StudyConfig | None
    status: str
    seconds: float
    is_stale: bool
    ended: datetime | None
    again: str | None = None
    is_of_unknown_code: bool = False

    @property
    def home(self) -> Path:
        """The folder of the run, beside which an attempt has its own."""
        return self.folder.with_name(self.folder.name.removesuffix(AGAIN))

    @property
    def attempt(self) -> Path:
        """The folder where the run is computed again."""
        return self.folder.with_name(self.folder.name + AGAIN)

    @property
    def study(self) -> str:
        """The name of its study, which may no longer exist."""
        return self.home.parent.name

    @property
    def hash8(self) -> str:
        """The end of its name: enough to tell it from the others."""
        name = NAME.fullmatch(self.home.name)
        return f"{name['hash']}{name['number'] or ''}" if name else self.home.name

    @property
    def knobs(self) -> str:
        """What a person calls it; by its name where the configuration cannot be read."""
        found = NAME.fullmatch(self.home.name)
        name = found["knobs"] if found else self.home.name
        return name if self.config is None else knobs(self.config) or "(defaults)"

    @property
    def weights(self) -> int:
        """The bytes of its kept weights; 0 without any."""
        path = self.folder / WEIGHTS
        return path.stat().st_size if path.is_file() else 0

    @property
    def run(self) -> Run:
        """The run, in this very folder. Raises InputError where `config.yaml` does not serve."""
        return run_in(self.folder)


def folders(outputs: Path, study: str = "*") -> list[Path]:
    """Return the folders of all runs, or those of a study, by name, whatever is left in them.

    Raises InputError if there is no such folder of outputs.
    """
    require_readable(outputs)
    found = [path for path in outputs.glob(f"runs/{study}/*") if os.path.isdir(path)]
    return sorted(path for path in found if path.suffix != AGAIN)


def find(outputs: Path, study: str = "*") -> list[Found]:
    """Return all runs, or those of a study, by name. Raises InputError if there is no such
    folder."""
    queued = in_queue(outputs)
    return [describe(folder, folder in queued) for folder in folders(outputs, study)]


def describe(folder: Path, is_queued: bool = False) -> Found:
    """Return what a folder shows of its run, or of an attempt at computing it again.

    is_queued: whether a cluster's queue may have it.
    """
    try:
        config = read_config(folder)
    except InputError:
        config = None
    about = read_provenance(folder)
    is_attempt = folder.suffix == AGAIN
    attempt = folder.with_name(folder.name + AGAIN)
    is_held = lock.is_held(folder.with_name(folder.name.removesuffix(AGAIN)))
    status = status_of(folder, is_held, is_queued)
    again = "absent"
    if attempt.is_dir() and not attempt.is_symlink():
        again = status_of(attempt, is_held, is_queued)
    is_whole = status == "complete" and not is_attempt
    whose = _whose_code(folder, config, about) if is_whole else ""
    return Found(
        folder,
        config,
        status,
        _seconds(about),
        whose in ("other", "unknown"),
        None if status == "running" else _last_change(folder),
        None if again == "absent" else again,
        whose == "unknown",
    )


def _seconds(about: dict[str, Any]) -> float:
    """Return the seconds that a provenance gives; nan where it gives none."""
    seconds = about.get("seconds")
    with suppress(OverflowError):
        return float(seconds) if isinstance(seconds, int | float) else math.nan
    return math.nan


def attempts(found: list[Found], queued: dict[Path, Path]) -> list[Found]:
    """Return the attempts at computing these runs again that are not complete."""
    begun = [each for each in found if each.again not in (None, "complete")]
    return [describe(each.attempt, each.folder in queued) for each in begun]


def status_of(folder: Path, is_held: bool | None, is_queued: bool = False) -> str:
    """Return how far a run is.

    is_held: whether a process works on it; None where that is unknown. A run that has begun and
    not ended is dead only if nobody works on it, and no queue may bring it back.
    """
    if os.path.isfile(folder / RESULT):
        return "complete"
    if is_held:
        return "running"
    said = read_provenance(folder).get("status")
    if said in ("running", "complete"):  # complete: without the result that is written last
        return "dead" if is_held is False and not is_queued else "running"
    return said if said in ("interrupted", "failed") else "absent"


def in_queue(outputs: Path) -> dict[Path, Path]:
    """Return the folders of the runs that a cluster's queue may have, each with the note that says
    so."""
    found: dict[Path, Path] = {}
    for note in sorted((outputs / QUEUED).glob("*.json")):
        with suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            tasks = json.loads(note.read_bytes())["tasks"]
            found |= {outputs / label: note for labels in tasks for label in labels}
    return found


def _whose_code(folder: Path, config: StudyConfig | None, about: dict[str, Any]) -> str:
    """Return whose code numbers are by, as `run.whose_code`; of a study that is gone there is
    none."""
    study = folder.parent.name
    return whose_code(about, study, config) if study in configs() else ""


def _last_change(folder: Path) -> datetime | None:
    """When the result was written, or the last other file if there is no result."""
    # The folder may be about to go, and a time beyond all years.
    with suppress(OSError, ValueError, OverflowError):
        result = folder / RESULT
        written = [result] if result.is_file() else [*folder.glob("[!.]*")]
        if written:
            return datetime.fromtimestamp(max(path.stat().st_mtime for path in written))
    return None


def run_in(folder: Path) -> Run:
    """Return the run in a folder, wherever that is, whatever its name.

    Raises InputError where `config.yaml` is damaged or of another time.
    """
    run = Run(read_config(folder), folder.parent)
    run.folder = folder
    return run


def problem(folder: Path, outputs: Path) -> str | None:
    """Return what is wrong with a run's files, in one line; None when nothing is."""
    try:
        config = read_config(folder)
        found = NAME.fullmatch(folder.name)
        name = found["own"] if found else folder.name
        if (folder.parent.name, name) != (config.study, run_name(config)):
            return f"{folder}: config.yaml describes the run {run_name(config)} of {config.study}"
        run = run_in(folder)
        if os.path.isfile(run.again / RESULT):
            return f"{run.again} is complete and not in its place: the run's command puts it there"
        status = run.provenance().get("status")
        if not run.result_path.exists():
            # Before its end there is nothing to verify.
            return f"{run.result_path} is gone" if status == "complete" else None
        if status != "complete":
            return f"{folder / 'provenance.json'} is not that of a complete run"
        for name, expected in run.result["tables"].items():
            read_table(folder / f"{name}.csv", expected)
        if "weights" in run.result and not holds(folder / WEIGHTS, run.result["weights"]):
            return f"{folder / WEIGHTS} is damaged"
        if missing := set(rows_of(config.study)) & _tables(folder) - set(run.result["tables"]):
            return f"{run.result_path} says nothing of {', '.join(sorted(missing))}.csv"
        if not (folder / "run.log").exists():
            return f"{folder / 'run.log'} is gone"
    except InputError as error:
        return " ".join(str(error).splitlines())
    except (KeyError, TypeError, AttributeError, ValueError, OSError):
        return f"{folder / RESULT} is damaged"
    return None


def _tables(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("*.csv")}
