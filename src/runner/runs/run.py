"""A run: one study at one configuration, kept in one folder.

The folder `<outputs>/runs/<study>/<readable knobs>-<hash8>/` holds `config.yaml`, the tables,
`provenance.json` and `run.log`. An unfinished run has `checkpoint.safetensors`, a failed run
`error.txt`. `result.json`, written last and atomically, alone marks the run complete. A complete
run is computed again in `<folder>.again`, which replaces the folder once the attempt is complete.
"""

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache, cached_property
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import yaml

from runner.core.catalogue import config_of, module_of, studies
from runner.core.errors import InputError
from runner.core.settings import Settings
from runner.core.studies import StudyConfig, TrainingConfig
from runner.runs.provenance import code_of
from runner.runs.tables import read_table, sha256_of

if TYPE_CHECKING:
    import torch

RESULT, CHECKPOINT = "result.json", "checkpoint.safetensors"

WEIGHTS = "weights.safetensors"
"""The trained weights, with `keep_weights=true`: `batch/width=64/replicate=0/W1`, ..."""

WRITTEN = {RESULT, CHECKPOINT, WEIGHTS, "config.yaml", "provenance.json", "run.log", "error.txt"}
WRITTEN |= {"overview.png"}
"""The files that a run writes beside its tables."""

AGAIN = ".again"
"""The ending of the folder where a complete run is computed again."""


LONGEST_NAME = 120

NAME = re.compile(r"(?P<knobs>.*)-(?P<hash>[0-9a-f]{8}(-\d+)?)")
"""The name of a run's folder, with a number if another configuration has the name without it."""

UNNAMED = ("checksums",)
"""Parameters that the hash covers and no person reads."""


class Run:
    """One study at one configuration: its identity, its folder, its state."""

    def __init__(self, config: StudyConfig, outputs: Path) -> None:
        self.config = config
        self.outputs = outputs

    @cached_property
    def folder(self) -> Path:
        """The folder of the run: the first of its name that holds no other configuration."""
        named = self.outputs / "runs" / self.config.study / run_name(self.config)
        numbered = (named.with_name(f"{named.name}-{number}") for number in count(2))
        return next(folder for folder in chain([named], numbered) if not self._is_another(folder))

    def _is_another(self, folder: Path) -> bool:
        """Return whether a folder holds another configuration; names are cut, and hashes short."""
        try:
            return identity_of(read_config(folder)) != self.identity
        except InputError:  # nothing was computed there, or the file is damaged
            return False

    @property
    def identity(self) -> str:
        """What changes the numbers, and nothing else, as text."""
        return identity_of(self.config)

    def __str__(self) -> str:
        return f"{self.config.study} {knobs(self.config) or '(defaults)'}"

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
        """Return the status in the provenance of the last attempt; absent if there is none."""
        last = self.again if self.again.is_dir() else self.folder
        return str(read_provenance(last).get("status", "absent"))

    def is_stale(self) -> bool:
        """Return whether the run is complete and not known to be computed by today's code."""
        return self.is_complete() and whose_code(self.provenance(), self.config) != "today's"

    def code(self) -> str:
        """Return the fingerprint of today's code of the run."""
        return code_of(self.config.study, self.config.own_functions())

    def is_wanted(self, settings: Settings) -> bool:
        """Return whether the run must be computed.

        Raises InputError if the run is stale and `stale=refuse`.
        """
        if settings.force or not self.is_complete():
            return True
        if settings.stale == "keep" or not self.is_stale():
            return False
        if settings.stale == "refuse":
            raise InputError(
                f"{self} was computed by {OF_CODE[whose_code(self.provenance(), self.config)]}.\n"
                "stale=recompute computes it again, stale=keep takes it as it is."
            )
        return True

    def tables(self) -> dict[str, pd.DataFrame]:
        """Return all tables of the complete run. Raises InputError when one is damaged."""
        return {
            name: read_table(self.folder / f"{name}.csv", expected)
            for name, expected in self.result["tables"].items()
        }

    def lacks_weights(self) -> bool:
        """Return whether networks were trained whose weights are not stored, or damaged."""
        stored = self.result.get("weights")
        if stored is None:
            return isinstance(self.config, TrainingConfig)
        return not holds(self.folder / WEIGHTS, stored)

    def weights(self) -> "dict[str, dict[str, torch.Tensor]]":
        """Return the trained weights by network, `batch/width=64/replicate=0`, and by name.

        Raises InputError if no weights are stored, or they are damaged.
        """
        from safetensors.torch import load_file  # late: it imports torch

        if self.lacks_weights():
            raise InputError(
                f"{self} has no stored weights, or they are damaged.\n"
                "keep_weights=true force=true computes it again and stores them."
            )
        if "weights" not in self.result:
            raise InputError(f"{self}: this study trains no network, so it has no weights")
        networks: dict[str, dict[str, torch.Tensor]] = {}
        for name, tensor in load_file(self.folder / WEIGHTS).items():
            network, _, weight = name.rpartition("/")
            networks.setdefault(network, {})[weight] = tensor
        return networks

    def modules(self) -> "dict[str, torch.nn.Module]":
        """Return the trained networks by name: torch modules in evaluation mode, samples as rows.

        Raises InputError as `weights` does, and if the study defines no torch module.
        """
        make = getattr(module_of(self.config.study), "torch_module", None)
        if make is None:
            raise InputError(f"{self.config.study} has no module for its networks: see weights()")
        return {name: make(self.config, name, w) for name, w in self.weights().items()}

    def config_text(self) -> bytes:
        """Return the content of `config.yaml`."""
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


OF_CODE = {"other": "other code", "unknown": "code that is not known"}
"""Words of messages, by whose code it is."""


def whose_code(provenance: dict[str, Any], config: StudyConfig) -> str:
    """Return whether a run was computed by today's code: "today's", "other" or "unknown".

    Unknown: the provenance has no fingerprint, or a module of the user's cannot be read.
    """
    try:
        today = code_of(config.study, config.own_functions())
    except (InputError, OSError):
        return "unknown"
    code = provenance.get("code")
    return "unknown" if not isinstance(code, str) else "today's" if code == today else "other"


def read_provenance(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's `provenance.json`; nothing if it cannot be read."""
    try:
        content = json.loads((folder / "provenance.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


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
    """Return whether a file has the size and checksum that `result.json` states."""
    try:
        stat = path.stat()
        if stat.st_size != table["bytes"]:
            return False
        return _sha256(path, stat.st_size, stat.st_mtime_ns) == table["sha256"]
    except OSError:
        return False


@cache
def _sha256(path: Path, size: int, changed: int) -> str:
    """Return the SHA-256 of a file, computed again if its size or time of change differs."""
    return sha256_of(path)


def knobs(config: StudyConfig) -> str:
    """Return the parameters that differ from their defaults, as text: `depth=32,seed=1`."""
    values = config.identity().items()
    return ",".join(f"{name}={readable(value)}" for name, value in values if name not in UNNAMED)


def readable(value: Any) -> str:
    """Return a parameter's value as text for a run's name; elements of a list are joined by `+`."""
    return "+".join(map(str, value)) if isinstance(value, list) else str(value)


def identity_of(config: StudyConfig) -> str:
    """Return the parameters and the version, which alone determine the numbers, as text.

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


def stale_note(runs: Iterable[Run]) -> str | None:
    """Return a note on complete runs that are stale; None without any."""
    runs = list(runs)
    codes = {run: whose_code(run.provenance(), run.config) for run in runs if run.is_complete()}
    notes = []
    for kind, code in OF_CODE.items():
        stale = [run for run in codes if codes[run] == kind]
        text = f"computed by {code} and kept: stale=recompute computes again"
        notes.append(_note(stale, runs, text))
    return "\n".join(filter(None, notes)) or None


def kept_notes(runs: Iterable[Run], settings: Settings) -> list[str]:
    """Return notes on complete runs that are not computed again, a line each.

    The notes name runs of other code, without wanted weights, or of another number of threads.
    Threads change how sums round, and are no part of a run's identity.
    """
    runs = list(runs)
    bare = [run for run in runs if settings.keep_weights and run.lacks_weights()]
    threads = settings.threads
    if runs and threads is None:
        import torch  # late: as a rule the number is given

        threads = torch.get_num_threads()
    used = {run: run.provenance().get("threads") or threads for run in runs}
    others = [run for run in runs if used[run] != threads]
    numbers = " or ".join(sorted({str(used[run]) for run in others}))
    notes = [
        stale_note(runs),
        _note(bare, runs, "computed without keeping weights, or lost them: force=true keeps them"),
        _note(
            others,
            runs,
            f"computed with threads={numbers}, not {threads}, and kept: last digits may differ,"
            " force=true computes again",
        ),
    ]
    return [note for note in notes if note]


def _note(some: list[Run], runs: list[Run], text: str) -> str | None:
    """Return a sentence about some of the runs; None without any."""
    who = f"{len(some)} of {len(runs)} runs were" if len(runs) > 1 else f"{runs and runs[0]} was"
    return f"{who} {text}" if some else None


def load(runs: Iterable[Run]) -> dict[str, pd.DataFrame]:
    """Return the tables of several complete runs, those of one name joined into one.

    Each table gets the column `run` and a column for each number and text among the parameters,
    unless the table has a column of this name. Raises InputError if a run is missing or damaged.
    """
    runs = list(runs)
    missing = [run for run in runs if not run.result_path.exists()]
    if missing:
        names = "\n".join(f"  {run}" for run in missing[:5])
        more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise InputError(f"{len(missing)} of {len(runs)} runs are missing:\n{names}{more}")
    parts: dict[str, list[pd.DataFrame]] = {}
    for run in runs:
        scalars = {k: v for k, v in vars(run.config).items() if isinstance(v, int | float | str)}
        for name, table in run.tables().items():
            columns = {key: value for key, value in scalars.items() if key not in table.columns}
            parts.setdefault(name, []).append(table.assign(run=run.folder.name, **columns))
    return {name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()}
