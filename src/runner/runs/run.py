"""What a run is: one study at one configuration, kept in one folder.

The folder `<outputs>/runs/<study>/<readable knobs>-<hash8>/` (with `-2` behind it where another
configuration has that name) holds `config.yaml`, the tables,
`provenance.json`, `run.log`, while unfinished `checkpoint.safetensors`, when failed `error.txt`,
and `result.json`, written last and atomically: it alone marks the run complete. A complete run is
computed again in `<folder>.again`, which takes its place once it is complete, too.
"""

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import yaml

from runner.core.catalogue import config_of, module_of, studies
from runner.core.errors import InputError, nearest
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, TrainingConfig
from runner.runs.provenance import code_of
from runner.runs.tables import read_table, sha256_of

if TYPE_CHECKING:
    import torch

RESULT, CHECKPOINT = "result.json", "checkpoint.safetensors"

WEIGHTS = "weights.safetensors"
"""What `keep_weights=true` leaves: `batch/width=64/replicate=0/W1`, ..."""

WRITTEN = {RESULT, CHECKPOINT, WEIGHTS, "config.yaml", "provenance.json", "run.log", "error.txt"}
WRITTEN |= {"overview.png"}
"""The files that a run writes, beside its tables."""

AGAIN = ".again"
"""The ending of the folder where a complete run is computed again."""

LONGEST_NAME = 120

NAME = re.compile(r"(?P<own>(?P<knobs>.*)-(?P<hash>[0-9a-f]{8}))(?P<number>-\d+)?")
"""The name of a run's folder; the number where another configuration has the name without it."""

UNNAMED = ("checksums",)
"""Parameters that the hash covers and no person reads."""


class Run:
    """One study at one configuration: its identity, its folder, its state."""

    def __init__(self, config: StudyConfig, outputs: Path) -> None:
        self.config = config
        self._named = outputs / "runs" / config.study / run_name(config)
        self._folder: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder of its name that another configuration does not have: names are cut, and
        hashes short."""
        if self._folder is None:
            identity, free = self.identity, None
            for path in _alike(self._named):
                kept = _kept_identity(path)
                if kept == identity:
                    self._folder = path
                    return path
                free = path if kept is None and free is None else free
            assert free is not None, "the last is not there"
            return free
        return self._folder

    @folder.setter
    def folder(self, path: Path) -> None:
        self._folder = path

    @property
    def identity(self) -> str:
        """What changes the numbers, and nothing else, as text."""
        return identity_of(self.config)

    def __str__(self) -> str:
        return f"{self.config.study} {knobs(self.config) or '(defaults)'}"

    def __repr__(self) -> str:
        return f"<run {self}>"

    @property
    def result_path(self) -> Path:
        """The file whose presence marks the run complete."""
        return self.folder / RESULT

    @property
    def again(self) -> Path:
        """The folder where the complete run is computed again."""
        return self.folder.with_name(self.folder.name + AGAIN)

    @property
    def result(self) -> dict[str, Any]:
        """The content of `result.json` as it is now. Raises InputError when it cannot be read."""
        return read_result(self.result_path)

    def is_complete(self) -> bool:
        """Return whether the run has ended and its tables are there, byte for byte."""
        return is_whole(self.folder)

    def provenance(self) -> dict[str, Any]:
        """Return the content of `provenance.json`; nothing if it cannot be read."""
        return read_provenance(self.folder)

    def status(self) -> str:
        """Return what the provenance of the last attempt says; absent where it says nothing."""
        last = self.again if self.again.is_dir() else self.folder
        return str(read_provenance(last).get("status", "absent"))

    def is_stale(self) -> bool:
        """Return whether the run is complete, and not known to be by today's code."""
        return self.is_complete() and self.whose_code() != "today's"

    def whose_code(self) -> str:
        """Return whether the run is by today's code: today's, other, unknown.

        Unknown: its provenance is gone or damaged, or the code of today cannot be read.
        """
        return whose_code(self.provenance(), self.config.study, self.config)

    def code(self) -> str:
        """Return the fingerprint of today's code of the run."""
        return code_of(self.config.study, self.config.own_functions())

    def is_wanted(self, settings: Settings) -> bool:
        """Return whether the run is to be computed.

        Raises InputError when it is stale and `stale=refuse`.
        """
        if settings.force or not self.is_complete():
            return True
        if settings.stale == "keep" or (whose := self.whose_code()) == "today's":
            return False
        if settings.stale == "refuse":
            by = "other code" if whose == "other" else "a code that is not known"
            raise InputError(
                f"{self} was computed by {by}.\n"
                "stale=recompute computes it again, stale=keep takes it as it is."
            )
        return True

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return all tables of the complete run. Raises InputError when one is damaged."""
        return {
            name: read_table(self.folder / f"{name}.csv", expected)
            for name, expected in self.result["tables"].items()
        }

    def is_weightless(self) -> bool:
        """Return whether networks were trained, and their weights not kept."""
        return isinstance(self.config, TrainingConfig) and "weights" not in self.result

    def has_lost_weights(self) -> bool:
        """Return whether weights were kept, and are gone or damaged."""
        result = self.result
        return "weights" in result and not holds(self.folder / WEIGHTS, result["weights"])

    def weights(self) -> "dict[str, dict[str, torch.Tensor]]":
        """Return the trained weights by network, `batch/width=64/replicate=0`, and by name.

        Raises InputError where none were kept, or they are damaged.
        """
        from safetensors.torch import load_file  # late: it imports torch

        if self.is_weightless():
            raise InputError(
                f"{self} was computed without keeping its weights.\n"
                "keep_weights=true force=true computes it again, and keeps them."
            )
        if "weights" not in self.result:
            raise InputError(f"{self}: this study trains no network, so it has no weights")
        if not holds(self.folder / WEIGHTS, self.result["weights"]):
            raise InputError(f"{self.folder / WEIGHTS} is damaged: force=true computes it again")
        found: dict[str, dict[str, torch.Tensor]] = {}
        for name, tensor in load_file(self.folder / WEIGHTS).items():
            network, _, own = name.rpartition("/")
            found.setdefault(network, {})[own] = tensor
        return found

    def modules(self) -> "dict[str, torch.nn.Module]":
        """Return the trained networks by name: torch modules in evaluation mode, samples as rows.

        Raises InputError as `weights` does, and where those of the study are no standard ones.
        """
        make = getattr(module_of(self.config.study), "torch_module", None)
        if make is None:
            raise InputError(f"{self.config.study} has no module for its networks: see weights()")
        return {name: make(self.config, name, own) for name, own in self.weights().items()}

    def config_text(self) -> bytes:
        """Return the content of its `config.yaml`."""
        config = self.config
        content = {"study": config.study, "version": config.version, **vars(config)}
        return yaml.safe_dump(content, sort_keys=False).encode()


def read_config(folder: Path) -> StudyConfig:
    """Return the configuration that a run's `config.yaml` describes, with today's defaults for new
    fields.

    Raises InputError when the file is damaged, names a study or a parameter that no longer exists,
    or was written when the same parameters meant other numbers.
    """
    path = folder / "config.yaml"
    values = read_values(path)
    try:
        study, version = values.pop("study"), values.pop("version")
    except KeyError as error:
        raise InputError(f"{path} cannot be read (KeyError)") from error
    if not isinstance(study, str) or study not in studies():
        raise InputError(f"{path}: no study {study!r} is known here; one of your own: --config-dir")
    config_class = config_of(study)
    if version != config_class.version:
        raise InputError(
            f"{path}: version {version} of {study}; the program has version {config_class.version},"
            " in which the same parameters give other numbers"
        )
    known = {field.name for field in dataclasses.fields(config_class)}
    if unknown := sorted(str(name) for name in set(values) - known):
        raise InputError(f"{path}: {study} has no parameter {', '.join(unknown)} any more")
    try:
        config = config_class(**values)
        run_name(config)
    except InputError:
        raise
    except Exception as error:  # whatever the checks of a study come up with
        raise InputError(f"{path}: a value is of the wrong type ({error})") from error
    return config


def read_values(path: Path) -> dict[Any, Any]:
    """Return what a `config.yaml` holds. Raises InputError when it is not there, or no mapping."""
    try:
        values = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__})") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} cannot be read (no mapping)")
    return values


def _alike(path: Path) -> Iterator[Path]:
    """Yield a folder, `<path>-2`, ..., as far as they are there, and the first that is not."""
    place, number = path, 1
    while os.path.exists(place):
        yield place
        number += 1
        place = path.with_name(f"{path.name}-{number}")
    yield place


def _kept_identity(folder: Path) -> str | None:
    """Return which configuration has a folder; None where that cannot be read."""
    try:
        return identity_of(read_config(folder))
    except InputError:
        return None


def whose_code(about: dict[str, Any], study: str, config: StudyConfig | None) -> str:
    """Return whether a run is by today's code, by other, or that this is unknown.

    about: its provenance; config: None where that cannot be read.
    """
    own = () if config is None else config.own_functions()
    try:
        today = code_of(study, own)
    except (SyntaxError, ValueError, RecursionError, InputError):  # of the user's own modules
        return "unknown"
    if not isinstance(kept := about.get("code"), str):
        return "unknown"
    return "today's" if kept == today else "other"


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's `provenance.json`; nothing where none can be read."""
    try:
        found = json.loads((folder / "provenance.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_result(path: Path) -> dict[str, Any]:
    """Return the content of a `result.json`. Raises InputError when it cannot be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} cannot be read ({error}).\nRun it again with force=true."
        ) from error


def is_whole(folder: Path) -> bool:
    """Return whether a run has ended in the folder and its tables are there, byte for byte."""
    try:
        tables = read_result(folder / RESULT)["tables"].items()
        return all(holds(folder / f"{name}.csv", table) for name, table in tables)
    except (InputError, AttributeError, KeyError, TypeError, ValueError):
        return False


def holds(path: Path, table: dict[str, Any]) -> bool:
    """Return whether there is the file of a table that `result.json` describes."""
    try:
        about = path.stat()
        if about.st_size != table["bytes"]:
            return False
        return _sha256(path, about.st_size, about.st_mtime_ns) == table["sha256"]
    except OSError:
        return False


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 of a file, computed again when its size or time of change is another."""
    return sha256_of(path)


def knobs(config: StudyConfig) -> str:
    """Return what a person calls the run: the parameters that differ from their defaults."""
    values = config.identity().items()
    return ",".join(f"{name}={readable(value)}" for name, value in values if name not in UNNAMED)


def readable(value: Any) -> str:
    """Return a parameter's value as names of runs have it."""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def identity_of(config: StudyConfig) -> str:
    """Return what changes the numbers, and nothing else, as text.

    A field that equals its default is left out, so that a new field does not move old runs.
    """
    content: dict[str, Any] = {"study": config.study, "parameters": config.identity()}
    if config.version != 1:
        content["version"] = config.version
    return json.dumps(content, sort_keys=True)


def run_name(config: StudyConfig) -> str:
    """Return `<readable knobs>-<hash8>`: the hash is of the run's identity."""
    hash8 = hashlib.sha256(identity_of(config).encode()).hexdigest()[:8]
    readable = knobs(config).replace("/", "_")[:LONGEST_NAME] or "defaults"
    return f"{readable}-{hash8}"


STALE = {
    "other": "computed by other code and kept: stale=recompute computes again",
    "unknown": "kept, by which code is not known: stale=recompute computes again",
}
"""The note on a complete run by whose code it is."""


def stale_note(runs: Iterable[Run]) -> str | None:
    """Return a note on complete runs whose code is not today's; None without any."""
    runs = list(runs)
    whose = {run: run.whose_code() for run in runs if run.is_complete()}
    notes = [
        _note([run for run in whose if whose[run] == code], runs, STALE[code]) for code in STALE
    ]
    return "\n".join(filter(None, notes)) or None


def kept_notes(runs: Iterable[Run], settings: Settings) -> list[str]:
    """Return notes on complete runs that are kept, a line each.

    They are of other code, without wanted weights, or of another number of threads, with which sums
    round otherwise; threads are no part of a run's identity.
    """
    runs = list(runs)
    notes = [stale_note(runs)]
    if settings.keep_weights:
        bare = [run for run in runs if run.is_weightless()]
        lost = [run for run in runs if run.has_lost_weights()]
        notes.append(_note(bare, runs, "computed without keeping weights: force=true keeps"))
        notes.append(
            _note(lost, runs, "kept, its weights are gone or damaged: force=true computes")
        )
    threads = settings.threads
    if runs and threads is None:
        import torch  # late: as a rule the number is given

        threads = torch.get_num_threads()
    used = {run: _threads(run.provenance()) - {threads} for run in runs}
    numbers = " or ".join(map(str, sorted(set[int]().union(*used.values()))))
    others = [run for run in runs if used[run]]
    text = f"computed with threads={numbers}, not {threads}, and kept: last digits may differ,"
    notes.append(_note(others, runs, f"{text} force=true computes again"))
    return [note for note in notes if note]


def _note(some: list[Run], runs: list[Run], text: str) -> str | None:
    """Return a sentence about some of the runs; None without any."""
    who = f"{len(some)} of {len(runs)} runs were" if len(runs) > 1 else f"{runs and runs[0]} was"
    return f"{who} {text}" if some else None


def _threads(about: dict[str, Any]) -> set[int]:
    """Return the numbers of threads of what began a run and of what ended it, as far as known."""
    first = about.get("first")
    said = [about.get("threads"), first.get("threads") if isinstance(first, dict) else None]
    return {number for number in said if isinstance(number, int)}


def load(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """Return the tables of several complete runs, those of one name joined into one.

    Each gets the column `run` and, as far as it has no such column, the parameters of the run.
    Raises InputError when a run is missing or damaged.
    """
    runs = list(runs)
    missing = [run for run in runs if not run.result_path.exists()]
    if missing:
        names = "\n".join(f"  {run}" for run in missing[:5])
        more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(f"{len(missing)} of {len(runs)} runs are missing:\n{names}{more}")
    collected: dict[str, list[pd.DataFrame]] = {}
    for run in runs:
        scalars = {k: v for k, v in vars(run.config).items() if isinstance(v, int | float | str)}
        for name, table in run.tables().items():
            own = {key: value for key, value in scalars.items() if key not in table.columns}
            collected.setdefault(name, []).append(table.assign(run=run.folder.name, **own))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in collected.items()}


class Joined(NamedTuple):
    """A table of several runs of one study, with the run and its parameters in each row."""

    name: str
    rows: pd.DataFrame
    absent: dict[str, list[str]]
    """The folders of the runs that do not keep a column, by column."""


def joined(runs: Sequence[Run], table: str | None = None) -> Joined:
    """Return a table of complete runs of one study.

    table: its name; None for `metrics`, or the first where there is no such. A list is text, as in
    names of runs, and so is a parameter that is null in a run. Raises InputError when none of the
    runs has it, or one is damaged.
    """
    tables = load(runs)
    name = table or ("metrics" if "metrics" in tables else next(iter(tables)))
    if name not in tables:
        raise InputError(f"no run has a table {name}: {nearest(name, tables)}")
    own = {run.folder.name: run.tables().get(name, pd.DataFrame()).columns for run in runs}
    measured = {column for columns in own.values() for column in columns}
    rows = tables[name]
    for key in vars(runs[0].config):
        values = {run.folder.name: getattr(run.config, key) for run in runs}
        is_text = any(isinstance(value, list | None) for value in values.values())
        if key not in measured and is_text:
            texts = {run: _as_text(value) for run, value in values.items()}
            rows = rows.assign(**{key: rows["run"].map(texts)})
    absent = {
        column: [run for run, columns in own.items() if column not in columns]
        for column in rows
        if column in measured
    }
    return Joined(name, rows, {column: runs for column, runs in absent.items() if runs})


def _as_text(value: Any) -> str:
    return "null" if value is None else readable(value)
