"""All runs in a folder of outputs: the status of each, and whether its files are undamaged."""

import math
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from runner.core.catalogue import config_of, natural_order, rows_of, studies
from runner.core.errors import InputError
from runner.core.folders import require_readable
from runner.core.studies import StudyConfig
from runner.runs import files, lock
from runner.runs.folder_names import BEFORE, LONGEST_NAME, NAME, folder_name, old_of, shown
from runner.runs.run import (
    OF_CODE,
    RESULT,
    SUMS,
    WEIGHTS,
    Run,
    UnknownName,
    damaged_states,
    hash_of,
    holds,
    is_named_for,
    knobs,
    read_config,
    read_provenance,
    read_result,
    whose_code,
)
from runner.runs.tables import sha256_of, table_bytes

AGAIN = ".again"
"""The ending of the folder where version 2.0 computed a complete run again."""

STATUSES = ("complete", "running", "interrupted", "failed", "dead", "absent")
"""Statuses of a run. dead: its process ended without a message. absent: no file shows that the run
was ever begun."""


@dataclass(frozen=True)
class RunInfo:
    """What is known of a run from the files in its folder.

    - folder: the run's folder; it is absent if a run was to be computed again and is not begun;
    - config: the parameters; None if they cannot be read, or are of another version of the study;
    - status: one of `STATUSES`;
    - seconds: the time of computing so far, nan if unknown;
    - ended: when the run ended; None if it is running, or the time is unknown.
    """

    folder: Path
    config: StudyConfig | None
    status: str
    seconds: float
    code: str
    """Which code computed a complete run: the result of `whose_code`. Empty for any other run."""
    ended: datetime | None

    @property
    def is_stale(self) -> bool:
        """Return whether the run is complete, but not known to be computed by today's code."""
        return self.code in OF_CODE

    @property
    def study(self) -> str:
        """Return the name of the study, read from the path. The study may no longer exist."""
        return self.folder.parent.name

    @property
    def hash8(self) -> str:
        """Return the hash in the folder's name, for example `0a1b2c3d`, or `0a1b2c3d-2`."""
        return short_hash(self.folder.name)

    @property
    def knobs(self) -> str:
        """Return the arguments that were typed for the run, as text.

        Four digits of its checksum follow the name of a user's file of images. If the arguments are
        unknown, the parameters that differ from their defaults are returned. If
        `config.yaml` cannot be read, these come from the folder's name.
        """
        text = " ".join(map(str, read_provenance(self.folder).get("typed") or ()))
        if self.config is not None:
            text = text or knobs(self.config) or "(defaults)"
            if own := self.config.own_images():
                file, version = re.escape(own), version_of(self.config)
                text = re.sub(rf"(\bdata=\S*{file})", lambda found: found[0] + version, text)
        if text:
            return text
        name = NAME.fullmatch(self.folder.name)
        return name["knobs"] if name else self.folder.name

    @property
    def parameters(self) -> dict[str, Any]:
        """Return the values of the parameters.

        If `config.yaml` cannot be read, these are the values that the text of `knobs` shows.
        """
        if self.config is not None:
            return vars(self.config)
        words = list(map(str, read_provenance(self.folder).get("typed") or ()))
        if not words and (name := NAME.fullmatch(self.folder.name)):
            words = name["knobs"].split(",")
            words = words[:-1] if len(name["knobs"].encode()) >= LONGEST_NAME else words
        pairs = dict(word.split("=", 1) for word in words if "=" in word)
        known = (
            {item.name for item in fields(config_of(self.study))}
            if self.study in studies()
            else {*pairs}
        )
        return {name: _value(text) for name, text in pairs.items() if name in known}

    @property
    def failure(self) -> str | None:
        """Return the message of a failed run, the last line of `error.txt`; None for other runs."""
        if self.status != "failed":
            return None
        with suppress(OSError, IndexError):
            text = files.read(self.folder / "error.txt").decode(errors="replace")
            return text.strip().splitlines()[-1].strip()
        return "unknown: error.txt could not be written"

    @property
    def note(self) -> str | None:
        """Return the note that the user stored with the run; None if there is none."""
        return read_provenance(self.folder).get("note")

    @property
    def run(self) -> Run:
        """Return the run in this folder. Raises InputError as `run_in` does."""
        return run_in(self.folder)


def _value(text: str) -> Any:
    """Return a parameter's value that is written in the name of a folder or in a command."""
    value: Any = text
    with suppress(yaml.YAMLError, ValueError, RecursionError):
        value = yaml.safe_load(text)
    with suppress(ValueError):  # YAML reads 1e-5 as a text
        value = float(value) if isinstance(value, str) else value
    return value if isinstance(value, int | float | str | list | None) else text


def version_of(config: StudyConfig) -> str:
    """Return four digits that tell a user's file of images from another of its name: `#1a2b`.

    The text is empty if there is no such file.
    """
    checksums = getattr(config, "checksums", None)
    return f"#{checksums[0][:4]}" if config.own_images() and checksums else ""


def short_hash(name: str) -> str:
    """Return the hash at the end of a run's folder name.

    A name without a hash is returned unchanged.
    """
    match = NAME.fullmatch(name)
    return match["hash"] if match else name


def folders(outputs: Path, study: str = "*") -> list[Path]:
    """Return the folders of all runs in a folder of outputs, by study and in natural order.

    A run that has only old numbers has its own folder, too, although it does not exist. study: only
    runs of this study; by default all. Raises InputError if the folder of outputs does not exist or
    cannot be read.
    """
    require_readable(outputs)
    paths = {path for path in outputs.glob(f"runs/{study}/*") if os.path.isdir(path)}
    others = {path for path in paths if path.suffix in (AGAIN, BEFORE)}
    homes = {path.with_name(path.name.removesuffix(BEFORE)) for path in others}
    paths = paths - others | {path for path in homes if old_of(path)}
    return sorted(paths, key=lambda path: (path.parent.name, natural_order(path.name)))


def find(outputs: Path, study: str = "*") -> list[RunInfo]:
    """Return all runs in a folder of outputs, by study and by the values of parameters.

    study: only runs of this study; by default all. Raises InputError as `folders` does.
    """
    infos = [describe(folder) for folder in folders(outputs, study)]
    return sorted(infos, key=lambda info: (info.study, *_by_values(info.config)))


def _by_values(config: StudyConfig | None) -> tuple[Any, ...]:
    """Return a key for `sorted`, by which runs of one study are ordered by their parameters.

    The main parameters count first, as in the folders' names, and the seed last. Runs without a
    config come after all others.
    """
    if config is None:
        return (1,)
    others = [name for name in vars(config) if name not in (*config.named, "seed")]
    return 0, *(_rank(getattr(config, name)) for name in (*config.named, *others, "seed"))


def _rank(value: Any) -> tuple[Any, ...]:
    """Return a key for `sorted`: numbers first, then texts in natural order, then null."""
    if isinstance(value, int | float):
        return 0, value
    return (2,) if value is None else (1, natural_order(shown(value)))


def describe(folder: Path) -> RunInfo:
    """Return what is known of a run from the files in its folder."""
    config, seconds, ended = None, math.nan, None
    with suppress(InputError):
        config = read_config(folder)
    provenance = read_provenance(folder)
    status = status_of(folder, lock.is_held(folder))
    is_known = status == "complete" and folder.parent.name in studies()
    code = whose_code(provenance, config) if is_known and config is not None else "unknown"
    code = code if is_known else ""
    with suppress(KeyError, TypeError, ValueError, OverflowError):
        seconds = float(provenance["seconds"])
    with suppress(OSError, KeyError, TypeError, ValueError, OverflowError):
        if status == provenance["status"] == "running":  # from when the file was written, on
            seconds += max(0.0, time.time() - (folder / "provenance.json").stat().st_mtime)
        elif status != "running":
            ended = datetime.fromisoformat(provenance["ended"]).astimezone()
    return RunInfo(folder, config, status, seconds, code, ended)


def status_of(folder: Path, is_held: bool) -> str:
    """Return the status of a run, one of `STATUSES`, from the files in its folder.

    is_held: whether a process holds the lock of the run, and so works on it.
    """
    if os.path.isfile(folder / RESULT):
        return "complete"
    if is_held:
        return "running"
    status = read_provenance(folder).get("status")
    if status in ("interrupted", "failed"):
        return str(status)
    if os.path.isfile(folder / "error.txt"):  # a full disk has no room for the provenance
        return "failed"
    # complete: without the result that is written last
    return "dead" if status in ("running", "complete") else "absent"


def run_in(folder: Path) -> Run:
    """Return the run that the `config.yaml` in a folder describes.

    The folder may have any path and name. Raises InputError if `config.yaml` is absent or damaged,
    or of another version of the study.
    """
    run = Run(read_config(folder), folder.parent)
    run.folder = folder
    return run


def about_old(folder: Path) -> str:
    """Return in one line where the old numbers of a run are, and how to have them back.

    The text is empty if the run is not computed again.
    """
    if not (old := old_of(folder)):
        return ""
    if os.path.isfile(folder / RESULT):
        return f"{old} has old numbers: the command of the run removes it"
    return (
        f"the old numbers of {folder.name} are in {old}; `runner runs clean` puts them back"
        f" (or remove {folder.name}, and give {old.name} this name)"
    )


AGAIN_BY = "force=true computes the run again"
"""What helps if a file is damaged that the command of a complete run does not write."""


def problem(folder: Path) -> str | None:
    """Return in one line what is wrong with the files in a run's folder; None if nothing is.

    Raises UnknownName if the run has a name of the user that is not known here.
    """
    try:
        if not (folder / "config.yaml").exists() and old_of(folder):
            return None  # the run is to be computed again, and is not begun
        run = run_in(folder)
        if not is_named_for(folder, run.config):
            name = folder_name(run.config, hash_of(run.config))
            return f"{folder}: config.yaml describes the run {name} of {run.config.study}"
        if (used := Run(run.config, folder.parents[2]).folder) != folder:
            return f"{folder} is the same run as {used}, which is used: remove one of them"
        status = run.provenance().get("status")
        if not run.result_path.exists():
            # An unfinished run has no checksums to compare.
            return f"{run.result_path} is gone" if status == "complete" else None
        if status != "complete":
            return f"{folder / 'provenance.json'} is not that of a complete run: {AGAIN_BY}"
        return _damage(run)
    except UnknownName:
        raise
    except InputError as error:
        return " ".join(str(error).splitlines())
    except (KeyError, TypeError, AttributeError, ValueError, OSError):
        return f"{folder / RESULT} is damaged"


def _begins(path: Path, stored: dict[str, Any]) -> bool:
    """Return whether a file begins with the stored number of bytes, with their checksum.

    A log may grow. A file that is gone is named elsewhere.
    """
    return not path.exists() or sha256_of(path, stored["bytes"]) == stored["sha256"]


def _damage(run: Run) -> str | None:
    """Return in words which file of a complete run is damaged; None if none is."""
    result, folder = run.result, run.folder
    for name, expected in result["tables"].items():
        table_bytes(folder / f"{name}.csv", expected)
    if "weights" in result and not holds(folder / WEIGHTS, result["weights"]):
        return f"{folder / WEIGHTS} is damaged: {AGAIN_BY}"
    if damaged := damaged_states(folder, result.get("phases", ())):
        return f"{damaged[0]} is damaged: {AGAIN_BY}"
    for name, stored in read_result(folder / SUMS).items() if (folder / SUMS).exists() else ():
        if not _begins(folder / name, stored):
            return f"{folder / name} is damaged: {AGAIN_BY}"
    others = {path.stem for path in folder.glob("*.csv")} - set(result["tables"])
    if others and (missing := others & set(rows_of(run.config.study))):
        return f"{folder / RESULT} says nothing of {', '.join(sorted(missing))}.csv"
    return None if (folder / "run.log").exists() else f"{folder / 'run.log'} is gone: {AGAIN_BY}"
